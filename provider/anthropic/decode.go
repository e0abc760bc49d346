// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
	"github.com/fiducial-dev/fiducial/provider/internal/reply"
)

// A decoder turns one response into events. It keeps what the format spreads over
// several wire events: usage, signatures, and blocks that are no concern of ours.
type decoder struct {
	names *naming
	out   []llm.Event

	blocks map[int]*open // the newest of each index
	taken  map[int]bool  // block numbers
	free   int           // one that is certainly free
	usage  usage
	stop   string
	calls  int
	done   bool // message_stop came
}

// An open block.
type open struct {
	index     int // of its block
	kind      llm.BlockKind
	begun     bool // a delta came
	input     string
	signature string
	redacted  string
	vendor    json.RawMessage // a block of a type that is kept as it is
	renamed   string          // the tool, of a call whose arguments must be whole to be read
	citations []json.RawMessage
	closed    bool
}

func newDecoder(names *naming) *decoder {
	return &decoder{names: names, blocks: map[int]*open{}, taken: map[int]bool{}}
}

func (d *decoder) Complete() bool    { return d.done }
func (d *decoder) Over() bool        { return d.done }
func (d *decoder) End() error        { return nil }
func (d *decoder) emit(ev llm.Event) { d.out = append(d.out, ev) }

// Drain returns the events since the last call, valid until the next call of any
// method.
func (d *decoder) Drain() []llm.Event {
	out := d.out
	d.out = d.out[:0]
	return out
}

// Take reads one event. A ping does not move the reply.
func (d *decoder) Take(frame reply.Frame) (bool, error) {
	var ev event
	if err := json.Unmarshal([]byte(frame.Data), &ev); err != nil {
		switch {
		case frame.Data == "[DONE]", frame.Type == "ping":
			return false, nil // some servers borrow it from another format
		case frame.Type == "error" && !frame.Unterminated: // a gateway's own words
			return true, &llm.Error{Class: llm.ClassServer, Message: llm.CutUTF8(wire.UTF8(frame.Data), 512)}
		}
		return true, reply.Malformed("json", "an event is not JSON: %v", err)
	}
	typ := cmp.Or(ev.Type, frame.Type)
	switch {
	case typ == "ping":
		return false, nil
	case typ == "" && len(ev.Error) > 0: // a gateway's, in the form of another API
		typ = "error"
	}
	return true, d.event(typ, &ev, frame.Data)
}

// Whole reads a reply that came as one JSON value.
func (d *decoder) Whole(data []byte) error {
	var m struct {
		Type       string            `json:"type"`
		Content    []json.RawMessage `json:"content"`
		StopReason string            `json:"stop_reason"`
		Usage      *usage            `json:"usage"`
	}
	if err := json.Unmarshal(data, &m); err != nil {
		return reply.Malformed("json", "the reply is not JSON: %v", err)
	}
	if m.Type != "message" {
		return statusError(0, http.Header{}, data)
	}
	d.report(m.Usage)
	for i, raw := range m.Content {
		if err := d.start(i, raw); err != nil {
			return err
		}
		d.close(i)
	}
	d.stop = m.StopReason
	d.finish()
	return nil
}

// An event is the union of all wire events that are read.
type event struct {
	Type         string          `json:"type"`
	Index        int             `json:"index"`
	Delta        delta           `json:"delta"`
	ContentBlock json.RawMessage `json:"content_block"`
	Usage        *usage          `json:"usage"`
	Message      struct {
		Usage *usage `json:"usage"`
	} `json:"message"`
	Error json.RawMessage `json:"error"`
}

type delta struct {
	Type        string          `json:"type"`
	Text        string          `json:"text"`
	Thinking    string          `json:"thinking"`
	PartialJSON string          `json:"partial_json"`
	Signature   string          `json:"signature"`
	StopReason  string          `json:"stop_reason"`
	Citation    json.RawMessage `json:"citation"`
}

func (d *decoder) event(typ string, ev *event, data string) error {
	switch typ {
	case "content_block_delta":
		d.delta(ev, data)
	case "content_block_start":
		return d.start(ev.Index, ev.ContentBlock)
	case "content_block_stop":
		d.close(ev.Index)
	case "message_start":
		d.report(ev.Message.Usage)
	case "message_delta":
		if ev.Delta.StopReason != "" {
			d.stop = ev.Delta.StopReason
		}
		d.report(ev.Usage)
	case "message_stop":
		d.finish()
	case "error":
		return streamError([]byte(`{"error":` + cmp.Or(string(ev.Error), "null") + `}`))
	default:
		d.emit(reply.Unhandled(Vendor, typ, data))
	}
	return nil
}

// A start is what a content block says of itself as it opens.
type start struct {
	Type      string            `json:"type"`
	ID        reply.LooseText   `json:"id"`
	Name      string            `json:"name"`
	Text      string            `json:"text"`
	Thinking  string            `json:"thinking"`
	Signature string            `json:"signature"`
	Data      string            `json:"data"`
	Input     json.RawMessage   `json:"input"`
	Citations []json.RawMessage `json:"citations"`
}

// start opens a block. Servers that do not stream put the whole of it here.
func (d *decoder) start(index int, raw json.RawMessage) error {
	var s start
	if err := json.Unmarshal(raw, &s); err != nil {
		return reply.Malformed("content_block", "a content block is no object: %v", err)
	}
	b := d.open(index)
	ev := llm.BlockStart{Index: b.index}
	switch s.Type {
	case "text":
		ev.Kind = llm.BlockText
		for _, c := range s.Citations {
			b.cite(c)
		}
	case "thinking", "redacted_thinking":
		ev.Kind = llm.BlockThinking
		b.signature, b.redacted = s.Signature, s.Data
	case "tool_use":
		ev.Kind, ev.ID, ev.Name = llm.BlockCall, string(s.ID), d.names.Real(s.Name)
		if in := string(s.Input); in != "null" && in != "{}" && in != `""` {
			b.input = in
		}
		if _, ok := d.names.keys[ev.Name]; ok {
			b.renamed = ev.Name
		}
		d.calls++
	default:
		// Kept on an empty text, and sent back as it came.
		b.vendor = slices.Clone(raw)
		d.emit(reply.Unhandled(Vendor, "content_block_start "+s.Type, string(raw)))
	}
	b.kind = ev.Kind
	d.emit(ev)
	d.add(b, s.Text+s.Thinking)
	return nil
}

// open makes a block. Gateways give one index to block after block: the one before
// is then over, and the new one has a number of its own.
func (d *decoder) open(index int) *open {
	b := &open{index: index}
	if d.blocks[index] != nil {
		d.close(index)
	}
	d.keep(index, b)
	return b
}

func (d *decoder) keep(index int, b *open) {
	if d.taken[b.index] {
		b.index = d.free
	}
	d.taken[b.index] = true
	d.free = max(d.free, b.index+1)
	d.blocks[index] = b
}

func (d *decoder) add(b *open, text string) {
	if text == "" {
		return
	}
	b.begun = true
	d.emit(llm.BlockDelta{Index: b.index, Text: text})
}

func (d *decoder) delta(ev *event, data string) {
	b := d.blocks[ev.Index]
	if b == nil {
		b = d.implied(ev)
	}
	switch ev.Delta.Type {
	case "text_delta":
		d.add(b, ev.Delta.Text)
	case "thinking_delta":
		d.add(b, ev.Delta.Thinking)
	case "input_json_delta":
		if b.vendor != nil || b.renamed != "" {
			b.input += ev.Delta.PartialJSON
			return
		}
		d.add(b, ev.Delta.PartialJSON)
	case "signature_delta":
		b.signature += ev.Delta.Signature
	case "citations_delta":
		b.cite(ev.Delta.Citation)
	default:
		d.emit(reply.Unhandled(Vendor, "content_block_delta "+ev.Delta.Type, data))
	}
}

// cite keeps a citation of what was searched for, without which the search could
// not be cited again. The others name documents of the request, which the API takes
// in another form than it gives.
func (b *open) cite(raw json.RawMessage) {
	var c struct {
		Type string `json:"type"`
	}
	if json.Unmarshal(raw, &c) != nil {
		return
	}
	switch c.Type {
	case "web_search_result_location", "search_result_location":
		b.citations = append(b.citations, slices.Clone(raw))
	}
}

// implied opens a block that a delta belongs to and that was never opened
// (E-162). A call without its name is left to package collect to refuse.
func (d *decoder) implied(ev *event) *open {
	b := &open{index: ev.Index, kind: llm.BlockText}
	switch ev.Delta.Type {
	case "thinking_delta", "signature_delta":
		b.kind = llm.BlockThinking
	case "input_json_delta":
		return b
	}
	d.keep(ev.Index, b)
	d.emit(llm.BlockStart{Index: b.index, Kind: b.kind})
	return b
}

// close ends a block and hands over what it carries beside its text.
func (d *decoder) close(index int) {
	b := d.blocks[index]
	if b == nil {
		d.emit(llm.BlockStop{Index: index})
		return
	}
	if b.closed {
		return
	}
	b.closed = true
	if b.kind == llm.BlockCall && !b.begun && b.input != "" {
		if b.renamed != "" {
			b.input = d.names.args(b.renamed, b.input)
		}
		d.add(b, b.input)
	}
	d.emit(llm.BlockStop{Index: b.index, Opaque: b.opaque()})
}

// thinkingOpaque and textOpaque are the forms of this vendor's opaque data.
type (
	thinkingOpaque struct {
		Signature string `json:"signature,omitempty"`
		Redacted  string `json:"redacted,omitempty"`
	}
	textOpaque struct {
		Block     json.RawMessage   `json:"block,omitempty"`
		Citations []json.RawMessage `json:"citations,omitempty"`
	}
)

func (b *open) opaque() llm.Opaque {
	var kept any
	switch {
	case b.vendor != nil:
		kept = textOpaque{Block: withInput(b.vendor, b.input)}
	case len(b.citations) > 0:
		kept = textOpaque{Citations: b.citations}
	case b.kind == llm.BlockThinking && (b.signature != "" || b.redacted != ""):
		kept = thinkingOpaque{Signature: b.signature, Redacted: b.redacted}
	default:
		return llm.Opaque{}
	}
	data, err := wire.Marshal(kept)
	if err != nil {
		return llm.Opaque{} // a block that is JSON, as checked when it opened
	}
	return llm.Opaque{Vendor: Vendor, Data: data}
}

// withInput is a block with the input that its deltas gave.
func withInput(raw json.RawMessage, input string) json.RawMessage {
	if input == "" || !json.Valid([]byte(input)) {
		return raw
	}
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(raw, &fields) != nil {
		return raw
	}
	fields["input"] = json.RawMessage(input)
	out, err := wire.Marshal(fields)
	if err != nil {
		return raw
	}
	return out
}

// finish ends the reply. The terminal event closes what is still open.
func (d *decoder) finish() {
	indexes := make([]int, 0, len(d.blocks))
	for i := range d.blocks {
		indexes = append(indexes, i)
	}
	slices.Sort(indexes)
	for _, i := range indexes {
		d.close(i)
	}
	d.emit(llm.Finish{Stop: d.stopReason()})
	d.done = true
}

func (d *decoder) stopReason() llm.StopReason {
	switch d.stop {
	case "end_turn":
		if d.calls > 0 { // gateways say so with calls, too
			return llm.StopToolUse
		}
		return llm.StopEndTurn
	case "tool_use":
		return llm.StopToolUse
	case "max_tokens":
		return llm.StopMaxTokens
	case "stop_sequence":
		return llm.StopSequence
	case "pause_turn":
		return llm.StopPause
	case "refusal":
		return llm.StopRefusal
	case "model_context_window_exceeded":
		return llm.StopContextWindow
	}
	if d.calls > 0 {
		return llm.StopToolUse
	}
	return llm.StopUnknown
}
