// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"

	"github.com/fiducial-dev/fiducial/llm"
)

// The inputs that give the conversation its content, and those that begin and end
// a run.

func (s *State) appendInput(in AppendInput) *StateError {
	if !s.Idle() {
		return s.notIdle()
	}
	return s.pushInput(in.Message)
}

// pushInput adds user messages and makes the state ready.
func (s *State) pushInput(messages ...llm.Message) *StateError {
	if err := checkInput(messages); err != nil {
		return err
	}
	s.leave(PhaseReady)
	s.pushAll(messages)
	return nil
}

func (s *State) pushAll(messages []llm.Message) {
	for _, m := range messages {
		s.history = s.history.push(m)
	}
}

// steer is pushInput in the middle of a run (S-171).
func (s *State) steer(in Steer) *StateError {
	switch {
	case s.Idle():
		return s.pushInput(in.Messages...)
	case s.phase != PhaseGenerating || s.executing:
		return busy("messages can join a run only before the model is asked; keep them until then")
	}
	if err := checkInput(in.Messages); err != nil {
		return err
	}
	if err := s.await(); err != nil {
		return err
	}
	s.pushAll(in.Messages)
	return nil
}

func (s *State) appendSystem(in AppendSystem) *StateError {
	open := s.phase == PhaseGenerating && !s.executing && s.pause.status != pauseInEffect
	if !s.Idle() && !open {
		return s.notIdle()
	}
	if len(in.Parts) == 0 {
		return failure(InvalidContext, -1, "a system message has no parts")
	}
	m := llm.Message{Role: llm.RoleUser, Parts: make([]llm.Part, len(in.Parts))}
	for i, p := range in.Parts {
		m.Parts[i] = p
	}
	if open { // what was asked of the model has changed, so the old op is stale (S-64)
		if err := s.await(); err != nil {
			return err
		}
	}
	s.history = s.history.push(m)
	return nil
}

func (s *State) replaceContext(in ReplaceContext) *StateError {
	if !s.Idle() {
		return s.notIdle()
	}
	if err := s.install(in.Messages, in.Usage); err != nil {
		return err
	}
	s.leave(PhaseReady)
	return nil
}

func (s *State) replaceAtBoundary(in ReplaceAtBoundary) *StateError {
	if !s.Replaceable() {
		return busy("the history can be replaced only where a model is about to be asked, or was")
	}
	if len(in.Messages) == 0 { // a model cannot be asked about nothing (S-21)
		return failure(InvalidContext, -1, "the history inside a run cannot be empty")
	}
	if err := s.install(in.Messages, in.Usage); err != nil {
		return err
	}
	return s.await()
}

func (s *State) install(messages []llm.Message, usage llm.Usage) *StateError {
	if err := checkContext(messages); err != nil {
		return err
	}
	s.history, s.lastUsage = historyOf(slices.Clone(messages)), usage
	return nil
}

func (s *State) truncate(in Truncate) *StateError {
	if !s.Idle() {
		return s.notIdle()
	}
	if in.Len < 0 || in.Len > s.Len() {
		return failure(InvalidContext, -1, "cannot keep %d of %d messages", in.Len, s.Len())
	}
	// The whole history is valid here, so only the cut itself needs a look.
	if in.Len > 0 {
		if n := s.history.items[in.Len-1].CountCalls(); n > 0 {
			return failure(InvalidContext, in.Len-1, "message %d would be left with %d calls that have no results", in.Len-1, n)
		}
	}
	s.history, s.lastUsage = s.history.cut(in.Len), llm.Usage{}
	s.leave(PhaseReady)
	return nil
}

func (s *State) start() *StateError {
	if !s.Idle() {
		return s.notIdle()
	}
	if s.Len() == 0 {
		return failure(InvalidContext, -1, "there is nothing to answer; append a message first")
	}
	s.runUsage, s.truncations = llm.Usage{}, 0
	return s.await()
}

func (s *State) cancelAtBoundary() *StateError {
	switch {
	case s.phase == PhaseReady, s.phase == PhaseCancelled:
		return busy("no run is under way")
	case s.phase == PhaseTools && s.pause.status == pauseInEffect:
		return s.closeBatch("the run was cancelled while it was paused", true)
	case s.phase == PhaseTools, s.executing:
		return busy("an effect is pending or under way; answer it as cancelled instead")
	}
	s.leave(PhaseCancelled)
	return nil
}

func (s *State) setTruncationCap(in SetTruncationCap) *StateError {
	if in.N < 0 {
		return failure(InvalidContext, -1, "the cap on truncated replies is %d; it must be 0 or more", in.N)
	}
	s.capOffset = in.N - DefaultMaxTruncatedResumes
	return nil
}

func (s *State) notIdle() *StateError {
	if s.pause.status == pauseInEffect {
		return busy("the run is paused over operation %d; resume or cancel it first", s.op)
	}
	return busy("operation %d is pending", s.op)
}
