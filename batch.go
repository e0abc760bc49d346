// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
	"github.com/fiducial-dev/fiducial/tool"
)

// batch is the pending batch of calls of a run.
type batch struct {
	*run
	op  machine.OperationID
	n   int  // calls in it
	cut bool // the reply that holds them was cut off
}

// executeTools gets a result for every call of the pending batch (S-97 to S-100).
// Calls is the context that they run in.
func (r *run) executeTools(ctx, calls context.Context) *exit {
	r.pauses = 0
	p, _ := r.state.Pending()
	if len(r.cfg.interceptors) > 0 && r.reviewed != p.Op && r.untouched() {
		if e := r.review(ctx); e != nil || r.state.Phase() != machine.PhaseTools {
			return e
		}
	}
	history := r.state.History()
	stop := history[len(history)-1].Stop
	b := batch{run: r, op: p.Op, n: r.state.BatchLen(), cut: stop == llm.StopMaxTokens || stop == llm.StopIncomplete}
	if r.armed.op == b.op {
		if e := b.dispatch(ctx, calls); e != nil || b.over() {
			return b.end(ctx, e)
		}
	}
	for next := 0; next < b.n; {
		if ctx.Err() != nil { // S-106: cancelled before dispatch
			return b.close()
		}
		if reason, ok := r.inbox.asked(); ok {
			return r.pauseNow(ctx, reason)
		}
		to := b.group(next)
		if e := b.runGroup(ctx, calls, next, to); e != nil || b.over() {
			return b.end(ctx, e)
		}
		next = to
	}
	if ctx.Err() != nil {
		return b.close()
	}
	// Every call was answered, and yet the machine waits: it must not happen.
	return r.fail(fail(KindState, r.op, nil, "a batch has calls that nobody answers"))
}

// untouched reports whether nothing was done about the pending batch yet.
func (r *run) untouched() bool {
	for i := range r.state.BatchLen() {
		if r.state.BatchCall(i).Status != machine.CallWaiting {
			return false
		}
	}
	return true
}

// over reports whether the batch is not what is pending any more.
func (b *batch) over() bool { return b.state.Phase() != machine.PhaseTools }

// end is what follows the last group of a batch.
func (b *batch) end(ctx context.Context, e *exit) *exit {
	switch {
	case e != nil:
		// What did happen is stored, also after a failure (S-87). Calls that were not
		// run because it could not be said stay so.
		if b.armed.op == 0 && !errors.Is(e.err, ErrFenced) {
			if err := b.save(ctx); err != nil && e.err == nil {
				return b.fail(err)
			}
		}
		return e
	case b.state.Phase() == machine.PhasePaused && !b.state.AtBoundary():
		return nil
	}
	if ctx.Err() != nil && b.state.Phase() == machine.PhaseFinished { // S-109
		if err := step(b.core, b.run.op, machine.CancelAtBoundary{}); err != nil {
			return b.fail(err)
		}
		return nil
	}
	if err := b.save(ctx); err != nil { // S-84, point 5
		return b.fail(err)
	}
	return nil
}

// group is the end of the calls that start together with next: an exclusive one
// alone, else all up to the next exclusive one.
func (b *batch) group(next int) int {
	to := next + 1
	if to == b.n || b.traits(next).Exclusive {
		return to
	}
	for to < min(b.n, next+b.cfg.parallel) && !b.traits(to).Exclusive {
		to++
	}
	return to
}

func (b *batch) traits(ordinal int) tool.Traits {
	return b.traitsOf(b.state.BatchCall(ordinal).Call.Name)
}

func (c *core) traitsOf(name string) tool.Traits {
	if t, ok := c.exec.(tool.Traiter); ok {
		traits, _ := t.Traits(name)
		return traits
	}
	return tool.Traits{}
}

// runGroup settles the calls from next to to.
func (b *batch) runGroup(ctx, calls context.Context, next, to int) *exit {
	answered, e := b.prepare(ctx, next, to)
	if e != nil || b.over() {
		return e
	}
	for i := range answered {
		if e := b.settle(ctx, &answered[i], false); e != nil || b.over() {
			return e
		}
	}
	for ready := b.armed.calls; len(ready) > 0 && !b.over(); {
		n := b.together(ready)
		b.armed.calls, ready = ready[:n], ready[n:]
		if e := b.launch(ctx, calls); e != nil {
			return e
		}
		if reason, ok := b.inbox.asked(); ok && len(ready) > 0 && !b.over() {
			return b.pauseNow(ctx, reason)
		}
	}
	return nil
}

// prepare asks the hooks about each waiting call of the group and makes those
// ready that are to run. The others are answered: malformed, skipped, or by a hook.
func (b *batch) prepare(ctx context.Context, next, to int) (answered []slot, e *exit) {
	b.armed = armed{calls: b.armed.calls[:0]}
	for i := next; i < to && ctx.Err() == nil; i++ {
		waiting := b.state.BatchCall(i)
		if waiting.Status != machine.CallWaiting {
			continue
		}
		call := waiting.Call
		input, refusal := b.input(i, call)
		switch {
		case refusal != "":
			answered = append(answered, slot{ordinal: i, call: call, result: unrun(waiting, refusal)})
		case waiting.Doubt && !b.known(call.Name): // the executor would say that it was never run
			answered = append(answered, slot{ordinal: i, call: call, result: machine.NotRepeated(call, "there is no such tool any more")})
		case len(b.cfg.interceptors) > 0 && b.known(call.Name):
			answer, e := b.asked(ctx, i, waiting)
			if e != nil || b.over() {
				return nil, e
			}
			answered = append(answered, answer...)
		default:
			b.armed.calls = append(b.armed.calls, readyCall{i, call, input, waiting.Doubt})
		}
	}
	return answered, nil
}

// asked is one call after the hooks were asked about it. Without an answer it is ready to run, or the
// batch is over.
func (b *batch) asked(ctx context.Context, ordinal int, waiting machine.BatchCall) (answered []slot, e *exit) {
	call := waiting.Call.Clone()
	answer, err := b.preTool(ctx, ordinal, &call, waiting.Doubt)
	if err != nil {
		return nil, b.fail(err)
	}
	switch a := answer.(type) {
	case Skip:
		return []slot{{ordinal: ordinal, call: call, result: unrun(waiting, skipped(a))}}, nil
	case Synthetic:
		return []slot{{ordinal: ordinal, call: call, result: a.Result}}, nil
	case Pause:
		return nil, b.pauseNow(ctx, a.Reason)
	case Abort:
		return nil, b.abort(HookPreTool, a.Reason)
	case Continue, nil:
	}
	input, err := call.Input()
	if err != nil {
		return nil, b.fail(contractError(HookPreTool, "%w", err))
	}
	b.armed.calls = append(b.armed.calls, readyCall{ordinal, call, input, waiting.Doubt})
	return nil, nil
}

// settle takes the result of one call: to the observers, into the machine, the
// journal, the events, and then to the hooks, when the tool ran or a hook gave the
// result.
func (b *batch) settle(ctx context.Context, s *slot, ran bool) *exit {
	res := b.maskResult(s.result.Clone()) // a tool may use again what it has returned
	call := s.call
	if len(b.cfg.interceptors) > 0 {
		call = b.state.BatchCall(s.ordinal).Call // as the model made it
	}
	res.CallID, res.Name, res.Status = call.ID, call.Name, cmp.Or(res.Status, llm.StatusSuccess)
	if len(b.cfg.observers) > 0 {
		if err := b.observe(llm.ToolResults(res)); err != nil {
			return b.fail(err)
		}
	}
	if err := step(b.core, b.run.op, machine.Settled{Op: b.op, Ordinal: s.ordinal, Result: res}); err != nil {
		return b.fail(err)
	}
	if err := b.store.flush(ctx, b.run.op, &b.state); err != nil {
		return b.fail(err)
	}
	if b.watched() {
		b.emit(ToolFinished{Op: b.op, Ordinal: s.ordinal, Result: res.Clone(), Ran: ran})
		if cut := s.cut; cut.Before > 0 {
			b.emit(Warning{Text: cut.String(), Cut: &cut})
		}
	}
	if len(b.cfg.interceptors) == 0 || res.Status == llm.StatusUnknown || !b.known(s.call.Name) {
		return nil
	}
	return b.afterCall(ctx, s, res)
}

// afterCall shows the result to the hooks. After a cancel they see it, too, for
// the tool did what it did; the run ends all the same.
func (b *batch) afterCall(ctx context.Context, s *slot, res llm.Result) *exit {
	if ctx.Err() != nil {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), b.cfg.grace)
		defer cancel()
		if _, err := b.postTool(ctx, s.ordinal, s.call, res); err != nil {
			b.emit(Warning{Text: b.text("after the cancel: " + err.Error())})
		}
		return nil
	}
	answer, err := b.postTool(ctx, s.ordinal, s.call, res)
	if err != nil {
		return b.fail(err)
	}
	switch a := answer.(type) {
	case Abort:
		return b.abort(HookPostTool, a.Reason)
	case Pause:
		return b.pauseNow(ctx, a.Reason)
	case Continue, nil:
	}
	return nil
}

// close ends the batch by force after a cancel: what was not started is not run,
// what does not answer is unknown (S-107, S-108).
func (b *batch) close() *exit {
	if p, ok := b.state.Pending(); !ok || p.Op != b.op || b.state.Phase() != machine.PhaseTools {
		return nil // the last result came in time; the boundary cancels (S-109)
	}
	before := b.state.Batch()
	in := machine.SettleRest{Op: b.op, Cause: cancelledCause, Cancelled: true}
	if err := step(b.core, b.run.op, in); err != nil {
		return b.fail(err)
	}
	if !b.watched() {
		return nil
	}
	history := b.state.History()
	for i, p := range history[len(history)-1].Parts {
		if before[i].Status != machine.CallStarted {
			continue
		}
		if res, ok := p.(llm.Result); ok {
			b.emit(ToolFinished{Op: b.op, Ordinal: i, Result: res.Clone(), Ran: true})
		}
	}
	return nil // the machine says Cancelled now
}

// input is the call's arguments as an object, or why the call must not run. In a
// reply that was cut, arguments that are missing or broken at its end are not the
// model's intent (E-126).
func (b *batch) input(ordinal int, call llm.Call) (input []byte, refusal string) {
	raw, err := call.Input()
	if b.cut && ordinal == b.n-1 && (err != nil || strings.TrimSpace(call.Args) == "") {
		return nil, "the reply was cut off inside this call, so it was not run; make the call again"
	}
	if err != nil {
		refusal := err.Error() + ". The tool was not run."
		i := slices.IndexFunc(b.lock.tools, func(t llm.Tool) bool { return t.Name == call.Name })
		if i >= 0 && len(b.lock.tools[i].Schema) > 0 {
			refusal += fmt.Sprintf(" Expected: %s", b.lock.tools[i].Schema)
		}
		return nil, refusal
	}
	return raw, ""
}

// known reports whether the tool is one that the executor runs; hooks are not
// asked about others (E-71).
func (r *run) known(name string) bool {
	if t, ok := r.exec.(tool.Traiter); ok {
		_, ok := t.Traits(name)
		return ok
	}
	for _, spec := range r.lock.tools {
		if spec.Name == name {
			return true
		}
	}
	return false
}

func errorResult(text string) llm.Result {
	return llm.Result{Status: llm.StatusError, Summary: text}
}

// unrun is the result of a call that is answered without being run now.
func unrun(c machine.BatchCall, why string) llm.Result {
	if c.Doubt {
		return machine.NotRepeated(c.Call, why)
	}
	return errorResult(why)
}

func skipped(a Skip) string {
	if strings.TrimSpace(a.Reason) == "" {
		return "the call was skipped"
	}
	return "the call was skipped: " + a.Reason
}
