// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"encoding/json"
	"slices"

	"github.com/fiducial-dev/fiducial/llm"
)

// An itemEvent is one event of Responses.
type itemEvent struct {
	Type         string          `json:"type"`
	OutputIndex  int             `json:"output_index"`
	ItemID       string          `json:"item_id"`
	ContentIndex int             `json:"content_index"`
	SummaryIndex int             `json:"summary_index"`
	Delta        string          `json:"delta"`
	Text         *string         `json:"text"`
	Refusal      *string         `json:"refusal"`
	Arguments    *looseArgs      `json:"arguments"`
	Item         *outputItem     `json:"item"`
	Response     *responseBody   `json:"response"`
	Error        json.RawMessage `json:"error"`
}

// A responseBody is a response, as the terminal event holds it and as a whole
// reply is.
type responseBody struct {
	Status     string          `json:"status"`
	Output     []outputItem    `json:"output"`
	Error      json.RawMessage `json:"error"`
	Usage      *responseUsage  `json:"usage"`
	Incomplete *struct {
		Reason string `json:"reason"`
	} `json:"incomplete_details"`
}

// An outputItem is a message, a function call, reasoning, or something that was
// not asked for.
type outputItem struct {
	ID        string          `json:"id"`
	Type      string          `json:"type"`
	CallID    looseText       `json:"call_id"`
	Name      string          `json:"name"`
	Arguments *looseArgs      `json:"arguments"`
	Phase     string          `json:"phase"`
	Content   json.RawMessage `json:"content"`
	Summary   json.RawMessage `json:"summary"`
	Encrypted string          `json:"encrypted_content"`

	raw json.RawMessage // all of it, where a server tool made it
}

// UnmarshalJSON reads an item, and keeps one of a server tool as it is.
func (o *outputItem) UnmarshalJSON(data []byte) error {
	type plain outputItem
	if err := json.Unmarshal(data, (*plain)(o)); err != nil {
		return err
	}
	if o.served() {
		o.raw = slices.Clone(data)
	}
	return nil
}

// served reports whether the item tells what the provider did by itself. Others that
// are not known may want an answer, and cannot go back without one.
func (o *outputItem) served() bool {
	switch o.Type {
	case "web_search_call", "file_search_call", "code_interpreter_call", "image_generation_call", "mcp_call", "mcp_list_tools":
		return true
	}
	return false
}

// looseArgs is a call's arguments: a string, or where a string belongs an object, as
// some servers write it.
type looseArgs string

func (a *looseArgs) UnmarshalJSON(data []byte) error {
	if data[0] == '"' {
		return json.Unmarshal(data, (*string)(a))
	}
	*a = looseArgs(data)
	return nil
}

// An itemPart is one entry of an item's content or summary.
type itemPart struct {
	Type    string `json:"type"`
	Text    string `json:"text"`
	Refusal string `json:"refusal"`
}

// parts are the entries of content or summary, none when there is no array.
func parts(raw json.RawMessage) []itemPart {
	var list []itemPart
	if json.Unmarshal(raw, &list) != nil {
		return nil
	}
	return list
}

type responseUsage struct {
	Input        looseCount `json:"input_tokens"`
	Output       looseCount `json:"output_tokens"`
	Total        looseCount `json:"total_tokens"`
	InputDetails *struct {
		Cached looseCount `json:"cached_tokens"`
		Write  looseCount `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	OutputDetails *struct {
		Reasoning looseCount `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

// usage is what the report says, nothing when it holds nothing but zeros.
func (u *responseUsage) usage() llm.Usage {
	var out llm.Usage
	if u == nil || u.Input.Value() == 0 && u.Output.Value() == 0 && u.Total.Value() == 0 {
		return out
	}
	out.Input, out.Output, out.Total = u.Input.Count, u.Output.Count, u.Total.Count
	if !u.Total.Known() {
		out.Total = out.Input.Plus(out.Output) // E-245
	}
	if d := u.InputDetails; d != nil {
		out.CacheRead, out.CacheWrite = d.Cached.Count, d.Write.Count
	}
	if d := u.OutputDetails; d != nil {
		out.Reasoning = d.Reasoning.Count
	}
	return out
}
