//go:build unix

// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
)

// crashStores runs a test on each store.
func crashStores(t *testing.T, do func(t *testing.T, store string, server *crashServer)) {
	for _, store := range []string{"file", "sqlite", "postgres"} {
		t.Run(store, func(t *testing.T) {
			var server *crashServer
			if store == "postgres" {
				server = newCrashServer(t)
			}
			do(t, store, server)
		})
	}
}

// TestTwoAtOnce lets two processes take up the same run at the same time, again and
// again: one goes on, the other is told that the run is held, or finds it done.
func TestTwoAtOnce(t *testing.T) {
	crashStores(t, func(t *testing.T, store string, server *crashServer) {
		n := numberIn(t, crashCount, 40) / 2
		seen := map[string]int{}
		for i := range n {
			if err := twoAtOnce(t.Context(), t.TempDir(), store, server, uint64(i), seen); err != nil {
				t.Fatalf("round %d: %v", i, err)
			}
		}
		t.Logf("%d rounds: %v", n, seen)
		if seen["held"] == 0 {
			t.Error("no two were ever at the same run")
		}
	})
}

func twoAtOnce(ctx context.Context, dir, store string, server *crashServer, seed uint64, seen map[string]int) error {
	r := newRig(dir, store, server, llmtest.WireAnthropic, [][]string{{"write", "slow_write"}, {"alone"}}, seed)
	defer r.close()
	spec := r.spec
	spec.KillAt = 12 + int(seed%30) // somewhere in the middle
	if _, err := r.run(ctx, spec); err != nil {
		return err
	}
	if server != nil {
		time.Sleep(crashTTL) // both would wait for the dead one
	}
	spec = r.spec
	spec.Wait, spec.Once = true, true
	spec.TTL = 30 * time.Second // nobody is to lose the run because this machine is slow
	pair := make([]*crashed, 2)
	for i := range pair {
		spec.Report = fmt.Sprint(r.spec.Report, i)
		c, err := r.launch(ctx, spec)
		if err != nil {
			return err
		}
		<-c.ready
		pair[i] = c
	}
	for _, c := range pair {
		if _, err := fmt.Fprintln(c.in); err != nil {
			return err
		}
	}
	var done *crashReport
	for _, c := range pair {
		rep, err := c.wait()
		switch {
		case err != nil || rep == nil:
			return fmt.Errorf("a process ended with %w", err)
		case rep.Held:
			seen["held"]++
			continue
		case rep.Err != "":
			return fmt.Errorf("a process ended with %+v", rep)
		}
		seen["went on"]++
		done = rep
	}
	if done == nil {
		return errors.New("nobody went on")
	}
	return r.check(ctx, done)
}

// TestFrozenHolder freezes a process inside a call. On a server another one takes
// over when its lease is out; woken, the first is fenced, its tool is cancelled and
// it adds nothing. Elsewhere the second is told that the run is held, and the first
// goes on when it wakes.
func TestFrozenHolder(t *testing.T) {
	crashStores(t, func(t *testing.T, store string, server *crashServer) {
		dir := t.TempDir()
		r := newRig(dir, store, server, llmtest.WireOpenAIChat, [][]string{{"write"}, {"block", "put"}}, 1)
		defer r.close()
		spec := r.spec
		spec.Block, spec.Once = true, true
		spec.Report += ".first"
		first, err := r.launch(t.Context(), spec)
		if err != nil {
			t.Fatal(err)
		}
		waitForEffect(t, r, "block")
		if err := first.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
			t.Skip("processes cannot be frozen here:", err)
		}
		time.Sleep(20 * time.Millisecond) // a signal is not at once
		second := r.spec
		second.Once = server == nil
		rep, err := r.run(t.Context(), second)
		if err != nil {
			t.Fatal(err)
		}
		if server == nil {
			if !rep.Held || !strings.Contains(rep.Err, "process") {
				t.Errorf("the second ended with %+v, want that it is told who holds the run", rep)
			}
			thaw(t, r, first)
			if rep, err = first.wait(); err != nil {
				t.Fatal(err)
			}
			if err := r.check(t.Context(), rep); err != nil {
				t.Error(err)
			}
			return
		}
		if err := r.check(t.Context(), rep); err != nil {
			t.Fatal(err)
		}
		if n := unknowns(rep.History); n != 1 {
			t.Errorf("%d results are unknown, want that of the frozen call", n)
		}
		head := headOf(t, r)
		if err := first.cmd.Process.Signal(syscall.SIGCONT); err != nil {
			t.Fatal(err)
		}
		late, err := first.wait()
		if err != nil {
			t.Fatal(err)
		}
		if !late.Fenced {
			t.Errorf("the woken process ended with %+v, want that it is fenced", late)
		}
		if _, err := os.Stat(filepath.Join(dir, "effects.cancelled")); err != nil {
			t.Errorf("its tool was not cancelled: %v", err)
		}
		if now := headOf(t, r); now != head {
			t.Errorf("the woken process went on from record %d to %d", head, now)
		}
	})
}

func waitForEffect(t *testing.T, r *rig, name string) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if data, err := os.ReadFile(r.spec.Effect); err == nil && strings.Contains(string(data), name+" ") {
			return
		}
	}
	t.Fatalf("the tool %s did not begin", name)
}

// thaw wakes a process and lets its tool end.
func thaw(t *testing.T, r *rig, c *crashed) {
	t.Helper()
	if err := os.WriteFile(r.spec.Effect+".go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
}

func headOf(t *testing.T, r *rig) uint64 {
	t.Helper()
	store, err := r.store(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }() // it only reads
	info, err := store.Stat(t.Context(), runName)
	if err != nil {
		t.Fatal(err)
	}
	return info.Head
}

func unknowns(history []llm.Message) (n int) {
	for _, m := range history {
		for _, p := range m.Parts {
			if res, ok := p.(llm.Result); ok && res.Status == llm.StatusUnknown {
				n++
			}
		}
	}
	return n
}
