// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"slices"
	"strings"
)

// pinsOf tells the parts that a row of pins is about: by its column of references, else by the heading.
func (c *checker) pinsOf(t *Table, row *Row) []string {
	if t.has(colRef) {
		refs, _ := ParseRefs(row.cell(t, colRef).Text, c.d.has)
		return refs
	}
	var found []string
	for word := range strings.FieldsFuncSeq(t.Heading, func(r rune) bool { return strings.ContainsRune(" ,:;()[]-–—/`", r) }) {
		if c.d.has(word) && !slices.Contains(found, word) {
			found = append(found, word)
		}
	}
	if len(found) != 1 {
		return nil // about no part, or about several
	}
	return found
}

// pins compares a table of pins.
func (c *checker) pins(t *Table) {
	named := c.symbolNames(t)
	for i := range t.Rows {
		row := &t.Rows[i]
		refs := c.pinsOf(t, row)
		if t.has(colRef) && len(refs) == 0 {
			c.refs(t, row)
		}
		for _, ref := range refs {
			for _, m := range c.pinRow(t, row, ref, named) {
				c.add(m)
			}
		}
	}
}

// pinRow compares what a row says of the pins of one part.
func (c *checker) pinRow(t *Table, row *Row, ref string, named bool) []Mismatch {
	p, ok := c.d.Part(ref)
	if !ok {
		c.report.Claims++
		return []Mismatch{{Kind: Gone, Line: row.Line, Ref: ref, Claim: ref, Actual: "no such part"}}
	}
	if !p.Listed {
		c.note(Mismatch{Kind: Net, Line: row.Line, Ref: ref, Claim: row.cell(t, colNet).Text, Actual: "not in the netlist, since the part is excluded from the board"})
		return nil
	}
	var list []Mismatch
	for _, number := range pinWords(row.cell(t, colPin).Text, p) {
		list = append(list, c.pin(t, row, p, number, named)...)
	}
	return list
}

func (c *checker) pin(t *Table, row *Row, p Part, number string, named bool) []Mismatch {
	c.report.Claims++
	pin, ok := findPin(p, number)
	if !ok {
		return []Mismatch{{Kind: Gone, Line: row.Line, Ref: p.Ref, Pin: number, Claim: row.cell(t, colNet).Text, Actual: "no such pin"}}
	}
	var list []Mismatch
	if net := row.cell(t, colNet); net.Start > 0 {
		c.report.Claims++
		if res := c.d.checkNet(pin, net.Text, unbar(net.Raw)); !res.ok {
			actual := c.d.spell(pin.Net, false)
			if len(res.other) > 0 {
				actual += "; the name is ambiguous, there is also " + strings.Join(res.other, ", ")
			}
			list = append(list, Mismatch{Kind: Net, Line: row.Line, Ref: p.Ref, Pin: pin.Number, Claim: net.Text, Actual: actual})
		}
	}
	if name := row.cell(t, colName); named && name.Start > 0 && pin.Name != "" {
		c.report.Claims++
		if !sameName(name.Text, pin.Name) {
			list = append(list, Mismatch{Kind: PinName, Line: row.Line, Ref: p.Ref, Pin: pin.Number, Claim: name.Text, Actual: pin.Name})
		}
	}
	return list
}

// unbar is a cell as written, but for bars and marks of code: in *ALL* the stars may belong to the name.
func unbar(raw string) string { return strings.Trim(strings.ReplaceAll(raw, `\|`, "|"), "` ") }

// symbolNames reports whether the names of a table are those of the symbols' pins: at least half of them are. Else they
// are the author's own.
func (c *checker) symbolNames(t *Table) bool {
	if !t.has(colName) {
		return false
	}
	same, all := 0, 0
	for i := range t.Rows {
		row := &t.Rows[i]
		for _, ref := range c.pinsOf(t, row) {
			p, _ := c.d.Part(ref)
			for _, number := range pinWords(row.cell(t, colPin).Text, p) {
				if pin, ok := findPin(p, number); ok && pin.Name != "" {
					if all++; sameName(row.cell(t, colName).Text, pin.Name) {
						same++
					}
				}
			}
		}
	}
	return all > 0 && 2*same >= all
}

func sameName(doc, symbol string) bool {
	flat := strings.NewReplacer("~", "", "{", "", "}", "", " ", "")
	return strings.EqualFold(flat.Replace(doc), flat.Replace(symbol))
}

// pinWords parts a cell of pins: "1", "1, 2", "3 (PA3)".
func pinWords(cell string, p Part) []string {
	if _, ok := findPin(p, cell); ok || cell == "" {
		return []string{cell}
	}
	cell = strings.TrimSpace(aside.ReplaceAllString(cell, " "))
	if _, ok := findPin(p, cell); ok {
		return []string{cell}
	}
	words := strings.FieldsFunc(cell, func(r rune) bool { return strings.ContainsRune(",;+& ", r) })
	if len(words) == 0 {
		return []string{cell}
	}
	return words
}

// findPin finds a pin by its number, else by its name when no other has it.
func findPin(p Part, text string) (Pin, bool) {
	var byName []Pin
	for _, pin := range p.Pins {
		if strings.EqualFold(pin.Number, text) {
			return pin, true
		}
		if pin.Name != "" && pin.Name == text {
			byName = append(byName, pin)
		}
	}
	if len(byName) == 1 {
		return byName[0], true
	}
	return Pin{}, false
}

// completePins looks for the pins that a document with a mark for them lacks.
func (c *checker) completePins() {
	for _, p := range c.unlisted() {
		for _, pin := range p.Pins {
			c.add(Mismatch{Kind: Missing, Ref: p.Ref, Pin: pin.Number, Claim: "nothing of it", Actual: c.d.spell(pin.Net, false)})
		}
	}
}

// unlisted are the parts of which the document should list every pin, with those that it lacks.
func (c *checker) unlisted() []Part {
	if len(c.doc.pinout) == 0 {
		return nil
	}
	listed := map[string]map[string]bool{}
	for _, t := range c.doc.Tables {
		if !t.pins() {
			continue
		}
		for i := range t.Rows {
			row := &t.Rows[i]
			for _, ref := range c.pinsOf(t, row) {
				p, _ := c.d.Part(ref)
				for _, word := range pinWords(row.cell(t, colPin).Text, p) {
					if pin, ok := findPin(p, word); ok {
						if listed[ref] == nil {
							listed[ref] = map[string]bool{}
						}
						listed[ref][pin.Number] = true
					}
				}
			}
		}
	}
	var list []Part
	done := map[string]bool{}
	for _, p := range c.d.Parts {
		if !slices.Contains(c.doc.pinout, letters(p.Ref)) || done[p.Ref] {
			continue
		}
		done[p.Ref] = true
		var lack []Pin
		for _, pin := range p.Pins {
			if !listed[p.Ref][pin.Number] && !slices.ContainsFunc(lack, func(x Pin) bool { return x.Number == pin.Number }) {
				lack = append(lack, pin)
			}
		}
		if p.Pins = lack; len(lack) > 0 {
			list = append(list, p)
		}
	}
	return list
}
