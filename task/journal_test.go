// SPDX-License-Identifier: Apache-2.0

package task_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/task"
)

// refusing is a journal that stores nothing of a run once it has taken so many
// appends.
type refusing struct {
	*journal.Memory
	after int
	err   error
}

func (j *refusing) Acquire(ctx context.Context, run, owner string) (journal.Lease, error) {
	l, err := j.Memory.Acquire(ctx, run, owner)
	return &refusingLease{l, j}, err
}

type refusingLease struct {
	journal.Lease
	journal *refusing
}

func (l *refusingLease) Append(ctx context.Context, state journal.Mark, bodies ...journal.Body) error {
	if l.journal.after--; l.journal.after < 0 {
		return l.journal.err
	}
	return l.Lease.Append(ctx, state, bodies...)
}

// A journal that does not store is no mistake of the program's (B-60): what failed
// stands in the run's detail. What it cannot take because of what it was given is.
func TestJournalFails(t *testing.T) {
	for _, c := range []struct {
		err  error
		path task.Path
	}{
		{&journal.Error{Kind: journal.KindFull, Op: "append", Run: "r1"}, task.PathEnvironment},
		{&journal.Error{Kind: journal.KindStorage, Op: "append", Run: "r1", Err: errors.New("write r1.jsonl: i/o error")}, task.PathEnvironment},
		{&journal.Error{Kind: journal.KindUncertain, Op: "append", Run: "r1"}, task.PathEnvironment},
		{&journal.Error{Kind: journal.KindFenced, Op: "append", Run: "r1", Err: journal.ErrReplaced}, task.PathEnvironment},
		{&journal.DamageError{Run: "r1", Where: "r1.jsonl", Offset: 9, Reason: "it is torn"}, task.PathEnvironment},
		{&journal.Error{Kind: journal.KindFenced, Op: "append", Run: "r1"}, task.PathInternal},
		{&journal.Error{Kind: journal.KindInvalid, Op: "append", Run: "r1"}, task.PathInternal},
	} {
		for _, after := range []int{0, 2} {
			r := newRig(t, write("b.txt", "beta"), join(checkCall, finishCall))
			r.cfg.Journal = &refusing{journal.NewMemory(), after, c.err}
			res := r.run()
			if res.Outcome != task.Failed || res.Path != c.path || !errors.Is(res.Err, c.err) || !strings.Contains(res.Detail, c.err.Error()) {
				t.Errorf("%v after %d appends: ended %s by %s: %s", c.err, after, res.Outcome, res.Path, res.Detail)
			}
		}
	}
}
