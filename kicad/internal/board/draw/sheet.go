// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

// A sheet collects what stands on one schematic page. The first error stops
// the drawing and comes out of node.
type sheet struct {
	lib   *library
	parts []part
	name  string // before the names that ids are made of
	path  string // ids of the sheets above, as in (instances (project (path …)))
	title string
	page  string

	symbols map[string]symbol
	pins    map[string]point // "U1.3"
	wires   []wire
	items   map[string][]node // by head
	err     error
}

func newSheet(lib *library, parts []part, name, path, title, page string) *sheet {
	return &sheet{
		lib: lib, parts: parts, name: name, path: path, title: title, page: page,
		symbols: map[string]symbol{}, pins: map[string]point{}, items: map[string][]node{},
	}
}

// A mark is where a field's text stands, counted from the symbol's centre in
// millimetres of the sheet, and how it is justified.
type mark struct {
	x, y    float64
	justify string
}

// A pose is how a symbol stands: turned counter-clockwise by a multiple of 90
// degrees, then mirrored left to right.
type pose struct {
	turn     int
	mirror   bool
	ref, val mark
}

// upright is a two-pin part that stands, its texts to the right.
func upright() pose {
	return pose{ref: mark{2.54, -1.27, "left"}, val: mark{2.54, 1.27, "left"}}
}

// supply, ground and driven are power symbols and the flag of a driven net,
// with the texts where the library has them.
func supply() pose { return pose{ref: mark{0, 3.81, ""}, val: mark{0, -3.556, ""}} }

func ground() pose { return pose{ref: mark{0, 6.35, ""}, val: mark{0, 3.81, ""}} }

func driven() pose { return pose{ref: mark{0, -1.905, ""}, val: mark{0, -3.81, ""}} }

// place puts a part of the catalogue on the page.
func (s *sheet) place(ref string, where point, how pose) {
	p, err := byRef(s.parts, ref)
	if err != nil {
		s.fail(err)
		return
	}
	s.put(p, where, how, false)
}

// power puts a power symbol or flag on the page.
func (s *sheet) power(ref, lib string, where point, how pose) {
	sym, err := s.lib.symbol(lib)
	if err != nil {
		s.fail(err)
		return
	}
	pins, err := sym.pins()
	if err != nil {
		s.fail(err)
		return
	}
	value := sym.property("Value")
	s.put(part{
		ref: ref, lib: lib, value: value, about: sym.property("Description"),
		datasheet: sym.property("Datasheet"), symbol: sym, pins: pins,
	}, where, how, true)
}

func (s *sheet) put(p part, where point, how pose, hideRef bool) {
	s.symbols[p.lib] = p.symbol
	name := s.name + "/" + p.ref
	n := list("symbol",
		list("lib_id", text(p.lib)), place(where, how.turn),
	)
	if how.mirror {
		n.kids = append(n.kids, set("mirror", "y"))
	}
	n.kids = append(n.kids,
		set("unit", "1"), set("exclude_from_sim", "no"), set("in_bom", "yes"), set("on_board", "yes"), set("dnp", "no"),
		uuid(name),
		field("Reference", p.ref, where, how, how.ref, hideRef),
		field("Value", p.value, where, how, how.val, false),
		field("Footprint", p.footprint, where, how, mark{}, true),
		field("Datasheet", p.datasheet, where, how, mark{}, true),
		field("Description", p.about, where, how, mark{}, true),
	)
	if p.mpn != "" {
		n.kids = append(n.kids, field("MPN", p.mpn, where, how, mark{}, true))
	}
	for _, q := range p.pins {
		end := q.at.turn(how.turn)
		if how.mirror {
			end.x = -end.x
		}
		s.pins[p.ref+"."+q.number] = where.add(end)
		n.kids = append(n.kids, list("pin", text(q.number), uuid(name+"."+q.number)))
	}
	n.kids = append(n.kids, instances(s.path, list("reference", text(p.ref)), set("unit", "1")))
	s.add(n)
}

// field is a property. KiCad turns a field's text with its symbol, so a text
// on a symbol that lies stays level with an angle of 90.
func field(key, value string, where point, how pose, m mark, hide bool) node {
	angle := 0
	if how.turn%180 != 0 {
		angle = 90
	}
	e := effects(m.justify)
	if hide {
		e.kids = append(e.kids, set("hide", "yes"))
	}
	return list("property", text(key), text(value), place(where.add(mm(m.x, m.y)), angle), e)
}

func effects(justify string) node {
	e := list("effects", list("font", list("size", words("1.27", "1.27")...)))
	if justify != "" {
		e.kids = append(e.kids, list("justify", words(strings.Fields(justify)...)...))
	}
	return e
}

func instances(path string, kids ...node) node {
	return list("instances", list("project", text(project), list("path", append([]node{text(path)}, kids...)...)))
}

// pin is the place of a pin's end, "U1.3".
func (s *sheet) pin(name string) point {
	p, ok := s.pins[name]
	if !ok {
		s.fail(fmt.Errorf("no pin %s on this sheet", name))
	}
	return p
}

func (s *sheet) fail(err error) {
	if s.err == nil {
		s.err = err
	}
}

func (s *sheet) add(n node) { s.items[n.head()] = append(s.items[n.head()], n) }

func (s *sheet) id(kind string, p point) node {
	return uuid(s.name + "/" + kind + "/" + p.x.mm() + "," + p.y.mm())
}

// label is a local label on a wire; its text runs to the right from p.
func (s *sheet) label(name string, p point) {
	s.add(list("label", text(name), place(p, 0), effects("left bottom"), s.id("label", p)))
}

// endLabel is a local label on the right end of a wire; its text runs back over
// the wire.
func (s *sheet) endLabel(name string, p point) {
	s.add(list("label", text(name), place(p, 180), effects("right bottom"), s.id("label", p)))
}

// global is a global label on the left or right end of a wire.
func (s *sheet) global(name string, p point, left bool) {
	angle, justify := side(left)
	refs := field("Intersheetrefs", "${INTERSHEET_REFS}", p, pose{}, mark{0, 0, justify}, true)
	s.add(list("global_label", text(name), set("shape", "bidirectional"), place(p, angle), effects(justify), s.id("global", p), refs))
}

// hierarchical is a label that leads to the sheet above.
func (s *sheet) hierarchical(name, shape string, p point) {
	s.add(list("hierarchical_label", text(name), set("shape", shape), place(p, 0), effects("left"), s.id("hierarchical", p)))
}

func side(left bool) (angle int, justify string) {
	if left {
		return 180, "right"
	}
	return 0, "left"
}

func (s *sheet) noConnect(p point) {
	s.add(list("no_connect", p.node("at"), s.id("no_connect", p)))
}

func (s *sheet) note(words string, p point) {
	s.add(list("text", text(words), set("exclude_from_sim", "no"), place(p, 0), effects("left top"), s.id("text", p)))
}

// A sheetPin is a pin on the right edge of a sheet symbol, down from its top.
type sheetPin struct {
	name, shape string
	down        nm
}

// child is the symbol of the child sheet.
func (s *sheet) child(corner, size point, pins ...sheetPin) {
	const name = childName
	n := list("sheet",
		corner.node("at"), size.node("size"),
		set("exclude_from_sim", "no"), set("in_bom", "yes"), set("on_board", "yes"), set("dnp", "no"),
		list("stroke", set("width", "0.1524"), set("type", "solid")),
		list("fill", list("color", words("0", "0", "0", "0.0000")...)),
		uuid(s.name+"/"+name),
		field("Sheetname", name, corner, pose{}, mark{0, -0.7116, "left bottom"}, false),
		field("Sheetfile", childFile, corner.add(point{0, size.y}), pose{}, mark{0, 0.5846, "left top"}, false),
	)
	for _, p := range pins {
		where := corner.add(point{size.x, p.down})
		s.pins[name+"."+p.name] = where
		n.kids = append(n.kids, list("pin", text(p.name), word(p.shape), place(where, 0), uuid(s.name+"/"+name+"."+p.name), effects("right")))
	}
	n.kids = append(n.kids, instances(s.path, list("page", text("2"))))
	s.add(n)
}

// node is the finished page.
func (s *sheet) node() (node, error) {
	if s.err != nil {
		return node{}, s.err
	}
	s.connect()
	n := list("kicad_sch",
		set("version", "20250114"), list("generator", text("fiducial")), list("generator_version", text("9.0")),
		uuid(s.name), list("paper", text("A4")), titleBlock(s.title), s.embedded(),
	)
	// The order in which KiCad writes the kinds of items; within a kind by id.
	for _, head := range []string{
		"text", "junction", "no_connect", "wire", "label", "global_label", "hierarchical_label", "symbol", "sheet",
	} {
		items := s.items[head]
		slices.SortFunc(items, func(a, b node) int { return strings.Compare(idOf(a), idOf(b)) })
		n.kids = append(n.kids, items...)
	}
	if s.page == "1" {
		n.kids = append(n.kids, list("sheet_instances", list("path", text("/"), list("page", text("1")))))
	}
	n.kids = append(n.kids, set("embedded_fonts", "no"))
	return n, nil
}

func idOf(n node) string {
	u, _ := n.child("uuid")
	return u.arg(0)
}

func titleBlock(title string) node {
	return list("title_block", list("title", text(title)), list("date", text(issued)), list("rev", text(revision)),
		list("company", text("fiducial")), list("comment", word("1"), text("LED and I2C sensor node with an ATtiny412")))
}

func (s *sheet) embedded() node {
	n := list("lib_symbols")
	names := make([]string, 0, len(s.symbols))
	for name := range s.symbols {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		n.kids = append(n.kids, s.symbols[name].node)
	}
	return n
}
