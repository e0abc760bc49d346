// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/task/workspace"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// A repo is a repository in a temporary folder, with an environment of its own.
type repo struct {
	t   testing.TB
	dir string
	env []string

	outer []string // more of the environment that the workspace is opened with
}

func testEnv(t testing.TB) []string {
	home := t.TempDir()
	write(t, home, ".gitconfig", "[user]\n\tname = Ada\n\temail = ada@example.com\n[init]\n\tdefaultBranch = main\n[protocol \"file\"]\n\tallow = always\n")
	return []string{"PATH=" + os.Getenv("PATH"), "HOME=" + home, "GIT_CONFIG_NOSYSTEM=1", "TMPDIR=" + os.TempDir()}
}

// newRepo makes a repository whose first commit holds files.
func newRepo(t testing.TB, files map[string]string) *repo {
	t.Helper()
	r := &repo{t: t, dir: t.TempDir(), env: testEnv(t)}
	r.git("init", "-q")
	for p, c := range files {
		r.write(p, c)
	}
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", "Start")
	return r
}

func (r *repo) git(args ...string) string {
	r.t.Helper()
	out, err := r.try(args...)
	if err != nil {
		r.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return out
}

func (r *repo) try(args ...string) (string, error) {
	cmd := exec.CommandContext(r.t.Context(), "git", args...)
	cmd.Dir, cmd.Env = r.dir, r.env
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err := cmd.Run()
	return out.String(), err
}

func (r *repo) write(p, content string) { r.t.Helper(); write(r.t, r.dir, p, content) }

func write(t testing.TB, dir, p, content string) {
	t.Helper()
	name := filepath.Join(dir, p)
	if err := os.MkdirAll(filepath.Dir(name), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		t.Fatal(err)
	}
}

func (r *repo) read(p string) string {
	r.t.Helper()
	b, err := os.ReadFile(filepath.Join(r.dir, p))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

func (r *repo) remove(p string) {
	r.t.Helper()
	if err := os.RemoveAll(filepath.Join(r.dir, p)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *repo) open() *workspace.Repo {
	r.t.Helper()
	w, err := workspace.Open(r.t.Context(), r.dir, workspace.Options{Env: r.env, Exclude: []string{"~*.lck"}})
	if err != nil {
		r.t.Fatal(err)
	}
	return w
}

func (r *repo) snapshot(run string) *workspace.Snapshot {
	r.t.Helper()
	s, err := r.open().Snapshot(r.t.Context(), run, now)
	if err != nil {
		r.t.Fatal(err)
	}
	return s
}

// dump is every file, link and folder but git's and ours, with mode and content.
func (r *repo) dump() map[string]string {
	r.t.Helper()
	m := map[string]string{}
	err := filepath.WalkDir(r.dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(r.dir, p)
		if rel == ".git" || rel == ".fiducial" {
			if d.IsDir() {
				return fs.SkipDir
			}
			return nil
		}
		st, err := os.Lstat(p)
		if err != nil {
			return err
		}
		switch {
		case d.IsDir():
			m[rel] = "folder"
		case st.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(p)
			m[rel] = "link " + target
			return err
		default:
			b, err := os.ReadFile(p)
			m[rel] = fmt.Sprintf("%v %q", st.Mode(), b)
			return err
		}
		return nil
	})
	if err != nil {
		r.t.Fatal(err)
	}
	return m
}

func (r *repo) index() string {
	r.t.Helper()
	b, err := os.ReadFile(strings.TrimSpace(r.git("rev-parse", "--path-format=absolute", "--git-path", "index")))
	if err != nil {
		r.t.Fatal(err)
	}
	return string(b)
}

func diffMaps(want, got map[string]string) string {
	var b strings.Builder
	for p, w := range want {
		if g, ok := got[p]; !ok {
			fmt.Fprintf(&b, "missing %q: %s\n", p, w)
		} else if g != w {
			fmt.Fprintf(&b, "%q: got %s, want %s\n", p, g, w)
		}
	}
	for p, g := range got {
		if _, ok := want[p]; !ok {
			fmt.Fprintf(&b, "extra %q: %s\n", p, g)
		}
	}
	return b.String()
}

func same(t *testing.T, what string, want, got map[string]string) {
	t.Helper()
	if d := diffMaps(want, got); d != "" {
		t.Errorf("%s:\n%s", what, d)
	}
}

func paths(changes []workspace.Change) string {
	var l []string
	for _, c := range changes {
		l = append(l, c.Kind.String()+" "+c.Path)
	}
	return strings.Join(l, ", ")
}
