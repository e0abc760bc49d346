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
}

type held struct {
	text []byte
	next int // the length from which on it is worth another look

	// Of arguments: whether what was shown ends inside a string, and whether there is
	// an escape behind it. A secret may be written with escapes, so that then all is
	// held back to the end.
	inside, escaped bool
}

func (d *draft) reset(m Masker) {
	d.mask = m
	clear(d.blocks)
}

// add takes a piece of a block, which holds arguments or not, and returns what can be
// shown of the block now, not yet masked.
func (d *draft) add(block int, piece string, args bool) string {
	if d.mask == nil {
		return piece
	}
	if d.blocks == nil {
		d.blocks = map[int]held{}
	}
	h := d.blocks[block]
	h.text = append(h.text, piece...)
	show := ""
	h.escaped = h.escaped || args && strings.Contains(piece, `\`)
	if m, ok := d.mask.(StreamMasker); ok && len(h.text) >= h.next && !h.escaped {
		all := string(h.text)
		n := min(max(m.Settled(all), 0), len(all))
		show, h.text = all[:n], append(h.text[:0], all[n:]...)
		// What does not settle is looked at in ever larger steps.
		h.next = len(h.text) + len(h.text)/8 + 1
		h.inside = h.inside != (strings.Count(show, `"`)%2 == 1)
	}
	d.blocks[block] = h
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
		rd.showText(ev.Index, rd.draft.add(ev.Index, ev.Text, rd.c.Kind(ev.Index) == llm.BlockCall))
	case llm.BlockStop:
		rd.showText(ev.Index, rd.rest(rd.draft.end(ev.Index)))
	case llm.Unhandled:
		ev.Preview = rd.preview(ev)
		rd.run.emit(StreamEvent{Event: ev})
	case llm.Failover:
		rd.run.emit(StreamEvent{Event: ev})
	case llm.BlockStart, llm.UsageReport, llm.Finish:
	}
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
