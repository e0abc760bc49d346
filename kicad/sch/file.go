// SPDX-License-Identifier: Apache-2.0

// Package sch reads KiCad schematics: one file, or the whole tree of sheets, with the place of every text that an
// edit may have to replace. It computes edits as byte ranges and writes nothing.
//
// What is connected to what is kicad-cli's to say (package kicadcli); this package knows where names are spelled.
// Behaviour was measured on kicad-cli 9.0.8 with formats from KiCad 6 (20211123) to 9 (20250114).
package sch

import (
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// A File is one .kicad_sch.
type File struct {
	Name    string // slash-separated, as given to [Read] or found by [Load]
	Doc     *sexpr.Doc
	Errors  []*sexpr.Error // what is wrong with the text; the rest of the File is then what could be read
	Version int            // format stamp, for instance 20250114; 0 when missing
	UUID    string
	Library map[string]LibSymbol // the symbols that the file carries, by name
	Symbols []*Symbol            // placed ones, in the order of the file
	Labels  []*Label             // labels of all kinds, sheet pins and power symbols
	Sheets  []*Sheet             // sheet symbols
	Wires   [][2]Point           // the wires' segments
}

// A Point is a place on the sheet in units of 0.1 micrometre.
type Point struct{ X, Y int }

// A LibSymbol is a symbol that the file carries in lib_symbols.
type LibSymbol struct {
	Name string
	// Power is set for power symbols that name a net, see [Power]. A PWR_FLAG is a power symbol for KiCad but
	// names none: its pin is an output.
	Power bool
	Node  sexpr.Node

	pin    sexpr.Node // the name of a power symbol's pin, when the pin is hidden
	hidden []string   // names of hidden power inputs, which join the net of that name in the whole design
}

// A Property is a field of a symbol or sheet.
type Property struct {
	Name, Value string
	Node        sexpr.Node // the whole (property ...)
	Text        sexpr.Node // the value token
}

// A Symbol is a placed symbol, or one unit of it.
type Symbol struct {
	File       *File
	Node       sexpr.Node
	UUID       string
	LibID      string // for instance Device:R
	LibName    string // the key into Library when it differs from LibID, else ""
	Unit       int
	At         Point
	DNP        bool
	InBOM      bool
	OnBoard    bool
	Properties []Property
	Uses       []Use
}

// A Use is the reference that a symbol has in one instance of its sheet.
type Use struct {
	Project string
	Path    string // UUIDs from the root sheet's on, for instance /top/sheet; of KiCad 6: without the root's, with the symbol's
	Ref     string
	Unit    int
	Text    sexpr.Node // the reference token
}

// A Sheet is a sheet symbol.
type Sheet struct {
	File       *File
	Node       sexpr.Node
	UUID       string
	Name       string
	Target     string // Sheetfile as written
	TargetText sexpr.Node
	DNP        bool
	InBOM      bool
	OnBoard    bool
	Properties []Property
}

// Property returns the field of that name.
func (s *Symbol) Property(name string) (Property, bool) { return property(s.Properties, name) }

// Value returns the text of a field, "" when there is none.
func (s *Symbol) Value(name string) string {
	p, _ := s.Property(name)
	return p.Value
}

// Lib returns the library symbol that the file carries for s.
func (s *Symbol) Lib() (LibSymbol, bool) {
	if s.LibName != "" {
		l, ok := s.File.Library[s.LibName]
		return l, ok
	}
	l, ok := s.File.Library[s.LibID]
	return l, ok
}

func property(list []Property, name string) (Property, bool) {
	for _, p := range list {
		if p.Name == name {
			return p, true
		}
	}
	return Property{}, false
}

// Read reads one file. It never fails: what is wrong with the text is in Errors, what could be read is there.
func Read(name string, src []byte) *File {
	f := &File{Name: name, Library: map[string]LibSymbol{}}
	f.Doc, f.Errors = sexpr.ParseTolerant(src)
	root := f.Doc.Root()
	if !root.Is("kicad_sch") {
		return f
	}
	for item := range root.All() {
		switch item.Tag() {
		case "version":
			v, _ := item.Number(0)
			f.Version = int(v)
		case "uuid":
			f.UUID = item.Arg(0).Text()
		case "lib_symbols":
			f.readLibrary(item)
		case "symbol":
			f.readSymbol(item)
		case "sheet":
			f.readSheet(item)
		case "wire":
			f.readWire(item)
		case "label", "global_label", "hierarchical_label":
			f.addLabel(labelKinds[item.Tag()], item, item.Arg(0))
		}
	}
	f.addPower()
	return f
}

// Valid reports whether the file is a schematic without an error in its text that would hide a part of it.
func (f *File) Valid() bool { return f.flaw() == nil && f.Doc.Root().Is("kicad_sch") }

// flaw is the first error for which not every place in the file is known. A NUL byte and one that is not UTF-8 are none:
// KiCad takes the first for white space, and the string that holds the second for an empty one.
func (f *File) flaw() *sexpr.Error {
	for _, e := range f.Errors {
		if e.Kind != sexpr.NUL && e.Kind != sexpr.InvalidUTF8 {
			return e
		}
	}
	return nil
}

// Counts counts the items of the sheet by their tag, for instance symbol, wire, label.
func (f *File) Counts() map[string]int {
	counts := map[string]int{}
	for item := range f.Doc.Root().All() {
		if item.Kind() == sexpr.List {
			counts[item.Tag()]++
		}
	}
	return counts
}

func (f *File) readLibrary(lib sexpr.Node) {
	for s := range lib.Lists("symbol") {
		l := LibSymbol{Name: s.Arg(0).Text(), Node: s}
		power := s.Get("power").OK()
		for n := range s.Walk() {
			if !n.Is("pin") || n.Arg(0).Text() != "power_in" {
				continue
			}
			name := n.Get("name").Arg(0)
			l.Power = power
			switch {
			case !hides(n):
			case power:
				l.pin = name
			default:
				l.hidden = append(l.hidden, name.Text())
			}
		}
		f.Library[l.Name] = l
	}
}

// hides reports whether a pin is marked hide, or (hide yes) since KiCad 8.
func hides(pin sexpr.Node) bool {
	if yes, found := pin.Flag("hide"); found {
		return yes
	}
	for c := range pin.All() {
		if c.Kind() == sexpr.Word && c.Text() == "hide" {
			return true
		}
	}
	return false
}

func (f *File) readSymbol(item sexpr.Node) {
	s := &Symbol{
		File: f, Node: item, UUID: item.Get("uuid").Arg(0).Text(), LibID: item.Get("lib_id").Arg(0).Text(),
		LibName: item.Get("lib_name").Arg(0).Text(), Unit: 1, At: point(item.Get("at")), Properties: readProperties(item),
	}
	if u, ok := item.Get("unit").Number(0); ok {
		s.Unit = int(u)
	}
	s.DNP, s.InBOM, s.OnBoard = flags(item)
	for project := range item.Get("instances").Lists("project") {
		for p := range project.Lists("path") {
			s.Uses = append(s.Uses, readUse(project.Arg(0).Text(), p))
		}
	}
	f.Symbols = append(f.Symbols, s)
}

func readUse(project string, path sexpr.Node) Use {
	ref := path.Get("reference").Arg(0)
	u := Use{Project: project, Path: path.Arg(0).Text(), Ref: ref.Text(), Text: ref, Unit: 1}
	if n, ok := path.Get("unit").Number(0); ok {
		u.Unit = int(n)
	}
	return u
}

// flags reads dnp, in_bom and on_board, which are no, yes and yes where they are missing.
func flags(item sexpr.Node) (dnp, inBOM, onBoard bool) {
	dnp, _ = item.Flag("dnp")
	inBOM, found := item.Flag("in_bom")
	inBOM = inBOM || !found
	onBoard, found = item.Flag("on_board")
	return dnp, inBOM, onBoard || !found
}

func readProperties(item sexpr.Node) []Property {
	var list []Property
	for p := range item.Lists("property") {
		name := p.Arg(0)
		value := p.Arg(1)
		if name.Text() == "private" && name.Kind() == sexpr.Word { // (property private "Name" "Value" ...)
			name, value = p.Arg(1), p.Arg(2)
		}
		list = append(list, Property{Name: name.Text(), Value: value.Text(), Node: p, Text: value})
	}
	return list
}

func (f *File) readSheet(item sexpr.Node) {
	s := &Sheet{File: f, Node: item, UUID: item.Get("uuid").Arg(0).Text(), Properties: readProperties(item)}
	s.DNP, s.InBOM, s.OnBoard = flags(item)
	for _, p := range s.Properties {
		switch strings.ReplaceAll(p.Name, " ", "") { // KiCad 6 wrote "Sheet name" and "Sheet file"
		case "Sheetname":
			s.Name = p.Value
		case "Sheetfile":
			s.Target, s.TargetText = p.Value, p.Text
		}
	}
	for pin := range item.Lists("pin") {
		f.addLabel(SheetPin, pin, pin.Arg(0)).Sheet = s
	}
	f.Sheets = append(f.Sheets, s)
}

func (f *File) readWire(item sexpr.Node) {
	var last *Point
	for p := range item.Get("pts").Lists("xy") {
		at := point(p)
		if last != nil {
			f.Wires = append(f.Wires, [2]Point{*last, at})
		}
		last = &at
	}
}

func point(n sexpr.Node) Point {
	x, _ := n.Number(0)
	y, _ := n.Number(1)
	return Point{round(x * 1e4), round(y * 1e4)}
}

func round(f float64) int {
	if f < 0 {
		return int(f - 0.5)
	}
	return int(f + 0.5)
}
