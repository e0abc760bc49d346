// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/task/workspace"
)

func check(err error) workspace.Check {
	if e, ok := errors.AsType[*workspace.PreflightError](err); ok && e.Reason != "" && e.Why != "" && len(e.Remedies) > 0 {
		return e.Check
	}
	return 0
}

func TestB2_Preflight(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	open := func(r *repo) error {
		w, err := workspace.Open(ctx, r.dir, workspace.Options{Env: r.env, Exclude: []string{"~*.lck"}})
		if err != nil {
			return err
		}
		return w.Preflight(ctx, false)
	}
	for name, c := range map[string]struct {
		make func(r *repo)
		want workspace.Check
	}{
		"clean":          {func(*repo) {}, 0},
		"lock file only": {func(r *repo) { r.write("sub/~x.kicad_pro.lck", "") }, 0},
		"empty folder":   {func(r *repo) { r.remove(".git") }, workspace.CheckRepository},
		"broken":         {func(r *repo) { r.remove(".git/HEAD") }, workspace.CheckRepository},
		"no commit":      {func(r *repo) { r.remove(".git"); r.git("init", "-q") }, workspace.CheckCommit},
		"modified":       {func(r *repo) { r.write("a", "2") }, workspace.CheckClean},
		"staged":         {func(r *repo) { r.write("b", "2"); r.git("add", "b") }, workspace.CheckClean},
		"deleted":        {func(r *repo) { r.remove("a") }, workspace.CheckClean},
		"untracked":      {func(r *repo) { r.write("b", "2") }, workspace.CheckClean},
		"bisect":         {func(r *repo) { r.git("bisect", "start") }, workspace.CheckProgress},
		"merge": {func(r *repo) {
			r.git("switch", "-qc", "x")
			r.git("commit", "-q", "--allow-empty", "-m", "x")
			r.git("switch", "-q", "main")
			r.git("merge", "-q", "--no-ff", "--no-commit", "x")
		}, workspace.CheckProgress},
		"conflict": {func(r *repo) {
			r.write("a", "stashed")
			r.git("stash", "-q")
			r.write("a", "committed")
			r.git("commit", "-qam", "c")
			_, _ = r.try("stash", "apply", "-q")
		}, workspace.CheckProgress},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t, map[string]string{"a": "1"})
			c.make(r)
			before := r.dump()
			if err := open(r); check(err) != c.want || (c.want == 0) != (err == nil) {
				t.Errorf("got %v, want check %v", err, c.want)
			}
			same(t, "preflight wrote something (B-3)", before, r.dump())
			if _, err := os.Stat(filepath.Join(r.dir, ".fiducial")); err == nil {
				t.Error("preflight made a folder (B-3)")
			}
		})
	}
	bare := newRepo(t, nil)
	bare.git("clone", "-q", "--bare", ".", "bare.git")
	if _, err := workspace.Open(ctx, filepath.Join(bare.dir, "bare.git"), workspace.Options{Env: bare.env}); check(err) != workspace.CheckRepository {
		t.Errorf("bare: %v", err)
	}
	if _, err := workspace.Open(ctx, bare.dir, workspace.Options{Git: "no-such-git", Env: bare.env}); check(err) != workspace.CheckGit {
		t.Errorf("no git: %v", err)
	}
	if _, err := workspace.Open(ctx, filepath.Join(bare.dir, "none"), workspace.Options{Env: bare.env}); check(err) != workspace.CheckRepository {
		t.Errorf("no folder: %v", err)
	}
	old := filepath.Join(t.TempDir(), "git")
	must(t, os.WriteFile(old, []byte("#!/bin/sh\necho git version 2.25.1\n"), 0o755))
	if _, err := workspace.Open(ctx, bare.dir, workspace.Options{Git: old, Env: bare.env}); check(err) != workspace.CheckGit {
		t.Errorf("old git: %v", err)
	}
}

func TestSnapshotFromSubFolderWorktreeAndWithSubmodule(t *testing.T) {
	t.Parallel()
	lib := newRepo(t, map[string]string{"part": "1"})
	r := newRepo(t, map[string]string{"sub/a": "1", "sub/deep/b": "2"})
	r.git("submodule", "--quiet", "add", lib.dir, "lib")
	r.git("commit", "-qm", "Submodule")
	r.git("worktree", "add", "-q", "-b", "wt", filepath.Join(t.TempDir(), "w t"))
	list := r.git("worktree", "list", "--porcelain")
	i := strings.LastIndex(list, "worktree ")
	tree, _, _ := strings.Cut(list[i+len("worktree "):], "\n")

	wt := &repo{t: t, dir: tree, env: r.env}
	before := wt.dump()
	w, err := workspace.Open(t.Context(), filepath.Join(tree, "sub/deep"), workspace.Options{Env: r.env})
	must(t, err)
	must(t, w.Preflight(t.Context(), false))
	s, err := w.Snapshot(t.Context(), "run1", now)
	must(t, err)
	wt.write("sub/a", "run")
	wt.write("new", "run")
	if _, err := s.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	delete(before, ".git")
	same(t, "worktree", before, wt.dump())

	// The main tree sees that the run is elsewhere, and has submodule content left alone.
	left, err := r.open().Leftovers(t.Context())
	if err != nil || len(left) != 1 || left[0].Elsewhere == "" {
		t.Errorf("leftovers %+v, %v", left, err)
	}
	if _, err := r.open().Reopen(t.Context(), "run1"); kind(err) != workspace.KindInvalid {
		t.Errorf("reopen from another tree: %v", err)
	}
	must(t, r.open().Preflight(t.Context(), false))
	main := r.snapshot("run2")
	r.write("lib/part", "changed in the submodule")
	r.write("sub/a", "run")
	if got, err := main.Changed(t.Context()); err != nil || paths(got) != "modified sub/a" {
		t.Errorf("changed: %s, %v", paths(got), err)
	}
	if _, err := main.Commit(t.Context(), "Run", workspace.CommitOptions{}); err != nil {
		t.Error(err)
	}
	if got := r.git("show", "--name-only", "--format=", "HEAD"); got != "sub/a\n" {
		t.Errorf("commit holds %q", got)
	}
}

func TestSnapshotRunIDs(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "1"})
	for _, id := range []string{"", "-x", "a..b", "a/b", "../x", "x.lock", "a b", "x."} {
		if _, err := r.open().Snapshot(t.Context(), id, now); kind(err) != workspace.KindInvalid {
			t.Errorf("%q: %v", id, err)
		}
	}
	r.snapshot("run1")
	if _, err := r.open().Snapshot(t.Context(), "run1", now); kind(err) != workspace.KindExists {
		t.Errorf("twice: %v", err)
	}
	if _, err := r.open().Reopen(t.Context(), "run2"); kind(err) != workspace.KindNotFound {
		t.Errorf("none: %v", err)
	}
	if got := strings.Count(r.read(".git/info/exclude"), "/.fiducial/"); got != 1 {
		t.Errorf("info/exclude names the folder %d times", got)
	}
	if out := r.git("status", "--porcelain"); out != "" {
		t.Errorf("status: %s", out)
	}
}

func TestSnapshotOfAnEmptyRepository(t *testing.T) {
	t.Parallel()
	r := newRepo(t, nil)
	s := r.snapshot("run1")
	r.write("a", "1")
	if _, err := s.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, "restored", map[string]string{".": "folder"}, r.dump())
	r.write("a", "1")
	if _, err := s.Commit(t.Context(), "First", workspace.CommitOptions{}); err != nil {
		t.Fatal(err)
	}
}

func TestSnapshotKeepsNestedRepositoriesOut(t *testing.T) { // B-55
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "1"})
	r.write(".history/x", "1")
	r.git("-C", ".history", "init", "-q")
	before := r.dump()
	s := r.snapshot("run1")
	r.write("b", "run")
	r.write(".history/y", "not ours")
	if _, err := s.Preserve(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	before[".history/y"] = `-rw-r--r-- "not ours"`
	got := r.dump()
	same(t, "restored", before, got)
}

func TestDiff(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a b": "1\n2\n", "bin": "\x00\x01", "old": "x\n"})
	s := r.snapshot("run1")
	if d, err := s.Diff(t.Context()); err != nil || d != "" {
		t.Errorf("no change: %q, %v", d, err)
	}
	r.write("a b", "1\nrun\n")
	r.write("bin", "\x00\x02")
	r.remove("old")
	r.write("dir/new", "n\n")
	d, err := s.Diff(t.Context())
	must(t, err)
	for _, want := range []string{"--- a/a b", "+++ b/a b", "-2\n+run\n", "Binary files a/bin and b/bin differ", "+++ /dev/null", "+++ b/dir/new"} {
		if !strings.Contains(d, want) {
			t.Errorf("no %q in\n%s", want, d)
		}
	}
	stat, err := s.DiffStat(t.Context())
	must(t, err)
	want := []workspace.Stat{{"a b", 1, 1, false}, {"bin", 0, 0, true}, {"dir/new", 1, 0, false}, {"old", 0, 1, false}}
	if !slices.Equal(stat, want) {
		t.Errorf("got  %v\nwant %v", stat, want)
	}

	// git takes it back as a patch.
	r.write("bin", "\x00\x01")
	d, err = s.Diff(t.Context())
	must(t, err)
	after := r.dump()
	if _, err := s.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	patch := t.TempDir()
	write(t, patch, "p", d)
	r.git("apply", filepath.Join(patch, "p"))
	same(t, "applied", after, r.dump())
}

func TestB54_Preserve(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "1\n", "dirty": lines, "gone": "g\n"})
	r.write("dirty", strings.Replace(lines, "1\n", "user 1\n", 1))
	r.write("mine", "user\n")
	s := r.snapshot("run1")
	if p, err := s.Preserve(t.Context(), ""); err != nil || p.Stash != "" || r.git("stash", "list") != "" {
		t.Errorf("nothing to keep: %+v, %v", p, err)
	}
	r.write("a", "run\n")
	r.write("dirty", strings.Replace(r.read("dirty"), "9\n", "run 9\n", 1))
	r.write("mine", "run\n")
	r.write("new", "run\n")
	r.remove("gone")
	tree, index := r.dump(), r.index()
	p, err := s.Preserve(t.Context(), "")
	must(t, err)
	same(t, "tree", tree, r.dump())
	if r.index() != index {
		t.Error("the index changed")
	}
	if got := r.git("stash", "list"); got != "stash@{0}: fiducial failed run run1\n" {
		t.Errorf("stash list: %q", got)
	}
	// A second call, as after a crash, adds nothing, even if it is no more the newest.
	r.git("stash", "store", "-m", "other", strings.TrimSpace(r.git("commit-tree", p.Stash+"^{tree}", "-p", "HEAD", "-p", p.Stash, "-m", "x")))
	if again, err := s.Preserve(t.Context(), ""); err != nil || again.Stash != p.Stash {
		t.Errorf("again: %+v, %v", again, err)
	}
	if got := r.git("stash", "list"); got != "stash@{0}: other\nstash@{1}: fiducial failed run run1\n" {
		t.Errorf("stash list: %q", got)
	}
	r.git("stash", "drop", "-q")
	// The entry shows the run's own lines and no others.
	if got := r.git("stash", "show", "--numstat", "stash@{0}"); got != "1\t1\ta\n1\t1\tdirty\n0\t1\tgone\n" {
		t.Errorf("stash show:\n%s", got)
	}
	if got := r.git("show", p.Stash+"^3:new") + r.git("show", p.Stash+"^3:"+p.Renamed["mine"]); got != "run\nrun\n" {
		t.Errorf("untracked: %q", got)
	}
	if _, err := s.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	// Once the user's own work is committed it applies, on top of it.
	r.git("commit", "-qam", "Mine")
	r.git("stash", "apply", "-q")
	if got := r.read("dirty"); got != "user 1\n2\n3\n4\n5\n6\n7\n8\nrun 9\n" {
		t.Errorf("applied: %q", got)
	}
	if r.read("mine") != "user\n" || r.read("new") != "run\n" || r.read("mine.run1") != "run\n" {
		t.Error("untracked files were not applied")
	}
}

func TestLock(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "1"})
	l, err := r.open().Lock(t.Context(), "run1", now)
	must(t, err)
	_, err = r.open().Lock(t.Context(), "run2", now)
	e, _ := errors.AsType[*workspace.Error](err)
	if kind(err) != workspace.KindLocked || e.Holder.Run != "run1" || e.Holder.PID != os.Getpid() {
		t.Errorf("got %v", err)
	}
	must(t, l.Release())
	must(t, l.Release())
	l, err = r.open().Lock(t.Context(), "run2", now)
	must(t, err)
	must(t, l.Release())
}

func TestSHA256Repository(t *testing.T) {
	t.Parallel()
	r := newRepo(t, nil)
	r.remove(".git")
	r.git("init", "-q", "--object-format=sha256")
	r.write("a", "1\n")
	r.write("dir/b", "2\n")
	r.git("add", "-A")
	r.git("commit", "-qm", "Start")
	r.write("dir/b", "dirty\n")
	before := r.dump()
	r.snapshot("run1")
	r.write("a", "run\n")
	r.remove("dir")
	s, err := r.open().Reopen(t.Context(), "run1")
	must(t, err)
	if _, err := s.Preserve(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, "restored", before, r.dump())
	r.write("a", "run\n")
	if _, err := s.Commit(t.Context(), "Run", workspace.CommitOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := r.git("show", "--name-only", "--format=", "HEAD"); got != "a\n" {
		t.Errorf("commit holds %q", got)
	}
}

func TestSnapshotLimit(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"big but stored": strings.Repeat("x", 200)})
	r.write("b", "12345678901")
	w, err := workspace.Open(t.Context(), r.dir, workspace.Options{Env: r.env, MaxFile: 10})
	must(t, err)
	_, err = w.Snapshot(t.Context(), "run1", now)
	e, _ := errors.AsType[*workspace.Error](err)
	if kind(err) != workspace.KindUnreadable || len(e.Paths) != 1 || e.Paths[0] != "b" {
		t.Errorf("got %v", err)
	}
	if m, _ := filepath.Glob(filepath.Join(r.dir, ".git/fast_import_crash*")); len(m) > 0 {
		t.Errorf("left behind: %q", m)
	}
}

// A run that is started by a hook, or by another git command, inherits variables
// that name the outer repository.
func TestEnvironmentOfAnOuterGit(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "1"})
	outer := newRepo(t, map[string]string{"other": "2"})
	r.env = append(r.env, "GIT_DIR="+outer.dir+"/.git", "GIT_INDEX_FILE="+outer.dir+"/.git/index", "GIT_WORK_TREE="+outer.dir, "GIT_PREFIX=x/")
	w := r.open()
	must(t, w.Preflight(t.Context(), false))
	s := r.snapshot("run1")
	r.write("a", "run")
	if got, err := s.Changed(t.Context()); err != nil || paths(got) != "modified a" {
		t.Errorf("changed: %s, %v", paths(got), err)
	}
	if _, err := s.Commit(t.Context(), "Run", workspace.CommitOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := outer.git("rev-list", "--count", "HEAD") + outer.git("status", "--porcelain"); got != "1\n" {
		t.Errorf("the outer repository: %q", got)
	}
}
