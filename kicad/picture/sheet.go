// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"cmp"
	"fmt"
	"math"
	"strconv"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/sch"
	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// nouns are the items of a sheet that are told as a number of them.
var nouns = map[string]string{
	"wire": "wire", "bus": "bus line", "junction": "junction", "no_connect": "no-connect flag", "bus_entry": "bus entry",
	"polyline": "line", "rectangle": "rectangle", "circle": "circle", "arc": "arc", "bezier": "curve",
	"rule_area": "rule area", "image": "image", "table": "table",
}

// A sheetReader makes items of one instance of a sheet.
type sheetReader struct {
	in  *sch.Instance
	ref map[*sch.Symbol]sch.Placed
	// spelled are the looks of library symbols, which many symbols share.
	spelled map[string]string
}

// sheetItems lists what stands on one instance of a sheet.
func sheetItems(d *sch.Design, in *sch.Instance) []*item {
	r := sheetReader{in: in, ref: map[*sch.Symbol]sch.Placed{}, spelled: map[string]string{}}
	for _, p := range d.Placed() {
		if p.Sheet == in {
			r.ref[p.Symbol] = p
		}
	}
	var list []*item
	for _, s := range in.File.Symbols {
		list = append(list, r.symbol(s))
	}
	for n := range in.File.Doc.Root().All() {
		if i := r.item(n); i != nil {
			list = append(list, i)
		}
	}
	return list
}

func (r sheetReader) item(n sexpr.Node) *item {
	tag := n.Tag()
	i := &item{tag: tag, id: n.Get("uuid").Arg(0).Text(), look: look(n)}
	switch tag {
	case "label", "global_label", "hierarchical_label", "netclass_flag", "directive_label", "text", "text_box":
		text := n.Arg(0).Text()
		i.what, i.name = strings.ReplaceAll(tag, "_", " "), show(text)
		i.box = textBox(n, text)
		if size := n.Get("size"); size.OK() {
			i.box = sized(n)
		}
		i.facts = []fact{at(n)}
		if strings.HasSuffix(tag, "label") {
			i.nets = []string{sch.Plain(text)}
		}
	case "sheet":
		i.what = "sheet"
		i.sheet(n)
	default:
		noun, ok := nouns[tag]
		if !ok {
			return nil // the title block, the library, and what is not drawn
		}
		i.group, i.what, i.box = true, noun, reachAll(n)
		if size := n.Get("size"); size.OK() { // of a bus entry
			i.box = sized(n)
		}
	}
	return i
}

func (i *item) sheet(n sexpr.Node) {
	i.box = sized(n)
	for p := range n.Lists("property") {
		name := strings.ReplaceAll(p.Arg(0).Text(), " ", "")
		if name == "Sheetname" {
			i.name = show(p.Arg(1).Text())
		}
		i.facts = append(i.facts, fact{name, p.Arg(1).Text()})
	}
	i.facts = append(i.facts, at(n))
	for p := range n.Lists("pin") {
		key := cmp.Or(p.Get("uuid").Arg(0).Text(), p.Arg(0).Text())
		i.facts = append(i.facts, fact{"pin\x00" + key, p.Arg(0).Text() + " (" + p.Arg(1).Text() + ")"})
		i.nets = append(i.nets, sch.Plain(p.Arg(0).Text()))
	}
}

// sized is the box of an item with a place and a size.
func sized(n sexpr.Node) Box {
	x, y := xy(n.Get("at"))
	w, h := xy(n.Get("size"))
	var b Box
	b.reach(x, y)
	b.reach(x+w, y+h)
	return b
}

func at(n sexpr.Node) fact { return fact{place, opaque(look(n.Get("at")))} }

// symbol is a placed symbol, with the looks of the library symbol that its file carries for it.
func (r sheetReader) symbol(s *sch.Symbol) *item {
	p := r.ref[s]
	i := &item{tag: "symbol", id: s.UUID, name: p.Ref, refs: []string{p.Ref}}
	lib, _ := s.Lib()
	if lib.Power {
		i.what, i.name, i.refs, i.nets = "power symbol", show(s.Value("Value")), nil, []string{sch.Plain(s.Value("Value"))}
	}
	if p.Unit > 1 {
		i.name += " unit " + strconv.Itoa(p.Unit)
	}
	spelled, ok := r.spelled[lib.Name]
	if !ok {
		spelled = look(lib.Node)
		r.spelled[lib.Name] = spelled
	}
	i.look = p.Ref + "\x00" + look(s.Node, "pin") + "\x00" + spelled
	i.facts = []fact{
		at(s.Node),
		{"symbol", s.LibID},
		{"mirrored", s.Node.Get("mirror").Arg(0).Text()},
		{"not fitted", word(s.DNP)},
		{"in the BOM", word(s.InBOM)},
		{"on the board", word(s.OnBoard)},
	}
	i.box = body(s, lib, p.Unit)
	for _, f := range s.Properties {
		if f.Name == "Reference" || lib.Power && f.Name == "Value" {
			continue
		}
		if f.Value != "" {
			i.facts = append(i.facts, fact{f.Name, f.Value})
		}
	}
	for _, f := range s.Properties {
		if (f.Name == "Reference" || f.Name == "Value") && !hidden(f.Node) {
			i.box.cover(textBox(f.Node, f.Value))
		}
	}
	return i
}

func word(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func hidden(property sexpr.Node) bool {
	for _, n := range []sexpr.Node{property, property.Get("effects")} {
		if yes, found := n.Flag("hide"); found {
			return yes
		}
		for c := range n.All() {
			if c.Kind() == sexpr.Word && c.Text() == "hide" {
				return true
			}
		}
	}
	return false
}

// body is where the symbol's drawing and pins are on the sheet.
func body(s *sch.Symbol, lib sch.LibSymbol, unit int) Box {
	var local, b Box
	for part := range lib.Node.Lists("symbol") {
		u, style, ok := unitOf(part.Arg(0).Text())
		if ok && (u == 0 || u == unit) && style <= 1 {
			local.cover(reachAll(part))
		}
	}
	x, y := xy(s.Node.Get("at"))
	if !local.set {
		b.reach(x, y)
		return b.grown(1.27)
	}
	angle, _ := s.Node.Get("at").Number(2)
	sin, cos := math.Sincos(angle * math.Pi / 180)
	mirror := s.Node.Get("mirror").Arg(0).Text()
	for _, c := range [][2]float64{{local.X1, local.Y1}, {local.X1, local.Y2}, {local.X2, local.Y1}, {local.X2, local.Y2}} {
		// symbols have y upwards; rotation is counter-clockwise and comes before mirroring (measured on kicad-cli 9.0.8)
		px, py := c[0], -c[1]
		px, py = px*cos+py*sin, -px*sin+py*cos
		switch mirror {
		case "x":
			py = -py
		case "y":
			px = -px
		}
		b.reach(x+px, y+py)
	}
	return b
}

// unitOf reads the end of a drawing's name in a library symbol: NAME_unit_style.
func unitOf(name string) (unit, style int, ok bool) {
	rest, last, found := cutLast(name)
	if !found {
		return 0, 0, false
	}
	_, first, found := cutLast(rest)
	if !found {
		return 0, 0, false
	}
	u, err := strconv.Atoi(first)
	st, err2 := strconv.Atoi(last)
	return u, st, err == nil && err2 == nil
}

func cutLast(s string) (before, after string, found bool) {
	i := strings.LastIndexByte(s, '_')
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+1:], true
}

// names are the sheets from the root down to an instance, the root's not among them.
func names(in *sch.Instance) []string {
	if in.Parent == nil {
		return nil
	}
	return append(names(in.Parent), in.Sheet.Name)
}

// trail is the UUIDs from the root down to an instance, the root's not among them: the same in both states also when
// the root was made anew.
func trail(in *sch.Instance) string {
	if in.Parent == nil {
		return "/"
	}
	return trail(in.Parent) + in.Sheet.UUID + "/"
}

// title is a sheet's name for a reader.
func title(in *sch.Instance) string {
	if in.Parent == nil {
		return "Root sheet"
	}
	return fmt.Sprintf("Sheet %s", strings.Join(names(in), " / "))
}
