// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
	"github.com/fiducial-dev/fiducial/provider/internal/prompt"
)

// partData is what a part needs to go back as it came: the [llm.Opaque] data of
// this package.
type partData struct {
	Signature string `json:"thoughtSignature,omitempty"`
	ID        string `json:"id,omitempty"` // of a call, where the server gave one

	// Part is the JSON of all of a part in which a server tool tells what it did.
	Part string `json:"part,omitempty"`
}

// unsigned stands for the signature of a call that another model made, as
// https://ai.google.dev/gemini-api/docs/thought-signatures advises.
const unsigned = "skip_thought_signature_validator"

// A body writes the body of one request. Contents come last, so that two requests
// of a conversation share all bytes up to where the first one ended.
type body struct {
	wire.JSON
	*setup
	names *wire.Names
	calls map[string]llm.Call // the newest call of an id
}

func encode(s *setup, req *llm.Request, names *wire.Names) []byte {
	b := &body{setup: s, names: names, calls: map[string]llm.Call{}}
	b.Open('{')
	if !prompt.Blank(req.System) {
		b.Key("systemInstruction")
		b.Open('{')
		b.Key("parts")
		b.Open('[')
		b.text(req.System)
		b.Close(']')
		b.Close('}')
	}
	b.tools(req.Tools)
	b.generation(req.Settings)
	prompt.Write(&b.JSON, "contents", b, req.Messages)
	b.Close('}')
	return b.Bytes()
}

func (b *body) tools(tools []llm.Tool) {
	if len(tools)+len(b.server) == 0 {
		return
	}
	b.Key("tools")
	b.Open('[')
	for _, t := range b.server {
		b.Raw(t)
	}
	if len(tools) > 0 {
		b.functions(tools)
	}
	b.Close(']')
	if len(tools) > 0 {
		b.Key("toolConfig")
		b.Raw([]byte(`{"functionCallingConfig":{"mode":"AUTO"}}`))
	}
}

func (b *body) functions(tools []llm.Tool) {
	b.Open('{')
	b.Key("functionDeclarations")
	b.Open('[')
	for _, t := range tools {
		b.Open('{')
		b.Field("name", b.names.Wire(t.Name))
		b.Field("description", t.Description)
		if schema := reduce(t.Schema); schema != nil {
			b.Key("parameters")
			b.Raw(schema)
		}
		b.Close('}')
	}
	b.Close(']')
	b.Close('}')
}

func (b *body) generation(set llm.Settings) {
	var j wire.JSON
	j.Open('{')
	if set.MaxTokens > 0 {
		j.Key("maxOutputTokens")
		j.Int(int64(set.MaxTokens))
	}
	if set.Temperature != nil {
		j.Key("temperature")
		j.Float(*set.Temperature)
	}
	if set.TopP != nil {
		j.Key("topP")
		j.Float(*set.TopP)
	}
	if set.TopK != nil {
		j.Key("topK")
		j.Int(int64(*set.TopK))
	}
	prompt.Stops(&j, "stopSequences", set.Stop)
	b.thinking(&j, set)
	j.Close('}')
	if j.Len() > len("{}") {
		b.Key("generationConfig")
		b.Raw(j.Bytes())
	}
}

func (b *body) thinking(j *wire.JSON, set llm.Settings) {
	level := set.Effort != "" && b.third()
	if !level && set.ThinkingBudget == 0 && !b.thoughts {
		return
	}
	j.Key("thinkingConfig")
	j.Open('{')
	switch {
	case level: // together with a budget it is refused
		j.Field("thinkingLevel", set.Effort)
	case set.ThinkingBudget != 0:
		j.Key("thinkingBudget")
		j.Int(int64(max(set.ThinkingBudget, -1)))
	}
	if b.thoughts {
		j.Key("includeThoughts")
		j.Bool(true)
	}
	j.Close('}')
}

// content begins a content of one role.
func (b *body) content(role string) {
	b.Open('{')
	b.Field("role", role)
	b.Key("parts")
	b.Open('[')
}

func (b *body) closeContent() {
	b.Close(']')
	b.Close('}')
}

func (b *body) text(text string) {
	b.Open('{')
	b.Field("text", text)
	b.Close('}')
}

func (b *body) image(img llm.Image) {
	b.Open('{')
	b.Key("inlineData")
	b.Open('{')
	b.Field("mimeType", img.Media)
	b.Field("data", base64.StdEncoding.EncodeToString(img.Data))
	b.Close('}')
	b.Close('}')
}

// User writes a message. One without parts would be refused.
func (b *body) User(m llm.Message) {
	c := prompt.ContentOf(m, b.blind)
	if c.Empty() {
		return
	}
	b.content("user")
	c.Each(b.text, b.image)
	b.closeContent()
}

// Assistant writes a reply, each signature on the part that it came with (E-258).
// Thoughts go back only when they are signed; nothing is left of a reply of none
// but blank parts.
func (b *body) Assistant(m llm.Message) {
	parts := slices.DeleteFunc(slices.Clone(m.Parts), func(p llm.Part) bool {
		switch p := p.(type) {
		case llm.Text:
			d := mine(p.Opaque)
			return prompt.Blank(p.Text) && d.Signature == "" && d.Part == ""
		case llm.Thinking:
			return mine(p.Opaque).Signature == ""
		case llm.Call:
			return false
		case llm.Image, llm.System, llm.Result:
		}
		return true
	})
	if len(parts) == 0 {
		return
	}
	b.content("model")
	first := true
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			if d := mine(p.Opaque); d.Part != "" {
				b.Raw([]byte(d.Part))
			} else {
				b.signed(p.Text, false, d.Signature)
			}
		case llm.Thinking:
			b.signed(p.Text, true, mine(p.Opaque).Signature)
		case llm.Call:
			b.call(p, first)
			first = false
		case llm.Image, llm.System, llm.Result:
		}
	}
	b.closeContent()
}

func (b *body) signed(text string, thought bool, signature string) {
	b.Open('{')
	b.Field("text", text)
	if thought {
		b.Key("thought")
		b.Bool(true)
	}
	if signature != "" {
		b.Field("thoughtSignature", signature)
	}
	b.Close('}')
}

// call writes a call. The first one of a reply must be signed for newer models;
// one of another vendor never is.
func (b *body) call(c llm.Call, first bool) {
	b.calls[c.ID] = c
	d := mine(c.Opaque)
	if d.Signature == "" && first && b.third() {
		d.Signature = unsigned
	}
	b.Open('{')
	b.Key("functionCall")
	b.Open('{')
	if d.ID != "" {
		b.Field("id", d.ID)
	}
	b.Field("name", b.names.Wire(c.Name))
	b.Key("args")
	b.Raw([]byte(wire.Repair(c.EchoArgs())))
	b.Close('}')
	if d.Signature != "" {
		b.Field("thoughtSignature", d.Signature)
	}
	b.Close('}')
}

// Results answers a batch in one content, one part for each call: the server
// counts them.
func (b *body) Results(m llm.Message) {
	var seen []llm.Result // those whose images do not fit into their part
	b.content("user")
	for _, p := range m.Parts {
		r, ok := p.(llm.Result)
		if !ok {
			continue
		}
		inside := len(r.Images) > 0 && !b.blind && b.third()
		if len(r.Images) > 0 && !b.blind && !inside {
			seen = append(seen, r)
		}
		b.result(r, inside)
	}
	for _, r := range seen {
		b.text(fmt.Sprintf("Images from the result of %s:", b.calledName(r)))
		for _, img := range r.Images {
			b.image(img)
		}
	}
	b.closeContent()
}

func (b *body) result(r llm.Result, images bool) {
	text := r.Body()
	if len(r.Images) > 0 && b.blind {
		text += "\n" + prompt.LeftOut(len(r.Images))
	}
	key := "output"
	if r.IsError() {
		key = "error"
	}
	b.Open('{')
	b.Key("functionResponse")
	b.Open('{')
	if id := mine(b.calls[r.CallID].Opaque).ID; id != "" {
		b.Field("id", id)
	}
	b.Field("name", b.calledName(r))
	b.Key("response")
	b.Open('{')
	b.Field(key, text)
	b.Close('}')
	if images {
		b.Key("parts")
		b.Open('[')
		for _, img := range r.Images {
			b.image(img)
		}
		b.Close(']')
	}
	b.Close('}')
	b.Close('}')
}

// calledName is the wire name of the function that was called (E-253).
func (b *body) calledName(r llm.Result) string {
	if c, ok := b.calls[r.CallID]; ok {
		return b.names.Wire(c.Name)
	}
	return b.names.Wire(r.Name)
}

// mine is the data of a part of Gemini's, nothing when it is another's.
func mine(o llm.Opaque) partData {
	var d partData
	if o.Vendor != Vendor || len(o.Data) == 0 || json.Unmarshal(o.Data, &d) != nil {
		return partData{}
	}
	return d
}
