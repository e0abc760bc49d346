// SPDX-License-Identifier: Apache-2.0

package docs

import "slices"

// A Listing is what one row of a table of parts says of a part.
type Listing struct {
	Doc   string
	Line  int
	Wrong []Mismatch // what of it the design does not bear out
	cells []listed
}

type listed struct{ key, text string }

// Cell is the text of the first column that has one of these headers, without regard to capitals, blanks and marks; ""
// when there is none.
func (l Listing) Cell(names ...string) string {
	for _, name := range names {
		i := slices.IndexFunc(l.cells, func(c listed) bool { return c.key == key(name) && cleanValue(c.text) != "" })
		if i >= 0 {
			return cleanValue(l.cells[i].text)
		}
	}
	return ""
}

// MPN is the manufacturer's part number of the row.
func (l Listing) MPN() string { return l.Cell(titles[colMPN]...) }

// Maker is the manufacturer of the row.
func (l Listing) Maker() string { return l.Cell(titles[colMaker]...) }

// Listings gives the rows that list each part, by reference, in the order of the documents.
func Listings(d *Design, documents []*Document) map[string][]Listing {
	all := map[string][]Listing{}
	for _, doc := range documents {
		if History(doc.Name) {
			continue
		}
		c := &checker{d: d, doc: doc, report: &DriftReport{}}
		for _, t := range doc.Tables {
			if !t.parts() {
				continue
			}
			for i := range t.Rows {
				row := &t.Rows[i]
				refs, _ := ParseRefs(row.cell(t, colRef).Text, d.has)
				var cells []listed
				for j, cell := range row.Cells {
					if j < len(t.Header.Cells) {
						cells = append(cells, listed{key(t.Header.Cells[j].Text), cell.Text})
					}
				}
				for _, ref := range refs {
					all[ref] = append(all[ref], Listing{Doc: doc.Name, Line: row.Line, Wrong: c.part(t, row, ref), cells: cells})
				}
			}
		}
	}
	return all
}
