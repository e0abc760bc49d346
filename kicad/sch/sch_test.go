// SPDX-License-Identifier: Apache-2.0

package sch_test

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/sch"
	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

func mapFS(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func load(t *testing.T, files map[string]string) *sch.Design {
	t.Helper()
	d, err := sch.Load(mapFS(files), "p.kicad_sch")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// apply makes the edits and checks that nothing but their ranges changed.
func apply(t *testing.T, files map[string]string, edits []sexpr.Edit) map[string]string {
	t.Helper()
	out := map[string]string{}
	byFile := sexpr.ByFile(edits)
	for name, text := range files {
		data, err := sexpr.Apply([]byte(text), byFile[name])
		if err != nil {
			t.Fatal(err)
		}
		out[name] = string(data)
		if strings.Count(out[name], "\n") != strings.Count(text, "\n") {
			t.Errorf("%s has another number of lines", name)
		}
	}
	return out
}

// oracle is the real kicad-cli.
type oracle struct{ r *kicadcli.Runner }

func newOracle(t *testing.T) oracle {
	t.Helper()
	r, err := kicadcli.New(kicadcli.Options{Path: kicadtest.CLI(t), TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return oracle{r}
}

// nets maps the pins of each net to its name.
func (o oracle) nets(t *testing.T, files map[string]string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	kicadtest.Write(t, dir, files)
	n, err := o.r.Netlist(t.Context(), kicadcli.At(filepath.Join(dir, "p.kicad_sch")))
	if err != nil {
		t.Fatal(err)
	}
	nets := map[string]string{}
	for _, net := range n.Nets {
		nets[fmt.Sprint(net.Pins)] = net.Name
	}
	return nets
}

// renamed lists the nets whose name changed, and fails when the pins of any net did.
func renamed(t *testing.T, before, after map[string]string) string {
	t.Helper()
	var list []string
	for pins, name := range before {
		now, ok := after[pins]
		if !ok {
			t.Errorf("the net %s %s is gone", name, pins)
		}
		if now != name {
			list = append(list, name+">"+now)
		}
	}
	if len(before) != len(after) {
		t.Errorf("%d nets, then %d", len(before), len(after))
	}
	slices.Sort(list)
	return strings.Join(list, " ")
}

// many is a sheet on which every kind of name meets: OUT local twice, GND by power symbols, BUS global, an escaped
// slash, overbars, and a child with the same local name.
func many() map[string]string {
	s := kicadtest.NewSheet("p", 1)
	s.Resistor("R1", "1k", 10, 20)
	s.Resistor("R2", "1k", 20, 20)
	s.Resistor("R3", "1k", 30, 20)
	s.Label("label", "OUT", 10, 18.5)
	s.Label("label", "OUT", 20, 18.5)
	s.Power("#PWR01", "GND", 10, 21.5)
	s.Power("#PWR02", "GND", 20, 21.5)
	s.Label("label", "SPI/CS", 30, 18.5)
	s.Label("label", "SPI{slash}CS", 30, 21.5)
	s.Resistor("R4", "1k", 40, 20)
	s.Label("label", "~{RESET}", 40, 18.5)
	s.Label("global_label", "BUS", 40, 21.5)
	c := s.Child("C", "sub/c.kicad_sch", 60, 20, "IN", "X")
	s.Wire(55, 21, 60, 21)
	s.Label("label", "IN", 57, 21) // in the middle of the wire that leads to the pin IN
	s.Resistor("R5", "1k", 55, 22.5)
	s.Label("label", "X", 55, 24) // not wired to the pin X
	child := kicadtest.NewSheet("p", 500)
	child.Path = s.Path + "/" + c
	child.Resistor("R6", "1k", 10, 20)
	child.Label("hierarchical_label", "IN", 10, 18.5)
	child.Label("label", "OUT", 10, 21.5)
	child.Resistor("R7", "1k", 20, 20)
	child.Label("hierarchical_label", "X", 20, 18.5)
	child.Label("global_label", "BUS", 20, 21.5)
	child.Resistor("R8", "1k", 30, 20)
	child.Label("label", "BUS", 30, 18.5)
	return map[string]string{"p.kicad_sch": s.String(), "sub/c.kicad_sch": child.String()}
}

// Cases 19 and 20: every spelling of a name is found, nothing else changes, and kicad-cli sees the very same nets under
// the new name.
func TestRenameNet(t *testing.T) {
	o := newOracle(t)
	before := o.nets(t, many())
	for _, tt := range []struct {
		from, to string
		opts     sch.RenameOptions
		edits    int
		want     string // what kicad-cli must see
	}{
		{"/OUT", "SIG", sch.RenameOptions{}, 2, "/OUT>/SIG"},
		{"/C/OUT", "/C/SIG", sch.RenameOptions{}, 1, "/C/OUT>/C/SIG"},
		{"OUT", "SIG", sch.RenameOptions{All: true}, 3, "/C/OUT>/C/SIG /OUT>/SIG"},
		{"GND", "AGND", sch.RenameOptions{}, 2, "GND>AGND"},
		{"SPI/CS", "SPI/SS", sch.RenameOptions{}, 2, "/SPI{slash}CS>/SPI{slash}SS"},
		{"/SPI{slash}CS", "CS", sch.RenameOptions{}, 2, "/SPI{slash}CS>/CS"},
		{"~{RESET}", "~{RST}", sch.RenameOptions{}, 1, "/~{RESET}>/~{RST}"},
		{"BUS", `A"B\C`, sch.RenameOptions{}, 3, `BUS>A"B\C`},
		{"IN", "INPUT", sch.RenameOptions{}, 3, "/IN>/INPUT"}, // the label on the wire, the pin and the label behind it
		{"/X", "Y", sch.RenameOptions{}, 1, "/X>/Y"},          // the pin X of the same sheet is another net
		{"/C/X", "Y", sch.RenameOptions{}, 2, "/C/X>/C/Y"},
	} {
		t.Run(tt.from, func(t *testing.T) {
			files := many()
			r, err := load(t, files).RenameNet(tt.from, tt.to, tt.opts)
			if err != nil {
				t.Fatal(err)
			}
			if len(r.Edits) != tt.edits {
				t.Errorf("%d edits, want %d: %v", len(r.Edits), tt.edits, r.Edits)
			}
			after := apply(t, files, r.Edits)
			if got := renamed(t, before, o.nets(t, after)); got != tt.want {
				t.Errorf("kicad-cli sees %q, want %q", got, tt.want)
			}
			for pair := range strings.FieldsSeq(tt.want) {
				from, to, _ := strings.Cut(pair, ">")
				if !slices.Contains(r.Nets, [2]string{from, to}) {
					t.Errorf("Nets %q lack %q", r.Nets, pair)
				}
			}
		})
	}
}

// Up to KiCad 7 the hidden pin of a power symbol names the net, whatever its Value; a hidden power pin of a part does always.
func TestRenameNet_OldPowerSymbols(t *testing.T) {
	old := strings.Replace(kicadtest.Divider("p").String(), "20250114", "20230121", 1)
	files := map[string]string{"p.kicad_sch": strings.Replace(old, "(length 0)", "(length 0) hide", 1)}
	o := newOracle(t)
	r, err := load(t, files).RenameNet("PWR", "VDD", sch.RenameOptions{}) // the pin is called PWR, the Values VCC and GND
	if err != nil || len(r.Edits) != 3 {
		t.Fatalf("%v, %v", r.Edits, err)
	}
	if got, want := renamed(t, o.nets(t, files), o.nets(t, apply(t, files, r.Edits))), "PWR>VDD"; got != want {
		t.Errorf("kicad-cli sees %q, want %q", got, want)
	}

	sheet := kicadtest.Divider("p").String()
	hidden := strings.Replace(sheet, `(pin passive line (at 0 3.81 270) (length 2.54) (name "~"`, `(pin power_in line (at 0 3.81 270) (length 2.54) (hide yes) (name "GND"`, 1)
	var e *sch.EditError
	if _, err := load(t, map[string]string{"p.kicad_sch": hidden}).RenameNet("GND", "AGND", sch.RenameOptions{}); !errors.As(err, &e) ||
		e.Kind != sch.HiddenPin || !slices.Equal(e.Candidates, []string{"R1", "R2"}) {
		t.Errorf("hidden pin: %v", err)
	}
}

// A sheet that is used twice has its text once: the pins of both symbols go with the label.
func TestRenameNet_SharedSheet(t *testing.T) {
	files := kicadtest.Shared("p")
	r, err := load(t, files).RenameNet("/B/SIG", "CLK", sch.RenameOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if len(r.Edits) != 3 {
		t.Errorf("%d edits, want the label and both pins", len(r.Edits))
	}
	if want := [][2]string{{"/A/SIG", "/A/CLK"}, {"/B/SIG", "/B/CLK"}}; !slices.Equal(r.Nets, want) {
		t.Errorf("nets %v, want %v", r.Nets, want)
	}
	o := newOracle(t)
	after := apply(t, files, r.Edits)
	if got := renamed(t, o.nets(t, files), o.nets(t, after)); got != "" { // the label INNER on the same wire names the net
		t.Errorf("kicad-cli sees %q", got)
	}
	if r, err = load(t, after).RenameNet("/B/INNER", "CORE", sch.RenameOptions{}); err != nil {
		t.Fatal(err)
	}
	if got, want := renamed(t, o.nets(t, after), o.nets(t, apply(t, after, r.Edits))), "/B/INNER>/B/CORE"; got != want {
		t.Errorf("kicad-cli sees %q, want %q", got, want)
	}
}

func TestRenameNet_Refusals(t *testing.T) {
	broken := many()
	broken["sub/c.kicad_sch"] = strings.TrimSuffix(broken["sub/c.kicad_sch"], ")\n")
	for _, tt := range []struct {
		files    map[string]string
		from, to string
		kind     sch.EditErrorKind
		names    string // in the candidates
	}{
		{many(), "OUT", "SIG", sch.Ambiguous, "/C/OUT"},
		{many(), "/OUT", "GND", sch.NetExists, "power symbol"},
		{many(), "GND", "OUT", sch.NetExists, "local label"},
		{many(), "/OUT", "SPI/CS", sch.NetExists, "local label"},
		{many(), "IN", "OUT", sch.NetExists, "sub/c.kicad_sch"},
		{many(), "OUTT", "SIG", sch.NoSuchNet, "OUT"},
		{many(), "Net-(R1-Pad1)", "SIG", sch.NoSuchNet, ""},
		{many(), "GND", "", sch.BadName, ""},
		{many(), "GND", "GND", sch.BadName, ""},
		{many(), "GND", " A", sch.BadName, ""},
		{many(), "GND", "A\nB", sch.BadName, ""},
		{many(), "GND", "D[0..7]", sch.BadName, ""},
		{many(), "/C/OUT", "/D/OUT", sch.BadName, ""},
		{broken, "GND", "AGND", sch.Broken, "sub/c.kicad_sch"},
	} {
		r, err := load(t, tt.files).RenameNet(tt.from, tt.to, sch.RenameOptions{})
		var e *sch.EditError
		if !errors.As(err, &e) || e.Kind != tt.kind || !strings.Contains(strings.Join(e.Candidates, " "), tt.names) || len(r.Edits) > 0 {
			t.Errorf("%s to %q: %v, want kind %d with %q", tt.from, tt.to, err, tt.kind, tt.names)
		}
	}
	if r, err := load(t, many()).RenameNet("/OUT", "GND", sch.RenameOptions{Merge: true}); err != nil || len(r.Edits) != 2 {
		t.Errorf("told to merge: %v, %v", r.Edits, err)
	}
}

// Case 32: only the part itself changes. Case 01: quotes and backslashes are written KiCad's way.
func TestSetProperty(t *testing.T) {
	s := kicadtest.NewSheet("p", 1)
	for i, ref := range []string{"R1", "R10", "R100", "AR1"} {
		s.Resistor(ref, "10k", float64(10+10*i), 20)
	}
	s.Symbol("T:DUAL", "U1", "old", 1, 60, 20)
	s.Symbol("T:DUAL", "U1", "old", 2, 70, 20)
	files := map[string]string{"p.kicad_sch": s.String()}
	d := load(t, files)
	o := newOracle(t)
	for _, tt := range []struct {
		ref, name, value string
		edits            int
	}{
		{"R1", "Value", `A"B\C`, 1}, {"U1", "Value", "new", 2}, {"R10", "Footprint", "T:R_0603", 1}, {"R100", "Value", "10k", 0},
	} {
		edits, err := d.SetProperty(tt.ref, tt.name, tt.value)
		if err != nil || len(edits) != tt.edits {
			t.Fatalf("%s %s: %d edits, %v, want %d", tt.ref, tt.name, len(edits), err, tt.edits)
		}
		after := apply(t, files, edits)
		dir := t.TempDir()
		kicadtest.Write(t, dir, after)
		inv, err := o.r.Inventory(t.Context(), kicadcli.At(filepath.Join(dir, "p.kicad_sch")))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range inv {
			want := map[string]string{"Value": "10k", "Footprint": ""}
			if e.Ref == "U1" {
				want["Value"] = "old"
			}
			if e.Ref == tt.ref {
				want[tt.name] = tt.value
			}
			if e.Value != want["Value"] || e.Footprint != want["Footprint"] {
				t.Errorf("after %s of %s: %+v", tt.name, tt.ref, e)
			}
		}
	}

	edits, err := d.SetProperty("U1", "MPN", "X-1")
	if err != nil || len(edits) != 2 {
		t.Fatalf("a new field: %v, %v", edits, err)
	}
	out, _ := sexpr.Apply([]byte(files["p.kicad_sch"]), edits)
	if part, err := load(t, map[string]string{"p.kicad_sch": string(out)}).Find("U1"); err != nil || part.Units[1].Symbol.Value("MPN") != "X-1" {
		t.Errorf("the new field is not there: %v", err)
	}
	o.nets(t, map[string]string{"p.kicad_sch": string(out)}) // it loads

	edits, err = d.SetFlag("U1", "dnp", true)
	if err != nil || len(edits) != 2 {
		t.Fatalf("dnp: %v, %v", edits, err)
	}
	if part, _ := load(t, apply(t, files, edits)).Find("U1"); !part.DNP {
		t.Error("U1 is still fitted")
	}
	for ref, kind := range map[string]sch.EditErrorKind{"R2": sch.NoSuchPart, "r1": sch.NoSuchPart, "": sch.NoSuchPart} {
		var e *sch.EditError
		if _, err := d.SetProperty(ref, "Value", "x"); !errors.As(err, &e) || e.Kind != kind {
			t.Errorf("%q: %v", ref, err)
		}
	}
}

// Case 10: the property and the instances change together, in every unit; in a shared sheet only one use does.
func TestRenameReference(t *testing.T) {
	files := kicadtest.Shared("p")
	d := load(t, files)
	edits, err := d.RenameReference("R20", "R99")
	if err != nil || len(edits) != 1 {
		t.Fatalf("R20: %v, %v, want its instance alone", edits, err)
	}
	after := load(t, apply(t, files, edits))
	var refs []string
	for _, p := range after.Parts() {
		refs = append(refs, p.Ref)
	}
	if got := strings.Join(refs, " "); got != "R1 R2 R10 R99" {
		t.Errorf("parts %s", got)
	}
	edits, err = d.RenameReference("R10", "R11")
	if err != nil || len(edits) != 2 {
		t.Errorf("R10: %v, %v, want its instance and the property", edits, err)
	}
	nets := newOracle(t).nets(t, apply(t, files, edits))
	if nets["[R1.1 R11.1]"] != "/SIG_A" {
		t.Errorf("kicad-cli sees %v", nets)
	}

	s := kicadtest.NewSheet("p", 1)
	s.Symbol("T:DUAL", "U1", "x", 1, 60, 20)
	s.Symbol("T:DUAL", "U1", "x", 2, 70, 20)
	s.Symbol("T:R", "R7", "x", 1, 80, 20, kicadtest.Instance{Path: s.Path, Ref: "R1"}) // case 10, property-only
	d = load(t, map[string]string{"p.kicad_sch": s.String()})
	if edits, err = d.RenameReference("U1", "U2"); err != nil || len(edits) != 4 {
		t.Errorf("U1: %v, %v, want 4 edits", edits, err)
	}
	if !slices.ContainsFunc(d.Problems, func(p sch.Problem) bool { return p.Kind == sch.ReferenceMismatch }) {
		t.Errorf("problems %v", d.Problems)
	}
	if edits, err = d.RenameReference("R1", "R5"); err != nil || len(edits) != 2 {
		t.Errorf("R1: %v, %v", edits, err)
	}
	for to, kind := range map[string]sch.EditErrorKind{
		"U1": sch.PartExists, "R?": sch.BadName, "": sch.BadName, "7": sch.BadName, "R 1": sch.BadName, "#PWR1": sch.BadName, "R": sch.BadName,
	} {
		var e *sch.EditError
		if _, err := d.RenameReference("R1", to); !errors.As(err, &e) || e.Kind != kind {
			t.Errorf("to %q: %v", to, err)
		}
	}
}

// Case 12 and the like: what kicad-cli skips in silence is a problem with its place.
func TestLoad_Problems(t *testing.T) {
	root := kicadtest.NewSheet("p", 1)
	root.Child("Gone", "gone.kicad_sch", 10, 10)
	root.Child("Up", "../up.kicad_sch", 30, 10)
	root.Child("Abs", "/etc/abs.kicad_sch", 50, 10)
	root.Child("Self", "p.kicad_sch", 70, 10)
	root.Child("Text", "text.kicad_sch", 90, 10)
	root.Child("Cut", "cut.kicad_sch", 10, 30)
	root.Resistor("R1", "1k", 30, 30)
	root.Resistor("R1", "2k", 40, 30)
	root.Resistor("R?", "3k", 50, 30)
	root.Symbol("T:Nope", "U1", "x", 1, 60, 30)
	child := kicadtest.NewSheet("p", 500).String()
	d := load(t, map[string]string{"p.kicad_sch": root.String(), "text.kicad_sch": "hello", "cut.kicad_sch": child[:len(child)-2]})
	var kinds []string
	for _, p := range d.Problems {
		if p.File == "" || p.Text == "" {
			t.Errorf("problem %+v", p)
		}
		kinds = append(kinds, string(p.Kind))
	}
	slices.Sort(kinds)
	want := "duplicate-reference missing-sheet not-annotated outside-sheet outside-sheet sheet-cycle symbol-not-cached unreadable-sheet unreadable-sheet"
	if got := strings.Join(kinds, " "); got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	if _, err := d.Find("R1"); err == nil {
		t.Error("R1 is ambiguous and was found")
	}
	if _, err := sch.Load(mapFS(nil), "p.kicad_sch"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no root: %v", err)
	}
	if _, err := sch.Load(mapFS(map[string]string{"p.kicad_sch": "EESchema"}), "p.kicad_sch"); !errors.Is(err, sch.ErrNotSchematic) {
		t.Errorf("KiCad 5: %v", err)
	}
}

// A tree of twenty files, each using the next twice, has a million sheets.
func TestLoad_CutsTheTree(t *testing.T) {
	files := map[string]string{"20.kicad_sch": kicadtest.NewSheet("p", 1).String()}
	for i := range 20 {
		s := kicadtest.NewSheet("p", 1)
		next := fmt.Sprintf("%d.kicad_sch", i+1)
		s.Child("A", next, 10, 10)
		s.Child("B", next, 30, 10)
		files[fmt.Sprintf("%d.kicad_sch", i)] = s.String()
	}
	d, err := sch.Load(mapFS(files), "0.kicad_sch")
	if err != nil || len(d.Sheets) != 10_000 || len(d.Problems) != 1 {
		t.Errorf("%d sheets, %d problems, %v", len(d.Sheets), len(d.Problems), err)
	}
}

// KiCad 6 keeps references in a table of the root file, and the sheets' fields have other names.
func TestLoad_KiCad6(t *testing.T) {
	const root = `(kicad_sch (version 20211123) (generator eeschema)
  (uuid 11111111-0000-4000-8000-000000000001)
  (lib_symbols (symbol "T:R"))
  (symbol (lib_id "T:R") (at 1 2 0) (unit 1) (in_bom yes) (on_board yes) (uuid 11111111-0000-4000-8000-00000000000a)
    (property "Reference" "R8" (id 0) (at 0 0 0)) (property "Value" "1k" (id 1) (at 0 0 0)))
  (sheet (at 10 10) (size 5 5) (uuid 11111111-0000-4000-8000-00000000000b)
    (property "Sheet name" "A" (id 0) (at 0 0 0)) (property "Sheet file" "c.kicad_sch" (id 1) (at 0 0 0)))
  (symbol_instances
    (path "/11111111-0000-4000-8000-00000000000a" (reference "R1") (unit 1) (value "1k") (footprint ""))
    (path "/11111111-0000-4000-8000-00000000000b/11111111-0000-4000-8000-00000000000c" (reference "R2") (unit 1) (value "2k") (footprint ""))))
`
	const child = `(kicad_sch (version 20211123) (generator eeschema)
  (lib_symbols (symbol "T:R"))
  (symbol (lib_id "T:R") (at 1 2 0) (unit 1) (in_bom yes) (on_board yes) (uuid 11111111-0000-4000-8000-00000000000c)
    (property "Reference" "R?" (id 0) (at 0 0 0)) (property "Value" "2k" (id 1) (at 0 0 0))))
`
	files := map[string]string{"p.kicad_sch": root, "c.kicad_sch": child}
	d := load(t, files)
	parts := d.Parts()
	if len(parts) != 2 || parts[0].Ref != "R1" || parts[1].Ref != "R2" || d.Sheets[1].Name != "/A/" {
		t.Fatalf("parts %+v", parts)
	}
	edits, err := d.RenameReference("R2", "R9")
	if err != nil || len(edits) != 2 {
		t.Fatalf("rename: %v, %v", edits, err)
	}
	value, err := d.SetProperty("R2", "Value", "3k")
	if err != nil || len(value) != 2 {
		t.Fatalf("value: %v, %v", value, err)
	}
	after := apply(t, files, append(edits, value...))
	if part, err := load(t, after).Find("R9"); err != nil || part.Value != "3k" || strings.Contains(after["p.kicad_sch"], "2k") {
		t.Errorf("%+v, %v", part, err)
	}
}

func TestDesign_AgreesWithInventory(t *testing.T) {
	files := many()
	dir := t.TempDir()
	kicadtest.Write(t, dir, files)
	inv, err := newOracle(t).r.Inventory(t.Context(), kicadcli.At(filepath.Join(dir, "p.kicad_sch")))
	if err != nil {
		t.Fatal(err)
	}
	parts := load(t, files).Parts()
	if len(inv) != len(parts) {
		t.Fatalf("%d parts, kicad-cli has %d", len(parts), len(inv))
	}
	for i, p := range parts {
		if p.Ref != inv[i].Ref || p.Value != inv[i].Value {
			t.Errorf("%s %s, kicad-cli has %+v", p.Ref, p.Value, inv[i])
		}
	}
}

func BenchmarkRename10MB(b *testing.B) {
	s := kicadtest.NewSheet("p", 1)
	for i := range 9000 {
		s.Resistor(fmt.Sprintf("R%d", i+1), "10k", float64(i%100), float64(i/100))
		s.Label("label", fmt.Sprintf("N%d", i/2), float64(i%100), float64(i/100)-1.5)
	}
	files := mapFS(map[string]string{"p.kicad_sch": s.String()})
	b.SetBytes(int64(len(files["p.kicad_sch"].Data)))
	for b.Loop() {
		d, err := sch.Load(files, "p.kicad_sch")
		if err != nil {
			b.Fatal(err)
		}
		if r, err := d.RenameNet("/N17", "SIG", sch.RenameOptions{}); err != nil || len(r.Edits) != 2 {
			b.Fatal(len(r.Edits), err)
		}
		if n := len(d.Parts()); n != 9000 {
			b.Fatal(n)
		}
	}
}
