//go:build unix

// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"os"
	"path/filepath"
	"testing"
	"time"
)

// What is left of killed processes goes: by its lock where it has one, by its age where not. What is in use, young, or
// somebody else's stays.
func TestSweep(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	var live tempDir
	used, err := live.get()
	if err != nil {
		t.Fatal(err)
	}
	defer live.remove()
	now := time.Now()
	age := func(name string, d time.Duration) {
		t.Helper()
		if err := os.Chtimes(filepath.Join(dir, name), now.Add(-d), now.Add(-d)); err != nil {
			t.Fatal(err)
		}
	}
	age(filepath.Base(used), time.Hour)
	want := map[string]bool{filepath.Base(used): true}
	for name, f := range map[string]struct {
		age   time.Duration
		owner bool
		stays bool
	}{
		"fiducial-cmd-1":      {time.Hour, true, false},
		"fiducial-cmd-2":      {time.Hour, false, false},
		"fiducial-cmd-3":      {time.Second, true, true},
		"fiducial-cmd-4":      {time.Second, true, false}, // was locked
		"fiducial-kicad-1":    {25 * time.Hour, false, false},
		"fiducial-index-7":    {25 * time.Hour, false, false},
		"fiducial-kicad-2":    {23 * time.Hour, false, true},
		"fiducial-kicad-mine": {25 * time.Hour, false, true},
		"other-1":             {99 * time.Hour, false, true},
	} {
		if err := os.MkdirAll(filepath.Join(dir, name, "deep"), 0o700); err != nil {
			t.Fatal(err)
		}
		if f.owner {
			var text []byte
			if name == "fiducial-cmd-4" {
				text = []byte(tempLocked)
			}
			if err := os.WriteFile(filepath.Join(dir, name, tempOwner), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		age(name, f.age)
		if f.stays {
			want[name] = true
		}
	}
	sweep(dir, now)
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if !want[e.Name()] {
			t.Errorf("%s stays", e.Name())
		}
		delete(want, e.Name())
	}
	for name := range want {
		t.Errorf("%s is gone", name)
	}
	live.remove()
	if _, err := os.Stat(used); !os.IsNotExist(err) {
		t.Errorf("the folder of the process stays at its end: %v", err)
	}
}
