// SPDX-License-Identifier: Apache-2.0

package journaltest

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
)

func testStat(t *testing.T, s Store) {
	j := s.open(t, t.TempDir())
	if err := j.Create(t.Context(), "r", journal.Header{Labels: map[string]string{"a": "1"}, Parent: "p", ParentSeq: 4}); err != nil {
		t.Fatal(err)
	}
	stat := func() journal.Info {
		t.Helper()
		i, err := j.Stat(t.Context(), "r")
		if err != nil {
			t.Fatal(err)
		}
		return i
	}
	if i := stat(); i.Run != "r" || i.Head != 1 || i.Epoch != 0 || i.Held || i.Owner != "" || i.Mark != (journal.Mark{}) ||
		i.Labels["a"] != "1" || i.Parent != "p" || i.ParentSeq != 4 || i.Created.IsZero() || !i.Updated.Equal(i.Created) {
		t.Errorf("after Create: %+v", i)
	}
	l := acquire(t, j, "r")
	if i := stat(); i.Epoch != 1 || !i.Held || i.Owner != "the test" {
		t.Errorf("after Acquire: %+v", i)
	}
	mark := journal.Mark{Phase: "tools", Pending: 1<<63 + 1}
	if err := l.Append(t.Context(), mark, note(1), note(2)); err != nil {
		t.Fatal(err)
	}
	if i := stat(); i.Head != 3 || i.Mark != mark || i.Updated.Before(i.Created) {
		t.Errorf("after Append: %+v", i)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if i := stat(); i.Held || i.Owner != "the test" || i.Epoch != 1 || i.Mark != mark {
		t.Errorf("after Release: %+v", i)
	}
}

func testRuns(t *testing.T, s Store) {
	j := s.open(t, t.TempDir())
	names := func(f journal.Filter) string {
		t.Helper()
		var got []string
		for i, err := range j.Runs(t.Context(), f) {
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, i.Run)
		}
		return strings.Join(got, " ")
	}
	if got := names(journal.Filter{}); got != "" {
		t.Errorf("runs of an empty store: %q", got)
	}
	for i, run := range []string{"a", "b", "c"} {
		h := journal.Header{Labels: map[string]string{"n": run, "all": "x"}}
		if run == "c" {
			h.Parent = "a"
		}
		if err := j.Create(t.Context(), run, h); err != nil {
			t.Fatal(err)
		}
		mark := journal.Mark{Phase: "p" + run, Ended: i == 1}
		if err := acquire(t, j, run).Append(t.Context(), mark, note(i)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond) // the order is by time
	}
	yes, no := true, false
	for want, f := range map[string]journal.Filter{
		"c b a": {}, "c b": {Limit: 2}, "b": {Ended: &yes}, "c a": {Ended: &no, Phases: []string{"pa", "pc", "pb"}},
		"a": {Labels: map[string]string{"n": "a", "all": "x"}}, "": {Labels: map[string]string{"n": "a", "all": "y"}},
		"c": {Parent: "a"},
	} {
		if got := names(f); got != want {
			t.Errorf("Runs(%+v) = %q, want %q", f, got, want)
		}
	}
	if got := names(journal.Filter{Before: time.Now().Add(-time.Hour)}); got != "" {
		t.Errorf("runs last updated an hour ago: %q", got)
	}
}

func testFollow(t *testing.T, s Store) {
	j, l := s.run(t)
	add(t, l, note(2), note(3))
	got := make(chan uint64, 100)
	failed := make(chan error, 1)
	go func() {
		defer close(got)
		for r, err := range j.Follow(t.Context(), "r", 2) {
			if err != nil {
				failed <- err
				return
			}
			got <- r.Seq
		}
	}()
	want := func(seq uint64) {
		t.Helper()
		select {
		case g := <-got:
			if g != seq {
				t.Fatalf("followed record %d, want %d", g, seq)
			}
		case err := <-failed:
			t.Fatal(err)
		case <-time.After(s.patience()):
			t.Fatalf("Follow must yield what is appended: record %d did not come", seq)
		}
	}
	want(2)
	want(3)
	for i := range uint64(5) {
		add(t, l, note(int(i)), note(0))
		want(4 + 2*i)
		want(5 + 2*i)
	}
	if err := l.Append(t.Context(), journal.Mark{Ended: true}, note(0)); err != nil {
		t.Fatal(err)
	}
	want(14)
	s.within(t, "Follow must end after the append whose Mark is Ended", func() {
		if _, more := <-got; more {
			t.Error("something follows after the end")
		}
	})
}

func testFollowEnds(t *testing.T, s Store) {
	j, l := s.run(t)
	add(t, l, note(2))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var seen []uint64
	s.within(t, "Follow must end when its context does", func() {
		for r, err := range j.Follow(ctx, "r", 0) {
			if err != nil {
				t.Fatal(err)
			}
			if seen = append(seen, r.Seq); len(seen) == 2 {
				cancel()
			}
		}
	})
	if !slices.Equal(seen, []uint64{1, 2}) {
		t.Errorf("followed %v, want 1 and 2", seen)
	}
	if err := l.Append(t.Context(), journal.Mark{Ended: true}, note(3)); err != nil {
		t.Fatal(err)
	}
	n := 0
	s.within(t, "Follow of a run whose Mark is Ended must end", func() {
		for _, err := range j.Follow(t.Context(), "r", 0) {
			if err != nil {
				t.Fatal(err)
			}
			n++
		}
	})
	if n != 3 {
		t.Errorf("an ended run gives %d records, want 3", n)
	}
	for _, err := range j.Follow(t.Context(), "r", 0) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
}
