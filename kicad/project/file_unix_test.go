//go:build unix

// SPDX-License-Identifier: Apache-2.0

package project_test

import (
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/fiducial-dev/fiducial/kicad/project"
)

// strange is a folder with everything that is no file of a design.
func strange(t *testing.T) (dir string, root *os.Root) {
	t.Helper()
	base := t.TempDir()
	dir = filepath.Join(base, "repo")
	outside := filepath.Join(base, "secret")
	var listen net.ListenConfig
	if err := errors.Join(
		os.MkdirAll(filepath.Join(dir, "folder"), 0o700), os.WriteFile(outside, []byte("secret"), 0o600),
		os.WriteFile(filepath.Join(dir, "file"), []byte("text"), 0o600),
		os.WriteFile(filepath.Join(dir, "lfs"), []byte("version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "denied"), []byte("text"), 0),
		syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600),
		os.Symlink("pipe", filepath.Join(dir, "to-pipe")), os.Symlink("/dev/zero", filepath.Join(dir, "device")),
		os.Symlink("../secret", filepath.Join(dir, "out")), os.Symlink(outside, filepath.Join(dir, "absolute")),
		os.Symlink("file", filepath.Join(dir, "in")), os.Symlink("loop", filepath.Join(dir, "loop")),
	); err != nil {
		t.Fatal(err)
	}
	l, err := listen.Listen(t.Context(), "unix", filepath.Join(dir, "socket"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	if root, err = os.OpenRoot(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = root.Close() })
	return dir, root
}

// Whatever stands in a file's place is told at once, by each way of reading: a test that waits for a pipe never ends.
func TestRead_OnlyFiles(t *testing.T) {
	dir, root := strange(t)
	confined := project.Files(root)
	kinds := map[string]project.FileKind{
		"pipe": project.NotRegular, "to-pipe": project.NotRegular, "socket": project.NotRegular, "folder": project.NotRegular,
		"out": project.Outside, "absolute": project.Outside, "device": project.Outside, "lfs": project.Pointer,
	}
	if os.Geteuid() != 0 { // who may read everything is denied nothing
		kinds["denied"] = project.Denied
	}
	readers := map[string]func(string) error{
		"Read":                 func(n string) error { _, err := project.Read(confined, n, 0); return err },
		"fs.ReadFile":          func(n string) error { _, err := fs.ReadFile(confined, n); return err },
		"Look":                 func(n string) error { return project.Look(confined, n) },
		"Read of os.Root's FS": func(n string) error { _, err := project.Read(root.FS(), n, 0); return err },
	}
	for way, read := range readers {
		for name, kind := range kinds {
			e, ok := errors.AsType[*project.FileError](read(name))
			if !ok || e.Kind != kind || e.Path != name || !strings.HasPrefix(e.Error(), name+" ") {
				t.Errorf("%s of %s: %v, want kind %d", way, name, e, kind)
			}
		}
		for _, name := range []string{"file", "in"} {
			if err := read(name); err != nil {
				t.Errorf("%s of %s: %v", way, name, err)
			}
		}
		if err := read("none"); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s of what is not there: %v", way, err)
		}
		if err := read("loop"); err == nil {
			t.Errorf("%s of a link to itself: no error", way)
		}
	}
	// A device that no link hides.
	if e, ok := errors.AsType[*project.FileError](errOf(project.Read(os.DirFS("/dev"), "zero", 0))); !ok || e.Kind != project.NotRegular {
		t.Errorf("a device: %v", e)
	}
	if _, err := os.Stat(filepath.Join(dir, "pipe")); err != nil {
		t.Error(err)
	}
}

func errOf(_ []byte, err error) error { return err }

// Open of a pipe does not wait, whatever has taken a file's place since it was looked at.
func TestFiles_OpenDoesNotWait(t *testing.T) {
	_, root := strange(t)
	for _, name := range []string{"pipe", "to-pipe", "socket"} {
		if f, err := project.Files(root).Open(name); err == nil {
			_ = f.Close()
			t.Errorf("%s was opened", name)
		}
	}
}

func TestRead_Bounded(t *testing.T) {
	files := fstest.MapFS{"ten": {Data: []byte("0123456789")}}
	if data, err := project.Read(files, "ten", 10); err != nil || string(data) != "0123456789" {
		t.Errorf("got %q, %v", data, err)
	}
	_, err := project.Read(files, "ten", 9)
	if e, ok := errors.AsType[*project.FileError](err); !ok || e.Kind != project.TooLarge || err.Error() != "ten has more than 9 bytes and is not read" {
		t.Errorf("got %v", err)
	}
}

// Files behaves as a file system should: listings, walks and globs find what is there.
func TestFiles(t *testing.T) {
	dir := t.TempDir()
	if err := errors.Join(os.MkdirAll(filepath.Join(dir, "a/b"), 0o700), os.WriteFile(filepath.Join(dir, "a/b/c.md"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if err := fstest.TestFS(project.Files(root), "a/b/c.md"); err != nil {
		t.Error(err)
	}
	if _, err := project.Files(root).Open("../x"); !errors.Is(err, fs.ErrInvalid) {
		t.Errorf("a path out: %v", err)
	}
}

// A project whose files are pipes is found or refused, and never waited for.
func TestFind_Pipes(t *testing.T) {
	for _, name := range []string{"p.kicad_sch", "p.kicad_pro", "q.sch", "~p.kicad_sch.lck", "docs"} {
		dir := t.TempDir()
		if err := errors.Join(syscall.Mkfifo(filepath.Join(dir, name), 0o600), os.WriteFile(filepath.Join(dir, "p.kicad_pcb"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
		if _, err := project.Find(os.DirFS(dir), "."); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
