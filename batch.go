package fiducial

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
	"github.com/fiducial-dev/fiducial/tool"
)

// batch is the pending batch of calls of a run.
type batch struct {
	*run
	op    machine.OperationID
	calls []machine.BatchCall // as the model made them, when the batch was taken up
	last  llm.Message         // the reply that holds them
	done  chan settledCall
}

type settledCall struct {
	ordinal int
	call    llm.Call
	result  llm.Result
}

// executeTools gets a result for every call of the pending batch (S-97 to S-100).
func (r *run) executeTools(ctx context.Context, eff machine.ExecuteTools) *exit {
	history := r.state.History()
	b := &batch{run: r, op: eff.Op, calls: eff.Calls, last: history[len(history)-1]}
	b.done = make(chan settledCall, len(eff.Calls))
	for next := 0; next < len(b.calls); {
		if ctx.Err() != nil { // S-106: cancelled before dispatch
			return b.close(ctx)
		}
		if reason, ok := r.inbox.asked(); ok {
			return r.pauseNow(ctx, reason)
		}
		group := b.group(next)
		next += len(group)
		if e := b.runGroup(ctx, group); e != nil || r.state.Phase() != machine.PhaseTools {
			if e == nil {
				e = b.after(ctx)
			}
			return e
		}
	}
	if ctx.Err() != nil {
		return b.close(ctx)
	}
	// Every call was answered, and yet the machine waits: it must not happen.
	return r.fail(fail(KindState, r.op, nil, "a batch has calls that nobody answers"))
}

// after is what follows the results of a whole batch.
func (b *batch) after(ctx context.Context) *exit {
	if b.state.Phase() == machine.PhasePaused {
		return nil
	}
	b.guard.batch(b.cfg.loop, b.state.History())
	if text := b.guard.tell; text != "" && b.state.Phase() == machine.PhaseGenerating {
		b.guard.tell = ""
		b.extra = append(b.extra, llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.System{Kind: "repeated_calls", Text: text}}})
	}
	if err := b.save(ctx); err != nil { // S-84, point 5
		return b.fail(err)
	}
	b.mu.Lock()
	b.view = b.state.History()
	b.mu.Unlock()
	return nil
}

// group is the ordinals of the calls that start together: an exclusive one alone,
// else all up to the next exclusive one.
func (b *batch) group(next int) []int {
	group := []int{next}
	if b.cfg.sequential || b.traits(next).Exclusive {
		return group
	}
	for i := next + 1; i < len(b.calls) && !b.traits(i).Exclusive; i++ {
		group = append(group, i)
	}
	return group
}

func (b *batch) traits(ordinal int) tool.Traits {
	return b.traitsOf(b.calls[ordinal].Call.Name)
}

func (r *run) traitsOf(name string) tool.Traits {
	if t, ok := r.exec.(tool.Traiter); ok {
		traits, _ := t.Traits(name)
		return traits
	}
	return tool.Traits{}
}

// runGroup settles the calls of one group.
func (b *batch) runGroup(ctx context.Context, group []int) *exit {
	type ready struct {
		ordinal int
		call    llm.Call
		input   []byte
	}
	var toRun []ready
	var answered []settledCall // answered without running, and the hooks may see
	for _, i := range group {
		if b.calls[i].Status == machine.CallSettled {
			continue
		}
		call := b.calls[i].Call
		input, refusal := b.input(i, call)
		if refusal != "" {
			answered = append(answered, settledCall{i, call, errorResult(refusal)})
			continue
		}
		if len(b.cfg.interceptors) > 0 && b.known(call.Name) {
			answer, err := b.preTool(ctx, i, &call)
			if err != nil {
				return b.fail(err)
			}
			switch a := answer.(type) {
			case Skip:
				answered = append(answered, settledCall{i, call, errorResult("the call was skipped: " + a.Reason)})
				continue
			case Synthetic:
				a.Result.Name = b.calls[i].Call.Name
				answered = append(answered, settledCall{i, call, a.Result})
				continue
			case Pause:
				return b.pauseNow(ctx, a.Reason)
			case Abort:
				return b.abort(HookPreTool, a.Reason)
			case Continue, nil:
			}
			raw, err := call.Input()
			if err != nil {
				return b.fail(contractError(HookPreTool, "%v", err))
			}
			input = raw
		}
		toRun = append(toRun, ready{i, call, input})
	}
	var result *exit
	for _, a := range answered {
		if e := b.settle(ctx, a, false); e != nil && result == nil {
			result = e
		}
	}
	if result != nil || len(toRun) == 0 {
		return result
	}
	started := machine.Started{Op: b.op, Calls: make([]machine.StartedCall, len(toRun))}
	for n, c := range toRun {
		started.Calls[n] = machine.StartedCall{Ordinal: c.ordinal, Repeat: b.traitsOf(c.call.Name).Repeatable()}
	}
	if err := b.step(b.run.op, started); err != nil {
		return b.fail(err)
	}
	if err := b.save(ctx); err != nil { // S-84, point 4
		return b.fail(err)
	}
	toolCtx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	for _, c := range toRun {
		if b.watched() {
			b.emit(ToolStarted{Op: b.op, Ordinal: c.ordinal, Call: c.call})
		}
		call := tool.Call{
			ID: c.call.ID, Name: c.call.Name, Input: c.input,
			Run: b.cfg.run, Op: uint64(b.op), Ordinal: c.ordinal,
		}
		go func() { // what does not return within the grace is left behind; its result is ignored (S-112)
			b.done <- settledCall{c.ordinal, c.call, b.execute(toolCtx, call)}
		}()
	}
	return b.await(ctx, cancel, len(toRun))
}

// execute runs one call. A panic of a caller's own executor is a result, too.
func (b *batch) execute(ctx context.Context, call tool.Call) (res llm.Result) {
	defer func() {
		if p := recover(); p != nil {
			res = errorResult(fmt.Sprintf("the tool panicked: %v", p))
		}
	}()
	return b.exec.Execute(ctx, call)
}

// await settles the calls as they return. After a cancel they have the grace
// period, then the rest is unknown.
func (b *batch) await(ctx context.Context, cancel context.CancelCauseFunc, n int) *exit {
	var stopped *exit
	var grace <-chan time.Time
	over := ctx.Done()
	timer := (*time.Timer)(nil)
	defer func() {
		if timer != nil {
			timer.Stop()
		}
	}()
	begin := func(cause error) {
		cancel(cause)
		over = nil
		if timer == nil {
			timer = time.NewTimer(b.cfg.grace)
			grace = timer.C
		}
	}
	for n > 0 {
		select {
		case s := <-b.done:
			n--
			if e := b.settle(ctx, s, true); e != nil {
				if stopped == nil {
					stopped = e
				}
				if e.err != nil && !errors.Is(e.err, ErrAborted) {
					begin(e.err)
				}
			}
		case <-over:
			begin(context.Cause(ctx))
		case <-grace:
			n = 0
		}
	}
	switch {
	case errors.Is(context.Cause(ctx), errLost):
		return b.fail(fail(KindFenced, b.run.op, errLost, "")) // nothing more is written here
	case ctx.Err() != nil:
		return b.close(ctx)
	}
	return stopped
}

// settle takes the result of one call: into the machine, the journal, the events,
// and then to the hooks, when the tool ran or a hook gave the result.
func (b *batch) settle(ctx context.Context, s settledCall, ran bool) *exit {
	res := s.result
	res.CallID, res.Name = b.calls[s.ordinal].Call.ID, b.calls[s.ordinal].Call.Name
	if b.cfg.masker != nil {
		res = maskResult(b.cfg.masker, res)
	}
	if err := b.step(b.run.op, machine.Settled{Op: b.op, Ordinal: s.ordinal, Result: res}); err != nil {
		return b.fail(err)
	}
	if err := b.store.flush(ctx, b.run.op, &b.state); err != nil {
		return b.fail(err)
	}
	if b.watched() {
		b.emit(ToolFinished{Op: b.op, Ordinal: s.ordinal, Result: res, Ran: ran})
	}
	if len(b.cfg.interceptors) == 0 || res.Status == llm.StatusUnknown || !b.known(s.call.Name) || ctx.Err() != nil {
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
func (b *batch) close(ctx context.Context) *exit {
	if p, ok := b.state.Pending(); !ok || p.Op != b.op || b.state.Phase() != machine.PhaseTools {
		return nil // the last result came in time; the boundary cancels (S-109)
	}
	in := machine.SettleRest{Op: b.op, Cause: "the run was cancelled", Cancelled: true}
	if err := b.step(b.run.op, in); err != nil {
		return b.fail(err)
	}
	if b.watched() {
		history := b.state.History()
		i := 0
		for _, p := range history[len(history)-1].Parts {
			if res, ok := p.(llm.Result); ok && res.Status == llm.StatusUnknown {
				b.emit(ToolFinished{Op: b.op, Ordinal: i, Result: res})
			}
			i++
		}
	}
	return nil // the machine says Cancelled now
}

// input is the call's arguments as an object, or why the call must not run. In a
// reply that was cut, arguments that are missing or broken at its end are not the
// model's intent (E-126).
func (b *batch) input(ordinal int, call llm.Call) (input []byte, refusal string) {
	raw, err := call.Input()
	cut := b.last.Stop == llm.StopMaxTokens || b.last.Stop == llm.StopIncomplete
	if cut && ordinal == len(b.calls)-1 && (err != nil || call.Args == "") {
		return nil, "the reply was cut off inside this call, so it was not run; make the call again"
	}
	if err != nil {
		refusal := err.Error() + ". The tool was not run."
		for _, spec := range b.lock.tools {
			if spec.Name == call.Name && len(spec.Schema) > 0 {
				refusal += fmt.Sprintf(" Expected: %s", spec.Schema)
			}
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
