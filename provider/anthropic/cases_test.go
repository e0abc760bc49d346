// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/provider/anthropic"
)

// A wire case, as far as an adapter alone can be held to it: its steps must be a
// plain conversation, whose tools' results are taken from the case.
type wireCase struct {
	ID       string
	Provider struct{ Kind, Wire, Model string }
	Run      struct {
		System  string
		Tools   []caseTool
		Options struct {
			MaxOutputTokens int  `json:"max_output_tokens"`
			ThinkingBudget  int  `json:"thinking_budget"`
			Cache           bool `json:"cache"`
		}
		Steps []struct {
			Do, Input string
			Interrupt *struct{}
		}
	}
	Replies []struct {
		Status     int
		Body       string
		ChunkEvery int `json:"chunk_every"`
		Template   bool
		Cut        *struct{}
		Stall      *struct{}
	}
	Expect struct {
		ToolCalls []struct {
			ID, Name string
			Args     json.RawMessage
		} `json:"tool_calls"`
		Steps []struct {
			StopReason any             `json:"stop_reason"`
			FinalText  *string         `json:"final_text"`
			TextStream *string         `json:"text_stream"`
			Usage      json.RawMessage `json:"usage"`
			Outcome    any
		}
		Requests []struct {
			Request any
			Path    string
			Op      string
			Value   any
		}
	}
}

type caseTool struct {
	Name, Description string
	Schema            json.RawMessage
	Behavior          struct {
		Returns   *string
		ReturnsBy map[string]map[string]string `json:"returns_by"`
		Error     *string
	}
}

// TestCases plays the handed cases against the adapter alone, in the folder that
// FIDUCIAL_CASES names. The whole cases, engine and all, run in internal/acceptance.
func TestCases(t *testing.T) {
	dir := os.Getenv("FIDUCIAL_CASES")
	if dir == "" {
		t.Skip("FIDUCIAL_CASES names no folder of wire cases")
	}
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases in %s: %v", dir, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var c wireCase
		if err := json.Unmarshal(data, &c); err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		if c.Provider.Kind == "anthropic" || c.Provider.Wire == "anthropic" {
			t.Run(c.ID, func(t *testing.T) { playCase(t, &c) })
		}
	}
}

func playCase(t *testing.T, c *wireCase) {
	var bodies []string
	n := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		bodies = append(bodies, string(body))
		if n >= len(c.Replies) {
			w.WriteHeader(http.StatusTeapot)
			return
		}
		reply := c.Replies[n]
		n++
		text := reply.Body
		if reply.Template {
			text = fillNames(t, text, body)
		}
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.WriteHeader(reply.Status)
		step := max(len(text), 1)
		if reply.ChunkEvery > 0 {
			step = reply.ChunkEvery
		}
		for part := range slices.Chunk([]byte(text), step) {
			w.Write(part)
			w.(http.Flusher).Flush()
		}
	}))
	defer srv.Close()
	opts := []anthropic.Option{anthropic.WithBaseURL(srv.URL), anthropic.WithAPIKey("test-key")}
	if !c.Run.Options.Cache {
		opts = append(opts, anthropic.WithoutCache())
	}
	client, err := anthropic.New(c.Provider.Model, opts...)
	if err != nil {
		t.Fatal(err)
	}

	req := &llm.Request{System: c.Run.System, CacheAnchor: -1, Settings: llm.Settings{
		MaxTokens: c.Run.Options.MaxOutputTokens, ThinkingBudget: c.Run.Options.ThinkingBudget,
	}}
	tools := map[string]caseTool{}
	for _, tl := range c.Run.Tools {
		tools[tl.Name] = tl
		schema := tl.Schema
		if string(schema) == "null" {
			schema = nil
		}
		req.Tools = append(req.Tools, llm.Tool{Name: tl.Name, Description: tl.Description, Schema: schema})
	}
	slices.SortFunc(req.Tools, func(a, b llm.Tool) int { return strings.Compare(a.Name, b.Name) })

	var calls []llm.Call
	step := 0
	for _, st := range c.Run.Steps {
		if st.Do != "start" && st.Do != "user" && st.Do != "resume" {
			continue
		}
		want := c.Expect.Steps[step]
		step++
		if st.Do != "resume" {
			req.Messages = append(req.Messages, llm.UserText(st.Input))
		}
		var stream string
		var usage llm.Usage
		var last llm.Message
		for {
			reply, text, err := stepOnce(t, client, req)
			if e, ok := errors.AsType[*llm.Error](err); ok && e.Retryable() && n < len(c.Replies) {
				continue
			} else if err != nil {
				t.Fatalf("request %d: %v", len(bodies), err)
			}
			stream += text
			usage = usage.Plus(reply.Usage)
			last = reply.Message
			req.Messages = append(req.Messages, last)
			if last.CountCalls() == 0 {
				break
			}
			var results []llm.Result
			for _, call := range last.Calls() {
				calls = append(calls, call)
				results = append(results, answer(t, tools, call, st.Interrupt != nil))
			}
			req.Messages = append(req.Messages, llm.ToolResults(results...))
			if outcome, ok := want.Outcome.(string); ok && outcome != "completed" {
				break // the engine would end the step here
			}
		}
		if want.FinalText != nil && last.Text() != *want.FinalText {
			t.Errorf("step %d: text %q, want %q", step, last.Text(), *want.FinalText)
		}
		if want.TextStream != nil && stream != *want.TextStream {
			t.Errorf("step %d: stream %q, want %q", step, stream, *want.TextStream)
		}
		if s, ok := want.StopReason.(string); ok && s != "step_limit" && string(last.Stop) != s {
			t.Errorf("step %d: stop %q, want %q", step, last.Stop, s)
		}
		if len(want.Usage) > 0 {
			checkUsage(t, usage, want.Usage)
		}
	}
	if n != len(c.Replies) {
		t.Errorf("%d requests, want %d", n, len(c.Replies))
	}
	if len(c.Expect.ToolCalls) > 0 && len(calls) != len(c.Expect.ToolCalls) {
		t.Fatalf("calls %+v, want %+v", calls, c.Expect.ToolCalls)
	}
	for i, want := range c.Expect.ToolCalls {
		var got, args any
		json.Unmarshal([]byte(calls[i].Args), &got)
		json.Unmarshal(want.Args, &args)
		if calls[i].Name != want.Name || !cmp.Equal(got, args) || want.ID != "" && want.ID != calls[i].ID {
			t.Errorf("call %d: got %+v, want %+v", i, calls[i], want)
		}
	}
	checkRequests(t, c, bodies)
	for i, b := range bodies {
		checkHistory(t, i+1, b)
		if i > 0 && len(withoutMarks(b)) > len(withoutMarks(bodies[i-1])) {
			checkPrefix(t, bodies[i-1], b)
		}
	}
}

func stepOnce(t *testing.T, client llm.Client, req *llm.Request) (collect.Reply, string, error) {
	var c collect.Collector
	text := ""
	kinds := map[int]llm.BlockKind{}
	for ev, err := range client.Stream(t.Context(), req) {
		if err != nil {
			return collect.Reply{}, "", err
		}
		switch ev := ev.(type) {
		case llm.BlockStart:
			kinds[ev.Index] = ev.Kind
		case llm.BlockDelta:
			if kinds[ev.Index] == llm.BlockText {
				text += ev.Text
			}
		case llm.BlockStop, llm.UsageReport, llm.Finish, llm.Unhandled, llm.Failover:
		}
		if err := c.Add(ev); err != nil {
			return collect.Reply{}, "", err
		}
	}
	reply, err := c.Reply()
	return reply, text, err
}

func answer(t *testing.T, tools map[string]caseTool, call llm.Call, cancelled bool) llm.Result {
	r := llm.Result{CallID: call.ID, Name: call.Name, Status: llm.StatusSuccess}
	b := tools[call.Name].Behavior
	switch {
	case cancelled:
		r.Status, r.Summary = llm.StatusCancelled, "cancelled"
	case b.Returns != nil:
		r.Summary = *b.Returns
	case b.Error != nil:
		r.Status, r.Summary = llm.StatusError, *b.Error
	default:
		var args map[string]any
		if err := json.Unmarshal([]byte(call.Args), &args); err != nil && call.Args != "" {
			t.Errorf("arguments %q: %v", call.Args, err)
		}
		for key, texts := range b.ReturnsBy {
			value, _ := args[key].(string)
			r.Summary = texts[value]
		}
	}
	return r
}

func fillNames(t *testing.T, text string, body []byte) string {
	var req struct {
		Tools []struct{ Name, Description string }
	}
	if err := json.Unmarshal(body, &req); err != nil {
		t.Error(err)
	}
	for _, tl := range req.Tools {
		text = strings.ReplaceAll(text, "{{wire_name:"+tl.Description+"}}", tl.Name)
	}
	return text
}

func checkUsage(t *testing.T, u llm.Usage, raw json.RawMessage) {
	var want map[string]int64
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	have := map[string]llm.Count{
		"input_total": u.Input, "output_total": u.Output,
		"cache_read": u.CacheRead, "cache_write": u.CacheWrite, "reasoning": u.Reasoning,
	}
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if c := have[key]; !c.Known() || c.Value() != want[key] {
			t.Errorf("usage %s: got %+v, want %d", key, c, want[key])
		}
	}
}

// checkRequests holds the bodies against the assertions of simple form.
func checkRequests(t *testing.T, c *wireCase, bodies []string) {
	for _, a := range c.Expect.Requests {
		n, ok := a.Request.(float64)
		if !ok || int(n) > len(bodies) {
			continue
		}
		body := bodies[int(n)-1]
		switch a.Op {
		case "raw_contains":
			if text, _ := a.Value.(string); !strings.Contains(body, text) {
				t.Errorf("request %v lacks %q", n, text)
			}
		case "same_body":
			if m, _ := a.Value.(float64); body != bodies[int(m)-1] {
				t.Errorf("request %v differs from %v", n, m)
			}
		case "eq", "len_eq":
			if strings.ContainsAny(a.Path, "*?") {
				continue
			}
			got := at(t, body, a.Path)
			if list, ok := got.([]any); ok && a.Op == "len_eq" {
				got = float64(len(list))
			}
			if diff := cmp.Diff(a.Value, got); diff != "" {
				t.Errorf("request %v, %s: (-want +got)\n%s", n, a.Path, diff)
			}
		}
	}
}

// at follows a path such as messages[1].content[0].text.
func at(t *testing.T, body, path string) any {
	var v any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatal(err)
	}
	for _, key := range strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(".[]", r) }) {
		switch x := v.(type) {
		case map[string]any:
			v = x[key]
		case []any:
			var i int
			if err := json.Unmarshal([]byte(key), &i); err != nil || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}
