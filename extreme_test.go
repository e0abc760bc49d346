// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"math"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
)

// E-171: a provider may state any number. The budget ends the run all the same, and no
// estimate is negative or shrinks as the history grows.
func TestAnyNumberOfTokens(t *testing.T) {
	const most = math.MaxInt64
	turn := func(u llm.Usage) llmtest.Turn {
		return llmtest.ReplyUsage(llm.AssistantCalls(llm.Call{Name: "look", Args: `{"n":1}`}), u)
	}
	all := llm.Usage{Input: llm.N(most), Output: llm.N(most), Total: llm.N(most), CacheRead: llm.N(most), CacheWrite: llm.N(most), Reasoning: llm.N(most)}
	for name, u := range map[string]llm.Usage{
		"without output": {Input: llm.N(most)}, "without input": {Output: llm.N(most)}, "everything": all,
	} {
		p := &probe{}
		l, out, err := fiducial.New(llmtest.NewScript(turn(u), turn(llm.Usage{Input: llm.N(5)}), llmtest.Say("x")), fiducial.WithTools(p.tool("look")),
			fiducial.WithTokenBudget(1000)).Run(t.Context(), llm.UserText("go"))
		wantReason(t, out, err, fiducial.LimitReached)
		equal(t, name+": turns", out.Turns, 1)
		var before int64
		for n := range 8 {
			e := l.Estimate(n)
			if e.Tokens < before {
				t.Errorf("%s: Estimate(%d) = %+v behind %d", name, n, e, before)
			}
			before = e.Tokens
		}
	}
	p := &probe{}
	l, out, err := fiducial.New(llmtest.NewScript(turn(llm.Usage{Input: llm.N(5)}), turn(all), llmtest.Say("x")), fiducial.WithTools(p.tool("look"))).
		Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.Finished)
	for n := range 8 {
		if e := l.Estimate(n); e.Tokens < 0 {
			t.Errorf("Estimate(%d) = %+v", n, e)
		}
	}
}

// Pointers satisfy the closed interfaces and are none of the values: a stream with one
// is malformed, and a message with one is refused with words that say so.
func TestPointersAreNoValues(t *testing.T) {
	model := llmtest.NewScript(llmtest.Break(nil, llm.BlockStart{}, llm.BlockDelta{Text: "do not "}, &llm.BlockDelta{Text: "ever "},
		llm.BlockDelta{Text: "delete"}, llm.BlockStop{}, llm.Finish{Stop: llm.StopEndTurn}))
	_, out, err := fiducial.New(model, fiducial.WithRetry(fiducial.RetryPolicy{Attempts: 1})).Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.Failed)
	equal(t, "class", llm.ClassOf(err), llm.ClassMalformedStream)

	l := mustLock(t, fiducial.New(llmtest.NewScript(llmtest.Say("x"))))
	_, err = l.Run(t.Context(), llm.Message{Role: llm.RoleUser, Parts: []llm.Part{&llm.Text{Text: "x"}}})
	wantErr(t, err, fiducial.ErrState)
	if !strings.Contains(err.Error(), "*llm.Text") || !strings.Contains(err.Error(), "not a pointer") {
		t.Error(err)
	}
}
