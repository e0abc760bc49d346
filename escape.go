// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"strconv"
	"strings"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/fiducial-dev/fiducial/llm"
)

// leniently is s as somebody may read it who takes what is no JSON for JSON all the
// same: with every escape that is right undone, and a backslash before anything else
// left out, or left in. An escape that is cut off at the end says nothing.
func leniently(s string) []string {
	return []string{unescape(s, false), unescape(s, true)}
}

func unescape(s string, keep bool) string {
	var b strings.Builder
	b.Grow(len(s))
	for s != "" {
		at := strings.IndexByte(s, '\\')
		if at < 0 || at == len(s)-1 {
			b.WriteString(strings.TrimSuffix(s, `\`))
			break
		}
		b.WriteString(s[:at])
		s = s[at+1:]
		if s[0] == 'u' {
			r, n := unicodeEscape(s)
			if n == 0 && len(s) < len("u0000") && isHex(s[1:]) {
				break // cut off
			}
			if n > 0 {
				b.WriteRune(r)
				s = s[n:]
				continue
			}
		}
		if i := strings.IndexByte(`"\/bfnrt`, s[0]); i >= 0 {
			b.WriteByte("\"\\/\b\f\n\r\t"[i])
			s = s[1:]
			continue
		}
		if keep {
			b.WriteByte('\\')
		}
		_, n := utf8.DecodeRuneInString(s)
		b.WriteString(s[:n])
		s = s[n:]
	}
	return b.String()
}

// unicodeEscape reads what stands behind a backslash at the beginning of s, such as
// u00e9, or two of them that make one character. N is 0 when it is no such escape.
func unicodeEscape(s string) (r rune, n int) {
	first, ok := hexUnit(s)
	if !ok {
		return 0, 0
	}
	if utf16.IsSurrogate(first) && strings.HasPrefix(s[5:], `\`) {
		if second, ok := hexUnit(s[6:]); ok {
			if r := utf16.DecodeRune(first, second); r != utf8.RuneError {
				return r, 11
			}
		}
	}
	return first, 5
}

// hexUnit reads u and four digits.
func hexUnit(s string) (rune, bool) {
	if len(s) < 5 || s[0] != 'u' || !isHex(s[1:5]) {
		return 0, false
	}
	v, err := strconv.ParseUint(s[1:5], 16, 32)
	return rune(v), err == nil
}

func isHex(s string) bool { return strings.Trim(s, "0123456789abcdefABCDEF") == "" }

// maskAcross looks for a secret that begins in one text of a message and ends in
// another, for whoever reads the texts reads them one behind the other. Then all of
// them become one.
func (c *core) maskAcross(parts []llm.Part) []llm.Part {
	k := c.cfg.masker
	if k == nil {
		return parts
	}
	var all strings.Builder
	texts := 0
	for _, p := range parts {
		if t, ok := p.(llm.Text); ok && t.Text != "" {
			all.WriteString(t.Text)
			texts++
		}
	}
	if texts < 2 || !k.Found(all.String()) {
		return parts
	}
	joined := k.Text(all.String())
	out := make([]llm.Part, 0, len(parts))
	for _, p := range parts {
		t, ok := p.(llm.Text)
		if !ok {
			out = append(out, p)
			continue
		}
		t.Text, joined = joined, ""
		if t.Text != "" || !t.Opaque.IsZero() {
			out = append(out, t)
		}
	}
	return out
}
