// SPDX-License-Identifier: Apache-2.0

package journaltest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

func testHeld(t *testing.T, s Store) {
	j, l := s.run(t)
	_, err := j.Acquire(t.Context(), "r", "another")
	held, ok := errors.AsType[*journal.HeldError](err)
	if !ok || !errors.Is(err, journal.ErrHeld) || held.Run != "r" || held.Owner != "the test" {
		t.Fatalf("Acquire of a held run: %v, want a HeldError that names the test", err)
	}
	add(t, l, note(1))
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Errorf("a second Release: %v", err)
	}
	l2, err := j.Acquire(t.Context(), "r", "another")
	if err != nil {
		t.Fatal(err)
	}
	if l2.Head() != 2 || l2.Run() != "r" {
		t.Errorf("the new lease is at %d of %s, want 2 of r", l2.Head(), l2.Run())
	}
	// Of many who ask at once one gets it.
	if err := l2.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	long, err := j.Acquire(t.Context(), "r", strings.Repeat("long ", 10_000))
	if err != nil {
		t.Fatal(err)
	}
	_, err = j.Acquire(t.Context(), "r", "x")
	if held, ok := errors.AsType[*journal.HeldError](err); !ok || !strings.HasPrefix(held.Owner, "long long") {
		t.Errorf("Acquire: %.100v, want a HeldError with the beginning of the long name", err)
	}
	if err := long.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	got := 0
	for range 16 {
		wg.Go(func() {
			_, err := j.Acquire(t.Context(), "r", "crowd")
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err == nil:
				got++
			case !errors.Is(err, journal.ErrHeld):
				t.Errorf("Acquire: %v", err)
			}
		})
	}
	wg.Wait()
	if got != 1 {
		t.Errorf("%d of 16 got the run, want 1", got)
	}
}

// testRaceForOwner lets many ask for a run that nobody held before, each under a name
// of its own: who does not get it is told whose it is.
func testRaceForOwner(t *testing.T, s Store) {
	j := s.open(t, t.TempDir())
	rounds := 20
	if testing.Short() {
		rounds = 5
	}
	for round := range rounds {
		run := fmt.Sprint("r", round)
		create(t, j, run)
		var mu sync.Mutex
		var got journal.Lease
		var owner string
		var told []string
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				me := fmt.Sprint("owner ", i)
				l, err := j.Acquire(t.Context(), run, me)
				mu.Lock()
				defer mu.Unlock()
				held, ok := errors.AsType[*journal.HeldError](err)
				switch {
				case err == nil:
					got, owner = l, me
				case ok:
					told = append(told, held.Owner)
				default:
					t.Errorf("Acquire: %v", err)
				}
			})
		}
		wg.Wait()
		for _, who := range told {
			if got == nil || len(told) != 7 || who != owner {
				t.Fatalf("round %d: the run is of %q, and %d were told of %q", round, owner, len(told), told)
			}
		}
		if err := got.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

func testFenced(t *testing.T, s Store) {
	j, l1 := s.run(t)
	add(t, l1, note(1))
	select {
	case <-l1.Lost():
		t.Fatal("a good lease is lost")
	default:
	}
	if err := l1.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.wantLost(t, l1, "Release")
	wantErr(t, "Append after Release", l1.Append(t.Context(), journal.Mark{}, note(9)), journal.ErrFenced)
	l2 := acquire(t, j, "r")
	if l2.Epoch() <= l1.Epoch() {
		t.Errorf("epoch %d follows epoch %d", l2.Epoch(), l1.Epoch())
	}
	superseded := l1.Append(t.Context(), journal.Mark{}, note(9))
	wantErr(t, "Append of a superseded lease", superseded, journal.ErrFenced)
	if errors.Is(superseded, journal.ErrReplaced) {
		t.Errorf("Append of a superseded lease: %v, and nobody has touched the log", superseded)
	}
	_, err := l1.Inbox(t.Context())
	wantErr(t, "Inbox of a superseded lease", err, journal.ErrFenced)
	add(t, l2, note(2))
	wantErr(t, "Append of a superseded lease", l1.Append(t.Context(), journal.Mark{}, note(9)), journal.ErrFenced)
	if err := l1.Release(t.Context()); err != nil {
		t.Errorf("Release of a superseded lease: %v", err)
	}
	add(t, l2, note(3))
	records := read(t, j, "r")
	if len(records) != 4 {
		t.Fatalf("%d records, want 4", len(records))
	}
	for i, epoch := range []uint64{0, l1.Epoch(), l2.Epoch(), l2.Epoch()} {
		if records[i].Epoch != epoch || i > 0 && number(t, records[i]) != i {
			t.Errorf("record %d is of epoch %d, want %d", i+1, records[i].Epoch, epoch)
		}
	}
}

func testEpochs(t *testing.T, s Store) {
	folder := t.TempDir()
	j := s.open(t, folder)
	create(t, j, "r")
	var last uint64
	for i := range 6 {
		l := acquire(t, j, "r")
		if l.Epoch() <= last {
			t.Fatalf("lease %d has epoch %d, the one before had %d", i, l.Epoch(), last)
		}
		last = l.Epoch()
		if i%2 == 1 {
			add(t, l, note(i))
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if j.Promise() == journal.Durable && i%3 == 2 {
			if err := j.Close(); err != nil {
				t.Fatal(err)
			}
			j = s.open(t, folder)
		}
	}
}

func keysOf(t testing.TB, l journal.Lease) string {
	t.Helper()
	items, err := l.Inbox(t.Context())
	if err != nil {
		t.Fatalf("inbox: %v", err)
	}
	keys := make([]string, len(items))
	for i, item := range items {
		if d := time.Since(item.At); d > time.Hour || d < -time.Hour {
			t.Errorf("inbox: Item.At of %s is %v, want the time of the offer", item.Key, item.At)
		}
		keys[i] = item.Key + "=" + item.Message.Text()
	}
	return strings.Join(keys, " ")
}

func wantInbox(t testing.TB, l journal.Lease, want string) {
	t.Helper()
	if got := keysOf(t, l); got != want {
		t.Errorf("inbox = %.200q, want %.200q", got, want)
	}
}

func offer(t testing.TB, j journal.Journal, key, text string) {
	t.Helper()
	if err := j.Offer(t.Context(), "r", key, llm.UserText(text)); err != nil {
		t.Fatalf("offer %s: %v", key, err)
	}
}

func testInbox(t *testing.T, s Store) {
	folder := t.TempDir()
	j := s.open(t, folder)
	create(t, j, "r")
	offer(t, j, "z", "1") // nobody holds the run
	l := acquire(t, j, "r")
	offer(t, j, "a", "2")
	offer(t, j, "m", "3")
	offer(t, j, "a", "changed")
	wantInbox(t, l, "z=1 a=2 m=3")
	wantInbox(t, l, "z=1 a=2 m=3") // looking takes nothing
	add(t, l, step("1", "z"))
	offer(t, j, "z", "1") // was taken
	wantInbox(t, l, "a=2 m=3")
	big := strings.Repeat("big ", 50_000)
	offer(t, j, "b", big)
	if j.Promise() == journal.Durable {
		if err := j.Close(); err != nil {
			t.Fatal(err)
		}
		j = s.open(t, folder)
	} else if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	l = acquire(t, j, "r")
	wantInbox(t, l, "a=2 m=3 b="+big)
	add(t, l, journal.Step{Input: machine.Steer{Messages: []llm.Message{llm.UserText("x")}, Keys: []string{"m", "a"}}}, note(1))
	wantInbox(t, l, "b="+big)
}

func testInboxOnce(t *testing.T, s Store) {
	j, l := s.run(t)
	offer(t, j, "a", "1")
	add(t, l, step("1", "a"))
	head := l.Head()
	wantErr(t, "taking a key again", l.Append(t.Context(), journal.Mark{}, note(1), step("1", "a")), journal.ErrTaken)
	wantErr(t, "taking a key twice", l.Append(t.Context(), journal.Mark{}, step("1", "b"), step("1", "b")), journal.ErrTaken)
	if n := len(read(t, j, "r")); l.Head() != head || n != int(head) {
		t.Errorf("a refused take left %d records and head %d, want %d", n, l.Head(), head)
	}
	add(t, l, step("2", "b")) // was refused, so it was not taken; and was never offered
	offer(t, j, "b", "2")
	wantInbox(t, l, "")
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	l = acquire(t, j, "r")
	wantInbox(t, l, "")
	wantErr(t, "taking a key in the next lease", l.Append(t.Context(), journal.Mark{}, step("1", "a")), journal.ErrTaken)

	// Many who offer the same keys at once make one input of each.
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for k := range 10 {
				if err := j.Offer(t.Context(), "r", fmt.Sprint("k", k), llm.UserText("x")); err != nil {
					t.Errorf("offer: %v", err)
				}
			}
		})
	}
	wg.Wait()
	got := strings.Fields(keysOf(t, l))
	slices.Sort(got)
	if len(got) != 10 || len(slices.Compact(got)) != 10 {
		t.Errorf("inbox = %v, want ten keys", got)
	}
}

func testInboxRefusals(t *testing.T, s Store) {
	j, l := s.run(t)
	wantErr(t, "no key", j.Offer(t.Context(), "r", "", llm.UserText("x")), journal.ErrInvalid)
	wantErr(t, "a long key", j.Offer(t.Context(), "r", strings.Repeat("k", 1000), llm.UserText("x")), journal.ErrInvalid)
	wantErr(t, "a reply", j.Offer(t.Context(), "r", "k", llm.AssistantText("x")), journal.ErrInvalid)
	wantErr(t, "a key that is not UTF-8", j.Offer(t.Context(), "r", "k\xff", llm.UserText("x")), journal.ErrInvalid)
	noText := j.Offer(t.Context(), "r", "k", llm.UserText("x\xff"))
	wantErr(t, "text that is not UTF-8", noText, journal.ErrInvalid)
	wantErr(t, "text that is not UTF-8", noText, machine.ErrNotUTF8)
	hint := llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.System{Kind: "hint", Data: json.RawMessage("{")}}}
	noJSON := j.Offer(t.Context(), "r", "k", hint)
	wantErr(t, "data that are not JSON", noJSON, journal.ErrInvalid)
	wantErr(t, "data that are not JSON", noJSON, machine.ErrNotJSON)
	wantInbox(t, l, "")
}
