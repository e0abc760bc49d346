// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/tool"
)

// sleeper takes as long as its argument says.
type sleepIn struct {
	MS   int    `json:"ms"`
	Name string `json:"name"`
}

func sleeper(log func(string), opts ...tool.Option) tool.Tool {
	return tool.Must(tool.New("sleep", "Sleeps.", func(ctx context.Context, in sleepIn) (string, error) {
		log("start " + in.Name)
		t := time.NewTimer(time.Duration(in.MS) * time.Millisecond)
		defer t.Stop()
		select {
		case <-t.C:
			log("end " + in.Name)
			return in.Name, nil
		case <-ctx.Done():
			return "", &tool.Error{Kind: tool.Cancelled, Message: "stopped " + in.Name, Err: ctx.Err()}
		}
	}, opts...))
}

func sleepCalls(args ...any) llmtest.Turn {
	var calls []string
	for i := 0; i < len(args); i += 2 {
		calls = append(calls, "sleep", fmt.Sprintf(`{"ms":%d,"name":%q}`, args[i], args[i+1]))
	}
	return llmtest.Call(calls...)
}

// S-97, S-99, S-163, E-122: the calls of a round overlap, events come in the order of
// completion, and the results stand in call order.
func TestS97_CallsOverlapAndResultsStandInCallOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		ev := &events{}
		l, _ := mustRun(t, fiducial.New(llmtest.NewScript(sleepCalls(300, "a", 100, "b", 200, "c"), llmtest.Say("ok")),
			fiducial.WithTools(sleeper(func(string) {})), fiducial.WithEvents(ev)), "go")
		equal(t, "time", time.Since(began), 300*time.Millisecond)
		equal(t, "results", texts(l.History())[2], "tool: success=a success=b success=c")
		var order []string
		for _, e := range ev.all {
			if f, ok := e.Data.(fiducial.ToolFinished); ok {
				order = append(order, f.Result.Summary)
			}
		}
		equal(t, "completion", order, []string{"b", "c", "a"})
	})
}

// README, concurrency of calls: an exclusive call waits for those before it and
// runs alone; WithSequentialCalls runs all like that.
func TestExclusiveCallsRunAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log []string
		edit := tool.Must(tool.New("edit", "Edits.", func(context.Context, noArgs) (string, error) {
			log = append(log, "edit")
			return "edited", nil
		}, tool.Exclusive()))
		script := llmtest.Call("sleep", `{"ms":50,"name":"a"}`, "sleep", `{"ms":10,"name":"b"}`, "edit", "", "sleep", `{"ms":1,"name":"c"}`)
		var mu sync.Mutex
		mutexLog := func(s string) {
			mu.Lock()
			defer mu.Unlock()
			log = append(log, s)
		}
		mustRun(t, fiducial.New(llmtest.NewScript(script, llmtest.Say("ok")), fiducial.WithTools(edit, sleeper(func(s string) {
			if strings.HasPrefix(s, "end") {
				mutexLog(s)
			}
		}))), "go")
		equal(t, "order", log, []string{"end b", "end a", "edit", "end c"})
		log = nil
		mustRun(t, fiducial.New(llmtest.NewScript(script, llmtest.Say("ok")), fiducial.WithTools(edit, sleeper(mutexLog)), fiducial.WithSequentialCalls()), "go")
		equal(t, "sequential", log, []string{"start a", "end a", "start b", "end b", "edit", "start c", "end c"})
	})
}

// S-98, E-106, E-107, E-110, S-100: every call has one result, and nothing that
// goes wrong in a tool ends the run.
func TestS98_OneResultForEachCall(t *testing.T) {
	fails := tool.Must(tool.New("fails", "", func(context.Context, noArgs) (string, error) { return "", errors.New("no luck") }))
	panics := tool.Must(tool.New("panics", "", func(context.Context, noArgs) (string, error) { panic("bug") }))
	l, _ := mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Call("fails", "", "panics", "", "nowhere", "{}", "add", `{"a":1,"b":2}`), llmtest.Say("ok")),
		fiducial.WithTools(fails, panics, sumTool())), "go")
	equal(t, "results", texts(l.History())[2],
		`tool: error=no luck error=the tool panicked: bug error=there is no tool "nowhere"; the tools are: ["add" "fails" "panics"] success=3`)
}

// E-126, README "Empty or malformed arguments".
func TestE126_EmptyAndMalformedArguments(t *testing.T) {
	p := &probe{}
	reply := func(stop llm.StopReason, args ...string) llmtest.Turn {
		m := llm.Message{Role: llm.RoleAssistant, Stop: stop}
		for i, a := range args {
			m.Parts = append(m.Parts, llm.Call{ID: fmt.Sprint(i), Name: "look", Args: a})
		}
		return llmtest.Reply(m)
	}
	for _, c := range []struct {
		turn llmtest.Turn
		runs int
		want []string // parts of each result
	}{
		{reply(llm.StopToolUse, "", " \n"), 2, []string{"success", "success"}},
		{reply(llm.StopToolUse, `{"a":`), 0, []string{`error=the arguments of look are not a JSON object: unexpected EOF, in "{\"a\":". The tool was not run. Expected: {"type":"object"`}},
		{reply(llm.StopToolUse, `[1]`, `null`, `7`), 0, []string{"an array was given", "null was given", "a number was given"}},
		{reply(llm.StopToolUse, `{} {}`), 0, []string{"text after the value"}},
		{reply(llm.StopMaxTokens, "{}", ""), 1, []string{"success", "cut off inside this call"}},
		{reply(llm.StopMaxTokens, "", " "), 1, []string{"success", "cut off inside this call"}},
		{reply(llm.StopMaxTokens, "", `{"x`), 1, []string{"success", "cut off inside this call"}},
		{reply(llm.StopMaxTokens, "{}", "{}"), 2, []string{"success", "success"}},
		{reply(llm.StopIncomplete, ""), 0, []string{"cut off inside this call"}},
	} {
		p.runs = nil
		model := llmtest.NewScript(c.turn, llmtest.Say("ok"))
		l, _ := mustRun(t, fiducial.New(model, fiducial.WithTools(p.tool("look"))), "go")
		equal(t, "runs", p.count(), c.runs)
		parts := l.History()[2].Parts
		for i, want := range c.want {
			got := texts([]llm.Message{{Role: "tool", Parts: parts[i : i+1]}})[0]
			if !strings.Contains(got, want) {
				t.Errorf("result %d: %s, want %s", i, got, want)
			}
		}
	}
}

// S-106: cancelled between the reply and the dispatch.
func TestS106_CancelledBeforeDispatch(t *testing.T) {
	p, ev := &probe{}, &events{}
	ctx, cancel := context.WithCancel(t.Context())
	h := &hooks{after: func(fiducial.Invocation, llm.Message) (fiducial.ResponseAnswer, error) { cancel(); return nil, nil }}
	l, out, err := fiducial.New(llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x")), fiducial.WithTools(p.tool("look")),
		fiducial.WithInterceptor(h), fiducial.WithEvents(ev)).Run(ctx, llm.UserText("go"))
	wantReason(t, out, err, fiducial.Cancelled)
	equal(t, "runs", p.count(), 0)
	equal(t, "tool events", count[fiducial.ToolStarted](ev)+count[fiducial.ToolFinished](ev), 0)
	wantTexts(t, l.History(), "user: go", "assistant: look()", "tool: error=not executed: the run was cancelled")
}

// S-107, S-108, S-111, S-112, E-52, E-54, E-124: after a cancel the calls have the grace;
// those that confirm count, those that do not are unknown, and what comes later
// changes nothing. The history is sendable.
func TestS107_Grace(t *testing.T) {
	for _, withJournal := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			release := make(chan struct{})
			stubborn := tool.Must(tool.New("stubborn", "", func(context.Context, noArgs) (string, error) { <-release; return "late", nil }))
			var posted []string
			h := &hooks{post: func(_ fiducial.Invocation, _ llm.Call, r llm.Result) (fiducial.PostAnswer, error) {
				posted = append(posted, r.Summary)
				return nil, nil
			}}
			ev, j := &events{}, journal.NewMemory()
			opts := []fiducial.Option{fiducial.WithTools(stubborn, sleeper(func(string) {})), fiducial.WithInterceptor(h), fiducial.WithEvents(ev)}
			if withJournal {
				opts = append(opts, fiducial.WithJournal(j, "r"))
			}
			model := llmtest.NewScript(llmtest.Call("stubborn", "", "sleep", `{"ms":60000,"name":"a"}`, "sleep", `{"ms":500,"name":"b"}`), llmtest.Say("after"))
			eng := fiducial.New(model, opts...)
			time.AfterFunc(time.Second, cancel)
			began := time.Now()
			l, out, err := eng.Run(ctx, llm.UserText("go"))
			wantReason(t, out, err, fiducial.Cancelled)
			equal(t, "time", time.Since(began), time.Second+fiducial.DefaultGrace)
			want := []string{
				"user: go", `assistant: stubborn() sleep({"ms":60000,"name":"a"}) sleep({"ms":500,"name":"b"})`,
				"tool: unknown=outcome unknown: may still be running\nInspect what it may have changed before you repeat it. cancelled=stopped a success=b",
			}
			wantTexts(t, l.History(), want...)
			equal(t, "post hooks", posted, []string{"b", "stopped a"})
			equal(t, "finished", count[fiducial.ToolFinished](ev), 3)
			n := len(ev.all)
			close(release)
			synctest.Wait()
			wantTexts(t, l.History(), want...)
			equal(t, "events after the end", len(ev.all), n)
			out, err = l.Run(t.Context(), llm.UserText("and now?")) // S-110
			wantReason(t, out, err, fiducial.Finished)
			paired(t, model)
		})
	}
}

// S-109: a cancel that fires when the tools finish keeps their results.
func TestS109_CancelAsTheToolsFinish(t *testing.T) {
	for _, stop := range []llm.StopReason{llm.StopToolUse, llm.StopEndTurn} {
		ctx, cancel := context.WithCancel(t.Context())
		p := &probe{do: func(context.Context, tool.Call) (tool.Output, error) {
			cancel()
			return tool.Output{Summary: "real"}, nil
		}}
		m := llm.Message{Role: llm.RoleAssistant, Stop: stop, Parts: []llm.Part{llm.Call{ID: "1", Name: "look"}}}
		model := llmtest.NewScript(llmtest.Reply(m), llmtest.Say("x"))
		l, out, err := fiducial.New(model, fiducial.WithTools(p.tool("look"))).Run(ctx, llm.UserText("go"))
		wantReason(t, out, err, fiducial.Cancelled)
		wantTexts(t, l.History(), "user: go", "assistant: look()", "tool: success=real")
		equal(t, "requests", len(model.Requests()), 1)
	}
}

// S-104, E-49: cancelled in mid-stream nothing of the reply is kept, and what it
// cost counts once.
func TestS104_CancelInMidStream(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ev := &events{}
		model := llmtest.NewScript(llmtest.Wait(llm.BlockStart{}, llm.BlockDelta{Text: "half"}, llm.UsageReport{Usage: llm.Usage{Input: llm.N(7)}}), llmtest.Say("whole"))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		l, out, err := fiducial.New(model, fiducial.WithEvents(ev)).Run(ctx, llm.UserText("go"))
		wantReason(t, out, err, fiducial.Cancelled)
		wantTexts(t, l.History(), "user: go")
		equal(t, "usage", out.Usage.Input, llm.N(7))
		equal(t, "resets", count[fiducial.DraftReset](ev), 1)
		out, err = l.Resume(t.Context())
		wantReason(t, out, err, fiducial.Finished)
	})
}

// S-104, S-105: a cancel while the notice is made.
func TestS105_CancelDuringNotice(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	asked := 0
	model := llmtest.NewScript(llmtest.Say("ok"))
	l, out, err := fiducial.New(model, fiducial.WithNotice(func(context.Context, []llm.Message) (string, error) {
		if asked++; asked == 1 {
			cancel()
		}
		return "note", nil
	})).Run(ctx, llm.UserText("go"))
	wantReason(t, out, err, fiducial.Cancelled)
	equal(t, "requests", len(model.Requests()), 0)
	wantTexts(t, l.History(), "user: go")
	out, err = l.Resume(t.Context())
	wantReason(t, out, err, fiducial.Finished)
	wantTexts(t, l.History(), "user: go [note]", "assistant: ok")
}

// S-104: a cancel in a retry wait ends the run at once.
func TestS104_CancelDuringRetryWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := llmtest.NewScript(llmtest.Fail(&llm.Error{Class: llm.ClassOverloaded, RetryAfter: 20 * time.Second}))
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		_, out, err := fiducial.New(model).Run(ctx, llm.UserText("go"))
		wantReason(t, out, err, fiducial.Cancelled)
		equal(t, "time", time.Since(began), time.Second)
	})
}

// The loop guard tells the model once, then stops the run; another result or
// another call begins anew.
func TestLoopGuard(t *testing.T) {
	p := &probe{}
	look := llmtest.Call("look", `{}`)
	model := llmtest.NewScript(look, look, look, look)
	l, out := mustRun(t, fiducial.New(model, fiducial.WithTools(p.tool("look"))), "go")
	equal(t, "reason", out.Reason, fiducial.LimitReached)
	equal(t, "limit", out.Limit, fiducial.LimitLoop)
	equal(t, "runs", p.count(), 4)
	told := 0
	for _, m := range texts(l.History()) {
		if strings.Contains(m, "the same calls 3 times in a row") {
			told++
		}
	}
	equal(t, "told", told, 1)
	paired(t, model)

	spaced := func(args string) llmtest.Turn { return llmtest.Call("look", args) }
	model = llmtest.NewScript(spaced(`{"a":1.0,"b":"x"}`), spaced(`{ "b":"x", "a":1.0 }`), spaced("{\"a\":1.0,\n\"b\":\"x\"}"), spaced(`{"b":"x","a":1.0}`))
	_, out = mustRun(t, fiducial.New(model, fiducial.WithTools(p.tool("look"))), "go")
	equal(t, "limit when only white space and order differ", out.Limit, fiducial.LimitLoop)

	n := 0
	p = &probe{do: func(context.Context, tool.Call) (tool.Output, error) {
		n++
		return tool.Output{Summary: fmt.Sprint(n / 2)}, nil
	}}
	var turns []llmtest.Turn
	for range 9 {
		turns = append(turns, look)
	}
	_, out = mustRun(t, fiducial.New(llmtest.NewScript(append(turns, llmtest.Say("ok"))...), fiducial.WithTools(p.tool("look"))), "go")
	equal(t, "reason with other results", out.Reason, fiducial.Finished)
}

// The token budget ends a run before the request that follows it; what broken
// requests cost counts.
func TestTokenBudget(t *testing.T) {
	p := &probe{}
	u := llm.Usage{Input: llm.N(60), Output: llm.N(10)}
	call := llmtest.ReplyUsage(llm.AssistantCalls(llm.Call{ID: "1", Name: "look"}), u)
	model := llmtest.NewScript(llmtest.Break(&llm.Error{Class: llm.ClassTransport}, llm.UsageReport{Usage: u}), call, llmtest.Say("x"))
	_, out := mustRun(t, fiducial.New(model, fiducial.WithTools(p.tool("look")), fiducial.WithTokenBudget(140),
		fiducial.WithRetry(fiducial.RetryPolicy{Base: 1})), "go")
	equal(t, "reason", out.Reason, fiducial.LimitReached)
	equal(t, "limit", out.Limit, fiducial.LimitTokens)
	equal(t, "usage", out.Usage, llm.Usage{Input: llm.N(120), Output: llm.N(20)})
	equal(t, "runs", p.count(), 1)
}

// E-119, E-112: a cut is told once, and history holds what the model saw.
func TestE119_CutIsAWarning(t *testing.T) {
	long := tool.Must(tool.New("long", "", func(context.Context, noArgs) (tool.Output, error) {
		return tool.Output{Summary: "s", Content: strings.Repeat("é", 5000)}, nil
	}, tool.WithTraits(tool.Traits{OutputLimit: 200})))
	ev := &events{}
	l, _ := mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Call("long", ""), llmtest.Say("ok")), fiducial.WithTools(long), fiducial.WithEvents(ev)), "go")
	equal(t, "warnings", count[fiducial.Warning](ev), 1)
	res, _ := l.History()[2].Parts[0].(llm.Result)
	if len(res.Content) > 200 {
		t.Errorf("%d bytes", len(res.Content))
	}
}
