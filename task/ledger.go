// SPDX-License-Identifier: Apache-2.0

package task

import "slices"

// An Obligation is something that must be done before a run may finish (B-66).
type Obligation struct {
	Kind   string `json:"kind"`
	Detail string `json:"detail,omitempty"`
	Opener string `json:"opener,omitempty"` // what opened it, for people
}

// A Ledger holds the open obligations of one run, oldest first. It is not safe
// for concurrent use; [Rules] guards its own.
type Ledger struct {
	open []Obligation
}

// Open adds an obligation. One of the same kind and detail is kept once, with its
// first opener; then Open reports false.
func (l *Ledger) Open(o Obligation) bool {
	if slices.ContainsFunc(l.open, o.same) {
		return false
	}
	l.open = append(l.open, o)
	return true
}

// Clear removes the obligation of this kind and detail and reports whether there
// was one.
func (l *Ledger) Clear(kind, detail string) bool {
	n := len(l.open)
	l.open = slices.DeleteFunc(l.open, Obligation{Kind: kind, Detail: detail}.same)
	return len(l.open) < n
}

// ClearKind removes all obligations of a kind.
func (l *Ledger) ClearKind(kind string) {
	l.open = slices.DeleteFunc(l.open, func(o Obligation) bool { return o.Kind == kind })
}

// All are the open obligations, as a copy.
func (l *Ledger) All() []Obligation { return slices.Clone(l.open) }

func (o Obligation) same(p Obligation) bool { return o.Kind == p.Kind && o.Detail == p.Detail }
