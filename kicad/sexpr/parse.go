// SPDX-License-Identifier: Apache-2.0

package sexpr

import (
	"bytes"
	"fmt"
	"math"
	"unicode/utf8"
)

// maxErrors is how many troubles of one kind ParseTolerant reports before it stops counting that kind.
const maxErrors = 20

// Parse reads one file strictly: exactly one list, nothing but white space and comments around it, valid UTF-8, no
// NUL byte, no byte order mark. The error is always an [*Error], the first one in the text.
func Parse(src []byte) (*Doc, error) {
	d, errs := ParseTolerant(src)
	if len(errs) > 0 {
		return nil, errs[0]
	}
	return d, nil
}

// ParseTolerant reads as much as it can and reports what is wrong, in the order of the text. The document is never
// nil. What stands behind the first list is kept as further roots; a list that is never closed ends with the file; a
// string that is not closed ends with its line. Of each kind of trouble it reports the first 20.
func ParseTolerant(src []byte) (*Doc, []*Error) {
	d := newDoc(src)
	p := parser{doc: d}
	start := 0
	switch {
	case len(src) > math.MaxInt32:
		p.fail(TooLarge, 0, "a file over 2 GiB is not read")
		return d, p.sorted()
	case bytes.HasPrefix(src, []byte{0xFF, 0xFE}), bytes.HasPrefix(src, []byte{0xFE, 0xFF}):
		p.fail(UTF16, 0, "the file is UTF-16; KiCad reads UTF-8 only: convert it to UTF-8 without a byte order mark")
		return d, p.sorted()
	case bytes.HasPrefix(src, []byte{0xEF, 0xBB, 0xBF}):
		p.fail(ByteOrderMark, 0, "the file starts with a UTF-8 byte order mark, which KiCad refuses: remove its 3 bytes")
		start = 3
	}
	p.scan(start)
	p.badUTF8()
	return d, p.sorted()
}

type parser struct {
	doc   *Doc
	open  []uint32 // the lists that are open
	errs  []*Error
	count [kinds]int
	roots int
}

func (p *parser) fail(kind ErrorKind, offset int, format string, args ...any) {
	if p.count[kind]++; p.count[kind] > maxErrors {
		return
	}
	p.errs = append(p.errs, &Error{Kind: kind, Offset: offset, Count: 1, Detail: fmt.Sprintf(format, args...)})
}

// class sorts bytes: 1 white space, 2 a bracket. NUL is white space to KiCad; a form feed and other control characters
// are parts of words.
var class = [256]uint8{0: 1, '\t': 1, '\n': 1, '\r': 1, ' ': 1, '(': 2, ')': 2}

func (p *parser) scan(i int) {
	src := p.doc.src
	nodes := make([]node, 0, len(src)/7+16)
	freshLine := true
	parent := uint32(0)
	for i < len(src) {
		c := src[i]
		if class[c] == 1 {
			switch c {
			case '\n':
				freshLine = true
			case 0:
				p.fail(NUL, i, "a NUL byte stands in the text")
			}
			i++
			continue
		}
		if c == '#' && freshLine {
			i = lineEnd(src, i)
			continue
		}
		freshLine = false
		if c == ')' {
			i++
			if len(p.open) == 0 {
				p.fail(ExtraClose, i-1, "a closing bracket without an opening one; KiCad ignores what follows the end of the first list")
				continue
			}
			n := &nodes[p.open[len(p.open)-1]]
			n.end, n.next = uint32(i), uint32(len(nodes))
			p.open = p.open[:len(p.open)-1]
			parent = n.parent
			continue
		}
		id := uint32(len(nodes))
		if len(p.open) == 0 {
			p.root(c, i)
			parent = id
		}
		switch c {
		case '(':
			nodes = append(nodes, node{start: uint32(i), parent: parent})
			p.open = append(p.open, id)
			parent = id
			i++
			continue
		case '"':
			nodes = append(nodes, node{start: uint32(i), next: id + 1, parent: parent})
			i = p.str(i)
		default:
			nodes = append(nodes, node{start: uint32(i), next: id + 1, parent: parent})
			for i++; i < len(src) && class[src[i]] == 0; i++ {
			}
		}
		nodes[id].end = uint32(i)
	}
	p.doc.nodes = nodes
	p.close()
}

// root notes what begins at the top level.
func (p *parser) root(c byte, offset int) {
	p.roots++
	switch {
	case p.roots == 1 && c != '(':
		p.fail(NotAList, offset, "the file does not begin with a bracket")
		p.roots = 0
	case p.roots == 2 && c == '(':
		p.fail(SecondRoot, offset, "a second list follows the end of the first; KiCad ignores it")
	case p.roots == 2:
		p.fail(Trailing, offset, "text follows the end of the list; KiCad ignores it")
	}
}

// str returns the offset behind the string that starts at i.
func (p *parser) str(i int) int {
	src := p.doc.src
	for j := i + 1; j < len(src); j++ {
		switch src[j] {
		case '"':
			return j + 1
		case '\\':
			if j+1 < len(src) && src[j+1] != '\n' {
				j++
			}
		case '\n':
			p.fail(UnterminatedString, i, "the string is not closed on its line; a line feed in a string is written \\n")
			return j
		case 0:
			p.fail(NUL, j, "a NUL byte stands in a string")
		}
	}
	p.fail(UnterminatedString, i, "the string is not closed")
	return len(src)
}

// close ends what is still open and says where the bracket is probably missing.
func (p *parser) close() {
	d := p.doc
	if len(d.nodes) == 0 && len(p.errs) == 0 {
		p.fail(Empty, 0, "the file holds nothing")
	}
	if len(p.open) == 0 {
		return
	}
	for _, id := range p.open {
		d.nodes[id].end, d.nodes[id].next = uint32(len(d.src)), uint32(len(d.nodes))
	}
	if p.count[UnterminatedString] > 0 {
		return // the brackets behind an open string say nothing
	}
	suspect := p.suspect()
	p.fail(Unclosed, suspect.Start(), "%d opening bracket(s) are never closed; judging by the indentation it is this (%s ...)", len(p.open), suspect.Tag())
	p.errs[len(p.errs)-1].Count = len(p.open)
}

// suspect returns the list that most likely misses its bracket. That list took the bracket of its parent, which took
// that of its own parent, and so on: it stands on the path of last children. The first one on it that is followed by
// a line with the same or a smaller indentation is taken, else the innermost open list.
func (p *parser) suspect() Node {
	d := p.doc
	for list := (Node{d, p.open[0]}); list.Kind() == List; {
		line, col := d.Position(list.Start())
		last := Node{}
		for c := range list.All() {
			last = c
			l, k := d.Position(c.Start())
			if c.Kind() == List && l > line && k <= col {
				return list
			}
		}
		list = last
	}
	return Node{d, p.open[len(p.open)-1]}
}

func (p *parser) badUTF8() {
	src := p.doc.src
	if utf8.Valid(src) {
		return
	}
	for i := 0; i < len(src); {
		if src[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, size := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && size == 1 {
			p.fail(InvalidUTF8, i, "byte 0x%02X is not UTF-8; KiCad reads the whole string that holds it as empty", src[i])
		}
		i += size
	}
}

func lineEnd(src []byte, i int) int {
	if j := bytes.IndexByte(src[i:], '\n'); j >= 0 {
		return i + j
	}
	return len(src)
}
