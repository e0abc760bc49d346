// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/provider/openai"
)

// A canned transport answers with a body, without a network.
type canned func() io.Reader

func (c canned) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(c()), Request: req,
	}, nil
}

// FuzzChat feeds streams to the decoder: it never breaks the rules of its events,
// and the borders between reads do not matter (E-217).
func FuzzChat(f *testing.F) {
	for _, s := range []string{
		sse(delta(`{"content":"hi"}`), ends("stop"), "[DONE]"),
		sse(delta(`{"reasoning_content":"h","tool_calls":[{"index":1,"id":"a","function":{"name":"f","arguments":"{\"a\""}},{"index":0,"id":"b","function":{"name":"g"}}]}`), ends("tool_calls")),
		sse(`{"error":{"message":"x","code":502}}`),
		sse(delta(`{"content":[{"type":"thinking","thinking":[{"text":"t"}]}],"reasoning_details":[{"type":"a","index":0,"text":"x"}]}`), ends("length")),
		sse(delta(`{"tool_calls":[{"function":{"name":"f","arguments":{}}},{}]}`), `{"choices":[],"usage":{"prompt_tokens":1}}`),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) { fuzz(t, body, newFuzzChat) })
}

// FuzzResponses does the same for the other format.
func FuzzResponses(f *testing.F) {
	for _, s := range []string{
		sse(created, `{"type":"response.output_text.delta","output_index":0,"content_index":0,"delta":"hi"}`, completed),
		sse(item("added", "0", `{"type":"function_call","call_id":"c","name":"f","arguments":""}`),
			`{"type":"response.function_call_arguments.delta","output_index":0,"delta":"{"}`,
			`{"type":"response.incomplete","response":{"output":[{"type":"function_call","arguments":"{"}]}}`),
		sse(item("done", "1", `{"type":"reasoning","summary":[{"text":"x"}],"encrypted_content":"e"}`), completed),
		sse(`{"type":"error","message":"x"}`),
		sse(`{"type":"response.completed","response":{"output":[{"type":"message","content":[{"type":"output_text","text":"a"}]}]}}`),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) { fuzz(t, body, newFuzzResponses) })
}

func newFuzzChat(h *http.Client) (llm.Client, error) {
	return openai.NewChat("m", openai.WithBaseURL("http://localhost"), openai.WithHTTPClient(h))
}

func newFuzzResponses(h *http.Client) (llm.Client, error) {
	return openai.NewResponses("m", openai.WithBaseURL("http://localhost"), openai.WithHTTPClient(h))
}

func fuzz(t *testing.T, body string, newClient func(*http.Client) (llm.Client, error)) {
	read := func(r canned) (collect.Reply, error) {
		c, err := newClient(&http.Client{Transport: r})
		if err != nil {
			t.Fatal(err)
		}
		var col collect.Collector
		for ev, err := range c.Stream(t.Context(), ask("go")) {
			if err != nil {
				if _, ok := errors.AsType[*llm.Error](err); !ok {
					t.Errorf("%v is no *llm.Error", err)
				}
				return collect.Reply{}, err
			}
			if err := col.Add(ev); err != nil {
				t.Fatalf("%#v: %v", ev, err)
			}
		}
		return col.Reply()
	}
	a, errA := read(func() io.Reader { return strings.NewReader(body) })
	b, errB := read(func() io.Reader { return iotest.OneByteReader(strings.NewReader(body)) })
	if llm.ClassOf(errA) != llm.ClassOf(errB) || errA == nil && !reflect.DeepEqual(a, b) {
		t.Errorf("in one piece %+v, %v; in many %+v, %v", a, errA, b, errB)
	}
}
