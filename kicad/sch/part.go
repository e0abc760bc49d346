// SPDX-License-Identifier: Apache-2.0

package sch

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Placed is a symbol in one instance of its sheet.
type Placed struct {
	Symbol *Symbol
	Sheet  *Instance
	Ref    string // the effective reference: that of the instances, not of the property
	Unit   int
	Use    Use // where Ref stands; its Text is the zero Node when only the property names it
}

// A Part is a physical part: all units that share a reference.
type Part struct {
	Ref       string
	Value     string // as written, text variables not resolved
	Footprint string
	LibID     string
	DNP       bool // by itself or its sheet
	NoBOM     bool // excluded from the bill of materials, likewise
	NoBoard   bool // excluded from the board, likewise
	Units     []Placed
}

// Placed lists the symbols of all sheets, power symbols and other # parts included.
func (d *Design) Placed() []Placed {
	var list []Placed
	for _, in := range d.Sheets {
		for _, s := range in.File.Symbols {
			list = append(list, d.place(s, in))
		}
	}
	return list
}

// place finds a symbol's reference as KiCad does: the entry of this path, else the first entry, else the root's table
// of KiCad 6, else the property.
func (d *Design) place(s *Symbol, in *Instance) Placed {
	p := Placed{Symbol: s, Sheet: in, Ref: s.Value("Reference"), Unit: s.Unit}
	i := slices.IndexFunc(s.Uses, func(u Use) bool { return u.Path == in.Path })
	switch {
	case i >= 0:
		p.Use = s.Uses[i]
	case len(s.Uses) > 0:
		p.Use = s.Uses[0]
	default:
		_, below, _ := strings.Cut(strings.TrimPrefix(in.Path, "/"), "/")
		key := strings.TrimSuffix("/"+below, "/") + "/" + s.UUID
		u, ok := d.uses[key]
		if !ok {
			return p
		}
		p.Use = u
	}
	p.Ref, p.Unit = p.Use.Ref, p.Use.Unit
	return p
}

// virtual reports whether a reference is that of a power symbol, flag or drawing, which is no part.
func virtual(ref string) bool { return strings.HasPrefix(ref, "#") }

// annotated reports whether a reference is a name and a number.
func annotated(ref string) bool {
	return ref != "" && !virtual(ref) && ref[len(ref)-1] >= '0' && ref[len(ref)-1] <= '9' && !strings.Contains(ref, "?")
}

// Parts lists the parts by reference, in natural order (R2 before R10), without # parts. Symbols that share a
// reference by mistake (the same unit twice, or another library symbol) are parts of their own, as in kicad-cli's bill
// of materials.
func (d *Design) Parts() []Part {
	var parts []Part
	byRef := map[string][]int{}
	for _, p := range d.Placed() {
		if virtual(p.Ref) {
			continue
		}
		i := slices.IndexFunc(byRef[p.Ref], func(i int) bool { return parts[i].takes(p) })
		if i < 0 {
			byRef[p.Ref] = append(byRef[p.Ref], len(parts))
			parts = append(parts, Part{Ref: p.Ref, LibID: p.Symbol.LibID})
			i = len(byRef[p.Ref]) - 1
		}
		part := &parts[byRef[p.Ref][i]]
		part.Units = append(part.Units, p)
	}
	for i := range parts {
		parts[i].settle()
	}
	slices.SortStableFunc(parts, func(a, b Part) int { return CompareRefs(a.Ref, b.Ref) })
	return parts
}

// takes reports whether p is another unit of the part.
func (p *Part) takes(other Placed) bool {
	return annotated(p.Ref) && p.LibID == other.Symbol.LibID &&
		!slices.ContainsFunc(p.Units, func(u Placed) bool { return u.Unit == other.Unit })
}

// settle takes the fields from the lowest unit.
func (p *Part) settle() {
	slices.SortStableFunc(p.Units, func(a, b Placed) int { return cmp.Compare(a.Unit, b.Unit) })
	first := p.Units[0]
	s, in := first.Symbol, first.Sheet
	p.Value, p.Footprint = s.Value("Value"), s.Value("Footprint")
	p.DNP, p.NoBOM, p.NoBoard = s.DNP || in.DNP, !s.InBOM || in.NoBOM, !s.OnBoard || in.NoBoard
}

// CompareRefs orders references by their letters, then their number.
func CompareRefs(a, b string) int {
	split := func(s string) (string, int, string) {
		i := strings.IndexAny(s, "0123456789")
		if i < 0 {
			return s, -1, ""
		}
		n, j := 0, i
		for ; j < len(s) && s[j] >= '0' && s[j] <= '9' && j < i+12; j++ {
			n = n*10 + int(s[j]-'0')
		}
		return s[:i], n, s[j:]
	}
	as, an, ar := split(a)
	bs, bn, br := split(b)
	return cmp.Or(cmp.Compare(as, bs), cmp.Compare(an, bn), cmp.Compare(ar, br))
}

// checkReferences looks for what only a stdout line of kicad-cli hints at (cases 09 and 10).
func (d *Design) checkReferences() {
	seen := map[string]Part{}
	for _, p := range d.Parts() {
		u := p.Units[0]
		name, line := u.Symbol.File.Name, u.Symbol.Node.Line()
		if !annotated(p.Ref) {
			d.problem(NotAnnotated, name, line, "the part %q (%s, uuid %s) is not annotated", p.Ref, p.Value, u.Symbol.UUID)
			continue
		}
		if other, twice := seen[p.Ref]; twice {
			d.problem(DuplicateRef, name, line, "%s is used twice: %s (uuid %s) and %s (uuid %s)", p.Ref,
				other.Value, other.Units[0].Symbol.UUID, p.Value, u.Symbol.UUID)
			continue
		}
		seen[p.Ref] = p
	}
	used := map[*File]int{}
	for _, in := range d.Sheets {
		used[in.File]++
	}
	for _, p := range d.Placed() {
		if prop := p.Symbol.Value("Reference"); used[p.Symbol.File] == 1 && prop != p.Ref {
			d.problem(ReferenceMismatch, p.Symbol.File.Name, p.Symbol.Node.Line(),
				"the property says %s, the instances say %s; KiCad goes by the instances", prop, p.Ref)
		}
	}
}

// Find returns the part with exactly that reference. The error is [NoSuchPart], or [Ambiguous] when several symbols
// share the reference by mistake.
func (d *Design) Find(ref string) (Part, error) {
	var found []Part
	for _, p := range d.Parts() {
		if p.Ref == ref {
			found = append(found, p)
		}
	}
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		detail := fmt.Sprintf("there is no part %q", ref)
		if virtual(ref) {
			detail = fmt.Sprintf("%q is no part but a power symbol or a drawing; the value of a power symbol is the name of its net, which a rename of the net changes", ref)
		}
		return Part{}, &EditError{Kind: NoSuchPart, Detail: detail, Candidates: d.similar(ref)}
	}
	e := &EditError{Kind: Ambiguous, Detail: fmt.Sprintf("%d parts are called %s; annotate the schematic first", len(found), ref)}
	for _, p := range found {
		e.Candidates = append(e.Candidates, fmt.Sprintf("%s %s in %s, line %d", p.Ref, p.Value, p.Units[0].Symbol.File.Name, p.Units[0].Symbol.Node.Line()))
	}
	return Part{}, e
}

// similar lists a few references with the same letters, for an error text.
func (d *Design) similar(ref string) []string {
	letters := strings.TrimRight(strings.ToUpper(ref), "0123456789?")
	var list []string
	for _, p := range d.Parts() {
		if strings.TrimRight(p.Ref, "0123456789?") == letters && len(list) < 10 {
			list = append(list, p.Ref)
		}
	}
	return list
}
