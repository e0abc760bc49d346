// SPDX-License-Identifier: Apache-2.0

// Package sse reads the events of a text/event-stream body: the framing that all
// model providers stream over, and nothing of what they put into it.
//
// The format is https://html.spec.whatwg.org/multipage/server-sent-events.html;
// github.com/tmaxmax/go-sse does the parsing. This package adds what a client of
// model providers needs beyond the format: events without data are dropped, a
// last event that lacks its blank line is handed over and marked, and an event
// that is too long is a typed error.
package sse

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"iter"

	gosse "github.com/tmaxmax/go-sse"
)

// DefaultLimit is the longest event in bytes that [Read] takes when no other
// limit is given: 16 MiB, enough for an image in base64.
const DefaultLimit = 16 << 20

// ErrTooLong is in the error of a stream with an event beyond the limit.
var ErrTooLong = errors.New("sse: an event is longer than the limit")

// An Event is one event of a stream.
type Event struct {
	// Type is the event field, empty when the event has none.
	Type string

	// Data is the data lines joined by newlines, never empty.
	Data string

	// Unterminated is set on a last event that the end of the body closed instead
	// of a blank line. Its last line may be cut: what does not parse was never
	// wholly sent, which makes the stream incomplete, not malformed.
	Unterminated bool
}

// Read yields the events of r as soon as their blank line has come. The borders
// between reads do not matter. Comments, ids and retry fields are passed over, and
// so are events without data, which no reader of JSON can use.
//
// A limit of 0 or less means [DefaultLimit]; it counts the whole event with its
// field names. After an error of r, or one that wraps [ErrTooLong], nothing more
// is yielded; the end of r is no error. Read does not close r.
func Read(r io.Reader, limit int) iter.Seq2[Event, error] {
	if limit <= 0 {
		limit = DefaultLimit
	}
	return func(yield func(Event, error) bool) {
		tail := &lines{r: r, limit: limit}
		for ev, err := range gosse.Read(tail, &gosse.ReadConfig{MaxEventSize: limit}) {
			if err != nil {
				if errors.Is(err, bufio.ErrTooLong) || errors.Is(err, ErrTooLong) {
					err = fmt.Errorf("%w of %d bytes", ErrTooLong, limit)
				}
				yield(Event{}, err)
				return
			}
			if ev.Data == "" {
				continue
			}
			if !yield(Event{Type: ev.Type, Data: ev.Data, Unterminated: tail.added}, nil) {
				return
			}
		}
	}
}
