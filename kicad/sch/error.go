// SPDX-License-Identifier: Apache-2.0

package sch

import (
	"fmt"
	"strings"
)

// An EditErrorKind says why an edit is refused.
type EditErrorKind uint8

// The kinds.
const (
	NoSuchNet  EditErrorKind = iota + 1 // no label, pin or power symbol spells the name
	NoSuchPart                          // no part has the reference
	Ambiguous                           // several nets or parts fit; Candidates names them
	NetExists                           // the new name is in use: the nets would be joined
	PartExists                          // the new reference is in use
	BadName                             // the new name cannot be written or makes no sense
	HiddenPin                           // a part is on the net by a hidden power pin, which a rename would leave behind
	Broken                              // a file of the tree has errors, so that not every place is known
	BusMember                           // the net is a member of a bus, from which a rename would part it
)

// An EditError is a refused edit. Nothing was changed.
type EditError struct {
	Kind       EditErrorKind
	Detail     string
	Candidates []string // what the caller may have meant, or what stands in the way
}

func (e *EditError) Error() string {
	if len(e.Candidates) == 0 {
		return "sch: " + e.Detail
	}
	return fmt.Sprintf("sch: %s: %s", e.Detail, strings.Join(e.Candidates, ", "))
}
