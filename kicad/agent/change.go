// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode"

	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/pcb"
	"github.com/fiducial-dev/fiducial/kicad/sch"
	"github.com/fiducial-dev/fiducial/kicad/sexpr"
	"github.com/fiducial-dev/fiducial/tool"
)

type renameNetInput struct {
	From  string `json:"from" jsonschema:"the net as list_nets spells it, for example /MCU/TX or GND; a bare label name will do when one net has it"`
	To    string `json:"to" jsonschema:"the new name, without a sheet's path"`
	Merge bool   `json:"merge,omitempty" jsonschema:"join it with a net that has the new name already; without this such a rename is refused"`
}

// renameNet renames a net in every sheet and on the board, in one stroke. A rename
// that would connect or part anything is refused, unless told to merge.
func (b *Bench) renameNet(ctx context.Context, in renameNetInput) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d, err := b.design()
	if err != nil {
		return "", tool.Errorf(tool.Failed, "%w", err)
	}
	sheet, bare := ownSheet(d, in.To)
	if err := allLines(d); err != nil {
		return "", err
	}
	r, err := d.RenameNet(in.From, bare, sch.RenameOptions{Merge: in.Merge})
	if err != nil {
		return "", refused(err)
	}
	list, err := b.nets(ctx)
	if err != nil {
		return "", notKnown(err)
	}
	if sheet != "" && !slices.ContainsFunc(r.Nets, func(n [2]string) bool {
		_, known := list.Net(n[0])
		return known && strings.HasPrefix(n[0], sheet)
	}) {
		return "", tool.Errorf(tool.Failed, "refused: %s is not on the sheet %s, and a rename cannot move it there. Nothing was changed", in.From, sheet)
	}
	if !in.Merge {
		if err := free(list, r); err != nil {
			return "", err
		}
	}
	sheets, err := b.edits(ctx, r.Edits)
	if err != nil {
		return "", err
	}
	c := change{edits: sheets, accept: onlyRenames}
	if in.Merge {
		c.accept = nil
	}
	notes, err := b.changeDesign(ctx, c)
	if err != nil {
		return "", err
	}
	head := fmt.Sprintf("Renamed %d labels, pins and power symbols in %s.", len(r.Labels), fileList(sheets))
	if len(r.Left) > 0 {
		head += fmt.Sprintf(" Other nets of the same bare name were left alone: %s.", strings.Join(r.Left, ", "))
	}
	return answer(head, notes), nil
}

// allLines refuses a design that KiCad does not read for a line's length: kicad-cli
// says no more than that it does not load.
func allLines(d *sch.Design) error {
	for _, name := range d.FileNames() {
		if err := longLine(name, d.Files[name].Doc.Source(), noLineBytes-1); err != nil {
			return err
		}
	}
	return nil
}

// ownSheet takes the path of a sheet of the design off a name.
func ownSheet(d *sch.Design, name string) (sheet, bare string) {
	for _, in := range d.Sheets {
		if in.Parent != nil && len(in.Name) > len(sheet) && strings.HasPrefix(name, in.Name) {
			sheet = in.Name
		}
	}
	return sheet, name[len(sheet):]
}

// free refuses a new name that a net has already: KiCad joins nets of one name. What
// else would join, through labels and sheets, the netlist after the edit shows.
func free(list *kicadcli.Netlist, r sch.Rename) error {
	for _, n := range list.Nets {
		for _, names := range r.Nets {
			if sch.Plain(n.Name) == sch.Plain(names[1]) {
				return tool.Errorf(tool.Failed, "refused: a net %s exists already (%s); two nets of one name are one net in KiCad, so the rename would connect them. Nothing was changed", n.Name, pinList(n.Pins))
			}
		}
	}
	return nil
}

// notKnown is why a change of the design is refused that cannot be judged.
func notKnown(err error) error {
	return tool.Errorf(tool.Failed, "refused: the design does not load, so it is not known what the change would connect or part; mend it first with %s. Nothing was changed. %w", toolEdit, err)
}

// onlyRenames refuses an electrical difference that is more than other names.
func onlyRenames(e electrical) error {
	if !e.moved() {
		return nil
	}
	return tool.Errorf(tool.Failed, "reverted: the rename would change what is connected to what:\n%s", e)
}

// noNets refuses an electrical difference that concerns nets at all. A part that goes
// on the board or leaves it takes its pins along: those of the parts alone are meant.
func noNets(parts []string) func(electrical) error {
	return func(e electrical) error {
		if e.onlyPinsOf(parts) {
			return nil
		}
		return tool.Errorf(tool.Failed, "reverted: the edit would change nets:\n%s", e)
	}
}

// changeDesign applies edits of sheets and carries what follows from them onto the
// board and into the project file: the names of nets, and more. All are kept, or
// none: the nets' names after the edit are kicad-cli's to say, so the sheets come
// first, and the others follow while they can still be put back.
func (b *Bench) changeDesign(ctx context.Context, c change, more ...func(*pcb.Board) ([]sexpr.Edit, error)) (string, error) {
	if err := b.base.get(ctx); err != nil {
		return "", baseFailed(err)
	}
	if _, err := b.nets(ctx); err != nil {
		return "", notKnown(err)
	}
	var told []string
	accept := c.accept
	c.accept = func(e electrical) error {
		if accept != nil {
			if err := accept(e); err != nil {
				return err
			}
		}
		return b.carryOver(ctx, e, more, &told)
	}
	notes, err := b.apply(ctx, c)
	if err != nil {
		return "", err
	}
	return strings.TrimSpace(strings.Join(append([]string{notes}, told...), "\n")), nil
}

// carryOver edits board and project file to follow the sheets. It is called while
// the sheets' edit can still be put back. Notes are what the caller has to be told.
func (b *Bench) carryOver(ctx context.Context, e electrical, more []func(*pcb.Board) ([]sexpr.Edit, error), notes *[]string) error {
	var edits []*edit
	if b.project.PCB != "" {
		ed, err := b.followBoard(ctx, e, more)
		if err != nil {
			return err
		}
		edits = append(edits, ed)
	}
	if b.project.Pro != "" && len(e.renamed) > 0 {
		ed, lost, err := b.followClasses(ctx, e)
		if err != nil {
			return err
		}
		edits = append(edits, ed)
		*notes = append(*notes, lost...)
	}
	edits = slices.DeleteFunc(edits, func(ed *edit) bool { return string(ed.old) == string(ed.new) })
	if len(edits) == 0 {
		return nil
	}
	_, err := b.apply(ctx, change{edits: edits})
	return err
}

func (b *Bench) followBoard(ctx context.Context, e electrical, more []func(*pcb.Board) ([]sexpr.Edit, error)) (*edit, error) {
	ed, err := b.newEdit(ctx, b.project.PCB)
	if err != nil {
		return nil, err
	}
	brd := pcb.Read(b.project.PCB, ed.old)
	names := map[string]string{}
	for from, to := range e.renamed {
		if brd.Has(from) {
			names[from] = to
		}
	}
	var ranges []sexpr.Edit
	if len(names) > 0 {
		if ranges, err = brd.RenameNets(names); err != nil {
			return nil, tool.Errorf(tool.Failed, "reverted: the board cannot follow: %w", err)
		}
	}
	for _, f := range more {
		r, err := f(brd)
		if err != nil {
			return nil, tool.Errorf(tool.Failed, "reverted: the board cannot follow: %w", err)
		}
		ranges = append(ranges, r...)
	}
	if ed.new, err = sexpr.Apply(ed.old, ranges); err != nil {
		return nil, tool.Errorf(tool.Failed, "reverted: %w", err)
	}
	return ed, nil
}

// followClasses keeps renamed nets in their net classes.
func (b *Bench) followClasses(ctx context.Context, e electrical) (ed *edit, lost []string, err error) {
	if ed, err = b.newEdit(ctx, b.project.Pro); err != nil {
		return nil, nil, err
	}
	ranges, patterns, err := sch.ProjectNets(b.project.Pro, ed.old, e.renamed)
	if err != nil { // KiCad passes such a file over: nothing in it counts
		ed.new = ed.old
		return ed, nil, nil //nolint:nilerr // see above
	}
	if ed.new, err = sexpr.Apply(ed.old, ranges); err != nil {
		return nil, nil, tool.Errorf(tool.Failed, "reverted: %w", err)
	}
	for _, p := range patterns {
		lost = append(lost, fmt.Sprintf("the net class pattern %q in %s no longer covers a net that was renamed: it may have lost its track widths and clearances", p, b.project.Pro))
	}
	return ed, lost, nil
}

type renameRefInput struct {
	From string `json:"from" jsonschema:"reference designator, for example R1"`
	To   string `json:"to" jsonschema:"the new one, not in use"`
}

// renameReference renames a part in the property and the instances of every unit,
// on the board, and in the names of nets that KiCad makes of references.
func (b *Bench) renameReference(ctx context.Context, in renameRefInput) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	d, err := b.design()
	if err != nil {
		return "", tool.Errorf(tool.Failed, "%w", err)
	}
	if err := allLines(d); err != nil {
		return "", err
	}
	ranges, err := d.RenameReference(in.From, in.To)
	if err != nil {
		return "", refused(err)
	}
	sheets, err := b.edits(ctx, ranges)
	if err != nil {
		return "", err
	}
	c := change{edits: sheets, accept: onlyRenames, from: in.From, to: in.To}
	if strings.HasSuffix(in.From, "?") { // the netlist leaves out open pins of a part without a number
		c.accept = func(e electrical) error {
			if e.onlyPinsOf([]string{in.To}) {
				return nil
			}
			return onlyRenames(e)
		}
	}
	notes, err := b.changeDesign(ctx, c, func(brd *pcb.Board) ([]sexpr.Edit, error) {
		if !hasFootprint(brd, in.From) {
			return nil, nil
		}
		return brd.RenameReference(in.From, in.To)
	})
	if err != nil {
		return "", err
	}
	return answer(fmt.Sprintf("Renamed %s to %s in %s.", in.From, in.To, fileList(sheets)), notes), nil
}

func hasFootprint(brd *pcb.Board, ref string) bool {
	return slices.ContainsFunc(brd.Footprints, func(f *pcb.Footprint) bool { return f.Reference == ref })
}

type setFieldInput struct {
	Reference string `json:"reference" jsonschema:"reference designator, for example R1"`
	Field     string `json:"field" jsonschema:"Value, Footprint, or the name of another field; or dnp, in_bom, on_board with the text yes or no"`
	Text      string `json:"text" jsonschema:"what it is to say"`
}

// setField sets a field of a placed part, in every unit, and on the board where the
// footprint has it.
func (b *Bench) setField(ctx context.Context, in setFieldInput) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := plainText("text", in.Text); err != nil {
		return "", err
	}
	if strings.ContainsFunc(in.Field+in.Text, unicode.IsControl) {
		return "", tool.Errorf(tool.InvalidArgument, "a field holds one line: the name or the text has a line end, a tab or another control character. Nothing was changed; send it without")
	}
	d, err := b.design()
	if err != nil {
		return "", tool.Errorf(tool.Failed, "%w", err)
	}
	if err := allLines(d); err != nil {
		return "", err
	}
	more, doubts := b.doubt(d, in)
	ranges, err := fieldEdits(d, in)
	if err != nil {
		return "", refused(err)
	}
	if len(ranges) > 0 {
		for _, m := range more {
			r, err := fieldEdits(d, m)
			if err != nil {
				return "", refused(err)
			}
			ranges = append(ranges, r...)
		}
	}
	if len(ranges) == 0 {
		return fmt.Sprintf("%s of %s is %q already; nothing was changed.", in.Field, in.Reference, in.Text), nil
	}
	sheets, err := b.edits(ctx, ranges)
	if err != nil {
		return "", err
	}
	var taken []string
	if in.Field == "on_board" {
		taken = sharing(d, in.Reference)
	}
	notes, err := b.changeDesign(ctx, change{edits: sheets, accept: noNets(taken)}, func(brd *pcb.Board) ([]sexpr.Edit, error) {
		var all []sexpr.Edit
		for _, f := range append([]setFieldInput{in}, more...) {
			r, err := fieldOnBoard(brd, f)
			if err != nil {
				return nil, err
			}
			all = append(all, r...)
		}
		return all, nil
	})
	if err != nil {
		return "", err
	}
	notes = strings.Trim(strings.Join(append([]string{notes}, doubts...), "\n"), "\n")
	return answer(fmt.Sprintf("Set %s of %s to %q in %s.", in.Field, in.Reference, in.Text, fileList(sheets)), notes), nil
}

// sharing are the parts that are uses of the same symbols as a part: in a sheet that
// is used several times they change with it.
func sharing(d *sch.Design, ref string) []string {
	part, err := d.Find(ref)
	if err != nil {
		return nil
	}
	var refs []string
	for _, p := range d.Parts() {
		if slices.ContainsFunc(p.Units, func(u sch.Placed) bool {
			return slices.ContainsFunc(part.Units, func(own sch.Placed) bool { return own.Symbol == u.Symbol })
		}) {
			refs = append(refs, p.Ref)
		}
	}
	return refs
}

// fieldOnBoard makes the footprint follow, as KiCad's "update board from schematic"
// does: else DRC finds that part and footprint differ.
func fieldOnBoard(brd *pcb.Board, in setFieldInput) ([]sexpr.Edit, error) {
	if !hasFootprint(brd, in.Reference) {
		return nil, nil
	}
	f, err := brd.Find(in.Reference)
	if err != nil {
		return nil, err
	}
	switch in.Field {
	case "dnp":
		return attribute(brd.Name, f, "dnp", in.Text == "yes"), nil
	case "in_bom":
		return attribute(brd.Name, f, "exclude_from_bom", in.Text == "no"), nil
	case "on_board", "Footprint":
		return nil, nil
	}
	if !slices.ContainsFunc(f.Fields, func(have pcb.Field) bool { return have.Name == in.Field }) {
		return nil, nil
	}
	return brd.SetField(in.Reference, in.Field, in.Text)
}

// attribute puts a word into a footprint's list of attributes, or takes it out.
// Format: https://dev-docs.kicad.org/en/file-formats/sexpr-intro/#_footprint
func attribute(file string, f *pcb.Footprint, word string, on bool) []sexpr.Edit {
	src := f.Node.Doc().Source()
	attr := f.Node.Get("attr")
	if !attr.OK() {
		if !on {
			return nil
		}
		at := f.Node.End() - 1 // the closing parenthesis
		return []sexpr.Edit{{File: file, Start: at, End: at, New: "\t(attr " + word + ")\n\t"}}
	}
	n := 0
	var at sexpr.Node
	for ; attr.Arg(n).OK(); n++ {
		if attr.Arg(n).Text() == word {
			at = attr.Arg(n)
		}
	}
	switch {
	case on == at.OK():
		return nil
	case on:
		end := attr.End() - 1
		return []sexpr.Edit{{File: file, Start: end, End: end, New: " " + word}}
	case n == 1: // an empty list is none
		at = attr
	}
	start := at.Start()
	for start > 0 && strings.IndexByte(" \t\r\n", src[start-1]) >= 0 {
		start--
	}
	return []sexpr.Edit{{File: file, Start: start, End: at.End(), Old: string(src[start:at.End()])}}
}

func fieldEdits(d *sch.Design, in setFieldInput) ([]sexpr.Edit, error) {
	switch in.Field {
	case "dnp", "in_bom", "on_board":
		if in.Text != "yes" && in.Text != "no" {
			return nil, &sch.EditError{Kind: sch.BadName, Detail: fmt.Sprintf("%s is yes or no, not %q", in.Field, in.Text)}
		}
		return d.SetFlag(in.Reference, in.Field, in.Text == "yes")
	case "Reference":
		return nil, &sch.EditError{Kind: sch.BadName, Detail: "a reference stands in more than one place; use " + toolRenameRef}
	}
	return d.SetProperty(in.Reference, in.Field, in.Text)
}

// refused is a refused edit of package sch as the model reads it.
func refused(err error) error {
	e, ok := errors.AsType[*sch.EditError](err)
	if !ok {
		return tool.Errorf(tool.Failed, "%w", err)
	}
	text := "refused: " + strings.TrimPrefix(e.Error(), "sch: ")
	if len(e.Candidates) > 0 && !strings.Contains(text, e.Candidates[0]) {
		text += ": " + strings.Join(e.Candidates, ", ")
	}
	return tool.Errorf(tool.Failed, "%s. Nothing was changed", text)
}

func fileList(edits []*edit) string {
	names := map[string]bool{}
	for _, e := range edits {
		names[e.name] = true
	}
	return strings.Join(slices.Sorted(maps.Keys(names)), ", ")
}
