// SPDX-License-Identifier: Apache-2.0

package library_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/library"
	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// own is a small library: a symbol with two units and two body styles, one that extends it, and one in KiCad 6's words.
const own = `(kicad_symbol_lib
	(version 20241209)
	(generator "test")
	(symbol "AMP"
		(property "Reference" "U" (at 0 0 0))
		(property "Value" "AMP" (at 0 0 0))
		(property "Footprint" "Package_SO:SOIC-8" (at 0 0 0))
		(property "Datasheet" "https://example.org/amp.pdf" (at 0 0 0))
		(property "Description" "Dual amplifier, \"quoted (and \\ odd\", rail-to-rail" (at 0 0 0))
		(property "ki_keywords" "dual opamp" (at 0 0 0))
		(property "ki_fp_filters" "SOIC* DIP?8*" (at 0 0 0))
		(symbol "AMP_0_1" (rectangle (start -1 1) (end 1 -1)))
		(symbol "AMP_1_1"
			(pin output line (at 7.62 0 180) (length 2.54) (name "OUT") (number "1") (alternate "TEST" passive line))
			(pin input inverted (at -7.62 2.54 0) (length 2.54) (name "-") (number "2"))
			(pin input line (at -7.62 -2.54 0) (length 2.54) (name "+") (number "10"))
		)
		(symbol "AMP_1_2" (pin output line (at 0 0 0) (length 2.54) (name "WRONG") (number "1")))
		(symbol "AMP_2_1" (pin output line (at 0 0 0) (length 2.54) (name "OUT") (number "7")))
		(symbol "AMP_0_0" (pin power_in line (at 0 0 0) (length 2.54) (hide yes) (name "V+") (number "8")))
	)
	(symbol "AMP-B"
		(extends "AMP")
		(property "Reference" "U" (at 0 0 0))
		(property "Value" "AMP-B" (at 0 0 0))
		(property "Description" "Dual amplifier, faster" (at 0 0 0))
	)
	(symbol "RING1" (extends "RING2"))
	(symbol "RING2" (extends "RING1"))
	(symbol "LOST" (extends "NOWHERE"))
	(symbol "GND" (power) (property private "Reference" "#PWR") (property "ki_description" "Ground, of KiCad 6") (symbol "GND_1_1" (pin power_in line (at 0 0 0) (length 0) hide (name "GND") (number "1"))))
)
`

// newSet makes a project with libraries of its own beside a global table.
func newSet(t *testing.T) (set *library.Set, project string) {
	t.Helper()
	dir := t.TempDir()
	project = filepath.Join(dir, "my project")
	kicadtest.Write(t, dir, map[string]string{
		"my project/own.kicad_sym": own,
		"my project/sym-lib-table": `(sym_lib_table (version 7)
			(lib (name "Own")(type "KiCad")(uri "${KIPRJMOD}/own.kicad_sym")(options "")(descr "ours"))
			(lib (name "Stock")(type "KiCad")(uri "relative.kicad_sym")(options "")(descr "over the global one"))
			(lib (name "Old")(type "Legacy")(uri "${KIPRJMOD}/old.lib")(options "")(descr ""))
			(lib (name "Elsewhere")(type "KiCad")(uri "${MY_LIBS}/x.kicad_sym")(options "")(descr ""))
			(lib (name "Set")(type "KiCad")(uri "${GIVEN}/set.kicad_sym")(options "")(descr ""))
			(lib (name "Off")(type "KiCad")(uri "${KIPRJMOD}/own.kicad_sym")(options "")(descr "")(disabled))
		)`,
		"my project/relative.kicad_sym":          `(kicad_symbol_lib (version 20211014) (symbol "R" (property "ki_keywords" "mine")))`,
		"my project/fp-lib-table":                `(fp_lib_table (lib (name Own)(type KiCad)(uri ${KIPRJMOD}/own.pretty)(options "")(descr "")))`,
		"my project/own.pretty/R_0603.kicad_mod": `(footprint "R_0603" (descr "resistor") (tags "r") (pad "2" smd rect) (pad "1" smd rect) (pad "1" smd rect) (pad "" np_thru_hole circle))`,
		"my project/own.pretty/R_0805.kicad_mod": `(footprint "R_0805"`,
		"given/set.kicad_sym":                    `(kicad_symbol_lib (symbol "S1") (symbol "S2") (broken "`,
		"share/template/sym-lib-table": `(sym_lib_table
			(lib (name "Stock")(type "KiCad")(uri "${KICAD9_SYMBOL_DIR}/Stock.kicad_sym")(options "")(descr "hidden"))
			(lib (name "Folder")(type "KiCad")(uri "${KICAD10_SYMBOL_DIR}/Folder.kicad_symdir")(options "")(descr "of KiCad 10"))
			(lib (name "Gone")(type "KiCad")(uri "${KICAD9_SYMBOL_DIR}/Gone.kicad_sym")(options "")(descr "")))`,
		"share/symbols/Stock.kicad_sym":                 `(kicad_symbol_lib (symbol "NEVER"))`,
		"share/symbols/Folder.kicad_symdir/A.kicad_sym": `(kicad_symbol_lib (symbol "FA" (property "Description" "in a folder")))`,
		"share/symbols/Folder.kicad_symdir/B.kicad_sym": `(kicad_symbol_lib (symbol "FB" (extends "FA")))`,
	})
	return library.Open(library.Options{
		Share: filepath.Join(dir, "share"), Project: project, Variables: map[string]string{"GIVEN": filepath.Join(dir, "given")},
	}), project
}

func TestTables(t *testing.T) {
	set, _ := newSet(t)
	var got []string
	for _, l := range set.Symbols() {
		got = append(got, strings.TrimSuffix(fmt.Sprintf("%s project=%v %.40s", l.Name, l.Project, l.Problem), " "))
	}
	want := []string{
		"Own project=true", "Stock project=true", "Old project=true libraries of type Legacy are not read",
		"Elsewhere project=true the variable MY_LIBS of its path ${MY_LI", "Set project=true", "Off project=true it is switched off in the table",
		"Folder project=false",
	}
	if d := cmp.Diff(want, got[:min(len(got), len(want))]); d != "" || len(got) != len(want)+1 || !strings.HasPrefix(got[len(want)], "Gone project=false there is no ") {
		t.Errorf("libraries (-want +got)\n%s\n%q", d, got)
	}
}

func TestSearch(t *testing.T) {
	set, _ := newSet(t)
	for _, tt := range []struct {
		query library.Query
		want  []string
	}{
		{library.Query{Words: "amplifier"}, []string{"Own:AMP", "Own:AMP-B"}},
		{library.Query{Words: "AMP faster"}, []string{"Own:AMP-B"}},
		{library.Query{Words: "soic dual"}, []string{"Own:AMP", "Own:AMP-B"}}, // the second inherits its filters and keywords
		{library.Query{Words: "own:amp"}, []string{"Own:AMP"}},
		{library.Query{Words: "amp-?"}, []string{"Own:AMP-B"}},
		{library.Query{Pattern: `^ring\d$`}, []string{"Own:RING1", "Own:RING2"}},
		{library.Query{Pattern: `rail-to-`}, []string{"Own:AMP"}},
		{library.Query{Words: "ground"}, []string{"Own:GND"}},
		{library.Query{Words: "mine"}, []string{"Stock:R"}},
		{library.Query{Words: "NEVER"}, nil},
		{library.Query{Words: "folder"}, []string{"Folder:FA", "Folder:FB"}},
		{library.Query{Library: "Set"}, []string{"Set:S1", "Set:S2"}},
	} {
		res, err := set.Search(t.Context(), tt.query)
		var got []string
		for _, s := range res.Matches {
			got = append(got, s.ID())
		}
		if d := cmp.Diff(tt.want, got); d != "" || err != nil || res.Total != len(tt.want) {
			t.Errorf("%+v: %v, total %d (-want +got)\n%s", tt.query, err, res.Total, d)
		}
	}
	res, err := set.Search(t.Context(), library.Query{Words: "amplifier", Limit: 1})
	if err != nil || len(res.Matches) != 1 || res.Total != 2 || res.Libraries != 4 || len(res.Problems) != 5 {
		t.Errorf("limited: %+v, %v, want 1 of 2 in 4 libraries with 5 problems", res, err)
	}
	want := library.Symbol{
		Library: "Own", Name: "AMP", Description: `Dual amplifier, "quoted (and \ odd", rail-to-rail`, Keywords: "dual opamp",
		Filters: []string{"SOIC*", "DIP?8*"}, Reference: "U", Value: "AMP", Footprint: "Package_SO:SOIC-8", Datasheet: "https://example.org/amp.pdf",
	}
	if d := cmp.Diff(want, res.Matches[0]); d != "" {
		t.Errorf("symbol (-want +got)\n%s", d)
	}
}

func TestPins(t *testing.T) {
	set, _ := newSet(t)
	for _, id := range []string{"Own:AMP", "Own:AMP-B"} {
		s, pins, err := set.Pins(t.Context(), id)
		var got []string
		for _, p := range pins {
			got = append(got, fmt.Sprintf("%s %s %s %s unit %d hidden %v %v %g,%g", p.Number, p.Name, p.Type, p.Shape, p.Unit, p.Hidden, p.Alternates, p.X, p.Y))
		}
		want := []string{
			"1 OUT output line unit 1 hidden false [TEST] 7.62,0", "2 - input inverted unit 1 hidden false [] -7.62,2.54",
			"7 OUT output line unit 2 hidden false [] 0,0", "8 V+ power_in line unit 0 hidden true [] 0,0", "10 + input line unit 1 hidden false [] -7.62,-2.54",
		}
		if d := cmp.Diff(want, got); d != "" || err != nil || s.ID() != id || s.Footprint != "Package_SO:SOIC-8" {
			t.Errorf("%s: %+v, %v (-want +got)\n%s", id, s, err, d)
		}
	}
	if s, pins, err := set.Pins(t.Context(), "Own:GND"); err != nil || !s.Power || len(pins) != 1 || !pins[0].Hidden || s.Reference != "#PWR" {
		t.Errorf("GND: %+v, %+v, %v", s, pins, err)
	}
}

// TestNotThere says what is missing and what may have been meant, and guesses nothing (B-112).
func TestNotThere(t *testing.T) {
	set, _ := newSet(t)
	empty := library.Open(library.Options{Project: t.TempDir()})
	gone := t.TempDir()
	kicadtest.Write(t, gone, map[string]string{"sym-lib-table": `(sym_lib_table (lib (name "Device")(type "KiCad")(uri "${KICAD9_SYMBOL_DIR}/Device.kicad_sym")))`})
	unset := library.Open(library.Options{Project: gone})
	pins := func(s *library.Set, id string) error {
		_, pins, err := s.Pins(t.Context(), id)
		if len(pins) > 0 {
			t.Errorf("%s has pins with %v", id, err)
		}
		return err
	}
	search := func(s *library.Set, q library.Query) error {
		_, err := s.Search(t.Context(), q)
		return err
	}
	footprint := func(s *library.Set, id string) error {
		_, err := s.Footprint(t.Context(), id)
		return err
	}
	for i, tt := range []struct {
		err   error
		kind  library.Kind
		words string
	}{
		{pins(set, "Own:AMP-C"), library.NoSuchSymbol, "there is AMP, AMP-B"},
		{pins(set, "Owm:AMP"), library.NoSuchLibrary, "there is Own"},
		{pins(set, "AMP"), library.BadQuery, "no LIBRARY:NAME"},
		{pins(set, "Old:X"), library.Unreadable, "type Legacy"},
		{pins(set, "Own:LOST"), library.Unreadable, "extends NOWHERE"},
		{pins(set, "Own:RING1"), library.Unreadable, "extends"},
		{pins(set, "Set:S9"), library.NoSuchSymbol, "broken behind symbol S2"},
		{pins(empty, "Device:R"), library.NoLibraries, "nothing is known about symbols: there is no table"},
		{pins(unset, "Device:R"), library.Unreadable, "KICAD9_SYMBOL_DIR of its path"},
		{pins(unset, "Other:R"), library.NoLibraries, "none is there"},
		{search(empty, library.Query{Words: "resistor"}), library.NoLibraries, "install KiCad's libraries"},
		{search(unset, library.Query{Words: "resistor"}), library.NoLibraries, "of 1 in the tables none is there"},
		{search(set, library.Query{}), library.BadQuery, "nothing to look for"},
		{search(set, library.Query{Pattern: "("}), library.BadQuery, "missing closing"},
		{search(set, library.Query{Library: "Gone"}), library.Unreadable, "there is no "},
		{footprint(set, "Own:R_0604"), library.NoSuchFootprint, "there is R_0603"},
		{footprint(set, "Own:R_0805"), library.Unreadable, "is broken"},
		{footprint(set, "Own:../R_0603"), library.BadQuery, "no LIBRARY:NAME"},
		{footprint(empty, "Own:R_0603"), library.NoLibraries, "footprints"},
	} {
		e, ok := errors.AsType[*library.Error](tt.err)
		if !ok || e.Kind != tt.kind || !strings.Contains(tt.err.Error(), tt.words) {
			t.Errorf("%d: %v, want kind %q with %q", i, tt.err, tt.kind, tt.words)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := set.Search(ctx, library.Query{Words: "amp"}); !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled search: %v", err)
	}
}

func TestFootprint(t *testing.T) {
	set, _ := newSet(t)
	f, err := set.Footprint(t.Context(), "Own:R_0603")
	if err != nil || f.ID() != "Own:R_0603" || !cmp.Equal(f.Pads, []string{"1", "2"}) || f.Description != "resistor" {
		t.Errorf("footprint %+v, %v", f, err)
	}
	ids, total, err := set.SearchFootprints(t.Context(), "r_*5", "", 0)
	if err != nil || total != 1 || !cmp.Equal(ids, []string{"Own:R_0805"}) {
		t.Errorf("footprints %q, %d, %v", ids, total, err)
	}
}

// TestChanged reads a library anew when it was changed, while others read it.
func TestChanged(t *testing.T) {
	set, project := newSet(t)
	if _, _, err := set.Pins(t.Context(), "Own:NEW"); err == nil {
		t.Fatal("there is a symbol NEW already")
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 20 {
				_, _ = set.Search(t.Context(), library.Query{Words: "amp"})
			}
		})
	}
	file := filepath.Join(project, "own.kicad_sym")
	text := strings.Replace(own, `(symbol "GND"`, `(symbol "NEW") (symbol "GND"`, 1)
	if err := errors.Join(os.WriteFile(file, []byte(text), 0o600), os.Chtimes(file, time.Time{}, time.Now().Add(time.Hour))); err != nil {
		t.Fatal(err)
	}
	wg.Wait()
	if _, _, err := set.Pins(t.Context(), "Own:NEW"); err != nil {
		t.Errorf("the new symbol is not found: %v", err)
	}
}

// installed is the set of KiCad's own libraries. Without them the test is skipped, or fails when REQUIRE_KICAD is 1.
func installed(tb testing.TB) *library.Set {
	tb.Helper()
	cli, err := exec.LookPath(kicadtest.CLI(tb))
	if err == nil {
		cli, err = filepath.EvalSymlinks(cli)
	}
	if err != nil {
		tb.Fatal(err)
	}
	share := filepath.Join(filepath.Dir(filepath.Dir(cli)), "share", "kicad")
	if _, err := os.Stat(filepath.Join(share, "symbols", "Device.kicad_sym")); err != nil {
		if os.Getenv("REQUIRE_KICAD") == "1" {
			tb.Fatalf("KiCad's libraries are not installed: %v", err)
		}
		tb.Skip("KiCad's libraries are not installed")
	}
	return library.Open(library.Options{Share: share})
}

// TestInstalled asks KiCad's own libraries; the pins were read in their files by eye.
func TestInstalled(t *testing.T) {
	t.Parallel()
	set := installed(t)
	for id, want := range map[string]string{
		"Device:R":                      "1 ~ passive, 2 ~ passive",
		"Regulator_Linear:LM7805_TO220": "1 VI power_in, 2 GND power_in, 3 VO power_out",
		"Timer:NE555P":                  "1 GND power_in, 2 TRIG input, 3 OUT output, 4 ~{RST} input, 5 CONT open_collector, 6 THRES input, 7 DISCH input, 8 VCC power_in",
		"power:GND":                     "1 ~ power_in",
	} {
		s, pins, err := set.Pins(t.Context(), id)
		var got []string
		for _, p := range pins {
			got = append(got, p.Number+" "+p.Name+" "+p.Type)
		}
		if d := cmp.Diff(want, strings.Join(got, ", ")); d != "" || err != nil {
			t.Errorf("%s (extends %q): %v (-want +got)\n%s", id, s.Extends, err, d)
		}
	}
	for words, want := range map[string]string{"resistor": "Device:R", "NE555P": "Timer:NE555P", "global power ground": "power:GND"} {
		res, err := set.Search(t.Context(), library.Query{Words: words, Limit: 400})
		found := false
		for _, s := range res.Matches {
			found = found || s.ID() == want
		}
		if err != nil || !found || len(res.Problems) > 0 {
			t.Errorf("%q: %d matches, %v, %q, want %s among them", words, res.Total, err, res.Problems, want)
		}
	}
	if f, err := set.Footprint(t.Context(), "Resistor_SMD:R_0603_1608Metric"); err != nil || !cmp.Equal(f.Pads, []string{"1", "2"}) {
		t.Errorf("footprint %+v, %v", f, err)
	}
}

// TestScan holds the quick reading of libraries to the whole parse of them.
func TestScan(t *testing.T) {
	t.Parallel()
	set := installed(t)
	for _, l := range set.Symbols() {
		if l.Name != "Device" && l.Name != "power" && l.Name != "74xx" && l.Name != "Regulator_Linear" {
			continue
		}
		src, err := os.ReadFile(l.Path)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := sexpr.Parse(src)
		if err != nil {
			t.Fatal(err)
		}
		res, err := set.Search(t.Context(), library.Query{Library: l.Name, Limit: 10_000})
		if err != nil {
			t.Fatal(err)
		}
		got := map[string]string{}
		for _, s := range res.Matches {
			got[s.Name] = s.Extends + "|" + s.Value + "|" + s.Description + "|" + s.Keywords
		}
		n := 0
		for symbol := range doc.Root().Lists("symbol") {
			n++
			text := map[string]string{}
			for p := range symbol.Lists("property") {
				text[p.Arg(0).Text()] = p.Arg(1).Text()
			}
			want := symbol.Get("extends").Arg(0).Text() + "|" + text["Value"] + "|" + text["Description"] + "|" + text["ki_keywords"]
			if name := symbol.Arg(0).Text(); got[name] != want && text["ki_keywords"] != "" { // else it may be inherited
				t.Errorf("%s:%s is %q, want %q", l.Name, name, got[name], want)
			}
		}
		if n == 0 || n != len(got) {
			t.Errorf("%s: %d symbols, want %d", l.Name, len(got), n)
		}
	}
}

func BenchmarkSearchAll(b *testing.B) {
	set := installed(b)
	n := 0
	for b.Loop() {
		fresh := library.Open(library.Options{Share: filepath.Dir(filepath.Dir(set.Symbols()[0].Path))})
		res, err := fresh.Search(b.Context(), library.Query{Words: "dual opamp rail-to-rail"})
		if err != nil {
			b.Fatal(err)
		}
		n = res.Total
	}
	b.ReportMetric(float64(n), "matches")
}

func BenchmarkSearchAgain(b *testing.B) {
	set := installed(b)
	for b.Loop() {
		if _, err := set.Search(b.Context(), library.Query{Words: "dual opamp rail-to-rail"}); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPinsFirst(b *testing.B) {
	share := filepath.Dir(filepath.Dir(installed(b).Symbols()[0].Path))
	for b.Loop() {
		if _, _, err := library.Open(library.Options{Share: share}).Pins(b.Context(), "MCU_ST_STM32H7:STM32H743VITx"); err != nil {
			b.Fatal(err)
		}
	}
}
