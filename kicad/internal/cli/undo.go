// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fiducial-dev/fiducial/kicad/internal/runs"
	"github.com/fiducial-dev/fiducial/kicad/internal/ui"
	"github.com/fiducial-dev/fiducial/kicad/project"
	"github.com/fiducial-dev/fiducial/task/workspace"
)

func newUndo(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "undo RUN",
		Short: "Take a run's commit back by a commit that reverts it",
		Long: `Makes one commit that takes back what a run changed; the run's own commit stays in the history. RUN is its id, a part of
it, or "last". What was changed since stays: where a later change is in the same place, nothing is done and the files
are named. Entries that later runs wrote into the changelog stay as well.

The tree must be clean, and the run's commit must be in the history of the branch. What ERC and DRC say of the result
is not known before fiducial check has run.

JSON keys: run, undone (the commit taken back), commit (the one that does it), files [], next.`,
		Example: `  fiducial undo last
  fiducial undo 20261130-081500-042 && fiducial check`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.undo(cmd.Context(), args[0]) },
	}
}

type undoJSON struct {
	Run    string   `json:"run"`
	Undone string   `json:"undone"`
	Commit string   `json:"commit"`
	Files  []string `json:"files"`
	Next   string   `json:"next"`
}

func (a *app) undo(ctx context.Context, which string) error {
	w, err := a.openWork(ctx)
	if err != nil {
		return err
	}
	list, trouble, err := a.past(ctx, w.place, false)
	if err != nil {
		return err
	}
	a.enrich(ctx, w.place, list)
	r, err := pick(list, which)
	if err != nil {
		return withTrouble(err, trouble)
	}
	if err := mayUndo(r); err != nil {
		return err
	}
	unlock, err := w.begin(ctx, r.ID)
	if err != nil {
		return err
	}
	defer unlock()
	if err := w.stands(ctx, r); err != nil {
		return err
	}
	out := undoJSON{Run: r.ID, Undone: r.Commit, Next: "fiducial check"}
	if out.Commit, out.Files, err = w.revert(ctx, r, list); err != nil {
		return err
	}
	m := r.Meta
	m.Undone, m.UndoneAt = out.Commit, time.Now().UTC().Truncate(time.Millisecond)
	err = runs.Write(w.place.top, m)
	if r.Journal != nil { // for who looks from somewhere else
		err = errors.Join(err, a.noteOutcome(ctx, w.place, m))
	}
	u := a.newUI()
	if a.json {
		return u.Object(out)
	}
	if err != nil {
		u.Warn("that the run is undone could not be noted: %v", err)
	}
	u.Line("undone: run %s, commit %.12s: %s", r.ID, r.Commit, ui.CleanLine(r.Request))
	for _, f := range out.Files {
		u.Line("  %s", ui.CleanLine(f))
	}
	u.Line("by commit %.12s; take that back with git revert", out.Commit)
	u.Line("next: ERC and DRC have not seen the design as it is now, run fiducial check")
	return u.Close()
}

// mayUndo refuses runs that have nothing to take back.
func mayUndo(r pastRun) error {
	switch {
	case r.State == running:
		return cannot(fmt.Errorf("run %s goes on now", r.ID), "wait until it has ended, or stop it")
	case r.Commit != "":
		return nil
	case r.DryRun:
		return cannot(fmt.Errorf("run %s was a dry run and changed nothing", r.ID))
	case r.State == string(runs.Interrupted) || r.State == string(runs.Paused):
		return cannot(fmt.Errorf("run %s has no commit: it was interrupted", r.ID), "put the tree back: fiducial resume "+r.ID+" --give-up")
	}
	return cannot(fmt.Errorf("run %s (%s) has no commit, so there is nothing to take back", r.ID, r.State), "see how it ended: fiducial show "+r.ID)
}

// A work is a working tree that undo and recover may change.
type work struct {
	*app
	place place
	repo  *workspace.Repo
	git   gitAt
}

func (a *app) openWork(ctx context.Context) (*work, error) {
	p, err := a.place()
	if err != nil {
		return nil, err
	}
	repo, err := workspace.Open(ctx, p.dir, workspace.Options{Exclude: excluded, Env: a.Environ})
	if err != nil {
		return nil, preflight(err)
	}
	p.top = repo.Top()
	return &work{app: a, place: p, repo: repo, git: gitAt{dir: p.top, environ: a.Environ}}, nil
}

// begin takes the lock of the tree and refuses one that is not clean, that an interrupted run may still hold, or whose
// design is open in KiCad, which would write its own state over ours.
func (w *work) begin(ctx context.Context, run string) (unlock func(), err error) {
	lock, err := w.repo.Lock(ctx, run, time.Now())
	if err != nil {
		return nil, preflight(err)
	}
	release := func() { _ = lock.Release() } // the kernel frees it at the latest when we end
	defer func() {
		if err != nil {
			release()
		}
	}()
	left, err := w.repo.Leftovers(ctx)
	if err != nil {
		return nil, preflight(err)
	}
	for _, l := range left {
		if l.Elsewhere == "" && l.Committed == "" {
			return nil, cannot(fmt.Errorf("run %s was interrupted, and the tree may hold its changes", l.Run),
				"go on with it: fiducial resume "+l.Run, "or put the tree back: fiducial resume "+l.Run+" --give-up")
		}
	}
	if err := w.repo.Preflight(ctx, false); err != nil {
		if e, ok := errors.AsType[*workspace.PreflightError](err); ok {
			e.Remedies = slices.DeleteFunc(e.Remedies, func(s string) bool { return strings.Contains(s, "--allow-dirty") })
			if e.Check == workspace.CheckClean {
				e.Why = "changes of yours could be lost in it."
			}
		}
		return nil, preflight(err)
	}
	proj, err := w.find(w.place)
	if _, ok := errors.AsType[*project.Error](err); err != nil && !ok {
		return nil, err
	}
	if err == nil && len(proj.Locks) > 0 {
		return nil, cannot(errors.New(proj.Locks[0].String()), "save and close it in KiCad first",
			"if KiCad is not running any more, remove "+proj.Locks[0].File)
	}
	return release, nil
}

// stands refuses a commit that is not in the history of HEAD, or that is not in force any more.
func (w *work) stands(ctx context.Context, r pastRun) error {
	if _, err := w.git.run(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", r.Commit+"^{commit}"); err != nil {
		return cannot(fmt.Errorf("commit %.12s of run %s is not in this repository", r.Commit, r.ID), "fetch it first: git fetch")
	}
	err := w.git.command(ctx, "merge-base", "--is-ancestor", r.Commit, "HEAD").Run()
	if e, ok := errors.AsType[*exec.ExitError](err); ok && e.ExitCode() == 1 {
		return cannot(fmt.Errorf("commit %.12s of run %s is not in the history of the branch that is checked out", r.Commit, r.ID),
			"check out the branch that has it: git branch --contains "+r.Commit)
	}
	if err != nil {
		return cannot(err)
	}
	by, err := w.git.reverted(ctx, r.Commit)
	if err != nil {
		return cannot(err)
	}
	if by != "" {
		return cannot(fmt.Errorf("run %s is undone already, by commit %.12s", r.ID, by), "take that back: git revert "+by)
	}
	return nil
}

// reverted returns the commit since then that takes a commit back and is itself in force.
func (g gitAt) reverted(ctx context.Context, commit string) (string, error) {
	text, err := g.run(ctx, "log", "--format=%H%n%B%x00", commit+"..HEAD")
	if err != nil {
		return "", err
	}
	by := map[string][]string{}
	for entry := range strings.SplitSeq(string(text), "\x00") {
		id, body, _ := strings.Cut(strings.TrimLeft(entry, "\n"), "\n")
		for line := range strings.Lines(body) {
			if rest, ok := strings.CutPrefix(line, "This reverts commit "); ok {
				of := strings.TrimRight(strings.TrimSpace(rest), ".,")
				by[of] = append(by[of], id)
			}
		}
	}
	var inForce func(id string) string
	inForce = func(id string) string {
		for _, r := range by[id] {
			if inForce(r) == "" {
				return r
			}
		}
		return ""
	}
	return inForce(commit), nil
}

// revert makes the commit and moves the branch and the files to it.
func (w *work) revert(ctx context.Context, r pastRun, list []pastRun) (commit string, files []string, err error) {
	m := merger{gitAt: w.git, temp: w.temp, section: r.ID}
	head, err := w.repo.Head(ctx)
	if err != nil {
		return "", nil, preflight(err)
	}
	out, err := m.merge(ctx, r.Commit, head.Commit, r.Commit+"^")
	if err != nil {
		return "", nil, cannot(err)
	}
	if len(out.conflicts) > 0 {
		remedies := []string{"revert it by hand: git revert " + r.Commit}
		if later := laterRuns(list, r, out.conflicts); len(later) > 0 {
			remedies = slices.Insert(remedies, 0, "undo what came later first: fiducial undo "+strings.Join(later, ", then fiducial undo "))
		}
		return "", nil, cannot(fmt.Errorf("run %s cannot be undone: later changes are in the same places of %s; nothing was changed",
			r.ID, strings.Join(out.conflicts, ", ")), remedies...)
	}
	if len(out.files) == 0 {
		return "", nil, cannot(fmt.Errorf("run %s: nothing of what it changed is left", r.ID))
	}
	tree, err := m.tree(ctx, head.Commit, out.files)
	if err != nil {
		return "", nil, cannot(err)
	}
	if commit, err = w.git.commitRevert(ctx, r, head.Commit, tree); err != nil {
		return "", nil, err
	}
	if _, err := w.git.run(ctx, "merge", "--ff-only", "--quiet", commit); err != nil {
		return "", nil, cannot(fmt.Errorf("run %s cannot be undone: %w; nothing was changed", r.ID, err))
	}
	for name := range out.files {
		files = append(files, name)
	}
	slices.Sort(files)
	return commit, files, nil
}

// laterRuns are the runs after r that changed one of the files and are in force, the newest first.
func laterRuns(list []pastRun, r pastRun, files []string) []string {
	var ids []string
	for _, o := range list {
		if o.ID > r.ID && o.Commit != "" && o.Undone == "" && slices.ContainsFunc(o.Files, func(f string) bool { return slices.Contains(files, f) }) {
			ids = append(ids, o.ID)
		}
	}
	return ids
}

// commitRevert writes the commit, in git revert's own words, signed when the user's settings say so.
func (g gitAt) commitRevert(ctx context.Context, r pastRun, head, tree string) (string, error) {
	subject, err := g.run(ctx, "log", "-1", "--format=%s", r.Commit)
	if err != nil {
		return "", cannot(err)
	}
	args := []string{"commit-tree", tree, "-p", head}
	if v, err := g.run(ctx, "config", "--type=bool", "commit.gpgSign"); err == nil && strings.TrimSpace(string(v)) == "true" {
		args = append(args, "--gpg-sign")
	}
	cmd := g.command(ctx, args...)
	cmd.Stdin = strings.NewReader(fmt.Sprintf("Revert \"%s\"\n\nThis reverts commit %s.\n\nFiducial-Undo: %s\n",
		strings.TrimSpace(string(subject)), r.Commit, r.ID))
	out, err := cmd.Output()
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		return "", cannot(fmt.Errorf("git cannot commit: %s", strings.TrimSpace(string(e.Stderr))),
			`git config --global user.name "Your Name" && git config --global user.email you@example.com`)
	}
	if err != nil {
		return "", cannot(err)
	}
	return strings.TrimSpace(string(out)), nil
}
