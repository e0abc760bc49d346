// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/task/workspace"
)

var oddNames = []string{
	"plain.txt", "with space.txt", "quo\"te'.txt", "new\nline.txt", "-dash.txt", "--", "tab\there", "\xff\xfe-not-utf8", "🤖 emoji.kicad_sch",
	"sub/a.txt", "sub/deep/er/b.txt", "sub/-x", "sub/ü.txt", "back\\slash", "*glob?[x]", ":(top)magic", "#hash", "!bang", "sub/~lock",
}

func TestB57_RestoreIsByteExact(t *testing.T) {
	t.Parallel()
	files := map[string]string{}
	for i, n := range oddNames {
		files[n] = fmt.Sprintf("content %d\r\nmixed\nno end", i)
	}
	for _, crlf := range []string{"false", "true", "input"} {
		t.Run("autocrlf="+crlf, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t, files)
			r.git("config", "core.autocrlf", crlf)
			r.write(".gitattributes", "*.txt text\n*.kicad_sch ident\n")
			r.write("$Id.kicad_sch", "$Id$\n")
			r.git("add", "-A")
			r.git("commit", "-qm", "Attributes")
			r.write("plain.txt", "dirty\r\nand\nmixed\r\n")
			r.write("untracked\n\xfe", "u\r\n\n")
			r.write("staged", "staged\n")
			r.git("add", "staged")
			r.write("staged", "staged, then changed\n")
			r.write("later", "intent\n")
			r.git("add", "-N", "later")
			r.remove("sub/-x")
			before, index := r.dump(), r.index()
			s := r.snapshot("run1")
			same(t, "snapshot touched the tree", before, r.dump())
			for _, n := range oddNames {
				r.write(n, "run\n")
			}
			r.write("untracked\n\xfe", "run\n")
			r.write("staged", "run\n")
			r.write("later", "run\n")
			r.remove("sub/deep")
			r.write("sub/deep", "a file now")
			r.write("new/one", "x")
			res, err := s.Restore(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			same(t, "restored tree", before, r.dump())
			if got := r.index(); got != index {
				t.Error("the index changed")
			}
			if len(res.Removed) != 3 { // sub/-x, sub/deep, new/one
				t.Errorf("removed %q", res.Removed)
			}
		})
	}
}

func TestB56_RestoreTouchesOnlyWhatDiffers(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "1", "b/c": "2", "b/d": "3"})
	old := now.Add(-time.Hour)
	for _, p := range []string{"a", "b/c", "b/d"} {
		if err := os.Chtimes(filepath.Join(r.dir, p), old, old); err != nil {
			t.Fatal(err)
		}
	}
	s := r.snapshot("run1")
	r.write("b/c", "changed")
	if _, err := s.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	for p, want := range map[string]bool{"a": true, "b/d": true, "b/c": false} {
		st, err := os.Stat(filepath.Join(r.dir, p))
		if err != nil {
			t.Fatal(err)
		}
		if got := st.ModTime().Equal(old); got != want {
			t.Errorf("%s: time kept %v, want %v", p, got, want)
		}
	}
}

func TestB57_RestoreModesLinksAndFolders(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"script": "#!/bin/sh\n", "doc": "d", "dir/f": "f"})
	must(t, os.Chmod(filepath.Join(r.dir, "script"), 0o755))
	must(t, os.Symlink("doc", filepath.Join(r.dir, "link")))
	must(t, os.Symlink("/nowhere/at all", filepath.Join(r.dir, "broken")))
	r.git("add", "-A")
	r.git("commit", "-qm", "Modes")
	must(t, os.Chmod(filepath.Join(r.dir, "doc"), 0o600))
	must(t, os.MkdirAll(filepath.Join(r.dir, "empty/inner"), 0o755))
	before := r.dump()
	s := r.snapshot("run1")

	must(t, os.Chmod(filepath.Join(r.dir, "script"), 0o644))
	for _, p := range []string{"link", "broken", "dir", "empty", "doc"} {
		r.remove(p)
	}
	r.write("link", "no link any more")
	r.write("broken/inner/x", "a folder now")
	must(t, os.Symlink("nowhere", filepath.Join(r.dir, "doc")))
	must(t, os.MkdirAll(filepath.Join(r.dir, "made/by/run"), 0o755))
	if _, err := s.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, "restored tree", before, r.dump())
}

// A folder that became a link must not lead a write, or a removal, out of the tree.
func TestRestoreStaysInside(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"dir/f": "inside", "other/f": "other", "x/y/z": "deep"})
	out := t.TempDir()
	write(t, out, "f", "outside")
	write(t, out, "y/z", "outside")
	before := r.dump()
	s := r.snapshot("run1")
	r.remove("dir")
	must(t, os.Symlink(out, filepath.Join(r.dir, "dir")))
	r.remove("x")
	must(t, os.Symlink(out, filepath.Join(r.dir, "x")))
	if _, err := s.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, "restored tree", before, r.dump())
	for _, p := range []string{"f", "y/z"} {
		if b, err := os.ReadFile(filepath.Join(out, p)); err != nil || string(b) != "outside" {
			t.Errorf("outside %s: %q, %v", p, b, err)
		}
	}
	// A link to another folder of the tree is as bad.
	r.remove("dir")
	must(t, os.Symlink("other", filepath.Join(r.dir, "dir")))
	if _, err := s.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, "restored tree", before, r.dump())
}

func TestIgnoredFilesAreLeftAlone(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{".gitignore": "*.log\nsecret.env\nbuild/\n", "a": "1"})
	r.write("secret.env", "KEY=1")
	r.write("build/old", "o")
	r.write("~a.lck", "lock")
	before := r.dump()
	s := r.snapshot("run1")

	// The run uncovers a secret, and hides its own files.
	r.write(".gitignore", "hidden/\n")
	r.write("hidden/x", "by the run")
	r.write("sub/.gitignore", "*\n")
	r.write("sub/y", "by the run")
	r.write("seen", "by the run")
	r.write("build/new", "n")
	r.write("~b.lck", "lock")
	got, err := s.Changed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := "modified .gitignore, added hidden/x, added seen, added sub/.gitignore, added sub/y"
	if paths(got) != want {
		t.Errorf("got  %s\nwant %s", paths(got), want)
	}
	for _, c := range got {
		if hidden := strings.HasPrefix(c.Path, "hidden") || strings.HasPrefix(c.Path, "sub"); c.Ignored != hidden {
			t.Errorf("%s: ignored %v", c.Path, c.Ignored)
		}
	}
	if _, err := s.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	before["build/new"], before["~b.lck"] = `-rw-r--r-- "n"`, `-rw-r--r-- "lock"`
	same(t, "restored tree", before, r.dump())
}

func TestB59_ForeignCommitIsKept(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"mine": "1\n", "theirs": "1\n", "both": "1\n"})
	s := r.snapshot("run1")
	r.write("mine", "run\n")
	r.write("theirs", "foreign\n")
	r.write("both", "run\n")
	r.write("their new", "foreign\n")
	r.git("add", "theirs", "both", "their new")
	r.git("commit", "-qm", "Foreign")
	head := r.git("rev-parse", "HEAD")

	if _, err := s.Commit(t.Context(), "Run", workspace.CommitOptions{}); kind(err) != workspace.KindHeadMoved {
		t.Errorf("commit: %v", err)
	}
	res, err := s.Restore(t.Context())
	if kind(err) != workspace.KindHeadMoved || !res.HeadMoved {
		t.Errorf("got %v, %+v", err, res)
	}
	if got := r.git("rev-parse", "HEAD"); got != head {
		t.Errorf("HEAD is %s, want %s", got, head)
	}
	for p, want := range map[string]string{"mine": "1\n", "theirs": "foreign\n", "both": "run\n", "their new": "foreign\n"} {
		if got := r.read(p); got != want {
			t.Errorf("%s: got %q, want %q", p, got, want)
		}
	}
	if got := strings.Join(res.Foreign, " "); got != "both their new theirs" {
		t.Errorf("foreign: %s", got)
	}
}

func TestB59_BranchSwitchIsSeen(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "1\n"})
	s := r.snapshot("run1")
	r.git("switch", "-qc", "other")
	r.write("a", "run\n")
	if _, err := s.Commit(t.Context(), "Run", workspace.CommitOptions{}); kind(err) != workspace.KindHeadMoved {
		t.Errorf("commit: %v", err)
	}
	res, err := s.Restore(t.Context())
	if err != nil || !res.HeadMoved || r.read("a") != "1\n" {
		t.Errorf("got %v, %+v", err, res)
	}
}

func TestRestoreGoesOnAfterABlockedPath(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{".gitignore": "*.o\n", "a": "1", "b": "2"})
	s := r.snapshot("run1")
	r.remove("a")
	r.write("a/x.o", "ignored, so not ours to remove")
	r.write("b", "run")
	_, err := s.Restore(t.Context())
	e, _ := errors.AsType[*workspace.Error](err)
	if kind(err) != workspace.KindBlocked || len(e.Paths) != 1 || e.Paths[0] != "a" {
		t.Errorf("got %v", err)
	}
	if r.read("b") != "2" || r.read("a/x.o") == "" {
		t.Error("the rest was not restored, or the ignored file is gone")
	}
	r.remove("a")
	if _, err := s.Restore(t.Context()); err != nil || r.read("a") != "1" {
		t.Errorf("second restore: %v", err)
	}
}

// TestB174_RestoreEqualsBefore makes random trees, random uncommitted work of the
// user's and random work of a run. The seed that fails is in the test's name.
func TestB174_RestoreEqualsBefore(t *testing.T) {
	t.Parallel()
	rounds := uint64(12)
	if testing.Short() {
		rounds = 3
	}
	for seed := range rounds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			rnd := rand.New(rand.NewPCG(seed, 174))
			r := newRepo(t, map[string]string{".gitignore": "*.log\nbuild/\n"})
			if seed%3 == 1 {
				r.git("config", "core.autocrlf", "true")
			}
			scramble(r, rnd, 30)
			r.git("add", "-A")
			r.git("commit", "-q", "--allow-empty", "-m", "Random")
			r.write("build/kept", "ignored")
			dirty := seed%2 == 1
			if dirty {
				scramble(r, rnd, 8)
				if rnd.IntN(2) == 0 {
					r.git("add", "-A")
					scramble(r, rnd, 5)
				}
			}
			before, index := r.dump(), r.index()
			r.snapshot("run1")
			scramble(r, rnd, 25)
			after := r.dump()
			s, err := r.open().Reopen(t.Context(), "run1") // as another process would
			if err != nil {
				t.Fatal(err)
			}
			kept, err := s.Preserve(t.Context(), "")
			if err != nil {
				t.Fatal(err)
			}
			same(t, "preserve touched the tree", after, r.dump())
			if _, err := s.Restore(t.Context()); err != nil {
				t.Fatal(err)
			}
			same(t, "restored tree", before, r.dump())
			if r.index() != index {
				t.Error("the index changed")
			}
			if changes, err := s.Changed(t.Context()); err != nil || len(changes) > 0 {
				t.Errorf("left: %v, %v", paths(changes), err)
			}
			blocked := false // git writes no file where there is a folder, and keeps no empty ones
			for _, p := range kept.Files {
				blocked = blocked || before[p] == "folder"
			}
			if kept.Stash != "" && !dirty && !blocked {
				r.git("stash", "apply", "-q")
				same(t, "applied stash", files(after), files(r.dump()))
			}
		})
	}
}

// files leaves out folders, and what git does not keep: ignored files.
func files(m map[string]string) map[string]string {
	out := map[string]string{}
	for p, c := range m {
		if c != "folder" && !strings.HasSuffix(p, ".log") && !strings.HasPrefix(p, "build/") {
			out[p] = strings.ReplaceAll(c, `\r\n`, `\n`)
		}
	}
	return out
}

// scramble does n random things to the tree.
func scramble(r *repo, rnd *rand.Rand, n int) {
	names := append([]string{"sub", "sub/deep", "x", "x/y", "x/y/z", "x.d/l", "e/mpty/f"}, oddNames...)
	for range n {
		p := names[rnd.IntN(len(names))]
		full := filepath.Join(r.dir, p)
		for d := filepath.Dir(full); d != r.dir; d = filepath.Dir(d) {
			if st, err := os.Lstat(d); err == nil && !st.IsDir() {
				must(r.t, os.Remove(d))
			}
		}
		switch rnd.IntN(7) {
		case 0, 1:
			must(r.t, os.RemoveAll(full))
			r.write(p, strings.Repeat("line "+fmt.Sprint(rnd.IntN(50))+[]string{"\n", "\r\n"}[rnd.IntN(2)], rnd.IntN(20)))
		case 2:
			must(r.t, os.RemoveAll(full))
		case 3:
			must(r.t, os.RemoveAll(full))
			must(r.t, os.MkdirAll(filepath.Dir(full), 0o755))
			must(r.t, os.Symlink([]string{"x", "../..", "/etc", "sub", "."}[rnd.IntN(5)], full))
		case 4:
			if st, err := os.Lstat(full); err == nil && st.Mode().IsRegular() {
				must(r.t, os.Chmod(full, []os.FileMode{0o644, 0o755}[rnd.IntN(2)]))
			}
		case 5:
			must(r.t, os.RemoveAll(full))
			must(r.t, os.MkdirAll(full, 0o755))
		case 6:
			if st, err := os.Lstat(full); err == nil && st.Mode().IsRegular() {
				r.write(p, r.read(p)+"more\n")
			}
		}
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func kind(err error) workspace.Kind {
	if e, ok := errors.AsType[*workspace.Error](err); ok {
		return e.Kind
	}
	return 0
}
