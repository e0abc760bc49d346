// SPDX-License-Identifier: Apache-2.0

package drawn

import (
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
)

// boards are the cases about boards.
func boards() []Case {
	board := kicadtest.Board
	via := "\t(via\n\t\t(at 115 110)\n\t\t(size 0.8)\n\t\t(drill 0.4)\n\t\t(layers \"F.Cu\" \"B.Cu\")\n\t\t(net 2)\n\t\t(uuid \"5eed0000-0000-4000-8000-00000000a030\")\n\t)\n"
	return []Case{
		{
			Name:  "net-table-of-odd-form",
			Wrong: "Numbers are believed to begin at 0 without a gap, and names to be plain.",
			Right: "A gap, another order and names with blanks, signs and letters from elsewhere load without a complaint.",
			Files: files{
				"gap.kicad_pcb":   strings.NewReplacer("(net 3 \"GND\")", "(net 70 \"GND\")", "(net 3)", "(net 70)").Replace(board),
				"order.kicad_pcb": swap(swap(board, "\t(net 1 \"VCC\")\n", ""), "\t(net 3 \"GND\")\n", "\t(net 3 \"GND\")\n\t(net 1 \"VCC\")\n"),
				"names.kicad_pcb": strings.ReplaceAll(strings.ReplaceAll(board, `"/OUT"`, `"/A \"b\" {slash} ~{\u03a9}"`), `"VCC"`, "\"\U0001F50B\""),
			},
		},
		{
			Name: "net-uses", Checks: true,
			Wrong: "Only pads are looked at: a track, a via, an arc or a zone on a wrong net is not seen.",
			Right: "A track or a via on a number that is not declared makes kicad-cli print an error although it loads; a zone whose name differs is kicad-cli's to judge. Our lint names each.",
			Files: files{
				"via.kicad_pcb":       swap(board, "\t(segment\n", swap(via, "(net 2)", "(net 9)")+"\t(segment\n"),
				"arc.kicad_pcb":       swap(board, "\t(segment\n", "\t(arc\n\t\t(start 112 112)\n\t\t(mid 113 113)\n\t\t(end 114 112)\n\t\t(width 0.25)\n\t\t(layer \"F.Cu\")\n\t\t(net 9)\n\t\t(uuid \"5eed0000-0000-4000-8000-00000000a031\")\n\t)\n\t(segment\n"),
				"zone.kicad_pcb":      swap(board, "(net_name \"GND\")", "(net_name \"VCC\")"),
				"zone-none.kicad_pcb": swap(board, "\t\t(net 3)\n\t\t(net_name \"GND\")\n", "\t\t(net 0)\n\t\t(net_name \"\")\n"),
				"good.kicad_pcb":      swap(board, "\t(segment\n", via+"\t(segment\n"),
			},
		},
		{
			Name: "footprints-of-odd-form", Checks: true,
			Wrong: "Footprints are kept by reference: of two with one, or of those without, one is left.",
			Right: "Two footprints of one reference, one without any and pads without number or net load.",
			Files: files{
				"twice.kicad_pcb": strings.ReplaceAll(board, `"R2"`, `"R1"`), "empty.kicad_pcb": swap(board, `"Reference" "R2"`, `"Reference" ""`),
				"pads.kicad_pcb": swap(swap(board, "\t\t(pad \"2\" smd", "\t\t(pad \"\" smd"), "\t\t\t(net 2 \"/OUT\")\n", ""),
			},
		},
		{
			Name: "net-ties", Checks: true,
			Wrong: "A net tie is a short.",
			Right: "Pads of a net-tie group may touch; the same pads without the group are shorted, and DRC says so.",
			Files: files{"tie.kicad_pcb": tie(true), "short.kicad_pcb": tie(false)},
		},
		{
			Name: "zones", Checks: true,
			Wrong: "A zone that is not filled is an error, or is filled by the tool.",
			Right: "The zone is judged as it is stored. A keep-out zone without a net loads.",
			Files: files{
				"keepout.kicad_pcb": swap(board, "\t(zone\n", "\t(zone\n\t\t(net 0)\n\t\t(net_name \"\")\n\t\t(layer \"F.Cu\")\n\t\t(uuid \"5eed0000-0000-4000-8000-00000000a040\")\n\t\t(hatch edge 0.5)\n\t\t(connect_pads (clearance 0))\n\t\t(min_thickness 0.25)\n\t\t(keepout (tracks not_allowed) (vias not_allowed) (pads allowed) (copperpour allowed) (footprints allowed))\n\t\t(fill (thermal_gap 0.5) (thermal_bridge_width 0.5))\n\t\t(polygon (pts (xy 112 109) (xy 116 109) (xy 116 111) (xy 112 111)))\n\t)\n\t(zone\n"),
			},
		},
		{
			Name:  "locked-and-grouped",
			Wrong: "Locked items and groups are lost, or groups whose members are gone stop the reader.",
			Right: "Both load; a group that names a member that is not there is passed over.",
			Files: files{
				"locked.kicad_pcb": swap(swap(board, "\t(footprint \"T:R_0603\"\n", "\t(footprint \"T:R_0603\"\n\t\t(locked yes)\n"), "\t(segment\n", "\t(segment\n\t\t(locked yes)\n"),
				"group.kicad_pcb":  swap(board, "\t(embedded_fonts no)\n", "\t(group \"pair\"\n\t\t(uuid \"5eed0000-0000-4000-8000-00000000a050\")\n\t\t(members \"5eed0000-0000-4000-8000-00000000a001\" \"5eed0000-0000-4000-8000-00000000ffff\")\n\t)\n\t(embedded_fonts no)\n"),
			},
		},
		{
			Name: "board-without-outline", Checks: true,
			Wrong: "The board is refused.",
			Right: "It loads; DRC says that the outline is missing. An empty board loads as well.",
			Files: files{
				"p.kicad_pcb":     swap(board, "(layer \"Edge.Cuts\")", "(layer \"F.Fab\")"),
				"empty.kicad_pcb": "(kicad_pcb (version 20241229) (generator \"pcbnew\") (generator_version \"9.0\"))\n",
			},
		},
		{
			Name: "board-brackets", Checks: true,
			Wrong: "One bracket too many or too few moves the rest out of sight.",
			Right: "One too many in the middle: rc 0, and the tracks are gone; ours names the place. One too few: it does not load.",
			Files: files{
				"many.kicad_pcb": swap(board, "\t(gr_rect\n", "\t)\n\t(gr_rect\n"), "few.kicad_pcb": swap(board, "\t\t(attr smd)\n", "\t\t(attr smd\n"),
				"two.kicad_pcb": board + board, "nul.kicad_pcb": swap(board, "\t(gr_rect\n", "\x00\t(gr_rect\n"),
			},
		},
		{
			Name: "board-of-kicad-5", Checks: true,
			Wrong: "module, fp_text and tstamp are unknown words.",
			Right: "The board loads with its two footprints; what is said of the fill of zones is a notice.",
			Files: files{"p.kicad_pcb": kicad5Board},
		},
		{
			Name: "rules-and-severities", Checks: true,
			Wrong: "A rule that is switched off, or a rules file that is broken, makes a board clean.",
			Right: "The same board three times: as it is with an error, with the rule switched off, and with rules that cannot be read, which kicad-cli passes over.",
			Files: files{
				"honest/p.kicad_pcb": tie(false), "honest/p.kicad_pro": pro,
				"off/p.kicad_pcb": tie(false), "off/p.kicad_pro": "{\"board\": {\"design_settings\": {\"rule_severities\": {\"shorting_items\": \"ignore\", \"clearance\": \"warning\"}}}, \"meta\": {\"version\": 3}}\n",
				"broken/p.kicad_pcb": tie(false), "broken/p.kicad_pro": "{\"board\": ", "broken/p.kicad_dru": "(version 1)\n(rule \"x\" (constraint\n",
			},
		},
	}
}

// tie is a board whose footprint has two overlapping pads on two nets.
func tie(group bool) string {
	board := swap(kicadtest.Board, "\t\t(pad \"2\" smd rect\n\t\t\t(at 0.8 0)\n", "\t\t(pad \"2\" smd rect\n\t\t\t(at 0 0)\n")
	if group {
		board = swap(board, "\t\t(attr smd)\n", "\t\t(attr smd)\n\t\t(net_tie_pad_groups \"1, 2\")\n")
	}
	return board
}

const kicad5Board = `(kicad_pcb (version 20171130) (host pcbnew 5.1.9)
  (general (thickness 1.6) (drawings 4) (tracks 1) (zones 0) (modules 2) (nets 4))
  (page A4)
  (layers (0 F.Cu signal) (31 B.Cu signal) (37 F.SilkS user) (39 F.Mask user) (44 Edge.Cuts user) (49 F.Fab user))
  (setup (last_trace_width 0.25) (trace_clearance 0.2))
  (net 0 "")
  (net 1 VCC)
  (net 2 /OUT)
  (net 3 GND)
  (net_class Default "the default" (clearance 0.2) (trace_width 0.25) (via_dia 0.8) (via_drill 0.4) (uvia_dia 0.3) (uvia_drill 0.1)
    (add_net /OUT) (add_net GND) (add_net VCC))
  (module T:R_0603 (layer F.Cu) (tedit 5E000001) (tstamp 5E000002)
    (at 110 110)
    (fp_text reference R1 (at 0 -2) (layer F.SilkS) (effects (font (size 1 1) (thickness 0.15))))
    (fp_text value 10k (at 0 2) (layer F.Fab) (effects (font (size 1 1) (thickness 0.15))))
    (pad 1 smd rect (at -0.8 0) (size 1 1.2) (layers F.Cu F.Mask) (net 1 VCC))
    (pad 2 smd rect (at 0.8 0) (size 1 1.2) (layers F.Cu F.Mask) (net 2 /OUT)))
  (module T:R_0603 (layer F.Cu) (tedit 5E000001) (tstamp 5E000003)
    (at 120 110)
    (fp_text reference R2 (at 0 -2) (layer F.SilkS) (effects (font (size 1 1) (thickness 0.15))))
    (fp_text value 4k7 (at 0 2) (layer F.Fab) (effects (font (size 1 1) (thickness 0.15))))
    (pad 1 smd rect (at -0.8 0) (size 1 1.2) (layers F.Cu F.Mask) (net 2 /OUT))
    (pad 2 smd rect (at 0.8 0) (size 1 1.2) (layers F.Cu F.Mask) (net 3 GND)))
  (gr_line (start 100 100) (end 130 100) (layer Edge.Cuts) (width 0.1))
  (gr_line (start 130 100) (end 130 120) (layer Edge.Cuts) (width 0.1))
  (gr_line (start 130 120) (end 100 120) (layer Edge.Cuts) (width 0.1))
  (gr_line (start 100 120) (end 100 100) (layer Edge.Cuts) (width 0.1))
  (segment (start 110.8 110) (end 119.2 110) (width 0.25) (layer F.Cu) (net 2))
  (zone (net 3) (net_name GND) (layer B.Cu) (tstamp 0) (hatch edge 0.508)
    (connect_pads (clearance 0.508)) (min_thickness 0.254)
    (fill (arc_segments 16) (thermal_gap 0.508) (thermal_bridge_width 0.508))
    (polygon (pts (xy 101 101) (xy 129 101) (xy 129 119) (xy 101 119))))
)
`
