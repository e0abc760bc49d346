// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fiducial-dev/fiducial/llm"
)

// What comes from outside is made storable before it becomes history, so that
// what is in the journal is what was in memory: text that is not UTF-8 is made so,
// for neither JSON nor any provider can take it, and secrets are taken out. Opaque vendor data is signed or encrypted and is
// not touched; a thinking part with such data whose text holds a secret is left
// out whole.

func (c *core) mask(m llm.Message) llm.Message {
	if c.cfg.masker == nil && isText(m) {
		return m
	}
	out := m
	out.Parts = make([]llm.Part, 0, len(m.Parts))
	for _, p := range m.Parts {
		if p, keep := c.maskPart(p); keep {
			out.Parts = append(out.Parts, p)
		}
	}
	return out
}

// text is s as it may be stored.
func (c *core) text(s string) string {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, "\uFFFD")
	}
	if c.cfg.masker != nil {
		s = c.cfg.masker.Text(s)
	}
	return s
}

func (c *core) maskAll(messages []llm.Message) []llm.Message {
	if c.cfg.masker == nil && !slices.ContainsFunc(messages, func(m llm.Message) bool { return !isText(m) }) {
		return messages
	}
	out := make([]llm.Message, len(messages))
	for i, m := range messages {
		out[i] = c.mask(m)
	}
	return out
}

func (c *core) maskPart(p llm.Part) (masked llm.Part, keep bool) {
	k := c.cfg.masker
	switch p := p.(type) {
	case llm.Text:
		p.Text = c.text(p.Text)
		return p, true
	case llm.Thinking:
		if k != nil && !p.Opaque.IsZero() && k.Found(p.Text) {
			return nil, false
		}
		p.Text = c.text(p.Text)
		return p, true
	case llm.System:
		return c.maskNote(p), true
	case llm.Call:
		p.ID, p.Name, p.Args = validText(p.ID), validText(p.Name), c.text(p.Args)
		return p, true
	case llm.Result:
		return c.maskResult(p), true
	case llm.Image:
		p.Media = validText(p.Media)
		return p, true
	}
	return p, true
}

func (c *core) maskNote(n llm.System) llm.System {
	n.Kind, n.Text = validText(n.Kind), c.text(n.Text)
	return n
}

func (c *core) maskResult(r llm.Result) llm.Result {
	r.Summary, r.Content = c.text(r.Summary), c.text(r.Content)
	if len(r.Notes) > 0 {
		r.Notes = slices.Clone(r.Notes)
		for i := range r.Notes {
			r.Notes[i] = c.maskNote(r.Notes[i])
		}
	}
	return r
}

func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

// isText reports whether all text of the message is UTF-8.
func isText(m llm.Message) bool {
	for _, p := range m.Parts {
		ok := true
		switch p := p.(type) {
		case llm.Text:
			ok = utf8.ValidString(p.Text)
		case llm.Thinking:
			ok = utf8.ValidString(p.Text)
		case llm.System:
			ok = utf8.ValidString(p.Kind) && utf8.ValidString(p.Text)
		case llm.Call:
			ok = utf8.ValidString(p.ID) && utf8.ValidString(p.Name) && utf8.ValidString(p.Args)
		case llm.Result:
			ok = utf8.ValidString(p.Summary) && utf8.ValidString(p.Content)
		case llm.Image:
			ok = utf8.ValidString(p.Media)
		}
		if !ok {
			return false
		}
	}
	return true
}
