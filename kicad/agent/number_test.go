// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"testing"
)

// A new value leaves the part number unverified; the old value makes it good again; what the run set stays.
func TestSetField_PartNumbers(t *testing.T) {
	t.Parallel()
	b := newTable(t, nil)
	set := func(field, text string) string {
		t.Helper()
		return b.must("edit_symbol", in{"reference": "U1", "field": field, "text": text})
	}
	const number = `"MPN" "MCP1700T-3302E/TT`
	if text := set("Value", "MCP1702-3302E"); !strings.Contains(text, "UNVERIFIED: MPN of U1") || !strings.Contains(text, "edit_symbol") {
		t.Errorf("the answer: %s", text)
	}
	for _, file := range []string{"beacon.kicad_sch", "beacon.kicad_pcb"} {
		if !strings.Contains(b.bytes(file), number+` (UNVERIFIED)"`) {
			t.Errorf("%s does not mark the number", file)
		}
	}
	if v := strings.Join(b.Verification(), "\n"); !strings.Contains(v, "Part number of U1 (MPN MCP1700T-3302E/TT) is still that of MCP1700-3302E, marked UNVERIFIED") {
		t.Errorf("verification: %s", v)
	}
	if text := set("Value", "MCP1700-3302E"); !strings.Contains(text, "again") || !strings.Contains(b.bytes("beacon.kicad_sch"), number+`"`) {
		t.Errorf("the old value: %s", text)
	}
	set("MPN", "MCP1703T")
	if text := set("Value", "MCP1703"); strings.Contains(text, "UNVERIFIED") || !strings.Contains(b.bytes("beacon.kicad_sch"), `"MPN" "MCP1703T"`) {
		t.Errorf("a number that the run set before the value: %s", text)
	}
	if v := strings.Join(b.Verification(), "\n"); strings.Contains(v, "Part number") {
		t.Errorf("verification: %s", v)
	}
	if text := b.again().Verification(); strings.Contains(strings.Join(text, "\n"), "Part number") {
		t.Errorf("taken up again: %s", text)
	}
}

// The same with edit_file, which does not know what it edits: the answer says what to see to.
func TestEditFile_PartNumbers(t *testing.T) {
	t.Parallel()
	b := newTable(t, nil)
	text := b.must("edit_file", in{"path": "beacon.kicad_sch", "old": `"Value" "MCP1700-3302E"`, "new": `"Value" "MCP1702-3302E"`, "replace_all": true})
	if !strings.Contains(text, "Part number of U1 (MPN MCP1700T-3302E/TT) is as it was with MCP1700-3302E") {
		t.Errorf("the answer: %s", text)
	}
	if v := strings.Join(b.again().Verification(), "\n"); !strings.Contains(v, "and not marked") {
		t.Errorf("verification: %s", v)
	}
}

// A field holds one line, and what the netlist does not show is told as well.
func TestSetField_ControlsAndFlags(t *testing.T) {
	t.Parallel()
	b := newTable(t, nil)
	for _, text := range []string{"a\nb", "a\tb", "a\x1b[31mb", "a\u0085b"} {
		b.refuses("edit_symbol", in{"reference": "R1", "field": "MPN", "text": text}, "control character")
	}
	b.refuses("edit_symbol", in{"reference": "R1", "field": "A\nB", "text": "x"}, "control character")
	b.must("edit_symbol", in{"reference": "R1", "field": "dnp", "text": "yes"})
	b.must("edit_symbol", in{"reference": "R2", "field": "in_bom", "text": "no"})
	v := strings.Join(b.Verification(), "\n")
	for _, want := range []string{"Electrical change: part R1 marked dnp", "Electrical change: part R2 excluded from the bill of materials"} {
		if !strings.Contains(v, want) {
			t.Errorf("verification lacks %q: %s", want, v)
		}
	}
}
