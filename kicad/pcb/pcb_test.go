// SPDX-License-Identifier: Apache-2.0

package pcb_test

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/pcb"
	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

func TestRead(t *testing.T) {
	b := pcb.Read("p.kicad_pcb", []byte(kicadtest.Board))
	if !b.Valid() || b.Version != pcb.Newest || b.Style != pcb.Table || len(b.Nets) != 4 {
		t.Fatalf("%v %d %d, %d nets", b.Errors, b.Version, b.Style, len(b.Nets))
	}
	if got, want := fmt.Sprint(b.Pins()), "map[/OUT:[R1.2 R2.1] GND:[R2.2] VCC:[R1.1]]"; got != want {
		t.Errorf("pins %s, want %s", got, want)
	}
	f, err := b.Find("R2")
	if err != nil || f.Value != "4k7" || f.ID != "T:R_0603" || len(f.Pads) != 2 {
		t.Errorf("R2 is %+v, %v", f, err)
	}
	var uses []string
	for _, u := range b.Uses {
		uses = append(uses, fmt.Sprintf("%s %d %s", u.In, u.Number, u.Name))
	}
	if got, want := strings.Join(uses, "; "), "pad 1 VCC; pad 2 /OUT; pad 2 /OUT; pad 3 GND; segment 2 ; zone 3 ; zone -1 GND"; got != want {
		t.Errorf("uses %s, want %s", got, want)
	}
}

func edited(t *testing.T, src string, edits []sexpr.Edit, err error) string {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	out, err := sexpr.Apply([]byte(src), edits)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

// judge has kicad-cli load a board and check it, and returns the counts of its findings.
func judge(t *testing.T, board string) string {
	t.Helper()
	r, err := kicadcli.New(kicadcli.Options{Path: kicadtest.CLI(t), TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Close() }()
	dir := t.TempDir()
	kicadtest.Write(t, dir, map[string]string{"p.kicad_pcb": board})
	in := kicadcli.At(filepath.Join(dir, "p.kicad_pcb"))
	if p, err := r.Probe(t.Context(), in); err != nil || !p.Loads {
		t.Fatalf("%s, %v", p.Summary(), err)
	}
	v, err := r.DRC(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(v.Report.Counts())
}

// Case 28: the table, the pads and the zones agree after a rename; kicad-cli complains of nothing and finds the same.
func TestRenameNets(t *testing.T) {
	b := pcb.Read("p.kicad_pcb", []byte(kicadtest.Board))
	edits, err := b.RenameNets(map[string]string{"/OUT": `/A"B\C`, "GND": "VCC", "VCC": "GND"})
	after := edited(t, kicadtest.Board, edits, err)
	if len(edits) != 3+4+1 {
		t.Errorf("%d edits, want 8", len(edits))
	}
	now := pcb.Read("p.kicad_pcb", []byte(after))
	if got, want := fmt.Sprint(now.Pins()), `map[/A"B\C:[R1.2 R2.1] GND:[R1.1] VCC:[R2.2]]`; got != want {
		t.Errorf("pins %s, want %s", got, want)
	}
	if a, b := strings.Split(kicadtest.Board, "\n"), strings.Split(after, "\n"); len(a) != len(b) {
		t.Error("the number of lines changed")
	}
	if before, after := judge(t, kicadtest.Board), judge(t, after); before != after {
		t.Errorf("DRC said %s, then %s", before, after)
	}
}

func TestRenameReferenceAndValue(t *testing.T) {
	b := pcb.Read("p.kicad_pcb", []byte(kicadtest.Board))
	edits, err := b.RenameReference("R1", "R9")
	if err != nil || len(edits) != 1 {
		t.Fatalf("%v, %v", edits, err)
	}
	more, err := b.SetField("R1", "Value", "22k")
	after := edited(t, kicadtest.Board, append(edits, more...), err)
	f, err := pcb.Read("p.kicad_pcb", []byte(after)).Find("R9")
	if err != nil || f.Value != "22k" {
		t.Errorf("%+v, %v", f, err)
	}
	judge(t, after)
}

func TestRefusals(t *testing.T) {
	b := pcb.Read("p.kicad_pcb", []byte(kicadtest.Board))
	twice := pcb.Read("p.kicad_pcb", []byte(strings.Replace(kicadtest.Board, `"R2"`, `"R1"`, 1)))
	broken := pcb.Read("p.kicad_pcb", []byte(kicadtest.Board+")"))
	text := pcb.Read("p.kicad_pcb", []byte("(kicad_sch)"))
	nets := func(b *pcb.Board, pairs ...string) error {
		m := map[string]string{}
		for p := range slices.Chunk(pairs, 2) {
			m[p[0]] = p[1]
		}
		_, err := b.RenameNets(m)
		return err
	}
	ref := func(b *pcb.Board, from, to string) error {
		_, err := b.RenameReference(from, to)
		return err
	}
	_, field := b.SetField("R1", "MPN", "x")
	for name, tt := range map[string]struct {
		err  error
		kind pcb.EditErrorKind
	}{
		"no net": {nets(b, "/X", "/Y"), pcb.NoSuchNet}, "merge": {nets(b, "/OUT", "GND"), pcb.NetExists},
		"two into one": {nets(b, "/OUT", "/X", "GND", "/X"), pcb.NetExists}, "empty": {nets(b, "/OUT", ""), pcb.BadName},
		"the net 0": {nets(b, "", "/X"), pcb.BadName}, "line feed": {nets(b, "/OUT", "a\nb"), pcb.BadName},
		"broken": {nets(broken, "/OUT", "/X"), pcb.Broken}, "no board": {nets(text, "/OUT", "/X"), pcb.Broken},
		"no part": {ref(b, "R7", "R8"), pcb.NoSuchFootprint}, "part exists": {ref(b, "R1", "R2"), pcb.FootprintExists},
		"twice": {ref(twice, "R1", "R3"), pcb.Ambiguous}, "blank": {ref(b, "R1", "R 3"), pcb.BadName}, "field": {field, pcb.NoSuchField},
	} {
		var e *pcb.EditError
		if !errors.As(tt.err, &e) || e.Kind != tt.kind {
			t.Errorf("%s: %v, want kind %d", name, tt.err, tt.kind)
		}
	}
}

func TestStyles(t *testing.T) {
	const v10 = `(kicad_pcb (version 20260206) (footprint "T:R" (property "Reference" "R1") (pad "1" smd rect (net "/OUT"))) (segment (net "/OUT")))`
	b := pcb.Read("p", []byte(v10))
	if b.Style != pcb.Inline || b.Version <= pcb.Newest || b.Pins()["/OUT"] == nil {
		t.Errorf("KiCad 10: style %d, pins %v", b.Style, b.Pins())
	}
	edits, err := b.RenameNets(map[string]string{"/OUT": "/X"})
	if after := edited(t, v10, edits, err); strings.Contains(after, "OUT") {
		t.Errorf("got %s", after)
	}
	const v5 = `(kicad_pcb (version 20171130) (net 0 "") (net 1 GND) (net_class Default "" (add_net GND))
  (module T:R (layer F.Cu) (tstamp 5A) (fp_text reference R1 (at 0 0)) (fp_text value 1k (at 0 0)) (pad 1 smd rect (net 1 GND))))`
	b = pcb.Read("p", []byte(v5))
	if got := slices.Collect(maps.Keys(b.Pins())); b.Style != pcb.Table || len(got) != 1 || b.Footprints[0].Value != "1k" {
		t.Errorf("KiCad 5: style %d, pins %v", b.Style, got)
	}
	edits, err = b.RenameNets(map[string]string{"GND": "AGND"})
	after := edited(t, v5, edits, err)
	if strings.Count(after, `"AGND"`) != 3 {
		t.Errorf("got %s", after)
	}
	if b = pcb.Read("p", []byte("(kicad_pcb (version 20241229))")); b.Style != pcb.NoNets {
		t.Errorf("an empty board has style %d", b.Style)
	}
}
