// SPDX-License-Identifier: Apache-2.0

//go:build unix

package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/tools/txtar"
)

const released = `
-- CHANGELOG.md --
## [1.2.3] - 2026-11-30

- All of it.
-- LICENSE --
ours
-- go.mod --
module example.com/a

go 1.26
-- a.go --
package a
-- .gitignore --
.tmp
`

// repository makes a git repository of the released tree.
func repository(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range txtar.Parse([]byte(released)).Files {
		if err := os.WriteFile(filepath.Join(dir, f.Name), f.Data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "-q", "-b", "main"},
		{"add", "-A"},
		{"-c", "user.name=a", "-c", "user.email=a@example.com", "commit", "-q", "-m", "first"},
	} {
		cmd := exec.CommandContext(t.Context(), "git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

// TestSignalsEndTheGate: what asks publish to end, ends all that it started: a
// gate's children, which have a pipe here whose end comes when the last has gone.
func TestSignalsEndTheGate(t *testing.T) {
	t.Parallel()
	bin := filepath.Join(t.TempDir(), "publish")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", bin, ".").CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			pipe, script := filepath.Join(dir, "pipe"), filepath.Join(dir, "gate")
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Skip(err)
			}
			gate := "exec 3>" + pipe + "\necho up >&3\nsh -c 'sleep 300; true' &\nwait\n"
			if err := os.WriteFile(script, []byte(gate), 0o600); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithTimeout(t.Context(), time.Minute)
			defer stop()
			cmd := exec.CommandContext(ctx, bin, "release", "-green", "sh "+script, "v1.2.3")
			cmd.Dir = repository(t)
			var out strings.Builder
			cmd.Stdout, cmd.Stderr = &out, &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			waited := make(chan error, 1)
			go func() {
				err := cmd.Wait()
				if w, err := os.OpenFile(pipe, os.O_WRONLY|syscall.O_NONBLOCK, 0); err == nil {
					_ = w.Close() // so that nobody waits for a gate that never came
				}
				waited <- err
			}()
			f, err := os.Open(pipe) // waits until the gate runs
			if err != nil {
				t.Fatal(err)
			}
			defer f.Close()
			up := make([]byte, 3)
			if _, err := io.ReadFull(f, up); err != nil {
				t.Fatalf("the gate did not run: %v, %v\n%s", err, <-waited, out.String())
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			err = <-waited
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
				t.Errorf("publish: got %v, want exit status 1\n%s", err, out.String())
			}
			ended := make(chan error, 1)
			go func() { _, err := io.ReadAll(f); ended <- err }()
			select {
			case err := <-ended:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(20 * time.Second):
				t.Error("a child of the gate goes on")
			}
		})
	}
}
