// SPDX-License-Identifier: Apache-2.0

package llmtest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/fiducial-dev/fiducial/llm"
)

// anthropicDialect is https://platform.claude.com/docs/en/api/messages.
type anthropicDialect struct{}

type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	Thinking  string          `json:"thinking"`
	Signature string          `json:"signature"`
	Data      string          `json:"data"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`
	Source    struct {
		Media string `json:"media_type"`
		Data  []byte `json:"data"`
	} `json:"source"`
}

type anthropicRequest struct {
	Model     string            `json:"model"`
	MaxTokens *int              `json:"max_tokens"`
	Stream    bool              `json:"stream"`
	System    json.RawMessage   `json:"system"`
	Tools     []json.RawMessage `json:"tools"`
	Messages  []struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	} `json:"messages"`
	Thinking *struct {
		Type   string `json:"type"`
		Budget int    `json:"budget_tokens"`
	} `json:"thinking"`
}

// anthropicReader checks and translates a request.
type anthropicReader struct {
	prompt
	marks int
	used  map[string]bool
	open  ids // calls of the message before
	names map[string]string
}

func (anthropicDialect) read(s *Server, r *http.Request, body []byte) (*prompt, *refusal) {
	if r.Header.Get("Anthropic-Version") == "" {
		return nil, refuse("anthropic-version: header is required")
	}
	var in anthropicRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, refuse("%v", err)
	}
	switch {
	case in.MaxTokens == nil:
		return nil, refuse("max_tokens: Field required")
	case in.Thinking != nil && in.Thinking.Type == "enabled" && in.Thinking.Budget >= *in.MaxTokens:
		return nil, refuse("`max_tokens` must be greater than `thinking.budget_tokens`.")
	case !in.Stream:
		return nil, refuse("this server only streams")
	}
	a := &anthropicReader{used: map[string]bool{}, names: map[string]string{}}
	a.model, a.req.CacheAnchor = in.Model, -1
	if no := a.tools(in.Tools); no != nil {
		return nil, no
	}
	if no := a.system(in.System); no != nil {
		return nil, no
	}
	for i, m := range in.Messages {
		if no := a.message(i, m.Role, m.Content); no != nil {
			return nil, no
		}
	}
	if a.marks > 4 {
		return nil, refuse("A maximum of 4 blocks with cache_control may be provided. Found %d.", a.marks)
	}
	if len(a.open) > 0 {
		return nil, refuse("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. "+
			"Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
			len(in.Messages)-1, strings.Join(a.open, ", "))
	}
	if in.Thinking != nil && in.Thinking.Type == "enabled" && a.thoughtless() {
		return nil, refuse("messages: Expected `thinking` or `redacted_thinking`, but found `tool_use`. " +
			"When `thinking` is enabled, a final `assistant` message must start with a thinking block.")
	}
	if n := len(in.Messages); n > 0 && in.Messages[n-1].Role == "assistant" && !s.paused {
		return nil, refuse("This model does not support assistant message prefill. The conversation must end with a user message.")
	}
	return &a.prompt, nil
}

// thoughtless reports whether the turn that is in the midst of its calls did not
// begin with thinking.
func (a *anthropicReader) thoughtless() bool {
	var first *llm.Message
	for i := len(a.req.Messages) - 1; i >= 0 && a.req.Messages[i].Role != llm.RoleUser; i-- {
		if m := &a.req.Messages[i]; m.Role == llm.RoleAssistant {
			first = m
		}
	}
	if first == nil || first.CountCalls() == 0 {
		return false
	}
	_, thought := first.Parts[0].(llm.Thinking)
	return !thought
}

func (a *anthropicReader) tools(raw []json.RawMessage) *refusal {
	seen := map[string]bool{}
	for i, one := range raw {
		var t struct {
			Name        string          `json:"name"`
			Description string          `json:"description"`
			Schema      json.RawMessage `json:"input_schema"`
		}
		if err := json.Unmarshal(one, &t); err != nil {
			return refuse("tools.%d: %v", i, err)
		}
		if !toolName.MatchString(t.Name) {
			return refuse("tools.%d.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'", i)
		}
		if seen[t.Name] {
			return refuse("tools: Tool names must be unique.")
		}
		if no := inputSchema(i, t.Schema); no != nil {
			return no
		}
		seen[t.Name] = true
		a.req.Tools = append(a.req.Tools, llm.Tool{Name: t.Name, Description: t.Description, Schema: t.Schema})
		if no := a.block("", one, true); no != nil {
			return no
		}
	}
	return nil
}

// inputSchema looks at the top of a tool's schema.
func inputSchema(i int, raw json.RawMessage) *refusal {
	var top map[string]json.RawMessage
	if json.Unmarshal(raw, &top) != nil || top["type"] == nil {
		return refuse("tools.%d.custom.input_schema.type: Field required", i)
	}
	if string(top["type"]) != `"object"` {
		return refuse("tools.%d.custom.input_schema.type: Input should be 'object'", i)
	}
	if top["anyOf"] != nil || top["oneOf"] != nil || top["allOf"] != nil {
		return refuse("tools.%d.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level", i)
	}
	return nil
}

// block adds a piece to the prompt as the cache sees it.
func (a *anthropicReader) block(role string, raw []byte, mayMark bool) *refusal {
	plain, mark := cutObject(raw, "cache_control")
	if mark {
		a.marks++
		if !mayMark {
			return refuse("cache_control cannot be set for empty text blocks or for thinking blocks")
		}
	}
	a.blocks = append(a.blocks, promptBlock{data: append([]byte(role), plain...), mark: mark})
	return nil
}

func (a *anthropicReader) system(raw json.RawMessage) *refusal {
	blocks, no := anthropicBlocks(raw)
	if no != nil {
		return no
	}
	for _, one := range blocks {
		var b anthropicBlock
		if err := json.Unmarshal(one, &b); err != nil {
			return refuse("system: %v", err)
		}
		if isBlank(b.Text) {
			return refuse("system: text content blocks must be non-empty")
		}
		a.req.System += b.Text
		if no := a.block("", one, true); no != nil {
			return no
		}
	}
	return nil
}

// anthropicBlocks reads content: a string is one text block.
func anthropicBlocks(raw json.RawMessage) ([]json.RawMessage, *refusal) {
	if len(raw) == 0 {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		one, err := json.Marshal(object{"type": "text", "text": text})
		if err != nil {
			return nil, refuse("%v", err)
		}
		return []json.RawMessage{one}, nil
	}
	var blocks []json.RawMessage
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return nil, refuse("content: %v", err)
	}
	return blocks, nil
}

func (a *anthropicReader) message(i int, role string, content json.RawMessage) *refusal {
	if role != "user" && role != "assistant" {
		return refuse("messages.%d.role: Input should be 'user' or 'assistant'", i)
	}
	if i == 0 && role != "user" {
		return refuse("messages: first message must use the \"user\" role")
	}
	raw, no := anthropicBlocks(content)
	if no != nil {
		return no
	}
	if len(raw) == 0 {
		return refuse("messages.%d: all messages must have non-empty content", i)
	}
	m := llm.Message{Role: llm.Role(role)}
	var results []llm.Part
	var calls ids
	have := map[string]bool{}
	for k, one := range raw {
		var b anthropicBlock
		if err := json.Unmarshal(one, &b); err != nil {
			return refuse("messages.%d.content.%d: %v", i, k, err)
		}
		if b.Type == "tool_result" {
			if k != len(results) {
				return refuse("messages.%d: `tool_result` blocks must come first in the content of a message", i)
			}
			if no := a.result(i, k, b, have, &results); no != nil {
				return no
			}
		} else if no := a.part(i, k, role, b, &m, &calls); no != nil {
			return no
		}
		if no := a.block(role, one, !strings.HasSuffix(b.Type, "thinking")); no != nil {
			return no
		}
	}
	if role == "assistant" && len(m.Parts) > 0 {
		if _, ok := m.Parts[len(m.Parts)-1].(llm.Thinking); ok {
			return refuse("messages.%d: The final block in an assistant message cannot be `thinking`.", i)
		}
	}
	if missing := a.open.missing(have); len(missing) > 0 {
		return refuse("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. "+
			"Each `tool_use` block must have a corresponding `tool_result` block in the next message.", i-1, strings.Join(missing, ", "))
	}
	a.open = calls
	if len(results) > 0 {
		a.req.Messages = append(a.req.Messages, llm.Message{Role: llm.RoleTool, Parts: results})
	}
	if len(m.Parts) > 0 {
		a.req.Messages = append(a.req.Messages, m)
	}
	return nil
}

func (a *anthropicReader) result(i, k int, b anthropicBlock, have map[string]bool, results *[]llm.Part) *refusal {
	known := false
	for _, id := range a.open {
		known = known || id == b.ToolUseID
	}
	if !known || have[b.ToolUseID] {
		return refuse("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. "+
			"Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", i, k, b.ToolUseID)
	}
	have[b.ToolUseID] = true
	r := llm.Result{CallID: b.ToolUseID, Name: a.names[b.ToolUseID], Status: llm.StatusSuccess}
	if b.IsError {
		r.Status = llm.StatusError
	}
	inner, no := anthropicBlocks(b.Content)
	if no != nil {
		return no
	}
	var text string
	whole := json.Unmarshal(b.Content, &text) == nil
	if b.IsError && (len(inner) == 0 || whole && isBlank(text)) {
		return refuse("messages.%d.content.%d.tool_result: content cannot be empty if `is_error` is true", i, k)
	}
	for _, one := range inner {
		var c anthropicBlock
		if err := json.Unmarshal(one, &c); err != nil {
			return refuse("messages.%d.content.%d.content: %v", i, k, err)
		}
		switch {
		case c.Type == "image" && b.IsError:
			return refuse("messages.%d.content.%d.tool_result: all content must be type \"text\" if `is_error` is true", i, k)
		case c.Type == "image":
			r.Images = append(r.Images, llm.Image{Media: c.Source.Media, Data: c.Source.Data})
		case c.Text == "" && !whole:
			return refuse("messages: text content blocks must be non-empty")
		default:
			r.Summary += c.Text
		}
	}
	*results = append(*results, r)
	return nil
}

func (a *anthropicReader) part(i, k int, role string, b anthropicBlock, m *llm.Message, calls *ids) *refusal {
	switch b.Type {
	case "text":
		if b.Text == "" {
			return refuse("messages: text content blocks must be non-empty")
		}
		if isBlank(b.Text) {
			return refuse("messages: text content blocks must contain non-whitespace text")
		}
		m.Parts = append(m.Parts, llm.Text{Text: b.Text})
	case "image":
		if role != "user" {
			return refuse("messages.%d: `image` blocks can only be in `user` messages", i)
		}
		m.Parts = append(m.Parts, llm.Image{Media: b.Source.Media, Data: b.Source.Data})
	case "thinking":
		if b.Signature != signatureOf(b.Thinking) {
			return refuse("messages.%d.content.%d: Invalid `signature` in `thinking` block", i, k)
		}
		m.Parts = append(m.Parts, llm.Thinking{Text: b.Thinking})
	case "redacted_thinking":
		if b.Data != signatureOf("") {
			return refuse("messages.%d.content.%d: Invalid `data` in `redacted_thinking` block", i, k)
		}
		m.Parts = append(m.Parts, llm.Thinking{})
	case "tool_use":
		if role != "assistant" {
			return refuse("messages.%d: `tool_use` blocks can only be in `assistant` messages", i)
		}
		if a.used[b.ID] || b.ID == "" {
			return refuse("messages.%d.content.%d: `tool_use` ids must be unique", i, k)
		}
		if !isObject(b.Input) {
			return refuse("messages.%d.content.%d.tool_use.input: Input should be a valid dictionary", i, k)
		}
		if !toolName.MatchString(b.Name) {
			return refuse("messages.%d.content.%d.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,64}$'", i, k)
		}
		a.used[b.ID] = true
		a.names[b.ID] = b.Name
		*calls = append(*calls, b.ID)
		m.Parts = append(m.Parts, llm.Call{ID: b.ID, Name: b.Name, Args: string(b.Input)})
	default:
		return refuse("messages.%d.content.%d: Input tag '%s' found using 'type' does not match any of the expected tags", i, k, b.Type)
	}
	return nil
}

// signatureOf stands for what a provider signs reasoning with.
func signatureOf(text string) string {
	sum := sha256.Sum256([]byte("reasoning " + text))
	return base64.StdEncoding.EncodeToString([]byte(hex.EncodeToString(sum[:12])))
}

func (anthropicDialect) names(class llm.Class) (int, string) {
	switch class { //nolint:exhaustive // the others are failures of the server
	case llm.ClassAuth:
		return http.StatusUnauthorized, "authentication_error"
	case llm.ClassPermission:
		return http.StatusForbidden, "permission_error"
	case llm.ClassNotFound:
		return http.StatusNotFound, "not_found_error"
	case llm.ClassInvalidRequest, llm.ClassContextOverflow:
		return http.StatusBadRequest, "invalid_request_error"
	case llm.ClassRateLimit:
		return http.StatusTooManyRequests, "rate_limit_error"
	case llm.ClassQuota:
		return http.StatusPaymentRequired, "billing_error"
	case llm.ClassOverloaded:
		return 529, "overloaded_error"
	}
	return http.StatusInternalServerError, "api_error"
}

func (anthropicDialect) refuse(w io.Writer, _ int, code, message string) {
	writeJSON(w, object{"type": "error", "error": object{"type": code, "message": message}, "request_id": "req_test"})
}

func (anthropicDialect) reply(out *stream) replyWriter {
	return &anthropicReply{stream: out, kinds: map[int]llm.BlockKind{}, texts: map[int]string{}, held: map[int]llm.BlockStart{}}
}

type anthropicReply struct {
	*stream
	kinds map[int]llm.BlockKind
	texts map[int]string
	held  map[int]llm.BlockStart // thinking whose first text has not come: it may be redacted
}

func (a *anthropicReply) usage() object {
	return object{
		"input_tokens": a.input - a.read - a.written, "cache_creation_input_tokens": a.written,
		"cache_read_input_tokens": a.read, "output_tokens": max(a.output, 1),
	}
}

func (a *anthropicReply) begin() {
	a.send("message_start", object{"type": "message_start", "message": object{
		"id": "msg_test", "type": "message", "role": "assistant", "model": a.prompt.model,
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil, "usage": a.usage(),
	}})
	a.send("ping", object{"type": "ping"})
}

func (a *anthropicReply) event(ev llm.Event) {
	switch ev := ev.(type) {
	case llm.BlockStart:
		a.kinds[ev.Index] = ev.Kind
		switch ev.Kind {
		case llm.BlockText:
			a.open(ev.Index, object{"type": "text", "text": ""})
		case llm.BlockThinking:
			a.held[ev.Index] = ev
		case llm.BlockCall:
			a.open(ev.Index, object{"type": "tool_use", "id": ev.ID, "name": ev.Name, "input": object{}})
		}
	case llm.BlockDelta:
		a.delta(ev)
	case llm.BlockStop:
		if _, held := a.held[ev.Index]; held {
			a.open(ev.Index, object{"type": "redacted_thinking", "data": signatureOf("")})
		} else if a.kinds[ev.Index] == llm.BlockThinking {
			a.grow(ev.Index, object{"type": "signature_delta", "signature": signatureOf(a.texts[ev.Index])})
		}
		a.send("content_block_stop", object{"type": "content_block_stop", "index": ev.Index})
	case llm.UsageReport, llm.Finish, llm.Unhandled, llm.Failover:
	}
}

func (a *anthropicReply) delta(ev llm.BlockDelta) {
	switch a.kinds[ev.Index] {
	case llm.BlockText:
		a.grow(ev.Index, object{"type": "text_delta", "text": ev.Text})
	case llm.BlockThinking:
		if _, held := a.held[ev.Index]; held {
			delete(a.held, ev.Index)
			a.open(ev.Index, object{"type": "thinking", "thinking": "", "signature": ""})
		}
		a.texts[ev.Index] += ev.Text
		a.grow(ev.Index, object{"type": "thinking_delta", "thinking": ev.Text})
	case llm.BlockCall:
		for _, part := range pieces(ev.Text) {
			a.grow(ev.Index, object{"type": "input_json_delta", "partial_json": part})
		}
	}
}

func (a *anthropicReply) open(index int, block object) {
	a.send("content_block_start", object{"type": "content_block_start", "index": index, "content_block": block})
}

func (a *anthropicReply) grow(index int, delta object) {
	a.send("content_block_delta", object{"type": "content_block_delta", "index": index, "delta": delta})
}

func (a *anthropicReply) finish(stop llm.StopReason) {
	word := string(stop)
	switch stop { //nolint:exhaustive // the others are spelt alike
	case llm.StopPause:
		word = "pause_turn"
	case llm.StopContentFilter:
		word = "refusal"
	}
	a.send("message_delta", object{"type": "message_delta", "delta": object{"stop_reason": word, "stop_sequence": nil}, "usage": a.usage()})
	a.send("message_stop", object{"type": "message_stop"})
}

func (a *anthropicReply) fault(code, message string) {
	a.send("error", object{"type": "error", "error": object{"type": code, "message": message}})
}

// pieces cuts a text into two, between characters, as providers send arguments.
func pieces(s string) []string {
	head := llm.CutUTF8(s, len(s)/2)
	if head == "" || head == s {
		return []string{s}
	}
	return []string{head, s[len(head):]}
}
