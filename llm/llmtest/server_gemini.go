// SPDX-License-Identifier: Apache-2.0

package llmtest

import (
	"encoding/json"
	"io"
	"net/http"
	"path"
	"strings"

	"github.com/fiducial-dev/fiducial/llm"
)

// geminiDialect is https://ai.google.dev/api/generate-content.
type geminiDialect struct{}

type geminiPart struct {
	Text         *string `json:"text"`
	Thought      bool    `json:"thought"`
	Signature    string  `json:"thoughtSignature"`
	FunctionCall *struct {
		Name string          `json:"name"`
		Args json.RawMessage `json:"args"`
	} `json:"functionCall"`
	FunctionResponse *struct {
		Name     string          `json:"name"`
		Response json.RawMessage `json:"response"`
	} `json:"functionResponse"`
	InlineData *struct {
		Media string `json:"mimeType"`
		Data  []byte `json:"data"`
	} `json:"inlineData"`
}

type geminiContent struct {
	Role  string            `json:"role"`
	Parts []json.RawMessage `json:"parts"`
}

type geminiRequest struct {
	System   *geminiContent  `json:"systemInstruction"`
	Contents []geminiContent `json:"contents"`
	Tools    []struct {
		Functions []json.RawMessage `json:"functionDeclarations"`
	} `json:"tools"`
}

type geminiReader struct {
	prompt
	open []string // names of the calls of the content before
}

func (geminiDialect) read(_ *Server, r *http.Request, body []byte) (*prompt, *refusal) {
	var in geminiRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, refuse("Invalid JSON payload received. %v", err)
	}
	if r.URL.Query().Get("alt") != "sse" {
		return nil, refuse("this server only streams server-sent events: alt=sse")
	}
	g := &geminiReader{}
	g.model, _, _ = strings.Cut(path.Base(r.URL.Path), ":")
	g.req.CacheAnchor = -1
	for _, t := range in.Tools {
		for _, f := range t.Functions {
			if no := g.tool(f); no != nil {
				return nil, no
			}
		}
	}
	if in.System != nil {
		for _, one := range in.System.Parts {
			var p geminiPart
			if err := json.Unmarshal(one, &p); err != nil || p.Text == nil {
				return nil, refuse("systemInstruction: text was expected")
			}
			g.req.System += *p.Text
			g.blocks = append(g.blocks, promptBlock{data: one})
		}
	}
	for i, c := range in.Contents {
		if no := g.content(i, c); no != nil {
			return nil, no
		}
	}
	if len(g.open) > 0 {
		return nil, refuse(geminiCount)
	}
	return &g.prompt, nil
}

const geminiCount = "Please ensure that the number of function response parts is equal to the number of function call parts of the function call turn."

func (g *geminiReader) tool(raw json.RawMessage) *refusal {
	var f struct {
		Name        string          `json:"name"`
		Description string          `json:"description"`
		Parameters  json.RawMessage `json:"parameters"`
		JSONSchema  json.RawMessage `json:"parametersJsonSchema"`
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return refuse("Invalid JSON payload received. %v", err)
	}
	if !toolName.MatchString(f.Name) || strings.ContainsAny(f.Name[:1], "0123456789-") {
		return refuse("Invalid function name. Must start with a letter or an underscore.")
	}
	if len(f.Parameters) > 0 {
		if field := unknownSchemaField(f.Parameters); field != "" {
			return refuse("Invalid JSON payload received. Unknown name %q at 'tools[0].function_declarations[%d].parameters': Cannot find field.",
				field, len(g.req.Tools))
		}
	}
	schema := f.Parameters
	if len(schema) == 0 {
		schema = f.JSONSchema
	}
	g.req.Tools = append(g.req.Tools, llm.Tool{Name: f.Name, Description: f.Description, Schema: schema})
	g.blocks = append(g.blocks, promptBlock{data: raw})
	return nil
}

// schemaFields are the fields of https://ai.google.dev/api/caching#Schema.
const schemaFields = " type format title description nullable enum maxItems minItems properties required minProperties maxProperties" +
	" minLength maxLength pattern example anyOf propertyOrdering default items minimum maximum "

// unknownSchemaField is the first field that Gemini's schema does not have.
func unknownSchemaField(raw json.RawMessage) string {
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return "type"
	}
	for name := range fields {
		if !strings.Contains(schemaFields, " "+name+" ") {
			return name
		}
	}
	var kinds []string
	if json.Unmarshal(fields["type"], &kinds) == nil {
		return "type"
	}
	var inner []json.RawMessage
	var properties map[string]json.RawMessage
	if p := fields["properties"]; p != nil && json.Unmarshal(p, &properties) == nil {
		for _, s := range properties {
			inner = append(inner, s)
		}
	}
	var any []json.RawMessage
	if a := fields["anyOf"]; a != nil && json.Unmarshal(a, &any) == nil {
		inner = append(inner, any...)
	}
	if items := fields["items"]; items != nil {
		inner = append(inner, items)
	}
	for _, s := range inner {
		if name := unknownSchemaField(s); name != "" {
			return name
		}
	}
	return ""
}

func (g *geminiReader) content(i int, c geminiContent) *refusal {
	if c.Role != "user" && c.Role != "model" {
		return refuse("Please use a valid role: user, model.")
	}
	if len(c.Parts) == 0 {
		return refuse("Unable to submit request because it must include at least one parts field")
	}
	var parts []llm.Part
	var answers []llm.Result
	var calls []string
	for _, one := range c.Parts {
		var p geminiPart
		if err := json.Unmarshal(one, &p); err != nil {
			return refuse("contents[%d]: %v", i, err)
		}
		g.blocks = append(g.blocks, promptBlock{data: append([]byte(c.Role), one...)})
		switch {
		case p.FunctionCall != nil:
			if !isObject(p.FunctionCall.Args) {
				return refuse("contents[%d]: function call args must be an object", i)
			}
			if len(calls) == 0 && strings.HasPrefix(g.model, "gemini-3") && p.Signature == "" {
				return refuse("Function call is missing a thought_signature in functionCall parts.")
			}
			if !toolName.MatchString(p.FunctionCall.Name) {
				return refuse("contents[%d]: Invalid function name. Must start with a letter or an underscore.", i)
			}
			calls = append(calls, p.FunctionCall.Name)
			parts = append(parts, llm.Call{Name: p.FunctionCall.Name, Args: string(p.FunctionCall.Args)})
		case p.FunctionResponse != nil:
			if !isObject(p.FunctionResponse.Response) {
				return refuse("contents[%d]: function response must be an object", i)
			}
			answers = append(answers, geminiResult(p.FunctionResponse.Name, p.FunctionResponse.Response))
		case p.InlineData != nil:
			parts = append(parts, llm.Image{Media: p.InlineData.Media, Data: p.InlineData.Data})
		case p.Text != nil && p.Thought:
			parts = append(parts, llm.Thinking{Text: *p.Text})
		case p.Text != nil:
			parts = append(parts, llm.Text{Text: *p.Text})
		default:
			return refuse("contents[%d]: a part must hold one field of data", i)
		}
	}
	return g.turn(c.Role, parts, answers, calls)
}

func geminiResult(name string, raw json.RawMessage) llm.Result {
	r := llm.Result{Name: name, Status: llm.StatusSuccess, Summary: string(raw)}
	var fields map[string]json.RawMessage
	if json.Unmarshal(raw, &fields) != nil {
		return r
	}
	for _, key := range []string{"output", "result", "error"} {
		var text string
		if json.Unmarshal(fields[key], &text) == nil && len(fields) == 1 {
			r.Summary = text
			if key == "error" {
				r.Status = llm.StatusError
			}
		}
	}
	return r
}

func (g *geminiReader) turn(role string, parts []llm.Part, answers []llm.Result, calls []string) *refusal {
	if len(answers) != len(g.open) {
		return refuse(geminiCount)
	}
	for k, r := range answers {
		if r.Name != g.open[k] {
			return refuse("Please ensure that function response parts come in the order of the function call parts: %s answers %s", r.Name, g.open[k])
		}
		addResult(&g.req, r)
	}
	g.open = calls
	if len(calls) > 0 && role != "model" {
		return refuse("Please ensure that function call turn comes immediately after a user turn or after a function response turn.")
	}
	switch {
	case len(parts) == 0:
	case role == "model":
		addReply(&g.req, parts...)
	default:
		g.req.Messages = append(g.req.Messages, llm.Message{Role: llm.RoleUser, Parts: parts})
	}
	return nil
}

func (geminiDialect) names(class llm.Class) (int, string) {
	switch class { //nolint:exhaustive // the others are failures of the server
	case llm.ClassAuth:
		return http.StatusUnauthorized, "UNAUTHENTICATED"
	case llm.ClassPermission:
		return http.StatusForbidden, "PERMISSION_DENIED"
	case llm.ClassNotFound:
		return http.StatusNotFound, "NOT_FOUND"
	case llm.ClassInvalidRequest, llm.ClassContextOverflow:
		return http.StatusBadRequest, "INVALID_ARGUMENT"
	case llm.ClassRateLimit, llm.ClassQuota:
		return http.StatusTooManyRequests, "RESOURCE_EXHAUSTED"
	case llm.ClassOverloaded:
		return http.StatusServiceUnavailable, "UNAVAILABLE"
	}
	return http.StatusInternalServerError, "INTERNAL"
}

func (geminiDialect) refuse(w io.Writer, status int, code, message string) {
	writeJSON(w, object{"error": object{"code": status, "message": message, "status": code}})
}

func (geminiDialect) reply(out *stream) replyWriter {
	return &geminiReply{stream: out, blocks: map[int]*responsesBlock{}}
}

type geminiReply struct {
	*stream
	blocks map[int]*responsesBlock
	signed bool // a call of this reply has its signature
}

func (g *geminiReply) begin() {}

func (g *geminiReply) chunk(parts []any, finish string) {
	candidate := object{"index": 0}
	if len(parts) > 0 {
		candidate["content"] = object{"role": "model", "parts": parts}
	}
	if finish != "" {
		candidate["finishReason"] = finish
	}
	g.send("", object{
		"candidates": []any{candidate}, "modelVersion": g.prompt.model, "responseId": "resp-test",
		"usageMetadata": object{
			"promptTokenCount": g.input, "candidatesTokenCount": g.output, "totalTokenCount": g.input + g.output,
			"cachedContentTokenCount": g.read,
		},
	})
}

func (g *geminiReply) event(ev llm.Event) {
	switch ev := ev.(type) {
	case llm.BlockStart:
		g.blocks[ev.Index] = &responsesBlock{start: ev}
	case llm.BlockDelta:
		b := g.blocks[ev.Index]
		b.text += ev.Text
		switch b.start.Kind {
		case llm.BlockText:
			g.chunk([]any{object{"text": ev.Text}}, "")
		case llm.BlockThinking:
			g.chunk([]any{object{"text": ev.Text, "thought": true}}, "")
		case llm.BlockCall:
		}
	case llm.BlockStop:
		if b := g.blocks[ev.Index]; b.start.Kind == llm.BlockCall {
			g.call(b)
		}
	case llm.UsageReport, llm.Finish, llm.Unhandled, llm.Failover:
	}
}

func (g *geminiReply) call(b *responsesBlock) {
	args := json.RawMessage(b.text)
	if !isObject(args) {
		args = json.RawMessage("{}")
	}
	part := object{"functionCall": object{"name": b.start.Name, "args": args}}
	if !g.signed {
		part["thoughtSignature"] = signatureOf(b.start.Name)
		g.signed = true
	}
	g.chunk([]any{part}, "")
}

func (g *geminiReply) finish(stop llm.StopReason) {
	word := "STOP"
	switch stop { //nolint:exhaustive // all others are told as STOP
	case llm.StopMaxTokens:
		word = "MAX_TOKENS"
	case llm.StopContentFilter, llm.StopRefusal:
		word = "SAFETY"
	}
	g.chunk([]any{object{"text": ""}}, word)
}

func (g *geminiReply) fault(code, message string) {
	g.send("", object{"error": object{"code": 500, "message": message, "status": code}})
}
