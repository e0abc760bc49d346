// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/kicad/docs"
)

// What nobody has confirmed is left out and named; what is not to be ordered is skipped.
func TestNewOrder(t *testing.T) {
	d := design(t, `
		R1 10k T:R_0603 MPN=RC-10K LCSC=C25804
		R2 10k T:R_0603
		R3 4k7 T:R_0603 dnp MPN=RC-4K7
		R4 1k T:R_0603 nobom MPN=RC-1K
		R5 1k T:R_0603 MPN=TBD
		R6 1k T:R_0603 MPN=A
		R7 1k T:R_0603
		B1 CR2032 T:Holder noboard
		U1 X T:SOIC-8
		U1 Y T:SOIC-8
		U? Z T:SOIC-8 MPN=Z
	`)
	bom := read(t, "BOM.md", `
| Refdes | Value | MPN | LCSC | Manufacturer | DigiKey |
|---|---|---|---|---|---|
| R1, R2 | 10k | RC-10K | C25804 | Yageo | |
| R3 | 4k7 | RC-4K7 | | | |
| R6 | 1k | B | | | |
| R7 | 2k | RC-1K | | | |
| B1 | CR2032 | 3034 | | Keystone | 36-3034-ND |
`)
	text := func(list []docs.LeftOut) string {
		var b strings.Builder
		for _, l := range list {
			fmt.Fprintf(&b, "%s %s: %s\n", l.Ref, l.Value, l.Reason)
		}
		return b.String()
	}
	o := docs.NewOrder(docs.DigiKey, d, []*docs.Document{bom}, 5)
	rows := [][]string{{"36-3034-ND", "3034", "Keystone", "5", "B1", ""}, {"", "RC-10K", "Yageo", "10", "R1,R2", ""}}
	if diff := cmp.Diff(rows, o.Rows); diff != "" {
		t.Errorf("rows (-want +got)\n%s", diff)
	}
	want := `R5 1k: the field of the symbol says TBD
R6 1k: BOM.md:6 says B, and there is also A
R7 1k: BOM.md:7 says RC-1K, but it describes another part: value 2k instead of 1k
U1 X: several parts share the reference; annotate the schematic first
U1 Y: several parts share the reference; annotate the schematic first
U? Z: not annotated
`
	if diff := cmp.Diff(want, text(o.LeftOut)); diff != "" {
		t.Errorf("left out (-want +got)\n%s", diff)
	}
	if diff := cmp.Diff("R3 4k7: not fitted (DNP)\nR4 1k: excluded from the bill of materials\n", text(o.Skipped)); diff != "" {
		t.Errorf("skipped (-want +got)\n%s", diff)
	}
	j := docs.NewOrder(docs.JLCPCB, d, []*docs.Document{bom}, 1)
	if diff := cmp.Diff([][]string{{"10k", "R1,R2", "R_0603", "C25804"}}, j.Rows); diff != "" {
		t.Errorf("rows for JLCPCB (-want +got)\n%s", diff)
	}
	if !strings.Contains(text(j.Skipped), "B1 CR2032: not on the board") {
		t.Errorf("skipped for JLCPCB: %s", text(j.Skipped))
	}
}

// JLCPCB takes at most 200 references in a line.
func TestNewOrderOfManyParts(t *testing.T) {
	var b strings.Builder
	for i := range 450 {
		fmt.Fprintf(&b, "R%d 10k T:R LCSC=C1\n", i+1)
	}
	o := docs.NewOrder(docs.JLCPCB, design(t, b.String()), nil, 1)
	if len(o.Rows) != 3 || o.Parts != 450 || strings.Count(o.Rows[0][1], ",") != 199 {
		t.Errorf("%d rows, %d parts", len(o.Rows), o.Parts)
	}
	if o := docs.NewOrder(docs.Mouser, design(t, b.String()), nil, 1); len(o.Rows) != 0 || len(o.LeftOut) != 450 {
		t.Errorf("a number of another supplier was taken: %d rows", len(o.Rows))
	}
	for _, name := range []string{"JLCPCB", "Digi-Key", "mouser"} {
		if _, err := docs.ParseSupplier(name); err != nil {
			t.Error(err)
		}
	}
	if _, err := docs.ParseSupplier("farnell"); err == nil {
		t.Error("an unknown supplier was taken")
	}
}

// The numbers of another value are marked in every column that an order reads, and none of them is ordered.
func TestNewOrderOfMarkedNumbers(t *testing.T) {
	d := design(t, "R1 5k1 T:R_0603 DK=X-ND(UNVERIFIED)\nR2 5k1 T:R_0603")
	bom := read(t, "BOM.md", "| Refdes | Value | MPN | LCSC | DK |\n|---|---|---|---|---|\n| R1 | 5k1 | | | |\n| R2 | 5k6 | RC-5K6 | C1 | Y-ND |\n")
	fixed, err := docs.Apply(bom, docs.Fix(d, bom))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(fixed.Src), "| R2 | 5k1 | RC-5K6 (UNVERIFIED) | C1 (UNVERIFIED) | Y-ND (UNVERIFIED) |") {
		t.Errorf("the document:\n%s", fixed.Src)
	}
	for _, s := range []docs.Supplier{docs.JLCPCB, docs.DigiKey, docs.Mouser} {
		o := docs.NewOrder(s, d, []*docs.Document{fixed}, 1)
		if len(o.Rows) > 0 || len(o.LeftOut) != 2 {
			t.Errorf("%s: rows %v, left out %v", s, o.Rows, o.LeftOut)
		}
	}
	for name, want := range map[string]string{"PARTNO": "mpn", "Manufacturer Part": "mpn", "DK": "digikey", "Digi-Key Part #": "digikey", "LCSC": "lcsc", "Mouser": "mouser"} {
		if got, ok := docs.NumberOf(name); !ok || got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	if _, ok := docs.NumberOf("Value"); ok {
		t.Error("a value is a number to order by")
	}
}
