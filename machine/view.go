// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	"github.com/fiducial-dev/fiducial/llm"
)

// PendingKind says what an operation is.
type PendingKind string

// The kinds.
const (
	PendingGeneration PendingKind = "generation"
	PendingTools      PendingKind = "tools"
)

// A PendingOperation is the effect that a state or a [Checkpoint] waits for.
type PendingOperation struct {
	Kind PendingKind `json:"kind"`
	Op   OperationID `json:"op"`
}

// Phase is where the run stands.
func (s *State) Phase() Phase {
	if s.pause.status == pauseInEffect {
		return PhasePaused
	}
	return s.phase
}

// Pending is the operation that the state waits for, also while it is paused;
// false exactly when the state is idle (S-147).
func (s *State) Pending() (PendingOperation, bool) {
	switch s.phase {
	case PhaseGenerating:
		return PendingOperation{PendingGeneration, s.op}, true
	case PhaseTools:
		return PendingOperation{PendingTools, s.op}, true
	case PhaseReady, PhaseFailed, PhaseFinished, PhaseCancelled, PhasePaused:
	}
	return PendingOperation{}, false
}

// Idle reports whether nothing is pending (S-9).
func (s *State) Idle() bool { return s.phase != PhaseGenerating && s.phase != PhaseTools }

// AtBoundary reports whether the history is one that a model may be given (S-10).
func (s *State) AtBoundary() bool { return s.phase != PhaseTools }

// Replaceable reports whether [ReplaceAtBoundary] is allowed (S-11, S-31).
func (s *State) Replaceable() bool {
	switch s.phase {
	case PhaseGenerating:
		return !s.executing
	case PhaseFailed, PhaseFinished:
		return true
	case PhaseReady, PhaseTools, PhaseCancelled, PhasePaused:
	}
	return false
}

// Executing reports whether the pending operation was begun. A paused state never
// is.
func (s *State) Executing() bool { return s.executing }

// Noticed reports whether the pending generation was given a [Notice]. Who takes
// a run over asks for no second one (S-170).
func (s *State) Noticed() bool { return s.noticed }

// History is the conversation, to be read only. It is never written to again. In
// [PhaseTools], and paused over it, it ends with calls that are not answered; see
// [State.AtBoundary] (S-92).
func (s *State) History() []llm.Message { return s.history.view() }

// Len is the number of messages in the history.
func (s *State) Len() int { return len(s.history.items) }

// LastUsage is that of the latest reply, or what came with a replaced history; the
// zero value means none (S-39, S-54).
func (s *State) LastUsage() llm.Usage { return s.lastUsage }

// RunUsage is the run so far: what the model wrote is summed, the other counts
// are those of the latest reply that stated them (S-54).
func (s *State) RunUsage() llm.Usage { return s.runUsage }

// Truncations is the number of replies in a row that were cut at the output limit.
func (s *State) Truncations() int { return s.truncations }

// TruncationCap is how many of them in a row are continued (S-35).
func (s *State) TruncationCap() int { return DefaultMaxTruncatedResumes + s.capOffset }

// Sequence is the largest operation id that was given out, 0 when none was.
func (s *State) Sequence() OperationID { return s.sequence }

// PauseRequested reports whether a pause is recorded that has not taken effect
// yet, and its reason (S-168).
func (s *State) PauseRequested() (reason string, recorded bool) {
	if s.pause.status == pauseRecorded {
		return s.pause.reason, true
	}
	return "", false
}

// Answer is what a finished run ended with: text and image parts, to be read only
// (S-53). It is false in every other phase.
func (s *State) Answer() (answer []llm.Part, stop llm.StopReason, finished bool) {
	if s.phase != PhaseFinished {
		return nil, "", false
	}
	return s.answer, s.stop, true
}

// Batch is the pending batch of calls in the model's order, nil when there is none.
// The list is the caller's.
func (s *State) Batch() []BatchCall { return s.batch.view() }

// BatchLen is the number of calls in the pending batch, 0 when there is none.
func (s *State) BatchLen() int { return s.batch.calls }

// BatchCall is one call of the pending batch, by its ordinal; it panics when there
// is no such call. It is for callers who ask often, for [State.Batch] makes a list.
func (s *State) BatchCall(ordinal int) BatchCall {
	if ordinal < 0 || ordinal >= s.batch.calls {
		panic(fmt.Sprintf("machine: the batch has %d calls and none of ordinal %d", s.batch.calls, ordinal))
	}
	return s.batch.at(ordinal)
}

// Clone is a copy, as plain assignment makes one. It costs the same however long
// the history is.
func (s *State) Clone() *State {
	t := *s
	return &t
}

// Durable returns the form of in that a journal must hold, and whether it must hold
// it at all; ask before Step. [Begin] is not held. As a consequence the inputs that
// depend on whether the pending operation had begun, [Pause] and
// [RecoverInterrupted], are held with Begun set. Every other input is held as it
// is. Feeding what is held to a new state gives the same state again, up to
// [State.Executing].
func (s *State) Durable(in Input) (Input, bool) {
	switch in := in.(type) {
	case Begin:
		return nil, false
	case Pause:
		in.Begun = in.Begun || s.executing
		return in, true
	case RecoverInterrupted:
		in.Begun = in.Begun || s.executing
		return in, true
	case AppendInput, AppendSystem, ReplaceContext, Truncate, Start, Generated, GenerationFailed,
		ToolsCompleted, CancelAtBoundary, ReplaceAtBoundary, Notice, SetTruncationCap,
		Started, Settled, SettleRest, Resume, Recovered, Steer:
		return in, true
	}
	return nil, false
}
