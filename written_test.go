// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/tool"
)

// E-35, E-60: a hook that writes into the messages of a request instead of replacing
// them is found out, behind the committed prefix, too, and the history stays what the
// journal holds.
func TestE60_WritingIntoTheHistoryIsFound(t *testing.T) {
	for name, write := range map[string]func(req *llm.Request){
		"message": func(req *llm.Request) { req.Messages[0] = llm.UserText("other") },
		"part":    func(req *llm.Request) { req.Messages[0].Parts[0] = llm.Text{Text: "other"} },
	} {
		j := journal.NewMemory()
		wrote := false
		h := &hooks{request: func(_ fiducial.Invocation, req *llm.Request) (fiducial.RequestAnswer, error) {
			if !wrote {
				write(req)
				wrote = true
			}
			return nil, nil
		}}
		l, out, err := fiducial.New(llmtest.NewScript(llmtest.Say("x")), fiducial.WithInterceptor(h), fiducial.WithJournal(j, "r")).Run(t.Context(), llm.UserText("go"))
		wantReason(t, out, err, fiducial.Failed)
		wantErr(t, err, fiducial.ErrInterceptor)
		if !strings.Contains(err.Error(), "message 0 of the history") {
			t.Errorf("%s: %v", name, err)
		}
		wantTexts(t, l.History(), "user: go")
		out, err = l.Resume(t.Context())
		wantReason(t, out, err, fiducial.Finished)
		wantTexts(t, l.History(), "user: go", "assistant: x")
	}
}

// A hook that replaces messages changes its request alone, and a notice may still be
// added to the last message.
func TestE60_ReplacingIsFine(t *testing.T) {
	h := &hooks{request: func(_ fiducial.Invocation, req *llm.Request) (fiducial.RequestAnswer, error) {
		req.Messages = append([]llm.Message{llm.UserText("first of all")}, req.Messages...)
		return nil, nil
	}}
	p := &probe{}
	model := llmtest.NewScript(llmtest.Call("look", ""), llmtest.Call("look", ""), llmtest.Say("x"))
	l, _ := mustRun(t, fiducial.New(model, fiducial.WithTools(p.tool("look")), fiducial.WithInterceptor(h),
		fiducial.WithNotice(func(context.Context, []llm.Message) (string, error) { return "n", nil })), "go")
	equal(t, "sent", len(model.Requests()[2].Messages), 6)
	equal(t, "kept", len(l.History()), 6)
}

// What an error says stands in it once.
func TestErrorsSayThingsOnce(t *testing.T) {
	j := journal.NewMemory()
	mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Say("x")), fiducial.WithJournal(j, "r")), "go")
	_, _, held := fiducial.New(llmtest.NewScript(), fiducial.WithJournal(j, "r")).Run(t.Context(), llm.UserText("go"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, _, ended := fiducial.New(llmtest.NewScript(), fiducial.WithJournal(j, "s")).Run(ctx, llm.UserText("go"))
	_, history := fiducial.New(llmtest.NewScript(), fiducial.WithHistory(llm.AssistantCalls(llm.Call{ID: "1", Name: "x"}))).Lock()
	for _, err := range []error{held, ended, history} {
		text := err.Error()
		for _, word := range []string{"fiducial: ", "journal: ", "lock: ", "run: ", "cancelled: "} {
			if strings.Count(text, word) > 1 {
				t.Errorf("%q says %q more than once", text, word)
			}
		}
	}
}

// A run whose engine is put together otherwise says how to go on all the same.
func TestChangedPromptNamesTheWayOut(t *testing.T) {
	j := journal.NewMemory()
	l, _ := mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Say("x")), fiducial.WithSystem("a"), fiducial.WithJournal(j, "r")), "go")
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	other := func(turns ...llmtest.Turn) *fiducial.Engine {
		return fiducial.New(llmtest.NewScript(turns...), fiducial.WithSystem("b"), fiducial.WithJournal(j, "r"))
	}
	_, _, err := other().Run(t.Context(), llm.UserText("on"))
	wantErr(t, err, fiducial.ErrPrefix)
	if !strings.Contains(err.Error(), "call its Open, then Lock") {
		t.Error(err)
	}
	eng := other(llmtest.Say("y"))
	if err := eng.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	mustRun(t, eng, "on")
}

// A server that engines share is free again when the one that locked it was closed, or
// is not held any more.
func TestSharedServerIsLetGo(t *testing.T) {
	p := &probe{}
	server := &tool.Server{}
	if err := server.Register(p.tool("look")); err != nil {
		t.Fatal(err)
	}
	l := mustLock(t, fiducial.New(llmtest.NewScript(llmtest.Say("x"), llmtest.Say("y")), fiducial.WithServer(server)))
	wantErr(t, server.Register(p.tool("edit")), tool.ErrLocked)
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, err := l.Run(t.Context(), llm.UserText("go")) // nothing has changed
	wantReason(t, out, err, fiducial.Finished)
	wantErr(t, server.Register(p.tool("edit")), tool.ErrLocked)
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := server.Register(p.tool("edit")); err != nil {
		t.Fatal(err)
	}
	_, err = l.Run(t.Context(), llm.UserText("go"))
	wantErr(t, err, fiducial.ErrPrefix)

	_ = mustLock(t, fiducial.New(llmtest.NewScript(), fiducial.WithServer(server)))
	for range 100 {
		runtime.GC()
		if err = server.Register(p.tool("late")); err == nil {
			return
		}
		time.Sleep(time.Millisecond)
	}
	t.Errorf("after the engine was dropped: %v", err)
}
