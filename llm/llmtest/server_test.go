// SPDX-License-Identifier: Apache-2.0

package llmtest

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
)

func post(t *testing.T, url, body string) (int, string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Anthropic-Version", "2023-06-01")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

var paths = map[Wire]string{
	WireAnthropic: "/v1/messages", WireOpenAIChat: "/v1/chat/completions", WireOpenAIResponses: "/v1/responses",
	WireGemini: "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse",
}

// conversations are one history, with a call and its result, in all formats.
var conversations = map[Wire]string{
	WireAnthropic: `{"model":"m","max_tokens":9,"stream":true,"system":"s","tools":[{"name":"f","input_schema":{"type":"object"}}],"messages":[
		{"role":"user","content":"go"},
		{"role":"assistant","content":[{"type":"tool_use","id":"c1","name":"f","input":{"a":1.0}}]},
		{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":"r"},{"type":"text","text":"on"}]}]}`,
	WireOpenAIChat: `{"model":"m","stream":true,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object"}}}],"messages":[
		{"role":"system","content":"s"},{"role":"user","content":"go"},
		{"role":"assistant","content":null,"tool_calls":[{"id":"c1","type":"function","function":{"name":"f","arguments":"{\"a\":1.0}"}}]},
		{"role":"tool","tool_call_id":"c1","content":"r"},{"role":"user","content":"on"}]}`,
	WireOpenAIResponses: `{"model":"m","stream":true,"store":false,"instructions":"s","tools":[{"type":"function","name":"f","parameters":{"type":"object"}}],"input":[
		{"role":"user","content":"go"},
		{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\":1.0}"},
		{"type":"function_call_output","call_id":"c1","output":"r"},{"role":"user","content":"on"}]}`,
	WireGemini: `{"systemInstruction":{"parts":[{"text":"s"}]},"tools":[{"functionDeclarations":[{"name":"f","parameters":{"type":"OBJECT"}}]}],"contents":[
		{"role":"user","parts":[{"text":"go"}]},
		{"role":"model","parts":[{"functionCall":{"name":"f","args":{"a":1.0}},"thoughtSignature":"x"}]},
		{"role":"user","parts":[{"functionResponse":{"name":"f","response":{"output":"r"}}},{"text":"on"}]}]}`,
}

// All formats say the same to the one who answers.
func TestServerReads(t *testing.T) {
	for w, body := range conversations {
		t.Run(string(w), func(t *testing.T) {
			brain := NewScript(Say("hello"))
			srv := NewServer(brain)
			defer srv.Close()
			status, answer := post(t, srv.URL+paths[w], body)
			if status != http.StatusOK || !strings.Contains(answer, "hello") {
				t.Fatalf("got %d %s", status, answer)
			}
			req := brain.Requests()[0]
			if req.System != "s" || len(req.Tools) != 1 || req.Tools[0].Name != "f" {
				t.Errorf("read %+v", req)
			}
			var said []string
			for _, m := range req.Messages {
				for _, p := range m.Parts {
					switch p := p.(type) {
					case llm.Text:
						said = append(said, p.Text)
					case llm.Call:
						said = append(said, p.Name+p.Args)
					case llm.Result:
						said = append(said, p.Name+" "+p.Body())
					case llm.Image, llm.Thinking, llm.System:
					}
				}
			}
			if got, want := strings.Join(said, "|"), `go|f{"a":1.0}|f r|on`; got != want {
				t.Errorf("read %s, want %s", got, want)
			}
			if e := srv.Exchanges()[0]; e.Wire != w || e.Status != http.StatusOK || string(e.Body) != body {
				t.Errorf("kept %+v", e)
			}
		})
	}
}

// What the providers refuse, the server refuses.
func TestServerRefuses(t *testing.T) {
	for _, tt := range []struct {
		name     string
		wire     Wire
		old, new string
		want     string
	}{
		{"result missing", WireAnthropic, `{"type":"tool_result","tool_use_id":"c1","content":"r"},`, ``, "without `tool_result` blocks"},
		{"result without call", WireAnthropic, `"tool_use_id":"c1"`, `"tool_use_id":"c2"`, "unexpected `tool_use_id`"},
		{"text before result", WireAnthropic, `[{"type":"tool_result"`, `[{"type":"text","text":"x"},{"type":"tool_result"`, "must come first"},
		{"empty text", WireAnthropic, `"text":"on"`, `"text":""`, "must be non-empty"},
		{"blank text", WireAnthropic, `"text":"on"`, `"text":" \n"`, "non-whitespace"},
		{"odd tool name", WireAnthropic, `"name":"f","input_schema"`, `"name":"a.b","input_schema"`, "should match pattern"},
		{"no limit", WireAnthropic, `"max_tokens":9,`, ``, "max_tokens"},
		{"string input", WireAnthropic, `{"a":1.0}`, `"{}"`, "valid dictionary"},
		{"forged thinking", WireAnthropic, `[{"type":"tool_use"`, `[{"type":"thinking","thinking":"x","signature":"y"},{"type":"tool_use"`, "Invalid `signature`"},
		{"thinking at the end", WireAnthropic, `{"role":"assistant",`, `{"role":"assistant","content":[{"type":"thinking","thinking":"x","signature":"` + signatureOf("x") + `"}]},{"role":"assistant",`, "final block"},
		{"schema without type", WireAnthropic, `"input_schema":{"type":"object"`, `"input_schema":{"typ":"object"`, "Field required"},
		{"schema with alternatives", WireAnthropic, `"input_schema":{"type":"object"`, `"input_schema":{"anyOf":[],"type":"object"`, "at the top level"},
		{"lone surrogate", WireAnthropic, `"text":"on"`, `"text":"\ud83d"`, "surrogate"},
		{"error without words", WireAnthropic, `"content":"r"`, `"content":"","is_error":true`, "cannot be empty"},
		{"turn without thinking", WireAnthropic, `"content":"r"},{"type":"text","text":"on"}]}]`, `"content":"r"}]}],"thinking":{"type":"enabled","budget_tokens":5}`, "Expected `thinking`"},
		{"five marks", WireAnthropic, `{"type":"text","text":"on"}`, strings.Repeat(`{"type":"text","text":"on","cache_control":{"type":"ephemeral"}},`, 4) + `{"type":"text","text":"on","cache_control":{"type":"ephemeral"}}`, "Found 5"},
		{"result missing", WireOpenAIChat, `{"role":"tool","tool_call_id":"c1","content":"r"},`, ``, "did not have response messages: c1"},
		{"result without call", WireOpenAIChat, `"tool_call_id":"c1"`, `"tool_call_id":"c2"`, "must be a response to a preceding"},
		{"bare null", WireOpenAIChat, `{"role":"user","content":"on"}`, `{"role":"assistant","content":null}`, "got null"},
		{"cut arguments", WireOpenAIChat, `"{\"a\":1.0}"`, `"{\"a\""`, "valid JSON object"},
		{"result missing", WireOpenAIResponses, `{"type":"function_call_output","call_id":"c1","output":"r"},`, ``, "No tool output found"},
		{"call missing", WireOpenAIResponses, `{"type":"function_call","call_id":"c1","name":"f","arguments":"{\"a\":1.0}"},`, ``, "No tool call found"},
		{"bare reasoning", WireOpenAIResponses, `{"role":"user","content":"go"}`, `{"type":"reasoning","id":"rs_1","summary":[]},{"role":"user","content":"go"}`, "not persisted"},
		{"response missing", WireGemini, `{"functionResponse":{"name":"f","response":{"output":"r"}}},`, ``, "number of function response parts"},
		{"no signature", WireGemini, `,"thoughtSignature":"x"`, ``, "thought_signature"},
		{"schema field", WireGemini, `{"type":"OBJECT"}`, `{"type":"OBJECT","additionalProperties":false}`, "Unknown name"},
	} {
		t.Run(string(tt.wire)+" "+tt.name, func(t *testing.T) {
			srv := NewServer(NewScript(Say("no")))
			defer srv.Close()
			body := strings.Replace(conversations[tt.wire], tt.old, tt.new, 1)
			if body == conversations[tt.wire] {
				t.Fatal("the change found no place")
			}
			status, answer := post(t, srv.URL+paths[tt.wire], body)
			var text struct{ Error struct{ Message string } }
			if err := json.Unmarshal([]byte(answer), &text); err != nil {
				t.Fatal(err)
			}
			if status != http.StatusBadRequest || !strings.Contains(text.Error.Message, tt.want) {
				t.Errorf("got %d %s, want 400 with %q", status, answer, tt.want)
			}
		})
	}
}

// The rules of Anthropic's prompt cache.
func TestPromptCache(t *testing.T) {
	block := func(s string, mark bool) promptBlock {
		return promptBlock{[]byte(s + strings.Repeat("x", 400-len(s))), mark}
	}
	now := time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC)
	var c promptCache
	use := func(name string, wantRead, wantWritten int64, at time.Time, blocks ...promptBlock) {
		t.Helper()
		if read, written := c.use("m", blocks, at); read != wantRead || written != wantWritten {
			t.Errorf("%s: read %d, wrote %d; want %d, %d", name, read, written, wantRead, wantWritten)
		}
	}
	use("first", 0, 200, now, block("a", true), block("b", true), block("c", false))
	use("the same", 200, 0, now, block("a", true), block("b", true), block("c", false))
	use("longer", 200, 100, now, block("a", true), block("b", false), block("c", true))
	use("another start", 0, 100, now, block("z", true), block("b", false))
	use("only where a mark was", 100, 200, now, block("a", false), block("y", false), block("c", true))
	long := []promptBlock{block("a", false), block("b", false), block("c", false)}
	for range 18 {
		long = append(long, block("d", false))
	}
	long[20].mark = true
	use("looked back as far as it goes", 300, 1800, now, long...)
	long = append(long[:3:3], make([]promptBlock, 40)...)
	for i := range long[3:] {
		long[3+i] = block("e", i == 39)
	}
	use("too far back", 0, 4300, now, long...)
	use("run out", 0, 200, now.Add(6*time.Minute), block("a", true), block("b", true), block("c", false))
}

func TestTotals(t *testing.T) {
	tot := Totals{Input: 1000, CacheRead: 600, CacheWrite: 200, Best: 800}
	if got, want := tot.Cost(), 200+250.0+60; got != want {
		t.Errorf("cost %v, want %v", got, want)
	}
	if got := tot.HitRate(); got != 0.75 {
		t.Errorf("hit rate %v", got)
	}
}

func TestRecord(t *testing.T) {
	srv := NewServer(NewScript(Say("hello secret-key-1 \U0001F600")))
	defer srv.Close()
	dir := t.TempDir()
	ask := func(c *http.Client) string {
		t.Helper()
		answer, err := tryBody(t, c, srv.URL, conversations[WireAnthropic])
		if err != nil {
			t.Fatal(err)
		}
		return answer
	}
	versioned := roundTrip(func(r *http.Request) (*http.Response, error) {
		r.Header.Set("Anthropic-Version", "2023-06-01")
		return http.DefaultTransport.RoundTrip(r)
	})
	first := ask(&http.Client{Transport: NewRecorder(versioned, dir, "secret-key-1")})
	data, err := os.ReadFile(dir + "/001.json")
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(data), "secret-key-1") {
		t.Errorf("the key was kept: %s", data)
	}
	again, err := NewReplayer(dir, "secret-key-1")
	if err != nil {
		t.Fatal(err)
	}
	replay := &http.Client{Transport: again}
	if got, want := ask(replay), strings.ReplaceAll(first, "secret-key-1", "[masked]"); got != want || again.Left() != 0 {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if _, err := try(t, replay, srv.URL); llm.ClassOf(err) != llm.ClassInvalidRequest || !strings.Contains(err.Error(), "request 2, and 1 were recorded") {
		t.Errorf("one too many: %v", err)
	}
	other, err := NewReplayer(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := try(t, &http.Client{Transport: other}, srv.URL); llm.ClassOf(err) != llm.ClassInvalidRequest || !strings.Contains(err.Error(), "body differs") {
		t.Errorf("another body: %v", err)
	}
}

func try(t *testing.T, c *http.Client, url string) (string, error) { return tryBody(t, c, url, "{}") }

func tryBody(t *testing.T, c *http.Client, url, body string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"/v1/messages?key=secret-key-1", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return string(data), err
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }
