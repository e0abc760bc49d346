// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/tool"
)

// E-31: one rule for the limits: 0 sends no request, a negative number is no limit, by
// the option as by the setter.
func TestLimitsHaveOneRule(t *testing.T) {
	for name, c := range map[string]struct {
		opt   fiducial.Option
		set   func(*fiducial.Engine) error
		limit fiducial.Limit // none: the run finishes
	}{
		"turns 0":     {fiducial.WithTurnLimit(0), func(e *fiducial.Engine) error { return e.SetTurnLimit(0) }, fiducial.LimitTurns},
		"turns none":  {fiducial.WithTurnLimit(-1), func(e *fiducial.Engine) error { return e.SetTurnLimit(-1) }, ""},
		"tokens 0":    {fiducial.WithTokenBudget(0), func(e *fiducial.Engine) error { return e.SetTokenBudget(0) }, fiducial.LimitTokens},
		"tokens none": {fiducial.WithTokenBudget(-1), func(e *fiducial.Engine) error { return e.SetTokenBudget(-1) }, ""},
	} {
		for _, set := range []bool{false, true} {
			model := llmtest.NewScript(llmtest.Say("x"))
			eng := fiducial.New(model, c.opt)
			if set {
				eng = fiducial.New(model)
				if err := c.set(eng); err != nil {
					t.Fatal(err)
				}
			}
			_, out := mustRun(t, eng, "go")
			if out.Limit != c.limit || (out.Detail != "") != (c.limit != "") || (model.Left() == 1) != (c.limit != "") {
				t.Errorf("%s %t: %+v", name, set, out)
			}
		}
	}
}

func TestSenselessNumbersAreRefused(t *testing.T) {
	for name, opt := range map[string]fiducial.Option{
		"WithRequestTimeout": fiducial.WithRequestTimeout(-time.Second),
		"WithParallel":       fiducial.WithParallel(0),
		"WithRetry":          fiducial.WithRetry(fiducial.RetryPolicy{Attempts: -1}),
		"WithPruning":        fiducial.WithPruning(fiducial.PruneConfig{Minimum: -1}),
	} {
		_, err := fiducial.New(llmtest.NewScript(), opt).Lock()
		wantErr(t, err, fiducial.ErrConfig)
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// warnings are the texts of the warnings that hold a word.
func warnings(ev *events, word string) (out []string) {
	for _, e := range ev.all {
		if w, ok := e.Data.(fiducial.Warning); ok && strings.Contains(w.Text, word) {
			out = append(out, w.Text)
		}
	}
	return out
}

// A budget holds also where the provider says nothing of what replies cost, by an
// estimate that another process comes to as well.
func TestTokenBudgetWithoutUsage(t *testing.T) {
	p := &probe{}
	j := journal.NewMemory()
	ev := &events{}
	call := llmtest.Call("look", "")
	engine := func(turns ...llmtest.Turn) *fiducial.Engine {
		return fiducial.New(llmtest.NewScript(turns...), fiducial.WithTools(p.tool("look")), fiducial.WithLoopGuard(0), fiducial.WithEvents(ev),
			fiducial.WithJournal(j, "r"), fiducial.WithTokenBudget(5000))
	}
	l, out := mustRun(t, engine(slices.Repeat([]llmtest.Turn{call}, 10)...), strings.Repeat("x", 8000)) // 2000 tokens with each request
	equal(t, "limit", out.Limit, fiducial.LimitTokens)
	equal(t, "replies", out.Turns, 3)
	equal(t, "warnings", len(warnings(ev, "budget")), 1)
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	again, err := mustLock(t, engine()).Resume(t.Context())
	wantReason(t, again, err, fiducial.LimitReached)
	equal(t, "detail elsewhere", again.Detail, out.Detail)
}

func TestPruningWithoutUsageWarns(t *testing.T) {
	ev := &events{}
	call := llmtest.Call("read", "")
	mustRun(t, fiducial.New(llmtest.NewScript(call, call, llmtest.Say("x")), fiducial.WithTools(bulky(9000)), fiducial.WithEvents(ev),
		fiducial.WithPruning(fiducial.PruneConfig{})), "go")
	equal(t, "warnings", len(warnings(ev, "pruned")), 1)
}

// A model whose calls all fail is told, and stopped, whatever it varies; a process that
// takes over counts on. A batch that works begins anew.
func TestFailureGuard(t *testing.T) {
	lost := func(n int) (turns []llmtest.Turn) {
		for i := range n {
			turns = append(turns, llmtest.Call("nowhere", fmt.Sprintf(`{"n":%d}`, i)))
		}
		return turns
	}
	p := &probe{}
	model := llmtest.NewScript(lost(1000)...)
	l, out := mustRun(t, fiducial.New(model, fiducial.WithTools(p.tool("look"))), "go")
	equal(t, "limit", out.Limit, fiducial.LimitLoop)
	equal(t, "detail", out.Detail, "every call of the last 20 batches failed")
	equal(t, "requests", len(model.Requests()), 2*fiducial.DefaultFailureGuard)
	told := 0
	for _, text := range texts(l.History()) {
		if strings.Contains(text, "Every call of your last 10 replies has failed") {
			told++
		}
	}
	equal(t, "told", told, 1)

	good := append(lost(3), append([]llmtest.Turn{llmtest.Call("look", "")}, append(lost(3), llmtest.Say("x"))...)...)
	_, out = mustRun(t, fiducial.New(llmtest.NewScript(good...), fiducial.WithTools(p.tool("look")), fiducial.WithFailureGuard(2)), "go")
	equal(t, "with one that works", out.Reason, fiducial.Finished)
	_, out = mustRun(t, fiducial.New(llmtest.NewScript(append(lost(50), llmtest.Say("x"))...), fiducial.WithFailureGuard(0)), "go")
	equal(t, "off", out.Reason, fiducial.Finished)

	j := journal.NewMemory()
	engine := func(limit int) *fiducial.Engine {
		return fiducial.New(llmtest.NewScript(lost(4)...), fiducial.WithJournal(j, "r"), fiducial.WithTurnLimit(limit), fiducial.WithFailureGuard(2))
	}
	l, out = mustRun(t, engine(3), "go")
	equal(t, "first part", out.Limit, fiducial.LimitTurns)
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, err := mustLock(t, engine(-1)).Resume(t.Context())
	wantReason(t, out, err, fiducial.LimitReached)
	equal(t, "elsewhere", out.Turns, 4)
}

// S-97: calls of a reply overlap, at most so many at once, and all have their results in
// order.
func TestParallel(t *testing.T) {
	for n, opts := range map[int][]fiducial.Option{
		fiducial.DefaultParallel: nil, 3: {fiducial.WithParallel(3)}, 1: {fiducial.WithSequentialCalls()},
	} {
		var now, most atomic.Int64
		p := &probe{do: func(context.Context, tool.Call) (tool.Output, error) {
			for k := now.Add(1); ; {
				if m := most.Load(); k <= m || most.CompareAndSwap(m, k) {
					break
				}
			}
			time.Sleep(time.Millisecond)
			now.Add(-1)
			return tool.Output{Summary: "ok"}, nil
		}}
		model := llmtest.NewScript(llmtest.Call(slices.Repeat([]string{"look", ""}, 100)...), llmtest.Say("x"))
		l, _ := mustRun(t, fiducial.New(model, append(opts, fiducial.WithTools(p.tool("look")))...), "go")
		if most.Load() > int64(n) || n > 1 && most.Load() < 2 {
			t.Errorf("%d calls at once, at most %d are allowed", most.Load(), n)
		}
		equal(t, "runs", p.count(), 100)
		sendable(t, l.History())
	}
}
