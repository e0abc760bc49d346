// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/machine"
)

// S-20, S-108, S-110: wherever a run is cancelled, Resume goes on, with and without a
// journal, and no call runs twice.
func TestResumeGoesOnAfterACancel(t *testing.T) {
	points := func(cancel func()) map[string]func(fiducial.EventData) {
		return map[string]func(fiducial.EventData){
			"generation started":   func(d fiducial.EventData) { on[fiducial.GenerationStarted](d, cancel) },
			"delta":                func(d fiducial.EventData) { on[fiducial.Delta](d, cancel) },
			"generation finished":  func(d fiducial.EventData) { on[fiducial.GenerationFinished](d, cancel) },
			"generation committed": func(d fiducial.EventData) { on[fiducial.GenerationCommitted](d, cancel) },
			"tool started":         func(d fiducial.EventData) { on[fiducial.ToolStarted](d, cancel) },
			"tool finished":        func(d fiducial.EventData) { on[fiducial.ToolFinished](d, cancel) },
		}
	}
	for name := range points(nil) {
		for _, durable := range []bool{false, true} {
			t.Run(fmt.Sprint(name, durable), func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				p := &probe{}
				call := llmtest.Call("look", "")
				model := llmtest.NewScript(call, call, llmtest.Say("x"), llmtest.Say("y")) // one of them is given up
				at := points(cancel)[name]
				opts := []fiducial.Option{
					fiducial.WithTools(p.tool("look")),
					fiducial.WithEvents(fiducial.EventFunc(func(ev fiducial.Event) { at(ev.Data) })),
				}
				if durable {
					opts = append(opts, fiducial.WithJournal(journal.NewMemory(), "r"))
				} else if name == "generation committed" {
					return // it does not come
				}
				l := mustLock(t, fiducial.New(model, opts...))
				out, err := l.Run(ctx, llm.UserText("go"))
				wantReason(t, out, err, fiducial.Cancelled)
				sendable(t, l.History())
				out, err = l.Resume(t.Context())
				wantReason(t, out, err, fiducial.Finished)
				p.once(t)
				paired(t, model)
			})
		}
	}
}

func on[T fiducial.EventData](d fiducial.EventData, do func()) {
	if _, ok := d.(T); ok {
		do()
	}
}

// E-190: a context that has ended before. Without a journal the message is history and
// Resume goes on; with one the error says that it is not.
func TestCancelledBeforeLosesNothingSilently(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	l := mustLock(t, fiducial.New(llmtest.NewScript(llmtest.Say("x"))))
	_, err := l.Run(ended, llm.UserText("go"))
	wantErr(t, err, fiducial.ErrCancelled)
	if strings.Contains(err.Error(), "not in the history") {
		t.Error(err)
	}
	out, err := l.Resume(t.Context())
	wantReason(t, out, err, fiducial.Finished)
	wantTexts(t, l.History(), "user: go", "assistant: x")

	l = mustLock(t, fiducial.New(llmtest.NewScript(llmtest.Say("x")), fiducial.WithJournal(journal.NewMemory(), "r")))
	_, err = l.Run(ended, llm.UserText("go"))
	wantErr(t, err, fiducial.ErrCancelled)
	if len(l.History()) > 0 || !strings.Contains(err.Error(), "the message is not in the history; give it to Run again") {
		t.Errorf("%v, %q", err, texts(l.History()))
	}
}

func TestLeavingAStreamCanBeResumed(t *testing.T) {
	p := &probe{}
	l := mustLock(t, fiducial.New(llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x")), fiducial.WithTools(p.tool("look"))))
	for ev := range l.Stream(t.Context(), llm.UserText("go")) {
		if _, ok := ev.Data.(fiducial.ToolStarted); ok {
			break
		}
	}
	out, err := l.Resume(t.Context())
	wantReason(t, out, err, fiducial.Finished)
	p.once(t)
}

func TestAdvice(t *testing.T) {
	j := journal.NewMemory()
	mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Say("x")), fiducial.WithJournal(j, "r")), "go")
	_, out, err := fiducial.New(llmtest.NewScript(), fiducial.WithJournal(j, "r")).Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.Failed)
	wantErr(t, err, journal.ErrHeld)
	for _, c := range []struct {
		err  error
		want fiducial.Advice
	}{
		{err, fiducial.AdviceWait},
		{&fiducial.Error{Kind: fiducial.KindBusy}, fiducial.AdviceWait},
		{&fiducial.Error{Kind: fiducial.KindBusy, Err: machine.ErrBusy}, fiducial.AdviceStop}, // Checkpoint comes first
		{&fiducial.Error{Kind: fiducial.KindCancelled}, fiducial.AdviceRetry},
		{&fiducial.Error{Kind: fiducial.KindGeneration, Err: errors.New("connection reset")}, fiducial.AdviceRetry},
		{&fiducial.Error{Kind: fiducial.KindGeneration, Err: &llm.Error{Class: llm.ClassUnknown}}, fiducial.AdviceStop},
		{&fiducial.Error{Kind: fiducial.KindGeneration, Err: &fiducial.WaitError{Err: &llm.Error{Class: llm.ClassRateLimit}}}, fiducial.AdviceRetry},
	} {
		e, ok := errors.AsType[*fiducial.Error](c.err)
		if !ok || e.Advice() != c.want {
			t.Errorf("%v: %q, want %q", c.err, e.Advice(), c.want)
		}
	}
}
