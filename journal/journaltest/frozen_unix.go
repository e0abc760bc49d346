//go:build unix

// SPDX-License-Identifier: Apache-2.0

package journaltest

import (
	"errors"
	"fmt"
	"syscall"
	"testing"

	"github.com/fiducial-dev/fiducial/journal"
)

func testFrozenHolder(t *testing.T, s Store) {
	folder := t.TempDir()
	j := s.open(t, folder)
	create(t, j, "r")
	p := start(t, "hold", folder)
	if got := p.line(t); got != "got" {
		t.Fatalf("the holder said %q", got)
	}
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Skip("processes cannot be frozen here:", err)
	}
	if s.Lease > 0 {
		testSuperseded(t, s, j, p)
		return
	}
	_, err := j.Acquire(t.Context(), "r", "the test")
	held, ok := errors.AsType[*journal.HeldError](err)
	if !ok || held.Owner != "holder" {
		t.Fatalf("Acquire while the holder is frozen: %v, want a HeldError that names it", err)
	}
	if info, err := j.Stat(t.Context(), "r"); err != nil || !info.Held || info.Owner != "holder" {
		t.Errorf("Stat = %+v, %v; want it held by holder", info, err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(p.in)
	if got := p.line(t); got != "ack 2" {
		t.Errorf("the woken holder said %q, want ack 2", got)
	}
	p.kill()
	if l := acquire(t, j, "r"); l.Head() != 2 {
		t.Errorf("head = %d, want 2", l.Head())
	}
}

// testSuperseded takes the run of a frozen holder whose time is over. Woken, it is
// told so before it can write.
func testSuperseded(t *testing.T, s Store, j journal.Journal, p *process) {
	l := s.inherit(t, j, "r")
	add(t, l, note(2))
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(p.in)
	if got := p.line(t); got != "fenced" {
		t.Errorf("the woken holder said %q, want fenced", got)
	}
	if got := p.line(t); got != "lost" {
		t.Errorf("the woken holder said %q, want lost: Lost is closed when a lease was superseded", got)
	}
	p.kill()
	add(t, l, note(3))
	records := read(t, j, "r")
	if len(records) != 3 {
		t.Fatalf("%d records, want 3", len(records))
	}
	for _, r := range records[1:] {
		if r.Epoch != l.Epoch() {
			t.Errorf("record %d is of epoch %d, want %d", r.Seq, r.Epoch, l.Epoch())
		}
	}
}
