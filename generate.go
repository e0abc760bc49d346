package fiducial

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/machine"
)

// ErrRequestTimeout is the cause of an attempt's context when the time of
// [WithRequestTimeout] has passed.
var ErrRequestTimeout = errors.New("fiducial: the request took longer than its time limit")

// generate carries out one generation: everything between two boundaries that
// makes a reply (E-37).
func (r *run) generate(ctx context.Context) *exit {
	if e := r.beforeRequest(ctx); e != nil || !r.generating() {
		return e
	}
	req, e := r.request(ctx)
	if e != nil || !r.generating() {
		return e
	}
	if err := r.save(ctx); err != nil { // S-84, points 2 and 6
		return r.fail(err)
	}
	p, _ := r.state.Pending()
	if err := r.step(r.op, machine.Begin{Op: p.Op}); err != nil {
		return r.fail(err)
	}
	r.sent = r.state.Len()
	r.audit.request(r.core)
	if e := r.ask(ctx, p.Op, req); e != nil || r.state.Phase() == machine.PhasePaused {
		return e
	}
	return r.afterReply(ctx, p.Op)
}

// generating reports whether a generation is what is pending now.
func (r *run) generating() bool { return r.state.Phase() == machine.PhaseGenerating }

// beforeRequest is what happens at the boundary before the request is made.
func (r *run) beforeRequest(ctx context.Context) *exit {
	if ctx.Err() != nil {
		if err := r.step(r.op, machine.CancelAtBoundary{}); err != nil {
			return r.fail(err)
		}
		return nil // the machine says Cancelled now
	}
	if reason, ok := r.inbox.asked(); ok {
		return r.pauseNow(ctx, reason)
	}
	keys, messages, err := r.drain(ctx)
	if err != nil {
		return r.fail(err)
	}
	if err := r.takeIn(keys, messages); err != nil {
		return r.fail(err)
	}
	if e := r.limits(ctx); e != nil {
		return e
	}
	if len(r.cfg.interceptors) > 0 {
		messages, err := r.pendingHistory(ctx)
		if err != nil {
			return r.fail(err)
		}
		if err := r.takeIn(nil, messages); err != nil {
			return r.fail(err)
		}
	}
	return r.addNotice(ctx)
}

// limits ends the run when the next request would exceed one of them.
func (r *run) limits(ctx context.Context) *exit {
	var limit Limit
	switch {
	case r.cfg.turns != nil && r.counts.turns >= *r.cfg.turns:
		limit = LimitTurns
	case r.cfg.tokens > 0 && r.counts.tokens() >= r.cfg.tokens:
		limit = LimitTokens
	case r.guard.stop:
		limit = LimitLoop
		r.guard = loopGuard{}
	default:
		return nil
	}
	if err := r.save(ctx); err != nil {
		return r.fail(err)
	}
	out := r.outcome(LimitReached)
	out.Limit = limit
	return &exit{out, nil}
}

// addNotice asks for a text for the model, once for each generation (S-113).
func (r *run) addNotice(ctx context.Context) *exit {
	p, ok := r.state.Pending()
	if r.cfg.notice == nil || !ok || r.noticed == p.Op || r.state.Noticed() {
		return nil
	}
	text, err := r.cfg.notice(ctx, r.state.History())
	switch {
	case ctx.Err() != nil:
		return nil // the next look at the boundary cancels; the notice was not used (S-105)
	case err != nil:
		return r.fail(fail(KindNotice, r.op, err, ""))
	}
	r.noticed = p.Op
	if text == "" {
		return nil
	}
	if r.cfg.masker != nil {
		text = r.cfg.masker.Text(text)
	}
	if err := r.save(ctx); err != nil { // S-85: the checkpoint before the notice's own
		return r.fail(err)
	}
	fresh := r.state.Len() <= r.sent
	if err := r.step(r.op, machine.Notice{Op: p.Op, Text: text, Fresh: fresh}); err != nil {
		return r.fail(err)
	}
	r.emit(NoticeAdded{Text: text})
	return nil
}

// request makes the request of the history as it stands and lets the hooks have
// it. It never goes out without the committed prefix.
func (r *run) request(ctx context.Context) (*llm.Request, *exit) {
	req := &llm.Request{
		System: r.lock.system, Tools: r.lock.tools, Messages: r.project(), Prefix: r.lock.n,
		Settings: r.cfg.settings, CacheKey: r.cfg.cacheKey, CacheAnchor: -1,
	}
	edited := false
	if len(r.cfg.interceptors) > 0 {
		edited = true
		if _, e := r.preRequest(ctx, req); e != nil || !r.generating() {
			return nil, e
		}
	}
	if err := r.lock.verify(req, edited); err != nil {
		return nil, r.fail(err)
	}
	return req, nil
}

// ask sends the request until there is a reply or no more to try.
func (r *run) ask(ctx context.Context, op machine.OperationID, req *llm.Request) *exit {
	var began time.Time
	for attempt := 1; ; attempt++ {
		if r.watched() {
			r.emit(GenerationStarted{Op: op, Turn: r.counts.turns + 1, Attempt: attempt})
		}
		begun, err := r.attempt(ctx, op, req)
		if err == nil {
			return nil
		}
		if e, over := r.interrupted(ctx, op); over {
			return e
		}
		if began.IsZero() {
			began = time.Now()
		}
		wait, giveUp := r.cfg.retry.next(attempt, time.Since(began), err)
		if begun {
			r.emit(DraftReset{Op: op})
		}
		if giveUp != nil {
			return r.noReply(ctx, op, generationError(r.op, giveUp))
		}
		r.emit(GenerationRetry{Op: op, Attempt: attempt, Max: r.cfg.retry.Attempts, Wait: wait, Err: err})
		if e, over := r.wait(ctx, op, wait); over {
			return e
		}
	}
}

// attempt sends the request once. begun says that a part of the reply was seen.
func (r *run) attempt(ctx context.Context, op machine.OperationID, req *llm.Request) (begun bool, err error) {
	ctx, done := r.inbox.interruptible(ctx)
	defer done()
	if r.cfg.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.cfg.timeout, ErrRequestTimeout)
		defer cancel()
	}
	c := collect.Collector{Seed: strconv.FormatUint(uint64(op), 10)}
	err = r.read(ctx, op, req, &c)
	var reply collect.Reply
	if err == nil {
		reply, err = c.Reply()
	}
	if err == nil {
		err = r.accept(op, reply)
	}
	if err != nil {
		r.spend(c.Usage())
		if errors.Is(context.Cause(ctx), ErrRequestTimeout) {
			err = &llm.Error{Class: llm.ClassTimeout, Op: "request", Message: ErrRequestTimeout.Error(), Err: err}
		}
	}
	return c.Begun(), err
}

// read feeds the stream to the collector and shows it to who watches.
func (r *run) read(ctx context.Context, op machine.OperationID, req *llm.Request, c *collect.Collector) error {
	watched := r.watched()
	for ev, err := range r.client.Stream(ctx, req) {
		if err != nil {
			return err
		}
		if err := c.Add(ev); err != nil {
			return err
		}
		if watched {
			r.show(op, ev, c)
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
	}
	return ctx.Err()
}

func (r *run) show(op machine.OperationID, ev llm.Event, c *collect.Collector) {
	switch ev := ev.(type) {
	case llm.BlockDelta:
		r.emit(Delta{Op: op, Block: ev.Index, Kind: c.Kind(ev.Index), Text: ev.Text})
	case llm.Unhandled, llm.Failover:
		r.emit(StreamEvent{Event: ev})
	case llm.BlockStart, llm.BlockStop, llm.UsageReport, llm.Finish:
	}
}

// accept gives the reply to the machine. A reply that the machine refuses is a
// malformed one: it is asked for again like any other.
func (r *run) accept(op machine.OperationID, reply collect.Reply) error {
	m := r.mask(reply.Message)
	if err := r.observe(m); err != nil {
		return err
	}
	if err := r.step(r.op, machine.Generated{Op: op, Message: m, Usage: reply.Usage}); err != nil {
		if errors.Is(err, ErrGeneration) {
			return &llm.Error{Class: llm.ClassMalformedStream, Op: "reply", Err: err}
		}
		return err
	}
	r.counts.reply(m, reply.Usage)
	r.audit.served(r.core, reply.Usage)
	if r.watched() {
		r.emit(GenerationFinished{Op: op, Message: m, Usage: reply.Usage})
	}
	return r.refuseSecrets(reply.Message)
}

// refuseSecrets answers, in the same stroke as the reply, every call whose
// arguments hold a secret: it must not run, now or after a crash.
func (r *run) refuseSecrets(m llm.Message) error {
	if r.cfg.masker == nil {
		return nil
	}
	for i, c := range m.Calls() {
		if !r.cfg.masker.Found(c.Args) {
			continue
		}
		p, _ := r.state.Pending()
		res := llm.Result{Status: llm.StatusError, Summary: "the arguments hold a secret, so the call was not run; secrets are known to the program and must not be written out"}
		if err := r.step(r.op, machine.Settled{Op: p.Op, Ordinal: i, Result: res}); err != nil {
			return err
		}
	}
	return nil
}

// spend counts what a broken request has cost, also for a process that takes
// over (E-154).
func (r *run) spend(u llm.Usage) {
	r.counts.broken(u)
	r.store.add(journal.Note{Kind: noteSpent, Data: mustJSON(u)})
}

// interrupted deals with a failed attempt whose real cause is from outside: a
// cancel, a pause, another owner.
func (r *run) interrupted(ctx context.Context, op machine.OperationID) (*exit, bool) {
	if cause := context.Cause(ctx); cause != nil {
		if errors.Is(cause, errLost) {
			return r.fail(fail(KindFenced, r.op, cause, "")), true
		}
		return r.noReply(ctx, op, fail(KindCancelled, r.op, cause, "")), true // S-104
	}
	reason, asked := r.inbox.asked()
	if !asked {
		return nil, false
	}
	// The pause is recorded while the request is out, and takes effect when the
	// generation is pending again, with the same operation.
	if e := r.pauseNow(ctx, reason); e != nil {
		return e, true
	}
	r.emit(DraftReset{Op: op})
	if err := r.step(r.op, machine.Recovered{}); err != nil {
		return r.fail(err), true
	}
	return nil, true
}

// wait sleeps before the next attempt.
func (r *run) wait(ctx context.Context, op machine.OperationID, d time.Duration) (*exit, bool) {
	ctx2, done := r.inbox.interruptible(ctx)
	defer done()
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil, false
	case <-ctx2.Done():
		return r.interrupted(ctx, op)
	}
}

// noReply ends the run without a reply. The operation is stale then; Resume
// starts a new one (S-68).
func (r *run) noReply(ctx context.Context, op machine.OperationID, cause error) *exit {
	if !r.generating() { // the failure came after the reply was accepted
		return r.fail(cause)
	}
	if err := r.step(r.op, machine.GenerationFailed{Op: op}); err != nil {
		return r.fail(err)
	}
	if err := r.save(ctx); err != nil {
		return r.fail(errors.Join(cause, err))
	}
	return r.fail(cause)
}

// afterReply makes the reply durable and asks the hooks about it.
func (r *run) afterReply(ctx context.Context, op machine.OperationID) *exit {
	r.store.owed = op
	if err := r.save(ctx); err != nil { // S-84, points 3 and 7
		return r.fail(err)
	}
	r.committed()
	if len(r.cfg.interceptors) == 0 {
		return nil
	}
	history := r.state.History()
	for i := len(history) - 1; i >= 0; i-- {
		if history[i].Role == llm.RoleAssistant {
			return r.afterResponse(ctx, history[i])
		}
	}
	return nil
}
