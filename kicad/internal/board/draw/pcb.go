// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// A pcb collects what stands on the board. The first error stops the drawing
// and comes out of node.
type pcb struct {
	lib        *library
	parts      []part
	nets       []string
	pads       map[string]point // "U1.3"
	footprints []node
	graphics   []node
	copper     []node
	err        error
}

func newPCB(lib *library, parts []part) *pcb {
	b := &pcb{lib: lib, parts: parts, pads: map[string]point{}}
	for _, p := range parts {
		for _, q := range p.pins {
			b.nets = append(b.nets, p.netOf(q))
		}
	}
	slices.Sort(b.nets)
	b.nets = append([]string{""}, slices.Compact(b.nets)...)
	return b
}

func (b *pcb) fail(err error) {
	if b.err == nil {
		b.err = err
	}
}

func (b *pcb) netNumber(net string) string {
	i := slices.Index(b.nets, net)
	if i < 0 {
		b.fail(fmt.Errorf("no net %q on the board", net))
	}
	return strconv.Itoa(i)
}

// place puts a part's footprint at p, turned counter-clockwise, with its
// designator at ref, counted from p.
func (b *pcb) place(ref string, p point, turn int, label point) {
	part, err := byRef(b.parts, ref)
	if err != nil {
		b.fail(err)
		return
	}
	fp, err := b.lib.footprint(part.footprint)
	if err != nil {
		b.fail(err)
		return
	}
	f := footprint{pcb: b, part: part, at: p, turn: turn, label: label}
	b.footprints = append(b.footprints, f.node(fp))
}

// pad is the centre of a pad, "U1.3".
func (b *pcb) pad(name string) point {
	p, ok := b.pads[name]
	if !ok {
		b.fail(fmt.Errorf("no pad %s on the board", name))
	}
	return p
}

// Copper layers, and widths in millimetres.
const (
	front  = "F.Cu"
	back   = "B.Cu"
	signal = "0.25"
	strong = "0.5"
)

// track lays copper through the points.
func (b *pcb) track(net, layer, width string, ps ...point) {
	for i := range len(ps) - 1 {
		a, z := ps[i], ps[i+1]
		b.copper = append(b.copper, list("segment",
			a.node("start"), z.node("end"), set("width", width), list("layer", text(layer)), set("net", b.netNumber(net)),
			uuid(fmt.Sprintf("%s/pcb/track/%s/%d,%d-%d,%d", project, layer, a.x, a.y, z.x, z.y))))
	}
}

func (b *pcb) via(net string, p point) {
	b.copper = append(b.copper, list("via",
		p.node("at"), set("size", "0.6"), set("drill", "0.3"), list("layers", text(front), text(back)), set("net", b.netNumber(net)),
		uuid(fmt.Sprintf("%s/pcb/via/%d,%d", project, p.x, p.y))))
}

// print puts a word on the front silkscreen.
func (b *pcb) print(s string, p point, justify string) {
	e := silk("1", "0.15")
	if justify != "" {
		e.kids = append(e.kids, set("justify", justify))
	}
	b.graphics = append(b.graphics, list("gr_text", text(s), place(p, 0), list("layer", text("F.SilkS")),
		uuid(fmt.Sprintf("%s/pcb/text/%d,%d", project, p.x, p.y)), e))
}

func silk(size, thickness string) node {
	return list("effects", list("font", list("size", words(size, size)...), set("thickness", thickness)))
}

func (b *pcb) outline(p, q point) {
	b.graphics = append(b.graphics, list("gr_rect", p.node("start"), q.node("end"),
		list("stroke", set("width", "0.1"), set("type", "default")), set("fill", "no"), list("layer", text("Edge.Cuts")),
		uuid(project+"/pcb/outline")))
}

func (b *pcb) node() (node, error) {
	n := list("kicad_pcb",
		set("version", "20241229"), list("generator", text("fiducial")), list("generator_version", text("9.0")),
		list("general", set("thickness", "1.6"), set("legacy_teardrops", "no")),
		list("paper", text("A4")), titleBlock("Beacon"), layers(),
		list("setup", set("pad_to_mask_clearance", "0"), set("allow_soldermask_bridges_in_footprints", "no"),
			list("tenting", words("front", "back")...)),
	)
	for i, net := range b.nets {
		n.kids = append(n.kids, list("net", word(strconv.Itoa(i)), text(net)))
	}
	for _, group := range [][]node{b.footprints, b.graphics, b.copper} {
		slices.SortFunc(group, compareItems)
		n.kids = append(n.kids, group...)
	}
	n.kids = append(n.kids, set("embedded_fonts", "no"))
	return n, b.err
}

// compareItems orders by kind, then by id, as KiCad writes them.
func compareItems(x, y node) int {
	return cmp.Or(strings.Compare(x.head(), y.head()), strings.Compare(idOf(x), idOf(y)))
}

func layers() node {
	n := list("layers")
	for _, l := range []struct{ number, name, kind, title string }{
		{"0", "F.Cu", "signal", ""},
		{"2", "B.Cu", "signal", ""},
		{"9", "F.Adhes", "user", "F.Adhesive"},
		{"11", "B.Adhes", "user", "B.Adhesive"},
		{"13", "F.Paste", "user", ""},
		{"15", "B.Paste", "user", ""},
		{"5", "F.SilkS", "user", "F.Silkscreen"},
		{"7", "B.SilkS", "user", "B.Silkscreen"},
		{"1", "F.Mask", "user", ""},
		{"3", "B.Mask", "user", ""},
		{"17", "Dwgs.User", "user", "User.Drawings"},
		{"19", "Cmts.User", "user", "User.Comments"},
		{"21", "Eco1.User", "user", "User.Eco1"},
		{"23", "Eco2.User", "user", "User.Eco2"},
		{"25", "Edge.Cuts", "user", ""},
		{"27", "Margin", "user", ""},
		{"31", "F.CrtYd", "user", "F.Courtyard"},
		{"29", "B.CrtYd", "user", "B.Courtyard"},
		{"35", "F.Fab", "user", ""},
		{"33", "B.Fab", "user", ""},
	} {
		k := list(l.number, text(l.name), word(l.kind))
		if l.title != "" {
			k.kids = append(k.kids, text(l.title))
		}
		n.kids = append(n.kids, k)
	}
	return n
}
