// SPDX-License-Identifier: Apache-2.0

//go:build unix

package constraint_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/kicad/constraint"
	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/kicad/project"
)

// A pipe is not waited for, a folder is none, and a link is followed as far as the file system lets it.
func TestLoad_NoRegularFile(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "docs"), 0o755); err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(dir, "docs", docs.RegistryName)
	if err := syscall.Mkfifo(name, 0o600); err != nil {
		t.Skip(err)
	}
	done := make(chan error, 1)
	go func() {
		_, err := constraint.Load(os.DirFS(dir), "docs")
		done <- err
	}()
	select {
	case err := <-done:
		if err == nil || !strings.Contains(err.Error(), "is a named pipe") {
			t.Errorf("a pipe: %v", err)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("a pipe is waited for")
	}
	if err := os.Remove(name); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(name, 0o755); err != nil {
		t.Fatal(err)
	}
	if _, err := constraint.Load(os.DirFS(dir), "docs"); err == nil || !strings.Contains(err.Error(), "is a folder") {
		t.Errorf("a folder: %v", err)
	}
}

// A file that is larger than a registry may be is not read into memory to find that out.
func TestLoad_TooLarge(t *testing.T) {
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, docs.RegistryName))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(f.Truncate(1<<40), f.Close()); err != nil {
		t.Skip(err) // no file system for holes
	}
	_, err = constraint.Load(os.DirFS(dir), ".")
	if e, ok := errors.AsType[*project.FileError](err); !ok || e.Kind != project.TooLarge {
		t.Errorf("got %v, want that it is too large", err)
	}
	if _, err := constraint.Read("c.json", make([]byte, constraint.MaxSize+1)); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("read from memory: %v", err)
	}
}
