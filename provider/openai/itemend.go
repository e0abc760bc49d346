// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
	"github.com/fiducial-dev/fiducial/provider/internal/reply"
)

// finished takes the final value of an item and closes its blocks. A value that is
// not exact, that of an item that was cut, closes them as they are.
func (s *itemStream) finished(index int, v *outputItem, exact bool) error {
	it, err := s.item(index, v.Type)
	if err != nil {
		return err
	}
	if it.done {
		return nil
	}
	it.done = true
	switch v.Type {
	case "message":
		err = s.finishMessage(index, it, v, exact)
	case "function_call":
		err = s.finishCall(index, it, v, exact)
	case "reasoning":
		s.finishReasoning(index, it, v)
	default:
		s.emit(reply.Unhandled(s.vendor, "item "+v.Type, v.ID))
		if len(v.raw) > 0 { // kept on an empty text, and sent back as it came
			s.block(index, 0, it, llm.BlockText)
			s.stopBlocks(index, it, s.opaque(itemData{Type: "item", Item: v.raw}))
		}
	}
	return err
}

func (s *itemStream) finishMessage(index int, it *openItem, v *outputItem, exact bool) error {
	for i, p := range parts(v.Content) {
		if p.Type != "output_text" && p.Type != "refusal" && p.Type != "text" || i >= partsPerItem {
			continue
		}
		b := s.block(index, i, it, llm.BlockText)
		s.refused = s.refused || p.Type == "refusal"
		if err := s.close(index, i, b, p.Text+p.Refusal); err != nil && exact {
			return err
		}
	}
	var phase llm.Opaque
	if v.Phase != "" {
		phase = s.opaque(itemData{Type: "message", Phase: v.Phase})
	}
	s.stopBlocks(index, it, phase)
	return nil
}

func (s *itemStream) finishCall(index int, it *openItem, v *outputItem, exact bool) error {
	if it.blocks[0] == nil {
		if v.Name == "" {
			return &llm.Error{Class: llm.ClassMalformedToolCall, Code: "no_name", Message: "the model called a tool without a name"}
		}
		s.startCall(index, it, v)
	}
	if v.Arguments == nil && exact {
		return reply.Malformed("no_value", "item %d ended without its arguments", index)
	}
	if v.Arguments != nil {
		if err := s.close(index, 0, it.blocks[0], string(*v.Arguments)); err != nil && exact {
			return err
		}
	}
	s.stopBlocks(index, it, llm.Opaque{})
	return nil
}

// finishReasoning closes reasoning with all that it needs to go back (E-248).
func (s *itemStream) finishReasoning(index int, it *openItem, v *outputItem) {
	b := s.block(index, 0, it, llm.BlockThinking)
	if b.text.Len() == 0 {
		s.write(index, 0, b, readable(v))
	}
	d := itemData{Type: "reasoning", ID: v.ID, Summary: v.Summary, Encrypted: v.Encrypted}
	if len(parts(v.Content)) > 0 {
		d.Content = v.Content
	}
	s.stopBlocks(index, it, s.opaque(d))
}

// readable is the text of reasoning: its content where that is shown, else its
// summary.
func readable(v *outputItem) string {
	list := parts(v.Content)
	if len(list) == 0 {
		list = parts(v.Summary)
	}
	texts := make([]string, len(list))
	for i, p := range list {
		texts[i] = p.Text
	}
	return strings.Join(texts, "\n\n")
}

func (s *itemStream) stopBlocks(index int, it *openItem, o llm.Opaque) {
	it.done = true
	for _, part := range slices.Sorted(maps.Keys(it.blocks)) {
		s.emit(llm.BlockStop{Index: index*partsPerItem + part, Opaque: o})
	}
}

func (s *itemStream) opaque(d itemData) llm.Opaque {
	data, err := wire.Marshal(d)
	if err != nil {
		return llm.Opaque{}
	}
	return llm.Opaque{Vendor: s.vendor, Data: data}
}

// wholeReply reads a response that came in one piece.
func (s *itemStream) wholeReply(body []byte) error {
	var r responseBody
	if err := json.Unmarshal(body, &r); err != nil {
		return reply.Malformed("json", "the reply cannot be read: %v", err)
	}
	if r.Status == "" {
		return streamError(body)
	}
	return s.terminal(&itemEvent{Type: "response." + r.Status, Response: &r})
}

// terminal takes the end of the response, with items that came only with it.
func (s *itemStream) terminal(e *itemEvent) error {
	r := e.Response
	if r == nil {
		return reply.Malformed("no_value", "the response ended without its value")
	}
	if u := r.Usage.usage(); u.Known() {
		s.emit(llm.UsageReport{Usage: u})
	}
	end := e.Type
	switch r.Status {
	case "incomplete", "failed", "cancelled": // vLLM says completed of those, too
		end = "response." + r.Status
	}
	switch end {
	case "response.completed", "response.done", "response.incomplete":
	default:
		return failed(end, r)
	}
	exact := end != "response.incomplete"
	bare := len(s.items) == 0 // nothing was streamed: the end tells all
	for i := range r.Output {
		it := s.items[i]
		if !bare && (it == nil || it.done || it.kind != r.Output[i].Type) {
			continue // it was told already; some servers count differently here
		}
		if err := s.finished(i, &r.Output[i], exact); err != nil {
			return err
		}
	}
	for _, i := range slices.Sorted(maps.Keys(s.items)) {
		if it := s.items[i]; !it.done {
			s.stopBlocks(i, it, llm.Opaque{})
		}
	}
	s.stop = s.reason(exact, r)
	return nil
}

func failed(kind string, r *responseBody) error {
	if isFault(r.Error) {
		return streamError(r.Error)
	}
	return &llm.Error{Class: llm.ClassServer, Code: strings.TrimPrefix(kind, "response."), Message: "the response failed and does not say why"}
}

func (s *itemStream) reason(exact bool, r *responseBody) llm.StopReason {
	switch {
	case !exact && r.Incomplete != nil && r.Incomplete.Reason == "max_output_tokens":
		return llm.StopMaxTokens
	case !exact && r.Incomplete != nil && r.Incomplete.Reason == "content_filter":
		return llm.StopContentFilter
	case !exact:
		return llm.StopIncomplete
	case s.calls > 0:
		return llm.StopToolUse
	case s.refused:
		return llm.StopRefusal
	}
	return llm.StopEndTurn
}

func (s *itemStream) End() error {
	s.emit(llm.Finish{Stop: s.stop})
	return nil
}
