// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"errors"
	"fmt"
)

// ErrorKind is what a caller may branch on.
type ErrorKind string

// The kinds of [StateError] (S-131).
const (
	Busy                 ErrorKind = "busy"                  // the phase does not allow the input
	UnexpectedCompletion ErrorKind = "unexpected completion" // nobody waits for it: a stale, repeated or foreign operation
	InvalidContext       ErrorKind = "invalid context"       // the messages would be no conversation
	InvalidResponse      ErrorKind = "invalid response"      // the model's reply is no reply
	SequenceExhausted    ErrorKind = "sequence exhausted"    // there is no further operation id
)

// Sentinels for [errors.Is], one for each kind.
var (
	ErrBusy                 = errors.New(string(Busy))
	ErrUnexpectedCompletion = errors.New(string(UnexpectedCompletion))
	ErrInvalidContext       = errors.New(string(InvalidContext))
	ErrInvalidResponse      = errors.New(string(InvalidResponse))
	ErrSequenceExhausted    = errors.New(string(SequenceExhausted))
)

// A StateError says why an input was refused. The state is then exactly as it was
// before the input.
type StateError struct {
	Kind   ErrorKind
	Input  string // kind of the input as in [EncodeInput]; empty outside [State.Step]
	Phase  Phase  // when Input is not empty
	Detail string

	// Index is that of the offending message in the history that was given, or
	// that of the offending call in the batch; -1 when there is none.
	Index int
}

func (e *StateError) Error() string {
	s := "machine: " + string(e.Kind)
	if e.Input != "" {
		s += fmt.Sprintf(": %s while %s", e.Input, e.Phase)
	}
	if e.Detail != "" {
		s += ": " + e.Detail
	}
	return s
}

// Is makes errors.Is(err, ErrBusy) and its like work.
func (e *StateError) Is(target error) bool {
	switch e.Kind {
	case Busy:
		return target == ErrBusy
	case UnexpectedCompletion:
		return target == ErrUnexpectedCompletion
	case InvalidContext:
		return target == ErrInvalidContext
	case InvalidResponse:
		return target == ErrInvalidResponse
	case SequenceExhausted:
		return target == ErrSequenceExhausted
	}
	return false
}

func failure(kind ErrorKind, index int, format string, args ...any) *StateError {
	return &StateError{Kind: kind, Index: index, Detail: fmt.Sprintf(format, args...)}
}

func busy(format string, args ...any) *StateError { return failure(Busy, -1, format, args...) }

func unexpected(format string, args ...any) *StateError {
	return failure(UnexpectedCompletion, -1, format, args...)
}
