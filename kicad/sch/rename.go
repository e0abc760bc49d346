// SPDX-License-Identifier: Apache-2.0

package sch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// RenameOptions widen what [Design.RenameNet] does.
type RenameOptions struct {
	Merge bool // join the net with one that has the new name already
	All   bool // for a bare name: rename every net of that name, on whatever sheet
}

// A Rename is the result of [Design.RenameNet]: what to write, and what it means.
type Rename struct {
	Edits  []sexpr.Edit
	Labels []*Label // what is renamed
	// Nets are the names that the net may have had and will have, pair by pair, as KiCad writes them. Which of them
	// KiCad really uses, the netlists before and after tell. A sheet that is used twice renames in both uses.
	Nets [][2]string
	// Left are nets of the same bare name on other sheets that were not renamed.
	Left []string
}

// RenameNet renames a net in every sheet: local, global and hierarchical labels, sheet pins and power symbols. The old
// name is KiCad's (/A/OUT, GND), where {slash} equals / inside a label, or bare (OUT) when just one net, or a global
// one, has it. The new name is bare or has the same path in front. The error is an [*EditError]: NoSuchNet,
// Ambiguous, NetExists, HiddenPin, BusMember, BadName or Broken.
func (d *Design) RenameNet(oldName, newName string, opts RenameOptions) (Rename, error) {
	if err := d.whole(); err != nil {
		return Rename{}, err
	}
	groups, left, sheet, err := d.pick(oldName, opts.All)
	if err != nil {
		return Rename{}, err
	}
	text, err := d.newText(newName, sheet)
	if err != nil {
		return Rename{}, err
	}
	r := Rename{}
	for _, g := range groups {
		r.Labels = append(r.Labels, g.Labels...)
		for _, n := range g.Nets {
			at := len(n) - len(NetName("", g.Name))
			r.Nets = append(r.Nets, [2]string{n, NetName(n[:at], text)})
		}
	}
	for _, g := range left {
		r.Left = append(r.Left, g.Nets...)
	}
	if Plain(text) == groups[0].Name {
		return Rename{}, &EditError{Kind: BadName, Detail: fmt.Sprintf("the net is called %s already", oldName)}
	}
	if taken := d.taken(r.Labels, text); len(taken) > 0 && !opts.Merge {
		return Rename{}, &EditError{
			Kind: NetExists, Candidates: taken,
			Detail: fmt.Sprintf("the name %q is in use; renaming %q would join the two nets", newName, oldName),
		}
	}
	if hidden := d.hiddenPins(r.Labels); len(hidden) > 0 {
		return Rename{}, &EditError{
			Kind: HiddenPin, Candidates: hidden,
			Detail: fmt.Sprintf("parts are on the net %q by a hidden power pin of that name, which a rename would leave behind", oldName),
		}
	}
	if i := slices.IndexFunc(r.Labels, func(l *Label) bool { return len(d.members(l.Text)) > 0 }); i >= 0 {
		l := r.Labels[i]
		return Rename{}, &EditError{
			Kind: BusMember, Candidates: []string{fmt.Sprintf("%s in %s, line %d", l.Kind, l.File.Name, l.Line())},
			Detail: fmt.Sprintf("%q is a bus of %s, not a net; change its label and those of its members together, as text", l.Text, strings.Join(d.members(l.Text), ", ")),
		}
	}
	if on := d.buses(r.Labels, groups[0].Name); len(on) > 0 {
		return Rename{}, &EditError{
			Kind: BusMember, Candidates: on,
			Detail: fmt.Sprintf("the net %q is a member of a bus, which a rename of the net alone would part it from; change the bus's label and those of its members together, as text", oldName),
		}
	}
	for _, l := range r.Labels {
		if e, changed := sexpr.SetText(l.File.Name, l.Token, text); changed {
			r.Edits = append(r.Edits, e)
		}
	}
	return r, nil
}

// whole refuses to edit a design whose places are not all known.
func (d *Design) whole() error {
	e := &EditError{Kind: Broken, Detail: "not every sheet can be read, so that a name might be changed in one place only"}
	for _, p := range d.Problems {
		switch p.Kind {
		case MissingSheet, UnreadableSheet, OutsideSheet, SheetCycle, TooManySheets:
			e.Candidates = append(e.Candidates, p.String())
		case DuplicateRef, NotAnnotated, ReferenceMismatch, MissingLibSymbol, DamagedText:
		}
	}
	if len(e.Candidates) > 0 {
		return e
	}
	return nil
}

// pick finds the groups that a name means, those of the same bare name that it does not mean, and the sheet that
// the name has in front ("" for none).
func (d *Design) pick(name string, all bool) (groups, left []Group, sheet string, err error) {
	if strings.HasPrefix(name, "/") {
		for _, in := range d.pathsOf(name) {
			every := d.Groups(name[len(in.Name):])
			for _, pins := range []bool{false, true} { // a pin names a net only where no label does
				for _, g := range every {
					if g.touches(in.File, pins) {
						groups = append(groups, g)
					} else {
						left = append(left, g)
					}
				}
				if len(groups) > 0 {
					return groups, left, in.Name, nil
				}
				left = nil
			}
		}
	}
	groups = d.Groups(name)
	wide := func(g Group) bool { return slices.ContainsFunc(g.Labels, (*Label).wide) }
	switch i := slices.IndexFunc(groups, wide); {
	case len(groups) == 0:
		return nil, nil, "", d.noSuchNet(name)
	case all || len(groups) == 1:
		return groups, nil, "", nil
	case i >= 0: // the bare name is the global net's very name
		return []Group{groups[i]}, slices.Delete(slices.Clone(groups), i, i+1), "", nil
	}
	e := &EditError{Kind: Ambiguous, Detail: fmt.Sprintf("several nets are called %q; name one with its sheet", name)}
	for _, g := range groups {
		e.Candidates = append(e.Candidates, strings.Join(g.Nets, " = "))
	}
	return nil, nil, "", e
}

// pathsOf lists the instances whose path begins a net's name, the longest first.
func (d *Design) pathsOf(name string) []*Instance {
	var list []*Instance
	for _, in := range d.Sheets {
		if strings.HasPrefix(name, in.Name) && len(name) > len(in.Name) {
			list = append(list, in)
		}
	}
	slices.SortStableFunc(list, func(a, b *Instance) int { return len(b.Name) - len(a.Name) })
	return list
}

// touches reports whether the group has a place in a file that is no global name, nor, unless pins is set, a sheet pin.
func (g Group) touches(f *File, pins bool) bool {
	return slices.ContainsFunc(g.Labels, func(l *Label) bool {
		return l.File == f && !l.wide() && (pins || l.Kind != SheetPin)
	})
}

func (d *Design) noSuchNet(name string) error {
	e := &EditError{Kind: NoSuchNet, Detail: fmt.Sprintf("no label, sheet pin or power symbol spells %q", name)}
	if strings.HasPrefix(name, "Net-(") || strings.HasPrefix(name, "unconnected-(") {
		e.Detail += "; KiCad made that name up from a pin: add a label instead"
		return e
	}
	for _, f := range d.Files {
		for _, l := range f.Labels {
			if strings.Contains(l.Text, "${") && !slices.Contains(e.Candidates, l.Text) {
				e.Candidates = append(e.Candidates, l.Text)
			}
			for _, m := range d.members(l.Text) {
				if m == Plain(name[strings.LastIndex(name, "/")+1:]) {
					e.Detail += fmt.Sprintf("; it is a member of the bus %s", l.Text)
				}
			}
		}
	}
	if len(e.Candidates) > 0 {
		slices.Sort(e.Candidates)
		e.Detail += "; a label with a text variable may, and is changed as text"
		return e
	}
	want := strings.ToLower(Plain(name[strings.LastIndex(name, "/")+1:]))
	for _, n := range d.Names() {
		if low := strings.ToLower(n); want != "" && (strings.Contains(low, want) || strings.Contains(want, low)) && len(e.Candidates) < 10 {
			e.Candidates = append(e.Candidates, n)
		}
	}
	return e
}

// newText is what the labels will say. sheet is the path that the old name had in front.
func (d *Design) newText(name, sheet string) (string, error) {
	if sheet == "" {
		sheet = "/"
	}
	bare := strings.TrimPrefix(name, sheet)
	bad := func(why string) error {
		return &EditError{Kind: BadName, Detail: fmt.Sprintf("%q is no name for the net: %s", name, why)}
	}
	switch {
	case bare == "":
		return "", bad("it is empty")
	case strings.HasPrefix(bare, "/"):
		return "", bad("a rename cannot move a net to another sheet")
	case strings.TrimSpace(bare) != bare:
		return "", bad("it begins or ends with white space")
	case strings.ContainsFunc(bare, func(r rune) bool { return r < ' ' || r == 0x7F || r == '\uFFFD' }):
		return "", bad("it holds a control character")
	case len(d.members(bare)) > 0 || strings.ContainsAny(bare, "[]"):
		return "", bad("brackets make a label a bus")
	case strings.Contains(bare, "${"):
		return "", bad("KiCad would put a text variable in")
	}
	return strings.ReplaceAll(bare, "/", "{slash}"), nil
}

// taken lists what spells the new name where it would join a renamed label: anything on the same sheets, sheet pins of
// the same symbols, and global names anywhere.
func (d *Design) taken(labels []*Label, text string) []string {
	files := map[*File]bool{}
	for _, l := range labels {
		files[l.File] = true
		if l.Kind == SheetPin {
			if f := d.targets[l.Sheet]; f != nil {
				files[f] = true
			}
		}
	}
	var list []string
	for _, name := range d.FileNames() {
		f := d.Files[name]
		for _, l := range f.Labels {
			if l.Name() == Plain(text) && (files[f] || l.wide()) {
				list = append(list, fmt.Sprintf("%s in %s, line %d", l.Kind, name, l.Line()))
			}
		}
	}
	return list
}

// hiddenPins lists the parts whose hidden power pins are on a net of the whole design by its name.
func (d *Design) hiddenPins(labels []*Label) []string {
	i := slices.IndexFunc(labels, (*Label).wide)
	if i < 0 {
		return nil
	}
	var list []string
	for _, p := range d.Placed() {
		lib, ok := p.Symbol.Lib()
		if ok && slices.ContainsFunc(lib.hidden, func(name string) bool { return Plain(name) == labels[i].Name() }) {
			list = append(list, p.Ref)
		}
	}
	return list
}
