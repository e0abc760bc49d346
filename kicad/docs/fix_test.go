// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// fix repairs a document and holds what every repair must hold: no drift is left but what nobody can understand, a
// second repair changes nothing, and the bytes outside the edits are as they were.
func fix(t testing.TB, d *docs.Design, doc *docs.Document) *docs.Document {
	t.Helper()
	edits := docs.Fix(d, doc)
	now, err := docs.Apply(doc, edits)
	if err != nil {
		t.Fatalf("%v\n%s", err, doc.Src)
	}
	for _, m := range docs.Drift(d, []*docs.Document{now}).Mismatches {
		if m.Kind != docs.Unreadable && !strings.HasSuffix(m.Actual, "no other variant fits") {
			t.Fatalf("left: %s\nof\n%s\nin\n%s", m, doc.Src, now.Src)
		}
	}
	if again := docs.Fix(d, now); len(again) > 0 {
		t.Fatalf("a second repair: %v\nof\n%s", again, now.Src)
	}
	pos, kept := 0, 0
	slices.SortFunc(edits, func(a, b sexpr.Edit) int { return cmp.Or(a.Start-b.Start, a.End-b.End) })
	for _, e := range edits {
		i := strings.Index(string(now.Src[kept:]), string(doc.Src[pos:e.Start]))
		if i < 0 {
			t.Fatalf("the bytes %q are gone", doc.Src[pos:e.Start])
		}
		kept += i
		pos = e.End
	}
	if !strings.HasSuffix(string(now.Src), string(doc.Src[pos:])) {
		t.Fatalf("the bytes behind the edits are not as they were")
	}
	return now
}

func TestFix(t *testing.T) {
	d := design(t, small)
	for _, c := range []struct{ name, doc, text, want string }{
		{
			"cells keep their width", "BOM.md", `
| Refdes | Qty | Value | Footprint | MPN  | Notes |
|--------|-----|-------|-----------|------|-------|
| R1, R2 | 2   | 1k    | ` + "`T:R_0402`" + ` | X1   |       |
| R3     | 1   | 4k7   | T:R_0603  |      |       |
| C1     | 1   | 1u 5% | T:C_0603  | GRM  | DNP   |
| U1     | 2   | Attn  | T:SOIC-8  |      |       |
| J1     | 1   | POWER | T:JST     |      |       |
`, `
| Refdes | Qty | Value | Footprint | MPN  | Notes |
|--------|-----|-------|-----------|------|-------|
| R1, R2 | 2   | 10k   | ` + "`T:R_0603`" + ` | X1 (UNVERIFIED) |       |
| R3     | 1   | 4k7   | T:R_0603  |      | DNP   |
| C1     | 1   | 100nF 5% | T:C_0603  | GRM188 |       |
| U1     | 1   | ATtiny | T:SOIC-8  |      |       |
| J1     | 1   | POWER | T:JST     |      |       |
`,
		},
		{
			"a row is parted, one goes, others come", "BOM.md", `| Ref | Qty | Value | Footprint | MPN |
|:----|:---:|------:|-----------|-----|
| C1 | 1 | 100n | 0603 | GRM188 |
| R1-R3, R9 | 4 | 10k | 0603 | RC0603\|10K |
| R98 | 1 | 10k | 0603 | Y |
`, `| Ref | Qty | Value | Footprint | MPN |
|:----|:---:|------:|-----------|-----|
| C1 | 1 | 100n | 0603 | GRM188 |
| J1  | 1   | POWER | T:JST     | UNVERIFIED |
| R1, R2    | 2 | 10k | 0603 | RC0603\|10K |
| R3        | 1 | 4k7 DNP | 0603 | RC0603\|10K (UNVERIFIED) |
| U1  | 1   | ATtiny | T:SOIC-8  | UNVERIFIED |
`,
		},
		{"CRLF, no line end at the end", "BOM.md", "\ufeff| Refdes | Value |\r\n|---|---|\r\n| R1,R2 | 10k |\r\n| C1 | 100n |\r\n| U1 | ATtiny |", "\ufeff| Refdes | Value |\r\n|---|---|\r\n| R1,R2 | 10k |\r\n| C1 | 100n |\r\n| U1 | ATtiny |\r\n| J1     | POWER |"},
		{"no table", "BOM.md", "# Parts", `# Parts

| Refdes | Qty | Value  | Footprint | MPN        | Description |
|--------|-----|--------|-----------|------------|-------------|
| C1     | 1   | 100nF  | T:C_0603  | GRM188     |             |
| J1     | 1   | POWER  | T:JST     | UNVERIFIED |             |
| R1, R2 | 2   | 10k    | T:R_0603  | UNVERIFIED |             |
| U1     | 1   | ATtiny | T:SOIC-8  | UNVERIFIED |             |`},
		{
			"nets in the manner of the table", "PINOUT.md", "## U1\n\n| Pin | Net  | Use |\n|-----|------|-----|\n| 1   | GND  | a   |\n| 2   | OUT  | b   |\n| 3,4 | OUT  | c   |\n| 5   | VCC  | d   |\n| 9   | OUT  | e   |\n",
			"## U1\n\n| Pin | Net  | Use |\n|-----|------|-----|\n| 1   | VCC  | a   |\n| 2   | OUT  | b   |\n| 3   | NC   | c   |\n| 4   | GND  | c   |\n| 5   | SPI/CS | d   |\n",
		},
		{
			"a part that is gone takes its section along", "PINOUT.md", "# Pins\n\nText.\n\n## Q1\n\n| Ref | Pin | Net |\n|---|---|---|\n| Q1 | 1 | GND |\n| Q1 | 2 | VCC |\n\n## R1\n\n| Ref | Pin | Net |\n|---|---|---|\n| R1 | 1 | VCC |\n",
			"# Pins\n\nText.\n\n## R1\n\n| Ref | Pin | Net |\n|---|---|---|\n| R1 | 1 | VCC |\n",
		},
		{
			"pins that must be there", "PINOUT.md", "<!-- fiducial:pinout U C -->\n\n## U1\n\n| Ref | Pin | Name | Net  |\n|-----|-----|------|------|\n| U1  | 1   | VCC  | VCC  |\n| U1  | 4   | GND  | GND  |\n",
			"<!-- fiducial:pinout U C -->\n\n## U1\n\n| Ref | Pin | Name | Net  |\n|-----|-----|------|------|\n| U1  | 1   | VCC  | VCC  |\n| U1  | 2   | PA1  | /OUT |\n| U1  | 3   | PA3  | NC   |\n| U1  | 4   | GND  | GND  |\n| U1  | 5   | PA2  | /SPI/CS |\n\n## C1: 100nF\n\n| Refdes | Pin | Name | Net     | Use |\n|--------|-----|------|---------|-----|\n| C1     | 1   |      | /SPI/CS |     |\n| C1     | 2   |      | GND     |     |\n",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := string(fix(t, d, read(t, c.doc, c.text)).Src)
			if diff := gocmp.Diff(c.want, got); diff != "" {
				t.Errorf("repaired (-want +got)\n%s", diff)
			}
		})
	}
}

// For any table of parts and pins a repair leaves no drift, and a second one does nothing.
func TestFixAnything(t *testing.T) {
	d := design(t, small)
	for seed := range uint64(4000) {
		r := rand.New(rand.NewPCG(seed, 1))
		pick := func(from ...string) string { return from[r.IntN(len(from))] }
		eol := pick("\n", "\n", "\r\n")
		var b strings.Builder
		b.WriteString(pick("", "\ufeff") + pick("", "# Parts"+eol+eol, "<!-- fiducial:pinout U R -->"+eol+eol, "## U1"+eol, "## Variant X"+eol))
		for range 1 + r.IntN(3) {
			cols := [][]string{
				{"Refdes", "R1", "R2", "R1, R2", "R1-R4", "R7", "C1", "U1", "J1", "R3", "PCB", "", "`R2`", "R1 R2 R3", "U1A", "R4-C1"},
				{"Qty", "1", "2", "3", "", "x"},
				{"Value", "10k", "10 k 1%", "4k7 DNP", "100n", "~", "", "`1k`", "**ATtiny**", "a\\|b"},
				{"Footprint", "0603", "T:R_0603", "", "T:X", "R_0603"},
				{"MPN", "", "X", "GRM188", "UNVERIFIED"},
				{"Notes", "", "DNP", "R1 is DNP", "not fitted; see text", "text"},
				{"DNP", "", "x", "no"},
				{"Variant", "", "A", "B"},
			}
			if r.IntN(2) == 0 {
				cols = [][]string{
					{"Refdes", "R1", "R3", "U1", "J1", "Q1", "", "C1"},
					{"Pin", "1", "2", "1, 2", "9", "PA1", "", "3 (x)"},
					{"Net", "GND", "OUT", "/OUT", "NC", "", "SDA", "`SPI{slash}CS`", "\\*x"},
					{"Name", "PA1", "VCC", "", "own"},
				}
				if r.IntN(3) == 0 {
					cols = cols[1:]
				}
			}
			r.Shuffle(len(cols), func(i, j int) { cols[i], cols[j] = cols[j], cols[i] })
			cols = cols[:max(3, r.IntN(len(cols)+1))]
			outer := r.IntN(4) > 0
			row := func(cell func(c []string) string) {
				var cells []string
				for _, c := range cols {
					cells = append(cells, cell(c))
				}
				if outer {
					fmt.Fprintf(&b, "| %s |%s", strings.Join(cells, " | "), eol)
				} else {
					fmt.Fprintf(&b, "%s%s", strings.Join(cells, " | "), eol)
				}
			}
			row(func(c []string) string { return c[0] })
			row(func(c []string) string { return pick("---", ":--", "-:") })
			for range r.IntN(6) {
				row(func(c []string) string { return pick(c[1:]...) })
			}
			b.WriteString(eol)
		}
		text := b.String()
		if r.IntN(3) == 0 {
			text = strings.TrimRight(text, "\r\n")
		}
		name := pick("BOM.md", "SPEC.md", "PINOUT.md")
		if !t.Run(fmt.Sprint(seed), func(t *testing.T) { fix(t, d, read(t, name, text)) }) {
			return
		}
	}
}

// A design without parts, and documents that tell what was, are left alone.
func TestFixLeavesAlone(t *testing.T) {
	text := "| Refdes | Value |\n|---|---|\n| R1 | 1M |\n"
	if e := docs.Fix(design(t, ""), read(t, "BOM.md", text)); len(e) > 0 {
		t.Errorf("no parts: %v", e)
	}
	if e := docs.Fix(design(t, small), read(t, "docs/DECISIONS.md", text)); len(e) > 0 {
		t.Errorf("history: %v", e)
	}
}
