// SPDX-License-Identifier: Apache-2.0

package kicadcli_test

import (
	"bytes"
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
)

func TestSheetFile(t *testing.T) {
	for want, in := range map[string][]string{
		"a.svg":             {"dir/a.kicad_sch"},
		"a-Power-3V3_x.svg": {"a.kicad_sch", "Power", "3V3/x"},
		"a-\"q\" <&>.svg":   {"a.kicad_sch", "\"q\" <&>"},
	} {
		if got := kicadcli.SheetFile(in[0], in[1:]...); got != want {
			t.Errorf("SheetFile(%q) = %q, want %q", in, got, want)
		}
	}
}

// TestSchematicSVG draws a file that two sheets use, under the names that SheetFile foretells, and sheets with odd names.
func TestSchematicSVG(t *testing.T) {
	t.Parallel()
	r := newRunner(t, kicadcli.Options{})
	files := kicadtest.Shared("p")
	files["p.kicad_sch"] = strings.Replace(files["p.kicad_sch"], `"Sheetname" "B"`, `"Sheetname" "b/c \"q\" <&> 'x' {slash}"`, 1)
	dir := project(t, files)
	list, err := r.SchematicSVG(t.Context(), kicadcli.At(filepath.Join(dir, "p.kicad_sch")))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range list {
		got = append(got, s.File)
		if !bytes.Contains(s.SVG, []byte("<svg")) {
			t.Errorf("%s is no SVG", s.File)
		}
	}
	want := []string{
		kicadcli.SheetFile("p.kicad_sch"), kicadcli.SheetFile("p.kicad_sch", "A"),
		kicadcli.SheetFile("p.kicad_sch", `b/c "q" <&> 'x' {slash}`),
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("pictures %q, want %q", got, want)
	}
	broken := kicadcli.Input{File: filepath.Join(dir, "p.kicad_sch"), Overlay: map[string][]byte{"p.kicad_sch": []byte("(kicad_sch")}}
	if _, err := r.SchematicSVG(t.Context(), broken); !errors.Is(err, &kicadcli.Error{Kind: kicadcli.NotLoaded}) {
		t.Errorf("a broken sheet: %v, want NotLoaded", err)
	}
}

// TestBoardSVG tells layers apart whatever the user calls them, also when two have one name.
func TestBoardSVG(t *testing.T) {
	t.Parallel()
	r := newRunner(t, kicadcli.Options{})
	board := kicadtest.Board
	named := func(front, back string) string {
		s := strings.Replace(board, `(0 "F.Cu" signal)`, `(0 "F.Cu" signal `+front+`)`, 1)
		return strings.Replace(s, `(2 "B.Cu" signal)`, `(2 "B.Cu" signal `+back+`)`, 1)
	}
	for name, text := range map[string]string{
		"plain": board, "renamed": named(`"Top 'x/y"`, `"Bottom"`), "one name": named(`"Copper"`, `"Copper"`),
	} {
		dir := project(t, map[string]string{"p.kicad_pcb": text})
		got, err := r.BoardSVG(t.Context(), kicadcli.At(filepath.Join(dir, "p.kicad_pcb")), []string{"B.Cu", "Edge.Cuts", "F.Cu"})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		// KiCad's default theme draws the front copper in C83434 and the back copper in 4D7FC4
		if f, b := got["F.Cu"], got["B.Cu"]; len(got) != 3 || !bytes.Contains(f, []byte("C83434")) || bytes.Contains(b, []byte("C83434")) {
			t.Errorf("%s: %d layers; front has the front's colour: %v, back: %v", name, len(got), bytes.Contains(f, []byte("C83434")), bytes.Contains(b, []byte("C83434")))
		}
	}
}
