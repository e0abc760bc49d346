// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"slices"

	"github.com/fiducial-dev/fiducial/llm"
)

// lent is a copy of the history, or of what is sent of it, for functions of others: they
// cannot change what the engine has. Each message is copied once, so that a round costs
// no copy of the history.
type lent struct {
	truth  []llm.Message // what the copies are of
	copies []llm.Message
	wrote  int // 1 + the index of the first copy that was written to; 0 when none was
}

// of is truth for others. The copies of what is there no more are dropped; that another
// message than the last ones was replaced the caller has to say, with a new lent.
func (l *lent) of(truth []llm.Message, clone func(i int) llm.Message) []llm.Message {
	n := min(len(l.truth), len(truth))
	for n > 0 && !sameMessage(l.truth[n-1], truth[n-1]) {
		n--
	}
	if n < len(l.copies) {
		l.copies = slices.Clip(l.copies[:n]) // who was given those that go keeps them
	}
	if room := len(truth); room > cap(l.copies) {
		l.copies = slices.Grow(l.copies, room) // twice as long, so that all the copying is once the length
	}
	for i := n; i < len(truth); i++ {
		l.copies = append(l.copies, clone(i))
	}
	l.truth = truth
	return slices.Clip(l.copies)
}

// mend makes copies anew that were written to.
func (l *lent) mend() {
	for i, c := range l.copies {
		if equalMessage(c, l.truth[i]) {
			continue
		}
		l.copies[i] = l.truth[i].Clone()
		if l.wrote == 0 {
			l.wrote = i + 1
		}
	}
}

// found is the index of the first copy that was written to since it was asked, -1 when
// none was.
func (l *lent) found() int {
	n := l.wrote - 1
	l.wrote = 0
	return n
}

// lend is the history for functions of others.
func (c *core) lend() []llm.Message {
	history := c.state.History()
	return c.lent.of(history, func(i int) llm.Message { return history[i].Clone() })
}

// lendWhole is lend for those whom nobody tells that they have written into it: they get
// what there is.
func (c *core) lendWhole() []llm.Message {
	c.lent.mend()
	return c.lend()
}

// lendSent is what is sent, see [core.project], for the hooks.
func (c *core) lendSent(messages []llm.Message) []llm.Message {
	history := c.lend()
	if c.pruner.sent == nil {
		return history
	}
	whole := c.state.History()
	return c.pruner.lent.of(messages, func(i int) llm.Message {
		if sameMessage(messages[i], whole[i]) {
			return history[i]
		}
		return messages[i].Clone()
	})
}

// takeBack looks over what the hooks were given of a request. It returns the index of a
// message that they have written into instead of replacing it, -1 when there is none.
func (c *core) takeBack() int {
	c.lock.lent.mend(c.lock.tools)
	c.lent.mend()
	c.pruner.lent.mend()
	return max(c.lent.found(), c.pruner.lent.found())
}

// kept is messages, which a hook has made of given, as they are sent: what it has left at
// the beginning and at the end is what the engine has, the rest a copy of its own.
func kept(messages, given, truth []llm.Message) []llm.Message {
	if len(messages) == len(given) && len(given) > 0 && &messages[0] == &given[0] {
		return truth
	}
	out := slices.Clone(messages)
	from, n := 0, min(len(messages), len(given))
	for from < n && sameMessage(messages[from], given[from]) {
		out[from] = truth[from]
		from++
	}
	to, back := len(messages), len(given)
	for to > from && back > from && sameMessage(messages[to-1], given[back-1]) {
		to, back = to-1, back-1
		out[to] = truth[back]
	}
	for i := from; i < to; i++ {
		out[i] = messages[i].Clone()
	}
	return out
}

// lentTools is a copy of the committed tools for the hooks.
type lentTools []llm.Tool

func (l *lentTools) of(tools []llm.Tool) []llm.Tool {
	if len(*l) != len(tools) {
		*l = llm.CloneTools(tools)
	}
	return *l
}

// mend makes the copy anew when it was written to.
func (l *lentTools) mend(tools []llm.Tool) {
	if len(*l) == len(tools) && !sameTools(*l, tools) {
		*l = llm.CloneTools(tools)
	}
}
