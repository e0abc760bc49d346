// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"bytes"
	"slices"

	"github.com/fiducial-dev/fiducial/llm"
)

// An imprint is what tools and messages held, so that one sees whether somebody who
// had them in hand has written into them. Texts cannot be written to, so they are
// neither copied nor, while they are the same ones, read; lists and data are copied
// once. What is stored is compared by digest instead.
type imprint struct {
	tools    []llm.Tool
	messages []llm.Message
}

func imprintOf(tools []llm.Tool, messages []llm.Message) imprint {
	p := imprint{slices.Clone(tools), slices.Clone(messages)}
	for i := range p.tools {
		p.tools[i].Schema = bytes.Clone(p.tools[i].Schema)
	}
	for i := range p.messages {
		parts := slices.Clone(p.messages[i].Parts)
		for k := range parts {
			parts[k] = copyOf(parts[k])
		}
		p.messages[i].Parts = parts
	}
	return p
}

// copyOf is a part that shares nothing which can be written to.
func copyOf(part llm.Part) llm.Part {
	switch p := part.(type) {
	case llm.Text:
		p.Opaque.Data = bytes.Clone(p.Opaque.Data)
		return p
	case llm.Thinking:
		p.Opaque.Data = bytes.Clone(p.Opaque.Data)
		return p
	case llm.Call:
		p.Opaque.Data = bytes.Clone(p.Opaque.Data)
		return p
	case llm.System:
		p.Data = bytes.Clone(p.Data)
		return p
	case llm.Image:
		p.Data = bytes.Clone(p.Data)
		return p
	case llm.Result:
		p.Images, p.Notes = slices.Clone(p.Images), slices.Clone(p.Notes)
		for i := range p.Images {
			p.Images[i].Data = bytes.Clone(p.Images[i].Data)
		}
		for i := range p.Notes {
			p.Notes[i].Data = bytes.Clone(p.Notes[i].Data)
		}
		return p
	}
	return part
}

// matches reports whether the values hold what they held.
func (p *imprint) matches(tools []llm.Tool, messages []llm.Message) bool {
	return sameTools(tools, p.tools) && slices.EqualFunc(messages, p.messages, func(a, b llm.Message) bool {
		return a.Role == b.Role && a.Stop == b.Stop && slices.EqualFunc(a.Parts, b.Parts, samePart)
	})
}

func samePart(a, b llm.Part) bool {
	switch a := a.(type) {
	case llm.Text:
		b, ok := b.(llm.Text)
		return ok && a.Text == b.Text && sameOpaque(a.Opaque, b.Opaque)
	case llm.Thinking:
		b, ok := b.(llm.Thinking)
		return ok && a.Text == b.Text && sameOpaque(a.Opaque, b.Opaque)
	case llm.Call:
		b, ok := b.(llm.Call)
		return ok && a.ID == b.ID && a.Name == b.Name && a.Args == b.Args && sameOpaque(a.Opaque, b.Opaque)
	case llm.System:
		b, ok := b.(llm.System)
		return ok && sameNote(a, b)
	case llm.Image:
		b, ok := b.(llm.Image)
		return ok && sameImage(a, b)
	case llm.Result:
		b, ok := b.(llm.Result)
		return ok && a.CallID == b.CallID && a.Name == b.Name && a.Status == b.Status && a.Summary == b.Summary && a.Content == b.Content &&
			slices.EqualFunc(a.Images, b.Images, sameImage) && slices.EqualFunc(a.Notes, b.Notes, sameNote)
	}
	return a == nil && b == nil
}

func sameOpaque(a, b llm.Opaque) bool { return a.Vendor == b.Vendor && bytes.Equal(a.Data, b.Data) }

func sameImage(a, b llm.Image) bool { return a.Media == b.Media && bytes.Equal(a.Data, b.Data) }

func sameNote(a, b llm.System) bool {
	return a.Kind == b.Kind && a.Text == b.Text && bytes.Equal(a.Data, b.Data)
}
