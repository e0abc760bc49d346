// SPDX-License-Identifier: Apache-2.0

package sch_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/sch"
)

const projectFile = `{
  "meta": {"/OUT": "/OUT", "version": 3},
  "net_settings": {
    "classes": [
      {"name": "Default", "clearance": 0.2, "track_width": 0.2, "priority": 2147483647},
      {"name": "Wide", "clearance": 0.3, "track_width": 1.0, "priority": 0}
    ],
    "meta": {"version": 4},
    "net_colors": {"/OUT": "rgb(1, 2, 3)"},
    "netclass_assignments": {"/OUT" : ["Wide"], "/OTHER": ["/OUT"]},
    "netclass_patterns": [
      {"netclass": "Wide", "pattern": "/OUT"}, {"netclass": "/OUT", "pattern": "/O*"}, {"pattern": "*U?", "netclass": "Default"}
    ]
  }
}
`

// A net keeps its class through a rename: kicad-cli's netlist names it.
func TestProjectNets(t *testing.T) {
	files := map[string]string{"p.kicad_sch": kicadtest.Divider("p").String(), "p.kicad_pro": projectFile}
	r, err := load(t, files).RenameNet("/OUT", `A"B`, sch.RenameOptions{})
	if err != nil {
		t.Fatal(err)
	}
	edits, lost, err := sch.ProjectNets("p.kicad_pro", []byte(projectFile), map[string]string{"/OUT": `/A"B`})
	if err != nil || len(edits) != 3 {
		t.Fatalf("%v, %v", edits, err)
	}
	if !slices.Equal(lost, []string{"/O*", "*U?"}) {
		t.Errorf("lost %q", lost)
	}
	o := newOracle(t)
	class := func(files map[string]string, net string) string {
		dir := t.TempDir()
		kicadtest.Write(t, dir, files)
		n, err := o.r.Netlist(t.Context(), kicadcli.At(filepath.Join(dir, "p.kicad_sch")))
		if err != nil {
			t.Fatal(err)
		}
		found, _ := n.Net(net)
		return found.Class
	}
	before, without, with := class(files, "/OUT"), class(apply(t, files, r.Edits), `/A"B`), class(apply(t, files, append(r.Edits, edits...)), `/A"B`)
	// the patterns with wildcards gave the net further classes
	if before != "Wide,/OUT,Default,Default" || without != "Default" || with != "Wide,Default" {
		t.Errorf("class %q, without the project file %q, with it %q", before, without, with)
	}
	if _, _, err := sch.ProjectNets("p.kicad_pro", []byte("{"), nil); err == nil {
		t.Error("a broken project file went unseen")
	}
	for _, odd := range []string{"", "[]", "1", `{"net_settings": []}`, `{"net_settings": {"netclass_patterns": null, "netclass_assignments": null}}`} {
		if edits, _, err := sch.ProjectNets("p.kicad_pro", []byte(odd), map[string]string{"x": "y"}); len(edits) > 0 || err != nil {
			t.Errorf("%q: %v, %v", odd, edits, err)
		}
	}
}
