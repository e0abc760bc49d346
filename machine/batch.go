// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"

	"github.com/fiducial-dev/fiducial/llm"
)

// batch is the calls of the last message while their results are pending. Nothing
// that it points to is ever written to again: a change makes new marks.
type batch struct {
	calls   []llm.Call
	marks   []mark // of each call
	results grown[llm.Part]
	single  bool // S-165 or S-166 was used, so the batch is settled call by call
	again   bool // the model is asked after it; else the run ends with the state's answer
}

// mark is how far a call has come.
type mark struct {
	status CallStatus
	repeat bool
	result int // index in results, when settled
}

// view is the calls for a reader.
func (b *batch) view() []BatchCall {
	if len(b.calls) == 0 {
		return nil
	}
	out := make([]BatchCall, len(b.calls))
	for i, m := range b.marks {
		out[i] = BatchCall{Call: b.calls[i], Status: m.status, Repeat: m.repeat}
		if m.status == CallSettled {
			out[i].Result, _ = b.results.items[m.result].(llm.Result)
		}
	}
	return out
}

// settle gives call i its result. The marks must be the caller's own.
func (b *batch) settle(i int, r llm.Result) {
	b.results = b.results.push(r)
	b.marks[i] = mark{status: CallSettled, result: len(b.results.items) - 1}
}

// message is the results of the batch in call order.
func (b *batch) message() llm.Message {
	m := llm.Message{Role: llm.RoleTool, Parts: make([]llm.Part, len(b.marks))}
	for i := range b.marks {
		m.Parts[i] = b.results.items[b.marks[i].result]
	}
	return m
}

func newBatch(m llm.Message, n int, again bool) batch {
	b := batch{calls: make([]llm.Call, n), marks: make([]mark, n), results: roomFor[llm.Part](n), again: again}
	for i, c := range m.Calls() {
		b.calls[i] = c
	}
	return b
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
	s.batch = newBatch(m, n, resume || m.Stop == llm.StopToolUse)
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
	marks := slices.Clone(s.batch.marks)
	for _, sc := range in.Calls {
		if sc.Ordinal < 0 || sc.Ordinal >= len(marks) {
			return failure(UnexpectedCompletion, sc.Ordinal, "the batch has %d calls and none of ordinal %d", len(marks), sc.Ordinal)
		}
		if m := marks[sc.Ordinal]; m.status != CallWaiting {
			return failure(UnexpectedCompletion, sc.Ordinal, "call %d is %s", sc.Ordinal, m.status)
		}
		marks[sc.Ordinal] = mark{status: CallStarted, repeat: sc.Repeat}
	}
	s.executing = true
	s.batch.marks, s.batch.single = marks, true
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
	if s.batch.marks[in.Ordinal].status == CallSettled {
		return failure(UnexpectedCompletion, in.Ordinal, "call %d has its result already", in.Ordinal)
	}
	r, err := answerTo(s.batch.calls[in.Ordinal], in.Ordinal, in.Result)
	if err != nil {
		return err
	}
	s.batch.marks, s.batch.single = slices.Clone(s.batch.marks), true
	s.batch.settle(in.Ordinal, r)
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
	s.batch.marks = slices.Clone(s.batch.marks)
	for i, m := range s.batch.marks {
		switch m.status {
		case CallWaiting:
			s.batch.settle(i, notRun(s.batch.calls[i], cause))
		case CallStarted:
			s.batch.settle(i, unknown(s.batch.calls[i]))
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
	s.batch.marks = slices.Clone(s.batch.marks)
	for i, c := range s.batch.calls {
		r, err := answerTo(c, i, in.Results[i])
		if err != nil {
			return err
		}
		s.batch.settle(i, r)
	}
	return s.complete(in.Cancelled)
}

// complete pushes the results of a batch whose calls are all settled, in call
// order, and goes on to what comes after it.
func (s *State) complete(cancelled bool) *StateError {
	results := s.batch.message()
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
	return slices.ContainsFunc(b.marks, func(m mark) bool { return m.status != CallSettled })
}

// running reports whether any call was started and has no result.
func (b *batch) running() bool {
	return slices.ContainsFunc(b.marks, func(m mark) bool { return m.status == CallStarted })
}

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
