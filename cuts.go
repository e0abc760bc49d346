// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"encoding/json"
	"slices"

	"github.com/fiducial-dev/fiducial/llm"
)

// cuts say what is left out of the messages that are sent, by their indexes in the
// history: of a pruned one content and images of results, of others the images alone. A
// journal remembers with them what a committed prefix is on the wire.
type cuts struct {
	Pruned []span `json:"pruned,omitempty"`
	Images []span `json:"images,omitempty"`
}

// A span is the messages from the first index to before the second.
type span [2]int

// IsZero reports whether nothing is left out.
func (c cuts) IsZero() bool { return len(c.Pruned) == 0 && len(c.Images) == 0 }

// cuts are those of what is sent now.
func (p *pruner) cuts() cuts {
	return cuts{
		Pruned: longer(p.fixed.Pruned, span{p.locked, p.mark}),
		Images: longer(p.fixed.Images, span{p.locked, p.bare}),
	}
}

// longer is spans with one more behind them, unless it is empty.
func longer(spans []span, s span) []span {
	if s[0] >= s[1] {
		return spans
	}
	return append(slices.Clip(spans), s)
}

// commit makes what is sent of the history a committed prefix, which it returns: from now
// on nothing of it changes any more.
func (p *pruner) commit(history []llm.Message) []llm.Message {
	p.fixed = p.cuts()
	p.locked, p.next, p.count, p.saves = len(history), len(history), 0, 0
	return p.all(history)
}

// all is what is sent of the history.
func (p *pruner) all(history []llm.Message) []llm.Message {
	if p.sent == nil {
		return history
	}
	p.sent = append(p.sent, history[len(p.sent):]...)
	return slices.Clip(p.sent)
}

// sentBefore is what a journal says of how a history was sent.
type sentBefore struct {
	locked int  // messages of the committed prefix
	fixed  cuts // of that prefix
	mark   int  // as in pruner
	bare   int
}

// restore makes the pruner what it was in another process.
func (p *pruner) restore(history []llm.Message, b sentBefore) {
	n := len(history)
	*p = pruner{locked: min(b.locked, n), fixed: b.fixed, mark: min(b.mark, n), bare: min(b.bare, n), answered: min(b.bare, n)}
	c := p.cuts()
	if c.IsZero() {
		return
	}
	p.own(history)
	for _, s := range c.Pruned {
		for i := max(s[0], 0); i < min(s[1], n); i++ {
			p.sent[i] = pruned(p.sent[i])
		}
	}
	for _, s := range c.Images {
		for i := max(s[0], 0); i < min(s[1], n); i++ {
			p.sent[i], _ = withoutImages(p.sent[i])
		}
	}
}

// A pruneNote is what a note of kind pruned says: a number of messages that are pruned,
// or in an object of those whose images are left out.
type pruneNote struct {
	Images int `json:"images"`
}

// pruned takes up a note of kind pruned.
func (b *sentBefore) pruned(data json.RawMessage) error {
	if json.Unmarshal(data, &b.mark) == nil {
		return nil
	}
	var n pruneNote
	if err := json.Unmarshal(data, &n); err != nil {
		return err
	}
	b.bare = n.Images
	return nil
}
