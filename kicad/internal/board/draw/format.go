// SPDX-License-Identifier: Apache-2.0

package main

import "strings"

// Columns at which KiCad 9 breaks a line: points of an outline share lines up
// to pointColumn, plain words of a list up to wordColumn. Measured on the
// library files that KiCad 9 wrote; TestFormatLibraries holds it. A point itself
// is never broken.
const (
	pointColumn = 99
	wordColumn  = 72
)

// format writes n as KiCad 9 does: one list a line, tabs, a closing bracket of
// its own for a list with lists in it.
func format(n node) string {
	var w writer
	w.list(n, 0)
	w.b.WriteByte('\n')
	return w.b.String()
}

type writer struct {
	b   strings.Builder
	col int
}

func (w *writer) put(s string) {
	w.b.WriteString(s)
	w.col += len(s)
}

func (w *writer) line(depth int) {
	w.b.WriteByte('\n')
	w.col = 0
	w.put(strings.Repeat("\t", depth))
}

func (w *writer) list(n node, depth int) {
	w.put("(")
	broken := false
	for i, k := range n.kids {
		switch {
		case !k.isList() && i == 0:
			w.put(k.atom)
		case !k.isList():
			if w.col < wordColumn || n.head() == "xy" {
				w.put(" ")
			} else {
				w.line(depth + 1)
				broken = true
			}
			w.put(k.atom)
		default:
			point := k.head() == "xy" && n.kids[i-1].head() == "xy"
			if point && w.col < pointColumn {
				w.put(" ")
			} else {
				w.line(depth + 1)
			}
			broken = true
			w.list(k, depth+1)
		}
	}
	if broken {
		w.line(depth)
	}
	w.put(")")
}
