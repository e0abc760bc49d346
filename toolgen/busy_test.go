//go:build unix || windows

// SPDX-License-Identifier: Apache-2.0

package toolgen

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// TestPatiently: a file that another program holds is waited for on Windows, and not for
// ever; another failure is one at once.
func TestPatiently(t *testing.T) {
	sharing := &os.LinkError{Op: "rename", Err: syscall.Errno(32)}
	for _, tt := range []struct {
		name, goos  string
		err         error
		failures    int // how many times the step fails
		fails       bool
		least, most time.Duration
	}{
		{"at once", windows, sharing, 0, false, 0, 0},
		{"soon free", windows, sharing, 5, false, 100 * time.Millisecond, time.Second},
		{"denied, soon free", windows, syscall.Errno(5), 1, false, time.Millisecond, time.Second},
		{"never free", windows, sharing, 1 << 30, true, patience, 2 * patience},
		{"disk full", windows, syscall.Errno(112), 1, true, 0, 0},
		{"elsewhere", "linux", sharing, 1, true, 0, 0},
	} {
		synctest.Test(t, func(t *testing.T) {
			start, left := time.Now(), tt.failures
			err := patiently(tt.goos, func() error {
				if left == 0 {
					return nil
				}
				left--
				return fmt.Errorf("rename: %w", tt.err)
			})
			if took := time.Since(start); err != nil != tt.fails || took < tt.least || took > tt.most {
				t.Errorf("%s: %v after %v", tt.name, err, took)
			}
		})
	}
}

// TestLandWaits: a generated file that is held for a while lands, and one that is to go
// goes.
func TestLandWaits(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		temp, place := filepath.Join(dir, "temp"), filepath.Join(dir, "place")
		for _, name := range []string{temp, place} {
			if err := os.WriteFile(name, []byte(name), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		held := 3
		free := func() error {
			if held--; held >= 0 {
				return &os.LinkError{Op: "rename", Old: temp, New: place, Err: syscall.Errno(32)}
			}
			return nil
		}
		rename := func(from, to string) error {
			if err := free(); err != nil {
				return err
			}
			return os.Rename(from, to)
		}
		o := operations{goos: windows, rename: rename}
		if err := (staged{place: place, temp: temp}).land(o); err != nil {
			t.Fatal(err)
		}
		if text, err := os.ReadFile(place); err != nil || string(text) != temp {
			t.Errorf("got %q, %v, want the new file", text, err)
		}
		held = 3
		if err := (staged{place: place, temp: temp, goes: true}).land(o); err != nil {
			t.Fatal(err)
		}
		if _, err := os.Stat(place); !os.IsNotExist(err) {
			t.Errorf("got %v, want the file gone", err)
		}
	})
}
