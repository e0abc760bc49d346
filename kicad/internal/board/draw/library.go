// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// A library reads symbols and footprints of an installed KiCad.
type library struct {
	symbols, footprints string // folders
	files               map[string]node
}

func (l *library) read(path string) (node, error) {
	if n, ok := l.files[path]; ok {
		return n, nil
	}
	src, err := os.ReadFile(path)
	if err != nil {
		return node{}, err
	}
	n, err := parse(string(src))
	if err != nil {
		return node{}, fmt.Errorf("%s: %w", path, err)
	}
	l.files[path] = n
	return n, nil
}

// split parts "Library:Name".
func split(name string) (lib, entry string, err error) {
	lib, entry, ok := strings.Cut(name, ":")
	if !ok {
		return "", "", fmt.Errorf("%q has no library: write Library:Name", name)
	}
	return lib, entry, nil
}

// footprint is a copy of the footprint "Library:Name".
func (l *library) footprint(name string) (node, error) {
	lib, entry, err := split(name)
	if err != nil {
		return node{}, err
	}
	n, err := l.read(filepath.Join(l.footprints, lib+".pretty", entry+".kicad_mod"))
	if err != nil {
		return node{}, err
	}
	return n.clone(), nil
}

// symbol is the symbol "Library:Name" as a schematic embeds it: without
// extends, the library's name before the symbol's, not before its units'.
func (l *library) symbol(name string) (symbol, error) {
	lib, entry, err := split(name)
	if err != nil {
		return symbol{}, err
	}
	file, err := l.read(filepath.Join(l.symbols, lib+".kicad_sym"))
	if err != nil {
		return symbol{}, err
	}
	n, err := flat(file, entry)
	if err != nil {
		return symbol{}, fmt.Errorf("%s: %w", name, err)
	}
	n.kids[1] = text(name)
	return symbol{n}, nil
}

func flat(file node, entry string) (node, error) {
	n, ok := find(file, entry)
	if !ok {
		return node{}, fmt.Errorf("no symbol %q in its library", entry)
	}
	ext, ok := n.child("extends")
	if !ok {
		return n.clone(), nil
	}
	base, err := flat(file, ext.arg(0))
	if err != nil {
		return node{}, err
	}
	return extend(base, n, ext.arg(0), entry), nil
}

func find(file node, entry string) (node, bool) {
	for _, k := range file.kids {
		if k.head() == "symbol" && k.arg(0) == entry {
			return k, true
		}
	}
	return node{}, false
}

// extend is base with the properties of n, renamed to n.
func extend(base, n node, from, to string) node {
	out := node{kids: []node{word("symbol"), text(to)}}
	own := map[string]node{}
	for _, k := range n.kids {
		if k.head() == "property" {
			own[k.arg(0)] = k.clone()
		}
	}
	for _, k := range base.kids[2:] {
		switch k.head() {
		case "property":
			if p, ok := own[k.arg(0)]; ok {
				k = p
			}
		case "symbol":
			k.kids[1] = text(to + strings.TrimPrefix(k.arg(0), from))
		}
		out.kids = append(out.kids, k)
	}
	return out
}

// A symbol is an embedded library symbol.
type symbol struct{ node }

// A pin is a pin of a symbol; at is its end in the symbol's own frame, with y
// downwards already.
type pin struct {
	number, name, kind string
	at                 point
}

func (s symbol) pins() ([]pin, error) {
	var out []pin
	for _, unit := range s.kids {
		if unit.head() != "symbol" {
			continue
		}
		for _, k := range unit.kids {
			if k.head() != "pin" {
				continue
			}
			p, err := newPin(k)
			if err != nil {
				return nil, err
			}
			out = append(out, p)
		}
	}
	return out, nil
}

func newPin(n node) (pin, error) {
	number, _ := n.child("number")
	name, _ := n.child("name")
	where, err := position(n)
	where.y = -where.y
	return pin{number.arg(0), name.arg(0), n.arg(0), where}, err
}

// position is the place in a node's (at ...).
func position(n node) (point, error) {
	a, _ := n.child("at")
	x, err := parseMM(a.arg(0))
	if err != nil {
		return point{}, err
	}
	y, err := parseMM(a.arg(1))
	return point{x, y}, err
}

// property is the value of a property, "" when there is none.
func (n node) property(key string) string {
	for _, k := range n.kids {
		if k.head() == "property" && k.arg(0) == key {
			return k.arg(1)
		}
	}
	return ""
}
