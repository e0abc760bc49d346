// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"testing"
)

// Case 30: a run that loosens the rules cannot finish, for ERC and for DRC; one that tightens them, or puts them back, can.
func TestCase30_LoosenedRulesCloseTheGate(t *testing.T) {
	t.Parallel()
	const pro = `{"erc": {"rule_severities": {"label_dangling": "error"}, "erc_exclusions": []},
"board": {"design_settings": {"rules": {"min_clearance": 0.2, "max_error": 0.005}, "rule_severities": {"clearance": "error", "silk_overlap": "warning"}, "drc_exclusions": []}},
"net_settings": {"classes": [{"name": "Default", "clearance": 0.2, "track_width": 0.25}], "netclass_patterns": [{"netclass": "Default", "pattern": "OUT"}]}}
`
	const dru = "(version 1)\n(rule hv\n  (constraint clearance (min 1mm)))\n"
	tests := []struct{ name, file, old, new, want string }{
		{"erc severity", "p.kicad_pro", `"label_dangling": "error"`, `"label_dangling": "warning"`, "erc severity label_dangling: warning, was error"},
		{"drc severity", "p.kicad_pro", `"clearance": "error"`, `"clearance": "ignore"`, "drc severity clearance: ignore, was error"},
		{"severity taken out", "p.kicad_pro", `"clearance": "error", `, ``, "drc severity clearance"},
		{"erc exclusion", "p.kicad_pro", `"erc_exclusions": []`, `"erc_exclusions": ["label_dangling|1|2"]`, "erc exclusion label_dangling"},
		{"drc exclusion", "p.kicad_pro", `"drc_exclusions": []`, `"drc_exclusions": ["clearance|1|2"]`, "drc exclusion clearance"},
		{"limit", "p.kicad_pro", `"min_clearance": 0.2`, `"min_clearance": 0.1`, "min_clearance: 0.1, was 0.2"},
		{"limit taken out", "p.kicad_pro", `"min_clearance": 0.2, `, ``, "min_clearance"},
		{"class", "p.kicad_pro", `"track_width": 0.25`, `"track_width": 0.1`, "net_settings.classes"},
		{"nets out of a class", "p.kicad_pro", `{"netclass": "Default", "pattern": "OUT"}`, ``, "netclass_patterns"},
		{"broken file", "p.kicad_pro", `{"erc"`, `{{"erc"`, "cannot be read"},
		{"custom rule taken out", "p.kicad_dru", "(rule hv\n  (constraint clearance (min 1mm)))", "", `"(rule hv" is gone`},
		{"custom rule loosened", "p.kicad_dru", "(min 1mm)", "(min 0.1mm)", "(min 1mm)"},
		{"custom rule that ignores", "p.kicad_dru", "(version 1)", "(version 1)\n(rule x\n(severity ignore))", "severity ignore"},
		{"tighter limit", "p.kicad_pro", `"min_clearance": 0.2`, `"min_clearance": 0.3`, ""},
		{"tighter bound", "p.kicad_pro", `"max_error": 0.005`, `"max_error": 0.001`, ""},
		{"tighter severity", "p.kicad_pro", `"silk_overlap": "warning"`, `"silk_overlap": "error"`, ""},
		{"tighter class", "p.kicad_pro", `"track_width": 0.25`, `"track_width": 0.3`, ""},
		{"more custom rules", "p.kicad_dru", "(version 1)", "(version 1)\n(rule gap\n(constraint edge_clearance (min 1mm)))", ""},
	}
	files := divider()
	files["p.kicad_pro"], files["p.kicad_dru"] = pro, dru
	b := newTable(t, files)
	gate := &rulesGate{b.Bench}
	for _, test := range tests {
		b.must("edit_file", in{"path": test.file, "old": test.old, "new": test.new})
		got := strings.Join(gate.Closed(t.Context()), "\n")
		if (test.want == "") != (got == "") || !strings.Contains(got, test.want) || got != "" && !strings.Contains(got, test.file+" loosens") {
			t.Errorf("%s: %q, want %q", test.name, got, test.want)
		}
		b.must("edit_file", in{"path": test.file, "old": b.bytes(test.file), "new": files[test.file]})
		if got := gate.Closed(t.Context()); len(got) > 0 {
			t.Errorf("%s, put back: %q", test.name, got)
		}
	}
	if got := (&rulesGate{newTable(t, files).Bench}).Closed(t.Context()); len(got) > 0 {
		t.Errorf("a run that changes nothing: %q", got)
	}
}

// A net that is renamed takes its class along, and that loosens nothing; a person's own change is not the run's.
func TestRulesGate_RenamesAndPeople(t *testing.T) {
	t.Parallel()
	files := divider()
	files["p.kicad_pro"] = `{"net_settings": {"classes": [{"name": "Default", "clearance": 0.2}, {"name": "P", "clearance": 0.5}], "netclass_patterns": [{"netclass": "P", "pattern": "/OUT"}]}}` + "\n"
	b := newTable(t, files)
	b.must("rename_net", in{"from": "OUT", "to": "MID"})
	if !strings.Contains(b.bytes("p.kicad_pro"), "MID") {
		t.Fatal("the class does not follow")
	}
	gate := &rulesGate{b.Bench}
	if got := gate.Closed(t.Context()); len(got) > 0 {
		t.Errorf("a rename: %q", got)
	}
	other := newTable(t, files)
	other.put("p.kicad_pro", strings.Replace(files["p.kicad_pro"], "0.5", "0.1", 1))
	if got := (&rulesGate{other.Bench}).Closed(t.Context()); len(got) > 0 {
		t.Errorf("somebody else's change: %q", got)
	}
}
