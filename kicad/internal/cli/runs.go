// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/kicad/internal/runs"
	"github.com/fiducial-dev/fiducial/kicad/internal/ui"
	"github.com/fiducial-dev/fiducial/task/workspace"
)

// Running is what the list calls a run without an outcome that somebody holds.
const running = "running"

// fork is what the list calls a run that was forked in the journal, and works nowhere.
const fork = "fork"

// A pastRun is what the run's folder and the journal know together.
type pastRun struct {
	runs.Meta
	State   string       `json:"state"` // the outcome, or running, interrupted, ended, fork, unknown
	Next    string       `json:"next,omitempty"`
	Tree    string       `json:"tree,omitempty"` // host:folder where a run works, or worked, that is not of this working tree
	Journal *journalJSON `json:"journal,omitempty"`
	Trouble []string     `json:"trouble,omitempty"` // what could not be read
	damaged bool         // the run.json
	local   bool         // its folder is here
}

type journalJSON struct {
	Records uint64    `json:"records"`
	Phase   string    `json:"phase"`
	Ended   bool      `json:"ended"`
	Held    bool      `json:"held"`
	Owner   string    `json:"owner,omitempty"`
	Parent  string    `json:"parent,omitempty"` // the run it was forked from
	Updated time.Time `json:"updated"`
}

func newRuns(a *app) *cobra.Command {
	var limit int
	var all bool
	cmd := &cobra.Command{
		Use:   "runs",
		Short: "List past runs",
		Long: `Lists the runs of this repository, the newest first: their state, what was asked, the turns and tokens that it took, the
files that changed and the commit. A run that has no outcome and that no process holds was interrupted; its line says
how to go on. With --project only the runs of that project are listed.

On a journal that is shared (see fiducial journal) the runs of every clone of this repository are listed, wherever they
work, and with --all those of other repositories too.

JSON keys: runs [{id, state (done, refused, failed, interrupted, paused, running; ended and unknown when the
run.json is gone or damaged; fork), next, tree, request, model, project, started, ended,
outcome, exit, reason, commit, files, turns, usage, findings, journal {records, phase, ended, held, owner, parent, updated},
trouble}], trouble [].`,
		Example: `  fiducial runs -n 5
  fiducial runs --all --json | jq '.runs[] | select(.state == "running")'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.runs(cmd.Context(), limit, all) },
	}
	cmd.Flags().IntVarP(&limit, "limit", "n", 0, "list no more than so many (default: all)")
	cmd.Flags().BoolVar(&all, "all", false, "on a shared journal, list the runs of other repositories too")
	return cmd
}

func (a *app) runs(ctx context.Context, limit int, all bool) error {
	if limit < 0 {
		return cannot(fmt.Errorf("--limit: %d is less than none", limit))
	}
	p, err := a.place()
	if err != nil {
		return err
	}
	list, trouble, err := a.past(ctx, p, all)
	if err != nil {
		return err
	}
	if list, err = a.ofProject(p, list); err != nil {
		return err
	}
	if limit > 0 && len(list) > limit {
		list = list[:limit]
	}
	trouble = append(trouble, a.enrich(ctx, p, list)...)
	u := a.newUI()
	if a.json {
		return u.Object(struct {
			Runs    []pastRun `json:"runs"`
			Trouble []string  `json:"trouble,omitempty"`
		}{append([]pastRun{}, list...), trouble})
	}
	for _, t := range trouble {
		u.Warn("%s", t)
	}
	if len(list) == 0 {
		u.Line("no runs in %s yet", p.top)
	}
	for _, r := range list {
		reportRun(u, r)
	}
	return u.Close()
}

// ofProject keeps the runs of the project that --project names.
func (a *app) ofProject(p place, list []pastRun) ([]pastRun, error) {
	if a.project == "" {
		return list, nil
	}
	name, err := p.rel(a.project)
	if err != nil {
		return nil, cannot(fmt.Errorf("--project: %w", err), "name a file inside the repository, relative to --repo")
	}
	return slices.DeleteFunc(list, func(r pastRun) bool { return r.Project != name }), nil
}

func reportRun(u *ui.UI, r pastRun) {
	u.Line("%s  %-11s  %s", r.ID, r.State, cmp.Or(ui.CleanLine(r.Request), "(request unknown)"))
	var facts []string
	for _, f := range []string{took(r.Meta), turnsOf(r.Meta), tokensOf(r.Meta), filesOf(r.Meta)} {
		if f != "" {
			facts = append(facts, f)
		}
	}
	if r.Commit != "" {
		facts = append(facts, fmt.Sprintf("commit %.12s", r.Commit))
	}
	if r.Undone != "" {
		facts = append(facts, fmt.Sprintf("undone by %.12s", r.Undone))
	}
	if len(facts) > 0 {
		u.Line("    %s", strings.Join(facts, ", "))
	}
	if r.Tree != "" {
		u.Line("    in %s", ui.CleanLine(r.Tree))
	}
	if r.State != string(runs.Done) && r.Reason != "" {
		u.Line("    %s", bare(r.Reason))
	}
	if r.Next != "" {
		u.Line("    %s", r.Next)
	}
	for _, t := range r.Trouble {
		u.Line("    %s", t)
	}
}

func took(m runs.Meta) string {
	if m.Started.IsZero() || m.Ended.IsZero() {
		return ""
	}
	return m.Ended.Sub(m.Started).Round(100 * time.Millisecond).String()
}

func turnsOf(m runs.Meta) string {
	if m.Turns == 0 {
		return ""
	}
	return count(m.Turns, "turn")
}

func tokensOf(m runs.Meta) string {
	if !m.Usage.Known() {
		return ""
	}
	return fmt.Sprintf("%d tokens in, %d out", m.Usage.Input.Value(), m.Usage.Output.Value())
}

func filesOf(m runs.Meta) string {
	if len(m.Files) == 0 {
		return ""
	}
	return count(len(m.Files), "file")
}

// past joins the folders of the runs with the journal. Either may be missing. All are also runs of other repositories.
func (a *app) past(ctx context.Context, p place, all bool) (list []pastRun, trouble []string, err error) {
	entries, err := runs.List(p.top)
	if err != nil {
		return nil, nil, cannot(err)
	}
	byID := map[string]*pastRun{}
	for _, e := range entries {
		r := &pastRun{Meta: e.Meta, local: true}
		if e.Err != nil && !errors.Is(e.Err, fs.ErrNotExist) {
			r.Trouble, r.damaged = append(r.Trouble, e.Err.Error()), true
		}
		byID[e.ID] = r
	}
	known, err := a.joinJournal(ctx, p, all, byID)
	if ctx.Err() != nil {
		return nil, nil, context.Cause(ctx)
	}
	if err != nil {
		trouble = append(trouble, fmt.Sprintf("the journal cannot be read, so runs that go on look like interrupted ones: %v%s", err, damageAdvice(err)))
	}
	left := sync.OnceValues(func() ([]workspace.Leftover, error) { return a.leftovers(ctx, p.top) })
	for _, r := range byID {
		r.conclude(known)
		if r.Tree == "" && (r.State == string(runs.Interrupted) || r.State == string(runs.Paused)) {
			if err := r.canGoOn(left); err != nil {
				r.Trouble = append(r.Trouble, fmt.Sprintf("whether it can go on is not known: %v", err))
			}
		}
		list = append(list, *r)
	}
	slices.SortFunc(list, func(a, b pastRun) int { return cmp.Compare(b.ID, a.ID) })
	return list, trouble, nil
}

// enrich takes from the journal how runs ended whose folder is not here.
func (a *app) enrich(ctx context.Context, p place, list []pastRun) (trouble []string) {
	ended := func(r pastRun) bool { return !r.local && r.Journal != nil && r.Journal.Ended }
	if !slices.ContainsFunc(list, ended) {
		return nil
	}
	j, _, err := a.readJournal(ctx, p)
	if err != nil || j == nil {
		return nil // past has told of it
	}
	defer func() { _ = j.Close() }()
	for i := range list {
		r := &list[i]
		if !ended(*r) {
			continue
		}
		m, ok, err := readOutcome(ctx, j, r.ID, r.Journal.Records)
		if err != nil {
			r.Trouble = append(r.Trouble, err.Error()+damageAdvice(err))
		}
		if ok {
			r.Meta = m
		}
	}
	return nil
}

// leftovers are the runs whose snapshot still exists: only they can go on.
func (a *app) leftovers(ctx context.Context, top string) ([]workspace.Leftover, error) {
	repo, err := workspace.Open(ctx, top, workspace.Options{Exclude: excluded, Env: a.Environ})
	if err != nil {
		return nil, err
	}
	return repo.Leftovers(ctx)
}

// canGoOn takes back the advice to go on with a run whose snapshot is gone: then its tree was put back.
func (r *pastRun) canGoOn(leftovers func() ([]workspace.Leftover, error)) error {
	left, err := leftovers()
	if err != nil {
		return err
	}
	i := slices.IndexFunc(left, func(l workspace.Leftover) bool { return l.Run == r.ID })
	switch {
	case i < 0 && r.Preserved != "":
		r.Next = "the tree was put back; its changes are kept: git stash apply " + short7(r.Preserved)
	case i < 0 && r.Restored != nil && *r.Restored:
		r.Next = "the tree was put back, and nothing had been changed; ask for the same again"
	case i < 0 && !r.Ended.IsZero(): // it was given up
		r.Next = r.again()
	case i < 0 && r.local:
		r.Next = r.over() + "; " + r.again() + "; or take it off the list: fiducial resume " + r.ID + " --give-up"
	case i < 0:
		r.Next = "its snapshot is gone, so there is nothing to go on with; " + r.again()
	case left[i].Elsewhere != "":
		r.Next = "it belongs to another working tree: " + left[i].Elsewhere
	}
	return nil
}

// over says of a run without an outcome and without a snapshot how it stands: what holds the tree for it is made before
// the first record, and goes when the tree is put back or committed.
func (r *pastRun) over() string {
	if r.Journal == nil || r.Journal.Records <= 1 { // the header
		return "it was killed before it began, and nothing was changed"
	}
	return "it was killed when all but its last note was done: the tree was put back or committed, see git log"
}

// again is the advice to begin anew.
func (r *pastRun) again() string {
	if r.Request == "" {
		return "ask for the same again"
	}
	return "ask for the same again: fiducial do " + strconv.Quote(ui.Clean(r.Request))
}

// joinJournal adds what the journal says, and the runs that only it knows. known is false when there is none.
func (a *app) joinJournal(ctx context.Context, p place, all bool, byID map[string]*pastRun) (known bool, err error) {
	j, at, err := a.readJournal(ctx, p)
	if err != nil || j == nil {
		return false, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	var filter journal.Filter
	here := a.origin(ctx, p)
	if at.Shared() && !all {
		if here.err != nil {
			return false, here.err
		}
		filter.Labels = map[string]string{labelRepository: here.repository}
	}
	for info, err := range j.Runs(ctx, filter) {
		if err != nil && info.Run == "" {
			return false, err
		}
		r := byID[info.Run]
		if r == nil {
			r = &pastRun{Meta: runs.Meta{ID: info.Run, Files: []string{}}}
			byID[info.Run] = r
		}
		if err != nil {
			r.Trouble = append(r.Trouble, err.Error()+damageAdvice(err))
			continue
		}
		r.Journal = &journalJSON{
			Records: info.Head, Phase: info.Phase, Ended: info.Ended, Held: info.Held, Owner: info.Owner, Parent: info.Parent, Updated: info.Updated,
		}
		if tree := info.Labels[labelTree]; !r.local && tree != here.tree {
			r.Tree = tree
		}
		r.Request = cmp.Or(r.Request, info.Labels[labelRequest])
		r.Model = cmp.Or(r.Model, info.Labels[labelModel])
		r.Project = cmp.Or(r.Project, info.Labels[labelProject])
		if r.Started.IsZero() {
			r.Started = info.Created
		}
	}
	return true, nil
}

// conclude tells how the run stands. Known says that the journal could be asked.
func (r *pastRun) conclude(known bool) {
	switch {
	case r.Journal != nil && r.Journal.Held:
		r.State = running
	case r.Outcome != runs.Going:
		r.State = string(r.Outcome)
	case r.Journal != nil && r.Journal.Ended && isOutcome(r.Journal.Phase):
		r.State = r.Journal.Phase
	case r.damaged:
		r.State = "unknown"
	case r.Journal != nil && r.Journal.Parent != "" && !r.local:
		r.State = fork
	case r.Journal != nil && r.Journal.Ended && r.Version == 0:
		// Only the journal knows it: how it ended for the design stood in the folder.
		r.State = "ended"
		r.Trouble = append(r.Trouble, "its folder is gone; the journal says: "+r.Journal.Phase)
	default:
		r.State = string(runs.Interrupted)
		if !known {
			r.Trouble = append(r.Trouble, "without a journal nothing tells whether it still goes on")
		}
	}
	r.Next = nextStep(r)
}

// nextStep says what a person can do about a run that is not over.
func nextStep(r *pastRun) string {
	switch r.State {
	case running:
		return "it goes on now: " + cmp.Or(r.Journal.Owner, "its owner is not known")
	case fork:
		return "forked from run " + r.Journal.Parent
	case string(runs.Interrupted), string(runs.Paused):
		if r.Tree != "" {
			return "go on where it works, in " + r.Tree + ": fiducial resume " + r.ID
		}
		if r.Journal == nil {
			return "put the tree back: fiducial resume " + r.ID + " --give-up"
		}
		return "go on: fiducial resume " + r.ID + "; or put the tree back: fiducial resume " + r.ID + " --give-up"
	}
	return ""
}
