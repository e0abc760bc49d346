// SPDX-License-Identifier: Apache-2.0

package journaltest

import (
	"bytes"
	"errors"
	"fmt"
	"iter"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

func export(t testing.TB, j journal.Journal) []byte {
	t.Helper()
	var out bytes.Buffer
	if err := journal.Export(t.Context(), j, "r", &out); err != nil {
		t.Fatalf("export: %v", err)
	}
	return out.Bytes()
}

func carry(t testing.TB, j journal.Journal, file []byte) {
	t.Helper()
	if run, err := journal.Import(t.Context(), j, bytes.NewReader(file)); err != nil || run != "r" {
		t.Fatalf("import: %q, %v", run, err)
	}
}

// testCarry takes a run out of the store, through a store in memory, and back: it
// is the same run, and its file is the same at each station.
func testCarry(t *testing.T, s Store) {
	folder := t.TempDir()
	j := s.open(t, folder)
	h := journal.Header{Rules: 3, Labels: map[string]string{"a": "1"}, Config: []byte(`{"x":1}`), Parent: "p", ParentSeq: 9}
	if err := j.Create(t.Context(), "r", h); err != nil {
		t.Fatal(err)
	}
	offer(t, j, "k1", "waits")
	for range 2 {
		l := acquire(t, j, "r")
		for _, b := range everyBody() {
			if l.Epoch() == 1 || len(journal.InboxKeys(b)) == 0 {
				add(t, l, b, note(1))
			}
		}
		add(t, l, step(strings.Repeat("large \"text\"\n", 20_000)))
		if err := l.Append(t.Context(), journal.Mark{Phase: "finished", Pending: 1<<63 + 1, Ended: true}, note(2)); err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	file := export(t, j)
	_, err := journal.Import(t.Context(), j, bytes.NewReader(file))
	wantErr(t, "import over a run", err, journal.ErrExists)
	memory := journal.NewMemory()
	carry(t, memory, file)
	if !bytes.Equal(export(t, memory), file) {
		t.Error("the store in memory exports other bytes")
	}
	before, records := look1(t, j), texts(t, read(t, j, "r"))
	if err := j.Delete(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	carry(t, j, export(t, memory))
	if !bytes.Equal(export(t, j), file) {
		t.Error("after a round the store exports other bytes")
	}
	if j.Promise() == journal.Durable {
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		j = s.open(t, folder)
	}
	if after := look1(t, j); after != before {
		t.Errorf("after a round the run is\n%s\nand was\n%s", after, before)
	}
	if texts(t, read(t, j, "r")) != records {
		t.Error("after a round the records are others")
	}
	l := acquire(t, j, "r")
	if l.Epoch() < 3 {
		t.Errorf("the lease has epoch %d, and the records go up to 2", l.Epoch())
	}
	wantErr(t, "taking a key again", l.Append(t.Context(), journal.Mark{}, step("1", "k1")), journal.ErrTaken)
	offer(t, j, "k1", "again")
	offer(t, j, "new", "x")
	wantInbox(t, l, "new=x")
	add(t, l, note(5))
}

// look1 is what a list says of the run, but who had it last.
func look1(t testing.TB, j journal.Journal) string {
	t.Helper()
	i, err := j.Stat(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(i.Head, i.Mark, i.Labels, i.Parent, i.ParentSeq, i.Created, i.Updated, i.Held)
}

func sequence(records ...journal.Record) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}
}

func testRestoreRefusals(t *testing.T, s Store) {
	j := s.open(t, t.TempDir())
	rec := func(seq, epoch uint64, b journal.Body) journal.Record {
		return journal.Record{Seq: seq, Epoch: epoch, At: time.Unix(1e9, 0).UTC(), Body: b}
	}
	head := rec(1, 0, journal.Header{})
	for what, records := range map[string][]journal.Record{
		"nothing":          nil,
		"no header":        {rec(1, 0, note(1))},
		"a second header":  {head, rec(2, 0, journal.Header{})},
		"a gap":            {head, rec(3, 0, note(1))},
		"a repetition":     {head, rec(2, 1, note(1)), rec(2, 1, note(1))},
		"epochs backwards": {head, rec(2, 2, note(1)), rec(3, 1, note(1))},
		"an empty step":    {head, rec(2, 1, journal.Step{})},
		"no body":          {head, rec(2, 1, nil)},
		"a key twice":      {head, rec(2, 1, step("x", "k")), rec(3, 1, step("x", "k"))},
		"a long key":       {head, rec(2, 1, step("x", strings.Repeat("k", journal.MaxKey+1)))},
		"no JSON":          {head, rec(2, 1, journal.Note{Kind: "n", Data: []byte("{bad")})},
		"a parent outside": {rec(1, 0, journal.Header{Parent: "../../etc"})},
		"the last epoch":   {head, rec(2, math.MaxUint64, note(1))},
		"a huge epoch":     {head, rec(2, 1<<53, note(1))},
		"a far year":       {head, {Seq: 2, Epoch: 1, At: time.Date(30000, 1, 1, 0, 0, 0, 0, time.UTC), Body: note(1)}},
		"a year before 0":  {{Seq: 1, At: time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC), Body: journal.Header{}}},
	} {
		wantErr(t, what, j.Restore(t.Context(), "r", sequence(records...), journal.Mark{}), journal.ErrInvalid)
	}
	for what, phase := range map[string]string{"a huge phase": strings.Repeat("x", 3<<20), "a phase of bytes": "\xff"} {
		wantErr(t, what, j.Restore(t.Context(), "r", sequence(head), journal.Mark{Phase: phase}), journal.ErrInvalid)
	}
	why := errors.New("the source is gone")
	wantErr(t, "a source that fails", j.Restore(t.Context(), "r", func(yield func(journal.Record, error) bool) {
		_ = yield(head, nil) && yield(journal.Record{}, why)
	}, journal.Mark{}), why)
	wantErr(t, "a bad name", j.Restore(t.Context(), "../r", sequence(head), journal.Mark{}), journal.ErrInvalid)
	_, err := j.Stat(t.Context(), "r")
	wantErr(t, "Stat after refusals", err, journal.ErrNotFound)
	if err := j.Restore(t.Context(), "r", sequence(head), journal.Mark{}); err != nil {
		t.Errorf("a header alone: %v", err)
	}
	wantErr(t, "Restore over a run", j.Restore(t.Context(), "r", sequence(head), journal.Mark{}), journal.ErrExists)
	wantErr(t, "Create over it", j.Create(t.Context(), "r", journal.Header{}), journal.ErrExists)
}

// testRestoreEdges restores records at the edge of what is taken: the run goes on.
func testRestoreEdges(t *testing.T, s Store) {
	j := s.open(t, t.TempDir())
	first, last := time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(9999, 12, 31, 23, 59, 59, 999_999_999, time.UTC)
	mark := journal.Mark{Phase: strings.Repeat("x", journal.MaxPhase), Ended: true}
	err := j.Restore(t.Context(), "r", sequence(
		journal.Record{Seq: 1, At: first, Body: journal.Header{Parent: "p"}},
		journal.Record{Seq: 2, Epoch: journal.MaxEpoch / 2, At: last, Body: note(1)},
	), mark)
	if err != nil {
		t.Fatal(err)
	}
	i, err := j.Stat(t.Context(), "r")
	if err != nil || i.Mark != mark || i.Created.Year() > 1700 || i.Updated.Year() < 2200 {
		t.Errorf("Stat = %+v, %v", i, err)
	}
	l := acquire(t, j, "r")
	if want := uint64(journal.MaxEpoch/2 + 1); l.Epoch() != want {
		t.Errorf("the lease has epoch %d, want %d", l.Epoch(), want)
	}
	wantErr(t, "Append with a huge phase", l.Append(t.Context(), journal.Mark{Phase: strings.Repeat("x", 3<<20)}, note(2)), journal.ErrInvalid)
	add(t, l, note(2))
	if got := read(t, j, "r"); len(got) != 3 || !got[0].At.Equal(first) || !got[1].At.Equal(last) {
		t.Errorf("the records are %+v", got)
	}
	wantErr(t, "Create with a parent outside", j.Create(t.Context(), "c", journal.Header{Parent: "../p"}), journal.ErrInvalid)
}

// testFork forks a run at each of its boundaries (S-72).
func testFork(t *testing.T, s Store) {
	j := s.open(t, t.TempDir())
	if err := j.Create(t.Context(), "r", journal.Header{Rules: machine.RulesVersion, Labels: map[string]string{"a": "1"}}); err != nil {
		t.Fatal(err)
	}
	l := acquire(t, j, "r")
	calls := llm.AssistantCalls(llm.Call{ID: "1", Name: "x", Args: "{}"}, llm.Call{ID: "2", Name: "x", Args: "{}"})
	result := func(id string) llm.Result {
		return llm.Result{CallID: id, Name: "x", Status: llm.StatusSuccess, Summary: "ok"}
	}
	for _, b := range []journal.Body{ // from record 2 on
		journal.Step{Input: machine.AppendInput{Message: llm.UserText("go"), Keys: []string{"k"}}},
		journal.Step{Input: machine.Start{}},
		journal.Step{Input: machine.Generated{Op: 1, Message: calls}},
		journal.Step{Input: machine.Started{Op: 2, Calls: []machine.StartedCall{{Ordinal: 0}, {Ordinal: 1}}}},
		journal.Step{Input: machine.Settled{Op: 2, Ordinal: 1, Result: result("2")}},
		note(1),
		journal.Step{Input: machine.Settled{Op: 2, Ordinal: 0, Result: result("1")}},
		journal.Step{Input: machine.Generated{Op: 3, Message: llm.AssistantText("done")}},
	} {
		add(t, l, b)
	}
	boundaries := []uint64{1, 2, 3, 8, 9}
	for at := uint64(1); at <= 10; at++ {
		child := fmt.Sprint("child", at)
		n, err := journal.Fork(t.Context(), j, "r", at, child)
		if !slices.Contains(boundaries, at) {
			wantErr(t, fmt.Sprint("fork at ", at), err, journal.ErrInvalid)
			_, err = j.Stat(t.Context(), child)
			wantErr(t, "Stat of a refused fork", err, journal.ErrNotFound)
			continue
		}
		i, statErr := j.Stat(t.Context(), child)
		if err != nil || statErr != nil || n != at || i.Head != at || i.Parent != "r" || i.ParentSeq != at || i.Labels["a"] != "1" || i.Held || i.Ended != (at == 9) {
			t.Errorf("fork at %d: %d, %v; %+v, %v", at, n, err, i, statErr)
		}
		want := read(t, j, "r")[1:at]
		if got := read(t, j, child)[1:]; texts(t, got) != texts(t, want) {
			t.Errorf("fork at %d has other records", at)
		}
	}
	if n, err := journal.Fork(t.Context(), j, "r", 0, "last"); n != 9 || err != nil {
		t.Errorf("fork at the end: %d, %v; want 9", n, err)
	}
	if i, err := j.Stat(t.Context(), "child8"); err != nil || i.Phase != "generating" || i.Pending != 3 || i.Ended {
		t.Errorf("the fork before the answer: %+v, %v", i, err)
	}
	var names []string
	for i, err := range j.Runs(t.Context(), journal.Filter{Parent: "r"}) {
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, i.Run)
	}
	if len(names) != len(boundaries)+1 {
		t.Errorf("children %v, want %d", names, len(boundaries)+1)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := j.Delete(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	c := acquire(t, j, "child8")
	add(t, c, note(7))
	if len(read(t, j, "child8")) != 9 || len(read(t, j, "child9")) != 9 {
		t.Error("the children hang on their parent or on one another")
	}
	_, err := journal.Fork(t.Context(), j, "none", 0, "x")
	wantErr(t, "fork of no run", err, journal.ErrNotFound)
	_, err = journal.Fork(t.Context(), j, "child8", 0, "child9")
	wantErr(t, "fork into a run", err, journal.ErrExists)
}

func testPrune(t *testing.T, s Store) {
	j := s.open(t, t.TempDir())
	start := time.Unix(1_700_000_000, 0).UTC()
	put := func(run string, hour int, ended bool) {
		t.Helper()
		at := start.Add(time.Duration(hour) * time.Hour)
		h := journal.Header{Labels: map[string]string{"kind": run[:1]}}
		records := sequence(journal.Record{Seq: 1, At: at, Body: h}, journal.Record{Seq: 2, Epoch: 1, At: at, Body: note(1)})
		if err := j.Restore(t.Context(), run, records, journal.Mark{Phase: "p", Ended: ended}); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 6 {
		put(fmt.Sprint("a", i), i, i != 2)
	}
	put("b0", 0, true)
	l := acquire(t, j, "a0") // held, and the oldest
	prune := func(p journal.Policy, want ...string) {
		t.Helper()
		got, err := journal.Prune(t.Context(), j, p)
		slices.Sort(got)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("Prune(%+v) = %v, %v; want %v", p, got, err, want)
		}
		for _, run := range want {
			_, err := j.Stat(t.Context(), run)
			wantErr(t, "Stat of a pruned run", err, journal.ErrNotFound)
		}
	}
	prune(journal.Policy{})
	prune(journal.Policy{Labels: map[string]string{"kind": "a"}})
	prune(journal.Policy{OlderThan: start.Add(2 * time.Hour), Labels: map[string]string{"kind": "a"}}, "a1")
	prune(journal.Policy{Keep: 4})
	prune(journal.Policy{Keep: 2}, "a3", "b0")
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	prune(journal.Policy{OlderThan: start.Add(100 * time.Hour), Keep: 1}, "a0", "a4", "a5")
	if _, err := j.Stat(t.Context(), "a2"); err != nil {
		t.Errorf("a run that has not ended was pruned: %v", err)
	}
}
