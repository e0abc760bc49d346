// SPDX-License-Identifier: Apache-2.0

package reply_test

import (
	"context"
	"errors"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

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
	case "more":
		d.out = append(d.out, llm.BlockDelta{Text: ev.Data})
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

// A server that says the end with its first piece is read for as long as pieces
// come; one that goes on with nothing is not.
func TestTheEndIsSaidEarly(t *testing.T) {
	for name, c := range map[string]struct {
		data string
		want int
	}{
		"pieces follow": {"more", 20},
		"nothing comes": {"again", 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var cut <-chan struct{}
				q := reply.Request[reply.Frame]{
					Op: "test: stream", TooLong: errLong, Decoder: &wordDecoder{},
					Open: func(ctx context.Context) (*http.Response, wire.Mask, error) {
						cut = ctx.Done()
						return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader("-"))}, wire.Mask{}, nil
					},
					Frames: func(io.Reader, int) iter.Seq2[reply.Frame, error] {
						return func(yield func(reply.Frame, error) bool) {
							for _, data := range append([]string{"end"}, slices.Repeat([]string{c.data}, 20)...) {
								select {
								case <-cut:
									yield(reply.Frame{}, context.Canceled)
									return
								default:
								}
								if !yield(reply.Frame{Data: data}, nil) {
									return
								}
								time.Sleep(time.Second)
							}
						}
					},
				}
				begin, pieces, finished := time.Now(), 0, false
				for ev, err := range q.Stream(t.Context()) {
					if err != nil {
						t.Fatal(err)
					}
					if _, ok := ev.(llm.BlockDelta); ok {
						pieces++
					}
					if _, ok := ev.(llm.Finish); ok {
						finished = true
					}
				}
				if pieces != c.want || !finished {
					t.Errorf("%d pieces after %v, finished %t, want %d", pieces, time.Since(begin), finished, c.want)
				}
				if c.want == 0 && time.Since(begin) > 5*time.Second {
					t.Errorf("a stream of nothing was read for %v", time.Since(begin))
				}
			})
		})
	}
}
