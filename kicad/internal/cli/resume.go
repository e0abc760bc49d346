// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/kicad/internal/journals"
	"github.com/fiducial-dev/fiducial/kicad/internal/models"
	"github.com/fiducial-dev/fiducial/kicad/internal/runs"
	"github.com/fiducial-dev/fiducial/kicad/internal/ui"
	"github.com/fiducial-dev/fiducial/task"
	"github.com/fiducial-dev/fiducial/task/transcript"
	"github.com/fiducial-dev/fiducial/task/workspace"
)

func newResume(a *app) *cobra.Command {
	var f doFlags
	cmd := &cobra.Command{
		Use:   "resume RUN",
		Short: "Go on with a run that was interrupted, or give it up",
		Long: `Goes on with a run whose process died, from its journal: calls that had finished stand, calls that had begun are told to
the model as unknown and are not run again, and checks are due again for every file that differs from the snapshot. The
files must hold what the journal says the run had written. A run can go on only in the working tree that it began in.

The turns that the run may take stay as they were. Where they are used up, a terminal is asked for more; without one
--max-turns N grants N more.

With --give-up the run is not continued: what it had changed is kept as a git stash and the tree is put back as it was.

RUN is the run's id, a part of it that fits no other, or "last", the newest of this working tree.

Exit codes and JSON keys: those of do.`,
		Example: `  fiducial resume last
  fiducial resume last --max-turns 20
  fiducial resume 20261130-081500-042 --give-up`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("max-turns") && f.extension < 1 {
				return cannot(fmt.Errorf("--max-turns: %d is no number of turns", f.extension), "give 1 or more")
			}
			return a.resume(cmd.Context(), args[0], f)
		},
	}
	cmd.Flags().StringVar(&f.model, "model", "", "another model than the run's: "+models.Usage)
	cmd.Flags().IntVar(&f.extension, "max-turns", 0, "so many turns more, when those that the run began with are used up")
	cmd.Flags().BoolVar(&f.giveUp, "give-up", false, "put the tree back, and keep the changes as a stash")
	return cmd
}

func (a *app) resume(ctx context.Context, which string, f doFlags) error {
	p, err := a.place()
	if err != nil {
		return err
	}
	r, _, err := a.pickPast(ctx, p, which, false)
	if err != nil {
		return err
	}
	if r.Tree != "" {
		return notHere(r)
	}
	meta, err := runs.Read(p.top, r.ID)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return cannot(err)
	}
	meta.Request = cmp.Or(meta.Request, r.Request) // the journal knows it too
	f.model = cmp.Or(f.model, meta.Model)
	f.dryRun, f.maxTurns = meta.DryRun, meta.MaxTurns
	s, err := a.open(ctx, f)
	if err != nil {
		return err
	}
	defer s.close()
	held, err := s.canResume(ctx, r, meta)
	if err != nil {
		return err
	}
	if !held {
		return s.clear(ctx, r.ID, meta, r.over())
	}
	s.resumed, s.meta.Started, s.meta.Head = true, meta.Started, meta.Head
	if !f.giveUp {
		if err := s.takeUp(ctx, r.ID, meta); err != nil {
			return err
		}
	}
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

// notHere refuses a run of another working tree: what it had changed, and what it began with, are there.
func notHere(r pastRun) error {
	switch {
	case r.State == running:
		return cannot(fmt.Errorf("run %s goes on now, in %s", r.ID, r.Tree), "watch it: fiducial show --follow "+r.ID)
	case r.State == string(runs.Interrupted) || r.State == string(runs.Paused):
		return cannot(fmt.Errorf("run %s works in %s; its snapshot and the files that it changed are there, not here", r.ID, r.Tree),
			"go on there: fiducial resume "+r.ID, "or ask for the same here: fiducial do "+strconv.Quote(r.Request))
	}
	return cannot(fmt.Errorf("run %s of %s has ended (%s); there is nothing to go on with", r.ID, r.Tree, r.State),
		"ask for the same here: fiducial do "+strconv.Quote(r.Request))
}

// canResume refuses a run that goes on, or that left nothing to go on with. One of the latter that has no outcome may
// be given up: held is false for it, for nothing holds its tree.
func (s *session) canResume(ctx context.Context, r pastRun, meta runs.Meta) (held bool, err error) {
	left, err := s.repo.Leftovers(ctx)
	if err != nil {
		return false, cannot(err)
	}
	i := slices.IndexFunc(left, func(l workspace.Leftover) bool { return l.Run == r.ID })
	switch {
	case i < 0 && meta.Preserved != "":
		return false, cannot(fmt.Errorf("run %s has ended, and the tree was put back; its changes are kept as a stash", r.ID),
			"take them up: git stash apply "+short7(meta.Preserved), r.again())
	case i < 0 && meta.Outcome != runs.Going:
		return false, cannot(fmt.Errorf("run %s has ended (%s); there is nothing to go on with", r.ID, meta.Outcome), r.again())
	case i < 0 && !s.giveUp:
		return false, cannot(fmt.Errorf("there is nothing of run %s to go on with: %s", r.ID, r.over()),
			r.again(), "or take it off the list: fiducial resume "+r.ID+" --give-up")
	case i >= 0 && left[i].Elsewhere != "":
		return false, cannot(fmt.Errorf("run %s belongs to another working tree of this repository", r.ID), "see git worktree list, and go there")
	}
	lock, err := s.repo.Lock(ctx, r.ID, time.Now())
	if err != nil {
		return false, preflight(err) // it is going on now; the error names it
	}
	return i >= 0, lock.Release()
}

// clear notes the end of a run that left nothing but its folder and its place in the list.
func (s *session) clear(ctx context.Context, run string, meta runs.Meta, why string) error {
	s.meta = meta
	s.meta.ID, s.meta.Ended = run, time.Now().UTC()
	s.meta.Outcome, s.meta.Exit, s.meta.Reason = runs.Interrupted, runs.ExitInterrupted, why
	s.save()
	s.endJournal(ctx)
	if s.json {
		s.noSummary = true
		out := s.object(&task.Result{Run: run, Path: task.PathCancelled, Detail: why}, exitOK)
		if _, err := os.Stat(filepath.Join(s.repo.Top(), filepath.FromSlash(out.Transcript))); err != nil {
			out.Transcript = ""
		}
		return s.ui.Object(out)
	}
	s.ui.Line("Given up: run %s; %s", run, why)
	return nil
}

// takeUp acquires the run's records and holds them against the files, before anything is written.
func (s *session) takeUp(ctx context.Context, run string, meta runs.Meta) error {
	giveUp := "or put the tree back: fiducial resume " + run + " --give-up"
	if err := s.openJournal(ctx); err != nil {
		return err
	}
	k, err := s.keep(ctx, run)
	switch {
	case errors.Is(err, journal.ErrNotFound) && meta.Store != "" && meta.Store != s.meta.Store:
		return cannot(fmt.Errorf("run %s is not in the journal %s: it began in %s", run, s.meta.Store, meta.Store),
			"set "+journals.Env+" to what it was then, or unset it", giveUp)
	case errors.Is(err, journal.ErrNotFound):
		return cannot(fmt.Errorf("run %s is not in the journal %s", run, s.meta.Store), strings.TrimPrefix(giveUp, "or "))
	case errors.Is(err, journal.ErrHeld):
		return cannot(err, "watch it: fiducial show --follow "+run)
	case err != nil:
		return journalFailure(err)
	}
	s.keeper = k
	s.closers = append(s.closers, func() error { return k.Release(context.WithoutCancel(ctx)) })
	st, err := readStanding(ctx, s.journal, run)
	if err != nil {
		return cannot(err, strings.TrimPrefix(giveUp, "or "))
	}
	if st.spent() && s.extension == 0 && !s.newUI().CanAsk() {
		return cannot(fmt.Errorf("run %s has used all of its %s", run, count(st.Turns, "turn")),
			"grant it more: fiducial resume "+run+" --max-turns "+strconv.Itoa(max(1, (meta.MaxTurns+1)/2)), giveUp)
	}
	return s.written(ctx, run, st.Touched, giveUp)
}

// keep acquires the run. Nobody works in this tree, or its lock would have told: who holds the run is dead, and a server
// lets go of it some seconds later.
func (s *session) keep(ctx context.Context, run string) (*journals.Keeper, error) {
	for end := time.Now().Add(leaseTime); ; {
		k, err := journals.Keep(ctx, s.journal, run, s.here.ownerOf())
		held, ok := errors.AsType[*journal.HeldError](err)
		if !ok || !strings.HasSuffix(held.Owner, s.here.tree) || time.Now().After(end) {
			return k, err
		}
		s.ui.Status(ui.Status{Now: "waiting until the server lets go of the run for " + held.Owner + ", which was killed", Since: time.Now()})
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(time.Second):
		}
	}
}

// leaseTime is longer than a server holds a run for a process that has died.
const leaseTime = 40 * time.Second

// A standing is what the rules of a run noted last, as far as going on depends on it.
type standing struct {
	Turns   int             `json:"turns"`
	Budget  int             `json:"budget"`
	Touched []string        `json:"touched"`
	Finish  json.RawMessage `json:"finish"`
	asking  bool            // a request is next, not the results of calls
}

// taskNote is the kind of the notes of package task.
const taskNote = "task"

func readStanding(ctx context.Context, j journal.Journal, run string) (st standing, err error) {
	info, err := j.Stat(ctx, run)
	if err != nil {
		return st, err
	}
	for rec, err := range j.Read(ctx, run, 0) {
		if err != nil {
			return st, err
		}
		n, ok := rec.Body.(journal.Note)
		if !ok || n.Kind != taskNote {
			continue
		}
		st = standing{}
		if err := json.Unmarshal(n.Data, &st); err != nil {
			return st, fmt.Errorf("record %d of run %s: %w", rec.Seq, run, err)
		}
	}
	st.asking = info.Phase == "generating"
	return st, nil
}

// spent reports whether no request can be made without more turns.
func (st standing) spent() bool {
	return st.asking && st.Budget > 0 && st.Turns >= st.Budget && len(st.Finish) == 0
}

// written refuses a tree that does not hold the files that the run had changed: somebody has put them back, or the tree
// is another one, and the model would go on from what is not there.
func (s *session) written(ctx context.Context, run string, touched []string, giveUp string) error {
	if len(touched) == 0 {
		return nil
	}
	snap, err := s.repo.Reopen(ctx, run)
	if err != nil {
		return preflight(err)
	}
	if snap.Committed() != "" {
		return nil
	}
	changes, err := snap.Changed(ctx)
	if err != nil {
		return preflight(err)
	}
	missing := slices.DeleteFunc(slices.Clone(touched), func(name string) bool {
		return slices.ContainsFunc(changes, func(c workspace.Change) bool { return c.Path == name })
	})
	if len(missing) == len(touched) {
		return cannot(fmt.Errorf("the files do not hold what the journal says that run %s has written: %s stand as before the run", run, listed(missing)),
			"put back what the run had written, if it is kept somewhere: git stash list", giveUp)
	}
	if len(missing) > 0 {
		s.ui.Warn("run %s has written %s, which stand as before the run", run, listed(missing))
	}
	return nil
}

// abandon gives an interrupted run up.
func (s *session) abandon(ctx context.Context, meta runs.Meta) error {
	s.meta = meta
	s.meta.ID = s.log.Run()
	res, err := task.GiveUp(ctx, task.Config{Repo: s.repo, Run: s.log.Run(), Request: meta.Request, Event: s.event})
	if err != nil {
		return preflight(err)
	}
	return s.finish(ctx, res)
}
