// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/sch"
)

// A Design is what kicad-cli says of a schematic: its parts and what their pins are connected to. It is the truth that
// documents are compared with.
type Design struct {
	Parts []Part // by reference, R2 before R10; parts that share one by mistake have an entry each
	Nets  []kicadcli.Net
	// Sheets are the instances of the sheet tree by path of names: "/", "/A/".
	Sheets []string

	byRef map[string][]int
	names names
}

// A Part is one part, all of its units.
type Part struct {
	kicadcli.Entry
	LibID  string
	Sheet  string            // path of names
	Fields map[string]string // the symbol's other properties, by their names as written
	Pins   []Pin             // of the netlist, in the order of their numbers; none for a part excluded from the board
	// Listed tells that the netlist has the part, so that Pins are all of them.
	Listed bool
}

// A Pin is a pin of a part.
type Pin struct {
	Number string
	Name   string // "" when the symbol gives none
	Net    string // as KiCad names it; "" or unconnected-(...) when it is open
}

// Open reports whether nothing is connected to the pin.
func (p Pin) Open() bool { return p.Net == "" || strings.HasPrefix(p.Net, "unconnected-(") }

// Field finds a property by its name, without regard to capitals, blanks and marks: "MPN", "Mfr. Part #".
func (p Part) Field(names ...string) string {
	for _, name := range names {
		for _, have := range sortedKeys(p.Fields) {
			if key(have) == key(name) {
				if v := cleanValue(p.Fields[have]); v != "" {
					return v
				}
			}
		}
	}
	return ""
}

// MPN is the manufacturer's part number among the fields, "" for none.
func (p Part) MPN() string { return p.Field(titles[colMPN]...) }

// Load reads a design by kicad-cli, its inventory and its netlist side by side. Errors are those of
// [kicadcli.Runner.Inventory] and [kicadcli.Runner.Netlist].
func Load(ctx context.Context, r *kicadcli.Runner, in kicadcli.Input) (*Design, error) {
	var (
		entries  []kicadcli.Entry
		netlist  *kicadcli.Netlist
		err, bad error
		wg       sync.WaitGroup
	)
	wg.Go(func() { entries, err = r.Inventory(ctx, in) })
	wg.Go(func() { netlist, bad = r.Netlist(ctx, in) })
	wg.Wait()
	if bad != nil {
		return nil, bad
	}
	if err != nil {
		return nil, err
	}
	return NewDesign(entries, netlist), nil
}

// NewDesign puts together what [kicadcli.Runner.Inventory] and [kicadcli.Runner.Netlist] say.
func NewDesign(entries []kicadcli.Entry, netlist *kicadcli.Netlist) *Design {
	d := &Design{Nets: netlist.Nets, Sheets: netlist.Sheets, byRef: map[string][]int{}}
	known := map[string]kicadcli.Part{}
	for _, p := range netlist.Parts {
		known[p.Ref] = p
	}
	pins := map[string][]Pin{}
	for _, n := range netlist.Nets {
		for _, p := range n.Pins {
			name := p.Function
			if name == "~" {
				name = ""
			}
			pins[p.Ref] = append(pins[p.Ref], Pin{Number: p.Number, Name: name, Net: n.Name})
		}
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Ref, "#") {
			continue
		}
		n, listed := known[e.Ref]
		e.Value, e.Footprint = cleanValue(e.Value), cleanValue(e.Footprint)
		p := Part{Entry: e, LibID: n.LibID, Sheet: n.Sheet, Fields: n.Properties, Pins: pins[e.Ref], Listed: listed}
		slices.SortStableFunc(p.Pins, func(a, b Pin) int { return compareRefs(a.Number, b.Number) })
		d.Parts = append(d.Parts, p)
	}
	slices.SortStableFunc(d.Parts, func(a, b Part) int { return compareRefs(a.Ref, b.Ref) })
	for i, p := range d.Parts {
		d.byRef[p.Ref] = append(d.byRef[p.Ref], i)
	}
	d.names = newNames(d.Nets)
	return d
}

// AddFields takes from the files what the netlist does not say: sheet and properties of the parts that are excluded
// from the board. Text variables in them stay as written.
func (d *Design) AddFields(s *sch.Design) {
	for _, part := range s.Parts() {
		for _, i := range d.byRef[part.Ref] {
			p := &d.Parts[i]
			if p.Listed {
				continue
			}
			p.LibID, p.Sheet, p.Fields = part.LibID, part.Units[0].Sheet.Name, map[string]string{}
			for _, f := range part.Units[0].Symbol.Properties {
				p.Fields[f.Name] = f.Value
			}
		}
	}
}

// Part finds a part by its reference; of several that share it the first.
func (d *Design) Part(ref string) (Part, bool) {
	list := d.byRef[ref]
	if len(list) == 0 {
		return Part{}, false
	}
	return d.Parts[list[0]], true
}

func (d *Design) has(ref string) bool { return len(d.byRef[ref]) > 0 }

// any reports whether one of the parts with that reference, of which there is more than one only by mistake, is so.
func (d *Design) any(ref string, is func(Part) bool) bool {
	for _, i := range d.byRef[ref] {
		if is(d.Parts[i]) {
			return true
		}
	}
	return false
}

// inBOM reports whether a part belongs into a bill of materials.
func (p Part) inBOM() bool { return !p.NoBOM }

func sortedKeys(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
