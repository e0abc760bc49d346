// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go/v2/option"
	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/llm/wire"
	"github.com/fiducial-dev/fiducial/provider/anthropic"
	"github.com/fiducial-dev/fiducial/provider/internal/replytest"
)

const stream = "text/event-stream; charset=utf-8"

const (
	startText  = `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`
	helloDelta = `{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"hello"}}`
	stop0      = `{"type":"content_block_stop","index":0}`
	endTurn    = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}`
	theEnd     = `{"type":"message_stop"}`
)

var whole = replytest.Stream(startText, helloDelta, stop0, endTurn, theEnd)

func ask(messages ...llm.Message) *llm.Request {
	if len(messages) == 0 {
		messages = []llm.Message{llm.UserText("go")}
	}
	return &llm.Request{Messages: messages, CacheAnchor: -1}
}

func read(t *testing.T, body string) (collect.Reply, error) {
	t.Helper()
	e := replytest.Serve(t, 200, stream, body)
	return collect.Stream(t.Context(), newClient(t, e.URL), ask())
}

func TestReplies(t *testing.T) {
	finish := func(reason string) string {
		return `{"type":"message_delta","delta":{"stop_reason":"` + reason + `"},"usage":{}}`
	}
	for _, tt := range []struct {
		name, body string
		want       llm.Message
	}{
		{"text", whole, llm.AssistantText("hello")},
		{"unterminated last event", strings.TrimSuffix(whole, "\n\n"), llm.AssistantText("hello")},
		{"ping, unknown events and [DONE]", replytest.Stream(`{"type":"ping"}`, `{"type":"new_thing","x":1}`, startText, helloDelta, stop0, endTurn) + "data: [DONE]\n\n" + replytest.Stream(theEnd), llm.AssistantText("hello")},
		{"whole block at its start", replytest.Stream(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"hello"}}`, stop0, endTurn, theEnd), llm.AssistantText("hello")},
		{"E-162: a delta opens its block", replytest.Stream(helloDelta, stop0, endTurn, theEnd), llm.AssistantText("hello")},
		{"the end closes what is open", replytest.Stream(startText, helloDelta, endTurn, theEnd), llm.AssistantText("hello")},
		{"a second stop is ignored", replytest.Stream(startText, helloDelta, stop0, stop0, endTurn, theEnd), llm.AssistantText("hello")},
		{
			"input at the start",
			replytest.Stream(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{"x": 1.0}}}`, stop0, finish("tool_use"), theEnd),
			llm.AssistantCalls(llm.Call{ID: "a", Name: "f", Args: `{"x": 1.0}`}),
		},
		{
			"no input at all stays empty",
			replytest.Stream(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}`, stop0, finish("tool_use"), theEnd),
			llm.AssistantCalls(llm.Call{ID: "a", Name: "f"}),
		},
		{
			"cut input stays as it is",
			replytest.Stream(`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"f","input":{}}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"x\":"}}`, stop0, finish("max_tokens"), theEnd),
			llm.Message{Role: llm.RoleAssistant, Stop: llm.StopMaxTokens, Parts: []llm.Part{llm.Call{ID: "a", Name: "f", Args: `{"x":`}}},
		},
		{
			"a signature in pieces",
			replytest.Stream(`{"type":"content_block_start","index":0,"content_block":{"type":"thinking","thinking":"","signature":""}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"c2"}}`,
				`{"type":"content_block_delta","index":0,"delta":{"type":"signature_delta","signature":"ln"}}`, stop0, endTurn, theEnd),
			llm.Message{Role: llm.RoleAssistant, Stop: llm.StopEndTurn, Parts: []llm.Part{
				llm.Thinking{Opaque: llm.Opaque{Vendor: "anthropic", Data: json.RawMessage(`{"signature":"c2ln"}`)}},
			}},
		},
		{"pause", replytest.Stream(startText, helloDelta, stop0, finish("pause_turn"), theEnd), llm.Message{Role: llm.RoleAssistant, Stop: llm.StopPause, Parts: []llm.Part{llm.Text{Text: "hello"}}}},
		{"refusal", replytest.Stream(finish("refusal"), theEnd), llm.Message{Role: llm.RoleAssistant, Stop: llm.StopRefusal}},
		{"stop sequence", replytest.Stream(finish("stop_sequence"), theEnd), llm.Message{Role: llm.RoleAssistant, Stop: llm.StopSequence}},
		{"end of the window", replytest.Stream(finish("model_context_window_exceeded"), theEnd), llm.Message{Role: llm.RoleAssistant, Stop: llm.StopContextWindow}},
		{"a word of tomorrow", replytest.Stream(finish("bored"), theEnd), llm.Message{Role: llm.RoleAssistant, Stop: llm.StopUnknown}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := read(t, tt.body)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tt.want, got.Message); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
		})
	}
}

func TestBrokenReplies(t *testing.T) {
	fault := func(typ, message string) string {
		return replytest.Stream(startText, helloDelta, `{"type":"error","error":{"type":"`+typ+`","message":"`+message+`"}}`)
	}
	for _, tt := range []struct {
		name, body string
		want       llm.Class
	}{
		{"nothing", "", llm.ClassStreamIncomplete},
		{"no message_stop", replytest.Stream(startText, helloDelta, stop0, endTurn), llm.ClassStreamIncomplete},
		{"cut inside the last event", replytest.Stream(startText) + `data: {"type":"content_bl`, llm.ClassStreamIncomplete},
		{"not JSON", "data: {oops}\n\n" + whole, llm.ClassMalformedStream},
		{"a block that is none", replytest.Stream(`{"type":"content_block_start","index":0,"content_block":"x"}`), llm.ClassMalformedStream},
		{"overloaded", fault("overloaded_error", "Overloaded"), llm.ClassOverloaded},
		{"rate limit", fault("rate_limit_error", "slow"), llm.ClassRateLimit},
		{"server", fault("api_error", "Internal server error"), llm.ClassServer},
		{"overflow", fault("invalid_request_error", "prompt is too long: 2 tokens > 1 maximum"), llm.ClassContextOverflow},
		{"other refusal", fault("invalid_request_error", "bad"), llm.ClassInvalidRequest},
		{"a gateway's own words", replytest.Stream(startText) + "event: error\ndata: upstream timed out\n\n", llm.ClassServer},
		{"error without a body", replytest.Stream(`{"type":"error"}`), llm.ClassUnknown},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := read(t, tt.body)
			if got := llm.ClassOf(err); got != tt.want {
				t.Errorf("got %v, want class %s", err, tt.want)
			}
		})
	}
}

func TestStatusErrors(t *testing.T) {
	for _, tt := range []struct {
		name, code, message string
		status              int
		want                llm.Class
	}{
		{"overflow of tokens", "invalid_request_error", "prompt is too long: 215000 tokens > 200000 maximum", 400, llm.ClassContextOverflow},
		{"overflow with the reply", "invalid_request_error", "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000", 400, llm.ClassContextOverflow},
		{"overflow of bytes", "request_too_large", "Request exceeds the maximum size", 413, llm.ClassContextOverflow},
		{"empty account", "invalid_request_error", "Your credit balance is too low to access the Anthropic API.", 400, llm.ClassQuota},
		{"other 400", "invalid_request_error", "messages: text content blocks must be non-empty", 400, llm.ClassInvalidRequest},
		{"overloaded", "overloaded_error", "Overloaded", 529, llm.ClassOverloaded},
		{"a proxy's page", "", "", 502, llm.ClassServer},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c, srv := scripted(t, nil, llmtest.Fail(&llm.Error{Class: llm.ClassUnknown, Status: tt.status, Code: tt.code, Message: tt.message}))
			_, err := collect.Stream(t.Context(), c, ask())
			e, _ := errors.AsType[*llm.Error](err)
			if e == nil || e.Class != tt.want || e.Status != tt.status || len(srv.Exchanges()) != 1 {
				t.Errorf("got %+v after %d requests, want %s", e, len(srv.Exchanges()), tt.want)
			}
		})
	}
}

// A connection that breaks while an error's body is read keeps the status.
func TestErrorBodyCut(t *testing.T) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		w.WriteHeader(http.StatusTooManyRequests)
		io.WriteString(w, `{"type":"error"`)
	}))
	defer srv.Close()
	_, err := collect.Stream(t.Context(), newClient(t, srv.URL), ask())
	if e, _ := errors.AsType[*llm.Error](err); e == nil || e.Class != llm.ClassRateLimit || e.Status != 429 {
		t.Errorf("got %v, want a rate limit with status 429", err)
	}
}

// Redacted thinking, and blocks of the vendor's own, come back as they came.
func TestVendorBlocks(t *testing.T) {
	server := `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{}}`
	e := replytest.Serve(t, 200, stream, replytest.Stream(
		`{"type":"content_block_start","index":0,"content_block":{"type":"redacted_thinking","data":"ZGF0YQ=="}}`, stop0,
		`{"type":"content_block_start","index":1,"content_block":`+server+`}`,
		`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"query\":\"x\"}"}}`,
		`{"type":"content_block_stop","index":1}`,
		`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"found"}}`,
		`{"type":"content_block_stop","index":2}`, endTurn, theEnd))
	c := newClient(t, e.URL)
	first, err := collect.Stream(t.Context(), c, ask())
	if err != nil {
		t.Fatal(err)
	}
	if got := first.Message.Text(); got != "found" {
		t.Errorf("text %q", got)
	}
	if _, err := collect.Stream(t.Context(), c, ask(llm.UserText("go"), first.Message, llm.UserText("on"))); err != nil {
		t.Fatal(err)
	}
	body := string(e.Body)
	for _, want := range []string{
		`{"type":"redacted_thinking","data":"ZGF0YQ=="}`, `"input":{"query":"x"}`, `"type":"server_tool_use"`, `{"type":"text","text":"found"}`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("%s is not in %s", want, body)
		}
	}
}

// E-171, E-172, B-125, AC-15.15 (B-144).
func TestUsage(t *testing.T) {
	for _, tt := range []struct {
		name        string
		start, last string
		want        llm.Usage
	}{
		{"absent parts count 0", `{"input_tokens":25,"output_tokens":1}`, `{"output_tokens":15}`, llm.Usage{Input: llm.N(25), CacheRead: llm.N(0), CacheWrite: llm.N(0), Output: llm.N(15)}},
		{"null parts count 0", `{"input_tokens":25,"cache_read_input_tokens":null}`, `{"output_tokens":15}`, llm.Usage{Input: llm.N(25), CacheRead: llm.N(0), CacheWrite: llm.N(0), Output: llm.N(15)}},
		{"cumulative", `{"input_tokens":9,"cache_creation_input_tokens":20,"cache_read_input_tokens":30,"output_tokens":4}`, `{"input_tokens":9,"cache_creation_input_tokens":20,"cache_read_input_tokens":30,"output_tokens":64,"output_tokens_details":{"thinking_tokens":40}}`, llm.Usage{Input: llm.N(59), CacheRead: llm.N(30), CacheWrite: llm.N(20), Output: llm.N(64), Reasoning: llm.N(40)}},
		{"AC-15.15", `{"input_tokens":10,"cache_read_input_tokens":200,"cache_creation_input_tokens":30}`, `{"output_tokens":1}`, llm.Usage{Input: llm.N(240), CacheRead: llm.N(200), CacheWrite: llm.N(30), Output: llm.N(1)}},
		{"a later report without the cache", `{"input_tokens":9,"cache_read_input_tokens":30}`, `{"input_tokens":9,"output_tokens":4}`, llm.Usage{Input: llm.N(39), CacheRead: llm.N(30), CacheWrite: llm.N(0), Output: llm.N(4)}},
		{"only output", `null`, `{"output_tokens":3}`, llm.Usage{Output: llm.N(3)}},
		{"none", `null`, `null`, llm.Usage{}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := read(t, replytest.Stream(`{"type":"message_start","message":{"usage":`+tt.start+`}}`, startText, helloDelta, stop0,
				`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":`+tt.last+`}`, theEnd))
			if err != nil || got.Usage != tt.want {
				t.Errorf("got %+v, %v; want %+v", got.Usage, err, tt.want)
			}
		})
	}
}

func TestWholeReply(t *testing.T) {
	e := replytest.Serve(t, 200, "application/json", `{"type":"message","role":"assistant","content":[
		{"type":"thinking","thinking":"hm","signature":"c2ln"},{"type":"text","text":"hello"},
		{"type":"tool_use","id":"a","name":"f","input":{"x":1.0}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"output_tokens":4}}`)
	got, err := collect.Stream(t.Context(), newClient(t, e.URL, anthropic.WithoutStream()), ask())
	if err != nil {
		t.Fatal(err)
	}
	want := llm.Message{Role: llm.RoleAssistant, Stop: llm.StopToolUse, Parts: []llm.Part{
		llm.Thinking{Text: "hm", Opaque: llm.Opaque{Vendor: "anthropic", Data: json.RawMessage(`{"signature":"c2ln"}`)}},
		llm.Text{Text: "hello"},
		llm.Call{ID: "a", Name: "f", Args: `{"x":1.0}`},
	}}
	if diff := cmp.Diff(want, got.Message); diff != "" || got.Usage.Output.Value() != 4 {
		t.Errorf("%+v (-want +got)\n%s", got.Usage, diff)
	}
	if body := string(e.Body); strings.Contains(body, `"stream"`) {
		t.Error("a stream was asked for")
	}
	for label, body := range map[string]string{"application/json": "\r\n" + whole, stream: `{"type":"message","content":[{"type":"text","text":"hello"}],"stop_reason":"end_turn"}`} {
		e := replytest.Serve(t, 200, label, body)
		if got, err := collect.Stream(t.Context(), newClient(t, e.URL), ask()); err != nil || got.Message.Text() != "hello" {
			t.Errorf("mislabelled as %s: got %+v, %v", label, got, err)
		}
	}
	e = replytest.Serve(t, 200, "application/json", `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
	if _, err := collect.Stream(t.Context(), newClient(t, e.URL), ask()); llm.ClassOf(err) != llm.ClassOverloaded {
		t.Errorf("got %v, want overloaded", err)
	}
}

// Keep-alives do not count as progress, and nobody waits for ever.
func TestTimeouts(t *testing.T) {
	for _, tt := range []struct {
		name  string
		first string
		every string
		want  llm.Class
	}{
		{"comments for ever", replytest.Stream(startText, helloDelta), ": keepalive\n\n", llm.ClassStreamIdle},
		{"pings for ever", replytest.Stream(startText, helloDelta), replytest.Stream(`{"type":"ping"}`), llm.ClassStreamIdle},
		{"no event at all", "", ": keepalive\n\n", llm.ClassTimeout},
	} {
		t.Run(tt.name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				w.Header().Set("Content-Type", stream)
				io.WriteString(w, tt.first)
				for r.Context().Err() == nil {
					io.WriteString(w, tt.every)
					w.(http.Flusher).Flush()
					time.Sleep(5 * time.Millisecond)
				}
			}))
			defer srv.Close()
			c := newClient(t, srv.URL, anthropic.WithTimeouts(wire.Timeouts{First: 60 * time.Millisecond, Idle: 100 * time.Millisecond}))
			if _, err := collect.Stream(t.Context(), c, ask()); llm.ClassOf(err) != tt.want {
				t.Errorf("got %v, want %s", err, tt.want)
			}
		})
	}
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
	}))
	defer silent.Close()
	c := newClient(t, silent.URL, anthropic.WithTimeouts(wire.Timeouts{Open: 50 * time.Millisecond}))
	if _, err := collect.Stream(t.Context(), c, ask()); llm.ClassOf(err) != llm.ClassTimeout {
		t.Errorf("no response: got %v, want timeout", err)
	}
}

func TestHeaders(t *testing.T) {
	e := replytest.Serve(t, 200, stream, whole)
	t.Setenv("ANTHROPIC_API_KEY", "from-the-environment")
	t.Setenv("ANTHROPIC_AUTH_TOKEN", "from-the-environment")
	c := newClient(t, e.URL+"/v1/", anthropic.WithBeta("one", "two"))
	if _, err := collect.Stream(t.Context(), c, ask()); err != nil {
		t.Fatal(err)
	}
	h := e.Head
	for name, want := range map[string]string{
		"X-Api-Key": llmtest.SuiteKey, "Authorization": "", "Anthropic-Version": "2023-06-01", "Anthropic-Beta": "one,two",
		"Content-Type": "application/json",
	} {
		if got := strings.Join(h.Values(name), ","); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	if !strings.Contains(h.Get("Accept"), "text/event-stream") {
		t.Errorf("Accept: %q", h.Get("Accept"))
	}
	// E-261, E-262: a local server without a key.
	c, err := anthropic.New("qwen3", anthropic.WithBaseURL(e.URL))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := collect.Stream(t.Context(), c, ask()); err != nil {
		t.Fatal(err)
	}
	if h := e.Head; h.Get("X-Api-Key") != "" || h.Get("Authorization") != "" {
		t.Errorf("a key came from nowhere: %v", h)
	}
}

// Options of the SDK bring authorisation and address for other clouds.
func TestSDKOptions(t *testing.T) {
	e := replytest.Serve(t, 200, stream, whole)
	c, err := anthropic.New("m", anthropic.WithSDK(option.WithAuthToken("token-of-a-cloud"), option.WithBaseURL(e.URL), option.WithMaxRetries(5)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := collect.Stream(t.Context(), c, ask()); err != nil {
		t.Fatal(err)
	}
	if h := e.Head; h.Get("Authorization") != "Bearer token-of-a-cloud" || h.Get("X-Api-Key") != "" {
		t.Errorf("sent %v", h)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, tt := range map[string]struct {
		model string
		opts  []anthropic.Option
		want  string
	}{
		"B-129 no key":       {"m", nil, `no API key for api.anthropic.com: pass anthropic.WithAPIKey(os.Getenv("ANTHROPIC_API_KEY"));`},
		"B-129 an empty key": {"m", []anthropic.Option{anthropic.WithAPIKey("")}, "anthropic.WithAPIKey was given an empty one; is ANTHROPIC_API_KEY set?"},
		"no model":           {"", []anthropic.Option{anthropic.WithAPIKey("k")}, "model"},
		"E-215 key with end": {"m", []anthropic.Option{anthropic.WithAPIKey("sk\n")}, "no header may have"},
		"address":            {"m", []anthropic.Option{anthropic.WithBaseURL("ftp://x")}, "base URL"},
		"limit":              {"m", []anthropic.Option{anthropic.WithAPIKey("k"), anthropic.WithMaxTokens(-1)}, "max tokens"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := anthropic.New(tt.model, tt.opts...)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want an error about %q", err, tt.want)
			}
		})
	}
}

func TestSettings(t *testing.T) {
	temp, topK := 0.5, 7
	settings := llm.Settings{Temperature: &temp, TopK: &topK, Stop: []string{"END"}, Sequential: true, Effort: "high"}
	send := func(s llm.Settings, opts ...anthropic.Option) map[string]any {
		t.Helper()
		e := replytest.Serve(t, 200, stream, whole)
		req := ask()
		req.Settings, req.Tools = s, []llm.Tool{{Name: "f"}}
		if _, err := collect.Stream(t.Context(), newClient(t, e.URL, opts...), req); err != nil {
			t.Fatal(err)
		}
		body := string(e.Body)
		var fields map[string]any
		if err := json.Unmarshal([]byte(body), &fields); err != nil {
			t.Fatal(err)
		}
		for _, key := range []string{"model", "stream", "messages", "tools"} {
			delete(fields, key)
		}
		return fields
	}
	config := map[string]any{"effort": "high"}
	choice := map[string]any{"type": "auto", "disable_parallel_tool_use": true}
	end := []any{"END"}
	if diff := cmp.Diff(map[string]any{"max_tokens": 8192.0, "temperature": 0.5, "top_k": 7.0, "stop_sequences": end, "tool_choice": choice, "output_config": config}, send(settings)); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if diff := cmp.Diff(map[string]any{"max_tokens": 8192.0, "stop_sequences": end, "tool_choice": choice, "output_config": config}, send(settings, anthropic.WithVersion("2026-10-21"))); diff != "" {
		t.Errorf("without sampling (-want +got)\n%s", diff)
	}
	budget := llm.Settings{ThinkingBudget: 2048, Temperature: &temp}
	enabled := map[string]any{"type": "enabled", "budget_tokens": 2048.0}
	if diff := cmp.Diff(map[string]any{"max_tokens": 10240.0, "thinking": enabled}, send(budget)); diff != "" {
		t.Errorf("thinking (-want +got)\n%s", diff)
	}
	dynamic := map[string]any{"type": "adaptive"}
	if diff := cmp.Diff(map[string]any{"max_tokens": 100.0, "thinking": dynamic}, send(llm.Settings{ThinkingBudget: -1, MaxTokens: 100})); diff != "" {
		t.Errorf("dynamic thinking (-want +got)\n%s", diff)
	}
	c := newClient(t, "http://localhost", anthropic.WithVersion("2026-10-21"))
	if got := c.Check(llm.Settings{Temperature: &temp, ThinkingBudget: 500, MaxTokens: 400}); len(got) != 3 {
		t.Errorf("E-89: got %q, want three warnings", got)
	}
	if got := newClient(t, "http://localhost").Check(settings); len(got) != 0 {
		t.Errorf("E-89: got %q, want none", got)
	}
}

func scripted(t testing.TB, opts []anthropic.Option, turns ...llmtest.Turn) (*anthropic.Client, *llmtest.Server) {
	t.Helper()
	srv := llmtest.NewServer(llmtest.NewScript(turns...))
	t.Cleanup(srv.Close)
	return newClient(t, srv.URL, opts...), srv
}

// What the API would refuse for ever is not sent: a message that ends in thinking,
// and a tool whose schema has no object at its top.
func TestThinkingAloneAndOddSchemas(t *testing.T) {
	alone := llm.Message{Role: llm.RoleAssistant, Stop: llm.StopEndTurn, Parts: []llm.Part{llm.Thinking{Text: "Hm."}}}
	c, srv := scripted(t, nil, llmtest.Reply(alone), llmtest.Say("Hi."))
	req := ask(llm.UserText("a"))
	for i, schema := range []string{`{"anyOf":[{"properties":{"a":{}}}]}`, `{"$ref":"#/$defs/A","$defs":{"A":{"type":"object"}}}`, `{}`} {
		req.Tools = append(req.Tools, llm.Tool{Name: fmt.Sprint("t", i), Schema: json.RawMessage(schema)})
	}
	for _, next := range []string{"b", "c"} {
		reply, err := collect.Stream(t.Context(), c, req)
		if err != nil {
			t.Fatal(err)
		}
		req.Messages = append(req.Messages, reply.Message, llm.UserText(next))
	}
	body := string(srv.Exchanges()[1].Body)
	if strings.Contains(body, "Hm.") || !strings.Contains(body, `"text":"b"`) {
		t.Errorf("got %s", body)
	}
}
