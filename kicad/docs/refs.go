// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"regexp"
	"strconv"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/sch"
)

var (
	oneRef    = regexp.MustCompile(`^([A-Za-z_]+)([0-9]+)([A-Za-z]?)$`)
	refRange  = regexp.MustCompile(`^([A-Za-z_]+)([0-9]+)-([A-Za-z_]*)([0-9]+)$`)
	rangeMark = regexp.MustCompile(`([A-Za-z_][0-9]+)\s*(?:[-\x{2010}-\x{2015}~]|\.{2,3}|…|\bto\b)\s*([A-Za-z_]*[0-9])`)
	aside     = regexp.MustCompile(`\([^)]*\)`)
)

// maxRange is how many parts a range may stand for; a longer one is a slip.
const maxRange = 1000

// ParseRefs reads a cell that lists references: "R1, R2", "R1 R2", "R4-R8", "R11–12", "U1A" for a unit. known tells the
// references of the design, which settle what a word means. Words without a digit ("PCB", "-") are passed over; those
// that were not understood are in bad.
func ParseRefs(cell string, known func(string) bool) (refs, bad []string) {
	seen := map[string]bool{}
	add := func(ref string) {
		if !seen[ref] {
			seen[ref] = true
			refs = append(refs, ref)
		}
	}
	if cell != "" && known(cell) {
		return []string{cell}, nil
	}
	cell = rangeMark.ReplaceAllString(aside.ReplaceAllString(cell, " "), "$1-$2")
	for word := range strings.FieldsFuncSeq(cell, func(r rune) bool { return strings.ContainsRune(",;+&/ \t\u00a0", r) }) {
		m := refRange.FindStringSubmatch(word)
		switch {
		case known(word):
			add(word)
		case m != nil:
			from, _ := strconv.Atoi(m[2])
			to, _ := strconv.Atoi(m[4])
			if m[3] != "" && m[3] != m[1] || to < from || to-from > maxRange {
				bad = append(bad, word)
				continue
			}
			for n := from; n <= to; n++ {
				add(settle(m[1]+strconv.Itoa(n), known))
			}
		case oneRef.MatchString(word):
			add(settle(word, known))
		case strings.ContainsAny(word, "0123456789"):
			bad = append(bad, word)
		}
	}
	return refs, bad
}

// settle finds the part that a reference means: itself, the part of a unit, or the same in capitals.
func settle(ref string, known func(string) bool) string {
	upper := strings.ToUpper(ref)
	m := oneRef.FindStringSubmatch(ref)
	switch {
	case known(ref):
	case m != nil && m[3] != "" && known(m[1]+m[2]):
		return m[1] + m[2]
	case known(upper):
		return upper
	}
	return ref
}

// letters are those of a reference.
func letters(ref string) string { return strings.TrimRight(ref, "0123456789?") }

func compareRefs(a, b string) int { return sch.CompareRefs(a, b) }
