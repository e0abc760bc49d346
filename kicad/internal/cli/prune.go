// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/kicad/internal/runs"
	"github.com/fiducial-dev/fiducial/kicad/internal/ui"
)

// pruneFlags are what journal prune is told.
type pruneFlags struct {
	olderThan age
	keep      int
	dryRun    bool
	unended   bool
	folders   bool
	all       bool
}

// An age is a duration that may be given in days and weeks as well: 90d, 2w, 36h.
type age time.Duration

func (d *age) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

func (d *age) Type() string { return "age" }

func (d *age) Set(text string) error {
	unit := time.Duration(0)
	number, days := strings.CutSuffix(text, "d")
	if days {
		unit = 24 * time.Hour
	} else if rest, weeks := strings.CutSuffix(text, "w"); weeks {
		number, unit = rest, 7*24*time.Hour
	}
	if unit == 0 {
		v, err := time.ParseDuration(text)
		if err != nil || v <= 0 {
			return errors.New("give an age such as 90d, 2w or 36h")
		}
		*d = age(v)
		return nil
	}
	n, err := strconv.ParseFloat(number, 64)
	if err != nil || !(n > 0) || n > 36500 {
		return errors.New("give an age such as 90d, 2w or 36h")
	}
	*d = age(n * float64(unit))
	return nil
}

func newJournalPrune(a *app) *cobra.Command {
	var f pruneFlags
	cmd := &cobra.Command{
		Use:   "prune",
		Short: "Delete the records of old runs",
		Long: `Deletes runs of this repository from the journal: those that were last written to longer ago than --older-than, and those
beyond the last --keep; one of the two must be given, and with both a run goes when either says so. --dry-run tells what
would go and deletes nothing.

Runs that go on now never go. Runs that were interrupted go only with --interrupted, and not while their snapshot is
there: resume them, or give them up first. Commits stay, and so do the transcript and the summary in .fiducial/runs, so
that show and undo work as before; --folders deletes these too.

On a shared journal the runs of all clones of this repository count; --all prunes those of other repositories as well.

Exit codes: 0 done, 1 some could not be deleted.

JSON keys: pruned [run], dry_run, kept, failed [{run, error}].`,
		Example: `  fiducial journal prune --older-than 90d --dry-run
  fiducial journal prune --keep 100`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.prune(cmd.Context(), f) },
	}
	cmd.Flags().Var(&f.olderThan, "older-than", "delete runs last written to longer ago, such as 90d, 2w or 36h")
	cmd.Flags().IntVar(&f.keep, "keep", 0, "delete all but the last so many runs")
	cmd.Flags().BoolVarP(&f.dryRun, "dry-run", "n", false, "tell what would be deleted")
	cmd.Flags().BoolVar(&f.unended, "interrupted", false, "also runs that were interrupted and have no snapshot")
	cmd.Flags().BoolVar(&f.folders, "folders", false, "also their transcript and summary in .fiducial/runs")
	cmd.Flags().BoolVar(&f.all, "all", false, "on a shared journal, also the runs of other repositories")
	return cmd
}

type pruneJSON struct {
	Pruned []string      `json:"pruned"`
	DryRun bool          `json:"dry_run"`
	Kept   int           `json:"kept"`
	Failed []pruneFailed `json:"failed"`
}

type pruneFailed struct {
	Run   string `json:"run"`
	Error string `json:"error"`
}

func (a *app) prune(ctx context.Context, f pruneFlags) error {
	switch {
	case f.keep < 0:
		return cannot(fmt.Errorf("--keep: %d is less than none", f.keep))
	case f.olderThan == 0 && f.keep == 0:
		return cannot(errors.New("nothing says which runs are old"), "give --older-than 90d, --keep 100, or both")
	}
	p, err := a.place()
	if err != nil {
		return err
	}
	list, trouble, err := a.past(ctx, p, f.all)
	if err != nil {
		return err
	}
	if len(trouble) > 0 {
		return cannot(errors.New(strings.Join(trouble, "; ")), "nothing was deleted; see fiducial journal")
	}
	if list, err = a.ofProject(p, list); err != nil {
		return err
	}
	old, kept, err := a.old(ctx, p, list, f, time.Now())
	if err != nil {
		return err
	}
	out := pruneJSON{Pruned: []string{}, DryRun: f.dryRun, Kept: kept, Failed: []pruneFailed{}}
	if err := a.pruneAll(ctx, p, old, f, &out); err != nil {
		return err
	}
	code := exitOK
	if len(out.Failed) > 0 {
		code = exitNo
	}
	u := a.newUI()
	if a.json {
		return errors.Join(u.Object(out), told(code))
	}
	out.report(u, old)
	return errors.Join(u.Close(), told(code))
}

func (out pruneJSON) report(u *ui.UI, old []pastRun) {
	verb := "deleted"
	if out.DryRun {
		verb = "would be deleted"
	}
	for _, r := range old {
		if slices.Contains(out.Pruned, r.ID) {
			u.Line("%s  %-11s  %s", r.ID, r.State, ui.CleanLine(r.Request))
		}
	}
	for _, f := range out.Failed {
		u.Warn("run %s stays: %s", f.Run, f.Error)
	}
	u.Heading("%s %s, %d kept", count(len(out.Pruned), "run"), verb, out.Kept)
}

// old are the runs in the journal that the flags give up, the last written to first.
func (a *app) old(ctx context.Context, p place, list []pastRun, f pruneFlags, now time.Time) (old []pastRun, kept int, err error) {
	list = slices.DeleteFunc(list, func(r pastRun) bool { return r.Journal == nil })
	slices.SortStableFunc(list, func(a, b pastRun) int { return b.Journal.Updated.Compare(a.Journal.Updated) })
	left, err := a.leftovers(ctx, p.top)
	if err != nil && p.git {
		return nil, 0, preflight(err)
	}
	n := 0
	for _, r := range list {
		ended := r.Journal.Ended || r.Outcome != runs.Going
		snapshot := false
		for _, l := range left {
			snapshot = snapshot || l.Run == r.ID && l.Committed == ""
		}
		if r.Journal.Held || snapshot || !ended && !f.unended {
			kept++
			continue
		}
		n++
		if f.keep > 0 && n > f.keep || f.olderThan > 0 && r.Journal.Updated.Before(now.Add(-time.Duration(f.olderThan))) {
			old = append(old, r)
			continue
		}
		kept++
	}
	return old, kept, nil
}

func (a *app) pruneAll(ctx context.Context, p place, old []pastRun, f pruneFlags, out *pruneJSON) error {
	if f.dryRun || len(old) == 0 {
		for _, r := range old {
			out.Pruned = append(out.Pruned, r.ID)
		}
		return nil
	}
	j, _, err := a.openJournal(ctx, p)
	if err != nil {
		return err
	}
	defer func() { _ = j.Close() }()
	for _, r := range old {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if err := pruneOne(ctx, j, p, r, f); err != nil {
			out.Failed = append(out.Failed, pruneFailed{r.ID, err.Error()})
			out.Kept++
			continue
		}
		out.Pruned = append(out.Pruned, r.ID)
	}
	return nil
}

func pruneOne(ctx context.Context, j journal.Journal, p place, r pastRun, f pruneFlags) error {
	now, err := j.Stat(ctx, r.ID)
	switch {
	case errors.Is(err, journal.ErrNotFound): // somebody else deleted it
	case err != nil:
		return err
	case now.Head != r.Journal.Records:
		return errors.New("somebody has taken it up meanwhile")
	default:
		if err := j.Delete(ctx, r.ID); err != nil && !errors.Is(err, journal.ErrNotFound) {
			return err
		}
	}
	if f.folders && r.local {
		return removeFolder(p.top, r.ID)
	}
	return nil
}
