// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

func (r *run) invocation(phase HookPhase) Invocation {
	inv := Invocation{
		Phase: phase, Trace: r.cfg.trace, Run: r.cfg.run,
		Turn: r.counts.turns, Request: r.counts.requests, Usage: r.counts.usage,
		History: r.lend(), core: r.core,
	}
	if p, ok := r.state.Pending(); ok {
		inv.Op = p.Op
	}
	return inv
}

// submit takes the caller's messages through the hooks and returns what is to
// become history (E-24, E-25). Nothing has changed yet when one refuses.
func (r *run) submit(ctx context.Context, in []llm.Message) ([]llm.Message, *exit) {
	var out []llm.Message
	for _, m := range in {
		if len(r.cfg.interceptors) > 0 {
			m = m.Clone() // what a hook changes of it is not the caller's
		}
		var behind []llm.Message
		for _, i := range r.cfg.interceptors {
			answer, err := hook(r.core, func() (PromptAnswer, error) {
				return i.PromptSubmit(ctx, r.invocation(HookPromptSubmit), &m)
			})
			if err != nil {
				return nil, r.fail(hookError(HookPromptSubmit, err))
			}
			switch a := answer.(type) {
			case Abort:
				return nil, r.abort(HookPromptSubmit, a.Reason)
			case ContinueWith:
				if err := checkUser(a.Messages); err != nil {
					return nil, r.fail(contractError(HookPromptSubmit, "what it wants added: %w", err))
				}
				behind = append(behind, a.Messages...)
			case Continue, nil:
			default:
				return nil, r.fail(noAnswer(HookPromptSubmit, a))
			}
		}
		out = append(append(out, m), behind...)
	}
	out = llm.CloneMessages(out) // the caller may write to the messages later, and a hook
	if err := checkUser(out); err != nil {
		return nil, r.fail(fail(KindState, r.op, err, ""))
	}
	return r.maskAll(out), nil
}

func (r *run) abort(phase HookPhase, reason string) *exit {
	return r.fail(fail(KindAborted, string(phase), nil, "%s", reason))
}

// noAnswer is for what is none of a hook's answers, such as a pointer to one: it
// must not count as Continue.
func noAnswer(phase HookPhase, answer any) *Error {
	return contractError(phase, "a %T is no answer; give the value, not a pointer to it", answer)
}

// pendingHistory asks the hooks for messages to add now.
func (r *run) pendingHistory(ctx context.Context) ([]llm.Message, error) {
	var all []llm.Message
	for _, i := range r.cfg.interceptors {
		messages, err := hook(r.core, func() ([]llm.Message, error) {
			return i.PendingHistory(ctx, r.invocation(HookPendingHistory))
		})
		if err == nil && len(messages) > 0 {
			if err = checkUser(messages); err != nil {
				return nil, contractError(HookPendingHistory, "what it wants added: %w", err)
			}
		}
		if err != nil {
			return nil, hookError(HookPendingHistory, err)
		}
		all = append(all, messages...)
	}
	return all, nil
}

// preRequest asks the hooks about the request.
func (r *run) preRequest(ctx context.Context, req *llm.Request) *exit {
	var more []llm.Message // becomes history when all have let the request pass, for otherwise they are asked again
	for _, i := range r.cfg.interceptors {
		answer, err := hook(r.core, func() (RequestAnswer, error) {
			return i.PreRequest(ctx, r.invocation(HookPreRequest), req)
		})
		if err != nil {
			return r.fail(hookError(HookPreRequest, err))
		}
		switch a := answer.(type) {
		case ContinueWith:
			if err := checkAdded(a.Messages); err != nil {
				return r.fail(err)
			}
			more = append(more, llm.CloneMessages(a.Messages)...)
			// The hook's own edits stand; what was added goes behind them.
			req.Messages = append(slices.Clip(req.Messages), r.maskAll(a.Messages)...)
		case Yield:
			if e := r.addNow(a.Messages); e != nil {
				return e
			}
			if err := r.save(ctx); err != nil {
				return r.fail(err)
			}
			out := r.outcome(Yielded)
			out.Detail = r.text(a.Reason)
			return &exit{out, nil}
		case Pause:
			return r.pauseNow(ctx, a.Reason) // the machine says Paused then
		case Abort:
			if err := r.save(ctx); err != nil {
				return r.fail(err)
			}
			return r.abort(HookPreRequest, a.Reason)
		case Continue, nil:
		default:
			return r.fail(noAnswer(HookPreRequest, a))
		}
	}
	return r.addNow(more)
}

func checkAdded(messages []llm.Message) error {
	if len(messages) == 0 {
		return nil
	}
	if err := checkUser(messages); err != nil {
		return contractError(HookPreRequest, "what it wants added: %w", err)
	}
	return nil
}

// addNow takes in what a hook wants added before the request.
func (r *run) addNow(messages []llm.Message) *exit {
	if len(messages) == 0 {
		return nil
	}
	if err := checkAdded(messages); err != nil {
		return r.fail(err)
	}
	if err := r.takeIn(nil, messages); err != nil {
		return r.fail(err)
	}
	return nil
}

// afterResponse asks the hooks about a reply that is history. What they want added
// counts when all have let it pass, for otherwise they are asked again.
func (r *run) afterResponse(ctx context.Context, m llm.Message) *exit {
	var more []llm.Message
	for _, i := range r.cfg.interceptors {
		answer, err := hook(r.core, func() (ResponseAnswer, error) {
			return i.AfterResponse(ctx, r.invocation(HookAfterResponse), m.Clone())
		})
		if err != nil {
			return r.fail(hookError(HookAfterResponse, err))
		}
		switch a := answer.(type) {
		case ContinueWith:
			more = append(more, a.Messages...)
		case Pause:
			if err := r.passed(more); err != nil {
				return r.fail(err)
			}
			return r.pauseNow(ctx, a.Reason)
		case Abort:
			return r.abort(HookAfterResponse, a.Reason)
		case Continue, nil:
		default:
			return r.fail(noAnswer(HookAfterResponse, a))
		}
	}
	if err := r.passed(more); err != nil {
		return r.fail(err)
	}
	return nil
}

// passed remembers that the calls of the reply need no further review, and what is
// to be added behind their results.
func (r *run) passed(more []llm.Message) error {
	if err := r.later(HookAfterResponse, more...); err != nil {
		return err
	}
	if p, ok := r.state.Pending(); ok && p.Kind == machine.PendingTools {
		r.reviewed = p.Op
	}
	return nil
}

// preTool asks the hooks about one call. A nil answer means that it runs.
func (b *batch) preTool(ctx context.Context, ordinal int, call *llm.Call, doubt bool) (ToolAnswer, error) {
	id := call.ID
	for _, i := range b.cfg.interceptors {
		inv := b.invocation(HookPreTool)
		inv.Op, inv.CallID, inv.Ordinal, inv.MayHaveRun = b.op, id, ordinal, doubt
		answer, err := hook(b.core, func() (ToolAnswer, error) { return i.PreTool(ctx, inv, call) })
		if err != nil {
			return nil, hookError(HookPreTool, err)
		}
		if call.ID != id {
			return nil, contractError(HookPreTool, "the hook changed the id of call %q", id)
		}
		switch a := answer.(type) {
		case Synthetic:
			a.Result = a.Result.Clone()
			if a.Result.CallID != "" && a.Result.CallID != id {
				return nil, contractError(HookPreTool, "the synthetic result answers %q, and the call is %q", a.Result.CallID, id)
			}
			if err := errors.Join(checkStatus(a.Result.Status), checkNotes(a.Result.Notes...)); err != nil {
				return nil, contractError(HookPreTool, "the synthetic result: %w", err)
			}
			return a, nil
		case Skip, Pause, Abort:
			return a, nil
		case Continue, nil:
		default:
			return nil, noAnswer(HookPreTool, a)
		}
	}
	return nil, nil
}

// checkStatus refuses a status that no result has. None stands for success.
func checkStatus(s llm.Status) error {
	switch s {
	case "", llm.StatusSuccess, llm.StatusError, llm.StatusInterrupted, llm.StatusCancelled, llm.StatusUnknown:
		return nil
	}
	return fmt.Errorf("%q is no status of a result; use one of those that package llm names", s)
}

// postTool shows the hooks a result that is history's.
func (b *batch) postTool(ctx context.Context, ordinal int, call llm.Call, res llm.Result) (PostAnswer, error) {
	for _, i := range b.cfg.interceptors {
		inv := b.invocation(HookPostTool)
		inv.Op, inv.CallID, inv.Ordinal = b.op, call.ID, ordinal // its batch may be complete by now
		answer, err := hook(b.core, func() (PostAnswer, error) { return i.PostTool(ctx, inv, call.Clone(), res.Clone()) })
		if err != nil {
			return nil, hookError(HookPostTool, err)
		}
		switch a := answer.(type) {
		case Pause, Abort:
			return a, nil
		case Continue, nil:
		default:
			return nil, noAnswer(HookPostTool, a)
		}
	}
	return nil, nil
}

// observeExit tells the hooks how the run ended. Their failures are kept apart
// (E-18).
func (r *run) observeExit(ctx context.Context, e exit) {
	for _, i := range r.cfg.interceptors {
		_, err := hook(r.core, func() (struct{}, error) {
			return struct{}{}, i.RunExit(context.WithoutCancel(ctx), r.invocation(HookRunExit), e.out.clone(), e.err)
		})
		if err == nil {
			continue
		}
		failed := hookError(HookRunExit, err) // before the lock is held, for it asks the error for its text
		r.mu.Lock()
		if r.observerErr == nil {
			r.observerErr = failed
		}
		r.mu.Unlock()
	}
}

// ObserverError is the first failure of a RunExit hook in the last run or resume.
func (l *Locked) ObserverError() error {
	if l.core == nil {
		return nil
	}
	l.core.mu.Lock()
	defer l.core.mu.Unlock()
	return l.core.observerErr
}
