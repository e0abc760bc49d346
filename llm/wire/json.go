// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"unicode/utf8"
)

// UTF8 is s with each run of bytes that are no UTF-8 replaced by U+FFFD.
// Providers refuse a body that is not UTF-8.
func UTF8(s string) string {
	if utf8.ValidString(s) {
		return s
	}
	return strings.ToValidUTF8(s, "\uFFFD")
}

// Marshal is json.Marshal without its HTML escapes: < > and & stay as they are,
// since a model reads text inside of JSON inside of text. Raw messages lose their
// white space between tokens; use [JSON] where they must not.
func Marshal(v any) ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n")), nil
}

// JSON writes one JSON value in the order in which it is told, so that equal
// values have equal bytes in every process. Commas are its own business; that
// objects and arrays are opened and closed properly is the caller's. The zero
// value is ready.
type JSON struct {
	buf  []byte
	next bool // a comma is due before the next key or value
}

// Bytes is what was written so far. It is valid until the next call.
func (j *JSON) Bytes() []byte { return j.buf }

// Len is how many bytes were written so far.
func (j *JSON) Len() int { return len(j.buf) }

// Open begins an object '{' or an array '['.
func (j *JSON) Open(c byte) {
	j.comma()
	j.buf = append(j.buf, c)
	j.next = false
}

// Close ends an object '}' or an array ']'.
func (j *JSON) Close(c byte) {
	j.buf = append(j.buf, c)
	j.next = true
}

// Key writes the name of the next value of an object.
func (j *JSON) Key(name string) {
	j.comma()
	j.buf = AppendString(j.buf, name)
	j.buf = append(j.buf, ':')
	j.next = false
}

// String writes a string, see [AppendString].
func (j *JSON) String(s string) {
	j.comma()
	j.buf = AppendString(j.buf, s)
	j.next = true
}

// Int writes an integer.
func (j *JSON) Int(n int64) {
	j.comma()
	j.buf = strconv.AppendInt(j.buf, n, 10)
	j.next = true
}

// Float writes a number in the shortest form that reads back the same. One that
// JSON cannot hold becomes null.
func (j *JSON) Float(f float64) {
	data, err := json.Marshal(f)
	if err != nil {
		data = []byte("null")
	}
	j.Raw(data)
}

// Bool writes a boolean.
func (j *JSON) Bool(b bool) {
	j.comma()
	j.buf = strconv.AppendBool(j.buf, b)
	j.next = true
}

// Raw writes a value that is JSON already, byte for byte.
func (j *JSON) Raw(value []byte) {
	j.comma()
	j.buf = append(j.buf, value...)
	j.next = true
}

// Field writes a key and a string.
func (j *JSON) Field(name, value string) {
	j.Key(name)
	j.String(value)
}

func (j *JSON) comma() {
	if j.next {
		j.buf = append(j.buf, ',')
	}
}

const hexDigits = "0123456789abcdef"

// AppendString appends s as a JSON string: only quotes, backslashes and control
// characters are escaped, and bytes that are no UTF-8 become U+FFFD.
func AppendString(dst []byte, s string) []byte {
	dst = append(dst, '"')
	start := 0
	for i := 0; i < len(s); {
		c := s[i]
		if c >= ' ' && c != '"' && c != '\\' && c < utf8.RuneSelf {
			i++
			continue
		}
		size := 1
		if c >= utf8.RuneSelf {
			var r rune
			if r, size = utf8.DecodeRuneInString(s[i:]); r != utf8.RuneError || size > 1 {
				i += size
				continue
			}
		}
		dst = append(dst, s[start:i]...)
		dst = appendEscape(dst, c)
		i += size
		start = i
	}
	dst = append(dst, s[start:]...)
	return append(dst, '"')
}

func appendEscape(dst []byte, c byte) []byte {
	switch {
	case c == '"' || c == '\\':
		return append(dst, '\\', c)
	case c == '\n':
		return append(dst, '\\', 'n')
	case c == '\t':
		return append(dst, '\\', 't')
	case c == '\r':
		return append(dst, '\\', 'r')
	case c < ' ':
		return append(dst, '\\', 'u', '0', '0', hexDigits[c>>4], hexDigits[c&15])
	}
	return append(dst, "\uFFFD"...)
}

// Repair makes JSON that Go accepts fit for servers that are stricter: bytes that
// are no UTF-8 and halves of surrogate pairs in escapes become U+FFFD. Everything
// else stays as it is, byte for byte.
func Repair(raw string) string {
	raw = UTF8(raw)
	if !strings.Contains(raw, `\ud`) && !strings.Contains(raw, `\uD`) {
		return raw
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); {
		if raw[i] != '\\' || i+1 >= len(raw) {
			out = append(out, raw[i])
			i++
			continue
		}
		n := 2 // an escape of one character
		if unit, ok := surrogate(raw[i:]); ok {
			n = 6
			low, pair := surrogate(raw[i+6:])
			if unit >= 0xDC00 || !pair || low < 0xDC00 {
				out = append(out, `\ufffd`...)
				i += n
				continue
			}
			n = 12
		}
		out = append(out, raw[i:i+n]...)
		i += n
	}
	return string(out)
}

// surrogate reads an escape of half a surrogate pair at the start of s.
func surrogate(s string) (uint16, bool) {
	if len(s) < 6 || s[0] != '\\' || s[1] != 'u' {
		return 0, false
	}
	n, err := strconv.ParseUint(s[2:6], 16, 16)
	if err != nil || n < 0xD800 || n > 0xDFFF {
		return 0, false
	}
	return uint16(n), true
}
