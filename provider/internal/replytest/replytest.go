// SPDX-License-Identifier: Apache-2.0

// Package replytest holds what the tests of all adapters need: a server that
// answers always the same, and checks of what each of them promises whatever its
// format.
package replytest

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/llm/wire"
)

// An Endpoint answers every request with the same response and keeps the last one.
type Endpoint struct {
	URL  string
	Body []byte
	Head http.Header
	URI  string // path and query
}

// Serve starts an endpoint that lives as long as the test.
func Serve(t *testing.T, status int, media, body string) *Endpoint {
	t.Helper()
	e := &Endpoint{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var err error
		if e.Body, err = io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		e.Head, e.URI = r.Header, r.URL.RequestURI()
		w.Header().Set("Content-Type", media)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	t.Cleanup(s.Close)
	e.URL = s.URL
	return e
}

// Stream frames data lines as an event stream.
func Stream(data ...string) string {
	var b strings.Builder
	for _, d := range data {
		b.WriteString("data: " + d + "\n\n")
	}
	return b.String()
}

// Ask is a request of one text.
func Ask(text string) *llm.Request {
	return &llm.Request{Messages: []llm.Message{llm.UserText(text)}, CacheAnchor: -1}
}

// ErrorOf is err as what a client hands out.
func ErrorOf(t *testing.T, err error) *llm.Error {
	t.Helper()
	e, ok := errors.AsType[*llm.Error](err)
	if !ok {
		t.Fatalf("got %v, want an *llm.Error", err)
	}
	return e
}

// Again has a client make a reply, and sends it back to it with a result for each
// call. The endpoint then has the second request.
func Again(t *testing.T, c llm.Client) {
	t.Helper()
	req := Ask("go")
	r, err := collect.Stream(t.Context(), c, req)
	if err != nil {
		t.Fatal(err)
	}
	req.Messages = append(req.Messages, r.Message)
	if results := answers(r.Message, "ok"); len(results) > 0 {
		req.Messages = append(req.Messages, llm.ToolResults(results...))
	}
	if _, err := collect.Stream(t.Context(), c, req); err != nil {
		t.Fatal(err)
	}
}

func answers(m llm.Message, summary string, images ...llm.Image) []llm.Result {
	var out []llm.Result
	for _, call := range m.Calls() {
		out = append(out, llm.Result{CallID: call.ID, Name: call.Name, Status: llm.StatusSuccess, Summary: summary, Images: images})
	}
	return out
}

// A Canned transport answers with a body, without a network.
type Canned func() io.Reader

// RoundTrip answers.
func (c Canned) RoundTrip(req *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(c()), Request: req,
	}, nil
}

// Client is a client whose HTTP is r.
func (c Canned) Client() *http.Client { return &http.Client{Transport: c} }

// CheckStream feeds a stream to a client: it never breaks the rules of its events,
// its errors are typed, and the borders between reads do not matter (E-217).
func CheckStream(t *testing.T, body string, newClient func(*http.Client) (llm.Client, error)) {
	t.Helper()
	read := func(r Canned) (collect.Reply, error) {
		c, err := newClient(r.Client())
		if err != nil {
			t.Fatal(err)
		}
		var col collect.Collector
		for ev, err := range c.Stream(t.Context(), Ask("go")) {
			if err != nil {
				_ = ErrorOf(t, err)
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

// Hang starts a server that sends something and then nothing for ever, and returns
// its address.
func Hang(t *testing.T, first string) string {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if first != "" {
			_, _ = io.WriteString(w, first)
			_ = http.NewResponseController(w).Flush()
		}
		_, _ = io.ReadAll(r.Body)
		<-r.Context().Done()
	}))
	t.Cleanup(s.Close)
	return s.URL
}

// CheckLimits holds that a stream which stands still ends by itself, and as a reply
// when only what may follow its end is missing. The stream says hi, and ends.
func CheckLimits(t *testing.T, hi, end string, newClient func(base string, limits wire.Timeouts) (llm.Client, error)) {
	t.Helper()
	limits := wire.Timeouts{Open: 50 * time.Millisecond, First: 50 * time.Millisecond, Idle: 50 * time.Millisecond}
	for _, tt := range []struct {
		first string
		want  llm.Class
	}{
		{"", llm.ClassTimeout},
		{": wait\n\n", llm.ClassTimeout},
		{hi, llm.ClassStreamIdle},
		{hi + end, ""},
	} {
		c, err := newClient(Hang(t, tt.first), limits)
		if err != nil {
			t.Fatal(err)
		}
		r, err := collect.Stream(t.Context(), c, Ask("go"))
		if tt.want == "" && (err != nil || r.Message.Text() != "hi") || tt.want != "" && llm.ClassOf(err) != tt.want {
			t.Errorf("%q: got %+v, %v, want class %q", tt.first, r.Message, err, tt.want)
		}
	}
}

// CheckPrefix holds that all of a request but the brackets at its end is the start
// of the next one (E-186), over a conversation with calls, pictures and odd text.
func CheckPrefix(t *testing.T, newClient func(base string) (llm.Client, error)) {
	t.Helper()
	r := rand.New(rand.NewPCG(7, 4))
	srv := llmtest.NewServer(llmtest.NewScript(
		llmtest.Call("read", `{"z":1.0,"a":"<&>"}`, "read", ``), llmtest.Say(llmtest.RandomText(r)),
		llmtest.Call("read.it", `{}`), llmtest.Say("bye")))
	defer srv.Close()
	c, err := newClient(srv.URL)
	if err != nil {
		t.Fatal(err)
	}
	req := Ask(llmtest.RandomText(r))
	req.System, req.CacheKey = llmtest.RandomText(r), "k"
	req.Tools = []llm.Tool{{Name: "read"}, {Name: "read.it"}}
	for range 4 {
		reply, err := collect.Stream(t.Context(), c, req)
		if err != nil {
			t.Fatal(err)
		}
		req.Messages = append(req.Messages, reply.Message)
		if results := answers(reply.Message, llmtest.RandomText(r), llm.Image{Media: "image/png", Data: []byte("png")}); len(results) > 0 {
			req.Messages = append(req.Messages, llm.ToolResults(results...))
		}
		req.Messages = append(req.Messages, llm.UserText(llmtest.RandomText(r)))
	}
	all := srv.Exchanges()
	for i := 1; i < len(all); i++ {
		if before := bytes.TrimSuffix(all[i-1].Body, []byte("]}")); !bytes.HasPrefix(all[i].Body, before) {
			t.Errorf("request %d does not go on where this ended:\n%s\n%s", i+1, all[i-1].Body, all[i].Body)
		}
	}
}
