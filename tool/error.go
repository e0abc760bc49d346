// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"errors"
	"fmt"

	"github.com/fiducial-dev/fiducial/llm"
)

// A Kind says how a call failed.
type Kind string

// The kinds.
const (
	InvalidArgument Kind = "invalid argument" // the model can repair it
	NotFound        Kind = "not found"        // there is no such tool
	Failed          Kind = "failed"           // the tool could not do it
	Internal        Kind = "internal"         // the program is at fault
	Cancelled       Kind = "cancelled"        // stopped because the run was cancelled
	Interrupted     Kind = "interrupted"      // stopped early for another reason
)

// An Error is how a tool fails. It becomes a result, never a failure of the run
// (E-107). Message is what the model reads.
type Error struct {
	Kind    Kind
	Message string
	Output  Output // what there is in spite of it; for Cancelled and Interrupted
	Err     error  // the cause; may be nil
}

func (e *Error) Error() string {
	if e.Message != "" {
		return e.Message
	}
	if e.Err != nil {
		return e.Err.Error()
	}
	return string(e.Kind)
}

func (e *Error) Unwrap() error { return e.Err }

// Errorf is an [*Error] of the given kind. It wraps what %w names.
func Errorf(kind Kind, format string, args ...any) *Error {
	err := fmt.Errorf(format, args...)
	return &Error{Kind: kind, Message: err.Error(), Err: errors.Unwrap(err)}
}

// ErrTimeLimit is the cause of a call's context when its tool's time limit has
// passed.
var ErrTimeLimit = errors.New("tool: the call took longer than its time limit")

// resultOf turns what a tool returned into a result.
func resultOf(ctx context.Context, call Call, out Output, err error) Result {
	r := Result{CallID: call.ID, Name: call.Name}
	if err == nil {
		r.Status = llm.StatusSuccess
		r.Summary, r.Content, r.Images = out.Summary, out.Content, out.Images
		return r
	}
	r.Status, r.Summary = llm.StatusError, err.Error()
	if r.Summary == "" {
		r.Summary = "the tool failed without a message"
	}
	if _, ok := errors.AsType[*unknownError](err); ok {
		r.Status = llm.StatusUnknown
		return r
	}
	if e, ok := errors.AsType[*Error](err); ok {
		switch e.Kind {
		case Cancelled:
			r.Status = llm.StatusCancelled
			r.Content, r.Images = join(e.Output), e.Output.Images
		case Interrupted:
			r.Status = llm.StatusInterrupted
			r.Content, r.Images = join(e.Output), e.Output.Images
		case InvalidArgument, NotFound, Failed, Internal:
		}
		return r
	}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		r.Status = llm.StatusCancelled
	}
	return r
}

func join(o Output) string {
	if o.Summary == "" || o.Content == "" {
		return o.Summary + o.Content
	}
	return o.Summary + "\n" + o.Content
}
