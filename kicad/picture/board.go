// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"cmp"
	"math"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/pcb"
	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// tracks are the items of a board that are told as a number of them, with their net.
var tracks = map[string]string{"segment": "track", "arc": "track arc", "via": "via"}

// drawings are the items of a board that belong to no net.
var drawings = map[string]string{
	"gr_line": "line", "gr_rect": "rectangle", "gr_arc": "arc", "gr_circle": "circle", "gr_poly": "polygon", "gr_curve": "curve",
	"dimension": "dimension", "target": "target", "image": "image", "table": "table", "gr_text_box": "text box",
}

// boardItems lists what is on a board. renamed maps nets to their new names.
func boardItems(b *pcb.Board, renamed map[string]string) []*item {
	r := boardReader{nets: map[string]string{}, renamed: renamed}
	for _, n := range b.Nets {
		r.nets[n.Node.Arg(0).Text()] = n.Name
	}
	var list []*item
	for _, f := range b.Footprints {
		list = append(list, r.footprint(f))
	}
	for n := range b.Doc.Root().All() {
		if i := r.item(n); i != nil {
			list = append(list, i)
		}
	}
	return list
}

type boardReader struct {
	nets    map[string]string // by number, as written
	renamed map[string]string
}

// netOf is the net of an item, under its new name.
func (r boardReader) netOf(n sexpr.Node) string {
	l := n.Get("net")
	name := l.Arg(1).Text()
	if !l.Arg(1).OK() {
		name = l.Arg(0).Text()
		if known, ok := r.nets[name]; ok {
			name = known
		}
	}
	return cmp.Or(r.renamed[name], name)
}

func (r boardReader) item(n sexpr.Node) *item {
	tag := n.Tag()
	i := &item{tag: tag, id: cmp.Or(n.Get("uuid").Arg(0).Text(), n.Get("tstamp").Arg(0).Text()), look: look(n), on: layersOf(n)}
	if noun, ok := tracks[tag]; ok {
		i.group, i.what, i.net = true, noun, r.netOf(n)
		i.name, i.nets, i.box = "of "+netName(i.net), []string{i.net}, reachAll(n).grown(width(n)/2)
		i.facts = []fact{{"net", netName(i.net)}}
		if tag == "via" {
			i.on = []string{"*.Cu"}
		}
		return i
	}
	if noun, ok := drawings[tag]; ok {
		i.group, i.what, i.name, i.box = true, noun, "on "+strings.Join(i.on, ", "), reachAll(n)
		return i
	}
	switch tag {
	case "gr_text":
		i.what, i.name, i.box, i.facts = "text", show(n.Arg(0).Text()), textBox(n, n.Arg(0).Text()), []fact{at(n)}
		return i
	case "zone":
		return r.zone(i, n)
	}
	return nil
}

// zone keeps what was drawn apart from how it was filled.
func (r boardReader) zone(i *item, n sexpr.Node) *item {
	i.net = r.netOf(n)
	i.what, i.name = "zone", netName(i.net)+" on "+strings.Join(i.on, ", ")
	if name := n.Get("name").Arg(0).Text(); name != "" {
		i.name = show(name)
	}
	if n.Get("keepout").OK() {
		i.what, i.name = "keep-out area", "on "+strings.Join(i.on, ", ")
	} else {
		i.nets = []string{i.net}
	}
	var fill strings.Builder
	for f := range n.Lists("filled_polygon") {
		fill.WriteString(look(f))
	}
	i.box = reachAll(n.Get("polygon"))
	i.facts = []fact{{"net", netName(i.net)}}
	outline := look(n.Get("polygon"))
	i.facts = append(i.facts, fact{"outline", opaque(outline)}, fact{"fill", opaque(fill.String())})
	return i
}

func width(n sexpr.Node) float64 {
	for _, tag := range []string{"width", "size"} {
		if w, ok := n.Get(tag).Number(0); ok {
			return w
		}
	}
	return 0
}

func netName(name string) string { return cmp.Or(name, "no net") }

func (r boardReader) footprint(f *pcb.Footprint) *item {
	n := f.Node
	i := &item{
		tag: "footprint", id: f.UUID, name: cmp.Or(f.Reference, f.ID), refs: []string{f.Reference}, look: look(n),
		on: []string{n.Get("layer").Arg(0).Text()},
	}
	i.facts = []fact{
		at(n),
		{"side", n.Get("layer").Arg(0).Text()},
		{"footprint", f.ID},
		{"value", f.Value},
		{"not fitted", word(f.DNP)},
		{"not in the BOM", word(f.NoBOM)},
	}
	var pads []string
	x, y := xy(n.Get("at"))
	angle, _ := n.Get("at").Number(2)
	var local Box
	for _, p := range f.Pads {
		net := r.netOf(p.Node)
		px, py := xy(p.Node.Get("at"))
		w, h := xy(p.Node.Get("size"))
		reach := max(w, h) / 2
		local.reach(px-reach, py-reach)
		local.reach(px+reach, py+reach)
		if kind := p.Node.Arg(1).Text(); kind == "thru_hole" || kind == "np_thru_hole" {
			i.on = []string{n.Get("layer").Arg(0).Text(), "*.Cu"}
		}
		if p.Number == "" {
			continue
		}
		pads = append(pads, p.Number+"="+net)
		i.nets = append(i.nets, net)
		if name := "pad " + p.Number; !slices.ContainsFunc(i.facts, func(f fact) bool { return f.name == name }) {
			i.facts = append(i.facts, fact{name, netName(net)})
		}
	}
	i.net = strings.Join(pads, "\x00")
	for c := range n.All() {
		if tag := c.Tag(); strings.HasPrefix(tag, "fp_") && tag != "fp_text" && !strings.HasSuffix(c.Get("layer").Arg(0).Text(), "Fab") {
			local.cover(reachAll(c))
		}
	}
	i.box = turned(local, x, y, angle)
	return i
}

// turned places a box of a footprint on the board: rotated counter-clockwise, y downwards.
func turned(local Box, x, y, angle float64) Box {
	var b Box
	b.reach(x, y)
	if !local.set {
		return b.grown(1)
	}
	sin, cos := math.Sincos(angle * math.Pi / 180)
	for _, c := range [][2]float64{{local.X1, local.Y1}, {local.X1, local.Y2}, {local.X2, local.Y1}, {local.X2, local.Y2}} {
		b.reach(x+c[0]*cos+c[1]*sin, y-c[0]*sin+c[1]*cos)
	}
	return b
}

// layersOf lists the layers an item names.
func layersOf(n sexpr.Node) []string {
	var list []string
	for _, tag := range []string{"layer", "layers"} {
		for c := range n.Get(tag).All() {
			if t := c.Text(); t != tag && t != "" {
				list = append(list, t)
			}
		}
	}
	return list
}

// boardNetlist makes a netlist of a board that has no schematic.
func boardNetlist(b *pcb.Board) *kicadcli.Netlist {
	n := &kicadcli.Netlist{}
	by := map[string]int{}
	for _, f := range b.Footprints {
		n.Parts = append(n.Parts, kicadcli.Part{Ref: f.Reference, Value: f.Value, Footprint: f.ID})
		for _, p := range f.Pads {
			if p.Net == "" || p.Number == "" {
				continue
			}
			i, ok := by[p.Net]
			if !ok {
				i = len(n.Nets)
				by[p.Net] = i
				n.Nets = append(n.Nets, kicadcli.Net{Name: p.Net})
			}
			n.Nets[i].Pins = append(n.Nets[i].Pins, kicadcli.Pin{Ref: f.Reference, Number: p.Number, Function: p.Function})
		}
	}
	return n
}
