// SPDX-License-Identifier: Apache-2.0

package llmtest

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"strings"

	"github.com/fiducial-dev/fiducial/llm"
)

// chatDialect is https://platform.openai.com/docs/api-reference/chat, with the
// reasoning_content that DeepSeek and local servers add.
type chatDialect struct{}

type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	Reasoning  string          `json:"reasoning_content"`
	ToolCallID string          `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Type     string `json:"type"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

type chatRequest struct {
	Model    string            `json:"model"`
	Stream   bool              `json:"stream"`
	Messages []json.RawMessage `json:"messages"`
	Tools    []json.RawMessage `json:"tools"`
}

type chatReader struct {
	prompt
	open  ids
	have  map[string]bool
	names map[string]string
}

func (chatDialect) read(_ *Server, _ *http.Request, body []byte) (*prompt, *refusal) {
	var in chatRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, refuse("%v", err)
	}
	if !in.Stream {
		return nil, refuse("this server only streams")
	}
	c := &chatReader{have: map[string]bool{}, names: map[string]string{}}
	c.model, c.req.CacheAnchor = in.Model, -1
	for _, one := range in.Tools {
		var t struct {
			Type     string          `json:"type"`
			Function json.RawMessage `json:"function"`
		}
		if err := json.Unmarshal(one, &t); err != nil || t.Type != "function" {
			return nil, refuse("Invalid value for 'tools': a function was expected")
		}
		if no := functionTool(&c.prompt, one, t.Function); no != nil {
			return nil, no
		}
	}
	for i, one := range in.Messages {
		var m chatMessage
		if err := json.Unmarshal(one, &m); err != nil {
			return nil, refuse("Invalid 'messages[%d]': %v", i, err)
		}
		if no := c.message(i, m); no != nil {
			return nil, no
		}
		c.blocks = append(c.blocks, promptBlock{data: one})
	}
	if no := c.settled(); no != nil {
		return nil, no
	}
	return &c.prompt, nil
}

// functionTool adds a tool, described by its function object.
func functionTool(p *prompt, whole, function json.RawMessage) *refusal {
	var f struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
		Strict      bool            `json:"strict"`
	}
	if err := json.Unmarshal(function, &f); err != nil {
		return refuse("Invalid value for 'tools': %v", err)
	}
	if !toolName.MatchString(f.Name) {
		return refuse("Invalid 'tools[%d].function.name': string does not match pattern. "+
			"Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", len(p.req.Tools))
	}
	if len(f.Parameters) > 0 && !isObject(f.Parameters) {
		return refuse("Invalid schema for function '%s': schema must be a JSON Schema of 'type: \"object\"'", f.Name)
	}
	if f.Strict {
		if why := notStrict(f.Parameters); why != "" {
			return refuse("Invalid schema for function '%s': %s", f.Name, why)
		}
	}
	p.req.Tools = append(p.req.Tools, llm.Tool{Name: f.Name, Description: f.Description, Schema: f.Parameters})
	p.blocks = append(p.blocks, promptBlock{data: whole})
	return nil
}

// notStrict says why a schema may not be strict: every object must list all its
// properties as required and allow no others.
func notStrict(raw json.RawMessage) string {
	var s struct {
		Type       any                        `json:"type"`
		Properties map[string]json.RawMessage `json:"properties"`
		Required   []string                   `json:"required"`
		Additional *bool                      `json:"additionalProperties"`
		Items      json.RawMessage            `json:"items"`
	}
	if json.Unmarshal(raw, &s) != nil {
		return ""
	}
	if s.Type == "object" {
		if s.Additional == nil || *s.Additional {
			return "'additionalProperties' is required to be supplied and to be false."
		}
		if len(s.Required) != len(s.Properties) {
			return "'required' is required to be supplied and to be an array including every key in properties."
		}
	}
	for _, p := range s.Properties {
		if why := notStrict(p); why != "" {
			return why
		}
	}
	return notStrict(s.Items)
}

func (c *chatReader) message(i int, m chatMessage) *refusal {
	if m.Role != "tool" {
		if no := c.settled(); no != nil {
			return no
		}
	}
	parts, no := chatParts(i, m.Content)
	if no != nil {
		return no
	}
	switch m.Role {
	case "system", "developer":
		for _, p := range parts {
			if t, ok := p.(llm.Text); ok {
				c.req.System += t.Text
			}
		}
	case "user":
		if len(parts) == 0 {
			return refuse("Invalid value for 'content': expected a string, got null.")
		}
		c.req.Messages = append(c.req.Messages, llm.Message{Role: llm.RoleUser, Parts: parts})
	case "assistant":
		return c.assistant(i, m, parts)
	case "tool":
		return c.result(i, m, parts)
	default:
		return refuse("Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.", m.Role)
	}
	return nil
}

func (c *chatReader) assistant(i int, m chatMessage, parts []llm.Part) *refusal {
	if len(m.ToolCalls) == 0 && (len(m.Content) == 0 || string(m.Content) == "null") {
		return refuse("Invalid value for 'content': expected a string, got null.")
	}
	var out []llm.Part
	if m.Reasoning != "" {
		out = append(out, llm.Thinking{Text: m.Reasoning})
	}
	out = append(out, parts...)
	c.have = map[string]bool{}
	for k, call := range m.ToolCalls {
		if call.ID == "" || call.Type != "function" {
			return refuse("Missing required parameter: 'messages[%d].tool_calls[%d].id'.", i, k)
		}
		if len(call.ID) > 40 {
			return refuse("Invalid 'messages[%d].tool_calls[%d].id': string too long. Expected a string with maximum length 40.", i, k)
		}
		if !toolName.MatchString(call.Function.Name) {
			return refuse("Invalid 'messages[%d].tool_calls[%d].function.name': string does not match pattern. "+
				"Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", i, k)
		}
		if !isObject([]byte(call.Function.Arguments)) {
			return refuse("messages[%d].tool_calls[%d].function.arguments must be a valid JSON object", i, k)
		}
		c.open = append(c.open, call.ID)
		c.names[call.ID] = call.Function.Name
		out = append(out, llm.Call{ID: call.ID, Name: call.Function.Name, Args: call.Function.Arguments})
	}
	c.req.Messages = append(c.req.Messages, llm.Message{Role: llm.RoleAssistant, Parts: out})
	return nil
}

func (c *chatReader) result(_ int, m chatMessage, parts []llm.Part) *refusal {
	known := false
	for _, id := range c.open {
		known = known || id == m.ToolCallID
	}
	if !known || c.have[m.ToolCallID] {
		return refuse("Invalid parameter: messages with role 'tool' must be a response to a preceding message with 'tool_calls'.")
	}
	c.have[m.ToolCallID] = true
	r := llm.Result{CallID: m.ToolCallID, Name: c.names[m.ToolCallID], Status: llm.StatusSuccess}
	for _, p := range parts {
		switch p := p.(type) {
		case llm.Text:
			r.Summary += p.Text
		case llm.Image:
			return refuse("Invalid 'messages': image_url is only allowed for messages with role 'user'.")
		case llm.Thinking, llm.System, llm.Call, llm.Result:
		}
	}
	addResult(&c.req, r)
	return nil
}

// addResult puts a result into the tool message at the end, or begins one.
func addResult(req *llm.Request, r llm.Result) {
	if n := len(req.Messages); n > 0 && req.Messages[n-1].Role == llm.RoleTool {
		req.Messages[n-1].Parts = append(req.Messages[n-1].Parts, r)
		return
	}
	req.Messages = append(req.Messages, llm.ToolResults(r))
}

func (c *chatReader) settled() *refusal {
	if missing := c.open.missing(c.have); len(missing) > 0 {
		return refuse("An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. "+
			"The following tool_call_ids did not have response messages: %s", strings.Join(missing, ", "))
	}
	c.open = nil
	return nil
}

// chatParts reads content: a string, or parts of text and images.
func chatParts(i int, raw json.RawMessage) ([]llm.Part, *refusal) {
	if len(raw) == 0 || string(raw) == "null" {
		return nil, nil
	}
	var text string
	if json.Unmarshal(raw, &text) == nil {
		return []llm.Part{llm.Text{Text: text}}, nil
	}
	var parts []struct {
		Type     string          `json:"type"`
		Text     string          `json:"text"`
		ImageURL json.RawMessage `json:"image_url"`
	}
	if err := json.Unmarshal(raw, &parts); err != nil || len(parts) == 0 {
		return nil, refuse("Invalid 'messages[%d].content': a string or parts were expected", i)
	}
	var out []llm.Part
	for _, p := range parts {
		switch p.Type {
		case "text", "input_text", "output_text":
			out = append(out, llm.Text{Text: p.Text})
		case "image_url", "input_image":
			img, ok := dataImage(p.ImageURL)
			if !ok {
				return nil, refuse("Invalid image: a data URL was expected")
			}
			out = append(out, img)
		default:
			return nil, refuse("Invalid value: '%s'. Supported values are text and images.", p.Type)
		}
	}
	return out, nil
}

// dataImage reads a data URL, given as a string or as {"url": string}.
func dataImage(raw json.RawMessage) (llm.Image, bool) {
	var url string
	if json.Unmarshal(raw, &url) != nil {
		var o struct {
			URL string `json:"url"`
		}
		if json.Unmarshal(raw, &o) != nil {
			return llm.Image{}, false
		}
		url = o.URL
	}
	head, data, ok := strings.Cut(strings.TrimPrefix(url, "data:"), ";base64,")
	bytes, err := base64.StdEncoding.DecodeString(data)
	return llm.Image{Media: head, Data: bytes}, ok && err == nil
}

func (chatDialect) names(class llm.Class) (int, string) { return openAINames(class) }

func openAINames(class llm.Class) (int, string) {
	switch class { //nolint:exhaustive // the others are failures of the server
	case llm.ClassAuth:
		return http.StatusUnauthorized, "invalid_api_key"
	case llm.ClassPermission:
		return http.StatusForbidden, "unsupported_country_region_territory"
	case llm.ClassNotFound:
		return http.StatusNotFound, "model_not_found"
	case llm.ClassInvalidRequest:
		return http.StatusBadRequest, "invalid_value"
	case llm.ClassContextOverflow:
		return http.StatusBadRequest, "context_length_exceeded"
	case llm.ClassRateLimit:
		return http.StatusTooManyRequests, "rate_limit_exceeded"
	case llm.ClassQuota:
		return http.StatusTooManyRequests, "insufficient_quota"
	case llm.ClassOverloaded:
		return http.StatusServiceUnavailable, "server_overloaded"
	}
	return http.StatusInternalServerError, "server_error"
}

func (chatDialect) refuse(w io.Writer, status int, code, message string) {
	openAIRefusal(w, status, code, message)
}

func openAIRefusal(w io.Writer, status int, code, message string) {
	typ := "invalid_request_error"
	switch {
	case code == "insufficient_quota":
		typ = code
	case status == http.StatusTooManyRequests:
		typ = "rate_limit_error"
	case status >= 500:
		typ = "server_error"
	}
	writeJSON(w, object{"error": object{"message": message, "type": typ, "param": nil, "code": code}})
}

func (chatDialect) reply(out *stream) replyWriter {
	return &chatReply{stream: out, kinds: map[int]llm.BlockKind{}, calls: map[int]int{}}
}

type chatReply struct {
	*stream
	kinds map[int]llm.BlockKind
	calls map[int]int // position among the calls, by block index
}

func (c *chatReply) chunk(delta object, finish any) {
	c.send("", object{
		"id": "chatcmpl-test", "object": "chat.completion.chunk", "created": 1760000000, "model": c.prompt.model,
		"choices": []any{object{"index": 0, "delta": delta, "finish_reason": finish}},
	})
}

func (c *chatReply) begin() { c.chunk(object{"role": "assistant", "content": ""}, nil) }

func (c *chatReply) event(ev llm.Event) {
	switch ev := ev.(type) {
	case llm.BlockStart:
		c.kinds[ev.Index] = ev.Kind
		if ev.Kind == llm.BlockCall {
			c.calls[ev.Index] = len(c.calls)
			c.chunk(object{"tool_calls": []any{object{
				"index": c.calls[ev.Index], "id": ev.ID, "type": "function",
				"function": object{"name": ev.Name, "arguments": ""},
			}}}, nil)
		}
	case llm.BlockDelta:
		switch c.kinds[ev.Index] {
		case llm.BlockText:
			c.chunk(object{"content": ev.Text}, nil)
		case llm.BlockThinking:
			c.chunk(object{"reasoning_content": ev.Text}, nil)
		case llm.BlockCall:
			for _, part := range pieces(ev.Text) {
				c.chunk(object{"tool_calls": []any{object{"index": c.calls[ev.Index], "function": object{"arguments": part}}}}, nil)
			}
		}
	case llm.BlockStop, llm.UsageReport, llm.Finish, llm.Unhandled, llm.Failover:
	}
}

func (c *chatReply) finish(stop llm.StopReason) {
	word := "stop"
	switch stop { //nolint:exhaustive // all others are told as stop
	case llm.StopToolUse:
		word = "tool_calls"
	case llm.StopMaxTokens:
		word = "length"
	case llm.StopContentFilter, llm.StopRefusal:
		word = "content_filter"
	}
	c.chunk(object{}, word)
	c.send("", object{
		"id": "chatcmpl-test", "object": "chat.completion.chunk", "created": 1760000000, "model": c.prompt.model, "choices": []any{},
		"usage": object{
			"prompt_tokens": c.input, "completion_tokens": c.output, "total_tokens": c.input + c.output,
			"prompt_tokens_details": object{"cached_tokens": c.read},
		},
	})
	_, err := io.WriteString(c.w, "data: [DONE]\n\n")
	if err != nil {
		panic(http.ErrAbortHandler)
	}
}

func (c *chatReply) fault(code, message string) {
	c.send("", object{"error": object{"message": message, "type": code, "param": nil, "code": code}})
}
