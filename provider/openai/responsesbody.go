// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"encoding/json"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
	"github.com/fiducial-dev/fiducial/provider/internal/prompt"
)

// An itemData is what a part needs to go back as the item that it was: the
// [llm.Opaque] data of this format.
type itemData struct {
	Type      string          `json:"type"`                        // reasoning, message or item
	ID        string          `json:"id,omitempty"`                // known to the server only if it stores
	Phase     string          `json:"phase,omitempty"`             // of a message
	Summary   json.RawMessage `json:"summary,omitempty"`           // of reasoning, an array
	Content   json.RawMessage `json:"content,omitempty"`           // of reasoning, an array
	Encrypted string          `json:"encrypted_content,omitempty"` // of reasoning
	Item      json.RawMessage `json:"item,omitempty"`              // what a server tool did, as it came
}

// A responsesBody writes the body of one request. The input comes last, so that
// two requests of a conversation share all bytes up to where the first one ended.
type responsesBody struct {
	wire.JSON
	*setup
	names *wire.Names
	ids   *wire.IDs
}

func encodeResponses(s *setup, req *llm.Request, names *wire.Names) []byte {
	b := &responsesBody{setup: s, names: names, ids: wire.NewIDs(0)}
	b.Open('{')
	b.Field("model", s.model)
	b.Key("stream")
	b.Bool(!s.whole)
	b.Key("store")
	b.Bool(s.store)
	b.settings(req)
	b.tools(req)
	if !prompt.Blank(req.System) {
		b.Field("instructions", req.System)
	}
	prompt.Write(&b.JSON, "input", b, req.Messages)
	b.Close('}')
	return b.Bytes()
}

func (b *responsesBody) settings(req *llm.Request) {
	set := req.Settings
	if b.thinks() {
		b.Key("include")
		b.Raw([]byte(`["reasoning.encrypted_content"]`))
		if set.Effort != "" {
			b.Key("reasoning")
			b.Open('{')
			b.Field("effort", set.Effort)
			b.Field("summary", "auto")
			b.Close('}')
		}
	}
	if set.MaxTokens > 0 && !b.refuses(UnsetMaxTokens) {
		b.Key("max_output_tokens")
		b.Int(int64(set.MaxTokens))
	}
	b.writeSampling(&b.JSON, set.Temperature, set.TopP)
	if req.CacheKey != "" {
		b.Field("prompt_cache_key", req.CacheKey)
	}
}

func (b *responsesBody) tools(req *llm.Request) {
	if len(req.Tools)+len(b.server) == 0 {
		return
	}
	b.Field("tool_choice", "auto")
	b.Key("parallel_tool_calls")
	b.Bool(!req.Settings.Sequential)
	b.Key("tools")
	b.Open('[')
	for _, t := range b.server {
		b.Raw(t)
	}
	for _, t := range req.Tools {
		b.Open('{')
		b.Field("type", "function")
		schema := writeFunction(&b.JSON, t, b.names)
		b.Key("strict") // true where it is left out
		b.Bool(b.quirks.strict && strict(schema))
		b.Close('}')
	}
	b.Close(']')
}

// User writes a message.
func (b *responsesBody) User(m llm.Message) {
	c := prompt.ContentOf(m, b.blind)
	if c.Empty() {
		return
	}
	b.Open('{')
	b.Field("type", "message")
	b.Field("role", "user")
	b.Key("content")
	b.Open('[')
	c.Each(func(t string) { b.text("input_text", t) }, b.image)
	b.Close(']')
	b.Close('}')
}

// Assistant writes the items of a reply. Reasoning stands directly before the item
// that it led to; where nothing follows, the server would refuse it.
func (b *responsesBody) Assistant(m llm.Message) {
	var waiting []itemData
	flush := func() {
		for _, d := range waiting {
			b.reasoningItem(d)
		}
		waiting = nil
	}
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.Thinking:
			if d, ok := b.mine(p.Opaque); ok && d.Type == "reasoning" && b.usable(d) {
				waiting = append(waiting, d)
			}
		case llm.Text:
			switch d, ok := b.mine(p.Opaque); {
			case ok && len(d.Item) > 0:
				flush()
				b.Raw(d.Item)
			case p.Text != "":
				flush()
				b.messageItem(p)
			}
		case llm.Call:
			flush()
			b.Open('{')
			b.Field("type", "function_call")
			b.Field("call_id", b.ids.Call(p.ID))
			b.Field("name", b.names.Wire(p.Name))
			b.Field("arguments", wire.Repair(p.EchoArgs()))
			b.Close('}')
		case llm.Image, llm.System, llm.Result:
		}
	}
}

// usable reports whether the server can read reasoning that it did not keep.
func (b *responsesBody) usable(d itemData) bool {
	return d.Encrypted != "" || len(d.Content) > 0 || b.store && d.ID != ""
}

func (b *responsesBody) reasoningItem(d itemData) {
	b.Open('{')
	b.Field("type", "reasoning")
	if b.store && d.ID != "" {
		b.Field("id", d.ID)
	}
	b.Key("summary")
	if len(d.Summary) == 0 || string(d.Summary) == "null" {
		d.Summary = json.RawMessage("[]") // E-243
	}
	b.Raw(d.Summary)
	if len(d.Content) > 0 {
		b.Key("content")
		b.Raw(d.Content)
	}
	if d.Encrypted != "" {
		b.Field("encrypted_content", d.Encrypted)
	}
	b.Close('}')
}

func (b *responsesBody) messageItem(t llm.Text) {
	b.Open('{')
	b.Field("type", "message")
	b.Field("role", "assistant")
	if d, ok := b.mine(t.Opaque); ok && d.Phase != "" {
		b.Field("phase", d.Phase)
	}
	b.Key("content")
	b.Open('[')
	b.text("output_text", t.Text)
	b.Close(']')
	b.Close('}')
}

func (b *responsesBody) Results(m llm.Message) {
	for _, p := range m.Parts {
		r, ok := p.(llm.Result)
		if !ok {
			continue
		}
		b.Open('{')
		b.Field("type", "function_call_output")
		b.Field("call_id", b.ids.Result(r.CallID))
		b.Key("output")
		switch {
		case len(r.Images) == 0:
			b.String(r.Body())
		case b.blind:
			b.String(lines(r.Body(), prompt.LeftOut(len(r.Images))))
		default:
			b.resultParts(r)
		}
		b.Close('}')
	}
}

func (b *responsesBody) resultParts(r llm.Result) {
	b.Open('[')
	if body := r.Body(); body != "" {
		b.text("input_text", body)
	}
	for _, img := range r.Images {
		b.image(img)
	}
	b.Close(']')
}

func (b *responsesBody) text(kind, text string) {
	b.Open('{')
	b.Field("type", kind)
	b.Field("text", text)
	b.Close('}')
}

func (b *responsesBody) image(img llm.Image) {
	b.Open('{')
	b.Field("type", "input_image")
	b.Field("image_url", dataURL(img))
	b.Close('}')
}

// mine is the data of the server that is asked, nothing when it is another's.
func (b *responsesBody) mine(o llm.Opaque) (itemData, bool) {
	var d itemData
	if o.Vendor != b.vendor || len(o.Data) == 0 || json.Unmarshal(o.Data, &d) != nil {
		return itemData{}, false
	}
	return d, true
}
