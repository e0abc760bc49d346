// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/constraint"
	"github.com/fiducial-dev/fiducial/kicad/docs"
)

// bound is what a text sets for a quantity.
type bound struct{ min, max string }

const quantity = `([-+]?(?:[0-9]+(?:[.,][0-9]+)?|[.][0-9]+)\s*(?:[a-zA-Z\x{b5}\x{3bc}\x{3a9}\x{2126}%\x{b0}]+[0-9]{0,3})?)`

var (
	modal   = `(?:(?:must|may|shall|should|has to|have to|can|is|are|be|stays?|stay|remain|remains|draws?|draw|carry|carries|at|not|never|to|of)\s+)*?`
	atMost  = regexp.MustCompile(`(?i)(?:^|\s)` + modal + `(?:at most|no more than|not more than|maximum(?: of)?|max\.?(?: of)?|up to|below|under|less than|lower than|smaller than|not (?:to )?exceed|within|<=|\x{2264}|<)\s*` + quantity + `$`)
	notOver = regexp.MustCompile(`(?i)\s(?:must|may|shall|should|can)\s*(?:not|never)\s+(?:exceed|be (?:over|above|more than)|draw more than|carry more than|go (?:over|above)|rise above|get above)\s+` + quantity + `$`)
	atLeast = regexp.MustCompile(`(?i)(?:^|\s)` + modal + `(?:at least|no less than|not less than|minimum(?: of)?|min\.?(?: of)?|above|over|more than|greater than|larger than|>=|\x{2265}|>)\s*` + quantity + `$`)
	fromTo  = regexp.MustCompile(`(?i)(?:^|\s)` + modal + `(?:between|from|in the range(?: of)?|within)\s*` + quantity + `\s*(?:and|to|\.\.|-|\x{2013})\s*` + quantity + `$`)
	alone   = regexp.MustCompile(`(?i)^` + quantity + `$`)
)

// find is the bound at the end of a text, and where the words before it end.
func find(text string) (b bound, at int, ok bool) {
	take := func(m []int, n int) string { return strings.TrimSpace(text[m[2*n]:m[2*n+1]]) }
	if m := fromTo.FindStringSubmatchIndex(text); m != nil {
		b, at = bound{min: take(m, 1), max: take(m, 2)}, m[0]
	} else if m := notOver.FindStringSubmatchIndex(text); m != nil {
		b, at = bound{max: take(m, 1)}, m[0]
	} else if m := atMost.FindStringSubmatchIndex(text); m != nil {
		b, at = bound{max: take(m, 1)}, m[0]
	} else if m := atLeast.FindStringSubmatchIndex(text); m != nil {
		b, at = bound{min: take(m, 1)}, m[0]
	} else {
		return b, 0, false
	}
	for _, q := range []string{b.min, b.max} {
		if _, ok := docs.ParseQuantity(q); q != "" && !ok {
			return b, 0, false
		}
	}
	return b, at, true
}

// boundOf reports whether a text is nothing but a bound, or a quantity alone.
func boundOf(text string) (b bound, ok bool) {
	if q, ok := quantityAlone(text); ok {
		return bound{max: q}, true
	}
	b, at, ok := find(text)
	return b, ok && strings.TrimSpace(text[:at]) == ""
}

func quantityAlone(text string) (string, bool) {
	if !alone.MatchString(text) {
		return "", false
	}
	_, ok := docs.ParseQuantity(text)
	return text, ok
}

// String is the bound in words.
func (b bound) String() string { return constraint.Limit{Min: b.min, Max: b.max}.Bounds() }

const (
	refList = `([A-Za-z]+[0-9*?]+(?:\s*(?:,|and|&)\s*[A-Za-z]+[0-9*?]+)*)`
	word1   = `([\p{L}_][\p{L}\p{N}_.-]*)`
	mustBe  = `(?:must|has to|have to|shall|should|is|are|stays?|remains?)(?:\s+(?:be|stay|remain|always|kept|left))*`
)

var (
	onePin   = `(?:(?:the\s+)?pin\s+)?([A-Za-z]+[0-9*?]+)(?:\.|\s+pin\s+)([\p{L}\p{N}_~{}/+*?-]+)`
	pinOpen  = regexp.MustCompile(`(?i)^` + onePin + `\s+` + mustBe + `\s+(?:open|unconnected|not connected|floating)$`)
	pinNever = regexp.MustCompile(`(?i)^` + onePin + `\s+(?:must\s+never|must\s+not|may\s+not|may\s+never|shall\s+not|shall\s+never|should\s+never|never|is\s+never)\s+(?:be\s+)?(?:on|connected to|connect to|tied to|touch|go to|goes to|reach)\s+(?:the\s+)?(?:net\s+)?(\S+)$`)
	pinOn    = regexp.MustCompile(`(?i)^` + onePin + `\s+` + mustBe + `\s+(?:on|connected to|tied to)\s+(?:the\s+)?(?:net\s+)?(\S+)$`)
	sumOf    = regexp.MustCompile(`(?i)^(?:the\s+)?(?:sum|total)\s+(?:of\s+)?(?:the\s+)?` + word1 + `(?:\s+(?:over|of|for)\s+(?:all\s+(?:parts)?|` + refList + `))?$`)
	countOf  = regexp.MustCompile(`(?i)^(?:the\s+)?number\s+of\s+(?:fitted\s+)?(?:parts\s+)?` + refList + `(?:\s+parts)?$`)
	ofPart   = regexp.MustCompile(`(?i)^(?:the\s+)?` + word1 + `\s+(?:of|through|in|across|at|on)\s+` + refList + `$`)
	partHas  = regexp.MustCompile(`(?i)^(?:the\s+)?` + refList + `(?:'s|\x{2019}s)?(?:\s+` + word1 + `)?$`)
	fieldIs  = regexp.MustCompile(`(?i)^(?:the\s+)?(value|footprint)\s+of\s+` + refList + `\s+` + mustBe + `\s+(\S+)$`)
	itsIs    = regexp.MustCompile(`(?i)^` + refList + `(?:'s|\x{2019}s)?\s+(value|footprint)\s+` + mustBe + `\s+(\S+)$`)
	refItem  = regexp.MustCompile(`[A-Za-z]+[0-9*?]+`)
)

// limits are what a machine can check of a text, none when that is for people.
func limits(text string) []constraint.Limit {
	if m := pinOpen.FindStringSubmatch(text); m != nil {
		return []constraint.Limit{{Kind: constraint.OpenPin, Pins: []string{m[1] + "." + m[2]}}}
	}
	if m := pinNever.FindStringSubmatch(text); m != nil {
		return []constraint.Limit{{Kind: constraint.ForbiddenNet, Pins: []string{m[1] + "." + m[2]}, Nets: []string{m[3]}}}
	}
	if m := pinOn.FindStringSubmatch(text); m != nil {
		return []constraint.Limit{{Kind: constraint.OnNet, Pins: []string{m[1] + "." + m[2]}, Nets: []string{m[3]}}}
	}
	if m := fieldIs.FindStringSubmatch(text); m != nil {
		return []constraint.Limit{{Kind: constraint.Field, Field: title(m[1]), Parts: refItem.FindAllString(m[2], -1), Is: []string{m[3]}}}
	}
	if m := itsIs.FindStringSubmatch(text); m != nil {
		return []constraint.Limit{{Kind: constraint.Field, Field: title(m[2]), Parts: refItem.FindAllString(m[1], -1), Is: []string{m[3]}}}
	}
	b, at, ok := find(text)
	if !ok {
		return nil
	}
	l, ok := limitOf(strings.TrimSpace(text[:at]), b)
	if !ok {
		return nil
	}
	return []constraint.Limit{l}
}

// limitOf is the limit of a quantity: of a sum, a count, or a field of parts.
func limitOf(subject string, b bound) (constraint.Limit, bool) {
	l := constraint.Limit{Min: b.min, Max: b.max}
	if m := sumOf.FindStringSubmatch(subject); m != nil {
		l.Kind, l.Field, l.Parts = constraint.Sum, m[1], refItem.FindAllString(m[2], -1)
		if len(l.Parts) == 0 {
			l.Parts = []string{"*"}
		}
		return l, true
	}
	if m := countOf.FindStringSubmatch(subject); m != nil {
		l.Kind, l.Parts = constraint.Count, refItem.FindAllString(m[1], -1)
		return l, true
	}
	var field string
	if m := ofPart.FindStringSubmatch(subject); m != nil {
		field, l.Parts = m[1], refItem.FindAllString(m[2], -1)
	} else if m := partHas.FindStringSubmatch(subject); m != nil {
		field, l.Parts = m[2], refItem.FindAllString(m[1], -1)
	} else {
		return l, false
	}
	switch strings.ToLower(field) {
	case "value", "resistance", "capacitance", "inductance":
		field = "Value"
	case "":
		if !valued(l) {
			return l, false
		}
		field = "Value"
	}
	l.Kind, l.Field = constraint.Range, field
	return l, true
}

func title(field string) string {
	if strings.EqualFold(field, "value") {
		return "Value"
	}
	return "Footprint"
}

// valued reports whether a bound without a field is about the value: resistors in ohms, capacitors in farads, coils in
// henries.
func valued(l constraint.Limit) bool {
	for _, p := range l.Parts {
		for _, text := range []string{l.Min, l.Max} {
			if q, ok := docs.ParseQuantity(text); text != "" && (!ok || q.Unit != "" && q.Unit != unitOf(p) || unitOf(p) == "") {
				return false
			}
		}
	}
	return true
}

// unitOf is the unit of what a part's value says, by its letters; "" when they say nothing.
func unitOf(ref string) string {
	switch strings.TrimRight(ref, "0123456789*?") {
	case "R":
		return "Ohm"
	case "C":
		return "F"
	case "L":
		return "H"
	}
	return ""
}

// bounded puts another bound into limits that have one. It is false when they have none, or several.
func bounded(was []constraint.Limit, b bound) ([]constraint.Limit, bool) {
	now := slices.Clone(was)
	at := -1
	for i, l := range now {
		if l.Kind == constraint.Sum || l.Kind == constraint.Range || l.Kind == constraint.Count {
			if at >= 0 {
				return nil, false
			}
			at = i
		}
	}
	if at < 0 {
		return nil, false
	}
	now[at].Min, now[at].Max = b.min, b.max
	return now, true
}

var numberedKey = regexp.MustCompile(`^([A-Za-z]{1,8}[-_]?)([0-9]{1,5})$`)

// nextKey is a name for a new constraint: the next number where the others are numbered, else words of the text.
func nextKey(keys []string, text string) string {
	count, highest, width := map[string]int{}, map[string]int{}, map[string]int{}
	for _, k := range keys {
		if m := numberedKey.FindStringSubmatch(k); m != nil {
			n, _ := strconv.Atoi(m[2]) // a few digits
			count[m[1]]++
			highest[m[1]], width[m[1]] = max(highest[m[1]], n), len(m[2])
		}
	}
	for prefix, n := range count {
		if 2*n > len(keys) {
			return fmt.Sprintf("%s%0*d", prefix, width[prefix], highest[prefix]+1)
		}
	}
	key := slug(text)
	for n := 2; slices.ContainsFunc(keys, func(k string) bool { return strings.EqualFold(k, key) }); n++ {
		key = fmt.Sprintf("%s-%d", slug(text), n)
	}
	return key
}

var (
	noise  = []string{"the", "a", "an", "of", "on", "in", "at", "is", "are", "be", "must", "may", "shall", "should", "not", "never", "and", "to", "has", "have", "pin", "net", "through", "over", "for", "stays", "stay", "draw", "exceed", "more", "than"}
	letter = regexp.MustCompile(`[A-Za-z0-9_]+`)
)

// slug is a name made of the first words of a text that say something.
func slug(text string) string {
	if _, at, ok := find(text); ok && strings.TrimSpace(text[:at]) != "" {
		text = text[:at]
	}
	var words []string
	for _, w := range letter.FindAllString(text, -1) {
		if w = strings.ToLower(strings.Trim(w, "_")); w != "" && !slices.Contains(noise, w) && len(words) < 4 && len(w) < 15 {
			words = append(words, w)
		}
	}
	switch key := strings.Join(words, "-"); {
	case key == "":
		return "constraint-1"
	case len(words) == 1 && refName.MatchString(key): // R1 at least 270 ohm
		return key + "-value"
	default:
		return key
	}
}
