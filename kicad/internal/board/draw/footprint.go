// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strconv"
)

// A footprint is a part on the board.
type footprint struct {
	pcb   *pcb
	part  part
	at    point
	turn  int
	label point // of the designator, from at
}

// node turns a library footprint into a placed one: fields of the part, ids,
// the link to its symbol, nets on the pads.
func (f footprint) node(lib node) node {
	n := list("footprint", text(f.part.footprint), list("layer", text(front)), uuid(f.name("")), f.where(f.at, f.turn))
	body := slices.DeleteFunc(lib.kids[2:], func(k node) bool {
		return slices.Contains([]string{"version", "generator", "generator_version", "layer"}, k.head())
	})
	linked := false
	for i, k := range body {
		switch k.head() {
		case "descr", "tags":
			n.kids = append(n.kids, k)
			continue
		case "property":
			continue
		}
		if !linked {
			n.kids = append(n.kids, f.fields(lib)...)
			n.kids = append(n.kids, f.link()...)
			linked = true
		}
		switch k.head() {
		case "fp_text":
			k = f.turned(withID(k, f.name("/"+strconv.Itoa(i))))
		case "fp_line", "fp_rect", "fp_circle", "fp_arc", "fp_poly":
			k = withID(k, f.name("/"+strconv.Itoa(i)))
		case "pad":
			k = f.pad(k, i)
		}
		n.kids = append(n.kids, k)
	}
	return n
}

func (f footprint) name(sub string) string { return project + "/pcb/" + f.part.ref + sub }

// where is (at x y) with the angle only when there is one, as KiCad writes it.
func (f footprint) where(p point, turn int) node {
	if turn == 0 {
		return p.node("at")
	}
	return place(p, turn)
}

// fields are the properties. Places are in the frame of the footprint, angles
// in that of the board.
func (f footprint) fields(lib node) []node {
	reference := f.field("Reference", f.part.ref, f.label.turn(-f.turn), 0, "F.SilkS", false)
	value := f.field("Value", f.part.value, valuePlace(lib), f.turn, "F.Fab", false)
	out := []node{
		reference, value,
		f.field("Datasheet", f.part.datasheet, point{}, f.turn, "F.Fab", true),
		f.field("Description", f.part.about, point{}, f.turn, "F.Fab", true),
	}
	if f.part.mpn != "" {
		out = append(out, f.field("MPN", f.part.mpn, point{}, f.turn, "F.Fab", true))
	}
	return out
}

func valuePlace(lib node) point {
	for _, k := range lib.kids {
		if k.head() == "property" && k.arg(0) == "Value" {
			p, _ := position(k)
			return p
		}
	}
	return point{}
}

func (f footprint) field(key, value string, p point, angle int, layer string, hide bool) node {
	n := list("property", text(key), text(value), place(p, angle))
	if hide {
		n.kids = append(n.kids, set("unlocked", "yes"))
	}
	n.kids = append(n.kids, list("layer", text(layer)))
	if hide {
		n.kids = append(n.kids, set("hide", "yes"))
	}
	size, thickness := "1", "0.15"
	if hide {
		size = "1.27"
	}
	n.kids = append(n.kids, uuid(f.name("/"+key)), silk(size, thickness))
	return n
}

// link names the symbol that the footprint stands for.
func (f footprint) link() []node {
	path, sheetname, sheetfile := "/"+id(project+"/"+f.part.ref), "/", project+".kicad_sch"
	if f.part.child {
		path = "/" + id(project+"/"+childName) + "/" + id(project+"/mcu/"+f.part.ref)
		sheetname, sheetfile = "/"+childName+"/", childFile
	}
	return []node{list("path", text(path)), list("sheetname", text(sheetname)), list("sheetfile", text(sheetfile))}
}

// withID puts a uuid after the layer, where KiCad has it.
func withID(k node, name string) node {
	i := slices.IndexFunc(k.kids, func(c node) bool { return c.head() == "layer" })
	if i < 0 {
		i = len(k.kids) - 1
	}
	k.kids = slices.Insert(slices.Clone(k.kids), i+1, uuid(name))
	return k
}

// turned adds the footprint's angle to that of k, as board files hold it.
func (f footprint) turned(k node) node {
	kids := slices.Clone(k.kids)
	for i, c := range kids {
		if c.head() != "at" {
			continue
		}
		own, _ := strconv.Atoi(c.arg(2))
		angle := (own + f.turn) % 360
		p, err := position(k)
		if err != nil {
			f.pcb.fail(fmt.Errorf("%s: %w", f.part.ref, err))
		}
		kids[i] = f.where(p, angle)
		if k.head() == "fp_text" {
			kids[i] = place(p, angle)
		}
	}
	k.kids = kids
	return k
}

func (f footprint) pad(k node, i int) node {
	number := k.arg(0)
	p, err := position(k)
	if err != nil {
		f.pcb.fail(fmt.Errorf("%s pad %s: %w", f.part.ref, number, err))
	}
	k = f.turned(k)
	for _, q := range f.part.pins {
		if q.number != number {
			continue
		}
		f.pcb.pads[f.part.ref+"."+number] = f.at.add(p.turn(f.turn))
		net := f.part.netOf(q)
		k.kids = append(k.kids, list("net", word(f.pcb.netNumber(net)), text(net)))
		if q.name != "~" {
			k.kids = append(k.kids, list("pinfunction", text(q.name)))
		}
		k.kids = append(k.kids, list("pintype", text(q.kind)))
	}
	k.kids = append(k.kids, uuid(f.name("/pad"+strconv.Itoa(i))))
	return k
}
