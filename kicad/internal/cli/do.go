// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/kicad/agent"
	"github.com/fiducial-dev/fiducial/kicad/internal/journals"
	"github.com/fiducial-dev/fiducial/kicad/internal/models"
	"github.com/fiducial-dev/fiducial/kicad/internal/runs"
	"github.com/fiducial-dev/fiducial/kicad/internal/ui"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/planner"
	"github.com/fiducial-dev/fiducial/machine"
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
	extension  int // turns that resume adds when those of the run are used up
}

func newDo(a *app) *cobra.Command {
	var f doFlags
	cmd := &cobra.Command{
		Use:   "do REQUEST",
		Short: "Carry out a request on the project, verified, as one commit",
		Long: `Carries out a request in words: a model reads the design and edits its files through tools, kicad-cli judges every edit,
and the run may end as done only when ERC, DRC and the comparison of the documents have run after the last edit and found
nothing that was not there before. Then it is one git commit. A request that would break the design is refused. A run that
is refused or fails leaves the tree as it was, byte for byte; what a failed run had changed is kept as a git stash.

Ctrl-C and SIGTERM end a run in order: the tree is put back, and the changes are kept as a stash. After anything harder,
fiducial resume goes on. The records of the run are in the journal, see fiducial journal.

Exit codes: 0 done, 1 refused or failed, 2 it could not begin and nothing was written, 130 interrupted.

Without a key and without --model the built-in planner is the model. It needs no account and no network.

` + planner.Help + `

JSON keys: run, outcome, path, detail, model, request, dry_run, commit, files [], stat [path, added, deleted],
diff (of a dry run), verification [], warnings [], turns, usage, preserved, restored, summary, transcript, exit_code.`,
		Example: `  fiducial do "rename net STATUS to HEARTBEAT"
  fiducial do --dry-run "set value of R1 to 470"
  fiducial do "add a constraint: D1 current at most 20 mA because its data sheet says so"
  fiducial do "set R1 to 470; exclude SW1 from the BOM and record the decision to use 0603 parts because they are in stock"
  fiducial do --model builtin --json "rename reference R3 to R30"`,
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			request := strings.TrimSpace(strings.Join(args, " "))
			if request == "" {
				return cannot(errors.New("the request is empty"), `say what to do, for example: fiducial do "rename net A to B"`)
			}
			if f.maxTurns < 1 {
				return cannot(fmt.Errorf("--max-turns: %d is no number of turns", f.maxTurns), "give 1 or more")
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

// excluded are files in the tree that are no part of a design: editors' locks, and
// what an edit leaves when it is killed half-way.
var excluded = []string{"~*.lck", ".fiducial-*.tmp", "fp-info-cache"}

// session is what do and resume work with.
type session struct {
	*app
	doFlags
	place   place
	repo    *workspace.Repo
	bench   *wholeBench
	tree    tree // the project
	runner  *kicadcli.Runner
	model   models.Choice
	masker  *mask.Masker
	log     *transcript.Log
	journal journal.Journal
	keeper  *journals.Keeper // of the run's records
	here    origin
	ui      *ui.UI
	meta    runs.Meta
	closers []func() error

	resumed   bool
	logFailed bool // the person was told that the transcript is incomplete
	noSummary bool // it could not be written
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
	if err := beginsWhole(s.tree); err != nil {
		return err
	}
	if err := s.openJournal(ctx); err != nil {
		return err
	}
	if err := s.newRun(ctx, request); err != nil {
		return err
	}
	return s.run(ctx, request, task.Run)
}

// openJournal opens the journal, which nothing can go without. A server's is told whose runs they are.
func (s *session) openJournal(ctx context.Context) error {
	s.here = s.origin(ctx, s.place)
	at, err := s.store(s.place)
	if err != nil {
		return err
	}
	if at.Shared() && s.here.err != nil {
		return s.here.err
	}
	if s.journal, at, err = s.app.openJournal(ctx, s.place); err != nil {
		return err
	}
	s.closers = append(s.closers, s.journal.Close)
	s.meta.Store = at.String()
	return nil
}

// newRun makes the folder and the records of a run. Its name is new in both: somebody else may have begun a run in the
// same millisecond.
func (s *session) newRun(ctx context.Context, request string) error {
	for {
		log, err := transcript.Create(s.repo.Top(), time.Now(), s.masker)
		if err != nil {
			return cannot(err, "see whether the disk is full and .fiducial can be written")
		}
		run := log.Run()
		err = s.journal.Create(ctx, run, journal.Header{
			Rules: machine.RulesVersion, Labels: s.here.labels(s.meta.Project, request, s.meta.Model),
		})
		if err == nil {
			s.log = log
			s.closers = append(s.closers, log.Close)
			s.keeper, err = journals.Keep(ctx, s.journal, run, s.here.ownerOf())
		}
		if err == nil {
			return nil
		}
		// Nothing has begun, so nothing is left behind.
		gone := errors.Join(log.Close(), os.RemoveAll(filepath.Join(runs.Folder(s.repo.Top()), run)))
		if !errors.Is(err, journal.ErrExists) || gone != nil {
			return journalFailure(errors.Join(err, gone))
		}
	}
}

// journalFailure is a failure of the journal before a run began.
func journalFailure(err error) error {
	if journals.IsFull(err) {
		return cannot(fmt.Errorf("the disk is full: %w", err), "make room on the disk where the journal is: fiducial journal names it")
	}
	return cannot(err, "see what the journal says: fiducial journal")
}

// newMasker knows the secrets of the environment.
func (a *app) newMasker() *mask.Masker {
	values := mask.FromEnv(a.Environ)
	if at, err := journals.Find(a.lookup, ""); err == nil {
		values = append(values, at.Secrets()...)
	}
	return mask.New(values...)
}

// open gets everything ready that needs nothing written.
func (a *app) open(ctx context.Context, f doFlags) (_ *session, err error) {
	s := &session{app: a, doFlags: f, masker: a.newMasker()}
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
		sweep(os.TempDir(), time.Now()) // as whoever makes a folder there does
		s.ui = a.newUI()
		s.closers = append(s.closers, s.ui.Close)
		return s, nil
	}
	if s.model, err = models.Choose(f.model, a.lookup); err != nil {
		return nil, cannot(err, modelRemedies(err)...)
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
	bench, err := agent.New(agent.Options{Top: s.repo.Top(), Project: proj, CLI: s.runner})
	if err != nil {
		return nil, cannot(err)
	}
	s.tree = tree{top: s.repo.Top(), proj: proj}
	s.bench = newWholeBench(bench, s.tree, func(ctx context.Context, file string) string { return notLoaded(ctx, s.runner, s.tree, file) })
	s.meta.Model, s.meta.MaxTurns, s.meta.DryRun = s.model.Name, f.maxTurns, f.dryRun
	s.meta.Project = firstOf(proj.Pro, proj.Root, proj.PCB)
	s.meta.Environment = map[string]string{
		"fiducial": buildVersion().Version, "kicad-cli": version.Text, "model": s.model.Name,
	}
	return s, nil
}

// modelRemedies says what to do when there is no model.
func modelRemedies(err error) []string {
	if e, ok := errors.AsType[*models.MissingError](err); ok {
		return []string{"set " + strings.Join(e.Variables, " or "), "or let the built-in planner do it: --model builtin"}
	}
	return []string{"name the model: --model, or " + models.EnvModel + " in the environment; fiducial doctor says what is set"}
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
			err := s.tidy(ctx, l)
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

// tidy drops the snapshot of a run that ended well, and notes that it did.
func (s *session) tidy(ctx context.Context, l workspace.Leftover) error {
	snap, err := s.repo.Reopen(ctx, l.Run)
	if err != nil {
		return err
	}
	if m, err := runs.Read(s.repo.Top(), l.Run); err == nil && m.Outcome == runs.Going {
		m.Outcome, m.Exit, m.Commit, m.Ended = runs.Done, string(task.PathDone), l.Committed, time.Now().UTC()
		m.Reason = "it was killed behind its commit"
		g := gitAt{dir: s.repo.Top(), environ: s.Environ}
		if names, err := g.run(ctx, "diff-tree", "-r", "-z", "--name-only", "--no-commit-id", l.Committed); err == nil {
			m.Files = slices.DeleteFunc(strings.Split(string(names), "\x00"), func(n string) bool { return n == "" })
		}
		if err := errors.Join(runs.Write(s.repo.Top(), m), s.noteOutcome(ctx, s.place, m)); err != nil {
			s.ui.Warn("that run %s is done could not be noted: %v", l.Run, err)
		}
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
	s.save()
	view := newView(s.ui, s.model.Name, s.maxTurns)
	cfg := task.Config{
		Client: s.model.Client, Model: s.model.Name, Settings: s.model.Settings,
		Repo: s.repo, Run: id, Request: request, Domain: s.bench, Journal: s.keeper,
		Header: s.header(), AllowDirty: s.allowDirty, DryRun: s.dryRun, MaxTurns: s.maxTurns,
		Events: view, Event: s.event, Mask: s.masker,
	}
	if s.ui.CanAsk() || s.extension > 0 {
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
			s.endJournal(ctx)
		}
		return preflight(err)
	}
	return s.finish(ctx, res)
}

// endJournal writes the run's last record, also when ctx has ended. The run has ended all the same without it.
func (s *session) endJournal(ctx context.Context) {
	var err error
	if s.keeper == nil { // given up, which needs no journal
		err = s.noteOutcome(ctx, s.place, s.meta)
	} else {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTime)
		defer cancel()
		var note journal.Note
		if note, err = outcomeBody(s.meta); err == nil {
			err = s.keeper.End(ctx, outcomeMark(s.meta.Outcome), note)
		}
	}
	if err != nil {
		s.ui.Warn("how the run ended is not in the journal: %v%s", err, damageAdvice(err))
	}
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

// ask puts the budget question (B-14, B-23), behind what --max-turns of resume grants.
func (s *session) ask(ctx context.Context, e task.Exhausted) (int, error) {
	if n := s.extension; n > 0 {
		s.extension = 0
		if !s.json {
			s.ui.Line("%s used, %d more granted by --max-turns", count(e.TurnsUsed, "turn"), n)
		}
		return n, nil
	}
	question := fmt.Sprintf("The budget of %s is used up. %s touched, %s open, %d tokens in and %d out so far. How many more turns?",
		count(e.TurnsUsed, "turn"), count(len(e.Touched), "file"), count(e.Open, "obligation"), e.Usage.Input.Value(), e.Usage.Output.Value())
	n, ok := s.ui.Ask(ctx, question, (s.maxTurns+1)/2)
	if !ok {
		return 0, nil
	}
	return n, nil
}
