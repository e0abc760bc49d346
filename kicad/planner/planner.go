// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/constraint"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
)

// Name is the model's name on the command line.
const Name = "builtin"

// Client is the planner as a model. The zero value is ready.
type Client struct{}

// Describe tells that no provider is behind it.
func (Client) Describe() llm.Model { return llm.Model{Vendor: "fiducial", Name: Name} }

// Stream answers with the next step.
func (Client) Stream(_ context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	m := next(req)
	return collect.Events(collect.Reply{Message: m, Usage: llm.Usage{Input: llm.N(0), Output: llm.N(0)}})
}

// step is one exchange: what the planner called and what came back.
type step struct {
	calls   []llm.Call
	results []llm.Result
}

// talk is a conversation as the planner reads it.
type talk struct {
	request string
	steps   []step
}

func read(messages []llm.Message) talk {
	var t talk
	for i, m := range messages {
		switch m.Role {
		case llm.RoleUser:
			if t.request == "" {
				t.request = m.Text()
			}
		case llm.RoleAssistant:
			s := step{}
			for _, c := range m.Calls() {
				s.calls = append(s.calls, c)
			}
			if len(s.calls) == 0 || i+1 >= len(messages) {
				continue
			}
			for _, p := range messages[i+1].Parts {
				if r, ok := p.(llm.Result); ok {
					s.results = append(s.results, r)
				}
			}
			t.steps = append(t.steps, s)
		case llm.RoleTool:
		}
	}
	return t
}

// last is the latest result of a tool, the zero value when it was not called.
func (t talk) last(tool string) llm.Result {
	for _, s := range slices.Backward(t.steps) {
		for k, c := range slices.Backward(s.calls) {
			if c.Name == tool && k < len(s.results) {
				return s.results[k]
			}
		}
	}
	return llm.Result{}
}

// all are the results of a tool, oldest first.
func (t talk) all(tool string) (list []llm.Result) {
	for _, s := range t.steps {
		for k, c := range s.calls {
			if c.Name == tool && k < len(s.results) && !s.results[k].IsError() {
				list = append(list, s.results[k])
			}
		}
	}
	return list
}

// answer is the latest result of a call.
func (t talk) answer(tool string, a args) (llm.Result, bool) {
	want := call(tool, a).Args
	for _, s := range slices.Backward(t.steps) {
		for k, c := range s.calls {
			if c.Name == tool && c.Args == want && k < len(s.results) {
				return s.results[k], true
			}
		}
	}
	return llm.Result{}, false
}

// count is how often a tool was called.
func (t talk) count(tool string) (n int) {
	for _, s := range t.steps {
		for _, c := range s.calls {
			if c.Name == tool {
				n++
			}
		}
	}
	return n
}

// unknown are the calls of the latest step that a crash cut off. An edit that was cut
// off has been taken back, so that each can be made again.
func (t talk) unknown() (again []llm.Call) {
	if len(t.steps) == 0 {
		return nil
	}
	s := t.steps[len(t.steps)-1]
	for i, r := range s.results {
		if r.Status == llm.StatusUnknown && i < len(s.calls) {
			again = append(again, llm.Call{Name: s.calls[i].Name, Args: s.calls[i].Args})
		}
	}
	return again
}

// called reports whether the latest step called one of the tools.
func (t talk) called(tools ...string) bool {
	if len(t.steps) == 0 {
		return false
	}
	for _, c := range t.steps[len(t.steps)-1].calls {
		if slices.Contains(tools, c.Name) {
			return true
		}
	}
	return false
}

// asking are the tools whose failure is an answer.
var asking = []string{"footprint_pads", "pins_of"}

// failure is the first failed result of the latest step.
func (t talk) failure() (llm.Result, bool) {
	if len(t.steps) > 0 {
		for _, r := range t.steps[len(t.steps)-1].results {
			if r.IsError() && !slices.Contains(asking, r.Name) {
				return r, true
			}
		}
	}
	return llm.Result{}, false
}

// next works out the reply to a conversation.
func next(req *llm.Request) llm.Message {
	t := read(req.Messages)
	all, err := parse(t.request)
	if err != nil {
		return refuse(err.Error())
	}
	if again := t.unknown(); len(again) > 0 {
		return calls("Doing again what was interrupted.", again...)
	}
	j := newJob(t, req.System, all)
	bad, failed := t.failure()
	switch {
	case len(t.steps) == 0:
		return j.look()
	case j.docsOnly():
		return plan{talk: t, request: all[0]}.fixDocs()
	case t.called("finish"):
		return j.afterFinish()
	case failed:
		return refuse(fmt.Sprintf("%s did not work: %s", bad.Name, bad.Body()))
	case t.count("propose_change") == 0:
		return j.propose()
	case t.called("propose_change"):
		return j.change()
	case t.called("check_drift", "run_erc"):
		return j.afterChecks()
	case t.called("edit_file", "fix_docs"):
		return j.check("Checking.")
	}
	return j.follow()
}

// plan is the planner's view of one request in the middle of its conversation.
type plan struct {
	talk
	request

	system  string          // the prompt
	numbers map[string]bool // part numbers that the request sets, as "R1 mpn"

	was   map[string]string       // references that requests before this one give, with what they are called now
	added []constraint.Constraint // what requests before this one record
}

// verdict is a check's first line up to what it says of now and the command.
func verdict(line string) string {
	line, _, _ = strings.Cut(line, "; now ")
	line, _, _ = strings.Cut(line, " (kicad-cli")
	return strings.TrimRight(line, ".")
}

type args map[string]any

func call(name string, a args) llm.Call {
	data, err := json.Marshal(a) // maps are written with sorted keys
	if err != nil {
		panic(fmt.Sprintf("planner: arguments of %s: %v", name, err))
	}
	return llm.Call{Name: name, Args: string(data)}
}

func calls(text string, all ...llm.Call) llm.Message {
	m := llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: text}}, Stop: llm.StopToolUse}
	for _, c := range all {
		m.Parts = append(m.Parts, c)
	}
	return m
}

func finish(outcome, summary string) llm.Message {
	return calls("", call("finish", args{"outcome": outcome, "summary": summary}))
}

func refuse(why string) llm.Message { return finish("refuse", why) }

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// listed is what a result tells behind its first line. A provider may hand a result
// on as one text, in which summary and content cannot be told apart.
func listed(r llm.Result) string {
	if r.Content != "" {
		return r.Content
	}
	_, rest, _ := strings.Cut(r.Body(), "\n")
	return rest
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
