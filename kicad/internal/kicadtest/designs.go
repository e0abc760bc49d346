// SPDX-License-Identifier: Apache-2.0

package kicadtest

// Divider is a root sheet with R1 and R2 in series between VCC and GND, the middle labelled OUT. It matches [Board],
// but for footprints. The rails carry no power flag, so ERC finds VCC and GND not driven.
func Divider(project string) *Sheet {
	s := NewSheet(project, 1)
	s.Resistor("R1", "10k", 40, 20)
	s.Resistor("R2", "4k7", 40, 23)
	s.Power("#PWR01", "VCC", 40, 18.5)
	s.Power("#PWR02", "GND", 40, 24.5)
	s.Wire(40, 21.5, 42, 21.5)
	s.Label("label", "OUT", 42, 21.5)
	return s
}

// Shared is a project of a root sheet and one child file that it uses twice, as A and as B. In the root R1 is wired to
// A's pin SIG and R2 to B's, with a label SIG_A at the first. In the child R10 (A) or R20 (B) hangs on the hierarchical
// label SIG and a local label INNER, and a global label BUS is on its other end.
func Shared(project string) map[string]string {
	root := NewSheet(project, 1)
	root.Resistor("R1", "1k", 18, 23.5)
	root.Wire(18, 22, 20, 22)
	root.Label("label", "SIG_A", 19, 22)
	a := root.Child("A", "blk.kicad_sch", 20, 21, "SIG")
	root.Resistor("R2", "1k", 38, 23.5)
	root.Wire(38, 22, 40, 22)
	b := root.Child("B", "blk.kicad_sch", 40, 21, "SIG")
	root.NoConnect(18, 25)
	root.NoConnect(38, 25)

	blk := NewSheet(project, 1000)
	blk.Resistor("R10", "10k", 20, 20, Instance{root.Path + "/" + a, "R10"}, Instance{root.Path + "/" + b, "R20"})
	blk.Label("hierarchical_label", "SIG", 20, 18.5)
	blk.Wire(20, 18.5, 24, 18.5)
	blk.Label("label", "INNER", 24, 18.5)
	blk.Label("global_label", "BUS", 20, 21.5)
	return map[string]string{
		project + ".kicad_sch": root.String(), "blk.kicad_sch": blk.String(), project + ".kicad_pro": "{\n}\n",
	}
}
