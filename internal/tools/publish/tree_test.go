// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/internal/tools/publish"
)

// TestExport: what is not committed is not published.
func TestExport(t *testing.T) {
	t.Parallel()
	dir := repository(t, workspace)
	write(t, filepath.Join(dir, "a.go"), "package changed\n")
	write(t, filepath.Join(dir, "new.go"), "package a\n")
	to := t.TempDir()
	if _, err := publish.Export(t.Context(), dir, "HEAD", to, os.Environ()); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(to, "a.go")); err != nil || string(text) != "package a\n" {
		t.Errorf("a.go: got %q, %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(to, "new.go")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("new.go: got %v, want none", err)
	}
	if _, err := publish.Export(t.Context(), dir, "none", t.TempDir(), os.Environ()); err == nil {
		t.Error("exported a revision that is not there")
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := publish.Export(ctx, dir, "HEAD", t.TempDir(), os.Environ()); err == nil {
		t.Error("exported after the context ended")
	}
}

// TestExportIsWhatAProxySees: attributes that the go command turns off hide and
// change nothing, whether they are committed or this machine's; symbolic links are
// told (E-267).
func TestExportIsWhatAProxySees(t *testing.T) {
	t.Parallel()
	dir := tree(t, workspace)
	write(t, filepath.Join(dir, ".gitattributes"), "hidden.go export-ignore\nfilled.go export-subst\n")
	write(t, filepath.Join(dir, "hidden.go"), "package a\n")
	write(t, filepath.Join(dir, "filled.go"), "package a // $Format:%H$\n")
	write(t, filepath.Join(dir, "mine.go"), "package a\n")
	write(t, filepath.Join(dir, "theirs.go"), "package a\n")
	if err := os.Symlink("a.go", filepath.Join(dir, "link.go")); err != nil {
		t.Skip(err)
	}
	git(t, dir, "init", "-q", "-b", "main")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "first")
	write(t, filepath.Join(dir, ".git/info/attributes"), "mine.go export-ignore\n")
	write(t, filepath.Join(dir, ".git/their-attributes"), "theirs.go export-ignore\n")
	git(t, dir, "config", "core.attributesFile", filepath.Join(dir, ".git/their-attributes"))
	to := t.TempDir()
	links, err := publish.Export(t.Context(), dir, "main", to, os.Environ())
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"link.go"}, links); diff != "" {
		t.Errorf("links (-want +got):\n%s", diff)
	}
	for name, want := range map[string]string{
		"hidden.go": "package a\n", "filled.go": "package a // $Format:%H$\n", "mine.go": "package a\n", "theirs.go": "package a\n",
	} {
		if got, err := os.ReadFile(filepath.Join(to, name)); err != nil || string(got) != want {
			t.Errorf("%s: got %q, %v, want %q", name, got, err, want)
		}
	}
	if _, err := os.Lstat(filepath.Join(to, "link.go")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("link.go: got %v, want none", err)
	}
}

// TestExportFromElsewhere: a worktree, and a clone that borrows its objects, are
// exported like any repository.
func TestExportFromElsewhere(t *testing.T) {
	t.Parallel()
	dir := repository(t, workspace)
	worktree, borrower := filepath.Join(t.TempDir(), "w"), filepath.Join(t.TempDir(), "b")
	git(t, dir, "worktree", "add", "-q", "--detach", worktree)
	git(t, dir, "clone", "-q", "--shared", dir, borrower)
	for _, repo := range []string{worktree, borrower, filepath.Join(dir, "kicad")} {
		to := t.TempDir()
		if _, err := publish.Export(t.Context(), repo, "HEAD", to, os.Environ()); err != nil {
			t.Errorf("%s: %v", repo, err)
		} else if text, err := os.ReadFile(filepath.Join(to, "kicad/k.go")); err != nil || string(text) != "package kicad\n" {
			t.Errorf("%s: got %q, %v", repo, text, err)
		}
	}
}

// TestContentsSaysWhatItPassesBy: files that are not committed, and links.
func TestContentsSaysWhatItPassesBy(t *testing.T) {
	t.Parallel()
	dir := repository(t, released)
	for _, link := range []string{"toolgen/link.go", "bench/link.go"} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(link)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("../a.go", filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	write(t, filepath.Join(dir, "bench/go.mod"), "module example.com/a/bench\n\ngo 1.26\n")
	git(t, dir, "add", "-A")
	git(t, dir, "commit", "-q", "-m", "links")
	tr, out := trial(t, dir)
	if err := publish.CheckContents(t.Context(), tr); err != nil {
		t.Fatal(err)
	}
	if got := out.String(); strings.Contains(got, "NOT SEEN") || strings.Contains(got, "bench/link.go") ||
		!strings.Contains(got, "LEFT OUT  toolgen/link.go, a symbolic link") || !strings.Contains(got, "users of example.com/a/toolgen do not get it") {
		t.Errorf("a clean tree: got\n%s", got)
	}
	write(t, filepath.Join(dir, "new/one.go"), "package new\n")
	write(t, filepath.Join(dir, "new/two.go"), "package new\n")
	write(t, filepath.Join(dir, "a.go"), "package a\n")
	out.Reset()
	if err := publish.CheckContents(t.Context(), tr); err != nil || !strings.Contains(out.String(), "NOT SEEN  changes that are not committed, of 3 files") {
		t.Errorf("a changed tree: got %v\n%s", err, out)
	}
}
