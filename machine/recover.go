// SPDX-License-Identifier: Apache-2.0

package machine

import "github.com/fiducial-dev/fiducial/llm"

// recovered puts the state into the hands of a new process (S-170): what had
// begun there may have happened, the rest goes on.
func (s *State) recovered(in Recovered) *StateError {
	if s.Idle() || s.pause.status == pauseInEffect {
		return nil
	}
	s.executing = false
	if s.phase == PhaseGenerating || !s.batch.running() {
		return nil
	}
	for i := range s.batch.calls {
		switch c := s.batch.at(i); {
		case c.Status != CallStarted:
		case c.Repeat:
			s.batch.put(mark{ordinal: i, status: CallWaiting, doubt: in.Doubt})
		default:
			s.batch.settle(i, unknown(c.Call))
		}
	}
	if s.batch.open() {
		return nil
	}
	return s.complete(false)
}

// recoverInterrupted gives up what is pending (S-33, S-79). This process still
// lives, so it knows what had begun and what had not.
func (s *State) recoverInterrupted(in RecoverInterrupted) *StateError {
	p, pending := s.Pending()
	begun := pending && (s.executing || in.Begun)
	if s.phase == PhaseTools {
		if s.batch.single {
			begun = s.batch.running() || s.batch.doubtful()
		}
		s.history = s.history.push(s.interruptedResults(begun))
	}
	if begun {
		s.history = s.history.push(interrupted(p))
	}
	s.leave(PhaseReady)
	return nil
}

func (s *State) interruptedResults(begun bool) llm.Message {
	m := llm.Message{Role: llm.RoleTool, Parts: make([]llm.Part, s.batch.calls)}
	for i := range m.Parts {
		switch c := s.batch.at(i); {
		case c.Status == CallSettled:
			m.Parts[i] = c.Result
		case c.Status == CallStarted, c.Doubt, begun && !s.batch.single:
			m.Parts[i] = unknown(c.Call)
		default:
			m.Parts[i] = NotRun(c.Call, "the run was interrupted before it began")
		}
	}
	return m
}
