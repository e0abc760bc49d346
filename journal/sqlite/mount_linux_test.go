// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/sqlite"
)

// smallDisk is a folder that is a file system of its own.
func smallDisk(t *testing.T, size string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("fiducial", dir, "tmpfs", 0, size); err != nil {
		t.Skip("file systems cannot be mounted here:", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	return dir
}

// TestReadOnlyFileSystem: what cannot be written can be read, and says that it
// cannot be written.
func TestReadOnlyFileSystem(t *testing.T) {
	dir := smallDisk(t, "size=4m")
	path := filepath.Join(dir, "journal.db")
	j := open(t, path, sqlite.Options{})
	lease(t, j, "r")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("fiducial", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Skip(err)
	}
	for _, p := range []string{path, filepath.Join(dir, "new.db")} {
		_, err := sqlite.Open(t.Context(), p, sqlite.Options{})
		if !errors.Is(err, journal.ErrStorage) || !errors.Is(err, syscall.EROFS) || !strings.Contains(err.Error(), dir) {
			t.Errorf("open of %s for writing: %v, want that the file system is read-only", filepath.Base(p), err)
		}
	}
	r, err := sqlite.Open(t.Context(), path, sqlite.Options{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n := length(t, r, "r"); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}

// TestAlmostFullDisk: where the last pages of a disk take the database and not what
// stands beside it, SQLite speaks of an I/O error (4874, its shared memory did not
// grow) or of a file that it cannot open, and means the same.
func TestAlmostFullDisk(t *testing.T) {
	dir := smallDisk(t, "size=1m")
	path := filepath.Join(dir, "journal.db")
	j := open(t, path, sqlite.Options{})
	lease(t, j, "r")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	filler := filepath.Join(dir, "filler")
	refused := 0
	for pages := range 12 {
		if err := os.WriteFile(filler, make([]byte, 2<<20), 0o600); !errors.Is(err, syscall.ENOSPC) {
			t.Fatal("the filler fits:", err)
		}
		info, err := os.Stat(filler)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Truncate(filler, info.Size()-int64(pages*os.Getpagesize())); err != nil {
			t.Fatal(err)
		}
		for _, opts := range []sqlite.Options{{}, {ReadOnly: true}} {
			j, err := sqlite.Open(t.Context(), path, opts)
			if err == nil {
				err = j.Close()
			} else {
				refused++
			}
			if err != nil && (!errors.Is(err, journal.ErrFull) || !strings.Contains(err.Error(), dir)) {
				t.Errorf("with %d pages left, %+v: %v, want ErrFull and the place", pages, opts, err)
			}
		}
		if names, err := filepath.Glob(filepath.Join(dir, ".*")); err != nil || len(names) > 0 {
			t.Errorf("left behind: %v, %v", names, err)
		}
	}
	if refused == 0 {
		t.Error("a database was opened without any room beside it")
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	j = open(t, path, sqlite.Options{})
	if n := length(t, j, "r"); n != 1 {
		t.Errorf("%d records, want 1", n)
	}
}

// TestFullDisk: what does not fit is told as that, and what is there goes on once
// there is room.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if err := syscall.Mount("fiducial", dir, "tmpfs", 0, "size=64k"); err != nil {
		t.Skip("file systems cannot be mounted here:", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, 0); err != nil {
			t.Error(err)
		}
	})
	path := filepath.Join(dir, "journal.db")
	_, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if !errors.Is(err, journal.ErrFull) || strings.Contains(err.Error(), "rollback") {
		t.Fatalf("open on a full disk: %v, want ErrFull and nothing else", err)
	}
	if err := syscall.Mount("fiducial", dir, "tmpfs", syscall.MS_REMOUNT, "size=4m"); err != nil {
		t.Skip(err)
	}
	j, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatalf("with room again: %v", err)
	}
	defer j.Close()
	l := lease(t, j, "r")
	if err := os.WriteFile(filepath.Join(dir, "filler"), make([]byte, 8<<20), 0o600); err == nil {
		t.Fatal("the filler fits")
	}
	for i := 0; err == nil; i++ {
		err = l.Append(t.Context(), journal.Mark{}, note(i))
	}
	if !errors.Is(err, journal.ErrFull) {
		t.Errorf("append on a full disk: %v, want ErrFull", err)
	}
	before := l.Head()
	if err := os.Remove(filepath.Join(dir, "filler")); err != nil {
		t.Fatal(err)
	}
	if err := l.Append(t.Context(), journal.Mark{}, note(0)); err != nil {
		t.Errorf("append with room again: %v", err)
	}
	if n := length(t, j, "r"); uint64(n) != before+1 {
		t.Errorf("%d records, want %d", n, before+1)
	}
}
