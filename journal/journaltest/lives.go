// SPDX-License-Identifier: Apache-2.0

package journaltest

import (
	"context"
	"errors"
	"testing"

	"github.com/fiducial-dev/fiducial/journal"
)

// testFollowOneLife deletes a run under its follower and makes another of its name,
// shorter, as long, or longer than what was seen, open or ended: the follower is told
// that its run is gone, and sees no record of the new one.
func testFollowOneLife(t *testing.T, s Store) {
	j := s.open(t, t.TempDir())
	for what, mark := range map[string]journal.Mark{"open": {Phase: "busy"}, "ended": {Phase: "finished", Ended: true}} {
		for _, n := range []int{1, 3, 4, 9} {
			s.followOneLife(t, j, what, n, mark)
		}
	}
}

func (s Store) followOneLife(t *testing.T, j journal.Journal, what string, n int, mark journal.Mark) {
	t.Helper()
	live(t, j, 4, journal.Mark{Phase: "busy"})
	defer func() {
		if err := j.Delete(t.Context(), "r"); err != nil {
			t.Errorf("delete: %v", err)
		}
	}()
	ctx, cancel := context.WithTimeout(t.Context(), s.patience())
	defer cancel()
	seen := uint64(0)
	for r, err := range j.Follow(ctx, "r", 0) {
		if err != nil {
			if !errors.Is(err, journal.ErrNotFound) {
				t.Errorf("%s, %d records: followed to %d and then: %v, want ErrNotFound", what, n, seen, err)
			}
			if seen != 4 {
				t.Errorf("%s, %d records: followed to record %d, want 4", what, n, seen)
			}
			return
		}
		if seen++; r.Seq != seen {
			t.Errorf("%s, %d records: record %d follows %d", what, n, r.Seq, seen-1)
		}
		if seen == 4 {
			if err := j.Delete(t.Context(), "r"); err != nil {
				t.Fatal(err)
			}
			live(t, j, n, mark)
		}
	}
	t.Errorf("%s, %d records: the follower ends quietly, or hears nothing, after %d", what, n, seen)
}

// live makes the run r with n records.
func live(t *testing.T, j journal.Journal, n int, mark journal.Mark) {
	t.Helper()
	create(t, j, "r")
	l := acquire(t, j, "r")
	for i := 2; i <= n; i++ {
		if err := l.Append(t.Context(), mark, note(i)); err != nil {
			t.Fatal(err)
		}
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
}
