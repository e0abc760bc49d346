// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/provider/gemini"
	"github.com/fiducial-dev/fiducial/provider/internal/replytest"
)

// parts is a chunk of parts.
func parts(p string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[` + p + `]},"index":0}]}`
}

// ends is a chunk with a finish reason.
func ends(reason string) string {
	return `{"candidates":[{"finishReason":"` + reason + `","index":0}]}`
}

func client(t *testing.T, model, base string, opts ...gemini.Option) *gemini.Client {
	t.Helper()
	c, err := gemini.New(model, append([]gemini.Option{gemini.WithBaseURL(base)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func reply(t *testing.T, data ...string) (collect.Reply, error) {
	t.Helper()
	e := replytest.Serve(t, 200, "text/event-stream", replytest.Stream(data...))
	return collect.Stream(t.Context(), client(t, "gemini-3-pro", e.URL), replytest.Ask("go"))
}

// again sends a reply back and returns what stands in for it.
func again(t *testing.T, model string, data ...string) []string {
	t.Helper()
	e := replytest.Serve(t, 200, "text/event-stream", replytest.Stream(data...))
	c := client(t, model, e.URL)
	replytest.Again(t, c)
	return contents(t, e.Body)[1:]
}

func contents(t *testing.T, body []byte) []string {
	t.Helper()
	var in struct{ Contents []json.RawMessage }
	if err := json.Unmarshal(body, &in); err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, c := range in.Contents {
		out = append(out, string(c))
	}
	return out
}

// TestE258_SignaturesGoBack: on the part that they came with, never on another.
func TestE258_SignaturesGoBack(t *testing.T) {
	call := func(args, rest string) string {
		return `{"functionCall":{"name":"read","args":` + args + `}` + rest + `}`
	}
	for name, tt := range map[string]struct {
		model string
		data  []string
		want  string // the model's content
	}{
		"on a call, digits and order kept": {
			"gemini-3-pro",
			[]string{parts(call(`{"z":1.0,"a":12345678901234567890}`, `,"thoughtSignature":"s1"`) + "," + call(`{}`, ""))},
			`{"role":"model","parts":[{"functionCall":{"name":"read","args":{"z":1.0,"a":12345678901234567890}},"thoughtSignature":"s1"},` +
				`{"functionCall":{"name":"read","args":{}}}]}`,
		},
		"on text, at the end and empty": {
			"gemini-3-pro",
			[]string{parts(`{"text":"Hel"}`), parts(`{"text":"lo"}`), parts(`{"text":"","thoughtSignature":"s1"}`)},
			`{"role":"model","parts":[{"text":"Hello","thoughtSignature":"s1"}]}`,
		},
		"on a part of the text": {
			"gemini-3-pro",
			[]string{parts(`{"text":"Hel"}`), parts(`{"text":"lo","thoughtSignature":"s1"}`), parts(`{"text":"!"}`)},
			`{"role":"model","parts":[{"text":"Hel"},{"text":"lo","thoughtSignature":"s1"},{"text":"!"}]}`,
		},
		"on thinking; unsigned thinking stays here": {
			"gemini-3-pro",
			[]string{
				parts(`{"text":"Hm.","thought":true}`), parts(`{"text":"So.","thought":true,"thoughtSignature":"s1"}`),
				parts(`{"text":"Hello"}`),
			},
			`{"role":"model","parts":[{"text":"So.","thought":true,"thoughtSignature":"s1"},{"text":"Hello"}]}`,
		},
		"alone": {
			"gemini-3-pro",
			[]string{parts(`{"thoughtSignature":"s1"}`)},
			`{"role":"model","parts":[{"text":"","thoughtSignature":"s1"}]}`,
		},
		"none from an older model": {
			"gemini-2.5-flash",
			[]string{parts(call(`{}`, ""))},
			`{"role":"model","parts":[{"functionCall":{"name":"read","args":{}}}]}`,
		},
		"the server's own id": {
			"gemini-2.5-flash",
			[]string{parts(`{"functionCall":{"id":"f1","name":"read","args":{}}}`)},
			`{"role":"model","parts":[{"functionCall":{"id":"f1","name":"read","args":{}}}]}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := again(t, tt.model, append(tt.data, ends("STOP"))...)
			if got[0] != tt.want {
				t.Errorf("got  %s\nwant %s", got[0], tt.want)
			}
			if strings.Contains(tt.want, `"id":"f1"`) && !strings.Contains(got[1], `"functionResponse":{"id":"f1"`) {
				t.Errorf("the id does not go back: %s", got[1])
			}
		})
	}
}

// TestForeignCalls: a newer model insists on a signature; another vendor's is not
// given to it.
func TestForeignCalls(t *testing.T) {
	e := replytest.Serve(t, 400, "application/json", `{}`)
	req := replytest.Ask("go")
	req.Messages = append(req.Messages,
		llm.AssistantCalls(
			llm.Call{ID: "a", Name: "my.read", Args: "{oops", Opaque: llm.Opaque{Vendor: "openai", Data: json.RawMessage(`{"thoughtSignature":"x"}`)}},
			llm.Call{ID: "b", Name: "read", Args: `{ "z":1, "a":2 }`},
		),
		llm.ToolResults(
			llm.Result{CallID: "a", Name: "my.read", Status: llm.StatusError, Summary: "bad"},
			llm.Result{CallID: "b", Name: "read", Status: llm.StatusSuccess, Summary: "ok", Images: []llm.Image{{Media: "image/png", Data: []byte("png")}}},
		),
		llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: " \n"}}, Stop: llm.StopEndTurn},
		llm.UserText("go on"))
	for model, want := range map[string][]string{
		"gemini-3-pro": {
			`{"role":"user","parts":[{"text":"go"}]}`,
			`{"role":"model","parts":[{"functionCall":{"name":"my_read_ebc573e27c","args":{}},"thoughtSignature":"skip_thought_signature_validator"},` +
				`{"functionCall":{"name":"read","args":{ "z":1, "a":2 }}}]}`,
			`{"role":"user","parts":[{"functionResponse":{"name":"my_read_ebc573e27c","response":{"error":"bad"}}},` +
				`{"functionResponse":{"name":"read","response":{"output":"ok"},"parts":[{"inlineData":{"mimeType":"image/png","data":"cG5n"}}]}}]}`,
			`{"role":"user","parts":[{"text":"go on"}]}`,
		},
		"gemini-2.5-pro": {
			`{"role":"user","parts":[{"text":"go"}]}`,
			`{"role":"model","parts":[{"functionCall":{"name":"my_read_ebc573e27c","args":{}}},{"functionCall":{"name":"read","args":{ "z":1, "a":2 }}}]}`,
			`{"role":"user","parts":[{"functionResponse":{"name":"my_read_ebc573e27c","response":{"error":"bad"}}},` +
				`{"functionResponse":{"name":"read","response":{"output":"ok"}}},` +
				`{"text":"Images from the result of read:"},{"inlineData":{"mimeType":"image/png","data":"cG5n"}}]}`,
			`{"role":"user","parts":[{"text":"go on"}]}`,
		},
	} {
		_, _ = collect.Stream(t.Context(), client(t, model, e.URL), req)
		if diff := cmp.Diff(want, contents(t, e.Body)); diff != "" {
			t.Errorf("%s: contents (-want +got):\n%s", model, diff)
		}
	}
}

func TestE252_Body(t *testing.T) {
	half, topK := 0.5, 3
	e := replytest.Serve(t, 400, "application/json", `{}`)
	req := replytest.Ask("go")
	req.System = "Be brief."
	req.Tools = []llm.Tool{{Name: "now", Description: "Time"}}
	req.Settings = llm.Settings{MaxTokens: 9, Temperature: &half, TopP: &half, TopK: &topK, Stop: []string{"END"}, ThinkingBudget: -1}
	_, _ = collect.Stream(t.Context(), client(t, "gemini-2.5-pro", e.URL, gemini.WithThoughts(), gemini.WithAPIKey("k-123")), req)
	want := `{"systemInstruction":{"parts":[{"text":"Be brief."}]},` +
		`"tools":[{"functionDeclarations":[{"name":"now","description":"Time"}]}],"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}},` +
		`"generationConfig":{"maxOutputTokens":9,"temperature":0.5,"topP":0.5,"topK":3,"stopSequences":["END"],` +
		`"thinkingConfig":{"thinkingBudget":-1,"includeThoughts":true}},` +
		`"contents":[{"role":"user","parts":[{"text":"go"}]}]}`
	if got := string(e.Body); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if e.URI != "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse" || e.Head.Get("X-Goog-Api-Key") != "k-123" {
		t.Errorf("got %s, key %q", e.URI, e.Head.Get("X-Goog-Api-Key"))
	}
	req.Settings = llm.Settings{Effort: "low", Sequential: true}
	c := client(t, "gemini-3-pro", e.URL)
	_, _ = collect.Stream(t.Context(), c, req)
	if got := string(e.Body); !strings.Contains(got, `"thinkingConfig":{"thinkingLevel":"low"}`) {
		t.Errorf("got %s", got)
	}
	if got := c.Check(req.Settings); len(got) != 1 {
		t.Errorf("warnings %q, want one", got)
	}
	if got := client(t, "gemini-2.5-pro", e.URL).Check(req.Settings); len(got) != 2 {
		t.Errorf("warnings %q, want two", got)
	}
}

func TestE259_FinishReasons(t *testing.T) {
	hi := parts(`{"text":"hi"}`)
	for _, tt := range []struct {
		finish string
		stop   llm.StopReason
		err    llm.Class
	}{
		{ends("STOP"), llm.StopEndTurn, ""},
		{ends("MAX_TOKENS"), llm.StopMaxTokens, ""},
		{ends("SAFETY"), llm.StopContentFilter, ""},
		{ends("RECITATION"), llm.StopContentFilter, ""},
		{ends("OTHER"), llm.StopIncomplete, ""},
		{ends("A_NEW_WORD"), llm.StopUnknown, ""},
		{`{"candidates":[{"finishReason":"MALFORMED_FUNCTION_CALL","finishMessage":"Malformed function call: print(x)"}]}`, "", llm.ClassMalformedToolCall},
		{ends("UNEXPECTED_TOOL_CALL"), "", llm.ClassMalformedToolCall},
		{ends("MISSING_THOUGHT_SIGNATURE"), "", llm.ClassInvalidRequest},
		{`{"usageMetadata":{"promptTokenCount":1}}`, "", llm.ClassStreamIncomplete},
		{`{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`, "", llm.ClassOverloaded},
		{`{"error":{"code":429,"message":"slow","status":"RESOURCE_EXHAUSTED"}}`, "", llm.ClassRateLimit},
		{`{oops`, "", llm.ClassMalformedStream},
		{parts(`{"functionCall":{"args":{}}}`), "", llm.ClassMalformedToolCall},
	} {
		r, err := reply(t, hi, tt.finish)
		if tt.err != "" {
			if e := replytest.ErrorOf(t, err); e.Class != tt.err || e.Status != 0 {
				t.Errorf("%s: got %+v, want class %s", tt.finish, e, tt.err)
			}
			continue
		}
		if err != nil || r.Message.Stop != tt.stop || r.Message.Text() != "hi" {
			t.Errorf("%s: got %+v, %v, want %s", tt.finish, r.Message, err, tt.stop)
		}
	}
	_, err := reply(t, `{"promptFeedback":{"blockReason":"PROHIBITED_CONTENT"},"usageMetadata":{"promptTokenCount":4}}`)
	if e := replytest.ErrorOf(t, err); e.Class != llm.ClassContentFilter || e.Code != "PROHIBITED_CONTENT" || e.Retryable() {
		t.Errorf("a blocked prompt: got %+v", e)
	}
}

// TestE257_Usage: reports are cumulative, thoughts are output, zeros are nothing.
func TestE257_Usage(t *testing.T) {
	r, err := reply(t,
		`{"candidates":[{"content":{"parts":[{"text":"hi"}]}}],"usageMetadata":{"promptTokenCount":30,"thoughtsTokenCount":7,"totalTokenCount":37}}`,
		`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":30,"cachedContentTokenCount":20,"candidatesTokenCount":5,`+
			`"thoughtsTokenCount":7,"toolUsePromptTokenCount":2,"totalTokenCount":44}}`)
	want := llm.Usage{Input: llm.N(32), Output: llm.N(12), Total: llm.N(44), CacheRead: llm.N(20), Reasoning: llm.N(7)}
	if err != nil || r.Usage != want {
		t.Errorf("got %+v, %v, want %+v", r.Usage, err, want)
	}
	r, err = reply(t, parts(`{"text":"hi"}`), `{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":0,"totalTokenCount":0}}`)
	if err != nil || r.Usage.Known() {
		t.Errorf("got %+v, %v, want unknown", r.Usage, err)
	}
}

// TestE254_IDs: calls of one tool have ids of their own, also when the server's
// own repeat.
func TestE254_IDs(t *testing.T) {
	for _, call := range []string{`{"functionCall":{"name":"read","args":{}}}`, `{"functionCall":{"id":"x","name":"read","args":{}}}`} {
		r, err := reply(t, parts(call+","+call), ends("STOP"))
		if err != nil {
			t.Fatal(err)
		}
		ids := map[string]bool{}
		for _, c := range r.Message.Calls() {
			ids[c.ID] = c.ID != ""
		}
		if len(ids) != 2 || r.Message.Stop != llm.StopToolUse {
			t.Errorf("got %+v", r.Message)
		}
	}
}

// TestWhole: replies that are no stream, one object or an array.
func TestWhole(t *testing.T) {
	one := `{"candidates":[{"content":{"parts":[{"text":"hi"}]},"finishReason":"STOP"}]}`
	for _, body := range []string{one, "[" + parts(`{"text":"hi"}`) + "," + ends("STOP") + "]"} {
		e := replytest.Serve(t, 200, "application/json", body)
		r, err := collect.Stream(t.Context(), client(t, "gemini-2.5-pro", e.URL, gemini.WithoutStream()), replytest.Ask("go"))
		if err != nil || r.Message.Text() != "hi" || !strings.HasSuffix(e.URI, ":generateContent") {
			t.Errorf("%s: got %+v, %v", e.URI, r.Message, err)
		}
	}
}
