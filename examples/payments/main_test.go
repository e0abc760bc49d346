// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/journaltest"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
)

// script is a model for tests. It must not count requests: a second process would
// start at the first turn again.
var script = llmtest.ByHistory(
	llmtest.Call("wire", `{"to":"landlord"}`),
	llmtest.Call("order", `{"to":"phone company"}`),
	llmtest.Say("Done."),
)

// TestCrash ends the agent before and after each write to its journal.
func TestCrash(t *testing.T) {
	points, unknown := 0, 0
	journaltest.Crash(t, journaltest.CrashTest{
		Open: openJournal,
		Run: func(ctx context.Context, dir string, j journal.Journal) error {
			_, err := pay(ctx, dir, j, script)
			return err
		},
		Check: func(t *testing.T, dir string) {
			t.Helper()
			points++
			if wired(t, dir) == 0 {
				unknown++ // the process died when the call had started: it may have wired
			}
		},
	})
	if points < 10 {
		t.Errorf("the agent died %d times, want each of its writes twice", points)
	}
	if unknown == 0 || unknown > points/4 {
		t.Errorf("in %d of %d runs nothing was wired, want a few: a started call is not repeated", unknown, points)
	}
}

// TestClerk does the same with the whole program's own model, as a command would.
func TestClerk(t *testing.T) {
	journaltest.Crash(t, journaltest.CrashTest{
		Open: openJournal,
		Run: func(ctx context.Context, dir string, j journal.Journal) error {
			out, err := pay(ctx, dir, j, clerk{})
			if err != nil || !strings.HasPrefix(out.Text(), "rent: ") || !strings.HasSuffix(out.Text(), "phone: success") {
				return fmt.Errorf("it says %q: %w", out.Text(), err)
			}
			return nil
		},
		Check: func(t *testing.T, dir string) { t.Helper(); wired(t, dir) },
	})
}

// wired counts the effects, which may be there once at most, the order exactly once.
func wired(t *testing.T, dir string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "wired.txt"))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	n := strings.Count(string(data), "landlord\n")
	if n > 1 {
		t.Errorf("the rent was wired %d times", n)
	}
	orders, err := filepath.Glob(filepath.Join(dir, "order-*.txt"))
	if err != nil || len(orders) != 1 {
		t.Errorf("the bank has the orders %v, %v; want one", orders, err)
	}
	return n
}

// TestFaults is the crash test without processes: an append fails, and an engine that
// is put together anew goes on with the journal below.
func TestFaults(t *testing.T) {
	for _, fault := range []journaltest.Fault{journaltest.FaultRefused, journaltest.FaultStored, journaltest.FaultLost} {
		t.Run(fault.String(), func(t *testing.T) {
			for n := 1; ; n++ {
				dir, j := t.TempDir(), journal.NewMemory()
				faulty := journaltest.NewFaulty(j, n, fault)
				_, err := pay(t.Context(), dir, faulty, script)
				if !faulty.Failed() {
					if n < 5 || err != nil {
						t.Errorf("append %d was not reached: %v", n, err)
					}
					return
				}
				if fault == journaltest.FaultRefused && !errors.Is(err, fiducial.ErrJournal) {
					t.Errorf("append %d: %v, want ErrJournal", n, err)
				}
				if _, err := pay(t.Context(), dir, j, script); err != nil {
					t.Errorf("append %d: it does not go on: %v", n, err)
				}
				wired(t, dir)
			}
		})
	}
}

func Example() {
	dir, err := os.MkdirTemp("", "payments")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	if err := start(context.Background(), []string{dir}); err != nil {
		fmt.Println(err)
	}
	// Output:
	// rent: success; phone: success
}
