// SPDX-License-Identifier: Apache-2.0

package machine

import "github.com/fiducial-dev/fiducial/llm"

// An OperationID names one generation or one batch of calls. Ids come from one
// sequence, start at 1 and strictly increase over the whole life of a state.
type OperationID uint64

// An Input is something that happened outside. The set is closed.
//
//sumtype:decl
type Input interface{ input() }

type (
	// AppendInput adds a user message to an idle state (S-13). Keys are the idempotency keys of the
	// outside inputs that it stands for; the state does not look at them.
	AppendInput struct {
		Message llm.Message `json:"message"`
		Keys    []string    `json:"keys,omitempty"`
	}

	// AppendSystem adds a user message of system parts alone (S-15).
	AppendSystem struct {
		Parts []llm.System `json:"parts"`
	}

	// ReplaceContext installs a whole history (S-17). Usage becomes the last
	// usage; its zero value means none.
	ReplaceContext struct {
		Messages []llm.Message `json:"messages"`
		Usage    llm.Usage     `json:"usage,omitzero"`
	}

	// Truncate keeps the first Len messages (S-19).
	Truncate struct {
		Len int `json:"len"`
	}

	// Start begins a run on the history as it stands (S-20).
	Start struct{}

	// Begin marks the pending operation as being carried out (S-22). It is the
	// only input that a journal does not hold.
	Begin struct {
		Op OperationID `json:"op"`
	}

	// Generated answers [Generate] with a complete reply (S-24).
	Generated struct {
		Op      OperationID `json:"op"`
		Message llm.Message `json:"message"`
		Usage   llm.Usage   `json:"usage,omitzero"`
	}

	// GenerationFailed answers [Generate] when there is no reply (S-26).
	GenerationFailed struct {
		Op OperationID `json:"op"`
	}

	// ToolsCompleted answers [ExecuteTools] for a whole batch at once (S-27), with
	// one result for each call, in call order. Empty CallIDs and Names are filled in.
	ToolsCompleted struct {
		Op        OperationID  `json:"op"`
		Results   []llm.Result `json:"results"`
		Cancelled bool         `json:"cancelled,omitempty"`
	}

	// CancelAtBoundary ends the run where no effect is under way (S-30).
	CancelAtBoundary struct{}

	// ReplaceAtBoundary installs a whole history, not an empty one, inside a run
	// (S-31).
	ReplaceAtBoundary struct {
		Messages []llm.Message `json:"messages"`
		Usage    llm.Usage     `json:"usage,omitzero"`
	}

	// RecoverInterrupted gives up whatever is pending in a process that still
	// lives (S-33). Begun is as in [Pause].
	RecoverInterrupted struct {
		Begun bool `json:"begun,omitempty"`
	}

	// Notice adds a text for the model to the pending generation (S-34). Fresh
	// puts it into a message of its own, for a last message that was already sent.
	Notice struct {
		Op    OperationID `json:"op"`
		Text  string      `json:"text"`
		Fresh bool        `json:"fresh,omitempty"`
	}

	// SetTruncationCap sets how many truncated replies in a row are continued
	// (S-35).
	SetTruncationCap struct {
		N int `json:"n"`
	}

	// Started says that calls of the pending batch are about to run (S-165).
	Started struct {
		Op    OperationID   `json:"op"`
		Calls []StartedCall `json:"calls"`
	}

	// Settled gives the result of one call of the pending batch (S-166). An empty
	// CallID or Name of the result is filled in; one that is given must be the
	// call's.
	Settled struct {
		Op      OperationID `json:"op"`
		Ordinal int         `json:"ordinal"`
		Result  llm.Result  `json:"result"`
	}

	// SettleRest closes every call of the pending batch that has no result
	// (S-167).
	SettleRest struct {
		Op        OperationID `json:"op"`
		Cause     string      `json:"cause"`
		Cancelled bool        `json:"cancelled,omitempty"`
	}

	// Pause asks that nothing more be begun (S-168). A batch that was begun and
	// of which no call is [Started] counts as not run: callers who dispatch without
	// Started must not pause while they do.
	//
	// Begun says that the pending operation had begun. A live caller leaves it
	// false, for the state knows; the journal needs it, because it holds no
	// [Begin]. See [State.Durable].
	Pause struct {
		Reason string `json:"reason"`
		Begun  bool   `json:"begun,omitempty"`
	}

	// Resume ends a pause (S-169).
	Resume struct{}

	// Recovered says that a new process owns the run (S-170). With Doubt a call that
	// was started and may be repeated is remembered as one that may have run, see
	// [BatchCall]; a live caller sets it. It is false in the journals that were written
	// before there was such a field, and they give the same states as ever.
	Recovered struct {
		Doubt bool `json:"doubt,omitempty"`
	}

	// Steer adds user messages, at least one, at a boundary of a run, before its
	// notice (S-171). Keys are as in [AppendInput].
	Steer struct {
		Messages []llm.Message `json:"messages"`
		Keys     []string      `json:"keys,omitempty"`
	}
)

// A StartedCall is one call of [Started].
type StartedCall struct {
	Ordinal int  `json:"ordinal"`          // index in the batch, from 0
	Repeat  bool `json:"repeat,omitempty"` // the tool may be run again with no harm
}

func (AppendInput) input()        {}
func (AppendSystem) input()       {}
func (ReplaceContext) input()     {}
func (Truncate) input()           {}
func (Start) input()              {}
func (Begin) input()              {}
func (Generated) input()          {}
func (GenerationFailed) input()   {}
func (ToolsCompleted) input()     {}
func (CancelAtBoundary) input()   {}
func (ReplaceAtBoundary) input()  {}
func (RecoverInterrupted) input() {}
func (Notice) input()             {}
func (SetTruncationCap) input()   {}
func (Started) input()            {}
func (Settled) input()            {}
func (SettleRest) input()         {}
func (Pause) input()              {}
func (Resume) input()             {}
func (Recovered) input()          {}
func (Steer) input()              {}
