// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	oai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
	"github.com/fiducial-dev/fiducial/provider/sse"
)

// The defaults of the first two limits where a server may rightly be silent for
// long: one on this machine reads the whole prompt before its first byte, a reply
// that is no stream comes when it is there, and over Chat Completions a model that
// thinks says nothing until it has done so.
const (
	localWait = 10 * time.Minute
	chatWait  = 5 * time.Minute
)

// tailWait is how long the end of a stream may take once the reply is complete.
const tailWait = 3 * time.Second

// maxWhole is the largest reply that is not a stream, in bytes.
const maxWhole = 64 << 20

// A conn carries the requests of one client.
type conn struct {
	*setup
	client oai.Client
	mask   wire.Mask
}

// newConn returns a conn whose limits for opening and for the first event are
// wait where the caller set none; 0 leaves them to package wire.
func newConn(s *setup, wait time.Duration) *conn {
	if s.whole || loopback(s.url.Hostname()) {
		wait = localWait
	}
	s.limits.Open = cmp.Or(s.limits.Open, wait)
	s.limits.First = cmp.Or(s.limits.First, wait)
	// oai.NewClient would read keys, headers and addresses from the environment.
	opts := []option.RequestOption{
		option.WithBaseURL(s.url.String()),
		option.WithMiddleware(denied),
		option.WithHeader("Accept", "text/event-stream, application/json"), // E-213
	}
	if s.key != "" {
		opts = append(opts, option.WithAPIKey(s.key))
	}
	if s.http != nil {
		opts = append(opts, option.WithHTTPClient(s.http))
	}
	opts = append(opts, s.sdk...)
	opts = append(opts, option.WithMaxRetries(0)) // E-151
	return &conn{setup: s, client: oai.Client{Options: opts}, mask: wire.NewMask(s.key)}
}

// A decoder reads the events of one response and collects what they mean.
type decoder interface {
	// take reads one event.
	take(ev sse.Event) error

	// whole reads a reply that came in one piece.
	whole(body []byte) error

	// complete reports whether the provider said that the reply is complete, and
	// over whether nothing more is worth reading.
	complete() bool
	over() bool

	// end closes what is open and adds the last events of a complete reply.
	end() error

	// drain returns the events since the last call. They are valid until the next
	// call of any method.
	drain() []llm.Event
}

// stream sends one request and hands on what dec makes of the answer.
func (c *conn) stream(ctx context.Context, op, path string, body []byte, dec decoder) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		guard, gctx := wire.Watch(ctx, c.limits)
		defer guard.Stop()
		gctx, cancel := context.WithCancel(gctx)
		defer cancel()

		res, err := c.open(gctx, path, body)
		if err != nil {
			yield(nil, c.failure(ctx, guard, op, err))
			return
		}
		defer res.Body.Close() //nolint:errcheck // the reply was read, or is given up
		guard.Opened()

		body, read := bufio.NewReader(res.Body), c.readStream
		if wire.IsJSON(res.Header, body) {
			read = c.readWhole
		}
		r := reader{guard: guard, cut: cancel, yield: yield, dec: dec}
		err = read(body, &r)
		switch {
		case r.stopped:
		case err != nil:
			yield(nil, c.failure(ctx, guard, op, err))
		}
	}
}

// open sends the request and returns a response whose status is a success.
func (c *conn) open(ctx context.Context, path string, body []byte) (*http.Response, error) {
	var res *http.Response
	err := c.client.Execute(ctx, http.MethodPost, path, body, &res)
	if err == nil && res == nil {
		err = errors.New("no response")
	}
	if err != nil {
		if res != nil && res.Body != nil {
			res.Body.Close() //nolint:errcheck // there is a worse error already
		}
		return nil, err
	}
	return res, nil
}

// denied turns a response that refuses the request into an error, before the SDK
// reads it whole.
func denied(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	res, err := next(req)
	if err != nil || res.StatusCode < 300 {
		return res, err
	}
	defer res.Body.Close() //nolint:errcheck // the status is the error
	body, err := io.ReadAll(io.LimitReader(res.Body, wire.MaxErrorBody))
	if err != nil && len(body) == 0 {
		body = []byte(res.Status)
	}
	return nil, statusError(res.StatusCode, res.Header, body)
}

// A reader is one response being read.
type reader struct {
	guard   *wire.Guard
	cut     func() // ends the request
	yield   func(llm.Event, error) bool
	dec     decoder
	stopped bool // the consumer wants no more
}

// flush hands on what the decoder has collected; false when the consumer stopped.
func (r *reader) flush() bool {
	for _, ev := range r.dec.drain() {
		if !r.yield(ev, nil) {
			r.stopped = true
			return false
		}
	}
	return true
}

func (c *conn) readStream(body io.Reader, r *reader) error {
	var tail *time.Timer
	for ev, err := range sse.Read(body, 0) {
		if err != nil {
			if r.dec.complete() {
				break // only what may follow the end is missing
			}
			if errors.Is(err, sse.ErrTooLong) {
				return malformed("too_long", "%v", err)
			}
			return err
		}
		r.guard.Seen()
		err = r.dec.take(ev)
		if !r.flush() {
			return nil
		}
		if err != nil && ev.Unterminated && llm.ClassOf(err) == llm.ClassMalformedStream {
			break // the event was cut
		}
		if err != nil {
			return err
		}
		if r.dec.over() {
			break
		}
		if tail == nil && r.dec.complete() {
			tail = time.AfterFunc(tailWait, r.cut)
			defer tail.Stop()
		}
		r.guard.Wait()
	}
	return c.finish(r)
}

func (c *conn) readWhole(body io.Reader, r *reader) error {
	data, err := io.ReadAll(io.LimitReader(body, maxWhole))
	if err != nil {
		return err
	}
	err = r.dec.whole(data)
	if !r.flush() {
		return nil
	}
	if err != nil {
		return err
	}
	return c.finish(r)
}

func (c *conn) finish(r *reader) error {
	if !r.dec.complete() {
		return &llm.Error{
			Class:   llm.ClassStreamIncomplete,
			Message: "the stream ended before the provider said that the reply was complete",
		}
	}
	err := r.dec.end()
	if !r.flush() {
		return nil
	}
	return err
}

// failure is the error to report for err: a verdict of ours with its op and
// without secrets, or what the transport's error means.
func (c *conn) failure(ctx context.Context, guard *wire.Guard, op string, err error) error {
	verdict, ok := errors.AsType[*llm.Error](err)
	if !ok || ctx.Err() != nil {
		return guard.Failure(ctx, op, err, c.mask)
	}
	out := *verdict
	out.Op = op
	out.Code, out.Message = c.mask.Text(out.Code), c.mask.Text(out.Message)
	return &out
}

// malformed is the error of a stream that broke the rules of its format.
func malformed(code, format string, args ...any) *llm.Error {
	return &llm.Error{Class: llm.ClassMalformedStream, Code: code, Message: fmt.Sprintf(format, args...)}
}

// unhandled reports an event that nobody reads (E-160).
func unhandled(vendor, kind, data string) llm.Unhandled {
	const preview = 512
	return llm.Unhandled{Vendor: vendor, Type: kind, Preview: llm.CutUTF8(data, preview), Size: len(data)}
}
