// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// Fix gives the edits that bring a document in line with the design: values, footprints, part numbers, marks, counts,
// nets and pin names are replaced; rows of parts that are gone go; rows that are missing come where they belong. All
// other bytes stay. A row whose parts are no longer the same is parted. Where value or footprint of a part with a part
// number changes and the design names no number itself, the number is marked UNVERIFIED, for it was that of another
// part.
//
// What was not understood is not repaired, and neither are rows for one of several assembly variants: compare again with the edits made to see what is left. A design without
// parts gives no edit, and neither does a document that tells what was.
func Fix(d *Design, doc *Document) []sexpr.Edit {
	if len(d.Parts) == 0 || History(doc.Name) {
		return nil
	}
	f := &fixer{checker: &checker{d: d, doc: doc, report: &DriftReport{}}}
	f.readVariants()
	listed := map[string]bool{}
	var bom *Table
	for _, t := range doc.Tables {
		switch {
		case t.parts():
			f.partTable(t, listed)
			if bom == nil || len(t.Rows) >= len(bom.Rows) {
				bom = t
			}
		case t.pins():
			f.pinTable(t)
		}
	}
	fresh := f.addPins()
	if doc.bom() {
		f.addParts(bom, listed)
	}
	f.addSections(fresh)
	return f.edits
}

// Apply returns the document with edits made. See [sexpr.Apply].
func Apply(doc *Document, edits []sexpr.Edit) (*Document, error) {
	src, err := sexpr.Apply(doc.Src, edits)
	if err != nil {
		return nil, err
	}
	return ReadDocument(doc.Name, src)
}

type fixer struct {
	*checker
	edits  []sexpr.Edit
	gone   map[*Table]int // rows that were taken out
	closed bool           // the block that the file leaves open was ended
}

func (f *fixer) edit(start, end int, text string) {
	if old := string(f.doc.Src[start:end]); old != text {
		f.edits = append(f.edits, sexpr.Edit{File: f.doc.Name, Start: start, End: end, Old: old, New: text})
	}
}

// A share is what becomes of some of the units of a row, which are parts or pins: the cells that change, as written.
type share struct {
	units []string
	cells map[int]string
}

func (s *share) key() string {
	var b strings.Builder
	for _, i := range slices.Sorted(maps.Keys(s.cells)) {
		fmt.Fprintf(&b, "%d=%s\x00", i, s.cells[i])
	}
	return b.String()
}

// shares groups units by what changes for them; the group that changes least stays first.
func shares(units []string, cells func(string) map[int]string) []*share {
	var list []*share
	for _, u := range units {
		s := &share{units: []string{u}, cells: cells(u)}
		i := slices.IndexFunc(list, func(x *share) bool { return x.key() == s.key() })
		if i >= 0 {
			list[i].units = append(list[i].units, u)
			continue
		}
		list = append(list, s)
	}
	slices.SortStableFunc(list, func(a, b *share) int { return min(len(a.cells), 1) - min(len(b.cells), 1) })
	return list
}

// partTable repairs a table of parts.
func (f *fixer) partTable(t *Table, listed map[string]bool) {
	seen := map[string]int{}
	many := f.boards(t)
	for i := range t.Rows {
		row := &t.Rows[i]
		refs, bad := ParseRefs(row.cell(t, colRef).Text, f.d.has)
		if len(refs) == 0 || len(bad) > 0 {
			for _, ref := range refs {
				listed[ref] = true
			}
			continue
		}
		all := t.variant(row) == "" // for all variants
		kept := slices.DeleteFunc(slices.Clone(refs), func(ref string) bool { return !f.d.has(ref) || all && seen[ref] >= len(f.d.byRef[ref]) })
		for _, ref := range kept {
			if listed[ref] = true; all {
				seen[ref]++
			}
		}
		if len(kept) == 0 {
			f.drop(t, row)
			continue
		}
		list := shares(kept, func(ref string) map[int]string { return f.partCells(t, row, ref) })
		for _, s := range list {
			cell := row.cell(t, colRef)
			_, mark := s.cells[t.cols[colRef]]
			marked := mark || saysNotFitted(cell.Text)
			p, _ := f.d.Part(s.units[0])
			if len(list) > 1 || len(kept) != len(refs) || mark || marked && !p.DNP {
				text := strings.Join(s.units, ", ")
				if marked && p.DNP {
					text += " DNP"
				}
				s.cells[t.cols[colRef]] = respell(cell, text)
			}
			f.recount(t, row, s, many)
		}
		f.replace(row, list)
	}
}

// recount sets the count of a share where it is a number and wrong.
func (f *fixer) recount(t *Table, row *Row, s *share, many int) {
	cell := row.cell(t, colQty)
	n, err := strconv.Atoi(cell.Text)
	if err != nil || f.shared(s.units) {
		return
	}
	if all, fitted := f.counts(s.units); n != all*many && n != fitted*many {
		s.cells[t.cols[colQty]] = respell(cell, strconv.Itoa(all*many))
	}
}

// partCells are the cells of a row that must change for one of its parts.
func (f *fixer) partCells(t *Table, row *Row, ref string) map[int]string {
	cells := map[int]string{}
	if _, several := f.several(t, row, ref); several {
		return cells // which of the variants is meant, people know
	}
	p, _ := f.d.Part(ref)
	other := false
	for _, m := range f.part(t, row, ref) {
		switch m.Kind {
		case Value:
			cells[t.cols[colValue]] = respell(row.cell(t, colValue), newValue(row.cell(t, colValue).Text, p.Value, p.DNP))
			other = true
		case Footprint:
			cells[t.cols[colFootprint]] = respell(row.cell(t, colFootprint), p.Footprint)
			other = true
		case MPN:
			cells[t.cols[colMPN]] = respell(row.cell(t, colMPN), p.MPN())
		case NotFitted:
			f.mark(t, row, p, cells)
		case Count, Gone, Missing, Twice, Net, PinName, Unreadable, Unnamed:
		}
	}
	for _, c := range numberColumns {
		number := row.cell(t, c)
		if !other || cleanValue(number.Text) == "" || Unverified(number.Text) || p.Field(titles[c]...) != "" {
			continue
		}
		raw, changed := cells[t.cols[c]]
		if !changed {
			raw = number.Raw
		}
		cells[t.cols[c]] = raw + " (UNVERIFIED)"
	}
	return cells
}

// mark writes or removes the mark that a part is not fitted.
func (f *fixer) mark(t *Table, row *Row, p Part, cells map[int]string) {
	if !p.DNP {
		for i, cell := range row.Cells {
			if _, changed := cells[i]; !changed && saysNotFitted(cell.Text) && i != t.cols[colRef] {
				cells[i] = respell(cell, strings.Trim(notFitted.ReplaceAllString(cell.Text, "$1$3"), " ,;()[]"))
			}
		}
		if cell := row.cell(t, colDNP); yes(cell.Text) {
			cells[t.cols[colDNP]] = ""
		}
		if cell := row.cell(t, colFitted); cell.Start > 0 && no(cell.Text) {
			cells[t.cols[colFitted]] = "yes"
		}
		return
	}
	for _, c := range []column{colDNP, colFitted, colNote, colDescription, colValue, colFootprint, colMPN} {
		cell := row.cell(t, c)
		if cell.Start == 0 {
			continue
		}
		i := t.cols[c]
		raw, changed := cells[i]
		if !changed {
			raw = cell.Raw
		}
		switch {
		case c == colFitted:
			cells[i] = "no"
		case raw == "" || c == colDNP:
			cells[i] = "DNP"
		case saysNotFitted(raw): // of other parts of the row
			cells[i] = raw + ", " + p.Ref + " DNP"
		case c == colValue:
			cells[i] = raw + " DNP"
		default:
			cells[i] = raw + ", DNP"
		}
		return
	}
	cells[t.cols[colRef]] = "DNP" // partTable writes it behind the references
}

// pinTable repairs a table of pins.
func (f *fixer) pinTable(t *Table) {
	named, full := f.symbolNames(t), f.fullNames(t)
	for i := range t.Rows {
		row := &t.Rows[i]
		refs := f.pinsOf(t, row)
		if len(refs) != 1 {
			continue
		}
		p, ok := f.d.Part(refs[0])
		if !ok {
			f.drop(t, row)
			continue
		}
		if !p.Listed {
			continue
		}
		words := pinWords(row.cell(t, colPin).Text, p)
		kept := slices.DeleteFunc(slices.Clone(words), func(w string) bool {
			_, ok := findPin(p, w)
			return !ok
		})
		if len(kept) == 0 {
			f.drop(t, row)
			continue
		}
		list := shares(kept, func(w string) map[int]string {
			cells := map[int]string{}
			for _, m := range f.pin(t, row, p, w, named) {
				pin, _ := findPin(p, w)
				switch m.Kind {
				case Net:
					cells[t.cols[colNet]] = respell(row.cell(t, colNet), f.d.spell(pin.Net, !full))
				case PinName:
					cells[t.cols[colName]] = respell(row.cell(t, colName), pin.Name)
				case Value, Footprint, MPN, NotFitted, Count, Gone, Missing, Twice, Unreadable, Unnamed:
				}
			}
			return cells
		})
		for _, s := range list {
			if len(list) > 1 || len(kept) != len(words) {
				s.cells[t.cols[colPin]] = respell(row.cell(t, colPin), strings.Join(s.units, ", "))
			}
		}
		f.replace(row, list)
	}
}

// fullNames reports whether a table writes the paths of nets: one begins with a slash, or none is without.
func (f *fixer) fullNames(t *Table) bool {
	short := false
	for i := range t.Rows {
		text := t.Rows[i].cell(t, colNet).Text
		if strings.HasPrefix(text, "/") {
			return true
		}
		for _, net := range f.d.names.find(text) {
			short = short || strings.HasPrefix(net, "/")
		}
	}
	return !short
}

// replace writes the shares of a row in its place: cell by cell when it stays one.
func (f *fixer) replace(row *Row, list []*share) {
	if len(list) == 1 {
		for _, i := range slices.Sorted(maps.Keys(list[0].cells)) {
			if c := row.Cells[i]; list[0].cells[i] != c.Raw {
				f.edit(c.Start, c.End, f.refill(c, list[0].cells[i]))
			}
		}
		return
	}
	lines := make([]string, 0, len(list))
	for _, s := range list {
		lines = append(lines, f.line(row, s.cells))
	}
	f.edit(row.Start, row.End, strings.Join(lines, f.doc.eol))
}

// line is a row with some of its cells replaced.
func (f *fixer) line(row *Row, cells map[int]string) string {
	var b strings.Builder
	at := row.Start
	for i, c := range row.Cells {
		if raw, ok := cells[i]; ok {
			b.Write(f.doc.Src[at:c.Start])
			b.WriteString(f.refill(c, raw))
			at = c.End
		}
	}
	b.Write(f.doc.Src[at:row.End])
	return b.String()
}

// refill is a cell with another content. An empty first cell of a row without outer bars needs one before it.
func (f *fixer) refill(c Cell, raw string) string {
	text := refill(string(f.doc.Src[c.Start:c.End]), raw)
	if strings.TrimSpace(raw) == "" && (c.Start == 0 || f.doc.Src[c.Start-1] != '|') {
		text = "|" + text
	}
	return text
}

// drop takes a row out; with the last one of a table under a heading of its own the heading goes as well.
func (f *fixer) drop(t *Table, row *Row) {
	if f.gone == nil {
		f.gone = map[*Table]int{}
	}
	if f.gone[t]++; f.gone[t] == len(t.Rows) && t.head >= 0 && t.pins() {
		if start, end, alone := f.section(t); alone {
			f.edits = slices.DeleteFunc(f.edits, func(e sexpr.Edit) bool { return e.Start >= start && e.End <= end })
			f.edit(start, end, "")
			return
		}
	}
	f.edit(row.Start, row.next, "")
}

// section is what lies from a table's heading to the next one, and whether it holds nothing but the table.
func (f *fixer) section(t *Table) (start, end int, alone bool) {
	h := f.doc.headings[t.head]
	start, end = h.start, len(f.doc.Src)
	if t.head+1 < len(f.doc.headings) {
		end = f.doc.headings[t.head+1].start
	}
	rest := string(f.doc.Src[h.end:t.Header.Start]) + string(f.doc.Src[t.end:end])
	return start, end, h.level > 1 && strings.TrimSpace(rest) == ""
}

// newLine is a line for a table, in the widths of its header.
func (f *fixer) newLine(t *Table, cells map[column]string) string {
	byIndex := map[int]string{}
	for i := range t.Header.Cells {
		byIndex[i] = ""
	}
	for c, raw := range cells {
		if i, ok := t.cols[c]; ok {
			byIndex[i] = raw
		}
	}
	return f.line(&t.Header, byIndex)
}

// insert puts lines behind a place where a line ends. The last line of a file may have no end; then what comes behind
// it gets none either.
func (f *fixer) insert(at int, lines ...string) {
	text := strings.Join(lines, f.doc.eol)
	if at == 0 || f.doc.Src[at-1] == '\n' {
		f.edit(at, at, text+f.doc.eol)
		return
	}
	i := slices.IndexFunc(f.edits, func(e sexpr.Edit) bool { return e.Start == at })
	if i >= 0 {
		f.edits[i].New += f.doc.eol + text
		return
	}
	if !slices.ContainsFunc(f.edits, func(e sexpr.Edit) bool { return e.End == at && e.New == "" }) {
		text = f.doc.eol + text // else the last line goes, and the end of the one before it stands
	}
	f.edit(at, at, text)
}

// group puts parts that are the same into one row.
func group(parts []Part) [][]Part {
	var groups [][]Part
	for _, p := range parts {
		i := slices.IndexFunc(groups, func(g []Part) bool {
			q := g[0]
			return q.Value == p.Value && q.Footprint == p.Footprint && q.DNP == p.DNP && q.MPN() == p.MPN() && letters(q.Ref) == letters(p.Ref)
		})
		if i < 0 {
			groups = append(groups, []Part{p})
			continue
		}
		groups[i] = append(groups[i], p)
	}
	return groups
}

// addParts adds the parts that a bill of materials lacks.
func (f *fixer) addParts(t *Table, listed map[string]bool) {
	missing := slices.DeleteFunc(f.missing(listed), func(p Part) bool { return p.DNP })
	if len(missing) == 0 {
		return
	}
	groups := group(missing)
	if t == nil {
		f.addSection(partLines(groups, "UNVERIFIED")...)
		return
	}
	for _, g := range groups {
		refs := make([]string, 0, len(g))
		for _, p := range g {
			refs = append(refs, p.Ref)
		}
		mpn := escape(g[0].MPN())
		if mpn == "" {
			mpn = "UNVERIFIED"
		}
		cells := map[column]string{
			colRef: strings.Join(refs, ", "), colQty: strconv.Itoa(len(g) * f.boards(t)), colValue: escape(g[0].Value),
			colFootprint: escape(g[0].Footprint), colMPN: mpn, colFitted: "yes",
		}
		f.insert(f.placeFor(t, g[0].Ref), f.newLine(t, cells))
	}
}

// placeFor finds where a part belongs among the rows of a table: behind the last one that is smaller, if the rows are
// in order, else at the end.
func (f *fixer) placeFor(t *Table, ref string) int {
	at, last := t.end, ""
	if len(t.Rows) > 0 {
		at = t.Rows[0].Start
	}
	for i := range t.Rows {
		refs, _ := ParseRefs(t.Rows[i].cell(t, colRef).Text, f.d.has)
		if len(refs) == 0 {
			continue
		}
		if last != "" && compareRefs(refs[0], last) < 0 {
			return t.end
		}
		if last = refs[0]; compareRefs(last, ref) < 0 {
			at = t.Rows[i].next
		}
	}
	return at
}

// addPins adds the pins that a document with a mark for them lacks to the tables of their parts. It returns the parts
// that have no table.
func (f *fixer) addPins() (fresh []Part) {
	for _, p := range f.unlisted() {
		t := f.tableOf(p.Ref)
		if t == nil {
			whole, _ := f.d.Part(p.Ref)
			fresh = append(fresh, whole)
			continue
		}
		full, named := f.fullNames(t), f.symbolNames(t)
		for _, pin := range p.Pins {
			if !named {
				pin.Name = "" // the names there are the author's own
			}
			f.insert(f.placeForPin(t, p.Ref, pin.Number), f.newLine(t, map[column]string{
				colRef: p.Ref, colPin: escape(pin.Number), colName: escape(pin.Name), colNet: escape(f.d.spell(pin.Net, !full)),
			}))
		}
	}
	return fresh
}

// addSections adds a section at the end for each part.
func (f *fixer) addSections(parts []Part) {
	for _, p := range parts {
		f.addSection(append([]string{"## " + title(p), ""}, f.d.pinLines(p)...)...)
	}
}

// addSection puts lines at the end, apart from what is there.
func (f *fixer) addSection(lines ...string) {
	if len(f.doc.Src) > 0 {
		lines = append([]string{""}, lines...)
	}
	if f.doc.close != "" && !f.closed {
		lines, f.closed = append([]string{f.doc.close}, lines...), true
	}
	f.insert(len(f.doc.Src), lines...)
}

// tableOf finds the table that lists pins of a part and will still be there.
func (f *fixer) tableOf(ref string) *Table {
	for _, t := range f.doc.Tables {
		if !t.pins() || f.gone[t] == len(t.Rows) {
			continue
		}
		for i := range t.Rows {
			if slices.Contains(f.pinsOf(t, &t.Rows[i]), ref) {
				return t
			}
		}
	}
	return nil
}

func (f *fixer) placeForPin(t *Table, ref, number string) int {
	at := -1
	for i := range t.Rows {
		row := &t.Rows[i]
		if !slices.Contains(f.pinsOf(t, row), ref) {
			continue
		}
		if at < 0 || compareRefs(row.cell(t, colPin).Text, number) < 0 {
			at = row.next
		}
	}
	return at
}

// table writes a table with its columns aligned.
func table(header []string, rows [][]string) []string {
	width := make([]int, len(header))
	for _, row := range append([][]string{header}, rows...) {
		for i, c := range row {
			width[i] = max(width[i], utf8.RuneCountInString(c), 3)
		}
	}
	write := func(row []string) string {
		var b strings.Builder
		for i, c := range row {
			b.WriteString("| " + c + strings.Repeat(" ", width[i]-utf8.RuneCountInString(c)+1))
		}
		return b.String() + "|"
	}
	var ruler strings.Builder
	for _, w := range width {
		ruler.WriteString("|" + strings.Repeat("-", w+2))
	}
	lines := []string{write(header), ruler.String() + "|"}
	for _, row := range rows {
		lines = append(lines, write(row))
	}
	return lines
}
