// SPDX-License-Identifier: Apache-2.0

// Package pcb reads KiCad boards with the place of every text that an edit may have to replace. It computes edits as
// byte ranges and writes nothing. Formats from KiCad 5 (20171130) to 9 (20241229) are read; boards of KiCad 10, whose
// nets have names but no numbers, are read as well and reported as such.
package pcb

import (
	"slices"

	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// A NetStyle tells how a board writes its nets.
type NetStyle uint8

// The styles.
const (
	NoNets NetStyle = iota // the board has no net at all
	Table                  // a table of numbers and names, KiCad 5 to 9
	Inline                 // names at each use and no table, KiCad 10; kicad-cli 9 does not load that
)

// Newest is the newest format stamp that kicad-cli 9.0.8 loads.
const Newest = 20241229

// A Board is one .kicad_pcb.
type Board struct {
	Name       string // slash-separated, as given to [Read]
	Doc        *sexpr.Doc
	Errors     []*sexpr.Error // what is wrong with the text; the rest is then what could be read
	Version    int            // format stamp, for instance 20241229; 0 when missing
	Generator  string
	Style      NetStyle
	Nets       []Net // the table
	Footprints []*Footprint
	Uses       []Use // every place that names a net, in the order of the file, the table not included
}

// A Net is a line of the net table.
type Net struct {
	Number int
	Name   string
	Node   sexpr.Node
	Text   sexpr.Node // the name token
}

// A Use is a place that names a net: (net 2 "/OUT") in a pad, (net 2) in a track, (net 3) (net_name "GND") in a zone.
type Use struct {
	In     string // the tag of the item that holds it: pad, segment, via, arc, zone, ...
	Number int    // -1 when the place gives none
	Name   string
	Named  bool // whether the place spells the name
	Node   sexpr.Node
	Text   sexpr.Node // the name token, the zero Node unless Named
}

// A Footprint is a placed footprint.
type Footprint struct {
	ID        string // library and name, for instance Resistor_SMD:R_0603_1608Metric
	UUID      string
	Reference string
	Value     string
	Path      string // of UUIDs to the symbol: /sheet/symbol
	Fields    []Field
	Pads      []Pad
	DNP       bool
	NoBOM     bool // excluded from the bill of materials
	NoPos     bool // excluded from position files
	Node      sexpr.Node
}

// A Field is a text of a footprint that has a name.
type Field struct {
	Name, Value string
	Text        sexpr.Node // the value token
}

// A Pad is a pad; several may share a number, and a mechanical one has none.
type Pad struct {
	Number   string
	Net      string // "" for none
	Function string // the pin's name
	Type     string
	Node     sexpr.Node
}

// Read reads a board. It never fails: what is wrong with the text is in Errors, what could be read is there.
func Read(name string, src []byte) *Board {
	b := &Board{Name: name}
	b.Doc, b.Errors = sexpr.ParseTolerant(src)
	root := b.Doc.Root()
	if !root.Is("kicad_pcb") {
		return b
	}
	v, _ := root.Get("version").Number(0)
	b.Version, b.Generator = int(v), root.Get("generator").Arg(0).Text()
	for item := range root.All() {
		switch item.Tag() {
		case "net":
			n, _ := item.Number(0)
			b.Nets = append(b.Nets, Net{Number: int(n), Name: item.Arg(1).Text(), Node: item, Text: item.Arg(1)})
		case "footprint", "module":
			b.Footprints = append(b.Footprints, readFootprint(item))
		}
	}
	b.readUses(root)
	b.Style = b.style()
	return b
}

// Valid reports whether the file is a board without an error in its text.
func (b *Board) Valid() bool { return len(b.Errors) == 0 && b.Doc.Root().Is("kicad_pcb") }

// Counts counts the board's items by their tag, for instance footprint, segment, via, zone.
func (b *Board) Counts() map[string]int {
	counts := map[string]int{}
	for item := range b.Doc.Root().All() {
		if item.Kind() == sexpr.List {
			counts[item.Tag()]++
		}
	}
	return counts
}

// Pins maps each net's name to its pads, "R1.2", sorted and without duplicates. Pads without a net or a number are left out.
func (b *Board) Pins() map[string][]string {
	nets := map[string][]string{}
	for _, f := range b.Footprints {
		for _, p := range f.Pads {
			if p.Net != "" && p.Number != "" {
				nets[p.Net] = append(nets[p.Net], f.Reference+"."+p.Number)
			}
		}
	}
	for name, pins := range nets {
		slices.Sort(pins)
		nets[name] = slices.Compact(pins)
	}
	return nets
}

func (b *Board) style() NetStyle {
	if len(b.Nets) > 0 {
		return Table
	}
	for _, u := range b.Uses {
		if u.Number < 0 && u.Named {
			return Inline
		}
	}
	return NoNets
}

// readUses looks at every list of the board. Beside net and net_name there are add_net in the net classes of KiCad 5
// and last_netname in length tuning patterns.
func (b *Board) readUses(root sexpr.Node) {
	for n := range root.Walk() {
		if n.Kind() != sexpr.Word {
			continue
		}
		tag := string(n.Raw())
		if tag != "net" && tag != "net_name" && tag != "add_net" && tag != "last_netname" {
			continue
		}
		list := n.Parent()
		if list.Arg(-1) != n || list.Parent() == root {
			continue
		}
		u := Use{In: list.Parent().Tag(), Number: -1, Node: list}
		first := list.Arg(0)
		if number, ok := list.Number(0); ok && tag == "net" && first.Kind() == sexpr.Word {
			u.Number = int(number)
			first = list.Arg(1)
		}
		if first.OK() {
			u.Named, u.Name, u.Text = true, first.Text(), first
		}
		b.Uses = append(b.Uses, u)
	}
}

func readFootprint(item sexpr.Node) *Footprint {
	f := &Footprint{
		ID: item.Arg(0).Text(), UUID: item.Get("uuid").Arg(0).Text(), Path: item.Get("path").Arg(0).Text(), Node: item,
	}
	if f.UUID == "" {
		f.UUID = item.Get("tstamp").Arg(0).Text() // before KiCad 8
	}
	for c := range item.All() {
		switch c.Tag() {
		case "property":
			f.Fields = append(f.Fields, Field{Name: c.Arg(0).Text(), Value: c.Arg(1).Text(), Text: c.Arg(1)})
		case "fp_text": // before KiCad 8
			if kind := c.Arg(0).Text(); kind == "reference" || kind == "value" {
				name := map[string]string{"reference": "Reference", "value": "Value"}[kind]
				f.Fields = append(f.Fields, Field{Name: name, Value: c.Arg(1).Text(), Text: c.Arg(1)})
			}
		case "attr":
			for word := range c.All() {
				switch word.Text() {
				case "dnp":
					f.DNP = true
				case "exclude_from_bom":
					f.NoBOM = true
				case "exclude_from_pos_files":
					f.NoPos = true
				}
			}
		case "pad":
			f.Pads = append(f.Pads, readPad(c))
		}
	}
	f.Reference, f.Value = f.field("Reference").Value, f.field("Value").Value
	return f
}

func readPad(c sexpr.Node) Pad {
	net := c.Get("net")
	name := net.Arg(1)
	if !name.OK() {
		name = net.Arg(0) // KiCad 10
	}
	return Pad{
		Number: c.Arg(0).Text(), Net: name.Text(), Function: c.Get("pinfunction").Arg(0).Text(),
		Type: c.Get("pintype").Arg(0).Text(), Node: c,
	}
}

// field returns the field of that name. Boards that KiCad 7 saved may hold it twice, as a property and as a text: the
// text is the one that KiCad shows.
func (f *Footprint) field(name string) Field {
	var found Field
	for _, field := range f.Fields {
		if field.Name == name {
			found = field
		}
	}
	return found
}
