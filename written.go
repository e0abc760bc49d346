// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"slices"

	"github.com/fiducial-dev/fiducial/llm"
)

// written sees whether a hook that has a request in hand has written into the history
// that it is made of. It takes up each message once, so that a round costs no copy of
// the history. Of the parts it knows the values, not what is behind their slices.
type written struct {
	messages []llm.Message
	parts    [][]llm.Part // of each message, in a list of its own
}

// take remembers the messages that are new.
func (w *written) take(history []llm.Message) {
	for _, m := range history[min(len(w.messages), len(history)):] {
		w.messages = append(w.messages, m)
		w.parts = append(w.parts, slices.Clone(m.Parts))
	}
}

// forget is for messages from n on, which may change in an orderly way.
func (w *written) forget(n int) {
	n = min(max(n, 0), len(w.messages))
	w.messages, w.parts = w.messages[:n], w.parts[:n]
}

// mend puts back what was written over, and returns the index of the first such message,
// -1 when there is none.
func (w *written) mend(history []llm.Message) int {
	found := -1
	for i := range w.messages[:min(len(w.messages), len(history))] {
		m := w.messages[i]
		whole := sameMessage(history[i], m)
		if whole && slices.EqualFunc(m.Parts, w.parts[i], samePart) {
			continue
		}
		copy(m.Parts, w.parts[i])
		if !whole {
			history[i] = m
		}
		if found < 0 {
			found = i
		}
	}
	return found
}
