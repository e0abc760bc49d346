// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// wideState has a pending batch of n calls, with text between them.
func wideState(t *testing.T, n int) *machine.State {
	m := llm.Message{Role: llm.RoleAssistant, Stop: llm.StopToolUse}
	for i := range n {
		m.Parts = append(m.Parts, llm.Text{Text: "and"}, llm.Call{ID: fmt.Sprint("c", i), Name: "look", Args: "{}"})
	}
	var s machine.State
	must(t, &s, machine.AppendInput{Message: llm.UserText("go")})
	must(t, &s, machine.Start{})
	must(t, &s, machine.Generated{Op: 1, Message: m})
	return &s
}

// A copied is a state of a wide batch, and what each of its calls must say.
type copied struct {
	state *machine.State
	want  []machine.BatchCall
}

func (c copied) copy() copied {
	return copied{c.state.Clone(), append([]machine.BatchCall(nil), c.want...)}
}

// TestWideBatchesOfCopies drives copies of one batch, large enough to be indexed, at
// random against a plain list for each: no copy sees what became of a call in another
// one, nor what was done behind an input that is refused (S-146, S-158, S-165, S-166).
func TestWideBatchesOfCopies(t *testing.T) {
	for seed := range uint64(100) {
		r := rand.New(rand.NewPCG(seed, 0))
		n := 7 + r.IntN(30)
		s := wideState(t, n)
		all := []copied{{s, s.Batch()}}
		for range 150 {
			i := r.IntN(len(all))
			if r.IntN(12) == 0 && len(all) < 5 {
				all = append(all, all[i].copy())
			}
			all[i].move(t, r)
			for k, c := range all {
				for o, want := range c.want {
					got := c.state.BatchCall(o)
					if got.Call.ID != want.Call.ID || got.Status != want.Status || got.Repeat != want.Repeat ||
						got.Doubt != want.Doubt || got.Result.Summary != want.Result.Summary {
						t.Fatalf("seed %d: call %d of copy %d after a move of copy %d:\ngot  %+v\nwant %+v", seed, o, k, i, got, want)
					}
				}
			}
		}
		for _, c := range all {
			c.end(t)
		}
	}
}

// move feeds one input, and keeps one call at least open.
func (c copied) move(t *testing.T, r *rand.Rand) {
	i := r.IntN(len(c.want))
	call := &c.want[i]
	switch r.IntN(8) {
	case 0: // takes the process's place
		must(t, c.state, machine.Recovered{Doubt: true})
		for k := range c.want {
			if w := &c.want[k]; w.Status == machine.CallStarted { // all are repeatable here
				w.Status, w.Repeat, w.Doubt = machine.CallWaiting, false, true
			}
		}
	case 1: // starts what it may, and then one that it may not: nothing of it counts
		last := machine.StartedCall{Ordinal: len(c.want)}
		if err := c.state.Apply(machine.Started{Op: 2, Calls: []machine.StartedCall{{Ordinal: i}, last}}); err == nil {
			t.Fatal("a call that is not there was started")
		}
	case 2, 3, 4:
		err := c.state.Apply(machine.Started{Op: 2, Calls: []machine.StartedCall{{Ordinal: i, Repeat: true}}})
		if (err == nil) != (call.Status == machine.CallWaiting) {
			t.Fatalf("start of call %d, which is %s: %v", i, call.Status, err)
		}
		if err == nil {
			call.Status, call.Repeat, call.Doubt = machine.CallStarted, true, false
		}
	default:
		open := 0
		for _, w := range c.want {
			if w.Status != machine.CallSettled {
				open++
			}
		}
		if open == 1 {
			return
		}
		res := llm.Result{CallID: call.Call.ID, Name: "look", Status: llm.StatusSuccess, Summary: fmt.Sprint(r.Uint32())}
		err := c.state.Apply(machine.Settled{Op: 2, Ordinal: i, Result: res})
		if (err == nil) != (call.Status != machine.CallSettled) {
			t.Fatalf("result of call %d, which is %s: %v", i, call.Status, err)
		}
		if err == nil {
			*call = machine.BatchCall{Call: call.Call, Status: machine.CallSettled, Result: res}
		}
	}
}

// end closes the batch and looks at the results.
func (c copied) end(t *testing.T) {
	must(t, c.state, machine.SettleRest{Op: 2, Cause: "the end"})
	history := c.state.History()
	if err := machine.ValidateContext(history); err != nil {
		t.Fatal(err)
	}
	for i, p := range history[len(history)-1].Parts {
		w, got := c.want[i], p.(llm.Result)
		switch {
		case w.Status == machine.CallSettled && got.Summary != w.Result.Summary,
			w.Status == machine.CallStarted && got.Status != llm.StatusUnknown,
			w.Status == machine.CallWaiting && got.Status == llm.StatusSuccess:
			t.Fatalf("call %d was %+v and ended as %+v", i, w, got)
		}
	}
}

// TestWideBatchInGoroutines: copies that share what was put so far go on in goroutines
// of their own (S-158); the race detector looks on.
func TestWideBatchInGoroutines(t *testing.T) {
	const n = 64
	s := wideState(t, n)
	var wg sync.WaitGroup
	for g := range 4 {
		c := s.Clone()
		wg.Go(func() {
			for i := range n {
				res := llm.Result{Status: llm.StatusSuccess, Summary: fmt.Sprint(g, "/", i)}
				if err := c.Apply(machine.Settled{Op: 2, Ordinal: i, Result: res}); err != nil {
					t.Error(err)
					return
				}
				for k := i + 1; k < n; k++ {
					if st := c.BatchCall(k).Status; st != machine.CallWaiting {
						t.Errorf("copy %d: call %d is %s before its time", g, k, st)
						return
					}
				}
			}
			for i, p := range c.History()[2].Parts {
				if got, want := p.(llm.Result).Summary, fmt.Sprint(g, "/", i); got != want {
					t.Errorf("copy %d: result %d is %q, want %q", g, i, got, want)
				}
			}
		})
	}
	wg.Wait()
	for i := range n {
		if st := s.BatchCall(i).Status; st != machine.CallWaiting {
			t.Errorf("call %d of the first state is %s", i, st)
		}
	}
}
