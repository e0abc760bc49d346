// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"

	"github.com/fiducial-dev/fiducial/llm"
)

// maxName is the longest tool name that all providers take, in bytes.
const maxName = 64

// Names maps the names of tools to names that every provider takes,
// ^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$, and back. A name that is fit stays as it is. Any
// other is cleaned, cut, and marked with a hash of the whole name, so that the
// wire name depends on the name alone: it is the same in every request and in
// every process, and also for tools that are no longer there.
type Names struct {
	real map[string]string // by wire name, where they differ
	fit  map[string]bool   // names of tools that are fit
}

// NewNames returns the mapping for a request's tools.
func NewNames(tools []llm.Tool) *Names {
	n := &Names{real: map[string]string{}, fit: map[string]bool{}}
	for _, t := range tools {
		if fitName(t.Name) {
			n.fit[t.Name] = true
		}
	}
	for _, t := range tools {
		n.Wire(t.Name)
	}
	return n
}

// Wire is the name to send for a tool.
func (n *Names) Wire(name string) string {
	if fitName(name) {
		return name
	}
	for salt := ""; ; salt += "+" {
		w := hashedName(name, salt)
		if owner, taken := n.real[w]; n.fit[w] || taken && owner != name {
			continue // another tool is called so: a hash of 40 bits may meet one
		}
		n.real[w] = name
		return w
	}
}

// Real is the tool that the provider means by a name. A name that was not sent is
// returned as it is.
func (n *Names) Real(wire string) string {
	if name, ok := n.real[wire]; ok {
		return name
	}
	return wire
}

func fitName(s string) bool {
	return s != "" && len(s) <= maxName && strings.IndexFunc(s, notInName) < 0 && !strings.ContainsAny(s[:1], "0123456789-")
}

func notInName(r rune) bool {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
		return false
	}
	return true
}

func hashedName(name, salt string) string {
	sum := sha256.Sum256([]byte(name + salt))
	tail := "_" + hex.EncodeToString(sum[:5])
	w := clean(name)
	if w == "" || strings.ContainsAny(w[:1], "0123456789-") {
		w = "_" + w
	}
	return w[:min(len(w), maxName-len(tail))] + tail
}

func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if notInName(r) {
			return '_'
		}
		return r
	}, s)
}

// IDs maps the ids of calls to ids that a provider takes, ^[a-zA-Z0-9_-]{1,max}$,
// and that occur once in a conversation. Use one for each encoding of a
// conversation, from its start: then the id of a call depends only on what stands
// before it, and the encoded prefix does not change as the conversation grows.
type IDs struct {
	max  int
	any  bool              // any characters, any length
	last map[string]string // by id, the wire id of the newest call that has it
	used map[string]bool
}

// NewIDs returns a mapping to ids of at most max bytes; 0 means 64.
func NewIDs(maxLen int) *IDs {
	if maxLen <= 0 {
		maxLen = 64
	}
	return &IDs{max: maxLen, last: map[string]string{}, used: map[string]bool{}}
}

// AnyIDs returns a mapping that mends only ids that are empty or used twice. It is
// for servers that want back what they gave, whatever it is: some models expect ids
// such as functions.read:0, and gateways put signatures into them.
func AnyIDs() *IDs {
	m := NewIDs(0)
	m.any = true
	return m
}

func (m *IDs) fit(id string) bool {
	return id != "" && (m.any || len(id) <= m.max && strings.IndexFunc(id, notInName) < 0)
}

// Call is the id to send for the next call of the conversation.
func (m *IDs) Call(id string) string {
	w := id
	if !m.fit(w) || m.used[w] {
		w = m.hashed(id, "")
	}
	for salt := "+"; m.used[w]; salt += "+" {
		w = m.hashed(id, salt)
	}
	m.used[w] = true
	m.last[id] = w
	return w
}

// Result is the id to send for the result of the newest call that has this id.
// A result without a call keeps its own id where that is fit.
func (m *IDs) Result(id string) string {
	if w, ok := m.last[id]; ok {
		return w
	}
	if m.fit(id) {
		return id
	}
	return m.hashed(id, "")
}

func (m *IDs) hashed(id, salt string) string {
	sum := sha256.Sum256([]byte(id + salt))
	tail := hex.EncodeToString(sum[:8])
	if len(tail) >= m.max {
		return tail[:m.max]
	}
	w := clean(id)
	return w[:min(len(w), m.max-len(tail))] + tail
}
