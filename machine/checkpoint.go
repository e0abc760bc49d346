// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"

	"github.com/fiducial-dev/fiducial/llm"
)

// A Checkpoint is what a caller with a store of its own saves: enough to go on
// after a crash, though not to tell which calls of a batch had run.
type Checkpoint struct {
	History  []llm.Message     `json:"history"`
	Pending  *PendingOperation `json:"pending,omitempty"`
	Sequence OperationID       `json:"sequence"` // see [State.Sequence]
}

// Checkpoint is the state as it stands. Its history is to be read only.
func (s *State) Checkpoint() Checkpoint {
	c := Checkpoint{History: s.History(), Sequence: s.sequence}
	if p, ok := s.Pending(); ok {
		c.Pending = &p
	}
	return c
}

// ValidateCheckpoint reports whether c is one that a state can have been in
// (S-71): over a pending batch the history ends with its calls, else it is valid
// context. An error is a [*StateError] of kind [InvalidContext].
func ValidateCheckpoint(c Checkpoint) error {
	if err := checkCheckpoint(c); err != nil {
		return err
	}
	return nil
}

func checkCheckpoint(c Checkpoint) *StateError {
	if c.Pending == nil {
		return checkContext(c.History)
	}
	if c.Pending.Op == 0 {
		return failure(InvalidContext, -1, "the pending operation has no id")
	}
	switch c.Pending.Kind {
	case PendingGeneration:
		return checkContext(c.History)
	case PendingTools:
	default:
		return failure(InvalidContext, -1, "the pending operation is of unknown kind %q", c.Pending.Kind)
	}
	n := len(c.History)
	if n == 0 || c.History[n-1].CountCalls() == 0 {
		return failure(InvalidContext, n-1, "a batch is pending and the history does not end with calls")
	}
	return checkPrefix(c.History)
}

// RecoverCheckpoint closes what was pending when the process that saved c was
// lost: nothing of it is run again. Each call of a pending batch counts as
// possibly run and is answered with "outcome unknown" (S-74, S-78), and a note
// tells the model. The result has nothing pending, and its history must be saved,
// together with that, before anything else is done (S-77, S-81). An error is a
// [*StateError], and the checkpoint returned is then empty (S-76).
func RecoverCheckpoint(c Checkpoint) (Checkpoint, error) {
	if err := checkCheckpoint(c); err != nil {
		return Checkpoint{}, err
	}
	if c.Pending == nil {
		return c, nil
	}
	out := Checkpoint{History: slices.Clip(c.History), Sequence: max(c.Sequence, c.Pending.Op)}
	if c.Pending.Kind == PendingTools {
		var results []llm.Result
		for _, call := range c.History[len(c.History)-1].Calls() {
			results = append(results, unknown(call))
		}
		out.History = append(out.History, llm.ToolResults(results...))
	}
	out.History = append(out.History, interrupted(*c.Pending))
	return out, nil
}

// FromCheckpoint is a ready state with the history of c, whose operation ids go on
// above those of c (S-67). c must have nothing pending: recover it first. An error
// is a [*StateError] of kind [InvalidContext].
func FromCheckpoint(c Checkpoint) (*State, error) {
	if c.Pending != nil {
		return nil, failure(InvalidContext, -1, "operation %d is pending in the checkpoint; recover it first", c.Pending.Op)
	}
	if err := checkContext(c.History); err != nil {
		return nil, err
	}
	return &State{history: historyOf(slices.Clone(c.History)), sequence: c.Sequence}, nil
}
