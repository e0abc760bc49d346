// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// BenchmarkRound is one round of a run: a reply with one call, and its result. The
// figure does not depend on how long the history is.
func BenchmarkRound(b *testing.B) {
	for _, rounds := range []int{0, 10_000} {
		b.Run(fmt.Sprintf("after-%d", rounds), func(b *testing.B) {
			var s machine.State
			must(b, &s, machine.AppendInput{Message: llm.UserText("go")})
			must(b, &s, machine.Start{})
			reply := llm.AssistantCalls(llm.Call{ID: "c", Name: "look", Args: "{}"})
			result := llm.Result{Status: llm.StatusSuccess, Summary: "done"}
			calls := []machine.StartedCall{{Ordinal: 0}}
			for range rounds {
				round(b, &s, reply, result, calls)
			}
			base := s
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				if i%1000 == 0 { // keep the history near its nominal length
					s = base
				}
				round(b, &s, reply, result, calls)
			}
		})
	}
}

// BenchmarkWideBatch is a reply with 10,000 calls that are started and settled one by
// one: the figure for a call does not depend on how many there are.
func BenchmarkWideBatch(b *testing.B) {
	const n = 10_000
	calls := make([]llm.Call, n)
	for i := range calls {
		calls[i] = llm.Call{ID: fmt.Sprint("c", i), Name: "look", Args: "{}"}
	}
	var base machine.State
	must(b, &base, machine.AppendInput{Message: llm.UserText("go")})
	must(b, &base, machine.Start{})
	must(b, &base, machine.Generated{Op: 1, Message: llm.AssistantCalls(calls...)})
	result := llm.Result{Status: llm.StatusSuccess, Summary: "done"}
	started := make([]machine.StartedCall, 1)
	b.ReportAllocs()
	for b.Loop() {
		s := base
		for i := range n {
			started[0].Ordinal = i
			err1 := s.Apply(machine.Started{Op: 2, Calls: started})
			err2 := s.Apply(machine.Settled{Op: 2, Ordinal: i, Result: result})
			if err := errors.Join(err1, err2); err != nil {
				b.Fatal(err)
			}
		}
		if s.Phase() != machine.PhaseGenerating {
			b.Fatalf("the batch ended in %s", s.Phase())
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/call")
}

func round(tb tester, s *machine.State, reply llm.Message, result llm.Result, calls []machine.StartedCall) {
	op := s.Sequence()
	_, err1 := s.Step(machine.Begin{Op: op})
	_, err2 := s.Step(machine.Generated{Op: op, Message: reply})
	_, err3 := s.Step(machine.Begin{Op: op + 1})
	_, err4 := s.Step(machine.Started{Op: op + 1, Calls: calls})
	_, err5 := s.Step(machine.Settled{Op: op + 1, Result: result})
	if err := errors.Join(err1, err2, err3, err4, err5); err != nil {
		tb.Fatal(err)
	}
}

func must(tb tester, s *machine.State, in machine.Input) machine.Effect {
	tb.Helper()
	effect, err := s.Step(in)
	if err != nil {
		tb.Fatalf("%#v: %v", in, err)
	}
	return effect
}
