// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"encoding/json"

	"github.com/fiducial-dev/fiducial/llm"
)

// An itemEvent is one event of Responses.
type itemEvent struct {
	Type         string          `json:"type"`
	OutputIndex  int             `json:"output_index"`
	ContentIndex int             `json:"content_index"`
	SummaryIndex int             `json:"summary_index"`
	Delta        string          `json:"delta"`
	Text         *string         `json:"text"`
	Refusal      *string         `json:"refusal"`
	Arguments    *string         `json:"arguments"`
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
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments *string         `json:"arguments"`
	Phase     string          `json:"phase"`
	Content   json.RawMessage `json:"content"`
	Summary   json.RawMessage `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
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
	Input        *int64 `json:"input_tokens"`
	Output       *int64 `json:"output_tokens"`
	Total        *int64 `json:"total_tokens"`
	InputDetails *struct {
		Cached *int64 `json:"cached_tokens"`
		Write  *int64 `json:"cache_write_tokens"`
	} `json:"input_tokens_details"`
	OutputDetails *struct {
		Reasoning *int64 `json:"reasoning_tokens"`
	} `json:"output_tokens_details"`
}

// usage is what the report says, nothing when it holds nothing but zeros.
func (u *responseUsage) usage() llm.Usage {
	var out llm.Usage
	if u == nil || value(u.Input) == 0 && value(u.Output) == 0 && value(u.Total) == 0 {
		return out
	}
	out.Input, out.Output, out.Total = count(u.Input), count(u.Output), count(u.Total)
	if u.Total == nil {
		out.Total = out.Input.Plus(out.Output) // E-245
	}
	if d := u.InputDetails; d != nil {
		out.CacheRead, out.CacheWrite = count(d.Cached), count(d.Write)
	}
	if d := u.OutputDetails; d != nil {
		out.Reasoning = count(d.Reasoning)
	}
	return out
}
