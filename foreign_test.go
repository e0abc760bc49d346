// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/machine"
)

// returns fails when f does not come back, for whoever waits for a lock would wait
// until the test binary is killed.
func returns(t *testing.T, what string, f func()) {
	t.Helper()
	done := make(chan any, 1)
	go func() {
		defer func() { done <- recover() }()
		f()
	}()
	select {
	case p := <-done:
		if p != nil {
			t.Errorf("%s: panic: %v", what, p)
		}
	case <-time.After(10 * time.Second):
		t.Fatalf("%s: it does not return", what)
	}
}

type brokenError struct{ text *string }

func (e *brokenError) Error() string { return *e.text }

type endless struct{}

func (e endless) Error() string { return "endless: " + e.Unwrap().Error() }
func (e endless) Unwrap() error { return e }

// Errors that cannot be asked for their text, or looked into, are errors all the same,
// wherever they come from.
func TestErrorsWithoutText(t *testing.T) {
	broken := map[string]error{
		"a nil pointer":            (*brokenError)(nil),
		"a pointer to nothing":     &brokenError{},
		"a nil error of a client":  (*llm.Error)(nil),
		"a nil error of a hook":    (*fiducial.HookError)(nil),
		"a nil error of ours":      (*fiducial.Error)(nil),
		"a nil error of a journal": (*journal.Error)(nil),
		"one around a nil pointer": &llm.Error{Class: llm.ClassServer, Err: (*brokenError)(nil)},
		"one around a nil client":  fmt.Errorf("x: %w", (*llm.Error)(nil)),
		"some, one of them nil":    errors.Join(errors.New("a"), (*fiducial.Error)(nil)),
		"one around itself":        endless{},
	}
	for name, bad := range broken {
		for where, c := range map[string]struct {
			turn llmtest.Turn
			opts []fiducial.Option
			none bool // the run does not fail
		}{
			"the client":     {turn: llmtest.Fail(bad)},
			"PromptSubmit":   {opts: []fiducial.Option{with(&hooks{prompt: func(fiducial.Invocation, *llm.Message) (fiducial.PromptAnswer, error) { return nil, bad }})}},
			"PreTool":        {turn: llmtest.Call("look", ""), opts: []fiducial.Option{with(&hooks{pre: func(fiducial.Invocation, *llm.Call) (fiducial.ToolAnswer, error) { return nil, bad }})}},
			"PostTool":       {turn: llmtest.Call("look", ""), opts: []fiducial.Option{with(&hooks{post: func(fiducial.Invocation, llm.Call, llm.Result) (fiducial.PostAnswer, error) { return nil, bad }})}},
			"RunExit":        {opts: []fiducial.Option{with(&hooks{exit: func(fiducial.Invocation, fiducial.Outcome, error) error { return bad }})}, none: true},
			"the observer":   {opts: []fiducial.Option{fiducial.WithObserver(func(llm.Message) error { return bad })}},
			"the notice":     {opts: []fiducial.Option{fiducial.WithNotice(func(context.Context, []llm.Message) (string, error) { return "", bad })}},
			"the checkpoint": {opts: []fiducial.Option{fiducial.WithCheckpoint(func(machine.Checkpoint) error { return bad })}},
			"the journal":    {opts: []fiducial.Option{fiducial.WithJournal(&flaky{Journal: journal.NewMemory(), failAt: 1, forever: true, failWith: bad}, "r")}},
		} {
			if where == "the journal" && name == "one around itself" {
				continue // the journal of this test looks into it itself
			}
			if c.turn == nil {
				c.turn = llmtest.Say("x")
			}
			returns(t, where+": "+name, func() {
				p := &probe{}
				opts := append(c.opts, fiducial.WithTools(p.tool("look")), fiducial.WithRetry(fiducial.RetryPolicy{Attempts: 1}))
				l, out, err := fiducial.New(llmtest.NewScript(c.turn, llmtest.Say("x")), opts...).Run(t.Context(), llm.UserText("go"))
				if c.none {
					err = l.ObserverError()
				} else if out.Reason != fiducial.Failed {
					t.Errorf("%s: %s: %s", where, name, out.Reason)
				}
				e, ok := errors.AsType[*fiducial.Error](err)
				if !ok || e == nil || e.Error() == "" || e.Advice() == "" {
					t.Errorf("%s: %s: %v", where, name, err)
				}
			})
		}
	}
}

// What can be said of an error that has no text is said, and what it wraps is found.
func TestAnErrorWithoutTextSaysWhatItIs(t *testing.T) {
	run := func(bad error) error {
		_, _, err := fiducial.New(llmtest.NewScript(llmtest.Fail(bad)), fiducial.WithRetry(fiducial.RetryPolicy{Attempts: 1})).Run(t.Context(), llm.UserText("go"))
		return err
	}
	err := run((*brokenError)(nil))
	if !strings.Contains(err.Error(), "a nil *fiducial_test.brokenError in an error") {
		t.Error(err)
	}
	one := &brokenError{}
	err = run(fmt.Errorf("x: %w", &llm.Error{Class: llm.ClassContextOverflow, Err: one}))
	wantErr(t, err, fiducial.ErrContextWindow)
	wantErr(t, err, one)
	if !strings.Contains(run(one).Error(), "an error of type *fiducial_test.brokenError whose text panics") {
		t.Error(run(one))
	}
}

// A cause of the caller's context is the caller's, too.
func TestACauseWithoutText(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel((*brokenError)(nil))
	_, out, err := fiducial.New(llmtest.NewScript(llmtest.Say("x"))).Run(ctx, llm.UserText("go"))
	wantReason(t, out, err, fiducial.Cancelled)
	if err.Error() == "" {
		t.Error("no text")
	}
}

// Waits of any size, and a Jitter that does what it likes (E-144).
func TestRetryPolicyOfAnySize(t *testing.T) {
	const most = time.Duration(math.MaxInt64)
	for name, p := range map[string]fiducial.RetryPolicy{
		"the largest": {Base: most, Cap: most, Total: most},
		"negative":    {Jitter: func(time.Duration) time.Duration { return math.MinInt64 }},
		"too long":    {Base: time.Second, Jitter: func(time.Duration) time.Duration { return most }},
	} {
		synctest.Test(t, func(t *testing.T) {
			if name == "the largest" {
				p.Jitter = nil
			}
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			fail := llmtest.Fail(&llm.Error{Class: llm.ClassServer})
			_, out, err := fiducial.New(llmtest.NewScript(fail, llmtest.Say("x")), fiducial.WithRetry(p)).Run(ctx, llm.UserText("go"))
			if want := fiducial.Finished; name != "the largest" && out.Reason != want {
				t.Errorf("%s: %s, %v", name, out.Reason, err)
			}
		})
	}
	fail := llmtest.Fail(&llm.Error{Class: llm.ClassServer, Message: "busy"})
	_, out, err := fiducial.New(llmtest.NewScript(fail), fiducial.WithRetry(fiducial.RetryPolicy{
		Jitter: func(time.Duration) time.Duration { panic("no dice") },
	})).Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.Failed)
	if s := err.Error(); !strings.Contains(s, "busy") || !strings.Contains(s, "no dice") {
		t.Error(err)
	}
}

type panicMask struct{ armed *bool }

func (p panicMask) Text(s string) string {
	if *p.armed {
		panic("no mask")
	}
	return s
}

func (p panicMask) Found(s string) bool { return p.Text(s) != s }

// A Masker that panics ends what was being done with an error, and nothing unmasked
// becomes history.
func TestAMaskerThatPanics(t *testing.T) {
	armed := false
	m := panicMask{&armed}
	model := llmtest.NewScript(slow(func(context.Context) { armed = true }, llmtest.Say("a")), llmtest.Say("b"))
	e := fiducial.New(model, fiducial.WithMask(m))
	armed = true
	wantErr(t, e.Append(t.Context(), llm.UserText("x")), fiducial.ErrConfig)
	armed = false
	l, out, err := e.Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.Failed)
	wantErr(t, err, fiducial.ErrConfig)
	if !strings.Contains(err.Error(), "no mask") {
		t.Error(err)
	}
	wantErr(t, l.Send(t.Context(), "", llm.UserText("x")), fiducial.ErrConfig)
	wantTexts(t, l.History(), "user: go")
	armed = false
	out, err = l.Resume(t.Context())
	wantReason(t, out, err, fiducial.Finished)
	equal(t, "answer", out.Text(), "b")

	armed = true
	_, err = fiducial.New(model, fiducial.WithMask(m), fiducial.WithJournal(journal.NewMemory(), "r")).Lock()
	wantErr(t, err, fiducial.ErrConfig)
}

// panicJournal panics in the n-th append of all its leases.
type panicJournal struct {
	journal.Journal
	at int
}

type panicLease struct {
	journal.Lease
	j *panicJournal
}

func (j *panicJournal) Acquire(ctx context.Context, run, owner string) (journal.Lease, error) {
	l, err := j.Journal.Acquire(ctx, run, owner)
	return &panicLease{l, j}, err
}

func (l *panicLease) Append(ctx context.Context, m journal.Mark, bodies ...journal.Body) error {
	if l.j.at--; l.j.at == 0 {
		panic("no journal")
	}
	return l.Lease.Append(ctx, m, bodies...)
}

// A journal that panics is one that failed: what it holds is the truth, and no call
// runs twice.
func TestAJournalThatPanics(t *testing.T) {
	for at := 1; at <= 6; at++ {
		j := &panicJournal{journal.NewMemory(), at}
		p := &probe{}
		model := llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x"), llmtest.Say("y"), llmtest.Say("z"))
		l := mustLock(t, fiducial.New(model, fiducial.WithTools(p.tool("look")), fiducial.WithJournal(j, "r")))
		out, err := l.Run(t.Context(), llm.UserText("go"))
		wantReason(t, out, err, fiducial.Failed)
		wantErr(t, err, fiducial.ErrJournal)
		if !strings.Contains(err.Error(), "no journal") {
			t.Error(err)
		}
		out, err = l.Resume(t.Context())
		if errors.Is(err, fiducial.ErrNothing) {
			out, err = l.Run(t.Context(), llm.UserText("go"))
		}
		wantReason(t, out, err, fiducial.Finished)
		p.once(t)
		paired(t, model)
		sendable(t, l.History())
	}
}

// last is the error that a stream ends with.
func last(stream iter.Seq2[fiducial.Event, error]) (last error) {
	for _, err := range stream {
		last = err
	}
	return last
}

// A nil context is refused by every call that takes one.
func TestNoContext(t *testing.T) {
	var none context.Context
	m := llm.UserText("go")
	e := fiducial.New(llmtest.NewScript(llmtest.Say("x")), fiducial.WithJournal(journal.NewMemory(), "r"))
	l := mustLock(t, fiducial.New(llmtest.NewScript(llmtest.Say("x"))))
	for name, f := range map[string]func() error{
		"Engine.Open":    func() error { return e.Open(none) },
		"Append":         func() error { return e.Append(none, m) },
		"ReplaceHistory": func() error { return e.ReplaceHistory(none, []llm.Message{m}) },
		"Truncate":       func() error { return e.Truncate(none, 0) },
		"Engine.Close":   func() error { return e.Close(none) },
		"Engine.Run": func() error {
			_, _, err := fiducial.New(llmtest.NewScript(llmtest.Say("x"))).Run(none, m)
			return err
		},
		"Run":          func() error { return second(l.Run(none, m)) },
		"Resume":       func() error { return second(l.Resume(none)) },
		"Open":         func() error { return l.Open(none) },
		"Checkpoint":   func() error { return l.Checkpoint(none) },
		"Close":        func() error { return l.Close(none) },
		"Send":         func() error { return l.Send(none, "", m) },
		"Stream":       func() error { return last(l.Stream(none, m)) },
		"StreamResume": func() error { return last(l.StreamResume(none)) },
	} {
		returns(t, name, func() {
			if err := f(); !errors.Is(err, fiducial.ErrConfig) {
				t.Errorf("%s: %v", name, err)
			}
		})
	}
	out, err := l.Run(t.Context(), m)
	wantReason(t, out, err, fiducial.Finished)
}

// Outside a run, too, a function of the caller's may read the engine and send to it,
// and is refused what would change it.
func TestCallbacksReadTheEngineOutsideARun(t *testing.T) {
	var e *fiducial.Engine
	var l *fiducial.Locked
	seen := 0
	look := func() {
		seen++
		if l != nil {
			_, _, _, _ = l.History(), l.Estimate(1), l.Notes(), l.TotalTurns()
			_ = l.ObserverError()
			if err := second(l.Resume(context.Background())); !errors.Is(err, fiducial.ErrBusy) {
				t.Errorf("Resume from within: %v", err)
			}
			return
		}
		equal(t, "messages", len(e.History()), 1)
		_, _, _ = e.Estimate(1), e.Notes(), e.TotalTurns()
		if err := e.Append(context.Background(), llm.UserText("y")); !errors.Is(err, fiducial.ErrBusy) {
			t.Errorf("Append from within: %v", err)
		}
	}
	fails := false
	e = fiducial.New(llmtest.NewScript(llmtest.Say("x")), fiducial.WithCheckpoint(func(c machine.Checkpoint) error {
		if fails && len(c.History) == 3 {
			return errors.New("disk")
		}
		look()
		return nil
	}), fiducial.WithEvents(fiducial.EventFunc(func(ev fiducial.Event) {
		if _, ok := ev.Data.(fiducial.GenerationCommitted); ok {
			look()
		}
	})))
	returns(t, "Append", func() {
		if err := e.Append(context.Background(), llm.UserText("x")); err != nil {
			t.Error(err)
		}
	})
	equal(t, "asked", seen, 1)
	l = mustLock(t, e)
	fails = true
	_, err := l.Run(t.Context(), llm.UserText("go"))
	wantErr(t, err, fiducial.ErrCheckpoint)
	fails, seen = false, 0
	returns(t, "Checkpoint", func() {
		if err := l.Checkpoint(context.Background()); err != nil {
			t.Error(err)
		}
	})
	equal(t, "asked", seen, 2) // for the checkpoint, and for the event
	out, err := l.Resume(t.Context())
	wantReason(t, out, err, fiducial.Finished)
}

// A panic of a checkpoint function or a sink outside a run leaves the engine usable.
func TestAPanicOutsideARun(t *testing.T) {
	n := 0
	e := fiducial.New(llmtest.NewScript(llmtest.Say("x")), fiducial.WithCheckpoint(func(machine.Checkpoint) error {
		if n++; n == 1 {
			panic("here")
		}
		return nil
	}))
	err := e.Append(t.Context(), llm.UserText("x"))
	wantErr(t, err, fiducial.ErrCheckpoint)
	returns(t, "Truncate", func() {
		if err := e.Truncate(context.Background(), 0); err != nil {
			t.Error(err)
		}
	})
}

// The zero values of the stores that come with the engine are stores, or say that they
// are none.
func TestZeroJournals(t *testing.T) {
	var m journal.Memory
	_, out, err := fiducial.New(llmtest.NewScript(llmtest.Say("x")), fiducial.WithJournal(&m, "r")).Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.Finished)
	var f journal.Folder
	_, out, err = fiducial.New(llmtest.NewScript(llmtest.Say("x")), fiducial.WithJournal(&f, "r")).Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.Failed)
	wantErr(t, err, journal.ErrInvalid)
	if !strings.Contains(err.Error(), "OpenFolder") {
		t.Error(err)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
