// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// openLibraries is the installed KiCad libraries. Without them the test is
// skipped, or fails when REQUIRE_KICAD=1.
func openLibraries(t *testing.T) *library {
	t.Helper()
	lib := &library{symbols: symbolDir(), footprints: footprintDir(), files: map[string]node{}}
	for _, dir := range []string{lib.symbols, lib.footprints} {
		if _, err := os.Stat(dir); err != nil {
			if os.Getenv("REQUIRE_KICAD") == "1" {
				t.Fatalf("REQUIRE_KICAD=1, but %v: install kicad-symbols and kicad-footprints", err)
			}
			t.Skipf("KiCad libraries are not installed: %v", err)
		}
	}
	return lib
}

func TestDrawnFilesAreCheckedIn(t *testing.T) {
	t.Parallel()
	files, err := draw(openLibraries(t))
	if err != nil {
		t.Fatal(err)
	}
	var drawn []string
	for _, f := range files {
		drawn = append(drawn, f.name)
		have, err := os.ReadFile(filepath.Join("..", "project", filepath.FromSlash(f.name)))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(have), f.text); diff != "" {
			t.Errorf("%s is not as drawn (run go generate; a newer KiCad library also shows here): -checked in +drawn\n%s", f.name, diff)
		}
	}
	err = filepath.WalkDir(filepath.Join("..", "project"), func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(filepath.Join("..", "project"), path)
		if err == nil && !strings.Contains("\n"+strings.Join(drawn, "\n")+"\n", "\n"+filepath.ToSlash(name)+"\n") {
			t.Errorf("%s is checked in, but nothing draws it", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestDrawTwiceIsTheSame(t *testing.T) {
	t.Parallel()
	lib := openLibraries(t)
	first, err := draw(lib)
	if err != nil {
		t.Fatal(err)
	}
	second, err := draw(lib)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(first, second, cmp.AllowUnexported(file{})); diff != "" {
		t.Errorf("two drawings differ: -first +second\n%s", diff)
	}
}

func TestDrawNamesTheMissingLibrary(t *testing.T) {
	t.Parallel()
	_, err := draw(&library{symbols: t.TempDir(), footprints: t.TempDir(), files: map[string]node{}})
	if err == nil || !strings.Contains(err.Error(), "Device.kicad_sym") {
		t.Errorf("draw without libraries: got %v, want an error that names Device.kicad_sym", err)
	}
}

// The libraries were written by KiCad, so their form is the one to keep to.
func TestFormatLibraries(t *testing.T) {
	t.Parallel()
	lib := openLibraries(t)
	for _, name := range []string{"Connector_Generic", "Device", "MCU_Microchip_ATtiny", "Regulator_Linear", "Switch", "power"} {
		src, err := os.ReadFile(filepath.Join(lib.symbols, name+".kicad_sym"))
		if err != nil {
			t.Fatal(err)
		}
		n, err := parse(string(src))
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if got := format(n); got != string(src) {
			t.Errorf("%s: the form changed:\n%s", name, firstDifference(string(src), got))
		}
	}
}

func firstDifference(want, got string) string {
	w, g := strings.Split(want, "\n"), strings.Split(got, "\n")
	for i := range min(len(w), len(g)) {
		if w[i] != g[i] {
			return "want " + w[i] + "\ngot  " + g[i]
		}
	}
	return "one ends before the other"
}

func TestFormat(t *testing.T) {
	t.Parallel()
	src := `(a "b c" (hide yes) (pts (xy 1 2) (xy 3 4)) (members ` + strings.Repeat(`"0123456789" `, 8) + `))`
	n, err := parse(src)
	if err != nil {
		t.Fatal(err)
	}
	want := "(a \"b c\"\n\t(hide yes)\n\t(pts\n\t\t(xy 1 2) (xy 3 4)\n\t)\n" +
		"\t(members \"0123456789\" \"0123456789\" \"0123456789\" \"0123456789\" \"0123456789\"\n" +
		"\t\t\"0123456789\" \"0123456789\" \"0123456789\"\n\t)\n)\n"
	if diff := cmp.Diff(want, format(n)); diff != "" {
		t.Errorf("format: -want +got\n%s", diff)
	}
}

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	for src, want := range map[string]string{
		"":          "no opening bracket at byte 0",
		"(a":        "list is not closed at byte 2",
		`(a "b`:     "string is not closed at byte 3",
		"(a) (b)":   "text after the last bracket at byte 4",
		"atom only": "no opening bracket at byte 0",
	} {
		if _, err := parse(src); err == nil || err.Error() != want {
			t.Errorf("parse(%q): got %v, want %s", src, err, want)
		}
	}
}

// A pin goes through rotation first, then the mirror.
func TestPose(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		turn int
		want point
	}{{0, point{1, 2}}, {90, point{2, -1}}, {180, point{-1, -2}}, {270, point{-2, 1}}, {-90, point{-2, 1}}} {
		if got := (point{1, 2}).turn(c.turn); got != c.want {
			t.Errorf("turn %d: got %v, want %v", c.turn, got, c.want)
		}
	}
}

// Where a branch meets a wire the wire is split; where two wires cross it is
// not.
func TestConnectSplits(t *testing.T) {
	t.Parallel()
	s := newSheet(nil, nil, "t", "/", "", "1")
	s.wire(at(0, 0), at(10, 0))
	s.wire(at(4, 0), at(4, 5))
	s.wire(at(8, -5), at(8, 5))
	s.connect()
	if got := len(s.items["wire"]); got != 4 {
		t.Errorf("wires: got %d, want 4", got)
	}
	if got := len(s.items["junction"]); got != 1 {
		t.Errorf("junctions: got %d, want 1", got)
	}
}

func TestLengths(t *testing.T) {
	t.Parallel()
	for v, want := range map[nm]string{0: "0", 1_270_000: "1.27", -787_500: "-0.7875", 100_000_000: "100", -5: "-0.000005"} {
		if got := v.mm(); got != want {
			t.Errorf("mm of %d nm: got %s, want %s", int(v), got, want)
		}
		if back, err := parseMM(want); err != nil || back != v {
			t.Errorf("parseMM(%s): got %d, %v, want %d", want, int(back), err, int(v))
		}
	}
}
