// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"sync/atomic"

	"github.com/fiducial-dev/fiducial/llm"
)

// mark says how far a call has come. The latest one of a call counts; a call without
// one is waiting.
type mark struct {
	ordinal int
	status  CallStatus
	repeat  bool
	doubt   bool     // it waits to be repeated: a process that is gone has started it
	before  int32    // 1 + the index of the mark before it of the same call, 0 for none; set in wide batches
	result  llm.Part // an [llm.Result], when settled
}

// few is how many calls a batch may have that is looked through from end to end.
const few = 8

// wide finds the calls of a batch of more than a few, and their latest marks, without
// looking through all of them. Copies of a state share it as long as they share the
// list of marks.
type wide struct {
	calls  []int32        // the places of the calls in the reply
	latest []atomic.Int32 // for each call 1 + the index of the mark that was put last by any copy, 0 for none
}

// wideOf is nil for a batch of a few calls.
func wideOf(parts []llm.Part, n int) *wide {
	if n <= few {
		return nil
	}
	w := &wide{calls: make([]int32, 0, n), latest: make([]atomic.Int32, n)}
	for i, p := range parts {
		if _, ok := p.(llm.Call); ok {
			w.calls = append(w.calls, int32(i))
		}
	}
	return w
}

// mark is how far a call has come.
func (b *batch) mark(ordinal int) mark {
	if b.wide == nil {
		for _, m := range slices.Backward(b.marks.items) {
			if m.ordinal == ordinal {
				return m
			}
		}
		return mark{ordinal: ordinal}
	}
	if i := b.latest(ordinal); i > 0 {
		return b.marks.items[i-1]
	}
	return mark{ordinal: ordinal}
}

// latest is 1 + the index of a call's latest mark, 0 when it has none. A copy that has
// gone further may have put marks behind the end of this one's list, which are passed
// over: whoever put one had written it before it could be found here.
func (b *batch) latest(ordinal int) int32 {
	i, n := b.wide.latest[ordinal].Load(), int32(len(b.marks.items))
	for shared := b.marks.items[:cap(b.marks.items)]; i > n; {
		i = shared[i-1].before
	}
	return i
}

// push adds a mark.
func (b *batch) push(m mark) {
	if b.wide == nil {
		b.marks = b.marks.push(m)
		return
	}
	m.before = b.latest(m.ordinal)
	shared := b.marks.claimed
	b.marks = b.marks.push(m)
	if b.marks.claimed != shared { // the list has moved; older copies keep the old one
		b.wide = &wide{calls: b.wide.calls, latest: make([]atomic.Int32, b.calls)}
		for i, k := range b.marks.items {
			b.wide.latest[k.ordinal].Store(int32(i) + 1)
		}
		return
	}
	b.wide.latest[m.ordinal].Store(int32(len(b.marks.items)))
}
