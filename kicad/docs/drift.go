// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A Kind tells mismatches apart.
type Kind string

// The kinds of mismatches.
const (
	Value      Kind = "value"      // a part's value
	Footprint  Kind = "footprint"  // a part's footprint
	MPN        Kind = "mpn"        // the part number differs from the field of the symbol
	NotFitted  Kind = "not-fitted" // a mark such as DNP that is missing or too much
	Count      Kind = "quantity"   // the count of a row differs from its references
	Gone       Kind = "gone"       // a part or pin that the design does not have
	Missing    Kind = "missing"    // a part or pin that a document should have and has not
	Twice      Kind = "twice"      // a part that one table lists twice
	Net        Kind = "net"        // the net of a pin
	PinName    Kind = "pin-name"   // the name of a pin
	Unreadable Kind = "unreadable" // a row, or a document, that was not understood, and so not compared
	Unnamed    Kind = "constraint" // a constraint that the document does not name
)

// A Mismatch is one claim of a document that the design does not bear out.
type Mismatch struct {
	Kind   Kind   `json:"kind"`
	Doc    string `json:"doc"`
	Line   int    `json:"line"` // from 1; 0 for the document as a whole
	Ref    string `json:"ref,omitempty"`
	Pin    string `json:"pin,omitempty"`
	Claim  string `json:"claim"`  // what the document says
	Actual string `json:"actual"` // what the design says
}

// String is one line that names the document, the claim and what is so (B-110).
func (m Mismatch) String() string {
	place := m.Doc
	if m.Line > 0 {
		place += ":" + strconv.Itoa(m.Line)
	}
	what := m.Ref
	if m.Pin != "" {
		what += " pin " + m.Pin
	}
	if what != "" {
		what += " "
	}
	return fmt.Sprintf("%s: %s%s: the document says %s, the design says %s", place, what, m.Kind, m.Claim, m.Actual)
}

// A DriftReport is the outcome of a comparison.
type DriftReport struct {
	Mismatches []Mismatch
	// Notes are worth a look and no mismatch: rows that name no part, parts that are not fitted and not listed.
	Notes []Mismatch
	// Claims is how many claims were compared.
	Claims int
}

// Drift compares documents with the design. A design without parts bears out nothing and contradicts nothing
// (AC-15.25, AC-15.26): then there is a note for each document that lists parts, and no mismatch.
func Drift(d *Design, documents []*Document) DriftReport {
	var r DriftReport
	var shares *checker // of a bill of materials in several documents
	whole, listed := false, map[string]bool{}
	for _, doc := range documents {
		if History(doc.Name) {
			continue
		}
		c := &checker{d: d, doc: doc, report: &r}
		if len(d.Parts) == 0 {
			c.empty()
			continue
		}
		if IsHeader(doc.Name) {
			c.header()
			continue
		}
		seen := c.document()
		whole = whole || doc.bom()
		if doc.share() {
			maps.Copy(listed, seen)
			if shares == nil {
				shares = c
			}
		}
	}
	if shares != nil && !whole {
		shares.complete(listed, 1)
	}
	return r
}

// checker compares one document.
type checker struct {
	d        *Design
	doc      *Document
	report   *DriftReport
	variants map[string]*variant // by reference
}

// variant is what the rows of a document say of a part that has one for each of several assembly variants. The design
// is one of the variants, so one of the rows must be so.
type variant struct {
	rows int
	fits bool // one of them is in line
	told bool
}

// readVariants looks for parts that have a row for each of several variants.
func (c *checker) readVariants() {
	c.variants = map[string]*variant{}
	quiet := &checker{d: c.d, doc: c.doc, report: &DriftReport{}}
	for _, t := range c.doc.Tables {
		if !t.parts() {
			continue
		}
		for i := range t.Rows {
			row := &t.Rows[i]
			if t.variant(row) == "" {
				continue
			}
			refs, _ := ParseRefs(row.cell(t, colRef).Text, c.d.has)
			for _, ref := range refs {
				if c.variants[ref] == nil {
					c.variants[ref] = &variant{}
				}
				v := c.variants[ref]
				v.rows++
				v.fits = v.fits || len(quiet.part(t, row, ref)) == 0
			}
		}
	}
}

// several reports whether a row is about one of several variants of a part.
func (c *checker) several(t *Table, row *Row, ref string) (*variant, bool) {
	v := c.variants[ref]
	return v, v != nil && v.rows > 1 && t.variant(row) != ""
}

func (c *checker) add(m Mismatch) {
	m.Doc = c.doc.Name
	m.Claim, m.Actual = quoteEmpty(m.Claim), quoteEmpty(m.Actual)
	c.report.Mismatches = append(c.report.Mismatches, m)
}

func (c *checker) note(m Mismatch) {
	m.Doc = c.doc.Name
	c.report.Notes = append(c.report.Notes, m)
}

func quoteEmpty(s string) string {
	if s == "" {
		return "nothing"
	}
	return s
}

// empty looks at a document of a design that has no part.
func (c *checker) empty() {
	rows := 0
	for _, t := range c.doc.Tables {
		if t.parts() || t.pins() {
			rows += len(t.Rows)
		}
	}
	if rows > 0 {
		c.note(Mismatch{Kind: Gone, Claim: fmt.Sprintf("%s of parts or pins", rowsOf(rows)), Actual: "the schematic has no symbol yet"})
	}
}

// document compares all tables, and returns the references that are listed.
func (c *checker) document() map[string]bool {
	c.readVariants()
	listed, tables := map[string]bool{}, 0
	for _, t := range c.doc.Tables {
		switch {
		case t.parts():
			tables++
			c.parts(t, listed)
		case t.pins():
			c.pins(t)
		}
	}
	if c.doc.bom() {
		c.complete(maps.Clone(listed), tables)
	}
	c.completePins()
	return listed
}

// complete looks for the parts that a bill of materials lacks.
func (c *checker) complete(listed map[string]bool, tables int) {
	for _, p := range c.missing(listed) {
		m := Mismatch{Kind: Missing, Ref: p.Ref, Claim: "nothing of it", Actual: describe(p)}
		switch {
		case p.DNP:
			c.note(m)
		case tables == 0:
			m.Claim = "nothing of it (there is no table with a column Refdes)"
			fallthrough
		default:
			c.add(m)
		}
	}
}

// missing are the parts that belong into a bill of materials and are not listed.
func (c *checker) missing(listed map[string]bool) []Part {
	var list []Part
	for _, p := range c.d.Parts {
		if p.inBOM() && !listed[p.Ref] {
			listed[p.Ref] = true
			list = append(list, p)
		}
	}
	return list
}

func describe(p Part) string {
	s := p.Value
	if s == "" {
		s = "a part without a value"
	}
	if p.Footprint != "" {
		s += " in " + p.Footprint
	}
	if p.DNP {
		s += ", not fitted"
	}
	return s
}

// parts compares a table of parts.
func (c *checker) parts(t *Table, listed map[string]bool) {
	seen := map[string][]int{} // the lines
	many := c.boards(t)
	for i := range t.Rows {
		row := &t.Rows[i]
		refs, ok := c.refs(t, row)
		if !ok {
			continue
		}
		for _, ref := range refs {
			listed[ref] = true
			if v, several := c.several(t, row, ref); several {
				if !v.fits && !v.told {
					v.told = true
					for _, m := range c.part(t, row, ref) {
						m.Actual += ", and no other variant fits"
						c.add(m)
					}
				}
				continue
			}
			// Several parts share a reference only by mistake; as long as they do, each may be listed.
			lines, there := seen[ref], len(c.d.byRef[ref])
			if t.variant(row) == "" && len(lines) > 0 && len(lines) >= there {
				actual := "there is one"
				if there > 1 {
					actual = fmt.Sprintf("there are %d", there)
				}
				c.add(Mismatch{Kind: Twice, Line: row.Line, Ref: ref, Claim: fmt.Sprintf("it again, after line %d", lines[len(lines)-1]), Actual: actual})
				continue
			}
			if t.variant(row) == "" {
				seen[ref] = append(lines, row.Line)
			}
			for _, m := range c.part(t, row, ref) {
				c.add(m)
			}
		}
		c.quantity(t, row, refs, many)
	}
}

// refs reads the references of a row. It reports false when the row names no part.
func (c *checker) refs(t *Table, row *Row) ([]string, bool) {
	text := row.cell(t, colRef).Text
	refs, bad := ParseRefs(text, c.d.has)
	for _, b := range bad {
		c.add(Mismatch{Kind: Unreadable, Line: row.Line, Claim: text, Actual: "no reference " + b + " that can be understood; the row is not compared in whole"})
	}
	if len(refs) == 0 && len(bad) == 0 && text != "" {
		c.note(Mismatch{Kind: Unreadable, Line: row.Line, Claim: text, Actual: "names no part"})
	}
	return refs, len(refs) > 0
}

// part compares what a row says of one of its parts.
func (c *checker) part(t *Table, row *Row, ref string) []Mismatch {
	c.report.Claims++
	p, ok := c.d.Part(ref)
	if !ok {
		return []Mismatch{{Kind: Gone, Line: row.Line, Ref: ref, Claim: strings.TrimSpace(ref + " " + row.cell(t, colValue).Text), Actual: "no such part"}}
	}
	var list []Mismatch
	is := func(kind Kind, col column, actual string, same func(Part) bool) {
		cell := row.cell(t, col)
		if cell.Start == 0 {
			return
		}
		c.report.Claims++
		if !c.d.any(ref, same) {
			list = append(list, Mismatch{Kind: kind, Line: row.Line, Ref: ref, Claim: cell.Text, Actual: actual})
		}
	}
	is(Value, colValue, p.Value, func(p Part) bool { return SameValue(row.cell(t, colValue).Text, p.Value) })
	is(Footprint, colFootprint, p.Footprint, func(p Part) bool {
		text := row.cell(t, colFootprint).Text
		return cleanValue(text) == "" || SameFootprint(text, p.Footprint)
	})
	is(MPN, colMPN, p.MPN(), func(p Part) bool {
		text := cleanValue(row.cell(t, colMPN).Text)
		return text == "" || p.MPN() == "" || Unverified(text) || strings.EqualFold(text, p.MPN())
	})
	if says := c.fitted(t, row, ref); !says != p.DNP {
		claim, actual := "fitted", "not fitted (DNP)"
		if !says {
			claim, actual = actual, claim
		}
		// A table that is no bill of materials says nothing of that by saying nothing.
		if !says || c.doc.bom() || c.doc.share() || t.has(colDNP, colFitted) {
			list = append(list, Mismatch{Kind: NotFitted, Line: row.Line, Ref: ref, Claim: claim, Actual: actual})
		}
	}
	return list
}

// Unverified reports whether a cell says that nobody has confirmed it yet.
func Unverified(text string) bool {
	k := key(text)
	return strings.Contains(k, "unverified") || k == "tbd" || k == "todo" || k == "tbc"
}

// says reports whether a text is that of one of the part's own fields: whatever it means, the document agrees.
func (p Part) says(text string) bool {
	text = cleanValue(text)
	if text == "" {
		return false
	}
	if text == cleanValue(p.Value) {
		return true
	}
	for _, v := range p.Fields {
		if text == cleanValue(v) {
			return true
		}
	}
	return false
}

// fitted reports whether a row says that a part of it is fitted. A mark that names parts of the row is about those.
func (c *checker) fitted(t *Table, row *Row, ref string) bool {
	if saysNotFitted(t.about()) || yes(row.cell(t, colDNP).Text) {
		return false
	}
	if cell := row.cell(t, colFitted); cell.Start > 0 && no(cell.Text) {
		return false
	}
	for i, cell := range row.Cells {
		if !saysNotFitted(cell.Text) || i == t.cols[colDNP] && t.has(colDNP) || c.d.any(ref, func(p Part) bool { return !p.DNP && p.says(cell.Text) }) {
			continue
		}
		if i != t.cols[colRef] {
			named, _ := ParseRefs(notFitted.ReplaceAllString(cell.Text, " "), c.d.has)
			named = slices.DeleteFunc(named, func(r string) bool { return !c.d.has(r) })
			if len(named) > 0 && !slices.Contains(named, ref) {
				continue
			}
		}
		return false
	}
	return true
}

// boards is for how many boards a table counts: a whole number by which every row is multiplied, else 1.
func (c *checker) boards(t *Table) int {
	many, rows := 0, 0
	seen := map[string]bool{}
	for i := range t.Rows {
		refs, _ := ParseRefs(t.Rows[i].cell(t, colRef).Text, c.d.has)
		all := t.variant(&t.Rows[i]) == ""
		refs = slices.DeleteFunc(refs, func(ref string) bool { return all && seen[ref] || !c.d.has(ref) })
		for _, ref := range refs {
			seen[ref] = seen[ref] || all
		}
		n, err := strconv.Atoi(t.Rows[i].cell(t, colQty).Text)
		if err != nil || len(refs) == 0 {
			continue
		}
		if rows++; n%len(refs) != 0 || n == 0 || many > 0 && n/len(refs) != many {
			return 1
		}
		many = n / len(refs)
	}
	if rows < 3 {
		return 1
	}
	return many
}

func (c *checker) quantity(t *Table, row *Row, refs []string, many int) {
	cell := row.cell(t, colQty)
	n, err := strconv.Atoi(cell.Text)
	if err != nil || c.shared(refs) {
		return
	}
	c.report.Claims++
	if all, fitted := c.counts(refs); n != all*many && n != fitted*many {
		c.add(Mismatch{Kind: Count, Line: row.Line, Ref: strings.Join(refs, ", "), Claim: cell.Text, Actual: strconv.Itoa(all * many)})
	}
}

// shared reports whether one of the references is that of several parts, by mistake: which of them a row counts, nobody
// can tell.
func (c *checker) shared(refs []string) bool {
	return slices.ContainsFunc(refs, func(ref string) bool { return len(c.d.byRef[ref]) > 1 })
}

// counts counts references, and those of them that are fitted.
func (c *checker) counts(refs []string) (all, fitted int) {
	for _, ref := range refs {
		all++
		if p, ok := c.d.Part(ref); !ok || !p.DNP {
			fitted++
		}
	}
	return all, fitted
}

func rowsOf(n int) string {
	if n == 1 {
		return "1 row"
	}
	return fmt.Sprintf("%d rows", n)
}
