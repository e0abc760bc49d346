// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/provider/internal/replytest"
	"github.com/fiducial-dev/fiducial/provider/openai"
)

// callsOf are the calls of a reply, one line each.
func callsOf(m llm.Message) []string {
	var out []string
	for _, c := range m.Calls() {
		out = append(out, c.ID+" "+c.Name+" "+c.Args)
	}
	return out
}

func TestE238_CallsAreToldApart(t *testing.T) {
	for name, tt := range map[string]struct {
		chunks []string
		want   []string
	}{
		"later index first": {
			[]string{
				`{"tool_calls":[{"index":1,"id":"b","function":{"name":"two","arguments":"{\"b\":"}}]}`,
				`{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"{\"a\":1}"}}]}`,
				`{"tool_calls":[{"index":1,"function":{"arguments":"2}"}}]}`,
			},
			[]string{`a one {"a":1}`, `b two {"b":2}`},
		},
		"no index, ids": {
			[]string{
				`{"tool_calls":[{"id":"a","function":{"name":"one","arguments":"{\"a\":"}}]}`,
				`{"tool_calls":[{"function":{"arguments":"1}"}}]}`,
				`{"tool_calls":[{"id":"b","function":{"name":"one","arguments":"{}"}}]}`,
			},
			[]string{`a one {"a":1}`, `b one {}`},
		},
		"no index, an id for each piece": {
			[]string{
				`{"tool_calls":[{"id":"a","function":{"name":"one","arguments":""}}]}`,
				`{"tool_calls":[{"id":"b","function":{"arguments":"{\"a\":"}}]}`,
				`{"tool_calls":[{"id":"c","function":{"arguments":"1}"}}]}`,
			},
			[]string{`a one {"a":1}`},
		},
		"no index, one id for all": {
			[]string{
				`{"tool_calls":[{"id":"a","function":{"name":"one","arguments":"{\"a\":1}"}}]}`,
				`{"tool_calls":[{"id":"a","function":{"name":"one","arguments":"{\"a\":2}"}}]}`,
			},
			[]string{`a one {"a":1}`, `made1 one {"a":2}`},
		},
		"the name behind the arguments": {
			[]string{
				`{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{\"a\":1}"}}]}`,
				`{"tool_calls":[{"index":0,"function":{"name":"one"}}]}`,
			},
			[]string{`a one {"a":1}`},
		},
		"neither index nor id": {
			[]string{
				`{"tool_calls":[{"function":{"name":"one","arguments":"{\"a\":1}"}}]}`,
				`{"tool_calls":[{"function":{"name":"one","arguments":"{\"a\":2}"}}]}`,
			},
			[]string{`made0 one {"a":1}`, `made1 one {"a":2}`},
		},
		"one index for all, no ids": {
			[]string{
				`{"tool_calls":[{"index":0,"function":{"name":"one","arguments":"{\"a\":1}"}}]}`,
				`{"tool_calls":[{"index":0,"function":{"name":"two","arguments":"{\"a\":2}"}}]}`,
			},
			[]string{`made0 one {"a":1}`, `made1 two {"a":2}`},
		},
		"one index for all, another id, no arguments": {
			[]string{
				`{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":""}}]}`,
				`{"tool_calls":[{"index":0,"id":"b","function":{"name":"one","arguments":"{}"}}]}`,
			},
			[]string{`a one `, `b one {}`},
		},
		"one index for all, another id after broken arguments": {
			[]string{
				`{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"{oops"}}]}`,
				`{"tool_calls":[{"index":0,"id":"b","function":{"name":"one","arguments":"{}"}}]}`,
			},
			[]string{`a one {oops`, `b one {}`},
		},
		"another id with every piece": {
			[]string{
				`{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"{\"a\":"}}]}`,
				`{"tool_calls":[{"index":0,"id":"b","function":{"arguments":"1}"}}]}`,
			},
			[]string{`a one {"a":1}`},
		},
		"the name with every piece": {
			[]string{
				`{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"{\"a\":"}}]}`,
				`{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"1}"}}]}`,
			},
			[]string{`a one {"a":1}`},
		},
		"the whole call once more": {
			[]string{
				`{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"{\"a\":1}"}}]}`,
				`{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"{\"a\":1}"}}]}`,
			},
			[]string{`a one {"a":1}`},
		},
		"the name in pieces": {
			[]string{
				`{"tool_calls":[{"index":0,"id":"a","function":{"name":"read_","arguments":""}}]}`,
				`{"tool_calls":[{"index":0,"function":{"name":"file","arguments":""}}]}`,
				`{"tool_calls":[{"index":0,"function":{"arguments":"{}"}}]}`,
			},
			[]string{`a read_file {}`},
		},
		"arguments as an object": {
			[]string{`{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":{"z":1.0,"a":2}}}]}`},
			[]string{`a one {"z":1.0,"a":2}`},
		},
		"no arguments at all": {
			[]string{`{"tool_calls":[{"index":0,"id":"a","function":{"name":"one"}}]}`},
			[]string{`a one `},
		},
		"an empty piece": {
			[]string{
				`{"tool_calls":[{}]}`,
				`{"tool_calls":[{"index":0,"id":"a","type":"function","function":{"name":"one","arguments":"{}"}}]}`,
			},
			[]string{`a one {}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var data []string
			for _, c := range tt.chunks {
				data = append(data, delta(c))
			}
			r, err := chatReply(t, openai.Generic, replytest.Stream(append(data, ends("tool_calls"))...))
			if err != nil {
				t.Fatal(err)
			}
			calls := callsOf(r.Message)
			for i := range calls { // how package collect makes ids is its own business
				calls[i] = madeID.ReplaceAllString(calls[i], "made$1")
			}
			if diff := cmp.Diff(tt.want, calls); diff != "" {
				t.Errorf("calls (-want +got):\n%s", diff)
			}
		})
	}
}

var madeID = regexp.MustCompile(`^call_\w*_(\d+)`)

func TestChatStopReasons(t *testing.T) {
	call := delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":"{}"}}]}`)
	for _, tt := range []struct {
		finish, before string
		want           llm.StopReason
	}{
		{"stop", delta(`{"content":"hi"}`), llm.StopEndTurn},
		{"stop", call, llm.StopToolUse},
		{"eos", delta(`{"content":"hi"}`), llm.StopEndTurn},
		{"length", call, llm.StopMaxTokens},
		{"content_filter", delta(`{"content":"hi"}`), llm.StopContentFilter},
		{"stop", delta(`{"refusal":"I will not."}`), llm.StopRefusal},
		{"no_such_word", delta(`{"content":"hi"}`), llm.StopUnknown},
	} {
		r, err := chatReply(t, openai.Generic, replytest.Stream(tt.before, ends(tt.finish)))
		if err != nil || r.Message.Stop != tt.want {
			t.Errorf("%s after %s: got %s, %v, want %s", tt.finish, tt.before, r.Message.Stop, err, tt.want)
		}
	}
}

// TestE240_Completeness: the finish reason completes a reply, nothing else does.
func TestE240_Completeness(t *testing.T) {
	hi := delta(`{"content":"hi"}`)
	for name, tt := range map[string]struct {
		body string
		want llm.Class // empty: a reply
	}{
		"no end marker":              {replytest.Stream(hi, ends("stop")), ""},
		"finish in the last line":    {strings.TrimSuffix(replytest.Stream(hi, ends("stop")), "\n\n"), ""},
		"end marker without finish":  {replytest.Stream(hi, "[DONE]"), llm.ClassStreamIncomplete},
		"nothing":                    {"", llm.ClassStreamIncomplete},
		"cut inside of the last one": {replytest.Stream(hi) + `data: {"choices":[{"index":0,"de`, llm.ClassStreamIncomplete},
		"not JSON":                   {replytest.Stream(hi, "{oops", ends("stop")), llm.ClassMalformedStream},
		"an empty finish reason":     {replytest.Stream(`{"choices":[{"delta":{"content":"hi"},"finish_reason":""}]}`), llm.ClassStreamIncomplete},
		"tool calls without calls":   {replytest.Stream(hi, ends("tool_calls")), llm.ClassMalformedStream},
		"a call without a name":      {replytest.Stream(delta(`{"tool_calls":[{"index":0,"id":"a","function":{"arguments":"{}"}}]}`), ends("stop")), llm.ClassMalformedToolCall},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := chatReply(t, openai.Generic, tt.body)
			if tt.want == "" {
				if err != nil || r.Message.Text() != "hi" {
					t.Errorf("got %q, %v", r.Message.Text(), err)
				}
				return
			}
			if got := llm.ClassOf(err); got != tt.want {
				t.Errorf("got %v, want class %s", err, tt.want)
			}
		})
	}
}

func TestChatErrorsInsideTheStream(t *testing.T) {
	hi := delta(`{"content":"hi"}`)
	for _, tt := range []struct {
		body string
		want llm.Class
	}{
		{replytest.Stream(hi, `{"error":{"message":"The server had an error","type":"server_error","code":null}}`), llm.ClassServer},
		{replytest.Stream(hi, `{"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}`), llm.ClassRateLimit},
		{replytest.Stream(hi, `{"error":{"message":"Provider disconnected","code":502}}`), llm.ClassServer},
		{replytest.Stream(hi, `{"error":{"message":"slow","code":503}}`), llm.ClassOverloaded},
		{replytest.Stream(hi, `{"error":"out of memory"}`), llm.ClassServer},
		{replytest.Stream(hi, `{"object":"error","message":"This model's maximum context length is 10 tokens","type":"BadRequestError","code":400}`), llm.ClassContextOverflow},
		{"event: error\ndata: {\"error\":{\"message\":\"Trying to keep the first 9000 tokens\"}}\n\n", llm.ClassContextOverflow},
		{replytest.Stream(hi, `{"choices":[{"index":0,"delta":{"content":""},"finish_reason":"error","error":{"code":429,"message":"busy"}}]}`), llm.ClassRateLimit},
		{replytest.Stream(hi, ends("insufficient_system_resource")), llm.ClassOverloaded},
		{replytest.Stream(`{"error":{"message":"You exceeded your current quota","code":"insufficient_quota"}}`), llm.ClassQuota},
	} {
		_, err := chatReply(t, openai.Generic, tt.body)
		if e := replytest.ErrorOf(t, err); e.Class != tt.want || e.Status != 0 || e.Message == "" {
			t.Errorf("%s: got %+v, want class %s without a status", tt.body, e, tt.want)
		}
	}
}

func TestChatUsage(t *testing.T) {
	hi := delta(`{"content":"hi"}`)
	for name, tt := range map[string]struct {
		tail string
		want llm.Usage
	}{
		"E-241, beside no choices": {
			replytest.Stream(ends("stop"), `{"choices":[],"usage":{"prompt_tokens":30,"completion_tokens":10,"total_tokens":40,`+
				`"prompt_tokens_details":{"cached_tokens":20},"completion_tokens_details":{"reasoning_tokens":4}}}`),
			llm.Usage{Input: llm.N(30), Output: llm.N(10), Total: llm.N(40), CacheRead: llm.N(20), Reasoning: llm.N(4)},
		},
		"in the last choice": {
			replytest.Stream(`{"choices":[{"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":3,"completion_tokens":1}}`),
			llm.Usage{Input: llm.N(3), Output: llm.N(1)},
		},
		"DeepSeek's cache": {
			replytest.Stream(ends("stop"), `{"choices":[],"usage":{"prompt_tokens":30,"completion_tokens":1,"prompt_cache_hit_tokens":25,"prompt_cache_miss_tokens":5}}`),
			llm.Usage{Input: llm.N(30), Output: llm.N(1), CacheRead: llm.N(25)},
		},
		"Groq's place": {
			replytest.Stream(`{"choices":[{"delta":{},"finish_reason":"stop"}],"x_groq":{"usage":{"prompt_tokens":3,"completion_tokens":1}}}`),
			llm.Usage{Input: llm.N(3), Output: llm.N(1)},
		},
		"zeros after numbers": {
			replytest.Stream(`{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1}}`, ends("stop"), `{"choices":[],"usage":{"prompt_tokens":0,"completion_tokens":0,"total_tokens":0}}`),
			llm.Usage{Input: llm.N(3), Output: llm.N(1)},
		},
		"none": {replytest.Stream(ends("stop")), llm.Usage{}},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := chatReply(t, openai.Generic, replytest.Stream(hi)+tt.tail)
			if err != nil || r.Usage != tt.want {
				t.Errorf("got %+v, %v, want %+v", r.Usage, err, tt.want)
			}
		})
	}
}

// TestChatReasoning: each server's own field becomes thinking, and is the vendor's.
func TestChatReasoning(t *testing.T) {
	for _, tt := range []struct {
		flavor openai.Flavor
		deltas []string
	}{
		{openai.DeepSeek, []string{`{"reasoning_content":"Let me "}`, `{"reasoning_content":"see."}`}},
		{openai.Groq, []string{`{"reasoning":"Let me "}`, `{"reasoning":"see."}`}},
		{openai.VLLM, []string{`{"reasoning":"Let me see.","reasoning_content":"Let me see."}`}},
		{openai.Mistral, []string{`{"content":[{"type":"thinking","thinking":[{"type":"text","text":"Let me see."}]}]}`}},
		{openai.OpenRouter, []string{`{"reasoning":"Let me see.","reasoning_details":[{"type":"reasoning.text","index":0,"text":"Let me see."}]}`}},
		{openai.OpenRouter, []string{`{"reasoning_details":[{"type":"reasoning.summary","index":0,"summary":"Let me see."}]}`}},
	} {
		data := []string{}
		for _, d := range append(tt.deltas, `{"content":"So."}`) {
			data = append(data, delta(d))
		}
		r, err := chatReply(t, tt.flavor, replytest.Stream(append(data, ends("stop"))...))
		if err != nil {
			t.Fatal(err)
		}
		thought, ok := r.Message.Parts[0].(llm.Thinking)
		if !ok || thought.Text != "Let me see." || thought.Opaque.Vendor != string(tt.flavor) || r.Message.Text() != "So." {
			t.Errorf("%v: got %+v", tt.deltas, r.Message.Parts)
		}
	}
}

// TestChatWhole: a server that does not stream is understood too.
func TestChatWhole(t *testing.T) {
	body := `{"id":"x","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Look.","tool_calls":[
		{"id":"a","type":"function","function":{"name":"one","arguments":"{\"a\": 1}"}},
		{"id":"b","type":"function","function":{"name":"one","arguments":"{}"}}]},"finish_reason":"tool_calls"}],
		"usage":{"prompt_tokens":3,"completion_tokens":1}}`
	e := replytest.Serve(t, 200, "application/json; charset=utf-8", body)
	c, err := openai.NewChat("m", openai.WithBaseURL(e.URL), openai.WithoutStream())
	if err != nil {
		t.Fatal(err)
	}
	r, err := collect.Stream(t.Context(), c, replytest.Ask("go"))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{`a one {"a": 1}`, `b one {}`}, callsOf(r.Message)); diff != "" || r.Message.Text() != "Look." || r.Usage.Input.Value() != 3 {
		t.Errorf("got %+v %+v: %s", r.Message, r.Usage, diff)
	}
	if got := string(e.Body); strings.Contains(got, `"stream":true`) || strings.Contains(got, "stream_options") {
		t.Errorf("a stream was asked for: %s", got)
	}
}

// TestMislabelled: the body counts, not what the header says of it.
func TestMislabelled(t *testing.T) {
	stream := replytest.Stream(delta(`{"content":"hi"}`), ends("stop"))
	whole := `{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}]}`
	for _, tt := range []struct {
		media, body string
		want        llm.Class
	}{
		{"application/json", stream, ""},
		{"text/event-stream", whole, ""},
		{"application/json", "\n \n" + whole, ""},
		{"text/plain", `{"error":{"message":"busy","code":503}}`, llm.ClassOverloaded},
		{"text/html", "<html>Sign in</html>", llm.ClassStreamIncomplete},
	} {
		c, err := openai.NewChat("m", openai.WithBaseURL(replytest.Serve(t, 200, tt.media, tt.body).URL))
		if err != nil {
			t.Fatal(err)
		}
		r, err := collect.Stream(t.Context(), c, replytest.Ask("go"))
		if tt.want == "" && (err != nil || r.Message.Text() != "hi") || tt.want != "" && llm.ClassOf(err) != tt.want {
			t.Errorf("%s %q: got %+v, %v", tt.media, tt.body, r.Message, err)
		}
	}
}

// TestE160_Unhandled: what nobody reads is shown, cut at a character.
func TestE160_Unhandled(t *testing.T) {
	odd := `{"kind":"` + strings.Repeat("é", 600) + `"}`
	e := replytest.Serve(t, 200, "text/event-stream", replytest.Stream(odd, delta(`{"content":"hi"}`), ends("stop")))
	c, err := openai.NewChat("m", openai.WithBaseURL(e.URL))
	if err != nil {
		t.Fatal(err)
	}
	for ev, err := range c.Stream(t.Context(), replytest.Ask("go")) {
		if err != nil {
			t.Fatal(err)
		}
		if u, ok := ev.(llm.Unhandled); ok {
			if u.Size != len(odd) || len(u.Preview) != 511 || !strings.HasPrefix(odd, u.Preview) {
				t.Errorf("got %d of %d bytes", len(u.Preview), u.Size)
			}
			return
		}
	}
	t.Error("the event was lost")
}

// Servers write the index of a call as null, as a text, or not at all.
func TestIndexesOfAnyShape(t *testing.T) {
	piece := func(index, id, args string) string {
		return delta(fmt.Sprintf(`{"tool_calls":[{%s"id":%q,"type":"function","function":{"name":"f","arguments":%q}}]}`, index, id, args))
	}
	r, err := chatReply(t, openai.Generic, replytest.Stream(
		piece(`"index":null,`, "a", `{"n":1}`), piece(`"index":"1",`, "b", `{"n":`), piece(`"index":"1",`, "b", `2}`), piece(`"index":"",`, "c", `{}`),
		ends("tool_calls")))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range r.Message.Calls() {
		got = append(got, c.ID+c.Args)
	}
	if want := []string{`a{"n":1}`, `b{"n":2}`, `c{}`}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A report of usage that is written oddly is read for what it says, and costs no
// reply.
func TestUsageOfAnyShape(t *testing.T) {
	odd := `{"choices":[],"usage":{"prompt_tokens":5.0,"completion_tokens":"2","total_tokens":"many","prompt_tokens_details":{"cached_tokens":null},"completion_tokens_details":{"reasoning_tokens":-1}}}`
	r, err := chatReply(t, openai.Generic, replytest.Stream(delta(`{"content":"hi"}`), ends("stop"), odd))
	if err != nil {
		t.Fatal(err)
	}
	if want := (llm.Usage{Input: llm.N(5), Output: llm.N(2)}); r.Usage != want {
		t.Errorf("got %+v, want %+v", r.Usage, want)
	}
}
