// SPDX-License-Identifier: Apache-2.0

package drawn

import (
	"fmt"

	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
)

// nets are the cases about names of nets and what joins them.
func nets() []Case {
	return []Case{
		{
			Name:  "names-of-one-net",
			Wrong: "The label that stands first names the net.",
			Right: "Global names win over local ones; among equals, power symbols and global labels alike, the alphabet decides. All their pins are one net.",
			Files: files{"p.kicad_sch": severalNames(), "p.kicad_pro": pro},
		},
		{
			Name:  "escaped-names",
			Wrong: "Escapes such as {slash} are shown, written twice or compared as they stand.",
			Right: "Each escape and the sign it stands for are one name; only the slash stays escaped in the net's name.",
			Files: files{"p.kicad_sch": escaped(), "p.kicad_pro": pro},
		},
		{
			Name:  "overbars",
			Wrong: "~RESET of KiCad 5, ~{RESET} and RESET are taken for the same.",
			Right: "They are three nets.",
			Files: files{"p.kicad_sch": named("~{RESET}", "RESET", "~RESET", "A~{B}C"), "p.kicad_pro": pro},
		},
		{
			Name:  "power-names",
			Wrong: "A power net is named after its library symbol, with the sheet in front, or PWR_FLAG is a net.",
			Right: "The placed Value names the net, whatever its letters, on every sheet the same; a global label of that name is on it, a local one in the child too.",
			Files: powerNames(),
		},
		{
			Name:  "hidden-power-pins",
			Wrong: "Hidden power inputs are not seen to be connected.",
			Right: "A hidden power input joins the net of its own name in the whole design.",
			Files: files{"p.kicad_sch": hiddenPower(), "p.kicad_pro": pro},
		},
		{
			Name:  "stacked-pins",
			Wrong: "Pins that lie on each other are apart until a wire joins them.",
			Right: "Two pins in one place are one net without any wire, whether of one part or of two.",
			Files: files{"p.kicad_sch": stacked(), "p.kicad_pro": pro},
		},
		{
			Name: "bus-members", Checks: true,
			Wrong: "Labels on a bus are taken for nets; members are not found.",
			Right: "D[0..3] is no net: /D0 and /D3 are, each with the pins at both ends of the bus. A label D1 that is on no bus is the same net, since the name is the same.",
			Files: files{"p.kicad_sch": bus("D[0..3]", "D0", "D3", "D1"), "p.kicad_pro": pro},
		},
		{
			Name:  "bus-groups",
			Wrong: "Group members such as USB.DP are not known, or are split at the point.",
			Right: "USB{DP DM} has the members /USB.DP and /USB.DM. A bus {A B} without a prefix has /A and /B. An alias of the project's or sheet's has its members.",
			Files: files{
				"prefix.kicad_sch": bus("USB{DP DM}", "USB.DP", "USB.DM", "USB.DP"), "bare.kicad_sch": bus("{A B}", "A", "B", "A"),
				"alias.kicad_sch": swap(bus("{MEM}", "CLK", "CS", "CLK"), "\t(paper \"A4\")\n", "\t(paper \"A4\")\n\t(bus_alias \"MEM\"\n\t\t(members \"CLK\" \"CS\")\n\t)\n"),
			},
		},
		{
			Name:  "bus-through-a-sheet",
			Wrong: "A bus that goes into a sheet leaves its members apart.",
			Right: "/D0 joins the part on the root and that in the child through the pin D[0..1].",
			Files: busSheet(),
		},
		{
			Name:  "bus-not-split",
			Wrong: "An entry in the middle of a bus that is one long line is taken for joined.",
			Right: "kicad-cli decides; labels of one name join the wires all the same.",
			Files: files{"p.kicad_sch": busNotSplit(), "p.kicad_pro": pro},
		},
		{
			Name: "no-connect-flags", Checks: true,
			Wrong: "A net with a no-connect flag is a net with a name.",
			Right: "An open pin's net is called unconnected-(...). A flag on a wire between two pins is an error of ERC, and the net stays.",
			Files: files{"p.kicad_sch": noConnects(), "p.kicad_pro": pro},
		},
		{
			Name: "net-classes", Checks: true,
			Wrong: "Directive labels and rule areas are taken for labels that name nets.",
			Right: "A netclass flag names nothing; classes by assignment and by pattern change no net.",
			Files: files{
				"p.kicad_sch": swap(divider(), "\t(sheet_instances", "\t(netclass_flag \"\"\n\t\t(length 2.54)\n\t\t(shape round)\n\t\t(at 104.14 54.61 0)\n\t\t(fields_autoplaced yes)\n\t\t"+effects+"\n\t\t(uuid \"5eed0000-0000-4000-8000-0000000000f1\")\n\t\t(property \"Netclass\" \"Wide\" (at 104.14 50 0) "+effects+")\n\t)\n\t(sheet_instances"),
				"p.kicad_pro": "{\"net_settings\": {\"classes\": [{\"name\": \"Default\"}, {\"name\": \"Wide\"}], \"netclass_assignments\": {\"/OUT\": [\"Wide\"]}, \"netclass_patterns\": [{\"netclass\": \"Wide\", \"pattern\": \"/O*\"}]}}\n",
			},
		},
		{
			Name: "wires-that-nearly-meet", Checks: true,
			Wrong: "Ends are joined within a tolerance.",
			Right: "A wire that ends 0.01 mm beside a pin is not on it; one that overlaps another by a part of its length joins it where an end lies on it.",
			Files: files{"near.kicad_sch": near(40.01 / 2.54), "on.kicad_sch": near(40 / 2.54)},
		},
		{
			Name:  "labels-beside-wires",
			Wrong: "A label near a wire is taken to be on it; two labels of different names on one wire are two nets.",
			Right: "A label that touches nothing is dangling and names nothing. Of two names on one wire one is the net's, and ERC warns.",
			Files: files{"p.kicad_sch": labelsBeside(), "p.kicad_pro": pro},
		},
	}
}

func severalNames() string {
	s := kicadtest.NewSheet("p", 1)
	two(s, "label", "ALPHA", "R1", "R2", 10, 20)
	s.Label("global_label", "BETA", 11, 18.5)
	two(s, "global_label", "ABLE", "R3", "R4", 20, 20)
	s.Power("#PWR01", "ZETA", 21, 18.5)
	two(s, "label", "B", "R5", "R6", 30, 20)
	s.Label("label", "A", 31, 18.5)
	return s.String()
}

func escaped() string {
	s := kicadtest.NewSheet("p", 1)
	for i, pair := range [][2]string{{"A{slash}B", "A/B"}, {"C{lt}D", "C<D"}, {"E{colon}F", "E:F"}, {"G{dblquote}H", `G"H`}, {"I{backslash}J", `I\J`}, {"K{brace}", "K{"}} {
		x := 10 + float64(i)*8
		s.Resistor(fmt.Sprintf("R%d", 2*i+1), "1k", x, 20)
		s.Label("label", pair[0], x, 18.5)
		s.NoConnect(x, 21.5)
		s.Resistor(fmt.Sprintf("R%d", 2*i+2), "1k", x+4, 20)
		s.Label("label", pair[1], x+4, 18.5)
		s.NoConnect(x+4, 21.5)
	}
	return s.String()
}

func powerNames() files {
	s := kicadtest.NewSheet("p", 1)
	for i, n := range []string{"+5V", "vcc", "V/2", "-12 V", "\u03bcV"} {
		x := 10 + float64(i)*6
		s.Resistor(fmt.Sprintf("R%d", i+1), "1k", x, 20)
		s.Power(fmt.Sprintf("#PWR%02d", i+1), n, x, 18.5)
		s.NoConnect(x, 21.5)
	}
	s.Resistor("R9", "1k", 50, 20)
	s.Label("global_label", "+5V", 50, 18.5)
	s.NoConnect(50, 21.5)
	c := s.Child("C", "c.kicad_sch", 20, 40)
	child := kicadtest.NewSheet("p", 500)
	child.Path = s.Path + "/" + c
	child.Resistor("R20", "1k", 20, 20)
	child.Power("#PWR20", "+5V", 20, 18.5)
	child.Label("label", "vcc", 20, 21.5)
	return files{"p.kicad_sch": s.String(), "c.kicad_sch": child.String(), "p.kicad_pro": pro}
}

func hiddenPower() string {
	s := kicadtest.NewSheet("p", 1)
	s.Extra = swap(symbol("CHIP", "U", [3]string{"passive", "a", "1"}, [3]string{"power_in", "VDD", "2"}), "(length 2.54) (name \"VDD\"", "(length 2.54) (hide yes) (name \"VDD\"")
	s.Symbol("T:CHIP", "U1", "CHIP", 1, 20, 20)
	s.Symbol("T:CHIP", "U2", "CHIP", 1, 30, 20)
	s.Resistor("R1", "1k", 40, 20)
	s.Label("global_label", "VDD", 40, 18.5)
	s.Resistor("R2", "1k", 50, 20)
	s.Label("label", "VDD", 50, 18.5)
	return s.String()
}

func stacked() string {
	s := kicadtest.NewSheet("p", 1)
	s.Resistor("R1", "1k", 20, 20)
	s.Resistor("R2", "1k", 20, 23) // its pin 1 lies on pin 2 of R1
	s.Extra = symbol("PAIR", "U", [3]string{"passive", "a", "1"}, [3]string{"passive", "b", "2"})
	s.Extra = swap(s.Extra, "(at -5.08 -2.54 0)", "(at -5.08 -0.00 0)")
	s.Symbol("T:PAIR", "U1", "PAIR", 1, 40, 20)
	return s.String()
}

// bus is two ends of a bus that a label names, with the first two members at both ends, and a label apart.
func bus(label, first, second, apart string) string {
	s := kicadtest.NewSheet("p", 1)
	line := func(x1, y1, x2, y2 float64, n int) {
		s.Add("\t(bus\n\t\t(pts\n\t\t\t(xy %.2f %.2f) (xy %.2f %.2f)\n\t\t)\n\t\t(stroke\n\t\t\t(width 0)\n\t\t\t(type default)\n\t\t)\n\t\t(uuid \"5eed0000-0000-4000-8000-00000000b0%02d\")\n\t)\n",
			x1*2.54, y1*2.54, x2*2.54, y2*2.54, n)
	}
	line(20, 30, 30, 30, 1)
	line(30, 30, 40, 30, 2)
	line(40, 30, 50, 30, 3)
	s.Label("label", label, 25, 30)
	n := 10
	for i, x := range []float64{20, 30, 40, 50} {
		n++
		s.Add("\t(bus_entry\n\t\t(at %.2f %.2f)\n\t\t(size 2.54 -2.54)\n\t\t(stroke\n\t\t\t(width 0)\n\t\t\t(type default)\n\t\t)\n\t\t(uuid \"5eed0000-0000-4000-8000-00000000b0%02d\")\n\t)\n", x*2.54, 30*2.54, n)
		s.Wire(x+1, 29, x+1, 26)
		s.Resistor(fmt.Sprintf("R%d", i+1), "1k", x+1, 24.5)
		s.NoConnect(x+1, 23)
		member := first
		if i == 1 || i == 2 {
			member = second
		}
		s.Label("label", member, x+1, 28)
	}
	s.Resistor("R9", "1k", 70, 20)
	s.Label("label", apart, 70, 18.5)
	s.NoConnect(70, 21.5)
	return s.String()
}

func busSheet() files {
	s := kicadtest.NewSheet("p", 1)
	c := s.Child("C", "c.kicad_sch", 40, 29, "D[0..1]")
	s.Add("\t(bus\n\t\t(pts\n\t\t\t(xy %.2f %.2f) (xy %.2f %.2f)\n\t\t)\n\t\t(stroke\n\t\t\t(width 0)\n\t\t\t(type default)\n\t\t)\n\t\t(uuid \"5eed0000-0000-4000-8000-00000000b001\")\n\t)\n", 20*2.54, 30*2.54, 40*2.54, 30*2.54)
	s.Label("label", "D[0..1]", 25, 30)
	s.Add("\t(bus_entry\n\t\t(at %.2f %.2f)\n\t\t(size 2.54 -2.54)\n\t\t(stroke\n\t\t\t(width 0)\n\t\t\t(type default)\n\t\t)\n\t\t(uuid \"5eed0000-0000-4000-8000-00000000b002\")\n\t)\n", 20*2.54, 30*2.54)
	s.Wire(21, 29, 21, 26)
	s.Label("label", "D0", 21, 28)
	s.Resistor("R1", "1k", 21, 24.5)
	s.NoConnect(21, 23)
	child := kicadtest.NewSheet("p", 500)
	child.Path = s.Path + "/" + c
	child.Add("\t(bus\n\t\t(pts\n\t\t\t(xy %.2f %.2f) (xy %.2f %.2f)\n\t\t)\n\t\t(stroke\n\t\t\t(width 0)\n\t\t\t(type default)\n\t\t)\n\t\t(uuid \"5eed0000-0000-4000-8000-00000000b003\")\n\t)\n", 20*2.54, 30*2.54, 30*2.54, 30*2.54)
	child.Label("hierarchical_label", "D[0..1]", 30, 30)
	child.Add("\t(bus_entry\n\t\t(at %.2f %.2f)\n\t\t(size 2.54 -2.54)\n\t\t(stroke\n\t\t\t(width 0)\n\t\t\t(type default)\n\t\t)\n\t\t(uuid \"5eed0000-0000-4000-8000-00000000b004\")\n\t)\n", 20*2.54, 30*2.54)
	child.Wire(21, 29, 21, 26)
	child.Label("label", "D0", 21, 28)
	child.Resistor("R2", "1k", 21, 24.5)
	child.NoConnect(21, 23)
	return files{"p.kicad_sch": s.String(), "c.kicad_sch": child.String(), "p.kicad_pro": pro}
}

func busNotSplit() string {
	text := bus("D[0..3]", "D0", "D3", "D1")
	for _, x := range []float64{30, 40} { // one line from end to end
		text = swap(text, fmt.Sprintf("(xy %.2f 76.20)", x*2.54), "(xy 127.00 76.20)")
	}
	return text
}

func noConnects() string {
	s := kicadtest.NewSheet("p", 1)
	s.Resistor("R1", "1k", 20, 20)
	s.NoConnect(20, 18.5)
	s.Resistor("R2", "1k", 30, 20)
	s.Wire(30, 18.5, 34, 18.5)
	s.NoConnect(34, 18.5)
	s.Resistor("R3", "1k", 40, 20)
	s.Resistor("R4", "1k", 44, 20)
	s.Wire(40, 18.5, 42, 18.5)
	s.Wire(42, 18.5, 44, 18.5)
	s.NoConnect(42, 18.5)
	return s.String()
}

func near(x float64) string {
	s := kicadtest.NewSheet("p", 1)
	s.Resistor("R1", "1k", 40/2.54, 20)
	s.Wire(x, 18.5, 30, 18.5)
	s.Resistor("R2", "1k", 30, 20)
	s.Label("label", "N", 25, 18.5)
	return s.String()
}

func labelsBeside() string {
	s := kicadtest.NewSheet("p", 1)
	two(s, "label", "FIRST", "R1", "R2", 10, 20)
	s.Label("label", "SECOND", 13, 18.5)
	s.Label("label", "NOWHERE", 12, 17)
	return s.String()
}
