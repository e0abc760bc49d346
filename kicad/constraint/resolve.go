// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"fmt"
	"slices"
	"strings"
)

// A Resolution says that something affected was looked at again, and what came of it.
type Resolution struct {
	Key  string `json:"key"`
	Item string `json:"item"`
	How  string `json:"how"` // what was done, or why nothing had to be
}

// Revisit is what the resolution is about.
func (r Resolution) Revisit() Revisit {
	return Revisit{strings.TrimSpace(r.Key), strings.TrimSpace(r.Item)}
}

// Decision is the resolution as a line of the run's decisions (B-115, B-119).
func (r Resolution) Decision() string {
	text := r.Revisit().String() + ": looked at again"
	if how := strings.Join(strings.Fields(r.How), " "); how != "" {
		text += ", " + how
	}
	return text
}

// Resolve handles the entries of one call one by one (B-114). Each gives one line: what was resolved, or why not, with
// the revisits that are open at this moment (B-116, B-117); a malformed entry is named by its place, from 1 (B-118).
// Only exactly the key and item of an open revisit resolve it.
func Resolve(open []Revisit, entries []Resolution) (lines []string, resolved []Resolution, left []Revisit) {
	left = slices.Clone(open)
	for i, e := range entries {
		v := e.Revisit()
		if v.Key == "" || v.Item == "" {
			lines = append(lines, fmt.Sprintf("error: entry %d needs key and item, neither empty; open: %s", i+1, list(left)))
			continue
		}
		at := slices.Index(left, v)
		if at < 0 {
			lines = append(lines, fmt.Sprintf("error: nothing open says that %s; open: %s", v, list(left)))
			continue
		}
		left = slices.Delete(left, at, at+1)
		lines = append(lines, "resolved: "+v.String())
		resolved = append(resolved, e)
	}
	return lines, resolved, left
}

func list(open []Revisit) string {
	if len(open) == 0 {
		return "none"
	}
	texts := make([]string, 0, len(open))
	for _, v := range open {
		texts = append(texts, v.String())
	}
	return strings.Join(texts, "; ")
}
