// SPDX-License-Identifier: Apache-2.0

package machine

// pause is what was asked, and how far it has come.
type pause struct {
	status pauseStatus
	reason string
}

type pauseStatus uint8

const (
	pauseNone pauseStatus = iota
	pauseRecorded
	pauseInEffect
)

// pauseAsked records a pause (S-168); settlePause decides when it takes effect. A
// second one replaces the reason of the first.
func (s *State) pauseAsked(in Pause) *StateError {
	switch {
	case s.Idle():
		return busy("nothing is pending that could be paused")
	case s.pause.status == pauseInEffect:
		return busy("the run is paused already")
	}
	s.executing = s.executing || in.Begun
	s.pause = pause{pauseRecorded, in.Reason}
	return nil
}

// settlePause runs after every accepted input: a recorded pause takes effect as
// soon as nothing is under way, and is dropped when nothing is left to pause.
func (s *State) settlePause() {
	switch s.phase {
	case PhaseReady, PhaseFailed, PhaseFinished, PhaseCancelled, PhasePaused:
		s.pause = pause{}
	case PhaseGenerating:
		if s.pause.status == pauseRecorded && !s.executing {
			s.pause.status = pauseInEffect
		}
	case PhaseTools:
		if s.pause.status == pauseRecorded && !s.batch.running() {
			s.pause.status = pauseInEffect
			s.executing = false
		}
	}
}

// resume makes what was pending pending again (S-169).
func (s *State) resume() *StateError {
	if s.pause.status != pauseInEffect {
		return busy("the run is not paused")
	}
	s.pause = pause{}
	return nil
}
