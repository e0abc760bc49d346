// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"slices"
	"strings"
)

// settings is the project file, the library tables and .gitignore.
func settings(parts []part) []file {
	return []file{
		{project + ".kicad_pro", projectFile()},
		{"sym-lib-table", table("sym_lib_table", "${KICAD9_SYMBOL_DIR}/%s.kicad_sym", symbolLibs(parts))},
		{"fp-lib-table", table("fp_lib_table", "${KICAD9_FOOTPRINT_DIR}/%s.pretty", footprintLibs(parts))},
		{".gitignore", ignored},
		{"README.md", readme},
	}
}

func symbolLibs(parts []part) []string {
	libs := []string{"power"}
	for _, p := range parts {
		lib, _, _ := strings.Cut(p.lib, ":")
		libs = append(libs, lib)
	}
	return libs
}

func footprintLibs(parts []part) []string {
	libs := make([]string, 0, len(parts))
	for _, p := range parts {
		lib, _, _ := strings.Cut(p.footprint, ":")
		libs = append(libs, lib)
	}
	return libs
}

func table(head, uri string, libs []string) string {
	slices.Sort(libs)
	var b strings.Builder
	fmt.Fprintf(&b, "(%s\n  (version 7)\n", head)
	for _, lib := range slices.Compact(libs) {
		fmt.Fprintf(&b, "  (lib (name %q)(type \"KiCad\")(uri %q)(options \"\")(descr \"\"))\n", lib, fmt.Sprintf(uri, lib))
	}
	b.WriteString(")\n")
	return b.String()
}

const ignored = `# KiCad: backups, locks, caches and per-user state
*-backups/
*.kicad_prl
*.lck
*-bak
*.bak
*~
_autosave-*
fp-info-cache

# Output that can be made again
*.net
*-erc.rpt
*-drc.rpt
fabrication/
`

const readme = `# Beacon

A light, a button and an I2C sensor header around an ATtiny412: two sheets, one
two-layer board of 46 mm by 26 mm.

- ` + "`beacon.kicad_pro`" + `, the project; ` + "`beacon.kicad_sch`" + `, supply, light and button; ` + "`mcu.kicad_sch`" + `, the microcontroller; ` + "`beacon.kicad_pcb`" + `, the board.
- [docs/BOM.md](docs/BOM.md): what to order.
- [docs/PINOUT.md](docs/PINOUT.md): which net is on which pin.

Drawn for KiCad 9. The files embed the symbols and footprints that they use.
`

// projectFile holds the rules that KiCad and kicad-cli check by, as KiCad 9
// writes them: where a key is missing KiCad takes its default.
func projectFile() string {
	return fmt.Sprintf(`{
  "board": {
    "3dviewports": [],
    "design_settings": {
      "defaults": {},
      "diff_pair_dimensions": [],
      "drc_exclusions": [],
      "rules": {
        "min_clearance": 0.2,
        "min_copper_edge_clearance": 0.5,
        "min_hole_clearance": 0.25,
        "min_hole_to_hole": 0.25,
        "min_silk_clearance": 0.0,
        "min_text_height": 0.8,
        "min_text_thickness": 0.08,
        "min_through_hole_diameter": 0.3,
        "min_track_width": 0.2,
        "min_via_annular_width": 0.1,
        "min_via_diameter": 0.5
      },
      "track_widths": [],
      "via_dimensions": [],
      "zones_allow_external_fillets": false
    },
    "ipc2581": {
      "dist": "",
      "distpn": "",
      "internal_id": "",
      "mfg": "",
      "mpn": ""
    },
    "layer_pairs": [],
    "layer_presets": [],
    "viewports": []
  },
  "boards": [],
  "cvpcb": {
    "equivalence_files": []
  },
  "erc": {
    "erc_exclusions": [],
    "meta": {
      "version": 0
    },
    "rule_severities": {}
  },
  "libraries": {
    "pinned_footprint_libs": [],
    "pinned_symbol_libs": []
  },
  "meta": {
    "filename": "%s.kicad_pro",
    "version": 3
  },
  "net_settings": {
    "classes": [
      {
        "bus_width": 12,
        "clearance": 0.2,
        "diff_pair_gap": 0.25,
        "diff_pair_via_gap": 0.25,
        "diff_pair_width": 0.2,
        "line_style": 0,
        "microvia_diameter": 0.3,
        "microvia_drill": 0.1,
        "name": "Default",
        "pcb_color": "rgba(0, 0, 0, 0.000)",
        "priority": 2147483647,
        "schematic_color": "rgba(0, 0, 0, 0.000)",
        "track_width": 0.25,
        "via_diameter": 0.6,
        "via_drill": 0.3,
        "wire_width": 6
      }
    ],
    "meta": {
      "version": 4
    },
    "net_colors": null,
    "netclass_assignments": null,
    "netclass_patterns": []
  },
  "pcbnew": {
    "last_paths": {},
    "page_layout_descr_file": ""
  },
  "schematic": {
    "legacy_lib_dir": "",
    "legacy_lib_list": [],
    "meta": {
      "version": 1
    },
    "page_layout_descr_file": ""
  },
  "sheets": [
    [
      "%s",
      "Root"
    ],
    [
      "%s",
      "%s"
    ]
  ],
  "text_variables": {}
}
`, project, id(project), id(project+"/"+childName), childName)
}
