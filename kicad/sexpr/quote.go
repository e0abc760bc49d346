// SPDX-License-Identifier: Apache-2.0

package sexpr

import (
	"bytes"
	"strings"
)

var quoter = strings.NewReplacer("\r\n", `\r`, "\n", `\n`, "\r", `\r`, `\`, `\\`, `"`, `\"`)

// Quote writes a string as KiCad does: always in quotes, with the backslash, the quote, line feed and carriage
// return escaped and every other byte as it is. The pair CR LF becomes one \r.
func Quote(s string) string {
	return `"` + quoter.Replace(s) + `"`
}

// Unquote decodes a string token with its quotes, as KiCad's reader does (measured on 9.0.8): \n \r \t \a \b \f \v, up to
// two hexadecimal digits behind \x, up to three octal digits, the quote and the backslash; in front of any other byte
// the backslash stays. A missing closing quote is no error here.
func Unquote(raw []byte) string {
	raw = bytes.TrimPrefix(raw, []byte{'"'})
	if bytes.IndexByte(raw, '\\') < 0 {
		return string(bytes.TrimSuffix(raw, []byte{'"'}))
	}
	out := make([]byte, 0, len(raw))
	for i := 0; i < len(raw); i++ {
		c := raw[i]
		if c == '"' {
			break
		}
		if c != '\\' || i+1 == len(raw) {
			out = append(out, c)
			continue
		}
		i++
		c, n := escape(raw[i:])
		if n == 0 {
			out = append(out, '\\')
			i--
			continue
		}
		out = append(out, c)
		i += n - 1
	}
	return string(out)
}

// escape decodes what follows a backslash, and says how many bytes that took: none when it is no escape.
func escape(raw []byte) (c byte, size int) {
	if i := strings.IndexByte("nrtabfv", raw[0]); i >= 0 {
		return "\n\r\t\a\b\f\v"[i], 1
	}
	if raw[0] == 'x' {
		return digits(raw, 1, 16, 2)
	}
	if raw[0] >= '0' && raw[0] <= '7' {
		return digits(raw, 0, 8, 3)
	}
	if raw[0] != '"' && raw[0] != '\\' {
		return 0, 0
	}
	return raw[0], 1
}

// digits reads at most limit digits from raw[from:]. Without any the byte before them stands for itself.
func digits(raw []byte, from int, base, limit int) (c byte, size int) {
	value, i := 0, from
	for ; i < len(raw) && i < from+limit; i++ {
		d := strings.IndexByte("0123456789abcdef", raw[i]|0x20)
		if raw[i] >= '0' && raw[i] <= '9' {
			d = int(raw[i] - '0')
		}
		if d < 0 || d >= base {
			break
		}
		value = value*base + d
	}
	if i == from {
		return raw[0], 1
	}
	return byte(value), i
}
