// SPDX-License-Identifier: Apache-2.0

package sch

import (
	"fmt"
	"strings"
	"unicode"

	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// SetProperty gives a field of a part another text: Value, Footprint, or any other. Every unit of the part is changed,
// and KiCad 6's table in the root file as well. A field that a unit does not have is added, hidden. A part in a sheet
// that is used several times changes in all its uses: Part.Units[0].Symbol tells. No edits mean that the field has
// that text already. The error is an [*EditError]: NoSuchPart, Ambiguous, BadName or Broken.
func (d *Design) SetProperty(ref, name, value string) ([]sexpr.Edit, error) {
	switch {
	case strings.TrimSpace(name) == "":
		return nil, &EditError{Kind: BadName, Detail: "a field needs a name"}
	case strings.TrimSpace(name) != name || strings.ContainsFunc(name, unicode.IsControl):
		return nil, &EditError{Kind: BadName, Detail: fmt.Sprintf("%q is no name for a field: it begins or ends with white space, or holds a control character", name)}
	case name == "Reference":
		return nil, &EditError{Kind: BadName, Detail: "a reference stands in several places; rename it instead"}
	case strings.ContainsRune(value, '\uFFFD'):
		return nil, &EditError{Kind: BadName, Detail: "the value holds the Unicode replacement character; send it again"}
	}
	part, err := d.Find(ref)
	if err != nil {
		return nil, err
	}
	if err := part.spelled(name); err != nil {
		return nil, err
	}
	var edits []sexpr.Edit
	done := map[*Symbol]bool{}
	for _, u := range part.Units {
		if done[u.Symbol] {
			continue
		}
		done[u.Symbol] = true
		if !u.Symbol.File.Valid() {
			return nil, &EditError{Kind: Broken, Detail: "the file " + u.Symbol.File.Name + " has errors: " + u.Symbol.File.flaw().Error()}
		}
		if len(u.Symbol.Properties) == 0 {
			return nil, &EditError{Kind: Broken, Detail: "the symbol of " + ref + " has no field at all to put another one behind"}
		}
		if e, changed := u.Symbol.set(name, value); changed {
			edits = append(edits, e)
		}
		entry := u.Use.Text.Parent().Parent().Get(strings.ToLower(name)).Arg(0)
		if e, changed := sexpr.SetText(d.Root, entry, value); changed && entry.OK() && (name == "Value" || name == "Footprint") {
			edits = append(edits, e)
		}
	}
	return edits, nil
}

// spelled refuses a name that differs from that of a field in its letters' case alone: a second one would be added.
func (p Part) spelled(name string) error {
	for _, u := range p.Units {
		if _, exact := u.Symbol.Property(name); exact {
			continue
		}
		for _, have := range u.Symbol.Properties {
			if strings.EqualFold(have.Name, name) {
				return &EditError{Kind: BadName, Detail: fmt.Sprintf("%s has no field %q; it has one called %q", p.Ref, name, have.Name), Candidates: []string{have.Name}}
			}
		}
	}
	return nil
}

// set makes the edit of one symbol, which has a property at least.
func (s *Symbol) set(name, value string) (sexpr.Edit, bool) {
	if p, ok := s.Property(name); ok {
		return sexpr.SetText(s.File.Name, p.Text, value)
	}
	last := s.Properties[len(s.Properties)-1].Node
	at := s.Node.Get("at")
	lead := indent(s.File.Doc, last)
	text := fmt.Sprintf("%s(property %s %s (at %s %s 0) (effects (font (size 1.27 1.27)) %s))", lead, sexpr.Quote(name), sexpr.Quote(value),
		at.Arg(0).Text(), at.Arg(1).Text(), hide(s.File.Version))
	return sexpr.Edit{File: s.File.Name, Start: last.End(), End: last.End(), New: text}, true
}

// hide is how a file of that version marks a hidden field.
func hide(version int) string {
	const yesNo = 20240108 // KiCad 8 began to write (hide yes)
	if version >= yesNo {
		return "(hide yes)"
	}
	return "hide"
}

// indent is the line break and white space in front of a node that begins its line, else one blank.
func indent(d *sexpr.Doc, n sexpr.Node) string {
	src := d.Source()
	i := n.Start()
	for i > 0 && (src[i-1] == ' ' || src[i-1] == '\t') {
		i--
	}
	if i == 0 || src[i-1] != '\n' {
		return " "
	}
	i--
	if i > 0 && src[i-1] == '\r' {
		i--
	}
	return string(src[i:n.Start()])
}

// SetFlag sets dnp, in_bom or on_board of a part, in every unit. The errors are those of [Design.SetProperty].
func (d *Design) SetFlag(ref, flag string, on bool) ([]sexpr.Edit, error) {
	if flag != "dnp" && flag != "in_bom" && flag != "on_board" {
		return nil, &EditError{Kind: BadName, Detail: fmt.Sprintf("%q is no flag; there are dnp, in_bom and on_board", flag)}
	}
	part, err := d.Find(ref)
	if err != nil {
		return nil, err
	}
	word := map[bool]string{true: "yes", false: "no"}[on]
	var edits []sexpr.Edit
	done := map[*Symbol]bool{}
	for _, u := range part.Units {
		s := u.Symbol
		now := map[string]bool{"dnp": s.DNP, "in_bom": s.InBOM, "on_board": s.OnBoard}[flag]
		if done[s] || now == on {
			continue
		}
		done[s] = true
		if !s.File.Valid() {
			return nil, &EditError{Kind: Broken, Detail: "the file " + s.File.Name + " has errors: " + s.File.flaw().Error()}
		}
		list := s.Node.Get(flag)
		if list.OK() {
			edits = append(edits, sexpr.Replace(s.File.Name, list, "("+flag+" "+word+")"))
			continue
		}
		uuid := s.Node.Get("uuid")
		if !uuid.OK() {
			return nil, &EditError{Kind: Broken, Detail: "the symbol of " + ref + " has no uuid to put the flag before"}
		}
		text := "(" + flag + " " + word + ")" + indent(s.File.Doc, uuid)
		edits = append(edits, sexpr.Edit{File: s.File.Name, Start: uuid.Start(), End: uuid.Start(), New: text})
	}
	return edits, nil
}

// RenameReference gives a part another reference: in the property and in the instances, of every unit (case 10). In a
// sheet that is used several times only the entries of that part change; the property changes when it spells the old
// name, or when the sheet is used once. Entries of other projects stay. Names that KiCad makes up from references,
// such as Net-(R1-Pad1), change with it. The error is an [*EditError]: NoSuchPart, PartExists, Ambiguous, BadName or
// Broken.
func (d *Design) RenameReference(oldRef, newRef string) ([]sexpr.Edit, error) {
	if err := d.whole(); err != nil {
		return nil, err
	}
	if !annotated(newRef) || !letters(newRef) {
		return nil, &EditError{Kind: BadName, Detail: fmt.Sprintf("%q is no reference: it begins with a letter, ends with a digit, and has neither blanks nor signs", newRef)}
	}
	part, err := d.Find(oldRef)
	if err != nil {
		return nil, err
	}
	for _, p := range d.Placed() {
		if p.Ref == newRef {
			return nil, &EditError{
				Kind: PartExists, Detail: fmt.Sprintf("there is a part %s already", newRef),
				Candidates: []string{fmt.Sprintf("%s in %s, line %d", p.Symbol.Value("Value"), p.Symbol.File.Name, p.Symbol.Node.Line())},
			}
		}
	}
	var edits []sexpr.Edit
	done := map[sexpr.Node]bool{}
	add := func(file string, token sexpr.Node) {
		if e, changed := sexpr.SetText(file, token, newRef); token.OK() && changed && !done[token] {
			done[token] = true
			edits = append(edits, e)
		}
	}
	for _, u := range part.Units {
		file := u.Symbol.File.Name
		prop, _ := u.Symbol.Property("Reference")
		if prop.Value == oldRef || len(d.Uses(u.Symbol.File)) == 1 {
			add(file, prop.Text)
		}
		if u.Use.Text.Doc() == d.Files[d.Root].Doc {
			file = d.Root // KiCad 6 keeps the table there
		}
		add(file, u.Use.Text)
	}
	return edits, nil
}

// letters reports whether a reference has letters, digits and underscores only, a letter first.
func letters(ref string) bool {
	letter := func(r rune) bool { return r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z' }
	for i, r := range ref {
		if !letter(r) && (i == 0 || (r < '0' || r > '9') && r != '_') {
			return false
		}
	}
	return true
}
