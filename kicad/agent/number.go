// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/kicad/sch"
)

// A startPart is what a part said when the run began.
type startPart struct {
	value, footprint string
	dnp, noBOM       bool
	numbers          map[string]string // part numbers by the names of their fields
}

// startParts are the parts of the snapshot; none when its sheets cannot be read.
func (b *Bench) startParts(ctx context.Context) map[string]startPart {
	if b.project.Root == "" {
		return nil
	}
	read := b.read
	if b.session.Resumed {
		read = func(name string) ([]byte, error) { return b.original(ctx, name) }
	}
	d, err := sch.LoadWith(read, b.project.Root)
	if err != nil {
		return nil // there is nothing to compare with, and the checks say that it does not load
	}
	parts := map[string]startPart{}
	for _, p := range d.Parts() {
		parts[identity(p)] = startPart{p.Value, p.Footprint, p.DNP, p.NoBOM, numbers(p)}
	}
	return parts
}

// identity is what a part keeps when its reference changes: its symbol and the use of the sheet.
func identity(p sch.Part) string {
	u := p.Units[0]
	if u.Symbol.UUID == "" {
		return p.Ref
	}
	return u.Symbol.UUID + " " + u.Sheet.Name
}

// numbers are the fields of a part that say what to order.
func numbers(p sch.Part) map[string]string {
	found := map[string]string{}
	for _, u := range p.Units {
		for _, f := range u.Symbol.Properties {
			if _, ok := docs.NumberOf(f.Name); ok && found[f.Name] == "" && strings.Trim(f.Value, " ~-") != "" {
				found[f.Name] = f.Value
			}
		}
	}
	return found
}

const unverified = " (UNVERIFIED)"

// otherPart says what a part was, when it now is one that has to be ordered by another number.
func (s startPart) otherPart(value, footprint string) (was string) {
	switch {
	case s.value != "" && s.value != "~" && s.value != value && (!docs.SameValue(value, s.value) || !docs.SameValue(s.value, value)):
		return s.value
	case s.footprint != "" && s.footprint != footprint:
		return s.footprint
	}
	return ""
}

// doubt are the part numbers that a new value or footprint leaves unverified, and those that it makes good again, as
// fields to be set beside it. A number that the run has set is not among them.
func (b *Bench) doubt(d *sch.Design, in setFieldInput) (more []setFieldInput, notes []string) {
	p, err := d.Find(in.Reference)
	if err != nil {
		return nil, nil // the edit itself says so
	}
	value, footprint := p.Value, p.Footprint
	switch in.Field {
	case "Value":
		value = in.Text
	case "Footprint":
		footprint = in.Text
	default:
		return nil, nil
	}
	start, known := b.base.parts[identity(p)]
	now := startPart{value: p.Value, footprint: p.Footprint}
	have := numbers(p)
	for _, name := range slices.Sorted(maps.Keys(have)) {
		text := have[name]
		was := now.otherPart(value, footprint)
		switch {
		case known && text == start.numbers[name]+unverified && start.otherPart(value, footprint) == "":
			more = append(more, setFieldInput{in.Reference, name, start.numbers[name]})
			notes = append(notes, fmt.Sprintf("%s of %s is %q again, for the part is what it was.", name, in.Reference, start.numbers[name]))
		case was != "" && !docs.Unverified(text) && (!known || start.numbers[name] == text):
			more = append(more, setFieldInput{in.Reference, name, text + unverified})
			notes = append(notes, fmt.Sprintf("UNVERIFIED: %s of %s, %q, is still that of %s, so it now says %q and no order takes it. Set it with %s once the right number is known, and only then.",
				name, in.Reference, text, was, text+unverified, toolSetField))
		}
	}
	return more, notes
}

// stale tells of the parts that became others in the run while a part number stayed.
func (b *Bench) stale() (marked, unmarked []string) {
	d, err := b.design()
	if err != nil {
		return nil, nil
	}
	for _, p := range d.Parts() {
		start, known := b.base.parts[identity(p)]
		was := start.otherPart(p.Value, p.Footprint)
		if !known || was == "" {
			continue
		}
		have := numbers(p)
		for _, name := range slices.Sorted(maps.Keys(have)) {
			switch text := have[name]; {
			case text == start.numbers[name]+unverified:
				marked = append(marked, fmt.Sprintf("Part number of %s (%s %s) is still that of %s, marked UNVERIFIED", p.Ref, name, start.numbers[name], was))
			case text == start.numbers[name] && !docs.Unverified(text):
				unmarked = append(unmarked, fmt.Sprintf("Part number of %s (%s %s) is as it was with %s, and not marked", p.Ref, name, text, was))
			}
		}
	}
	return marked, unmarked
}

// flagChanges tells of the parts that the run marked as not fitted or took off the bill of materials, or the reverse.
// The netlist does not show it.
func (b *Bench) flagChanges() (lines []string) {
	d, err := b.design()
	if err != nil {
		return nil
	}
	for _, p := range d.Parts() {
		start, known := b.base.parts[identity(p)]
		if !known {
			continue
		}
		if start.dnp != p.DNP {
			lines = append(lines, fmt.Sprintf("part %s %s", p.Ref, map[bool]string{true: "marked dnp", false: "no longer marked dnp"}[p.DNP]))
		}
		if start.noBOM != p.NoBOM {
			lines = append(lines, fmt.Sprintf("part %s %s the bill of materials", p.Ref, map[bool]string{true: "excluded from", false: "put back into"}[p.NoBOM]))
		}
	}
	return lines
}
