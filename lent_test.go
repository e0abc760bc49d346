// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
)

func filled() ([]llm.Tool, []llm.Message) {
	opaque := func() llm.Opaque { return llm.Opaque{Vendor: "v", Data: json.RawMessage(`"sig"`)} }
	note := func() llm.System { return llm.System{Kind: "k", Text: "t", Data: json.RawMessage(`{}`)} }
	image := func() llm.Image { return llm.Image{Media: "image/png", Data: []byte("png")} }
	return []llm.Tool{{Name: "look", Description: "Looks.", Schema: json.RawMessage(`{"type":"object"}`)}}, []llm.Message{
		{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: "go", Opaque: opaque()}, image(), note()}},
		{Role: llm.RoleAssistant, Stop: llm.StopToolUse, Parts: []llm.Part{
			llm.Thinking{Text: "hm", Opaque: opaque()},
			llm.Call{ID: "c", Name: "look", Args: "{}", Opaque: opaque()},
		}},
		{Role: llm.RoleTool, Parts: []llm.Part{llm.Result{
			CallID: "c", Name: "look", Status: llm.StatusSuccess, Summary: "s", Content: "c", Images: []llm.Image{image()}, Notes: []llm.System{note()},
		}}},
	}
}

// edit changes a part in place, as somebody would who has its message in hand.
func edit[T llm.Part](m []llm.Message, message, part int, f func(*T)) {
	p, ok := m[message].Parts[part].(T)
	if !ok {
		panic("another part")
	}
	f(&p)
	m[message].Parts[part] = p
}

// TestLentSeesEveryWrite writes to each thing in a request that can be written to. It is
// seen, and put back, and what the engine has stays as it was.
func TestLentSeesEveryWrite(t *testing.T) {
	t.Parallel()
	for name, write := range map[string]func([]llm.Tool, []llm.Message){
		"tool":            func(tools []llm.Tool, _ []llm.Message) { tools[0].Name = "x" },
		"description":     func(tools []llm.Tool, _ []llm.Message) { tools[0].Description = "x" },
		"schema":          func(tools []llm.Tool, _ []llm.Message) { tools[0].Schema[1] = ' ' },
		"message":         func(_ []llm.Tool, m []llm.Message) { m[0] = llm.UserText("x") },
		"role":            func(_ []llm.Tool, m []llm.Message) { m[0].Role = llm.RoleTool },
		"stop":            func(_ []llm.Tool, m []llm.Message) { m[1].Stop = llm.StopEndTurn },
		"fewer parts":     func(_ []llm.Tool, m []llm.Message) { m[0].Parts = m[0].Parts[:2] },
		"another part":    func(_ []llm.Tool, m []llm.Message) { m[0].Parts[0] = llm.System{Text: "go"} },
		"no part":         func(_ []llm.Tool, m []llm.Message) { m[0].Parts[0] = nil },
		"text":            func(_ []llm.Tool, m []llm.Message) { edit(m, 0, 0, func(p *llm.Text) { p.Text = "x" }) },
		"vendor":          func(_ []llm.Tool, m []llm.Message) { edit(m, 0, 0, func(p *llm.Text) { p.Opaque.Vendor = "x" }) },
		"signature":       func(_ []llm.Tool, m []llm.Message) { edit(m, 0, 0, func(p *llm.Text) { p.Opaque.Data[1] = 'x' }) },
		"media":           func(_ []llm.Tool, m []llm.Message) { edit(m, 0, 1, func(p *llm.Image) { p.Media = "x" }) },
		"pixels":          func(_ []llm.Tool, m []llm.Message) { edit(m, 0, 1, func(p *llm.Image) { p.Data[0] = 'x' }) },
		"note kind":       func(_ []llm.Tool, m []llm.Message) { edit(m, 0, 2, func(p *llm.System) { p.Kind = "x" }) },
		"note text":       func(_ []llm.Tool, m []llm.Message) { edit(m, 0, 2, func(p *llm.System) { p.Text = "x" }) },
		"note data":       func(_ []llm.Tool, m []llm.Message) { edit(m, 0, 2, func(p *llm.System) { p.Data[0] = 'x' }) },
		"thinking":        func(_ []llm.Tool, m []llm.Message) { edit(m, 1, 0, func(p *llm.Thinking) { p.Text = "x" }) },
		"thinking data":   func(_ []llm.Tool, m []llm.Message) { edit(m, 1, 0, func(p *llm.Thinking) { p.Opaque.Data[1] = 'x' }) },
		"call id":         func(_ []llm.Tool, m []llm.Message) { edit(m, 1, 1, func(p *llm.Call) { p.ID = "x" }) },
		"call name":       func(_ []llm.Tool, m []llm.Message) { edit(m, 1, 1, func(p *llm.Call) { p.Name = "x" }) },
		"arguments":       func(_ []llm.Tool, m []llm.Message) { edit(m, 1, 1, func(p *llm.Call) { p.Args = "x" }) },
		"call data":       func(_ []llm.Tool, m []llm.Message) { edit(m, 1, 1, func(p *llm.Call) { p.Opaque.Data[1] = 'x' }) },
		"answered call":   func(_ []llm.Tool, m []llm.Message) { edit(m, 2, 0, func(p *llm.Result) { p.CallID = "x" }) },
		"answered name":   func(_ []llm.Tool, m []llm.Message) { edit(m, 2, 0, func(p *llm.Result) { p.Name = "x" }) },
		"status":          func(_ []llm.Tool, m []llm.Message) { edit(m, 2, 0, func(p *llm.Result) { p.Status = "x" }) },
		"summary":         func(_ []llm.Tool, m []llm.Message) { edit(m, 2, 0, func(p *llm.Result) { p.Summary = "x" }) },
		"content":         func(_ []llm.Tool, m []llm.Message) { edit(m, 2, 0, func(p *llm.Result) { p.Content = "x" }) },
		"result's pixels": func(_ []llm.Tool, m []llm.Message) { edit(m, 2, 0, func(p *llm.Result) { p.Images[0].Data[0] = 'x' }) },
		"result's image":  func(_ []llm.Tool, m []llm.Message) { edit(m, 2, 0, func(p *llm.Result) { p.Images = nil }) },
		"result's note":   func(_ []llm.Tool, m []llm.Message) { edit(m, 2, 0, func(p *llm.Result) { p.Notes[0].Data[0] = 'x' }) },
	} {
		tools, messages := filled()
		var l lent
		var lt lentTools
		lentMessages := func() []llm.Message {
			return l.of(messages, func(i int) llm.Message { return messages[i].Clone() })
		}
		write(lt.of(tools), lentMessages())
		toolsSame := sameTools(lt.of(tools), tools)
		l.mend()
		lt.mend(tools)
		if toolsSame && l.found() < 0 {
			t.Errorf("%s: not seen", name)
		}
		wantTools, want := filled()
		if !reflect.DeepEqual(tools, wantTools) || !reflect.DeepEqual(messages, want) {
			t.Errorf("%s: it has changed what the engine has", name)
		}
		if !reflect.DeepEqual(lt.of(tools), wantTools) || !reflect.DeepEqual(lentMessages(), want) {
			t.Errorf("%s: it was not put back", name)
		}
		if l.mend(); l.found() >= 0 {
			t.Errorf("%s: seen again", name)
		}
	}
}

// What is cut off, or replaced at the end, is lent anew, and those who have it keep it.
func TestLentFollowsTheEnd(t *testing.T) {
	t.Parallel()
	var l lent
	of := func(m []llm.Message) []llm.Message {
		return l.of(m, func(i int) llm.Message { return m[i].Clone() })
	}
	messages := []llm.Message{llm.UserText("a"), llm.UserText("b"), llm.UserText("c")}
	old := of(messages)
	other := []llm.Message{messages[0], llm.UserText("d"), llm.UserText("e"), llm.UserText("f")}
	if got := of(other); !reflect.DeepEqual(got, other) {
		t.Errorf("got %v", got)
	}
	if got := of(other[:1]); !reflect.DeepEqual(got, other[:1]) {
		t.Errorf("got %v", got)
	}
	if !reflect.DeepEqual(old, messages) {
		t.Errorf("what was lent before is %v", old)
	}
}

// What a hook left as it was is sent as the engine has it; the rest is a copy.
func TestKept(t *testing.T) {
	t.Parallel()
	truth := []llm.Message{llm.UserText("a"), llm.UserText("b"), llm.UserText("c"), llm.UserText("d")}
	given := llm.CloneMessages(truth)
	x := llm.UserText("x")
	for name, messages := range map[string][]llm.Message{
		"all":       given,
		"front":     {x, given[0], given[1], given[2], given[3]},
		"end":       {given[0], given[1], given[2], given[3], x},
		"middle":    {given[0], x, given[3]},
		"less":      given[:2],
		"late":      given[2:],
		"twice":     {given[0], given[0], given[3], given[3]},
		"backwards": {given[3], given[2], given[1], given[0]},
		"none":      nil,
	} {
		got := kept(messages, given, truth)
		if !reflect.DeepEqual(got, messages) {
			t.Errorf("%s: got %v, want %v", name, got, messages)
		}
		for _, m := range got {
			for _, theirs := range append(slices.Clone(messages), given...) {
				if &m.Parts[0] == &theirs.Parts[0] {
					t.Errorf("%s: %v is shared", name, m)
				}
			}
		}
	}
	if got := kept([]llm.Message{x, given[3]}, given, truth); &got[1].Parts[0] != &truth[3].Parts[0] {
		t.Error("what was left at the end is a copy")
	}
}

// BenchmarkMend is what an engine with interceptors pays before each request for a
// history of 1000 messages and 400 KB.
func BenchmarkMend(b *testing.B) {
	var messages []llm.Message
	for range 500 {
		messages = append(messages, llm.UserText(strings.Repeat("x", 400)), llm.AssistantText(strings.Repeat("y", 400)))
	}
	var l lent
	l.of(messages, func(i int) llm.Message { return messages[i].Clone() })
	b.ReportAllocs()
	for b.Loop() {
		if l.mend(); l.found() >= 0 {
			b.Fatal("changed")
		}
	}
}
