// SPDX-License-Identifier: Apache-2.0

// Package sexpr reads KiCad's S-expressions in order to find things in them.
//
// It never writes a whole file: an edit is a replacement of a byte range ([Edit]), so that everything nobody
// asked to change stays as KiCad wrote it. Every node therefore knows where it stands.
//
// The grammar is that of KiCad's own reader, as measured on kicad-cli 9.0.8: white space is a blank, a tab, a carriage
// return, a line feed or a NUL, an unquoted word ends at white space or a bracket, a line whose first visible byte is #
// is a comment, a quoted string may not span lines. https://dev-docs.kicad.org/en/file-formats/sexpr-intro/ describes the format.
package sexpr

import (
	"bytes"
	"sort"
	"sync"
)

// A Doc is one parsed file. It keeps the bytes it was parsed from, which the caller must not change. A Doc is
// safe for concurrent use.
type Doc struct {
	src   []byte
	nodes []node
	lines func() []uint32
}

// A node is one list, word or string, in the order of the text: the children of node i are i+1 up to next, each
// found by following next. Its kind is told by its first byte.
type node struct {
	start, end uint32
	next       uint32 // the first node behind this one's subtree
	parent     uint32 // own index for a root
}

func newDoc(src []byte) *Doc {
	d := &Doc{src: src}
	d.lines = sync.OnceValue(d.lineStarts)
	return d
}

// Source returns the bytes that were parsed. They are not a copy.
func (d *Doc) Source() []byte { return d.src }

// Len is the number of nodes.
func (d *Doc) Len() int { return len(d.nodes) }

// Root returns the first top-level list, the only one that KiCad reads. It is the zero [Node] when there is none.
func (d *Doc) Root() Node {
	for n := range d.Roots() {
		if n.Kind() == List {
			return n
		}
	}
	return Node{}
}

// Position tells where a byte offset stands. Line and column count from 1; the column counts bytes. Lines end at
// line feeds only, as kicad-cli counts them.
func (d *Doc) Position(offset int) (line, column int) {
	starts := d.lines()
	i := sort.Search(len(starts), func(i int) bool { return int(starts[i]) > offset })
	return i, offset - int(starts[i-1]) + 1
}

func (d *Doc) lineStarts() []uint32 {
	starts := make([]uint32, 1, bytes.Count(d.src, []byte{'\n'})+1)
	for i := 0; ; {
		j := bytes.IndexByte(d.src[i:], '\n')
		if j < 0 {
			return starts
		}
		i += j + 1
		starts = append(starts, uint32(i))
	}
}

// At returns the innermost node that covers the offset, or the zero [Node] when none does.
func (d *Doc) At(offset int) Node {
	i := sort.Search(len(d.nodes), func(i int) bool { return int(d.nodes[i].start) > offset }) - 1
	for i >= 0 {
		if offset < int(d.nodes[i].end) {
			return Node{d, uint32(i)}
		}
		if p := int(d.nodes[i].parent); p != i {
			i = p
			continue
		}
		break
	}
	return Node{}
}
