// SPDX-License-Identifier: Apache-2.0

package journaltest_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/journaltest"
	"github.com/fiducial-dev/fiducial/llm"
)

func openFolder(dir string) (journal.Journal, error) {
	return journal.OpenFolder(filepath.Join(dir, "journal"), journal.FolderOptions{})
}

// work writes four times: it makes a run, offers it a message, and appends two notes. After
// the first note it has its effect, and says so in the second.
func work(ctx context.Context, dir string, j journal.Journal) error {
	if err := j.Create(ctx, "r", journal.Header{}); err != nil && !errors.Is(err, journal.ErrExists) {
		return err
	}
	if err := j.Offer(ctx, "r", "k", llm.UserText("go")); err != nil {
		return err
	}
	l, err := j.Acquire(ctx, "r", "work")
	if err != nil {
		return err
	}
	if l.Head() < 2 {
		if err := l.Append(ctx, journal.Mark{}, journal.Note{Kind: "intent"}); err != nil {
			return err
		}
	}
	if err := effect(dir); err != nil {
		return err
	}
	if l.Head() < 3 {
		if err := l.Append(ctx, journal.Mark{Ended: true}, journal.Note{Kind: "done"}); err != nil {
			return err
		}
	}
	return l.Release(ctx)
}

// effect adds a line.
func effect(dir string) error {
	f, err := os.OpenFile(filepath.Join(dir, "effects"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(f, "once more")
	return errors.Join(err, f.Close())
}

func effects(t *testing.T, dir string) int {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(dir, "effects"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	}
	return strings.Count(string(data), "\n")
}

// wantPoints are the effects of work by where it dies: one more where it dies behind the
// effect.
var wantPoints = []string{
	"before_write_1: 1", "before_write_2: 1", "before_write_3: 1", "before_write_4: 2", "before_write_5: 1",
	"after_write_1: 1", "after_write_2: 1", "after_write_3: 1", "after_write_4: 2", "after_write_5: 1",
}

func TestCrash(t *testing.T) {
	var points []string
	journaltest.Crash(t, journaltest.CrashTest{Open: openFolder, Run: work, Check: func(t *testing.T, dir string) {
		t.Helper()
		points = append(points, fmt.Sprintf("%s: %d", filepath.Base(t.Name()), effects(t, dir)))
	}})
	if got, want := strings.Join(points, "\n"), strings.Join(wantPoints, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// workEnv names the folder of a process that is a program of its own.
const workEnv = "FIDUCIAL_JOURNALTEST_WORK"

// program is what the main function of a program does that is tested by a command.
func program(dir string) error {
	j, err := openFolder(dir)
	if err != nil {
		return err
	}
	if j, err = journaltest.CrashAt(j, os.Getenv(journaltest.CrashEnv)); err != nil {
		return err
	}
	return errors.Join(work(context.Background(), dir, j), j.Close())
}

func TestCrashCommand(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var points []string
	journaltest.Crash(t, journaltest.CrashTest{
		Command: func(ctx context.Context, dir string) *exec.Cmd {
			cmd := exec.CommandContext(ctx, self)
			cmd.Env = append(os.Environ(), workEnv+"="+dir)
			return cmd
		},
		Check: func(t *testing.T, dir string) {
			t.Helper()
			points = append(points, fmt.Sprintf("%s: %d", filepath.Base(t.Name()), effects(t, dir)))
		},
	})
	if got, want := strings.Join(points, "\n"), strings.Join(wantPoints, "\n"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// badCrashes are tests that must fail, by name, with the words that tell why.
func badCrashes() map[string]struct {
	words string
	test  journaltest.CrashTest
} {
	once := func(t *testing.T, dir string) {
		t.Helper()
		if n := effects(t, dir); n != 1 {
			t.Errorf("%d effects, want one", n)
		}
	}
	return map[string]struct {
		words string
		test  journaltest.CrashTest
	}{
		"two effects": {"before_write_4", journaltest.CrashTest{Open: openFolder, Run: work, Check: once}},
		"no journal": {"has not written to its journal once", journaltest.CrashTest{
			Open: openFolder, Check: once,
			Run: func(_ context.Context, dir string, _ journal.Journal) error { return effect(dir) },
		}},
		"no end": {"writes more than 5 times", journaltest.CrashTest{
			Open: openFolder, Max: 5, Check: func(*testing.T, string) {},
			Run: func(ctx context.Context, _ string, j journal.Journal) error {
				if err := j.Create(ctx, "r", journal.Header{}); err != nil && !errors.Is(err, journal.ErrExists) {
					return err
				}
				for n := range 20 {
					if err := j.Offer(ctx, "r", fmt.Sprint(n), llm.UserText("x")); err != nil {
						return err
					}
				}
				return nil
			},
		}},
		"does not go on": {"the process that goes on failed", journaltest.CrashTest{
			Open: openFolder, Check: func(*testing.T, string) {},
			Run: func(ctx context.Context, _ string, j journal.Journal) error {
				return j.Create(ctx, "r", journal.Header{})
			},
		}},
		"hangs": {"has not ended within 500ms", journaltest.CrashTest{
			Open: openFolder, Check: once, Timeout: 500 * time.Millisecond,
			Run: func(context.Context, string, journal.Journal) error { time.Sleep(time.Minute); return nil },
		}},
		"nothing to run": {"either Open and Run, or Command", journaltest.CrashTest{Open: openFolder, Check: once}},
	}
}

func TestCrashFails(t *testing.T) {
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for name, bad := range badCrashes() {
		t.Run(name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestBadCrash$", "-test.timeout=60s")
			cmd.Env = append(cmd.Environ(), breakEnv+"="+name)
			out, err := cmd.CombinedOutput()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 || !strings.Contains(string(out), bad.words) {
				t.Errorf("it ends with %v, want 1 and the words %q in\n%s", err, bad.words, out)
			}
		})
	}
}

// TestBadCrash is what a child of [TestCrashFails] runs, and the children of that.
func TestBadCrash(t *testing.T) {
	bad, ok := badCrashes()[os.Getenv(breakEnv)]
	if !ok {
		t.Skip("only children run this")
	}
	journaltest.Crash(t, bad.test)
}

// A run that a dead process still holds is waited for.
func TestCrashHeld(t *testing.T) {
	journaltest.Crash(t, journaltest.CrashTest{
		Open: openFolder,
		Run: func(ctx context.Context, dir string, j journal.Journal) error {
			if err := effect(dir); err != nil {
				return err
			}
			data, err := os.ReadFile(filepath.Join(dir, "effects"))
			if err != nil {
				return err
			}
			if strings.Count(string(data), "\n") < 3 {
				return &journal.HeldError{Run: "r", Owner: "a dead process"}
			}
			if err := j.Create(ctx, "r", journal.Header{}); !errors.Is(err, journal.ErrExists) {
				return err
			}
			return nil
		},
		Check: func(t *testing.T, dir string) {
			t.Helper()
			if n := effects(t, dir); n < 3 {
				t.Errorf("it was tried %d times, want 3 at least", n)
			}
		},
	})
}

func TestCrashAt(t *testing.T) {
	j := journal.NewMemory()
	if same, err := journaltest.CrashAt(j, ""); same != journal.Journal(j) || err != nil {
		t.Errorf("got %v, %v; want the journal itself", same, err)
	}
	for _, at := range []string{"before", "before 0", "during 3", "after x", "3"} {
		if _, err := journaltest.CrashAt(j, at); err == nil || !strings.Contains(err.Error(), journaltest.CrashEnv) {
			t.Errorf("%q: %v, want an error that names the variable", at, err)
		}
	}
}

func TestFaulty(t *testing.T) {
	for _, tt := range []struct {
		fault  journaltest.Fault
		want   error
		next   error // of the append after the fault
		stored uint64
	}{
		{journaltest.FaultRefused, journal.ErrStorage, nil, 3},
		{journaltest.FaultStored, journal.ErrUncertain, journal.ErrFenced, 3},
		{journaltest.FaultLost, journal.ErrUncertain, journal.ErrFenced, 2},
	} {
		t.Run(tt.fault.String(), func(t *testing.T) {
			ctx := t.Context()
			j := journal.NewMemory()
			f := journaltest.NewFaulty(j, 2, tt.fault)
			if err := f.Create(ctx, "r", journal.Header{}); err != nil {
				t.Fatal(err)
			}
			l, err := f.Acquire(ctx, "r", "me")
			if err != nil {
				t.Fatal(err)
			}
			for n, want := range []error{nil, tt.want, tt.next} {
				if failed := f.Failed(); failed != (n > 1) {
					t.Errorf("before append %d Failed is %t", n+1, failed)
				}
				if err := l.Append(ctx, journal.Mark{}, journal.Note{Kind: "n"}); !errors.Is(err, want) {
					t.Errorf("append %d: %v, want %v", n+1, err, want)
				}
			}
			info, err := j.Stat(ctx, "r")
			if err != nil || info.Head != tt.stored || info.Held != (tt.next == nil) {
				t.Errorf("the run is %+v, %v; want head %d", info, err, tt.stored)
			}
			select {
			case <-l.Lost():
				if tt.next == nil {
					t.Error("the lease has ended")
				}
			default:
				if tt.next != nil {
					t.Error("the lease has not ended")
				}
			}
		})
	}
}
