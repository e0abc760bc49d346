// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"errors"
	"fmt"
	"time"
)

// A Class is what a caller may branch on. Two adapters that meet the same
// trouble give the same class.
type Class string

// The classes.
const (
	ClassUnknown           Class = "unknown"
	ClassAuth              Class = "auth"                // the key is missing or wrong
	ClassPermission        Class = "permission"          // the key may not do this
	ClassNotFound          Class = "not_found"           // no such model or endpoint
	ClassInvalidRequest    Class = "invalid_request"     // it can never succeed as it stands
	ClassContextOverflow   Class = "context_overflow"    // the conversation exceeds the model's window
	ClassRateLimit         Class = "rate_limit"          // too many requests or tokens for now
	ClassQuota             Class = "quota"               // out of credit; waiting does not help
	ClassOverloaded        Class = "overloaded"          // the provider asks for patience
	ClassServer            Class = "server"              // the provider failed
	ClassTransport         Class = "transport"           // no connection, or it broke
	ClassStreamIncomplete  Class = "stream_incomplete"   // the stream ended without its terminal event
	ClassStreamIdle        Class = "stream_idle"         // the stream stopped moving
	ClassMalformedStream   Class = "malformed_stream"    // the stream broke its own rules
	ClassMalformedToolCall Class = "malformed_tool_call" // the provider says that the model's call was no call
	ClassContentFilter     Class = "content_filter"      // the provider refuses to go on
	ClassTimeout           Class = "timeout"             // opening or the first event took too long
	ClassCancelled         Class = "cancelled"           // the caller's context ended
)

// An Error is what a [Client] returns when a request fails.
type Error struct {
	Class Class
	Op    string // for example "anthropic: stream"

	// Status is the HTTP status, 0 when no response came or the error stood
	// inside a stream.
	Status int

	// Code and Message are the provider's words, Message without secrets.
	Code, Message string

	// RetryAfter is the wait that the server asked for, 0 when it named none.
	RetryAfter time.Duration

	Err error // the cause; may be nil
}

func (e *Error) Error() string {
	s := e.Op
	if s == "" {
		s = "llm"
	}
	s += ": " + string(e.Class)
	if e.Status != 0 {
		s += fmt.Sprintf(" (HTTP %d)", e.Status)
	}
	switch {
	case e.Message != "" && e.Code != "":
		s += ": " + e.Code + ": " + e.Message
	case e.Message != "":
		s += ": " + e.Message
	case e.Code != "":
		s += ": " + e.Code
	}
	if e.Err != nil && e.Err.Error() != e.Message {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// Retryable reports whether the same request may succeed later: rate limits,
// overload, server and transport failures, and streams that broke (E-147, S-121).
func (e *Error) Retryable() bool {
	switch e.Class {
	case ClassRateLimit, ClassOverloaded, ClassServer, ClassTransport, ClassTimeout,
		ClassStreamIncomplete, ClassStreamIdle, ClassMalformedStream, ClassMalformedToolCall:
		return true
	case ClassUnknown, ClassAuth, ClassPermission, ClassNotFound, ClassInvalidRequest,
		ClassContextOverflow, ClassQuota, ClassContentFilter, ClassCancelled:
		return false
	}
	return false
}

// ClassOf is the class of the [*Error] in err, [ClassUnknown] when there is none.
func ClassOf(err error) Class {
	if e, ok := errors.AsType[*Error](err); ok {
		return e.Class
	}
	return ClassUnknown
}
