// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/provider/internal/reply"
)

// A chunk is one event of Chat Completions, or a whole reply of it.
type chunk struct {
	Object  string          `json:"object"`
	Error   json.RawMessage `json:"error"`
	Choices []chatChoice    `json:"choices"`
	Usage   *chatUsage      `json:"usage"`
	Groq    *struct {
		Usage *chatUsage `json:"usage"`
	} `json:"x_groq"`

	// Of an error that stands at the top, as DashScope and gateways write it.
	Code    json.RawMessage `json:"code"`
	Message json.RawMessage `json:"message"`
}

// bareFault reports whether the chunk is an error without the field of that name.
func (c *chunk) bareFault() bool {
	return len(c.Choices) == 0 && c.Usage == nil && len(c.Message) > 1 && c.Message[0] == '"' && isFault(c.Code)
}

// withoutEmptyDeltas reads a chunk again that could not be read, for err: PHP writes an
// empty object as an empty list. Other faults stay what they are.
func withoutEmptyDeltas(data []byte, err error) (chunk, error) {
	var outer map[string]json.RawMessage
	var choices []map[string]json.RawMessage
	if json.Unmarshal(data, &outer) != nil || json.Unmarshal(outer["choices"], &choices) != nil {
		return chunk{}, err
	}
	for _, c := range choices {
		maps.DeleteFunc(c, func(key string, value json.RawMessage) bool { return key == "delta" && string(value) == "[]" })
	}
	changed, merr := json.Marshal(choices)
	if merr != nil {
		return chunk{}, err
	}
	outer["choices"] = changed
	if data, merr = json.Marshal(outer); merr != nil {
		return chunk{}, err
	}
	var c chunk
	if json.Unmarshal(data, &c) != nil {
		return chunk{}, err
	}
	return c, nil
}

type chatChoice struct {
	Index   int             `json:"index"`
	Delta   *chatDelta      `json:"delta"`
	Message *chatDelta      `json:"message"` // in a whole reply
	Finish  string          `json:"finish_reason"`
	Error   json.RawMessage `json:"error"` // OpenRouter
	Usage   *chatUsage      `json:"usage"` // Moonshot
}

type chatDelta struct {
	Content   chatContent       `json:"content"`
	Refusal   looseText         `json:"refusal"`
	Thought   looseText         `json:"reasoning_content"` // DeepSeek, vLLM, llama.cpp, LM Studio, DashScope
	Reasoning looseText         `json:"reasoning"`         // OpenRouter, Groq, Ollama, newer vLLM
	Details   []json.RawMessage `json:"reasoning_details"` // OpenRouter
	Calls     []json.RawMessage `json:"tool_calls"`
	Extra     json.RawMessage   `json:"extra_content"` // Google, through its compatible server
}

// chatContent is the text of a delta: a string, or a list of parts, as Mistral
// sends it when a model thinks.
type chatContent struct{ text, thought string }

func (c *chatContent) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, &c.text)
	}
	var parts []struct {
		Type     string      `json:"type"`
		Text     string      `json:"text"`
		Thinking chatContent `json:"thinking"`
	}
	if data[0] != '[' {
		return nil // null, or something that is no text
	}
	if err := json.Unmarshal(data, &parts); err != nil {
		return err
	}
	for _, p := range parts {
		c.text += p.Text
		c.thought += p.Thinking.text
	}
	return nil
}

// What some servers write in other types than they should.
type (
	looseText  = reply.LooseText
	looseCount = reply.LooseCount
)

type chatUsage struct {
	Prompt        looseCount `json:"prompt_tokens"`
	Completion    looseCount `json:"completion_tokens"`
	Total         looseCount `json:"total_tokens"`
	CacheHit      looseCount `json:"prompt_cache_hit_tokens"` // DeepSeek
	Cached        looseCount `json:"cached_tokens"`           // Moonshot
	PromptDetails *struct {
		Cached looseCount `json:"cached_tokens"`
		Write  looseCount `json:"cache_write_tokens"` // OpenRouter
	} `json:"prompt_tokens_details"`
	CompletionDetails *struct {
		Reasoning looseCount `json:"reasoning_tokens"`
	} `json:"completion_tokens_details"`
}

// UnmarshalJSON reads a report. What is no object says nothing.
func (u *chatUsage) UnmarshalJSON(data []byte) error {
	if data[0] != '{' {
		return nil
	}
	type plain chatUsage
	return json.Unmarshal(data, (*plain)(u))
}

// usage is what the report says. One that holds nothing but zeros says nothing:
// servers send it when they did not count.
func (u *chatUsage) usage() llm.Usage {
	var out llm.Usage
	if u == nil || u.Prompt.Value() == 0 && u.Completion.Value() == 0 && u.Total.Value() == 0 {
		return out
	}
	out.Input, out.Output, out.Total = u.Prompt.Count, u.Completion.Count, u.Total.Count
	out.CacheRead = u.CacheHit.Count
	if u.Cached.Known() {
		out.CacheRead = u.Cached.Count
	}
	if d := u.PromptDetails; d != nil {
		if d.Cached.Known() {
			out.CacheRead = d.Cached.Count
		}
		out.CacheWrite = d.Write.Count
	}
	if d := u.CompletionDetails; d != nil {
		out.Reasoning = d.Reasoning.Count
	}
	return out
}

// A callDelta is a piece of a call.
type callDelta struct {
	index          *int
	id, name, args string
	extras         extras // vendor's own fields
}

// readCall reads a piece of a call with all that a vendor has put into it.
func readCall(raw json.RawMessage) (callDelta, error) {
	var d callDelta
	var outer map[string]json.RawMessage
	if err := json.Unmarshal(raw, &outer); err != nil {
		return d, err
	}
	if raw := outer["index"]; len(raw) > 1 && raw[0] == '"' { // a number in quotes, or nothing
		outer["index"] = raw[1 : len(raw)-1]
		if len(raw) == 2 {
			delete(outer, "index")
		}
	}
	if whole, rest, ok := strings.Cut(string(outer["index"]), "."); ok && strings.Trim(rest, "0") == "" {
		outer["index"] = json.RawMessage(whole) // some servers write 0.0
	}
	if err := field(outer, "index", &d.index); err != nil {
		return d, err
	}
	if err := field(outer, "id", (*looseText)(&d.id)); err != nil {
		return d, err
	}
	var inner map[string]json.RawMessage
	if err := field(outer, "function", &inner); err != nil {
		return d, err
	}
	delete(outer, "type")
	if err := field(inner, "name", (*looseText)(&d.name)); err != nil {
		return d, err
	}
	args := inner["arguments"]
	delete(inner, "arguments")
	switch {
	case len(args) == 0 || string(args) == "null":
	case args[0] == '"':
		if err := json.Unmarshal(args, &d.args); err != nil {
			return d, err
		}
	default:
		d.args = string(args) // an object, where a string belongs
	}
	d.extras = extras{Call: present(outer), Function: present(inner)}
	return d, nil
}

// field reads and removes one field, absent and null being the zero value.
func field(from map[string]json.RawMessage, name string, to any) error {
	raw, ok := from[name]
	delete(from, name)
	if !ok || string(raw) == "null" {
		return nil
	}
	return json.Unmarshal(raw, to)
}

// present are the fields that are not null, nil when there are none.
func present(fields map[string]json.RawMessage) map[string]json.RawMessage {
	for k, v := range fields {
		if string(v) == "null" {
			delete(fields, k)
		}
	}
	if len(fields) == 0 {
		return nil
	}
	return fields
}

// A detail is one entry of OpenRouter's reasoning_details. Pieces of one entry
// come in several chunks; the whole sequence goes back.
type detail map[string]json.RawMessage

// addDetail appends a piece, or joins it to the last entry when it goes on there.
func addDetail(list []detail, raw json.RawMessage) []detail {
	var d detail
	if json.Unmarshal(raw, &d) != nil || d == nil {
		return list
	}
	if len(list) == 0 {
		return append(list, d)
	}
	last := list[len(list)-1]
	if string(last["type"]) != string(d["type"]) || string(last["index"]) != string(d["index"]) {
		return append(list, d)
	}
	for k, v := range d {
		switch k {
		case "text", "summary", "data":
			last[k] = joined(last[k], v)
		default:
			if string(v) != "null" {
				last[k] = v
			}
		}
	}
	return list
}

// joined are two JSON strings as one.
func joined(a, b json.RawMessage) json.RawMessage {
	var x, y string
	if json.Unmarshal(b, &y) != nil || y == "" {
		return a
	}
	if json.Unmarshal(a, &x) != nil || x == "" {
		return b
	}
	out, err := json.Marshal(x + y)
	if err != nil {
		return a
	}
	return out
}

// text is the readable part of a detail.
func (d detail) text() string {
	var b strings.Builder
	for _, k := range []string{"text", "summary"} {
		var s string
		if json.Unmarshal(d[k], &s) == nil {
			b.WriteString(s)
		}
	}
	return b.String()
}
