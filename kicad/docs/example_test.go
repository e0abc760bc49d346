// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"fmt"

	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
)

// A bill of materials that fell behind is compared with the design and repaired.
func ExampleFix() {
	design := docs.NewDesign([]kicadcli.Entry{
		{Ref: "R1", Value: "330"}, {Ref: "R2", Value: "4k7"}, {Ref: "R3", Value: "4k7"},
	}, &kicadcli.Netlist{})
	bom, err := docs.ReadDocument("docs/BOM.md", []byte(`| Refdes | Value   |
|--------|---------|
| R1     | 470     |
| R2-R3  | 4.7 kΩ  |
`))
	if err != nil {
		panic(err)
	}
	for _, m := range docs.Drift(design, []*docs.Document{bom}).Mismatches {
		fmt.Println(m)
	}
	now, err := docs.Apply(bom, docs.Fix(design, bom))
	if err != nil {
		panic(err)
	}
	fmt.Print(string(now.Src))
	// Output:
	// docs/BOM.md:3: R1 value: the document says 470, the design says 330
	// | Refdes | Value   |
	// |--------|---------|
	// | R1     | 330     |
	// | R2-R3  | 4.7 kΩ  |
}
