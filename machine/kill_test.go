// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"encoding/json"
	"fmt"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// The program of these tests: a batch of three calls, the second repeatable, then
// one call whose reply ends the turn.
var program = []llm.Message{
	llm.AssistantCalls(
		llm.Call{ID: "a", Name: "write"}, llm.Call{ID: "b", Name: "read"}, llm.Call{ID: "c", Name: "write"}),
	{Role: llm.RoleAssistant, Stop: llm.StopEndTurn, Parts: []llm.Part{
		llm.Text{Text: "done"}, llm.Call{ID: "d", Name: "write"},
	}},
}

type record struct {
	kind string
	data []byte
}

// driver carries out effects as an engine does. It dies at its nth step.
type driver struct {
	t       *testing.T
	state   machine.State
	journal []record
	runs    map[string]int // dispatches of each call
	left    int            // steps until it dies
}

type killed struct{}

func (d *driver) at() {
	if d.left == 0 {
		panic(killed{})
	}
	d.left--
}

// feed is an append to the journal and a step.
func (d *driver) feed(in machine.Input) {
	next := d.state
	held, durable := next.Durable(in)
	must(d.t, &next, in)
	if durable {
		kind, data, err := machine.EncodeInput(held)
		if err != nil {
			d.t.Fatal(err)
		}
		d.at()
		d.journal = append(d.journal, record{kind, data})
		d.at()
	}
	d.state = next
}

// run goes on until the run ends, or dies.
func (d *driver) run() (died bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, died = r.(killed); !died {
				panic(r)
			}
		}
	}()
	for {
		switch e := d.state.Effect().(type) {
		case nil:
			if d.state.Len() == 0 {
				d.feed(machine.AppendInput{Message: llm.UserText("go")})
			}
			d.feed(machine.Start{})
		case machine.Generate:
			d.feed(machine.Begin(e))
			d.at()
			n := 0
			for _, m := range d.state.History() {
				if m.Role == llm.RoleAssistant {
					n++
				}
			}
			d.feed(machine.Generated{Op: e.Op, Message: program[n]})
		case machine.ExecuteTools:
			d.calls(e)
		case machine.Finished:
			return false
		case machine.Cancelled, machine.Paused:
			d.t.Fatalf("the run ended with %#v", e)
		}
	}
}

// calls starts two calls together, then the rest one by one.
func (d *driver) calls(e machine.ExecuteTools) {
	if !d.state.Executing() {
		d.feed(machine.Begin{Op: e.Op})
	}
	var group []machine.StartedCall
	for i, c := range e.Calls {
		if c.Status == machine.CallWaiting && len(group) < 2 {
			group = append(group, machine.StartedCall{Ordinal: i, Repeat: c.Call.Name == "read"})
		}
	}
	d.feed(machine.Started{Op: e.Op, Calls: group})
	for _, c := range group {
		d.dispatch(e, c.Ordinal)
		d.at()
	}
	for _, c := range group {
		d.feed(machine.Settled{Op: e.Op, Ordinal: c.Ordinal, Result: llm.Result{Status: llm.StatusSuccess, Summary: "did"}})
	}
}

// dispatch is the effect itself: the journal must say so before (S-86, S-151), and
// no call that has a result may come here again (S-160).
func (d *driver) dispatch(e machine.ExecuteTools, ordinal int) {
	s := replayed(d.t, d.journal)
	b := s.Batch()
	if p, _ := s.Pending(); p.Op != e.Op || b[ordinal].Status != machine.CallStarted {
		d.t.Fatalf("call %d of operation %d is dispatched, and the journal has it as %s of operation %d",
			ordinal, e.Op, b[ordinal].Status, p.Op)
	}
	d.runs[e.Calls[ordinal].Call.ID]++
}

func replayed(t *testing.T, journal []record) *machine.State {
	t.Helper()
	s := new(machine.State)
	for _, r := range journal {
		in, err := machine.DecodeInput(r.kind, r.data)
		if err != nil {
			t.Fatalf("%s %s: %v", r.kind, r.data, err)
		}
		must(t, s, in)
	}
	return s
}

// TestKillEverywhere dies at every step, and then at every step of the process
// that takes over: S-150, S-151, S-160, S-170.
func TestKillEverywhere(t *testing.T) {
	deaths := 0
	for first := 0; ; first++ {
		for second := 0; ; second++ {
			d := &driver{t: t, runs: map[string]int{}, left: first}
			if !d.run() {
				if first < 20 || deaths == 0 {
					t.Fatalf("only %d steps to die at", first)
				}
				t.Logf("%d deaths", deaths)
				return
			}
			deaths++
			again := &driver{t: t, journal: d.journal, runs: d.runs, state: *replayed(t, d.journal), left: second}
			finished := !again.takeOver()
			if !finished {
				deaths++
				third := &driver{t: t, journal: again.journal, runs: d.runs, state: *replayed(t, again.journal), left: -1}
				if third.takeOver() {
					t.Fatal("the third process died")
				}
				again = third
			}
			again.verify(fmt.Sprintf("killed at %d and %d", first, second))
			if finished {
				break
			}
		}
	}
}

func (d *driver) takeOver() (died bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, died = r.(killed); !died {
				panic(r)
			}
		}
	}()
	d.feed(machine.Recovered{Doubt: true})
	return d.run()
}

func (d *driver) verify(when string) {
	d.t.Helper()
	h := d.state.History()
	if err := machine.ValidateContext(h); err != nil {
		d.t.Fatalf("%s: %v", when, err)
	}
	for _, m := range h {
		for _, p := range m.Parts {
			r, ok := p.(llm.Result)
			if !ok {
				continue
			}
			switch runs := d.runs[r.CallID]; {
			case r.Name == "write" && runs > 1:
				d.t.Errorf("%s: call %s ran %d times", when, r.CallID, runs)
			case r.Status == llm.StatusSuccess && runs == 0:
				d.t.Errorf("%s: call %s never ran and has a result", when, r.CallID)
			case r.Name == "read" && r.Status != llm.StatusSuccess:
				d.t.Errorf("%s: call %s may be repeated and ended as %s", when, r.CallID, r.Status)
			case r.Status != llm.StatusSuccess && r.Status != llm.StatusUnknown:
				d.t.Errorf("%s: call %s ended as %s", when, r.CallID, r.Status)
			}
		}
	}
	if got := replayed(d.t, d.journal); notExecuting(snapshot(d.t, got)) != notExecuting(snapshot(d.t, &d.state)) {
		d.t.Errorf("%s: the journal gives another state", when)
	}
}

// TestKillBetweenCheckpoints is the same for a caller who keeps checkpoints and
// completes batches at once (S-71 to S-81, S-150, S-160). A failed save stops the
// run before anything is dispatched (S-86), and can be tried again (S-90).
func TestKillBetweenCheckpoints(t *testing.T) {
	for dies := 0; ; dies++ {
		c := &checkpointing{t: t, runs: map[string]int{}, dies: dies}
		if !c.life(new(machine.State)) {
			if dies < 8 {
				t.Fatalf("only %d steps to die at", dies)
			}
			return
		}
		saved := c.saved
		if len(saved) == 0 {
			continue // nothing was ever saved, nothing was ever done
		}
		var cp machine.Checkpoint
		if err := json.Unmarshal(saved, &cp); err != nil {
			t.Fatal(err)
		}
		recovered, err := machine.RecoverCheckpoint(cp)
		if err != nil {
			t.Fatal(err)
		}
		s, err := machine.FromCheckpoint(recovered)
		if err != nil {
			t.Fatal(err)
		}
		if s.Sequence() < cp.Sequence {
			t.Fatalf("sequence %d goes back behind %d (S-67)", s.Sequence(), cp.Sequence)
		}
		c.dies = -1
		c.life(s)
		for id, n := range c.runs {
			if n > 1 {
				t.Errorf("killed at %d: call %s ran %d times", dies, id, n)
			}
		}
	}
}

type checkpointing struct {
	t     *testing.T
	saved []byte
	runs  map[string]int
	dies  int
}

func (c *checkpointing) at() {
	if c.dies == 0 {
		panic(killed{})
	}
	c.dies--
}

func (c *checkpointing) save(s *machine.State) {
	c.at() // the save fails, or the process dies before it
	data, err := json.Marshal(s.Checkpoint())
	if err != nil {
		c.t.Fatal(err)
	}
	c.saved = data
	c.at()
}

func (c *checkpointing) life(s *machine.State) (died bool) {
	defer func() {
		if r := recover(); r != nil {
			if _, died = r.(killed); !died {
				panic(r)
			}
		}
	}()
	if s.Len() == 0 {
		must(c.t, s, machine.AppendInput{Message: llm.UserText("go")})
		c.save(s)
	}
	must(c.t, s, machine.Start{})
	for {
		c.save(s)
		switch e := s.Effect().(type) {
		case machine.Generate:
			must(c.t, s, machine.Begin(e))
			n := 0
			for _, m := range s.History() {
				if m.Role == llm.RoleAssistant {
					n++
				}
			}
			reply := llm.AssistantText("nothing is left")
			if n < len(program) {
				reply = program[n]
			}
			must(c.t, s, machine.Generated{Op: e.Op, Message: reply})
		case machine.ExecuteTools:
			must(c.t, s, machine.Begin{Op: e.Op})
			results := make([]llm.Result, len(e.Calls))
			for i, call := range e.Calls {
				c.runs[call.Call.ID]++
				c.at()
				results[i] = llm.Result{Status: llm.StatusSuccess, Summary: "did"}
			}
			must(c.t, s, machine.ToolsCompleted{Op: e.Op, Results: results})
		case machine.Finished:
			return false
		case machine.Cancelled, machine.Paused, nil:
			c.t.Fatalf("the run ended with %#v", e)
		}
	}
}
