// SPDX-License-Identifier: Apache-2.0

package pcb

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// An EditErrorKind says why an edit is refused.
type EditErrorKind uint8

// The kinds.
const (
	NoSuchNet       EditErrorKind = iota + 1 // no net has the name
	NoSuchFootprint                          // no footprint has the reference
	NoSuchField                              // the footprint has no field of that name
	Ambiguous                                // several footprints have the reference
	NetExists                                // the new name is in use: the nets would be joined
	FootprintExists                          // the new reference is in use
	BadName                                  // the new name is empty or cannot be written
	Broken                                   // the file has errors, so that not every place is known
)

// An EditError is a refused edit. Nothing was changed.
type EditError struct {
	Kind   EditErrorKind
	Detail string
}

func (e *EditError) Error() string { return "pcb: " + e.Detail }

func (b *Board) whole() error {
	for _, e := range b.Errors {
		if e.Kind != sexpr.NUL && e.Kind != sexpr.InvalidUTF8 { // after those every place is known still
			return &EditError{Broken, b.Name + " has errors: " + e.Error()}
		}
	}
	if !b.Doc.Root().Is("kicad_pcb") {
		return &EditError{Broken, b.Name + " is no board"}
	}
	return nil
}

// Has reports whether the board has a net of that name, as KiCad writes it.
func (b *Board) Has(net string) bool {
	return slices.ContainsFunc(b.Nets, func(n Net) bool { return n.Name == net }) ||
		slices.ContainsFunc(b.Uses, func(u Use) bool { return u.Named && u.Name == net })
}

// RenameNets gives nets other names, all at once: in the table, in every pad, zone and track. Names are KiCad's, from
// a netlist or [Board.Nets]: /OUT, /SPI{slash}CS. Swapping two names is fine; giving a net the name of one that keeps
// it is refused, since KiCad would join their copper. The error is an [*EditError]: NoSuchNet, NetExists, BadName or
// Broken.
func (b *Board) RenameNets(names map[string]string) ([]sexpr.Edit, error) {
	if err := b.whole(); err != nil {
		return nil, err
	}
	to := map[string]string{}
	for _, from := range slices.Sorted(maps.Keys(names)) {
		name := names[from]
		_, leaves := names[name]
		switch {
		case name == "" || from == "" || strings.ContainsFunc(name, func(r rune) bool { return r < ' ' || r == '\uFFFD' }):
			return nil, &EditError{BadName, fmt.Sprintf("%q cannot be the name of a net", name)}
		case !b.Has(from):
			return nil, &EditError{NoSuchNet, fmt.Sprintf("the board %s has no net %q", b.Name, from)}
		case to[name] != "":
			return nil, &EditError{NetExists, fmt.Sprintf("%q and %q cannot both become %q", to[name], from, name)}
		case name != from && b.Has(name) && !leaves:
			return nil, &EditError{NetExists, fmt.Sprintf("the board %s has a net %q already; renaming %q would join the two", b.Name, name, from)}
		}
		to[name] = from
	}
	var edits []sexpr.Edit
	change := func(token sexpr.Node, now string) {
		if name, ok := names[now]; ok {
			if e, changed := sexpr.SetText(b.Name, token, name); changed {
				edits = append(edits, e)
			}
		}
	}
	for _, n := range b.Nets {
		change(n.Text, n.Name)
	}
	for _, u := range b.Uses {
		if u.Named {
			change(u.Text, u.Name)
		}
	}
	return edits, nil
}

// Find returns the footprint with exactly that reference. The error is NoSuchFootprint or Ambiguous.
func (b *Board) Find(ref string) (*Footprint, error) {
	var found *Footprint
	for _, f := range b.Footprints {
		if f.Reference != ref {
			continue
		}
		if found != nil {
			return nil, &EditError{Ambiguous, fmt.Sprintf("the board %s has %s at lines %d and %d", b.Name, ref, found.Node.Line(), f.Node.Line())}
		}
		found = f
	}
	if found == nil {
		return nil, &EditError{NoSuchFootprint, fmt.Sprintf("the board %s has no footprint %q", b.Name, ref)}
	}
	return found, nil
}

// SetField gives a field of a footprint another text, for instance Value. No edits mean that it has that text already.
func (b *Board) SetField(ref, name, value string) ([]sexpr.Edit, error) {
	if err := b.whole(); err != nil {
		return nil, err
	}
	f, err := b.Find(ref)
	if err != nil {
		return nil, err
	}
	var edits []sexpr.Edit
	found := false
	for _, field := range f.Fields {
		if field.Name != name {
			continue
		}
		found = true
		if e, changed := sexpr.SetText(b.Name, field.Text, value); changed {
			edits = append(edits, e)
		}
	}
	if !found {
		return nil, &EditError{NoSuchField, fmt.Sprintf("the footprint %s has no field %q", ref, name)}
	}
	return edits, nil
}

// RenameReference gives a footprint another reference. Names of nets that KiCad made up from the old one, such as
// Net-(R1-Pad1), are renamed by [Board.RenameNets].
func (b *Board) RenameReference(oldRef, newRef string) ([]sexpr.Edit, error) {
	if newRef == "" || strings.ContainsFunc(newRef, func(r rune) bool { return r <= ' ' || r == '\uFFFD' }) {
		return nil, &EditError{BadName, fmt.Sprintf("%q is no reference", newRef)}
	}
	for _, f := range b.Footprints {
		if f.Reference == newRef {
			return nil, &EditError{FootprintExists, fmt.Sprintf("the board %s has a footprint %s already", b.Name, newRef)}
		}
	}
	return b.SetField(oldRef, "Reference", newRef)
}
