// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
)

type (
	// Spec is what a model is told of a tool.
	Spec = llm.Tool
	// Result is what a model reads of a call.
	Result = llm.Result
)

// A Tool is one thing that a model can call. Implementations are safe for
// concurrent use, unless their traits say [Traits.Exclusive].
type Tool interface {
	// Spec never changes.
	Spec() Spec
	// Traits never change.
	Traits() Traits
	// Run carries the call out. Its error is best an [*Error], which says what the
	// model may repair; any other error counts as [Failed]. When ctx ends it
	// should return soon, with [Cancelled] or whatever it has.
	Run(ctx context.Context, call Call) (Output, error)
}

// Traits say how a tool may be run. The zero value is a tool with effects that
// may overlap with others.
type Traits struct {
	// ReadOnly says that the tool changes nothing. Such a call is run again when a
	// process died in it.
	ReadOnly bool

	// Idempotent says that running the tool twice has the effect of running it
	// once. Such a call, too, is run again when a process died in it.
	Idempotent bool

	// Exclusive says that a call waits for the ones before it in the batch and
	// runs alone.
	Exclusive bool

	// TimeLimit is the longest that one call may take; then its context ends with
	// [ErrTimeLimit] as the cause. Zero means no limit.
	TimeLimit time.Duration

	// OutputLimit is the most bytes of content that the model is shown, instead of
	// the server's own limit. Zero means the server's, less than zero no limit.
	OutputLimit int
}

// Repeatable reports whether a call may be run again when nobody knows whether it
// ran.
func (t Traits) Repeatable() bool { return t.ReadOnly || t.Idempotent }

// A Call is one call as a tool sees it.
type Call struct {
	ID    string // as in the history
	Name  string
	Input json.RawMessage // a JSON object

	Run     string // the run's name in the journal; empty without one
	Op      uint64 // the batch
	Ordinal int    // index in the batch, from 0

	// Hurry is closed when somebody asks for what there is by now (S-101). A tool that
	// takes long may then return early with a part, and say so; it is no cancel, and the
	// run goes on. Nil means that nobody will ask.
	Hurry <-chan struct{}

	// Mask returns a text without the secrets that the engine knows. What a tool cuts
	// short or quotes, it masks before: nobody who looks for a secret finds half of it.
	// What [New] and a server cut themselves is masked before. Nil means that there are
	// no secrets.
	Mask func(text string) string
}

func (c Call) masked(s string) string {
	if c.Mask == nil {
		return s
	}
	return c.Mask(s)
}

// Key is an idempotency key: the same for this call however often it is tried,
// in this process or another, and different for every other call of the run.
func (c Call) Key() string { return fmt.Sprintf("%s/%d/%d", c.Run, c.Op, c.Ordinal) }

// Output is what a tool gives back. The model reads Summary and, on the next
// line, Content. Content may be cut to a limit (see [Server.SetOutputLimit]) and
// dropped from later requests; Summary stays, whole when it has up to 4096 bytes.
type Output struct {
	Summary string
	Content string
	Images  []llm.Image
}

// An Executor runs the calls of an engine. [*Server] is one; a caller may bring
// another. Execute must give an answer for every call, unknown tools included,
// and must be safe for concurrent use.
type Executor interface {
	// Specs are the advertised tools, sorted by name.
	Specs() []Spec
	Execute(ctx context.Context, call Call) Result
}

// A Traiter is an [Executor] that knows how its tools may be run. Without it
// every call counts as one with effects that may overlap.
type Traiter interface {
	// Traits reports false when there is no such tool.
	Traits(name string) (Traits, bool)
}

// A Cutter is an [Executor] that tells when it showed less of a result than there
// was; the zero [Cut] means that it showed all.
type Cutter interface {
	ExecuteCut(ctx context.Context, call Call) (Result, Cut)
}

type callKey struct{}

// callContext is a context that knows its call.
type callContext struct {
	context.Context //nolint:containedctx // it is one
	call            Call
}

func withCall(ctx context.Context, call Call) context.Context { return &callContext{ctx, call} }

func (c *callContext) Value(key any) any {
	if _, ok := key.(callKey); ok {
		return &c.call
	}
	return c.Context.Value(key)
}

// FromContext returns the call that ctx belongs to, for functions that were made
// into tools by [New]. It reports false outside a call.
func FromContext(ctx context.Context) (Call, bool) {
	c, ok := ctx.Value(callKey{}).(*Call)
	if !ok {
		return Call{}, false
	}
	return *c, true
}
