// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"net/http"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/provider/gemini"
	"github.com/fiducial-dev/fiducial/provider/internal/replytest"
)

// FuzzStream feeds streams to the decoder: it never breaks the rules of its
// events, and the borders between reads do not matter (E-217).
func FuzzStream(f *testing.F) {
	for _, s := range []string{
		replytest.Stream(parts(`{"text":"hi"},{"text":"","thoughtSignature":"s"}`), ends("STOP")),
		replytest.Stream(parts(`{"text":"t","thought":true},{"functionCall":{"name":"f","args":{"a":1.0}},"thoughtSignature":"s"}`), ends("STOP")),
		replytest.Stream(`{"promptFeedback":{"blockReason":"X"}}`),
		replytest.Stream(`{"error":{"code":500,"status":"INTERNAL"}}`),
		replytest.Stream(ends("MALFORMED_FUNCTION_CALL")),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		replytest.CheckStream(t, body, func(h *http.Client) (llm.Client, error) {
			return gemini.New("gemini-3-pro", gemini.WithBaseURL("http://localhost"), gemini.WithHTTPClient(h))
		})
	})
}

// FuzzSchema reduces anything to JSON, or to nothing.
func FuzzSchema(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#"},"b":{"anyOf":[{"type":["null","string"]},{"const":1}]}},"required":["a"]}`)
	f.Add(`{"properties":{"a":{"allOf":[{"properties":{"x":{}}},{"properties":{"y":{"exclusiveMinimum":1e3,"type":"integer"}}}]}}}`)
	f.Fuzz(func(t *testing.T, schema string) { gemini.CheckReduced(t, schema) })
}
