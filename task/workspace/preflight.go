// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
)

// Preflight tests whether a run may start: at least one commit, nothing half
// done, and a clean tree unless allowDirty. The first condition that does not
// hold decides the [*PreflightError] (B-2). Nothing is written.
func (r *Repo) Preflight(ctx context.Context, allowDirty bool) error {
	if _, err := r.Head(ctx); err != nil {
		if exitCode(err) == -1 {
			return err
		}
		return &PreflightError{
			Check: CheckCommit, Reason: "the repository has no commit yet",
			Why:      "what a run changes is told, and put back, against the last commit.",
			Remedies: []string{"commit the project first: git add . && git commit -m \"Start\""}, Err: err,
		}
	}
	if err := r.inProgress(ctx); err != nil {
		return err
	}
	st, err := r.status(ctx)
	if err != nil {
		return fail("preflight", err)
	}
	if len(st.unmerged) > 0 {
		return &PreflightError{
			Check: CheckProgress, Reason: "there are unresolved conflicts: " + some(st.unmerged),
			Why:      "a conflicted file has no single content that could be kept and put back.",
			Remedies: []string{"resolve them and git add the files", "drop them: git checkout -- <file>"},
		}
	}
	if dirty := append(append([]string{}, st.changed...), st.untracked...); len(dirty) > 0 && !allowDirty {
		return &PreflightError{
			Check: CheckClean, Reason: fmt.Sprintf("the working tree is not clean: %s", some(dirty)),
			Why: "only against a clean tree can every change of the run be told from yours.",
			Remedies: []string{
				"commit your changes: git add -A && git commit", "put them aside: git stash --include-untracked",
				"have files that are never committed ignored, in .gitignore",
				"run with --allow-dirty: your changes are kept, and the commit holds only those of the run",
			},
		}
	}
	return nil
}

// PreflightIdentity tests whether git knows who makes a commit, so that no run does all of its work before that is asked
// for. The error is a [*PreflightError]. Nothing is written.
func (r *Repo) PreflightIdentity(ctx context.Context) error {
	err := r.knowsIdentity(ctx)
	switch {
	case err == nil:
		return nil
	case exitCode(err) == -1:
		return fail("preflight", err)
	}
	return &PreflightError{
		Check: CheckIdentity, Reason: "git does not know your name and e-mail address",
		Why: "a run ends in a commit, which bears both.",
		Remedies: []string{
			`tell it once: git config --global user.name "Your Name" && git config --global user.email you@example.com`,
			"tell it for this repository alone: the same without --global",
		}, Err: err,
	}
}

// inProgress refuses to work between two steps of another git operation. The
// files are those that git status itself looks for (wt-status.c, 2.39).
func (r *Repo) inProgress(ctx context.Context) error {
	for _, m := range []struct{ file, what, end string }{
		{"MERGE_HEAD", "a merge", "git merge --continue or git merge --abort"},
		{"rebase-merge", "a rebase", "git rebase --continue or git rebase --abort"},
		{"rebase-apply", "a rebase or git am", "git rebase --abort or git am --abort"},
		{"CHERRY_PICK_HEAD", "a cherry-pick", "git cherry-pick --continue or git cherry-pick --abort"},
		{"REVERT_HEAD", "a revert", "git revert --continue or git revert --abort"},
		{"BISECT_LOG", "a bisect", "git bisect reset"},
	} {
		p, err := r.gitPath(ctx, m.file)
		if err != nil {
			return fail("preflight", err)
		}
		if _, err := os.Lstat(p); errors.Is(err, os.ErrNotExist) {
			continue
		} else if err != nil {
			return fail("preflight", err)
		}
		return &PreflightError{
			Check: CheckProgress, Reason: m.what + " is in progress",
			Why:      "a commit of ours would become part of it.",
			Remedies: []string{"end it first: " + m.end},
		}
	}
	return nil
}

func some(names []string) string {
	var b strings.Builder
	for i, n := range names {
		if i == 3 {
			fmt.Fprintf(&b, " and %d more", len(names)-i)
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%q", n)
	}
	return b.String()
}

// status is what git status tells, without the folder of the runs and without
// what the domain leaves out.
type status struct {
	changed   []string // tracked, differs from HEAD in the index or in the tree
	unmerged  []string
	untracked []string // files; nested repositories are left out
	ignored   []string // files, and folders ending in a slash that are ignored as a whole
}

func (r *Repo) status(ctx context.Context) (*status, error) {
	out, err := r.git.run(ctx, call{args: []string{
		"-c", "core.fsmonitor=false", "status", "--porcelain=v1", "-z", "--no-renames", "--untracked-files=all",
		"--ignored=matching", "--ignore-submodules=dirty",
	}})
	if err != nil {
		return nil, err
	}
	st := &status{}
	for _, l := range splitNames(out) {
		if len(l) < 4 {
			return nil, fmt.Errorf("git status answered %q", l)
		}
		xy, p := l[:2], l[3:]
		switch {
		case isOwn(p):
		case xy == "!!":
			st.ignored = append(st.ignored, p)
		case xy == "??":
			if !strings.HasSuffix(p, "/") && !r.excluded(p) {
				st.untracked = append(st.untracked, p)
			}
		case strings.Contains(xy, "U") || xy == "AA" || xy == "DD":
			st.unmerged = append(st.unmerged, p)
		default:
			st.changed = append(st.changed, p)
		}
	}
	return st, nil
}
