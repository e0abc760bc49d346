// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"
)

// A node is one s-expression of a KiCad file: an atom, or a list when kids is
// not nil. Atoms keep their spelling, quotes included.
type node struct {
	atom string
	kids []node
}

func word(s string) node { return node{atom: s} }

func words(ss ...string) []node {
	out := make([]node, len(ss))
	for i, s := range ss {
		out[i] = word(s)
	}
	return out
}

func text(s string) node {
	return node{atom: `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`).Replace(s) + `"`}
}

func list(head string, kids ...node) node {
	return node{kids: append([]node{word(head)}, kids...)}
}

// set is a list that holds one word, like (hide yes).
func set(head, value string) node { return list(head, word(value)) }

func (n node) isList() bool { return n.kids != nil }

// head is the first word of a list, "" for an atom.
func (n node) head() string {
	if len(n.kids) == 0 {
		return ""
	}
	return n.kids[0].atom
}

// arg is the text of the i-th atom after the head, without quotes and escapes.
func (n node) arg(i int) string {
	if i+1 >= len(n.kids) {
		return ""
	}
	s := n.kids[i+1].atom
	if !strings.HasPrefix(s, `"`) {
		return s
	}
	return strings.NewReplacer(`\\`, `\`, `\"`, `"`, `\n`, "\n").Replace(s[1 : len(s)-1])
}

// child is the first list with that head.
func (n node) child(head string) (node, bool) {
	for _, k := range n.kids {
		if k.head() == head {
			return k, true
		}
	}
	return node{}, false
}

// clone is a deep copy, so that a library entry can be placed many times.
func (n node) clone() node {
	if n.kids == nil {
		return n
	}
	kids := make([]node, len(n.kids))
	for i, k := range n.kids {
		kids[i] = k.clone()
	}
	return node{kids: kids}
}

// parse reads one s-expression; what stands behind it is an error.
func parse(src string) (node, error) {
	p := parser{src: src}
	n, err := p.list()
	if err != nil {
		return node{}, err
	}
	if p.space(); p.pos != len(src) {
		return node{}, fmt.Errorf("text after the last bracket at byte %d", p.pos)
	}
	return n, nil
}

type parser struct {
	src string
	pos int
}

func (p *parser) space() {
	for p.pos < len(p.src) && strings.IndexByte(" \t\r\n", p.src[p.pos]) >= 0 {
		p.pos++
	}
}

func (p *parser) list() (node, error) {
	if p.space(); p.pos >= len(p.src) || p.src[p.pos] != '(' {
		return node{}, fmt.Errorf("no opening bracket at byte %d", p.pos)
	}
	p.pos++
	n := node{kids: []node{}}
	for {
		p.space()
		if p.pos >= len(p.src) {
			return node{}, fmt.Errorf("list is not closed at byte %d", p.pos)
		}
		switch p.src[p.pos] {
		case ')':
			p.pos++
			return n, nil
		case '(':
			k, err := p.list()
			if err != nil {
				return node{}, err
			}
			n.kids = append(n.kids, k)
		default:
			a, err := p.atom()
			if err != nil {
				return node{}, err
			}
			n.kids = append(n.kids, a)
		}
	}
}

func (p *parser) atom() (node, error) {
	start := p.pos
	if p.src[p.pos] != '"' {
		for p.pos < len(p.src) && strings.IndexByte(" \t\r\n()", p.src[p.pos]) < 0 {
			p.pos++
		}
		return word(p.src[start:p.pos]), nil
	}
	for p.pos++; p.pos < len(p.src); p.pos++ {
		switch p.src[p.pos] {
		case '\\':
			p.pos++
		case '"':
			p.pos++
			return word(p.src[start:p.pos]), nil
		}
	}
	return node{}, fmt.Errorf("string is not closed at byte %d", start)
}
