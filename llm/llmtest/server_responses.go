// SPDX-License-Identifier: Apache-2.0

package llmtest

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/fiducial-dev/fiducial/llm"
)

// responsesDialect is https://platform.openai.com/docs/api-reference/responses,
// used without the server's own storage.
type responsesDialect struct{}

type responsesItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	ID        string          `json:"id"`
	Content   json.RawMessage `json:"content"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
	Encrypted string          `json:"encrypted_content"`
	Summary   []struct {
		Text string `json:"text"`
	} `json:"summary"`
}

type responsesReader struct {
	prompt
	names     map[string]string // of calls
	answered  map[string]bool
	called    ids
	reasoning string // id of a reasoning item whose successor has not come
}

func (responsesDialect) read(_ *Server, _ *http.Request, body []byte) (*prompt, *refusal) {
	var in struct {
		Model        string            `json:"model"`
		Stream       bool              `json:"stream"`
		Store        *bool             `json:"store"`
		Instructions string            `json:"instructions"`
		Input        json.RawMessage   `json:"input"`
		Tools        []json.RawMessage `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, refuse("%v", err)
	}
	if !in.Stream {
		return nil, refuse("this server only streams")
	}
	p := &responsesReader{names: map[string]string{}, answered: map[string]bool{}}
	p.model, p.req.System, p.req.CacheAnchor = in.Model, in.Instructions, -1
	for _, one := range in.Tools {
		if no := functionTool(&p.prompt, one, one); no != nil {
			return nil, no
		}
	}
	if in.Instructions != "" {
		p.blocks = append(p.blocks, promptBlock{data: []byte(in.Instructions)})
	}
	var items []json.RawMessage
	if err := json.Unmarshal(in.Input, &items); err != nil {
		return nil, refuse("Invalid 'input': a list of items was expected")
	}
	stored := in.Store == nil || *in.Store
	for i, one := range items {
		var it responsesItem
		if err := json.Unmarshal(one, &it); err != nil {
			return nil, refuse("Invalid 'input[%d]': %v", i, err)
		}
		if no := p.item(i, it, stored); no != nil {
			return nil, no
		}
		p.blocks = append(p.blocks, promptBlock{data: one})
	}
	if p.reasoning != "" {
		return nil, refuse("Item '%s' of type 'reasoning' was provided without its required following item.", p.reasoning)
	}
	if missing := p.called.missing(p.answered); len(missing) > 0 {
		return nil, refuse("No tool output found for function call %s.", missing[0])
	}
	return &p.prompt, nil
}

func (p *responsesReader) item(i int, it responsesItem, stored bool) *refusal {
	if it.Type == "reasoning" {
		if it.Encrypted == "" && !stored {
			return refuse("Item with id '%s' not found. Items are not persisted when `store` is set to false.", it.ID)
		}
		var summary strings.Builder
		for _, s := range it.Summary {
			summary.WriteString(s.Text)
		}
		text := summary.String()
		if it.Encrypted != signatureOf(text) {
			return refuse("The encrypted content for item %s could not be verified.", it.ID)
		}
		p.reasoning = it.ID
		p.assistant(llm.Thinking{Text: text})
		return nil
	}
	p.reasoning = ""
	switch it.Type {
	case "message", "":
		return p.message(i, it)
	case "function_call":
		if it.CallID == "" || !isObject([]byte(it.Arguments)) {
			return refuse("Invalid 'input[%d]': a function call needs a call_id and arguments that are a JSON object", i)
		}
		if !toolName.MatchString(it.Name) {
			return refuse("Invalid 'input[%d].name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", i)
		}
		p.names[it.CallID] = it.Name
		p.called = append(p.called, it.CallID)
		p.assistant(llm.Call{ID: it.CallID, Name: it.Name, Args: it.Arguments})
	case "function_call_output":
		name, ok := p.names[it.CallID]
		if !ok || p.answered[it.CallID] {
			return refuse("No tool call found for function call output with call_id %s.", it.CallID)
		}
		p.answered[it.CallID] = true
		parts, no := chatParts(i, it.Output)
		if no != nil {
			return no
		}
		r := llm.Result{CallID: it.CallID, Name: name, Status: llm.StatusSuccess}
		for _, part := range parts {
			switch part := part.(type) {
			case llm.Text:
				r.Summary += part.Text
			case llm.Image:
				r.Images = append(r.Images, part)
			case llm.Thinking, llm.System, llm.Call, llm.Result:
			}
		}
		addResult(&p.req, r)
	default:
		return refuse("Invalid value: '%s'. Supported values are message, reasoning, function_call and function_call_output.", it.Type)
	}
	return nil
}

func (p *responsesReader) message(i int, it responsesItem) *refusal {
	parts, no := chatParts(i, it.Content)
	if no != nil {
		return no
	}
	switch it.Role {
	case "system", "developer", "user":
		p.req.Messages = append(p.req.Messages, llm.Message{Role: llm.RoleUser, Parts: parts})
	case "assistant":
		p.assistant(parts...)
	default:
		return refuse("Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user'.", it.Role)
	}
	return nil
}

// assistant adds parts to the reply at the end, or begins one.
func (p *responsesReader) assistant(parts ...llm.Part) { addReply(&p.req, parts...) }

func addReply(req *llm.Request, parts ...llm.Part) {
	if n := len(req.Messages); n > 0 && req.Messages[n-1].Role == llm.RoleAssistant {
		req.Messages[n-1].Parts = append(req.Messages[n-1].Parts, parts...)
		return
	}
	req.Messages = append(req.Messages, llm.Message{Role: llm.RoleAssistant, Parts: parts})
}

func (responsesDialect) names(class llm.Class) (int, string) { return openAINames(class) }

func (responsesDialect) refuse(w io.Writer, status int, code, message string) {
	openAIRefusal(w, status, code, message)
}

func (responsesDialect) reply(out *stream) replyWriter {
	return &responsesReply{stream: out, blocks: map[int]*responsesBlock{}}
}

type responsesReply struct {
	*stream
	sequence int
	blocks   map[int]*responsesBlock
	output   []any
}

type responsesBlock struct {
	start llm.BlockStart
	at    int // output index
	text  string
}

func (r *responsesReply) say(typ string, fields object) {
	fields["type"], fields["sequence_number"] = typ, r.sequence
	r.sequence++
	r.send(typ, fields)
}

func (r *responsesReply) response(status string) object {
	return object{
		"id": "resp_test", "object": "response", "created_at": 1760000000, "status": status,
		"model": r.prompt.model, "output": r.output, "error": nil, "incomplete_details": nil, "usage": nil,
	}
}

func (r *responsesReply) begin() {
	r.output = []any{}
	r.say("response.created", object{"response": r.response("in_progress")})
	r.say("response.in_progress", object{"response": r.response("in_progress")})
}

func (r *responsesReply) event(ev llm.Event) {
	switch ev := ev.(type) {
	case llm.BlockStart:
		b := &responsesBlock{start: ev, at: len(r.blocks)}
		r.blocks[ev.Index] = b
		r.say("response.output_item.added", object{"output_index": b.at, "item": r.item(b, "in_progress")})
		r.part(b, "added")
	case llm.BlockDelta:
		b := r.blocks[ev.Index]
		b.text += ev.Text
		r.delta(b, ev.Text)
	case llm.BlockStop:
		b := r.blocks[ev.Index]
		r.done(b)
		r.part(b, "done")
		item := r.item(b, "completed")
		r.output = append(r.output, item)
		r.say("response.output_item.done", object{"output_index": b.at, "item": item})
	case llm.UsageReport, llm.Finish, llm.Unhandled, llm.Failover:
	}
}

func (b *responsesBlock) id() string {
	switch b.start.Kind {
	case llm.BlockText:
		return fmt.Sprintf("msg_%d", b.at)
	case llm.BlockThinking:
		return fmt.Sprintf("rs_%d", b.at)
	case llm.BlockCall:
	}
	return fmt.Sprintf("fc_%d", b.at)
}

func (r *responsesReply) item(b *responsesBlock, status string) object {
	switch b.start.Kind {
	case llm.BlockText:
		content := []any{}
		if status == "completed" {
			content = append(content, object{"type": "output_text", "text": b.text, "annotations": []any{}})
		}
		return object{"type": "message", "id": b.id(), "status": status, "role": "assistant", "content": content}
	case llm.BlockThinking:
		item := object{"type": "reasoning", "id": b.id(), "summary": []any{}}
		if status == "completed" {
			item["encrypted_content"] = signatureOf(b.text)
			if b.text != "" {
				item["summary"] = []any{object{"type": "summary_text", "text": b.text}}
			}
		}
		return item
	case llm.BlockCall:
	}
	return object{
		"type": "function_call", "id": b.id(), "status": status,
		"call_id": b.start.ID, "name": b.start.Name, "arguments": b.text,
	}
}

// part tells that the one part of an item begins or ends.
func (r *responsesReply) part(b *responsesBlock, what string) {
	switch b.start.Kind {
	case llm.BlockText:
		r.say("response.content_part."+what, object{
			"item_id": b.id(), "output_index": b.at, "content_index": 0,
			"part": object{"type": "output_text", "text": b.text, "annotations": []any{}},
		})
	case llm.BlockThinking:
		if what == "done" && b.text == "" {
			return
		}
		r.say("response.reasoning_summary_part."+what, object{
			"item_id": b.id(), "output_index": b.at, "summary_index": 0,
			"part": object{"type": "summary_text", "text": b.text},
		})
	case llm.BlockCall:
	}
}

func (r *responsesReply) delta(b *responsesBlock, text string) {
	fields := object{"item_id": b.id(), "output_index": b.at, "delta": text}
	switch b.start.Kind {
	case llm.BlockText:
		fields["content_index"] = 0
		r.say("response.output_text.delta", fields)
	case llm.BlockThinking:
		fields["summary_index"] = 0
		r.say("response.reasoning_summary_text.delta", fields)
	case llm.BlockCall:
		for _, part := range pieces(text) {
			fields["delta"] = part
			r.say("response.function_call_arguments.delta", fields)
		}
	}
}

func (r *responsesReply) done(b *responsesBlock) {
	fields := object{"item_id": b.id(), "output_index": b.at}
	switch b.start.Kind {
	case llm.BlockText:
		fields["content_index"], fields["text"] = 0, b.text
		r.say("response.output_text.done", fields)
	case llm.BlockThinking:
		fields["summary_index"], fields["text"] = 0, b.text
		r.say("response.reasoning_summary_text.done", fields)
	case llm.BlockCall:
		fields["arguments"] = b.text
		r.say("response.function_call_arguments.done", fields)
	}
}

func (r *responsesReply) finish(stop llm.StopReason) {
	status, typ := "completed", "response.completed"
	var details any
	switch stop { //nolint:exhaustive // all others complete
	case llm.StopMaxTokens:
		status, details = "incomplete", object{"reason": "max_output_tokens"}
	case llm.StopContentFilter:
		status, details = "incomplete", object{"reason": "content_filter"}
	}
	if status == "incomplete" {
		typ = "response.incomplete"
	}
	response := r.response(status)
	response["incomplete_details"] = details
	response["usage"] = object{
		"input_tokens": r.input, "input_tokens_details": object{"cached_tokens": r.read},
		"output_tokens": r.stream.output, "output_tokens_details": object{"reasoning_tokens": 0},
		"total_tokens": r.input + r.stream.output,
	}
	r.say(typ, object{"response": response})
}

func (r *responsesReply) fault(code, message string) {
	response := r.response("failed")
	response["error"] = object{"code": code, "message": message}
	r.say("response.failed", object{"response": response})
}
