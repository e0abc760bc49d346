// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fiducial-dev/fiducial/journal/sqlite"
	"github.com/fiducial-dev/fiducial/kicad/agent"
	"github.com/fiducial-dev/fiducial/kicad/internal/models"
	"github.com/fiducial-dev/fiducial/kicad/internal/runs"
	"github.com/fiducial-dev/fiducial/kicad/internal/ui"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/mask"
	"github.com/fiducial-dev/fiducial/task"
	"github.com/fiducial-dev/fiducial/task/transcript"
	"github.com/fiducial-dev/fiducial/task/workspace"
)

// doFlags are what do and resume are told.
type doFlags struct {
	model      string
	maxTurns   int
	allowDirty bool
	dryRun     bool
	giveUp     bool
}

func newDo(a *app) *cobra.Command {
	var f doFlags
	cmd := &cobra.Command{
		Use:   "do REQUEST",
		Short: "Carry out a request on the project, verified, as one commit",
		Long: `Carries out a request in words: a model reads the design and edits its files through tools, kicad-cli judges every edit,
and the run may end as done only when ERC, DRC and the comparison of the documents have run after the last edit and found
nothing that was not there before. Then it is one git commit. A request that would break the design is refused. A run that is refused or fails
leaves the tree as it was, byte for byte; what a failed run had changed is kept as a git stash.

Without a key and without --model the built-in planner is the model. It needs no account and no network, and carries out
mechanical requests:

  rename net OLD to NEW             set value of R1 to 4k7
  rename reference R1 to R10        set footprint of R1 to Resistor_SMD:R_0805_2012Metric
  mark R1 as DNP (or: do not fit R1; fit R1)
  set field MPN of R1 to RC0603FR-074K7L
  check and fix docs                repairs the documents by the design

JSON keys: run, outcome, path, detail, model, request, dry_run, commit, files [], stat [path, added, deleted],
verification [], warnings [], turns, usage, preserved, restored, summary, transcript, exit_code.`,
		Example: `  fiducial do "rename net STATUS to HEARTBEAT"
  fiducial do --dry-run "set value of R1 to 470"
  fiducial do --model builtin --json "rename reference R3 to R30"`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			request := strings.TrimSpace(strings.Join(args, " "))
			if request == "" {
				return cannot(errors.New("the request is empty"), `say what to do, for example: fiducial do "rename net A to B"`)
			}
			return a.do(cmd.Context(), request, f)
		},
	}
	addModelFlags(cmd, &f)
	cmd.Flags().BoolVar(&f.allowDirty, "allow-dirty", false, "run although there are uncommitted changes; the commit holds the run's own changes only")
	cmd.Flags().BoolVar(&f.dryRun, "dry-run", false, "show the changes and put the tree back")
	return cmd
}

func addModelFlags(cmd *cobra.Command, f *doFlags) {
	cmd.Flags().StringVar(&f.model, "model", "", "the model: "+models.Usage)
	cmd.Flags().IntVar(&f.maxTurns, "max-turns", task.DefaultMaxTurns, "replies of the model; on a terminal more can be granted when they are used up")
}

func newResume(a *app) *cobra.Command {
	var f doFlags
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Go on with a run that was interrupted, or give it up",
		Long: `Goes on with a run whose process died, from its journal: calls that had finished stand, calls that had begun are told to
the model as unknown and are not run again, and checks are due again for every file that differs from the snapshot.

With --give-up the run is not continued: what it had changed is kept as a git stash and the tree is put back as it was.

RUN is the run's id, a part of it that fits no other, or "last".`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if !cmd.Flags().Changed("max-turns") {
				f.maxTurns = 0 // what the run began with
			}
			return a.resume(cmd.Context(), args[0], f)
		},
	}
	addModelFlags(cmd, &f)
	cmd.Flags().BoolVar(&f.giveUp, "give-up", false, "put the tree back, and keep the changes as a stash")
	return cmd
}

// excluded are files in the tree that are no part of a design: editors' locks, and
// what an edit leaves when it is killed half-way.
var excluded = []string{"~*.lck", ".fiducial-*.tmp", "fp-info-cache"}

// session is what do and resume work with.
type session struct {
	*app
	doFlags
	place   place
	repo    *workspace.Repo
	bench   *agent.Bench
	runner  *kicadcli.Runner
	model   models.Choice
	masker  *mask.Masker
	log     *transcript.Log
	journal *sqlite.Journal
	ui      *ui.UI
	meta    runs.Meta
	closers []func() error

	resumed   bool
	logFailed bool // the person was told that the transcript is incomplete
}

func (a *app) do(ctx context.Context, request string, f doFlags) error {
	s, err := a.open(ctx, f)
	if err != nil {
		return err
	}
	defer s.close()
	if s.masker.Found(request) { // it would stand in the commit, the journal and the transcript
		return cannot(errors.New("the request holds a secret, in the shape of a key or as the value of an environment variable that is named as one"),
			"say it without the secret")
	}
	if err := s.noLeftovers(ctx); err != nil {
		return err
	}
	if err := s.repo.Preflight(ctx, f.allowDirty); err != nil { // before anything is written (B-3)
		return preflight(err)
	}
	log, err := transcript.Create(s.repo.Top(), time.Now(), s.masker)
	if err != nil {
		return cannot(err)
	}
	s.log = log
	s.closers = append(s.closers, log.Close)
	return s.run(ctx, request, task.Run)
}

// open gets everything ready that needs nothing written.
func (a *app) open(ctx context.Context, f doFlags) (_ *session, err error) {
	s := &session{app: a, doFlags: f, masker: mask.New(mask.FromEnv(a.Environ)...)}
	defer func() {
		if err != nil {
			s.close()
		}
	}()
	if s.place, err = a.place(); err != nil {
		return nil, err
	}
	s.repo, err = workspace.Open(ctx, s.place.dir, workspace.Options{Exclude: excluded, Env: a.Environ})
	if err != nil {
		return nil, preflight(err)
	}
	s.place.top = s.repo.Top()
	if f.giveUp { // neither a model nor KiCad is needed
		s.ui = a.newUI()
		s.closers = append(s.closers, s.ui.Close)
		return s, nil
	}
	if s.model, err = models.Choose(f.model, a.lookup); err != nil {
		return nil, cannot(err)
	}
	proj, err := a.find(s.place)
	if err != nil {
		return nil, err
	}
	if proj.Root == "" && proj.PCB == "" {
		return nil, cannot(fmt.Errorf("project %s has neither a schematic nor a board", proj.Name))
	}
	if s.runner, err = a.runner(); err != nil {
		return nil, err
	}
	s.closers = append(s.closers, s.runner.Close)
	version, err := s.runner.Version(ctx)
	if err != nil {
		if why := unusable(ctx, s.runner); why != "" {
			err = errors.New(why)
		}
		return nil, cannot(err, installKiCad)
	}
	s.ui = a.newUI()
	s.closers = append(s.closers, s.ui.Close)
	if w := version.Warning(); w != "" {
		s.ui.Warn("%s", w)
	}
	if s.bench, err = agent.New(agent.Options{Top: s.repo.Top(), Project: proj, CLI: s.runner}); err != nil {
		return nil, cannot(err)
	}
	s.meta.Model, s.meta.MaxTurns, s.meta.DryRun = s.model.Name, f.maxTurns, f.dryRun
	s.meta.Project = firstOf(proj.Pro, proj.Root, proj.PCB)
	s.meta.Environment = map[string]string{
		"fiducial": buildVersion().Version, "kicad-cli": version.Text, "model": s.model.Name,
	}
	return s, nil
}

func firstOf(names ...string) string {
	for _, n := range names {
		if n != "" {
			return n
		}
	}
	return ""
}

func (s *session) close() {
	for _, c := range slices.Backward(s.closers) {
		_ = c() // each is closed whatever the others say; what mattered was flushed before
	}
	s.closers = nil
}

// preflight is a refusal to begin, with its remedies.
func preflight(err error) error {
	if p, ok := errors.AsType[*workspace.PreflightError](err); ok {
		return cannot(fmt.Errorf("%s: %s", strings.TrimRight(p.Reason, "."), p.Why), p.Remedies...)
	}
	if e, ok := errors.AsType[*workspace.Error](err); ok && e.Advice != "" {
		return cannot(err, e.Advice)
	}
	return cannot(err)
}

// noLeftovers refuses to begin while an interrupted run has the tree.
func (s *session) noLeftovers(ctx context.Context) error {
	left, err := s.repo.Leftovers(ctx)
	if err != nil {
		return cannot(err)
	}
	for _, l := range left {
		if l.Elsewhere != "" {
			continue
		}
		lock, err := s.repo.Lock(ctx, "look", time.Now())
		if err != nil {
			return preflight(err) // it is going on now; the error names it
		}
		if l.Committed != "" { // killed behind its commit: only its snapshot is left
			err := s.tidy(ctx, l.Run)
			_ = lock.Release()
			if err != nil {
				return preflight(err)
			}
			continue
		}
		_ = lock.Release()
		return cannot(fmt.Errorf("run %s was interrupted, and the tree may hold its changes", l.Run),
			"go on with it: fiducial resume "+l.Run,
			"or put the tree back, keeping its changes as a stash: fiducial resume "+l.Run+" --give-up")
	}
	return nil
}

// tidy drops the snapshot of a run that ended well.
func (s *session) tidy(ctx context.Context, run string) error {
	snap, err := s.repo.Reopen(ctx, run)
	if err != nil {
		return err
	}
	return snap.Release(ctx)
}

// run carries the run out and tells of it.
func (s *session) run(ctx context.Context, request string, begin func(context.Context, task.Config) (*task.Result, error)) error {
	id := s.log.Run()
	s.meta.ID, s.meta.Request = id, request
	if s.meta.Started.IsZero() {
		s.meta.Started = time.Now().UTC()
	}
	if head, err := s.repo.Head(ctx); err == nil && s.meta.Head == "" {
		s.meta.Head = head.Commit
	}
	j, err := sqlite.Open(ctx, filepath.Join(s.repo.Top(), runs.Journal("")), sqlite.Options{})
	if err != nil {
		return cannot(err, "see whether the disk is full and .fiducial can be written")
	}
	s.journal = j
	s.closers = append(s.closers, j.Close)
	s.save()
	view := newView(s.ui, s.maxTurns)
	cfg := task.Config{
		Client: s.model.Client, Model: s.model.Name, Settings: s.model.Settings,
		Repo: s.repo, Run: id, Request: request, Domain: s.bench, Journal: j,
		Header: s.header(), AllowDirty: s.allowDirty, DryRun: s.dryRun, MaxTurns: s.maxTurns,
		Events: view, Event: s.event, Mask: s.masker,
	}
	if s.ui.CanAsk() {
		cfg.Ask = s.ask
	}
	if !s.json {
		s.ui.Heading("fiducial %s: %s", id, request)
	}
	res, err := begin(ctx, cfg)
	view.done()
	if err != nil {
		if !s.resumed { // a run that cannot be taken up now is as it was
			s.meta.Outcome, s.meta.Reason, s.meta.Ended = runs.Failed, err.Error(), time.Now().UTC()
			s.save()
		}
		return preflight(err)
	}
	return s.finish(res)
}

func (s *session) header() map[string]any {
	h := map[string]any{"project": s.meta.Project, "head": s.meta.Head}
	for k, v := range s.meta.Environment {
		h[k] = v
	}
	return h
}

// event adds to the transcript. A transcript that cannot be written, on a full
// disk, is no reason to leave the design half-edited: the person is told once.
func (s *session) event(kind string, data any) {
	if err := s.log.Append(time.Now(), transcript.EventKind(kind), data); err != nil && !s.logFailed {
		s.logFailed = true
		s.ui.Warn("the transcript is incomplete: %v", err)
	}
}

func (s *session) save() {
	if err := runs.Write(s.repo.Top(), s.meta); err != nil {
		s.ui.Warn("%s could not be written: %v", runs.MetaFile, err)
	}
}

// ask puts the budget question (B-14, B-23).
func (s *session) ask(ctx context.Context, e task.Exhausted) (int, error) {
	question := fmt.Sprintf("The budget of %s is used up. %s touched, %s open, %d tokens in and %d out so far. How many more turns?",
		count(e.TurnsUsed, "turn"), count(len(e.Touched), "file"), count(e.Open, "obligation"), e.Usage.Input.Value(), e.Usage.Output.Value())
	n, ok := s.ui.Ask(ctx, question, (s.maxTurns+1)/2)
	if !ok {
		return 0, nil
	}
	return n, nil
}

func (a *app) resume(ctx context.Context, which string, f doFlags) error {
	p, err := a.place()
	if err != nil {
		return err
	}
	list, _, err := a.past(ctx, p.top)
	if err != nil {
		return err
	}
	r, err := pick(list, which)
	if err != nil {
		return err
	}
	meta, err := runs.Read(p.top, r.ID)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cannot(err)
	}
	if f.model == "" {
		f.model = meta.Model
	}
	f.dryRun = meta.DryRun
	if f.maxTurns == 0 {
		f.maxTurns = meta.MaxTurns
	}
	s, err := a.open(ctx, f)
	if err != nil {
		return err
	}
	defer s.close()
	if err := s.canResume(ctx, r.ID, meta); err != nil {
		return err
	}
	s.resumed, s.meta.Started, s.meta.Head = true, meta.Started, meta.Head
	log, _, err := transcript.Open(s.repo.Top(), r.ID, s.masker)
	if err != nil {
		return cannot(err)
	}
	s.log = log
	s.closers = append(s.closers, log.Close)
	if f.giveUp {
		return s.abandon(ctx, meta)
	}
	return s.run(ctx, meta.Request, task.Resume)
}

// canResume refuses a run that goes on, or that left nothing to go on with.
func (s *session) canResume(ctx context.Context, run string, meta runs.Meta) error {
	left, err := s.repo.Leftovers(ctx)
	if err != nil {
		return cannot(err)
	}
	i := slices.IndexFunc(left, func(l workspace.Leftover) bool { return l.Run == run })
	switch {
	case i < 0 && meta.Preserved != "":
		return cannot(fmt.Errorf("run %s has ended, and the tree was put back; its changes are kept as a stash", run),
			"take them up: git stash apply "+short7(meta.Preserved), "or ask for the same again: fiducial do "+strconv.Quote(meta.Request))
	case i < 0:
		return cannot(fmt.Errorf("run %s has ended (%s); there is nothing to go on with", run, cmp.Or(string(meta.Outcome), "before its first step")),
			"ask for the same again: fiducial do "+strconv.Quote(meta.Request))
	case left[i].Elsewhere != "":
		return cannot(fmt.Errorf("run %s belongs to another working tree of this repository", run), "see git worktree list, and go there")
	}
	lock, err := s.repo.Lock(ctx, run, time.Now())
	if err != nil {
		return preflight(err) // it is going on now; the error names it
	}
	return lock.Release()
}

// abandon gives an interrupted run up.
func (s *session) abandon(ctx context.Context, meta runs.Meta) error {
	s.meta = meta
	s.meta.ID = s.log.Run()
	res, err := task.GiveUp(ctx, task.Config{Repo: s.repo, Run: s.log.Run(), Request: meta.Request, Event: s.event})
	if err != nil {
		return preflight(err)
	}
	return s.finish(res)
}
