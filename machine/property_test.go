// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// TestInvariants feeds random inputs to random older states, so that states fork,
// and holds S-143 to S-161 after each.
func TestInvariants(t *testing.T) { rapid.Check(t, invariants) }

// FuzzInvariants is the same under the coverage-guided fuzzer.
func FuzzInvariants(f *testing.F) { f.Fuzz(rapid.MakeFuzz(invariants)) }

// node is a state with how it came about.
type node struct {
	state    *machine.State
	parent   *node
	in       machine.Input // nil at the root
	held     machine.Input // its durable form, nil when a journal holds none
	snapshot string
	history  []llm.Message // the view that was taken then, and its JSON
	json     string

	output    llm.Count // what counted replies wrote since the last start (S-154)
	cancelled bool      // a batch was completed as cancelled and no start followed (S-155)
}

func invariants(t *rapid.T) {
	root := &node{state: new(machine.State)}
	keep(t, root)
	nodes := []*node{root}
	for range rapid.IntRange(1, 40).Draw(t, "steps") {
		from := nodes[len(nodes)-1]
		if rapid.IntRange(0, 4).Draw(t, "fork") == 0 {
			from = nodes[rapid.IntRange(0, len(nodes)-1).Draw(t, "from")]
		}
		if next := step(t, from, input(t, from.state)); next != nil {
			nodes = append(nodes, next)
		}
	}
	for i, n := range nodes {
		if got := snapshot(t, n.state); got != n.snapshot {
			t.Fatalf("state %d changed (S-158): it was\n%s\nand is\n%s", i, n.snapshot, got)
		}
		if got := toJSON(t, n.history); got != n.json {
			t.Fatalf("a view of state %d changed: it was\n%s\nand is\n%s", i, n.json, got)
		}
	}
	replay(t, nodes[len(nodes)-1])
}

// step feeds one input to a copy; nil when it was refused.
func step(t *rapid.T, from *node, in machine.Input) *node {
	s := *from.state // a plain copy, as callers make them
	held, durable := s.Durable(in)
	effect, err := s.Step(in)
	if err != nil {
		if !from.state.Equal(&s) {
			t.Fatalf("%#v: %v, and the state changed (S-146):\n%s\n%s", in, err, from.snapshot, snapshot(t, &s))
		}
		if _, ok := errors.AsType[*machine.StateError](err); !ok || effect != nil {
			t.Fatalf("%#v: error %T, effect %v", in, err, effect)
		}
		return nil
	}
	if op, named := opOf(in); named {
		if p, ok := from.state.Pending(); !ok || p.Op != op {
			t.Fatalf("%#v was accepted, pending was %+v, %v (S-145)", in, p, ok)
		}
	}
	n := &node{state: &s, parent: from, in: in, output: from.output, cancelled: from.cancelled}
	if durable {
		n.held = held
	}
	keep(t, n)
	always(t, n)
	compared(t, n)
	counted(t, n)
	recovers(t, n)
	return n
}

func keep(t *rapid.T, n *node) {
	n.snapshot = snapshot(t, n.state)
	n.history = n.state.History()
	n.json = toJSON(t, n.history)
}

// always holds what is true of each state alone.
func always(t *rapid.T, n *node) {
	s := n.state
	if err := machine.ValidateCheckpoint(s.Checkpoint()); err != nil {
		t.Fatalf("%#v: %v (S-143)", n.in, err)
	}
	if s.AtBoundary() {
		if err := machine.ValidateContext(s.History()); err != nil {
			t.Fatalf("%#v: %v (S-143)", n.in, err)
		}
	}
	_, pending := s.Pending()
	if pending == s.Idle() {
		t.Fatalf("pending %v and idle %v (S-147)", pending, s.Idle())
	}
	none := s.Phase() == machine.PhaseReady || s.Phase() == machine.PhaseFailed
	if (s.Effect() == nil) != none {
		t.Fatalf("phase %s has the effect %#v (S-147)", s.Phase(), s.Effect())
	}
	calls, results := 0, 0
	for _, m := range s.History() {
		calls += m.CountCalls()
		if m.Role == llm.RoleTool {
			results += len(m.Parts)
		}
	}
	if calls-results != len(s.Batch()) {
		t.Fatalf("%d calls, %d results and a batch of %d (S-149)", calls, results, len(s.Batch()))
	}
	parts, _, _ := s.Answer()
	for _, p := range parts {
		switch p.(type) {
		case llm.Text, llm.Image:
		default:
			t.Fatalf("the answer holds a %T (S-161)", p)
		}
	}
	s.Executing()
	s.Replaceable()
	s.PauseRequested()
	s.RunUsage()
	if got := snapshot(t, s); got != n.snapshot {
		t.Fatalf("asking changed the state (S-148)")
	}
	var again machine.State
	if err := json.Unmarshal([]byte(n.snapshot), &again); err != nil || snapshot(t, &again) != n.snapshot || show(&again) != show(s) {
		t.Fatalf("the snapshot does not read back: %v\n%s", err, n.snapshot)
	}
}

// compared holds a state against the one before.
func compared(t *rapid.T, n *node) {
	was, is := n.parent.state, n.state
	p0, _ := was.Pending()
	p1, pending := is.Pending()
	if is.Sequence() < was.Sequence() || pending && p1.Op != p0.Op && p1.Op <= was.Sequence() {
		t.Fatalf("%#v: operation %d after %d, sequence %d after %d (S-144)", n.in, p1.Op, p0.Op, is.Sequence(), was.Sequence())
	}
	old := n.parent.history
	switch n.in.(type) {
	case machine.ReplaceContext, machine.ReplaceAtBoundary, machine.Truncate:
		return
	case machine.Notice:
		old = old[:max(0, len(old)-1)]
	default: // the others only add
	}
	if len(n.history) < len(n.parent.history) || toJSON(t, n.history[:len(old)]) != toJSON(t, old) {
		t.Fatalf("%#v changed what stood in the history (S-156)", n.in)
	}
}

// counted holds the counts of a run.
func counted(t *rapid.T, n *node) {
	s := n.state
	switch in := n.in.(type) {
	case machine.Start:
		n.output, n.cancelled = llm.Count{}, false
	case machine.Generated:
		n.output = n.output.Plus(in.Usage.Output)
		if s.Truncations() > s.TruncationCap() && s.Phase() == machine.PhaseGenerating {
			t.Fatalf("%d truncations, cap %d, and the model is asked (S-153)", s.Truncations(), s.TruncationCap())
		}
	case machine.ToolsCompleted:
		n.cancelled = in.Cancelled
	case machine.SettleRest:
		n.cancelled = in.Cancelled
	default: // the others count nothing
	}
	if got := s.RunUsage().Output; got != n.output {
		t.Fatalf("the run wrote %v, counted were %v (S-154)", got, n.output)
	}
	if p, ok := s.Pending(); n.cancelled && ok {
		t.Fatalf("cancelled, and %+v is pending without a start (S-155)", p)
	}
}

// recovers holds recovery from the state (S-159, S-74 to S-81).
func recovers(t *rapid.T, n *node) {
	live := *n.state
	must(t, &live, machine.RecoverInterrupted{})
	once := snapshot(t, &live)
	if live.Phase() != machine.PhaseReady || live.Executing() || machine.ValidateContext(live.History()) != nil {
		t.Fatalf("recovered to %s (S-159)", once)
	}
	must(t, &live, machine.RecoverInterrupted{})
	if snapshot(t, &live) != once {
		t.Fatal("a second recovery changed the state (S-159)")
	}
	saved := n.state.Checkpoint()
	c, err := machine.RecoverCheckpoint(saved)
	if err != nil || c.Pending != nil {
		t.Fatalf("recovered checkpoint: %+v, %v", c, err)
	}
	again, err := machine.RecoverCheckpoint(c)
	if err != nil || toJSON(t, again) != toJSON(t, c) {
		t.Fatalf("recovered twice: %v", err)
	}
	fresh, err := machine.FromCheckpoint(c)
	if err != nil || fresh.Sequence() < n.state.Sequence() {
		t.Fatalf("from the checkpoint: %v", err)
	}
	if _, pending := n.state.Pending(); pending {
		if _, err := machine.FromCheckpoint(saved); !errors.Is(err, machine.ErrInvalidContext) {
			t.Fatalf("a checkpoint with a pending operation was taken: %v", err)
		}
	}
}

// replay feeds what a journal holds of the way to n to a new state, through the
// codec: the same state comes of it, up to whether an effect is under way, and the
// very same after a take-over (S-157).
func replay(t *rapid.T, n *node) {
	var path []machine.Input
	for ; n.parent != nil; n = n.parent {
		path = append(path, n.in, n.held)
	}
	var live, replayed machine.State
	for i := len(path) - 2; i >= 0; i -= 2 {
		must(t, &live, path[i])
		if path[i+1] == nil {
			continue
		}
		kind, data, err := machine.EncodeInput(path[i+1])
		if err != nil {
			t.Fatal(err)
		}
		in, err := machine.DecodeInput(kind, data)
		if err != nil {
			t.Fatalf("%s %s: %v", kind, data, err)
		}
		must(t, &replayed, in)
		a, b := notExecuting(snapshot(t, &live)), notExecuting(snapshot(t, &replayed))
		if a != b {
			t.Fatalf("after %#v the live state is\n%s\nand the replayed one\n%s", path[i], a, b)
		}
	}
	must(t, &live, machine.Recovered{Doubt: true})
	must(t, &replayed, machine.Recovered{Doubt: true})
	if !live.Equal(&replayed) {
		t.Fatalf("taken over, the live state is\n%s\nand the replayed one\n%s", snapshot(t, &live), snapshot(t, &replayed))
	}
}

func notExecuting(snapshot string) string {
	return strings.Replace(snapshot, `"executing":true,`, "", 1)
}

func toJSON(t *rapid.T, v any) string {
	if messages, ok := v.([]llm.Message); ok && len(messages) == 0 {
		return "[]"
	}
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func opOf(in machine.Input) (machine.OperationID, bool) {
	switch in := in.(type) {
	case machine.Begin:
		return in.Op, true
	case machine.Generated:
		return in.Op, true
	case machine.GenerationFailed:
		return in.Op, true
	case machine.ToolsCompleted:
		return in.Op, true
	case machine.Notice:
		return in.Op, true
	case machine.Started:
		return in.Op, true
	case machine.Settled:
		return in.Op, true
	case machine.SettleRest:
		return in.Op, true
	case machine.AppendInput, machine.AppendSystem, machine.ReplaceContext, machine.Truncate, machine.Start,
		machine.CancelAtBoundary, machine.ReplaceAtBoundary, machine.RecoverInterrupted, machine.SetTruncationCap,
		machine.Pause, machine.Resume, machine.Recovered, machine.Steer:
	}
	return 0, false
}

// TestSequenceExhausted: the last operation id was given out (S-63).
func TestSequenceExhausted(t *testing.T) {
	for _, name := range []string{"R", "F", "G", "PG", "T", "Td", "D"} {
		last := strings.NewReplacer(
			fmt.Sprintf(`"sequence":%d`, base(t, name).Sequence()), `"sequence":18446744073709551615`)
		var s machine.State
		if err := json.Unmarshal([]byte(last.Replace(snapshot(t, base(t, name)))), &s); err != nil {
			t.Fatal(err)
		}
		before := snapshot(t, &s)
		refused := 0
		for _, in := range []machine.Input{
			machine.Start{},
			machine.AppendSystem{Parts: []llm.System{{Kind: "hint"}}},
			machine.ReplaceAtBoundary{Messages: []llm.Message{llm.UserText("summary")}},
			machine.Steer{Messages: []llm.Message{llm.UserText("more")}},
			machine.Generated{Op: 1, Message: twoCalls},
			machine.Generated{Op: 1, Message: llm.Message{Role: llm.RoleAssistant, Stop: llm.StopMaxTokens}},
			machine.ToolsCompleted{Op: 2, Results: []llm.Result{{}, {}}},
			machine.Settled{Op: 2},
			machine.SettleRest{Op: 2},
		} {
			c := s
			_, err := c.Step(in)
			if err == nil {
				continue // it needs no new operation
			}
			if errors.Is(err, machine.ErrSequenceExhausted) {
				refused++
			}
			if after := snapshot(t, &c); after != before {
				t.Errorf("%s: %T: %v, and the state changed", name, in, err)
			}
		}
		if refused == 0 {
			t.Errorf("%s: nothing was refused for want of an operation id", name)
		}
	}
}
