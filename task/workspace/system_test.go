//go:build unix || windows

// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

func TestLinksByDefault(t *testing.T) {
	for _, tt := range []struct {
		goos string
		env  []string
		want bool
	}{
		{"linux", nil, true},
		{"darwin", []string{"MSYS=x"}, true},
		{"windows", nil, false},
		{"windows", []string{"PATH=winsymlinks:nativestrict"}, false},
		{"windows", []string{"Msys=noglob winsymlinks:nativestrict"}, true},
	} {
		if got := linksByDefault(tt.goos, tt.env); got != tt.want {
			t.Errorf("%s %q: %v", tt.goos, tt.env, got)
		}
	}
}

// Where no link can be made a file holds the target; only there, and never over what stands already.
func TestMakeLink(t *testing.T) {
	refuse := func(err error) func(string, string) error {
		return func(target, name string) error {
			return &os.LinkError{Op: "symlink", Old: target, New: name, Err: err}
		}
	}
	privilege := syscall.Errno(1314) // ERROR_PRIVILEGE_NOT_HELD
	dir := t.TempDir()
	name := filepath.Join(dir, "a")
	if err := makeLink("linux", "../x", name, refuse(privilege)); !errors.Is(err, privilege) {
		t.Errorf("linux: %v", err)
	}
	if err := makeLink("windows", "../x", name, refuse(fs.ErrExist)); !errors.Is(err, fs.ErrExist) {
		t.Errorf("in the way: %v", err)
	}
	if _, err := os.Lstat(name); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("something was made: %v", err)
	}
	if err := makeLink("windows", "../x", name, refuse(privilege)); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(name); err != nil || string(b) != "../x" {
		t.Errorf("holds %q, %v", b, err)
	}
	if runtime.GOOS == windows {
		return
	}
	link := filepath.Join(dir, "b")
	if err := makeLink("windows", "../x", link, os.Symlink); err != nil {
		t.Fatal(err)
	}
	if target, err := os.Readlink(link); err != nil || target != "../x" {
		t.Errorf("leads to %q, %v", target, err)
	}
}

// A file that an editor has open is waited for on Windows, but not for ever; another failure is one at once.
func TestPatiently(t *testing.T) {
	sharing := &os.LinkError{Op: "rename", Err: syscall.Errno(32)}
	for _, tt := range []struct {
		name     string
		goos     string
		err      error
		failures int // how many times the step fails
		fails    bool
		least    time.Duration
		most     time.Duration
	}{
		{"at once", "windows", sharing, 0, false, 0, 0},
		{"soon free", "windows", sharing, 5, false, 100 * time.Millisecond, time.Second},
		{"denied, soon free", "windows", syscall.Errno(5), 1, false, 10 * time.Millisecond, time.Second},
		{"never free", "windows", sharing, 1 << 30, true, patience, 2 * patience},
		{"disk full", "windows", syscall.Errno(112), 1, true, 0, 0},
		{"elsewhere", "linux", sharing, 1, true, 0, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start, left := time.Now(), tt.failures
				err := patiently(func(err error) bool { return busy(tt.goos, err) }, func() error {
					if left == 0 {
						return nil
					}
					left--
					return fmt.Errorf("rename: %w", tt.err)
				})
				if took := time.Since(start); err != nil != tt.fails || took < tt.least || took > tt.most {
					t.Errorf("%v after %v", err, took)
				}
			})
		})
	}
}

// A folder that still holds something is told by the error on every system: ENOTEMPTY here, ERROR_DIR_NOT_EMPTY there.
func TestNotEmpty(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "f"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(dir); !notEmpty(err) {
		t.Errorf("removing a folder with a file in it: %v", err)
	}
	if err := os.Remove(filepath.Join(dir, "none")); notEmpty(err) {
		t.Errorf("removing nothing: %v", err)
	}
}

// Only folders that no process holds are swept, and none that may be about to be held.
func TestSweepTemp(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir)
	held, err := makeTemp("index")
	if err != nil {
		t.Fatal(err)
	}
	dead, err := makeTemp("merge")
	if err != nil {
		t.Fatal(err)
	}
	if err := dead.owner.Close(); err != nil { // as the kernel does for a process that is killed
		t.Fatal(err)
	}
	unlocked, err := makeTemp("tree") // of a process that was killed, or waits, before it locked it
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(unlocked.owner.Truncate(0), unlocked.owner.Close()); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"fiducial-diff-1", "fiducial-other-2", "fiducial-tree-x"} {
		if err := os.MkdirAll(filepath.Join(dir, name, "a"), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	check := func(when string, want ...string) {
		t.Helper()
		stays := map[string]bool{}
		for _, w := range want {
			stays[w] = true
		}
		for _, name := range []string{filepath.Base(held.path), filepath.Base(dead.path), filepath.Base(unlocked.path), "fiducial-diff-1", "fiducial-other-2", "fiducial-tree-x"} {
			if _, err := os.Lstat(filepath.Join(dir, name)); (err == nil) != stays[name] {
				t.Errorf("%s: %s: %v", when, name, err)
			}
		}
	}
	h, u := filepath.Base(held.path), filepath.Base(unlocked.path)
	now := time.Now()
	sweepTemp(dir, now)
	check("at once", h, u, "fiducial-diff-1", "fiducial-other-2", "fiducial-tree-x")
	sweepTemp(dir, now.Add(2*tempYoung))
	check("later", h, "fiducial-diff-1", "fiducial-other-2", "fiducial-tree-x")
	sweepTemp(dir, now.Add(2*tempOld))
	check("a day later", h, "fiducial-other-2", "fiducial-tree-x")
	held.remove()
	check("removed", "fiducial-other-2", "fiducial-tree-x")
}
