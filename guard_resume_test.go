// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
)

// pauseEach pauses the run before each request but the first of a process, so that
// every round is another process's.
type pauseEach struct {
	fiducial.NopInterceptor
	asked int
}

func (p *pauseEach) PreRequest(context.Context, fiducial.Invocation, *llm.Request) (fiducial.RequestAnswer, error) {
	if p.asked++; p.asked > 1 {
		return fiducial.Pause{Reason: "next process"}, nil
	}
	return fiducial.Continue{}, nil
}

// The loop guard counts across processes: with each round in a process of its own it
// tells the model and ends the run as it would in one.
func TestLoopGuardAcrossProcesses(t *testing.T) {
	t.Parallel()
	j := journal.NewMemory()
	p := &probe{}
	model := llmtest.NewScript(
		llmtest.Call("look", ""), llmtest.Call("look", "{}"), llmtest.Call("look", ""), llmtest.Call("look", ""),
		llmtest.Call("look", ""), llmtest.Say("done"))
	process := func() (*fiducial.Locked, fiducial.Outcome) {
		l := mustLock(t, fiducial.New(model, fiducial.WithTools(p.tool("look")), fiducial.WithJournal(j, "r"), fiducial.WithInterceptor(&pauseEach{})))
		var out fiducial.Outcome
		var err error
		if len(model.Requests()) == 0 {
			out, err = l.Run(t.Context(), llm.UserText("go"))
		} else {
			out, err = l.Resume(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		return l, out
	}
	for range 3 {
		_, out := process()
		equal(t, "reason", out.Reason, fiducial.Paused)
	}
	l, out := process() // the fourth batch, after the model was told
	equal(t, "limit", out.Limit, fiducial.LimitLoop)
	equal(t, "runs", p.count(), 4)
	equal(t, "told", strings.Count(strings.Join(texts(l.History()), "\n"), "the same calls 3 times in a row"), 1)

	// Who resumes all the same is let go on, here as in the process that stopped it.
	_, out = process()
	equal(t, "reason", out.Reason, fiducial.Paused)
	_, out = process()
	equal(t, "reason", out.Reason, fiducial.Finished)
	paired(t, model)
}

// What was told by a process that died before the request is not told again.
func TestLoopGuardTellsOnceAcrossProcesses(t *testing.T) {
	t.Parallel()
	j := journal.NewMemory()
	p := &probe{}
	look := llmtest.Call("look", "")
	engine := func(model llm.Client, stop bool) *fiducial.Locked {
		h := &hooks{request: func(inv fiducial.Invocation, _ *llm.Request) (fiducial.RequestAnswer, error) {
			if stop && inv.Turn == 2 {
				return fiducial.Pause{}, nil // the note is history by now
			}
			return nil, nil
		}}
		return mustLock(t, fiducial.New(model, fiducial.WithTools(p.tool("look")), fiducial.WithJournal(j, "r"), fiducial.WithInterceptor(h), fiducial.WithLoopGuard(2)))
	}
	first := engine(llmtest.NewScript(look, look), true)
	out, err := first.Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.Paused)
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	second := engine(llmtest.NewScript(look), false)
	out, err = second.Resume(t.Context())
	wantReason(t, out, err, fiducial.LimitReached)
	equal(t, "told", strings.Count(strings.Join(texts(second.History()), "\n"), "the same calls 2 times in a row"), 1)

	// A run of its own begins its own count.
	third := mustLock(t, fiducial.New(llmtest.NewScript(look, llmtest.Say("x"), look, llmtest.Say("y")),
		fiducial.WithTools(p.tool("look")), fiducial.WithLoopGuard(2)))
	for range 2 {
		out, err = third.Run(t.Context(), llm.UserText("go"))
		wantReason(t, out, err, fiducial.Finished)
	}
	equal(t, "told", strings.Count(strings.Join(texts(third.History()), "\n"), "in a row"), 0)
}

// The run before does not count, in the process that takes this one up either.
func TestLoopGuardOfOneRunAcrossProcesses(t *testing.T) {
	t.Parallel()
	j := journal.NewMemory()
	p := &probe{}
	look := llmtest.Call("look", "")
	model := llmtest.NewScript(look, llmtest.Say("x"), look, llmtest.Say("y"))
	pause := true
	h := &hooks{request: func(fiducial.Invocation, *llm.Request) (fiducial.RequestAnswer, error) {
		if pause && len(model.Requests()) == 3 {
			return fiducial.Pause{}, nil
		}
		return nil, nil
	}}
	process := func() *fiducial.Locked {
		return mustLock(t, fiducial.New(model, fiducial.WithTools(p.tool("look")), fiducial.WithJournal(j, "r"), fiducial.WithInterceptor(h), fiducial.WithLoopGuard(2)))
	}
	l := process()
	for _, want := range []fiducial.Reason{fiducial.Finished, fiducial.Paused} {
		out, err := l.Run(t.Context(), llm.UserText("go"))
		wantReason(t, out, err, want)
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	pause = false
	l = process()
	out, err := l.Resume(t.Context())
	wantReason(t, out, err, fiducial.Finished)
	equal(t, "told", strings.Count(strings.Join(texts(l.History()), "\n"), "in a row"), 0)
}
