// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// A Kind is what a caller may branch on.
type Kind string

// The kinds of [Error].
const (
	KindConfig        Kind = "configuration"  // the engine cannot be used as it was put together
	KindStale         Kind = "stale handle"   // the engine was locked or unlocked away from this handle, or never made
	KindBusy          Kind = "busy"           // a run is going on
	KindNothing       Kind = "nothing to do"  // there is nothing to resume
	KindPrefix        Kind = "prefix changed" // the request would not begin with the committed prefix
	KindGeneration    Kind = "generation"     // the model gave no reply
	KindContextWindow Kind = "context window" // the conversation does not fit the model
	KindCancelled     Kind = "cancelled"      // the caller's context ended
	KindAborted       Kind = "aborted"        // an interceptor stopped the run
	KindInterceptor   Kind = "interceptor"    // an interceptor failed
	KindHistory       Kind = "history append" // an observer refused a message
	KindState         Kind = "state"          // the machine refused an input
	KindJournal       Kind = "journal"        // the journal could not store or read
	KindFenced        Kind = "lease ended"    // the run is not this process's any more
	KindCheckpoint    Kind = "checkpoint"     // the checkpoint function failed
	KindNotice        Kind = "notice"         // the notice function failed
)

// Errors to compare with by errors.Is, one for each kind.
var (
	ErrConfig        error = sentinel(KindConfig)
	ErrStale         error = sentinel(KindStale)
	ErrBusy          error = sentinel(KindBusy)
	ErrNothing       error = sentinel(KindNothing)
	ErrPrefix        error = sentinel(KindPrefix)
	ErrGeneration    error = sentinel(KindGeneration)
	ErrContextWindow error = sentinel(KindContextWindow)
	ErrCancelled     error = sentinel(KindCancelled)
	ErrAborted       error = sentinel(KindAborted)
	ErrInterceptor   error = sentinel(KindInterceptor)
	ErrHistory       error = sentinel(KindHistory)
	ErrState         error = sentinel(KindState)
	ErrJournal       error = sentinel(KindJournal)
	ErrFenced        error = sentinel(KindFenced)
	ErrCheckpoint    error = sentinel(KindCheckpoint)
	ErrNotice        error = sentinel(KindNotice)
)

type sentinel Kind

func (s sentinel) Error() string { return "fiducial: " + string(s) }

// Advice says what a caller can do about an error (S-134).
type Advice string

// The pieces of advice.
const (
	AdviceRetry    Advice = "retry"             // the same may work later; after a cancel, with a context that has not ended
	AdviceWait     Advice = "wait"              // another run or process holds it: wait for it or stop it, then the same works
	AdviceOmitLast Advice = "omit last message" // the conversation is too large
	AdviceStop     Advice = "stop"              // it will not work like this
)

// An Error is how an engine fails. After every error the conversation can go on:
// the history holds whole replies only, and calls that are not answered yet are
// answered by Resume or the next run, before anything is sent.
type Error struct {
	Kind   Kind
	Op     string // what was being done: lock, run, resume, ...
	Detail string
	Err    error // the cause; may be nil

	lost string // what has to be done about the messages of Run
}

func (e *Error) Error() string {
	s := "fiducial: "
	if e.Op != "" {
		s += e.Op + ": "
	}
	s += string(e.Kind)
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	if e.Err != nil {
		s += ": " + e.cause()
	}
	if e.lost != "" {
		s += "; " + e.lost
	}
	return s
}

// cause is the text of the cause without what stands before it already.
func (e *Error) cause() string {
	s := strings.TrimPrefix(e.Err.Error(), "fiducial: ")
	if e.Op != "" {
		s = strings.TrimPrefix(s, e.Op+": ")
	}
	return strings.TrimPrefix(s, string(e.Kind)+": ")
}

func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, ErrCancelled) and the like work.
func (e *Error) Is(target error) bool {
	s, ok := target.(sentinel)
	return ok && Kind(s) == e.Kind
}

// Advice says what to do about the error.
func (e *Error) Advice() Advice {
	switch e.Kind {
	case KindContextWindow:
		return AdviceOmitLast
	case KindCancelled:
		return AdviceRetry
	case KindGeneration:
		// What no client of a model has classified may have passed.
		if cause, ok := errors.AsType[*llm.Error](e.Err); ok && !cause.Retryable() {
			return AdviceStop
		}
		return AdviceRetry
	case KindBusy:
		if errors.Is(e.Err, machine.ErrBusy) { // something has to be stored first, and the error says what
			return AdviceStop
		}
		return AdviceWait
	case KindJournal:
		if errors.Is(e.Err, journal.ErrHeld) {
			return AdviceWait
		}
		return AdviceStop
	case KindConfig, KindStale, KindNothing, KindPrefix, KindAborted, KindInterceptor, KindHistory,
		KindState, KindFenced, KindCheckpoint, KindNotice:
		return AdviceStop
	}
	return AdviceStop
}

func fail(kind Kind, op string, err error, format string, args ...any) *Error {
	e := &Error{Kind: kind, Op: op, Err: err}
	if format != "" {
		e.Detail = fmt.Sprintf(format, args...)
	}
	return e
}

// stateError reports an input that the machine refused, which is the engine's
// own mistake or that of a journal from elsewhere.
func stateError(op string, err error) *Error {
	if errors.Is(err, machine.ErrInvalidResponse) {
		return &Error{Kind: KindGeneration, Op: op, Err: err}
	}
	return &Error{Kind: KindState, Op: op, Err: err}
}

func journalError(op string, err error) *Error {
	if errors.Is(err, journal.ErrReplaced) {
		return fail(KindFenced, op, err, "the run's log was removed, replaced or changed; nothing more was done here")
	}
	if errors.Is(err, journal.ErrFenced) {
		return fail(KindFenced, op, err, "another process took the run over; nothing more was done here")
	}
	return &Error{Kind: KindJournal, Op: op, Err: err}
}

// generationError wraps what a client or a guard of the stream reported.
func generationError(op string, err error) *Error {
	class := llm.ClassOf(err)
	if e, ok := errors.AsType[*Error](err); ok && class == llm.ClassUnknown {
		return e // an observer refused the reply, or the like
	}
	if class == llm.ClassContextOverflow {
		return &Error{Kind: KindContextWindow, Op: op, Err: err}
	}
	return &Error{Kind: KindGeneration, Op: op, Err: err}
}
