// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/machine"
	"github.com/fiducial-dev/fiducial/tool"
)

// E-26, E-103: the advertised tools are read at the lock, sorted by name, also those
// of a caller's own executor.
func TestE26_ToolsAreReadOnceAndSorted(t *testing.T) {
	t.Parallel()
	x := executor{specs: []tool.Spec{{Name: "zeta"}, {Name: "alpha"}, {Name: "mid"}}, execute: func(c tool.Call) tool.Result {
		return tool.Result{CallID: c.ID, Name: c.Name, Status: llm.StatusSuccess, Summary: "ok"}
	}}
	model := llmtest.NewScript(llmtest.Call("mid", ""), llmtest.Say("x"))
	l := mustLock(t, fiducial.New(model, fiducial.WithExecutor(x)))
	x.specs[0].Name = "changed behind the engine's back"
	out, err := l.Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.Finished)
	for _, r := range model.Requests() {
		var names []string
		for _, s := range r.Tools {
			names = append(names, s.Name)
		}
		equal(t, "tools", names, []string{"alpha", "mid", "zeta"})
	}
}

// E-28, E-127, E-128: in a reply of which one call had started when its process died
// and one had not, the first is unknown, the second runs, and only then the model is
// asked; results stand in the model's order.
func TestE28_UnknownThenUnstarted(t *testing.T) {
	t.Parallel()
	j := journal.NewMemory()
	if err := j.Create(t.Context(), "r", journal.Header{Rules: machine.RulesVersion}); err != nil {
		t.Fatal(err)
	}
	lease, err := j.Acquire(t.Context(), "r", "the dead")
	if err != nil {
		t.Fatal(err)
	}
	reply := llm.AssistantCalls(llm.Call{ID: "a", Name: "look"}, llm.Call{ID: "b", Name: "edit"}, llm.Call{ID: "c", Name: "look"})
	for _, in := range []machine.Input{
		machine.AppendInput{Message: llm.UserText("go")},
		machine.Start{},
		machine.Generated{Op: 1, Message: reply},
		machine.Started{Op: 2, Calls: []machine.StartedCall{{Ordinal: 1}}},
	} {
		if err := lease.Append(t.Context(), journal.Mark{}, journal.Step{Input: in}); err != nil {
			t.Fatal(err)
		}
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	edit, look := &probe{}, &probe{}
	model := llmtest.NewScript(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
		equal(t, "runs before the model is asked", look.count(), 2)
		return llmtest.Say("x")(ctx, req)
	})
	eng := fiducial.New(model, fiducial.WithTools(edit.tool("edit"), look.tool("look")), fiducial.WithJournal(j, "r"))
	if err := eng.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	l := mustLock(t, eng)
	out, err := l.Resume(t.Context())
	wantReason(t, out, err, fiducial.Finished)
	equal(t, "runs of the call that had started", edit.count(), 0)
	var statuses []llm.Status
	for _, p := range l.History()[2].Parts {
		statuses = append(statuses, p.(llm.Result).Status)
	}
	equal(t, "results", statuses, []llm.Status{llm.StatusSuccess, llm.StatusUnknown, llm.StatusSuccess})
	paired(t, model)
}

// E-29: a cancel is looked at before the limit on turns.
func TestE29_CancelBeforeTheLimit(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	model := llmtest.NewScript()
	_, out, err := fiducial.New(model, fiducial.WithTurnLimit(0)).Run(ctx, llm.UserText("go"))
	wantReason(t, out, err, fiducial.Cancelled)
	_, out, err = fiducial.New(model, fiducial.WithTurnLimit(0)).Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.LimitReached)
}

// E-39, S-45: a complete reply of nothing is a turn, is shown to the hooks and ends the
// run; the conversation can go on.
func TestE39_EmptyReply(t *testing.T) {
	t.Parallel()
	empty := func() llmtest.Turn { return llmtest.Break(nil, llm.Finish{Stop: llm.StopEndTurn}) }
	reviewed := 0
	h := &hooks{after: func(fiducial.Invocation, llm.Message) (fiducial.ResponseAnswer, error) { reviewed++; return nil, nil }}
	l, out := mustRun(t, fiducial.New(llmtest.NewScript(empty(), llmtest.Say("x")), fiducial.WithInterceptor(h)), "go")
	equal(t, "reason", out.Reason, fiducial.Finished)
	equal(t, "answer", out.Text(), "")
	equal(t, "turns and reviews", [2]int{out.Turns, reviewed}, [2]int{1, 1})
	sendable(t, l.History())
	out, err := l.Run(t.Context(), llm.UserText("again"))
	wantReason(t, out, err, fiducial.Finished)
	equal(t, "answer", out.Text(), "x")
}

// E-40 to E-42: only complete replies are turns; requests count all; the total spans
// runs, and can be restored.
func TestE41_Counters(t *testing.T) {
	t.Parallel()
	p := &probe{}
	eng := fiducial.New(llmtest.NewScript(llmtest.Call("look", ""), llmtest.Fail(&llm.Error{Class: llm.ClassServer}), llmtest.Say("x"), llmtest.Say("y")),
		fiducial.WithTools(p.tool("look")), fiducial.WithRetry(fiducial.RetryPolicy{Base: 1}))
	wantErr(t, eng.SetTotalTurns(-1), fiducial.ErrConfig)
	if err := eng.SetTotalTurns(40); err != nil {
		t.Fatal(err)
	}
	l, out := mustRun(t, eng, "go")
	equal(t, "turns, requests, batches", [3]int{out.Turns, out.Requests, out.Batches}, [3]int{2, 3, 1})
	equal(t, "total", l.TotalTurns(), 42)
	out, err := l.Run(t.Context(), llm.UserText("more"))
	wantReason(t, out, err, fiducial.Finished)
	equal(t, "turns, requests, batches", [3]int{out.Turns, out.Requests, out.Batches}, [3]int{1, 1, 0})
	equal(t, "total", l.TotalTurns(), 43)
}

// E-57: an engine without an interceptor does what one does whose hooks all let go on.
func TestE57_NoInterceptorIsContinue(t *testing.T) {
	t.Parallel()
	run := func(opts ...fiducial.Option) (string, []string) {
		p := &probe{}
		model := llmtest.NewScript(llmtest.Call("look", "", "look", "[1]", "none", ""), llmtest.Say("x"))
		l, _ := mustRun(t, fiducial.New(model, append(opts, fiducial.WithTools(p.tool("look")))...), "go")
		return enc(t, model.Requests()), texts(l.History())
	}
	plainRequests, plain := run()
	for name, h := range map[string]fiducial.Interceptor{"nop": fiducial.NopInterceptor{}, "nil answers": &hooks{}} {
		requests, history := run(fiducial.WithInterceptor(h))
		equal(t, name, requests, plainRequests)
		equal(t, name, history, plain)
	}
}

// E-85: settings are no part of the prefix; they change on a locked engine, too, and
// what the client cannot do is refused at once.
func TestE85_SettingsOfALockedEngine(t *testing.T) {
	t.Parallel()
	model := llmtest.NewScript(llmtest.Say("x"), llmtest.Say("y"))
	l, _ := mustRun(t, fiducial.New(model, fiducial.WithSettings(llm.Settings{MaxTokens: 10})), "go")
	if err := l.SetSettings(llm.Settings{MaxTokens: 20}); err != nil {
		t.Fatal(err)
	}
	out, err := l.Run(t.Context(), llm.UserText("more"))
	wantReason(t, out, err, fiducial.Finished)
	for i, r := range model.Requests() {
		equal(t, "limit", r.Settings.MaxTokens, 10*(i+1))
	}
	refused := mustLock(t, fiducial.New(picky{llmtest.NewScript()}))
	wantErr(t, refused.SetSettings(llm.Settings{TopK: new(int)}), fiducial.ErrConfig)
}

// E-120: what is cut is cut before it is history, so that everybody sees the same.
func TestE120_EverybodySeesTheSameCut(t *testing.T) {
	t.Parallel()
	long := tool.Must(tool.New("long", "", func(context.Context, noArgs) (tool.Output, error) {
		return tool.Output{Summary: "s", Content: strings.Repeat("x", 5000)}, nil
	}, tool.WithTraits(tool.Traits{OutputLimit: 300})))
	var seen []string
	h := &hooks{post: func(_ fiducial.Invocation, _ llm.Call, res llm.Result) (fiducial.PostAnswer, error) {
		seen = append(seen, res.Content)
		return nil, nil
	}}
	ev := &events{}
	model := llmtest.NewScript(llmtest.Call("long", ""), llmtest.Say("x"))
	l, _ := mustRun(t, fiducial.New(model, fiducial.WithTools(long), fiducial.WithInterceptor(h), fiducial.WithEvents(ev)), "go")
	for _, e := range ev.all {
		if f, ok := e.Data.(fiducial.ToolFinished); ok {
			seen = append(seen, f.Result.Content)
		}
	}
	seen = append(seen, l.History()[2].Parts[0].(llm.Result).Content, model.Requests()[1].Messages[2].Parts[0].(llm.Result).Content)
	equal(t, "places", len(seen), 4)
	if len(slices.Compact(seen)) != 1 || len(seen[0]) > 300 {
		t.Errorf("not the same, or too long: %d bytes", len(seen[0]))
	}
}

// E-123, E-125: a call is durable as started before it runs, and a result is durable
// before anybody hears of it, each once, in the order of completion.
func TestE123_ResultsAreHeardOfWhenDurable(t *testing.T) {
	t.Parallel()
	j := journal.NewMemory()
	records := func() (started, settled []int) {
		for rec, err := range j.Read(t.Context(), "r", 0) {
			if err != nil {
				t.Error(err)
				return
			}
			step, _ := rec.Body.(journal.Step)
			switch in := step.Input.(type) {
			case machine.Started:
				for _, c := range in.Calls {
					started = append(started, c.Ordinal)
				}
			case machine.Settled:
				settled = append(settled, in.Ordinal)
			default:
			}
		}
		return started, settled
	}
	p := &probe{do: func(_ context.Context, call tool.Call) (tool.Output, error) {
		if started, _ := records(); !slices.Contains(started, call.Ordinal) {
			t.Errorf("call %d runs, and is not recorded as started", call.Ordinal)
		}
		return tool.Output{Summary: "ok"}, nil
	}}
	var heard []int
	sink := fiducial.EventFunc(func(ev fiducial.Event) {
		if f, ok := ev.Data.(fiducial.ToolFinished); ok {
			heard = append(heard, f.Ordinal)
			_, settled := records()
			equal(t, "durable when heard of", settled, heard)
		}
	})
	mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Call("look", "", "look", "", "look", ""), llmtest.Say("x")),
		fiducial.WithTools(p.tool("look")), fiducial.WithJournal(j, "r"), fiducial.WithEvents(sink)), "go")
	slices.Sort(heard)
	equal(t, "heard of", heard, []int{0, 1, 2})
}

// E-170: what events tell of a request's life carries no system prompt, no tool
// definition and no conversation.
func TestE170_LifeCycleEventsCarryNoBodies(t *testing.T) {
	t.Parallel()
	ev := &events{}
	p := &probe{}
	mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Fail(&llm.Error{Class: llm.ClassServer}), llmtest.Say("x")), fiducial.WithSystem("prompt-body"),
		fiducial.WithTools(p.tool("tool-body")), fiducial.WithEvents(ev), fiducial.WithRetry(fiducial.RetryPolicy{Base: 1})), "user-body")
	for _, e := range ev.all {
		if text := fmt.Sprintf("%+v", e.Data); strings.Contains(text, "-body") {
			t.Errorf("%s", text)
		}
	}
}

// E-33, E-169, S-142: who watches hears of a turn's index when its request goes out,
// the same for each attempt; and is told one thing at a time, also of calls that
// overlap.
func TestS142_EventsComeOneAtATime(t *testing.T) {
	t.Parallel()
	var inside atomic.Int32
	var turns [][2]int
	sink := fiducial.EventFunc(func(ev fiducial.Event) {
		if inside.Add(1) != 1 {
			t.Error("the sink is called while it is called")
		}
		time.Sleep(100 * time.Microsecond)
		if g, ok := ev.Data.(fiducial.GenerationStarted); ok {
			turns = append(turns, [2]int{g.Turn, g.Attempt})
		}
		inside.Add(-1)
	})
	p := &probe{}
	four := llmtest.Call("look", "", "look", "", "look", "", "look", "")
	mustRun(t, fiducial.New(llmtest.NewScript(four, llmtest.Fail(&llm.Error{Class: llm.ClassServer}), llmtest.Call("look", ""), llmtest.Say("x")),
		fiducial.WithTools(p.tool("look")), fiducial.WithEvents(sink), fiducial.WithRetry(fiducial.RetryPolicy{Base: 1})), "go")
	equal(t, "turns and attempts", turns, [][2]int{{1, 1}, {2, 1}, {2, 2}, {3, 1}})
}
