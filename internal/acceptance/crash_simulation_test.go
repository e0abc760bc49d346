// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// TestSimulation plays random histories of the machine into a journal in memory and
// lets the process die behind every record: what the next one reads is what the dead
// one knew, no settled result is lost, nothing runs twice that must not, and the run
// can be brought to a valid end (S-143, S-157, S-160).
func TestSimulation(t *testing.T) {
	n := 100_000
	if testing.Short() {
		n = 10_000
	}
	var crashes atomic.Int64
	var wg sync.WaitGroup
	workers := runtime.GOMAXPROCS(0)
	for w := range workers {
		wg.Go(func() {
			j := journal.NewMemory()
			for seed := w; seed < n && !t.Failed(); seed += workers {
				s := simulate(t.Context(), j, uint64(seed))
				if s.err != nil {
					t.Errorf("seed %d: %v", seed, s.err)
				}
				crashes.Add(int64(s.crashes))
				if seed < 200 { // the same seed is the same history
					if again := simulate(t.Context(), j, uint64(seed)); !bytes.Equal(encoded(&again.st), encoded(&s.st)) || again.crashes != s.crashes {
						t.Errorf("seed %d: two plays differ", seed)
					}
				}
			}
		})
	}
	wg.Wait()
	t.Logf("%d histories, a crash behind each of %d records", n, crashes.Load())
	if crashes.Load() < int64(8*n) {
		t.Errorf("%d records in %d histories are too few to tell anything", crashes.Load(), n)
	}
}

// A simulation is one history.
type simulation struct {
	r       *rand.Rand
	j       *journal.Memory
	lease   journal.Lease
	st      machine.State
	next    int // of names
	crashes int
	deep    bool
	err     error
}

func simulate(ctx context.Context, j *journal.Memory, seed uint64) *simulation {
	s := &simulation{r: rand.New(rand.NewPCG(seed, 1)), j: j, deep: seed%32 == 0}
	s.err = s.play(ctx)
	return s
}

func (s *simulation) play(ctx context.Context) (err error) {
	const run = "sim"
	if err := s.j.Create(ctx, run, journal.Header{Rules: machine.RulesVersion}); err != nil {
		return err
	}
	if s.lease, err = s.j.Acquire(ctx, run, "x"); err != nil {
		return err
	}
	for range 12 {
		if err := s.feed(ctx, s.choose()); err != nil {
			return err
		}
	}
	if err := s.crashBehindEach(ctx, run); err != nil {
		return err
	}
	if err := s.lease.Release(ctx); err != nil {
		return err
	}
	return s.j.Delete(ctx, run)
}

// feed gives an input to the machine and, when it is accepted, to the journal.
func (s *simulation) feed(ctx context.Context, in machine.Input) error {
	before := s.st.Clone()
	held, keep := s.st.Durable(in)
	if err := s.st.Apply(in); err != nil {
		if !s.st.Equal(before) {
			return fmt.Errorf("%T was refused (%w) and changed the state", in, err)
		}
		return nil
	}
	if !keep {
		return nil
	}
	return s.lease.Append(ctx, journal.MarkOf(&s.st), journal.Step{Input: held})
}

// choose is what may well happen next; now and then something that may not.
func (s *simulation) choose() machine.Input {
	p, _ := s.st.Pending()
	if s.r.IntN(12) == 0 {
		return s.anything(p.Op)
	}
	switch s.st.Phase() {
	case machine.PhaseReady, machine.PhaseFailed, machine.PhaseFinished, machine.PhaseCancelled:
		if s.st.Len() > 0 && s.r.IntN(2) == 0 {
			return machine.Start{}
		}
		return machine.AppendInput{Message: s.user()}
	case machine.PhaseGenerating:
		return s.generating(p.Op)
	case machine.PhaseTools:
		return s.tools(p.Op)
	case machine.PhasePaused:
		return machine.Resume{}
	}
	return machine.Start{}
}

func (s *simulation) name() string {
	s.next++
	return fmt.Sprint("n", s.next)
}

func (s *simulation) user() llm.Message { return llm.UserText(s.name()) }

func (s *simulation) generating(op machine.OperationID) machine.Input {
	switch s.r.IntN(10) {
	case 0:
		return machine.Notice{Op: op, Text: s.name(), Fresh: s.r.IntN(2) == 0}
	case 1:
		return machine.Begin{Op: op}
	case 2:
		return machine.Steer{Messages: []llm.Message{s.user()}, Keys: []string{s.name()}}
	case 3, 4:
		return machine.Generated{Op: op, Message: llm.AssistantText(s.name())}
	}
	calls := make([]llm.Call, 1+s.r.IntN(3))
	for i := range calls {
		calls[i] = llm.Call{ID: s.name(), Name: "t", Args: "{}"}
	}
	return machine.Generated{Op: op, Message: llm.AssistantCalls(calls...)}
}

func (s *simulation) tools(op machine.OperationID) machine.Input {
	var started []machine.StartedCall
	var open []int
	for i, c := range s.st.Batch() {
		switch c.Status {
		case machine.CallWaiting:
			started = append(started, machine.StartedCall{Ordinal: i, Repeat: s.r.IntN(3) == 0})
			open = append(open, i)
		case machine.CallStarted:
			open = append(open, i)
		case machine.CallSettled:
		}
	}
	if len(started) > 0 && s.r.IntN(3) > 0 {
		return machine.Started{Op: op, Calls: started[:1+s.r.IntN(len(started))]}
	}
	if len(open) == 0 {
		return machine.Recovered{Doubt: true}
	}
	return machine.Settled{Op: op, Ordinal: open[s.r.IntN(len(open))], Result: llm.Result{Status: llm.StatusSuccess, Summary: s.name()}}
}

func (s *simulation) anything(op machine.OperationID) machine.Input {
	inputs := []machine.Input{
		machine.AppendInput{Message: s.user()},
		machine.Start{},
		machine.Begin{Op: op},
		machine.GenerationFailed{Op: op},
		machine.CancelAtBoundary{},
		machine.Pause{Reason: s.name()},
		machine.Resume{},
		machine.Recovered{Doubt: true},
		machine.SettleRest{Op: op, Cause: "x", Cancelled: s.r.IntN(2) == 0},
		machine.Generated{Op: op + 1, Message: llm.AssistantText("late")},
		machine.Settled{Op: op, Ordinal: s.r.IntN(3), Result: llm.Result{Status: llm.StatusSuccess, Summary: "odd"}},
		machine.RecoverInterrupted{},
		machine.Truncate{Len: 0},
		machine.Started{Op: op, Calls: []machine.StartedCall{{Ordinal: s.r.IntN(3)}}},
	}
	return inputs[s.r.IntN(len(inputs))]
}

// crashBehindEach reads the log as a new process does. Behind each record its state
// is that of a process that takes over there.
func (s *simulation) crashBehindEach(ctx context.Context, run string) error {
	var st machine.State
	for rec, err := range s.j.Read(ctx, run, 2) {
		if err != nil {
			return err
		}
		step, ok := rec.Body.(journal.Step)
		if !ok {
			return fmt.Errorf("record %d is %T", rec.Seq, rec.Body)
		}
		if err := st.Apply(step.Input); err != nil {
			return fmt.Errorf("record %d: %w", rec.Seq, err)
		}
		s.crashes++
		if err := takeOver(st.Clone(), s.deep); err != nil {
			return fmt.Errorf("crash behind record %d (%T): %w", rec.Seq, step.Input, err)
		}
	}
	if !s.deep {
		return nil
	}
	live, read := s.st.Clone(), st.Clone()
	for _, x := range []*machine.State{live, read} { // the live one knows what it had begun
		if err := x.Apply(machine.Recovered{Doubt: true}); err != nil {
			return err
		}
	}
	if !live.Equal(read) {
		return fmt.Errorf("the log gives %s, the process had %s", encoded(read), encoded(live))
	}
	return nil
}

func encoded(st *machine.State) []byte {
	data, err := json.Marshal(st)
	if err != nil {
		return []byte(err.Error())
	}
	return data
}

// takeOver is a new process: it takes the run up and brings it to an end. Deep
// compares whole states, which takes ten times longer.
func takeOver(st *machine.State, deep bool) error {
	if err := machine.ValidateCheckpoint(st.Checkpoint()); err != nil {
		return fmt.Errorf("what was read: %w", err)
	}
	before, calls := st.Len(), st.Batch()
	if err := st.Apply(machine.Recovered{Doubt: true}); err != nil {
		return err
	}
	twice := st.Clone()
	if err := twice.Apply(machine.Recovered{Doubt: true}); err != nil {
		return err
	}
	p, _ := st.Pending()
	p2, _ := twice.Pending()
	if p != p2 || twice.Len() != st.Len() || twice.Phase() != st.Phase() || twice.Sequence() != st.Sequence() || deep && !twice.Equal(st) {
		return fmt.Errorf("taking over twice differs: %s and %s", encoded(st), encoded(twice))
	}
	if err := checkTaken(st, before, calls); err != nil {
		return err
	}
	return bringToEnd(st)
}

// checkTaken holds the batch after the take-over against the one before.
func checkTaken(st *machine.State, before int, calls []machine.BatchCall) error {
	now := st.Batch()
	if p, ok := st.Pending(); !ok || p.Kind != machine.PendingTools {
		now = nil
	}
	if now == nil && len(calls) > 0 && st.Len() > before { // all are answered: they stand in history
		history := st.History()
		for i, part := range history[before].Parts {
			res, ok := part.(llm.Result)
			if !ok {
				return fmt.Errorf("result %d is %T", i, part)
			}
			now = append(now, machine.BatchCall{Call: calls[i].Call, Status: machine.CallSettled, Result: res})
		}
	}
	if len(now) != len(calls) {
		return fmt.Errorf("%d calls were pending, %d are accounted for", len(calls), len(now))
	}
	for i, was := range calls {
		is := now[i]
		if again := was.Status == machine.CallStarted && was.Repeat || was.Doubt; is.Doubt != again {
			return fmt.Errorf("call %d was %+v and is %+v", i, was, is)
		}
		switch was.Status {
		case machine.CallSettled:
			if is.Status != machine.CallSettled || is.Result.Body() != was.Result.Body() || is.Result.Status != was.Result.Status {
				return fmt.Errorf("the settled call %d is %+v and was %+v", i, is, was)
			}
		case machine.CallStarted:
			if was.Repeat && is.Status != machine.CallWaiting || !was.Repeat && (is.Status != machine.CallSettled || is.Result.Status != llm.StatusUnknown) {
				return fmt.Errorf("the started call %d (repeat %v) is %+v", i, was.Repeat, is)
			}
		case machine.CallWaiting:
			if is.Status != machine.CallWaiting {
				return fmt.Errorf("the waiting call %d is %+v", i, is)
			}
		}
	}
	return nil
}

// bringToEnd answers whatever is pending until the run is over.
func bringToEnd(st *machine.State) error {
	for range 12 {
		p, pending := st.Pending()
		var in machine.Input
		switch st.Phase() {
		case machine.PhasePaused:
			in = machine.Resume{}
		case machine.PhaseGenerating:
			in = machine.Generated{Op: p.Op, Message: llm.AssistantText("end")}
		case machine.PhaseTools:
			i := slices.IndexFunc(st.Batch(), func(c machine.BatchCall) bool { return c.Status != machine.CallSettled })
			if i < 0 {
				return errors.New("every call is answered, and the batch is pending")
			}
			in = machine.Settled{Op: p.Op, Ordinal: i, Result: llm.Result{Status: llm.StatusSuccess, Summary: "ran"}}
		case machine.PhaseReady, machine.PhaseFailed, machine.PhaseFinished, machine.PhaseCancelled:
			if pending {
				return fmt.Errorf("%v is pending in %s", p, st.Phase())
			}
			return machine.ValidateContext(st.History())
		}
		if err := st.Apply(in); err != nil {
			return fmt.Errorf("%T in %s: %w", in, st.Phase(), err)
		}
	}
	return fmt.Errorf("it does not end: %s", bytes.TrimSpace(encoded(st)))
}
