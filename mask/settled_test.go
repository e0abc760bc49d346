// SPDX-License-Identifier: Apache-2.0

package mask_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/mask"
)

// inPieces shows a text as who watches it arrive is shown it.
func inPieces(m *mask.Masker, pieces []string) (shown []string) {
	held := ""
	for _, p := range pieces {
		held += p
		n := m.Settled(held)
		shown = append(shown, m.Text(held[:n]))
		held = held[n:]
	}
	return append(shown, m.Text(held))
}

// What is shown in pieces is what Text makes of the whole, wherever it is cut.
func TestSettledPiecesAreTheWhole(t *testing.T) {
	t.Parallel()
	m := masker()
	var all []string
	for _, around := range []string{"%s ", "a %s b\n", `{"k":"%s"}` + "\n", "x\n%s\n", "(%s)"} {
		for name, s := range secrets() {
			text := "It says " + fmt.Sprintf(around, s) + " and goes on."
			all = append(all, text)
			want := m.Text(text)
			for i := range text {
				if got := strings.Join(inPieces(m, []string{text[:i], text[i:]}), ""); got != want {
					t.Fatalf("%s cut at %d:\n got %q\nwant %q", name, i, got, want)
				}
			}
		}
	}
	text := strings.Join(all, "\n")
	want := m.Text(text)
	for seed := range uint64(40) {
		rnd := rand.New(rand.NewPCG(seed, 7))
		var pieces []string
		for rest := text; rest != ""; {
			n := min(len(rest), 1+rnd.IntN([]int{3, 12, 80, 900}[seed%4]))
			pieces, rest = append(pieces, rest[:n]), rest[n:]
		}
		if got := strings.Join(inPieces(m, pieces), ""); got != want {
			t.Fatalf("seed %d: the text in pieces differs from the text", seed)
		}
	}
}

// A word is shown as soon as it has ended.
func TestSettledHoldsLittleBack(t *testing.T) {
	t.Parallel()
	m := masker()
	for s, want := range map[string]string{
		"":                         "",
		"The net is":               "The net ",
		"The net is ":              "The net is ",
		"The net\nG":               "The net\n",
		"with a Bearer ":           "with a ",
		"with a Bearer x ":         "with a Bearer x ",
		"see -----BEGIN":           "",
		"one\n-----BEGIN RSA PRIV": "one\n",
	} {
		if got := s[:m.Settled(s)]; got != want {
			t.Errorf("of %q: got %q, want %q", s, got, want)
		}
	}
}

func FuzzSettled(f *testing.F) {
	for _, s := range secrets() {
		f.Add("x "+s+" y", 5, 9)
	}
	m := masker()
	f.Fuzz(func(t *testing.T, s string, a, b int) {
		a = min(max(a, 0), len(s))
		b = min(max(b, a), len(s))
		if got, want := strings.Join(inPieces(m, []string{s[:a], s[a:b], s[b:]}), ""), m.Text(s); got != want {
			t.Errorf("%q cut at %d and %d became %q, want %q", s, a, b, got, want)
		}
	})
}

// A nil Masker masks nothing, and takes all that the others take.
func TestNilMasker(t *testing.T) {
	var m *mask.Masker
	const key = "ghp_" + "0123456789abcdefghijABCDEFGHIJ012345"
	var out strings.Builder
	w := m.Writer(&out)
	_, err := w.Write([]byte(key))
	if err == nil {
		err = w.Close()
	}
	if err != nil || out.String() != key || m.Text(key) != key || string(m.Bytes([]byte(key))) != key || m.Found(key) || m.Settled(key) != len(key) {
		t.Errorf("it does more than nothing: %v, %q", err, out.String())
	}
}

// A value is found as Go quotes it, which is how errors show it.
func TestQuotedValue(t *testing.T) {
	const value = "bell\a and\u00a0\"space\u2028"
	m := mask.New(value)
	for _, format := range []string{"%q", "%+q"} {
		if got := m.Text(fmt.Sprintf("bad "+format, value)); got != `bad "[masked]"` {
			t.Errorf("%s: %s", format, got)
		}
	}
}
