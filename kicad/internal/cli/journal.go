// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/kicad/internal/journals"
	"github.com/fiducial-dev/fiducial/kicad/internal/runs"
	"github.com/fiducial-dev/fiducial/llm"
)

// The labels of a run in the journal, beside request and model.
const (
	labelRequest    = "request"
	labelModel      = "model"
	labelRepository = "repository" // its first commit, the same in every clone
	labelProject    = "project"    // the .kicad_pro, or what stands for it, relative to the top of the repository
	labelTree       = "tree"       // host:folder, the working tree that the run changes
)

// outcomeNote is the kind of a run's last record, which holds its [runs.Meta]: how it
// ended for the design.
const outcomeNote = "outcome"

// store is the journal that the environment names.
func (a *app) store(p place) (journals.Place, error) {
	at, err := journals.Find(a.lookup, p.top)
	if err != nil {
		return at, cannot(err)
	}
	return at, nil
}

// openJournal opens the journal for writing.
func (a *app) openJournal(ctx context.Context, p place) (journal.Journal, journals.Place, error) {
	at, err := a.store(p)
	if err != nil {
		return nil, at, err
	}
	j, err := at.Open(ctx)
	if err != nil {
		return nil, at, unreachable(err)
	}
	return j, at, nil
}

// readJournal opens the journal for reading. It is nil when nobody has written to it yet.
func (a *app) readJournal(ctx context.Context, p place) (journal.Journal, journals.Place, error) {
	at, err := a.store(p)
	if err != nil {
		return nil, at, err
	}
	j, err := at.OpenReader(ctx)
	switch e, format := errors.AsType[*journal.FormatError](err); {
	case err == nil:
		return j, at, nil
	case errors.Is(err, fs.ErrNotExist), format && e.Version == 0 && at.Kind() == journals.Postgres:
		return nil, at, nil
	}
	return nil, at, unreachable(err)
}

// unreachable says what to do about a journal that cannot be opened.
func unreachable(err error) error {
	e, ok := errors.AsType[*journals.UnreachableError](err)
	switch {
	case !ok:
		return cannot(err)
	case errors.Is(err, journal.ErrFormat):
		return cannot(err, "use the newer fiducial that wrote it")
	case e.Place.Kind() == journals.Postgres && errors.Is(err, journal.ErrInvalid):
		return cannot(err, "mend the address in "+journals.Env, "or keep runs in .fiducial/journal.db: unset "+journals.Env)
	case e.Place.Kind() == journals.Postgres:
		return cannot(err, "see whether the server runs and lets you in: psql "+e.Place.String(),
			"or keep runs in .fiducial/journal.db meanwhile: unset "+journals.Env)
	case journals.IsFull(err):
		return cannot(err, "make room on the disk")
	}
	return cannot(err, "see whether you may write there, and whether the disk has room: "+e.Place.String())
}

// An origin is where a run belongs to.
type origin struct {
	repository string // "" when it cannot be told, and then err says why
	tree       string
	err        error
}

// origin tells clones of one repository from other repositories: they begin with the same commit. It is looked for
// along first parents, so that a history that was merged in later does not count.
func (a *app) origin(ctx context.Context, p place) origin {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	o := origin{tree: host + ":" + p.top}
	g := gitAt{dir: p.top, environ: a.Environ}
	shallow, err := g.run(ctx, "rev-parse", "--is-shallow-repository")
	if err != nil {
		o.err = cannot(fmt.Errorf("whose runs these are cannot be told: %w", err), "go to the repository of the project")
		return o
	}
	if strings.TrimSpace(string(shallow)) == "true" {
		o.err = cannot(errors.New("this clone is shallow: without the first commit of the repository its runs cannot be told from those of others"),
			"fetch the rest: git fetch --unshallow")
		return o
	}
	root, err := g.run(ctx, "rev-list", "--first-parent", "--max-parents=0", "HEAD")
	if err != nil {
		o.err = cannot(fmt.Errorf("whose runs these are cannot be told: %w", err), "make a first commit")
		return o
	}
	o.repository = strings.TrimSpace(string(root))
	return o
}

// labels are those of a new run.
func (o origin) labels(project, request, model string) map[string]string {
	all := map[string]string{
		labelRequest: llm.CutUTF8(request, 200), labelModel: model, labelProject: project,
		labelRepository: o.repository, labelTree: o.tree,
	}
	for k, v := range all {
		if v == "" {
			delete(all, k)
		}
	}
	return all
}

// ownerOf names this process to whoever wants the run.
func (o origin) ownerOf() string { return fmt.Sprintf("process %d, %s", os.Getpid(), o.tree) }

// outcomeMark is what the journal knows of a run that has ended, without its records.
func outcomeMark(o runs.Outcome) journal.Mark { return journal.Mark{Phase: string(o), Ended: true} }

// isOutcome tells our own words from the engine's.
func isOutcome(phase string) bool {
	return slices.Contains([]runs.Outcome{runs.Done, runs.Refused, runs.Failed, runs.Interrupted}, runs.Outcome(phase))
}

func outcomeBody(m runs.Meta) (journal.Note, error) {
	m.Version = runs.Version
	data, err := json.Marshal(m)
	return journal.Note{Kind: outcomeNote, Data: data}, err
}

// lastTime is how long the last record of a run may take when the command is being interrupted.
const lastTime = 20 * time.Second

// noteOutcome writes how a run that nobody holds has ended.
func (a *app) noteOutcome(ctx context.Context, p place, m runs.Meta) (err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastTime)
	defer cancel()
	j, _, err := a.openJournal(ctx, p)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	k, err := journals.Keep(ctx, j, m.ID, a.origin(ctx, p).ownerOf())
	if errors.Is(err, journal.ErrNotFound) {
		return nil // it is older than its journal, or in another one
	}
	if err != nil {
		return err
	}
	note, err := outcomeBody(m)
	if err != nil {
		return errors.Join(err, k.Release(ctx))
	}
	return k.End(ctx, outcomeMark(m.Outcome), note)
}

// readOutcome is what the journal's last record says of a run.
func readOutcome(ctx context.Context, j journal.Journal, run string, head uint64) (m runs.Meta, ok bool, err error) {
	for rec, err := range j.Read(ctx, run, head) {
		if err != nil {
			return m, false, err
		}
		n, is := rec.Body.(journal.Note)
		if ok = is && n.Kind == outcomeNote; !ok {
			continue
		}
		if err := json.Unmarshal(n.Data, &m); err != nil {
			return m, false, fmt.Errorf("the outcome of run %s in the journal: %w", run, err)
		}
	}
	m.ID = run
	return m, ok, nil
}
