// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"encoding/json"
	"strings"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
	"github.com/fiducial-dev/fiducial/provider/internal/reply"
)

// The blocks of a reply. Calls are numbered by the server's index and, where it
// gives one index to several calls, by their order.
const (
	blockThinking  = 0
	blockText      = 1
	blockCalls     = 2
	callsPerIndex  = 1 << 10
	maxCallIndexes = 1 << 16
)

// A chatStream is the decoder of Chat Completions.
type chatStream struct {
	vendor string
	names  *wire.Names
	out    []llm.Event

	thinking, text bool // the blocks are open
	extra          json.RawMessage
	details        []detail
	finish         string
	choiceIndex    *int // of the reply that is read: the first that comes
	refused        bool
	done           bool // the end marker came
	calls          []*chatCall
	newest         map[int]*chatCall // by the server's index
}

func newChatStream(vendor string, names *wire.Names) *chatStream {
	return &chatStream{vendor: vendor, names: names, newest: map[int]*chatCall{}}
}

func (s *chatStream) Complete() bool { return s.finish != "" }
func (s *chatStream) Over() bool     { return s.done }

func (s *chatStream) Drain() []llm.Event {
	out := s.out
	s.out = s.out[:0]
	return out
}

func (s *chatStream) emit(ev llm.Event) { s.out = append(s.out, ev) }

func (s *chatStream) Take(ev reply.Frame) (bool, error) {
	if strings.TrimSpace(ev.Data) == "[DONE]" {
		s.done = true
		return true, nil
	}
	switch ev.Type {
	case "ping": // whatever stands in it
		return false, nil
	case "error":
		return true, streamError([]byte(ev.Data))
	}
	return true, s.chunk(ev.Type, ev.Data)
}

// Whole reads a reply that came in one piece. One without choices is an error in a
// form that is not known, whose words are all that there is.
func (s *chatStream) Whole(body []byte) error {
	if err := s.chunk("", string(body)); err != nil {
		return err
	}
	if s.choiceIndex == nil {
		return streamError(body)
	}
	return nil
}

func (s *chatStream) chunk(kind, data string) error {
	var c chunk
	err := json.Unmarshal([]byte(data), &c)
	if err != nil {
		c, err = withoutEmptyDeltas([]byte(data), err)
	}
	if err != nil {
		return reply.Malformed("json", "an event is no chunk of a reply: %v", err)
	}
	if isFault(c.Error) || c.Object == "error" || c.bareFault() {
		return streamError([]byte(data))
	}
	usage := c.Usage.usage()
	if c.Groq != nil && !usage.Known() {
		usage = c.Groq.Usage.usage()
	}
	for i := range c.Choices {
		if !usage.Known() {
			usage = c.Choices[i].Usage.usage()
		}
	}
	if usage.Known() {
		s.emit(llm.UsageReport{Usage: usage})
	}
	if len(c.Choices) == 0 && c.Usage == nil && c.Groq == nil {
		s.emit(reply.Unhandled(s.vendor, kind, data))
	}
	for i := range c.Choices {
		if s.choiceIndex == nil { // some servers count from 1
			s.choiceIndex = &c.Choices[i].Index
		}
		if c.Choices[i].Index != *s.choiceIndex {
			continue // one reply was asked for
		}
		if err := s.choice(&c.Choices[i]); err != nil {
			return err
		}
	}
	return nil
}

// isFault reports whether the error field of a chunk says anything.
func isFault(raw json.RawMessage) bool {
	switch string(raw) {
	case "", "null", "{}", "[]", "false", `""`:
		return false
	}
	return true
}

func (s *chatStream) choice(c *chatChoice) error {
	if isFault(c.Error) {
		return streamError(c.Error)
	}
	for _, d := range []*chatDelta{c.Delta, c.Message} {
		if d == nil {
			continue
		}
		if err := s.delta(d); err != nil {
			return err
		}
	}
	switch c.Finish {
	case "", "null": // the word where the value belongs, on every chunk
		return nil
	case "error":
		return &llm.Error{Class: llm.ClassServer, Code: c.Finish, Message: "the server gave up in the middle of the reply"}
	case "insufficient_system_resource": // DeepSeek
		return &llm.Error{Class: llm.ClassOverloaded, Code: c.Finish, Message: "the server ran out of resources in the middle of the reply"}
	}
	s.finish = c.Finish
	return nil
}

func (s *chatStream) delta(d *chatDelta) error {
	before := len(s.details)
	for _, raw := range d.Details {
		s.details = addDetail(s.details, raw)
	}
	switch {
	case d.Thought != "":
		s.think(string(d.Thought))
	case d.Reasoning != "":
		s.think(string(d.Reasoning))
	case d.Content.thought != "":
		s.think(d.Content.thought)
	case len(s.details) > before:
		s.think(detailText(d.Details))
	}
	if len(d.Extra) > 0 && string(d.Extra) != "null" {
		s.extra = d.Extra
	}
	if d.Content.text != "" {
		s.say(d.Content.text)
	}
	if d.Refusal != "" {
		s.refused = true
		s.say(string(d.Refusal))
	}
	for i, raw := range d.Calls {
		c, err := readCall(raw)
		if err != nil {
			return reply.Malformed("tool_calls", "piece %d of a call cannot be read: %v", i, err)
		}
		if err := s.call(c); err != nil {
			return err
		}
	}
	return nil
}

func detailText(raws []json.RawMessage) string {
	var b strings.Builder
	for _, raw := range raws {
		var d detail
		if json.Unmarshal(raw, &d) == nil {
			b.WriteString(d.text())
		}
	}
	return b.String()
}

func (s *chatStream) think(text string) {
	if !s.thinking {
		s.thinking = true
		s.emit(llm.BlockStart{Index: blockThinking, Kind: llm.BlockThinking})
	}
	if text != "" {
		s.emit(llm.BlockDelta{Index: blockThinking, Text: text})
	}
}

func (s *chatStream) say(text string) {
	if !s.text {
		s.text = true
		s.emit(llm.BlockStart{Index: blockText, Kind: llm.BlockText})
	}
	if text != "" {
		s.emit(llm.BlockDelta{Index: blockText, Text: text})
	}
}

// end closes all blocks (E-237) and the reply.
func (s *chatStream) End() error {
	if s.thinking {
		s.emit(llm.BlockStop{Index: blockThinking, Opaque: s.thought()})
	}
	if len(s.extra) > 0 && len(s.calls) == 0 {
		s.say("")
	}
	if s.text {
		s.emit(llm.BlockStop{Index: blockText, Opaque: s.opaque(extras{Message: s.messageExtra()})})
	}
	calls := 0
	for _, c := range s.calls {
		if c.name == "" {
			if c.id == "" && c.args.Len() == 0 {
				continue // an empty piece
			}
			return &llm.Error{Class: llm.ClassMalformedToolCall, Code: "no_name", Message: "the model called a tool without a name"}
		}
		if !c.started {
			s.start(c)
		}
		s.emit(llm.BlockStop{Index: c.block, Opaque: s.opaque(c.extras)})
		calls++
	}
	s.emit(llm.Finish{Stop: s.stop(calls)})
	return nil
}

func (s *chatStream) messageExtra() map[string]json.RawMessage {
	if len(s.extra) == 0 {
		return nil
	}
	return map[string]json.RawMessage{"extra_content": s.extra}
}

// thought marks thinking as the vendor's, with what it needs to have it back.
func (s *chatStream) thought() llm.Opaque {
	var x extras
	if len(s.details) > 0 {
		if data, err := wire.Marshal(s.details); err == nil {
			x.Details = data
		}
	}
	if o := s.opaque(x); !o.IsZero() {
		return o
	}
	return llm.Opaque{Vendor: s.vendor, Data: json.RawMessage("{}")}
}

func (s *chatStream) opaque(x extras) llm.Opaque {
	if x.Call == nil && x.Function == nil && x.Message == nil && x.Details == nil {
		return llm.Opaque{}
	}
	data, err := wire.Marshal(x)
	if err != nil {
		return llm.Opaque{}
	}
	return llm.Opaque{Vendor: s.vendor, Data: data}
}

// stop decides by the calls that are there, since servers say stop with calls and
// the other way about.
func (s *chatStream) stop(calls int) llm.StopReason {
	switch strings.ToLower(s.finish) { // gateways pass on the words of others
	case "length", "model_length", "max_tokens":
		return llm.StopMaxTokens
	case "content_filter":
		return llm.StopContentFilter
	case "tool_calls", "function_call":
		return llm.StopToolUse // without calls package collect refuses it
	case "stop", "eos", "eos_token", "end_turn", "stop_sequence", "tool_use":
		switch {
		case calls > 0:
			return llm.StopToolUse
		case s.refused:
			return llm.StopRefusal
		}
		return llm.StopEndTurn
	}
	if calls > 0 {
		return llm.StopToolUse
	}
	return llm.StopUnknown
}
