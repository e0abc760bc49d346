// SPDX-License-Identifier: Apache-2.0

// Package journaltest tests programs that have a journal, and journals. [Crash] ends a
// program before and after each of its writes and looks at what it has done in the
// end; [NewFaulty] lets an append fail without another process.
//
// [Run] is the suite that every store passes; a store's test calls it. The suite starts
// the test binary again as other processes, so TestMain looks first whether it is one:
//
//	func TestMain(m *testing.M) {
//		if part := os.Getenv(journaltest.ChildEnv); part != "" {
//			os.Exit(journaltest.Child(context.Background(), store, part, os.Stdin, os.Stdout))
//		}
//		os.Exit(m.Run())
//	}
package journaltest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// A Store says how the suite gets at a store.
type Store struct {
	// Open opens the store that lives in a folder, and makes it when the folder is
	// empty. A store in memory ignores the folder.
	Open func(folder string) (journal.Journal, error)

	// Files are the files under the folder that hold what was stored, for the test
	// that changes them; nil leaves it out.
	Files func(folder string) []string

	// Server says that the store is on a server, so that no test makes the folder
	// small.
	Server bool

	// Lease is how long a run stays held after its holder has died: 0 where the
	// kernel frees it.
	Lease time.Duration

	// Patience is how long the suite waits for one thing that must happen, such as
	// the end of a lease; 0: 10 s. A whole part may take twenty times as long.
	Patience time.Duration

	stray *sync.WaitGroup // calls of the part that were given up, and may still return
}

// Run runs the suite. Tests of what outlives a process are left out for a store
// that promises nothing. When a call of the store does not return, the test fails and
// the rest of the suite is left out.
func Run(t *testing.T, s Store) {
	all := []struct {
		name string
		run  func(*testing.T, Store)
	}{
		{"Create", testCreate},
		{"Names", testNames},
		{"EveryBody", testEveryBody},
		{"Large", testLarge},
		{"AppendIsAllOrNone", testAppendIsAllOrNone},
		{"Concurrent", testConcurrent},
		{"Closed", testClosed},
		{"Held", testHeld},
		{"RaceForOwner", testRaceForOwner},
		{"Fenced", testFenced},
		{"Epochs", testEpochs},
		{"Inbox", testInbox},
		{"InboxOnce", testInboxOnce},
		{"InboxRefusals", testInboxRefusals},
		{"Follow", testFollow},
		{"FollowEnds", testFollowEnds},
		{"FollowOneLife", testFollowOneLife},
		{"Stat", testStat},
		{"Runs", testRuns},
		{"Delete", testDelete},
		{"ReadPart", testReadPart},
		{"Carry", testCarry},
		{"RestoreRefusals", testRestoreRefusals},
		{"RestoreEdges", testRestoreEdges},
		{"Fork", testFork},
		{"Prune", testPrune},
	}
	durable := []struct {
		name   string
		run    func(*testing.T, Store)
		onDisk bool
	}{
		{"Reopen", testReopen, false},
		{"Kill", testKill, false},
		{"TwoProcesses", testTwoProcesses, false},
		{"FrozenHolder", testFrozenHolder, false},
		{"Flips", testFlips, false},
		{"FullDisk", testFullDisk, true},
		{"FileLimit", testFileLimit, true},
	}
	for _, c := range all {
		if !s.part(t, c.name, c.run) {
			return
		}
	}
	if s.open(t, t.TempDir()).Promise() != journal.Durable {
		return
	}
	for _, c := range durable {
		if c.onDisk && s.Server {
			continue
		}
		if !s.part(t, c.name, c.run) {
			return
		}
	}
}

func (s Store) open(t testing.TB, folder string) journal.Journal {
	t.Helper()
	j, err := s.Open(folder)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return j
}

// run is a fresh store with one run that is held.
func (s Store) run(t testing.TB) (journal.Journal, journal.Lease) {
	t.Helper()
	j := s.open(t, t.TempDir())
	create(t, j, "r")
	return j, acquire(t, j, "r")
}

func create(t testing.TB, j journal.Journal, run string) {
	t.Helper()
	if err := j.Create(t.Context(), run, journal.Header{Rules: 1}); err != nil {
		t.Fatalf("create %s: %v", run, err)
	}
}

func acquire(t testing.TB, j journal.Journal, run string) journal.Lease {
	t.Helper()
	l, err := j.Acquire(t.Context(), run, "the test")
	if err != nil {
		t.Fatalf("acquire %s: %v", run, err)
	}
	return l
}

// inherit takes the run of a holder that has died.
func (s Store) inherit(t testing.TB, j journal.Journal, run string) journal.Lease {
	t.Helper()
	for end := time.Now().Add(2*s.Lease + time.Second); ; {
		l, err := j.Acquire(t.Context(), run, "the test")
		if err == nil {
			return l
		}
		if s.Lease == 0 || !errors.Is(err, journal.ErrHeld) || time.Now().After(end) {
			t.Fatalf("acquire %s after the holder died: %v", run, err)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

func add(t testing.TB, l journal.Lease, bodies ...journal.Body) {
	t.Helper()
	if err := l.Append(t.Context(), journal.Mark{Phase: "busy", Pending: 1}, bodies...); err != nil {
		t.Fatalf("append: %v", err)
	}
}

// note is a body that a test can tell from others.
func note(i int) journal.Note {
	return journal.Note{Kind: "test", Data: json.RawMessage(fmt.Sprintf(`{"i":%d}`, i))}
}

func step(text string, keys ...string) journal.Step {
	return journal.Step{Input: machine.AppendInput{Message: llm.UserText(text), Keys: keys}}
}

func read(t testing.TB, j journal.Journal, run string) []journal.Record {
	t.Helper()
	records, err := readAll(t, j, run, 0)
	if err != nil {
		t.Fatalf("read %s: %v", run, err)
	}
	return records
}

func readAll(t testing.TB, j journal.Journal, run string, from uint64) ([]journal.Record, error) {
	t.Helper()
	var records []journal.Record
	for r, err := range j.Read(t.Context(), run, from) {
		if err != nil {
			return records, err
		}
		if want := max(from, 1) + uint64(len(records)); r.Seq != want {
			t.Fatalf("Read of %s from %d: record %d has the number %d, want %d", run, from, len(records), r.Seq, want)
		}
		records = append(records, r)
	}
	return records, nil
}

// text is a record as JSON, its time left out: equal records give equal texts.
func text(t testing.TB, r journal.Record) string {
	t.Helper()
	r.At = time.Time{}
	e, err := journal.EncodeRecord("r", journal.Stored{Record: r})
	if err != nil {
		t.Fatal(err)
	}
	return string(e.Line)
}

func texts(t testing.TB, records []journal.Record) string {
	t.Helper()
	var b strings.Builder
	for _, r := range records {
		b.WriteString(text(t, r))
		b.WriteByte('\n')
	}
	return b.String()
}

func sameBody(t testing.TB, got, want journal.Body) {
	t.Helper()
	g, w := text(t, journal.Record{Body: got}), text(t, journal.Record{Body: want})
	if g != w {
		t.Errorf("body = %.300s\nwant   %.300s", g, w)
	}
}

func wantErr(t testing.TB, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: error %v, want %v", what, got, want)
	}
}

// image is data that does not compress and that no text looks like.
func image(n int) []byte {
	return bytes.Repeat([]byte{0, 255, '"', '\\', '\n', 0xC3}, n/6+1)[:n]
}
