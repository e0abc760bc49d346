// SPDX-License-Identifier: Apache-2.0

package gemini_test

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
	"github.com/fiducial-dev/fiducial/provider/gemini"
)

// A canned transport answers with a body, without a network.
type canned func() io.Reader

func (c canned) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(c()), Request: req,
	}, nil
}

// FuzzStream feeds streams to the decoder: it never breaks the rules of its
// events, and the borders between reads do not matter (E-217).
func FuzzStream(f *testing.F) {
	for _, s := range []string{
		sse(parts(`{"text":"hi"},{"text":"","thoughtSignature":"s"}`), ends("STOP")),
		sse(parts(`{"text":"t","thought":true},{"functionCall":{"name":"f","args":{"a":1.0}},"thoughtSignature":"s"}`), ends("STOP")),
		sse(`{"promptFeedback":{"blockReason":"X"}}`),
		sse(`{"error":{"code":500,"status":"INTERNAL"}}`),
		sse(ends("MALFORMED_FUNCTION_CALL")),
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, body string) {
		read := func(r canned) (collect.Reply, error) {
			c := client(t, "gemini-3-pro", "http://localhost", gemini.WithHTTPClient(&http.Client{Transport: r}))
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
	})
}

// FuzzSchema reduces anything to JSON, or to nothing.
func FuzzSchema(f *testing.F) {
	f.Add(`{"type":"object","properties":{"a":{"$ref":"#"},"b":{"anyOf":[{"type":["null","string"]},{"const":1}]}},"required":["a"]}`)
	f.Add(`{"properties":{"a":{"allOf":[{"properties":{"x":{}}},{"properties":{"y":{"exclusiveMinimum":1e3,"type":"integer"}}}]}}}`)
	f.Fuzz(func(t *testing.T, schema string) { gemini.CheckReduced(t, schema) })
}
