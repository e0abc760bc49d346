// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	"github.com/fiducial-dev/fiducial/llm"
)

// An Effect is what the caller must do next. Asking for it changes nothing. The
// set is closed; a nil Effect means that there is nothing to do (S-61).
//
//sumtype:decl
type Effect interface{ effect() }

type (
	// Generate asks for the model's reply to the history. It is answered by
	// [Generated] or [GenerationFailed].
	Generate struct{ Op OperationID }

	// ExecuteTools asks for the results of the batch. Calls holds all of them in
	// the model's order, also those that are started or settled already, and is to
	// be read only. It is
	// answered by [Started] and [Settled] for each call, or by [SettleRest], or by
	// [ToolsCompleted] for the whole batch.
	ExecuteTools struct {
		Op    OperationID
		Calls []BatchCall
	}

	// Finished says that the run is over. Answer has text and image parts only
	// (S-53).
	Finished struct {
		Answer []llm.Part
		Stop   llm.StopReason
	}

	// Cancelled says that the run was cancelled.
	Cancelled struct{}

	// Paused says that the pending operation waits for [Resume].
	Paused struct{ Reason string }
)

func (Generate) effect()     {}
func (ExecuteTools) effect() {}
func (Finished) effect()     {}
func (Cancelled) effect()    {}
func (Paused) effect()       {}

// A CallStatus is how far a call of the pending batch has come.
type CallStatus uint8

// The statuses.
const (
	CallWaiting CallStatus = iota // it has not run, but see [BatchCall.Doubt]
	CallStarted                   // it may have run
	CallSettled                   // its result stands
)

func (s CallStatus) String() string {
	switch s {
	case CallWaiting:
		return "waiting"
	case CallStarted:
		return "started"
	case CallSettled:
		return "settled"
	}
	return fmt.Sprintf("CallStatus(%d)", uint8(s))
}

// A BatchCall is one call of the pending batch. Its ordinal is its index.
type BatchCall struct {
	Call   llm.Call
	Status CallStatus
	Repeat bool       // as said in [Started], while started
	Doubt  bool       // waiting, and may have run: a process that is lost had started it, and it may be repeated
	Result llm.Result // set when settled
}
