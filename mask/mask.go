// SPDX-License-Identifier: Apache-2.0

// Package mask keeps secrets out of text that is stored or shown.
//
// It knows the shapes in which well-known services issue their keys, and values
// that it is given, usually those of environment variables ([FromEnv]). Masking is
// one pass of plain searches; text without a secret is returned as it is, without
// an allocation.
package mask

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unsafe"
)

// Mask is what stands in place of a secret.
const Mask = "[masked]"

// MinLength is the length in bytes below which a given value is no secret: it
// would be found in harmless words.
const MinLength = 8

// A Masker finds secrets. The zero value knows the shapes only; a nil one knows
// nothing, and leaves all as it is. It never changes,
// so it is safe for concurrent use.
type Masker struct {
	values    []string // the longest first
	multiline int      // the length of the longest value that holds a newline
}

// New returns a Masker that knows, besides the shapes, these values: as they are,
// and as they look inside JSON, in Go's quotes and in a URL. Values shorter than MinLength are left
// out.
func New(values ...string) *Masker {
	m := &Masker{}
	for _, v := range values {
		for _, form := range forms(v) {
			if len(form) < MinLength || slices.Contains(m.values, form) || form == Mask {
				continue
			}
			m.values = append(m.values, form)
			if strings.Contains(form, "\n") {
				m.multiline = max(m.multiline, len(form))
			}
		}
	}
	slices.SortStableFunc(m.values, func(a, b string) int { return len(b) - len(a) })
	return m
}

func forms(v string) []string {
	all := []string{v, strings.TrimSpace(v), url.QueryEscape(v), url.PathEscape(v)}
	for _, quoted := range []string{strconv.Quote(v), strconv.QuoteToASCII(v)} {
		all = append(all, quoted[1:len(quoted)-1])
	}
	if b, err := json.Marshal(v); err == nil {
		all = append(all, string(b[1:len(b)-1]))
	}
	var plain strings.Builder
	enc := json.NewEncoder(&plain)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err == nil {
		s := strings.TrimSuffix(plain.String(), "\n")
		all = append(all, s[1:len(s)-1])
	}
	if len(v) < MinLength { // longer only by its escapes
		return nil
	}
	return all
}

// Text returns s with every secret replaced by Mask. Masked text stays the same
// when it is masked again.
func (m *Masker) Text(s string) string {
	spans := m.find(s, 0)
	if len(spans) == 0 {
		return s
	}
	var b strings.Builder
	b.Grow(len(s))
	replace(&b, s, spans)
	return b.String()
}

// Bytes is Text for bytes. Without a secret it returns b itself, otherwise a copy.
func (m *Masker) Bytes(b []byte) []byte {
	s := view(b)
	spans := m.find(s, 0)
	if len(spans) == 0 {
		return b
	}
	var out strings.Builder
	replace(&out, s, spans)
	return []byte(out.String())
}

// Found reports whether s holds a secret. Masked text holds none.
func (m *Masker) Found(s string) bool { return len(m.find(s, 0)) > 0 }

// view looks at bytes as a string, for the time of one call that keeps nothing.
func view(b []byte) string { return unsafe.String(unsafe.SliceData(b), len(b)) }

// replace writes s, whose secrets are at spans: sorted, and apart from each other.
func replace(b *strings.Builder, s string, spans []span) {
	at := 0
	for _, sp := range spans {
		b.WriteString(s[at:sp.from])
		b.WriteString(Mask)
		at = sp.to
	}
	b.WriteString(s[at:])
}

// A span is a secret at [from, to). It was known by what begins at anchor, which is
// at or before from.
type span struct{ anchor, from, to int }

// find returns where the secrets are that begin at start or later. What is before it
// is only looked back at.
func (m *Masker) find(s string, start int) []span {
	if m == nil {
		return nil
	}
	var spans []span
	for _, v := range m.values {
		for at := 0; ; {
			i := strings.Index(s[at:], v)
			if i < 0 {
				break
			}
			at += i
			spans = append(spans, span{at, at, at + len(v)})
			at += len(v)
		}
	}
	spans = findTokens(s, spans)
	spans = findPEM(s, spans)
	spans = findURLs(s, spans)
	if start > 0 {
		spans = slices.DeleteFunc(spans, func(sp span) bool { return sp.anchor < start })
	}
	if len(spans) < 2 {
		return spans
	}
	return merge(spans)
}

// merge sorts spans and joins those that overlap.
func merge(spans []span) []span {
	slices.SortFunc(spans, func(a, b span) int { return a.from - b.from })
	out := spans[:1]
	for _, sp := range spans[1:] {
		last := &out[len(out)-1]
		if sp.from >= last.to {
			out = append(out, sp)
			continue
		}
		last.to = max(last.to, sp.to)
		last.anchor = min(last.anchor, sp.anchor)
	}
	return out
}
