// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

// bom is docs/BOM.md: one row for every kind of part.
func bom(parts []part) string {
	type kind struct{ value, footprint, mpn, about string }
	var kinds []kind
	refs := map[kind][]string{}
	for _, p := range sorted(parts) {
		k := kind{p.value, p.footprint, p.mpn, p.about}
		if refs[k] == nil {
			kinds = append(kinds, k)
		}
		refs[k] = append(refs[k], p.ref)
	}
	t := [][]string{{"Refdes", "Qty", "Value", "Footprint", "MPN", "Description"}}
	for _, k := range kinds {
		t = append(t, []string{strings.Join(refs[k], ", "), fmt.Sprint(len(refs[k])), k.value, k.footprint, k.mpn, k.about})
	}
	return fmt.Sprintf("# Beacon: bill of materials\n\nRevision %s. Parts without an MPN may come from any maker.\n\n%s", revision, markdown(t))
}

// pinout is docs/PINOUT.md: the net of every pin of connectors and
// microcontroller, spelled as in KiCad's netlist.
func pinout(parts []part) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Beacon: pinout\n\nRevision %s. Nets are spelled as in KiCad's netlist; NC is a pin left open.\n", revision)
	for _, p := range sorted(parts) {
		if p.use == nil {
			continue
		}
		fmt.Fprintf(&b, "\n## %s: %s\n\n%s", p.ref, p.about, markdown(pinTable(p)))
	}
	return b.String()
}

func pinTable(p part) [][]string {
	t := [][]string{{"Refdes", "Pin", "Name", "Net", "Use"}}
	pins := slices.Clone(p.pins)
	slices.SortFunc(pins, func(a, b pin) int { return natural(a.number, b.number) })
	for _, q := range pins {
		t = append(t, []string{p.ref, q.number, q.name, p.nets[q.number], p.use[q.number]})
	}
	return t
}

func sorted(parts []part) []part {
	out := slices.Clone(parts)
	slices.SortFunc(out, func(a, b part) int { return natural(a.ref, b.ref) })
	return out
}

// natural puts R2 before R10.
func natural(a, b string) int {
	la, lb := strings.TrimRight(a, "0123456789"), strings.TrimRight(b, "0123456789")
	if la != lb {
		return strings.Compare(la, lb)
	}
	if len(a) != len(b) {
		return len(a) - len(b)
	}
	return strings.Compare(a, b)
}

// markdown is a table with its columns lined up; the first row is the head.
func markdown(rows [][]string) string {
	width := make([]int, len(rows[0]))
	for _, row := range rows {
		for i, cell := range row {
			width[i] = max(width[i], len(cell))
		}
	}
	var b strings.Builder
	for i, row := range rows {
		for j, cell := range row {
			fmt.Fprintf(&b, "| %-*s ", width[j], cell)
		}
		b.WriteString("|\n")
		if i > 0 {
			continue
		}
		for _, w := range width {
			b.WriteString("|" + strings.Repeat("-", w+2))
		}
		b.WriteString("|\n")
	}
	return b.String()
}
