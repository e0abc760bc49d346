// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"errors"
	"testing"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/tool"
)

// E-29, E-85: limits are no part of the prefix, so a locked engine takes others.
func TestE29_LimitsOfALockedEngine(t *testing.T) {
	t.Parallel()
	p := &probe{}
	used := llm.Usage{Input: llm.N(60), Output: llm.N(60)}
	reply := llmtest.ReplyUsage(llm.AssistantCalls(llm.Call{ID: "1", Name: "look"}), used)
	model := llmtest.NewScript(reply, reply, llmtest.Say("done"))
	eng := fiducial.New(model, fiducial.WithTools(p.tool("look")), fiducial.WithTurnLimit(1), fiducial.WithTokenBudget(200))
	l, out, err := eng.Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.LimitReached)
	equal(t, "limit", out.Limit, fiducial.LimitTurns)
	if err := l.SetTurnLimit(-1); err != nil {
		t.Fatal(err)
	}
	out, err = l.Resume(t.Context())
	wantReason(t, out, err, fiducial.LimitReached)
	equal(t, "limit", out.Limit, fiducial.LimitTokens)
	if err := l.SetTokenBudget(1000); err != nil {
		t.Fatal(err)
	}
	out, err = l.Resume(t.Context())
	wantReason(t, out, err, fiducial.Finished)
	equal(t, "committed all along", model.Requests()[2].Prefix, 0)
}

// A lock that was given up holds nobody back: Open of an engine that is not locked
// takes the run up whatever it was locked with.
func TestOpenAfterUnlock(t *testing.T) {
	t.Parallel()
	j := journal.NewMemory()
	model := llmtest.NewScript(llmtest.Say("x"), llmtest.Say("y"), llmtest.Say("z"))
	l, _ := mustRun(t, fiducial.New(model, fiducial.WithJournal(j, "r")), "go")
	eng, err := l.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	l, _ = mustRun(t, eng, "on") // with a prefix of 2
	if eng, err = l.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := eng.Truncate(t.Context(), 0); err != nil {
		t.Fatal(err)
	}
	if err := eng.Append(t.Context(), llm.UserText("new")); err != nil {
		t.Fatal(err)
	}
	if err := eng.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := eng.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantTexts(t, eng.History(), "user: new")
	l, out, err := eng.Run(t.Context())
	wantReason(t, out, err, fiducial.Finished)
	wantTexts(t, l.History(), "user: new", "assistant: z")
}

// A server is locked once for each engine that has it locked, also after Close and
// Unlock.
func TestUnlockAfterCloseLetsGoOnce(t *testing.T) {
	t.Parallel()
	server := &tool.Server{}
	other := mustLock(t, fiducial.New(llmtest.NewScript(), fiducial.WithServer(server)))
	l := mustLock(t, fiducial.New(llmtest.NewScript(), fiducial.WithServer(server)))
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Unlock(); err != nil {
		t.Fatal(err)
	}
	p := &probe{}
	wantErr(t, server.Register(p.tool("look")), tool.ErrLocked)
	if _, err := other.Unlock(); err != nil {
		t.Fatal(err)
	}
	if err := server.Register(p.tool("look")); err != nil {
		t.Error(err)
	}
}

// What holds nothing is refused by Lock instead of ending the program.
func TestEmptyToolsAreRefused(t *testing.T) {
	t.Parallel()
	for name, opt := range map[string]fiducial.Option{
		"tool":     fiducial.WithTools(struct{ tool.Tool }{}),
		"executor": fiducial.WithExecutor(struct{ tool.Executor }{}),
	} {
		eng := fiducial.New(llmtest.NewScript(), opt)
		for range 2 { // also when asked again
			_, err := eng.Lock()
			if !errors.Is(err, fiducial.ErrConfig) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}
