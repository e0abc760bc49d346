package fiducial

import (
	"context"
	"encoding/json"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// Note leaves a note in the journal of the run; it is stored with the next
// records, before the next effect starts. [Locked.Notes] gives the notes back in
// a process that takes the run up. Data is JSON or nil. The kinds lock, run and
// spent are the engine's own. Without a journal it does nothing.
func (inv Invocation) Note(kind string, data json.RawMessage) {
	if inv.core != nil {
		inv.core.store.add(journal.Note{Kind: kind, Data: data})
	}
}

func (r *run) invocation(phase HookPhase) Invocation {
	inv := Invocation{
		Phase: phase, Trace: r.cfg.trace, Run: r.cfg.run,
		Turn: r.counts.turns, Request: r.counts.requests, Usage: r.counts.usage,
		History: r.state.History(), core: r.core,
	}
	if p, ok := r.state.Pending(); ok {
		inv.Op = p.Op
	}
	return inv
}

// submit takes one message of the caller's through the hooks into the history
// (E-24, E-25).
func (r *run) submit(ctx context.Context, m llm.Message) *exit {
	var behind []llm.Message
	for _, i := range r.cfg.interceptors {
		answer, err := i.PromptSubmit(ctx, r.invocation(HookPromptSubmit), &m)
		if err != nil {
			return r.fail(hookError(HookPromptSubmit, err))
		}
		switch a := answer.(type) {
		case Abort:
			return r.abort(HookPromptSubmit, a.Reason)
		case ContinueWith:
			behind = append(behind, a.Messages...)
		case Continue, nil:
		}
	}
	for _, m := range append([]llm.Message{m}, behind...) {
		m = r.mask(m)
		if err := r.observe(m); err != nil {
			return r.fail(err)
		}
		if err := r.step(r.op, machine.AppendInput{Message: m}); err != nil {
			return r.fail(err)
		}
	}
	return nil
}

func (r *run) abort(phase HookPhase, reason string) *exit {
	return r.fail(fail(KindAborted, string(phase), nil, "%s", reason))
}

// pendingHistory asks the hooks for messages to add now.
func (r *run) pendingHistory(ctx context.Context) ([]llm.Message, error) {
	var all []llm.Message
	for _, i := range r.cfg.interceptors {
		messages, err := i.PendingHistory(ctx, r.invocation(HookPendingHistory))
		if err != nil {
			return nil, hookError(HookPendingHistory, err)
		}
		all = append(all, messages...)
	}
	return all, nil
}

// preRequest asks the hooks about the request. changed says that messages were
// added, so that the request must be made anew.
func (r *run) preRequest(ctx context.Context, req *llm.Request) (changed bool, e *exit) {
	for _, i := range r.cfg.interceptors {
		answer, err := i.PreRequest(ctx, r.invocation(HookPreRequest), req)
		if err != nil {
			return false, r.fail(hookError(HookPreRequest, err))
		}
		switch a := answer.(type) {
		case ContinueWith:
			if err := r.takeIn(nil, a.Messages); err != nil {
				return false, r.fail(err)
			}
			// The hook's own edits stand; what was added goes behind them.
			req.Messages = append(req.Messages[:len(req.Messages):len(req.Messages)], r.maskAll(a.Messages)...)
			changed = true
		case Yield:
			if err := r.takeIn(nil, a.Messages); err != nil {
				return false, r.fail(err)
			}
			if err := r.save(ctx); err != nil {
				return false, r.fail(err)
			}
			out := r.outcome(Yielded)
			out.Detail = a.Reason
			return false, &exit{out, nil}
		case Pause:
			if e := r.pauseNow(ctx, a.Reason); e != nil {
				return false, e
			}
			return false, r.turn(ctx)
		case Abort:
			if err := r.save(ctx); err != nil {
				return false, r.fail(err)
			}
			return false, r.abort(HookPreRequest, a.Reason)
		case Continue, nil:
		}
	}
	return changed, nil
}

// afterResponse asks the hooks about a reply that is history.
func (r *run) afterResponse(ctx context.Context, m llm.Message) *exit {
	for _, i := range r.cfg.interceptors {
		answer, err := i.AfterResponse(ctx, r.invocation(HookAfterResponse), m)
		if err != nil {
			return r.fail(hookError(HookAfterResponse, err))
		}
		switch a := answer.(type) {
		case ContinueWith:
			r.extra = append(r.extra, a.Messages...)
		case Pause:
			return r.pauseNow(ctx, a.Reason)
		case Abort:
			return r.abort(HookAfterResponse, a.Reason)
		case Continue, nil:
		}
	}
	return nil
}

// preTool asks the hooks about one call. A nil answer means that it runs.
func (r *run) preTool(ctx context.Context, ordinal int, call *llm.Call) (ToolAnswer, error) {
	for _, i := range r.cfg.interceptors {
		inv := r.invocation(HookPreTool)
		inv.CallID, inv.Ordinal = call.ID, ordinal
		id := call.ID
		answer, err := i.PreTool(ctx, inv, call)
		if err != nil {
			return nil, hookError(HookPreTool, err)
		}
		if call.ID != id {
			return nil, contractError(HookPreTool, "the hook changed the id of call %q", id)
		}
		switch a := answer.(type) {
		case Synthetic:
			if a.Result.CallID != "" && a.Result.CallID != id {
				return nil, contractError(HookPreTool, "the synthetic result answers %q, and the call is %q", a.Result.CallID, id)
			}
			return a, nil
		case Skip, Pause, Abort:
			return a, nil
		case Continue, nil:
		}
	}
	return nil, nil
}

// postTool shows the hooks a result that is history's.
func (r *run) postTool(ctx context.Context, ordinal int, call llm.Call, res llm.Result) (PostAnswer, error) {
	for _, i := range r.cfg.interceptors {
		inv := r.invocation(HookPostTool)
		inv.CallID, inv.Ordinal = call.ID, ordinal
		answer, err := i.PostTool(ctx, inv, call, res)
		if err != nil {
			return nil, hookError(HookPostTool, err)
		}
		switch a := answer.(type) {
		case Pause, Abort:
			return a, nil
		case Continue, nil:
		}
	}
	return nil, nil
}

// observeExit tells the hooks how the run ended. Their failures are kept apart
// (E-18).
func (r *run) observeExit(ctx context.Context, e exit) {
	for _, i := range r.cfg.interceptors {
		if err := i.RunExit(context.WithoutCancel(ctx), r.invocation(HookRunExit), e.out, e.err); err != nil && r.observerErr == nil {
			r.observerErr = hookError(HookRunExit, err)
		}
	}
}

// ObserverError is the first failure of a RunExit hook in the last run or resume.
func (l *Locked) ObserverError() error {
	l.core.mu.Lock()
	defer l.core.mu.Unlock()
	return l.core.observerErr
}
