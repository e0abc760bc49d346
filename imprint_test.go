// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"encoding/json"
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

// TestImprintSeesEveryWrite writes to each thing in a request that can be written to.
func TestImprintSeesEveryWrite(t *testing.T) {
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
		p := imprintOf(tools, messages)
		if !p.matches(tools, messages) {
			t.Fatal("it differs from itself")
		}
		write(tools, messages)
		if p.matches(tools, messages) {
			t.Errorf("%s: not seen", name)
		}
	}
}

// BenchmarkImprint is what an engine with interceptors pays before each request for a
// committed prefix of 1000 messages and 400 KB.
func BenchmarkImprint(b *testing.B) {
	var messages []llm.Message
	for range 500 {
		messages = append(messages, llm.UserText(strings.Repeat("x", 400)), llm.AssistantText(strings.Repeat("y", 400)))
	}
	p := imprintOf(nil, messages)
	b.ReportAllocs()
	for b.Loop() {
		if !p.matches(nil, messages) {
			b.Fatal("changed")
		}
	}
}
