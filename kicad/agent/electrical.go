// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/sch"
	"github.com/fiducial-dev/fiducial/tool"
)

// What is connected to what is kicad-cli's netlist to say, never geometry.

// nets is the netlist of the design as it stands.
func (b *Bench) nets(ctx context.Context) (*kicadcli.Netlist, error) {
	if b.project.Root == "" {
		return nil, errNoSheet
	}
	return b.netlist(ctx, b.input(b.project.Root), true)
}

// netlist is kicad-cli's, from memory when remember is set and the tree has not
// changed since.
func (b *Bench) netlist(ctx context.Context, in kicadcli.Input, remember bool) (*kicadcli.Netlist, error) {
	if !remember {
		return b.cli.Netlist(ctx, in)
	}
	contents, err := b.sheets()
	if err != nil {
		return nil, err
	}
	a, err := b.memory.ask(ctx, "netlist", contents, func(a *answered) { a.netlist, a.err = b.cli.Netlist(ctx, in) })
	if err != nil {
		return nil, err
	}
	return a.netlist, nil
}

// electricalBefore is the design before an edit.
type electricalBefore struct {
	nets    *kicadcli.Netlist // nil when it did not load
	parts   []sch.Part
	renamed string // the line about a part that the edit renames
}

func (b *Bench) electricalState(ctx context.Context, edits []*edit) (*electricalBefore, error) {
	if b.project.Root == "" || !slices.ContainsFunc(edits, func(e *edit) bool { return kindOf(e.name) == sheet }) {
		return nil, nil
	}
	s := &electricalBefore{}
	d, err := b.design()
	if err != nil { // the root sheet is no schematic: nothing is known, and it may be mended (AC-15.22)
		return s, nil //nolint:nilerr // see above
	}
	s.parts = d.Parts()
	s.nets, err = b.nets(ctx)
	if err = hard(err); err != nil {
		return nil, err
	}
	return s, nil
}

// rename gives a part of the state its new reference, so that it is found again.
func (s *electricalBefore) rename(from, to string) {
	for i := range s.parts {
		if s.parts[i].Ref == from {
			s.parts[i].Ref = to
		}
	}
	if s.nets == nil {
		return
	}
	list := &kicadcli.Netlist{Nets: slices.Clone(s.nets.Nets), Parts: slices.Clone(s.nets.Parts), Sheets: s.nets.Sheets}
	for i := range list.Nets {
		list.Nets[i].Pins = slices.Clone(list.Nets[i].Pins)
		for k := range list.Nets[i].Pins {
			if p := &list.Nets[i].Pins[k]; p.Ref == from {
				p.Ref = to
			}
		}
	}
	for i := range list.Parts {
		if list.Parts[i].Ref == from {
			list.Parts[i].Ref = to
		}
	}
	s.nets, s.renamed = list, "part "+from+" -> "+to
}

// electrical is the difference that an edit of sheets made.
type electrical struct {
	known         bool
	before, after *kicadcli.Netlist
	renamed       map[string]string   // nets with the same pins and another name
	gained, lost  map[string][]string // pins by net name, renames aside
	parts         []string            // lines about parts
	dropped       []string            // parts that the text places and the netlist lost
}

func (b *Bench) electricalDiff(ctx context.Context, before *electricalBefore) (electrical, error) {
	if before == nil || before.nets == nil {
		return electrical{}, nil
	}
	after, err := b.nets(ctx)
	if err != nil {
		return electrical{}, err
	}
	d, err := b.design()
	if err != nil {
		return electrical{}, err
	}
	e := compareNets(before.nets, after)
	e.parts = compareParts(before.nets, after)
	if before.renamed != "" {
		e.parts = append([]string{before.renamed}, e.parts...)
	}
	e.dropped = dropped(before, after, d.Parts())
	return e, nil
}

// compareNets finds nets that were renamed and pins that moved.
func compareNets(before, after *kicadcli.Netlist) electrical {
	e := electrical{known: true, before: before, after: after, renamed: map[string]string{}, gained: map[string][]string{}, lost: map[string][]string{}}
	old, now := pinsByNet(before), pinsByNet(after)
	byPins := map[string]string{}
	for name, pins := range now {
		if _, kept := old[name]; !kept && len(pins) > 0 {
			byPins[strings.Join(pins, " ")] = name
		}
	}
	for name, pins := range old {
		if _, kept := now[name]; kept {
			continue
		}
		if to, ok := byPins[strings.Join(pins, " ")]; ok {
			e.renamed[name] = to
		}
	}
	for from, to := range e.renamed {
		delete(old, from)
		delete(now, to)
	}
	for name := range maps.Keys(union(old, now)) {
		for _, p := range now[name] {
			if !slices.Contains(old[name], p) {
				e.gained[name] = append(e.gained[name], p)
			}
		}
		for _, p := range old[name] {
			if !slices.Contains(now[name], p) {
				e.lost[name] = append(e.lost[name], p)
			}
		}
	}
	return e
}

func union(a, b map[string][]string) map[string]bool {
	u := map[string]bool{}
	for k := range a {
		u[k] = true
	}
	for k := range b {
		u[k] = true
	}
	return u
}

func pinsByNet(n *kicadcli.Netlist) map[string][]string {
	m := make(map[string][]string, len(n.Nets))
	for _, net := range n.Nets {
		pins := make([]string, len(net.Pins))
		for i, p := range net.Pins {
			pins[i] = p.String()
		}
		slices.Sort(pins)
		m[net.Name] = pins
	}
	return m
}

// compareParts tells of parts that came, went or changed.
func compareParts(before, after *kicadcli.Netlist) []string {
	old, now := partsByRef(before), partsByRef(after)
	var lines []string
	for _, ref := range slices.SortedFunc(maps.Keys(old), sch.CompareRefs) {
		a := old[ref]
		b, ok := now[ref]
		switch {
		case !ok:
			lines = append(lines, fmt.Sprintf("part %s (%s) is gone", ref, a.Value))
			continue
		case a.Value != b.Value:
			lines = append(lines, fmt.Sprintf("value of %s: %s -> %s", ref, a.Value, b.Value))
		}
		if a.Footprint != b.Footprint {
			lines = append(lines, fmt.Sprintf("footprint of %s: %s -> %s", ref, a.Footprint, b.Footprint))
		}
	}
	for _, ref := range slices.SortedFunc(maps.Keys(now), sch.CompareRefs) {
		if _, ok := old[ref]; !ok {
			lines = append(lines, fmt.Sprintf("part %s (%s) is new", ref, now[ref].Value))
		}
	}
	return lines
}

func partsByRef(n *kicadcli.Netlist) map[string]kicadcli.Part {
	m := make(map[string]kicadcli.Part, len(n.Parts))
	for _, p := range n.Parts {
		m[p.Ref] = p
	}
	return m
}

// dropped are the references that the text places, before and after, and that
// kicad-cli lists no more: it loses parts in silence.
func dropped(before *electricalBefore, after *kicadcli.Netlist, parts []sch.Part) []string {
	placed := map[string]bool{}
	for _, p := range parts {
		placed[p.Ref] = !p.NoBoard
	}
	old, now := partsByRef(before.nets), partsByRef(after)
	var refs []string
	for _, p := range before.parts {
		_, was := old[p.Ref]
		_, is := now[p.Ref]
		if was && !is && placed[p.Ref] {
			refs = append(refs, p.Ref)
		}
	}
	return refs
}

func (e electrical) vanished() error {
	if len(e.dropped) == 0 {
		return nil
	}
	return tool.Errorf(tool.Failed, "reverted: after the edit kicad-cli no longer sees %s, though the text still places it; the edit cut something off",
		strings.Join(e.dropped, ", "))
}

// String tells the difference, a line each, empty when there is none.
func (e electrical) String() string {
	var lines []string
	for _, from := range slices.Sorted(maps.Keys(e.renamed)) {
		lines = append(lines, fmt.Sprintf("net %s -> %s", from, e.renamed[from]))
	}
	for _, name := range slices.Sorted(maps.Keys(union(e.gained, e.lost))) {
		switch gained, lost := strings.Join(e.gained[name], " "), strings.Join(e.lost[name], " "); {
		case lost == "":
			lines = append(lines, fmt.Sprintf("net %s gained %s", name, gained))
		case gained == "":
			lines = append(lines, fmt.Sprintf("net %s lost %s", name, lost))
		default:
			lines = append(lines, fmt.Sprintf("net %s gained %s, lost %s", name, gained, lost))
		}
	}
	return strings.Join(append(lines, e.parts...), "\n")
}

// onlyPinsOf reports whether no net changed but by the pins of some parts, which came
// or went. Names that KiCad makes up from a part's pin may change with them.
func (e electrical) onlyPinsOf(parts []string) bool {
	if len(parts) == 0 {
		return !e.moved() && len(e.renamed) == 0
	}
	strip := func(n *kicadcli.Netlist) map[string]bool {
		nets := map[string]bool{}
		for _, net := range n.Nets {
			var pins []string
			for _, p := range net.Pins {
				if !slices.Contains(parts, p.Ref) {
					pins = append(pins, p.String())
				}
			}
			slices.Sort(pins)
			if len(pins) > 0 {
				nets[strings.Join(pins, " ")] = true
			}
		}
		return nets
	}
	return !e.known || maps.Equal(strip(e.before), strip(e.after))
}

// moved reports whether any pin is on another net than before.
func (e electrical) moved() bool { return len(e.gained) > 0 || len(e.lost) > 0 }
