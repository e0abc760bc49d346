// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/provider/openai"
)

// An endpoint answers every request with the same stream and keeps the last body.
type endpoint struct {
	url  string
	body []byte
	head http.Header
	path string
}

func serve(t *testing.T, status int, media, body string) *endpoint {
	t.Helper()
	e := &endpoint{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		if e.body, err = io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		e.head, e.path = r.Header, r.URL.Path
		w.Header().Set("Content-Type", media)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	e.url = s.URL
	return e
}

// sse frames data lines as a stream.
func sse(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

// delta is a chunk with one delta.
func delta(d string) string {
	return `{"choices":[{"index":0,"delta":` + d + `,"finish_reason":null}]}`
}

// ends is a chunk with a finish reason.
func ends(reason string) string {
	return `{"choices":[{"index":0,"delta":{},"finish_reason":"` + reason + `"}]}`
}

func ask(text string) *llm.Request {
	return &llm.Request{Messages: []llm.Message{llm.UserText(text)}, CacheAnchor: -1}
}

func chatReply(t *testing.T, flavor openai.Flavor, body string) (collect.Reply, error) {
	t.Helper()
	c, err := openai.NewChat("m", openai.WithBaseURL(serve(t, 200, "text/event-stream", body).url), openai.WithFlavor(flavor))
	if err != nil {
		t.Fatal(err)
	}
	return collect.Stream(t.Context(), c, ask("go"))
}

// sent is the body that a client sends for a request.
func sent(t *testing.T, newClient func(base string) (llm.Client, error), req *llm.Request) map[string]any {
	t.Helper()
	e := serve(t, 400, "application/json", `{}`)
	c, err := newClient(e.url)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := collect.Stream(t.Context(), c, req); llm.ClassOf(err) != llm.ClassInvalidRequest {
		t.Fatalf("got %v, want a refusal", err)
	}
	dec := json.NewDecoder(bytes.NewReader(e.body))
	dec.UseNumber()
	var out map[string]any
	if err := dec.Decode(&out); err != nil {
		t.Fatalf("%s: %v", e.body, err)
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

func errorOf(t *testing.T, err error) *llm.Error {
	t.Helper()
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		t.Fatalf("got %v, want an *llm.Error", err)
	}
	return e
}
