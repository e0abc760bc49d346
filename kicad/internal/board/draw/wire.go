// SPDX-License-Identifier: Apache-2.0

package main

import "slices"

// A wire is one straight piece between two points of a sheet.
type wire struct{ a, b point }

// wire draws a line through the points. Where lines meet, connect splits them.
func (s *sheet) wire(ps ...point) {
	for i := range len(ps) - 1 {
		s.wires = append(s.wires, wire{ps[i], ps[i+1]})
	}
}

// inside says whether p lies on w, not at its ends.
func (w wire) inside(p point) bool {
	if p == w.a || p == w.b {
		return false
	}
	switch {
	case w.a.x == w.b.x:
		return p.x == w.a.x && (p.y-w.a.y)*(p.y-w.b.y) < 0
	case w.a.y == w.b.y:
		return p.y == w.a.y && (p.x-w.a.x)*(p.x-w.b.x) < 0
	}
	return false
}

// connect splits every wire at the pins and wire ends that lie on it, since
// kicad-cli 9 loses what stands behind a junction on an unsplit wire, and puts
// a junction where three or more ends meet.
func (s *sheet) connect() {
	var ends []point
	for _, w := range s.wires {
		ends = append(ends, w.a, w.b)
	}
	for _, p := range s.pins {
		ends = append(ends, p)
	}
	slices.SortFunc(ends, func(a, b point) int {
		if a.y != b.y {
			return int(a.y - b.y)
		}
		return int(a.x - b.x)
	})
	count := map[point]int{}
	for _, w := range s.split(ends) {
		count[w.a]++
		count[w.b]++
		name := w.a.x.mm() + "," + w.a.y.mm() + "-" + w.b.x.mm() + "," + w.b.y.mm()
		s.add(list("wire", list("pts", w.a.node("xy"), w.b.node("xy")),
			list("stroke", set("width", "0"), set("type", "default")), uuid(s.name+"/wire/"+name)))
	}
	for _, p := range s.pins {
		count[p]++
	}
	for _, p := range slices.Compact(ends) {
		if count[p] > 2 {
			s.add(list("junction", p.node("at"), set("diameter", "0"), list("color", words("0", "0", "0", "0")...), s.id("junction", p)))
		}
	}
}

func (s *sheet) split(ends []point) []wire {
	var out []wire
	todo := slices.Clone(s.wires)
	for len(todo) > 0 {
		w := todo[0]
		todo = todo[1:]
		i := slices.IndexFunc(ends, w.inside)
		if i < 0 {
			out = append(out, w)
			continue
		}
		todo = append(todo, wire{w.a, ends[i]}, wire{ends[i], w.b})
	}
	return out
}
