// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/kicad/pcb"
	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

func TestAttribute(t *testing.T) {
	t.Parallel()
	const head, tail = "(kicad_pcb\n\t(footprint \"A:B\"\n\t\t(property \"Reference\" \"R1\")", "\n\t)\n)\n"
	for name, c := range map[string]struct {
		attr string
		on   bool
		want string
	}{
		"added":        {"\n\t\t(attr smd)", true, "\n\t\t(attr smd dnp)"},
		"there":        {"\n\t\t(attr smd dnp)", true, "\n\t\t(attr smd dnp)"},
		"taken out":    {"\n\t\t(attr smd dnp exclude_from_bom)", false, "\n\t\t(attr smd exclude_from_bom)"},
		"the only one": {"\n\t\t(attr dnp)", false, ""},
		"no list":      {"", true, "\n\t\t(attr dnp)"},
		"nothing":      {"", false, ""},
	} {
		brd := pcb.Read("p.kicad_pcb", []byte(head+c.attr+tail))
		f, err := brd.Find("R1")
		if err != nil {
			t.Fatal(err)
		}
		got, err := sexpr.Apply(brd.Doc.Source(), attribute(brd.Name, f, "dnp", c.on))
		if err != nil || string(got) != head+c.want+tail {
			t.Errorf("%s: got %q, %v", name, strings.TrimPrefix(string(got), head), err)
		}
		if now, err := pcb.Read("p", got).Find("R1"); err != nil || now.DNP != c.on {
			t.Errorf("%s: DNP %v, %v", name, now, err)
		}
	}
}
