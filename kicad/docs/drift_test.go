// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/kicad/internal/board"
	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
)

const small = `
	R1 10k T:R_0603
	R2 10k T:R_0603
	R3 4k7 T:R_0603 dnp
	R4 1k T:R_0603 nobom
	C1 100nF T:C_0603 MPN=GRM188
	U1 ATtiny T:SOIC-8
	J1 POWER T:JST noboard
	VCC: R1.1 U1.1=VCC
	/OUT: R1.2 R2.1 U1.2=PA1
	GND: R2.2 C1.2 U1.4=GND
	/SPI{slash}CS: C1.1 U1.5=PA2
	unconnected-(U1-PA3-Pad3): U1.3=PA3
	/A/SDA: R3.1
	/B/SDA: R3.2
`

// One line a mismatch, which names document, claim and what is so (B-110).
func TestDrift(t *testing.T) {
	d := design(t, small)
	for _, c := range []struct{ name, doc, text, want string }{
		{
			"in line", "docs/BOM.md", `
| Refdes | Qty | Value | Footprint | MPN | Notes |
|---|---|---|---|---|---|
| R1-R2 | 2 | 10 kOhm | R_0603 | | |
| R3 | 1 | 4.7k | 0603 | | DNP |
| C1 | 1 | 0.1u | T:C_0603 | grm188 | |
| U1 | 1 | ATtiny | | X | |
| J1 | 1 | POWER | T:JST | | off-board |
| PCB | 1 | | | | |
`, "",
		},
		{
			"values", "docs/BOM.md", `
| Qty | Reference | Value | MPN | Footprint | DNP |
|---|---|---|---|---|---|
| 3 | R1, R2 | 1k | | T:R_0402 | |
| 1 | R3 | 4k7 | | T:R_0603 | |
| 1 | C1 | 100n | GRM155 | | x |
| 1 | U1 | | UNVERIFIED | | |
| 1 | R99 | 1M | | | |
`, `docs/BOM.md:4: R1 value: the document says 1k, the design says 10k
docs/BOM.md:4: R1 footprint: the document says T:R_0402, the design says T:R_0603
docs/BOM.md:4: R2 value: the document says 1k, the design says 10k
docs/BOM.md:4: R2 footprint: the document says T:R_0402, the design says T:R_0603
docs/BOM.md:4: R1, R2 quantity: the document says 3, the design says 2
docs/BOM.md:5: R3 not-fitted: the document says fitted, the design says not fitted (DNP)
docs/BOM.md:6: C1 mpn: the document says GRM155, the design says GRM188
docs/BOM.md:6: C1 not-fitted: the document says not fitted (DNP), the design says fitted
docs/BOM.md:7: U1 value: the document says nothing, the design says ATtiny
docs/BOM.md:8: R99 gone: the document says R99 1M, the design says no such part
docs/BOM.md: J1 missing: the document says nothing of it, the design says POWER in T:JST
`,
		},
		{
			"not understood", "docs/BOM.md", "| Designator | Value |\n|---|---|\n| R1-C2 | 10k |\n| R1 | 10k |\n| R1,R2 | 10k |\n| C1 | 100n |\n| U1 | attiny |\n| J1 | power |\n",
			`docs/BOM.md:3: unreadable: the document says R1-C2, the design says no reference R1-C2 that can be understood; the row is not compared in whole
docs/BOM.md:5: R1 twice: the document says it again, after line 4, the design says there is one
`,
		},
		{
			"no table", "docs/BOM.md", "# BOM\n", `docs/BOM.md: C1 missing: the document says nothing of it (there is no table with a column Refdes), the design says 100nF in T:C_0603
docs/BOM.md: J1 missing: the document says nothing of it (there is no table with a column Refdes), the design says POWER in T:JST
docs/BOM.md: R1 missing: the document says nothing of it (there is no table with a column Refdes), the design says 10k in T:R_0603
docs/BOM.md: R2 missing: the document says nothing of it (there is no table with a column Refdes), the design says 10k in T:R_0603
docs/BOM.md: U1 missing: the document says nothing of it (there is no table with a column Refdes), the design says ATtiny in T:SOIC-8
`,
		},
		{"not a bill of materials", "docs/SPEC.md", "| Refdes | Value |\n|---|---|\n| R1 | 10k |\n\n| Net | Meaning |\n|---|---|\n| R50 | x |\n", ""},
		{"under a heading", "docs/PARTS.md", "## Not fitted\n\n| Ref | Value |\n|---|---|\n| R3 | 4k7 |\n", ""},
		{"a mark for one of them", "docs/PARTS.md", "| Ref | Value | Notes |\n|---|---|---|\n| R2, R3 | | R3 is DNP |\n", `docs/PARTS.md:3: R2 value: the document says nothing, the design says 10k
docs/PARTS.md:3: R3 value: the document says nothing, the design says 4k7
`},
		{"for ten boards", "docs/PARTS.md", "| Ref | Qty | Value |\n|---|---|---|\n| R1, R2 | 20 | 10k |\n| C1 | 10 | 100n |\n| U1 | 10 | ATtiny |\n", ""},
		{
			"variants", "docs/PARTS.md", "| Ref | Value | Variant |\n|---|---|---|\n| R1 | 10k | A |\n| R1 | 22k | B |\n| R2 | 1k | A |\n| R2 | 2k | B |\n| C1 | 1u | A |\n\n## Variant C\n\n| Ref | Value |\n|---|---|\n| R1 | DNP |\n",
			"docs/PARTS.md:5: R2 value: the document says 1k, the design says 10k, and no other variant fits\ndocs/PARTS.md:7: C1 value: the document says 1u, the design says 100nF\n",
		},
		{"Latin-1", "docs/PARTS.md", "| Ref | Value |\n|---|---|\n| C1 | 0,1 \xb5F |\n", ""},
		{"history", "docs/CHANGELOG.md", "| Refdes | Value |\n|---|---|\n| R1 | 1M |\n", ""},
		{
			"pins", "docs/PINOUT.md", `
| Refdes | Pin | Name | Net |
|---|---|---|---|
| U1 | 1 | VCC | GND |
| U1 | 2 | PA1 | OUT |
| U1 | 3 | PA3 | NC |
| U1 | PA2 | PA7 | SPI/CS |
| U1 | 4 | GND | NC |
| U1 | 9 | PA9 | OUT |
| Q1 | 1 | G | OUT |
| R3 | 1 | | SDA |
| R3 | 2 | | /B/SDA |
`, `docs/PINOUT.md:4: U1 pin 1 net: the document says GND, the design says VCC
docs/PINOUT.md:7: U1 pin 5 pin-name: the document says PA7, the design says PA2
docs/PINOUT.md:8: U1 pin 4 net: the document says NC, the design says GND
docs/PINOUT.md:9: U1 pin 9 gone: the document says OUT, the design says no such pin
docs/PINOUT.md:10: Q1 gone: the document says Q1, the design says no such part
docs/PINOUT.md:11: R3 pin 1 net: the document says SDA, the design says /A/SDA; the name is ambiguous, there is also /B/SDA
`,
		},
		{
			"pins by heading, names of one's own", "docs/PINOUT.md", "## U1: the controller\n\n| Pin | Name | Net |\n|---|---|---|\n| 1 | Supply | VCC |\n| 2 | Output | `/OUT` |\n| 3, 4 | Ground | GND |\n",
			"docs/PINOUT.md:7: U1 pin 3 net: the document says GND, the design says NC\n",
		},
		{
			"every pin", "docs/PINOUT.md", "<!-- fiducial:pinout U -->\n\n| Ref | Pin | Net |\n|---|---|---|\n| U1 | 1 | VCC |\n| U1 | 2 | OUT |\n| U1 | 3 | - |\n| U1 | 4 | GND |\n",
			"docs/PINOUT.md: U1 pin 5 missing: the document says nothing of it, the design says /SPI/CS\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := lines(docs.Drift(d, []*docs.Document{read(t, c.doc, c.text)}).Mismatches)
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Errorf("mismatches (-want +got)\n%s", diff)
			}
		})
	}
}

// A net may have a name that says open elsewhere, or one without letters; a pin that is open may be called so all the same.
func TestDriftOfNetNames(t *testing.T) {
	d := design(t, "R1 1k F\n/\U0001f4a1: R1.1\n/NC: R1.2\nunconnected-(R1-Pad3): R1.3\n/---: R1.4\n")
	head := "| Refdes | Pin | Net |\n|---|---|---|\n"
	r := docs.Drift(d, []*docs.Document{read(t, "PINOUT.md", head+"| R1 | 1 | /\U0001f4a1 |\n| R1 | 1 | \U0001f4a1 |\n| R1 | 2 | NC |\n| R1 | 2 | /NC |\n| R1 | 3 | NC |\n| R1 | 3 | - |\n| R1 | 4 | --- |\n")})
	if len(r.Mismatches) > 0 || r.Claims != 14 {
		t.Errorf("%d claims, want 14, mismatches\n%s", r.Claims, lines(r.Mismatches))
	}
	got := lines(docs.Drift(d, []*docs.Document{read(t, "PINOUT.md", head+"| R1 | 1 | NC |\n| R1 | 2 | \U0001f4a1 |\n| R1 | 3 | \U0001f4a1 |\n| R1 | 4 | - |\n| R1 | 1 | |\n")}).Mismatches)
	if n := strings.Count(got, "\n"); n != 5 {
		t.Errorf("%d mismatches, want 5\n%s", n, got)
	}
	var documents []*docs.Document
	for _, p := range docs.Generate("p", d, nil) {
		documents = append(documents, read(t, p.Name, p.Text))
	}
	if got := docs.Drift(d, documents).Mismatches; len(got) > 0 {
		t.Errorf("right after init: %s", lines(got))
	}
}

// Bills of materials in several documents are complete together; notes about one are none.
func TestDriftOfSeveralBOMs(t *testing.T) {
	d := design(t, "R1 1k T:R\nR2 2k T:R\nJ1 X T:J\n")
	head := "| Refdes | Value |\n|---|---|\n"
	a, b := read(t, "docs/BOM-passive.md", head+"| R1 | 1k |\n"), read(t, "docs/bom_connectors.md", head+"| J1 | X |\n")
	notes := read(t, "docs/BOM-notes.md", "# Notes\n")
	got := lines(docs.Drift(d, []*docs.Document{a, b, notes}).Mismatches)
	if want := "docs/BOM-passive.md: R2 missing: the document says nothing of it, the design says 2k in T:R\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	whole := read(t, "docs/BOM.md", head+"| R1, R2 | |\n| J1 | X |\n")
	got = lines(docs.Drift(d, []*docs.Document{a, b, whole}).Mismatches)
	if want := "docs/BOM.md:3: R1 value: the document says nothing, the design says 1k\ndocs/BOM.md:3: R2 value: the document says nothing, the design says 2k\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// AC-15.25, AC-15.26: a sheet without symbols gives no drift, and a note when a document lists parts.
func TestDriftOfNoSymbols(t *testing.T) {
	dir := t.TempDir()
	kicadtest.Write(t, dir, map[string]string{"p.kicad_pro": "{}", "p.kicad_sch": kicadtest.NewSheet("p", 1).String()})
	r := docs.Drift(load(t, dir, "p.kicad_sch"), []*docs.Document{read(t, "BOM.md", "| Refdes | Value |\n|---|---|\n| R1 | 10k |\n"), read(t, "PINOUT.md", "# none\n")})
	if len(r.Mismatches) != 0 || len(r.Notes) != 1 {
		t.Errorf("%v, notes %v, want no mismatch and one note", r.Mismatches, r.Notes)
	}
}

// The bundled board's documents are in line with it, by the real kicad-cli; and each of these slips is found.
func TestDriftOfBundledBoard(t *testing.T) {
	dir := t.TempDir()
	if err := board.Write(dir); err != nil {
		t.Fatal(err)
	}
	d := load(t, dir, board.Root)
	bom, pinout := open(t, dir, board.BOM), open(t, dir, board.Pinout)
	r := docs.Drift(d, []*docs.Document{bom, pinout})
	if len(r.Mismatches) > 0 || len(r.Notes) > 0 || r.Claims < 60 {
		t.Fatalf("%d claims, notes %v, mismatches\n%s", r.Claims, r.Notes, lines(r.Mismatches))
	}
	for _, c := range []struct {
		doc      *docs.Document
		old, new string
		want     string
	}{
		{bom, "4k7 ", "47k ", "R2 value: the document says 47k, the design says 4k7"},
		{bom, "R2, R3", "R2    ", "docs/BOM.md: R3 missing"},
		{pinout, "| J2     | 2   | Pin_2 | I2C_SDA |", "| J2     | 2   | Pin_2 | I2C_SCL |", "J2 pin 2 net: the document says I2C_SCL, the design says I2C_SDA"},
		{pinout, "/STATUS ", "/LED_A  ", "U2 pin 7 net: the document says /LED_A, the design says /STATUS"},
		{pinout, "| PA6          |", "| PA1          |", "U2 pin 2 pin-name: the document says PA1, the design says PA6"},
	} {
		text := strings.Replace(string(c.doc.Src), c.old, c.new, 1)
		got := lines(docs.Drift(d, []*docs.Document{read(t, c.doc.Name, text)}).Mismatches)
		if !strings.Contains(got, c.want) {
			t.Errorf("with %q for %q: %q, want %q", c.new, c.old, got, c.want)
		}
	}
}

// Our own drawing of what case 08, 19, 20 and 22 are about: units, power symbols, spellings of nets, flags.
func TestDriftOfDrawing(t *testing.T) {
	s := kicadtest.NewSheet("p", 1)
	s.Symbol("T:DUAL", "U1", "DUAL", 1, 20, 20)
	s.Symbol("T:DUAL", "U1", "DUAL", 2, 30, 20)
	s.Label("label", "IN_A", 20, 18.5)
	s.Label("label", "~{RESET}", 20, 21.5)
	s.Label("label", "SPI/CS", 30, 18.5)
	s.Label("label", "*ALL*", 30, 21.5)
	s.Resistor("R1", "1k", 40, 20)
	s.Power("#PWR01", "+3.3V", 40, 18.5)
	s.Label("label", "SPI{slash}CS", 40, 21.5)
	s.Resistor("R2", "2k2", 50, 20)
	s.Power("#PWR02", "+3V3", 50, 18.5)
	s.NoConnect(50, 21.5)
	text := s.String()
	i := strings.LastIndex(text, "(dnp no)")
	i = strings.LastIndex(text[:i], "(dnp no)") // R2, before the power symbol
	text = text[:i] + "(dnp yes)" + text[i+len("(dnp no)"):]
	dir := t.TempDir()
	kicadtest.Write(t, dir, map[string]string{"p.kicad_pro": "{}", "p.kicad_sch": text})
	d := load(t, dir, "p.kicad_sch")
	bom := read(t, "BOM.md", "| Refdes | Qty | Value | Notes |\n|---|---|---|---|\n| U1 | 1 | DUAL | |\n| R1 | 1 | 1k | |\n| R2 | 1 | 2.2k | DNP |\n")
	pinout := read(t, "PINOUT.md", "| Refdes | Pin | Net |\n|---|---|---|\n| U1 | 1 | IN_A |\n| U1 | 2 | ~{RESET} |\n| U1 | 3 | SPI/CS |\n| U1 | 4 | \\*ALL\\* |\n| R1 | 1 | +3.3V |\n| R1 | 2 | `SPI{slash}CS` |\n| R2 | 1 | +3V3 |\n| R2 | 2 | NC |\n")
	r := docs.Drift(d, []*docs.Document{bom, pinout})
	if len(r.Mismatches) > 0 {
		t.Errorf("mismatches\n%s", lines(r.Mismatches))
	}
	if got := fmt.Sprint(d.SimilarRails()); got != "[[+3.3V +3V3]]" {
		t.Errorf("rails that differ in spelling: %s", got)
	}
	wrong := read(t, "PINOUT.md", "| Refdes | Pin | Net |\n|---|---|---|\n| R1 | 1 | +3V3 |\n| U1 | 2 | RESET |\n| U1 | 4 | IN_A |\n")
	if got := docs.Drift(d, []*docs.Document{wrong}).Mismatches; len(got) != 3 {
		t.Errorf("%d mismatches, want 3\n%s", len(got), lines(got))
	}
}

// inLine are the documents of the cases that have no drift; see each case's expected.md.
var inLine = map[string]bool{
	"06-crlf-and-byte-order-mark/BOM.md":   true,
	"08-multi-unit-pins/PINOUT.md":         true,
	"19-power-symbol-names/PINOUT.md":      true,
	"20-net-name-spelling/PINOUT.md":       true,
	"22-dnp-and-exclude-flags/BOM.md":      true,
	"23-bom-table-shapes/BOM.md":           true,
	"23-bom-table-shapes/BOM-reordered.md": true,
}

// Of a folder of cases: those that we know are in line and stay as they are; any other is read to the end, each time with
// the same result, and what is said of it refers to its lines.
func TestDriftOfCases(t *testing.T) {
	dir := os.Getenv("FIDUCIAL_BOARD_CASES")
	if dir == "" {
		t.Skip("FIDUCIAL_BOARD_CASES names no folder")
	}
	found, err := filepath.Glob(filepath.Join(dir, "*", "*.md"))
	if err != nil {
		t.Fatal(err)
	}
	headers, err := filepath.Glob(filepath.Join(dir, "*", "*.h"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(found, headers...) {
		base := filepath.Base(file)
		if base == "expected.md" || base == "README.md" {
			continue
		}
		folder := filepath.Dir(file)
		name := filepath.Base(folder) + "/" + base
		t.Run(name, func(t *testing.T) {
			sheets, err := filepath.Glob(filepath.Join(folder, "*.kicad_sch"))
			if err != nil {
				t.Fatal(err)
			}
			r, read := runner(t), 0
			for _, sheet := range sheets {
				d, err := docs.Load(t.Context(), r, input(sheet))
				if err != nil {
					t.Log(filepath.Base(sheet), "is not read:", err)
					continue
				}
				read++
				sound(t, d, open(t, folder, base))
				if !inLine[name] {
					continue
				}
				rep := docs.Drift(d, []*docs.Document{open(t, folder, base)})
				if len(rep.Mismatches) > 0 || rep.Claims == 0 {
					t.Errorf("%s: %d claims, mismatches\n%s", filepath.Base(sheet), rep.Claims, lines(rep.Mismatches))
				}
				if edits := docs.Fix(d, open(t, folder, base)); len(edits) > 0 {
					t.Errorf("edits of a document in line: %v", edits)
				}
			}
			if read == 0 && inLine[name] {
				t.Error("no schematic could be read")
			}
		})
	}
}

// sound holds what is so of any document: a second comparison says the same, and each mismatch names the document and a
// line of it, or what it lacks as a whole.
func sound(t *testing.T, d *docs.Design, doc *docs.Document) {
	t.Helper()
	first, again := docs.Drift(d, []*docs.Document{doc}), docs.Drift(d, []*docs.Document{read(t, doc.Name, string(doc.Src))})
	if diff := cmp.Diff(first, again); diff != "" {
		t.Errorf("the second comparison says something else (-first +second)\n%s", diff)
	}
	all := strings.Count(string(doc.Src), "\n") + 1
	for _, m := range slices.Concat(first.Mismatches, first.Notes) {
		whole := m.Line == 0 && (m.Kind == docs.Missing || m.Kind == docs.Gone)
		if m.Doc != doc.Name || m.Claim == "" || m.Actual == "" || !whole && (m.Line < 1 || m.Line > all) {
			t.Errorf("%+v refers to no line of %s, which has %d", m, doc.Name, all)
		}
	}
	for _, e := range docs.Fix(d, doc) {
		if e.Start < 0 || e.End < e.Start || e.End > len(doc.Src) {
			t.Errorf("an edit outside of the document: %+v", e)
		}
	}
}

// A document that differs on purpose is told line by line, and no more is asked of one that nobody has read yet.
func TestDriftOfCases_AnyDocument(t *testing.T) {
	d := design(t, small)
	for _, text := range []string{
		"", "# BOM\n", "| Refdes | Value |\n|---|---|\n| R1 | 1k |\n| R99 | x |\n| ??? | |\n| note | |\n",
		"| Refdes | Pin | Net |\n|---|---|---|\n| U1 | 1 | GND |\n| U1 | 77 | GND |\n| Q | | |\n",
	} {
		sound(t, d, read(t, "docs/BOM.md", text))
		sound(t, d, read(t, "PINOUT.md", text))
	}
}

// What init writes never differs from the design that it was written from, whatever names and fields that design has: a
// project or a sheet called DNP or variant, a description that speaks of parts that are not fitted, a reference that is
// there twice.
func TestDrift_NoneRightAfterInit(t *testing.T) {
	for name, entries := range map[string][]kicadcli.Entry{
		"dnp":        {{Ref: "R1", Value: "1k"}, {Ref: "R2", Value: "1k", DNP: true}},
		"variant a":  {{Ref: "R1", Value: "1k"}, {Ref: "R2", Value: "4k7"}},
		"duplicates": {{Ref: "R1", Value: "1k"}, {Ref: "R1", Value: "4k7"}, {Ref: "R1", Value: "4k7"}},
		"value":      {{Ref: "R1", Value: "DNP"}, {Ref: "R2", Value: "10k DNP"}},
		"pipes":      {{Ref: "R1", Value: "a|b"}, {Ref: "R2", Value: "`x`"}, {Ref: "R3", Value: "*"}},
	} {
		t.Run(name, func(t *testing.T) {
			list := &kicadcli.Netlist{}
			for _, e := range entries {
				list.Parts = append(list.Parts, kicadcli.Part{
					Ref: e.Ref, Value: e.Value, Sheet: "/DNP variants/", Properties: map[string]string{"Description": "jumper, not fitted by default"},
				})
			}
			d := docs.NewDesign(entries, list)
			var documents []*docs.Document
			for _, p := range docs.Generate(name, d, nil) {
				documents = append(documents, read(t, "docs/"+p.Name, p.Text))
			}
			r := docs.Drift(d, documents)
			if len(r.Mismatches) > 0 || r.Claims == 0 {
				t.Errorf("%d claims\n%s\n%s", r.Claims, lines(r.Mismatches), documents[1].Src)
			}
			for _, doc := range documents {
				if edits := docs.Fix(d, doc); len(edits) > 0 {
					t.Errorf("%s would be repaired: %+v", doc.Name, edits)
				}
			}
		})
	}
	// Listed more often than there are parts it is wrong.
	d := docs.NewDesign([]kicadcli.Entry{{Ref: "R1", Value: "1k"}, {Ref: "R1", Value: "1k"}}, &kicadcli.Netlist{})
	doc := read(t, "BOM.md", "| Refdes | Value |\n|---|---|\n| R1 | 1k |\n| R1 | 1k |\n| R1 | 1k |\n")
	if got := docs.Drift(d, []*docs.Document{doc}).Mismatches; len(got) != 1 || got[0].Kind != docs.Twice || got[0].Actual != "there are 2" {
		t.Errorf("got %s", lines(got))
	}
}
