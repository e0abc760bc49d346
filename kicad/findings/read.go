// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"encoding/json"
	"errors"
	"fmt"
)

// ercScale mends the positions of ERC reports: KiCad writes them divided by 100, in every unit. Measured on 9.0.8
// against the text report of the same run, and reported for 10.0.6 (KiCad issue 25582). DRC's are right.
const ercScale = 100

type reportJSON struct {
	Version     string          `json:"kicad_version"`
	Source      string          `json:"source"`
	Units       string          `json:"coordinate_units"`
	Sheets      []sheetJSON     `json:"sheets"`
	Violations  []violationJSON `json:"violations"`
	Unconnected []violationJSON `json:"unconnected_items"`
	Parity      []violationJSON `json:"schematic_parity"`
	Ignored     []ignoredJSON   `json:"ignored_checks"`
}

type sheetJSON struct {
	Path       string          `json:"path"`
	Violations []violationJSON `json:"violations"`
}

type violationJSON struct {
	Type        string     `json:"type"`
	Severity    Severity   `json:"severity"`
	Description string     `json:"description"`
	Excluded    bool       `json:"excluded"`
	Comment     string     `json:"comment"`
	Items       []itemJSON `json:"items"`
}

type itemJSON struct {
	UUID        string `json:"uuid"`
	Description string `json:"description"`
	Pos         struct {
		X float64 `json:"x"`
		Y float64 `json:"y"`
	} `json:"pos"`
}

type ignoredJSON struct {
	Key string `json:"key"`
}

// Read parses a report that kicad-cli wrote with --format json --units mm. ERC findings are taken from sheets[] and,
// as some versions wrote them, from the top level. The format: https://schemas.kicad.org/erc.v1.json and drc.v1.json.
func Read(check Check, data []byte) (Report, error) {
	var raw reportJSON
	if err := json.Unmarshal(data, &raw); err != nil {
		return Report{}, fmt.Errorf("findings: not a report: %w", err)
	}
	if raw.Version == "" {
		return Report{}, errors.New("findings: not a report: it names no kicad_version")
	}
	if raw.Units != "" && raw.Units != "mm" {
		return Report{}, fmt.Errorf("findings: the report is in %s, want mm", raw.Units)
	}
	if check == ERC && raw.Sheets == nil && raw.Violations == nil {
		return Report{}, errors.New("findings: not an ERC report: it has neither sheets nor violations")
	}
	if check == DRC && raw.Violations == nil {
		return Report{}, errors.New("findings: not a DRC report: it has no violations")
	}
	r := Report{Check: check, Source: raw.Source, Version: raw.Version}
	for _, s := range raw.Sheets {
		r.add(Violations, s.Path, s.Violations)
	}
	r.add(Violations, "", raw.Violations)
	r.add(Unconnected, "", raw.Unconnected)
	r.add(Parity, "", raw.Parity)
	for _, i := range raw.Ignored {
		r.Ignored = append(r.Ignored, i.Key)
	}
	return r, nil
}

func (r *Report) add(section Section, sheet string, list []violationJSON) {
	scale := 1.0
	if r.Check == ERC {
		scale = ercScale
	}
	for _, v := range list {
		f := Finding{
			Check: r.Check, Section: section, Type: v.Type, Severity: v.Severity, Description: v.Description,
			Sheet: sheet, Excluded: v.Excluded, Comment: v.Comment,
		}
		for _, it := range v.Items {
			f.Items = append(f.Items, Item{UUID: it.UUID, Description: it.Description, X: it.Pos.X * scale, Y: it.Pos.Y * scale})
		}
		r.Findings = append(r.Findings, f)
	}
}
