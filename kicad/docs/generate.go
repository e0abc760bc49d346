// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/pcb"
	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// The documents that [Generate] makes, in the docs folder.
const (
	SpecName       = "SPEC.md"
	BOMName        = "BOM.md"
	PinoutName     = "PINOUT.md"
	SubsystemsName = "SUBSYSTEMS.md"
	LayoutName     = "LAYOUT.md"
	DecisionsName  = "DECISIONS.md"
	ChangelogName  = "CHANGELOG.md"
)

// A Page is a document that was generated.
type Page struct {
	Name string // without a folder
	Text string
	// Own tells that the page belongs to people once it is there: it is never made anew.
	Own bool

	design *Design // by which a page is repaired that a run has edited; nil for a page that Generate did not make
}

// Generate makes the documents of a design. The same design gives the same bytes. board is nil where there is none.
func Generate(name string, d *Design, board *pcb.Board) []Page {
	return []Page{
		{SpecName, spec(name), true, d},
		{BOMName, d.bomPage(name), false, d},
		{PinoutName, d.pinoutPage(name), false, d},
		{SubsystemsName, d.subsystemsPage(name), false, d},
		{LayoutName, layoutPage(name, board), false, d},
		{DecisionsName, "# " + name + ": decisions\n\nOne line a decision, the newest last; lines are never changed.\n\n", true, d},
		{ChangelogName, "# Changelog\n\n", true, d},
	}
}

func page(lines ...string) string { return strings.Join(lines, "\n") + "\n" }

const madeBy = "<!-- Made by fiducial init from the schematic. When the design changes, repair this page rather than make it anew: what you added stays then. -->"

func spec(name string) string {
	return page("# "+name+": specification", "", "## Purpose", "", "What the board is for, and for whom.", "",
		"## Budgets", "", "Supply, current, size, cost: a number, its unit, and where it comes from.", "",
		"## "+constraintsHeading, "", "Each constraint of "+RegistryName+" is named here by its key.", "",
		"| Key | Constraint | Source |", "|-----|------------|--------|")
}

const (
	constraintsHeading = "Constraints"
	// RegistryName is the file of the docs folder that holds the constraints, see package constraint.
	RegistryName = "constraints.json"
)

func (d *Design) bomPage(name string) string {
	lines := []string{"# " + name + ": bill of materials", "", madeBy, ""}
	listed := slices.DeleteFunc(slices.Clone(d.Parts), func(p Part) bool { return !p.inBOM() })
	if len(listed) == 0 {
		return page(append(lines, "The schematic has no part yet.")...)
	}
	return page(append(lines, partLines(group(listed), "")...)...)
}

// partLines is a table of parts; noMPN stands where no part number is known.
func partLines(groups [][]Part, noMPN string) []string {
	marks := slices.ContainsFunc(groups, func(g []Part) bool { return g[0].DNP })
	header := []string{"Refdes", "Qty", "Value", "Footprint", "MPN", "Description"}
	if marks {
		header = append(header, "Notes")
	}
	rows := make([][]string, 0, len(groups))
	for _, g := range groups {
		refs := make([]string, 0, len(g))
		for _, p := range g {
			refs = append(refs, p.Ref)
		}
		p := g[0]
		mpn := p.MPN()
		if mpn == "" {
			mpn = noMPN
		}
		row := []string{strings.Join(refs, ", "), strconv.Itoa(len(g)), escape(p.Value), escape(p.Footprint), escape(mpn), escape(p.Field("Description"))}
		if marks {
			note := ""
			if p.DNP {
				note = "DNP"
			}
			row = append(row, note)
		}
		rows = append(rows, row)
	}
	return table(header, rows)
}

// pinoutOf tells the parts whose pins are worth a table: connectors and whatever has more than a few pins.
func (d *Design) pinoutOf() (parts []Part, prefixes []string) {
	for _, p := range d.Parts {
		l := letters(p.Ref)
		if slices.Contains([]string{"J", "P", "CN", "X", "U", "IC"}, l) && len(p.Pins) > 1 && !slices.Contains(prefixes, l) {
			prefixes = append(prefixes, l)
		}
	}
	done := map[string]bool{}
	for _, p := range d.Parts {
		if slices.Contains(prefixes, letters(p.Ref)) && !done[p.Ref] && len(p.Pins) > 0 {
			done[p.Ref] = true
			parts = append(parts, p)
		}
	}
	return parts, prefixes
}

func (d *Design) pinoutPage(name string) string {
	parts, prefixes := d.pinoutOf()
	lines := []string{"# " + name + ": pinout", "", madeBy}
	if len(prefixes) > 0 {
		lines = append(lines, "<!-- fiducial:pinout "+strings.Join(prefixes, " ")+" -->")
	}
	lines = append(lines, "", "Nets are spelled as in KiCad's netlist; NC is a pin left open.")
	for _, p := range parts {
		lines = append(lines, "", "## "+title(p), "")
		lines = append(lines, d.pinLines(p)...)
	}
	return page(lines...)
}

func title(p Part) string {
	if p.Value == "" {
		return p.Ref
	}
	return p.Ref + ": " + escape(p.Value)
}

// pinLines is the table of a part's pins.
func (d *Design) pinLines(p Part) []string {
	rows := make([][]string, 0, len(p.Pins))
	seen := map[string]bool{}
	for _, pin := range p.Pins {
		if !seen[pin.Number] {
			seen[pin.Number] = true
			rows = append(rows, []string{p.Ref, escape(pin.Number), escape(pin.Name), escape(d.spell(pin.Net, false)), ""})
		}
	}
	return table([]string{"Refdes", "Pin", "Name", "Net", "Use"}, rows)
}

func (d *Design) subsystemsPage(name string) string {
	lines := []string{"# " + name + ": subsystems", "", madeBy, "", "One section a sheet. Say under each what it does and why it is so."}
	for _, sheet := range d.Sheets {
		var rows [][]string
		for _, p := range d.Parts {
			if p.Sheet != sheet {
				continue
			}
			about := escape(p.Field("Description"))
			if p.DNP {
				about = strings.TrimPrefix(about+", DNP", ", ")
			}
			rows = append(rows, []string{p.Ref, escape(p.Value), about})
		}
		label := "Sheet " + escape(sheet)
		if sheet == "/" {
			label = "Root sheet"
		}
		lines = append(lines, "", "## "+label, "")
		if len(rows) == 0 {
			lines = append(lines, "No part of its own.")
			continue
		}
		lines = append(lines, table([]string{"Refdes", "Value", "Description"}, rows)...)
	}
	return page(lines...)
}

// layoutPage says what a board's file tells and seldom changes.
func layoutPage(name string, b *pcb.Board) string {
	lines := []string{"# " + name + ": layout", "", madeBy, ""}
	if b == nil {
		return page(append(lines, "There is no board yet.")...)
	}
	var copper []string
	for layer := range b.Doc.Root().Get("layers").All() {
		if id := layer.Arg(0).Text(); layer.Kind() == sexpr.List && strings.HasSuffix(id, ".Cu") {
			copper = append(copper, id)
		}
	}
	rows := [][]string{
		{"Board", escape(path.Base(b.Name))},
		{"Copper layers", fmt.Sprintf("%d: %s", len(copper), strings.Join(copper, ", "))},
		{"Thickness", b.Doc.Root().Get("general", "thickness").Arg(0).Text() + " mm"},
	}
	lines = append(lines, table([]string{"What", "Is"}, rows)...)
	return page(append(lines, "", "## Placement", "", "What has to be where, and why.", "", "## Routing", "", "Widths, clearances, pairs, planes, and why.")...)
}
