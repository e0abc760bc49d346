// SPDX-License-Identifier: Apache-2.0

package mask

import (
	"slices"
	"strings"
)

// space is what ends a word: no shape but those below goes on behind it.
const space = " \t\n\r"

// Settled is the length of the beginning of s that can be shown now: nothing that
// comes behind s can make a secret of a part of it, and the rest may be masked by
// itself. So a text that arrives in pieces is shown as Text would show it whole:
// what is settled is masked and shown, the rest is kept and looked at again with the
// next piece, and at the end the rest is masked and shown as it is. Held back is
// at most the last word, a private key that has no end yet, and what may be the
// beginning of a given value.
func (m *Masker) Settled(s string) int {
	if m == nil {
		return len(s)
	}
	cut := strings.LastIndexAny(s, space) + 1
	for _, sh := range shapes() { // those that have a space inside
		if strings.HasSuffix(s[:cut], sh.prefix) {
			cut -= len(sh.prefix)
		}
	}
	// The first and the last line of a private key hold spaces.
	if line := strings.LastIndexByte(s[:cut], '\n') + 1; strings.Contains(s[line:], "-----") {
		cut = line
	}
	for _, v := range m.values {
		if strings.ContainsAny(v, space) {
			cut = min(cut, len(s)-overlap(s, v))
		}
	}
	spans := m.find(s, 0)
	for { // what is left must begin with a word, for its beginning is looked at
		at := strings.LastIndexAny(s[:cut], space) + 1
		for _, sp := range slices.Backward(spans) {
			if sp.anchor < at && (sp.to > at || sp.to == len(s)) {
				at = sp.anchor
			}
		}
		if at == cut {
			return cut
		}
		cut = at
	}
}

// overlap is the length of the longest end of s that begins value, and is not all
// of it.
func overlap(s, value string) int {
	for n := min(len(s), len(value)-1); n > 0; n-- {
		if strings.HasSuffix(s, value[:n]) {
			return n
		}
	}
	return 0
}
