// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// What comes from outside is made storable before it becomes history, so that
// what is in the journal is what was in memory: text that is not UTF-8 is made so,
// for neither JSON nor any provider can take it, and secrets are taken out. Opaque
// vendor data is signed or encrypted, so secrets are not looked for in it; a thinking
// part with such data whose text holds a secret is left out whole. Vendor data that is
// not JSON no vendor has sent, and none would take back: it is dropped, with a warning.
// A caller, or a hook, that gives data which is not JSON is told so: see checkData.

func (c *core) mask(m llm.Message) llm.Message {
	if c.cfg.masker == nil && machine.StorableMessage(m) == nil {
		return m
	}
	out := m
	out.Stop = llm.StopReason(c.word(string(m.Stop)))
	out.Parts = make([]llm.Part, 0, len(m.Parts))
	for _, p := range m.Parts {
		if p, keep := c.maskPart(p); keep {
			out.Parts = append(out.Parts, p)
		}
	}
	if m.Role != llm.RoleUser {
		keepApart(m.Parts, out.Parts)
	}
	out.Parts = c.maskAcross(out.Parts)
	return out
}

// text is s as it may be stored.
func (c *core) text(s string) string {
	s = validText(s)
	if c.cfg.masker != nil {
		s = c.cfg.masker.Text(s)
	}
	return s
}

// word is text for what is nearly always one of the words of package llm, in which
// nothing is secret.
func (c *core) word(s string) string {
	switch s {
	case "", string(llm.StopEndTurn), string(llm.StopToolUse), string(llm.StopMaxTokens), string(llm.StopSequence),
		string(llm.StatusSuccess), string(llm.StatusError):
		return s
	}
	return c.text(s)
}

func (c *core) maskAll(messages []llm.Message) []llm.Message {
	if c.cfg.masker == nil && !slices.ContainsFunc(messages, func(m llm.Message) bool { return machine.StorableMessage(m) != nil }) {
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
		had := !p.Opaque.IsZero()
		p.Text, p.Opaque = c.text(p.Text), c.opaque(p.Opaque)
		return p, p.Text != "" || !had || !p.Opaque.IsZero()
	case llm.Thinking:
		had := !p.Opaque.IsZero()
		if k != nil && had && k.Found(p.Text) {
			return nil, false
		}
		p.Text, p.Opaque = c.text(p.Text), c.opaque(p.Opaque)
		return p, p.Text != "" || !had || !p.Opaque.IsZero()
	case llm.System:
		return c.maskNote(p), true
	case llm.Call:
		p.ID, p.Name, p.Args = c.text(p.ID), c.text(p.Name), c.jsonText(p.Args)
		p.Opaque = c.opaque(p.Opaque)
		return p, true
	case llm.Result:
		return c.maskResult(p), true
	case llm.Image:
		p.Media = c.text(p.Media)
		return p, true
	}
	return p, true
}

func (c *core) maskNote(n llm.System) llm.System {
	n.Kind, n.Text, n.Data = c.text(n.Kind), c.text(n.Text), c.data(n.Data)
	return n
}

func (c *core) maskResult(r llm.Result) llm.Result {
	r.CallID, r.Name, r.Status = c.text(r.CallID), c.text(r.Name), llm.Status(c.word(string(r.Status)))
	r.Summary, r.Content = c.text(r.Summary), c.text(r.Content)
	if k := c.cfg.masker; k != nil && r.Summary != "" && r.Content != "" && k.Found(r.Summary+r.Content) {
		r.Summary, r.Content = "", k.Text(r.Summary+r.Content) // it began in one and ended in the other
	}
	if len(r.Images) > 0 {
		r.Images = slices.Clone(r.Images)
		for i := range r.Images {
			r.Images[i].Media = c.text(r.Images[i].Media)
		}
	}
	if len(r.Notes) > 0 {
		r.Notes = slices.Clone(r.Notes)
		for i := range r.Notes {
			r.Notes[i] = c.maskNote(r.Notes[i])
		}
	}
	return r
}

// data is what a program keeps with a note. What is no JSON is kept as the text that
// it is.
func (c *core) data(d json.RawMessage) json.RawMessage {
	if len(d) == 0 {
		return nil
	}
	d = validData(d)
	if machine.StorableData(d) != nil {
		return mustJSON(c.text(string(d)))
	}
	if c.cfg.masker == nil {
		return d
	}
	s := c.jsonText(string(d))
	if s == string(d) {
		return d
	}
	if !json.Valid([]byte(s)) { // the secret was no string
		return mustJSON(s)
	}
	return json.RawMessage(s)
}

// jsonText is text for JSON, or what a model gives for it: its strings are looked at
// as they are read, for a secret may be written with escapes.
func (c *core) jsonText(s string) string {
	s = validText(s)
	k := c.cfg.masker
	if k == nil {
		return s
	}
	escaped := strings.Contains(s, `\`)
	if escaped {
		s = eachString(s, func(value string) (string, bool) { return k.Text(value), k.Found(value) })
	}
	s = k.Text(s)
	if escaped && !json.Valid([]byte(s)) { // such arguments never run, so that nothing is lost by another text
		for _, read := range leniently(s) {
			if k.Found(read) {
				return k.Text(read)
			}
		}
	}
	return s
}

// secretIn reports whether JSON, or what a model gives for it, holds a secret.
func secretIn(k Masker, s string) bool {
	found := k.Found(s)
	if !found && strings.Contains(s, `\`) {
		eachString(s, func(value string) (string, bool) {
			found = found || k.Found(value)
			return value, false
		})
	}
	if !found && strings.Contains(s, `\`) && !json.Valid([]byte(s)) {
		found = slices.ContainsFunc(leniently(s), k.Found)
	}
	return found
}

// eachString calls f with the value of every string with escapes in s and returns s
// with those replaced for which f says so. S need not be whole, nor right.
func eachString(s string, f func(value string) (instead string, changed bool)) string {
	var b strings.Builder
	done := 0 // of s, up to where b has it
	for at := 0; at < len(s); {
		i := strings.IndexByte(s[at:], '"')
		if i < 0 {
			break
		}
		from := at + i
		to, escaped := endOfString(s, from+1)
		at = to
		if !escaped {
			continue
		}
		var value string
		if json.Unmarshal([]byte(strings.TrimSuffix(s[from:to], `"`)+`"`), &value) != nil {
			continue
		}
		if instead, changed := f(value); changed {
			b.WriteString(s[done:from])
			b.Write(mustJSON(instead))
			done = to
		}
	}
	if done == 0 {
		return s
	}
	b.WriteString(s[done:])
	return b.String()
}

// endOfString is the index behind the string that begins before at.
func endOfString(s string, at int) (end int, escaped bool) {
	for ; at < len(s); at++ {
		switch s[at] {
		case '"':
			return at + 1, escaped
		case '\\':
			escaped = true
			at++
		}
	}
	return len(s), escaped
}

// opaque is vendor data that can be stored and sent back.
func (c *core) opaque(o llm.Opaque) llm.Opaque {
	if o.IsZero() {
		return o
	}
	o.Vendor = c.text(o.Vendor)
	if len(o.Data) == 0 { // whose the part is may be all that there is to know
		o.Data = nil
		return o
	}
	o.Data = validData(o.Data)
	if machine.StorableData(o.Data) != nil {
		c.emit(Warning{Text: fmt.Sprintf("data of the vendor %q on a part of the reply is not JSON, and was dropped", o.Vendor)})
		return llm.Opaque{}
	}
	return o
}

// keepApart has the ids of calls, or of the results that answer them, differ where they
// did before they were masked. Calls and results stand in one order, so that both
// become the same.
func keepApart(before, after []llm.Part) {
	changed := false
	for i := range after {
		changed = changed || len(before) != len(after) || idOf(before[i]) != idOf(after[i])
	}
	if !changed {
		return
	}
	was, seen := map[string]bool{}, map[string]bool{}
	for _, p := range before {
		id := idOf(p)
		if id != "" && was[id] { // the model has used it twice, which is for others to say
			return
		}
		was[id] = true
	}
	for i, p := range after {
		id := idOf(p)
		if id == "" {
			continue
		}
		for seen[id] {
			id += "x"
		}
		seen[id] = true
		switch p := p.(type) {
		case llm.Call:
			p.ID = id
			after[i] = p
		case llm.Result:
			p.CallID = id
			after[i] = p
		case llm.Text, llm.Image, llm.Thinking, llm.System:
		}
	}
}

// idOf is the id of a call, or of the call that a result answers.
func idOf(p llm.Part) string {
	switch p := p.(type) {
	case llm.Call:
		return p.ID
	case llm.Result:
		return p.CallID
	case llm.Text, llm.Image, llm.Thinking, llm.System:
	}
	return ""
}

// checkNames refuses a secret in what a run is found by: such a name is wanted as it
// is, or not at all.
func (c *core) checkNames(op string) error {
	k, cfg := c.cfg.masker, &c.cfg
	if k == nil {
		return nil
	}
	if k.Found(cfg.run) {
		return fail(KindConfig, op, nil, "the name of the run holds a secret of WithMask; give another name")
	}
	if k.Found(cfg.owner) {
		return fail(KindConfig, op, nil, "the name of WithOwner holds a secret of WithMask; give another name")
	}
	for key, value := range cfg.labels {
		if k.Found(key) || k.Found(value) {
			return fail(KindConfig, op, nil, "the label %q holds a secret of WithMask; leave it out", c.text(key))
		}
	}
	return nil
}

func validText(s string) string { return strings.ToValidUTF8(s, "\uFFFD") }

func validData(d json.RawMessage) json.RawMessage {
	if utf8.Valid(d) {
		return d
	}
	return bytes.ToValidUTF8(d, []byte("\uFFFD"))
}

// checkData reports data in messages of a caller or a hook that could not be stored,
// nor sent back to anybody.
func checkData(messages []llm.Message) error {
	for i, m := range messages {
		for n, p := range m.Parts {
			if err := checkPartData(p); err != nil {
				return fmt.Errorf("message %d, part %d: %w", i, n, err)
			}
		}
	}
	return nil
}

func checkPartData(p llm.Part) error {
	switch p := p.(type) {
	case llm.System:
		return checkNotes(p)
	case llm.Text:
		return checkOpaque(p.Opaque)
	case llm.Thinking:
		return checkOpaque(p.Opaque)
	case llm.Call:
		return checkOpaque(p.Opaque)
	case llm.Result:
		return checkNotes(p.Notes...)
	case llm.Image:
	}
	return nil
}

func checkOpaque(o llm.Opaque) error {
	return machine.StorableData(validData(o.Data))
}

func checkNotes(notes ...llm.System) error {
	for _, n := range notes {
		if err := machine.StorableData(validData(n.Data)); err != nil {
			return err
		}
	}
	return nil
}
