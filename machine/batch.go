package machine

import (
	"slices"

	"github.com/fiducial-dev/fiducial/llm"
)

// batch is the calls of the last message while their results are pending.
type batch struct {
	calls  []BatchCall // never written to: a change makes a new slice
	single bool        // S-165 or S-166 was used, so the batch is settled call by call
	again  bool        // the model is asked after it; else the run ends with the state's answer
}

// awaitBatch makes the calls of a reply the pending operation (S-43, S-46, S-48,
// S-50).
func (s *State) awaitBatch(m llm.Message, n int, resume bool) *StateError {
	op, err := s.mint()
	if err != nil {
		return err
	}
	s.leave(PhaseTools)
	s.op = op
	s.history = s.history.push(m)
	s.batch = batch{calls: make([]BatchCall, n), again: resume || m.Stop == llm.StopToolUse}
	for i, c := range m.Calls() {
		s.batch.calls[i].Call = c
	}
	if !s.batch.again {
		s.answer, s.stop = answerOf(m), m.Stop
	}
	return nil
}

// started marks calls as running (S-165).
func (s *State) started(in Started) *StateError {
	if !s.pending(PhaseTools, in.Op) {
		return s.stale(in.Op)
	}
	if s.pause.status == pauseRecorded {
		return busy("a pause is recorded, so no further call may start")
	}
	if len(in.Calls) == 0 {
		return unexpected("no call is named")
	}
	calls := slices.Clone(s.batch.calls)
	for _, sc := range in.Calls {
		if sc.Ordinal < 0 || sc.Ordinal >= len(calls) {
			return failure(UnexpectedCompletion, sc.Ordinal, "the batch has %d calls and none of ordinal %d", len(calls), sc.Ordinal)
		}
		c := &calls[sc.Ordinal]
		if c.Status != CallWaiting {
			return failure(UnexpectedCompletion, sc.Ordinal, "call %d is %s", sc.Ordinal, c.Status)
		}
		c.Status, c.Repeat = CallStarted, sc.Repeat
	}
	s.executing = true
	s.batch.calls, s.batch.single = calls, true
	return nil
}

// settled takes the result of one call (S-166).
func (s *State) settled(in Settled) *StateError {
	if !s.pending(PhaseTools, in.Op) {
		return s.stale(in.Op)
	}
	if in.Ordinal < 0 || in.Ordinal >= len(s.batch.calls) {
		return failure(UnexpectedCompletion, in.Ordinal, "the batch has %d calls and none of ordinal %d", len(s.batch.calls), in.Ordinal)
	}
	c := s.batch.calls[in.Ordinal]
	if c.Status == CallSettled {
		return failure(UnexpectedCompletion, in.Ordinal, "call %d has its result already", in.Ordinal)
	}
	r, err := answerTo(c.Call, in.Ordinal, in.Result)
	if err != nil {
		return err
	}
	calls := slices.Clone(s.batch.calls)
	calls[in.Ordinal].settle(r)
	s.batch.calls, s.batch.single = calls, true
	if s.batch.open() {
		return nil
	}
	return s.complete(false)
}

// settleRest closes the batch (S-167).
func (s *State) settleRest(in SettleRest) *StateError {
	if !s.pending(PhaseTools, in.Op) {
		return s.stale(in.Op)
	}
	return s.closeBatch(in.Cause, in.Cancelled)
}

func (s *State) closeBatch(cause string, cancelled bool) *StateError {
	s.batch.calls = slices.Clone(s.batch.calls)
	for i := range s.batch.calls {
		c := &s.batch.calls[i]
		switch c.Status {
		case CallWaiting:
			c.settle(notRun(c.Call, cause))
		case CallStarted:
			c.settle(unknown(c.Call))
		case CallSettled:
		}
	}
	return s.complete(cancelled)
}

// toolsCompleted takes all results at once (S-27 to S-29).
func (s *State) toolsCompleted(in ToolsCompleted) *StateError {
	if !s.pending(PhaseTools, in.Op) {
		return s.stale(in.Op)
	}
	if s.batch.single {
		return unexpected("the calls of operation %d are settled one by one", in.Op)
	}
	if len(in.Results) != len(s.batch.calls) {
		return failure(InvalidContext, -1, "%d results for %d calls", len(in.Results), len(s.batch.calls))
	}
	calls := slices.Clone(s.batch.calls)
	for i := range calls {
		r, err := answerTo(calls[i].Call, i, in.Results[i])
		if err != nil {
			return err
		}
		calls[i].settle(r)
	}
	s.batch.calls = calls
	return s.complete(in.Cancelled)
}

// complete pushes the results of a batch whose calls are all settled, in call
// order, and goes on to what comes after it.
func (s *State) complete(cancelled bool) *StateError {
	results := llm.Message{Role: llm.RoleTool, Parts: make([]llm.Part, len(s.batch.calls))}
	for i := range s.batch.calls {
		results.Parts[i] = s.batch.calls[i].Result
	}
	answer, stop := s.answer, s.stop
	switch {
	case cancelled:
		s.leave(PhaseCancelled)
	case s.batch.again:
		if err := s.await(); err != nil {
			return err
		}
	default:
		s.leave(PhaseFinished)
		s.answer, s.stop = answer, stop
	}
	s.history = s.history.push(results)
	return nil
}

// open reports whether any call has no result.
func (b *batch) open() bool {
	for i := range b.calls {
		if b.calls[i].Status != CallSettled {
			return true
		}
	}
	return false
}

// running reports whether any call was started and has no result.
func (b *batch) running() bool {
	for i := range b.calls {
		if b.calls[i].Status == CallStarted {
			return true
		}
	}
	return false
}

func (c *BatchCall) settle(r llm.Result) { c.Status, c.Repeat, c.Result = CallSettled, false, r }

// answerTo fills in whom a result answers, or refuses the result of another call.
func answerTo(c llm.Call, ordinal int, r llm.Result) (llm.Result, *StateError) {
	if r.CallID == "" {
		r.CallID = c.ID
	}
	if r.Name == "" {
		r.Name = c.Name
	}
	if r.CallID != c.ID || r.Name != c.Name {
		return r, failure(InvalidContext, ordinal, "a result of %s (%q) answers call %d, which is %s (%q)",
			r.Name, r.CallID, ordinal, c.Name, c.ID)
	}
	return r, nil
}
