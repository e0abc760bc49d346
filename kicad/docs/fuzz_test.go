// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"testing"

	"github.com/fiducial-dev/fiducial/kicad/docs"
)

// For any bytes at all: no panic, cells lie where they say, a repair can be applied, and a second one does nothing.
func FuzzDocument(f *testing.F) {
	f.Add("| Refdes | Value |\n|---|---|\n| R1 | 1k |\n")
	f.Add("\ufeffRef | Pin | Net\r\n-|-|-\r\nU1 | 1, 2 | `GND`\r\n")
	f.Add("<!-- fiducial:pinout U -->\n## U1\n|Pin|Net|\n|-|-|\n|1|\\*x\\||")
	f.Add("```\n| Refdes |\n|-|\n~~~\n| \xb5 | `` ` `` |")
	d := design(f, small)
	f.Fuzz(func(t *testing.T, text string) {
		doc, err := docs.ReadDocument("BOM.md", []byte(text))
		if err != nil {
			return
		}
		for _, tab := range doc.Tables {
			for _, row := range tab.Rows {
				for _, c := range row.Cells {
					if c.Start < row.Start || c.End > row.End || c.End < c.Start {
						t.Fatalf("cell %d to %d of the line %d to %d", c.Start, c.End, row.Start, row.End)
					}
				}
			}
		}
		now, err := docs.Apply(doc, docs.Fix(d, doc))
		if err != nil {
			t.Fatal(err)
		}
		if again := docs.Fix(d, now); len(again) > 0 {
			t.Fatalf("a second repair %v of %q", again, now.Src)
		}
	})
}
