// SPDX-License-Identifier: Apache-2.0

package drawn

import (
	"fmt"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
)

// parts are the cases about symbols, their references, units, flags and fields.
func parts() []Case {
	return []Case{
		{
			Name: "units-on-two-sheets", Checks: true,
			Wrong: "Units are gathered per file, so that one part becomes two, or one unit's pins go missing.",
			Right: "U1 is one part with four pins, one unit on the root and one on the child.",
			Files: unitsOnTwoSheets(),
		},
		{
			Name: "units-twice-and-missing", Checks: true,
			Wrong: "The same unit placed twice passes for a whole part; a unit that is not placed is an error.",
			Right: "A missing unit is fine. The same unit twice is a duplicate reference: kicad-cli warns of annotation, ours names both places.",
			Files: files{
				"twice.kicad_sch": duals([2]string{"U1", "1"}, [2]string{"U1", "1"}), "missing.kicad_sch": duals([2]string{"U1", "2"}),
				"two.kicad_sch": duals([2]string{"U1", "1"}, [2]string{"U2", "2"}),
			},
		},
		{
			Name:  "duplicates-across-sheets",
			Wrong: "References are compared within one file only.",
			Right: "R1 on the root and R1 in the child are a duplicate; the warning of kicad-cli is its only sign.",
			Files: duplicatesAcross(),
		},
		{
			Name:  "references-of-odd-form",
			Wrong: "A reference is believed to be letters and digits: others are dropped from the list of parts.",
			Right: "Lower case, an underscore and letters from elsewhere are references like any other; one that begins with # is no part.",
			Files: files{"p.kicad_sch": refs("r1", "R_A2", "\u0420\u0036", "X1Y2", "#MK7"), "p.kicad_pro": pro},
		},
		{
			Name:  "annotation-is-missing",
			Wrong: "An empty reference or one with a question mark is taken for a name, or for a duplicate.",
			Right: "Each is not annotated, and kicad-cli warns.",
			Files: files{"mark.kicad_sch": refs("R?", "R2"), "letters.kicad_sch": refs("R", "R2"), "empty.kicad_sch": refs("", "R2")},
		},
		{
			Name:  "instances-of-another-project",
			Wrong: "The first reference in the file is taken, whichever project it is for.",
			Right: "The entry of this sheet's path counts: R7, although another project's entry stands in front of it.",
			Files: files{"p.kicad_sch": otherProject(), "p.kicad_pro": pro},
		},
		{
			Name:  "flags-of-parts-and-sheets",
			Wrong: "Flags on the sheet symbol are passed over; exclude from BOM, from board and not fitted are mixed up.",
			Right: "A sheet that is not fitted, or excluded, marks all its parts; a part's own flags are its own.",
			Files: flags(),
		},
		{
			Name: "lib-name-and-cache", Checks: true,
			Wrong: "The library symbol is looked up by lib_id though the file names another by lib_name.",
			Right: "lib_name wins: the part loads although no symbol of its lib_id is in the file. Without lib_symbols at all every part is gone from kicad-cli's netlist and its ERC crashes; ours names each.",
			Files: files{
				"alias.kicad_sch": swap(divider(), "\t\t(lib_id \"T:R\")\n", "\t\t(lib_name \"T:R\")\n\t\t(lib_id \"Elsewhere:Thing\")\n"),
				"wrong.kicad_sch": swap(divider(), "\t\t(lib_id \"T:R\")\n", "\t\t(lib_name \"T:Gone\")\n\t\t(lib_id \"T:R\")\n"),
				"none.kicad_sch":  without(divider(), "\t(lib_symbols\n", "\t(symbol\n"),
			},
		},
		{
			Name: "text-variables", Checks: true,
			Wrong: "Variables are shown as they are written, or an unknown one is dropped with what stands around it.",
			Right: "Variables of the project, fields of the part itself, of its sheet and title block are put in; unknown ones, those of another letter case and those of another part stay as written.",
			Files: files{
				"p.kicad_sch": variables(),
				"p.kicad_pro": "{\n  \"meta\": {\n    \"version\": 3\n  },\n  \"text_variables\": {\n    \"REV\": \"B2\",\n    \"TOL\": \"5%\"\n  }\n}\n",
			},
		},
		{
			Name:  "empty-and-long-fields",
			Wrong: "An empty value is no value, so that the part is dropped; long ones are cut.",
			Right: "R1 has an empty value, R2 one of 3000 letters, R3 a lone tilde; all three are parts.",
			Files: files{"p.kicad_sch": values(`""`, `"`+strings.Repeat("long ", 600)+`x"`, `"~"`), "p.kicad_pro": pro},
		},
		{
			Name:  "orientations",
			Wrong: "Pins of turned and mirrored symbols are looked for in the wrong place.",
			Right: "Pin 1 of each part is on the net that is named after its orientation, pin 2 is open.",
			Files: files{"p.kicad_sch": orientations(), "p.kicad_pro": pro},
		},
		{
			Name:  "pin-numbers",
			Wrong: "Pin numbers are read as numbers; two pins of one number are one.",
			Right: "Numbers are any text: A1, A+ and 01 are three pins. Two pins of one number are listed once for each net that they are on.",
			Files: files{"p.kicad_sch": pinNumbers(), "p.kicad_pro": pro},
		},
		{
			Name:  "private-and-doubled-fields",
			Wrong: "A field that is marked private is taken for one named private; of two with one name the last wins.",
			Right: "The private field has its own name; parts and nets are those of the plain sheet.",
			Files: files{"p.kicad_sch": swap(divider(), "\t\t(property \"Datasheet\"", "\t\t(property private \"Note\" \"secret\" (at 0 0 0) (effects (font (size 1.27 1.27)) (hide yes)))\n\t\t(property \"Datasheet\""), "p.kicad_pro": pro},
		},
	}
}

func unitsOnTwoSheets() files {
	s := kicadtest.NewSheet("p", 1)
	s.Symbol("T:DUAL", "U1", "DUAL", 1, 20, 20)
	c := s.Child("C", "c.kicad_sch", 40, 20)
	child := kicadtest.NewSheet("p", 500)
	child.Path = s.Path + "/" + c
	child.Symbol("T:DUAL", "U1", "DUAL", 2, 20, 20)
	return files{"p.kicad_sch": s.String(), "c.kicad_sch": child.String(), "p.kicad_pro": pro}
}

func duals(units ...[2]string) string {
	s := kicadtest.NewSheet("p", 1)
	for i, u := range units {
		s.Symbol("T:DUAL", u[0], "DUAL", int(u[1][0]-'0'), 20+float64(i)*8, 20)
	}
	return s.String()
}

func duplicatesAcross() files {
	s := kicadtest.NewSheet("p", 1)
	s.Resistor("R1", "10k", 20, 20)
	c := s.Child("C", "c.kicad_sch", 40, 20)
	child := kicadtest.NewSheet("p", 500)
	child.Path = s.Path + "/" + c
	child.Resistor("R1", "4k7", 20, 20)
	return files{"p.kicad_sch": s.String(), "c.kicad_sch": child.String(), "p.kicad_pro": pro}
}

func refs(names ...string) string {
	s := kicadtest.NewSheet("p", 1)
	for i, name := range names {
		s.Resistor(name, fmt.Sprintf("%dk", i+1), 20+float64(i)*6, 20)
	}
	return s.String()
}

func otherProject() string {
	s := kicadtest.NewSheet("p", 1)
	s.Resistor("R7", "10k", 20, 20)
	return swap(s.String(), "\t\t(instances\n", "\t\t(instances\n\t\t\t(project \"other\"\n\t\t\t\t(path \"/00000000-0000-4000-8000-0000000000aa\"\n\t\t\t\t\t(reference \"R99\")\n\t\t\t\t\t(unit 1)\n\t\t\t\t)\n\t\t\t)\n")
}

func flags() files {
	s := kicadtest.NewSheet("p", 1)
	s.Resistor("R1", "1k", 10, 20)
	s.Resistor("R2", "1k", 14, 20)
	dnp := s.Child("DNP", "a.kicad_sch", 20, 20)
	bom := s.Child("NOBOM", "b.kicad_sch", 40, 20)
	off := s.Child("OFF", "c.kicad_sch", 60, 20)
	text := s.String()
	mark := func(id, old, now string) {
		i := strings.Index(text, id)
		head, tail := text[:i], text[i:]
		j := strings.LastIndex(head, "\t(sheet\n")
		text = head[:j] + swap(head[j:], old, now) + tail
	}
	mark(dnp, "(dnp no)", "(dnp yes)")
	mark(bom, "(in_bom yes)", "(in_bom no)")
	mark(off, "(on_board yes)", "(on_board no)")
	text = swap(text, "(dnp no)", "(dnp yes)") // R1
	f := files{"p.kicad_sch": text, "p.kicad_pro": pro}
	for i, c := range []struct{ file, id, ref string }{{"a.kicad_sch", dnp, "R11"}, {"b.kicad_sch", bom, "R12"}, {"c.kicad_sch", off, "R13"}} {
		child := kicadtest.NewSheet("p", 500+100*i)
		child.Path = s.Path + "/" + c.id
		child.Resistor(c.ref, "2k", 20, 20)
		f[c.file] = child.String()
	}
	return f
}

// without cuts from the first text up to the second.
func without(in, from, to string) string {
	head, tail, _ := strings.Cut(in, from)
	_, rest, _ := strings.Cut(tail, "\n"+to)
	return head + to + rest
}

func variables() string {
	s := kicadtest.NewSheet("p", 1)
	for i, v := range []string{"1k ${TOL}", "${REV}", "${REFERENCE} here", "${UNKNOWN}", "${R1:Value}", "$5 {x}", "${Datasheet}", "${SHEETNAME}|${SHEETPATH}", "${DNP}", "${tol}", "${R2:VALUE}"} {
		s.Resistor(fmt.Sprintf("R%d", i+1), v, 10+float64(i)*6, 20)
	}
	return s.String()
}

// orientations places T:R in all its orientations, with a label at the place where pin 1 is.
func orientations() string {
	s := kicadtest.NewSheet("p", 1)
	i := 0
	var edits [][2]string
	for _, angle := range []int{0, 90, 180, 270} {
		for _, mirror := range []string{"", "x", "y"} {
			x, y := 10+float64(i%4)*10, 10+float64(i/4)*10
			dx, dy := 0.0, -1.5
			for range angle / 90 { // counter-clockwise on the screen
				dx, dy = dy, -dx
			}
			switch mirror { // after the turn
			case "x":
				dy = -dy
			case "y":
				dx = -dx
			}
			s.Resistor(fmt.Sprintf("R%d", i+1), "1k", x, y)
			s.Label("label", fmt.Sprintf("A%d%s", angle, mirror), x+dx, y+dy)
			old := fmt.Sprintf("(at %.2f %.2f 0)\n\t\t(unit", x*2.54, y*2.54)
			now := fmt.Sprintf("(at %.2f %.2f %d)\n\t\t(unit", x*2.54, y*2.54, angle)
			if mirror != "" {
				now = fmt.Sprintf("(at %.2f %.2f %d)\n\t\t(mirror %s)\n\t\t(unit", x*2.54, y*2.54, angle, mirror)
			}
			edits = append(edits, [2]string{old, now})
			i++
		}
	}
	text := s.String()
	for _, e := range edits {
		text = swap(text, e[0], e[1])
	}
	return text
}

const effects = "(effects (font (size 1.27 1.27)))"

// symbol is a library symbol with pins down its left side, one grid unit apart, their ends at x = -2.
func symbol(name, ref string, pins ...[3]string) string {
	var b strings.Builder
	fmt.Fprintf(&b, "\t\t(symbol \"T:%s\"\n\t\t\t(exclude_from_sim no)\n\t\t\t(in_bom yes)\n\t\t\t(on_board yes)\n\t\t\t(property \"Reference\" %q (at 0 0 0) %s)\n\t\t\t(property \"Value\" %q (at 0 0 0) %s)\n\t\t\t(symbol \"%s_1_1\"\n",
		name, ref, effects, name, effects, name)
	for i, p := range pins {
		fmt.Fprintf(&b, "\t\t\t\t(pin %s line (at -5.08 %.2f 0) (length 2.54) (name %q %s) (number %q %s))\n", p[0], -2.54*float64(i), p[1], effects, p[2], effects)
	}
	b.WriteString("\t\t\t)\n\t\t)\n")
	return b.String()
}

func pinNumbers() string {
	s := kicadtest.NewSheet("p", 1)
	s.Extra = symbol("ODD", "U", [3]string{"passive", "a", "A1"}, [3]string{"passive", "b", "A+"}, [3]string{"passive", "c", "01"},
		[3]string{"passive", "d", "7"}, [3]string{"passive", "e", "7"})
	s.Symbol("T:ODD", "U1", "ODD", 1, 20, 20)
	for i, l := range []string{"N1", "N2", "N3", "N4", "N4"} {
		s.Label("label", l, 18, 20+float64(i))
	}
	return s.String()
}
