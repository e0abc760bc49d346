// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
	"github.com/fiducial-dev/fiducial/provider/internal/prompt"
)

// A block is one encoded content block, without its cache mark.
type block struct {
	json     []byte // an object
	fit      bool   // may carry a mark: thinking may not, nor may an empty text
	thinking bool
	call     bool
}

// A message is one encoded message. Messages without blocks are not sent.
type message struct {
	role    string
	from    int  // index of the newest llm message in it
	results bool // begins with results of calls
	blocks  []block
}

// encode is the body of a request. Its bytes depend on the request alone, and
// what comes before the newest messages does not change as the conversation
// grows, marks aside (E-186): no clock, no map order, everything that the model or
// a tool wrote as it was written.
func (c *Client) encode(req *llm.Request) ([]byte, *naming, error) {
	for _, t := range req.Tools {
		if len(t.Schema) > 0 && !json.Valid(t.Schema) {
			return nil, nil, refused("the schema of tool " + t.Name + " is not JSON")
		}
	}
	names := newNaming(req.Tools)
	messages := encodeMessages(req.Messages, names)
	if len(messages) == 0 {
		return nil, nil, refused("the conversation holds nothing that can be sent: a message with text is needed")
	}
	system := !prompt.Blank(req.System)
	marks := c.marks(req, messages)

	var j wire.JSON
	j.Open('{')
	j.Field("model", c.model.Name)
	c.settings(&j, req, canThink(messages))
	if len(req.Tools)+len(c.config.server) > 0 {
		j.Key("tools")
		j.Open('[')
		for _, t := range c.config.server {
			j.Raw(t)
		}
		for i, t := range req.Tools {
			tool(&j, t, names, marks.tools && i == len(req.Tools)-1)
		}
		j.Close(']')
	}
	if system {
		j.Key("system")
		j.Open('[')
		j.Raw(marked(textBlock(req.System), marks.system))
		j.Close(']')
	}
	j.Key("messages")
	j.Open('[')
	for i, m := range messages {
		j.Open('{')
		j.Field("role", m.role)
		j.Key("content")
		j.Open('[')
		for k, b := range m.blocks {
			j.Raw(marked(b.json, marks.at(place{i, k})))
		}
		j.Close(']')
		j.Close('}')
	}
	j.Close(']')
	j.Close('}')
	return j.Bytes(), names, nil
}

func refused(message string) *llm.Error {
	return &llm.Error{Class: llm.ClassInvalidRequest, Op: op, Message: message}
}

func (c *Client) settings(j *wire.JSON, req *llm.Request, canThink bool) {
	s := req.Settings
	limit := s.MaxTokens
	if limit <= 0 {
		limit = c.config.maxTokens + max(s.ThinkingBudget, 0)
	}
	j.Key("max_tokens")
	j.Int(int64(limit))
	if !c.config.whole {
		j.Key("stream")
		j.Bool(true)
	}
	if canThink || s.ThinkingBudget < 0 {
		thinking(j, s.ThinkingBudget)
	}
	if s.Effort != "" {
		j.Key("output_config")
		j.Open('{')
		j.Field("effort", s.Effort)
		j.Close('}')
	}
	if c.config.sampling() && s.ThinkingBudget == 0 {
		sampling(j, s)
	}
	prompt.Stops(j, "stop_sequences", s.Stop)
	if s.Sequential && len(req.Tools) > 0 {
		j.Key("tool_choice")
		j.Raw([]byte(`{"type":"auto","disable_parallel_tool_use":true}`))
	}
}

// canThink reports whether a thinking budget may be given. With one, the API wants
// a turn that is in the midst of its calls to have begun with thinking of its own;
// one that another vendor's model began has none.
func canThink(messages []message) bool {
	first := len(messages)
	for i, m := range slices.Backward(messages) {
		if m.role == "assistant" {
			first = i
		} else if !m.results {
			break
		}
	}
	return first == len(messages) || messages[first].blocks[0].thinking || !messages[first].calls()
}

func (m message) calls() bool {
	return slices.ContainsFunc(m.blocks, func(b block) bool { return b.call })
}

func thinking(j *wire.JSON, budget int) {
	if budget == 0 {
		return
	}
	j.Key("thinking")
	j.Open('{')
	if budget < 0 {
		j.Field("type", "adaptive")
	} else {
		j.Field("type", "enabled")
		j.Key("budget_tokens")
		j.Int(int64(budget))
	}
	j.Close('}')
}

func sampling(j *wire.JSON, s llm.Settings) {
	if s.Temperature != nil {
		j.Key("temperature")
		j.Float(*s.Temperature)
	}
	if s.TopP != nil {
		j.Key("top_p")
		j.Float(*s.TopP)
	}
	if s.TopK != nil {
		j.Key("top_k")
		j.Int(int64(*s.TopK))
	}
}

func tool(j *wire.JSON, t llm.Tool, names *naming, mark bool) {
	var one wire.JSON
	one.Open('{')
	one.Field("name", names.Wire(t.Name))
	if t.Description != "" {
		one.Field("description", t.Description)
	}
	one.Key("input_schema")
	if len(t.Schema) == 0 || string(t.Schema) == "null" {
		one.Raw([]byte(`{"type":"object","properties":{}}`))
	} else {
		one.Raw([]byte(wire.Repair(string(wire.ObjectSchema(names.schema(t))))))
	}
	one.Close('}')
	j.Raw(marked(one.Bytes(), mark))
}

// encodeMessages writes each message as one of its own, so that what was sent
// never changes; only results that follow results share one, since the API wants
// all results of a batch in the message after the calls.
func encodeMessages(in []llm.Message, names *naming) []message {
	out := make([]message, 0, len(in))
	ids := wire.NewIDs(64)
	for i, m := range in {
		role := "user"
		if m.Role == llm.RoleAssistant {
			role = "assistant"
		}
		blocks := encodeParts(role, m.Parts, names, ids)
		if len(blocks) == 0 {
			continue
		}
		if n := len(out); m.Role == llm.RoleTool && i > 0 && in[i-1].Role == llm.RoleTool && n > 0 {
			out[n-1].blocks = append(out[n-1].blocks, blocks...)
			out[n-1].from = i
			continue
		}
		out = append(out, message{role: role, from: i, results: m.Role == llm.RoleTool, blocks: blocks})
	}
	return out
}

func encodeParts(role string, parts []llm.Part, names *naming, ids *wire.IDs) []block {
	out := make([]block, 0, len(parts))
	for i, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			if role == "assistant" && i == len(parts)-1 {
				// "Final assistant content cannot end with trailing whitespace": a paused
				// turn is sent again with its reply at the end.
				p.Text = strings.TrimRight(p.Text, " \t\r\n")
			}
			out = appendText(out, p)
		case llm.System:
			out = appendText(out, llm.Text{Text: p.Text})
		case llm.Image:
			if role == "assistant" { // the API takes pictures from users only
				out = append(out, block{json: textBlock("[a picture that the assistant made]"), fit: true})
				continue
			}
			out = append(out, block{json: imageBlock(p), fit: true})
		case llm.Thinking:
			if raw := thinkingBlock(p); raw != nil {
				out = append(out, block{json: raw, thinking: true})
			}
		case llm.Call:
			out = append(out, block{json: callBlock(p, names, ids), fit: true, call: true})
		case llm.Result:
			out = append(out, block{json: resultBlock(p, ids), fit: true})
		}
	}
	// "The final block in an assistant message cannot be `thinking`" is what the API
	// answers otherwise, for ever: thinking that led to nothing is not sent.
	for len(out) > 0 && out[len(out)-1].thinking {
		out = out[:len(out)-1]
	}
	return out
}

// appendText adds a text that is not empty, and a block of the vendor's own that
// is kept on an empty one.
func appendText(out []block, t llm.Text) []block {
	var kept textOpaque
	if t.Opaque.Vendor != Vendor || json.Unmarshal(t.Opaque.Data, &kept) != nil {
		kept = textOpaque{}
	}
	switch {
	case len(kept.Block) > 0:
		return append(out, block{json: kept.Block})
	case prompt.Blank(t.Text):
		return out
	}
	return append(out, block{json: textBlock(t.Text, kept.Citations...), fit: true})
}

func textBlock(text string, citations ...json.RawMessage) []byte {
	var j wire.JSON
	j.Open('{')
	j.Field("type", "text")
	j.Field("text", text)
	if len(citations) > 0 {
		j.Key("citations")
		j.Open('[')
		for _, c := range citations {
			j.Raw(c)
		}
		j.Close(']')
	}
	j.Close('}')
	return j.Bytes()
}

func imageBlock(img llm.Image) []byte {
	var j wire.JSON
	j.Open('{')
	j.Field("type", "image")
	j.Key("source")
	j.Open('{')
	j.Field("type", "base64")
	j.Field("media_type", img.Media)
	j.Field("data", base64.StdEncoding.EncodeToString(img.Data))
	j.Close('}')
	j.Close('}')
	return j.Bytes()
}

// thinkingBlock is the block as it came, nil when it was not this vendor's or
// carries nothing that lets the API accept it (E-223).
func thinkingBlock(t llm.Thinking) []byte {
	var kept thinkingOpaque
	if t.Opaque.Vendor != Vendor || json.Unmarshal(t.Opaque.Data, &kept) != nil {
		return nil
	}
	var j wire.JSON
	j.Open('{')
	switch {
	case kept.Signature != "":
		j.Field("type", "thinking")
		j.Field("thinking", t.Text)
		j.Field("signature", kept.Signature)
	case kept.Redacted != "":
		j.Field("type", "redacted_thinking")
		j.Field("data", kept.Redacted)
	default:
		return nil
	}
	j.Close('}')
	return j.Bytes()
}

func callBlock(c llm.Call, names *naming, ids *wire.IDs) []byte {
	var j wire.JSON
	j.Open('{')
	j.Field("type", "tool_use")
	j.Field("id", ids.Call(c.ID))
	j.Field("name", names.Wire(c.Name))
	j.Key("input")
	j.Raw([]byte(wire.Repair(names.input(c.Name, c.EchoArgs()))))
	j.Close('}')
	return j.Bytes()
}

func resultBlock(r llm.Result, ids *wire.IDs) []byte {
	var j wire.JSON
	j.Open('{')
	j.Field("type", "tool_result")
	j.Field("tool_use_id", ids.Result(r.CallID))
	body := r.Body()
	empty := prompt.Blank(body)
	switch {
	case r.IsError() && (empty || len(r.Images) > 0):
		// The API wants a text for an error, and no pictures.
		if empty {
			body = "status: " + string(r.Status)
		}
		if n := len(r.Images); n > 0 {
			body += fmt.Sprintf("\n[%d pictures left out]", n)
		}
		j.Field("content", body)
	case len(r.Images) > 0:
		j.Key("content")
		j.Open('[')
		if !empty {
			j.Raw(textBlock(body))
		}
		for _, img := range r.Images {
			j.Raw(imageBlock(img))
		}
		j.Close(']')
	case !empty:
		j.Field("content", body)
	}
	if r.IsError() {
		j.Key("is_error")
		j.Bool(true)
	}
	j.Close('}')
	return j.Bytes()
}
