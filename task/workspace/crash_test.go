//go:build unix

// SPDX-License-Identifier: Apache-2.0

package workspace_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/task/workspace"
)

// child runs one of the children below in a process of its own: this test binary,
// told by CHILD what to do in which folder.
func (r *repo) child(what string, uid uint32, more ...string) *exec.Cmd {
	r.t.Helper()
	bin, err := os.Executable()
	must(r.t, err)
	cmd := exec.CommandContext(r.t.Context(), bin, "-test.run=^TestChild$", "-test.v")
	cmd.Env = append(append(append([]string{}, r.env...), "CHILD="+what, "CHILD_DIR="+r.dir), more...)
	if uid != 0 {
		b, err := os.ReadFile(bin)
		must(r.t, err)
		dir, err := os.MkdirTemp("", "child")
		must(r.t, err)
		r.t.Cleanup(func() { _ = os.RemoveAll(dir) })
		must(r.t, os.Chmod(dir, 0o755))
		cmd.Path = filepath.Join(dir, "child")
		must(r.t, os.WriteFile(cmd.Path, b, 0o755))
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	return cmd
}

func TestChild(t *testing.T) {
	what, dir := os.Getenv("CHILD"), os.Getenv("CHILD_DIR")
	if what == "" {
		t.Skip("only as a child of another test")
	}
	w, err := workspace.Open(t.Context(), dir, workspace.Options{})
	must(t, err)
	if what == "full" || what == "full snapshot" {
		signal.Ignore(syscall.SIGXFSZ)
		must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 4096, Max: 4096}))
	}
	if strings.Contains(what, "snapshot") {
		_, err := w.Snapshot(t.Context(), "run1", now)
		fmt.Printf("\nanswer: %d %v\n", kind(err), err)
		return
	}
	if what == "lock" {
		_, err := w.Lock(t.Context(), "run1", now)
		fmt.Printf("\nanswer: %d %v\n", kind(err), err)
		time.Sleep(time.Minute)
	}
	s, err := w.Reopen(t.Context(), "run1")
	must(t, err)
	if what == "commit" {
		must(t, os.WriteFile(filepath.Join(dir, ".git/pid"), fmt.Append(nil, os.Getpid()), 0o600))
		_, err := s.Commit(t.Context(), "Run", workspace.CommitOptions{})
		fmt.Printf("\nanswer: %d %v\n", kind(err), err)
		return
	}
	fmt.Println("\nanswer: begin")
	_, err = s.Restore(t.Context())
	fmt.Printf("\nanswer: %d %v\n", kind(err), err)
}

// answer waits for a line that the child writes.
func answer(t *testing.T, out *bufio.Scanner) string {
	t.Helper()
	var all []string
	for out.Scan() {
		if a, ok := strings.CutPrefix(out.Text(), "answer: "); ok {
			return a
		}
		all = append(all, out.Text())
	}
	t.Fatalf("the child did not answer:\n%s", strings.Join(all, "\n"))
	return ""
}

func start(t *testing.T, cmd *exec.Cmd) *bufio.Scanner {
	t.Helper()
	pipe, err := cmd.StdoutPipe()
	must(t, err)
	cmd.Stderr = cmd.Stdout
	must(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return bufio.NewScanner(pipe)
}

func TestRestoreSurvivesSIGKILL(t *testing.T) {
	t.Parallel()
	tree := map[string]string{}
	for i := range 300 {
		tree[fmt.Sprintf("d%d/f%d", i%7, i)] = strings.Repeat(fmt.Sprintln("line", i), 400)
	}
	r := newRepo(t, tree)
	r.write("untracked", "user")
	before, index := r.dump(), r.index()
	r.snapshot("run1")
	partial := 0
	for round := range 8 {
		for p := range tree {
			r.write(p, "run")
		}
		r.write("new/file", "run")
		cmd := r.child("restore", 0)
		out := start(t, cmd)
		answer(t, out)
		time.Sleep(time.Duration(round*12) * time.Millisecond)
		must(t, cmd.Process.Kill())
		_ = cmd.Wait()
		left := 0
		for p := range tree {
			switch r.read(p) {
			case "run":
				left++
			case tree[p]:
			default:
				t.Fatalf("%s is neither the old nor the new content", p)
			}
		}
		if left > 0 && left < len(tree) {
			partial++
		}
		s, err := r.open().Reopen(t.Context(), "run1")
		must(t, err)
		if _, err := s.Restore(t.Context()); err != nil {
			t.Fatal(err)
		}
		same(t, fmt.Sprintf("round %d, %d of %d were left", round, left, len(tree)), before, r.dump())
		if r.index() != index {
			t.Error("the index changed")
		}
		if m, _ := filepath.Glob(filepath.Join(r.dir, ".fiducial/restore-*")); len(m) > 0 {
			t.Errorf("left behind: %q", m)
		}
	}
	t.Logf("%d of 8 kills came in the middle of the work", partial)
}

// The process dies before, and right after, the branch moves.
func TestCommitSurvivesSIGKILL(t *testing.T) {
	t.Parallel()
	for _, when := range []string{"prepared", "committed"} {
		r := newRepo(t, map[string]string{"a": "1\n", "staged": "1\n"})
		r.write("staged", "user\n")
		r.git("add", "staged")
		before := r.dump()
		r.snapshot("run1")
		r.write("a", "run\n")
		r.hook("reference-transaction", "if [ \"$1\" = "+when+" ] && grep -q refs/heads; then kill -9 $(cat .git/pid); sleep 1; exit 1; fi\n")
		temp := t.TempDir()
		cmd := r.child("commit", 0, "TMPDIR="+temp)
		if out, err := cmd.CombinedOutput(); err == nil {
			t.Fatalf("%s: the child was not killed: %s", when, out)
		}
		r.remove(".git/hooks/reference-transaction")
		time.Sleep(1500 * time.Millisecond) // git itself goes on without its parent
		sweeps(t, r, temp)
		s, err := r.open().Reopen(t.Context(), "run1")
		must(t, err)
		if when == "prepared" {
			if s.Committed() != "" || r.git("rev-list", "--count", "HEAD") != "1\n" {
				t.Errorf("committed %q", s.Committed())
			}
			if _, err := s.Restore(t.Context()); err != nil {
				t.Error(err)
			}
			same(t, "restored", before, r.dump())
			continue
		}
		if s.Committed() != strings.TrimSpace(r.git("rev-parse", "HEAD")) || r.git("show", "HEAD:a") != "run\n" {
			t.Errorf("%s: committed %q", when, s.Committed())
		}
		must(t, s.Release(t.Context()))
		if got := r.git("status", "--porcelain"); got != "M  staged\n" {
			t.Errorf("%s: status %q", when, got)
		}
	}
}

// sweeps has another process begin, which removes what a killed one has left in a temporary folder.
func sweeps(t *testing.T, r *repo, temp string) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(temp, "fiducial-*"))
	must(t, err)
	if len(left) == 0 {
		t.Error("the killed process left no temporary folder, so this shows nothing")
	}
	for _, dir := range left {
		old := time.Now().Add(-2 * time.Minute)
		must(t, os.Chtimes(dir, old, old))
	}
	cmd := r.child("lock", 0, "TMPDIR="+temp)
	answer(t, start(t, cmd))
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	if left, err := filepath.Glob(filepath.Join(temp, "fiducial-*")); err != nil || len(left) > 0 {
		t.Errorf("left %q, %v", left, err)
	}
}

func TestLockOfADeadProcessIsFree(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "1"})
	cmd := r.child("lock", 0)
	if a := answer(t, start(t, cmd)); a != "0 <nil>" {
		t.Fatal(a)
	}
	_, err := r.open().Lock(t.Context(), "run2", now)
	if kind(err) != workspace.KindLocked || !strings.Contains(err.Error(), fmt.Sprint(cmd.Process.Pid)) || !strings.Contains(err.Error(), "run1") {
		t.Errorf("got %v", err)
	}
	must(t, cmd.Process.Kill())
	_ = cmd.Wait()
	l, err := r.open().Lock(t.Context(), "run2", now)
	must(t, err)
	must(t, l.Release())
}

func TestDiskFull(t *testing.T) {
	t.Parallel()
	big := strings.Repeat("0123456789", 1000)
	r := newRepo(t, map[string]string{"big": big, "small": "1"})
	s := r.snapshot("run1")
	r.write("big", "run")
	r.write("small", "run")
	if a := lastAnswer(t, start(t, r.child("full", 0))); !strings.HasPrefix(a, fmt.Sprint(workspace.KindIO)+" ") || !strings.Contains(a, `"big"`) {
		t.Errorf("restore answered %q", a)
	}
	if r.read("big") != "run" || r.read("small") != "1" { // whole or not at all, and the rest goes on
		t.Errorf("big %q, small %q", r.read("big"), r.read("small"))
	}
	if _, err := s.Restore(t.Context()); err != nil || r.read("big") != big {
		t.Errorf("with space again: %v", err)
	}
	must(t, s.Release(t.Context()))

	r.write("big", randomish(40000))
	before := r.dump()
	if a := lastAnswer(t, start(t, r.child("full snapshot", 0))); strings.HasPrefix(a, "0 ") {
		t.Errorf("snapshot answered %q", a)
	}
	same(t, "tree", before, r.dump())
	if left, err := r.open().Leftovers(t.Context()); err != nil || len(left) > 0 {
		t.Errorf("a snapshot that failed is listed: %v, %v", left, err)
	}
}

func randomish(n int) string { // does not compress
	b := make([]byte, n)
	x := uint32(1)
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return string(b)
}

func lastAnswer(t *testing.T, out *bufio.Scanner) string {
	t.Helper()
	a := answer(t, out)
	if a == "begin" {
		return answer(t, out)
	}
	return a
}

func TestB4_UnreadableFileIsARefusal(t *testing.T) {
	t.Parallel()
	r := newRepo(t, map[string]string{"a": "1", "secret": "2"})
	must(t, os.Chmod(filepath.Join(r.dir, "secret"), 0))
	if os.Getuid() != 0 {
		if _, err := r.open().Snapshot(t.Context(), "run1", now); kind(err) != workspace.KindUnreadable {
			t.Errorf("got %v", err)
		}
		return
	}
	const nobody = 65534 // root reads everything, so the child is somebody else
	for _, dir := range []string{r.dir, homeOf(r)} {
		for d := dir; d != os.TempDir() && d != "/"; d = filepath.Dir(d) {
			must(t, os.Chmod(d, 0o755))
		}
		must(t, filepath.Walk(dir, func(p string, _ os.FileInfo, err error) error {
			if err != nil {
				return err
			}
			return os.Chown(p, nobody, nobody)
		}))
	}
	a := answer(t, start(t, r.child("snapshot", nobody)))
	if !strings.HasPrefix(a, fmt.Sprint(workspace.KindUnreadable)+" ") || !strings.Contains(a, `"secret"`) {
		t.Errorf("got %q", a)
	}
}

func homeOf(r *repo) string {
	for _, kv := range r.env {
		if h, ok := strings.CutPrefix(kv, "HOME="); ok {
			return h
		}
	}
	return ""
}
