// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"context"
	"errors"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// run is one Run or Resume: it owns the core until it ends.
type run struct {
	*core
	op     string
	bench  bench // where calls are run
	pauses int   // replies in a row that ended with llm.StopPause
	input  input // what became of the messages of Run
}

// input says what became of the messages that a run was given.
type input uint8

const (
	inputOut    input = iota // they are not in the history
	inputIn                  // they are
	inputUnsure              // they may have been stored
)

// maxPauses is how often in a row a provider is sent the same conversation again
// because it asks for that; then the run ends with what there is.
const maxPauses = 10

// An exit ends a run. err is set for Cancelled, ContextWindowExceeded and Failed.
type exit struct {
	out Outcome
	err error
}

var (
	errPause = errors.New("fiducial: a pause was asked for")
	errLost  = errors.New("fiducial: the lease of the run has ended: another process took the run over, or its log was removed")
)

// Run adds copies of user messages and drives the model and the tools until the run ends.
// Without a message it starts on the history as it stands. A run that was paused
// before is given up.
//
// The end of ctx stops a run where it is: a reply that is being written is given up,
// and calls that do not return within the grace count as "outcome unknown". Resume,
// with another context, goes on from there. A program that is about to end, and wants
// neither, uses [Locked.Pause]: it waits for the calls that have started.
//
// The messages are history when the outcome says that anything was done. When they
// could not be added, because ctx had ended before or the journal failed, the error
// says so: give them again then.
//
// err is non-nil only when the outcome's reason is Cancelled,
// ContextWindowExceeded or Failed, and then it is an [*Error]. The outcome is
// valid in any case, and the history can be read and sent.
func (l *Locked) Run(ctx context.Context, in ...llm.Message) (Outcome, error) {
	return l.drive(ctx, ctx, "run", in, nil)
}

// Resume goes on with what is pending: after a pause, a yield, a raised limit, a
// failure, a cancel, or in a new process. It adds no user message. After a cancel
// every call has its result, if only "outcome unknown", and the model is asked what to
// do about them. When the run has finished, and no message was sent to it since, it
// returns its outcome again and does nothing.
func (l *Locked) Resume(ctx context.Context) (Outcome, error) {
	return l.drive(ctx, ctx, "resume", nil, nil)
}

// Open takes up the run in the journal without running it, so that History can be
// read. Run and Resume do it by themselves.
func (l *Locked) Open(ctx context.Context) error { return l.openRun(ctx) }

// Open takes up the run in the journal. On an engine that is not locked yet the
// next Lock commits a new prefix, whatever the run was locked with before.
func (e *Engine) Open(ctx context.Context) error { return e.openRun(ctx) }

func (h handle) openRun(ctx context.Context) (err error) {
	const op = "open"
	if err := checkContext(ctx, op); err != nil {
		return err
	}
	c, done, err := h.use(op)
	if err != nil {
		return err
	}
	defer done()
	defer c.maskFailed(op, &err)
	if err := c.configure(op); err != nil {
		return err
	}
	return cancelledBy(ctx, op, c.open(ctx, op))
}

// Checkpoint stores what a failed journal or checkpoint function left behind. It
// does not move the run (S-90); Resume goes on.
func (l *Locked) Checkpoint(ctx context.Context) error {
	if err := checkContext(ctx, "checkpoint"); err != nil {
		return err
	}
	c, done, err := l.use("checkpoint")
	if err != nil {
		return err
	}
	defer done()
	if err := c.open(ctx, "checkpoint"); err != nil {
		return cancelledBy(ctx, "checkpoint", err)
	}
	if err := c.store.save(ctx, "checkpoint", &c.state); err != nil {
		return err
	}
	(&run{core: c, op: "checkpoint"}).committed()
	return nil
}

// drive carries out a run. Intake is the context in which its messages are taken in; the
// reader of a stream that leaves does not end it.
func (l *Locked) drive(ctx, intake context.Context, op string, in []llm.Message, stream EventSink) (Outcome, error) {
	if err := checkContext(ctx, op); err != nil {
		return Outcome{Reason: Failed}, err
	}
	c, done, err := l.use(op)
	if err != nil {
		return Outcome{Reason: Failed}, err
	}
	if err := c.relock(op); err != nil {
		done()
		return Outcome{Reason: Failed}, err
	}
	c.running, c.view, c.stream, c.observerErr = true, c.seen(), stream, nil
	c.turnsBefore, c.warned = c.counts.lifetime, warned{}
	c.inbox.begin()
	done()
	defer func() {
		c.inbox.end()
		c.mu.Lock()
		c.running, c.view, c.stream = false, nil, nil
		c.mu.Unlock()
	}()
	r := &run{core: c, op: op}
	e := r.do(ctx, intake, in)
	e.err = r.lostInput(cancelledBy(ctx, op, e.err), len(in))
	if errors.Is(e.err, ErrCancelled) {
		e.out.Reason = Cancelled
	}
	r.observeExit(ctx, e)
	if err := r.leave(ctx); err != nil && e.err == nil {
		e = r.failed(err)
	}
	if r.watched() {
		r.emit(RunFinished{Outcome: e.out.clone(), Err: e.err})
	}
	return e.out, e.err
}

func (r *run) do(ctx, intake context.Context, in []llm.Message) (e exit) {
	var failed error
	defer func() {
		if failed != nil {
			e = r.failed(failed)
		}
	}()
	defer r.maskFailed(r.op, &failed)
	r.emit(RunStarted{Resumed: r.op == "resume"})
	r.resetDraft()
	if err := r.open(intake, r.op); err != nil {
		return r.failed(err)
	}
	ctx, stop := r.watchLease(ctx)
	defer stop()
	// What a pause gives up, and what calls run in: one of each for the whole run.
	draft, endDraft := context.WithCancelCause(ctx)
	defer endDraft(nil)
	r.inbox.interrupt(endDraft)
	calls, endCalls := context.WithCancelCause(ctx)
	defer endCalls(nil)
	defer r.bench.close()
	r.bench.end = endCalls
	if err := r.mend(r.op); err != nil {
		return r.failed(err)
	}
	if r.op == "resume" {
		if e := r.takeUp(ctx); e != nil {
			return *e
		}
	} else if e := r.begin(intake, in); e != nil {
		return *e
	}
	for {
		if e := r.turn(ctx, draft, calls); e != nil {
			return *e
		}
	}
}

// leave stores what hooks noted at the end.
func (r *run) leave(ctx context.Context) error {
	if r.store.behind || r.store.lease == nil {
		return nil
	}
	return r.store.flush(ctx, r.op, &r.state)
}

// mend puts in order what a run left behind that ended in the middle of an
// effect: when its journal failed, or a panic went through it. Calls that are
// recorded as started and were not are kept; see [armed].
func (c *core) mend(op string) error {
	p, pending := c.state.Pending()
	if pending && c.armed.op == p.Op {
		return nil
	}
	c.armed = armed{}
	if !pending || !c.state.Executing() {
		return nil
	}
	return step(c, op, machine.Recovered{Doubt: true})
}

// turn carries out one effect. A nil exit means that there is more to do. Draft is
// the context of replies that are being written, calls that of calls.
func (r *run) turn(ctx, draft, calls context.Context) *exit {
	switch r.state.Phase() { // rather than the effect, which holds a list of the calls each time
	case machine.PhaseGenerating:
		return r.generate(ctx, draft)
	case machine.PhaseTools:
		return r.executeTools(ctx, calls)
	case machine.PhaseFinished, machine.PhaseCancelled, machine.PhasePaused, machine.PhaseReady, machine.PhaseFailed:
	}
	switch eff := r.state.Effect().(type) {
	case machine.Finished:
		return r.finished(ctx, eff)
	case machine.Cancelled:
		return r.cancelled(ctx)
	case machine.Paused:
		return r.paused(ctx, eff.Reason)
	case machine.Generate, machine.ExecuteTools, nil:
	}
	e := r.failed(fail(KindNothing, r.op, nil, "the run has nothing pending"))
	return &e
}

// begin adds the input of a new logical run and starts it.
func (r *run) begin(ctx context.Context, in []llm.Message) *exit {
	if _, pending := r.state.Pending(); pending && r.store.behind {
		return r.fail(fail(KindBusy, r.op, machine.ErrBusy,
			"what the last run did is not stored; call Checkpoint, then Resume (S-90)"))
	}
	before := r.counts
	r.counts.newRun()
	in, e := r.submit(ctx, in)
	if e != nil {
		r.counts = before // the run before is still there to be resumed
		return e
	}
	if err := r.abandon(); err != nil {
		return r.fail(err)
	}
	r.guard, r.extra = loopGuard{from: r.state.Len()}, nil
	r.store.add(journal.Note{Kind: noteRun})
	for _, m := range in {
		if err := r.observe(m); err != nil {
			return r.fail(err)
		}
		if err := step(r.core, r.op, machine.AppendInput{Message: m}); err != nil {
			return r.fail(err)
		}
	}
	r.input = inputIn
	if err := r.save(ctx); err != nil { // S-84, point 1
		if r.store.j != nil && r.store.lease == nil {
			r.input = inputUnsure
		}
		return r.fail(err)
	}
	return r.start()
}

// lostInput has an error say that the messages of Run have to be given again.
func (r *run) lostInput(err error, given int) error {
	e, ok := errors.AsType[*Error](err)
	if !ok || given == 0 || r.input == inputIn {
		return err
	}
	say := "the message is not in the history; give it to Run again"
	switch {
	case r.input == inputUnsure:
		say = "whether the message was stored is not known; call Open and look at History before you give it again"
	case e.Kind != KindCancelled && e.Kind != KindJournal && e.Kind != KindFenced && e.Kind != KindPrefix:
		return err // it was refused
	}
	told := *e // errors.Is and As find what they found
	told.lost = say
	return &told
}

func (r *run) start() *exit {
	if r.state.Len() == 0 {
		return r.fail(fail(KindNothing, r.op, nil, "the history is empty; give a message"))
	}
	if err := step(r.core, r.op, machine.Start{}); err != nil {
		return r.fail(err)
	}
	return nil
}

// takeUp makes ready what Resume goes on with.
func (r *run) takeUp(ctx context.Context) *exit {
	if err := r.save(ctx); err != nil {
		return r.fail(err)
	}
	r.committed()
	switch r.state.Phase() {
	case machine.PhasePaused:
		if p, _ := r.state.Pending(); p.Kind == machine.PendingTools {
			r.reviewed = p.Op // whoever paused it had seen the reply
		}
		if err := step(r.core, r.op, machine.Resume{}); err != nil {
			return r.fail(err)
		}
	case machine.PhaseReady, machine.PhaseFailed, machine.PhaseCancelled: // after a cancel every call has its result (S-20, S-108)
		return r.start()
	case machine.PhaseGenerating, machine.PhaseTools, machine.PhaseFinished:
	}
	return nil
}

// abandon gives up what an earlier run left pending, so that a new one can begin
// (E-20).
func (r *run) abandon() error {
	p, pending := r.state.Pending()
	if !pending {
		return nil
	}
	if p.Kind == machine.PendingTools && r.state.Phase() != machine.PhasePaused {
		return step(r.core, r.op, machine.SettleRest{Op: p.Op, Cause: "the run was given up for a new one", Cancelled: true})
	}
	return step(r.core, r.op, machine.CancelAtBoundary{})
}

// save stores what was accepted and calls the checkpoint function.
func (r *run) save(ctx context.Context) error { return r.store.save(ctx, r.op, &r.state) }

// watchLease ends the run's context when another process takes the run over.
func (r *run) watchLease(ctx context.Context) (context.Context, func()) {
	if r.store.lease == nil {
		return ctx, func() {}
	}
	lost := r.store.lease.Lost()
	ctx, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		select {
		case <-lost:
			cancel(errLost)
		case <-done:
		}
	}()
	return ctx, func() {
		close(done)
		<-ended
		cancel(nil)
	}
}

func (r *run) fail(err error) *exit {
	e := r.failed(err)
	return &e
}

// failed is the exit for an error of any kind.
func (r *run) failed(err error) exit {
	reason := Failed
	switch {
	case errors.Is(err, ErrCancelled):
		reason = Cancelled
	case errors.Is(err, ErrContextWindow):
		reason = ContextWindowExceeded
	}
	return exit{r.outcome(reason), err}
}

// finished ends the run, unless messages came in while the last reply was
// written: they are answered, too.
func (r *run) finished(ctx context.Context, eff machine.Finished) *exit {
	more, err := r.drain(ctx)
	if err != nil {
		return r.fail(err)
	}
	if more {
		if err := r.save(ctx); err != nil {
			return r.fail(err)
		}
		return r.start()
	}
	if eff.Stop == llm.StopPause && r.pauses < maxPauses { // the provider asks for the same conversation again
		r.pauses++
		return r.start()
	}
	return r.finish(eff)
}

func (r *run) finish(eff machine.Finished) *exit {
	reason := Finished
	if eff.Stop == llm.StopMaxTokens {
		reason = OutputCap
	}
	out := r.outcome(reason)
	out.Answer, out.Stop = llm.CloneParts(eff.Answer), eff.Stop
	return &exit{out, nil}
}

func (r *run) cancelled(ctx context.Context) *exit {
	if err := r.save(ctx); err != nil {
		return r.fail(err)
	}
	cause := causeOf(ctx)
	if errors.Is(cause, errLost) {
		return r.fail(fail(KindFenced, r.op, cause, ""))
	}
	if cause == nil {
		return r.fail(fail(KindCancelled, r.op, nil, "the run was cancelled before"))
	}
	return r.fail(fail(KindCancelled, r.op, cause, ""))
}

func (r *run) paused(ctx context.Context, reason string) *exit {
	if err := r.save(ctx); err != nil {
		return r.fail(err)
	}
	out := r.outcome(Paused)
	out.Detail = reason
	return &exit{out, nil}
}

// pauseNow puts the run to rest at a boundary. Where nothing is pending any more
// there is nothing that the machine could pause, and the run just ends; Resume
// then gives its outcome.
func (r *run) pauseNow(ctx context.Context, reason string) *exit {
	reason = r.text(reason)
	if r.state.Idle() {
		return r.paused(ctx, reason)
	}
	if _, recorded := r.state.PauseRequested(); recorded || r.state.Phase() == machine.PhasePaused {
		return nil // calls that ran side by side may all ask for one
	}
	if err := step(r.core, r.op, machine.Pause{Reason: reason}); err != nil {
		return r.fail(err)
	}
	return nil // the machine says Paused now, and turn ends the run
}

func (r *run) observe(m llm.Message) error { return r.askObservers(r.op, m) }

func (c *core) askObservers(op string, m llm.Message) error {
	for _, f := range c.cfg.observers {
		err := tried(func() (err error) {
			c.outside(func() { err = f(m.Clone()) })
			return err
		})
		if err != nil {
			return fail(KindHistory, op, err, "")
		}
	}
	return nil
}

// cancelledBy makes an error that only says that ctx ended one of kind cancelled
// (E-190).
func cancelledBy(ctx context.Context, op string, err error) error {
	if err == nil || ctx.Err() == nil || errors.Is(err, ErrCancelled) || errors.Is(err, ErrFenced) {
		return err
	}
	if cause := causeOf(ctx); errors.Is(err, ctx.Err()) || errors.Is(err, cause) {
		return fail(KindCancelled, op, err, "")
	}
	return err
}

func (c *core) emit(data EventData) {
	if c.cfg.sink == nil && c.stream == nil {
		return
	}
	c.seq++
	ev := Event{Trace: c.cfg.trace, Seq: c.seq, Data: data}
	if c.cfg.sink != nil {
		c.outside(func() { c.cfg.sink.Emit(ev) })
	}
	if c.stream != nil {
		c.stream.Emit(ev)
	}
}

// watched reports whether anybody sees events, so that nothing is made for none.
func (c *core) watched() bool { return c.cfg.sink != nil || c.stream != nil }

// committed emits the owed event for a reply that is durable now.
func (r *run) committed() {
	if r.store.owed != 0 && r.store.keeps() {
		r.emit(GenerationCommitted{Op: r.store.owed})
	}
	r.store.owed = 0
}
