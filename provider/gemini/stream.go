// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
	"github.com/fiducial-dev/fiducial/provider/internal/reply"
)

// A chunk is one event of a stream, or a whole reply.
type chunk struct {
	Candidates []candidate     `json:"candidates"`
	Usage      *usageMetadata  `json:"usageMetadata"`
	Error      json.RawMessage `json:"error"`
	Feedback   *struct {
		BlockReason string `json:"blockReason"`
		Message     string `json:"blockReasonMessage"`
	} `json:"promptFeedback"`
}

type candidate struct {
	Index   int `json:"index"`
	Content struct {
		Parts []part `json:"parts"`
	} `json:"content"`
	Finish  string `json:"finishReason"`
	Message string `json:"finishMessage"`
}

type part struct {
	Text      *string         `json:"text"`
	Thought   bool            `json:"thought"`
	Signature string          `json:"thoughtSignature"`
	Call      *functionCall   `json:"functionCall"`
	Inline    json.RawMessage `json:"inlineData"`
	Code      json.RawMessage `json:"executableCode"`
	CodeOut   json.RawMessage `json:"codeExecutionResult"`
}

type functionCall struct {
	ID   reply.LooseText `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"` // raw: digits and the order of keys stay
}

type usageMetadata struct {
	Prompt     reply.LooseCount `json:"promptTokenCount"`
	ToolPrompt reply.LooseCount `json:"toolUsePromptTokenCount"`
	Cached     reply.LooseCount `json:"cachedContentTokenCount"`
	Candidates reply.LooseCount `json:"candidatesTokenCount"`
	Thoughts   reply.LooseCount `json:"thoughtsTokenCount"`
	Total      reply.LooseCount `json:"totalTokenCount"`
}

// usage is what the report says, nothing when it holds nothing but zeros. Each
// report of a stream counts from its start (E-257).
func (u *usageMetadata) usage() llm.Usage {
	var out llm.Usage
	if u == nil {
		return out
	}
	out.Input = u.Prompt.Plus(u.ToolPrompt.Count)
	out.Output = u.Candidates.Plus(u.Thoughts.Count)
	if out.Input.Value()+out.Output.Value() == 0 {
		return llm.Usage{}
	}
	out.Total, out.CacheRead, out.Reasoning = u.Total.Count, u.Cached.Count, u.Thoughts.Count
	return out
}

// A stream is the decoder of a reply. Its blocks follow each other; one is open at
// a time.
type stream struct {
	names *wire.Names
	out   []llm.Event

	blocks int // opened so far
	open   bool
	kind   llm.BlockKind
	empty  bool     // of the open block
	data   partData // of the open block

	calls  int
	finish string
}

func newStream(names *wire.Names) *stream { return &stream{names: names} }

func (s *stream) Complete() bool    { return s.finish != "" }
func (s *stream) Over() bool        { return false } // usage may follow
func (s *stream) emit(ev llm.Event) { s.out = append(s.out, ev) }

// Drain returns the events since the last call, valid until the next call of any
// method.
func (s *stream) Drain() []llm.Event {
	out := s.out
	s.out = s.out[:0]
	return out
}

// Whole reads a reply that came in one piece: one chunk, or an array of them.
func (s *stream) Whole(data []byte) error {
	if data = bytes.TrimSpace(data); len(data) > 0 && data[0] == '[' {
		var list []json.RawMessage
		if err := json.Unmarshal(data, &list); err != nil {
			return reply.Malformed("json", "the reply cannot be read: %v", err)
		}
		for _, c := range list {
			if err := s.take(c); err != nil {
				return err
			}
		}
		return nil
	}
	return s.take(data)
}

// Take reads one event.
func (s *stream) Take(ev reply.Frame) (bool, error) { return true, s.take([]byte(ev.Data)) }

func (s *stream) take(data []byte) error {
	if string(bytes.TrimSpace(data)) == "[DONE]" { // of gateways
		return nil
	}
	var c chunk
	if err := json.Unmarshal(data, &c); err != nil {
		return reply.Malformed("json", "an event is no chunk of a reply: %v", err)
	}
	if len(c.Error) > 0 && string(c.Error) != "null" {
		return streamError(data)
	}
	if u := c.Usage.usage(); u.Known() {
		s.emit(llm.UsageReport{Usage: u})
	}
	if c.Feedback != nil && c.Feedback.BlockReason != "" && len(c.Candidates) == 0 {
		return &llm.Error{
			Class: llm.ClassContentFilter, Code: c.Feedback.BlockReason,
			Message: "the provider refuses to answer this prompt. " + c.Feedback.Message,
		}
	}
	if len(c.Candidates) == 0 && c.Usage == nil {
		s.emit(reply.Unhandled(Vendor, "chunk", string(data)))
	}
	for i := range c.Candidates {
		if c.Candidates[i].Index != 0 {
			continue // one reply was asked for
		}
		if err := s.candidate(&c.Candidates[i]); err != nil {
			return err
		}
	}
	return nil
}

func (s *stream) candidate(c *candidate) error {
	for i := range c.Content.Parts {
		if err := s.part(&c.Content.Parts[i]); err != nil {
			return err
		}
	}
	switch c.Finish {
	case "", "FINISH_REASON_UNSPECIFIED":
		return nil
	case "MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL":
		return &llm.Error{
			Class: llm.ClassMalformedToolCall, Code: c.Finish,
			Message: fmt.Sprintf("the model's call was no call. %s", c.Message),
		}
	case "MALFORMED_RESPONSE":
		return reply.Malformed(c.Finish, "the model's reply was malformed. %s", c.Message)
	case "MISSING_THOUGHT_SIGNATURE":
		return &llm.Error{Class: llm.ClassInvalidRequest, Code: c.Finish, Message: "a call was sent back without its signature. " + c.Message}
	}
	s.finish = c.Finish
	return nil
}

func (s *stream) part(p *part) error {
	switch {
	case p.Call != nil:
		return s.call(p)
	case p.Text != nil && p.Thought:
		s.words(llm.BlockThinking, *p.Text, p.Signature)
	case p.Text != nil:
		s.words(llm.BlockText, *p.Text, p.Signature)
	case len(p.Inline) > 0:
		s.emit(reply.Unhandled(Vendor, "inlineData", string(p.Inline)))
	case len(p.Code) > 0:
		s.served("executableCode", p.Code, p)
	case len(p.CodeOut) > 0:
		s.served("codeExecutionResult", p.CodeOut, p)
	case p.Signature != "": // a signature alone
		s.words(llm.BlockText, "", p.Signature)
	}
	return nil
}

// served takes a part in which a server tool tells what it did. It is kept on an
// empty text, and sent back as it came.
func (s *stream) served(kind string, value json.RawMessage, p *part) {
	s.emit(reply.Unhandled(Vendor, kind, string(value)))
	var j wire.JSON
	j.Open('{')
	j.Key(kind)
	j.Raw(value)
	if p.Thought {
		j.Key("thought")
		j.Bool(true)
	}
	if p.Signature != "" {
		j.Field("thoughtSignature", p.Signature)
	}
	j.Close('}')
	s.close()
	s.start(llm.BlockStart{Kind: llm.BlockText})
	s.data.Part = string(j.Bytes())
	s.close()
}

// words takes a piece of text or of thinking. Pieces without a signature are one
// part of the reply. A signature without words belongs to the part before it; one
// with words makes a part of its own, since signed parts must not be joined with
// others.
func (s *stream) words(kind llm.BlockKind, text, signature string) {
	if text == "" && signature == "" {
		return
	}
	if text == "" && s.open && s.kind == kind && s.data.Signature == "" {
		s.data.Signature = signature
		s.close()
		return
	}
	if !s.open || s.kind != kind || signature != "" && !s.empty || s.data.Signature != "" {
		s.close()
		s.start(llm.BlockStart{Kind: kind})
	}
	if text != "" {
		s.empty = false
		s.emit(llm.BlockDelta{Index: s.blocks - 1, Text: text})
	}
	if signature != "" {
		s.data.Signature = signature
		s.close()
	}
}

// call takes a call, which comes whole in one part (E-255).
func (s *stream) call(p *part) error {
	if p.Call.Name == "" {
		return &llm.Error{Class: llm.ClassMalformedToolCall, Code: "no_name", Message: "the model called a function without a name"}
	}
	s.close()
	s.start(llm.BlockStart{Kind: llm.BlockCall, ID: string(p.Call.ID), Name: s.names.Real(p.Call.Name)})
	if len(p.Call.Args) > 0 && string(p.Call.Args) != "null" {
		s.emit(llm.BlockDelta{Index: s.blocks - 1, Text: string(p.Call.Args)})
	}
	s.data = partData{Signature: p.Signature, ID: string(p.Call.ID)}
	s.close()
	s.calls++
	return nil
}

// start opens the next block.
func (s *stream) start(b llm.BlockStart) {
	b.Index = s.blocks
	s.blocks++
	s.open, s.kind, s.empty, s.data = true, b.Kind, true, partData{}
	s.emit(b)
}

// close closes the open block, if there is one.
func (s *stream) close() {
	if !s.open {
		return
	}
	stop := llm.BlockStop{Index: s.blocks - 1}
	if s.data != (partData{}) {
		if data, err := wire.Marshal(s.data); err == nil {
			stop.Opaque = llm.Opaque{Vendor: Vendor, Data: data}
		}
	}
	s.open = false
	s.emit(stop)
}

// end closes what is open and the reply.
func (s *stream) End() error {
	s.close()
	s.emit(llm.Finish{Stop: s.stop()})
	return nil
}

// stop is the reason in our words; STOP is said with calls and without (E-259).
func (s *stream) stop() llm.StopReason {
	switch s.finish {
	case "STOP":
		if s.calls > 0 {
			return llm.StopToolUse
		}
		return llm.StopEndTurn
	case "MAX_TOKENS":
		return llm.StopMaxTokens
	case "SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII", "LANGUAGE",
		"IMAGE_SAFETY", "IMAGE_PROHIBITED_CONTENT", "IMAGE_RECITATION":
		return llm.StopContentFilter
	case "OTHER", "TOO_MANY_TOOL_CALLS", "IMAGE_OTHER", "NO_IMAGE":
		return llm.StopIncomplete
	}
	if s.calls > 0 {
		return llm.StopToolUse
	}
	return llm.StopUnknown
}
