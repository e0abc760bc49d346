// SPDX-License-Identifier: Apache-2.0

// Package collect assembles the events of a stream into a reply.
//
// It is the one place where blocks become message parts, for all providers. It is
// strict: a stream that breaks the rules of [llm.Event] is an error, never a
// guess, and a reply without [llm.Finish] is no reply.
package collect

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"github.com/fiducial-dev/fiducial/llm"
)

// A Reply is one complete answer of a model.
type Reply struct {
	Message llm.Message // an assistant message
	Usage   llm.Usage   // merged; see [llm.Usage.Merge]
}

// A Collector takes the events of one stream. The zero value is ready; Seed
// should be set when call ids must be unique beyond this reply.
type Collector struct {
	// Seed goes into the ids that are made for calls without one, and for calls
	// whose id another call of the reply already has. It is a number that is
	// different for each reply of a conversation.
	Seed uint64

	blocks   []block // by arrival; Index orders them at the end
	usage    llm.Usage
	stop     llm.StopReason
	finished bool
	err      error // the first one; there is no reply after it
}

type block struct {
	start  llm.BlockStart
	text   string // while it is one delta only
	more   []byte // all of it, from the second delta on
	closed bool
	opaque llm.Opaque
}

// Add takes the next event. An error is an [*llm.Error] of class
// malformed_stream; after one there is no reply, whatever else is added.
func (c *Collector) Add(ev llm.Event) error {
	err := c.add(ev)
	if err != nil && c.err == nil {
		c.err = err
	}
	return err
}

func (c *Collector) add(ev llm.Event) error {
	if c.finished {
		return malformed("%T after the end of the reply", ev)
	}
	switch ev := ev.(type) {
	case llm.BlockStart:
		if c.find(ev.Index) != nil {
			return malformed("block %d is opened twice", ev.Index)
		}
		if ev.Kind > llm.BlockCall {
			return malformed("block %d is of the unknown kind %d", ev.Index, ev.Kind)
		}
		c.blocks = append(c.blocks, block{start: ev})
	case llm.BlockDelta:
		b := c.find(ev.Index)
		if b == nil || b.closed {
			return malformed("a delta for block %d, which is not open", ev.Index)
		}
		b.add(ev.Text)
	case llm.BlockStop:
		b := c.find(ev.Index)
		if b == nil {
			return malformed("block %d is closed and was never opened", ev.Index)
		}
		if !b.closed { // a second stop is ignored (E-164)
			b.closed, b.opaque = true, ev.Opaque
		}
	case llm.UsageReport:
		c.usage = c.usage.Merge(ev.Usage)
	case llm.Finish:
		return c.finish(ev.Stop)
	case llm.Unhandled, llm.Failover:
	default: // a pointer to an event, which is none, or nil
		return malformed("a %T is no event of a stream", ev)
	}
	return nil
}

// Reset makes the collector ready for another stream. Replies that it gave stay as
// they are.
func (c *Collector) Reset(seed uint64) {
	clear(c.blocks)
	*c = Collector{Seed: seed, blocks: c.blocks[:0]}
}

// Usage is what was reported so far; it counts also when the stream breaks.
func (c *Collector) Usage() llm.Usage { return c.usage }

// Begun reports whether any block was opened.
func (c *Collector) Begun() bool { return len(c.blocks) > 0 }

// Kind is what block index is; text when it was never opened.
func (c *Collector) Kind(index int) llm.BlockKind {
	if b := c.find(index); b != nil {
		return b.start.Kind
	}
	return llm.BlockText
}

// Reply returns the reply. Before [llm.Finish] came it is an [*llm.Error] of
// class stream_incomplete, after an event that broke the rules the error of that.
func (c *Collector) Reply() (Reply, error) {
	if c.err != nil {
		return Reply{}, c.err
	}
	if !c.finished {
		return Reply{}, &llm.Error{
			Class: llm.ClassStreamIncomplete, Op: "collect",
			Message: "the stream ended before the provider said that the reply was complete",
		}
	}
	if !slices.IsSortedFunc(c.blocks, byIndex) {
		slices.SortStableFunc(c.blocks, byIndex)
	}
	m := llm.Message{Role: llm.RoleAssistant, Stop: c.stop}
	if len(c.blocks) > 0 {
		m.Parts = make([]llm.Part, 0, len(c.blocks))
	}
	var ids idSet
	calls := 0
	for i := range c.blocks {
		b := &c.blocks[i]
		switch b.start.Kind {
		case llm.BlockText:
			// An empty text is not worth a part, unless it carries vendor data.
			if t := b.value(); t != "" || !b.opaque.IsZero() {
				m.Parts = append(m.Parts, llm.Text{Text: t, Opaque: b.opaque})
			}
		case llm.BlockThinking:
			if t := b.value(); t != "" || !b.opaque.IsZero() {
				m.Parts = append(m.Parts, llm.Thinking{Text: t, Opaque: b.opaque})
			}
		case llm.BlockCall:
			id := c.callID(b.start.ID, calls, &ids)
			m.Parts = append(m.Parts, llm.Call{ID: id, Name: b.start.Name, Args: b.value(), Opaque: b.opaque})
			calls++
		}
	}
	if c.stop == llm.StopToolUse && calls == 0 {
		return Reply{}, malformed("the reply stopped for tool use and holds no call")
	}
	return Reply{Message: m, Usage: c.usage}, nil
}

func (c *Collector) finish(stop llm.StopReason) error {
	for i := range c.blocks {
		if !c.blocks[i].closed {
			return malformed("the reply ended while block %d was open", c.blocks[i].start.Index)
		}
	}
	if stop == "" {
		return malformed("the reply ended without a stop reason")
	}
	c.finished, c.stop = true, stop
	return nil
}

// callID keeps the provider's id when it has one that is new in this reply.
func (c *Collector) callID(id string, ordinal int, seen *idSet) string {
	if id == "" || seen.has(id) {
		id = "call_" + strconv.FormatUint(c.Seed, 10) + "_" + strconv.Itoa(ordinal)
	}
	for seen.has(id) {
		id += "x"
	}
	seen.add(id)
	return id
}

// idSet is the ids of a reply. Most replies have few calls, which need no map.
type idSet struct {
	few  [8]string
	n    int // of few
	many map[string]bool
}

func (s *idSet) has(id string) bool {
	for i := range s.n {
		if s.few[i] == id {
			return true
		}
	}
	return s.many[id]
}

func (s *idSet) add(id string) {
	if s.n < len(s.few) {
		s.few[s.n] = id
		s.n++
		return
	}
	if s.many == nil {
		s.many = map[string]bool{}
	}
	s.many[id] = true
}

func (c *Collector) find(index int) *block {
	for i := len(c.blocks) - 1; i >= 0; i-- {
		if c.blocks[i].start.Index == index {
			return &c.blocks[i]
		}
	}
	return nil
}

func (b *block) add(s string) {
	switch {
	case s == "":
	case b.more != nil:
		b.more = append(b.more, s...)
	case b.text == "":
		b.text = s
	default:
		b.more = append(append(make([]byte, 0, 2*(len(b.text)+len(s))), b.text...), s...)
	}
}

func (b *block) value() string {
	if b.more != nil {
		return string(b.more)
	}
	return b.text
}

func byIndex(a, b block) int { return cmp.Compare(a.start.Index, b.start.Index) }

func malformed(format string, args ...any) error {
	return &llm.Error{Class: llm.ClassMalformedStream, Op: "collect", Message: fmt.Sprintf(format, args...)}
}
