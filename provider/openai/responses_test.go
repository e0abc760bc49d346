// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/provider/internal/replytest"
	"github.com/fiducial-dev/fiducial/provider/openai"
)

func responsesReply(t *testing.T, data ...string) (collect.Reply, error) {
	t.Helper()
	c, err := openai.NewResponses("gpt-5", openai.WithBaseURL(replytest.Serve(t, 200, "text/event-stream", replytest.Stream(data...)).URL), openai.WithFlavor(openai.OpenAI))
	if err != nil {
		t.Fatal(err)
	}
	return collect.Stream(t.Context(), c, replytest.Ask("go"))
}

const (
	created   = `{"type":"response.created","response":{"status":"in_progress"}}`
	completed = `{"type":"response.completed","response":{"status":"completed","output":[],"usage":{"input_tokens":9,` +
		`"input_tokens_details":{"cached_tokens":4},"output_tokens":5,"output_tokens_details":{"reasoning_tokens":2}}}}`
)

// item is an event of an item at an index.
func item(what string, index, body string) string {
	return `{"type":"response.output_item.` + what + `","output_index":` + index + `,"item":` + body + `}`
}

func TestE242_ResponsesBody(t *testing.T) {
	half, topK := 0.5, 3
	req := replytest.Ask("go")
	req.System, req.CacheKey = "Be brief.", "k1"
	req.Tools = []llm.Tool{{Name: "read", Description: "Read", Schema: json.RawMessage(`{"type":"object"}`)}}
	req.Settings = llm.Settings{MaxTokens: 9, Temperature: &half, TopK: &topK, Effort: "low", Sequential: true}
	got := sent(t, responses("gpt-5"), req)
	want := map[string]any{
		"model": "gpt-5", "stream": true, "store": false, "instructions": "Be brief.", "prompt_cache_key": "k1",
		"include": []any{"reasoning.encrypted_content"}, "reasoning": map[string]any{"effort": "low", "summary": "auto"},
		"max_output_tokens": json.Number("9"), "temperature": json.Number("0.5"),
		"tool_choice": "auto", "parallel_tool_calls": false,
		"tools": []any{map[string]any{
			"type": "function", "name": "read", "description": "Read", "strict": false,
			"parameters": map[string]any{"type": "object", "properties": map[string]any{}},
		}},
		"input": []any{map[string]any{
			"type": "message", "role": "user", "content": []any{map[string]any{"type": "input_text", "text": "go"}},
		}},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	plain := sent(t, responses("gpt-4.1", openai.WithUnset(openai.UnsetMaxTokens|openai.UnsetTemperature)), req)
	for _, key := range []string{"include", "reasoning", "max_output_tokens", "temperature"} {
		if _, ok := plain[key]; ok {
			t.Errorf("%s is sent to a model that refuses it", key)
		}
	}
	c, err := openai.NewResponses("gpt-4.1", openai.WithAPIKey("k"), openai.WithUnset(openai.UnsetMaxTokens|openai.UnsetTemperature))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Check(req.Settings); len(got) != 4 {
		t.Errorf("warnings %q, want limit, temperature, top-k and effort", got)
	}
}

// TestE247_DoneCounts: the final value is the value.
func TestE247_DoneCounts(t *testing.T) {
	text := func(s string) string {
		return `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"` + s + `"}`
	}
	done := func(s string) string {
		return `{"type":"response.output_text.done","output_index":0,"content_index":0,"text":"` + s + `"}`
	}
	message := func(s string) string {
		return item("done", "0", `{"type":"message","content":[{"type":"output_text","text":"`+s+`"}]}`)
	}
	call := func(args string) string {
		return `{"type":"function_call","call_id":"c","name":"read","arguments":"` + args + `"}`
	}
	args := func(what, s string) string {
		key := map[string]string{"delta": "delta", "done": "arguments"}[what]
		return `{"type":"response.function_call_arguments.` + what + `","output_index":0,"` + key + `":"` + s + `"}`
	}
	for name, tt := range map[string]struct {
		data []string
		want string // the text, or a call's arguments
		code string // of the error
	}{
		"deltas and all":           {[]string{text("a"), text("b"), done("ab"), message("ab")}, "ab", ""},
		"done alone":               {[]string{done("ab"), message("ab")}, "ab", ""},
		"item alone":               {[]string{message("ab")}, "ab", ""},
		"the last delta missing":   {[]string{text("a"), done("ab"), message("ab")}, "ab", ""},
		"done differs":             {[]string{text("ax"), done("ab")}, "", "done_differs"},
		"item differs":             {[]string{text("a"), done("a"), message("b")}, "", "done_differs"},
		"two final values":         {[]string{done("a"), message("ab")}, "", "done_differs"},
		"delta after done":         {[]string{done("ab"), text("c")}, "", "delta_after_done"},
		"delta after item":         {[]string{message("ab"), text("c")}, "", "delta_after_done"},
		"no value":                 {[]string{text("a"), `{"type":"response.output_text.done","output_index":0,"content_index":0}`}, "", "no_value"},
		"another kind":             {[]string{text("a"), args("delta", "{}")}, "", "kind_differs"},
		"call, deltas":             {[]string{item("added", "0", call("")), args("delta", "{"), args("delta", "}"), args("done", "{}"), item("done", "0", call("{}"))}, "{}", ""},
		"call, item alone":         {[]string{item("done", "0", call("{}"))}, "{}", ""},
		"E-250, call without name": {[]string{args("delta", "{"), args("delta", "}"), args("done", "{}"), item("done", "0", call("{}"))}, "{}", ""},
		"call differs":             {[]string{item("added", "0", call("")), args("delta", "{x"), args("done", "{}")}, "", "done_differs"},
		"call goes on":             {[]string{item("added", "0", call("")), args("done", "{}"), args("delta", "x")}, "", "delta_after_done"},
		"a wild index":             {[]string{`{"type":"response.output_text.delta","output_index":-1,"delta":"x"}`}, "", "index"},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := responsesReply(t, append(append([]string{created}, tt.data...), completed)...)
			if tt.code != "" {
				if e := replytest.ErrorOf(t, err); e.Class != llm.ClassMalformedStream || e.Code != tt.code {
					t.Errorf("got %+v, want code %s", e, tt.code)
				}
				return
			}
			got := r.Message.Text()
			for _, c := range r.Message.Calls() {
				got += c.Args
			}
			if err != nil || got != tt.want {
				t.Errorf("got %q, %v, want %q", got, err, tt.want)
			}
		})
	}
}

func TestE245_ResponsesEnds(t *testing.T) {
	text := `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"hi"}`
	incomplete := func(reason string) string {
		return `{"type":"response.incomplete","response":{"status":"incomplete","output":[],"incomplete_details":{"reason":"` + reason + `"}}}`
	}
	for _, tt := range []struct {
		last string
		stop llm.StopReason
		err  llm.Class
	}{
		{completed, llm.StopEndTurn, ""},
		{incomplete("max_output_tokens"), llm.StopMaxTokens, ""},
		{incomplete("content_filter"), llm.StopContentFilter, ""},
		{incomplete("something"), llm.StopIncomplete, ""},
		{`{"type":"response.failed","response":{"status":"failed","error":{"code":"server_error","message":"oh"}}}`, "", llm.ClassServer},
		{`{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"oh"}}}`, "", llm.ClassRateLimit},
		{`{"type":"response.failed","response":{"status":"failed","error":{"code":"insufficient_quota","message":"oh"}}}`, "", llm.ClassQuota},
		{`{"type":"response.failed","response":{"status":"failed","error":{"code":"context_length_exceeded","message":"oh"}}}`, "", llm.ClassContextOverflow},
		{`{"type":"response.failed","response":{"status":"failed","error":{"code":"invalid_prompt","message":"oh"}}}`, "", llm.ClassInvalidRequest},
		{`{"type":"response.failed","response":{"status":"failed"}}`, "", llm.ClassServer},
		{`{"type":"error","code":"server_error","message":"flat"}`, "", llm.ClassServer},                          // E-251
		{`{"type":"error","error":{"type":"server_error","code":"x","message":"nested"}}`, "", llm.ClassServer},   // E-251
		{`{"type":"error","error":{"type":"invalid_request_error","message":"no"}}`, "", llm.ClassInvalidRequest}, // E-251
		{"[DONE]", "", llm.ClassStreamIncomplete},
	} {
		r, err := responsesReply(t, created, text, tt.last)
		if got := llm.ClassOf(err); tt.err != "" && got != tt.err {
			t.Errorf("%s: got %v, want class %s", tt.last, err, tt.err)
		}
		if tt.err == "" && (err != nil || r.Message.Stop != tt.stop || r.Message.Text() != "hi") {
			t.Errorf("%s: got %+v, %v, want %s", tt.last, r.Message, err, tt.stop)
		}
	}
	r, err := responsesReply(t, created, text, completed)
	want := llm.Usage{Input: llm.N(9), Output: llm.N(5), Total: llm.N(14), CacheRead: llm.N(4), Reasoning: llm.N(2)}
	if err != nil || r.Usage != want {
		t.Errorf("usage: got %+v, %v, want %+v", r.Usage, err, want)
	}
}

// TestE243_ReasoningGoesBack: with what the server needs, before the item that it
// led to, without the server's ids, and not at all where nothing follows it.
func TestE243_ReasoningGoesBack(t *testing.T) {
	reasoning := `{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"One."},{"type":"summary_text","text":"Two."}],"encrypted_content":"<enc>"}`
	e := replytest.Serve(t, 200, "text/event-stream", replytest.Stream(
		created,
		item("added", "0", `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"part"}`),
		`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":0,"delta":"One."}`,
		`{"type":"response.reasoning_summary_text.delta","output_index":0,"summary_index":1,"delta":"Two."}`,
		item("done", "0", reasoning),
		item("done", "1", `{"type":"message","id":"msg_1","phase":"commentary","content":[{"type":"output_text","text":"Look."}]}`),
		item("done", "2", `{"type":"reasoning","id":"rs_2","summary":[],"encrypted_content":"e2"}`),
		item("done", "3", `{"type":"function_call","id":"fc_1","call_id":"c","name":"read","arguments":"{\"n\": 1.0}"}`),
		item("done", "4", `{"type":"reasoning","id":"rs_3","summary":[],"encrypted_content":"e3"}`),
		completed))
	c, err := openai.NewResponses("gpt-5", openai.WithBaseURL(e.URL), openai.WithFlavor(openai.OpenAI))
	if err != nil {
		t.Fatal(err)
	}
	req := replytest.Ask("go")
	r, err := collect.Stream(t.Context(), c, req)
	if err != nil {
		t.Fatal(err)
	}
	if th, ok := r.Message.Parts[0].(llm.Thinking); !ok || th.Text != "One.\n\nTwo." {
		t.Errorf("got %+v, want the summary", r.Message.Parts[0])
	}
	req.Messages = append(req.Messages, r.Message, llm.ToolResults(llm.Result{
		CallID: "c", Name: "read", Status: llm.StatusSuccess, Summary: "ok", Images: []llm.Image{pixel},
	}))
	if _, err := collect.Stream(t.Context(), c, req); err != nil {
		t.Fatal(err)
	}
	var body struct{ Input []json.RawMessage }
	if err := json.Unmarshal(e.Body, &body); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range body.Input[1:] {
		got = append(got, string(m))
	}
	want := []string{
		`{"type":"reasoning","summary":[{"type":"summary_text","text":"One."},{"type":"summary_text","text":"Two."}],"encrypted_content":"<enc>"}`,
		`{"type":"message","role":"assistant","phase":"commentary","content":[{"type":"output_text","text":"Look."}]}`,
		`{"type":"reasoning","summary":[],"encrypted_content":"e2"}`,
		`{"type":"function_call","call_id":"c","name":"read","arguments":"{\"n\": 1.0}"}`,
		`{"type":"function_call_output","call_id":"c","output":[{"type":"input_text","text":"ok"},{"type":"input_image","image_url":"data:image/png;base64,cG5n"}]}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("input (-want +got):\n%s", diff)
	}
	other, err := openai.NewResponses("gpt-5", openai.WithBaseURL(e.URL), openai.WithFlavor(openai.Azure))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := collect.Stream(t.Context(), other, req); err != nil {
		t.Fatal(err)
	}
	if got := string(e.Body); strings.Contains(got, "enc>") || strings.Contains(got, "phase") {
		t.Errorf("another vendor got the data: %s", got)
	}
}

// TestResponsesWhole: a reply that is no stream, and one whose items come only at
// the end.
func TestResponsesWhole(t *testing.T) {
	body := `{"status":"completed","output":[{"type":"reasoning","id":"r","summary":[]},` +
		`{"type":"message","content":[{"type":"output_text","text":"hi"},{"type":"refusal","refusal":" no"}]}],"usage":{"input_tokens":1,"output_tokens":1}}`
	c, err := openai.NewResponses("gpt-5", openai.WithBaseURL(replytest.Serve(t, 200, "application/json", body).URL), openai.WithoutStream())
	if err != nil {
		t.Fatal(err)
	}
	r, err := collect.Stream(t.Context(), c, replytest.Ask("go"))
	if err != nil || r.Message.Text() != "hi no" || r.Message.Stop != llm.StopRefusal || r.Usage.Total.Value() != 2 {
		t.Errorf("got %+v, %+v, %v", r.Message, r.Usage, err)
	}
	r, err = responsesReply(t, created, `{"type":"response.completed","response":`+body+`}`)
	if err != nil || r.Message.Text() != "hi no" {
		t.Errorf("got %+v, %v", r.Message, err)
	}
}
