// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"slices"
	"sync/atomic"

	"github.com/fiducial-dev/fiducial/llm"
)

// grown is a list that only ever seems to grow. Copies share one array. The copy
// that first claims the slot behind its end may write there; every other copy
// moves to an array of its own. No slot is ever written twice, so a view stays what
// it was, in any goroutine.
type grown[T any] struct {
	items   []T
	claimed *atomic.Int64 // slots in use of the array; nil when it is not ours to grow
}

// roomFor is an empty list that does not move before it has n items.
func roomFor[T any](n int) grown[T] {
	if n <= 2 { // one piece of memory for both
		room := new(struct {
			claimed atomic.Int64
			items   [2]T
		})
		return grown[T]{items: room.items[:0:n], claimed: &room.claimed}
	}
	return grown[T]{items: make([]T, 0, n), claimed: new(atomic.Int64)}
}

// push returns the list with one more item. It is amortised O(1) for the newest
// copy and one copy of the list for a copy that was overtaken.
func (g grown[T]) push(v T) grown[T] {
	n := len(g.items)
	if n < cap(g.items) && g.claimed != nil && g.claimed.CompareAndSwap(int64(n), int64(n+1)) {
		return grown[T]{items: append(g.items, v), claimed: g.claimed}
	}
	// Twice as long, however long it is: append grows long lists by a quarter only, and
	// that is copied four times over.
	items := append(make([]T, 0, max(8, 2*n)), g.items...)
	claimed := new(atomic.Int64)
	claimed.Store(int64(n + 1))
	return grown[T]{items: append(items, v), claimed: claimed}
}

// history is the messages of a conversation.
type history struct{ grown[llm.Message] }

// historyOf takes messages over without copying; the caller keeps no right to
// write to them.
func historyOf(messages []llm.Message) history {
	if len(messages) == 0 {
		return history{}
	}
	return history{grown[llm.Message]{items: slices.Clip(messages)}}
}

func (h history) push(m llm.Message) history { return history{h.grown.push(m)} }

// replaceLast returns the history with another last message, in an array of its
// own, for older copies still show the one that is there.
func (h history) replaceLast(m llm.Message) history {
	n := len(h.items) - 1
	return historyOf(h.items[:n]).push(m)
}

// cut returns the first n messages.
func (h history) cut(n int) history { return historyOf(h.items[:n]) }

// view is the list for a reader, who cannot append into the shared array.
func (h history) view() []llm.Message { return slices.Clip(h.items) }

// last is the zero message when there is none.
func (h history) last() llm.Message {
	if len(h.items) == 0 {
		return llm.Message{}
	}
	return h.items[len(h.items)-1]
}
