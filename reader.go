// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"context"
	"runtime/debug"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/machine"
	"github.com/fiducial-dev/fiducial/tool"
)

// A reader takes the events of a client. There is one for a run, so that a request
// costs nothing but what the client and the reply cost.
type reader struct {
	run     *run
	op      machine.OperationID
	c       collect.Collector
	draft   draft
	done    <-chan struct{}
	watched bool
	over    bool // nothing more is taken
	inside  bool // an event is being taken, and a panic is not the client's
	err     error
	yield   func(llm.Event, error) bool // is take, made once, and anew behind an attempt that broke
	attempt int                         // that yield belongs to
	broken  bool                        // it failed
}

// read sends the request and reads the reply.
func (rd *reader) read(ctx context.Context, r *run, op machine.OperationID, req *llm.Request) (collect.Reply, error) {
	if rd.yield == nil || rd.broken { // a client may have kept that of an attempt which is over
		rd.run, rd.attempt = r, rd.attempt+1
		mine := rd.attempt
		rd.yield = func(ev llm.Event, err error) bool { return rd.attempt == mine && rd.take(ev, err) }
	}
	reply, err := rd.once(ctx, op, req)
	rd.over, rd.broken = true, err != nil
	return reply, err
}

func (rd *reader) once(ctx context.Context, op machine.OperationID, req *llm.Request) (collect.Reply, error) {
	r := rd.run
	rd.op, rd.done, rd.watched = op, ctx.Done(), r.watched()
	rd.over, rd.inside, rd.err = false, false, nil
	rd.c.Reset(uint64(op))
	rd.draft.reset(r.cfg.masker)
	if err := rd.stream(ctx, req); err != nil {
		return collect.Reply{}, err
	}
	switch {
	case ctx.Err() != nil:
		return collect.Reply{}, causeOf(ctx)
	case rd.err != nil:
		return collect.Reply{}, rd.err
	}
	return rd.c.Reply()
}

// stream lets the client run. Its panic is an error of the request.
func (rd *reader) stream(ctx context.Context, req *llm.Request) (err error) {
	defer func() {
		if rd.inside {
			return
		}
		if p := recover(); p != nil {
			cause := &tool.PanicError{Value: p, Stack: debug.Stack()}
			err = &llm.Error{Class: llm.ClassUnknown, Op: "client", Message: "the client panicked", Err: cause}
		}
	}()
	rd.run.client.Stream(ctx, req)(rd.yield)
	return nil
}

// take is the yield function of the stream. A client that goes on after it was
// told to stop is not listened to.
func (rd *reader) take(ev llm.Event, err error) bool {
	if rd.over {
		return false
	}
	rd.inside = true
	rd.err = rd.event(ev, err)
	rd.over = rd.err != nil
	rd.inside = false
	return !rd.over
}

func (rd *reader) event(ev llm.Event, err error) error {
	if err != nil {
		return sayable(err)
	}
	if ev == nil {
		return &llm.Error{Class: llm.ClassMalformedStream, Op: "client", Message: "neither an event nor an error"}
	}
	if err := rd.c.Add(ev); err != nil {
		return err
	}
	if rd.watched {
		rd.show(ev)
	}
	select {
	case <-rd.done:
		return context.Canceled // read tells the cause
	default:
		return nil
	}
}
