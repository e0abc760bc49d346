// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
	"github.com/fiducial-dev/fiducial/provider/internal/reply"
)

// A block of a reply is numbered by its item and its place in it (E-249).
const (
	partsPerItem = 1 << 10
	maxItems     = 1 << 16
)

// An itemStream is the decoder of Responses.
type itemStream struct {
	vendor string
	names  *wire.Names
	out    []llm.Event

	items   map[int]*openItem
	slots   map[int]int    // by output index, the item that it stands for now, where that is another
	ids     map[string]int // by id, the item that began with it
	stop    llm.StopReason // set by the terminal event
	calls   int
	refused bool
}

// An openItem is an item of which something was seen.
type openItem struct {
	kind   string // as the server names it; empty until it did
	blocks map[int]*openBlock
	held   strings.Builder // arguments of a call that is not named yet
	done   bool            // the item is whole, its blocks are closed
}

// An openBlock is a block that grows.
type openBlock struct {
	kind    llm.BlockKind
	refusal bool
	text    strings.Builder // what was handed on
	settled bool            // the final value has come
	summary int             // the part of a reasoning summary that came last
}

func newItemStream(vendor string, names *wire.Names) *itemStream {
	return &itemStream{vendor: vendor, names: names, items: map[int]*openItem{}, slots: map[int]int{}, ids: map[string]int{}}
}

func (s *itemStream) Complete() bool       { return s.stop != "" }
func (s *itemStream) Over() bool           { return s.stop != "" }
func (s *itemStream) emit(ev llm.Event)    { s.out = append(s.out, ev) }
func (s *itemStream) Whole(b []byte) error { return s.wholeReply(b) }

func (s *itemStream) Drain() []llm.Event {
	out := s.out
	s.out = s.out[:0]
	return out
}

func (s *itemStream) Take(ev reply.Frame) (bool, error) {
	if strings.TrimSpace(ev.Data) == "[DONE]" {
		return true, nil
	}
	var e itemEvent
	err := json.Unmarshal([]byte(ev.Data), &e)
	if e.Type == "" {
		e.Type = ev.Type
	}
	var shape *json.UnmarshalTypeError
	if err != nil && (known(e.Type) || !errors.As(err, &shape)) {
		return true, reply.Malformed("json", "an event cannot be read: %v", err)
	}
	if e.Type == "error" || e.Type == "" && isFault(e.Error) { // nested or flat, E-251
		return true, streamError([]byte(ev.Data))
	}
	if e.OutputIndex < 0 || e.OutputIndex >= maxItems || e.ContentIndex < 0 || e.ContentIndex >= partsPerItem {
		return true, reply.Malformed("index", "an event is for item %d, part %d", e.OutputIndex, e.ContentIndex)
	}
	s.place(&e)
	return true, s.event(&e, ev.Data)
}

// place finds the item of an event: by its id where that is known, else by its
// output index, which compatible servers give to several items.
func (s *itemStream) place(e *itemEvent) {
	if e.Type == "response.output_item.added" {
		return
	}
	id := e.ItemID
	if e.Item != nil {
		id = e.Item.ID
	}
	if slot, ok := s.ids[id]; ok {
		e.OutputIndex = slot
	} else if slot, ok := s.slots[e.OutputIndex]; ok {
		e.OutputIndex = slot
	}
}

// known reports whether events of a type are read.
func known(kind string) bool {
	switch kind {
	case "response.output_item.added", "response.output_item.done",
		"response.output_text.delta", "response.output_text.done",
		"response.refusal.delta", "response.refusal.done",
		"response.reasoning_text.delta", "response.reasoning_text.done", "response.reasoning_summary_text.delta",
		"response.function_call_arguments.delta", "response.function_call_arguments.done",
		"response.completed", "response.done", "response.incomplete", "response.failed", "response.cancelled", "error":
		return true
	}
	return false
}

func (s *itemStream) event(e *itemEvent, data string) error {
	switch e.Type {
	case "response.created", "response.in_progress", "response.queued",
		"response.content_part.added", "response.content_part.done",
		"response.reasoning_summary_part.added", "response.reasoning_summary_part.done",
		"response.reasoning_summary_text.done":
		return nil // the item's own end says it all again
	case "response.output_item.added":
		return s.added(e)
	case "response.output_item.done":
		if e.Item == nil {
			return reply.Malformed("no_value", "item %d ended without its value", e.OutputIndex)
		}
		return s.finished(e.OutputIndex, e.Item, true)
	case "response.output_text.delta":
		return s.grow(e, llm.BlockText, false, e.Delta)
	case "response.refusal.delta":
		return s.grow(e, llm.BlockText, true, e.Delta)
	case "response.output_text.done":
		return s.settle(e, llm.BlockText, false, e.Text)
	case "response.refusal.done":
		return s.settle(e, llm.BlockText, true, e.Refusal)
	case "response.reasoning_text.delta", "response.reasoning_summary_text.delta":
		return s.think(e)
	case "response.reasoning_text.done":
		return nil
	case "response.function_call_arguments.delta":
		return s.argue(e, e.Delta)
	case "response.function_call_arguments.done":
		return s.settleArgs(e)
	case "response.completed", "response.done", "response.incomplete", "response.failed", "response.cancelled":
		return s.terminal(e)
	}
	s.emit(reply.Unhandled(s.vendor, e.Type, data))
	return nil
}

// item is the item of an event, made when it is new.
func (s *itemStream) item(index int, kind string) (*openItem, error) {
	it := s.items[index]
	if it == nil {
		it = &openItem{kind: kind, blocks: map[int]*openBlock{}}
		s.items[index] = it
	}
	switch {
	case it.kind == "":
		it.kind = kind
	case kind != "" && it.kind != kind:
		return nil, reply.Malformed("kind_differs", "item %d is a %s and a %s", index, it.kind, kind)
	}
	return it, nil
}

func (s *itemStream) added(e *itemEvent) error {
	if e.Item == nil {
		return reply.Malformed("no_value", "item %d began without its value", e.OutputIndex)
	}
	s.renumber(e)
	it, err := s.item(e.OutputIndex, e.Item.Type)
	if err != nil {
		return err
	}
	switch it.kind {
	case "function_call":
		// A call without an id could not be answered: it waits for its end (E-250).
		if e.Item.CallID != "" && e.Item.Name != "" {
			s.startCall(e.OutputIndex, it, e.Item)
		}
	case "reasoning":
		s.block(e.OutputIndex, 0, it, llm.BlockThinking)
	}
	return nil
}

// renumber gives an item that begins a number of its own where its output index is
// that of another.
func (s *itemStream) renumber(e *itemEvent) {
	if it := s.items[e.OutputIndex]; it != nil && (it.done || it.kind != "" && it.kind != e.Item.Type) {
		free := 0
		for i := range s.items {
			free = max(free, i+1)
		}
		s.slots[e.OutputIndex], e.OutputIndex = free, free
	}
	if e.Item.ID != "" {
		s.ids[e.Item.ID] = e.OutputIndex
	}
}

// block is a block of an item, started when it is new.
func (s *itemStream) block(item, part int, it *openItem, kind llm.BlockKind) *openBlock {
	b := it.blocks[part]
	if b == nil {
		b = &openBlock{kind: kind}
		it.blocks[part] = b
		s.emit(llm.BlockStart{Index: item*partsPerItem + part, Kind: kind})
	}
	return b
}

// write hands on more of a block.
func (s *itemStream) write(item, part int, b *openBlock, text string) {
	if text != "" {
		b.text.WriteString(text)
		s.emit(llm.BlockDelta{Index: item*partsPerItem + part, Text: text})
	}
}

// grow takes a piece of a message.
func (s *itemStream) grow(e *itemEvent, kind llm.BlockKind, refusal bool, text string) error {
	it, err := s.item(e.OutputIndex, "message")
	if err != nil {
		return err
	}
	b := s.block(e.OutputIndex, e.ContentIndex, it, kind)
	if b.settled || it.done {
		return reply.Malformed("delta_after_done", "item %d goes on after its end", e.OutputIndex)
	}
	b.refusal = b.refusal || refusal
	s.refused = s.refused || refusal
	s.write(e.OutputIndex, e.ContentIndex, b, text)
	return nil
}

// settle takes the final value of a part of a message.
func (s *itemStream) settle(e *itemEvent, kind llm.BlockKind, refusal bool, final *string) error {
	if final == nil {
		return reply.Malformed("no_value", "a part of item %d ended without its value", e.OutputIndex)
	}
	if err := s.grow(e, kind, refusal, ""); err != nil {
		return err
	}
	return s.close(e.OutputIndex, e.ContentIndex, s.items[e.OutputIndex].blocks[e.ContentIndex], *final)
}

// close holds what a block has against its final value. The value counts: what
// did not come in pieces is handed on now (E-247).
func (s *itemStream) close(item, part int, b *openBlock, final string) error {
	rest, ok := strings.CutPrefix(final, b.text.String())
	if !ok {
		return reply.Malformed("done_differs", "the pieces of item %d are not what it ended as", item)
	}
	if b.settled && rest != "" {
		return reply.Malformed("done_differs", "item %d has two final values", item)
	}
	s.write(item, part, b, rest)
	b.settled = true
	return nil
}

// think takes a piece of reasoning. The parts of a summary become one text, with
// an empty line between them.
func (s *itemStream) think(e *itemEvent) error {
	it, err := s.item(e.OutputIndex, "reasoning")
	if err != nil {
		return err
	}
	b := s.block(e.OutputIndex, 0, it, llm.BlockThinking)
	if it.done {
		return reply.Malformed("delta_after_done", "item %d goes on after its end", e.OutputIndex)
	}
	place := max(e.SummaryIndex, e.ContentIndex)
	if place != b.summary && b.text.Len() > 0 {
		s.write(e.OutputIndex, 0, b, "\n\n")
	}
	b.summary = place
	s.write(e.OutputIndex, 0, b, e.Delta)
	return nil
}

func (s *itemStream) startCall(index int, it *openItem, v *outputItem) {
	b := &openBlock{kind: llm.BlockCall}
	it.blocks[0] = b
	s.calls++
	s.emit(llm.BlockStart{Index: index * partsPerItem, Kind: llm.BlockCall, ID: string(v.CallID), Name: s.names.Real(v.Name)})
	s.write(index, 0, b, it.held.String())
}

// argue takes a piece of a call's arguments.
func (s *itemStream) argue(e *itemEvent, text string) error {
	it, err := s.item(e.OutputIndex, "function_call")
	if err != nil {
		return err
	}
	b := it.blocks[0]
	switch {
	case it.done, b != nil && b.settled:
		return reply.Malformed("delta_after_done", "item %d goes on after its end", e.OutputIndex)
	case b == nil:
		it.held.WriteString(text)
	default:
		s.write(e.OutputIndex, 0, b, text)
	}
	return nil
}

func (s *itemStream) settleArgs(e *itemEvent) error {
	if e.Arguments == nil {
		return reply.Malformed("no_value", "the arguments of item %d ended without their value", e.OutputIndex)
	}
	it, err := s.item(e.OutputIndex, "function_call")
	if err != nil {
		return err
	}
	b := it.blocks[0]
	if b == nil { // not named yet: the item's end will tell
		return nil
	}
	return s.close(e.OutputIndex, 0, b, string(*e.Arguments))
}
