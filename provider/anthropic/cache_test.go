// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/provider/anthropic"
	"github.com/fiducial-dev/fiducial/provider/internal/replytest"
)

// marked are the places with a mark, such as system, tool 1 and 2.0 for the first
// block of the third message.
func marked(t *testing.T, body string) []string {
	t.Helper()
	b := parse(t, body)
	var out []string
	for _, x := range b.System {
		if x.CacheControl != nil {
			out = append(out, "system")
		}
	}
	for i, x := range b.Tools {
		if x.CacheControl != nil {
			out = append(out, fmt.Sprint("tool ", i))
		}
	}
	for i, m := range b.Messages {
		for k, x := range m.Content {
			if x.CacheControl != nil {
				out = append(out, fmt.Sprintf("%d.%d", i, k))
			}
		}
	}
	return out
}

// B-122, B-123, B-124, E-184, AC-15.14 (B-143).
func TestMarks(t *testing.T) {
	calls := func(n int) (llm.Message, llm.Message) {
		var cs []llm.Call
		var rs []llm.Result
		for i := range n {
			id := fmt.Sprint("c", i)
			cs = append(cs, llm.Call{ID: id, Name: "f", Args: "{}"})
			rs = append(rs, llm.Result{CallID: id, Name: "f", Status: llm.StatusSuccess, Summary: "r"})
		}
		return llm.AssistantCalls(cs...), llm.ToolResults(rs...)
	}
	two, twoResults := calls(2)
	many, manyResults := calls(12)
	blank := llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: "x"}, llm.Text{Text: " "}}}
	tools := []llm.Tool{{Name: "f"}, {Name: "g"}}
	fourth := []anthropic.Option{anthropic.WithFourthMark()}
	for _, tt := range []struct {
		name string
		opts []anthropic.Option
		req  llm.Request
		want []string
	}{
		{"all three", nil, llm.Request{System: "s", Tools: tools, Messages: []llm.Message{llm.UserText("go")}}, []string{"system", "tool 1", "0.0"}},
		{"AC-15.14: two tools, three messages", nil, llm.Request{System: "s", Tools: tools, Messages: []llm.Message{llm.UserText("go"), two, twoResults}}, []string{"system", "tool 1", "2.1"}},
		{"no system", nil, llm.Request{Tools: tools, Messages: []llm.Message{llm.UserText("go")}}, []string{"tool 1", "0.0"}},
		{"blank system", nil, llm.Request{System: " ", Tools: tools, Messages: []llm.Message{llm.UserText("go")}}, []string{"tool 1", "0.0"}},
		{"no tools", nil, llm.Request{System: "s", Messages: []llm.Message{llm.UserText("go")}}, []string{"system", "0.0"}},
		{"last result", nil, llm.Request{System: "s", Messages: []llm.Message{llm.UserText("go"), two, twoResults}}, []string{"system", "2.1"}},
		{"none on an empty text", nil, llm.Request{Messages: []llm.Message{blank}}, []string{"0.0"}},
		{"settings say no", nil, llm.Request{System: "s", Tools: tools, Messages: []llm.Message{llm.UserText("go")}, Settings: llm.Settings{NoCache: true}}, nil},
		{"option says no", []anthropic.Option{anthropic.WithoutCache()}, llm.Request{System: "s", Messages: []llm.Message{llm.UserText("go")}}, nil},
		{"three by default, however large the batch", nil, llm.Request{System: "s", Messages: []llm.Message{llm.UserText("go"), many, manyResults}}, []string{"system", "2.11"}},
		{"a fourth when the look-back would miss", fourth, llm.Request{System: "s", Messages: []llm.Message{llm.UserText("go"), many, manyResults}, CacheAnchor: -1}, []string{"system", "0.0", "2.11"}},
		{"no fourth when it would not", fourth, llm.Request{System: "s", Messages: []llm.Message{llm.UserText("go"), two, twoResults}, CacheAnchor: -1}, []string{"system", "2.1"}},
		{"a fourth at the anchor", fourth, llm.Request{System: "s", Tools: tools, Messages: []llm.Message{llm.UserText("go"), two, twoResults, llm.UserText("on")}, CacheAnchor: 2}, []string{"system", "tool 1", "2.1", "3.0"}},
		{"the anchor is the end", fourth, llm.Request{System: "s", Messages: []llm.Message{llm.UserText("go")}, CacheAnchor: 0}, []string{"system", "0.0"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			e := replytest.Serve(t, 200, stream, whole)
			if _, err := collect.Stream(t.Context(), newClient(t, e.URL, tt.opts...), &tt.req); err != nil {
				t.Fatal(err)
			}
			body := string(e.Body)
			if got := marked(t, body); !slices.Equal(got, tt.want) {
				t.Errorf("marks at %q, want %q", got, tt.want)
			}
			checkHistory(t, 1, body)
		})
	}
}

// A run is a scripted task of 40 requests with results of a few kilobytes, and
// now and then a batch that is wider than the look-back.
func cacheRun(t testing.TB, opts ...anthropic.Option) llmtest.Totals {
	t.Helper()
	const turns = 40
	r := rand.New(rand.NewPCG(4, 40))
	var script []llmtest.Turn
	for i := range turns - 1 {
		n := 1 + r.IntN(3)
		if i%10 == 7 {
			n = 12 + r.IntN(8)
		}
		var calls []llm.Call
		for k := range n {
			calls = append(calls, llm.Call{Name: "read", Args: fmt.Sprintf(`{"path":"sheet-%d-%d.kicad_sch"}`, i, k)})
		}
		script = append(script, llmtest.Reply(llm.AssistantCalls(calls...)))
	}
	c, srv := scripted(t, opts, append(script, llmtest.Say("done"))...)
	req := ask(llm.UserText("Rename the net."))
	req.System = strings.Repeat("You are careful with boards. ", 200)
	for i := range 12 {
		req.Tools = append(req.Tools, llm.Tool{Name: fmt.Sprintf("tool%02d", i), Description: strings.Repeat("It does much. ", 30)})
	}
	req.Tools = append(req.Tools, llm.Tool{Name: "read"})
	for range turns {
		reply, err := collect.Stream(t.Context(), c, req)
		if err != nil {
			t.Fatal(err)
		}
		req.Messages = append(req.Messages, reply.Message)
		var results []llm.Result
		for _, call := range reply.Message.Calls() {
			results = append(results, llm.Result{
				CallID: call.ID, Name: call.Name, Status: llm.StatusSuccess,
				Summary: strings.Repeat("(symbol R) ", 50+r.IntN(400)),
			})
		}
		if len(results) > 0 {
			req.Messages = append(req.Messages, llm.ToolResults(results...))
		}
		srv.Advance(20 * time.Second)
	}
	return srv.Totals()
}

// What the marks are worth: with the fourth, all that any client could have from
// the cache; with three, all but what wide batches lose.
func TestCacheRun(t *testing.T) {
	none, three, four := cacheRun(t, anthropic.WithoutCache()), cacheRun(t), cacheRun(t, anthropic.WithFourthMark())
	t.Logf("input %d tokens, of them readable %d", four.Input, four.Best)
	t.Logf("no marks:    cost %8.0f", none.Cost())
	t.Logf("three marks: cost %8.0f, %.1f %% of what could be read", three.Cost(), 100*three.HitRate())
	t.Logf("four marks:  cost %8.0f, %.1f %% of what could be read", four.Cost(), 100*four.HitRate())
	if none.CacheRead != 0 || none.Cost() != float64(none.Input) {
		t.Errorf("without marks nothing may be read: %+v", none)
	}
	if four.HitRate() < 0.99 {
		t.Errorf("four marks read %.3f of what could be read, want 0.99", four.HitRate())
	}
	if !(four.Cost() < three.Cost() && three.Cost() < none.Cost()/2) {
		t.Errorf("costs %v, %v, %v: each kind of mark should save", none.Cost(), three.Cost(), four.Cost())
	}
}

func BenchmarkCacheRun(b *testing.B) {
	for name, opts := range map[string][]anthropic.Option{
		"no-marks": {anthropic.WithoutCache()}, "three-marks": nil, "four-marks": {anthropic.WithFourthMark()},
	} {
		b.Run(name, func(b *testing.B) {
			var totals llmtest.Totals
			for b.Loop() {
				totals = cacheRun(b, opts...)
			}
			b.ReportMetric(totals.Cost(), "input-units/run")
			b.ReportMetric(100*totals.HitRate(), "%hit")
		})
	}
}
