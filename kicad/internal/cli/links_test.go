// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Where the system makes no links, a design that is taken out of git has the files themselves, also through a link to a
// link; what leads out of the repository or nowhere is left out. With links there are links.
func TestLinks(t *testing.T) {
	for name, able := range map[string]bool{"links": true, "no links": false} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = root.Close() }()
			if err := errors.Join(root.Mkdir("lib", 0o700), root.WriteFile("lib/a.kicad_sym", []byte("symbols"), 0o600)); err != nil {
				t.Fatal(err)
			}
			l := links{root: root, target: map[string]string{}, symlink: func(string, string) error {
				return errors.New("a required privilege is not held by the client")
			}}
			if able {
				if err := root.Symlink("x", "try"); err != nil {
					t.Skip(err)
				}
				l.symlink = root.Symlink
			}
			for link, target := range map[string]string{
				"chain.kicad_sym": "lib/b.kicad_sym", "lib/b.kicad_sym": "a.kicad_sym", "lib/up.kicad_sym": "../chain.kicad_sym",
				"out.kicad_sym": "../../secret", "abs.kicad_sym": "/etc/passwd", "nowhere.kicad_sym": "lib/none",
			} {
				if err := l.make(link, target); err != nil {
					t.Fatal(err)
				}
			}
			if err := l.copyAll(); err != nil {
				t.Fatal(err)
			}
			for _, link := range []string{"chain.kicad_sym", "lib/b.kicad_sym", "lib/up.kicad_sym"} {
				data, err := root.ReadFile(link)
				if err != nil || string(data) != "symbols" {
					t.Errorf("%s is %q, %v", link, data, err)
				}
				if st, err := root.Lstat(link); err != nil || st.Mode().IsRegular() == able {
					t.Errorf("%s: %v, %v", link, st.Mode(), err)
				}
			}
			for _, left := range []string{"out.kicad_sym", "abs.kicad_sym"} {
				if _, err := os.Lstat(filepath.Join(dir, left)); err == nil {
					t.Errorf("%s was made, which leads out of the repository", left)
				}
			}
		})
	}
}

// A page is shown by the system's own means, and only X11 and Wayland are asked for a display.
func TestOpener(t *testing.T) {
	none := func(string) string { return "" }
	x11 := func(name string) string { return map[string]string{"DISPLAY": ":0"}[name] }
	for goos, want := range map[string]struct {
		opener string
		screen bool
	}{
		"linux": {"xdg-open", false}, "freebsd": {"xdg-open", false}, "darwin": {"open", true}, "windows": {"rundll32", true},
	} {
		if got := openerOf(goos); got[0] != want.opener {
			t.Errorf("%s opens by %q, want %s", goos, got, want.opener)
		}
		if got := screen(goos, none); got != want.screen {
			t.Errorf("%s without DISPLAY: a screen %v, want %v", goos, got, want.screen)
		}
		if !screen(goos, x11) {
			t.Errorf("%s with DISPLAY has no screen", goos)
		}
	}
	if slices.Contains(openerOf("windows"), "cmd") {
		t.Error("cmd reads a name with & as two commands")
	}
}

// The hook's shell is given the program's path as the system has it, but for the slashes, and in quotes.
func TestScriptQuotes(t *testing.T) {
	exe := filepath.Join(string(filepath.Separator)+"my tools", "it's", "fiducial")
	if got := script(exe, true); !strings.Contains(got, `fiducial='/my tools/it'\''s/fiducial'`) || !strings.Contains(got, "hook run --strict") {
		t.Errorf("got %s", got)
	}
}
