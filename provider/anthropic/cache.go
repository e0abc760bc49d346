// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"slices"

	"github.com/fiducial-dev/fiducial/llm"
)

// lookBack is how many blocks the API looks back from a mark for an earlier cache
// entry, the marked one included
// (https://platform.claude.com/docs/en/build-with-claude/prompt-caching, 2026-11).
const lookBack = 20

const markJSON = `,"cache_control":{"type":"ephemeral"}}`

// A place is a block of a message, both by index.
type place struct{ message, block int }

// marks says where cache marks go. They are chosen anew for each request and never
// kept, so that none pile up (B-123).
type marks struct {
	system, tools bool
	places        []place // at most two
}

func (m marks) at(p place) bool { return slices.Contains(m.places, p) }

// marks places one on the system block, one on the last tool and one on the last
// block of the conversation that can carry one (B-122 to B-124).
func (c *Client) marks(req *llm.Request, messages []message) marks {
	if c.config.noCache || req.Settings.NoCache {
		return marks{}
	}
	m := marks{system: true, tools: true}
	end, ok := lastFit(messages, len(messages))
	if !ok {
		return m
	}
	m.places = append(m.places, end)
	if fourth, ok := c.fourth(req, messages, end); ok && fourth != end {
		m.places = append(m.places, fourth)
	}
	return m
}

// fourth is where one more mark is of use, when that is allowed.
func (c *Client) fourth(req *llm.Request, messages []message, end place) (place, bool) {
	if !c.config.fourth {
		return place{}, false
	}
	if before, ok := lastFit(messages, lastReply(messages)); ok && distance(messages, before, end) >= lookBack {
		return before, true
	}
	if req.CacheAnchor < 0 {
		return place{}, false
	}
	n := 0
	for n < len(messages) && messages[n].from <= req.CacheAnchor {
		n++
	}
	return lastFit(messages, n)
}

// lastReply is the index of the newest assistant message, before which the request
// that it answers ended.
func lastReply(messages []message) int {
	for i, m := range slices.Backward(messages) {
		if m.role == "assistant" {
			return i
		}
	}
	return 0
}

// lastFit is the last block in the first n messages that can carry a mark.
func lastFit(messages []message, n int) (place, bool) {
	for i, m := range slices.Backward(messages[:n]) {
		for k, b := range slices.Backward(m.blocks) {
			if b.fit {
				return place{i, k}, true
			}
		}
	}
	return place{}, false
}

// distance is how many blocks b stands behind a.
func distance(messages []message, a, b place) int {
	n := b.block - a.block
	for i := a.message; i < b.message; i++ {
		n += len(messages[i].blocks)
	}
	return n
}

// marked is an encoded object with a mark, or as it is.
func marked(object []byte, mark bool) []byte {
	if !mark {
		return object
	}
	return append(slices.Clip(object[:len(object)-1]), markJSON...)
}
