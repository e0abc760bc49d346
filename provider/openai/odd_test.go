// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/provider/internal/replytest"
	"github.com/fiducial-dev/fiducial/provider/openai"
)

// What servers write in other types than they should must not cost the reply.
func TestE239_ChatOddTypes(t *testing.T) {
	for name, chunks := range map[string][]string{
		"error false":      {`{"error":false,"choices":[{"delta":{"content":"Hi."}}]}`, ends("stop")},
		"error, a list":    {`{"error":[],"choices":[{"delta":{"content":"Hi."}}]}`, ends("stop")},
		"refusal false":    {delta(`{"content":"Hi.","refusal":false}`), ends("stop")},
		"usage, a text":    {delta(`{"content":"Hi."}`), `{"choices":[],"usage":""}`, `{"choices":[],"usage":[]}`, ends("stop")},
		"upper case":       {delta(`{"content":"Hi."}`), ends("STOP")},
		"the word null":    {`{"choices":[{"delta":{"content":"Hi"},"finish_reason":"null"}]}`, delta(`{"content":"."}`), ends("stop")},
		"a ping of a word": {delta(`{"content":"Hi."}`), "ping\nevent: ping", ends("stop")},
	} {
		r, err := chatReply(t, openai.Generic, replytest.Stream(chunks...))
		if err != nil || r.Message.Text() != "Hi." || r.Message.Stop != llm.StopEndTurn {
			t.Errorf("%s: got %q, %q, %v", name, r.Message.Text(), r.Message.Stop, err)
		}
	}
}

// Half a reply whose every chunk says null in quotes is half a reply (E-133).
func TestE240_TheWordNullIsNoFinishReason(t *testing.T) {
	_, err := chatReply(t, openai.DashScope, replytest.Stream(`{"choices":[{"delta":{"content":"Half"},"finish_reason":"null"}]}`))
	if llm.ClassOf(err) != llm.ClassStreamIncomplete {
		t.Errorf("got %v, want an incomplete stream", err)
	}
}

// A call that the limit cut must not run (S-127), in whatever case it is told.
func TestLimitInUpperCase(t *testing.T) {
	r, err := chatReply(t, openai.Generic, replytest.Stream(delta(`{"tool_calls":[{"index":0,"id":"a","function":{"name":"one","arguments":""}}]}`), ends("MAX_TOKENS")))
	if err != nil || r.Message.Stop != llm.StopMaxTokens {
		t.Errorf("got %q, %v", r.Message.Stop, err)
	}
}

// Moonshot reports usage in the choice, and cached tokens beside the others.
func TestUsageOfMoonshot(t *testing.T) {
	r, err := chatReply(t, openai.Generic, replytest.Stream(delta(`{"content":"Hi."}`),
		`{"choices":[{"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":19,"completion_tokens":13,"total_tokens":32,"cached_tokens":7}}]}`))
	want := llm.Usage{Input: llm.N(19), Output: llm.N(13), Total: llm.N(32), CacheRead: llm.N(7)}
	if err != nil || r.Usage != want {
		t.Errorf("got %+v, %v, want %+v", r.Usage, err, want)
	}
}

// A whole reply without choices is an error in a form of its own: its words are
// handed on (E-214), never an empty reply.
func TestE214_WholeReplyWithoutChoices(t *testing.T) {
	for body, want := range map[string]llm.Class{
		`{"success":false,"message":"no such model"}`:                                           llm.ClassServer,
		`{"choices":null,"base_resp":{"status_code":1008,"status_msg":"insufficient balance"}}`: llm.ClassQuota,
	} {
		c, err := openai.NewChat("m", openai.WithBaseURL(replytest.Serve(t, 200, "application/json", body).URL))
		if err != nil {
			t.Fatal(err)
		}
		_, err = collect.Stream(t.Context(), c, replytest.Ask("go"))
		if e := replytest.ErrorOf(t, err); e.Class != want || e.Message == "" {
			t.Errorf("%s: got %v, want class %s", body, err, want)
		}
	}
}

// The class of errors that single servers tell in words of their own.
func TestClassOfSingleServers(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		want   llm.Class
	}{
		{429, `{"error":{"code":"1113","message":"Insufficient balance or no resource package. Please recharge."}}`, llm.ClassQuota},
		{429, `{"error":{"code":"1113","message":"余额不足或无可用资源包,请充值。"}}`, llm.ClassQuota},
		{429, `{"code":"Some resource has been exhausted","error":"Your team has either used all available credits or reached its limit."}`, llm.ClassQuota},
		{429, `{"error":{"code":"1302","message":"Rate limit reached for requests"}}`, llm.ClassRateLimit},
		{400, `{"error":{"code":"string_above_max_length","message":"Invalid 'tools[0].function.name': string too long."}}`, llm.ClassInvalidRequest},
		{400, `{"error":{"code":"string_above_max_length","message":"Invalid 'messages[3].content': string too long."}}`, llm.ClassContextOverflow},
		{400, `{"error":{"code":400,"message":"You passed 32769 input tokens. However, the model's context length is only 32768 tokens."}}`, llm.ClassContextOverflow},
		{422, `{"error":"Input validation error: ` + "`inputs`" + ` must have less than 4096 tokens. Given: 5123"}`, llm.ClassContextOverflow},
		{400, `{"errors":[{"message":"tokens (40000) exceeded this model context window limit (32000)."}]}`, llm.ClassContextOverflow},
	} {
		client, err := openai.NewChat("m", openai.WithBaseURL(replytest.Serve(t, c.status, "application/json", c.body).URL))
		if err != nil {
			t.Fatal(err)
		}
		if _, err = collect.Stream(t.Context(), client, replytest.Ask("go")); llm.ClassOf(err) != c.want {
			t.Errorf("%s: got %v, want class %s", c.body, err, c.want)
		}
	}
}

// The status of the response counts, not the name of its last event: vLLM says
// completed of a reply that the limit cut, others end with response.done.
func TestE245_StatusOfTheLastEvent(t *testing.T) {
	call := `{"id":"f","type":"function_call","call_id":"c","name":"one","arguments":""}`
	end := func(kind, rest string) string { return `{"type":"response.` + kind + `","response":{` + rest + `}}` }
	for name, c := range map[string]struct {
		end  string
		stop llm.StopReason
		err  llm.Class
	}{
		"completed, cut by the limit": {end("completed", `"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}`), llm.StopMaxTokens, ""},
		"completed, failed":           {end("completed", `"status":"failed","error":{"code":"server_error","message":"boom"}`), "", llm.ClassServer},
		"done":                        {end("done", `"status":"completed","output":[]`), llm.StopToolUse, ""},
		"done, cut by the limit":      {end("done", `"status":"incomplete","incomplete_details":{"reason":"max_output_tokens"}`), llm.StopMaxTokens, ""},
		"no status":                   {end("completed", `"output":[]`), llm.StopToolUse, ""},
	} {
		r, err := responsesReply(t, created, item("added", "0", call), item("done", "0", call), c.end)
		if c.err == "" && err != nil || r.Message.Stop != c.stop || c.err != "" && llm.ClassOf(err) != c.err {
			t.Errorf("%s: got %q, %v", name, r.Message.Stop, err)
		}
	}
}

func TestResponsesOddTypes(t *testing.T) {
	call := `{"id":"f","type":"function_call","call_id":17,"name":"one","arguments":"{}"}`
	r, err := responsesReply(t, created, item("added", "0", call), item("done", "0", call),
		`{"type":"response.completed","response":{"usage":{"input_tokens":5.0,"output_tokens":"2","total_tokens":7}}}`)
	want := llm.Usage{Input: llm.N(5), Output: llm.N(2), Total: llm.N(7)}
	if err != nil || r.Usage != want || len(callsOf(r.Message)) != 1 {
		t.Errorf("got %v, %+v, %v", callsOf(r.Message), r.Usage, err)
	}
}

// A summary that came as null goes back as a list (E-243).
func TestE243_NullSummary(t *testing.T) {
	e := replytest.Serve(t, 200, "text/event-stream", replytest.Stream(created,
		item("done", "0", `{"id":"rs","type":"reasoning","summary":null,"encrypted_content":"ENC"}`),
		item("done", "1", `{"id":"f","type":"function_call","call_id":"c","name":"one","arguments":"{}"}`), completed))
	c, err := openai.NewResponses("gpt-5", openai.WithBaseURL(e.URL), openai.WithFlavor(openai.OpenAI))
	if err != nil {
		t.Fatal(err)
	}
	replytest.Again(t, c)
	var body struct{ Input []json.RawMessage }
	if err := json.Unmarshal(e.Body, &body); err != nil || len(body.Input) < 2 {
		t.Fatal(string(e.Body), err)
	}
	want := `{"type":"reasoning","summary":[],"encrypted_content":"ENC"}`
	if diff := cmp.Diff(want, string(body.Input[1])); diff != "" {
		t.Errorf("reasoning (-want +got):\n%s", diff)
	}
}
