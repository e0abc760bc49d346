// SPDX-License-Identifier: Apache-2.0

package drawn

import (
	"fmt"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
)

// sheets are the cases about the tree of sheets.
func sheets() []Case {
	return []Case{
		{
			Name: "shared-sheet", Checks: true,
			Wrong: "A file that is used twice is read once, so that half of the parts are missing.",
			Right: "R10 and R20 are two parts of one symbol; the nets have the paths of both uses.",
			Files: kicadtest.Shared("p"), Inputs: []string{"p.kicad_sch"},
		},
		{
			Name:  "shared-sheet-without-a-path",
			Wrong: "A use for which the symbol has no entry is left out, or gets a reference made up.",
			Right: "The first entry counts: two parts are called R10, and kicad-cli warns of annotation.",
			Files: sharedWithoutPath(), Inputs: []string{"p.kicad_sch"},
		},
		{
			Name: "child-is-missing", Checks: true,
			Wrong: "Exit code 0 and a netlist, so all is well.",
			Right: "kicad-cli says nothing and the parts are absent; ours names the sheet and the file.",
			Files: tree("gone.kicad_sch", "other.kicad_sch", ""), Inputs: []string{"p.kicad_sch"},
		},
		{
			Name: "child-is-broken", Checks: true,
			Wrong: "A child that does not load is skipped without a word.",
			Right: "The root loads, the child does not: newer, empty, a board, a bracket missing.",
			Files: brokenChildren(),
		},
		{
			Name: "child-is-newer", Checks: true,
			Wrong: "One sheet was saved by the next KiCad; the others load, so its parts leave the list without a word.",
			Right: "kicad-cli 9 leaves R2 out; ours names the format of c.kicad_sch.",
			Files: newerChild(), Inputs: []string{"p.kicad_sch"},
		},
		{
			Name: "child-in-folders", Checks: true,
			Wrong: "Paths are taken from the root's folder rather than from that of the file that names them; a folder with a blank or a sign is not found.",
			Right: "sub one/c.kicad_sch is read, and d.kicad_sch beside it by the child's own path; a path with .. inside the repository too.",
			Files: folders(), Inputs: []string{"project/p.kicad_sch"},
		},
		{
			Name:  "child-by-link",
			Wrong: "A link is not followed, or is replaced by a file when it is written.",
			Right: "A sheet that is a symbolic link inside the folder loads like the file.",
			Files: tree("link.kicad_sch", "real/c.kicad_sch", "R2"), Links: map[string]string{"link.kicad_sch": "real/c.kicad_sch"}, Inputs: []string{"p.kicad_sch"},
		},
		{
			Name:  "sheet-holds-itself",
			Wrong: "The reader never ends.",
			Right: "kicad-cli loads the file and leaves the circle out; ours names it.",
			Files: tree("p.kicad_sch", "other.kicad_sch", ""), Inputs: []string{"p.kicad_sch"},
		},
		{
			Name: "deep-tree", Checks: true,
			Wrong: "Only one level of children is read.",
			Right: "Five levels: the part of each is there, the net of the lowest has all the names in front.",
			Files: deep(5), Inputs: []string{"p.kicad_sch"},
		},
		{
			Name:  "sheet-names",
			Wrong: "A slash in a sheet's name is taken for a level; two sheets of one name are one.",
			Right: "A blank and letters from elsewhere are kept in the paths of nets, and kicad-cli says how it spells a slash.",
			Files: sheetNames(), Inputs: []string{"p.kicad_sch"},
		},
		{
			Name: "sheet-pins", Checks: true,
			Wrong: "A pin without its label inside, and a label without its pin, are joined by guess.",
			Right: "A pin of no label joins nothing, and ERC tells; a label of another letter case is another name.",
			Files: sheetPins(), Inputs: []string{"p.kicad_sch"},
		},
		{
			Name:  "kicad-6-sheet",
			Wrong: "References are looked for in the symbols only.",
			Right: "The root's table of KiCad 6 gives the references: R5, although the field says R?.",
			Files: files{"p.kicad_sch": kicad6(), "p.kicad_pro": pro},
		},
		{
			Name:   "legacy-schematic",
			Wrong:  "A KiCad 5 schematic loads with exit code 0 and no part, which passes for an empty design.",
			Right:  "It is refused with the advice to save it in KiCad 6 or newer.",
			Files:  files{"old.sch": "EESchema Schematic File Version 4\nEELAYER 30 0\nEELAYER END\n$Descr A4 11693 8268\nencoding utf-8\nSheet 1 1\nTitle \"\"\n$EndDescr\n$Comp\nL Device:R R1\nU 1 1 5E000001\nP 5000 3000\nF 0 \"R1\" H 5070 3046 50  0000 L CNN\nF 1 \"10k\" H 5070 2955 50  0000 L CNN\n\t1    5000 3000\n\t1    0    0    -1\n$EndComp\n$EndSCHEMATC\n"},
			Inputs: []string{"old.sch"},
		},
	}
}

func sharedWithoutPath() files {
	f := kicadtest.Shared("p")
	child := f["blk.kicad_sch"]
	i := strings.LastIndex(child[:strings.LastIndex(child, `(reference "R20")`)], "\t\t\t\t(path ")
	end := i + len("\t\t\t\t(path ") + strings.Index(child[i+len("\t\t\t\t(path "):], "\n\t\t\t\t)\n") + len("\n\t\t\t\t)\n")
	f["blk.kicad_sch"] = child[:i] + child[end:]
	return f
}

// tree is a root with R1 and a child sheet of that target; a child of that file with ref in it, when it has one.
func tree(target, file, ref string) files {
	s := kicadtest.NewSheet("p", 1)
	s.Resistor("R1", "1k", 10, 20)
	c := s.Child("C", target, 20, 20)
	f := files{"p.kicad_sch": s.String(), "p.kicad_pro": pro}
	if ref != "" {
		child := kicadtest.NewSheet("p", 500)
		child.Path = s.Path + "/" + c
		child.Resistor(ref, "2k", 20, 20)
		f[file] = child.String()
	}
	return f
}

func brokenChildren() files {
	s := kicadtest.NewSheet("p", 1)
	s.Resistor("R1", "1k", 10, 40)
	f := files{"p.kicad_pro": pro}
	for i, name := range []string{"newer", "empty", "board", "bracket"} {
		id := s.Child(name, name+".kicad_sch", 20+15*float64(i), 20)
		child := kicadtest.NewSheet("p", 500+100*i)
		child.Path = s.Path + "/" + id
		child.Resistor(fmt.Sprintf("R%d", 10+i), "2k", 20, 20)
		f[name+".kicad_sch"] = child.String()
	}
	f["newer.kicad_sch"] = swap(f["newer.kicad_sch"], "20250114", "20260101")
	f["empty.kicad_sch"] = ""
	f["board.kicad_sch"] = kicadtest.Board
	f["bracket.kicad_sch"] = swap(f["bracket.kicad_sch"], "(paper \"A4\")", "(paper \"A4\"")
	f["p.kicad_sch"] = s.String()
	return f
}

func newerChild() files {
	f := tree("c.kicad_sch", "c.kicad_sch", "R2")
	f["c.kicad_sch"] = swap(f["c.kicad_sch"], "20250114", "20260306")
	return f
}

func folders() files {
	s := kicadtest.NewSheet("p", 1)
	s.Resistor("R1", "1k", 10, 20)
	c := s.Child("C", "sub one/c.kicad_sch", 20, 20)
	up := s.Child("UP", "../common/u's.kicad_sch", 40, 20)
	child := kicadtest.NewSheet("p", 500)
	child.Path = s.Path + "/" + c
	child.Resistor("R2", "2k", 20, 20)
	d := child.Child("D", "d.kicad_sch", 40, 20)
	grand := kicadtest.NewSheet("p", 600)
	grand.Path = child.Path + "/" + d
	grand.Resistor("R3", "3k", 20, 20)
	common := kicadtest.NewSheet("p", 700)
	common.Path = s.Path + "/" + up
	common.Resistor("R4", "4k", 20, 20)
	return files{
		"project/p.kicad_sch": s.String(), "project/p.kicad_pro": pro, "project/sub one/c.kicad_sch": child.String(),
		"project/sub one/d.kicad_sch": grand.String(), "common/u's.kicad_sch": common.String(),
	}
}

func deep(levels int) files {
	f := files{"p.kicad_pro": pro}
	path := ""
	for i := range levels {
		s := kicadtest.NewSheet("p", 1+100*i)
		if path != "" {
			s.Path = path
		}
		s.Resistor(fmt.Sprintf("R%d", i+1), "1k", 10, 20)
		s.Label("label", "OUT", 10, 18.5)
		if i+1 < levels {
			path = s.Path + "/" + s.Child(fmt.Sprintf("L%d", i+1), fmt.Sprintf("l%d.kicad_sch", i+1), 20, 20)
		}
		name := fmt.Sprintf("l%d.kicad_sch", i)
		if i == 0 {
			name = "p.kicad_sch"
		}
		f[name] = s.String()
	}
	return f
}

func sheetNames() files {
	s := kicadtest.NewSheet("p", 1)
	f := files{"p.kicad_pro": pro}
	for i, name := range []string{"a b", "\u03a9", "x/y", "x/y ", "~{n}"} {
		file := fmt.Sprintf("c%d.kicad_sch", i)
		id := s.Child(name, file, 20+15*float64(i), 20)
		child := kicadtest.NewSheet("p", 500+100*i)
		child.Path = s.Path + "/" + id
		child.Resistor(fmt.Sprintf("R%d", i+1), "2k", 20, 20)
		child.Label("label", "OUT", 20, 18.5)
		f[file] = child.String()
	}
	f["p.kicad_sch"] = s.String()
	return f
}

func sheetPins() files {
	s := kicadtest.NewSheet("p", 1)
	c := s.Child("C", "c.kicad_sch", 20, 20, "IN", "GONE", "Case")
	for i, ref := range []string{"R1", "R2", "R3"} {
		y := 21 + float64(i)
		s.Wire(20, y, 10-float64(3*i), y)
		s.Resistor(ref, "1k", 10-float64(3*i), y+1.5)
	}
	child := kicadtest.NewSheet("p", 500)
	child.Path = s.Path + "/" + c
	for i, l := range []string{"IN", "ALONE", "CASE"} {
		child.Resistor(fmt.Sprintf("R%d", 11+i), "2k", 20+6*float64(i), 20)
		child.Label("hierarchical_label", l, 20+6*float64(i), 18.5)
	}
	return files{"p.kicad_sch": s.String(), "c.kicad_sch": child.String(), "p.kicad_pro": pro}
}

// kicad6 is a sheet as KiCad 6 wrote it: no instances in the symbols, a table in the root.
func kicad6() string {
	s := kicadtest.NewSheet("p", 1)
	s.Version = 20211123
	s.Resistor("R?", "10k", 20, 20)
	text := s.String()
	i := strings.Index(text, "\t\t(instances\n")
	end := i + strings.Index(text[i:], "\n\t\t)\n") + len("\n\t\t)\n")
	text = text[:i] + text[end:]
	text = swap(text, "\t(generator_version \"9.0\")\n", "")
	text = swap(text, "\t(embedded_fonts no)\n", fmt.Sprintf("\t(symbol_instances\n\t\t(path \"/%s\"\n\t\t\t(reference \"R5\") (unit 1) (value \"10k\") (footprint \"\")\n\t\t)\n\t)\n", kicadtest.UUID(2)))
	return text
}
