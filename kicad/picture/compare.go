// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/pcb"
	"github.com/fiducial-dev/fiducial/kicad/project"
	"github.com/fiducial-dev/fiducial/kicad/sch"
)

// The papers: kicad-cli's default theme is made for a light schematic and a dark board.
const (
	sheetPaper = "#fbfaf5"
	boardPaper = "#0b1a24"
)

// A side is all that is known of one state.
type side struct {
	State
	design *sch.Design
	board  *pcb.Board
	nets   *kicadcli.Netlist

	sheets  map[string]drawing // by kicad-cli's file name
	layers  map[string]drawing
	why     map[string]string // why there is no drawing: "sheet", "board"
	notes   []string
	netsErr error
}

// Compare draws both states and finds what differs. What cannot be drawn or compared is said in the Diff; the error is
// the end of ctx, or that of a kicad-cli that is missing or too old.
func Compare(ctx context.Context, r *kicadcli.Runner, before, after State) (*Diff, error) {
	if _, err := r.Version(ctx); err != nil {
		return nil, err
	}
	sides := [2]*side{{State: before}, {State: after}}
	for _, s := range sides {
		s.sheets, s.layers, s.why = map[string]drawing{}, map[string]drawing{}, map[string]string{}
		if err := s.read(); err != nil {
			return nil, err
		}
	}
	layers := wanted(sides)
	var wg sync.WaitGroup
	for _, s := range sides {
		s.draw(ctx, r, layers, &wg)
	}
	wg.Wait()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return assemble(sides), nil
}

// read reads the files of a state.
func (s *side) read() error {
	if s.Project == nil {
		return nil
	}
	root, err := os.OpenRoot(s.Top)
	if err != nil {
		return fmt.Errorf("picture: %w", err)
	}
	defer func() { _ = root.Close() }()
	files := project.Files(root)
	for _, name := range s.Project.Files() {
		if e, ok := errors.AsType[*project.FileError](project.Look(files, name)); ok && e.Kind == project.Pointer {
			s.notes = append(s.notes, e.Error()+", so it cannot be shown")
		}
	}
	if s.Project.Root != "" {
		s.design, err = sch.Load(files, s.Project.Root)
		if err != nil {
			s.notes = append(s.notes, err.Error())
		} else {
			for _, p := range s.design.Problems {
				switch p.Kind {
				case sch.MissingSheet, sch.UnreadableSheet, sch.OutsideSheet, sch.SheetCycle, sch.TooManySheets, sch.DamagedText:
					s.notes = append(s.notes, p.String())
				case sch.DuplicateRef, sch.NotAnnotated, sch.ReferenceMismatch, sch.MissingLibSymbol:
				}
			}
		}
	}
	if s.Project.PCB != "" {
		src, err := project.Read(files, s.Project.PCB, 0)
		if err != nil {
			s.notes = append(s.notes, err.Error())
			return nil
		}
		s.board = pcb.Read(s.Project.PCB, src)
	}
	return nil
}

func (s *side) input(file string) kicadcli.Input {
	return kicadcli.Input{File: filepath.Join(s.Top, filepath.FromSlash(file)), Root: s.Top}
}

// draw starts what kicad-cli has to do for a state.
func (s *side) draw(ctx context.Context, r *kicadcli.Runner, layers []string, wg *sync.WaitGroup) {
	var mu sync.Mutex
	fail := func(what string, err error) {
		mu.Lock()
		defer mu.Unlock()
		s.why[what] = brief(err)
	}
	if s.design != nil {
		wg.Go(func() { s.nets, s.netsErr = r.Netlist(ctx, s.input(s.Project.Root)) })
		wg.Go(func() {
			list, err := r.SchematicSVG(ctx, s.input(s.Project.Root))
			if err != nil {
				fail("sheet", err)
			}
			for _, p := range list {
				d, err := redraw(p.SVG)
				if err != nil {
					fail(p.File, err)
					continue
				}
				s.sheets[p.File] = d
			}
		})
	}
	if s.board != nil {
		wg.Go(func() {
			list, err := r.BoardSVG(ctx, s.input(s.Project.PCB), onBoard(s.board, layers))
			if err != nil {
				fail("board", err)
			}
			for layer, svg := range list {
				d, err := redraw(svg)
				if err != nil {
					fail("board", fmt.Errorf("layer %s: %w", layer, err))
					continue
				}
				s.layers[layer] = d
			}
		})
	}
}

// brief says why in few words.
func brief(err error) string {
	if e, ok := errors.AsType[*kicadcli.Error](err); ok {
		if e.Stderr != "" {
			return e.Detail + ": " + e.Stderr
		}
		return e.Detail
	}
	return err.Error()
}

// assemble puts the views together.
func assemble(sides [2]*side) *Diff {
	d := &Diff{Names: [2]string{sides[Before].Name, sides[After].Name}}
	for i, s := range sides {
		for _, n := range s.notes {
			d.Notes = append(d.Notes, fmt.Sprintf("%s: %s", []string{"before", "after"}[i], n))
		}
	}
	if file := reformatted(sides); file != "" {
		d.Notes = append(d.Notes, file+" was saved by another version of KiCad: items may be told as changed that are only written differently")
	}
	e := d.netlists(sides)
	m := &marker{refs: map[string][]string{}, nets: map[string][]string{}}
	var focus []func()
	for _, p := range pairSheets(sides) {
		focus = append(focus, p.view(d, m, e.changes))
	}
	if sides[Before].board != nil || sides[After].board != nil {
		focus = append(focus, boardViews(d, m, sides, e)...)
	}
	for _, f := range focus {
		f()
	}
	for i := range e.changes {
		c := &e.changes[i]
		for _, ref := range c.Refs {
			c.Marks = append(c.Marks, m.refs[ref]...)
		}
		if c.What == "net" {
			for _, net := range c.Nets {
				c.Marks = append(c.Marks, m.nets[net]...)
				if short := lastName(net); short != net {
					c.Marks = append(c.Marks, m.nets[short]...)
				}
			}
		}
		slices.Sort(c.Marks)
		c.Marks = slices.Compact(c.Marks)
	}
	d.Electrical = e.changes
	return d
}

// reformatted is a file that the two states have in different formats, "" for none.
func reformatted(sides [2]*side) string {
	was, now := sides[Before], sides[After]
	if was.design != nil && now.design != nil {
		for _, name := range now.design.FileNames() {
			if old := was.design.Files[name]; old != nil && old.Version != now.design.Files[name].Version {
				return name
			}
		}
	}
	if was.board != nil && now.board != nil && was.board.Version != now.board.Version {
		return now.board.Name
	}
	return ""
}

// lastName is a net's name without the path of sheets, in plain spelling, as its label has it.
func lastName(net string) string {
	for i := len(net) - 1; i >= 0; i-- {
		if net[i] == '/' {
			return sch.Plain(net[i+1:])
		}
	}
	return sch.Plain(net)
}

// netlists compares what kicad-cli says is connected, or what the boards say where there is no schematic.
func (d *Diff) netlists(sides [2]*side) electrical {
	nets := [2]*kicadcli.Netlist{}
	boards := sides[Before].design == nil && sides[After].design == nil
	for i, s := range sides {
		switch {
		case s.netsErr != nil:
			d.Unknown = fmt.Sprintf("the netlist %s is not known: %s", []string{"before", "after"}[i], brief(s.netsErr))
			return electrical{renamed: map[string]string{}}
		case boards && s.board != nil:
			nets[i] = boardNetlist(s.board)
		case s.nets != nil:
			nets[i] = s.nets
		default:
			nets[i] = &kicadcli.Netlist{}
		}
	}
	refs := sameParts(sides[Before].design, sides[After].design)
	if boards {
		refs = sameFootprints(sides[Before].board, sides[After].board)
	}
	return compareNetlists(nets[Before], nets[After], refs)
}

// A sheetPair is one sheet in both states; either may be nil.
type sheetPair struct {
	sides [2]*side
	in    [2]*sch.Instance
}

// pairSheets finds the sheets that belong together: by the UUIDs that lead to them, else by their names.
func pairSheets(sides [2]*side) []sheetPair {
	var list []sheetPair
	old := map[string]*sch.Instance{}
	var left []*sch.Instance
	if d := sides[Before].design; d != nil {
		left = slices.Clone(d.Sheets)
		for _, in := range d.Sheets {
			old[trail(in)] = in
			if _, taken := old[in.Name]; !taken {
				old[in.Name] = in
			}
		}
	}
	if d := sides[After].design; d != nil {
		for _, in := range d.Sheets {
			p := sheetPair{sides: sides, in: [2]*sch.Instance{nil, in}}
			for _, key := range []string{trail(in), in.Name} {
				if i := slices.Index(left, old[key]); i >= 0 && old[key] != nil {
					p.in[Before] = old[key]
					left = slices.Delete(left, i, i+1)
					break
				}
			}
			list = append(list, p)
		}
	}
	for _, in := range left {
		list = append(list, sheetPair{sides: sides, in: [2]*sch.Instance{in, nil}})
	}
	return list
}

// view makes the view of a sheet and returns what is to be done when all views have their marks.
func (p sheetPair) view(d *Diff, m *marker, changes []Change) func() {
	d.Views = append(d.Views, View{ID: fmt.Sprintf("v%d", len(d.Views)+1)})
	n := len(d.Views) - 1
	v := &d.Views[n]
	m.view = v
	var items [2][]*item
	var drawn [2]*drawing
	for i, in := range p.in {
		if in == nil {
			v.Gone[i] = "there is no such sheet"
			continue
		}
		v.Name = title(in)
		items[i] = sheetItems(p.sides[i].design, in)
		dr, why := p.sides[i].sheet(in)
		if dr == nil {
			v.Gone[i] = why
			continue
		}
		drawn[i] = dr
		v.Frame.cover(dr.frame)
	}
	if v.Frame.Empty() {
		v.Frame.reach(0, 0)
		v.Frame.reach(297, 210)
	}
	for i, dr := range drawn {
		if dr != nil {
			v.SVG[i] = compose(v.Frame, sheetPaper, *dr)
		}
	}
	m.add(match(items[Before], items[After]))
	return func() {
		m.view = &d.Views[n]
		m.focus(items, changes)
	}
}

// sheet is the drawing of one sheet.
func (s *side) sheet(in *sch.Instance) (*drawing, string) {
	file := kicadcli.SheetFile(s.Project.Root, names(in)...)
	for _, other := range s.design.Sheets {
		if other != in && kicadcli.SheetFile(s.Project.Root, names(other)...) == file {
			return nil, fmt.Sprintf("kicad-cli writes the pictures of %q and %q into one file; give the sheets different names", in.Name, other.Name)
		}
	}
	if d, ok := s.sheets[file]; ok {
		return &d, ""
	}
	for _, key := range []string{file, "sheet"} {
		if why, ok := s.why[key]; ok {
			return nil, why
		}
	}
	return nil, "kicad-cli drew no picture of it"
}

// maxFocus is how many items of a view a change may point at: a supply net is everywhere.
const maxFocus = 300

// focus adds marks for items that did not change and that a change of the netlist is about.
func (m *marker) focus(items [2][]*item, changes []Change) {
	var refs, nets [2]map[string]bool
	for side := range 2 {
		refs[side], nets[side] = map[string]bool{}, map[string]bool{}
	}
	for _, c := range changes {
		for side := range 2 {
			for _, r := range c.Refs {
				refs[side][r] = true
			}
			for _, n := range c.Nets {
				if c.What == "net" {
					nets[side][n], nets[side][lastName(n)] = true, true
				}
			}
		}
	}
	marked := map[string]bool{}
	for _, k := range m.view.Marks {
		marked[fmt.Sprint(k.Side, k.Box)] = true
	}
	for side, list := range items {
		left := maxFocus
		for _, i := range list {
			about := slices.ContainsFunc(i.refs, func(r string) bool { return refs[side][r] }) ||
				i.tag != "footprint" && slices.ContainsFunc(i.nets, func(n string) bool { return nets[side][n] })
			if !about || i.box.Empty() || marked[fmt.Sprint(Side(side), i.box)] || left == 0 {
				continue
			}
			left--
			m.mark(Side(side), "", i, i.name)
		}
	}
}
