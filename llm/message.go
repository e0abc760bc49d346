// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"encoding/json"
	"iter"
	"strings"
)

// Role says who wrote a [Message].
type Role string

// The roles.
const (
	RoleUser      Role = "user"      // a person, or a program on a person's behalf
	RoleAssistant Role = "assistant" // the model
	RoleTool      Role = "tool"      // the results of one batch of calls, in call order
)

// StopReason says why a reply ended. Providers' own words are mapped to these.
type StopReason string

// The stop reasons.
const (
	StopEndTurn       StopReason = "end_turn"
	StopToolUse       StopReason = "tool_use"
	StopMaxTokens     StopReason = "max_tokens"
	StopSequence      StopReason = "stop_sequence"
	StopContentFilter StopReason = "content_filter"
	StopRefusal       StopReason = "refusal"
	StopPause         StopReason = "pause"      // the provider wants the same conversation sent again
	StopUnknown       StopReason = "unknown"    // a word that the adapter does not know
	StopIncomplete    StopReason = "incomplete" // the provider gave up for a reason of its own

	// StopContextWindow says that the reply filled the model's window. It is not
	// continued as one cut at the output limit is: there is no room left.
	StopContextWindow StopReason = "context_window"
)

// A Message is one entry of a conversation.
//
// Which parts may stand in it depends on Role: a user message holds [Text],
// [Image] and [System]; an assistant message [Text], [Image], [Thinking] and
// [Call]; a tool message only [Result], at least one.
type Message struct {
	Role  Role
	Parts []Part

	// Stop is set on assistant messages only.
	Stop StopReason
}

// A Part is one piece of a message. The set is closed.
//
//sumtype:decl
type Part interface{ part() }

type (
	// Text is words for the reader.
	Text struct {
		Text   string `json:"text"`
		Opaque Opaque `json:"opaque,omitzero"`
	}

	// Image is one picture.
	Image struct {
		Media string `json:"media"` // such as image/png
		Data  []byte `json:"data"`
	}

	// Thinking is what a model wrote for itself. It goes back to the vendor that
	// made it, unchanged, and to nobody else.
	Thinking struct {
		Text   string `json:"text"`
		Opaque Opaque `json:"opaque,omitzero"`
	}

	// System is a note of the program inside the conversation: a continuation,
	// an interruption, a notice. The model reads Text; Data is for programs.
	System struct {
		Kind string          `json:"kind"`
		Text string          `json:"text"`
		Data json.RawMessage `json:"data,omitempty"`
	}

	// Call is one tool call. Args is the text that the model wrote, byte for
	// byte; see [Call.Input].
	Call struct {
		ID     string `json:"id"`
		Name   string `json:"name"`
		Args   string `json:"args"`
		Opaque Opaque `json:"opaque,omitzero"`
	}

	// Result answers the call whose id is CallID. A model reads Summary, then
	// Content on the next line when there is any, then Notes.
	Result struct {
		CallID  string  `json:"call_id"`
		Name    string  `json:"name"`
		Status  Status  `json:"status"`
		Summary string  `json:"summary,omitempty"`
		Content string  `json:"content,omitempty"`
		Images  []Image `json:"images,omitempty"`

		// Notes are what the program adds after the result was made.
		Notes []System `json:"notes,omitempty"`
	}
)

func (Text) part()     {}
func (Image) part()    {}
func (Thinking) part() {}
func (System) part()   {}
func (Call) part()     {}
func (Result) part()   {}

// Opaque is a vendor's own data on a part: a signature, encrypted reasoning, a
// thought signature. It is stored, sent back to that vendor unchanged, and never
// sent to another. The zero value is none.
type Opaque struct {
	Vendor string          `json:"vendor"`
	Data   json.RawMessage `json:"data"`
}

// IsZero reports whether there is no data.
func (o Opaque) IsZero() bool { return o.Vendor == "" && len(o.Data) == 0 }

// Status is how a call ended.
type Status string

// The statuses. Only success is no error.
const (
	StatusSuccess     Status = "success"
	StatusError       Status = "error"       // the tool failed, or was never run
	StatusInterrupted Status = "interrupted" // the tool stopped early and says so
	StatusCancelled   Status = "cancelled"   // the tool was cancelled and confirms it
	StatusUnknown     Status = "unknown"     // it may have run, it may still be running
)

// IsError reports whether the result is anything but a success.
func (r Result) IsError() bool { return r.Status != StatusSuccess }

// Body is the text that a model reads: summary, content and notes, each on a new
// line, those that are empty left out.
func (r Result) Body() string {
	if r.Content == "" && len(r.Notes) == 0 {
		return r.Summary
	}
	var b strings.Builder
	add := func(s string) {
		if s == "" {
			return
		}
		if b.Len() > 0 {
			b.WriteByte('\n')
		}
		b.WriteString(s)
	}
	add(r.Summary)
	add(r.Content)
	for _, n := range r.Notes {
		add(n.Text)
	}
	return b.String()
}

// UserText is a user message of one text.
func UserText(text string) Message {
	return Message{Role: RoleUser, Parts: []Part{Text{Text: text}}}
}

// AssistantText is a reply of one text that ended its turn.
func AssistantText(text string) Message {
	return Message{Role: RoleAssistant, Parts: []Part{Text{Text: text}}, Stop: StopEndTurn}
}

// AssistantCalls is a reply of calls alone.
func AssistantCalls(calls ...Call) Message {
	m := Message{Role: RoleAssistant, Parts: make([]Part, len(calls)), Stop: StopToolUse}
	for i, c := range calls {
		m.Parts[i] = c
	}
	return m
}

// ToolResults is the message that answers a batch of calls.
func ToolResults(results ...Result) Message {
	m := Message{Role: RoleTool, Parts: make([]Part, len(results))}
	for i, r := range results {
		m.Parts[i] = r
	}
	return m
}

// Calls yields the calls of the message in the model's order, numbered from 0.
func (m Message) Calls() iter.Seq2[int, Call] {
	return func(yield func(int, Call) bool) {
		n := 0
		for _, p := range m.Parts {
			if c, ok := p.(Call); ok {
				if !yield(n, c) {
					return
				}
				n++
			}
		}
	}
}

// CountCalls is the number of calls in the message.
func (m Message) CountCalls() int {
	n := 0
	for _, p := range m.Parts {
		if _, ok := p.(Call); ok {
			n++
		}
	}
	return n
}

// Text is all [Text] parts joined without a separator.
func (m Message) Text() string {
	var one string
	n := 0
	for _, p := range m.Parts {
		if t, ok := p.(Text); ok {
			one = t.Text
			n++
		}
	}
	if n <= 1 {
		return one
	}
	var b strings.Builder
	for _, p := range m.Parts {
		if t, ok := p.(Text); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}
