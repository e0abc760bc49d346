// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"bytes"
	"slices"
)

// Clone is a copy of m that shares nothing with it which could be written to: not the
// list of parts, and no bytes behind a part, those of images included.
func (m Message) Clone() Message {
	m.Parts = CloneParts(m.Parts)
	return m
}

// CloneMessages is a list of clones; see [Message.Clone]. Nil stays nil.
func CloneMessages(messages []Message) []Message {
	out := slices.Clone(messages)
	for i := range out {
		out[i] = out[i].Clone()
	}
	return out
}

// CloneParts is a list of copies of parts that share nothing with them which could be
// written to. Nil stays nil, also where a part is missing.
func CloneParts(parts []Part) []Part {
	out := slices.Clone(parts)
	for i, part := range out {
		switch p := part.(type) {
		case Text:
			if len(p.Opaque.Data) > 0 { // else it is the same, and costs nothing
				p.Opaque = p.Opaque.clone()
				out[i] = p
			}
		case Thinking:
			p.Opaque = p.Opaque.clone()
			out[i] = p
		case Call:
			if len(p.Opaque.Data) > 0 {
				out[i] = p.Clone()
			}
		case System:
			if len(p.Data) > 0 {
				p.Data = bytes.Clone(p.Data)
				out[i] = p
			}
		case Image:
			p.Data = bytes.Clone(p.Data)
			out[i] = p
		case Result:
			if len(p.Images) > 0 || len(p.Notes) > 0 {
				out[i] = p.Clone()
			}
		}
	}
	return out
}

// Clone is a copy of c that shares no bytes with it.
func (c Call) Clone() Call {
	c.Opaque = c.Opaque.clone()
	return c
}

// Clone is a copy of r that shares neither lists nor bytes with it.
func (r Result) Clone() Result {
	r.Images, r.Notes = slices.Clone(r.Images), slices.Clone(r.Notes)
	for i := range r.Images {
		r.Images[i].Data = bytes.Clone(r.Images[i].Data)
	}
	for i := range r.Notes {
		r.Notes[i].Data = bytes.Clone(r.Notes[i].Data)
	}
	return r
}

func (o Opaque) clone() Opaque {
	o.Data = bytes.Clone(o.Data)
	return o
}

// Clone is a copy of s that shares nothing with it which could be written to.
func (s Settings) Clone() Settings {
	s.Temperature, s.TopP, s.TopK = clonePtr(s.Temperature), clonePtr(s.TopP), clonePtr(s.TopK)
	s.Stop = slices.Clone(s.Stop)
	return s
}

func clonePtr[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}

// CloneTools is a list of copies of tools that share nothing with them which could be
// written to. Nil stays nil.
func CloneTools(tools []Tool) []Tool {
	out := slices.Clone(tools)
	for i := range out {
		out[i].Schema = bytes.Clone(out[i].Schema)
	}
	return out
}
