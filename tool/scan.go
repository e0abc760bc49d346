// SPDX-License-Identifier: Apache-2.0

package tool

import "bytes"

// A keyScanner walks the keys at the top of a JSON object without decoding it.
// The object is known to be valid JSON when it comes from [llm.Call.Input]; on
// anything it does not understand it stops and sets bad.
type keyScanner struct {
	data  []byte
	pos   int
	begun bool
	bad   bool
}

// next returns the next key and the first byte of its value. Keys with escapes set
// bad: they are rare, and the slow way understands them.
func (s *keyScanner) next() (key []byte, first byte, ok bool) {
	s.space()
	switch {
	case !s.begun && s.at('{'), s.begun && s.at(','):
		s.begun = true
		s.pos++
		s.space()
	case s.begun && s.at('}'):
		return nil, 0, false
	default:
		s.bad = true
		return nil, 0, false
	}
	if s.at('}') {
		return nil, 0, false
	}
	start := s.pos + 1
	if !s.at('"') || !s.str() {
		s.bad = true
		return nil, 0, false
	}
	raw := s.data[start : s.pos-1]
	if bytes.IndexByte(raw, '\\') >= 0 {
		s.bad = true
		return nil, 0, false
	}
	s.space()
	if !s.at(':') {
		s.bad = true
		return nil, 0, false
	}
	s.pos++
	s.space()
	if s.pos < len(s.data) {
		first = s.data[s.pos]
	}
	if !s.value() {
		s.bad = true
		return nil, 0, false
	}
	return raw, first, true
}

// value moves behind one value.
func (s *keyScanner) value() bool {
	depth := 0
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case '"':
			if !s.str() {
				return false
			}
			if depth == 0 {
				return true
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth == 0 {
				return true
			}
			if depth--; depth == 0 {
				s.pos++
				return true
			}
		case ',':
			if depth == 0 {
				return true
			}
		}
		s.pos++
	}
	return false
}

// str moves behind the string that begins here.
func (s *keyScanner) str() bool {
	for s.pos++; s.pos < len(s.data); s.pos++ {
		switch s.data[s.pos] {
		case '\\':
			s.pos++
		case '"':
			s.pos++
			return true
		}
	}
	return false
}

func (s *keyScanner) space() {
	for s.pos < len(s.data) && (s.data[s.pos] == ' ' || s.data[s.pos] == '\n' || s.data[s.pos] == '\t' || s.data[s.pos] == '\r') {
		s.pos++
	}
}

func (s *keyScanner) at(c byte) bool { return s.pos < len(s.data) && s.data[s.pos] == c }
