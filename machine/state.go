// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"
	"math"

	"github.com/fiducial-dev/fiducial/llm"
)

// DefaultMaxTruncatedResumes is how many replies in a row that were cut at the
// output limit are continued (S-59).
const DefaultMaxTruncatedResumes = 3

// Phase is where a run stands.
type Phase uint8

// The phases (S-8, S-168).
const (
	PhaseReady      Phase = iota // nothing is pending
	PhaseFailed                  // the last generation gave no reply; a new start is needed
	PhaseGenerating              // a reply is pending
	PhaseTools                   // a batch of calls is pending
	PhaseFinished                // the run has its answer
	PhaseCancelled               // the run was cancelled
	PhasePaused                  // a reply or a batch is pending and waits for [Resume]
)

func (p Phase) String() string {
	switch p {
	case PhaseReady:
		return "ready"
	case PhaseFailed:
		return "failed"
	case PhaseGenerating:
		return "generating"
	case PhaseTools:
		return "tools"
	case PhaseFinished:
		return "finished"
	case PhaseCancelled:
		return "cancelled"
	case PhasePaused:
		return "paused"
	}
	return fmt.Sprintf("Phase(%d)", uint8(p))
}

// State is everything that the machine remembers. The zero value is a new state
// (S-12). [State.Step] and [State.Apply] are the one way to change it.
//
// A copy (t := *s) is independent: driving one never changes the other, also in
// another goroutine (S-158). One State is not safe for concurrent use.
type State struct {
	phase     Phase // what is beneath a pause; never PhasePaused
	op        OperationID
	sequence  OperationID // the largest id that was given out
	executing bool
	noticed   bool
	pause     pause
	history   history
	batch     batch

	// The answer of a finished run, or the one that a batch will end the run with.
	answer []llm.Part
	stop   llm.StopReason

	lastUsage, runUsage llm.Usage
	truncations         int
	capOffset           int // cap minus the default, so that the zero value has the default
}

// Step takes one input and returns what the caller must do next, nil when there is
// nothing to do. An error is a [*StateError], and the state is then exactly as
// before (S-146).
//
// The state keeps the messages and results that it is given: the caller must not
// write to their slices afterwards.
func (s *State) Step(in Input) (Effect, error) {
	if err := s.Apply(in); err != nil {
		return nil, err
	}
	return s.Effect(), nil
}

// Apply is Step for callers who ask for [State.Effect] when they need it.
func (s *State) Apply(in Input) error {
	next := *s
	if err := next.apply(in); err != nil {
		err.Input, err.Phase = kindOf(in), s.Phase()
		return err
	}
	next.settlePause()
	*s = next
	return nil
}

// apply may leave a half-changed copy behind when it fails.
func (s *State) apply(in Input) *StateError {
	switch in := in.(type) {
	case AppendInput:
		return s.appendInput(in)
	case AppendSystem:
		return s.appendSystem(in)
	case ReplaceContext:
		return s.replaceContext(in)
	case Truncate:
		return s.truncate(in)
	case Start:
		return s.start()
	case Begin:
		return s.begin(in)
	case Generated:
		return s.generated(in)
	case GenerationFailed:
		return s.generationFailed(in)
	case ToolsCompleted:
		return s.toolsCompleted(in)
	case CancelAtBoundary:
		return s.cancelAtBoundary()
	case ReplaceAtBoundary:
		return s.replaceAtBoundary(in)
	case RecoverInterrupted:
		return s.recoverInterrupted(in)
	case Notice:
		return s.notice(in)
	case SetTruncationCap:
		return s.setTruncationCap(in)
	case Started:
		return s.started(in)
	case Settled:
		return s.settled(in)
	case SettleRest:
		return s.settleRest(in)
	case Pause:
		return s.pauseAsked(in)
	case Resume:
		return s.resume()
	case Recovered:
		return s.recovered(in)
	case Steer:
		return s.steer(in)
	}
	if in == nil {
		return unexpected("a nil input")
	}
	// Its type is not told: what fmt is given is moved to the heap, in every step.
	return unexpected("it is none of the inputs; give the value, not a pointer to one")
}

// Effect is what the caller must do next: [Generate] or [ExecuteTools] while one
// is pending, begun or not; [Finished], [Cancelled] or [Paused]; nil when there is
// nothing to do. Asking changes nothing and gives the same answer each time (S-61).
func (s *State) Effect() Effect {
	switch s.Phase() {
	case PhaseReady, PhaseFailed:
		return nil
	case PhaseGenerating:
		return Generate{Op: s.op}
	case PhaseTools:
		return ExecuteTools{Op: s.op, Calls: s.batch.view()}
	case PhaseFinished:
		return Finished{Answer: s.answer, Stop: s.stop}
	case PhaseCancelled:
		return Cancelled{}
	case PhasePaused:
		return Paused{Reason: s.pause.reason}
	}
	return nil
}

// mint gives out the next operation id (S-63).
func (s *State) mint() (OperationID, *StateError) {
	if s.sequence == math.MaxUint64 {
		return 0, failure(SequenceExhausted, -1, "operation %d was the last one; go on with a new state", s.sequence)
	}
	s.sequence++
	return s.sequence, nil
}

// await makes a new generation the pending operation.
func (s *State) await() *StateError {
	op, err := s.mint()
	if err != nil {
		return err
	}
	s.leave(PhaseGenerating)
	s.op = op
	return nil
}

// leave ends what was pending and enters the phase.
func (s *State) leave(to Phase) {
	s.phase, s.op, s.executing, s.noticed = to, 0, false, false
	s.batch, s.answer, s.stop = batch{}, nil, ""
}

// pending reports whether the phase is the one given, not paused, over op.
func (s *State) pending(phase Phase, op OperationID) bool {
	return s.phase == phase && s.op == op && s.pause.status != pauseInEffect
}
