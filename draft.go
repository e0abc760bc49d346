// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"strings"

	"github.com/fiducial-dev/fiducial/llm"
)

// A StreamMasker is a [Masker] that can say how much of a text that still arrives may
// be shown. With one, the [Delta] events of a reply come at most a word or so behind
// the model; with a plain Masker each block comes as one Delta when it is complete,
// because nobody else knows where a secret begins.
//
// [github.com/fiducial-dev/fiducial/mask.Masker] is one.
type StreamMasker interface {
	Masker
	// Settled is the length of the beginning of s in which nothing can become part
	// of a secret by what comes behind s. What is behind it can be masked by
	// itself: Text(s[:n]) + Text(s[n:]+more) is Text(s+more).
	Settled(s string) int
}

// A draft is the blocks of a reply that is being written, as far as they were not
// shown, because they may hold the beginning of a secret.
type draft struct {
	mask   Masker // nil when nothing is held back
	blocks map[int]held
	texts  bool   // a block of text was begun
	before string // the blocks of text that are complete, masked
}

type held struct {
	text []byte
	next int // the length from which on it is worth another look

	// Of arguments: whether what was shown ends inside a string, and whether there is
	// an escape behind it. A secret may be written with escapes, so that then all is
	// held back to the end.
	inside, escaped bool

	// whole is set for a block of text behind another: a secret may begin in that and
	// end in this, so that it is looked at when it is complete.
	whole bool
	all   []byte // of a block of text
}

func (d *draft) reset(m Masker) {
	d.mask = m
	d.texts, d.before = false, ""
	clear(d.blocks)
}

// begin takes note of a block of text.
func (d *draft) begin(block int) {
	if d.mask == nil {
		return
	}
	if d.texts {
		d.put(block, held{whole: true})
	}
	d.texts = true
}

// across reports whether a secret begins in the blocks of text before h, which is
// complete, and ends in it.
func (d *draft) across(h held) bool {
	if d.mask == nil {
		return false
	}
	before := d.before
	d.before += d.mask.Text(string(h.all))
	if before == "" || !d.mask.Found(d.before) {
		return false
	}
	d.before = d.mask.Text(d.before)
	return true
}

func (d *draft) put(block int, h held) {
	if d.blocks == nil {
		d.blocks = map[int]held{}
	}
	d.blocks[block] = h
}

// add takes a piece of a block and returns what can be
// shown of the block now, not yet masked.
func (d *draft) add(block int, piece string, kind llm.BlockKind) string {
	if d.mask == nil {
		return piece
	}
	h := d.blocks[block]
	if kind == llm.BlockText {
		h.all = append(h.all, piece...)
	}
	h.text = append(h.text, piece...)
	show := ""
	h.escaped = h.escaped || kind == llm.BlockCall && strings.Contains(piece, `\`)
	if m, ok := d.mask.(StreamMasker); ok && len(h.text) >= h.next && !h.escaped && !h.whole {
		all := string(h.text)
		n := min(max(m.Settled(all), 0), len(all))
		show, h.text = all[:n], append(h.text[:0], all[n:]...)
		// What does not settle is looked at in ever larger steps.
		h.next = len(h.text) + len(h.text)/8 + 1
		h.inside = h.inside != (strings.Count(show, `"`)%2 == 1)
	}
	d.put(block, h)
	return show
}

// end returns what is left of a block that is complete.
func (d *draft) end(block int) held {
	h := d.blocks[block]
	delete(d.blocks, block)
	return h
}

// show tells of an event of the stream.
func (rd *reader) show(ev llm.Event) {
	switch ev := ev.(type) {
	case llm.BlockDelta:
		rd.showText(ev.Index, rd.draft.add(ev.Index, ev.Text, rd.c.Kind(ev.Index)))
	case llm.BlockStart:
		if ev.Kind == llm.BlockText {
			rd.draft.begin(ev.Index)
		}
	case llm.BlockStop:
		h := rd.draft.end(ev.Index)
		if rd.c.Kind(ev.Index) == llm.BlockText && rd.draft.across(h) {
			return // the message has it, masked
		}
		rd.showText(ev.Index, rd.rest(h))
	case llm.Unhandled:
		ev.Preview = rd.preview(ev)
		ev.Vendor, ev.Type = rd.run.text(ev.Vendor), rd.run.text(ev.Type)
		rd.run.emit(StreamEvent{Event: ev})
	case llm.Failover:
		ev.From, ev.To, ev.Cause = rd.model(ev.From), rd.model(ev.To), sayable(ev.Cause)
		rd.run.emit(StreamEvent{Event: ev})
	case llm.UsageReport, llm.Finish:
	}
}

func (rd *reader) model(m llm.Model) llm.Model {
	m.Vendor, m.Name, m.Host = rd.run.text(m.Vendor), rd.run.text(m.Name), rd.run.text(m.Host)
	return m
}

// rest is what was held back of a block, with no secret in its escapes.
func (rd *reader) rest(h held) string {
	switch {
	case !h.escaped:
		return string(h.text)
	case h.inside:
		return strings.TrimPrefix(rd.run.jsonText(`"`+string(h.text)), `"`)
	}
	return rd.run.jsonText(string(h.text))
}

func (rd *reader) showText(block int, text string) {
	if rd.draft.mask != nil {
		text = rd.run.text(text)
	}
	if text != "" {
		rd.run.emit(Delta{Op: rd.op, Block: block, Kind: rd.c.Kind(block), Text: text})
	}
}

// preview is that of wire data nobody has a use for, which may hold a secret, or end
// in the middle of one.
func (rd *reader) preview(ev llm.Unhandled) string {
	p := ev.Preview
	if rd.draft.mask == nil {
		return p
	}
	if len(p) < ev.Size {
		s, ok := rd.draft.mask.(StreamMasker)
		if !ok {
			return ""
		}
		p = p[:min(max(s.Settled(p), 0), len(p))]
	}
	return rd.run.text(p)
}
