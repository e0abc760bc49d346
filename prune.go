// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"cmp"
	"slices"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
)

// A PruneConfig turns pruning on: requests leave out the content and images of
// old tool results and keep their summaries. The history itself stays whole.
//
// Pruning is sticky. Results are left out up to a mark, and the mark moves only
// when that saves at least Minimum tokens, so that the provider's cache is broken
// once in a while and not at every step. The committed prefix is never pruned: what
// [Engine.Lock] commits is what is sent at that time, so that what was left out before
// stays so, and nothing more of it is left out later.
type PruneConfig struct {
	// Protect is the least number of tokens at the end of the conversation that
	// stay whole; the message on the border stays whole, too. Zero means 8000,
	// negative protects nothing (E-177, E-178).
	Protect int64
	// Minimum is the least number of tokens that a move of the mark must save.
	// Zero means 4096; a negative number is refused by Lock.
	Minimum int64
}

// WithPruning turns pruning on. It goes by what the provider says of the length of the
// requests: while it says nothing, nothing is pruned (E-179), and a [Warning] says so
// once in a run.
func WithPruning(p PruneConfig) Option {
	return func(c *config) {
		if p.Minimum < 0 {
			c.refuse("WithPruning was given a Minimum of %d tokens; it must be 0, for the default, or more", p.Minimum)
			return
		}
		// The option may be given to several engines, which run side by side.
		c.prune = &PruneConfig{Protect: cmp.Or(p.Protect, 8000), Minimum: cmp.Or(p.Minimum, 4096)}
	}
}

// WithDropImages leaves the images of a tool result out of requests once the model
// has answered to them (E-36). Without it they are sent with every request. The
// history keeps them, and so does the committed prefix, but for those that were left out
// before [Engine.Lock]. Where images are left out, a provider's cache ends; the audit says
// so with [CacheImagesDropped].
func WithDropImages() Option { return func(c *config) { c.dropImages = true } }

// A PruneDecision is what was found before a request (E-182).
type PruneDecision struct {
	Fired      bool
	Candidates int   // results that could be left out beyond those that are
	Savings    int64 // estimated tokens of the candidates
	Mark       int   // messages before this one are pruned now
}

// pruner makes the projection of the history that is sent.
type pruner struct {
	mark     int
	sent     []llm.Message // the projection, nil while it is the history; grows with it
	next     int           // candidates are counted up to here
	count    int           // of them, from mark on
	saves    int64
	answered int  // images of the messages before this one were looked for
	bare     int  // the same when some were found the last time
	locked   int  // messages of the committed prefix, in which nothing is moved
	fixed    cuts // of the committed prefix
	lent     lent // sent, for the hooks
}

// project is the history as it is sent. Where nothing is left out it is the history
// itself.
func (c *core) project() []llm.Message {
	history := c.state.History()
	p := &c.pruner
	if c.cfg.prune != nil {
		c.prune(history)
	}
	if c.cfg.dropImages && p.dropImages(history) {
		c.store.add(journal.Note{Kind: notePruned, Data: mustJSON(pruneNote{Images: p.bare})})
		c.audit.forget(CacheImagesDropped)
	}
	return p.all(history)
}

// prune moves the mark when that is worth it.
func (c *core) prune(history []llm.Message) {
	c.meter.grow(history)
	d, asked := c.evaluate(history)
	if !asked {
		if c.counts.turns > 0 && !c.warned.pruning {
			c.warned.pruning = true
			c.emit(Warning{Text: "the provider does not say how many tokens a request has, so nothing is pruned"})
		}
		return
	}
	if d.Fired {
		c.pruner.move(history, d.Mark)
		c.store.add(journal.Note{Kind: notePruned, Data: mustJSON(d.Mark)})
		c.audit.forget(CachePruned)
	}
	if c.watched() {
		c.emit(PruneEvaluated{Decision: d})
	}
}

// evaluate finds what could be left out now. It looks at each message once. asked
// is false when the estimates are too weak to say where the border is (E-179).
func (c *core) evaluate(history []llm.Message) (d PruneDecision, asked bool) {
	p, cfg := &c.pruner, c.cfg.prune
	d.Mark = p.mark
	total := c.meter.estimate(len(history))
	if total.Source == EstimateNoData {
		return d, false
	}
	p.next = max(p.next, p.mark, p.locked)
	// The border only moves on: the suffix behind it holds Protect tokens.
	for p.next < len(history) && total.Tokens-c.meter.estimate(p.next+1).Tokens >= max(cfg.Protect, 0) {
		if n, saved := prunable(p.shown(history, p.next)); n > 0 {
			p.count += n
			p.saves += saved
		}
		p.next++
	}
	d.Candidates, d.Savings = p.count, p.saves
	if p.count > 0 && p.saves >= cfg.Minimum {
		d.Fired, d.Mark = true, p.next
	}
	return d, true
}

func (p *pruner) move(history []llm.Message, mark int) {
	p.own(history)
	for i := max(p.mark, p.locked); i < mark; i++ {
		p.sent[i] = pruned(history[i])
	}
	p.mark, p.count, p.saves = mark, 0, 0
}

// own makes the projection a list that no request has seen.
func (p *pruner) own(history []llm.Message) {
	p.sent = append(slices.Clone(p.sent), history[len(p.sent):]...)
	p.lent = lent{}
}

// shown is the message n as it was sent, or will be.
func (p *pruner) shown(history []llm.Message, n int) llm.Message {
	if n < len(p.sent) {
		return p.sent[n]
	}
	return history[n]
}

// dropImages leaves out the images of results that a reply has followed. It looks at
// each message once, and reports whether there were any.
func (p *pruner) dropImages(history []llm.Message) (dropped bool) {
	reply := len(history) - 1
	for reply > 0 && history[reply].Role != llm.RoleAssistant {
		reply--
	}
	for i := max(p.answered, p.locked); i < reply; i++ {
		m, found := withoutImages(p.shown(history, i))
		if !found {
			continue
		}
		if !dropped {
			p.own(history)
			dropped = true
		}
		p.sent[i] = m
	}
	if p.answered = max(p.answered, reply); dropped {
		p.bare = p.answered
	}
	return dropped
}

func withoutImages(m llm.Message) (llm.Message, bool) {
	found := false
	for i, part := range m.Parts {
		r, ok := part.(llm.Result)
		if !ok || len(r.Images) == 0 {
			continue
		}
		if !found {
			m.Parts = slices.Clone(m.Parts)
			found = true
		}
		r.Images = nil
		m.Parts[i] = r
	}
	return m, found
}

// unsee forgets that the message n was seen, for it will change before it is sent.
func (p *pruner) unsee(n int) { p.sent = slices.Clip(p.sent[:min(n, len(p.sent))]) }

func prunable(m llm.Message) (results int, tokens int64) {
	for _, part := range m.Parts {
		if r, ok := part.(llm.Result); ok && (r.Content != "" || len(r.Images) > 0) {
			results++
			bytes := len(r.Content)
			for _, i := range r.Images {
				bytes += len(i.Data)
			}
			tokens += int64(bytes) / bytesPerToken
		}
	}
	return results, tokens
}

// pruned is m without the content and images of its results.
func pruned(m llm.Message) llm.Message {
	if n, _ := prunable(m); n == 0 {
		return m
	}
	m.Parts = slices.Clone(m.Parts)
	for i, part := range m.Parts {
		if r, ok := part.(llm.Result); ok {
			r.Content, r.Images = "", nil
			m.Parts[i] = r
		}
	}
	return m
}
