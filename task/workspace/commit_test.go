// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/task/workspace"
)

func (r *repo) hook(name, script string) {
	r.t.Helper()
	p := filepath.Join(".git/hooks", name)
	r.write(p, "#!/bin/sh\n"+script)
	must(r.t, os.Chmod(filepath.Join(r.dir, p), 0o755))
}

const lines = "1\n2\n3\n4\n5\n6\n7\n8\n9\n"

func TestCommitHoldsTheRunOnly(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{
		"clean": "1\n", "both": lines, "user": "1\n", "stagedboth": lines, "staged": "1\n", "gone": "1\n", ".gitignore": "*.log\n",
	})
	r.write("both", strings.Replace(lines, "1\n", "user 1\n", 1))
	r.write("user", "user\n")
	r.write("stagedboth", strings.Replace(lines, "1\n", "user 1\n", 1))
	r.write("staged", "user\n")
	r.git("add", "stagedboth", "staged")
	r.write("untracked", "user\n")
	s := r.snapshot("run1")

	r.write("clean", "run\n")
	r.write("both", strings.Replace(r.read("both"), "9\n", "run 9\n", 1))
	r.write("stagedboth", strings.Replace(r.read("stagedboth"), "9\n", "run 9\n", 1))
	r.remove("gone")
	r.write("new dir/new", "run\n")
	r.write("x.log", "ignored")
	tree := r.dump()
	got, err := s.Commit(t.Context(), "Change it\n\nBody # kept\n", workspace.CommitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	same(t, "commit touched the tree", tree, r.dump())
	if want := "both clean gone new dir/new stagedboth"; strings.Join(got.Paths, " ") != want {
		t.Errorf("paths %q, want %q", got.Paths, want)
	}
	for p, want := range map[string]string{
		"clean": "run\n", "both": strings.Replace(lines, "9\n", "run 9\n", 1), "stagedboth": strings.Replace(lines, "9\n", "run 9\n", 1),
		"user": "1\n", "staged": "1\n", "new dir/new": "run\n",
	} {
		if got := r.git("show", "HEAD:"+p); got != want {
			t.Errorf("HEAD:%s is %q, want %q", p, got, want)
		}
	}
	// What was staged is staged still, and nothing besides.
	if got := r.git("diff", "--cached", "--name-only"); got != "staged\nstagedboth\n" {
		t.Errorf("staged: %q", got)
	}
	if got := r.git("diff", "--cached", "--numstat", "stagedboth"); got != "1\t1\tstagedboth\n" {
		t.Errorf("staged in stagedboth: %q", got)
	}
	if got := r.git("status", "--porcelain"); got != " M both\nM  staged\nM  stagedboth\n M user\n?? untracked\n" {
		t.Errorf("status:\n%s", got)
	}
	if got := r.git("log", "-1", "--format=%an %ae|%B", "HEAD"); got != "Ada ada@example.com|Change it\n\nBody # kept\n\n" {
		t.Errorf("message: %q", got)
	}
	if got := strings.TrimSpace(r.git("rev-parse", "HEAD")); got != s.Committed() {
		t.Errorf("HEAD %s, committed %s", got, s.Committed())
	}
	// A crash between commit and release must not undo the commit.
	again, err := r.open().Reopen(t.Context(), "run1")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := again.Restore(t.Context()); kind(err) != workspace.KindCommitted {
		t.Errorf("restore after commit: %v", err)
	}
	left, err := r.open().Leftovers(t.Context())
	if err != nil || len(left) != 1 || left[0].Committed != got.Commit {
		t.Errorf("leftovers: %+v, %v", left, err)
	}
	must(t, again.Release(t.Context()))
	must(t, s.Release(t.Context()))
	if out := r.git("for-each-ref", "refs/fiducial"); out != "" {
		t.Errorf("refs left: %s", out)
	}
	if out := r.git("fsck", "--strict"); strings.Contains(out, "error") || strings.Contains(out, "missing") {
		t.Errorf("fsck: %s", out)
	}
}

func TestCommitOverlapIsRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ user, run func(r *repo) }{
		"same line": {func(r *repo) { r.write("a", "user\n") }, func(r *repo) { r.write("a", "run\n") }},
		"untracked": {func(r *repo) { r.write("u", "user\n") }, func(r *repo) { r.write("u", "user\nrun\n") }},
		"staged new": {
			func(r *repo) { r.write("u", "user\n"); r.git("add", "u") },
			func(r *repo) { r.write("u", "user\nrun\n") },
		},
		"deleted by the run": {func(r *repo) { r.write("a", "user\n") }, func(r *repo) { r.remove("a") }},
		"binary":             {func(r *repo) { r.write("bin", "\x00user") }, func(r *repo) { r.write("bin", "\x00run") }},
		"staged otherwise": {
			func(r *repo) { r.write("a", "user\n"); r.git("add", "a"); r.write("a", "1\n") },
			func(r *repo) { r.write("a", "run\n") },
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t, map[string]string{"a": "1\n", "bin": "\x00one"})
			c.user(r)
			s := r.snapshot("run1")
			c.run(r)
			tree, index, head := r.dump(), r.index(), r.git("rev-parse", "HEAD")
			if _, err := s.Commit(t.Context(), "Run", workspace.CommitOptions{}); kind(err) != workspace.KindOverlap {
				t.Errorf("got %v", err)
			}
			same(t, "tree", tree, r.dump())
			if r.index() != index || r.git("rev-parse", "HEAD") != head {
				t.Error("index or HEAD changed")
			}
			if _, err := s.Commit(t.Context(), "Run", workspace.CommitOptions{WholeFiles: true}); err != nil {
				t.Errorf("whole files: %v", err)
			}
			if out := r.git("status", "--porcelain"); out != "" {
				t.Errorf("status after whole files: %s", out)
			}
		})
	}
}

func TestCommitHooks(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "1\n"})
	s := r.snapshot("run1")
	r.write("a", "run\n")
	r.hook("pre-commit", "echo no good >&2; exit 1\n")
	before, index := r.dump(), r.index()
	_, err := s.Commit(t.Context(), "Run", workspace.CommitOptions{})
	if kind(err) != workspace.KindHook || !strings.Contains(err.Error(), "no good") {
		t.Errorf("got %v", err)
	}
	same(t, "tree", before, r.dump())
	if r.index() != index || r.git("rev-list", "--count", "HEAD") != "1\n" {
		t.Error("a refused commit left traces")
	}
	// What a hook stages was verified by nobody: it is named, left in the tree, and
	// not committed. The message is the hooks' to change.
	r.hook("pre-commit", "echo formatted > a && echo more > b && git add a b\n")
	r.hook("commit-msg", "echo 'Signed: hook' >> \"$1\"\n")
	r.hook("post-commit", "git rev-parse HEAD > .git/seen\n")
	got, err := s.Commit(t.Context(), "Run", workspace.CommitOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if out := r.git("show", "HEAD:a") + r.read("a") + r.read("b"); out != "run\nformatted\nmore\n" {
		t.Errorf("got %q", out)
	}
	if !slices.Equal(got.HookStaged, []string{"a", "b"}) || !slices.Equal(got.Paths, []string{"a"}) {
		t.Errorf("the hook staged %q, the commit holds %q", got.HookStaged, got.Paths)
	}
	if out := r.git("log", "-1", "--format=%B"); !strings.Contains(out, "Signed: hook") {
		t.Errorf("message %q", out)
	}
	if strings.TrimSpace(r.read(".git/seen")) != got.Commit {
		t.Error("post-commit did not see the commit")
	}
}

func TestCommitRefusals(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "1\n"})
	s := r.snapshot("run1")
	if _, err := s.Commit(t.Context(), "Run", workspace.CommitOptions{}); kind(err) != workspace.KindNothing {
		t.Errorf("nothing: %v", err)
	}
	r.write("a", "run\n")
	if _, err := s.Commit(t.Context(), " \n", workspace.CommitOptions{}); kind(err) != workspace.KindInvalid {
		t.Errorf("message: %v", err)
	}
	r.git("config", "--global", "--unset", "user.email")
	if _, err := s.Commit(t.Context(), "Run", workspace.CommitOptions{}); kind(err) != workspace.KindIdentity || !strings.Contains(err.Error(), "user.email") {
		t.Errorf("identity: %v", err)
	}
	r.write(".git/index.lock", "")
	fallback := workspace.CommitOptions{Fallback: workspace.Identity{Name: "Fiducial", Email: "f@example.com"}}
	if _, err := s.Commit(t.Context(), "Run", fallback); kind(err) != workspace.KindGit || !strings.Contains(err.Error(), "index.lock") {
		t.Errorf("lock: %v", err)
	}
	r.remove(".git/index.lock")
	if _, err := s.Commit(t.Context(), "Run", fallback); err != nil {
		t.Errorf("fallback: %v", err)
	}
	if got := r.git("log", "-1", "--format=%an <%ae> %cn"); got != "Fiducial <f@example.com> Fiducial\n" {
		t.Errorf("got %q", got)
	}
}

func TestCommitOnDetachedHeadAndThroughFilters(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{".gitattributes": "*.bin filter=pointer\n*.txt text eol=crlf\n"})
	r.git("config", "filter.pointer.clean", "sed s/LARGE/pointer/")
	r.git("config", "filter.pointer.smudge", "sed s/pointer/LARGE/")
	r.write("m.bin", "LARGE 1\n")
	r.write("m.txt", "1\r\n2\r\n")
	r.git("add", "-A")
	r.git("commit", "-qm", "Large")
	r.git("checkout", "-q", "--detach")
	before := r.dump()
	s := r.snapshot("run1")
	r.write("m.bin", "LARGE 2\n")
	r.write("m.txt", "1\r\nrun\r\n")
	kept, err := s.Preserve(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	after := r.dump()
	if _, err := s.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	same(t, "restored", before, r.dump())
	if out := r.git("status", "--porcelain"); out != "" {
		t.Errorf("status: %s", out)
	}
	r.git("stash", "apply", "-q", kept.Stash)
	same(t, "applied", after, r.dump())
	if _, err := s.Commit(t.Context(), "Run", workspace.CommitOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := r.git("show", "HEAD:m.bin") + r.git("show", "HEAD:m.txt"); got != "pointer 2\n1\nrun\n" {
		t.Errorf("got %q", got)
	}
	if _, err := r.try("symbolic-ref", "-q", "HEAD"); err == nil {
		t.Error("HEAD is on a branch")
	}
}

func TestCommitSignsWhenToldTo(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "1\n"})
	r.git("config", "commit.gpgSign", "true")
	r.git("config", "gpg.program", "false")
	s := r.snapshot("run1") // our own commits are never signed
	r.write("a", "run\n")
	if _, err := s.Commit(t.Context(), "Run", workspace.CommitOptions{}); kind(err) != workspace.KindGit {
		t.Errorf("a signature that cannot be made: %v", err)
	}
	if r.git("rev-list", "--count", "HEAD") != "1\n" {
		t.Error("it was committed unsigned")
	}
}

// Something else moves HEAD while our commit is being made: here a hook does.
func TestB59_CommitNeverBuriesAForeignOne(t *testing.T) {
	t.Parallel()
	for name, hook := range map[string]string{
		"commit": "git update-ref refs/heads/main $(git commit-tree HEAD^{tree} -p HEAD -m Foreign)\n",
		"switch": "git update-ref refs/heads/other HEAD && git symbolic-ref HEAD refs/heads/other\n",
	} {
		r := newRepo(t, map[string]string{"a": "1\n"})
		s := r.snapshot("run1")
		r.write("a", "run\n")
		r.hook("pre-commit", hook)
		if _, err := s.Commit(t.Context(), "Run", workspace.CommitOptions{}); kind(err) != workspace.KindHeadMoved {
			t.Errorf("%s: %v", name, err)
		}
		if got := r.git("log", "--all", "--format=%s", "--grep=^Run$") + r.git("show", "HEAD:a"); got != "1\n" {
			t.Errorf("%s: %q", name, got)
		}
		if _, err := os.Stat(filepath.Join(r.dir, ".git/index.lock")); err == nil {
			t.Errorf("%s: the index is still locked", name)
		}
	}
}
