// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fiducial-dev/fiducial/kicad/internal/ui"
)

// recoverFlags are what recover is told.
type recoverFlags struct {
	apply, drop, patch bool
}

func newRecover(a *app) *cobra.Command {
	var f recoverFlags
	cmd := &cobra.Command{
		Use:   "recover [RUN]",
		Short: "List what failed runs had changed, and put it back into the files",
		Long: `Lists the work that was kept when runs failed: each is a git stash. RUN is the run's id, a part of it, or "last"; with it
the files and the numbers of lines are shown, and with --patch the lines.

With --apply the changes are put into the files; nothing is committed, and what is staged stays. The tree must be clean,
and where the files have changed in the same places since, nothing is done. The stash is kept, unless --drop is given as
well. Runs that were interrupted have their tree kept under refs/fiducial; they are listed with what to do about them.

JSON keys: kept [{run, kind (stash, snapshot), commit, stash, at, request, files [{path, added, deleted}], next}];
with --apply: applied, dropped.`,
		Example: `  fiducial recover
  fiducial recover last --patch
  fiducial recover last --apply && fiducial check`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.recover(cmd.Context(), strings.Join(args, ""), f)
		},
	}
	cmd.Flags().BoolVar(&f.apply, "apply", false, "put the changes into the files")
	cmd.Flags().BoolVar(&f.drop, "drop", false, "remove the stash when it was applied")
	cmd.Flags().BoolVarP(&f.patch, "patch", "p", false, "show the changed lines")
	return cmd
}

// A keptWork is what was preserved of a run.
type keptWork struct {
	Run     string      `json:"run"`
	Kind    string      `json:"kind"` // stash: what the run had changed. snapshot: the tree before the run
	Commit  string      `json:"commit"`
	Stash   string      `json:"stash,omitempty"` // as git stash list has it now
	At      time.Time   `json:"at"`
	Request string      `json:"request,omitempty"`
	Files   []lineCount `json:"files"`
	Next    string      `json:"next"`
}

type lineCount struct {
	Path    string `json:"path"`
	Added   int    `json:"added"`
	Deleted int    `json:"deleted"`
	Binary  bool   `json:"binary,omitempty"`
}

type recoverJSON struct {
	Kept    []keptWork `json:"kept"`
	Applied string     `json:"applied,omitempty"` // the commit of the stash
	Dropped bool       `json:"dropped,omitempty"`
}

const (
	isStash    = "stash"
	isSnapshot = "snapshot"
)

func (a *app) recover(ctx context.Context, which string, f recoverFlags) error {
	if f.drop && !f.apply {
		return cannot(errors.New("--drop without --apply would throw the work away"), "apply it: --apply --drop", "or drop it by git: git stash drop")
	}
	w, err := a.openWork(ctx)
	if err != nil {
		return err
	}
	kept, err := w.kept(ctx)
	if err != nil {
		return err
	}
	if which == "" && !f.apply && !f.patch {
		return w.listKept(kept)
	}
	k, err := pickKept(kept, which)
	if err != nil {
		return err
	}
	out := recoverJSON{Kept: []keptWork{k}}
	if f.apply {
		if err := w.apply(ctx, k); err != nil {
			return err
		}
		out.Applied = k.Commit
		out.Kept[0].Next = "fiducial check"
	}
	if f.drop {
		if err := w.drop(ctx, k); err != nil {
			return err
		}
		out.Dropped = true
	}
	u := a.newUI()
	if a.json {
		return u.Object(out)
	}
	k.report(u)
	if f.patch {
		text, err := w.patch(ctx, k)
		if err != nil {
			return err
		}
		u.Diff(text)
	}
	switch {
	case out.Dropped:
		u.Line("applied to the files, not committed; the stash is dropped (git stash store %s brings it back)", k.Commit)
	case f.apply:
		u.Line("applied to the files, not committed; the stash is kept as %s", k.Stash)
	default:
		u.Line("%s", k.Next)
	}
	if f.apply {
		u.Line("next: ERC and DRC have not seen the design as it is now, run fiducial check")
	}
	return u.Close()
}

func (w *work) listKept(kept []keptWork) error {
	u := w.newUI()
	if w.json {
		return u.Object(recoverJSON{Kept: append([]keptWork{}, kept...)})
	}
	if len(kept) == 0 {
		u.Line("nothing is kept of any run in %s", w.place.top)
	}
	for _, k := range kept {
		k.report(u)
		u.Line("    %s", k.Next)
	}
	return u.Close()
}

func (k keptWork) report(u *ui.UI) {
	what := k.Stash
	if k.Kind == isSnapshot {
		what = "refs/fiducial/" + k.Run
	}
	u.Line("%s  %s  %s  %s", k.Run, stamp(k.At), what, ui.CleanLine(k.Request))
	if k.Kind == isSnapshot {
		u.Line("    the tree as it was before the run, which was interrupted")
	}
	for _, f := range k.Files {
		if f.Binary {
			u.Line("    %s (binary)", ui.CleanLine(f.Path))
			continue
		}
		u.Line("    %s +%d -%d", ui.CleanLine(f.Path), f.Added, f.Deleted)
	}
}

func pickKept(kept []keptWork, which string) (keptWork, error) {
	var fit []keptWork
	var ids []string
	for i, k := range kept {
		if k.Run == which || i == 0 && which == "last" || which == k.Stash {
			return k, nil
		}
		if strings.Contains(k.Run, which) {
			fit = append(fit, k)
			ids = append(ids, k.Run)
		}
	}
	switch {
	case len(fit) == 1:
		return fit[0], nil
	case len(fit) > 1 && which == "":
		return keptWork{}, cannot(errors.New("there is work of several runs"), "name one: "+listed(ids))
	case len(fit) > 1:
		return keptWork{}, mayBe(which, ids)
	}
	return keptWork{}, cannot(fmt.Errorf("nothing is kept of a run %q", which), "see fiducial recover, or git stash list")
}

// ofRun is a stash's message: "fiducial failed run <id>", behind "On main: " when it was renamed by hand.
var ofRun = regexp.MustCompile(`fiducial .*\brun ([A-Za-z0-9][A-Za-z0-9._-]*)$`)

// kept lists stashes and snapshots of runs, the newest first.
func (w *work) kept(ctx context.Context) ([]keptWork, error) {
	raw, err := w.git.run(ctx, "stash", "list", "-z", "--format=%H%x09%gd%x09%ct%x09%gs")
	if err != nil {
		return nil, cannot(err)
	}
	requests := map[string]string{}
	past, _, err := w.past(ctx, w.place, false)
	if err != nil {
		return nil, err
	}
	for _, r := range past {
		requests[r.ID] = r.Request
	}
	var list []keptWork
	for entry := range strings.SplitSeq(string(raw), "\x00") {
		f := strings.SplitN(entry, "\t", 4)
		if len(f) != 4 {
			continue
		}
		m := ofRun.FindStringSubmatch(f[3])
		if m == nil {
			continue // somebody's own
		}
		seconds, _ := strconv.ParseInt(f[2], 10, 64) // git wrote it
		k := keptWork{Run: m[1], Kind: isStash, Commit: f[0], Stash: f[1], At: time.Unix(seconds, 0), Request: requests[m[1]]}
		k.Next = "put it into the files: fiducial recover " + k.Run + " --apply"
		if k.Files, err = w.stat(ctx, k); err != nil {
			return nil, cannot(err)
		}
		list = append(list, k)
	}
	left, err := w.repo.Leftovers(ctx)
	if err != nil {
		return nil, preflight(err)
	}
	for _, l := range left {
		if l.Committed != "" {
			continue // the run ended well; the next one tidies up
		}
		k := keptWork{Run: l.Run, Kind: isSnapshot, Commit: "refs/fiducial/" + l.Run, At: l.At, Request: requests[l.Run], Files: []lineCount{}}
		k.Next = "go on: fiducial resume " + l.Run + "; or put the tree back and keep the run's changes as a stash: fiducial resume " + l.Run + " --give-up"
		if l.Elsewhere != "" {
			k.Next = "it belongs to another working tree of this repository: " + l.Elsewhere
		}
		list = append(list, k)
	}
	slices.SortStableFunc(list, func(a, b keptWork) int { return b.At.Compare(a.At) })
	return list, nil
}

// untracked is the commit that holds a stash's new files, "" when it has none.
func (w *work) untracked(ctx context.Context, k keptWork) string {
	id, err := w.git.run(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", k.Commit+"^3")
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(id))
}

// stat counts the lines that a stash changes.
func (w *work) stat(ctx context.Context, k keptWork) ([]lineCount, error) {
	raw, err := w.git.run(ctx, "diff-tree", "-r", "-z", "--numstat", "--no-renames", "--end-of-options", k.Commit+"^1", k.Commit)
	if err != nil {
		return nil, err
	}
	if u := w.untracked(ctx, k); u != "" {
		more, err := w.git.run(ctx, "diff-tree", "--root", "-r", "-z", "--numstat", "--no-commit-id", "--no-renames", "--end-of-options", u)
		if err != nil {
			return nil, err
		}
		raw = append(raw, more...)
	}
	list := []lineCount{}
	for entry := range strings.SplitSeq(string(raw), "\x00") {
		f := strings.SplitN(entry, "\t", 3)
		if len(f) != 3 {
			continue
		}
		s := lineCount{Path: f[2], Binary: f[0] == "-"}
		s.Added, _ = strconv.Atoi(f[0]) // "-" is 0
		s.Deleted, _ = strconv.Atoi(f[1])
		list = append(list, s)
	}
	return list, nil
}

// patch is the text of what a stash changes.
func (w *work) patch(ctx context.Context, k keptWork) (string, error) {
	if k.Kind != isStash {
		return "", nil
	}
	text, err := w.git.run(ctx, "diff-tree", "-r", "-p", "--no-color", "--no-ext-diff", "--no-textconv", "--end-of-options", k.Commit+"^1", k.Commit)
	if err != nil {
		return "", cannot(err)
	}
	if u := w.untracked(ctx, k); u != "" {
		more, err := w.git.run(ctx, "diff-tree", "--root", "-r", "-p", "--no-commit-id", "--no-color", "--no-ext-diff", "--no-textconv", "--end-of-options", u)
		if err != nil {
			return "", cannot(err)
		}
		text = append(text, more...)
	}
	return string(text), nil
}

// apply puts a stash into the files. Whether it fits is found out before anything is touched.
func (w *work) apply(ctx context.Context, k keptWork) error {
	if k.Kind != isStash {
		return cannot(fmt.Errorf("of run %s there is the tree before it, and no stash to apply", k.Run), k.Next)
	}
	unlock, err := w.begin(ctx, k.Run)
	if err != nil {
		return err
	}
	defer unlock()
	if err := w.fits(ctx, k); err != nil {
		return err
	}
	if _, err := w.git.run(ctx, "stash", "apply", "--quiet", k.Commit); err != nil {
		return cannot(fmt.Errorf("git cannot apply it: %w", err), "see what git did: git status", "the work is safe in "+k.Stash)
	}
	return nil
}

func (w *work) fits(ctx context.Context, k keptWork) error {
	out, err := merger{gitAt: w.git, temp: w.temp}.merge(ctx, k.Commit+"^1", "HEAD", k.Commit)
	if err != nil {
		return cannot(err)
	}
	if len(out.conflicts) > 0 {
		return cannot(fmt.Errorf("it does not fit any more: %s changed in the same places since; nothing was changed", strings.Join(out.conflicts, ", ")),
			"take it to where it was made: git stash branch recovered "+k.Stash)
	}
	if len(out.files) == 0 && w.untracked(ctx, k) == "" {
		return cannot(errors.New("all of it is in the files already"))
	}
	if u := w.untracked(ctx, k); u != "" {
		names, err := w.git.run(ctx, "ls-tree", "-r", "-z", "--name-only", "--full-tree", u)
		if err != nil {
			return cannot(err)
		}
		for name := range strings.SplitSeq(strings.TrimSuffix(string(names), "\x00"), "\x00") {
			if _, err := os.Lstat(filepath.Join(w.place.top, filepath.FromSlash(name))); !errors.Is(err, os.ErrNotExist) {
				return cannot(fmt.Errorf("it makes the file %s, and there is one now; nothing was changed", name), "move that file away first")
			}
		}
	}
	return nil
}

// drop removes the entry of a stash, whatever its number is by now.
func (w *work) drop(ctx context.Context, k keptWork) error {
	raw, err := w.git.run(ctx, "stash", "list", "--format=%H")
	if err != nil {
		return cannot(err)
	}
	for i, id := range strings.Fields(string(raw)) {
		if id == k.Commit {
			if _, err := w.git.run(ctx, "stash", "drop", "--quiet", fmt.Sprintf("stash@{%d}", i)); err != nil {
				return cannot(fmt.Errorf("it is applied, and the stash stays: %w", err))
			}
			return nil
		}
	}
	return nil // somebody else dropped it
}
