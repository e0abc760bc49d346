// SPDX-License-Identifier: Apache-2.0

package sch_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/sch"
	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// FuzzRead reads any bytes as a root sheet that uses itself and a sound child, and edits what it finds: an edit either
// is refused by an EditError or applies, and what it says is then read back.
func FuzzRead(f *testing.F) {
	shared := kicadtest.Shared("p")
	f.Add([]byte(shared["p.kicad_sch"]), "SIG_A", "R1")
	f.Add([]byte(kicadtest.Divider("p").String()), "OUT", "R2")
	f.Add([]byte(many()["p.kicad_sch"]), "SPI/CS", "R3")
	f.Add([]byte("(kicad_sch (symbol (lib_id \"a\") (property) (instances (project (path)))) (sheet (property \"Sheetfile\" \"p.kicad_sch\")))"), "", "")
	f.Add([]byte("(kicad_sch (version x) (label) (sheet (pin)) (wire (pts (xy 1 nan) (xy 1e300))))"), "x", "y")
	f.Fuzz(func(t *testing.T, src []byte, net, ref string) {
		files := map[string]string{"p.kicad_sch": string(src), "blk.kicad_sch": shared["blk.kicad_sch"]}
		d, err := sch.Load(mapFS(files), "p.kicad_sch")
		if err != nil {
			if !errors.Is(err, sch.ErrNotSchematic) {
				t.Fatal(err)
			}
			return
		}
		names := d.Names()
		for _, name := range slices.Compact([]string{net, slices.Concat(names, []string{net})[0]}) {
			fuzzRename(t, files, d, name)
		}
		for _, p := range d.Parts() {
			ref = p.Ref
			break
		}
		if edits, err := d.SetProperty(ref, "Value", "new \"value\" \\"); fuzzed(t, files, edits, err) != nil {
			after := load(t, fuzzed(t, files, edits, err))
			if p, err := after.Find(ref); err == nil && p.Value != "new \"value\" \\" {
				t.Fatalf("the value of %q came back as %q", ref, p.Value)
			}
		}
		edits, err := d.SetFlag(ref, "dnp", true)
		fuzzed(t, files, edits, err)
		edits, err = d.RenameReference(ref, "ZZ9")
		fuzzed(t, files, edits, err)
	})
}

// fuzzRename renames a net to a name that nothing has, and back.
func fuzzRename(t *testing.T, files map[string]string, d *sch.Design, name string) {
	t.Helper()
	const fresh = "zz fresh zz"
	if strings.Contains(files["p.kicad_sch"], fresh) {
		return
	}
	r, err := d.RenameNet(name, fresh, sch.RenameOptions{})
	after := fuzzed(t, files, r.Edits, err)
	if after == nil {
		return
	}
	now := load(t, after)
	if len(now.Names()) != len(d.Names()) {
		t.Fatalf("renaming %q gives %d names, had %d", name, len(now.Names()), len(d.Names()))
	}
}

// fuzzed applies edits that were not refused; nil is for those that were.
func fuzzed(t *testing.T, files map[string]string, edits []sexpr.Edit, err error) map[string]string {
	t.Helper()
	if err != nil {
		if e := (*sch.EditError)(nil); !errors.As(err, &e) || e.Detail == "" {
			t.Fatalf("%v is no EditError", err)
		}
		return nil
	}
	out := maps.Clone(files)
	for name, list := range sexpr.ByFile(edits) {
		data, err := sexpr.Apply([]byte(files[name]), list)
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(data)
	}
	return out
}
