// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/provider/internal/reply"
)

// A chatCall is a call being assembled.
type chatCall struct {
	block   int
	id      string
	name    string
	args    strings.Builder
	started bool
	extras  extras
}

// call takes a piece of a call.
func (s *chatStream) call(d callDelta) error {
	c, err := s.target(d)
	if err != nil || c == nil {
		return err
	}
	if c.id == "" {
		c.id = d.id
	}
	switch {
	case d.name == "" || d.name == c.name:
	case c.started, strings.HasPrefix(c.name, d.name):
	case strings.HasPrefix(d.name, c.name):
		c.name = d.name // told again, longer
	default:
		c.name += d.name // told in pieces
	}
	c.extras.Call = merged(c.extras.Call, d.extras.Call)
	c.extras.Function = merged(c.extras.Function, d.extras.Function)
	c.args.WriteString(d.args)
	switch {
	case c.started && d.args != "":
		s.emit(llm.BlockDelta{Index: c.block, Text: d.args})
	case !c.started && c.name != "" && c.args.Len() > 0:
		s.start(c) // before the first argument the name may still grow
	}
	return nil
}

// start tells of a call and of the arguments that it has so far.
func (s *chatStream) start(c *chatCall) {
	c.started = true
	s.emit(llm.BlockStart{Index: c.block, Kind: llm.BlockCall, ID: c.id, Name: s.names.Real(c.name)})
	if c.args.Len() > 0 {
		s.emit(llm.BlockDelta{Index: c.block, Text: c.args.String()})
	}
}

// target is the call to which a piece belongs, nil when it only repeats one.
//
// Pieces of one call share an index. Servers that leave it out, or give all calls
// the same, still send a name with each new call (E-238).
func (s *chatStream) target(d callDelta) (*chatCall, error) {
	var cur *chatCall
	switch {
	case d.index != nil:
		if *d.index < 0 || *d.index >= maxCallIndexes {
			return nil, reply.Malformed("tool_calls", "a call has the index %d", *d.index)
		}
		cur = s.newest[*d.index]
	case d.id != "":
		if cur = s.byID(d.id); cur == nil && d.name == "" && d.args != "" {
			cur = s.unfinished() // some servers make an id for each piece
		}
	case len(s.calls) > 0:
		cur = s.calls[len(s.calls)-1]
	}
	switch {
	case cur == nil:
		return s.open(d)
	case cur.name == "" && (d.id == "" || cur.id == "" || d.id == cur.id):
		return cur, nil // the name comes late
	case d.name == "" && cur.args.Len() > 1 && d.args == cur.args.String() && json.Valid([]byte(d.args)):
		return nil, nil // the whole arguments once more
	case d.name == "" || cur.args.Len() == 0 && (d.id == "" || cur.id == "" || d.id == cur.id):
		return cur, nil // a name in pieces, or none
	case d.id != "" && cur.id != "" && d.id != cur.id:
		return s.open(d)
	case !json.Valid([]byte(cur.args.String())):
		return cur, nil // the name is repeated with every piece
	case d.id == cur.id && d.id != "":
		switch {
		case d.args == "" || d.args == cur.args.String():
			return nil, nil // the whole call once more
		case json.Valid([]byte(d.args)):
			return s.open(d) // another whole call of the same id
		}
		return cur, nil
	}
	return s.open(d)
}

func (s *chatStream) byID(id string) *chatCall {
	for _, c := range s.calls {
		if c.id == id {
			return c
		}
	}
	return nil
}

// unfinished is the newest call when more of it must come, else nil.
func (s *chatStream) unfinished() *chatCall {
	if len(s.calls) == 0 {
		return nil
	}
	c := s.calls[len(s.calls)-1]
	if json.Valid([]byte(c.args.String())) {
		return nil
	}
	return c
}

// open begins a new call.
func (s *chatStream) open(d callDelta) (*chatCall, error) {
	index := len(s.calls)
	if d.index != nil {
		index = *d.index
	}
	if len(s.calls) >= callsPerIndex {
		return nil, reply.Malformed("tool_calls", "the reply has more than %d calls", callsPerIndex)
	}
	block := blockCalls + index*callsPerIndex
	for s.taken(block) {
		block++
	}
	c := &chatCall{block: block, id: d.id}
	s.calls = append(s.calls, c)
	s.newest[index] = c
	return c, nil
}

func (s *chatStream) taken(block int) bool {
	for _, c := range s.calls {
		if c.block == block {
			return true
		}
	}
	return false
}

func merged(into, from map[string]json.RawMessage) map[string]json.RawMessage {
	if into == nil {
		return from
	}
	maps.Copy(into, from)
	return into
}
