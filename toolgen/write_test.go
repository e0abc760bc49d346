// SPDX-License-Identifier: Apache-2.0

package toolgen_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/fiducial-dev/fiducial/toolgen"
)

// TestWriteAllOrNothing: when one file cannot be written, none is changed and
// nothing is left behind.
func TestWriteAllOrNothing(t *testing.T) {
	dir := folder(t.TempDir())
	dir.write(t, "a.go", []byte("old"))
	dir.write(t, "gone.go", []byte("old"))
	a, gone := filepath.Join(string(dir), "a.go"), filepath.Join(string(dir), "gone.go")
	changed, err := toolgen.Write([]toolgen.File{
		{Path: a, Data: []byte("new")},
		{Path: gone},
		{Path: filepath.Join(string(dir), "absent", "b.go"), Data: []byte("new")},
	})
	if err == nil || len(changed) != 0 {
		t.Errorf("got %q, %v, want an error alone", changed, err)
	}
	for _, name := range []string{a, gone} {
		if text, err := os.ReadFile(name); err != nil || string(text) != "old" {
			t.Errorf("%s: %q, %v, want what there was", name, text, err)
		}
	}
	if list, err := os.ReadDir(string(dir)); err != nil || len(list) != 2 {
		t.Errorf("the folder has %v, %v, want two files", list, err)
	}
}

// TestWriteThroughLink: a link stays, and the file that it leads to is written.
func TestWriteThroughLink(t *testing.T) {
	dir := folder(t.TempDir())
	dir.write(t, "real/a.go", []byte("old"))
	link := filepath.Join(string(dir), "a.go")
	if err := os.Symlink(filepath.Join("real", "a.go"), link); err != nil {
		t.Skip("no symbolic links here:", err)
	}
	if _, err := toolgen.Write([]toolgen.File{{Path: link, Data: []byte("new")}}); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link is %v, %v", info, err)
	}
	if text, err := os.ReadFile(filepath.Join(string(dir), "real", "a.go")); err != nil || string(text) != "new" {
		t.Errorf("the file: %q, %v", text, err)
	}
}

// TestWriteReadOnly: a generated file that was made read-only against edits by
// hand is written all the same.
func TestWriteReadOnly(t *testing.T) {
	dir := folder(t.TempDir())
	dir.write(t, "a.go", []byte("old"))
	path := filepath.Join(string(dir), "a.go")
	if err := os.Chmod(path, 0o444); err != nil {
		t.Fatal(err)
	}
	if _, err := toolgen.Write([]toolgen.File{{Path: path, Data: []byte("new")}}); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "new" {
		t.Errorf("got %q, %v", text, err)
	}
}
