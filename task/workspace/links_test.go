// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/task/workspace"
)

// asFiles has git put files in the place of links, as it does on Windows.
func asFiles(r *repo) *repo {
	must(r.t, os.Symlink("../README.md", filepath.Join(r.dir, "hw/link")))
	must(r.t, os.Symlink("board.kicad_sch", filepath.Join(r.dir, "hw/other")))
	r.commit("Links")
	r.git("config", "core.symlinks", "false")
	for _, p := range []string{"hw/link", "hw/other"} {
		r.remove(p)
		r.git("checkout", "--", p)
	}
	return r
}

// A link that stands as a file is a link to git, and a file to whoever puts it back.
func TestLinksAsFiles(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(r *repo){
		"another target": func(r *repo) { r.write("hw/link", "other") },
		"deleted":        func(r *repo) { r.remove("hw/link") },
		"a real link": func(r *repo) {
			r.remove("hw/link")
			must(r.t, os.Symlink("../README.md", filepath.Join(r.dir, "hw/link")))
		},
		"a folder": func(r *repo) { r.remove("hw/link"); r.write("hw/link/x", "1") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := asFiles(newRepo(t, map[string]string{design: "sheet\n", "README.md": "x\n"}))
			if got := r.read("hw/link"); got != "../README.md" {
				t.Fatalf("git checked out %q", got)
			}
			must(t, os.Chmod(filepath.Join(r.dir, "hw/link"), 0o640))
			before := r.dump()
			s := r.snapshot("run1")
			if got, err := s.Changed(t.Context()); err != nil || len(got) > 0 {
				t.Fatalf("changed before anything was: %s, %v", paths(got), err)
			}
			change(r)
			s, err := r.open().Reopen(t.Context(), "run1")
			must(t, err)
			got, err := s.Changed(t.Context())
			must(t, err)
			if len(got) == 0 || got[0].Path != "hw/link" || got[0].OldMode != 0o120000 || got[0].Mode != 0 && got[0].Mode != 0o120000 {
				t.Errorf("changed %+v", got)
			}
			if _, err := s.Diff(t.Context()); err != nil {
				t.Errorf("diff: %v", err)
			}
			kept, err := s.Preserve(t.Context(), "")
			must(t, err)
			if name == "another target" {
				if got := r.git("ls-tree", kept.Stash, "hw/link"); !strings.HasPrefix(got, "120000 ") {
					t.Errorf("the stash holds %s", got)
				}
			}
			if _, err := s.Restore(t.Context()); err != nil {
				t.Fatal(err)
			}
			same(t, "restored", before, r.dump())
			if got := r.git("status", "--porcelain"); got != "" {
				t.Errorf("status %q", got)
			}
		})
	}
}

func TestLinksAsFiles_Commit(t *testing.T) {
	t.Parallel()
	r := asFiles(newRepo(t, map[string]string{design: "sheet\n", "README.md": "x\n"}))
	s := r.snapshot("run1")
	r.write("hw/link", "board.kicad_sch")
	r.remove("hw/other")
	if text, err := s.Diff(t.Context()); err != nil || !strings.Contains(text, "-../README.md") || !strings.Contains(text, "+board.kicad_sch") {
		t.Errorf("diff %s, %v", text, err)
	}
	_, err := s.Commit(t.Context(), "Run", workspace.CommitOptions{})
	must(t, err)
	if got := r.git("ls-tree", "-r", "HEAD", "hw"); !strings.Contains(got, "120000 blob ") || strings.Contains(got, "hw/other") {
		t.Errorf("committed %s", got)
	}
	if got := r.git("show", "HEAD:hw/link"); got != "board.kicad_sch" {
		t.Errorf("the link leads to %q", got)
	}
	if got := r.git("status", "--porcelain"); got != "" {
		t.Errorf("status %q", got)
	}
}

// A backslash in a link's target is a part of a name where it separates none.
func TestLinks_Backslash(t *testing.T) {
	t.Parallel()
	if filepath.Separator == '\\' {
		t.Skip("it separates names here")
	}
	r := newRepo(t, map[string]string{"a": "1\n"})
	must(t, os.Symlink(`x\y`, filepath.Join(r.dir, "link")))
	r.commit("Link")
	before := r.dump()
	s := r.snapshot("run1")
	if got, err := s.Changed(t.Context()); err != nil || len(got) > 0 {
		t.Fatalf("changed %s, %v", paths(got), err)
	}
	r.remove("link")
	if _, err := s.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, "restored", before, r.dump())
}
