// SPDX-License-Identifier: Apache-2.0

package machine

import "github.com/fiducial-dev/fiducial/llm"

// batch is the calls of the last message while their results are pending. What
// became of them is a list that only grows, so that copies of the state share it.
type batch struct {
	parts  []llm.Part // of the reply; the calls are among them
	calls  int        // how many there are
	began  int        // of them, how many are started and not settled
	done   int        // of them, how many are settled
	doubts int        // of them, how many wait to be repeated
	marks  grown[mark]
	wide   *wide // nil for a batch of a few calls
	single bool  // S-165 or S-166 was used, so the batch is settled call by call
	again  bool  // the model is asked after it; else the run ends with the state's answer
}

func newBatch(m llm.Message, n int, again bool) batch {
	// Each call is started and settled.
	return batch{parts: m.Parts, calls: n, marks: roomFor[mark](2 * n), wide: wideOf(m.Parts, n), again: again}
}

// call is the call of an ordinal, which must be one of the batch.
func (b *batch) call(ordinal int) llm.Call {
	if b.wide != nil {
		c, _ := b.parts[b.wide.calls[ordinal]].(llm.Call)
		return c
	}
	for _, p := range b.parts {
		if c, ok := p.(llm.Call); ok {
			if ordinal == 0 {
				return c
			}
			ordinal--
		}
	}
	return llm.Call{}
}

// put says how far a call has come now.
func (b *batch) put(m mark) {
	was := b.mark(m.ordinal)
	if was.status == CallStarted {
		b.began--
	}
	if was.doubt {
		b.doubts--
	}
	if m.doubt {
		b.doubts++
	}
	switch m.status {
	case CallStarted:
		b.began++
	case CallSettled:
		b.done++
	case CallWaiting:
	}
	b.push(m)
}

// settle gives a call its result.
func (b *batch) settle(ordinal int, r llm.Result) {
	b.put(mark{ordinal: ordinal, status: CallSettled, result: r})
}

// open reports whether any call has no result.
func (b *batch) open() bool { return b.done < b.calls }

// running reports whether any call was started and has no result.
func (b *batch) running() bool { return b.began > 0 }

// doubtful reports whether any call waits to be repeated.
func (b *batch) doubtful() bool { return b.doubts > 0 }

// at is one call for a reader.
func (b *batch) at(ordinal int) BatchCall {
	m := b.mark(ordinal)
	c := BatchCall{Call: b.call(ordinal), Status: m.status, Repeat: m.repeat, Doubt: m.doubt}
	c.Result, _ = m.result.(llm.Result)
	return c
}

// view is all of them.
func (b *batch) view() []BatchCall {
	if b.calls == 0 {
		return nil
	}
	out := make([]BatchCall, b.calls)
	for i := range out {
		out[i] = b.at(i)
	}
	return out
}

// message is the results of the batch in call order.
func (b *batch) message() llm.Message {
	m := llm.Message{Role: llm.RoleTool, Parts: make([]llm.Part, b.calls)}
	for _, k := range b.marks.items {
		if k.status == CallSettled {
			m.Parts[k.ordinal] = k.result
		}
	}
	return m
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
	for _, c := range in.Calls {
		if err := s.checkOrdinal(c.Ordinal); err != nil {
			return err
		}
		if m := s.batch.mark(c.Ordinal); m.status != CallWaiting {
			return failure(UnexpectedCompletion, c.Ordinal, "call %d is %s", c.Ordinal, m.status)
		}
		s.batch.put(mark{ordinal: c.Ordinal, status: CallStarted, repeat: c.Repeat})
	}
	s.executing, s.batch.single = true, true
	return nil
}

// settled takes the result of one call (S-166).
func (s *State) settled(in Settled) *StateError {
	if !s.pending(PhaseTools, in.Op) {
		return s.stale(in.Op)
	}
	if err := s.checkOrdinal(in.Ordinal); err != nil {
		return err
	}
	if s.batch.mark(in.Ordinal).status == CallSettled {
		return failure(UnexpectedCompletion, in.Ordinal, "call %d has its result already", in.Ordinal)
	}
	r, err := answerTo(s.batch.call(in.Ordinal), in.Ordinal, in.Result)
	if err != nil {
		return err
	}
	s.batch.single = true
	s.batch.settle(in.Ordinal, r)
	if s.batch.open() {
		return nil
	}
	return s.complete(false)
}

func (s *State) checkOrdinal(ordinal int) *StateError {
	if ordinal < 0 || ordinal >= s.batch.calls {
		return failure(UnexpectedCompletion, ordinal, "the batch has %d calls and none of ordinal %d", s.batch.calls, ordinal)
	}
	return nil
}

// settleRest closes the batch (S-167).
func (s *State) settleRest(in SettleRest) *StateError {
	if !s.pending(PhaseTools, in.Op) {
		return s.stale(in.Op)
	}
	return s.closeBatch(in.Cause, in.Cancelled)
}

func (s *State) closeBatch(cause string, cancelled bool) *StateError {
	for i := range s.batch.calls {
		switch c := s.batch.at(i); {
		case c.Status == CallStarted:
			s.batch.settle(i, unknown(c.Call))
		case c.Doubt:
			s.batch.settle(i, NotRepeated(c.Call, cause))
		case c.Status == CallWaiting:
			s.batch.settle(i, NotRun(c.Call, cause))
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
	if len(in.Results) != s.batch.calls {
		return failure(InvalidContext, -1, "%d results for %d calls", len(in.Results), s.batch.calls)
	}
	for i := range in.Results {
		r, err := answerTo(s.batch.call(i), i, in.Results[i])
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
