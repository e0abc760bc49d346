// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/kicad/internal/cli"
)

// heard is what the command writes, read while it still does.
type heard struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (h *heard) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.b.Write(p)
}

func (h *heard) String() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.b.String()
}

// A run is killed while it asks for more turns (B-14, B-20). What a kill leaves is a copy of the repository as it is then.
// Without a terminal it goes on only with --max-turns, which adds to what is used up; and only over the files as the run
// left them.
func TestResume_TurnsUsedUp(t *testing.T) {
	tm := newDesk(t)
	dir := t.TempDir()
	a := tm.repository(filepath.Join(dir, "a"))
	in, answer, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = in.Close() }()
	var out heard
	code := make(chan int, 1)
	go func() {
		code <- cli.Run(t.Context(), cli.Env{
			In: in, Out: &out, Err: &out, Environ: append(tm.env, "TERM=dumb"), Dir: a, InTerminal: true, OutTerminal: true,
		}, []string{"do", "--max-turns", "4", "rename net STATUS to HEARTBEAT"})
	}()
	for end := time.Now().Add(3 * time.Minute); !strings.Contains(out.String(), "[y/N or a number]"); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("nobody is asked:\n%s", out.String())
		}
	}
	tm.want(out.String(), "The budget of 4 turns is used up. 4 files touched, ", "2 more? ")
	killed, reset := filepath.Join(dir, "killed"), filepath.Join(dir, "reset")
	for _, to := range []string{killed, reset} {
		if err := os.CopyFS(to, os.DirFS(a)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := answer.WriteString("n\n"); err != nil {
		t.Fatal(err)
	}
	if got := <-code; got != 1 {
		t.Errorf("exit code %d, want 1", got)
	}
	tm.want(out.String(), "Failed (turn-budget-exhausted)", "The tree is as it was before the run.")

	status := tm.git(killed, "status", "--porcelain")
	_, errOut := tm.run(2, killed, "resume", "last")
	tm.want(errOut, "has used all of its 4 turns", "--max-turns 2", "--give-up")
	if now := tm.git(killed, "status", "--porcelain"); now != status || status == "" {
		t.Errorf("the files are %q, were %q", now, status)
	}
	_, errOut = tm.run(2, killed, "resume", "last", "--max-turns", "0")
	tm.want(errOut, "0 is no number of turns")
	said, _ := tm.run(0, killed, "resume", "last", "--max-turns", "3")
	tm.want(said, "4 turns used, 3 more granted by --max-turns", "Done: commit ")
	said, _ = tm.run(0, killed, "show", "last", "--transcript")
	tm.want(said, "budget-extended", `"granted":3`, `"budget":7`, `"max_turns":4`)

	tm.git(reset, "checkout", "-q", "--", ".")
	_, errOut = tm.run(2, reset, "resume", "last", "--max-turns", "3")
	tm.want(errOut, "the files do not hold what the journal says", "stand as before the run", "--give-up")
	tm.run(0, reset, "resume", "last", "--give-up")
	said, _ = tm.run(0, reset, "show", "-f", "last")
	tm.want(said, "turn 4: ", ": interrupted")
}
