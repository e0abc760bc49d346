// SPDX-License-Identifier: Apache-2.0

package reply

import (
	"slices"
	"testing"
)

func TestPairs(t *testing.T) {
	for name, c := range map[string]struct{ in, want []string }{
		"a character in two events": {
			[]string{`{"t":"a \ud83d"}`, `{"t":"\ude00 b"}`},
			[]string{`{"t":"a "}`, `{"t":"\ud83d\ude00 b"}`},
		},
		"others between": {
			[]string{`{"t":"\uD83D"}`, `{"usage":1}`, `{"x":"y","t":"\uDE00"}`},
			[]string{`{"t":""}`, `{"usage":1}`, `{"x":"y","t":"\uD83D\uDE00"}`},
		},
		"several in a row": {
			[]string{`{"t":"\ud83d"}`, `{"t":"\ude00\ud83d"}`, `{"t":"\ude01"}`},
			[]string{`{"t":""}`, `{"t":"\ud83d\ude00"}`, `{"t":"\ud83d\ude01"}`},
		},
		"whole characters": {
			[]string{`{"t":"\ud83d\ude00"}`, `{"t":"\ud83d\ude00"}`},
			[]string{`{"t":"\ud83d\ude00"}`, `{"t":"\ud83d\ude00"}`},
		},
		"an escaped backslash": {
			[]string{`{"t":"\\ud83d"}`, `{"t":"\\ude00"}`},
			[]string{`{"t":"\\ud83d"}`, `{"t":"\\ude00"}`},
		},
	} {
		var p pairs
		var got []string
		for _, data := range c.in {
			got = append(got, p.join(data))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", name, got, c.want)
		}
	}
}
