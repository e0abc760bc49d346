// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// TestScripts plays testdata/script/*.txt. After a wanted change run
// go test ./machine -rewrite and read the diff before committing it.
//
//	cells INPUT args     feeds one input to every base state (see bases_test.go) and
//	                     prints the outcomes, those that are alike on one line
//	new STATE            goes to a base state
//	INPUT args           feeds one input to the state at hand
//	show                 prints the state at hand with its history
//
// Arguments of inputs are op (cur, stale, future or a number) and the names of
// fields; the lines below a command are messages, parts, results or calls.
func TestScripts(t *testing.T) {
	datadriven.Walk(t, "testdata/script", func(t *testing.T, path string) {
		s := new(machine.State)
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			switch d.Cmd {
			case "new":
				s = base(t, d.CmdArgs[0].Key)
				return show(s)
			case "show":
				return show(s) + transcript(s.History())
			case "cells":
				return cells(t, d)
			}
			return outcome(t, s, parse(t, s, d.Cmd, d)) + "\n"
		})
	})
}

// cells feeds the same input to all base states.
func cells(t *testing.T, d *datadriven.TestData) string {
	var order []string
	names := map[string][]string{}
	for _, b := range bases {
		s := base(t, b.name)
		got := outcome(t, s, parse(t, s, d.CmdArgs[0].Key, d))
		if names[got] == nil {
			order = append(order, got)
		}
		names[got] = append(names[got], b.name)
	}
	var out strings.Builder
	for _, got := range order {
		fmt.Fprintf(&out, "%s: %s\n", strings.Join(names[got], " "), got)
	}
	return out.String()
}

// outcome feeds the input and tells what became of the state. An error must leave
// it exactly as it was (S-146), and so must asking (S-148).
func outcome(t *testing.T, s *machine.State, in machine.Input) string {
	t.Helper()
	before, was := snapshot(t, s), s.Clone()
	effect, err := s.Step(in)
	if err != nil {
		if after := snapshot(t, s); after != before {
			t.Errorf("%#v: %v, and the state changed from\n%s\nto\n%s", in, err, before, after)
		}
		if se, ok := errors.AsType[*machine.StateError](err); ok && se.Index >= 0 {
			return fmt.Sprintf("%s (index %d)", se.Kind, se.Index)
		} else if ok {
			return string(se.Kind)
		}
		t.Errorf("%#v: %v is no *StateError", in, err)
	}
	after := snapshot(t, s)
	if !reflect.DeepEqual(effect, s.Effect()) {
		t.Errorf("%#v: Step returned %#v, asked again it is %#v (S-61)", in, effect, s.Effect())
	}
	if again := snapshot(t, s); again != after {
		t.Errorf("%#v: asking changed the state", in)
	}
	if after == before {
		return "same"
	}
	return strings.TrimSpace(show(s)) + difference(was.History(), s.History())
}

// show is the control state in one line.
func show(s *machine.State) string {
	var b strings.Builder
	b.WriteString(s.Phase().String())
	if p, ok := s.Pending(); ok {
		fmt.Fprintf(&b, " %s(%d)", p.Kind, p.Op)
	}
	if s.Executing() {
		b.WriteString(" executing")
	}
	if s.Noticed() {
		b.WriteString(" noticed")
	}
	if reason, ok := s.PauseRequested(); ok {
		fmt.Fprintf(&b, " pause-recorded(%s)", reason)
	}
	switch e := s.Effect().(type) {
	case machine.Paused:
		fmt.Fprintf(&b, " reason(%s)", e.Reason)
	case machine.Finished:
		fmt.Fprintf(&b, " %s %s", e.Stop, parts(e.Answer))
	case machine.Generate, machine.ExecuteTools, machine.Cancelled, nil:
	}
	for _, c := range s.Batch() {
		fmt.Fprintf(&b, " %s:%s", c.Call.ID, c.Status)
		if c.Repeat {
			b.WriteString("+repeat")
		}
	}
	if n := s.Truncations(); n > 0 || s.TruncationCap() != machine.DefaultMaxTruncatedResumes {
		fmt.Fprintf(&b, " truncated %d/%d", n, s.TruncationCap())
	}
	if s.LastUsage().Known() || s.RunUsage().Known() {
		fmt.Fprintf(&b, " usage %s run %s", usage(s.LastUsage()), usage(s.RunUsage()))
	}
	return b.String() + "\n"
}

func usage(u llm.Usage) string {
	return fmt.Sprintf("%d/%d/%d", u.Input.Value(), u.CacheRead.Value(), u.Output.Value())
}

// difference tells what became of the history.
func difference(was, is []llm.Message) string {
	same := 0
	for same < len(was) && same < len(is) && reflect.DeepEqual(was[same], is[same]) {
		same++
	}
	var b strings.Builder
	if cut := len(was) - same; cut > 0 {
		fmt.Fprintf(&b, " -%d", cut)
	}
	for _, m := range is[same:] {
		b.WriteString(" +" + message(m))
	}
	return b.String()
}

func transcript(messages []llm.Message) string {
	var b strings.Builder
	for _, m := range messages {
		b.WriteString(message(m) + "\n")
	}
	return b.String()
}

func message(m llm.Message) string {
	s := string(m.Role) + parts(m.Parts)
	if m.Stop != "" {
		s += string(m.Stop)
	}
	return s
}

func parts(ps []llm.Part) string {
	words := make([]string, len(ps))
	for i, p := range ps {
		switch p := p.(type) {
		case llm.Text:
			words[i] = strconv.Quote(p.Text)
		case llm.Image:
			words[i] = p.Media
		case llm.Thinking:
			words[i] = "thinking " + strconv.Quote(p.Text)
		case llm.System:
			words[i] = note(p)
		case llm.Call:
			words[i] = "call " + p.ID
		case llm.Result:
			words[i] = fmt.Sprintf("%s %s %q", p.CallID, p.Status, p.Summary)
			for _, n := range p.Notes {
				words[i] += " " + note(n)
			}
		}
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// note leaves out the machine's own long texts; their data stand.
func note(n llm.System) string {
	s := "note " + n.Kind
	switch n.Text {
	case machine.ContinuePrompt, machine.InterruptedPrompt:
	default:
		s += " " + strconv.Quote(n.Text)
	}
	return s + string(n.Data)
}

func snapshot(tb tester, s *machine.State) string {
	tb.Helper()
	data, err := s.MarshalJSON()
	if err != nil {
		tb.Fatal(err)
	}
	return string(data)
}

// tester is what testing.TB and *rapid.T have in common.
type tester interface {
	Helper()
	Fatal(args ...any)
	Fatalf(format string, args ...any)
}
