// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/provider/internal/replytest"
)

// What gateways write in other types than they should must not cost the reply.
func TestOddTypes(t *testing.T) {
	r, err := reply(t, `{"candidates":[{"content":{"parts":[{"functionCall":{"id":5,"name":"one","args":{}}}]},"finishReason":"STOP"}],`+
		`"usageMetadata":{"promptTokenCount":30.0,"candidatesTokenCount":"8"}}`)
	if err != nil || r.Message.CountCalls() != 1 {
		t.Fatalf("got %+v, %v", r.Message, err)
	}
	if r.Usage.Input != llm.N(30) || r.Usage.Output != llm.N(8) {
		t.Errorf("usage %+v", r.Usage)
	}
}

// A 429 for lack of money is a matter of quota, one for lack of servers is not.
func TestEmptyAccount(t *testing.T) {
	for body, want := range map[string]llm.Class{
		`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"Your prepayment credits are depleted."}}`: llm.ClassQuota,
		`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"Resource has been exhausted.",` +
			`"details":[{"reason":"INSUFFICIENT_G1_CREDITS_BALANCE"}]}}`: llm.ClassQuota,
		`{"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"No capacity available.",` +
			`"details":[{"reason":"MODEL_CAPACITY_EXHAUSTED"}]}}`: llm.ClassRateLimit,
	} {
		e := replytest.Serve(t, 429, "application/json", body)
		_, err := collect.Stream(t.Context(), client(t, "m", e.URL), replytest.Ask("go"))
		if llm.ClassOf(err) != want {
			t.Errorf("%s: got %v, want class %s", body, err, want)
		}
	}
}
