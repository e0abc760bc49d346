// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
	"github.com/fiducial-dev/fiducial/tool"
)

// armed are calls that are started for the machine. When what says so could not be
// stored they were not run, and it is this process alone that knows it: Resume
// runs them without asking the hooks again (S-90).
type armed struct {
	op    machine.OperationID
	calls []readyCall
}

type readyCall struct {
	ordinal int
	call    llm.Call
	input   []byte
	doubt   bool // a process that is lost may have run it
}

// cancelledCause is why calls are not run after a cancel.
const cancelledCause = "the run was cancelled"

// together is how many of the calls that are ready start at once. A hook may have
// made a call of an exclusive tool of one that was none.
func (b *batch) together(ready []readyCall) int {
	if len(b.cfg.interceptors) == 0 {
		return len(ready)
	}
	exclusive := func(c readyCall) bool { return b.traitsOf(c.call.Name).Exclusive }
	n := slices.IndexFunc(ready, exclusive)
	if n < 0 {
		return len(ready)
	}
	return max(n, 1)
}

// launch records the armed calls as started, and then runs them, unless the context
// has ended before: the hooks may have taken their time (S-106).
func (b *batch) launch(ctx, calls context.Context) *exit {
	if ctx.Err() != nil {
		b.armed = armed{calls: b.armed.calls[:0]}
		return b.close()
	}
	started := machine.Started{Op: b.op, Calls: make([]machine.StartedCall, len(b.armed.calls))}
	for n, c := range b.armed.calls {
		started.Calls[n] = machine.StartedCall{Ordinal: c.ordinal, Repeat: b.traitsOf(c.call.Name).Repeatable()}
	}
	if err := step(b.core, b.run.op, started); err != nil {
		return b.fail(err)
	}
	b.armed.op = b.op
	if err := b.save(ctx); err != nil { // S-84, point 4
		return b.fail(err)
	}
	return b.dispatch(ctx, calls)
}

// dispatch runs the calls that are armed. It is the one place from which calls start,
// and none starts when the context has ended (S-106).
func (b *batch) dispatch(ctx, calls context.Context) *exit {
	n, shown := len(b.armed.calls), 0
	for ; b.watched() && shown < n && ctx.Err() == nil; shown++ {
		c := &b.armed.calls[shown]
		call := c.call.Clone() // a hook may have put a secret into it
		call.Name, call.Args = b.text(call.Name), b.jsonText(call.Args)
		b.emit(ToolStarted{Op: b.op, Ordinal: c.ordinal, Call: call})
	}
	if ctx.Err() != nil {
		return b.disarm(shown)
	}
	slots := b.bench.room(n)
	hurry := b.inbox.hurried()
	var mask func(string) string
	if b.cfg.masker != nil {
		mask = b.text
	}
	for i, c := range b.armed.calls {
		slots[i] = slot{ordinal: c.ordinal, call: c.call, in: tool.Call{
			ID: c.call.ID, Name: c.call.Name, Input: c.input,
			Run: b.cfg.run, Op: uint64(b.op), Ordinal: c.ordinal, Hurry: hurry, Mask: mask,
		}}
	}
	b.armed.op = 0
	b.bench.start(calls, b.core, n)
	return b.await(ctx, n)
}

// disarm answers calls that are recorded as started and were not run, because the
// run was cancelled before, and closes the batch. The first of them, so many as were
// shown, are shown as finished.
func (b *batch) disarm(shown int) *exit {
	results := make([]llm.Result, len(b.armed.calls))
	for i, c := range b.armed.calls {
		call := b.state.BatchCall(c.ordinal).Call
		results[i] = machine.NotRun(call, cancelledCause)
		if c.doubt {
			results[i] = machine.NotRepeated(call, cancelledCause)
		}
		if err := step(b.core, b.run.op, machine.Settled{Op: b.op, Ordinal: c.ordinal, Result: results[i]}); err != nil {
			return b.fail(err)
		}
	}
	b.armed.op = 0
	e := b.close()
	for i, c := range b.armed.calls[:shown] {
		b.emit(ToolFinished{Op: b.op, Ordinal: c.ordinal, Result: results[i]})
	}
	return e
}

// await settles n calls as they return. After a cancel they have the grace period,
// then the rest is unknown.
func (b *batch) await(ctx context.Context, n int) *exit {
	var stopped *exit
	var grace <-chan time.Time
	over := ctx.Done()
	work := &b.bench
	for n > 0 {
		var cause error
		select {
		case i := <-work.done:
			n--
			e := b.settle(ctx, &work.slots[i], true)
			if e == nil {
				continue
			}
			if stopped == nil {
				stopped = e
			}
			if errors.Is(e.err, ErrAborted) || e.err == nil {
				continue // the others end as they would
			}
			cause = e.err
		case <-over:
			cause = causeOf(ctx)
		case <-grace:
			work.left = true
			n = 0
			continue
		}
		work.end(cause)
		if over = nil; grace == nil {
			timer := time.NewTimer(b.cfg.grace)
			defer timer.Stop()
			grace = timer.C
		}
	}
	switch {
	case stopped != nil && stopped.err != nil && !errors.Is(stopped.err, ErrAborted):
		return stopped
	case errors.Is(causeOf(ctx), errLost):
		return b.fail(fail(KindFenced, b.run.op, errLost, "")) // nothing more is written here
	case ctx.Err() != nil:
		return b.close()
	}
	return stopped
}
