// SPDX-License-Identifier: Apache-2.0

package lockfile_test

import (
	"errors"
	"os"
	"testing"

	"github.com/fiducial-dev/fiducial/journal/internal/lockfile"
)

func root(t *testing.T) *os.Root {
	r, err := os.OpenRoot(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { r.Close() })
	return r
}

func TestTakeIsExclusive(t *testing.T) {
	r := root(t)
	l, err := lockfile.Take(r, "a.lock")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.SetNote([]byte("somebody else")); err != nil {
		t.Fatal(err)
	}
	if err := l.SetNote([]byte("ann")); err != nil {
		t.Fatal(err)
	}
	if _, err := lockfile.Take(r, "a.lock"); !errors.Is(err, lockfile.ErrHeld) {
		t.Fatalf("second Take: %v, want ErrHeld", err)
	}
	if held, note, err := lockfile.Probe(r, "a.lock"); err != nil || !held || string(note) != "ann" {
		t.Errorf("Probe while held = %v, %q, %v", held, note, err)
	}
	if err := l.Free(); err != nil {
		t.Fatal(err)
	}
	if held, note, err := lockfile.Probe(r, "a.lock"); err != nil || held || string(note) != "ann" {
		t.Errorf("Probe after Free = %v, %q, %v", held, note, err)
	}
	again, err := lockfile.Take(r, "a.lock")
	if err != nil {
		t.Fatalf("Take after Free: %v", err)
	}
	again.Free()
}

func TestRemovedLockFileIsNoticed(t *testing.T) {
	r := root(t)
	l, err := lockfile.Take(r, "a.lock")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Free()
	if !l.Valid() {
		t.Fatal("a fresh lock is not valid")
	}
	if err := r.Remove("a.lock"); err != nil {
		t.Skip("this system keeps open files:", err)
	}
	if l.Valid() {
		t.Error("the lock is valid though its file is gone")
	}
}

func TestProbeOfMissingFile(t *testing.T) {
	if held, note, err := lockfile.Probe(root(t), "none.lock"); held || note != nil || err != nil {
		t.Errorf("Probe = %v, %q, %v; want not held", held, note, err)
	}
}
