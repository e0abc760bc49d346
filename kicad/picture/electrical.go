// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/pcb"
	"github.com/fiducial-dev/fiducial/kicad/sch"
)

// An electrical comparison of two netlists.
type electrical struct {
	was, now *kicadcli.Netlist
	refs     map[string]string // parts by their old reference, those whose reference changed
	renamed  map[string]string // nets by their old name
	changes  []Change
}

// compareNetlists tells what differs. refs maps old references to new ones, for parts that are known to be the same.
func compareNetlists(was, now *kicadcli.Netlist, refs map[string]string) electrical {
	e := electrical{was: was, now: now, refs: refs, renamed: map[string]string{}}
	old, fresh := e.pins(was, refs), e.pins(now, nil)
	e.renames(old, fresh)
	e.parts()
	e.nets(old, fresh)
	return e
}

// pins maps each pin, under its part's new reference, to its net.
func (e *electrical) pins(n *kicadcli.Netlist, refs map[string]string) map[string]string {
	pins := map[string]string{}
	for _, net := range n.Nets {
		for _, p := range net.Pins {
			p.Ref = cmp.Or(refs[p.Ref], p.Ref)
			pins[p.String()] = net.Name
		}
	}
	return pins
}

// renames finds nets whose name is gone and most of whose pins are now on one net whose name is new.
func (e *electrical) renames(old, fresh map[string]string) {
	before, after := count(old), count(fresh)
	moved := map[string]map[string]int{}
	for pin, net := range old {
		to, ok := fresh[pin]
		if !ok || before[to] > 0 || after[net] > 0 {
			continue
		}
		if moved[net] == nil {
			moved[net] = map[string]int{}
		}
		moved[net][to]++
	}
	taken := map[string]bool{}
	for _, net := range slices.Sorted(maps.Keys(moved)) {
		for _, to := range slices.Sorted(maps.Keys(moved[net])) {
			if n := moved[net][to]; !taken[to] && 2*n > before[net] && 2*n > after[to] {
				e.renamed[net], taken[to] = to, true
				break
			}
		}
	}
	for _, net := range slices.Sorted(maps.Keys(e.renamed)) {
		to := e.renamed[net]
		if open(net) && open(to) {
			continue // KiCad's own names for pins without a wire follow the pin
		}
		e.add(Change{Kind: Changed, What: "net", Text: net + " renamed to " + to, Nets: []string{net, to}})
	}
}

func count(pins map[string]string) map[string]int {
	n := map[string]int{}
	for _, net := range pins {
		n[net]++
	}
	return n
}

// open reports whether KiCad made the name up for a pin that nothing is connected to.
func open(net string) bool { return strings.HasPrefix(net, "unconnected-(") }

func (e *electrical) add(c Change) { e.changes = append(e.changes, c) }

// parts compares the parts by reference.
func (e *electrical) parts() {
	old := map[string]kicadcli.Part{}
	for _, p := range e.was.Parts {
		ref := cmp.Or(e.refs[p.Ref], p.Ref)
		if ref != p.Ref {
			e.add(Change{Kind: Changed, What: "part", Text: p.Ref + " renamed to " + ref, Refs: []string{p.Ref, ref}})
		}
		old[ref] = p
	}
	seen := map[string]bool{}
	for _, p := range sorted(e.now.Parts) {
		seen[p.Ref] = true
		was, ok := old[p.Ref]
		if !ok {
			e.add(Change{Kind: Added, What: "part", Text: describe(p), Refs: []string{p.Ref}})
			continue
		}
		for _, d := range differences(was, p) {
			e.add(Change{Kind: Changed, What: "part", Text: p.Ref + " " + d, Refs: []string{p.Ref}})
		}
	}
	for _, p := range sorted(e.was.Parts) {
		if !seen[cmp.Or(e.refs[p.Ref], p.Ref)] {
			e.add(Change{Kind: Removed, What: "part", Text: describe(p), Refs: []string{p.Ref}})
		}
	}
}

func sorted(parts []kicadcli.Part) []kicadcli.Part {
	return slices.SortedFunc(slices.Values(parts), func(a, b kicadcli.Part) int { return sch.CompareRefs(a.Ref, b.Ref) })
}

func describe(p kicadcli.Part) string {
	s := p.Ref + " " + show(p.Value)
	if p.Footprint != "" {
		s += " (" + show(p.Footprint) + ")"
	}
	return s
}

func differences(a, b kicadcli.Part) []string {
	var list []string
	say := func(what, was, now string) {
		if was != now {
			list = append(list, what+" "+show(was)+" → "+show(now))
		}
	}
	say("value", a.Value, b.Value)
	say("footprint", a.Footprint, b.Footprint)
	say("symbol", a.LibID, b.LibID)
	all := maps.Clone(a.Properties)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, b.Properties)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		was, had := a.Properties[name]
		now, has := b.Properties[name]
		switch {
		case name == "Sheetname" || name == "Sheetfile" || name == "ki_keywords" || name == "ki_fp_filters":
		case !had && now == "":
			list = append(list, "marked "+name) // dnp, exclude_from_bom: properties without a value
		case !has && was == "":
			list = append(list, "no longer marked "+name)
		default:
			say(name, was, now)
		}
	}
	return list
}

// nets compares where the pins of parts that are in both states are connected, and which nets came and went.
func (e *electrical) nets(old, fresh map[string]string) {
	before, after := count(old), count(fresh)
	for _, pin := range slices.SortedFunc(maps.Keys(fresh), sch.CompareRefs) {
		was, ok := old[pin]
		now := fresh[pin]
		if !ok || was == now || e.renamed[was] == now || open(was) && open(now) {
			continue
		}
		ref := pin[:strings.LastIndexByte(pin, '.')]
		e.add(Change{
			Kind: Changed, What: "pin", Text: pin + ": " + connected(was) + " → " + connected(now),
			Refs: []string{ref}, Nets: []string{was, now},
		})
	}
	gone := map[string]bool{}
	for _, to := range e.renamed {
		gone[to] = true
	}
	for _, net := range slices.Sorted(maps.Keys(after)) {
		if before[net] == 0 && !gone[net] && !open(net) {
			e.add(Change{Kind: Added, What: "net", Text: fmt.Sprintf("%s (%s)", net, plural(after[net], "pin")), Nets: []string{net}})
		}
	}
	for _, net := range slices.Sorted(maps.Keys(before)) {
		if _, renamed := e.renamed[net]; after[net] == 0 && !renamed && !open(net) {
			e.add(Change{Kind: Removed, What: "net", Text: fmt.Sprintf("%s (%s)", net, plural(before[net], "pin")), Nets: []string{net}})
		}
	}
}

func connected(net string) string {
	if open(net) {
		return "not connected"
	}
	return net
}

// sameParts maps old references to new ones where the very same symbol has another reference.
func sameParts(was, now *sch.Design) map[string]string {
	named := func(d *sch.Design) map[string]string {
		refs := map[string]string{}
		if d != nil {
			for _, p := range d.Placed() {
				if p.Symbol.UUID != "" {
					refs[trail(p.Sheet)+p.Symbol.UUID] = p.Ref
				}
			}
		}
		return refs
	}
	return renamedParts(named(was), named(now))
}

// sameFootprints is sameParts for boards without a schematic.
func sameFootprints(was, now *pcb.Board) map[string]string {
	named := func(b *pcb.Board) map[string]string {
		refs := map[string]string{}
		if b != nil {
			for _, f := range b.Footprints {
				if f.UUID != "" {
					refs[f.UUID] = f.Reference
				}
			}
		}
		return refs
	}
	return renamedParts(named(was), named(now))
}

// renamedParts compares references by identity. A reference that some item kept was not renamed.
func renamedParts(was, now map[string]string) map[string]string {
	kept, refs := map[string]bool{}, map[string]string{}
	for id, ref := range now {
		if was[id] == ref {
			kept[ref] = true
		}
	}
	for id, ref := range now {
		if old := was[id]; old != "" && old != ref && !kept[old] && !strings.HasPrefix(old, "#") {
			refs[old] = ref
		}
	}
	return refs
}
