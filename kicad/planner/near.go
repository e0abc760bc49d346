// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/llm"
)

// near are the names that a misspelt one may mean, the nearest first, at most three. Only what is close counts.
func near(name string, all []string) []string {
	type candidate struct {
		name string
		far  int
	}
	var found []candidate
	want := fold(name)
	for _, n := range all {
		have := fold(n)
		d := distance(want, have)
		if bare := fold(n[strings.LastIndex(n, "/")+1:]); bare != have {
			d = min(d, distance(want, bare))
		}
		if len(want) > 2 && (strings.HasPrefix(have, want) || strings.HasSuffix(have, want)) {
			d = min(d, 2)
		}
		if d <= max(1, min(len(want), len(have))/3) {
			found = append(found, candidate{n, d})
		}
	}
	slices.SortStableFunc(found, func(a, b candidate) int { return cmp.Compare(a.far, b.far) })
	var out []string
	for _, c := range found {
		if !slices.Contains(out, c.name) && len(out) < 3 {
			out = append(out, c.name)
		}
	}
	return out
}

// fold leaves out what people spell in several ways.
func fold(s string) string {
	return strings.NewReplacer("{slash}", "/", "_", "", "-", "", " ", "").Replace(strings.ToLower(cutName(s, 100)))
}

// distance is how many characters have to be put in, taken out, changed, or swapped with the next.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	two, one, now := make([]int, len(y)+1), make([]int, len(y)+1), make([]int, len(y)+1)
	for j := range one {
		one[j] = j
	}
	for i := range x {
		now[0] = i + 1
		for j := range y {
			cost := 1
			if x[i] == y[j] {
				cost = 0
			}
			now[j+1] = min(now[j]+1, one[j+1]+1, one[j]+cost)
			if i > 0 && j > 0 && x[i] == y[j-1] && x[i-1] == y[j] {
				now[j+1] = min(now[j+1], two[j-1]+1)
			}
		}
		two, one, now = one, now, two
	}
	return one[len(y)]
}

// meant asks for the names that may have been meant, "" when none is close.
func meant(name string, all []string) string {
	list := near(name, all)
	if len(list) == 0 {
		return ""
	}
	return fmt.Sprintf(" Did you mean %s?", strings.Join(list, " or "))
}

// cutName keeps a name from filling an answer.
func cutName(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return llm.CutUTF8(s, most) + "\u2026"
}
