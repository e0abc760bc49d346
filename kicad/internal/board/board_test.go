// SPDX-License-Identifier: Apache-2.0

package board_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/kicad/internal/board"
)

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := fs.ReadFile(board.Files(), name)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func write(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "project")
	if err := board.Write(dir); err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestWriteCopiesEveryFile(t *testing.T) {
	t.Parallel()
	dir := write(t)
	want, got := map[string]string{}, map[string]string{}
	for _, c := range []struct {
		files fs.FS
		into  map[string]string
	}{{board.Files(), want}, {os.DirFS(dir), got}} {
		err := fs.WalkDir(c.files, ".", func(name string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			b, err := fs.ReadFile(c.files, name)
			c.into[name] = string(b)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("written project: -want +got\n%s", diff)
	}
	for _, name := range []string{board.Root, board.Child, board.PCB, board.BOM, board.Pinout, ".gitignore", board.Name + ".kicad_pro"} {
		if got[name] == "" {
			t.Errorf("%s: not written", name)
		}
	}
	// A model's edit has to be able to write what the demo copied.
	if err := os.WriteFile(filepath.Join(dir, board.Root), nil, 0o600); err != nil {
		t.Errorf("the copy cannot be edited: %v", err)
	}
}

func TestWriteOverwritesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	mine := filepath.Join(dir, board.Child)
	if err := os.WriteFile(mine, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := board.Write(dir)
	if !errors.Is(err, fs.ErrExist) || !strings.Contains(err.Error(), mine) {
		t.Errorf("Write over %s: got %v, want fs.ErrExist that names it", mine, err)
	}
	left, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(left) != 1 {
		t.Errorf("files after the refusal: got %d, want 1", len(left))
	}
	if b, _ := os.ReadFile(mine); string(b) != "mine" {
		t.Errorf("%s: got %q, want it untouched", mine, b)
	}
}

// Issue 2, item 7: two sheets, 12 to 20 symbols, a microcontroller of at most
// 20 pins.
func TestSize(t *testing.T) {
	t.Parallel()
	placed, pins := 0, 0
	for _, name := range []string{board.Root, board.Child} {
		for _, item := range strings.Split(read(t, name), "\n\t(symbol\n")[1:] {
			placed++
			if strings.Contains(item, `(property "Reference" "U2"`) {
				pins = strings.Count(item, "\n\t\t(pin ")
			}
		}
	}
	if placed < 12 || placed > 20 {
		t.Errorf("symbols: got %d, want 12 to 20", placed)
	}
	if pins == 0 || pins > 20 {
		t.Errorf("pins of U2: got %d, want 1 to 20", pins)
	}
}

// The doc comment promises where each name stands.
func TestNamesToRename(t *testing.T) {
	t.Parallel()
	type place struct{ file, text string }
	for p, want := range map[place]int{
		{board.Root, `(label "STATUS"`}:               1,
		{board.Root, `(pin "STATUS" output`}:          1,
		{board.Child, `(hierarchical_label "STATUS"`}: 1,
		{board.PCB, `"/STATUS"`}:                      3,
		{board.Pinout, "| /STATUS "}:                  1,
		{board.Root, `(pin "BUTTON" input`}:           1,
		{board.Child, `(hierarchical_label "BUTTON"`}: 1,
		{board.Child, `(label "UPDI"`}:                2,
		{board.Root, `(global_label "I2C_SDA"`}:       1,
		{board.Child, `(global_label "I2C_SDA"`}:      1,
		{board.Root, `(label "VIN"`}:                  1,
		{board.Root, `(label "LED_A"`}:                1,
	} {
		if got := strings.Count(read(t, p.file), p.text); got != want {
			t.Errorf("%s in %s: got %d, want %d", p.text, p.file, got, want)
		}
	}
	for _, name := range []string{board.Root, board.Child, board.PCB, board.Pinout, board.BOM} {
		if strings.Contains(read(t, name), board.NewName) {
			t.Errorf("%s: %s is taken", name, board.NewName)
		}
	}
}

// Every library entry in the files is in NOTICE.md.
func TestNotice(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("NOTICE.md")
	if err != nil {
		t.Fatal(err)
	}
	notice := strings.Join(strings.Fields(string(b)), " ")
	found := 0
	for name, mark := range map[string]string{board.Root: "(lib_id \"", board.Child: "(lib_id \"", board.PCB: "\t(footprint \""} {
		for _, rest := range strings.Split(read(t, name), mark)[1:] {
			entry, _, _ := strings.Cut(rest, `"`)
			lib, part, _ := strings.Cut(entry, ":")
			found++
			if !strings.Contains(notice, "`"+lib+"` ") || !strings.Contains(notice, " "+part) {
				t.Errorf("%s: %s is not in NOTICE.md", name, entry)
			}
		}
	}
	if found == 0 {
		t.Error("no library entries found in the project")
	}
}
