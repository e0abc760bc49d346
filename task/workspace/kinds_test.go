// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/task/workspace"
)

// design is what a run changes in each kind of repository: hw/board.kicad_sch, and a new file beside it.
const design = "hw/board.kicad_sch"

// Every kind of repository that people have: what a run changes is told exactly, put back byte for byte, and committed
// alone, and git's own view of the tree is clean before and after.
func TestKinds(t *testing.T) {
	t.Parallel()
	for name, make := range kinds() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, way := range []string{"restore", "commit"} {
				r := newRepo(t, map[string]string{design: "sheet\n", "README.md": "x\n"})
				r = make(r)
				w, err := workspace.Open(t.Context(), filepath.Join(r.dir, "hw"), workspace.Options{Env: append(slices.Clone(r.env), r.outer...)})
				must(t, err)
				must(t, w.Preflight(t.Context(), false))
				status := r.git("status", "--porcelain") // first: it may write into the index
				before, index := r.dump(), r.index()
				s, err := w.Snapshot(t.Context(), "run1", now)
				must(t, err)
				if again, err := w.Reopen(t.Context(), "run1"); err != nil || again.Head() != s.Head() {
					t.Fatalf("reopen: %v", err)
				}
				if got, err := s.Changed(t.Context()); err != nil || len(got) > 0 {
					t.Fatalf("changed before anything was: %s, %v", paths(got), err)
				}
				old := r.read(design)
				end := "\n"
				if strings.HasSuffix(old, "\r\n") {
					end = "\r\n"
				}
				r.write(design, old+"run"+end)
				r.write("hw/new.md", "run\n")
				got, err := s.Changed(t.Context())
				if want := "modified " + design + ", added hw/new.md"; err != nil || paths(got) != want {
					t.Fatalf("changed %s, %v, want %s", paths(got), err, want)
				}
				if way == "restore" {
					if _, err := s.Restore(t.Context()); err != nil {
						t.Fatal(err)
					}
					same(t, "restored", before, r.dump())
					if r.index() != index {
						t.Error("the index is another one")
					}
				} else {
					c, err := s.Commit(t.Context(), "Run", workspace.CommitOptions{Fallback: workspace.Identity{Name: "F", Email: "f@example.com"}})
					if err != nil {
						t.Fatal(err)
					}
					if want := []string{design, "hw/new.md"}; !slices.Equal(c.Paths, want) {
						t.Errorf("committed %q, want %q", c.Paths, want)
					}
					if out := strings.Fields(r.git("show", "--format=", "--name-only", "HEAD")); !slices.Equal(out, c.Paths) {
						t.Errorf("git shows %q", out)
					}
					if out := r.git("show", "HEAD:"+design); !strings.HasSuffix(strings.ReplaceAll(out, "\r\n", "\n"), "sheet\nrun\n") {
						t.Errorf("committed content %q", out)
					}
					must(t, s.Release(t.Context()))
				}
				if out := r.git("status", "--porcelain"); out != status {
					t.Errorf("%s: status %q, before %q", way, out, status)
				}
				if out, err := r.try("fsck", "--no-dangling", "--connectivity-only"); err != nil {
					t.Errorf("%s: fsck: %s", way, out)
				}
			}
		})
	}
}

// kinds turn a plain repository into another one, or into another working tree of it.
func kinds() map[string]func(*repo) *repo {
	config := func(pairs ...string) func(*repo) *repo {
		return func(r *repo) *repo {
			for i := 0; i < len(pairs); i += 2 {
				r.git("config", pairs[i], pairs[i+1])
			}
			return r
		}
	}
	refresh := func(r *repo) *repo { // as a fresh clone with these settings would be
		r.remove(design)
		r.git("checkout", "--", ".")
		return r
	}
	return map[string]func(*repo) *repo{
		"plain":         func(r *repo) *repo { return r },
		"detached head": func(r *repo) *repo { r.git("checkout", "-q", "--detach"); return r },
		"worktree": func(r *repo) *repo {
			dir := filepath.Join(r.t.TempDir(), "a tree")
			r.git("worktree", "add", "-q", "-b", "side", dir)
			return &repo{t: r.t, dir: dir, env: r.env}
		},
		"submodule": func(r *repo) *repo { // the board is in one
			super := newRepo(r.t, map[string]string{"top": "1\n"})
			super.git("submodule", "--quiet", "add", r.dir, "boards/one")
			super.git("commit", "-qm", "Board")
			return &repo{t: r.t, dir: filepath.Join(super.dir, "boards/one"), env: super.env}
		},
		"submodule beside": func(r *repo) *repo {
			lib := newRepo(r.t, map[string]string{"part.kicad_sym": "1\n"})
			r.git("submodule", "--quiet", "add", lib.dir, "hw/lib")
			r.git("config", "-f", ".gitmodules", "submodule.hw/lib.ignore", "all")
			r.git("commit", "-qam", "Library")
			r.write("hw/lib/part.kicad_sym", "changed by somebody\n")
			r.write("hw/lib/new.kicad_sym", "new\n")
			return r
		},
		"sparse checkout": func(r *repo) *repo {
			r.write("firmware/main.c", "int main;\n")
			r.git("add", "-A")
			r.git("commit", "-qm", "Firmware")
			r.git("sparse-checkout", "set", "--cone", "hw")
			return r
		},
		"sparse index": func(r *repo) *repo {
			r.write("firmware/deep/main.c", "int main;\n")
			r.git("add", "-A")
			r.git("commit", "-qm", "Firmware")
			r.git("sparse-checkout", "set", "--cone", "--sparse-index", "hw")
			return r
		},
		"autocrlf": func(r *repo) *repo { return refresh(config("core.autocrlf", "true")(r)) },
		"eol=crlf": func(r *repo) *repo {
			r.write(".gitattributes", "*.kicad_sch text eol=crlf\n")
			r.git("add", "-A")
			r.git("commit", "-qm", "Ends")
			return refresh(r)
		},
		"filter": func(r *repo) *repo {
			config("filter.f.clean", "sed s/SMUDGED//", "filter.f.smudge", "sed s/^sheet/SMUDGEDsheet/", "filter.f.required", "true")(r)
			r.write(".gitattributes", "*.kicad_sch filter=f\n")
			r.git("add", "-A")
			r.git("commit", "-qm", "Filter")
			return refresh(r)
		},
		"LFS without git-lfs": func(r *repo) *repo {
			r.write(".gitattributes", "*.step filter=lfs diff=lfs merge=lfs -text\n")
			r.write("hw/case.step", "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 1\n")
			r.git("add", "-A")
			r.git("commit", "-qm", "Pointer")
			return r
		},
		"split index":         func(r *repo) *repo { r.git("update-index", "--split-index"); return r },
		"many files":          config("feature.manyFiles", "true"),
		"no modes":            config("core.fileMode", "false"),
		"no links":            config("core.symlinks", "false"),
		"links as files":      asFiles,
		"another encoding":    config("i18n.commitEncoding", "ISO-8859-1"),
		"untracked not shown": config("status.showUntrackedFiles", "no"),
		"nobody":              func(r *repo) *repo { r.git("config", "--global", "--remove-section", "user"); return r },
		"hooks elsewhere":     config("core.hooksPath", "/nowhere"),
		"ignored outputs":     ignoring,
		"names":               naming,
		"case collision":      func(r *repo) *repo { r.write("hw/BOARD.kicad_sch", "other\n"); return r.commit("Case") },
		"read-only file":      func(r *repo) *repo { r.chmod(0o444, "README.md"); return r },
		"modes": func(r *repo) *repo {
			r.write("hw/gen.sh", "#!/bin/sh\n")
			r.chmod(0o755, "hw/gen.sh")
			return r.commit("Mode")
		},
		"environment": func(r *repo) *repo {
			return r.with("GIT_DIR=/nowhere", "GIT_INDEX_FILE=/nowhere", "GIT_WORK_TREE=/", "GIT_LITERAL_PATHSPECS=1")
		},
		"shallow":                shallow,
		"attributes that change": func(r *repo) *repo { r.write(".gitattributes", "* -text\n"); return r.commit("Attributes") },
	}
}

func ignoring(r *repo) *repo {
	r.write(".gitignore", "hw/gerber/\n*.rpt\n")
	r.commit("Ignore")
	r.write("hw/gerber/top.gbr", "G04\n")
	r.write("hw/erc.rpt", "x\n")
	return r
}

func naming(r *repo) *repo {
	for _, name := range []string{"a b", "-o", "--help", "new\nline", "tab\t", `quo"te`, "it's", `back\slash`, "emoji \U0001F600", "~{RESET}", "$HOME", "*", "[x]", ":(top)x", "caf\u00e9", "cafe\u0301", "bytes\xff", "#x", "!y"} {
		r.write("hw/"+name+".kicad_sch", "x\n")
		r.write("hw/"+name+"/inner", "x\n")
	}
	return r.commit("Names")
}

func shallow(r *repo) *repo {
	r.write("README.md", "2\n")
	r.commit("Second")
	dir := filepath.Join(r.t.TempDir(), "clone")
	r.git("clone", "-q", "--depth", "1", "file://"+r.dir, dir)
	return &repo{t: r.t, dir: dir, env: r.env}
}

func (r *repo) commit(message string) *repo {
	r.git("add", "-A")
	r.git("commit", "-qm", message)
	return r
}

func (r *repo) chmod(mode os.FileMode, p string) {
	r.t.Helper()
	if err := os.Chmod(filepath.Join(r.dir, p), mode); err != nil {
		r.t.Fatal(err)
	}
}

// with is the repository as a program sees it whose environment has these variables; git in the test does not.
func (r *repo) with(env ...string) *repo {
	r.outer = env
	return r
}

// Repositories that no run can begin in say so, each by its own check, and nothing is written.
func TestKinds_Refused(t *testing.T) {
	t.Parallel()
	conflict := func(r *repo) {
		r.git("checkout", "-q", "-b", "side")
		r.write(design, "side\n")
		r.commit("Side")
		r.git("checkout", "-q", "main")
		r.write(design, "main\n")
		r.commit("Main")
	}
	for name, tt := range map[string]struct {
		make  func(*repo)
		check workspace.Check
		says  string
	}{
		"merge":       {func(r *repo) { conflict(r); _, _ = r.try("merge", "side") }, workspace.CheckProgress, "a merge is in progress"},
		"rebase":      {func(r *repo) { conflict(r); _, _ = r.try("rebase", "side") }, workspace.CheckProgress, "a rebase is in progress"},
		"cherry-pick": {func(r *repo) { conflict(r); _, _ = r.try("cherry-pick", "side") }, workspace.CheckProgress, "a cherry-pick is in progress"},
		"stash pop": {func(r *repo) {
			r.write(design, "stashed\n")
			r.git("stash", "-q")
			r.write(design, "main\n")
			r.commit("Main")
			_, _ = r.try("stash", "pop")
		}, workspace.CheckProgress, "unresolved conflicts"},
		"unborn branch": {func(r *repo) { r.git("checkout", "-q", "--orphan", "empty") }, workspace.CheckCommit, "no commit yet"},
		"submodule moved": {func(r *repo) {
			lib := newRepo(r.t, map[string]string{"a": "1\n"})
			r.git("submodule", "--quiet", "add", lib.dir, "lib")
			r.commit("Library")
			sub := &repo{t: r.t, dir: filepath.Join(r.dir, "lib"), env: r.env}
			sub.write("a", "2\n")
			sub.commit("Moved")
		}, workspace.CheckClean, `"lib"`},
		"mode changed": {func(r *repo) { r.chmod(0o755, design) }, workspace.CheckClean, design},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t, map[string]string{design: "sheet\n"})
			tt.make(r)
			before := r.dump()
			err := r.open().Preflight(t.Context(), false)
			e, ok := errors.AsType[*workspace.PreflightError](err)
			if !ok || e.Check != tt.check || !strings.Contains(e.Reason, tt.says) || e.Why == "" || len(e.Remedies) == 0 {
				t.Errorf("got %v, want check %d, %q", err, tt.check, tt.says)
			}
			same(t, "tree", before, r.dump())
			if _, err := os.Stat(filepath.Join(r.dir, ".fiducial")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a folder was made: %v", err)
			}
		})
	}
}

// A repository that belongs to somebody else is refused by git; its advice is passed on.
func TestKinds_SafeDirectory(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can give a repository away")
	}
	r := newRepo(t, map[string]string{design: "sheet\n"})
	for _, name := range []string{".", ".git"} {
		if err := os.Chown(filepath.Join(r.dir, name), 12345, 12345); err != nil {
			t.Fatal(err)
		}
	}
	_, err := workspace.Open(t.Context(), r.dir, workspace.Options{Env: r.env})
	if e, ok := errors.AsType[*workspace.PreflightError](err); !ok || e.Check != workspace.CheckRepository || !strings.Contains(e.Reason, "safe.directory") {
		t.Errorf("got %v", err)
	}
}

// A filter whose program is missing, and a signature that cannot be made, end the commit with git's words and advice; the
// run's changes stay in the tree.
func TestKinds_CommitFails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		config []string
		attr   string
		says   string
	}{
		"signature": {[]string{"commit.gpgSign", "true", "gpg.program", "/nowhere/gpg"}, "", "commit.gpgSign"},
		"filter":    {[]string{"filter.gone.clean", "/nowhere/clean", "filter.gone.required", "true"}, "*.kicad_sch filter=gone\n", "filter"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRepo(t, map[string]string{design: "sheet\n", ".gitattributes": tt.attr})
			s := r.snapshot("run1")
			for i := 0; i < len(tt.config); i += 2 {
				r.git("config", tt.config[i], tt.config[i+1])
			}
			before := r.dump()
			r.write(design, "run\n")
			_, err := s.Commit(t.Context(), "Run", workspace.CommitOptions{})
			if e, ok := errors.AsType[*workspace.Error](err); !ok || e.Advice == "" || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("got %v", err)
			}
			if got := r.git("rev-list", "--count", "HEAD"); got != "1\n" || r.read(design) != "run\n" {
				t.Errorf("%s commits, sheet %q", got, r.read(design))
			}
			if _, err := s.Restore(t.Context()); err != nil {
				t.Fatal(err)
			}
			same(t, "restored", before, r.dump())
		})
	}
}

// Our message is UTF-8 whatever the repository's encoding is.
func TestKinds_CommitEncoding(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{design: "sheet\n"})
	r.git("config", "i18n.commitEncoding", "ISO-8859-1")
	s := r.snapshot("run1")
	r.write(design, "run\n")
	if _, err := s.Commit(t.Context(), "R1 auf 10 k\u03a9", workspace.CommitOptions{}); err != nil {
		t.Fatal(err)
	}
	if got := r.git("cat-file", "commit", "HEAD"); !strings.Contains(got, "R1 auf 10 k\u03a9") || strings.Contains(got, "encoding") {
		t.Errorf("got %q", got)
	}
}

// A hook that hangs ends when the run is stopped, with what it had started, and nothing is committed.
func TestKinds_HookHangs(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{design: "sheet\n"})
	s := r.snapshot("run1")
	r.write(design, "run\n")
	pid := filepath.Join(t.TempDir(), "pid")
	r.hook("pre-commit", "sleep 600 &\necho $! > "+pid+"\nwait\n")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		for ctx.Err() == nil {
			if text, err := os.ReadFile(pid); err == nil && len(text) > 0 {
				cancel()
				return
			}
			time.Sleep(5 * time.Millisecond)
		}
	}()
	_, err := s.Commit(ctx, "Run", workspace.CommitOptions{})
	if kind(err) != workspace.KindHook || !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := r.git("rev-list", "--count", "HEAD"); got != "1\n" || r.read(design) != "run\n" {
		t.Errorf("%s commits, sheet %q", got, r.read(design))
	}
	child, err := strconv.Atoi(strings.TrimSpace(string(mustRead(t, pid))))
	if err != nil {
		t.Fatal(err)
	}
	for end := time.Now().Add(10 * time.Second); alive(child); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("the hook's child lives on")
		}
	}
}

// alive reports whether a process runs; one that nobody has reaped yet does not.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	if err != nil || p.Signal(syscall.Signal(0)) != nil {
		return false
	}
	stat, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return !strings.Contains(string(stat), ") Z")
}

func mustRead(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

// Whether git knows whose commit it will be is told before the work, and by nothing but what a person has set.
func TestPreflightIdentity(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{design: "sheet\n"})
	must(t, r.open().PreflightIdentity(t.Context()))
	r.git("config", "--global", "--unset", "user.email")
	err := r.open().PreflightIdentity(t.Context())
	if e, ok := errors.AsType[*workspace.PreflightError](err); !ok || e.Check != workspace.CheckIdentity || !strings.Contains(strings.Join(e.Remedies, " "), "user.email") {
		t.Errorf("got %v", err)
	}
	r.env = append(r.env, "GIT_AUTHOR_EMAIL=a@example.com", "GIT_COMMITTER_EMAIL=a@example.com")
	must(t, r.open().PreflightIdentity(t.Context()))
}
