// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"fmt"
	"io"
	"strings"
	"testing"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/provider/anthropic"
	"github.com/fiducial-dev/fiducial/provider/internal/replytest"
)

func longReply(deltas int) string {
	var b strings.Builder
	say := func(name, data string) { fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", name, data) }
	say("message_start", `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":25,"cache_creation_input_tokens":0,"cache_read_input_tokens":0,"output_tokens":1}}}`)
	say("content_block_start", startText)
	for i := range deltas {
		say("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":" word %d of the \"reply\""}}`, i))
	}
	say("content_block_stop", stop0)
	say("content_block_start", `{"type":"content_block_start","index":1,"content_block":{"type":"tool_use","id":"toolu_1","name":"edit","input":{}}}`)
	say("content_block_delta", `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"{\"list\":["}}`)
	for i := range deltas {
		say("content_block_delta", fmt.Sprintf(`{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"\"item %d\","}}`, i))
	}
	say("content_block_delta", `{"type":"content_block_delta","index":1,"delta":{"type":"input_json_delta","partial_json":"0]}"}}`)
	say("content_block_stop", `{"type":"content_block_stop","index":1}`)
	say("message_delta", `{"type":"message_delta","delta":{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":900}}`)
	say("message_stop", theEnd)
	return b.String()
}

// BenchmarkDecode reads one long reply: by this client into a whole message, and
// by the vendor's SDK, its stream loop alone and with its accumulator.
func BenchmarkDecode(b *testing.B) {
	body := longReply(2000)
	web := replytest.Canned(func() io.Reader { return strings.NewReader(body) }).Client()
	b.Run("ours", func(b *testing.B) {
		c, err := anthropic.New("claude-sonnet-4-5", anthropic.WithAPIKey("k"), anthropic.WithHTTPClient(web))
		if err != nil {
			b.Fatal(err)
		}
		b.SetBytes(int64(len(body)))
		b.ReportAllocs()
		for b.Loop() {
			r, err := collect.Stream(b.Context(), c, ask())
			if err != nil || r.Message.CountCalls() != 1 {
				b.Fatal(r, err)
			}
		}
	})
	client := sdk.NewClient(option.WithoutEnvironmentDefaults(), option.WithAPIKey("k"), option.WithHTTPClient(web), option.WithMaxRetries(0))
	params := sdk.MessageNewParams{Model: "claude-sonnet-4-5", MaxTokens: 9, Messages: []sdk.MessageParam{sdk.NewUserMessage(sdk.NewTextBlock("go"))}}
	for name, accumulate := range map[string]bool{"sdk-loop": false, "sdk-accumulate": true} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				s := client.Messages.NewStreaming(b.Context(), params)
				var m sdk.Message
				n := 0
				for s.Next() {
					n++
					if accumulate {
						if err := m.Accumulate(s.Current()); err != nil {
							b.Fatal(err)
						}
					}
				}
				if err := s.Err(); err != nil || n < 4000 {
					b.Fatal(n, err)
				}
			}
		})
	}
}

// However broken a body is, the client neither panics nor hangs, every error has
// a class, and a reply that is told as complete keeps the rules of package collect.
func FuzzDecode(f *testing.F) {
	f.Add(whole)
	f.Add(longReply(2))
	f.Add(replytest.Stream(`{"type":"error","error":{"type":"overloaded_error","message":"x"}}`))
	f.Add(replytest.Stream(`{"type":"content_block_start","index":-1,"content_block":{"type":"server_tool_use","input":{"a":1}}}`,
		`{"type":"content_block_delta","index":-1,"delta":{"type":"input_json_delta","partial_json":"{}"}}`, theEnd))
	f.Add(replytest.Stream(`{"type":"content_block_delta","index":7,"delta":{"type":"signature_delta","signature":"x"}}`, theEnd))
	f.Fuzz(func(t *testing.T, body string) {
		c, err := anthropic.New("m", anthropic.WithAPIKey("k"), anthropic.WithHTTPClient(replytest.Canned(func() io.Reader { return strings.NewReader(body) }).Client()))
		if err != nil {
			t.Fatal(err)
		}
		r, err := collect.Stream(t.Context(), c, ask())
		if err != nil {
			if llm.ClassOf(err) == llm.ClassTransport {
				t.Errorf("%v: nothing is wrong with the transport", err)
			}
			return
		}
		// What was read can be sent back.
		next := ask(llm.UserText("go"), r.Message, llm.UserText("on"))
		if _, err := collect.Stream(t.Context(), c, next); err != nil {
			t.Errorf("the reply cannot be sent back: %v", err)
		}
	})
}
