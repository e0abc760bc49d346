// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
	"github.com/fiducial-dev/fiducial/provider/internal/prompt"
)

// maxCallID is the longest call id that OpenAI takes.
const maxCallID = 40

// extras are the vendor's own fields of a reply, as [llm.Opaque] data of the part
// that they came with (B-128).
type extras struct {
	Call     map[string]json.RawMessage `json:"call,omitempty"`     // beside id and function
	Function map[string]json.RawMessage `json:"function,omitempty"` // beside name and arguments
	Message  map[string]json.RawMessage `json:"message,omitempty"`  // beside content
	Details  json.RawMessage            `json:"reasoning_details,omitempty"`
}

// A chatBody writes the body of one request. Messages come last, so that two
// requests of a conversation share all bytes up to where the first one ended.
type chatBody struct {
	wire.JSON
	*setup
	names *wire.Names
	ids   *wire.IDs

	afterTool bool // the last message written is a tool message
	called    bool // an assistant message since the last user message has calls
}

func encodeChat(s *setup, req *llm.Request, names *wire.Names) []byte {
	b := &chatBody{setup: s, names: names, ids: wire.AnyIDs()}
	switch {
	case s.quirks.shortIDs:
		b.ids = wire.NewIDs(shortID)
	case s.quirks.plainIDs:
		b.ids = wire.NewIDs(maxCallID)
	}
	b.Open('{')
	b.Field("model", s.model)
	b.Key("stream")
	b.Bool(!s.whole)
	if !s.whole && !s.quirks.noUsage {
		b.Key("stream_options")
		b.Raw([]byte(`{"include_usage":true}`))
	}
	b.settings(req)
	b.tools(req)
	b.Key("messages")
	b.Open('[')
	if !prompt.Blank(req.System) {
		b.message("system", req.System)
	}
	prompt.Each(b, req.Messages)
	b.Close(']')
	b.Close('}')
	return b.Bytes()
}

func (b *chatBody) settings(req *llm.Request) {
	set, q := req.Settings, b.quirks
	if set.MaxTokens > 0 && !b.refuses(UnsetMaxTokens) {
		field := "max_completion_tokens"
		if q.legacyMax {
			field = "max_tokens"
		}
		b.Key(field)
		b.Int(int64(set.MaxTokens))
	}
	b.writeSampling(&b.JSON, set.Temperature, set.TopP)
	prompt.Stops(&b.JSON, "stop", set.Stop)
	b.thinking(set)
	if q.cacheKey && req.CacheKey != "" {
		b.Field("prompt_cache_key", req.CacheKey)
	}
}

func (b *chatBody) thinking(set llm.Settings) {
	switch b.quirks.effort {
	case effortField:
		if set.Effort != "" {
			b.Field("reasoning_effort", set.Effort)
		}
	case effortObject:
		if set.Effort == "" && set.ThinkingBudget <= 0 {
			return
		}
		b.Key("reasoning")
		b.Open('{')
		if set.Effort != "" {
			b.Field("effort", set.Effort)
		} else {
			b.Key("max_tokens")
			b.Int(int64(set.ThinkingBudget))
		}
		b.Close('}')
	case effortBudget:
		if set.ThinkingBudget == 0 {
			return
		}
		b.Key("enable_thinking")
		b.Bool(true)
		if set.ThinkingBudget > 0 {
			b.Key("thinking_budget")
			b.Int(int64(set.ThinkingBudget))
		}
	case effortNone:
	}
}

func (b *chatBody) tools(req *llm.Request) {
	if len(req.Tools)+len(b.server) == 0 { // an empty list is refused (B-127)
		return
	}
	if len(req.Tools) > 0 && req.Settings.Sequential && !b.quirks.noParallel {
		b.Key("parallel_tool_calls")
		b.Bool(false)
	}
	b.Key("tools")
	b.Open('[')
	for _, t := range b.server {
		b.Raw(t)
	}
	for _, t := range req.Tools {
		b.Open('{')
		b.Field("type", "function")
		b.Key("function")
		b.Open('{')
		schema := writeFunction(&b.JSON, t, b.names)
		if b.quirks.strict && strict(schema) {
			b.Key("strict")
			b.Bool(true)
		}
		b.Close('}')
		b.Close('}')
	}
	b.Close(']')
}

// message writes a message of one text.
func (b *chatBody) message(role, text string) {
	b.Open('{')
	b.Field("role", role)
	b.Field("content", text)
	b.Close('}')
	b.afterTool = false
}

// User writes a message: a string where there are no pictures, which all servers
// read, else parts.
func (b *chatBody) User(m llm.Message) {
	c := prompt.ContentOf(m, b.blind)
	if c.Empty() {
		return
	}
	b.bridge()
	b.called = false
	if c.Images == 0 {
		b.message("user", c.Text())
		return
	}
	b.Open('{')
	b.Field("role", "user")
	b.Key("content")
	b.Open('[')
	c.Each(b.text, b.image)
	b.Close(']')
	b.Close('}')
	b.afterTool = false
}

// Assistant writes a reply. One with neither text nor calls is left out (B-126).
func (b *chatBody) Assistant(m llm.Message) {
	text, calls := m.Text(), m.CountCalls()
	if text == "" && calls == 0 {
		return
	}
	b.called = b.called || calls > 0
	b.Open('{')
	b.Field("role", "assistant")
	b.Key("content")
	if text == "" {
		b.Raw([]byte("null")) // as the server itself writes it; some refuse it left out
	} else {
		b.String(text)
	}
	b.reasoningBack(m, calls > 0)
	if calls > 0 {
		b.Key("tool_calls")
		b.Open('[')
		for _, c := range m.Calls() {
			b.call(c)
		}
		b.Close(']')
	}
	for _, p := range m.Parts {
		if t, ok := p.(llm.Text); ok {
			b.extraFields(b.mine(t.Opaque).Message)
		}
	}
	b.Close('}')
	b.afterTool = false
}

// reasoningBack writes the model's own reasoning where its server wants it.
func (b *chatBody) reasoningBack(m llm.Message, calls bool) {
	field := b.quirks.reasoning
	if field == "" {
		return
	}
	var text strings.Builder
	var details json.RawMessage
	for _, p := range m.Parts {
		if t, ok := p.(llm.Thinking); ok && t.Opaque.Vendor == b.vendor {
			text.WriteString(t.Text)
			details = b.mine(t.Opaque).Details
		}
	}
	switch {
	case field == fieldDetails:
		if len(details) > 0 {
			b.Key(field)
			b.Raw(details)
		}
	case calls, b.called && text.Len() > 0:
		b.Field(field, text.String())
	}
}

func (b *chatBody) call(c llm.Call) {
	x := b.mine(c.Opaque)
	b.Open('{')
	b.Field("id", b.ids.Call(b.callID(c.ID)))
	b.Field("type", "function")
	b.Key("function")
	b.Open('{')
	b.Field("name", b.names.Wire(c.Name))
	b.Field("arguments", wire.Repair(c.EchoArgs()))
	b.extraFields(x.Function)
	b.Close('}')
	b.extraFields(x.Call)
	b.Close('}')
}

// extraFields writes a vendor's own fields in the order of their names.
func (b *chatBody) extraFields(fields map[string]json.RawMessage) {
	for _, k := range slices.Sorted(maps.Keys(fields)) {
		b.Key(k)
		b.Raw(fields[k])
	}
}

// mine is the data of the server that is asked, nothing when it is another's.
func (b *chatBody) mine(o llm.Opaque) extras {
	var x extras
	if o.Vendor == b.vendor && len(o.Data) > 0 && json.Unmarshal(o.Data, &x) != nil {
		return extras{}
	}
	return x
}

// Results writes one tool message for each result, then the images of all of them
// in one user message: tool messages take text only, and nothing may stand
// between them (E-232).
func (b *chatBody) Results(m llm.Message) {
	var seen []llm.Result // those with images
	for _, p := range m.Parts {
		r, ok := p.(llm.Result)
		if !ok {
			continue
		}
		b.Open('{')
		b.Field("role", "tool")
		b.Field("tool_call_id", b.ids.Result(b.callID(r.CallID)))
		b.Key("content")
		switch {
		case len(r.Images) == 0:
			b.String(r.Body())
		case b.blind:
			b.String(lines(r.Body(), prompt.LeftOut(len(r.Images))))
		default:
			seen = append(seen, r)
			b.String(lines(r.Body(), fmt.Sprintf("(images that follow below: %d)", len(r.Images))))
		}
		b.Close('}')
		b.afterTool = true
	}
	if len(seen) == 0 {
		return
	}
	b.bridge()
	b.Open('{')
	b.Field("role", "user")
	b.Key("content")
	b.Open('[')
	for _, r := range seen {
		b.text(fmt.Sprintf("Images from the result of %s (%s):", r.Name, b.ids.Result(b.callID(r.CallID))))
		for _, img := range r.Images {
			b.image(img)
		}
	}
	b.Close(']')
	b.Close('}')
	b.afterTool = false
}

// bridge writes the assistant message without which some servers take no user
// message after a tool message.
func (b *chatBody) bridge() {
	if b.afterTool && b.quirks.bridge {
		b.message("assistant", "OK.")
	}
}

func (b *chatBody) text(text string) {
	b.Open('{')
	b.Field("type", "text")
	b.Field("text", text)
	b.Close('}')
}

func (b *chatBody) image(img llm.Image) {
	b.Open('{')
	b.Field("type", "image_url")
	b.Key("image_url")
	b.Open('{')
	b.Field("url", dataURL(img))
	b.Close('}')
	b.Close('}')
}

// shortID is the length of Mistral's call ids.
const shortID = 9

// callID gives an id the form that the server insists on.
func (b *chatBody) callID(id string) string {
	if !b.quirks.shortIDs || len(id) == shortID && !strings.ContainsAny(id, "_-") {
		return id // other characters are the business of wire.IDs
	}
	sum := sha256.Sum256([]byte(id))
	return hex.EncodeToString(sum[:])[:shortID]
}
