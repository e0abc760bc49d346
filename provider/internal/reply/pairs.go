// SPDX-License-Identifier: Apache-2.0

package reply

import "strings"

// pairs joins characters that were cut in two. Servers that count in UTF-16, as
// JavaScript does, cut their text anywhere: one event's text then ends with the
// escape of a high surrogate, and the next one's begins with the low one. Each alone
// would be read as U+FFFD.
type pairs struct {
	held string // the escape of a high surrogate, such as \ud83d
}

// join is the data of the next event.
func (p *pairs) join(data string) string {
	if p.held == "" && !strings.Contains(data, `\ud`) && !strings.Contains(data, `\uD`) {
		return data
	}
	if p.held != "" {
		held := p.held
		if at := loneLow(data); at >= 0 {
			p.held = ""
			data = data[:at] + held + data[at:]
		}
	}
	if at := loneHigh(data); at >= 0 {
		p.held = data[at : at+escape]
		data = data[:at] + data[at+escape:]
	}
	return data
}

// escape is the length of an escape of one unit of UTF-16.
const escape = len(`\ud83d`)

// loneHigh is where a string ends with half a character, -1 when none does.
func loneHigh(data string) int {
	for from := 0; ; {
		end := strings.IndexByte(data[from:], '"')
		if end < 0 {
			return -1
		}
		end += from
		from = end + 1
		if at := end - escape; at >= 0 && unit(data, at, "89abAB") {
			return at
		}
	}
}

// loneLow is where a string begins with the other half, -1 when none does.
func loneLow(data string) int {
	for from := 0; ; {
		begin := strings.IndexByte(data[from:], '"')
		if begin < 0 {
			return -1
		}
		from += begin + 1
		if unit(data, from, "cdefCDEF") {
			return from
		}
	}
}

// unit reports whether an escape stands at a place, whose second digit is one of
// some, and whose backslash is not itself escaped.
func unit(data string, at int, second string) bool {
	if at+escape > len(data) || data[at] != '\\' || data[at+1] != 'u' || data[at+2] != 'd' && data[at+2] != 'D' ||
		strings.IndexByte(second, data[at+3]) < 0 || !hex(data[at+4]) || !hex(data[at+5]) {
		return false
	}
	slashes := 0
	for at-slashes > 0 && data[at-slashes-1] == '\\' {
		slashes++
	}
	return slashes%2 == 0
}

func hex(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
}
