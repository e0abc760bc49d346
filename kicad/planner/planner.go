// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"
	"strings"

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

// called reports whether the latest step called the tool.
func (t talk) called(tool string) bool {
	if len(t.steps) == 0 {
		return false
	}
	for _, c := range t.steps[len(t.steps)-1].calls {
		if c.Name == tool {
			return true
		}
	}
	return false
}

// failure is the first failed result of the latest step.
func (t talk) failure() (llm.Result, bool) {
	if len(t.steps) > 0 {
		for _, r := range t.steps[len(t.steps)-1].results {
			if r.IsError() {
				return r, true
			}
		}
	}
	return llm.Result{}, false
}

// next works out the reply to a conversation.
func next(req *llm.Request) llm.Message {
	t := read(req.Messages)
	r, err := parse(t.request)
	if err != nil {
		return refuse(err.Error())
	}
	p := plan{talk: t, request: r}
	if again := t.unknown(); len(again) > 0 {
		return calls("Doing again what was interrupted.", again...)
	}
	switch {
	case len(t.steps) == 0:
		return p.look()
	case p.kind == fixDocs:
		return p.fixDocs()
	case t.called("finish"):
		return p.afterFinish()
	case t.called("check_drift"):
		return p.afterChecks()
	}
	if bad, failed := t.failure(); failed {
		return refuse(fmt.Sprintf("%s did not work: %s", bad.Name, bad.Body()))
	}
	switch {
	case t.called("propose_change"):
		return p.change()
	case t.called("edit_symbol") && strings.Contains(t.last("edit_symbol").Body(), "nothing was changed"):
		return refuse(t.last("edit_symbol").Body())
	case t.called("rename_net"), t.called("rename_reference"), t.called("edit_symbol"):
		return p.documentsAndChecks()
	case t.called("edit_file"):
		return p.check("Checking.")
	}
	return p.propose()
}

// plan is the planner's view of one request in the middle of its conversation.
type plan struct {
	talk
	request
}

// look finds what the request is about.
func (p plan) look() llm.Message {
	switch p.kind {
	case fixDocs:
		return calls("Comparing the documents with the design.", call("check_drift", args{}))
	case renameNet:
		return calls("Looking up the nets.", call("list_nets", args{}), call("list_symbols", args{}))
	case renameRef, setField:
	}
	return calls("Looking up the parts.", call("list_symbols", args{}))
}

// propose checks the request against the design, and proposes the change.
func (p plan) propose() llm.Message {
	why := p.impossible()
	if why != "" {
		return refuse(why)
	}
	return calls("Proposing the change.",
		call("propose_change", args{
			"why": "Requested: " + oneLine(p.talk.request), "what": p.what(),
			"tasks": []string{p.what(), "bring the documents in line", "run ERC and DRC, and compare the documents"}, "files": p.files(),
		}),
		call("validate_change", args{}),
		call("search", args{"pattern": p.searchPattern(), "glob": "*.md"}),
	)
}

// change makes the edit of the design, and reads the documents that may follow.
func (p plan) change() llm.Message {
	var c llm.Call
	switch p.kind {
	case renameNet:
		c = call("rename_net", args{"from": p.net().name, "to": p.bareTo()})
	case renameRef:
		c = call("rename_reference", args{"from": p.from, "to": p.to})
	case setField:
		c = call("edit_symbol", args{"reference": p.ref, "field": p.field, "text": p.text})
	case fixDocs: // has a way of its own
	}
	all := []llm.Call{c}
	for _, name := range p.foundDocs() {
		all = append(all, call("read_file", args{"path": name}))
	}
	return calls("Editing the design.", all...)
}

// documentsAndChecks edits the documents and runs the checks.
func (p plan) documentsAndChecks() llm.Message {
	var all []llm.Call
	for _, e := range p.documentEdits() {
		all = append(all, call("edit_file", args{"path": e.path, "old": e.old, "new": e.new}))
	}
	if len(all) == 0 {
		return p.check("No document has to follow. Checking.")
	}
	return calls("Bringing the documents in line and checking.", append(all, checks()...)...)
}

func (p plan) check(text string) llm.Message {
	return calls(text, checks()...)
}

func checks() []llm.Call {
	return []llm.Call{call("run_erc", args{}), call("run_drc", args{}), call("check_drift", args{})}
}

// afterChecks ends the run by what the checks say.
func (p plan) afterChecks() llm.Message {
	if bad, failed := p.failure(); failed {
		return refuse(fmt.Sprintf("%s did not work: %s", bad.Name, bad.Body()))
	}
	var verdicts []string
	for _, name := range []string{"run_erc", "run_drc"} {
		res := p.last(name)
		body := res.Body()
		if strings.Contains(firstLine(body), " FAIL") {
			return refuse(fmt.Sprintf("%s would break the design: %s", p.what(), body))
		}
		verdicts = append(verdicts, verdict(firstLine(body)))
	}
	if m := p.afterDrift(); m != nil {
		return *m
	}
	if line := firstLine(p.last("check_drift").Body()); strings.Contains(line, "claims compared") {
		verdicts = append(verdicts, verdict(line))
	}
	if p.count("fix_docs") > 0 {
		verdicts = append(verdicts, strings.TrimSuffix(firstLine(p.last("fix_docs").Body()), ". Call check_drift."))
	}
	summary := fmt.Sprintf("%s. %s.", p.what(), strings.Join(verdicts, ". "))
	return finish("done", strings.Join(append([]string{summary}, p.leftAlone()...), "\n"))
}

// afterFinish is reached when finish was not accepted, or was withdrawn since: after
// a crash every check is due again.
func (p plan) afterFinish() llm.Message {
	res := p.last("finish")
	if p.count("finish") < 3 && p.count("run_erc") > 0 {
		return p.check("Checking once more.")
	}
	return refuse("The run could not be finished: " + res.Body())
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
