// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"context"
	"errors"
	"fmt"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
	"github.com/fiducial-dev/fiducial/tool"
)

// An Interceptor can let work go on, change it, stop it or pause it, at fixed
// points of a run (E-57 to E-78). Several are asked in the order they were given;
// the first answer that is not [Continue] (or [ContinueWith]) decides, and the
// later ones are not asked. Embed [NopInterceptor] and write the hooks you need.
//
// A hook that fails, or panics, stops the run with an error of kind interceptor: a
// failed hook never counts as Continue. The messages that a hook adds are user
// messages.
//
// What a hook is given is a copy, bytes of images included, and what it gives is
// copied: neither side sees what the other does to it later.
type Interceptor interface {
	// PromptSubmit is asked when a run is given a message, before the message
	// becomes history. It may change the message.
	PromptSubmit(ctx context.Context, inv Invocation, m *llm.Message) (PromptAnswer, error)

	// PendingHistory is asked in every turn before the request is made; the user
	// messages it returns become history (E-34).
	PendingHistory(ctx context.Context, inv Invocation) ([]llm.Message, error)

	// PreRequest is asked before every request. Changes to req are for this request
	// only, settings included, and must not touch the committed prefix. What is behind
	// req.Messages and req.Tools must not be written to, only replaced: the engine
	// lends one copy of the history for the whole run. When it was written to, it is put
	// back and the run ends with an error. What a hook does to req after it has answered
	// has no say in what is sent.
	PreRequest(ctx context.Context, inv Invocation, req *llm.Request) (RequestAnswer, error)

	// AfterResponse is asked when a complete reply is history and none of its calls
	// has run. When it fails or aborts, or when the process ends just then, it is
	// asked again by Resume.
	AfterResponse(ctx context.Context, inv Invocation, m llm.Message) (ResponseAnswer, error)

	// PreTool is asked before a call is run, in the model's order, for all calls
	// that start together before the first of them starts. It may change the name
	// and the arguments that are executed, not the id. Unknown tools and malformed
	// arguments are answered without it. After a pause it is asked again. What it
	// remembers of a call it must keep under [Invocation.Key] and compare with the
	// arguments that it is shown: a model may use call.ID again in a later reply.
	PreTool(ctx context.Context, inv Invocation, call *llm.Call) (ToolAnswer, error)

	// PostTool sees the result of a call when it is history's. It is not asked for
	// calls whose outcome is unknown or that were closed by force (E-73). For one that
	// returned within the grace after a cancel it is asked, too, and its answer
	// changes nothing any more.
	PostTool(ctx context.Context, inv Invocation, call llm.Call, result llm.Result) (PostAnswer, error)

	// RunExit observes how a run or resume ended, exactly once each. Its failure
	// changes nothing; see [Locked.ObserverError].
	RunExit(ctx context.Context, inv Invocation, out Outcome, err error) error
}

// An Invocation says where in a run a hook is asked.
type Invocation struct {
	Phase   HookPhase
	Trace   TraceContext
	Run     string              // the run's name in the journal, if any
	Op      machine.OperationID // the operation that is pending, 0 when none is; in PreTool and PostTool the batch of the call
	Turn    int                 // replies of this run so far
	Request int                 // requests of this run so far, broken ones included
	Usage   llm.Usage           // what the requests of this run have cost so far
	CallID  string              // in PreTool and PostTool; models use ids again, so it names no call: see Key
	Ordinal int                 // of the call in its batch

	// MayHaveRun, in PreTool, says that a process which is lost had started the call,
	// whose tool may be repeated. A call that is skipped then is not said to be
	// "not executed", and a [Synthetic] must not say so either.
	MayHaveRun bool

	// History is the conversation so far, in the copy that PreRequest speaks of; it
	// must not be changed.
	History []llm.Message

	core *core
}

// Key names the call that PreTool or PostTool is asked about: it is [tool.Call.Key],
// the same however often the call is tried, in this process or another, and different
// for every other call of the run. Whatever is remembered of a call, an approval above
// all, is kept under it. In other hooks it is empty.
func (inv Invocation) Key() string {
	if inv.Phase != HookPreTool && inv.Phase != HookPostTool {
		return ""
	}
	return tool.Call{Run: inv.Run, Op: uint64(inv.Op), Ordinal: inv.Ordinal}.Key()
}

// A HookPhase names a hook.
type HookPhase string

// The hooks.
const (
	HookPromptSubmit   HookPhase = "prompt submit"
	HookPendingHistory HookPhase = "pending history"
	HookPreRequest     HookPhase = "pre request"
	HookAfterResponse  HookPhase = "after response"
	HookPreTool        HookPhase = "pre tool"
	HookPostTool       HookPhase = "post tool"
	HookRunExit        HookPhase = "run exit"
)

// The answers. Each hook takes a closed set of them.
type (
	// PromptAnswer is [Continue], [ContinueWith] or [Abort].
	//
	//sumtype:decl
	PromptAnswer interface{ promptAnswer() }
	// RequestAnswer is [Continue], [ContinueWith], [Yield], [Pause] or [Abort].
	//
	//sumtype:decl
	RequestAnswer interface{ requestAnswer() }
	// ResponseAnswer is [Continue], [ContinueWith], [Pause] or [Abort]. With
	// Continue the calls of the reply run, and a reply without calls ends the run.
	//
	//sumtype:decl
	ResponseAnswer interface{ responseAnswer() }
	// ToolAnswer is [Continue], [Skip], [Synthetic], [Pause] or [Abort].
	//
	//sumtype:decl
	ToolAnswer interface{ toolAnswer() }
	// PostAnswer is [Continue], [Pause] or [Abort].
	//
	//sumtype:decl
	PostAnswer interface{ postAnswer() }
)

type (
	// Continue lets the work go on. A nil answer means the same.
	Continue struct{}

	// ContinueWith adds user messages to the history and goes on. After a reply
	// with calls they stand behind the results; after one without, the model is
	// asked again. What PreRequest adds is in the request that later hooks see, and
	// becomes history when none of them stops the request: else all are asked again.
	ContinueWith struct{ Messages []llm.Message }

	// Abort ends the run with an error of kind aborted.
	Abort struct{ Reason string }

	// Pause ends the run as [Paused]; [Locked.Resume], in this process or another,
	// goes on from here.
	Pause struct{ Reason string }

	// Yield ends the run as [Yielded] before a request, after adding Messages.
	Yield struct {
		Reason   string
		Messages []llm.Message
	}

	// Skip answers the call with an error result that gives the reason (E-66).
	Skip struct{ Reason string }

	// Synthetic answers the call with Result, and the tool does not run. The
	// result's CallID must be empty or the call's; an empty Status is success.
	Synthetic struct{ Result llm.Result }
)

func (Continue) promptAnswer()       {}
func (Continue) requestAnswer()      {}
func (Continue) responseAnswer()     {}
func (Continue) toolAnswer()         {}
func (Continue) postAnswer()         {}
func (ContinueWith) promptAnswer()   {}
func (ContinueWith) requestAnswer()  {}
func (ContinueWith) responseAnswer() {}
func (Abort) promptAnswer()          {}
func (Abort) requestAnswer()         {}
func (Abort) responseAnswer()        {}
func (Abort) toolAnswer()            {}
func (Abort) postAnswer()            {}
func (Pause) requestAnswer()         {}
func (Pause) responseAnswer()        {}
func (Pause) toolAnswer()            {}
func (Pause) postAnswer()            {}
func (Yield) requestAnswer()         {}
func (Skip) toolAnswer()             {}
func (Synthetic) toolAnswer()        {}

// A HookError is how a hook says what kind of failure it met. Another error
// counts as [HookInternal].
type HookError struct {
	Category HookCategory
	Err      error
}

// A HookCategory says what failed in a hook (E-76).
type HookCategory string

// The categories.
const (
	HookPolicy     HookCategory = "policy"
	HookDependency HookCategory = "dependency"
	HookContract   HookCategory = "contract violation"
	HookInternal   HookCategory = "internal"
)

func (e *HookError) Error() string { return fmt.Sprintf("%s: %v", e.Category, e.Err) }
func (e *HookError) Unwrap() error { return e.Err }

// NopInterceptor lets everything go on.
type NopInterceptor struct{}

// PromptSubmit answers Continue.
func (NopInterceptor) PromptSubmit(context.Context, Invocation, *llm.Message) (PromptAnswer, error) {
	return Continue{}, nil
}

// PendingHistory adds nothing.
func (NopInterceptor) PendingHistory(context.Context, Invocation) ([]llm.Message, error) {
	return nil, nil
}

// PreRequest answers Continue.
func (NopInterceptor) PreRequest(context.Context, Invocation, *llm.Request) (RequestAnswer, error) {
	return Continue{}, nil
}

// AfterResponse answers Continue.
func (NopInterceptor) AfterResponse(context.Context, Invocation, llm.Message) (ResponseAnswer, error) {
	return Continue{}, nil
}

// PreTool answers Continue.
func (NopInterceptor) PreTool(context.Context, Invocation, *llm.Call) (ToolAnswer, error) {
	return Continue{}, nil
}

// PostTool answers Continue.
func (NopInterceptor) PostTool(context.Context, Invocation, llm.Call, llm.Result) (PostAnswer, error) {
	return Continue{}, nil
}

// RunExit does nothing.
func (NopInterceptor) RunExit(context.Context, Invocation, Outcome, error) error { return nil }

// maxDiagnostic is the most bytes of a hook's failure that are kept (E-76).
const maxDiagnostic = 1024

// hookError wraps a hook's failure. Its diagnostic is cut, its cause stays
// reachable.
func hookError(phase HookPhase, err error) *Error {
	cat := HookInternal
	if h, ok := errors.AsType[*HookError](err); ok {
		cat = h.Category
	}
	return &Error{Kind: KindInterceptor, Op: string(phase), Err: &diagnostic{cat, llm.CutUTF8(err.Error(), maxDiagnostic), err}}
}

// A diagnostic shows at most so much of a cause.
type diagnostic struct {
	cat  HookCategory
	text string
	err  error
}

func (d *diagnostic) Error() string { return d.text }
func (d *diagnostic) Unwrap() error { return d.err }

func contractError(phase HookPhase, format string, args ...any) *Error {
	return hookError(phase, &HookError{Category: HookContract, Err: fmt.Errorf(format, args...)})
}
