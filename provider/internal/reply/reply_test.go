// SPDX-License-Identifier: Apache-2.0

package reply_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/llm/wire"
	"github.com/fiducial-dev/fiducial/provider/internal/reply"
)

// lines is a framing of its own: one event a line.
func lines(body io.Reader, _ int) iter.Seq2[reply.Frame, error] {
	return func(yield func(reply.Frame, error) bool) {
		text, err := io.ReadAll(body)
		for line := range strings.Lines(string(text)) {
			whole := strings.HasSuffix(line, "\n")
			if !yield(reply.Frame{Data: strings.TrimSpace(line), Unterminated: !whole}, nil) {
				return
			}
		}
		if err != nil {
			yield(reply.Frame{}, err)
		}
	}
}

var errLong = errors.New("too long")

// A wordDecoder makes a block of words until "end".
type wordDecoder struct {
	out  []llm.Event
	over bool
}

func (d *wordDecoder) Take(ev reply.Frame) (bool, error) {
	switch ev.Data {
	case "ping":
		return false, nil
	case "?":
		return true, reply.Malformed("word", "no word: %s", ev.Data)
	case "odd secret-key":
		d.out = append(d.out, reply.Unhandled("test", "odd", ev.Data))
	case "end":
		d.over = true
	}
	return true, nil
}

func (d *wordDecoder) Whole([]byte) error { d.over = true; return nil }
func (d *wordDecoder) Complete() bool     { return d.over }
func (d *wordDecoder) Over() bool         { return false }
func (d *wordDecoder) Drain() []llm.Event { out := d.out; d.out = nil; return out }

func (d *wordDecoder) End() error {
	d.out = append(d.out, llm.Finish{Stop: llm.StopEndTurn})
	return nil
}

func TestWhatAnEndMeans(t *testing.T) {
	broken := errors.New("connection reset; key=secret-key")
	for name, c := range map[string]struct {
		body string
		err  error // of reading, behind the body
		want llm.Class
	}{
		"complete":                       {"a\nend\n", nil, ""},
		"in one piece":                   {"{}", nil, ""},
		"the end is missing":             {"a\n", nil, llm.ClassStreamIncomplete},
		"nothing came":                   {"", nil, llm.ClassStreamIncomplete},
		"broken before the end":          {"a\n", broken, llm.ClassTransport},
		"broken behind the end":          {"a\nend\n", broken, ""},
		"an event that is wrong":         {"a\n?\nend\n", nil, llm.ClassMalformedStream},
		"an event that was cut":          {"a\n?", nil, llm.ClassStreamIncomplete},
		"cut behind the end":             {"a\nend\n?", nil, ""},
		"an event that is beyond limits": {"a\n", errLong, llm.ClassMalformedStream},
	} {
		q := reply.Request[reply.Frame]{
			Op: "test: stream", Frames: lines, TooLong: errLong, Decoder: &wordDecoder{},
			Open: func(context.Context) (*http.Response, wire.Mask, error) {
				end := c.err
				if end == nil {
					end = io.EOF
				}
				body := io.MultiReader(strings.NewReader(c.body), failing{end})
				return &http.Response{StatusCode: 200, Body: io.NopCloser(body)}, wire.NewMask("secret-key"), nil
			},
		}
		var col collect.Collector
		var failed error
		for ev, err := range q.Stream(t.Context()) {
			if failed = err; err == nil {
				failed = col.Add(ev)
			}
		}
		if failed == nil {
			_, failed = col.Reply()
		}
		if c.want == "" && failed != nil || c.want != "" && llm.ClassOf(failed) != c.want {
			t.Errorf("%s: got %v, want class %q", name, failed, c.want)
		}
		if failed != nil && strings.Contains(failed.Error(), "secret-key") {
			t.Errorf("%s: the error shows the key: %v", name, failed)
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// What nobody reads is shown without the key.
func TestUnhandledIsMasked(t *testing.T) {
	q := reply.Request[reply.Frame]{
		Op: "test: stream", Frames: lines, TooLong: errLong, Decoder: &wordDecoder{},
		Open: func(context.Context) (*http.Response, wire.Mask, error) {
			return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("odd secret-key\nend\n"))}, wire.NewMask("secret-key"), nil
		},
	}
	var got []llm.Event
	for ev, err := range q.Stream(t.Context()) {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, ev)
	}
	want := llm.Unhandled{Vendor: "test", Type: "odd", Preview: "odd [masked]", Size: len("odd secret-key")}
	if len(got) != 2 || got[0] != want {
		t.Errorf("got %+v, want %+v first", got, want)
	}
}
