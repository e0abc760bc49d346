// SPDX-License-Identifier: Apache-2.0

package drawn

import (
	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
)

// surroundings are the cases about what lies beside a design, and about names of files.
func surroundings() []Case {
	return []Case{
		{
			Name:  "names-of-files",
			Wrong: "Blanks, quotes, a dollar sign, a dash in front or letters from elsewhere break the command line.",
			Right: "All load with the same parts and nets. An extension in capitals does not.",
			Files: files{
				"a b.kicad_sch": divider(), "it's \"q\".kicad_sch": divider(), "-dash.kicad_sch": divider(), "${HOME}.kicad_sch": divider(),
				"%20.kicad_sch": divider(), "\u03a9\U0001F50B.kicad_sch": divider(), "p.KICAD_SCH": divider(), "(a).kicad_pcb": kicadtest.Board,
			},
			Inputs: []string{"a b.kicad_sch", "it's \"q\".kicad_sch", "-dash.kicad_sch", "${HOME}.kicad_sch", "%20.kicad_sch", "\u03a9\U0001F50B.kicad_sch", "p.KICAD_SCH", "(a).kicad_pcb"},
		},
		{
			Name:  "not-a-file",
			Wrong: "A folder with a sheet's name, a link to nowhere or a missing file is an internal error.",
			Right: "None loads, and the answer says what is there instead.",
			Files: files{"folder.kicad_sch/x.txt": "x", "p.kicad_pro": pro}, Links: map[string]string{"nowhere.kicad_sch": "gone.kicad_sch"},
			Inputs: []string{"folder.kicad_sch", "nowhere.kicad_sch", "missing.kicad_sch"},
		},
		{
			Name: "lock-files", Checks: true,
			Wrong: "A lock file is deleted, taken for a design, or passed over when the file is written.",
			Right: "kicad-cli loads the sheet whatever the lock says. Our tools refuse to write it, and never touch the lock.",
			Files: files{
				"p.kicad_sch": divider(), "p.kicad_pro": pro, "p.kicad_pcb": kicadtest.Board,
				"~p.kicad_sch.lck": `{"hostname":"bench","username":"ada"}`, "~p.kicad_pcb.lck": "not json", "~$p.kicad_sch": "",
			},
		},
		{
			Name:  "backups-and-autosaves",
			Wrong: "A copy in the backups' folder, an autosaved sheet or local settings are taken for the design.",
			Right: "The sheet of the project's name is the design; the others are there and change nothing.",
			Files: files{
				"p.kicad_sch": divider(), "p.kicad_pro": pro, "p.kicad_prl": "{\"board\": {\"active_layer\": 0}, \"meta\": {\"filename\": \"p.kicad_prl\", \"version\": 5}}\n",
				"_autosave-p.kicad_sch": swap(divider(), `"4k7"`, `"lost"`), "p-backups/p-2026-01-01_000000.zip": "PK", "fp-info-cache": "0\n",
				"p-bak.kicad_sch": "(kicad_sch", "#auto_saved_files#": "p.kicad_sch\n",
			},
			Inputs: []string{"p.kicad_sch", "_autosave-p.kicad_sch"},
		},
		{
			Name: "settings-that-cannot-be-read", Checks: true,
			Wrong: "A project file that is broken, empty or of a newer KiCad stops the reader, or its rules are believed.",
			Right: "kicad-cli passes over each and judges by its own rules.",
			Files: files{
				"broken/p.kicad_sch": divider(), "broken/p.kicad_pro": "{ \"erc\": ", "empty/p.kicad_sch": divider(), "empty/p.kicad_pro": "",
				"newer/p.kicad_sch": divider(), "newer/p.kicad_pro": "{\"meta\": {\"version\": 99}}\n",
			},
		},
		{
			Name: "severities-and-exclusions", Checks: true,
			Wrong: "A rule that is switched off passes for a fault that was mended; an exclusion that fits nothing is not seen.",
			Right: "The rule as it is: errors. As a warning: warnings. Ignored: none. An exclusion of what is not there shows as an excluded item.",
			Files: files{
				"honest/p.kicad_sch": refs("R1"), "honest/p.kicad_pro": pro,
				"warning/p.kicad_sch": refs("R1"), "warning/p.kicad_pro": "{\"erc\": {\"rule_severities\": {\"pin_not_connected\": \"warning\"}}, \"meta\": {\"version\": 3}}\n",
				"ignored/p.kicad_sch": refs("R1"), "ignored/p.kicad_pro": "{\"erc\": {\"rule_severities\": {\"pin_not_connected\": \"ignore\"}}, \"meta\": {\"version\": 3}}\n",
				"excluded/p.kicad_sch": refs("R1"), "excluded/p.kicad_pro": "{\"erc\": {\"erc_exclusions\": [[\"pin_not_connected|508000|469900|" + kicadtest.UUID(1) + "|00000000-0000-0000-0000-000000000000|/" + kicadtest.UUID(1) + "|/" + kicadtest.UUID(1) + "|\", \"why\"]]}, \"meta\": {\"version\": 3}}\n",
			},
		},
		{
			Name: "library-tables", Checks: true,
			Wrong: "A library that the table names and the disk lacks, or a table that is broken, is a fault of the design.",
			Right: "Parts and nets are as without; what is said of libraries is kept apart.",
			Files: files{
				"gone/p.kicad_sch": divider(), "gone/p.kicad_pro": pro, "gone/sym-lib-table": "(sym_lib_table\n  (version 7)\n  (lib (name \"T\")(type \"KiCad\")(uri \"${KIPRJMOD}/gone.kicad_sym\")(options \"\")(descr \"\"))\n)\n",
				"broken/p.kicad_sch": divider(), "broken/p.kicad_pro": pro, "broken/sym-lib-table": "(sym_lib_table (lib",
			},
		},
		{
			Name: "drawings-and-pictures", Checks: true,
			Wrong: "Text boxes, tables, pictures, rule areas and worksheets that are missing stop the reader or are lost.",
			Right: "They change neither parts nor nets.",
			Files: files{
				"p.kicad_sch": swap(divider(), "\t(sheet_instances", drawings+"\t(sheet_instances"),
				"p.kicad_pro": "{\"schematic\": {\"page_layout_descr_file\": \"gone.kicad_wks\"}, \"pcbnew\": {\"page_layout_descr_file\": \"gone.kicad_wks\"}, \"meta\": {\"version\": 3}}\n",
			},
		},
		{
			Name: "sheet-and-board-of-one-project", Checks: true,
			Wrong: "Board and sheet are checked apart, so that what differs between them is not seen.",
			Right: "Both load; the comparison of the two is DRC's, and is kept apart from its other findings.",
			Files: files{"p.kicad_sch": divider(), "p.kicad_pcb": kicadtest.Board, "p.kicad_pro": pro},
		},
	}
}

const drawings = `	(text "a note (with a bracket" (exclude_from_sim no) (at 20 20 0) (effects (font (size 1.27 1.27))) (uuid "5eed0000-0000-4000-8000-00000000c001"))
	(text_box "boxed\ntext" (exclude_from_sim no) (at 20 30 0) (size 20 10) (margins 1 1 1 1) (stroke (width 0) (type solid)) (fill (type none)) (effects (font (size 1.27 1.27))) (uuid "5eed0000-0000-4000-8000-00000000c002"))
	(polyline (pts (xy 10 10) (xy 20 10) (xy 20 12)) (stroke (width 0) (type default)) (uuid "5eed0000-0000-4000-8000-00000000c003"))
	(rectangle (start 10 40) (end 20 50) (stroke (width 0) (type default)) (fill (type none)) (uuid "5eed0000-0000-4000-8000-00000000c004"))
	(image (at 50 30) (uuid "5eed0000-0000-4000-8000-00000000c005") (data "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="))
`
