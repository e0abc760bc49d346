// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/provider/internal/replytest"
	"github.com/fiducial-dev/fiducial/provider/openai"
)

// lines are a request's messages, one JSON text each.
func jsonLines(t *testing.T, list any) []string {
	t.Helper()
	var out []string
	items, ok := list.([]any)
	if !ok {
		t.Fatalf("got %v, want a list", list)
	}
	for _, m := range items {
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, string(data))
	}
	return out
}

var pixel = llm.Image{Media: "image/png", Data: []byte("png")}

func TestE230_ChatSettings(t *testing.T) {
	half, topK := 0.5, 3
	req := replytest.Ask("go")
	req.System, req.CacheKey = "Be brief.", "k1"
	req.Tools = []llm.Tool{{Name: "read"}}
	req.Settings = llm.Settings{MaxTokens: 9, Temperature: &half, TopP: &half, TopK: &topK, Stop: []string{"END"}, Effort: "high", Sequential: true}
	got := sent(t, chat(openai.OpenAI), req)
	want := map[string]any{
		"model": "m", "stream": true, "stream_options": map[string]any{"include_usage": true},
		"max_completion_tokens": json.Number("9"), "temperature": json.Number("0.5"), "top_p": json.Number("0.5"),
		"stop": []any{"END"}, "reasoning_effort": "high", "prompt_cache_key": "k1", "parallel_tool_calls": false,
		"tools": []any{map[string]any{"type": "function", "function": map[string]any{
			"name": "read", "parameters": map[string]any{"type": "object", "properties": map[string]any{}},
		}}},
		"messages": []any{
			map[string]any{"role": "system", "content": "Be brief."},
			map[string]any{"role": "user", "content": "go"},
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("body (-want +got):\n%s", diff)
	}
	for _, tt := range []struct {
		flavor openai.Flavor
		opts   []openai.Option
		has    string
		lacks  string
	}{
		{openai.OpenAI, []openai.Option{openai.WithLegacyMaxTokens()}, "max_tokens", "max_completion_tokens"},
		{openai.Ollama, nil, "max_tokens", "parallel_tool_calls"},
		{openai.Mistral, nil, "max_tokens", "stream_options"},
		{openai.OpenRouter, nil, "reasoning", "reasoning_effort"},
		{openai.Generic, []openai.Option{openai.WithUnset(openai.UnsetTemperature)}, "top_p", "temperature"},
	} {
		got := sent(t, chat(tt.flavor, tt.opts...), req)
		if _, ok := got[tt.has]; !ok {
			t.Errorf("%s: %s is not sent", tt.flavor, tt.has)
		}
		if _, ok := got[tt.lacks]; ok {
			t.Errorf("%s: %s is sent", tt.flavor, tt.lacks)
		}
	}
}

// TestE232_Images: they follow all results, in one user message.
func TestE232_Images(t *testing.T) {
	req := replytest.Ask("go")
	req.Messages = append(req.Messages,
		llm.AssistantCalls(llm.Call{ID: "a", Name: "shot"}, llm.Call{ID: "b", Name: "shot"}),
		llm.ToolResults(
			llm.Result{CallID: "a", Name: "shot", Status: llm.StatusSuccess, Images: []llm.Image{pixel, pixel}},
			llm.Result{CallID: "b", Name: "shot", Status: llm.StatusSuccess, Summary: "none"},
		),
		llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: "and this?"}, pixel}})
	got := jsonLines(t, sent(t, chat(openai.OpenAI), req)["messages"])
	want := []string{
		`{"content":"go","role":"user"}`,
		`{"content":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"shot"},"id":"a","type":"function"},` +
			`{"function":{"arguments":"{}","name":"shot"},"id":"b","type":"function"}]}`,
		`{"content":"(images that follow below: 2)","role":"tool","tool_call_id":"a"}`,
		`{"content":"none","role":"tool","tool_call_id":"b"}`,
		`{"content":[{"text":"Images from the result of shot (a):","type":"text"},{"image_url":{"url":"data:image/png;base64,cG5n"},"type":"image_url"},` +
			`{"image_url":{"url":"data:image/png;base64,cG5n"},"type":"image_url"}],"role":"user"}`,
		`{"content":[{"text":"and this?","type":"text"},{"image_url":{"url":"data:image/png;base64,cG5n"},"type":"image_url"}],"role":"user"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	blind := jsonLines(t, sent(t, chat(openai.OpenAI, openai.WithoutVision()), req)["messages"])
	want = []string{
		want[0], want[1],
		`{"content":"(images left out, since this model takes none: 2)","role":"tool","tool_call_id":"a"}`,
		want[3],
		`{"content":"and this?\n\n(images left out, since this model takes none: 1)","role":"user"}`,
	}
	if diff := cmp.Diff(want, blind); diff != "" {
		t.Errorf("without vision (-want +got):\n%s", diff)
	}
}

// TestB126_EmptyReplies: a reply of nothing is left out, one of calls alone has no
// bare null where the server wants text.
func TestB126_EmptyReplies(t *testing.T) {
	req := replytest.Ask("go")
	req.Messages = append(req.Messages,
		llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Thinking{Text: "hm"}}, Stop: llm.StopEndTurn},
		llm.UserText("well?"),
		llm.AssistantCalls(llm.Call{ID: "a", Name: "read", Args: "{oops"}),
		llm.ToolResults(llm.Result{CallID: "a", Name: "read", Status: llm.StatusError, Summary: "bad arguments"}))
	got := jsonLines(t, sent(t, chat(openai.Generic), req)["messages"])
	want := []string{
		`{"content":"go","role":"user"}`,
		`{"content":"well?","role":"user"}`,
		`{"content":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"read"},"id":"a","type":"function"}]}`,
		`{"content":"bad arguments","role":"tool","tool_call_id":"a"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// again sends a reply back to the client that made it and returns the messages.
func again(t *testing.T, flavor openai.Flavor, stream string, opts ...openai.Option) []string {
	t.Helper()
	e := replytest.Serve(t, 200, "text/event-stream", stream)
	c, err := openai.NewChat("m", append([]openai.Option{openai.WithBaseURL(e.URL), openai.WithFlavor(flavor)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	replytest.Again(t, c)
	var body struct{ Messages []json.RawMessage }
	if err := json.Unmarshal(e.Body, &body); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, m := range body.Messages {
		out = append(out, string(m))
	}
	return out
}

// TestReasoningGoesBack: to the vendors that want it, in their form.
func TestReasoningGoesBack(t *testing.T) {
	call := delta(`{"tool_calls":[{"index":0,"id":"call_1","function":{"name":"read","arguments":"{}"}}]}`)
	thought := delta(`{"reasoning_content":"Hm."}`)
	calls := `"tool_calls":[{"id":"call_1","type":"function","function":{"name":"read","arguments":"{}"}}]}`
	for name, tt := range map[string]struct {
		flavor openai.Flavor
		stream string
		opts   []openai.Option
		want   string
	}{
		"DeepSeek, with calls": {
			openai.DeepSeek, replytest.Stream(thought, call, ends("tool_calls")), nil,
			`{"role":"assistant","content":null,"reasoning_content":"Hm.",` + calls,
		},
		"DeepSeek, calls without a thought": {
			openai.DeepSeek, replytest.Stream(call, ends("tool_calls")), nil,
			`{"role":"assistant","content":null,"reasoning_content":"",` + calls,
		},
		"DeepSeek, without calls": {
			openai.DeepSeek, replytest.Stream(thought, delta(`{"content":"So."}`), ends("stop")), nil,
			`{"role":"assistant","content":"So."}`,
		},
		"a server that does not want it": {
			openai.VLLM, replytest.Stream(thought, call, ends("tool_calls")), nil,
			`{"role":"assistant","content":null,` + calls,
		},
		"a server that is said to want it": {
			openai.VLLM, replytest.Stream(thought, call, ends("tool_calls")),
			[]openai.Option{openai.WithReasoningField("reasoning")},
			`{"role":"assistant","content":null,"reasoning":"Hm.",` + calls,
		},
		"OpenRouter, joined and with its signature": {
			openai.OpenRouter,
			replytest.Stream(
				delta(`{"reasoning":"H","reasoning_details":[{"type":"reasoning.text","index":0,"text":"H","format":"x"}]}`),
				delta(`{"reasoning":"m.","reasoning_details":[{"type":"reasoning.text","index":0,"text":"m.","signature":"sig"}]}`),
				delta(`{"reasoning_details":[{"type":"reasoning.encrypted","index":1,"data":"abc"}]}`),
				call, ends("tool_calls"),
			), nil,
			`{"role":"assistant","content":null,"reasoning_details":[{"format":"x","index":0,"signature":"sig","text":"Hm.","type":"reasoning.text"},` +
				`{"data":"abc","index":1,"type":"reasoning.encrypted"}],` + calls,
		},
	} {
		t.Run(name, func(t *testing.T) {
			if got := again(t, tt.flavor, tt.stream, tt.opts...)[1]; got != tt.want {
				t.Errorf("got  %s\nwant %s", got, tt.want)
			}
		})
	}
}

// TestB128_VendorFields: extra fields of calls and of text go back unchanged, and
// to nobody else.
func TestB128_VendorFields(t *testing.T) {
	call := delta(`{"tool_calls":[{"index":0,"id":"c","type":"function","extra_content":{"google":{"thought_signature":"<sig>"}},` +
		`"function":{"name":"read","arguments":"{\"n\":1.0}","thoughts":1.50}}]}`)
	got := again(t, openai.Generic, replytest.Stream(call, ends("tool_calls")))[1]
	want := `{"role":"assistant","content":null,"tool_calls":[{"id":"c","type":"function","function":{"name":"read","arguments":"{\"n\":1.0}","thoughts":1.50},` +
		`"extra_content":{"google":{"thought_signature":"<sig>"}}}]}`
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	text := delta(`{"content":"So.","extra_content":{"google":{"thought_signature":"s2"}}}`)
	got = again(t, openai.Generic, replytest.Stream(text, ends("stop")))[1]
	if want := `{"role":"assistant","content":"So.","extra_content":{"google":{"thought_signature":"s2"}}}`; got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	r, err := chatReply(t, openai.Groq, replytest.Stream(call, ends("tool_calls")))
	if err != nil {
		t.Fatal(err)
	}
	req := replytest.Ask("go")
	req.Messages = append(req.Messages, r.Message, llm.ToolResults(llm.Result{CallID: "c", Name: "read"}))
	if got := fmt.Sprint(sent(t, chat(openai.Generic), req)); strings.Contains(got, "sig") {
		t.Errorf("Groq's data went to another server: %s", got)
	}
}

// TestMistralShapes: nine-letter ids, and no user message after a tool message.
func TestMistralShapes(t *testing.T) {
	req := replytest.Ask("go")
	req.Messages = append(req.Messages,
		llm.AssistantCalls(llm.Call{ID: "call_1", Name: "read"}, llm.Call{ID: "abcDEF123", Name: "read"}),
		llm.ToolResults(
			llm.Result{CallID: "call_1", Name: "read", Summary: "one", Images: []llm.Image{pixel}},
			llm.Result{CallID: "abcDEF123", Name: "read", Summary: "two"},
		),
		llm.UserText("stop"))
	got := jsonLines(t, sent(t, chat(openai.Mistral), req)["messages"])
	want := []string{
		`{"content":"go","role":"user"}`,
		`{"content":null,"role":"assistant","tool_calls":[{"function":{"arguments":"{}","name":"read"},"id":"74196fe72","type":"function"},` +
			`{"function":{"arguments":"{}","name":"read"},"id":"abcDEF123","type":"function"}]}`,
		`{"content":"one\n(images that follow below: 1)","role":"tool","tool_call_id":"74196fe72"}`,
		`{"content":"two","role":"tool","tool_call_id":"abcDEF123"}`,
		`{"content":"OK.","role":"assistant"}`,
		`{"content":[{"text":"Images from the result of read (74196fe72):","type":"text"},{"image_url":{"url":"data:image/png;base64,cG5n"},"type":"image_url"}],"role":"user"}`,
		`{"content":"stop","role":"user"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// TestToolSchemas: strict only where the schema is closed and complete; digits,
// the order of keys and plain < > & stay.
func TestToolSchemas(t *testing.T) {
	closed := `{"type":"object","properties":{"b":{"type":"string"},"a":{"type":["number","null"],"description":"x \u003c y"}},` +
		`"required":["b","a"],"additionalProperties":false}`
	for _, tt := range []struct {
		schema, want string
		strict       bool
	}{
		{closed, strings.ReplaceAll(closed, `\u003c`, "<"), true},
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":[],"additionalProperties":false}`, "", false},
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}`, "", false},
		{`{"type":"object","properties":{"a":{"oneOf":[]}},"required":["a"],"additionalProperties":false}`, "", false},
		{`{"type":"object","properties":{"a":{"type":"array","items":{"type":"object","properties":{}}}},"required":["a"],"additionalProperties":false}`, "", false},
		{`{ "type" : "object", "x" : 1.50 }`, `{"type":"object","x":1.50,"properties":{}}`, false},
		{`{"properties":null,"required":null,"description":"d"}`, `{"type":"object","description":"d","properties":{}}`, false},
		{
			`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"oneOf":[{"properties":{"b":{"type":"integer"}},"required":["b"]},{"$ref":"#/x"}]}`,
			`{"type":"object","required":["a"],"properties":{"a":{"type":"string"},"b":{"type":"integer"}}}`, false,
		},
		{`{"type":"object","properties":{"a":{"type":"string","pattern":"\\u003c"}}}`, "", false},
	} {
		if tt.want == "" {
			tt.want = tt.schema
		}
		req := replytest.Ask("go")
		req.Tools = []llm.Tool{{Name: "t", Schema: json.RawMessage(tt.schema)}}
		e := replytest.Serve(t, 400, "application/json", `{}`)
		c, err := openai.NewChat("m", openai.WithBaseURL(e.URL), openai.WithFlavor(openai.OpenAI))
		if err != nil {
			t.Fatal(err)
		}
		_, _ = collect.Stream(t.Context(), c, req)
		if got := string(e.Body); !strings.Contains(got, `"parameters":`+tt.want) || strings.Contains(got, `"strict":true`) != tt.strict {
			t.Errorf("%s: got %s", tt.schema, got)
		}
	}
}

func TestE234_ChatCheck(t *testing.T) {
	half, topK := 0.5, 3
	set := llm.Settings{TopK: &topK, Temperature: &half, ThinkingBudget: 100, Effort: "high", Sequential: true}
	c, err := openai.NewChat("m", openai.WithFlavor(openai.LMStudio), openai.WithBaseURL("http://localhost:1234"), openai.WithUnset(openai.UnsetTemperature))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.Check(set); len(got) != 4 {
		t.Errorf("got %q, want temperature, top-k, budget and calls one at a time", got)
	}
	if got := c.Check(llm.Settings{MaxTokens: 5, Effort: "low"}); got != nil {
		t.Errorf("got %q, want none", got)
	}
}
