// SPDX-License-Identifier: Apache-2.0

package llmtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
)

// TestInProcess holds a client that needs no server to what [llm.Client] and
// [llm.Event] promise: a model in the process, or a client around other clients. What
// it answers is its own business; how it answers is looked at. It must look at the
// context before it begins, too, since a request may cost something.
//
// NewClient makes a client that can be asked any number of times. Requests are what it
// is asked; give some that it fails at, too. Without any it is asked for a text, with
// tools, and after a call. Run the test with the race detector.
func TestInProcess(t *testing.T, newClient func() llm.Client, requests ...*llm.Request) {
	if len(requests) == 0 {
		requests = plainRequests()
	}
	for _, part := range []struct {
		name string
		run  func(*testing.T, llm.Client, *llm.Request)
	}{
		{"events", inEvents},
		{"leave early", inLeave},
		{"context that has ended", inEnded},
		{"cancel", inCancel},
		{"at once", inAtOnce},
	} {
		t.Run(part.name, func(t *testing.T) {
			for n, req := range requests {
				if !t.Run(fmt.Sprint("request ", n), func(t *testing.T) { part.run(t, newClient(), req) }) {
					return // once is enough
				}
			}
		})
	}
}

func plainRequests() []*llm.Request {
	tools := []llm.Tool{{Name: "look", Description: "Looks.", Schema: json.RawMessage(`{"type":"object","properties":{"at":{"type":"string"}}}`)}}
	call := llm.AssistantCalls(llm.Call{ID: "1", Name: "look", Args: `{"at":"it"}`})
	text, tooled, later := ask("Say something."), ask("Look at it."), ask("Look at it.")
	text.System = "Be brief."
	tooled.Tools, later.Tools = tools, tools
	later.Messages = append(later.Messages, call, resultsFor(call, "dust"))
	return []*llm.Request{text, tooled, later}
}

// inPatience is how long one sequence may take to end, which a model may need.
const inPatience = time.Minute

// A heard is what one sequence yielded.
type heard struct {
	events int
	reply  collect.Reply
	err    error // how it ended; nil after a whole reply
	broken string
}

// listen runs one sequence and leaves it at its event number leave, 0 for never. After
// each event it calls each. It says what rule was broken, if one was.
func listen(ctx context.Context, c llm.Client, req *llm.Request, leave int, each func()) heard {
	var h heard
	var col collect.Collector
	over := ""
	before := fmt.Sprintf("%#v", *req)
	broke := func(format string, args ...any) {
		if h.broken == "" {
			h.broken = fmt.Sprintf(format, args...)
		}
	}
	c.Stream(ctx, req)(func(ev llm.Event, err error) bool {
		switch {
		case over != "":
			broke("%#v, %v came after %s", ev, err, over)
			return false
		case err != nil && ev != nil:
			broke("%#v came with an error: %v", ev, err)
		case err == nil && ev == nil:
			broke("neither an event nor an error was yielded")
		}
		if err != nil {
			over, h.err = "the error", err
			if why := badError(ctx, err); why != "" {
				broke("%s", why)
			}
			return true // it must end by itself
		}
		h.events++
		if err := col.Add(ev); err != nil {
			broke("event %d, %#v: %v", h.events, ev, err)
		}
		if _, ok := ev.(llm.Finish); ok {
			over = "Finish"
		}
		each()
		if h.events == leave {
			over = "its reader had left (yield returned false)"
		}
		return over == "" || over == "Finish"
	})
	if fmt.Sprintf("%#v", *req) != before {
		broke("the request was changed")
	}
	if h.err == nil && leave == 0 {
		var err error
		if h.reply, err = col.Reply(); err != nil {
			broke("it ended without an error, and gave no reply: %v", err)
		}
	}
	return h
}

// badError is what is wrong with an error by the rules of llm.Client, "" for nothing.
func badError(ctx context.Context, err error) string {
	if ctx.Err() != nil && (errors.Is(err, context.Cause(ctx)) || errors.Is(err, ctx.Err())) {
		return ""
	}
	e, ok := errors.AsType[*llm.Error](err)
	switch {
	case !ok:
		return fmt.Sprintf("the error is no *llm.Error: %v", err)
	case !known(e.Class):
		return fmt.Sprintf("the error has the class %q, which is none: %v", e.Class, err)
	}
	return ""
}

func known(c llm.Class) bool {
	switch c {
	case llm.ClassUnknown, llm.ClassAuth, llm.ClassPermission, llm.ClassNotFound, llm.ClassInvalidRequest, llm.ClassContextOverflow,
		llm.ClassRateLimit, llm.ClassQuota, llm.ClassOverloaded, llm.ClassServer, llm.ClassTransport, llm.ClassStreamIncomplete,
		llm.ClassStreamIdle, llm.ClassMalformedStream, llm.ClassMalformedToolCall, llm.ClassContentFilter, llm.ClassTimeout, llm.ClassCancelled:
		return true
	}
	return false
}

// hear is listen with a limit on its time; what was broken fails the test.
func hear(ctx context.Context, t *testing.T, c llm.Client, req *llm.Request, leave int, each func()) heard {
	t.Helper()
	done := make(chan heard, 1)
	go func() { done <- listen(ctx, c, req, leave, each) }()
	select {
	case h := <-done:
		if h.broken != "" {
			t.Fatal(h.broken)
		}
		return h
	case <-time.After(inPatience):
		t.Fatalf("the sequence has not ended within %v", inPatience)
	}
	return heard{}
}

func inEvents(t *testing.T, c llm.Client, req *llm.Request) {
	for range 2 { // a client is asked more than once
		hear(t.Context(), t, c, req, 0, func() {})
	}
}

// inLeave leaves at each event, many times: nothing may come later, and nothing may be
// left behind.
func inLeave(t *testing.T, c llm.Client, req *llm.Request) {
	whole := hear(t.Context(), t, c, req, 0, func() {})
	if whole.events == 0 {
		t.Skip("it fails before its first event")
	}
	const times = 40
	began := runtime.NumGoroutine()
	for n := range times {
		hear(t.Context(), t, c, req, 1+n%whole.events, func() {})
	}
	for end := time.Now().Add(patience); runtime.NumGoroutine() >= began+times/2; time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("readers left %d times, and %d goroutines more are there than before: leaving a sequence must release what it holds",
				times, runtime.NumGoroutine()-began)
		}
	}
}

func inEnded(t *testing.T, c llm.Client, req *llm.Request) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errors.New("enough"))
	if h := hear(ctx, t, c, req, 0, func() {}); h.err == nil {
		t.Errorf("the context had ended before Stream was called, and a whole reply came: %+v", h.reply.Message)
	}
}

func inCancel(t *testing.T, c llm.Client, req *llm.Request) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	h := hear(ctx, t, c, req, 0, func() { cancel(errors.New("enough")) })
	if h.events > 0 && h.err != nil && !errors.Is(h.err, context.Cause(ctx)) && !errors.Is(h.err, ctx.Err()) && llm.ClassOf(h.err) != llm.ClassCancelled {
		t.Errorf("the context ended, and the error is of class %s: %v; want the context's own or class cancelled", llm.ClassOf(h.err), h.err)
	}
}

func inAtOnce(t *testing.T, c llm.Client, req *llm.Request) {
	var wg sync.WaitGroup
	heards := make([]heard, 8)
	for n := range heards {
		wg.Go(func() { heards[n] = listen(t.Context(), c, req, 0, func() {}) })
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(inPatience):
		t.Fatalf("of %d sequences at once some have not ended within %v", len(heards), inPatience)
	}
	for n, h := range heards {
		if h.broken != "" {
			t.Errorf("sequence %d of %d at once: %s", n, len(heards), h.broken)
		}
		if (h.err == nil) != (heards[0].err == nil) {
			t.Errorf("sequence %d of %d at once ends with %v, and the first with %v", n, len(heards), h.err, heards[0].err)
		}
	}
}
