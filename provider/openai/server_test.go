// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/provider/internal/replytest"
	"github.com/fiducial-dev/fiducial/provider/openai"
)

// delta is a chunk with one delta.
func delta(d string) string {
	return `{"choices":[{"index":0,"delta":` + d + `,"finish_reason":null}]}`
}

// ends is a chunk with a finish reason.
func ends(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

func chatReply(t *testing.T, flavor openai.Flavor, body string) (collect.Reply, error) {
	t.Helper()
	c, err := openai.NewChat("m", openai.WithBaseURL(replytest.Serve(t, 200, "text/event-stream", body).URL), openai.WithFlavor(flavor))
	if err != nil {
		t.Fatal(err)
	}
	return collect.Stream(t.Context(), c, replytest.Ask("go"))
}

// sent is the body that a client sends for a request.
func sent(t *testing.T, newClient func(base string) (llm.Client, error), req *llm.Request) map[string]any {
	t.Helper()
	e := replytest.Serve(t, 400, "application/json", `{}`)
	c, err := newClient(e.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := collect.Stream(t.Context(), c, req); llm.ClassOf(err) != llm.ClassInvalidRequest {
		t.Fatalf("got %v, want a refusal", err)
	}
	dec := json.NewDecoder(bytes.NewReader(e.Body))
	dec.UseNumber()
	var out map[string]any
	if err := dec.Decode(&out); err != nil {
		t.Fatalf("%s: %v", e.Body, err)
	}
	return out
}

func chat(flavor openai.Flavor, opts ...openai.Option) func(string) (llm.Client, error) {
	return func(base string) (llm.Client, error) {
		return openai.NewChat("m", append([]openai.Option{openai.WithBaseURL(base), openai.WithFlavor(flavor)}, opts...)...)
	}
}

func responses(model string, opts ...openai.Option) func(string) (llm.Client, error) {
	return func(base string) (llm.Client, error) {
		return openai.NewResponses(model, append([]openai.Option{openai.WithBaseURL(base), openai.WithFlavor(openai.OpenAI)}, opts...)...)
	}
}
