// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"fmt"
	"slices"
	"strings"
)

// limit is where DRC stops listing findings of one type: at 199 or 200, measured on kicad-cli 9.0.8.
const limit = 199

// An Outcome is what a comparison says to a gate.
type Outcome string

// The outcomes.
const (
	NothingNew    Outcome = "PASS"
	SomethingNew  Outcome = "FAIL"
	NotComparable Outcome = "NOT COMPARABLE"
)

// A Delta is the difference between two reports of one check. Library findings are in none of the lists but their own.
type Delta struct {
	Check   Check     `json:"check"`
	Added   []Finding `json:"added"`   // not there before, excluded ones included: a fresh exclusion hides nothing
	Removed []Finding `json:"removed"` // gone, while their rule is as strict as before
	Same    []Finding `json:"same"`    // as they are after
	// Silenced were reported before and are no longer, or as less, because the rules changed or an exclusion was added.
	// Those that are still listed are in Same as well.
	Silenced []Finding `json:"silenced,omitempty"`
	// Uncertain are differences of types in Blind.
	Uncertain []Finding `json:"uncertain,omitempty"`
	// Blind says of which types nothing can be said, and why. The key "*" stands for all.
	Blind          map[string]string `json:"blind,omitempty"`
	LibraryAdded   []Finding         `json:"library_added,omitempty"`
	LibraryRemoved []Finding         `json:"library_removed,omitempty"`
	Rules          []RuleChange      `json:"rules,omitempty"` // of this check
}

// Outcome is SomethingNew when a finding was added, else NotComparable when some type could not be compared. A rule
// that was switched off makes its type incomparable: take the second report with the rules of the first, and give
// Compare no changes for them.
func (d Delta) Outcome() Outcome {
	switch {
	case len(d.Added) > 0:
		return SomethingNew
	case len(d.Blind) > 0:
		return NotComparable
	}
	return NothingNew
}

// Summary says it in a line, for instance "1 new, 2 removed, 14 as before".
func (d Delta) Summary() string {
	s := fmt.Sprintf("%d new, %d removed, %d as before", len(d.Added), len(d.Removed), len(d.Same))
	if n := len(d.Silenced); n > 0 {
		s += fmt.Sprintf(", %d silenced by a change of the rules", n)
	}
	if len(d.Blind) > 0 {
		var types []string
		for _, t := range union(d.Blind, nil) {
			types = append(types, t+" ("+d.Blind[t]+")")
		}
		s += "; NOT COMPARABLE: " + strings.Join(types, ", ")
	}
	return s
}

// Compare matches the findings of two reports: by type and the items concerned, by UUID where items have one, else by
// place and description; each finding of one report matches one of the other. changes are the differences of the
// rules under which the reports were taken, see [CompareRules]. A finding whose weight rose by itself counts as
// added.
func Compare(before, after Report, changes []RuleChange) Delta {
	c := comparison{d: Delta{Check: after.Check, Blind: map[string]string{}}, hidden: map[string]bool{}, moved: map[string]bool{}}
	c.rules(before, after, changes)
	c.caps(before, after)
	old := slices.Clone(before.Findings)
	fresh := slices.Clone(after.Findings)
	old, fresh = c.match(old, fresh, Finding.identity)
	old, fresh = c.match(old, fresh, func(f Finding) (string, bool) { return f.place(), true })
	known := map[string]bool{}
	for _, f := range before.Findings {
		if key, ok := f.identity(); ok {
			known[key] = true
		}
	}
	for _, f := range fresh {
		if key, _ := f.identity(); f.Excluded && known[key] {
			continue // an exclusion whose place no longer fits is listed beside the finding itself
		}
		c.leftover(f, true)
	}
	for _, f := range old {
		c.leftover(f, false)
	}
	return c.d
}

type comparison struct {
	d      Delta
	hidden map[string]bool // types whose findings the new rules may leave out; "*" for all
	moved  map[string]bool // types whose severity was changed
	full   map[string]bool // types that were cut before the change
}

func (c *comparison) rules(before, after Report, changes []RuleChange) {
	for _, ch := range changes {
		if ch.Check != c.d.Check {
			continue
		}
		c.d.Rules = append(c.d.Rules, ch)
		switch ch.Kind {
		case SeverityRule:
			c.moved[ch.Rule] = true
			if ch.Hides {
				c.hidden[ch.Rule] = true
				c.d.Blind[ch.Rule] = "its rule was switched off"
			}
		case ConstraintRule, CustomRule:
			c.hidden["*"] = true
			c.d.Blind["*"] = ch.Rule + " was changed"
		case ExclusionRule: // excluded findings are still listed
		}
	}
	for _, t := range after.Ignored {
		if !slices.Contains(before.Ignored, t) {
			c.hidden[t] = true
			c.d.Blind[t] = "its rule was switched off"
		}
	}
}

// caps finds the types that DRC stopped listing.
func (c *comparison) caps(before, after Report) {
	c.full = map[string]bool{}
	if c.d.Check != DRC {
		return
	}
	count := func(r Report) map[string]int {
		n := map[string]int{}
		for _, f := range r.Findings {
			n[f.Type]++
		}
		return n
	}
	b, a := count(before), count(after)
	for _, t := range union(b, a) {
		if (b[t] >= limit || a[t] >= limit) && !(Finding{Type: t}).Library() {
			c.full[t] = b[t] >= limit
			c.d.Blind[t] = fmt.Sprintf("kicad-cli lists no more than about %d of a type", limit)
		}
	}
}

// match pairs findings with equal keys and returns the rest. Among equals a finding that is not excluded goes first.
func (c *comparison) match(old, fresh []Finding, key func(Finding) (string, bool)) (oldRest, freshRest []Finding) {
	waiting := map[string][]Finding{}
	for _, f := range old {
		k, ok := key(f)
		if !ok {
			oldRest = append(oldRest, f)
			continue
		}
		waiting[k] = append(waiting[k], f)
	}
	inOrder := slices.Clone(fresh)
	slices.SortStableFunc(inOrder, func(a, b Finding) int {
		switch {
		case a.Excluded == b.Excluded:
			return 0
		case b.Excluded:
			return -1
		}
		return 1
	})
	for _, f := range inOrder {
		k, ok := key(f)
		if !ok || len(waiting[k]) == 0 {
			freshRest = append(freshRest, f)
			continue
		}
		c.pair(waiting[k][0], f)
		waiting[k] = waiting[k][1:]
	}
	for _, f := range old { // in the order of the report
		if k, ok := key(f); ok && len(waiting[k]) > 0 {
			oldRest = append(oldRest, waiting[k][0])
			waiting[k] = waiting[k][1:]
		}
	}
	return oldRest, freshRest
}

// pair notes a finding that both reports have.
func (c *comparison) pair(old, now Finding) {
	if now.Library() {
		return
	}
	rose := now.Severity.weight() > old.Severity.weight() && !c.moved[now.Type]
	if rose && !now.Excluded {
		c.d.Added = append(c.d.Added, now)
		c.d.Removed = append(c.d.Removed, old)
		return
	}
	c.d.Same = append(c.d.Same, now)
	lowered := c.moved[now.Type] && now.Severity.weight() < old.Severity.weight()
	if now.Excluded && !old.Excluded || lowered {
		c.d.Silenced = append(c.d.Silenced, now)
	}
}

// leftover notes a finding that one report has.
func (c *comparison) leftover(f Finding, added bool) {
	switch {
	case f.Library() && added:
		c.d.LibraryAdded = append(c.d.LibraryAdded, f)
	case f.Library():
		c.d.LibraryRemoved = append(c.d.LibraryRemoved, f)
	case added && c.full[f.Type]:
		c.d.Uncertain = append(c.d.Uncertain, f)
	case added:
		c.d.Added = append(c.d.Added, f)
	case c.hidden[f.Type]:
		c.d.Silenced = append(c.d.Silenced, f)
	case c.hidden["*"] || c.d.Blind[f.Type] != "":
		c.d.Uncertain = append(c.d.Uncertain, f)
	case !f.Excluded: // what was excluded is not fixed by going away
		c.d.Removed = append(c.d.Removed, f)
	}
}
