// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
)

// Timeouts limit how long a stream may stand still. A field of 0 is the default,
// a negative one is no limit.
type Timeouts struct {
	Open  time.Duration // until the response's headers are there; default 20 s (E-148)
	First time.Duration // from there to the first event; default 30 s (E-148)
	Idle  time.Duration // between two events; default 5 min
}

// The defaults of [Timeouts].
const (
	DefaultOpen  = 20 * time.Second
	DefaultFirst = 30 * time.Second
	DefaultIdle  = 5 * time.Minute
)

func (t Timeouts) withDefaults() Timeouts {
	set := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	set(&t.Open, DefaultOpen)
	set(&t.First, DefaultFirst)
	set(&t.Idle, DefaultIdle)
	return t
}

// A Guard ends one request that does not move, by cancelling the context that
// [Watch] gave. Its methods are to be called from one goroutine.
type Guard struct {
	limits Timeouts
	cancel context.CancelCauseFunc
	timer  *time.Timer

	mu    sync.Mutex
	fired *llm.Error // why the guard itself ended the request
	next  *llm.Error // what the timer will fire with
}

// Watch starts the limits of a request, beginning with the one for opening it.
// The request is made with the context that it returns. Stop must be called.
func Watch(ctx context.Context, limits Timeouts) (*Guard, context.Context) {
	ctx, cancel := context.WithCancelCause(ctx)
	g := &Guard{limits: limits.withDefaults(), cancel: cancel}
	g.arm(g.limits.Open, llm.ClassTimeout, "no response within %s")
	return g, ctx
}

// Opened says that the response's headers are there; the limit for the first event
// begins.
func (g *Guard) Opened() {
	first, idle := g.limits.First, g.limits.Idle
	if first > 0 && (idle <= 0 || first <= idle) {
		g.arm(first, llm.ClassTimeout, "no event within %s of the response")
		return
	}
	g.Wait()
}

// Seen says that an event of the stream has come, and stops the clock until Wait:
// the time that a reader of events takes is not the provider's. Comments and
// pings, which servers send to keep a connection, are no such events: they also
// come when nothing else ever will.
func (g *Guard) Seen() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.timer != nil {
		g.timer.Stop()
	}
}

// Wait begins the limit for the next event.
func (g *Guard) Wait() {
	g.arm(g.limits.Idle, llm.ClassStreamIdle, "no event for %s")
}

// Stop ends the limits and frees what they hold; it also ends the request.
func (g *Guard) Stop() {
	g.mu.Lock()
	if g.timer != nil {
		g.timer.Stop()
	}
	g.mu.Unlock()
	g.cancel(nil)
}

func (g *Guard) arm(d time.Duration, class llm.Class, format string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.fired != nil {
		return
	}
	if d <= 0 {
		if g.timer != nil {
			g.timer.Stop()
		}
		return
	}
	if g.next == nil || g.next.Class != class {
		g.next = &llm.Error{Class: class, Message: fmt.Sprintf(format, d)}
	}
	if g.timer == nil {
		g.timer = time.AfterFunc(d, g.fire)
		return
	}
	g.timer.Reset(d)
}

func (g *Guard) fire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.fired = g.next
	g.cancel(g.fired)
}

// Failure is what an error of the transport or of reading the body means: the
// end of the caller's ctx (its cause, so that a cancel stays a cancel; E-190), a
// limit of the guard, an [*llm.Error] of the transport's own, whose class is kept,
// a body that ended where it must not, or a broken connection. The ctx is the one that was given to [Watch]. Text of err goes
// through mask; err itself, which may hold a URL with a key, is not wrapped
// unless it is the end of a context or of the input.
func (g *Guard) Failure(ctx context.Context, op string, err error, mask Mask) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	g.mu.Lock()
	fired := g.fired
	g.mu.Unlock()
	if fired != nil {
		out := *fired
		out.Op = op
		return &out
	}
	if own, ok := errors.AsType[*llm.Error](err); ok { // a transport that knows better, as that of a test
		out := *own
		out.Op, out.Message, out.Err = op, mask.Text(own.Message), nil
		return &out
	}
	out := &llm.Error{Class: llm.ClassTransport, Op: op, Message: mask.Text(err.Error())}
	switch timeout := net.Error(nil); {
	case errors.Is(err, io.ErrUnexpectedEOF):
		out.Err = io.ErrUnexpectedEOF
	case errors.Is(err, io.EOF):
		out.Err = io.EOF
	case errors.As(err, &timeout) && timeout.Timeout():
		out.Class = llm.ClassTimeout
	}
	return out
}
