// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// importHistory makes a conversation of the case's neutral messages. A system
// message at its start is the system prompt. The engine takes none whose calls and
// results do not pair, so this does what a caller with such a transcript has to do:
// results go behind their calls, in their order; a call without one gets "unknown";
// a result without a call is left out.
func importHistory(in []message) (system string, out []llm.Message, err error) {
	var flat []llm.Message
	for i, m := range in {
		if m.Role == "system" && i == 0 {
			for _, p := range m.Parts {
				system += p.Text
			}
			continue
		}
		messages, err := importMessage(m)
		if err != nil {
			return "", nil, fmt.Errorf("history[%d]: %w", i, err)
		}
		flat = append(flat, messages...)
	}
	for i, m := range flat {
		if m.Role == llm.RoleTool {
			continue // placed by its calls
		}
		out = append(out, m)
		if m.CountCalls() > 0 {
			out = append(out, answers(m, flat[i+1:]))
		}
	}
	return system, out, nil
}

// answers are the results for a reply's calls, from what follows it up to the next
// reply.
func answers(reply llm.Message, rest []llm.Message) llm.Message {
	var results []llm.Result
	for _, m := range rest {
		if m.Role == llm.RoleAssistant {
			break
		}
		for _, p := range m.Parts {
			if r, ok := p.(llm.Result); ok {
				results = append(results, r)
			}
		}
	}
	var out []llm.Result
	for _, call := range reply.Calls() {
		i := slices.IndexFunc(results, func(r llm.Result) bool { return r.CallID == call.ID })
		if i < 0 {
			out = append(out, llm.Result{CallID: call.ID, Name: call.Name, Status: llm.StatusUnknown, Summary: "outcome unknown: the transcript holds no result"})
			continue
		}
		r := results[i]
		r.Name = call.Name
		out, results = append(out, r), slices.Delete(results, i, i+1)
	}
	return llm.ToolResults(out...)
}

// importMessage is one message, or two where results stand beside other parts.
func importMessage(m message) ([]llm.Message, error) {
	out := llm.Message{Role: llm.Role(m.Role)}
	results := llm.Message{Role: llm.RoleTool}
	if m.Role == "system" || m.Role == "tool" {
		out.Role = llm.RoleUser
	}
	for _, p := range m.Parts {
		switch p.Type {
		case "text":
			if m.Role == "system" {
				out.Parts = append(out.Parts, llm.System{Kind: "import", Text: p.Text})
				continue
			}
			out.Parts = append(out.Parts, llm.Text{Text: p.Text})
		case "tool_call":
			out.Parts = append(out.Parts, llm.Call{ID: p.ID, Name: p.Name, Args: argsText(p.Args)})
		case "tool_result":
			res := llm.Result{CallID: p.ID, Name: p.Name, Status: llm.StatusSuccess, Content: p.Text}
			if p.IsError {
				res.Status = llm.StatusError
			}
			results.Parts = append(results.Parts, res)
		case "image":
			data, err := base64.StdEncoding.DecodeString(p.DataBase64)
			if err != nil {
				return nil, err
			}
			out.Parts = append(out.Parts, llm.Image{Media: p.MediaType, Data: data})
		case "reasoning":
			out.Parts = append(out.Parts, llm.Thinking{Text: p.Text})
		default:
			return nil, fmt.Errorf("unknown part %q", p.Type)
		}
	}
	if out.Role == llm.RoleAssistant {
		out.Stop = llm.StopEndTurn
		if out.CountCalls() > 0 {
			out.Stop = llm.StopToolUse
		}
	}
	var messages []llm.Message
	if len(results.Parts) > 0 {
		messages = append(messages, results)
	}
	if len(out.Parts) > 0 || len(results.Parts) == 0 {
		messages = append(messages, out)
	}
	return messages, nil
}

// argsText is the arguments as a model would have written them: a string of the
// case is the text itself, which may be no JSON.
func argsText(args json.RawMessage) string {
	var text string
	if json.Unmarshal(args, &text) == nil {
		return text
	}
	return string(args)
}

func TestImport(t *testing.T) {
	call := func(id string) part {
		return part{Type: "tool_call", ID: id, Name: "x", Args: json.RawMessage(`{"a":1.0}`)}
	}
	result := func(id, text string) part { return part{Type: "tool_result", ID: id, Text: text} }
	say := func(text string) part { return part{Type: "text", Text: text} }
	system, got, err := importHistory([]message{
		{"system", []part{say("rules")}},
		{"user", []part{say("go")}},
		{"assistant", []part{{Type: "reasoning", Text: "hm", Provider: "openai"}, call("a"), call("b"), call("c")}},
		{"tool", []part{result("b", "B")}},
		{"user", []part{result("a", "A"), result("ghost", "G"), say("and more")}},
		{"assistant", []part{call("a")}},
		{"assistant", []part{say("done")}},
	})
	if err != nil || system != "rules" {
		t.Fatal(system, err)
	}
	if err := machine.ValidateContext(got); err != nil {
		t.Error(err)
	}
	c := func(id string) llm.Call { return llm.Call{ID: id, Name: "x", Args: `{"a":1.0}`} }
	r := func(id, text string) llm.Result {
		return llm.Result{CallID: id, Name: "x", Status: llm.StatusSuccess, Content: text}
	}
	unknown := func(id string) llm.Result {
		return llm.Result{CallID: id, Name: "x", Status: llm.StatusUnknown, Summary: "outcome unknown: the transcript holds no result"}
	}
	want := []llm.Message{
		llm.UserText("go"),
		{Role: llm.RoleAssistant, Stop: llm.StopToolUse, Parts: []llm.Part{llm.Thinking{Text: "hm"}, c("a"), c("b"), c("c")}},
		llm.ToolResults(r("a", "A"), r("b", "B"), unknown("c")),
		llm.UserText("and more"),
		{Role: llm.RoleAssistant, Stop: llm.StopToolUse, Parts: []llm.Part{c("a")}},
		llm.ToolResults(unknown("a")),
		llm.AssistantText("done"),
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}
