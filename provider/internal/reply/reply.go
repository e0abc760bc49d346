// SPDX-License-Identifier: Apache-2.0

// Package reply sends one request of an adapter and reads its response to the end,
// as a stream or in one piece. What the formats share is here: when a reply is
// complete, what it means that a response broke off, and that no secret is told.
// What stands in the events is the business of the adapter's [Decoder].
package reply

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
)

const (
	// tailWait is how long the end of a stream may take once the reply is complete
	// and nothing more of it came.
	tailWait = 3 * time.Second

	// maxWhole is the largest reply that is not a stream, in bytes.
	maxWhole = 64 << 20

	// maxPreview is how much is shown of what nobody reads, in bytes.
	maxPreview = 512
)

// A Frame is one event of a stream, as package sse gives it. That package is a
// module of its own with a third party, which this one does without.
type Frame struct {
	Type         string
	Data         string
	Unterminated bool // the end of the body closed it; its last line may be cut
}

type framed interface {
	~struct {
		Type         string
		Data         string
		Unterminated bool
	}
}

// A Decoder reads the events of one response and collects what they mean.
type Decoder interface {
	// Take reads one event. It reports false for one that only keeps the
	// connection, as a comment does.
	Take(ev Frame) (moved bool, err error)

	// Whole reads a reply that came in one piece.
	Whole(body []byte) error

	// Complete reports whether the provider said that the reply is complete.
	Complete() bool
	// Over reports whether nothing more is worth reading.
	Over() bool

	// End closes what is open and adds the last events of a complete reply.
	End() error

	// Drain returns the events since the last call. They are valid until the next
	// call of any method.
	Drain() []llm.Event
}

// A Request is one request of an adapter. All fields are needed.
type Request[E framed] struct {
	Op     string // of errors, such as "gemini: stream"
	Limits wire.Timeouts

	// Open sends the request and returns a response whose status is a success. The
	// mask knows every secret of the request, also when there is an error.
	Open func(ctx context.Context) (*http.Response, wire.Mask, error)

	// Frames is sse.Read, and TooLong its error for an event beyond the limit.
	Frames  func(body io.Reader, limit int) iter.Seq2[E, error]
	TooLong error

	Decoder Decoder
}

// Stream sends the request and yields its reply as it comes, see [llm.Client].
func (q Request[E]) Stream(ctx context.Context) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		guard, gctx := wire.Watch(ctx, q.Limits)
		defer guard.Stop()
		gctx, cancel := context.WithCancel(gctx)
		defer cancel()

		res, mask, err := q.Open(gctx)
		if err != nil {
			yield(nil, failure(ctx, guard, q.Op, err, mask))
			return
		}
		defer res.Body.Close() //nolint:errcheck // the reply was read, or is given up
		guard.Opened()

		r := reader[E]{Request: q, guard: guard, mask: mask, cut: cancel, yield: yield}
		body, read := bufio.NewReader(res.Body), r.stream
		if wire.IsJSON(res.Header, body) {
			read = r.whole
		}
		if err := read(body); err != nil && !r.stopped {
			yield(nil, failure(ctx, guard, q.Op, err, mask))
		}
	}
}

// A reader is one response being read.
type reader[E framed] struct {
	Request[E]
	guard   *wire.Guard
	mask    wire.Mask
	cut     func() // ends the request
	yield   func(llm.Event, error) bool
	grew    bool // the last flush had more of a block
	stopped bool // the consumer wants no more
}

// flush hands on what the decoder has collected; false when the consumer stopped.
func (r *reader[E]) flush() bool {
	r.grew = false
	for _, ev := range r.Decoder.Drain() {
		switch e := ev.(type) {
		case llm.BlockStart, llm.BlockDelta:
			r.grew = true
		case llm.Unhandled:
			e.Preview = llm.CutUTF8(r.mask.Text(wire.UTF8(e.Preview)), maxPreview)
			ev = e
		case llm.BlockStop, llm.UsageReport, llm.Finish, llm.Failover:
		}
		if !r.yield(ev, nil) {
			r.stopped = true
			return false
		}
	}
	return true
}

func (r *reader[E]) stream(body io.Reader) error {
	var tail *time.Timer
	var halves pairs
	for ev, err := range r.Frames(body, 0) {
		if err != nil {
			if r.Decoder.Complete() {
				break // only what may follow the end is missing
			}
			if errors.Is(err, r.TooLong) {
				return Malformed("too_long", "%v", err)
			}
			return err
		}
		frame := Frame(ev)
		frame.Data = halves.join(frame.Data)
		moved, err := r.Decoder.Take(frame)
		if moved {
			r.guard.Seen()
		}
		if !r.flush() {
			return nil
		}
		if err != nil && frame.Unterminated && llm.ClassOf(err) == llm.ClassMalformedStream {
			break // the event was cut
		}
		if err != nil {
			return err
		}
		if r.Decoder.Over() {
			break
		}
		switch {
		case tail == nil && r.Decoder.Complete():
			tail = time.AfterFunc(tailWait, r.cut)
			defer tail.Stop()
		case tail != nil && r.grew: // some servers say the end with every piece
			tail.Reset(tailWait)
		}
		if moved {
			r.guard.Wait()
		}
	}
	return r.finish()
}

func (r *reader[E]) whole(body io.Reader) error {
	data, err := io.ReadAll(io.LimitReader(body, maxWhole))
	if err != nil {
		return err
	}
	r.guard.Seen()
	err = r.Decoder.Whole(data)
	if !r.flush() {
		return nil
	}
	if err != nil {
		return err
	}
	return r.finish()
}

func (r *reader[E]) finish() error {
	if !r.Decoder.Complete() {
		return &llm.Error{
			Class:   llm.ClassStreamIncomplete,
			Message: "the stream ended before the provider said that the reply was complete",
			Err:     io.ErrUnexpectedEOF,
		}
	}
	err := r.Decoder.End()
	if !r.flush() {
		return nil
	}
	return err
}

// failure is the error to report for err: a verdict of ours with its op and
// without secrets, or what the transport's error means.
func failure(ctx context.Context, guard *wire.Guard, op string, err error, mask wire.Mask) error {
	verdict, ok := errors.AsType[*llm.Error](err)
	if !ok || ctx.Err() != nil {
		return guard.Failure(ctx, op, err, mask)
	}
	out := *verdict
	out.Op = op
	out.Code, out.Message = mask.Text(out.Code), mask.Text(out.Message)
	return &out
}

// Malformed is the error of a stream that broke the rules of its format.
func Malformed(code, format string, args ...any) *llm.Error {
	return &llm.Error{Class: llm.ClassMalformedStream, Code: code, Message: fmt.Sprintf(format, args...)}
}

// Unhandled reports a part of a reply that nobody reads (E-160). Its preview is
// masked and cut to its length as it is handed on.
func Unhandled(vendor, kind, data string) llm.Unhandled {
	return llm.Unhandled{Vendor: vendor, Type: kind, Preview: llm.CutUTF8(data, 2*maxPreview), Size: len(data)}
}

// Refusal reads the body of a response whose status says that the request failed,
// as much as is worth reading, and closes it. Where nothing can be read the status
// line stands for it.
func Refusal(res *http.Response) []byte {
	defer res.Body.Close() //nolint:errcheck // the status is the error
	text, err := io.ReadAll(io.LimitReader(res.Body, wire.MaxErrorBody))
	if err != nil && len(text) == 0 {
		return []byte(res.Status)
	}
	return text
}
