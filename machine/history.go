package machine

import (
	"slices"
	"sync/atomic"

	"github.com/fiducial-dev/fiducial/llm"
)

// history is a list of messages that only ever seems to grow. Copies share one
// array. The copy that first claims the slot behind its end may write there; every
// other copy moves to an array of its own. No slot is ever written twice, so a
// view stays what it was, in any goroutine.
type history struct {
	messages []llm.Message
	claimed  *atomic.Int64 // slots in use of the array; nil when it is not ours to grow
}

// historyOf takes messages over without copying; the caller keeps no right to
// write to them.
func historyOf(messages []llm.Message) history {
	if len(messages) == 0 {
		return history{}
	}
	return history{messages: slices.Clip(messages)}
}

// push returns the history with one more message. It is amortised O(1) for the
// newest copy and one copy of the list for a copy that was overtaken.
func (h history) push(m llm.Message) history {
	n := len(h.messages)
	if n < cap(h.messages) && h.claimed != nil && h.claimed.CompareAndSwap(int64(n), int64(n+1)) {
		return history{messages: append(h.messages, m), claimed: h.claimed}
	}
	grown := append(slices.Clip(h.messages), m)
	claimed := new(atomic.Int64)
	claimed.Store(int64(n + 1))
	return history{messages: grown, claimed: claimed}
}

// replaceLast returns the history with another last message, in an array of its
// own, for older copies still show the one that is there.
func (h history) replaceLast(m llm.Message) history {
	n := len(h.messages) - 1
	return history{messages: slices.Clip(h.messages[:n])}.push(m)
}

// cut returns the first n messages.
func (h history) cut(n int) history { return historyOf(h.messages[:n]) }

// view is the list for a reader, who cannot append into the shared array.
func (h history) view() []llm.Message { return slices.Clip(h.messages) }

// last is the zero message when there is none.
func (h history) last() llm.Message {
	if len(h.messages) == 0 {
		return llm.Message{}
	}
	return h.messages[len(h.messages)-1]
}
