// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/machine"
)

// ErrRequestTimeout is the cause of an attempt's context when the time of
// [WithRequestTimeout] has passed.
var ErrRequestTimeout = errors.New("fiducial: the request took longer than its time limit")

var errRetryTotal = errors.New("fiducial: the time for retries is over")

// generate carries out one generation: everything between two boundaries that
// makes a reply (E-37).
func (r *run) generate(ctx, draft context.Context) *exit {
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
	if cause := causeOf(ctx); cause != nil { // while a hook or the notice was asked (S-104)
		return r.noReply(ctx, p.Op, cancelError(r.op, cause))
	}
	if reason, ok := r.inbox.asked(); ok {
		return r.pauseNow(ctx, reason)
	}
	if err := step(r.core, r.op, machine.Begin{Op: p.Op}); err != nil {
		return r.fail(err)
	}
	r.sent = r.state.Len()
	r.show()
	r.audit.request(r.core)
	if e := r.ask(ctx, draft, p.Op, req); e != nil || r.state.Phase() == machine.PhasePaused {
		return e
	}
	return r.afterReply(ctx, p.Op)
}

// show lets others see the history as it is at this boundary.
func (r *run) show() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.view = r.seen()
}

// cancelError is what a run ends with whose context has ended.
func cancelError(op string, cause error) *Error {
	if errors.Is(cause, errLost) {
		return fail(KindFenced, op, cause, "")
	}
	return fail(KindCancelled, op, cause, "")
}

// generating reports whether a generation is what is pending now.
func (r *run) generating() bool { return r.state.Phase() == machine.PhaseGenerating }

// beforeRequest is what happens at the boundary before the request is made.
func (r *run) beforeRequest(ctx context.Context) *exit {
	if ctx.Err() != nil {
		if err := step(r.core, r.op, machine.CancelAtBoundary{}); err != nil {
			return r.fail(err)
		}
		return nil // the machine says Cancelled now
	}
	if reason, ok := r.inbox.asked(); ok {
		return r.pauseNow(ctx, reason)
	}
	if _, err := r.drain(ctx); err != nil {
		return r.fail(err)
	}
	r.guard.look(r.cfg.guards(), r.state.History())
	if e := r.limits(ctx); e != nil {
		return e
	}
	if err := r.tellLoop(); err != nil {
		return r.fail(err)
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
	var detail string
	switch {
	case r.cfg.turns != nil && r.counts.turns >= *r.cfg.turns:
		limit, detail = LimitTurns, fmt.Sprintf("the run has had %d replies, and %d are allowed", r.counts.turns, *r.cfg.turns)
	case r.cfg.tokens != nil && r.counts.tokens() >= *r.cfg.tokens:
		limit, detail = LimitTokens, fmt.Sprintf("the run has used %d tokens, and %d are allowed", r.counts.tokens(), *r.cfg.tokens)
	case r.guard.stop != "":
		limit, detail = LimitLoop, r.guard.stop
		r.guard = loopGuard{}
		r.store.add(journal.Note{Kind: noteLoop})
	default:
		return nil
	}
	if err := r.save(ctx); err != nil {
		return r.fail(err)
	}
	out := r.outcome(LimitReached)
	out.Limit, out.Detail = limit, detail
	return &exit{out, nil}
}

// addNotice asks for a text for the model, once for each generation (S-113).
func (r *run) addNotice(ctx context.Context) *exit {
	p, ok := r.state.Pending()
	if r.cfg.notice == nil || !ok || r.noticed == p.Op || r.state.Noticed() {
		return nil
	}
	text, err := guarded(func() (string, error) { return r.cfg.notice(ctx, r.lendWhole()) })
	switch {
	case ctx.Err() != nil:
		return nil // generate cancels; the notice was not used (S-105)
	case err != nil:
		return r.fail(fail(KindNotice, r.op, err, ""))
	}
	r.noticed = p.Op
	if text == "" {
		return nil
	}
	text = r.text(text)
	if err := r.save(ctx); err != nil { // S-85: the checkpoint before the notice's own
		return r.fail(err)
	}
	// What was sent, or is committed, stays as it is.
	fresh := r.state.Len() <= max(r.sent, r.lock.n)
	if !fresh {
		r.pruner.unsee(r.state.Len() - 1)
	}
	if err := step(r.core, r.op, machine.Notice{Op: p.Op, Text: text, Fresh: fresh}); err != nil {
		return r.fail(err)
	}
	r.emit(NoticeAdded{Text: text})
	return nil
}

// request makes the request of the history as it stands and lets the hooks have
// it. It never goes out without the committed prefix, nor unpaired.
func (r *run) request(ctx context.Context) (*llm.Request, *exit) {
	req := &r.bench.req
	*req = llm.Request{
		System: r.lock.system, Tools: r.lock.tools, Messages: r.project(), Prefix: r.lock.n,
		Settings: r.cfg.settings, CacheKey: r.cfg.cacheKey, CacheAnchor: -1,
	}
	if len(r.cfg.interceptors) > 0 {
		return req, r.edit(ctx, req)
	}
	if err := r.lock.verify(req, false); err != nil {
		return nil, r.fail(err)
	}
	return req, nil
}

// edit lets the hooks have a request of their own and takes over into req what they made
// of it. What they keep of theirs has no say in what is sent.
func (r *run) edit(ctx context.Context, req *llm.Request) *exit {
	theirs := *req
	given := r.lendSent(req.Messages)
	theirs.Tools, theirs.Messages, theirs.Settings = r.lock.lent.of(r.lock.tools), given, req.Settings.Clone()
	e := r.preRequest(ctx, &theirs)
	edited := theirs
	verified := r.lock.verify(&edited, true) // before what they wrote into is put back
	if n := r.takeBack(); n >= 0 && (e == nil || e.err == nil) {
		return r.fail(r.wroteInto(n))
	}
	if e != nil || !r.generating() {
		return e
	}
	if verified != nil {
		return r.fail(verified)
	}
	edited.Messages = kept(edited.Messages, given, req.Messages)
	edited.Tools, edited.Prefix, edited.Settings = r.lock.tools, r.lock.n, edited.Settings.Clone()
	if len(edited.Messages) != len(req.Messages) || &edited.Messages[0] != &req.Messages[0] {
		if err := checkRequest(edited.Messages); err != nil {
			return r.fail(contractError(HookPreRequest, "the request it left: %w", err))
		}
	}
	*req = edited
	return nil
}

// wroteInto is for a hook that has written into message n instead of replacing it.
func (r *run) wroteInto(n int) error {
	if n < r.lock.n {
		return fail(KindPrefix, "request", nil, "a tool or a message of the committed prefix was changed")
	}
	return contractError(HookPreRequest, "it wrote into message %d of the history, which was put back; a hook that wants other messages gives req.Messages a new slice", n)
}

func checkRequest(messages []llm.Message) error {
	if len(messages) == 0 {
		return errors.New("it holds no message")
	}
	return machine.ValidateContext(messages)
}

// ask sends the request until there is a reply or no more to try.
func (r *run) ask(ctx, draft context.Context, op machine.OperationID, req *llm.Request) *exit {
	var began time.Time
	for attempt := 1; ; attempt++ {
		if r.watched() {
			r.emit(GenerationStarted{Op: op, Turn: r.counts.turns + 1, Attempt: attempt})
		}
		err := r.attempt(draft, op, req, began)
		if err == nil {
			return nil
		}
		if r.bench.reader.c.Begun() && r.generating() {
			r.emit(DraftReset{Op: op})
		}
		if e, over := r.interrupted(ctx, op); over {
			return e
		}
		if began.IsZero() {
			began = time.Now()
		}
		wait, giveUp := r.cfg.retry.next(attempt, time.Since(began), err)
		if giveUp != nil {
			return r.noReply(ctx, op, generationError(r.op, giveUp))
		}
		r.emit(GenerationRetry{Op: op, Attempt: attempt, Max: r.cfg.retry.Attempts, Wait: wait, Err: err})
		if e, over := r.wait(ctx, draft, op, wait); over {
			return e
		}
	}
}

// attempt sends the request once. After a failure, at began, the time in all is
// limited (S-125).
func (r *run) attempt(ctx context.Context, op machine.OperationID, req *llm.Request, began time.Time) error {
	if !began.IsZero() {
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadlineCause(ctx, began.Add(r.cfg.retry.Total), errRetryTotal)
		defer cancel()
	}
	if r.cfg.timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, r.cfg.timeout, ErrRequestTimeout)
		defer cancel()
	}
	reply, err := r.bench.reader.read(ctx, r, op, req)
	if err == nil {
		err = r.accept(op, reply)
	}
	if err == nil {
		return nil
	}
	if r.generating() { // else the reply counts, and something after it failed
		r.spend(r.bench.reader.c.Usage())
	}
	for _, limit := range []error{ErrRequestTimeout, errRetryTotal} {
		if errors.Is(causeOf(ctx), limit) {
			return &llm.Error{Class: llm.ClassTimeout, Op: "request", Message: limit.Error(), Err: err}
		}
	}
	return err
}

// accept gives the reply to the machine. A reply that the machine refuses is a
// malformed one: it is asked for again like any other.
func (r *run) accept(op machine.OperationID, reply collect.Reply) error {
	m := r.mask(reply.Message)
	if err := r.observe(m); err != nil {
		return err
	}
	secret := r.secretCalls(reply.Message)
	guess := r.meter.guess(r.state.History(), m, reply.Usage)
	if err := step(r.core, r.op, machine.Generated{Op: op, Message: m, Usage: reply.Usage}); err != nil {
		if errors.Is(err, ErrGeneration) {
			return &llm.Error{Class: llm.ClassMalformedStream, Op: "reply", Err: err}
		}
		return err
	}
	r.counts.reply(m, reply.Usage, guess)
	// Before anybody is told, for a sink may panic.
	refused, err := r.refuse(secret)
	if err != nil {
		return err
	}
	if guess > 0 && r.cfg.tokens != nil && !r.warned.tokens {
		r.warned.tokens = true
		r.emit(Warning{Text: "the provider does not say what a reply costs: the token budget goes by an estimate"})
	}
	r.audit.served(r.core, op, reply.Usage)
	if r.watched() {
		r.emit(GenerationFinished{Op: op, Message: m.Clone(), Usage: reply.Usage})
	}
	for _, ev := range refused {
		r.emit(ev)
	}
	return nil
}

// secretCalls are the ordinals of the calls whose arguments hold a secret.
func (r *run) secretCalls(m llm.Message) (ordinals []int) {
	if r.cfg.masker == nil {
		return nil
	}
	for i, c := range m.Calls() {
		if secretIn(r.cfg.masker, c.Args) {
			ordinals = append(ordinals, i)
		}
	}
	return ordinals
}

// refuse answers, in the same stroke as the reply, the calls whose arguments hold a
// secret: they must not run, now or after a crash.
func (r *run) refuse(ordinals []int) (events []ToolFinished, err error) {
	for _, i := range ordinals {
		p, _ := r.state.Pending()
		masked := r.state.BatchCall(i).Call
		res := llm.Result{Status: llm.StatusError, Summary: "the arguments hold a secret, so the call was not run; secrets are known to the program and must not be written out"}
		if err := step(r.core, r.op, machine.Settled{Op: p.Op, Ordinal: i, Result: res}); err != nil {
			return nil, err
		}
		res.CallID, res.Name = masked.ID, masked.Name
		events = append(events, ToolFinished{Op: p.Op, Ordinal: i, Result: res})
	}
	return events, nil
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
	if cause := causeOf(ctx); cause != nil {
		return r.noReply(ctx, op, cancelError(r.op, cause)), true // S-104
	}
	reason, asked := r.inbox.asked()
	if !asked || !r.generating() {
		return nil, false
	}
	// The pause is recorded while the request is out, and takes effect when the
	// generation is pending again, with the same operation.
	if e := r.pauseNow(ctx, reason); e != nil {
		return e, true
	}
	if err := step(r.core, r.op, machine.Recovered{Doubt: true}); err != nil {
		return r.fail(err), true
	}
	return nil, true
}

// wait sleeps before the next attempt.
func (r *run) wait(ctx, draft context.Context, op machine.OperationID, d time.Duration) (*exit, bool) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil, false
	case <-draft.Done():
		return r.interrupted(ctx, op)
	}
}

// noReply ends the run without a reply. The operation is stale then; Resume
// starts a new one (S-68).
func (r *run) noReply(ctx context.Context, op machine.OperationID, cause error) *exit {
	if !r.generating() || errors.Is(cause, ErrFenced) { // it came after the reply, or is not ours to write
		return r.fail(cause)
	}
	if err := step(r.core, r.op, machine.GenerationFailed{Op: op}); err != nil {
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
	return r.review(ctx)
}

// review asks the hooks about the last reply.
func (r *run) review(ctx context.Context) *exit {
	for _, m := range slices.Backward(r.state.History()) {
		if m.Role == llm.RoleAssistant {
			return r.afterResponse(ctx, m)
		}
	}
	return nil
}
