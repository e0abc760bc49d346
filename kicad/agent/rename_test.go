// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
)

// The main job: a net through both sheets and the board in one stroke, with both
// checks clean after it.
func TestRenameNet(t *testing.T) {
	t.Parallel()
	b := newTable(t, nil)
	text := b.must("rename_net", in{"from": "/STATUS", "to": "HEARTBEAT"})
	if !strings.Contains(text, "net /STATUS -> /HEARTBEAT") {
		t.Errorf("the electrical difference is missing: %s", text)
	}
	b.drawn("beacon.kicad_pcb", "beacon.kicad_sch", "mcu.kicad_sch")
	for _, name := range []string{"beacon.kicad_pcb", "beacon.kicad_sch", "mcu.kicad_sch"} {
		if strings.Contains(b.bytes(name), "STATUS\"") {
			t.Errorf("%s still spells it", name)
		}
	}
	if got := b.closed(); len(got) != 2 {
		t.Errorf("gates %q", got)
	}
	b.must("run_erc", in{})
	b.must("run_drc", in{})
	if got := b.closed(); len(got) > 0 || !cmp.Equal(b.obliged(), []string{"drift", "changelog"}) {
		t.Errorf("gates %q, open %q", got, b.obliged())
	}
	if v := strings.Join(b.Verification(), "\n"); !strings.Contains(v, "ERC PASS") || !strings.Contains(v, "DRC PASS") || !strings.Contains(v, "net /STATUS -> /HEARTBEAT") {
		t.Errorf("verification:\n%s", v)
	}
	// A file that changes behind the tools' back closes the gates again.
	b.put("mcu.kicad_sch", b.bytes("mcu.kicad_sch")+"\n")
	if got := b.closed(); len(got) != 2 || !strings.Contains(got[0], "not by a tool") {
		t.Errorf("gates %q", got)
	}
}

// Case 32 and the like: a rename that joins is refused, also where ERC would not say
// a word, and the tree stays as it is.
func TestRenameNet_MergeIsRefused(t *testing.T) {
	t.Parallel()
	b := newTable(t, nil)
	for _, to := range []string{"BUTTON", "UPDI", "/UPDI", "I2C_SDA", "GND", "+3V3", "VIN", "/VIN", "LED_A"} {
		b.refuses("rename_net", in{"from": "STATUS", "to": to}, "Nothing was changed")
	}
	for _, to := range []string{"", " X", "A[0..3]", "/MCU/X", "X\n", "STATUS"} {
		b.refuses("rename_net", in{"from": "STATUS", "to": to})
	}
	b.refuses("rename_net", in{"from": "NOPE", "to": "X"}, "NOPE")
	b.refuses("rename_net", in{"from": "unconnected-(U2-PA6-Pad2)", "to": "X"}, "made")
	text := b.must("rename_net", in{"from": "VIN", "to": "LED_A", "merge": true})
	if !strings.Contains(text, "gained") {
		t.Errorf("a merge that was told to: %s", text)
	}
}

// The nets of the bundled project by kind, one after the other: power, global, local on a child, local on the root. Both
// checks are clean after all of them.
func TestRenameNet_Kinds(t *testing.T) {
	t.Parallel()
	b := newTable(t, nil)
	for _, c := range [][3]string{
		{"+3V3", "+3V0", "net +3V3 -> +3V0"},
		{"I2C_SDA", "SDA", "net I2C_SDA -> SDA"},
		{"/MCU/UPDI", "PROG", "net /MCU/UPDI -> /MCU/PROG"},
		{"BUTTON", "/MCU/KEY", "-> /MCU/KEY"},
		{"VIN", "A/B", "/A{slash}B"},
		{"LED_A", "~{LED}", "/~{LED}"},
	} {
		if text := b.must("rename_net", in{"from": c[0], "to": c[1]}); !strings.Contains(text, c[2]) {
			t.Errorf("%s: got %s", c[1], text)
		}
	}
	b.must("run_erc", in{})
	b.must("run_drc", in{})
	if got := b.closed(); len(got) > 0 {
		t.Errorf("gates %q", got)
	}
	if v := strings.Join(b.Verification(), "\n"); strings.Count(v, "Electrical change: net ") != 6 {
		t.Errorf("verification:\n%s", v)
	}
}

// A net of the same bare name on another sheet is another net: neither in the way
// nor touched.
func TestRenameNet_SameNameElsewhere(t *testing.T) {
	t.Parallel()
	root := kicadtest.NewSheet("p", 1)
	a := root.Child("A", "a.kicad_sch", 40, 10)
	c := root.Child("C", "c.kicad_sch", 40, 40)
	child := func(n int, id, r1, r2, label string) string {
		s := kicadtest.NewSheet("p", n)
		s.Path = "/" + root.Root + "/" + id
		s.Resistor(r1, "1k", 20, 20)
		s.Resistor(r2, "1k", 30, 20)
		s.Wire(20, 18.5, 30, 18.5)
		s.Label("label", label, 25, 18.5)
		return s.String()
	}
	b := newTable(t, map[string]string{
		"p.kicad_sch": root.String(), "p.kicad_pro": "{}\n",
		"a.kicad_sch": child(1000, a, "R1", "R2", "X"), "c.kicad_sch": child(2000, c, "R3", "R4", "Y"),
	})
	if text := b.must("rename_net", in{"from": "/A/X", "to": "Y"}); !strings.Contains(text, "net /A/X -> /A/Y") {
		t.Errorf("got %s", text)
	}
	b.drawn("a.kicad_sch")
	b.must("rename_net", in{"from": "/C/Y", "to": "Z"})
	b.drawn("a.kicad_sch", "c.kicad_sch")
	b.refuses("rename_net", in{"from": "Q", "to": "Z"})
}

// A sheet that is used twice renames in both uses.
func TestRenameNet_SharedSheet(t *testing.T) {
	t.Parallel()
	files := kicadtest.Shared("p")
	files["p.kicad_pro"] = "{}\n"
	b := newTable(t, files)
	if text := b.must("rename_net", in{"from": "INNER", "to": "FRESH"}); !strings.Contains(text, "net /B/INNER -> /B/FRESH") {
		t.Errorf("got %s", text) // in A the net has the name of the root's label
	}
	b.drawn("blk.kicad_sch")
	if text := b.must("rename_reference", in{"from": "R10", "to": "R77"}); !strings.Contains(text, "part R10 -> R77") {
		t.Errorf("got %s", text)
	}
	if text := b.must("list_symbols", in{}); !strings.Contains(text, "R20 |") || strings.Contains(text, "R10 |") {
		t.Errorf("parts: %s", text)
	}
}

// A renamed net stays in its class: in the project file, and in the rules that the
// checks go by.
func TestRenameNet_KeepsItsClass(t *testing.T) {
	t.Parallel()
	files := divider()
	files["p.kicad_pro"] = `{"net_settings": {"classes": [{"name": "Default"}, {"name": "Wide"}],
 "netclass_assignments": {"/OUT": ["Wide"]}, "netclass_patterns": [{"netclass": "Wide", "pattern": "/OUT"}]}}
`
	files["p.kicad_pcb"] = kicadtest.Board
	b := newTable(t, files)
	b.must("rename_net", in{"from": "OUT", "to": "MID"})
	if got := b.bytes("p.kicad_pro"); strings.Contains(got, "/OUT") || strings.Count(got, "/MID") != 2 {
		t.Errorf("the project file is %s", got)
	}
	b.drawn("p.kicad_pcb", "p.kicad_pro", "p.kicad_sch")
	in1, err := b.judged(t.Context(), "p.kicad_pcb")
	if err != nil || !strings.Contains(string(in1.Overlay["p.kicad_pro"]), "/MID") {
		t.Errorf("judged by %s, %v", in1.Overlay["p.kicad_pro"], err)
	}
}

// Parts: references with the nets that KiCad names after them, values on sheet and
// board, flags, every unit.
func TestParts(t *testing.T) {
	t.Parallel()
	b := newTable(t, nil)
	text := b.must("rename_reference", in{"from": "U2", "to": "U9"})
	if !strings.Contains(text, "unconnected-(U9-PA6-Pad2)") || !strings.Contains(text, "part U2 -> U9") {
		t.Errorf("got %s", text)
	}
	if text := b.must("edit_symbol", in{"reference": "R1", "field": "Value", "text": "470"}); !strings.Contains(text, "value of R1: 330 -> 470") {
		t.Errorf("got %s", text)
	}
	if text := b.must("edit_symbol", in{"reference": "R1", "field": "Value", "text": "470"}); !strings.Contains(text, "already") {
		t.Errorf("got %s", text)
	}
	b.must("run_erc", in{})
	b.must("run_drc", in{})
	if got := b.closed(); len(got) > 0 {
		t.Errorf("gates %q", got)
	}
	b.refuses("rename_reference", in{"from": "U9", "to": "R1"}, "already")
	b.refuses("rename_reference", in{"from": "U7", "to": "U8"}, "U7")
	b.refuses("rename_reference", in{"from": "U9", "to": "U"}, "no reference")
	b.refuses("edit_symbol", in{"reference": "R1", "field": "Reference", "text": "R2"}, "rename_reference")
	b.refuses("edit_symbol", in{"reference": "R1", "field": "dnp", "text": "maybe"}, "yes or no")
	b.refuses("edit_symbol", in{"reference": "R1", "field": "Value", "text": "4\uFFFDk"}, "again")
	b.must("edit_symbol", in{"reference": "R1", "field": "MPN", "text": `a "quoted" \ one`})
	b.must("edit_symbol", in{"reference": "R1", "field": "dnp", "text": "yes"})
	if text := b.must("list_symbols", in{"filter": "R1 "}); !strings.Contains(text, "DNP") {
		t.Errorf("got %s", text)
	}
}

// A multi-unit part is edited in every unit.
func TestParts_MultiUnit(t *testing.T) {
	t.Parallel()
	s := kicadtest.NewSheet("p", 1)
	s.Symbol("T:DUAL", "U1", "DUAL", 1, 20, 20)
	s.Symbol("T:DUAL", "U1", "DUAL", 2, 40, 20)
	s.Wire(20, 18.5, 40, 18.5)
	s.Label("label", "AB", 30, 18.5)
	b := newTable(t, map[string]string{"p.kicad_sch": s.String(), "p.kicad_pro": "{}\n"})
	b.must("edit_symbol", in{"reference": "U1", "field": "Value", "text": "TWIN"})
	if n := strings.Count(b.bytes("p.kicad_sch"), `"TWIN"`); n != 2 {
		t.Errorf("the value stands %d times, want in both units", n)
	}
	b.must("rename_reference", in{"from": "U1", "to": "U5"})
	if got := b.must("pins_of", in{"reference": "U5"}); strings.Count(got, "/AB") != 2 {
		t.Errorf("pins of U5: %s", got)
	}
	if got := b.must("net_of", in{"net": "/AB"}); !strings.Contains(got, "U5.1") || !strings.Contains(got, "U5.3") {
		t.Errorf("net /AB: %s", got)
	}
}
