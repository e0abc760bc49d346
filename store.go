// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
	"github.com/fiducial-dev/fiducial/tool"
)

// store makes inputs durable before the next effect starts (S-86): in the
// journal, by the caller's checkpoint function, by both or by neither.
type store struct {
	j          journal.Journal
	run, owner string
	labels     map[string]string
	lease      journal.Lease
	pending    []journal.Body // accepted by the machine, not yet stored
	checkpoint func(machine.Checkpoint) error
	behind     bool                // what the machine accepted could not be stored
	again      bool                // the run was open before: what the journal holds counts
	unsure     bool                // the first append may have been stored
	owed       machine.OperationID // a reply whose committed event did not come yet
	notes      notes               // of other rooms, that are stored
}

func (s *store) init(cfg config) {
	s.j, s.run, s.owner, s.labels, s.checkpoint = cfg.journal, cfg.run, cfg.owner, cfg.labels, cfg.checkpoint
}

// keeps reports whether anything is stored at all.
func (s *store) keeps() bool { return s.j != nil || s.checkpoint != nil }

func (s *store) add(b ...journal.Body) {
	if s.j != nil {
		s.pending = append(s.pending, b...)
	}
}

// lastWrite is how long a store may take to write when the caller's context has
// ended.
const lastWrite = 30 * time.Second

// flush stores what is pending. What it could not store stays pending, so that
// the next flush tries again (S-90).
func (s *store) flush(ctx context.Context, op string, st *machine.State) error {
	if s.j == nil || len(s.pending) == 0 {
		return nil
	}
	if s.lease == nil {
		return fail(KindJournal, op, nil, "the run is not open")
	}
	if ctx.Err() != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), lastWrite)
		defer cancel()
	}
	if err := tried(func() error { return s.lease.Append(ctx, journal.MarkOf(st), s.pending...) }); err != nil {
		s.failed(ctx, &err)
		return journalError(op, err)
	}
	s.notes.stored(s.pending)
	clear(s.pending)
	s.pending = s.pending[:0]
	s.behind = false
	return nil
}

// failed is what follows an append that failed with err.
func (s *store) failed(ctx context.Context, err *error) {
	s.behind = true
	_, panicked := errors.AsType[*tool.PanicError](*err)
	switch {
	case errors.Is(*err, journal.ErrFenced) || errors.Is(*err, journal.ErrUncertain):
	case panicked, errors.Is(*err, journal.ErrInvalid) && s.again:
		// What it refuses, it would refuse for good, and whether a store that panicked has
		// stored anything nobody knows: what is stored is the truth.
		*err = errors.Join(*err, tried(func() error { return s.lease.Release(ctx) }))
	default:
		return
	}
	s.unsure = true
	s.drop()
}

// drop gives up a lease that has ended. What is in the journal is the truth now:
// the next open reads it, and what was not stored did not happen.
func (s *store) drop() { s.lease, s.pending = nil, nil }

// save is flush and the checkpoint function: the boundary before an effect and
// the one after it.
func (s *store) save(ctx context.Context, op string, st *machine.State) error {
	if err := s.flush(ctx, op, st); err != nil {
		return err
	}
	if s.checkpoint == nil {
		return nil
	}
	err := tried(func() error { return s.checkpoint(st.Checkpoint()) })
	s.behind = err != nil
	if err != nil {
		return fail(KindCheckpoint, op, err, "")
	}
	return nil
}

func (s *store) close(ctx context.Context) error {
	if s.lease == nil {
		return nil
	}
	err := tried(func() error { return s.lease.Release(ctx) })
	s.drop()
	if err != nil {
		return journalError("close", err)
	}
	return nil
}

// thisProcess names a holder for people: whom to look for when a run is held.
func thisProcess() string {
	host, err := os.Hostname()
	if err != nil {
		host = "a machine without a name"
	}
	return fmt.Sprintf("%s, process %d", host, os.Getpid())
}

// acquire takes the run, and makes it when there is none.
func (s *store) acquire(ctx context.Context, op string) error {
	if s.owner == "" {
		s.owner = thisProcess()
	}
	lease, err := guarded(func() (journal.Lease, error) {
		lease, err := s.j.Acquire(ctx, s.run, s.owner)
		if errors.Is(err, journal.ErrNotFound) {
			err = s.j.Create(ctx, s.run, journal.Header{Rules: machine.RulesVersion, Labels: s.labels})
			if err == nil || errors.Is(err, journal.ErrExists) {
				lease, err = s.j.Acquire(ctx, s.run, s.owner)
			}
		}
		return lease, err
	})
	if err != nil {
		return journalError(op, err)
	}
	s.lease = lease
	return nil
}

// replayed is what the records of a run add up to.
type replayed struct {
	state  machine.State
	counts counts
	guard  loopGuard
	limit  guardLimits
	meter  meter
	sent   sentBefore
	extra  []llm.Message // what hooks wanted added and was not
	lock   *lockNote
	notes  []journal.Note
	steps  int

	repaired bool // the log was cut behind its last step
}

// replay feeds the records of a run through a new machine.
func (s *store) replay(ctx context.Context, op string, limit guardLimits) (*replayed, error) {
	r := &replayed{limit: limit}
	err := tried(func() error {
		for rec, err := range s.j.Read(ctx, s.run, 0) {
			if err != nil {
				return journalError(op, sayable(err))
			}
			if err := r.add(rec); err != nil {
				return fail(KindJournal, op, err, "record %d of run %s", rec.Seq, s.run)
			}
		}
		return nil
	})
	if _, panicked := errors.AsType[*tool.PanicError](err); panicked {
		err = journalError(op, err)
	}
	if err != nil {
		return nil, err
	}
	return r, nil
}

func (r *replayed) add(rec journal.Record) error {
	switch b := rec.Body.(type) {
	case journal.Header:
		if b.Rules > machine.RulesVersion {
			return fail(KindJournal, "replay", nil, "the run follows rules of version %d, this program knows %d", b.Rules, machine.RulesVersion)
		}
	case journal.Step:
		return r.step(b.Input)
	case journal.Note:
		return r.note(b)
	}
	return nil
}

func (r *replayed) step(in machine.Input) error {
	r.steps++
	r.repaired = false
	asked := r.state.History()
	if err := r.state.Apply(in); err != nil {
		return err
	}
	_, cut := in.(machine.Truncate)
	if g, ok := in.(machine.Generated); ok {
		r.guard.look(r.limit, asked)
		r.guard.tell = llm.System{} // before this reply
		r.counts.reply(g.Message, g.Usage, r.meter.guess(asked, g.Message, g.Usage))
		r.meter.measured(asked, g.Usage)
	} else if cut || replaces(in) {
		r.meter.forget()
		r.guard, r.sent = loopGuard{}, sentBefore{locked: r.sent.locked}
	}
	return nil
}

func (r *replayed) note(n journal.Note) error {
	switch n.Kind {
	case noteLock:
		r.lock = &lockNote{}
		if err := json.Unmarshal(n.Data, r.lock); err != nil {
			return err
		}
		r.sent.locked, r.sent.fixed = r.lock.N, r.lock.Sent
	case noteRun:
		r.counts.newRun()
		r.guard, r.extra = loopGuard{from: r.state.Len()}, nil
	case noteLoop:
		r.guard = loopGuard{}
	case noteSpent:
		var u llm.Usage
		if err := json.Unmarshal(n.Data, &u); err != nil {
			return err
		}
		r.counts.broken(u)
	case notePruned:
		return r.sent.pruned(n.Data)
	case noteExtra:
		var more []llm.Message
		if err := json.Unmarshal(n.Data, &more); err != nil {
			return err
		}
		r.extra = append(r.extra, more...)
	case noteAdded:
		r.extra = nil
	case journal.RepairedNote:
		r.repaired = true
	default:
		r.notes = append(r.notes, n)
	}
	return nil
}

// open acquires the run of the journal and takes up what it holds. Without a
// journal it does nothing.
func (c *core) open(ctx context.Context, op string) error {
	s := &c.store
	if s.j == nil || s.open() {
		return nil
	}
	pending := s.pending
	if err := s.acquire(ctx, op); err != nil {
		return err
	}
	if err := c.takeUp(ctx, op); err != nil {
		if e := s.close(context.WithoutCancel(ctx)); e != nil {
			err = errors.Join(err, e)
		}
		if !s.again {
			s.pending = pending
		}
		return err
	}
	s.again = true
	return nil
}

// open reports whether the run is ours to write, as far as anybody knows.
func (s *store) open() bool {
	if s.lease == nil {
		return false
	}
	select {
	case <-s.lease.Lost():
		s.drop()
		return false
	default:
		return true
	}
}

func (c *core) takeUp(ctx context.Context, op string) error {
	s := &c.store
	r, err := s.replay(ctx, op, c.cfg.guards())
	if err != nil {
		return err
	}
	if r.steps == 0 && !s.again {
		s.notes.set(r.notes)
		return s.flush(ctx, op, &c.state)
	}
	if c.state.Len() > 0 && !s.again && !s.unsure {
		return fail(KindConfig, op, nil, "run %s exists and has a history; do not give another one", s.run)
	}
	if c.lock.held {
		if r.lock == nil {
			return fail(KindPrefix, op, nil, "run %s has no committed prefix; %s", s.run, openFirst)
		}
		if err := c.lock.adopt(op, *r.lock, r.state.History()); err != nil {
			return err
		}
	}
	c.install(r)
	if c.lock.held {
		c.lock.base = c.pruner.all(c.state.History())[:c.lock.n]
	}
	if err := c.capTruncations(op); err != nil {
		return err
	}
	if _, pending := c.state.Pending(); pending {
		if err := step(c, op, machine.Recovered{Doubt: true}); err != nil {
			return err
		}
	}
	if r.repaired {
		if err := c.doubt(op); err != nil {
			return err
		}
	}
	return s.flush(ctx, op, &c.state)
}

// install makes what was replayed the engine's own. What belonged to the history
// that the engine had before is forgotten.
func (c *core) install(r *replayed) {
	c.store.notes.set(r.notes)
	c.store.pending, c.store.behind, c.store.owed, c.store.again = nil, false, 0, true
	c.state, c.counts, c.extra = r.state, r.counts, r.extra
	c.sent, c.noticed, c.reviewed, c.armed = c.state.Len(), 0, 0, armed{}
	if p, ok := c.state.Pending(); ok && p.Kind == machine.PendingTools && len(r.extra) > 0 {
		c.reviewed = p.Op // the hooks have said what to add, so they were asked
	}
	c.guard, c.audit = r.guard, cacheAudit{}
	c.meter.replace(&r.meter)
	c.lent = lent{}
	if c.cfg.prune == nil {
		r.sent.mark = 0
	}
	if !c.cfg.dropImages {
		r.sent.bare = 0
	}
	c.pruner.restore(c.state.History(), r.sent)
}

// step feeds the machine and remembers the input for the journal. It is generic so
// that an input which nobody keeps needs no memory of its own.
func step[T machine.Input](c *core, op string, in T) error {
	if c.store.j != nil {
		return c.stepDurable(op, in)
	}
	if err := c.state.Apply(in); err != nil {
		return stateError(op, err)
	}
	return nil
}

func (c *core) stepDurable(op string, in machine.Input) error {
	held, keep := c.state.Durable(in)
	if keep { // what could not be stored would be in the way for good
		if err := machine.Storable(held); err != nil {
			return stateError(op, err)
		}
	}
	if err := c.state.Apply(in); err != nil {
		return stateError(op, err)
	}
	if keep {
		c.store.add(journal.Step{Input: held})
	}
	return nil
}
