// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

func calls(ids ...string) llm.Message {
	m := llm.Message{Role: llm.RoleAssistant, Stop: llm.StopToolUse}
	for _, id := range ids {
		m.Parts = append(m.Parts, llm.Call{ID: id, Name: "look"})
	}
	return m
}

func results(ids ...string) llm.Message {
	m := llm.Message{Role: llm.RoleTool}
	for _, id := range ids {
		m.Parts = append(m.Parts, llm.Result{CallID: id, Name: "look"})
	}
	return m
}

func numbered(n int) []string {
	ids := make([]string, n)
	for i := range ids {
		ids[i] = fmt.Sprint(i)
	}
	return ids
}

// TestS69_ValidateContext, and the index of S-70.
func TestS69_ValidateContext(t *testing.T) {
	u, a := llm.UserText("u"), llm.AssistantText("a")
	for name, c := range map[string]struct {
		messages []llm.Message
		index    int // -1: valid
	}{
		"empty":              {nil, -1},
		"two users":          {[]llm.Message{u, u, a, a}, -1},
		"calls and results":  {[]llm.Message{u, calls("1", "2"), results("1", "2"), u}, -1},
		"same ids later":     {[]llm.Message{calls("1"), results("1"), calls("1"), results("1")}, -1},
		"many calls":         {[]llm.Message{calls(numbered(40)...), results(numbered(40)...)}, -1},
		"calls at the end":   {[]llm.Message{u, calls("1")}, 1},
		"calls, then user":   {[]llm.Message{u, calls("1"), u}, 2},
		"calls, then calls":  {[]llm.Message{calls("1"), calls("2"), results("2")}, 1},
		"results first":      {[]llm.Message{results("1")}, 0},
		"results twice":      {[]llm.Message{calls("1"), results("1"), results("1")}, 2},
		"results after text": {[]llm.Message{u, a, results("1")}, 2},
		"no results":         {[]llm.Message{calls("1"), results()}, 1},
		"empty results":      {[]llm.Message{u, results()}, 1},
		"too few":            {[]llm.Message{calls("1", "2"), results("1")}, 1},
		"too many":           {[]llm.Message{calls("1"), results("1", "2")}, 1},
		"other order":        {[]llm.Message{calls("1", "2"), results("2", "1")}, 1},
		"other id":           {[]llm.Message{calls("1"), results("2")}, 1},
		"no id":              {[]llm.Message{u, calls(""), results("")}, 1},
		"id twice":           {[]llm.Message{calls("1", "2", "1"), results("1", "2", "1")}, 0},
		"id twice of many":   {[]llm.Message{calls(append(numbered(40), "7")...), results(append(numbered(40), "7")...)}, 0},
		"no role":            {[]llm.Message{u, {}}, 1},
		"nil part":           {[]llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{nil}}}, 0},
	} {
		err := machine.ValidateContext(c.messages)
		var se *machine.StateError
		switch {
		case c.index < 0 && err != nil:
			t.Errorf("%s: %v", name, err)
		case c.index >= 0 && !errors.As(err, &se):
			t.Errorf("%s: %v, want an error", name, err)
		case c.index >= 0 && (se.Index != c.index || !errors.Is(err, machine.ErrInvalidContext) || errors.Is(err, machine.ErrBusy)):
			t.Errorf("%s: index %d of %v, want %d", name, se.Index, err, c.index)
		}
	}
}

// TestPartsByRole: which parts may stand in a message of which role.
func TestPartsByRole(t *testing.T) {
	allowed := map[llm.Role]string{
		llm.RoleUser:      "llm.Text llm.Image llm.System",
		llm.RoleAssistant: "llm.Text llm.Image llm.Thinking llm.Call",
		llm.RoleTool:      "llm.Result",
	}
	for role, want := range allowed {
		got := ""
		for _, p := range everyPart {
			history := []llm.Message{{Role: role, Parts: []llm.Part{p}}}
			switch p := p.(type) {
			case llm.Call:
				history = append(history, results(p.ID))
			case llm.Result:
				if role == llm.RoleTool {
					history = append([]llm.Message{calls(p.CallID)}, history...)
				}
			default:
			}
			if machine.ValidateContext(history) == nil {
				got += fmt.Sprintf(" %T", p)
			}
		}
		if got != " "+want {
			t.Errorf("%s: got%s, want %s", role, got, want)
		}
	}
}

// TestS71_Checkpoints, and what recovery makes of them (S-73 to S-76).
func TestS71_Checkpoints(t *testing.T) {
	u := llm.UserText("u")
	generation := &machine.PendingOperation{Kind: machine.PendingGeneration, Op: 7}
	tools := &machine.PendingOperation{Kind: machine.PendingTools, Op: 7}
	for name, c := range map[string]struct {
		in   machine.Checkpoint
		want string // the recovered history; empty: refused
	}{
		"nothing pending": {machine.Checkpoint{History: []llm.Message{u}}, "user[\"u\"]\n"},
		"generation": {
			machine.Checkpoint{History: []llm.Message{u}, Pending: generation, Sequence: 3},
			"user[\"u\"]\nuser[note interrupted{\"pending\":\"generation\",\"op\":7}]\n",
		},
		"tools": {
			machine.Checkpoint{History: []llm.Message{u, calls("1", "2")}, Pending: tools, Sequence: 9},
			"user[\"u\"]\nassistant[call 1, call 2]tool_use\n" +
				"tool[1 unknown \"outcome unknown: may still be running\", 2 unknown \"outcome unknown: may still be running\"]\n" +
				"user[note interrupted{\"pending\":\"tools\",\"op\":7}]\n",
		},
		"tools over nothing":        {machine.Checkpoint{Pending: tools}, ""},
		"tools over text":           {machine.Checkpoint{History: []llm.Message{u}, Pending: tools}, ""},
		"tools over bad prefix":     {machine.Checkpoint{History: []llm.Message{results("1"), calls("1")}, Pending: tools}, ""},
		"generation over calls":     {machine.Checkpoint{History: []llm.Message{calls("1")}, Pending: generation}, ""},
		"nothing pending and calls": {machine.Checkpoint{History: []llm.Message{calls("1")}}, ""},
		"unknown kind":              {machine.Checkpoint{Pending: &machine.PendingOperation{Kind: "nap", Op: 1}}, ""},
		"no op":                     {machine.Checkpoint{Pending: &machine.PendingOperation{Kind: machine.PendingGeneration}}, ""},
	} {
		before := transcript(c.in.History)
		got, err := machine.RecoverCheckpoint(c.in)
		if (err == nil) != (c.want != "") || (machine.ValidateCheckpoint(c.in) == nil) != (err == nil) {
			t.Errorf("%s: %v", name, err)
		}
		if diff := cmp.Diff(c.want, transcript(got.History)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if err != nil {
			if !errors.Is(err, machine.ErrInvalidContext) || got.Pending != nil || got.Sequence != 0 {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
			continue
		}
		if c.in.Pending != nil && got.Sequence != max(7, c.in.Sequence) {
			t.Errorf("%s: sequence %d (S-67)", name, got.Sequence)
		}
		if transcript(c.in.History) != before {
			t.Errorf("%s: the checkpoint given was changed", name)
		}
		s, err := machine.FromCheckpoint(got)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		e := must(t, s, machine.Start{})
		if g, ok := e.(machine.Generate); !ok || g.Op != got.Sequence+1 {
			t.Errorf("%s: started as %#v, want operation %d (S-67)", name, e, got.Sequence+1)
		}
	}
}

// TestRecoverDoesNotWriteBehindTheHistory: the slice that is given may have room
// that belongs to somebody else.
func TestRecoverDoesNotWriteBehindTheHistory(t *testing.T) {
	whole := []llm.Message{llm.UserText("u"), llm.UserText("other"), llm.UserText("other")}
	c := machine.Checkpoint{History: whole[:1], Pending: &machine.PendingOperation{Kind: machine.PendingGeneration, Op: 1}}
	if _, err := machine.RecoverCheckpoint(c); err != nil {
		t.Fatal(err)
	}
	var s machine.State
	must(t, &s, machine.ReplaceContext{Messages: whole[:1]})
	must(t, &s, machine.AppendInput{Message: llm.UserText("mine")})
	want := "user[\"u\"]\nuser[\"mine\"]\n"
	for range 20 { // so that some views have room behind them
		view := s.History()
		must(t, &s, machine.AppendInput{Message: llm.UserText("mine too")})
		_ = append(view, llm.UserText("theirs"))
		want += "user[\"mine too\"]\n"
	}
	if diff := cmp.Diff(want, transcript(s.History())); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if got := whole[1].Text() + whole[2].Text(); got != "otherother" {
		t.Errorf("the caller's slice now holds %q", got)
	}
}

// TestS158_ForksOfOneSlice: two copies write behind the same slice, wherever the
// machine extends one.
func TestS158_ForksOfOneSlice(t *testing.T) {
	s := base(t, "T")
	must(t, s, machine.ToolsCompleted{Op: 2, Results: make([]llm.Result, 2)})
	notice := func(s *machine.State, text string) { must(t, s, machine.Notice{Op: 3, Text: text}) }
	for range 6 {
		a, b := s.Clone(), s.Clone()
		notice(a, "a")
		before := transcript(a.History())
		notice(b, "b")
		if after := transcript(a.History()); after != before {
			t.Errorf("a notice in a copy changed\n%s\nto\n%s", before, after)
		}
		notice(s, "both")
	}
	must(t, s, machine.GenerationFailed{Op: 3})
	for range 6 { // a cut history has room behind it that is not its own
		must(t, s, machine.AppendInput{Message: llm.UserText("more")})
	}
	before := transcript(s.History())
	for n := range s.Len() {
		cut := s.Clone()
		if _, err := cut.Step(machine.Truncate{Len: n}); err == nil {
			must(t, cut, machine.AppendInput{Message: llm.UserText("other")})
		}
	}
	if after := transcript(s.History()); after != before {
		t.Errorf("a cut copy changed\n%s\nto\n%s", before, after)
	}
}

// TestS158_CopiesInParallel: copies of one state are driven at once; run with -race.
func TestS158_CopiesInParallel(t *testing.T) {
	s := base(t, "G")
	for range 20 {
		op := s.Sequence()
		must(t, s, machine.Generated{Op: op, Message: twoCalls})
		must(t, s, machine.ToolsCompleted{Op: op + 1, Results: make([]llm.Result, 2)})
	}
	want := transcript(s.History())
	var wg sync.WaitGroup
	for i := range 8 {
		own := s.Clone()
		wg.Go(func() {
			for j := range 50 {
				if _, err := own.Step(machine.Steer{Messages: []llm.Message{llm.UserText(fmt.Sprint(i, j))}}); err != nil {
					t.Error(err)
				}
			}
			for j, m := range own.History()[s.Len():] {
				if m.Text() != fmt.Sprint(i, j) {
					t.Errorf("copy %d holds %q at %d", i, m.Text(), j)
				}
			}
		})
	}
	wg.Wait()
	if got := transcript(s.History()); got != want {
		t.Error("the original changed")
	}
}

// TestErrorsSayWhatToDo, with the input and the phase.
func TestErrorsSayWhatToDo(t *testing.T) {
	for _, c := range []struct {
		base string
		in   machine.Input
		is   error
		text string
	}{
		{
			"PG",
			machine.Start{},
			machine.ErrBusy,
			"machine: busy: start while paused: the run is paused over operation 1; resume or cancel it first",
		},
		{
			"T",
			machine.GenerationFailed{Op: 1},
			machine.ErrUnexpectedCompletion,
			"machine: unexpected completion: generation-failed while tools: operation 1 is stale, 2 is pending",
		},
		{
			"T",
			machine.GenerationFailed{Op: 2},
			machine.ErrUnexpectedCompletion,
			"machine: unexpected completion: generation-failed while tools: operation 2 is pending, but is not of that kind",
		},
		{
			"E",
			machine.Start{},
			machine.ErrInvalidContext,
			"machine: invalid context: start while ready: there is nothing to answer; append a message first",
		},
		{
			"G",
			machine.Generated{Op: 1, Message: llm.Message{Role: llm.RoleAssistant, Stop: llm.StopToolUse}},
			machine.ErrInvalidResponse,
			"machine: invalid response: generated while generating: the reply stopped for tool use and holds no call",
		},
		{"R", nil, machine.ErrUnexpectedCompletion, "machine: unexpected completion: nil while ready: a nil input"},
	} {
		_, err := base(t, c.base).Step(c.in)
		if !errors.Is(err, c.is) || err.Error() != c.text {
			t.Errorf("got %v, want %s", err, c.text)
		}
	}
}
