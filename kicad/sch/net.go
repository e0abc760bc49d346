// SPDX-License-Identifier: Apache-2.0

package sch

import (
	"slices"
	"strings"
)

// A Group is the places that spell one net by the same name, and that a rename therefore has to change together.
//
// Measured on kicad-cli 9.0.8: on one sheet a local label joins hierarchical labels, global labels and power symbols of
// the same name; a sheet pin joins the hierarchical label of the same name in its file, and on its own sheet only what
// a wire leads to.
type Group struct {
	Name   string   // in plain spelling, without a sheet's path
	Nets   []string // the names that KiCad may give the net, as in a netlist; the global one first, then the root's
	Labels []*Label // in the order of [Design.FileNames] and of the files
}

// Groups returns all groups whose name is that, in plain spelling: SPI/CS also for SPI{slash}CS. There is none for a
// net that nothing names, such as Net-(R1-Pad1), and for the members of a bus label.
func (d *Design) Groups(name string) []Group {
	name = Plain(name)
	var labels []*Label
	for _, file := range d.FileNames() {
		for _, l := range d.Files[file].Labels {
			if l.Name() == name {
				labels = append(labels, l)
			}
		}
	}
	j := joiner{parent: make([]int, len(labels))}
	for i := range labels {
		j.parent[i] = i
	}
	d.join(labels, &j)
	byRoot := map[int]*Group{}
	var order []*Group
	for i, l := range labels {
		r := j.find(i)
		if byRoot[r] == nil {
			byRoot[r] = &Group{Name: name}
			order = append(order, byRoot[r])
		}
		byRoot[r].Labels = append(byRoot[r].Labels, l)
	}
	groups := make([]Group, 0, len(order))
	for _, g := range order {
		g.Nets = d.netNames(g.Labels)
		groups = append(groups, *g)
	}
	return groups
}

// Names lists the net names that labels spell, in plain spelling, sorted.
func (d *Design) Names() []string {
	var names []string
	for _, f := range d.Files {
		for _, l := range f.Labels {
			names = append(names, l.Name())
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// A joiner is a union-find over indices.
type joiner struct{ parent []int }

func (j *joiner) find(i int) int {
	for j.parent[i] != i {
		j.parent[i] = j.parent[j.parent[i]]
		i = j.parent[i]
	}
	return i
}

func (j *joiner) union(a, b int) { j.parent[j.find(b)] = j.find(a) }

// join connects labels of one name by KiCad's rules.
func (d *Design) join(labels []*Label, j *joiner) {
	wide := -1
	onSheet := map[*File]int{} // the first label of a file that is no sheet pin
	hier := map[*File]int{}    // a hierarchical label of a file
	for i, l := range labels {
		if l.Kind == SheetPin {
			continue
		}
		if l.wide() {
			if wide >= 0 {
				j.union(wide, i)
			}
			wide = i
		}
		if first, ok := onSheet[l.File]; ok {
			j.union(first, i)
		} else {
			onSheet[l.File] = i
		}
		if l.Kind == Hierarchical {
			hier[l.File] = i
		}
	}
	nets := map[*File]*wiring{}
	for i, l := range labels {
		if l.Kind != SheetPin {
			continue
		}
		if inner, ok := hier[d.targets[l.Sheet]]; ok {
			j.union(inner, i)
		}
		if nets[l.File] == nil {
			nets[l.File] = newWiring(l.File)
		}
		for k, other := range labels {
			if other.File == l.File && k != i && nets[l.File].same(l.At, other.At) {
				j.union(k, i)
			}
		}
	}
}

// netNames lists what the net may be called.
func (d *Design) netNames(labels []*Label) []string {
	var global, local []string
	for _, l := range labels {
		if l.wide() {
			global = append(global, NetName("", l.Text))
			continue
		}
		if l.Kind == SheetPin {
			continue // the hierarchical label in its file gives the name
		}
		for _, in := range d.Uses(l.File) {
			local = append(local, NetName(in.Name, l.Text))
		}
	}
	if len(global)+len(local) == 0 { // pins alone
		for _, l := range labels {
			for _, in := range d.Uses(l.File) {
				local = append(local, NetName(in.Name, l.Text))
			}
		}
	}
	slices.SortFunc(local, func(a, b string) int {
		if n := strings.Count(a, "/") - strings.Count(b, "/"); n != 0 {
			return n
		}
		return strings.Compare(a, b)
	})
	slices.Sort(global)
	return slices.Compact(append(slices.Compact(global), local...))
}

// wiring tells which points of a sheet wires connect: wires that share an end, and points on a wire.
type wiring struct {
	joiner
	ends  map[Point]int
	wires [][2]Point
}

func newWiring(f *File) *wiring {
	w := &wiring{ends: map[Point]int{}, wires: f.Wires}
	for _, s := range f.Wires {
		w.union(w.end(s[0]), w.end(s[1]))
	}
	return w
}

func (w *wiring) end(p Point) int {
	i, ok := w.ends[p]
	if !ok {
		i = len(w.parent)
		w.ends[p] = i
		w.parent = append(w.parent, i)
	}
	return i
}

// at finds the wire that touches a point, -1 for none.
func (w *wiring) at(p Point) int {
	if i, ok := w.ends[p]; ok {
		return w.find(i)
	}
	for _, s := range w.wires {
		if on(p, s[0], s[1]) {
			return w.find(w.ends[s[0]])
		}
	}
	return -1
}

func (w *wiring) same(a, b Point) bool {
	if a == b {
		return true
	}
	i := w.at(a)
	return i >= 0 && i == w.at(b)
}

// on reports whether p lies on the segment from a to b.
func on(p, a, b Point) bool {
	cross := (b.X-a.X)*(p.Y-a.Y) - (b.Y-a.Y)*(p.X-a.X)
	return cross == 0 && p.X >= min(a.X, b.X) && p.X <= max(a.X, b.X) && p.Y >= min(a.Y, b.Y) && p.Y <= max(a.Y, b.Y)
}
