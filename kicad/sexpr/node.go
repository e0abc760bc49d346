// SPDX-License-Identifier: Apache-2.0

package sexpr

import (
	"iter"
	"strconv"
	"unicode/utf8"
)

// A Kind tells nodes apart.
type Kind uint8

// The kinds of nodes. None is that of the zero [Node].
const (
	None   Kind = iota
	List        // ( ... )
	Word        // an unquoted word or number
	String      // "..."
)

// A Node is a place in a [Doc]. It is a small value, comparable with ==. The zero Node stands for "not there":
// it is safe to ask, has no text and no children, so that look-ups can be chained.
type Node struct {
	doc *Doc
	id  uint32
}

// OK reports whether the node is there.
func (n Node) OK() bool { return n.doc != nil }

// Doc returns the document the node is part of, nil for the zero Node.
func (n Node) Doc() *Doc { return n.doc }

func (n Node) at() *node { return &n.doc.nodes[n.id] }

// Kind tells what the node is.
func (n Node) Kind() Kind {
	if n.doc == nil {
		return None
	}
	switch n.doc.src[n.at().start] {
	case '(':
		return List
	case '"':
		return String
	}
	return Word
}

// Start is the offset of the node's first byte, 0 for the zero Node. A string starts at its quote.
func (n Node) Start() int {
	if n.doc == nil {
		return 0
	}
	return int(n.at().start)
}

// End is the offset behind the node's last byte, 0 for the zero Node. The end of a list that is not closed is the
// end of its last child or, at the end of the file, the end of the file.
func (n Node) End() int {
	if n.doc == nil {
		return 0
	}
	return int(n.at().end)
}

// Line is the line of the first byte, from 1; 0 for the zero Node.
func (n Node) Line() int {
	if n.doc == nil {
		return 0
	}
	line, _ := n.doc.Position(n.Start())
	return line
}

// Raw returns the node as it stands in the file. It is not a copy.
func (n Node) Raw() []byte {
	if n.doc == nil {
		return nil
	}
	return n.doc.src[n.Start():n.End()]
}

// Text is the word, or the decoded string; "" for a list and the zero Node. One that is not UTF-8 is "" as well: KiCad
// reads it so.
func (n Node) Text() string {
	switch n.Kind() {
	case String:
		if text := Unquote(n.Raw()); utf8.ValidString(text) {
			return text
		}
	case Word:
		if utf8.Valid(n.Raw()) {
			return string(n.Raw())
		}
	case None, List:
	}
	return ""
}

// Is reports whether the node is a list whose first child is the given word. It allocates nothing.
func (n Node) Is(tag string) bool {
	h := n.head()
	return h.OK() && string(h.Raw()) == tag
}

// Tag is the first word of a list, "" when there is none.
func (n Node) Tag() string {
	return string(n.head().Raw())
}

func (n Node) head() Node {
	if n.Kind() != List {
		return Node{}
	}
	c := n.first()
	if c.Kind() != Word {
		return Node{}
	}
	return c
}

func (n Node) first() Node {
	if n.doc == nil || n.at().next == n.id+1 {
		return Node{}
	}
	return Node{n.doc, n.id + 1}
}

// Parent returns the list that holds the node, the zero Node for a root.
func (n Node) Parent() Node {
	if n.doc == nil || n.at().parent == n.id {
		return Node{}
	}
	return Node{n.doc, n.at().parent}
}

// All yields the children in order, the tag word included.
func (n Node) All() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		if n.doc == nil {
			return
		}
		end := n.at().next
		for i := n.id + 1; i < end; i = n.doc.nodes[i].next {
			if !yield(Node{n.doc, i}) {
				return
			}
		}
	}
}

// Lists yields the children that are lists with the given tag.
func (n Node) Lists(tag string) iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for c := range n.All() {
			if c.Is(tag) && !yield(c) {
				return
			}
		}
	}
}

// Get returns the first child that is a list with the given tag, and goes on from there with the next tag.
func (n Node) Get(tags ...string) Node {
	for _, tag := range tags {
		found := Node{}
		for c := range n.Lists(tag) {
			found = c
			break
		}
		n = found
	}
	return n
}

// Arg returns the i-th child behind the tag, from 0: in (property "Value" "10k") Arg(1) is "10k".
func (n Node) Arg(i int) Node {
	if n.Kind() != List {
		return Node{}
	}
	for c := range n.All() {
		if i < 0 {
			return c
		}
		i--
	}
	return Node{}
}

// Number returns the i-th argument as a number, and whether it is one.
func (n Node) Number(i int) (float64, bool) {
	f, err := strconv.ParseFloat(string(n.Arg(i).Raw()), 64)
	return f, err == nil
}

// Flag reads a yes/no list such as (dnp yes): whether the list is there says found, a bare (dnp) is yes.
func (n Node) Flag(tag string) (yes, found bool) {
	l := n.Get(tag)
	if !l.OK() {
		return false, false
	}
	a := l.Arg(0)
	return !a.OK() || a.Text() == "yes" || a.Text() == "true", true
}

// Walk yields the node and everything below it in the order of the text, without recursion.
func (n Node) Walk() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		if n.doc == nil {
			return
		}
		for i := n.id; i < n.at().next; i++ {
			if !yield(Node{n.doc, i}) {
				return
			}
		}
	}
}

// Roots yields what stands at the top level: one list in a sound file, more in a broken one.
func (d *Doc) Roots() iter.Seq[Node] {
	return func(yield func(Node) bool) {
		for i := uint32(0); int(i) < len(d.nodes); i = d.nodes[i].next {
			if !yield(Node{d, i}) {
				return
			}
		}
	}
}
