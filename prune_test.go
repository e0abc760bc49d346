// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/tool"
)

// bulky is a tool whose result has a content of n bytes.
func bulky(n int) tool.Tool {
	return tool.Must(tool.New("read", "", func(context.Context, noArgs) (tool.Output, error) {
		return tool.Output{Summary: "sum", Content: strings.Repeat("x", n)}, nil
	}))
}

// meteredCall is a call whose request cost so many tokens.
func meteredCall(id int, input int64) llmtest.Turn {
	return llmtest.ReplyUsage(llm.AssistantCalls(llm.Call{ID: fmt.Sprint(id), Name: "read"}), llm.Usage{Input: llm.N(input)})
}

func contents(messages []llm.Message) (out []int) {
	for _, m := range messages {
		for _, p := range m.Parts {
			if r, ok := p.(llm.Result); ok {
				out = append(out, len(r.Content))
			}
		}
	}
	return out
}

// E-174, E-175: what estimates rest on.
func TestE175_Estimates(t *testing.T) {
	model := llmtest.NewScript(meteredCall(1, 100), meteredCall(2, 1100), llmtest.Say("x"))
	eng := fiducial.New(model, fiducial.WithTools(bulky(4000)))
	equal(t, "empty", eng.Estimate(0), fiducial.Estimate{Source: fiducial.EstimateMeasured})
	if err := eng.Append(t.Context(), llm.UserText(strings.Repeat("y", 400))); err != nil {
		t.Fatal(err)
	}
	if e := eng.Estimate(1); e.Source != fiducial.EstimateNoData || e.Tokens < 100 || e.Tokens > 120 {
		t.Errorf("without data: %+v", e)
	}
	l, _ := mustRun(t, eng, "go")
	equal(t, "measured", l.Estimate(2), fiducial.Estimate{Tokens: 100, Source: fiducial.EstimateMeasured})
	equal(t, "measured", l.Estimate(4), fiducial.Estimate{Tokens: 1100, Source: fiducial.EstimateMeasured})
	if e := l.Estimate(3); e.Source != fiducial.EstimateInterpolated || e.Tokens < 100 || e.Tokens > 200 {
		t.Errorf("between: %+v", e)
	}
	if e := l.Estimate(1); e.Source != fiducial.EstimateInterpolated || e.Tokens < 80 || e.Tokens > 100 {
		t.Errorf("before the first: %+v", e)
	}
	if e := l.Estimate(6); e.Source != fiducial.EstimateExtrapolated || e.Tokens < 2000 {
		t.Errorf("after the last: %+v", e)
	}
}

// E-175: for one set of records an estimate never decreases as the prefix grows.
func TestE175_EstimatesAreMonotone(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var turns []llmtest.Turn
		n := rapid.IntRange(0, 12).Draw(rt, "turns")
		for i := range n {
			turns = append(turns, meteredCall(i, rapid.Int64Range(0, 5000).Draw(rt, "tokens")))
		}
		l, _, err := fiducial.New(llmtest.NewScript(append(turns, llmtest.Say("x"))...), fiducial.WithTools(bulky(rapid.IntRange(0, 3000).Draw(rt, "bytes"))),
			fiducial.WithLoopGuard(0)).Run(t.Context(), llm.UserText("go"))
		if err != nil {
			rt.Fatal(err)
		}
		last := int64(0)
		for i := range len(l.History()) + 1 {
			e := l.Estimate(i)
			if e.Tokens < last {
				rt.Fatalf("the estimate of %d messages is %+v, of %d it is %d", i, e, i-1, last)
			}
			last = e.Tokens
		}
	})
}

// E-176 to E-183: old results lose their content in requests, never in history,
// and the mark moves only when it pays.
func TestE181_PruningIsSticky(t *testing.T) {
	var turns []llmtest.Turn
	const rounds = 12
	for i := range rounds {
		turns = append(turns, meteredCall(i, int64(50+1000*i)))
	}
	ev := &events{}
	model := llmtest.NewScript(append(turns, llmtest.Say("x"))...)
	l, _ := mustRun(t, fiducial.New(model, fiducial.WithTools(bulky(4000)), fiducial.WithLoopGuard(0), fiducial.WithEvents(ev),
		fiducial.WithPruning(fiducial.PruneConfig{Protect: 2000, Minimum: 3000})), "go")
	marks := map[int]bool{}
	before := 0
	for i, r := range model.Requests() {
		mark := 0
		for k, n := range contents(r.Messages) {
			if n == 0 {
				mark = k + 1
			} else if n != 4000 {
				t.Fatalf("request %d: a content of %d bytes", i, n)
			}
		}
		if mark < before {
			t.Errorf("request %d: the mark went back", i)
		}
		before = mark
		marks[mark] = true
		for _, m := range r.Messages {
			for _, p := range m.Parts {
				if res, ok := p.(llm.Result); ok && res.Summary != "sum" {
					t.Errorf("the summary is %q", res.Summary)
				}
			}
		}
	}
	if len(marks) < 3 || len(marks) > 5 { // it moves by three results at a time
		t.Errorf("marks %v", marks)
	}
	paired(t, model)
	for i, n := range contents(l.History()) {
		equal(t, fmt.Sprint("content in history ", i), n, 4000)
	}
	fired := 0
	for _, e := range ev.all {
		if d, ok := e.Data.(fiducial.PruneEvaluated); ok && d.Decision.Fired {
			fired++
			if d.Decision.Savings < 3000 {
				t.Errorf("%+v", d.Decision)
			}
		}
	}
	equal(t, "fired", fired, len(marks)-1)
}

// E-178, E-181: the border message stays whole, and equal savings fire.
func TestE178_Borders(t *testing.T) {
	run := func(cfg fiducial.PruneConfig) []int {
		model := llmtest.NewScript(meteredCall(1, 50), meteredCall(2, 1050), llmtest.ReplyUsage(llm.AssistantText("x"), llm.Usage{Input: llm.N(2050)}), llmtest.Say("y"))
		l, _ := mustRun(t, fiducial.New(model, fiducial.WithTools(bulky(4000)), fiducial.WithPruning(cfg)), "go")
		if _, err := l.Run(t.Context(), llm.UserText("more")); err != nil {
			t.Fatal(err)
		}
		return contents(model.Requests()[3].Messages)
	}
	equal(t, "nothing protected", run(fiducial.PruneConfig{Protect: -1, Minimum: 1}), []int{0, 0})
	equal(t, "one protected", run(fiducial.PruneConfig{Protect: 500, Minimum: 1}), []int{0, 4000})
	equal(t, "equal fires", run(fiducial.PruneConfig{Protect: 500, Minimum: 1000}), []int{0, 4000})
	equal(t, "below the minimum", run(fiducial.PruneConfig{Protect: 500, Minimum: 1001}), []int{4000, 4000})
	equal(t, "defaults", run(fiducial.PruneConfig{}), []int{4000, 4000})
}

// E-80: the committed prefix is never pruned. The mark is the same in another
// process, so that the first request there is what the cache knows.
func TestPruningAcrossProcesses(t *testing.T) {
	j := journal.NewMemory()
	first := []llm.Message{
		llm.UserText("a"), llm.AssistantCalls(llm.Call{ID: "0", Name: "read"}),
		llm.ToolResults(llm.Result{CallID: "0", Name: "read", Status: llm.StatusSuccess, Summary: "old", Content: strings.Repeat("z", 9000)}),
	}
	opts := []fiducial.Option{fiducial.WithTools(bulky(4000)), fiducial.WithJournal(j, "r"), fiducial.WithLoopGuard(0), fiducial.WithPruning(fiducial.PruneConfig{Protect: 100, Minimum: 1500})}
	model := llmtest.NewScript(meteredCall(1, 2500), meteredCall(2, 3500), meteredCall(3, 4500), meteredCall(4, 3500), llmtest.ReplyUsage(llm.AssistantText("x"), llm.Usage{Input: llm.N(4500)}))
	l, out, err := fiducial.New(model, append(opts, fiducial.WithHistory(first...), fiducial.WithTurnLimit(4))...).Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.LimitReached)
	_ = l.Close(t.Context())
	l = mustLock(t, fiducial.New(model, opts...))
	out, err = l.Resume(t.Context())
	wantReason(t, out, err, fiducial.Finished)
	reqs := model.Requests()
	before, after := contents(reqs[3].Messages), contents(reqs[4].Messages)
	equal(t, "the prefix", after[0], 9000)
	equal(t, "before", before, []int{9000, 0, 0, 4000})
	equal(t, "what was left out stays so, and no more is", after, []int{9000, 0, 0, 4000, 4000})
	equal(t, "history", contents(l.History()), []int{9000, 4000, 4000, 4000, 4000})
}

// The cache audit names each miss with its cause, and is silent about hits.
func TestCacheAudit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ev := &events{}
		turn := func(input, read int64) llmtest.Turn {
			return llmtest.ReplyUsage(llm.AssistantText("x"), llm.Usage{Input: llm.N(input), CacheRead: llm.N(read)})
		}
		model := llmtest.NewScript(turn(5000, 0), turn(6000, 5000), turn(7000, 0), turn(8000, 0), turn(9000, 0), turn(9000, 100), turn(9500, 8000),
			llmtest.ReplyUsage(llm.AssistantText("x"), llm.Usage{Input: llm.N(1)}))
		l := mustLock(t, fiducial.New(model, fiducial.WithEvents(ev)))
		run := func() {
			t.Helper()
			if _, err := l.Run(t.Context(), llm.UserText("go")); err != nil {
				t.Fatal(err)
			}
		}
		run()
		run()
		run() // unknown
		time.Sleep(6 * time.Minute)
		run() // expired
		eng, err := l.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		if err := eng.SetSystem("other"); err != nil {
			t.Fatal(err)
		}
		l = mustLock(t, eng)
		run() // prefix edited
		eng, _ = l.Unlock()
		if err := eng.Server().Register(sumTool()); err != nil {
			t.Fatal(err)
		}
		l = mustLock(t, eng)
		run() // tools changed
		run() // within the slack
		run() // says nothing of a cache
		var causes []fiducial.CacheCause
		for _, e := range ev.all {
			if m, ok := e.Data.(fiducial.CacheMiss); ok {
				causes = append(causes, m.Cause)
			}
		}
		equal(t, "causes", causes, []fiducial.CacheCause{fiducial.CacheUnknown, fiducial.CacheExpired, fiducial.CachePrefixEdited, fiducial.CacheToolsChanged})
	})
}
