// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"slices"
	"testing"
	"testing/synctest"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/machine"
	"github.com/fiducial-dev/fiducial/tool"
)

// E-1, E-38, S-43: the loop goes on until the model asks for no more tools.
func TestE1_RunAlternatesModelAndTools(t *testing.T) {
	model := llmtest.NewScript(llmtest.Call("add", `{"a":2,"b":3}`), llmtest.Call("add", `{"a":5,"b":1}`), llmtest.Say("6"))
	l, out := mustRun(t, fiducial.New(model, fiducial.WithTools(sumTool())), "2+3+1?")
	equal(t, "reason", out.Reason, fiducial.Finished)
	equal(t, "answer", out.Text(), "6")
	equal(t, "counts", [3]int{out.Turns, out.Requests, out.Batches}, [3]int{3, 3, 2})
	wantTexts(t, l.History(), "user: 2+3+1?", `assistant: add({"a":2,"b":3})`, "tool: success=5", `assistant: add({"a":5,"b":1})`, "tool: success=6", "assistant: 6")
	paired(t, model)
}

// S-51: calls run whatever the stop reason; the model is not asked again.
func TestS51_CallsRunWhateverTheEndReason(t *testing.T) {
	reply := llm.Message{Role: llm.RoleAssistant, Stop: llm.StopEndTurn, Parts: []llm.Part{
		llm.Text{Text: "done"}, llm.Call{ID: "1", Name: "add", Args: `{"a":1,"b":1}`},
	}}
	model := llmtest.NewScript(llmtest.Reply(reply))
	l, out := mustRun(t, fiducial.New(model, fiducial.WithTools(sumTool())), "go")
	equal(t, "answer", out.Text(), "done")
	wantTexts(t, l.History(), "user: go", `assistant: done add({"a":1,"b":1})`, "tool: success=2")
}

// E-3, E-22, S-94: Resume adds nothing; of a finished run it is the outcome again.
func TestE22_ResumeAddsNoMessage(t *testing.T) {
	j := journal.NewMemory()
	model := llmtest.NewScript(llmtest.Say("hi"))
	l, out := mustRun(t, fiducial.New(model, fiducial.WithJournal(j, "r")), "hello")
	for range 2 {
		again, err := l.Resume(t.Context())
		wantReason(t, again, err, fiducial.Finished)
		equal(t, "outcome", again, out)
	}
	wantTexts(t, l.History(), "user: hello", "assistant: hi")
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	prompted := 0
	h := &hooks{prompt: func(fiducial.Invocation, *llm.Message) (fiducial.PromptAnswer, error) { prompted++; return nil, nil }}
	other := mustLock(t, fiducial.New(model, fiducial.WithJournal(j, "r"), fiducial.WithInterceptor(h)))
	again, err := other.Resume(t.Context())
	wantReason(t, again, err, fiducial.Finished)
	equal(t, "outcome in another process", again, out)
	equal(t, "prompt hooks", prompted, 0)
	info, _ := j.Stat(t.Context(), "r")
	equal(t, "head", info.Head, uint64(6)) // header, lock, run, input, start, reply: nothing was added
}

// E-23: nothing to do is a typed error, and a start needs a history.
func TestE23_NothingToDo(t *testing.T) {
	l := mustLock(t, fiducial.New(llmtest.NewScript()))
	out, err := l.Resume(t.Context())
	wantReason(t, out, err, fiducial.Failed)
	wantErr(t, err, fiducial.ErrNothing)
	_, err = l.Run(t.Context())
	wantErr(t, err, fiducial.ErrNothing)
	out, err = mustLock(t, fiducial.New(llmtest.NewScript(llmtest.Say("x")), fiducial.WithHistory(llm.UserText("old")))).Run(t.Context())
	wantReason(t, out, err, fiducial.Finished)
}

// E-30, E-31, E-32, E-21: the limit is looked at before a request, and spans pauses.
func TestE30_TurnLimit(t *testing.T) {
	p := &probe{}
	model := llmtest.NewScript(llmtest.Call("look", "{}"), llmtest.Call("look", "{}"), llmtest.Say("done"))
	eng := fiducial.New(model, fiducial.WithTools(p.tool("look")), fiducial.WithTurnLimit(1))
	l, out, err := eng.Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.LimitReached)
	equal(t, "limit", out.Limit, fiducial.LimitTurns)
	equal(t, "the last reply's calls ran", p.count(), 1)
	out, err = l.Resume(t.Context())
	wantReason(t, out, err, fiducial.LimitReached)
	equal(t, "requests", len(model.Requests()), 1)
	eng, err = l.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := eng.SetTurnLimit(-1); err != nil {
		t.Fatal(err)
	}
	out, err = mustLock(t, eng).Resume(t.Context())
	wantReason(t, out, err, fiducial.Finished)
	equal(t, "turns over all of it", out.Turns, 3)
	p.once(t)

	none := llmtest.NewScript()
	l, out, err = fiducial.New(none, fiducial.WithTurnLimit(0)).Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.LimitReached)
	equal(t, "requests", len(none.Requests()), 0)
	wantTexts(t, l.History(), "user: go")
}

// E-20: a new run gives up the paused one, and its count begins anew.
func TestE20_RunAbandonsAPausedOne(t *testing.T) {
	p := &probe{}
	h := &hooks{pre: func(fiducial.Invocation, *llm.Call) (fiducial.ToolAnswer, error) {
		return fiducial.Pause{Reason: "ask"}, nil
	}}
	model := llmtest.NewScript(llmtest.Call("look", "{}"), llmtest.Say("fine"))
	l, out, err := fiducial.New(model, fiducial.WithTools(p.tool("look")), fiducial.WithInterceptor(h)).Run(t.Context(), llm.UserText("one"))
	wantReason(t, out, err, fiducial.Paused)
	out, err = l.Run(t.Context(), llm.UserText("two"))
	wantReason(t, out, err, fiducial.Finished)
	equal(t, "turns", out.Turns, 1)
	equal(t, "runs of the tool", p.count(), 0)
	sendable(t, l.History())
	equal(t, "the call", texts(l.History())[2], "tool: error=not executed: the run was cancelled while it was paused")
}

// S-57, S-47 to S-50: a reply that stays cut off is an outcome of its own.
func TestS57_OutputCap(t *testing.T) {
	cut := llmtest.Reply(llm.Message{Role: llm.RoleAssistant, Stop: llm.StopMaxTokens, Parts: []llm.Part{llm.Text{Text: "and"}}})
	model := llmtest.NewScript(cut, cut, cut, cut)
	l, out := mustRun(t, fiducial.New(model), "write")
	equal(t, "reason", out.Reason, fiducial.OutputCap)
	equal(t, "answer", out.Text(), "and")
	equal(t, "requests", out.Requests, 1+machine.DefaultMaxTruncatedResumes)
	sendable(t, l.History())
	model = llmtest.NewScript(cut)
	_, out = mustRun(t, fiducial.New(model, fiducial.WithTruncationCap(0)), "write")
	equal(t, "reason", out.Reason, fiducial.OutputCap)
	model = llmtest.NewScript(cut, llmtest.Say("end"))
	_, out = mustRun(t, fiducial.New(model), "write")
	equal(t, "reason", out.Reason, fiducial.Finished)
	last := model.Requests()[1].Messages
	equal(t, "the model was asked to go on", texts(last)[2], "user: ["+machine.ContinuePrompt+"]")
}

// S-58: what asks a model to go on is one system part in a user turn, with the reason
// as data.
func TestS58_Continuation(t *testing.T) {
	cut := llmtest.Reply(llm.Message{Role: llm.RoleAssistant, Stop: llm.StopMaxTokens, Parts: []llm.Part{llm.Text{Text: "and"}}})
	l, _ := mustRun(t, fiducial.New(llmtest.NewScript(cut, llmtest.Say("end"))), "write")
	want := llm.Message{Role: llm.RoleUser, Parts: []llm.Part{
		llm.System{Kind: "continuation", Text: machine.ContinuePrompt, Data: json.RawMessage(`{"reason":"max_tokens"}`)},
	}}
	if diff := cmp.Diff(want, l.History()[2]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A provider that asks for the same conversation again is given it.
func TestStopPauseSendsTheSameConversation(t *testing.T) {
	model := llmtest.NewScript(
		llmtest.Reply(llm.Message{Role: llm.RoleAssistant, Stop: llm.StopPause, Parts: []llm.Part{llm.Text{Text: "wait"}}}), llmtest.Say("now"))
	_, out := mustRun(t, fiducial.New(model), "go")
	equal(t, "answer", out.Text(), "now")
	wantTexts(t, model.Requests()[1].Messages, "user: go", "assistant: wait")

	wait := llmtest.Reply(llm.Message{Role: llm.RoleAssistant, Stop: llm.StopPause})
	model = llmtest.NewScript(slices.Repeat([]llmtest.Turn{wait}, 20)...)
	_, out = mustRun(t, fiducial.New(model), "go")
	equal(t, "it does not go on for ever", [2]any{out.Stop, out.Requests}, [2]any{llm.StopPause, 11})
}

// E-4, E-14, E-15, E-189, S-134: the kinds of failure are told apart, each with
// its advice, and the history can be read.
func TestE4_FailuresAreTyped(t *testing.T) {
	for _, c := range []struct {
		class  llm.Class
		reason fiducial.Reason
		err    error
		advice fiducial.Advice
	}{
		{llm.ClassAuth, fiducial.Failed, fiducial.ErrGeneration, fiducial.AdviceStop},
		{llm.ClassContextOverflow, fiducial.ContextWindowExceeded, fiducial.ErrContextWindow, fiducial.AdviceOmitLast},
		{llm.ClassContentFilter, fiducial.Failed, fiducial.ErrGeneration, fiducial.AdviceStop},
		{llm.ClassQuota, fiducial.Failed, fiducial.ErrGeneration, fiducial.AdviceStop},
		{llm.ClassNotFound, fiducial.Failed, fiducial.ErrGeneration, fiducial.AdviceStop},
		{llm.ClassInvalidRequest, fiducial.Failed, fiducial.ErrGeneration, fiducial.AdviceStop},
		{llm.ClassServer, fiducial.Failed, fiducial.ErrGeneration, fiducial.AdviceRetry},
	} {
		cause := &llm.Error{Class: c.class, Op: "test"}
		l, out, err := fiducial.New(llmtest.NewScript(llmtest.Fail(cause), llmtest.Say("better")),
			fiducial.WithRetry(fiducial.RetryPolicy{Attempts: 1})).Run(t.Context(), llm.UserText("go"))
		wantReason(t, out, err, c.reason)
		wantErr(t, err, c.err)
		wantErr(t, err, cause)
		e, _ := errors.AsType[*fiducial.Error](err)
		equal(t, "advice", e.Advice(), c.advice)
		wantTexts(t, l.History(), "user: go")
		out, err = l.Resume(t.Context()) // S-68
		wantReason(t, out, err, fiducial.Finished)
	}
}

// E-47, E-190, S-103, S-110: a context that has ended before is a cancel, with and
// without a journal, and a new run can begin.
func TestE190_CancelledBefore(t *testing.T) {
	for _, opts := range [][]fiducial.Option{nil, {fiducial.WithJournal(journal.NewMemory(), "r")}} {
		model := llmtest.NewScript(llmtest.Say("x"))
		ev := &events{}
		l := mustLock(t, fiducial.New(model, append(opts, fiducial.WithEvents(ev))...))
		why := errors.New("closing time")
		ctx, cancel := context.WithCancelCause(t.Context())
		cancel(why)
		out, err := l.Run(ctx, llm.UserText("go"))
		wantReason(t, out, err, fiducial.Cancelled)
		wantErr(t, err, fiducial.ErrCancelled)
		wantErr(t, err, why)
		equal(t, "requests", len(model.Requests()), 0)
		equal(t, "generations", count[fiducial.GenerationStarted](ev), 0)
		out, err = l.Run(t.Context(), llm.UserText("again"))
		wantReason(t, out, err, fiducial.Finished)
	}
}

// ErrBusy: an engine in a run answers others at once.
func TestBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := llmtest.NewScript(llmtest.Wait())
		l := mustLock(t, fiducial.New(model))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() {
			_, err := l.Run(ctx, llm.UserText("go"))
			done <- err
		}()
		synctest.Wait()
		_, err := l.Run(t.Context(), llm.UserText("me too"))
		wantErr(t, err, fiducial.ErrBusy)
		_, err = l.Unlock()
		wantErr(t, err, fiducial.ErrBusy)
		for _, err := range l.Stream(t.Context(), llm.UserText("me too")) {
			wantErr(t, err, fiducial.ErrBusy)
		}
		if n := len(l.History()); n != 1 {
			t.Errorf("%d messages in view", n)
		}
		_ = l.Estimate(1)
		cancel()
		wantErr(t, <-done, fiducial.ErrCancelled)
	})
}

// E-17, E-18: the exit is observed once, whatever it is; a failure there changes
// nothing.
func TestE17_RunExit(t *testing.T) {
	var seen []fiducial.Reason
	boom := errors.New("boom")
	h := &hooks{
		exit: func(_ fiducial.Invocation, out fiducial.Outcome, _ error) error {
			seen = append(seen, out.Reason)
			return boom
		},
		prompt: func(_ fiducial.Invocation, m *llm.Message) (fiducial.PromptAnswer, error) {
			if m.Text() == "no" {
				return fiducial.Abort{Reason: "policy"}, nil
			}
			return nil, nil
		},
	}
	l := mustLock(t, fiducial.New(llmtest.NewScript(llmtest.Say("x"), llmtest.Fail(errors.New("bad"))), fiducial.WithInterceptor(h)))
	_, err := l.Run(t.Context(), llm.UserText("no"))
	wantErr(t, err, fiducial.ErrAborted)
	out, err := l.Run(t.Context(), llm.UserText("yes"))
	wantReason(t, out, err, fiducial.Finished)
	wantErr(t, l.ObserverError(), boom)
	_, err = l.Run(t.Context(), llm.UserText("more"))
	wantErr(t, err, fiducial.ErrGeneration)
	equal(t, "exits", seen, []fiducial.Reason{fiducial.Failed, fiducial.Finished, fiducial.Failed})
}

// S-3, S-96: another executor than a server runs the calls, and its panics, its
// empty answers and its answers to other calls are results of the right call.
func TestS3_Executor(t *testing.T) {
	x := executor{specs: []tool.Spec{{Name: "a"}, {Name: "b"}, {Name: "c"}}}
	x.execute = func(call tool.Call) tool.Result {
		switch call.Name {
		case "a":
			panic("ouch")
		case "b":
			return tool.Result{}
		case "e":
			runtime.Goexit()
		}
		return tool.Result{CallID: "other", Name: "other", Summary: "bad \xff text", Status: llm.StatusError}
	}
	j := journal.NewMemory()
	l, out := mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Call("a", "", "b", "", "c", "", "d", "{}", "e", ""), llmtest.Say("ok")),
		fiducial.WithExecutor(x), fiducial.WithJournal(j, "r")), "go")
	equal(t, "reason", out.Reason, fiducial.Finished)
	equal(t, "results", texts(l.History())[2], "tool: error=the tool panicked: ouch success= error=bad \uFFFD text error=bad \uFFFD text error=the tool ended its goroutine instead of returning")
	sendable(t, l.History())
}

type executor struct {
	specs   []tool.Spec
	execute func(tool.Call) tool.Result
}

func (x executor) Specs() []tool.Spec                                    { return x.specs }
func (x executor) Execute(_ context.Context, call tool.Call) tool.Result { return x.execute(call) }

// E-82: mistakes in the options are configuration errors at Lock, and the engine stays.
func TestConfigurationErrors(t *testing.T) {
	model := llmtest.NewScript()
	for name, eng := range map[string]*fiducial.Engine{
		"no client":         fiducial.New(nil),
		"executor and tool": fiducial.New(model, fiducial.WithExecutor(executor{}), fiducial.WithTools(sumTool())),
		"journal, no run":   fiducial.New(model, fiducial.WithJournal(journal.NewMemory(), "")),
		"durable, volatile": fiducial.New(model, fiducial.WithJournal(journal.NewMemory(), "r"), fiducial.WithDurable()),
		"unpaired history":  fiducial.New(model, fiducial.WithHistory(llm.AssistantCalls(llm.Call{ID: "1", Name: "x"}))),
		"two of one name":   fiducial.New(model, fiducial.WithTools(sumTool(), sumTool())),
		"negative cap":      fiducial.New(model, fiducial.WithTruncationCap(-1)),
		"twice in executor": fiducial.New(model, fiducial.WithExecutor(executor{specs: []tool.Spec{{Name: "a"}, {Name: "a"}}})),
	} {
		l, err := eng.Lock()
		if l != nil || !errors.Is(err, fiducial.ErrConfig) {
			t.Errorf("%s: got %v, %v", name, l, err)
		}
		if err := eng.SetSystem("still editable"); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
