// SPDX-License-Identifier: Apache-2.0

package journaltest

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
)

// A CrashTest is a program with a journal, and what must hold however often it dies.
type CrashTest struct {
	// Open opens the journal of the program. Dir is an existing folder, the same for
	// all processes that share a journal: the place for the journal and for the effects
	// that Check counts.
	Open func(dir string) (journal.Journal, error)

	// Run does the work, in a process of its own: it starts it, or resumes what another
	// process began, since it cannot know which. It returns when the work is done. The
	// journal is closed for it. When it fails with [journal.ErrHeld] it is called again
	// for as long as Timeout allows: some stores free the run of a dead process
	// only after a while.
	//
	// In a second process a model that plays a script starts at its first turn: use a
	// client that decides by the messages of the request, such as llmtest.ByHistory.
	Run func(ctx context.Context, dir string, j journal.Journal) error

	// Check looks at the effects in dir after a process died and another one has
	// done the rest. It runs in the test's own process.
	Check func(t *testing.T, dir string)

	// Command, instead of Open and Run, is a program that does the work over dir and
	// wraps its journal by [CrashAt] with the value of [CrashEnv]. The variable is added
	// to its environment.
	Command func(ctx context.Context, dir string) *exec.Cmd

	// Timeout is the longest that one process may take; 0: one minute.
	Timeout time.Duration

	// Max is how many writes are tried at most; 0: 1000. A program that writes more
	// fails the test.
	Max int
}

// crashTestEnv tells a test binary that it is a process of [Crash]: which test it has
// to run, where that calls Crash, and the folder, one a line.
const crashTestEnv = "FIDUCIAL_CRASH_TEST"

// Crash runs the program and ends its process before its first write to the journal.
// Another process does the rest, and Check looks at the effects. Then the same again,
// in a new folder, for the second write and so on, until the program gets through; and
// all of it once more with the end after each write. What counts as a write is said at
// [CrashAt].
//
// The processes are the test binary, started again for this test alone: what stands in
// the test before Crash is run by them, too, what stands behind it is not.
func Crash(t *testing.T, c CrashTest) {
	t.Helper()
	_, file, line, _ := runtime.Caller(1)
	place := fmt.Sprintf("%s:%d", filepath.Base(file), line)
	if part := os.Getenv(crashTestEnv); part != "" { //nolint:forbidigo // so that users need no TestMain
		c.child(t, place, part)
		return
	}
	if c.Check == nil || (c.Command == nil) == (c.Open == nil || c.Run == nil) {
		t.Fatal("journaltest: a CrashTest needs Check, and either Open and Run, or Command")
	}
	for _, when := range []string{before, after} {
		for n := 1; ; n++ {
			ran, died := false, true // it does not run when -test.run leaves it out
			ok := t.Run(fmt.Sprintf("%s write %d", when, n), func(t *testing.T) {
				ran = true
				died = c.crash(t, place, when, n)
			})
			if !ok {
				return
			}
			if !died {
				break
			}
			if n == cmp.Or(c.Max, 1000) {
				if ran {
					t.Fatalf("the program writes more than %d times to its journal: does it end? Else set Max", n)
				}
				break
			}
		}
	}
}

// crash ends a process at one write and reports whether it died there. If so, another
// one has done the rest.
func (c CrashTest) crash(t *testing.T, place, when string, n int) bool {
	t.Helper()
	dir := t.TempDir()
	died := c.process(t, place, dir, fmt.Sprint(when, " ", n))
	if !died && n == 1 {
		t.Fatal("the program ended well and has not written to its journal once: does Run use the journal that it is given, and is Crash reached in a second process, too?")
	}
	if died && c.process(t, place, dir, "") {
		t.Fatal("the process that goes on was killed by something else than this test")
	}
	c.Check(t, dir)
	return died
}

// process runs the program in a process and reports whether it was killed.
func (c CrashTest) process(t *testing.T, place, dir, at string) bool {
	t.Helper()
	limit := cmp.Or(c.Timeout, time.Minute)
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	cmd := c.command(ctx, t, place, dir)
	cmd.Env = append(cmd.Environ(), CrashEnv+"="+at)
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	if cmd.Stdout == nil {
		cmd.Stdout = &out
	}
	if cmd.Stderr == nil {
		cmd.Stderr = &out
	}
	who := "the process that goes on"
	if at != "" {
		who = "the process that dies " + at
	}
	err := cmd.Run()
	exit, failed := errors.AsType[*exec.ExitError](err)
	switch {
	case ctx.Err() != nil:
		t.Fatalf("%s has not ended within %v\n%s", who, limit, &out)
	case failed && (exit.ExitCode() == -1 || exit.ExitCode() == killedCode):
		return true
	case err != nil:
		t.Fatalf("%s failed: %v\n%s", who, err, &out)
	}
	return false
}

func (c CrashTest) command(ctx context.Context, t *testing.T, place, dir string) *exec.Cmd {
	t.Helper()
	if c.Command != nil {
		return c.Command(ctx, dir)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The names of crash and its sub-tests are below that of the test that called Crash.
	name := t.Name()[:strings.LastIndexByte(t.Name(), '/')]
	words := strings.Split(name, "/")
	for i, w := range words {
		words[i] = "^" + regexp.QuoteMeta(w) + "$"
	}
	cmd := exec.CommandContext(ctx, self, "-test.run="+strings.Join(words, "/"), "-test.count=1")
	cmd.Env = append(cmd.Environ(), crashTestEnv+"="+name+"\n"+place+"\n"+dir)
	return cmd
}

// child does the work in a process that [CrashTest.process] started. Other crash tests
// on the way to the one that is meant do nothing in it.
func (c CrashTest) child(t *testing.T, place, part string) {
	t.Helper()
	at := strings.SplitN(part, "\n", 3)
	if len(at) != 3 || at[0] != t.Name() || at[1] != place {
		return
	}
	j, err := c.Open(at[2])
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	w, err := CrashAt(j, os.Getenv(CrashEnv)) //nolint:forbidigo // as above
	if err != nil {
		t.Fatal(err)
	}
	err = c.Run(t.Context(), at[2], w)
	for end := time.Now().Add(cmp.Or(c.Timeout, time.Minute)); errors.Is(err, journal.ErrHeld) && time.Now().Before(end); {
		time.Sleep(20 * time.Millisecond)
		err = c.Run(t.Context(), at[2], w)
	}
	if err := errors.Join(err, j.Close()); err != nil {
		t.Fatalf("run: %v", err)
	}
	t.SkipNow() // what stands behind Crash is for the first process
}
