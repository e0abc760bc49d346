// SPDX-License-Identifier: Apache-2.0

// Package lint finds in the text of a KiCad file what kicad-cli passes over: it loads a file with a bracket too many and
// drops the rest of it in silence, a symbol that is not cached leaves the netlist, a net that is not declared falls
// apart. Both are needed: unknown words and wrong numbers are kicad-cli's to find.
//
// Real files carry such faults of their own, and KiCad 9 itself wrote one that is not balanced. So compare: act on the
// findings of [New] only.
package lint

import (
	"bytes"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/pcb"
	"github.com/fiducial-dev/fiducial/kicad/sch"
	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// A Rule is what a finding is about. Those about brackets and bytes are the names of [sexpr.ErrorKind], such as
// extra-bracket.
type Rule string

// The rules beyond the text's own.
const (
	WrongRoot       Rule = "wrong-root"        // the file holds another kind of file
	NewerFormat     Rule = "newer-format"      // its format stamp is beyond what kicad-cli 9 loads
	LongLine        Rule = "long-line"         // a line of over 900,000 bytes; kicad-cli refuses 1,000,000
	DuplicateUUID   Rule = "duplicate-uuid"    // KiCad replaces one of them quietly
	BadUUID         Rule = "bad-uuid"          // likewise
	UncachedSymbol  Rule = "symbol-not-cached" // kicad-cli drops the part, and crashes in ERC
	MissingSheet    Rule = "missing-sheet"     // kicad-cli skips the sheet
	PointWire       Rule = "zero-length-wire"
	UndeclaredNet   Rule = "undeclared-net"       // a number that the board's table lacks
	NetNameMismatch Rule = "net-name-mismatch"    // a name that differs from the table's for that number
	DuplicateNet    Rule = "duplicate-net-name"   // two numbers with one name
	DuplicateNumber Rule = "duplicate-net-number" // two names with one number
)

// maxLine is the length from which a line is in danger. kicad-cli 9.0.8 loads 999,600 bytes and refuses a million.
const maxLine = 900_000

// A Finding is one fault.
type Finding struct {
	Rule   Rule   `json:"rule"`
	File   string `json:"file"`
	Line   int    `json:"line"`   // from 1
	Column int    `json:"column"` // in bytes from 1
	Offset int    `json:"offset"` // in bytes from 0
	Text   string `json:"text"`
	Key    string `json:"key"` // what the finding is about, whatever its place; "" when only its number counts
}

// String is the finding with its place.
func (f Finding) String() string {
	return fmt.Sprintf("%s:%d:%d: %s (%s)", f.File, f.Line, f.Column, f.Text, f.Rule)
}

// Options tell what the text alone cannot.
type Options struct {
	// Exists reports whether a file is there, for the sheets that a schematic names. Names are slash-separated and
	// relative as the file's own name is. Nil means that this is not checked.
	Exists func(name string) bool
}

// Check looks at one file. Its name's extension tells what it is: .kicad_sch and .kicad_pcb are looked into, of
// .kicad_sym, .kicad_mod and .kicad_dru only brackets and bytes are checked, other files have no findings.
func Check(name string, src []byte, opts Options) []Finding {
	c := checker{name: name, opts: opts}
	switch path.Ext(name) {
	case ".kicad_sch":
		f := sch.Read(name, src)
		c.text(f.Doc, f.Errors)
		c.root("kicad_sch", f.Version, newestSchematic)
		c.schematic(f)
	case ".kicad_pcb":
		b := pcb.Read(name, src)
		c.text(b.Doc, b.Errors)
		c.root("kicad_pcb", b.Version, pcb.Newest)
		c.board(b)
	case ".kicad_sym", ".kicad_mod":
		doc, errs := sexpr.ParseTolerant(src)
		c.text(doc, errs)
	case ".kicad_dru": // has several lists at the top
		doc, errs := sexpr.ParseTolerant(src)
		for _, e := range errs {
			if e.Kind != sexpr.SecondRoot && e.Kind != sexpr.Empty {
				c.text(doc, []*sexpr.Error{e})
			}
		}
	}
	return c.list
}

// newestSchematic is the newest format stamp of a schematic that kicad-cli 9.0.8 loads.
const newestSchematic = 20250114

// New returns the findings of after that before does not have, in their order: as many of each rule and key as were
// added, wherever they stand.
func New(before, after []Finding) []Finding {
	type id struct {
		rule Rule
		key  string
	}
	had := map[id]int{}
	for _, f := range before {
		had[id{f.Rule, f.Key}]++
	}
	var fresh []Finding
	for _, f := range after {
		if k := (id{f.Rule, f.Key}); had[k] > 0 {
			had[k]--
			continue
		}
		fresh = append(fresh, f)
	}
	return fresh
}

type checker struct {
	name string
	opts Options
	doc  *sexpr.Doc
	list []Finding
}

func (c *checker) add(rule Rule, key string, offset int, format string, args ...any) {
	line, column := c.doc.Position(offset)
	c.list = append(c.list, Finding{
		Rule: rule, File: c.name, Line: line, Column: column, Offset: offset, Text: fmt.Sprintf(format, args...), Key: key,
	})
}

func (c *checker) text(doc *sexpr.Doc, errs []*sexpr.Error) {
	c.doc = doc
	for _, e := range errs {
		for range e.Count { // so that one missing bracket more is a new finding
			c.add(Rule(e.Kind.String()), "", e.Offset, "%s", e.Detail)
		}
	}
	src := doc.Source()
	for start := 0; start < len(src); {
		end := bytes.IndexByte(src[start:], '\n')
		if end < 0 {
			end = len(src) - start
		}
		if end > maxLine {
			c.add(LongLine, "", start, "the line has %d bytes; kicad-cli refuses lines of 1,000,000", end)
		}
		start += end + 1
	}
}

func (c *checker) root(tag string, version, newest int) {
	root := c.doc.Root()
	if root.OK() && !root.Is(tag) {
		c.add(WrongRoot, root.Tag(), root.Start(), "the file holds a (%s ...), want (%s ...)", root.Tag(), tag)
	}
	if version > newest {
		c.add(NewerFormat, strconv.Itoa(version), root.Start(), "the format %d is newer than %d, the newest that kicad-cli 9 loads", version, newest)
	}
}

var uuidForm = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// uuids checks every (uuid ...) of the file. KiCad 5's tstamp is not one.
func (c *checker) uuids() {
	first := map[string]int{}
	for n := range c.doc.Root().Walk() {
		if n.Kind() != sexpr.Word || string(n.Raw()) != "uuid" || n.Parent().Arg(-1) != n {
			continue
		}
		id := strings.ToLower(n.Parent().Arg(0).Text())
		if !uuidForm.MatchString(id) {
			c.add(BadUUID, id, n.Start(), "%q is no UUID", id)
			continue
		}
		if line, twice := first[id]; twice {
			c.add(DuplicateUUID, id, n.Start(), "the UUID %s is used on line %d already", id, line)
			continue
		}
		first[id] = n.Line()
	}
}

func (c *checker) schematic(f *sch.File) {
	c.uuids()
	for _, s := range f.Symbols {
		if _, ok := s.Lib(); !ok {
			lib := s.LibID
			if s.LibName != "" {
				lib = s.LibName
			}
			c.add(UncachedSymbol, lib+" "+s.UUID, s.Node.Start(), "%s is a %s, which lib_symbols does not carry", s.Value("Reference"), lib)
		}
	}
	for _, s := range f.Sheets {
		if file := path.Join(path.Dir(c.name), s.Target); c.opts.Exists != nil && !c.opts.Exists(file) {
			c.add(MissingSheet, s.Target, s.Node.Start(), "the file %q of sheet %q is not there", s.Target, s.Name)
		}
	}
	for item := range f.Doc.Root().Lists("wire") {
		pts := item.Get("pts")
		if a, b := pts.Arg(0), pts.Arg(1); a.OK() && b.OK() && bytes.Equal(a.Raw(), b.Raw()) {
			c.add(PointWire, item.Get("uuid").Arg(0).Text(), item.Start(), "the wire begins and ends in one point")
		}
	}
}

func (c *checker) board(b *pcb.Board) {
	c.uuids()
	byNumber, byName := map[int]pcb.Net{}, map[string]pcb.Net{}
	for _, n := range b.Nets {
		if other, twice := byNumber[n.Number]; twice {
			c.add(DuplicateNumber, fmt.Sprintf("%d %s", n.Number, n.Name), n.Node.Start(), "net %d is %q on line %d and %q here", n.Number, other.Name, other.Node.Line(), n.Name)
		}
		byNumber[n.Number] = n // KiCad takes the last
		if other, twice := byName[n.Name]; twice && other.Number != n.Number {
			c.add(DuplicateNet, n.Name, n.Node.Start(), "the name %q is that of net %d already", n.Name, other.Number)
		}
		byName[n.Name] = n
	}
	if b.Style == pcb.Inline { // there is nothing to disagree with
		if b.Version <= pcb.Newest {
			c.add(NewerFormat, "nets", b.Doc.Root().Start(), "the board names its nets without a table of numbers, as KiCad 10 does; kicad-cli 9 does not load that")
		}
		return
	}
	zone := -1 // a zone's number stands right in front of its name
	for _, u := range b.Uses {
		number := u.Number
		switch {
		case number >= 0:
			zone = number
		case u.Node.Is("net_name"):
			number = zone
		default:
			continue
		}
		n, declared := byNumber[number]
		switch {
		case !declared && u.Number >= 0:
			c.add(UndeclaredNet, strconv.Itoa(number), u.Node.Start(), "a %s is on net %d, which the board does not declare", u.In, number)
		case declared && u.Named && u.Name != n.Name:
			c.add(NetNameMismatch, fmt.Sprintf("%d %s", number, u.Name), u.Node.Start(), "a %s is on net %d %q, which the board declares as %q", u.In, number, u.Name, n.Name)
		}
	}
}
