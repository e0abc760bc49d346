// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

var (
	twoCalls = llm.Message{Role: llm.RoleAssistant, Stop: llm.StopToolUse, Parts: []llm.Part{
		llm.Text{Text: "let me see"},
		llm.Call{ID: "c0", Name: "look", Args: "{}"},
		llm.Call{ID: "c1", Name: "list", Args: "{}"},
	}}
	answer = llm.Message{Role: llm.RoleAssistant, Stop: llm.StopEndTurn, Parts: []llm.Part{
		llm.Thinking{Text: "hm"}, llm.Text{Text: "yes"},
	}}
)

func ready(then ...machine.Input) []machine.Input {
	return append([]machine.Input{machine.AppendInput{Message: llm.UserText("hi")}}, then...)
}

func generating(then ...machine.Input) []machine.Input {
	return append(ready(machine.Start{}), then...)
}

func tools(then ...machine.Input) []machine.Input {
	return append(generating(machine.Generated{Op: 1, Message: twoCalls}), then...)
}

func startedCall(ordinal int, repeat bool) machine.Started {
	return machine.Started{Op: 2, Calls: []machine.StartedCall{{Ordinal: ordinal, Repeat: repeat}}}
}

func settledCall(ordinal int) machine.Settled {
	return machine.Settled{Op: 2, Ordinal: ordinal, Result: llm.Result{Status: llm.StatusSuccess, Summary: "own result"}}
}

// bases are the columns of the tables: the phases of S-13 to S-50 and what S-165
// to S-171 tell apart. The pending operation is 1 for a reply and 2 for a batch.
var bases = []struct {
	name   string
	inputs []machine.Input
}{
	{"E", nil},     // new, no history
	{"R", ready()}, // ready
	{"F", generating(machine.GenerationFailed{Op: 1})}, // generation failed
	{"G", generating()},                      // generating
	{"GX", generating(machine.Begin{Op: 1})}, // begun
	{"GXp", generating(machine.Begin{Op: 1}, machine.Pause{Reason: "later"})}, // begun, a pause recorded
	{"PG", generating(machine.Pause{Reason: "tea"})},                          // paused over G
	{"T", tools()},                       // two calls waiting
	{"TX", tools(machine.Begin{Op: 2})},  // begun
	{"Ts", tools(startedCall(0, false))}, // the first call started
	{"Tsp", tools(startedCall(0, false), machine.Pause{Reason: "later"})},          // and a pause recorded
	{"Tss", tools(startedCall(0, false), startedCall(1, true))},                    // both, the second repeatable
	{"Td", tools(settledCall(1))},                                                  // the second call settled
	{"Tsd", tools(startedCall(0, false), settledCall(1))},                          // the first started, the second settled
	{"Tr", tools(startedCall(0, true), startedCall(1, true))},                      // both started and repeatable
	{"PT", tools(machine.Pause{Reason: "tea"})},                                    // paused over T
	{"D", generating(machine.Generated{Op: 1, Message: answer, Usage: use(9, 4)})}, // finished
	{"C", generating(machine.CancelAtBoundary{})},                                  // cancelled
}

func base(tb tester, name string) *machine.State {
	tb.Helper()
	for _, b := range bases {
		if b.name == name {
			s := new(machine.State)
			for _, in := range b.inputs {
				must(tb, s, in)
			}
			return s
		}
	}
	tb.Fatalf("no base state %q", name)
	return nil
}

func use(input, output int64) llm.Usage { return llm.Usage{Input: llm.N(input), Output: llm.N(output)} }

// parse reads one input of a script.
func parse(t *testing.T, s *machine.State, kind string, d *datadriven.TestData) machine.Input {
	t.Helper()
	a := args{t, s, d}
	switch kind {
	case "append-input":
		return machine.AppendInput{Message: a.messages()[0], Keys: a.strings("keys")}
	case "append-system":
		return machine.AppendSystem{Parts: a.notes()}
	case "replace-context":
		return machine.ReplaceContext{Messages: a.messages(), Usage: a.usage()}
	case "truncate":
		return machine.Truncate{Len: a.int("len")}
	case "start":
		return machine.Start{}
	case "begin":
		return machine.Begin{Op: a.op()}
	case "generated":
		return machine.Generated{Op: a.op(), Message: a.messages()[0], Usage: a.usage()}
	case "generation-failed":
		return machine.GenerationFailed{Op: a.op()}
	case "tools-completed":
		return machine.ToolsCompleted{Op: a.op(), Results: a.results(), Cancelled: d.HasArg("cancelled")}
	case "cancel-at-boundary":
		return machine.CancelAtBoundary{}
	case "replace-at-boundary":
		return machine.ReplaceAtBoundary{Messages: a.messages(), Usage: a.usage()}
	case "recover-interrupted":
		return machine.RecoverInterrupted{Begun: d.HasArg("begun")}
	case "notice":
		return machine.Notice{Op: a.op(), Text: d.Input, Fresh: d.HasArg("fresh")}
	case "set-truncation-cap":
		return machine.SetTruncationCap{N: a.int("n")}
	case "started":
		return machine.Started{Op: a.op(), Calls: a.startedCalls()}
	case "settled":
		in := machine.Settled{Op: a.op(), Ordinal: a.int("ordinal")}
		if rs := a.results(); len(rs) > 0 {
			in.Result = rs[0]
		}
		return in
	case "settle-rest":
		return machine.SettleRest{Op: a.op(), Cause: d.Input, Cancelled: d.HasArg("cancelled")}
	case "pause":
		return machine.Pause{Reason: d.Input, Begun: d.HasArg("begun")}
	case "resume":
		return machine.Resume{}
	case "recovered":
		return machine.Recovered{Doubt: d.HasArg("doubt")}
	case "steer":
		return machine.Steer{Messages: a.messages()}
	}
	d.Fatalf(t, "unknown command %q", kind)
	return nil
}

type args struct {
	t *testing.T
	s *machine.State
	d *datadriven.TestData
}

func (a args) op() machine.OperationID {
	cur := a.s.Sequence()
	word := strings.Join(a.strings("op"), "")
	switch word {
	case "cur":
		return cur
	case "stale":
		return cur - 1
	case "future":
		return cur + 1
	}
	return machine.OperationID(a.int("op"))
}

func (a args) int(key string) (n int) {
	a.d.ScanArgs(a.t, key, &n)
	return n
}

func (a args) strings(key string) []string {
	if arg, ok := a.d.Arg(key); ok {
		return arg.Vals
	}
	return nil
}

func (a args) usage() llm.Usage {
	if !a.d.HasArg("usage") {
		return llm.Usage{}
	}
	var in, cached, out int64
	a.d.ScanArgs(a.t, "usage", &in, &cached, &out)
	return llm.Usage{Input: llm.N(in), CacheRead: llm.N(cached), Output: llm.N(out)}
}

func (a args) lines() [][]string {
	var out [][]string
	for line := range strings.Lines(a.d.Input) {
		if f := strings.Fields(line); len(f) > 0 {
			out = append(out, f)
		}
	}
	return out
}

// messages reads lines such as: assistant stop=tool_use text=a call=c0 result=c0
func (a args) messages() []llm.Message {
	var out []llm.Message
	for _, f := range a.lines() {
		m := llm.Message{Role: llm.Role(f[0])}
		for _, word := range f[1:] {
			key, value, _ := strings.Cut(word, "=")
			switch key {
			case "stop":
				m.Stop = llm.StopReason(value)
			case "text":
				m.Parts = append(m.Parts, llm.Text{Text: value})
			case "image":
				m.Parts = append(m.Parts, llm.Image{Media: value, Data: []byte{1}})
			case "thinking":
				m.Parts = append(m.Parts, llm.Thinking{Text: value})
			case "system":
				m.Parts = append(m.Parts, llm.System{Kind: "hint", Text: value})
			case "call":
				m.Parts = append(m.Parts, llm.Call{ID: value, Name: "look", Args: "{}"})
			case "result":
				m.Parts = append(m.Parts, llm.Result{CallID: value, Name: "look", Status: llm.StatusSuccess})
			case "nil":
				m.Parts = append(m.Parts, nil)
			default:
				a.d.Fatalf(a.t, "unknown part %q", word)
			}
		}
		out = append(out, m)
	}
	return out
}

func (a args) notes() []llm.System {
	var out []llm.System
	for _, f := range a.lines() {
		out = append(out, llm.System{Kind: f[0], Text: strings.Join(f[1:], " ")})
	}
	return out
}

// results reads lines such as: success done, or with id and name: success done c0 look
func (a args) results() []llm.Result {
	var out []llm.Result
	for _, f := range a.lines() {
		r := llm.Result{Status: llm.Status(f[0]), Summary: f[1]}
		if len(f) > 2 {
			r.CallID = f[2]
		}
		if len(f) > 3 {
			r.Name = f[3]
		}
		out = append(out, r)
	}
	return out
}

// startedCalls reads calls=(0,1+) where + means repeatable.
func (a args) startedCalls() []machine.StartedCall {
	var out []machine.StartedCall
	for _, v := range a.strings("calls") {
		c := machine.StartedCall{Repeat: strings.HasSuffix(v, "+")}
		for _, digit := range strings.TrimSuffix(v, "+") {
			c.Ordinal = c.Ordinal*10 + int(digit-'0')
		}
		out = append(out, c)
	}
	return out
}
