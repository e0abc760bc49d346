// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
	"github.com/fiducial-dev/fiducial/provider/sse"
)

// Vendor is the vendor of this package's [llm.Opaque] data.
const Vendor = "gemini"

const op = "gemini: stream"

// tailWait is how long the end of a stream may take once the reply is complete.
const tailWait = 3 * time.Second

// maxWhole is the largest reply that is not a stream, in bytes.
const maxWhole = 64 << 20

// Client is an [llm.Client] for one Gemini model. It is safe for concurrent use.
type Client struct {
	*setup
	mask wire.Mask
}

var (
	_ llm.Client    = (*Client)(nil)
	_ llm.Describer = (*Client)(nil)
	_ llm.Checker   = (*Client)(nil)
)

// New returns a client for a model such as gemini-3-pro. It does no I/O
// and reads no environment. A missing key is an [*llm.Error] of class auth (B-129),
// any other mistake in the options one of class invalid_request.
func New(model string, opts ...Option) (*Client, error) {
	s, err := newSetup(model, opts)
	if err != nil {
		return nil, err
	}
	return &Client{setup: s, mask: wire.NewMask(s.key)}, nil
}

// Describe tells what the client talks to.
func (c *Client) Describe() llm.Model {
	return llm.Model{Vendor: Vendor, Name: c.model, Window: c.window, Host: c.url.Host}
}

// Check tells which settings cannot be honoured.
func (c *Client) Check(set llm.Settings) []string {
	var out []string
	if set.Effort != "" && !c.third() {
		out = append(out, "reasoning effort is not known to "+c.model+"; set a thinking budget")
	}
	if set.Sequential {
		out = append(out, "calls one at a time cannot be asked of Gemini")
	}
	return out
}

// Stream sends one request, see [llm.Client]. A reply is complete when a finish
// reason came. Ids of calls are left to package collect unless the server gives
// its own (E-254).
func (c *Client) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		guard, gctx := wire.Watch(ctx, c.limits)
		defer guard.Stop()
		gctx, cancel := context.WithCancel(gctx)
		defer cancel()

		names := wire.NewNames(req.Tools)
		res, mask, err := c.open(gctx, encode(c.setup, req, names))
		if err != nil {
			yield(nil, failure(ctx, guard, err, mask))
			return
		}
		defer res.Body.Close() //nolint:errcheck // the reply was read, or is given up
		guard.Opened()

		r := reader{guard: guard, cut: cancel, yield: yield, dec: newStream(names)}
		body, read := bufio.NewReader(res.Body), r.stream
		if wire.IsJSON(res.Header, body) {
			read = r.whole
		}
		if err := read(body); err != nil && !r.stopped {
			yield(nil, failure(ctx, guard, err, mask))
		}
	}
}

// open sends the request and returns a response whose status is a success. The
// mask knows every secret of the request.
func (c *Client) open(ctx context.Context, body []byte) (*http.Response, wire.Mask, error) {
	// The key is no part of the address, which errors and proxies show (E-260).
	address := c.url.String() + "/" + c.path + ":streamGenerateContent?alt=sse"
	if c.whole {
		address = c.url.String() + "/" + c.path + ":generateContent"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, c.mask, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json") // E-213
	mask := c.mask
	switch {
	case c.token != nil:
		token, err := c.token(ctx)
		if err != nil {
			return nil, mask, &llm.Error{Class: llm.ClassAuth, Message: "no token: " + err.Error()}
		}
		mask = wire.NewMask(c.key, token)
		req.Header.Set("Authorization", "Bearer "+token)
	case c.key != "":
		req.Header.Set("X-Goog-Api-Key", c.key)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, mask, err
	}
	if res.StatusCode < 300 {
		return res, mask, nil
	}
	defer res.Body.Close() //nolint:errcheck // the status is the error
	text, err := io.ReadAll(io.LimitReader(res.Body, wire.MaxErrorBody))
	if err != nil && len(text) == 0 {
		text = []byte(res.Status)
	}
	return nil, mask, statusError(res.StatusCode, res.Header, text)
}

// A reader is one response being read.
type reader struct {
	guard   *wire.Guard
	cut     func() // ends the request
	yield   func(llm.Event, error) bool
	dec     *stream
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

func (r *reader) stream(body io.Reader) error {
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
		err = r.dec.take([]byte(ev.Data))
		if !r.flush() {
			return nil
		}
		if err != nil && ev.Unterminated && llm.ClassOf(err) == llm.ClassMalformedStream {
			break // the event was cut
		}
		if err != nil {
			return err
		}
		if tail == nil && r.dec.complete() {
			tail = time.AfterFunc(tailWait, r.cut)
			defer tail.Stop()
		}
		r.guard.Wait()
	}
	return r.finish()
}

func (r *reader) whole(body io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(body, maxWhole))
	if err != nil {
		return err
	}
	err = r.dec.takeAll(data)
	if !r.flush() {
		return nil
	}
	if err != nil {
		return err
	}
	return r.finish()
}

func (r *reader) finish() error {
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

// failure is the error to report for err: a verdict of ours without secrets, or
// what the transport's error means.
func failure(ctx context.Context, guard *wire.Guard, err error, mask wire.Mask) error {
	verdict, ok := errors.AsType[*llm.Error](err)
	if !ok || ctx.Err() != nil {
		return guard.Failure(ctx, op, err, mask)
	}
	out := *verdict
	out.Op = op
	out.Code, out.Message = mask.Text(out.Code), mask.Text(out.Message)
	return &out
}

// malformed is the error of a stream that broke the rules of its format.
func malformed(code, format string, args ...any) *llm.Error {
	return &llm.Error{Class: llm.ClassMalformedStream, Code: code, Message: fmt.Sprintf(format, args...)}
}
