// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	oai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	oairesponses "github.com/openai/openai-go/v3/responses"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/provider/internal/replytest"
)

const pieces = 4000

// longChat is a reply of many pieces of text and of a call's arguments.
func longChat() string {
	var b strings.Builder
	chunk := func(delta, finish string) {
		fmt.Fprintf(&b, `data: {"id":"chatcmpl-x","object":"chat.completion.chunk","created":1760000000,"model":"gpt-test","service_tier":"default",`+
			`"system_fingerprint":"fp_x","choices":[{"index":0,"delta":%s,"logprobs":null,"finish_reason":%s}]}`+"\n\n", delta, finish)
	}
	chunk(`{"role":"assistant","content":"","refusal":null}`, "null")
	for i := range pieces {
		chunk(fmt.Sprintf(`{"content":" word%d"}`, i), "null")
	}
	chunk(`{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"write","arguments":"{\"text\":\""}}]}`, "null")
	for i := range pieces {
		chunk(fmt.Sprintf(`{"tool_calls":[{"index":0,"function":{"arguments":" word%d"}}]}`, i), "null")
	}
	chunk(`{"tool_calls":[{"index":0,"function":{"arguments":"\"}"}}]}`, "null")
	chunk(`{}`, `"tool_calls"`)
	b.WriteString("data: [DONE]\n\n")
	return b.String()
}

func longResponse() string {
	var b strings.Builder
	event := func(kind, fields string) {
		fmt.Fprintf(&b, "event: %s\ndata: {\"type\":\"%s\",\"sequence_number\":1,%s}\n\n", kind, kind, fields)
	}
	event("response.created", `"response":{"id":"r","object":"response","status":"in_progress","output":[]}`)
	event("response.output_item.added", `"output_index":0,"item":{"id":"m","type":"message","status":"in_progress","role":"assistant","content":[]}`)
	var text, args strings.Builder
	for i := range pieces {
		fmt.Fprintf(&text, " word%d", i)
		event("response.output_text.delta", fmt.Sprintf(`"item_id":"m","output_index":0,"content_index":0,"delta":" word%d","logprobs":[],"obfuscation":"abcdef"`, i))
	}
	event("response.output_item.done", `"output_index":0,"item":{"id":"m","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"`+text.String()+`","annotations":[]}]}`)
	event("response.output_item.added", `"output_index":1,"item":{"id":"f","type":"function_call","status":"in_progress","call_id":"c","name":"write","arguments":""}`)
	for i := range pieces {
		fmt.Fprintf(&args, " word%d", i)
		event("response.function_call_arguments.delta", fmt.Sprintf(`"item_id":"f","output_index":1,"delta":" word%d","obfuscation":"abcdef"`, i))
	}
	event("response.output_item.done", `"output_index":1,"item":{"id":"f","type":"function_call","status":"completed","call_id":"c","name":"write","arguments":"`+args.String()+`"}`)
	event("response.completed", `"response":{"id":"r","object":"response","status":"completed","output":[],"usage":{"input_tokens":1,"output_tokens":1,"total_tokens":2}}`)
	return b.String()
}

// BenchmarkDecode reads a long reply with our adapters, to the reply and to the
// events alone, and with the SDK's own stream loop.
func BenchmarkDecode(b *testing.B) {
	for _, format := range []struct {
		name   string
		stream string
		ours   func(*http.Client) (llm.Client, error)
		theirs func(*testing.B, oai.Client)
	}{
		{"chat", longChat(), newFuzzChat, func(b *testing.B, c oai.Client) {
			s := c.Chat.Completions.NewStreaming(b.Context(), oai.ChatCompletionNewParams{Model: "m", Messages: []oai.ChatCompletionMessageParamUnion{oai.UserMessage("go")}})
			n := 0
			for s.Next() {
				n += len(s.Current().Choices)
			}
			if s.Err() != nil || n < 2*pieces {
				b.Fatal(n, s.Err())
			}
		}},
		{"responses", longResponse(), newFuzzResponses, func(b *testing.B, c oai.Client) {
			s := c.Responses.NewStreaming(b.Context(), oairesponses.ResponseNewParams{Model: "m"})
			n := 0
			for s.Next() {
				n += len(s.Current().Delta)
			}
			if s.Err() != nil || n < 2*pieces {
				b.Fatal(n, s.Err())
			}
		}},
	} {
		transport := &http.Client{Transport: replytest.Canned(func() io.Reader { return strings.NewReader(format.stream) })}
		ours, err := format.ours(transport)
		if err != nil {
			b.Fatal(err)
		}
		theirs := oai.NewClient(option.WithBaseURL("http://localhost/v1"), option.WithAPIKey("k"), option.WithHTTPClient(transport), option.WithMaxRetries(0))
		run := func(name string, one func()) {
			b.Run(format.name+"/"+name, func(b *testing.B) {
				b.SetBytes(int64(len(format.stream)))
				b.ReportAllocs()
				for b.Loop() {
					one()
				}
			})
		}
		run("ours", func() {
			r, err := collect.Stream(b.Context(), ours, replytest.Ask("go"))
			if err != nil || r.Message.CountCalls() != 1 {
				b.Fatal(r, err)
			}
		})
		run("events", func() {
			for _, err := range ours.Stream(b.Context(), replytest.Ask("go")) {
				if err != nil {
					b.Fatal(err)
				}
			}
		})
		run("sdk", func() { format.theirs(b, theirs) })
	}
}
