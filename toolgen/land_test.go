// SPDX-License-Identifier: Apache-2.0

package toolgen

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestWriteTakesBack: when a file that is to go cannot be moved, those that were come
// back, and none is written; when one cannot be put in its place, the error comes with what
// was changed before.
func TestWriteTakesBack(t *testing.T) {
	refused := errors.New("refused")
	for _, tt := range []struct {
		name    string // the file that the system does not move
		changed []string
	}{
		{"first", nil},
		{"gone", nil},
		{"new", []string{"first", "gone", "last"}},
		{"", []string{"first", "gone", "last", "new"}},
	} {
		dir := t.TempDir()
		at := func(name string) string { return filepath.Join(dir, name) }
		files := []File{{Path: at("last"), Data: []byte("new")}, {Path: at("first")}, {Path: at("new"), Data: []byte("new")}, {Path: at("gone")}}
		for _, f := range files {
			if err := os.WriteFile(f.Path, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		rename := func(from, to string) error {
			if tt.name != "" && (from == at(tt.name) || to == at(tt.name)) {
				return refused
			}
			return os.Rename(from, to)
		}
		changed, err := write(files, operations{goos: "linux", rename: rename})
		if tt.name == "" && err != nil || tt.name != "" && !errors.Is(err, refused) {
			t.Errorf("%q: got error %v", tt.name, err)
		}
		var names []string
		for _, path := range changed {
			names = append(names, filepath.Base(path))
		}
		if slices.Sort(names); !slices.Equal(names, tt.changed) {
			t.Errorf("%q: changed %q, want %q", tt.name, names, tt.changed)
		}
		for _, f := range files {
			want, is := "old", slices.Contains(tt.changed, filepath.Base(f.Path))
			if is {
				want = string(f.Data)
			}
			if text, err := os.ReadFile(f.Path); string(text) != want || (err != nil) != (is && f.Data == nil) {
				t.Errorf("%q: %s is %q, %v, want %q", tt.name, f.Path, text, err, want)
			}
		}
		if list, err := filepath.Glob(at(".fiducialgen-*")); err != nil || len(list) > 0 {
			t.Errorf("%q: left behind: %q, %v", tt.name, list, err)
		}
	}
}
