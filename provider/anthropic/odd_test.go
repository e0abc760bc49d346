// SPDX-License-Identifier: Apache-2.0

package anthropic_test

import (
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/provider/anthropic"
	"github.com/fiducial-dev/fiducial/provider/internal/replytest"
)

func oddReply(t *testing.T, status int, media, body string) (collect.Reply, error) {
	t.Helper()
	c, err := anthropic.New("m", anthropic.WithAPIKey("k"), anthropic.WithBaseURL(replytest.Serve(t, status, media, body).URL))
	if err != nil {
		t.Fatal(err)
	}
	return collect.Stream(t.Context(), c, ask())
}

// What gateways write in other types than they should must not cost the reply.
func TestOddTypes(t *testing.T) {
	r, err := oddReply(t, 200, "text/event-stream", "event: ping\ndata: ping\n\n"+replytest.Stream(
		`{"type":"message_start","message":{"usage":{"input_tokens":25.0}}}`,
		`{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":12,"name":"one","input":""}}`,
		`{"type":"content_block_stop","index":0}`,
		`{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":"20"}}`,
		`{"type":"message_stop"}`))
	if err != nil || r.Message.CountCalls() != 1 {
		t.Fatal(r.Message, err)
	}
	for _, c := range r.Message.Calls() {
		if c.ID == "" || c.Args != "" {
			t.Errorf("got %+v, want an id and empty arguments (E-126)", c)
		}
	}
	if r.Usage.Input != llm.N(25) || r.Usage.Output != llm.N(20) {
		t.Errorf("usage %+v", r.Usage)
	}
}

// An error that a gateway writes into the stream in the form of another API is that
// error, no stream that broke (E-157).
func TestErrorWithoutType(t *testing.T) {
	for body, want := range map[string]llm.Class{
		`{"error":{"type":"authentication_error","message":"bad key"}}`:     llm.ClassAuth,
		`{"error":{"type":"None","code":"401","message":"bad key"}}`:        llm.ClassAuth,
		`{"error":{"type":"None","code":"503","message":"no server"}}`:      llm.ClassOverloaded,
		`{"error":{"type":"overloaded_error","message":"try again later"}}`: llm.ClassOverloaded,
	} {
		_, err := oddReply(t, 200, "text/event-stream", replytest.Stream(`{"type":"message_start","message":{}}`, body))
		if llm.ClassOf(err) != want {
			t.Errorf("%s: got %v, want class %s", body, err, want)
		}
	}
}

// A 429 for lack of money is a matter of quota, which waiting does not mend.
func TestEmptyAccount(t *testing.T) {
	_, err := oddReply(t, 429, "application/json",
		`{"type":"error","error":{"type":"1113","message":"Insufficient balance or no resource package. Please recharge."}}`)
	if llm.ClassOf(err) != llm.ClassQuota {
		t.Errorf("got %v", err)
	}
}
