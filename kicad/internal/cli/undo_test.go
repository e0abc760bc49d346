// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/kicad/internal/cli"
	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/internal/runs"
	"github.com/fiducial-dev/fiducial/task/workspace"
)

// A tree is a repository whose commits are told to be those of runs.
type repository struct {
	*testing.T
	dir string
	env []string
}

const sheetFile = "p.kicad_sch"

func newRepository(t *testing.T) *repository {
	t.Helper()
	r := &repository{T: t, dir: t.TempDir()}
	r.env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org",
	}
	r.git("init", "-q", "-b", "main")
	kicadtest.Write(t, r.dir, map[string]string{
		"p.kicad_pro": "{}\n", sheetFile: kicadtest.Divider("p").String(), ".gitignore": ".fiducial/\n",
		"docs/CHANGELOG.md": "# Changelog\n\nWhat changed.\n",
	})
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "start")
	return r
}

func (r *repository) git(args ...string) string {
	r.Helper()
	cmd := exec.CommandContext(r.Context(), "git", append([]string{"-C", r.dir}, args...)...)
	cmd.Env = r.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (r *repository) read(name string) string {
	r.Helper()
	data, err := os.ReadFile(filepath.Join(r.dir, name))
	if err != nil {
		r.Fatal(err)
	}
	return string(data)
}

func (r *repository) replace(name, old, now string) {
	r.Helper()
	text := r.read(name)
	if !strings.Contains(text, old) {
		r.Fatalf("%s has no %q", name, old)
	}
	kicadtest.Write(r.T, r.dir, map[string]string{name: strings.Replace(text, old, now, 1)})
}

// done makes a commit that looks like a run's: a change of the sheet and an entry at the head of the changelog.
func (r *repository) done(id, old, now string) string {
	r.Helper()
	r.replace(sheetFile, old, now)
	r.replace("docs/CHANGELOG.md", "What changed.\n", "What changed.\n\n## 2026-11-30: "+now+"\n\n- Run "+id+"\n")
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "set "+now)
	m := runs.Meta{
		ID: id, Request: "set " + now, Outcome: runs.Done, Commit: r.git("rev-parse", "HEAD"), Files: []string{sheetFile, "docs/CHANGELOG.md"},
		Started: time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC),
	}
	if err := runs.Write(r.dir, m); err != nil {
		r.Fatal(err)
	}
	return m.Commit
}

// fiducial runs the command and wants an exit code and words in what it says.
func (r *repository) fiducial(code int, words string, args ...string) {
	r.Helper()
	var out bytes.Buffer
	got := cli.Run(r.Context(), cli.Env{In: strings.NewReader(""), Out: &out, Err: &out, Environ: r.env, Dir: r.dir}, args)
	if got != code || !strings.Contains(out.String(), words) {
		r.Errorf("fiducial %s: exit code %d, want %d with %q in\n%s", strings.Join(args, " "), got, code, words, out.String())
	}
}

// unchanged runs what must refuse, and wants HEAD, files, index and stashes as they were.
func (r *repository) unchanged(words string, args ...string) {
	r.Helper()
	look := func() string {
		return r.git("rev-parse", "HEAD") + r.git("status", "--porcelain", "--branch") + r.git("diff") + r.git("diff", "--cached") + r.git("stash", "list")
	}
	before := look()
	r.fiducial(2, words, args...)
	if d := cmp.Diff(before, look()); d != "" {
		r.Errorf("fiducial %v changed something (-before +after)\n%s", args, d)
	}
}

func TestUndo(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	start := r.read(sheetFile)
	commit := r.done("20261130-080000-001", `"10k"`, `"47k"`)
	r.fiducial(0, "run fiducial check", "undo", "last")
	if got := r.read(sheetFile); got != start {
		t.Error("the sheet is not what it was")
	}
	if strings.Contains(r.read("docs/CHANGELOG.md"), "47k") {
		t.Error("the changelog still tells of the run")
	}
	message := r.git("log", "-1", "--format=%B")
	if !strings.Contains(message, "This reverts commit "+commit+".") || !strings.Contains(message, "Fiducial-Undo: 20261130-080000-001") || r.git("status", "--porcelain") != "" {
		t.Errorf("message %q, status %q", message, r.git("status", "--porcelain"))
	}
	m, err := runs.Read(r.dir, "20261130-080000-001")
	if err != nil || m.Undone != r.git("rev-parse", "HEAD") || m.UndoneAt.IsZero() || m.Commit != commit {
		t.Errorf("run.json %+v, %v", m, err)
	}
	r.unchanged("is undone already, by commit "+m.Undone[:12], "undo", "last")
	r.git("revert", "--no-edit", "HEAD") // it is in force again
	r.fiducial(0, "undone: run", "undo", "last")
	if got := r.read(sheetFile); got != start {
		t.Error("the sheet is not what it was after the second undo")
	}
}

// TestUndoEarlier takes back a run that is not the last: what came later stays, in the changelog too.
func TestUndoEarlier(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.done("20261130-080000-001", `(property "Value" "10k"`, `(property "Value" "47k"`)
	r.done("20261130-080000-002", `"OUT"`, `"OUT2"`)
	r.fiducial(0, "undone: run 20261130-080000-001", "undo", "001")
	sheet, log := r.read(sheetFile), r.read("docs/CHANGELOG.md")
	if !strings.Contains(sheet, `"OUT2"`) || strings.Contains(sheet, `"47k"`) {
		t.Error("the sheet: the later change is gone or the earlier one is there")
	}
	if strings.Contains(log, "080000-001") || !strings.Contains(log, "080000-002") || !strings.HasPrefix(log, "# Changelog\n\nWhat changed.\n") {
		t.Errorf("the changelog is\n%s", log)
	}
}

func TestUndoRefuses(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	first := r.done("20261130-080000-001", `"10k"`, `"47k"`)
	r.done("20261130-080000-002", `"47k"`, `"470k"`)
	r.unchanged("later changes are in the same places of "+sheetFile, "undo", "001")
	r.fiducial(2, "fiducial undo 20261130-080000-002", "undo", "001")
	r.unchanged("there is no run", "undo", "nothing")

	r.git("checkout", "-q", "-b", "other", first)
	r.unchanged("is not in the history of the branch", "undo", "002")
	r.git("checkout", "-q", "main")

	r.replace(sheetFile, `"470k"`, `"1k"`)
	r.unchanged("the working tree is not clean", "undo", "002")
	r.git("checkout", "--", sheetFile)
	kicadtest.Write(t, r.dir, map[string]string{"new.txt": "mine"})
	r.unchanged("the working tree is not clean", "undo", "002")
	if err := os.Remove(filepath.Join(r.dir, "new.txt")); err != nil {
		t.Fatal(err)
	}

	lock := "~" + sheetFile + ".lck" // case 27: KiCad would write its own state over ours
	kicadtest.Write(t, r.dir, map[string]string{lock: `{"hostname":"bench","username":"ada"}`})
	r.unchanged("is open in KiCad: ada on bench", "undo", "002")
	if err := os.Remove(filepath.Join(r.dir, lock)); err != nil {
		t.Fatal(err)
	}

	for id, m := range map[string]runs.Meta{
		"20261130-080000-003": {Outcome: runs.Refused},
		"20261130-080000-004": {Outcome: runs.Done, DryRun: true},
		"20261130-080000-005": {},
		"20261130-080000-006": {Outcome: runs.Done, Commit: "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567"},
	} {
		m.ID = id
		if err := runs.Write(r.dir, m); err != nil {
			t.Fatal(err)
		}
	}
	r.unchanged("has no commit", "undo", "003")
	r.unchanged("was a dry run", "undo", "004")
	r.unchanged("it was interrupted", "undo", "005")
	r.unchanged("is not in this repository", "undo", "006")
	r.env = append(r.env, "GIT_AUTHOR_NAME=", "GIT_COMMITTER_NAME=", "GIT_AUTHOR_EMAIL=", "GIT_COMMITTER_EMAIL=")
	r.unchanged("git config --global user.name", "undo", "002")
}

// TestRecover lists, shows, applies and drops the work of a failed run (B-54).
func TestRecover(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	r.fiducial(0, "nothing is kept", "recover")
	fail := func(id, old, now string, files map[string]string) {
		r.replace(sheetFile, old, now)
		kicadtest.Write(t, r.dir, files)
		r.git("stash", "push", "-q", "--include-untracked", "-m", "fiducial failed run "+id)
		if err := runs.Write(r.dir, runs.Meta{ID: id, Request: "set " + now, Outcome: runs.Failed, Preserved: "x"}); err != nil {
			t.Fatal(err)
		}
	}
	start := r.read(sheetFile)
	fail("20261130-080000-001", `"10k"`, `"47k"`, map[string]string{"docs/NEW.md": "one\ntwo\n"})
	fail("20261130-080000-002", `"OUT"`, `"OUT2"`, nil)
	r.replace("p.kicad_pro", "{}", `{"a": 1}`)
	r.git("stash", "push", "-q", "-m", "my own") // is no work of a run
	r.fiducial(0, `set "47k"`, "recover")
	r.fiducial(0, "docs/NEW.md +2 -0", "recover", "001")
	r.fiducial(0, `"47k"`, "recover", "001", "--patch")
	r.unchanged("nothing is kept of a run", "recover", "nothing")
	r.unchanged("there is work of several runs", "recover", "--apply")
	r.unchanged("would throw the work away", "recover", "001", "--drop")

	kicadtest.Write(t, r.dir, map[string]string{"docs/NEW.md": "mine"})
	r.unchanged("the working tree is not clean", "recover", "001", "--apply")
	r.git("add", "-A")
	r.git("commit", "-q", "-m", "my file")
	r.unchanged("it makes the file docs/NEW.md", "recover", "001", "--apply")
	r.git("rm", "-q", "docs/NEW.md")
	r.git("commit", "-q", "-m", "gone")

	r.fiducial(0, "the stash is kept as stash@{2}", "recover", "001", "--apply")
	if got := r.read(sheetFile); got != strings.Replace(start, `"10k"`, `"47k"`, 1) || r.read("docs/NEW.md") != "one\ntwo\n" {
		t.Error("the work is not in the files")
	}
	if staged := r.git("diff", "--cached", "--name-only"); staged != "" {
		t.Errorf("staged: %q", staged)
	}
	r.git("checkout", "--", ".")
	r.git("clean", "-fdq")
	r.fiducial(0, "the stash is dropped", "recover", "001", "--apply", "--drop")
	if list := r.git("stash", "list"); strings.Contains(list, "001") || !strings.Contains(list, "002") || !strings.Contains(list, "my own") {
		t.Errorf("stashes\n%s", list)
	}
	r.git("checkout", "--", ".")
	r.git("clean", "-fdq")
	r.replace(sheetFile, `"OUT"`, `"OUT3"`)
	r.git("commit", "-q", "-a", "-m", "mine")
	r.unchanged("changed in the same places since", "recover", "last", "--apply")
}

// TestRecoverPreserved takes up what a workspace preserved: changes of tracked files, new files, and the tree that an
// interrupted run has left.
func TestRecoverPreserved(t *testing.T) {
	t.Parallel()
	r := newRepository(t)
	repo, err := workspace.Open(t.Context(), r.dir, workspace.Options{Env: r.env})
	if err != nil {
		t.Fatal(err)
	}
	snap, err := repo.Snapshot(t.Context(), "20261130-080000-001", time.Now())
	if err != nil {
		t.Fatal(err)
	}
	r.replace(sheetFile, `"10k"`, `"47k"`)
	kicadtest.Write(t, r.dir, map[string]string{"docs/NEW.md": "new\n"})
	changed := r.read(sheetFile)
	r.fiducial(0, "refs/fiducial/20261130-080000-001", "recover")
	r.fiducial(2, "no stash to apply", "recover", "last", "--apply")
	r.unchanged("run 20261130-080000-001 was interrupted", "undo", r.doneElsewhere("20261130-070000-001"))
	if _, err := snap.Preserve(t.Context(), ""); err != nil {
		t.Fatal(err)
	}
	if _, err := snap.Restore(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := snap.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(r.read(sheetFile), "47k") {
		t.Fatal("the tree was not put back")
	}
	r.fiducial(0, "docs/NEW.md +1 -0", "recover", "20261130-080000-001", "--apply")
	if r.read(sheetFile) != changed || r.read("docs/NEW.md") != "new\n" {
		t.Error("what was applied is not what was preserved")
	}
}

// doneElsewhere writes a run whose commit is HEAD.
func (r *repository) doneElsewhere(id string) string {
	r.Helper()
	if err := runs.Write(r.dir, runs.Meta{ID: id, Outcome: runs.Done, Commit: r.git("rev-parse", "HEAD")}); err != nil {
		r.Fatal(err)
	}
	return id
}
