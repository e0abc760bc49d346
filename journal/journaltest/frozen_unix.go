//go:build unix

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
