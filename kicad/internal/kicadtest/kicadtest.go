// SPDX-License-Identifier: Apache-2.0

// Package kicadtest draws small KiCad 9 designs for tests, and finds the kicad-cli that judges them.
package kicadtest

import (
	"cmp"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// CLI returns the path of kicad-cli. Without one the test is skipped, or fails when REQUIRE_KICAD is 1.
func CLI(tb testing.TB) string {
	tb.Helper()
	path, err := exec.LookPath("kicad-cli")
	if err == nil {
		return path
	}
	if v, _ := os.LookupEnv("REQUIRE_KICAD"); v == "1" {
		tb.Fatalf("REQUIRE_KICAD=1 and there is no kicad-cli: %v", err)
	}
	tb.Skip("no kicad-cli")
	return ""
}

// Write puts files into a folder; the keys are slash-separated.
func Write(tb testing.TB, dir string, files map[string]string) {
	tb.Helper()
	for name, text := range files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			tb.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
}

// UUID makes the n-th UUID.
func UUID(n int) string { return fmt.Sprintf("5eed0000-0000-4000-8000-%012x", n) }

// A Sheet is a schematic being drawn. Everything stands where the caller says, in units of 2.54 mm.
type Sheet struct {
	Root    string // UUID
	Project string // name in instances
	Path    string // of the instance that symbols name when they are given no other, "/"+Root when empty
	Version int    // format stamp, 20250114 when zero
	Extra   string // further symbols of lib_symbols
	next    int
	items   strings.Builder
}

// NewSheet begins a sheet whose UUIDs start at n.
func NewSheet(project string, n int) *Sheet {
	s := &Sheet{Project: project, next: n}
	s.Root = s.uuid()
	s.Path = "/" + s.Root
	return s
}

func (s *Sheet) uuid() string {
	s.next++
	return UUID(s.next - 1)
}

func mm(grid float64) string { return fmt.Sprintf("%.2f", grid*2.54) }

const font = "(effects (font (size 1.27 1.27)))"

// Add puts any text among the items.
func (s *Sheet) Add(format string, args ...any) { fmt.Fprintf(&s.items, format, args...) }

// An Instance is where a symbol is used: the path of sheet UUIDs, and its reference there.
type Instance struct{ Path, Ref string }

// Resistor places a vertical two-pin part; pin 1 is 1.5 units above, pin 2 1.5 units below. Without instances it has
// one, on the sheet's path.
func (s *Sheet) Resistor(ref, value string, x, y float64, inst ...Instance) {
	s.Symbol("T:R", ref, value, 1, x, y, inst...)
}

// Power places a power symbol whose pin is at its place.
func (s *Sheet) Power(ref, net string, x, y float64) { s.Symbol("T:PWR", ref, net, 1, x, y) }

// Symbol places a unit of a symbol of the sheet's own library: T:R, T:PWR, or T:DUAL with two units.
func (s *Sheet) Symbol(lib, ref, value string, unit int, x, y float64, inst ...Instance) {
	if len(inst) == 0 {
		inst = []Instance{{s.Path, ref}}
	}
	s.Add("\t(symbol\n\t\t(lib_id %q)\n\t\t(at %s %s 0)\n\t\t(unit %d)\n\t\t(exclude_from_sim no)\n\t\t(in_bom yes)\n\t\t(on_board yes)\n\t\t(dnp no)\n\t\t(uuid %q)\n",
		lib, mm(x), mm(y), unit, s.uuid())
	for _, p := range [][2]string{{"Reference", ref}, {"Value", value}, {"Footprint", ""}, {"Datasheet", "~"}} {
		s.Add("\t\t(property %q %s\n\t\t\t(at %s %s 0)\n\t\t\t%s\n\t\t)\n", p[0], sexpr.Quote(p[1]), mm(x), mm(y), font)
	}
	s.Add("\t\t(pin \"1\"\n\t\t\t(uuid %q)\n\t\t)\n\t\t(instances\n\t\t\t(project %q\n", s.uuid(), s.Project)
	for _, i := range inst {
		s.Add("\t\t\t\t(path %q\n\t\t\t\t\t(reference %q)\n\t\t\t\t\t(unit %d)\n\t\t\t\t)\n", i.Path, i.Ref, unit)
	}
	s.Add("\t\t\t)\n\t\t)\n\t)\n")
}

// Label puts a label: kind is label, global_label or hierarchical_label.
func (s *Sheet) Label(kind, text string, x, y float64) {
	shape := "\t\t(shape input)\n"
	if kind == "label" {
		shape = ""
	}
	s.Add("\t(%s %s\n%s\t\t(at %s %s 0)\n\t\t%s\n\t\t(uuid %q)\n\t)\n", kind, sexpr.Quote(text), shape, mm(x), mm(y), font, s.uuid())
}

// Wire draws a straight wire.
func (s *Sheet) Wire(x1, y1, x2, y2 float64) {
	s.Add("\t(wire\n\t\t(pts\n\t\t\t(xy %s %s) (xy %s %s)\n\t\t)\n\t\t(stroke\n\t\t\t(width 0)\n\t\t\t(type default)\n\t\t)\n\t\t(uuid %q)\n\t)\n",
		mm(x1), mm(y1), mm(x2), mm(y2), s.uuid())
}

// NoConnect marks a pin as open on purpose.
func (s *Sheet) NoConnect(x, y float64) {
	s.Add("\t(no_connect\n\t\t(at %s %s)\n\t\t(uuid %q)\n\t)\n", mm(x), mm(y), s.uuid())
}

// Child places a sheet symbol 10 by 8 units large, with pins on its left side one unit apart, and returns its UUID.
func (s *Sheet) Child(name, file string, x, y float64, pins ...string) string {
	id := s.uuid()
	s.Add("\t(sheet\n\t\t(at %s %s)\n\t\t(size 25.4 20.32)\n\t\t(exclude_from_sim no)\n\t\t(in_bom yes)\n\t\t(on_board yes)\n\t\t(dnp no)\n\t\t(uuid %q)\n", mm(x), mm(y), id)
	for _, p := range [][2]string{{"Sheetname", name}, {"Sheetfile", file}} {
		s.Add("\t\t(property %q %s\n\t\t\t(at %s %s 0)\n\t\t\t%s\n\t\t)\n", p[0], sexpr.Quote(p[1]), mm(x), mm(y), font)
	}
	for i, p := range pins {
		s.Add("\t\t(pin %s input\n\t\t\t(at %s %s 180)\n\t\t\t(uuid %q)\n\t\t\t%s\n\t\t)\n", sexpr.Quote(p), mm(x), mm(y+1+float64(i)), s.uuid(), font)
	}
	s.Add("\t\t(instances\n\t\t\t(project %q\n\t\t\t\t(path %q\n\t\t\t\t\t(page \"2\")\n\t\t\t\t)\n\t\t\t)\n\t\t)\n\t)\n", s.Project, s.Path)
	return id
}

// String is the file.
func (s *Sheet) String() string {
	return fmt.Sprintf("(kicad_sch\n\t(version %d)\n\t(generator \"eeschema\")\n\t(generator_version \"9.0\")\n\t(uuid %q)\n\t(paper \"A4\")\n%s%s\t)\n%s"+
		"\t(sheet_instances\n\t\t(path \"/\"\n\t\t\t(page \"1\")\n\t\t)\n\t)\n\t(embedded_fonts no)\n)\n", cmp.Or(s.Version, 20250114), s.Root, library, s.Extra, s.items.String())
}

const library = `	(lib_symbols
		(symbol "T:R"
			(exclude_from_sim no)
			(in_bom yes)
			(on_board yes)
			(property "Reference" "R" (at 0 0 0) (effects (font (size 1.27 1.27))))
			(property "Value" "R" (at 0 0 0) (effects (font (size 1.27 1.27))))
			(symbol "R_1_1"
				(pin passive line (at 0 3.81 270) (length 2.54) (name "~" (effects (font (size 1.27 1.27)))) (number "1" (effects (font (size 1.27 1.27)))))
				(pin passive line (at 0 -3.81 90) (length 2.54) (name "~" (effects (font (size 1.27 1.27)))) (number "2" (effects (font (size 1.27 1.27)))))
			)
		)
		(symbol "T:PWR"
			(power)
			(exclude_from_sim no)
			(in_bom yes)
			(on_board yes)
			(property "Reference" "#PWR" (at 0 0 0) (effects (font (size 1.27 1.27))))
			(property "Value" "PWR" (at 0 0 0) (effects (font (size 1.27 1.27))))
			(symbol "PWR_1_1"
				(pin power_in line (at 0 0 90) (length 0) (name "PWR" (effects (font (size 1.27 1.27)))) (number "1" (effects (font (size 1.27 1.27)))))
			)
		)
		(symbol "T:DUAL"
			(exclude_from_sim no)
			(in_bom yes)
			(on_board yes)
			(property "Reference" "U" (at 0 0 0) (effects (font (size 1.27 1.27))))
			(property "Value" "DUAL" (at 0 0 0) (effects (font (size 1.27 1.27))))
			(symbol "DUAL_1_1"
				(pin passive line (at 0 3.81 270) (length 2.54) (name "A" (effects (font (size 1.27 1.27)))) (number "1" (effects (font (size 1.27 1.27)))))
				(pin passive line (at 0 -3.81 90) (length 2.54) (name "B" (effects (font (size 1.27 1.27)))) (number "2" (effects (font (size 1.27 1.27)))))
			)
			(symbol "DUAL_2_1"
				(pin passive line (at 0 3.81 270) (length 2.54) (name "C" (effects (font (size 1.27 1.27)))) (number "3" (effects (font (size 1.27 1.27)))))
				(pin passive line (at 0 -3.81 90) (length 2.54) (name "D" (effects (font (size 1.27 1.27)))) (number "4" (effects (font (size 1.27 1.27)))))
			)
		)
`

// Board is a board with R1 and R2 in series, routed: VCC to R1.1, /OUT between them, GND at R2.2.
const Board = `(kicad_pcb
	(version 20241229)
	(generator "pcbnew")
	(generator_version "9.0")
	(general
		(thickness 1.6)
	)
	(paper "A4")
	(layers
		(0 "F.Cu" signal)
		(2 "B.Cu" signal)
		(5 "F.SilkS" user)
		(1 "F.Mask" user)
		(25 "Edge.Cuts" user)
		(31 "F.CrtYd" user)
		(35 "F.Fab" user)
	)
	(setup
		(pad_to_mask_clearance 0)
	)
	(net 0 "")
	(net 1 "VCC")
	(net 2 "/OUT")
	(net 3 "GND")
	(footprint "T:R_0603"
		(layer "F.Cu")
		(uuid "5eed0000-0000-4000-8000-00000000a001")
		(at 110 110)
		(property "Reference" "R1"
			(at 0 -2 0)
			(layer "F.SilkS")
			(uuid "5eed0000-0000-4000-8000-00000000a002")
			(effects (font (size 1 1) (thickness 0.15)))
		)
		(property "Value" "10k"
			(at 0 2 0)
			(layer "F.Fab")
			(uuid "5eed0000-0000-4000-8000-00000000a003")
			(effects (font (size 1 1) (thickness 0.15)))
		)
		(attr smd)
		(pad "1" smd rect
			(at -0.8 0)
			(size 1 1.2)
			(layers "F.Cu" "F.Mask")
			(net 1 "VCC")
			(uuid "5eed0000-0000-4000-8000-00000000a004")
		)
		(pad "2" smd rect
			(at 0.8 0)
			(size 1 1.2)
			(layers "F.Cu" "F.Mask")
			(net 2 "/OUT")
			(uuid "5eed0000-0000-4000-8000-00000000a005")
		)
	)
	(footprint "T:R_0603"
		(layer "F.Cu")
		(uuid "5eed0000-0000-4000-8000-00000000a011")
		(at 120 110)
		(property "Reference" "R2"
			(at 0 -2 0)
			(layer "F.SilkS")
			(uuid "5eed0000-0000-4000-8000-00000000a012")
			(effects (font (size 1 1) (thickness 0.15)))
		)
		(property "Value" "4k7"
			(at 0 2 0)
			(layer "F.Fab")
			(uuid "5eed0000-0000-4000-8000-00000000a013")
			(effects (font (size 1 1) (thickness 0.15)))
		)
		(attr smd)
		(pad "1" smd rect
			(at -0.8 0)
			(size 1 1.2)
			(layers "F.Cu" "F.Mask")
			(net 2 "/OUT")
			(uuid "5eed0000-0000-4000-8000-00000000a014")
		)
		(pad "2" smd rect
			(at 0.8 0)
			(size 1 1.2)
			(layers "F.Cu" "F.Mask")
			(net 3 "GND")
			(uuid "5eed0000-0000-4000-8000-00000000a015")
		)
	)
	(gr_rect
		(start 100 100)
		(end 130 120)
		(stroke
			(width 0.1)
			(type default)
		)
		(fill no)
		(layer "Edge.Cuts")
		(uuid "5eed0000-0000-4000-8000-00000000a020")
	)
	(segment
		(start 110.8 110)
		(end 119.2 110)
		(width 0.25)
		(layer "F.Cu")
		(net 2)
		(uuid "5eed0000-0000-4000-8000-00000000a021")
	)
	(zone
		(net 3)
		(net_name "GND")
		(layer "B.Cu")
		(uuid "5eed0000-0000-4000-8000-00000000a022")
		(hatch edge 0.5)
		(connect_pads (clearance 0.5))
		(min_thickness 0.25)
		(fill (thermal_gap 0.5) (thermal_bridge_width 0.5))
		(polygon (pts (xy 101 101) (xy 129 101) (xy 129 119) (xy 101 119)))
	)
	(embedded_fonts no)
)
`
