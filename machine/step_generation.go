// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"math"
	"slices"

	"github.com/fiducial-dev/fiducial/llm"
)

// What may happen to a pending generation.

func (s *State) begin(in Begin) *StateError {
	switch {
	case s.pause.status == pauseInEffect:
		return busy("the run is paused; resume it first")
	case s.executing:
		return busy("operation %d was begun already", s.op)
	case s.Idle():
		return unexpected("no operation is pending")
	case in.Op != s.op:
		return s.stale(in.Op)
	}
	s.executing = true
	return nil
}

func (s *State) generationFailed(in GenerationFailed) *StateError {
	if !s.pending(PhaseGenerating, in.Op) {
		return s.stale(in.Op)
	}
	s.leave(PhaseFailed)
	return nil
}

// generated is the table of S-43 to S-50. Calls are carried out whatever the stop
// reason; the reason decides what comes after them.
func (s *State) generated(in Generated) *StateError {
	if !s.pending(PhaseGenerating, in.Op) {
		return s.stale(in.Op)
	}
	calls, err := checkReply(in.Message)
	if err != nil {
		return err
	}
	resume := s.countTruncation(in.Message.Stop)
	s.countUsage(in.Usage)
	switch {
	case calls > 0:
		return s.awaitBatch(in.Message, calls, resume)
	case resume:
		if err := s.await(); err != nil {
			return err
		}
		s.history = s.history.push(in.Message).push(continuation())
	default:
		s.leave(PhaseFinished)
		s.history = s.history.push(in.Message)
		s.answer, s.stop = answerOf(in.Message), in.Message.Stop
	}
	return nil
}

// countTruncation reports whether a reply that was cut is to be continued.
func (s *State) countTruncation(stop llm.StopReason) bool {
	if stop != llm.StopMaxTokens {
		s.truncations = 0
		return false
	}
	if s.truncations < math.MaxInt {
		s.truncations++
	}
	return s.truncations <= s.TruncationCap()
}

// countUsage adds a reply to the run (S-54).
func (s *State) countUsage(u llm.Usage) {
	if !u.Known() {
		return
	}
	output, reasoning := s.runUsage.Output.Plus(u.Output), s.runUsage.Reasoning.Plus(u.Reasoning)
	s.runUsage = s.runUsage.Merge(u)
	s.runUsage.Output, s.runUsage.Reasoning = output, reasoning
	s.lastUsage = u
}

// notice adds a text for the model without making the operation stale (S-114 to
// S-116). Asked for no text, it changes nothing (S-119).
func (s *State) notice(in Notice) *StateError {
	if s.pause.status == pauseInEffect {
		return busy("the run is paused; resume it first")
	}
	if !s.pending(PhaseGenerating, in.Op) {
		return s.stale(in.Op)
	}
	if in.Text == "" {
		return nil
	}
	s.noticed = true
	note := llm.System{Kind: KindGenerationNotice, Text: in.Text}
	last := s.history.last() // a generation is never pending over an empty history
	if in.Fresh || last.Role == llm.RoleAssistant {
		s.history = s.history.push(noteMessage(note))
		return nil
	}
	parts := slices.Clip(slices.Clone(last.Parts))
	if last.Role == llm.RoleUser {
		parts = append(parts, note)
	} else if r, ok := parts[len(parts)-1].(llm.Result); ok {
		r.Notes = append(slices.Clip(r.Notes), note)
		parts[len(parts)-1] = r
	}
	last.Parts = parts
	s.history = s.history.replaceLast(last)
	return nil
}

func (s *State) stale(op OperationID) *StateError {
	switch {
	case s.Idle():
		return unexpected("nothing is pending, so operation %d is stale", op)
	case op != s.op:
		return unexpected("operation %d is stale, %d is pending", op, s.op)
	case s.pause.status == pauseInEffect:
		return unexpected("the run is paused over operation %d, which was not begun", op)
	}
	return unexpected("operation %d is pending, but is not of that kind", op)
}

// answerOf is what a person may read of a reply (S-53).
func answerOf(m llm.Message) []llm.Part {
	var out []llm.Part
	for _, p := range m.Parts {
		switch p.(type) {
		case llm.Text, llm.Image:
			out = append(out, p)
		case llm.Thinking, llm.System, llm.Call, llm.Result:
		}
	}
	return slices.Clip(out)
}
