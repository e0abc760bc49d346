// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/kicad/docs"
)

// A document of 5 MB, the largest that is read, compared and repaired.
func BenchmarkDrift(b *testing.B) {
	var parts, rows strings.Builder
	rows.WriteString("| Refdes | Qty | Value | Footprint | MPN | Description |\n|---|---|---|---|---|---|\n")
	for i := range 45_000 {
		fmt.Fprintf(&parts, "R%d 4k7 Resistor_SMD:R_0603_1608Metric\n", i+1)
		fmt.Fprintf(&rows, "| R%d | 1 | 4.7 kOhm | Resistor_SMD:R_0603_1608Metric | RC0603FR-074K7L | `Resistor`, 1 %% thick film, AEC-Q200 |\n", i+1)
	}
	d := design(b, parts.String())
	b.SetBytes(int64(rows.Len()))
	b.ReportAllocs()
	for b.Loop() {
		doc := read(b, "BOM.md", rows.String())
		if r := docs.Drift(d, []*docs.Document{doc}); len(r.Mismatches) > 0 {
			b.Fatal(r.Mismatches[0])
		}
		if e := docs.Fix(d, doc); len(e) > 0 {
			b.Fatal(e[0])
		}
	}
}
