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
	"github.com/fiducial-dev/fiducial/tool"
)

// E-24, E-25, E-58: prompt submit.
func TestE58_PromptSubmit(t *testing.T) {
	model := llmtest.NewScript(llmtest.Say("x"))
	var order []string
	first := &hooks{prompt: func(inv fiducial.Invocation, m *llm.Message) (fiducial.PromptAnswer, error) {
		order = append(order, "first "+string(inv.Phase))
		*m = llm.UserText(m.Text() + "!")
		return fiducial.ContinueWith{Messages: []llm.Message{llm.UserText("attached")}}, nil
	}}
	second := &hooks{prompt: func(_ fiducial.Invocation, m *llm.Message) (fiducial.PromptAnswer, error) {
		order = append(order, "second saw "+m.Text())
		return fiducial.Continue{}, nil
	}}
	l, out, err := fiducial.New(model, fiducial.WithInterceptor(first, second)).Run(t.Context(), llm.UserText("a"), llm.UserText("b"))
	wantReason(t, out, err, fiducial.Finished)
	wantTexts(t, l.History(), "user: a!", "user: attached", "user: b!", "user: attached", "assistant: x")
	equal(t, "order", order, []string{"first prompt submit", "second saw a!", "first prompt submit", "second saw b!"})
}

// E-25: a refused prompt changes nothing, not even a run that is paused.
func TestE25_RefusedPrompt(t *testing.T) {
	p := &probe{}
	h := &hooks{
		prompt: func(_ fiducial.Invocation, m *llm.Message) (fiducial.PromptAnswer, error) {
			if m.Text() == "bad" {
				return fiducial.Abort{Reason: "no such words"}, nil
			}
			return nil, nil
		},
	}
	asked := 0
	h.pre = func(fiducial.Invocation, *llm.Call) (fiducial.ToolAnswer, error) {
		if asked++; asked == 1 {
			return fiducial.Pause{}, nil
		}
		return nil, nil
	}
	model := llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x"))
	l, out, err := fiducial.New(model, fiducial.WithTools(p.tool("look")), fiducial.WithInterceptor(h)).Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.Paused)
	out, err = l.Run(t.Context(), llm.UserText("fine"), llm.UserText("bad"))
	wantReason(t, out, err, fiducial.Failed)
	wantErr(t, err, fiducial.ErrAborted)
	if !strings.Contains(err.Error(), "no such words") {
		t.Errorf("the reason is lost: %v", err)
	}
	equal(t, "turns of the refused run", out.Turns, 0)
	wantTexts(t, l.History(), "user: go", "assistant: look()")
	out, err = l.Resume(t.Context())
	wantReason(t, out, err, fiducial.Finished)
	equal(t, "turns", out.Turns, 2)
	equal(t, "runs", p.count(), 1)
}

// E-34, E-35, E-59: pending history is durable before the request is made, in
// every turn.
func TestE59_PendingHistory(t *testing.T) {
	p := &probe{}
	n := 0
	h := &hooks{pending: func(fiducial.Invocation) ([]llm.Message, error) {
		n++
		return []llm.Message{llm.UserText(fmt.Sprint("fact ", n))}, nil
	}}
	model := llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x"))
	l, _ := mustRun(t, fiducial.New(model, fiducial.WithTools(p.tool("look")), fiducial.WithInterceptor(h)), "go")
	wantTexts(t, l.History(), "user: go", "user: fact 1", "assistant: look()", "tool: success=ok", "user: fact 2", "assistant: x")
	wantTexts(t, model.Requests()[0].Messages, "user: go", "user: fact 1")
}

// E-61, E-62, E-63: what pre-request can answer.
func TestE61_PreRequest(t *testing.T) {
	add := []llm.Message{llm.UserText("added")}
	for name, c := range map[string]struct {
		answer  fiducial.RequestAnswer
		reason  fiducial.Reason
		history []string
		after   []string // after Resume
	}{
		"continue with": {fiducial.ContinueWith{Messages: add}, fiducial.Finished, []string{"user: go", "user: added", "assistant: x"}, nil},
		"yield":         {fiducial.Yield{Reason: "why"}, fiducial.Yielded, []string{"user: go"}, []string{"user: go", "assistant: x"}},
		"yield with":    {fiducial.Yield{Reason: "why", Messages: add}, fiducial.Yielded, []string{"user: go", "user: added"}, []string{"user: go", "user: added", "assistant: x"}},
		"pause":         {fiducial.Pause{Reason: "why"}, fiducial.Paused, []string{"user: go"}, []string{"user: go", "assistant: x"}},
		"abort":         {fiducial.Abort{Reason: "why"}, fiducial.Failed, []string{"user: go"}, []string{"user: go", "assistant: x"}},
	} {
		t.Run(name, func(t *testing.T) {
			j := journal.NewMemory()
			model := llmtest.NewScript(llmtest.Say("x"))
			h := &hooks{request: func(fiducial.Invocation, *llm.Request) (fiducial.RequestAnswer, error) { return c.answer, nil }}
			later := &hooks{request: func(fiducial.Invocation, *llm.Request) (fiducial.RequestAnswer, error) {
				if name != "continue with" {
					t.Error("a later hook was asked")
				}
				return nil, nil
			}}
			l, out, err := fiducial.New(model, fiducial.WithInterceptor(h, later), fiducial.WithJournal(j, "r")).Run(t.Context(), llm.UserText("go"))
			wantReason(t, out, err, c.reason)
			if c.reason == fiducial.Paused || c.reason == fiducial.Yielded {
				equal(t, "detail", out.Detail, "why")
			}
			wantTexts(t, l.History(), c.history...)
			if c.after == nil {
				wantTexts(t, model.Requests()[0].Messages, "user: go", "user: added")
				return
			}
			equal(t, "requests", len(model.Requests()), 0)
			if err := l.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			l = mustLock(t, fiducial.New(model, fiducial.WithJournal(j, "r"))) // another process
			out, err = l.Resume(t.Context())
			wantReason(t, out, err, fiducial.Finished)
			wantTexts(t, l.History(), c.after...)
		})
	}
}

// E-64 to E-71: what pre-tool can answer, in model order, before anything starts.
func TestE64_PreTool(t *testing.T) {
	p := &probe{}
	var order []string
	h := &hooks{
		pre: func(inv fiducial.Invocation, call *llm.Call) (fiducial.ToolAnswer, error) {
			order = append(order, fmt.Sprint("pre ", inv.Ordinal, " ", inv.CallID == call.ID))
			switch inv.Ordinal {
			case 1:
				return fiducial.Skip{Reason: "not today"}, nil
			case 2:
				return fiducial.Synthetic{Result: llm.Result{Summary: "made up"}}, nil
			case 3:
				call.Name, call.Args = "add", `{"a":20,"b":22}`
			}
			return fiducial.Continue{}, nil
		},
		post: func(inv fiducial.Invocation, call llm.Call, res llm.Result) (fiducial.PostAnswer, error) {
			order = append(order, fmt.Sprint("post ", inv.Ordinal, " ", call.Name, " ", res.Status))
			return nil, nil
		},
	}
	p.do = func(_ context.Context, call tool.Call) (tool.Output, error) {
		order = append(order, fmt.Sprint("run ", call.Ordinal))
		return tool.Output{Summary: "ok"}, nil
	}
	model := llmtest.NewScript(llmtest.Call("look", "", "look", "", "look", "", "look", "", "nowhere", "{}", "look", "[]"), llmtest.Say("x"))
	l, _ := mustRun(t, fiducial.New(model, fiducial.WithTools(p.tool("look"), sumTool()), fiducial.WithInterceptor(h), fiducial.WithSequentialCalls()), "go")
	got := texts(l.History())[2]
	for _, want := range []string{
		"tool: success=ok error=the call was skipped: not today success=made up success=42 error=there is no tool", "error=the arguments of look",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("results: %s\nwant %s", got, want)
		}
	}
	equal(t, "order", order, []string{
		"pre 0 true", "run 0", "post 0 look success", "pre 1 true", "post 1 look error", "pre 2 true", "post 2 look success",
		"pre 3 true", "post 3 add success", "post 5 look error",
	})
	if res, _ := l.History()[2].Parts[3].(llm.Result); res.Name != "look" {
		t.Errorf("the result answers %s", res.Name)
	}
}

// E-70: all hooks of calls that start together are asked before the first starts.
func TestE70_AllHooksBeforeTheFirstStart(t *testing.T) {
	p := &probe{}
	h := &hooks{pre: func(fiducial.Invocation, *llm.Call) (fiducial.ToolAnswer, error) {
		if p.count() > 0 {
			t.Error("a call ran before all hooks were asked")
		}
		return nil, nil
	}}
	mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Call("look", "", "look", "", "look", ""), llmtest.Say("x")),
		fiducial.WithTools(p.tool("look")), fiducial.WithInterceptor(h)), "go")
	equal(t, "runs", p.count(), 3)
}

// E-65, E-67, E-76: contract violations and failures of a hook are never continue.
// A pointer to an answer is none.
func TestE76_HookFailures(t *testing.T) {
	boom := errors.New(strings.Repeat("ä", 2000))
	policy := &fiducial.HookError{Category: fiducial.HookPolicy, Err: boom}
	for name, c := range map[string]struct {
		h        *hooks
		category fiducial.HookCategory
	}{
		"id changed": {&hooks{pre: func(_ fiducial.Invocation, c *llm.Call) (fiducial.ToolAnswer, error) { c.ID = "x"; return nil, nil }}, fiducial.HookContract},
		"other id": {&hooks{pre: func(fiducial.Invocation, *llm.Call) (fiducial.ToolAnswer, error) {
			return fiducial.Synthetic{Result: llm.Result{CallID: "other"}}, nil
		}}, fiducial.HookContract},
		"broken arguments": {&hooks{pre: func(_ fiducial.Invocation, c *llm.Call) (fiducial.ToolAnswer, error) { c.Args = "{"; return nil, nil }}, fiducial.HookContract},
		"pointer":          {&hooks{pre: func(fiducial.Invocation, *llm.Call) (fiducial.ToolAnswer, error) { return &fiducial.Abort{}, nil }}, fiducial.HookContract},
		"pointer prompt":   {&hooks{prompt: func(fiducial.Invocation, *llm.Message) (fiducial.PromptAnswer, error) { return &fiducial.Abort{}, nil }}, fiducial.HookContract},
		"pointer request":  {&hooks{request: func(fiducial.Invocation, *llm.Request) (fiducial.RequestAnswer, error) { return &fiducial.Pause{}, nil }}, fiducial.HookContract},
		"pointer after":    {&hooks{after: func(fiducial.Invocation, llm.Message) (fiducial.ResponseAnswer, error) { return &fiducial.Pause{}, nil }}, fiducial.HookContract},
		"assistant message": {&hooks{after: func(fiducial.Invocation, llm.Message) (fiducial.ResponseAnswer, error) {
			return fiducial.ContinueWith{Messages: []llm.Message{llm.AssistantText("me")}}, nil
		}}, fiducial.HookContract},
		"results as history": {&hooks{pending: func(fiducial.Invocation) ([]llm.Message, error) {
			return []llm.Message{llm.ToolResults(llm.Result{})}, nil
		}}, fiducial.HookContract},
		"nil part": {&hooks{request: func(fiducial.Invocation, *llm.Request) (fiducial.RequestAnswer, error) {
			return fiducial.ContinueWith{Messages: []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{nil}}}}, nil
		}}, fiducial.HookContract},
		"prompt fails":  {&hooks{prompt: func(fiducial.Invocation, *llm.Message) (fiducial.PromptAnswer, error) { return nil, policy }}, fiducial.HookPolicy},
		"pending fails": {&hooks{pending: func(fiducial.Invocation) ([]llm.Message, error) { return nil, boom }}, fiducial.HookInternal},
		"request fails": {&hooks{request: func(fiducial.Invocation, *llm.Request) (fiducial.RequestAnswer, error) { return nil, policy }}, fiducial.HookPolicy},
		"after fails":   {&hooks{after: func(fiducial.Invocation, llm.Message) (fiducial.ResponseAnswer, error) { return nil, boom }}, fiducial.HookInternal},
		"pre fails":     {&hooks{pre: func(fiducial.Invocation, *llm.Call) (fiducial.ToolAnswer, error) { return fiducial.Continue{}, policy }}, fiducial.HookPolicy},
		"pre panics":    {&hooks{pre: func(fiducial.Invocation, *llm.Call) (fiducial.ToolAnswer, error) { panic(boom) }}, fiducial.HookInternal},
		"after panics":  {&hooks{after: func(fiducial.Invocation, llm.Message) (fiducial.ResponseAnswer, error) { panic("x") }}, fiducial.HookInternal},
		"prompt panics": {&hooks{prompt: func(fiducial.Invocation, *llm.Message) (fiducial.PromptAnswer, error) { panic("x") }}, fiducial.HookInternal},
	} {
		t.Run(name, func(t *testing.T) {
			p := &probe{}
			ev := &events{}
			l, out, err := fiducial.New(llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x")), fiducial.WithTools(p.tool("look")),
				fiducial.WithInterceptor(c.h), fiducial.WithEvents(ev)).Run(t.Context(), llm.UserText("go"))
			wantReason(t, out, err, fiducial.Failed)
			wantErr(t, err, fiducial.ErrInterceptor)
			h, ok := errors.AsType[*fiducial.HookError](err)
			got := fiducial.HookInternal
			if ok {
				got = h.Category
			}
			equal(t, "category", got, c.category)
			if n := len(err.Error()); n > 1024+100 {
				t.Errorf("the diagnostic has %d bytes", n)
			}
			equal(t, "runs", p.count(), 0)
			equal(t, "ends", count[fiducial.RunFinished](ev), 1)
			if out, err := l.Run(t.Context()); errors.Is(err, fiducial.ErrState) { // it can be used on
				t.Errorf("then: %v %v", out, err)
			}
		})
	}
}

// A failed or refused review of a reply is made again before its calls run (E-43,
// E-76), also in another process.
func TestReviewIsMadeAgain(t *testing.T) {
	for _, answer := range []fiducial.ResponseAnswer{nil, fiducial.Abort{Reason: "no"}} {
		p, j := &probe{}, journal.NewMemory()
		ok, asked := false, 0
		h := &hooks{after: func(fiducial.Invocation, llm.Message) (fiducial.ResponseAnswer, error) {
			asked++
			switch {
			case ok:
				return nil, nil
			case answer == nil:
				return nil, errors.New("down")
			}
			return answer, nil
		}}
		model := llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x"))
		engine := func() *fiducial.Engine {
			return fiducial.New(model, fiducial.WithTools(p.tool("look")), fiducial.WithInterceptor(h), fiducial.WithJournal(j, "r"))
		}
		l, _, err := engine().Run(t.Context(), llm.UserText("go"))
		if err == nil {
			t.Fatal("no error")
		}
		_, err = l.Resume(t.Context())
		if err == nil || p.count() > 0 {
			t.Fatalf("resume went on: %v", err)
		}
		_ = l.Close(t.Context())
		ok = true
		l = mustLock(t, engine())
		out, err := l.Resume(t.Context())
		wantReason(t, out, err, fiducial.Finished)
		equal(t, "asked", asked, 4) // thrice for the calls, once for the end
		equal(t, "runs", p.count(), 1)
	}
}

// E-44, E-45, E-46, E-74: what after-response can answer.
func TestE45_AfterResponse(t *testing.T) {
	p := &probe{}
	n := 0
	h := &hooks{after: func(_ fiducial.Invocation, m llm.Message) (fiducial.ResponseAnswer, error) {
		if n++; n <= 2 {
			return fiducial.ContinueWith{Messages: []llm.Message{llm.UserText(fmt.Sprint("more ", n))}}, nil
		}
		return nil, nil
	}}
	model := llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x"), llmtest.Say("y"))
	l, out := mustRun(t, fiducial.New(model, fiducial.WithTools(p.tool("look")), fiducial.WithInterceptor(h)), "go")
	equal(t, "answer", out.Text(), "y")
	wantTexts(t, l.History(), "user: go", "assistant: look()", "tool: success=ok", "user: more 1", "assistant: x", "user: more 2", "assistant: y")
}

// A hook that is asked again does not add its messages twice.
func TestReviewMadeAgainAddsOnce(t *testing.T) {
	for _, where := range []string{"after", "pre"} {
		for _, elsewhere := range []bool{false, true} {
			j, p := journal.NewMemory(), &probe{}
			fails := 1
			adds := &hooks{after: func(_ fiducial.Invocation, m llm.Message) (fiducial.ResponseAnswer, error) {
				if m.CountCalls() == 0 {
					return nil, nil
				}
				return fiducial.ContinueWith{Messages: []llm.Message{llm.UserText("once")}}, nil
			}}
			fail := &hooks{}
			down := func() error {
				if fails--; fails >= 0 {
					return errors.New("down")
				}
				return nil
			}
			if where == "after" {
				fail.after = func(fiducial.Invocation, llm.Message) (fiducial.ResponseAnswer, error) { return nil, down() }
			} else {
				fail.pre = func(fiducial.Invocation, *llm.Call) (fiducial.ToolAnswer, error) { return nil, down() }
			}
			model := llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x"))
			engine := func() *fiducial.Engine {
				return fiducial.New(model, fiducial.WithTools(p.tool("look")), fiducial.WithInterceptor(adds, fail), fiducial.WithJournal(j, "r"))
			}
			l, _, err := engine().Run(t.Context(), llm.UserText("go"))
			wantErr(t, err, fiducial.ErrInterceptor)
			if elsewhere {
				_ = l.Close(t.Context())
				l = mustLock(t, engine())
			}
			out, err := l.Resume(t.Context())
			wantReason(t, out, err, fiducial.Finished)
			wantTexts(t, l.History(), "user: go", "assistant: look()", "tool: success=ok", "user: once", "assistant: x")
		}
	}
}

// What after-response wants added outlives the process.
func TestAfterResponseMessagesAreDurable(t *testing.T) {
	p, j := &probe{}, journal.NewMemory()
	h := &hooks{
		after: func(_ fiducial.Invocation, m llm.Message) (fiducial.ResponseAnswer, error) {
			if m.CountCalls() == 0 {
				return nil, nil
			}
			return fiducial.ContinueWith{Messages: []llm.Message{llm.UserText("remember")}}, nil
		},
		pre: func(fiducial.Invocation, *llm.Call) (fiducial.ToolAnswer, error) { return fiducial.Pause{}, nil },
	}
	model := llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x"))
	l, out, err := fiducial.New(model, fiducial.WithTools(p.tool("look")), fiducial.WithInterceptor(h), fiducial.WithJournal(j, "r")).Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.Paused)
	_ = l.Close(t.Context())
	for range 2 { // the second time it is there already
		l = mustLock(t, fiducial.New(model, fiducial.WithTools(p.tool("look")), fiducial.WithJournal(j, "r")))
		out, err = l.Resume(t.Context())
		wantReason(t, out, err, fiducial.Finished)
		wantTexts(t, l.History(), "user: go", "assistant: look()", "tool: success=ok", "user: remember", "assistant: x")
		_ = l.Close(t.Context())
	}
}

// E-46, E-56, E-69, E-75: a pause from any hook is durable: another engine over the
// same journal goes on. No call runs twice.
func TestE46_PauseFromEveryHook(t *testing.T) {
	pause := fiducial.Pause{Reason: "ask a person"}
	for name, c := range map[string]struct {
		h    hooks
		runs int // before the pause
	}{
		"pre-request":    {hooks{request: func(fiducial.Invocation, *llm.Request) (fiducial.RequestAnswer, error) { return pause, nil }}, 0},
		"after-response": {hooks{after: func(fiducial.Invocation, llm.Message) (fiducial.ResponseAnswer, error) { return pause, nil }}, 0},
		"pre-tool": {hooks{pre: func(inv fiducial.Invocation, _ *llm.Call) (fiducial.ToolAnswer, error) {
			if inv.Ordinal == 1 {
				return pause, nil
			}
			return nil, nil
		}}, 0},
		"post-tool": {hooks{post: func(inv fiducial.Invocation, _ llm.Call, _ llm.Result) (fiducial.PostAnswer, error) {
			if inv.Ordinal == 0 {
				return pause, nil
			}
			return nil, nil
		}}, 2},
		"after the answer": {hooks{after: func(_ fiducial.Invocation, m llm.Message) (fiducial.ResponseAnswer, error) {
			if m.CountCalls() == 0 {
				return pause, nil
			}
			return nil, nil
		}}, 2},
	} {
		t.Run(name, func(t *testing.T) {
			j, p := journal.NewMemory(), &probe{}
			model := llmtest.NewScript(llmtest.Call("look", "", "look", ""), llmtest.Say("done"))
			opts := []fiducial.Option{fiducial.WithTools(p.tool("look")), fiducial.WithJournal(j, "r")}
			l, out, err := fiducial.New(model, append(opts, fiducial.WithInterceptor(&c.h))...).Run(t.Context(), llm.UserText("go"))
			wantReason(t, out, err, fiducial.Paused)
			equal(t, "why", out.Detail, "ask a person")
			equal(t, "runs before", p.count(), c.runs)
			_ = l.Close(t.Context())
			l = mustLock(t, fiducial.New(model, opts...))
			out, err = l.Resume(t.Context())
			wantReason(t, out, err, fiducial.Finished)
			equal(t, "answer", out.Text(), "done")
			equal(t, "turns", out.Turns, 2)
			wantTexts(t, l.History(), "user: go", "assistant: look() look()", "tool: success=ok success=ok", "assistant: done")
			equal(t, "runs", p.count(), 2)
			p.once(t)
			equal(t, "requests", len(model.Requests()), 2)
		})
	}
}

// E-72, E-68: an abort after or before a call keeps the results that stand, and
// the history can be used.
func TestE72_AbortsAroundCalls(t *testing.T) {
	for _, where := range []string{"pre", "post"} {
		p := &probe{}
		h := &hooks{}
		if where == "pre" {
			h.pre = func(inv fiducial.Invocation, _ *llm.Call) (fiducial.ToolAnswer, error) {
				if inv.Ordinal == 1 {
					return fiducial.Abort{Reason: "stop"}, nil
				}
				return nil, nil
			}
		} else {
			h.post = func(inv fiducial.Invocation, _ llm.Call, _ llm.Result) (fiducial.PostAnswer, error) {
				return fiducial.Abort{Reason: "stop"}, nil
			}
		}
		var points []int
		model := llmtest.NewScript(llmtest.Call("look", "", "look", ""), llmtest.Say("x"))
		l, out, err := fiducial.New(model, fiducial.WithTools(p.tool("look")), fiducial.WithInterceptor(h),
			fiducial.WithCheckpoint(func(c machine.Checkpoint) error { points = append(points, len(c.History)); return nil })).Run(t.Context(), llm.UserText("go"))
		wantReason(t, out, err, fiducial.Failed)
		wantErr(t, err, fiducial.ErrAborted)
		if where == "pre" {
			equal(t, "runs", p.count(), 0)
			wantTexts(t, l.History(), "user: go", "assistant: look() look()")
		} else {
			equal(t, "runs", p.count(), 2)
			wantTexts(t, l.History(), "user: go", "assistant: look() look()", "tool: success=ok success=ok")
			equal(t, "last checkpoint", points[len(points)-1], 3) // S-87
		}
		out, err = l.Run(t.Context(), llm.UserText("next"))
		wantReason(t, out, err, fiducial.Finished)
		sendable(t, l.History())
		paired(t, model)
	}
}

// E-77: each hook is told where it is asked.
func TestE77_Invocations(t *testing.T) {
	p := &probe{}
	var got []string
	see := func(inv fiducial.Invocation) {
		got = append(got, fmt.Sprintf("%s run=%s op=%d turn=%d n=%d call=%t", inv.Phase, inv.Run, inv.Op, inv.Turn, len(inv.History), inv.CallID != ""))
	}
	h := &hooks{
		prompt: func(inv fiducial.Invocation, _ *llm.Message) (fiducial.PromptAnswer, error) {
			see(inv)
			return nil, nil
		},
		pending: func(inv fiducial.Invocation) ([]llm.Message, error) { see(inv); return nil, nil },
		request: func(inv fiducial.Invocation, _ *llm.Request) (fiducial.RequestAnswer, error) {
			see(inv)
			return nil, nil
		},
		after: func(inv fiducial.Invocation, _ llm.Message) (fiducial.ResponseAnswer, error) {
			see(inv)
			return nil, nil
		},
		pre: func(inv fiducial.Invocation, _ *llm.Call) (fiducial.ToolAnswer, error) { see(inv); return nil, nil },
		post: func(inv fiducial.Invocation, _ llm.Call, _ llm.Result) (fiducial.PostAnswer, error) {
			see(inv)
			return nil, nil
		},
		exit: func(inv fiducial.Invocation, _ fiducial.Outcome, _ error) error { see(inv); return nil },
	}
	mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x")), fiducial.WithTools(p.tool("look")),
		fiducial.WithInterceptor(h), fiducial.WithJournal(journal.NewMemory(), "r")), "go")
	equal(t, "invocations", got, []string{
		"prompt submit run=r op=0 turn=0 n=0 call=false",
		"pending history run=r op=1 turn=0 n=1 call=false",
		"pre request run=r op=1 turn=0 n=1 call=false",
		"after response run=r op=2 turn=1 n=2 call=false",
		"pre tool run=r op=2 turn=1 n=2 call=true",
		"post tool run=r op=2 turn=1 n=3 call=true",
		"pending history run=r op=3 turn=1 n=3 call=false",
		"pre request run=r op=3 turn=1 n=3 call=false",
		"after response run=r op=0 turn=2 n=4 call=false",
		"run exit run=r op=0 turn=2 n=4 call=false",
	})
}

// Notes of hooks are in the journal, and another process is given them.
func TestNotesOfHooks(t *testing.T) {
	j := journal.NewMemory()
	h := &hooks{after: func(inv fiducial.Invocation, _ llm.Message) (fiducial.ResponseAnswer, error) {
		inv.Note("budget", []byte(`{"n":1}`))
		return fiducial.Pause{}, nil
	}}
	l, _, err := fiducial.New(llmtest.NewScript(llmtest.Say("x")), fiducial.WithInterceptor(h), fiducial.WithJournal(j, "r")).Run(t.Context(), llm.UserText("go"))
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close(t.Context())
	l = mustLock(t, fiducial.New(llmtest.NewScript(), fiducial.WithJournal(j, "r")))
	if err := l.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	notes := l.Notes()
	if len(notes) != 1 || notes[0].Kind != "budget" || string(notes[0].Data) != `{"n":1}` {
		t.Errorf("notes: %v", notes)
	}
}

// A model that uses an id again makes another call: hooks are given a key of its own for
// each, which is that of the tool, and the operation is that of the batch in PostTool, too.
func TestKeyOfACallInHooks(t *testing.T) {
	var pre, post []string
	h := &hooks{
		pre: func(inv fiducial.Invocation, call *llm.Call) (fiducial.ToolAnswer, error) {
			pre = append(pre, call.ID+" "+inv.Key())
			return nil, nil
		},
		post: func(inv fiducial.Invocation, call llm.Call, _ llm.Result) (fiducial.PostAnswer, error) {
			post = append(post, call.ID+" "+inv.Key())
			return nil, nil
		},
		after: func(inv fiducial.Invocation, _ llm.Message) (fiducial.ResponseAnswer, error) {
			equal(t, "key outside a call", inv.Key(), "")
			return nil, nil
		},
	}
	p := &probe{}
	call := llmtest.Reply(llm.AssistantCalls(llm.Call{ID: "call_0", Name: "look"}))
	mustRun(t, fiducial.New(llmtest.NewScript(call, call, llmtest.Say("x")), fiducial.WithTools(p.tool("look")), fiducial.WithInterceptor(h),
		fiducial.WithJournal(journal.NewMemory(), "r")), "go")
	equal(t, "before", pre, []string{"call_0 r/2/0", "call_0 r/4/0"})
	equal(t, "after", post, pre)
	equal(t, "the tool's", p.runs, []string{"r/2/0", "r/4/0"})
}

// E-66, E-67: what a hook answers with is what a result can be.
func TestAnswersForACall(t *testing.T) {
	run := func(answer fiducial.ToolAnswer) (*fiducial.Locked, error) {
		p := &probe{}
		h := &hooks{pre: func(fiducial.Invocation, *llm.Call) (fiducial.ToolAnswer, error) { return answer, nil }}
		l, _, err := fiducial.New(llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x")), fiducial.WithTools(p.tool("look")),
			fiducial.WithInterceptor(h)).Run(t.Context(), llm.UserText("go"))
		return l, err
	}
	l, err := run(fiducial.Skip{})
	if err != nil {
		t.Fatal(err)
	}
	wantTexts(t, l.History()[2:3], "tool: error=the call was skipped")
	_, err = run(fiducial.Synthetic{Result: llm.Result{Status: "odd"}})
	wantErr(t, err, fiducial.ErrInterceptor)
}

// S-168: when several calls of a batch ask for a pause, the first one counts, and
// Resume goes on from there.
func TestS168_PausesOfOneBatch(t *testing.T) {
	for _, parallel := range []int{1, 3} {
		p := &probe{}
		n := 0
		h := &hooks{post: func(inv fiducial.Invocation, _ llm.Call, _ llm.Result) (fiducial.PostAnswer, error) {
			n++
			return fiducial.Pause{Reason: fmt.Sprintf("look %d", n)}, nil
		}}
		var calls []llm.Call
		for _, id := range []string{"a", "b", "c"} {
			calls = append(calls, llm.Call{ID: id, Name: "look", Args: "{}"})
		}
		model := llmtest.NewScript(llmtest.Reply(llm.AssistantCalls(calls...)), llmtest.Say("x"))
		l, out, err := fiducial.New(model, fiducial.WithTools(p.tool("look")), fiducial.WithInterceptor(h), fiducial.WithParallel(parallel),
			fiducial.WithJournal(journal.NewMemory(), "r")).Run(t.Context(), llm.UserText("go"))
		wantReason(t, out, err, fiducial.Paused)
		equal(t, "reason", out.Detail, "look 1")
		for out.Reason == fiducial.Paused {
			out, err = l.Resume(t.Context())
			if err != nil {
				t.Fatal(err)
			}
		}
		wantReason(t, out, err, fiducial.Finished)
		equal(t, "hooks asked", n, 3)
		p.once(t)
	}
}
