// SPDX-License-Identifier: Apache-2.0

package journaltest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

func testCreate(t *testing.T, s Store) {
	j := s.open(t, t.TempDir())
	h := journal.Header{
		Rules: 3, Labels: map[string]string{"b": "2", "a": "1"}, Config: json.RawMessage(`{"system":"be kind","n":[1,2]}`),
		Parent: "p", ParentSeq: 9,
	}
	if err := j.Create(t.Context(), "r", h); err != nil {
		t.Fatal(err)
	}
	records := read(t, j, "r")
	if len(records) != 1 || records[0].Epoch != 0 || time.Since(records[0].At) > time.Hour {
		t.Fatalf("records after Create = %+v, want the header alone", records)
	}
	sameBody(t, records[0].Body, h)
	wantErr(t, "a second Create", j.Create(t.Context(), "r", h), journal.ErrExists)
	_, err := j.Acquire(t.Context(), "none", "x")
	wantErr(t, "Acquire of no run", err, journal.ErrNotFound)
	_, err = readAll(t, j, "none", 0)
	wantErr(t, "Read of no run", err, journal.ErrNotFound)
	_, err = j.Stat(t.Context(), "none")
	wantErr(t, "Stat of no run", err, journal.ErrNotFound)
	s.within(t, "Follow of a run that there is not must fail", func() {
		for _, err = range j.Follow(t.Context(), "none", 0) {
			break
		}
	})
	wantErr(t, "Follow of no run", err, journal.ErrNotFound)
	wantErr(t, "Delete of no run", j.Delete(t.Context(), "none"), journal.ErrNotFound)
	wantErr(t, "Offer to no run", j.Offer(t.Context(), "none", "k", llm.UserText("x")), journal.ErrNotFound)
}

func testNames(t *testing.T, s Store) {
	j := s.open(t, t.TempDir())
	bad := []string{
		"", ".", "..", "../x", "a/b", `a\b`, "/etc/passwd", "a..b", "a.", "-a", ".a", "a b", "ä", "a\x00b", "a\n",
		strings.Repeat("x", journal.MaxRun+1),
	}
	for _, run := range bad {
		wantErr(t, "Create "+run, j.Create(t.Context(), run, journal.Header{}), journal.ErrInvalid)
		_, err := j.Acquire(t.Context(), run, "x")
		wantErr(t, "Acquire "+run, err, journal.ErrInvalid)
		_, err = readAll(t, j, run, 0)
		wantErr(t, "Read "+run, err, journal.ErrInvalid)
		wantErr(t, "Delete "+run, j.Delete(t.Context(), run), journal.ErrInvalid)
		wantErr(t, "Offer "+run, j.Offer(t.Context(), run, "k", llm.UserText("x")), journal.ErrInvalid)
	}
	for _, run := range []string{"a", "A1", "a.inbox", "a.lock", "a.jsonl", "2026-11-30T08.00_x", strings.Repeat("x", journal.MaxRun)} {
		create(t, j, run)
		add(t, acquire(t, j, run), note(len(run)))
		if got := read(t, j, run); len(got) != 2 {
			t.Errorf("run %s has %d records, want 2", run, len(got))
		}
	}
}

// everyBody has one of each kind of input and the values that are easily lost.
func everyBody() []journal.Body {
	call := llm.Call{ID: "c1", Name: "edit", Args: `{"a": "<&>\u2028"}`}
	reply := llm.AssistantCalls(call, llm.Call{ID: "c2", Name: "noargs"})
	reply.Parts = append([]llm.Part{llm.Thinking{
		Text: "hm", Opaque: llm.Opaque{Vendor: "v", Data: json.RawMessage(`{"sig":"abc","n":12345678901234567890}`)},
	}}, reply.Parts...)
	result := llm.Result{
		CallID: "c1", Name: "edit", Status: llm.StatusUnknown, Summary: "a\nb", Content: "tab\there é \U0001F600",
		Images: []llm.Image{{Media: "image/png", Data: image(100)}},
		Notes:  []llm.System{{Kind: "k", Text: "t", Data: json.RawMessage(`[1]`)}},
	}
	inputs := []machine.Input{
		machine.AppendInput{Message: llm.UserText("hello"), Keys: []string{"k1", "k 2"}},
		machine.AppendSystem{Parts: []llm.System{{Kind: "note", Text: "n"}}},
		machine.ReplaceContext{Messages: []llm.Message{llm.UserText("x")}, Usage: llm.Usage{Input: llm.N(0), Output: llm.N(5)}},
		machine.Truncate{Len: 0},
		machine.Start{},
		machine.Generated{Op: 1, Message: reply, Usage: llm.Usage{Input: llm.N(7)}},
		machine.GenerationFailed{Op: 1 << 63},
		machine.ToolsCompleted{Op: 2, Results: []llm.Result{result}, Cancelled: true},
		machine.CancelAtBoundary{},
		machine.ReplaceAtBoundary{},
		machine.RecoverInterrupted{},
		machine.Notice{Op: 3, Text: "n", Fresh: true},
		machine.SetTruncationCap{N: 4},
		machine.Started{Op: 5, Calls: []machine.StartedCall{{Ordinal: 0, Repeat: true}, {Ordinal: 1}}},
		machine.Settled{Op: 5, Ordinal: 1, Result: result},
		machine.SettleRest{Op: 5, Cause: "limit", Cancelled: true},
		machine.Pause{Reason: "wait"},
		machine.Resume{},
		machine.Recovered{},
		machine.Recovered{Doubt: true},
		machine.Steer{Messages: []llm.Message{llm.UserText("left")}, Keys: []string{"k3"}},
	}
	bodies := []journal.Body{
		journal.Note{Kind: "bare"}, journal.Note{Kind: "n.1", Data: json.RawMessage(`{"sha256":"x","at":[null,true]}`)},
	}
	for _, in := range inputs {
		bodies = append(bodies, journal.Step{Input: in})
	}
	return bodies
}

func testEveryBody(t *testing.T, s Store) {
	j, l := s.run(t)
	bodies := everyBody()
	for _, b := range bodies {
		add(t, l, b)
	}
	records := read(t, j, "r")
	if len(records) != len(bodies)+1 {
		t.Fatalf("%d records, want %d", len(records), len(bodies)+1)
	}
	for i, b := range bodies {
		sameBody(t, records[i+1].Body, b)
	}
	if l.Head() != uint64(len(records)) {
		t.Errorf("Head = %d, want %d", l.Head(), len(records))
	}
}

func testLarge(t *testing.T, s Store) {
	folder := t.TempDir()
	j := s.open(t, folder)
	create(t, j, "r")
	l := acquire(t, j, "r")
	big := strings.Repeat("line with \"quotes\" and \\ and <é>\n", 1<<14)
	many := make([]llm.Message, 40)
	for i := range many {
		many[i] = llm.UserText(strings.Repeat("x", 60_000))
	}
	bodies := []journal.Body{
		journal.Step{Input: machine.Settled{Op: 1, Result: llm.Result{
			CallID: "c", Name: "n", Status: llm.StatusSuccess, Content: big, Summary: big[:70_000],
			Images: []llm.Image{{Media: "image/png", Data: image(300_000)}},
		}}},
		step(big), step(big), // the same content again
		step(strings.Repeat("\x01", 20_000)), // six times as long in JSON
		journal.Step{Input: machine.ReplaceContext{Messages: many}},
		journal.Note{Kind: "n", Data: json.RawMessage(`{"` + strings.Repeat("k", 70_000) + `":"` + strings.Repeat("v", 70_000) + `"}`)},
		note(1),
	}
	for _, b := range bodies {
		add(t, l, b)
	}
	check := func(j journal.Journal) {
		t.Helper()
		records := read(t, j, "r")
		if len(records) != len(bodies)+1 {
			t.Fatalf("%d records, want %d", len(records), len(bodies)+1)
		}
		for i, b := range bodies {
			sameBody(t, records[i+1].Body, b)
		}
	}
	check(j)
	if j.Promise() != journal.Durable {
		return
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	check(s.open(t, folder))
}

func testAppendIsAllOrNone(t *testing.T, s Store) {
	j, l := s.run(t)
	add(t, l, note(1), note(2), note(3))
	if n := len(read(t, j, "r")); n != 4 || l.Head() != 4 {
		t.Fatalf("%d records and head %d, want 4", n, l.Head())
	}
	refused := map[string][]journal.Body{
		"none": nil, "a header": {note(4), journal.Header{}}, "nil": {note(4), nil}, "no input": {note(4), journal.Step{}},
		"no kind": {note(4), journal.Note{}}, "an empty key": {note(4), step("x", "")},
		"a long key": {note(4), step("x", strings.Repeat("k", journal.MaxKey+1))},
	}
	for name, bodies := range refused {
		wantErr(t, name, l.Append(t.Context(), journal.Mark{}, bodies...), journal.ErrInvalid)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	why := errors.New("enough")
	cancel(why)
	wantErr(t, "cancelled", l.Append(ctx, journal.Mark{}, note(4)), why)
	if n := len(read(t, j, "r")); n != 4 || l.Head() != 4 {
		t.Errorf("after refused appends there are %d records and head %d, want 4: Append is all or none", n, l.Head())
	}
	add(t, l, note(4))
	if n := len(read(t, j, "r")); n != 5 {
		t.Errorf("%d records, want 5: the lease goes on after a refusal", n)
	}
}

func testConcurrent(t *testing.T, s Store) {
	j, l := s.run(t)
	const writers, each = 4, 50
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if err := l.Append(t.Context(), journal.Mark{}, note(w*1000+i), note(-1)); err != nil {
					t.Errorf("append: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	next := make([]int, writers)
	records := read(t, j, "r")
	if len(records) != 2*writers*each+1 {
		t.Fatalf("%d records, want %d", len(records), 2*writers*each+1)
	}
	for i := 1; i < len(records); i += 2 {
		n := number(t, records[i])
		if n%1000 != next[n/1000] {
			t.Fatalf("record %d is %d of writer %d, want %d", i, n%1000, n/1000, next[n/1000])
		}
		next[n/1000]++
		if number(t, records[i+1]) != -1 {
			t.Fatalf("record %d came between the two of one append", i+1)
		}
	}
}

func number(t testing.TB, r journal.Record) int {
	t.Helper()
	n, ok := r.Body.(journal.Note)
	var v struct{ I int }
	if !ok || json.Unmarshal(n.Data, &v) != nil {
		t.Fatalf("record %d is %T, want a note with a number", r.Seq, r.Body)
	}
	return v.I
}

func testDelete(t *testing.T, s Store) {
	j, l := s.run(t)
	create(t, j, "other")
	add(t, l, step(strings.Repeat("x", 100_000)))
	if err := j.Offer(t.Context(), "r", "k", llm.UserText("hi")); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "Delete while held", j.Delete(t.Context(), "r"), journal.ErrHeld)
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := j.Delete(t.Context(), "r"); err != nil {
		t.Fatal(err)
	}
	_, err := readAll(t, j, "r", 0)
	wantErr(t, "Read after Delete", err, journal.ErrNotFound)
	create(t, j, "r")
	fresh := acquire(t, j, "r")
	if items, err := fresh.Inbox(t.Context()); err != nil || len(items) != 0 {
		t.Errorf("the new run has the inbox of the deleted one: %v, %v", items, err)
	}
	if n := len(read(t, j, "r")); n != 1 {
		t.Errorf("the new run has %d records, want 1", n)
	}
	if n := len(read(t, j, "other")); n != 1 {
		t.Errorf("the other run has %d records, want 1", n)
	}
}

func testReadPart(t *testing.T, s Store) {
	j, l := s.run(t)
	add(t, l, note(2))
	add(t, l, note(3), note(4))
	add(t, l, note(5))
	for from, want := range []int{5, 5, 4, 3, 2, 1, 0, 0} {
		got, err := readAll(t, j, "r", uint64(from))
		if err != nil || len(got) != want {
			t.Errorf("Read from %d gives %d records, %v; want %d", from, len(got), err, want)
		}
	}
	n := 0
	for _, err := range j.Read(t.Context(), "r", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; n == 2 {
			break
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var err error
	for _, err = range j.Read(ctx, "r", 0) {
	}
	wantErr(t, "Read with a cancelled context", err, context.Canceled)
}

func testClosed(t *testing.T, s Store) {
	j, l := s.run(t)
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	wantErr(t, "Append", l.Append(t.Context(), journal.Mark{}, note(1)), journal.ErrFenced)
	wantErr(t, "Create", j.Create(t.Context(), "x", journal.Header{}), journal.ErrClosed)
	_, err := j.Acquire(t.Context(), "r", "x")
	wantErr(t, "Acquire", err, journal.ErrClosed)
	_, err = readAll(t, j, "r", 0)
	wantErr(t, "Read", err, journal.ErrClosed)
	for _, err = range j.Runs(t.Context(), journal.Filter{}) {
		break
	}
	wantErr(t, "Runs", err, journal.ErrClosed)
	wantErr(t, "Offer", j.Offer(t.Context(), "r", "k", llm.UserText("x")), journal.ErrClosed)
	if err := j.Close(); err != nil {
		t.Errorf("a second Close: %v", err)
	}
}
