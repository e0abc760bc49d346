// SPDX-License-Identifier: Apache-2.0

package planner_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A part number that was another part's is no longer verified: in the symbol, on the board, in the document, in the
// summary and in the commit. What the request sets itself stays as it says.
func TestRun_PartNumberOfAnotherValue(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.done("set field MPN of R1 to RC-330; set field LCSC of R1 to C1")
	bom := strings.Replace(d.file("docs/BOM.md"), "| 4k7           | Resistor_SMD:R_0603_1608Metric                             |                   |", "| 4k7           | Resistor_SMD:R_0603_1608Metric                             | RC-4K7            |", 1)
	if err := os.WriteFile(filepath.Join(d.dir, "docs/BOM.md"), []byte(bom), 0o644); err != nil {
		t.Fatal(err)
	}
	d.git("commit", "-qam", "the number of R2 and R3 stands in the document alone")

	d.done("set R1 to 390; set R2 to 5k1", "part number of R1 (MPN) is still that of 330, marked UNVERIFIED", "part number of R1 (LCSC)")
	if sheet := d.file("beacon.kicad_sch"); !strings.Contains(sheet, `"LCSC" "C1 (UNVERIFIED)"`) || !strings.Contains(sheet, `"MPN" "RC-330 (UNVERIFIED)"`) {
		t.Error("the fields of R1 are not marked")
	}
	bom = d.file("docs/BOM.md")
	for _, want := range []string{"RC-330 (UNVERIFIED)", "RC-4K7 (UNVERIFIED)", "| RC-4K7            |"} {
		if !strings.Contains(bom, want) {
			t.Errorf("the document lacks %q:\n%s", want, bom)
		}
	}
	if msg := d.git("log", "-1", "--format=%B"); !strings.Contains(msg, "Part number of R1 (MPN RC-330) is still that of 330, marked UNVERIFIED") {
		t.Errorf("the commit:\n%s", msg)
	}

	d.done("set R1 to 470; set field MPN of R1 to RC-470")
	bom = d.file("docs/BOM.md")
	if sheet := d.file("beacon.kicad_sch"); !strings.Contains(sheet, `"MPN" "RC-470"`) || !strings.Contains(bom, "| RC-470 ") {
		t.Errorf("the number that the request sets is not there:\n%s", bom)
	}
}

// A field of a part holds one line, and a part that is left off the board is told of in the commit.
func TestRun_FieldsAndFlags(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.refuses("set field MPN of R1 to \"a\x01b\"", "control character")
	d.done("do not fit R1")
	if msg := d.git("log", "-1", "--format=%B"); !strings.Contains(msg, "part R1 marked dnp") {
		t.Errorf("the commit:\n%s", msg)
	}
}
