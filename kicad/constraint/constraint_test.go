// SPDX-License-Identifier: Apache-2.0

package constraint_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/kicad/constraint"
	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/kicad/internal/board"
	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
)

// bundled has the real kicad-cli read the bundled board.
func bundled(t *testing.T) *docs.Design {
	t.Helper()
	r, err := kicadcli.New(kicadcli.Options{Path: kicadtest.CLI(t), TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	dir := t.TempDir()
	if err := board.Write(dir); err != nil {
		t.Fatal(err)
	}
	d, err := docs.Load(t.Context(), r, kicadcli.Input{File: filepath.Join(dir, board.Root), Root: dir})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func doc(t *testing.T, name, text string) *docs.Document {
	t.Helper()
	d, err := docs.ReadDocument(name, []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// Each limit with its figures: a sum over the most is refused with the numbers (B-158: 33 against 25 microampere).
func TestCheck(t *testing.T) {
	d := bundled(t)
	budget := doc(t, "docs/POWER.md", "| Refdes | Value | I_sleep |\n|---|---|---|\n| U1 | MCP1700-3302E | 2 uA |\n| U2 | ATtiny412-SS | 31uA |\n| R1 | 330 | |\n")
	for _, c := range []struct {
		limit constraint.Limit
		want  string
	}{
		{
			constraint.Limit{Kind: constraint.Sum, Field: "I_sleep", Parts: []string{"*"}, Max: "25uA"},
			"FAIL k: sum of I_sleep over * at most 25uA: 33 uA is over the most of 25 uA (U1 2 uA + U2 31uA = 33 uA)",
		},
		{constraint.Limit{Kind: constraint.Sum, Field: "I sleep", Parts: []string{"U*"}, Max: "0.05mA"}, "PASS k: sum of I sleep over U* at most 0.05mA: U1 2 uA + U2 31uA = 33 uA"},
		{
			constraint.Limit{Kind: constraint.Sum, Field: "I_sleep", Parts: []string{"U*", "R1"}, Max: "50uA"},
			"NOT CHECKED k: sum of I_sleep over U*, R1 at most 50uA: U1 2 uA + U2 31uA = 33 uA; R1 has no quantity in I_sleep",
		},
		{constraint.Limit{Kind: constraint.Sum, Field: "I_run", Parts: []string{"*"}, Max: "1A"}, "NOT CHECKED k: sum of I_run over * at most 1A: the design has no part * with a quantity in I_run"},
		{constraint.Limit{Kind: constraint.Range, Field: "Value", Parts: []string{"R*"}, Min: "1k", Max: "10k"}, "FAIL k: Value of R* from 1k to 10k: R1: 330 is under the least of 1 k"},
		{constraint.Limit{Kind: constraint.Range, Field: "Value", Parts: []string{"R2", "R3"}, Min: "1k"}, "PASS k: Value of R2, R3 at least 1k: R2 4k7, R3 4k7"},
		{constraint.Limit{Kind: constraint.Range, Field: "Value", Parts: []string{"C?"}, Max: "1V"}, "FAIL k: Value of C? at most 1V: C1: 1 uF has another unit than 1 V; C2: 1 uF has another unit than 1 V; C3: 100 nF has another unit than 1 V"},
		{constraint.Limit{Kind: constraint.Field, Field: "Value", Parts: []string{"R2"}, Is: []string{"4.7 kOhm"}}, "PASS k: Value of R2 is 4.7 kOhm: R2 4k7"},
		{constraint.Limit{Kind: constraint.Field, Field: "Footprint", Parts: []string{"U2"}, Is: []string{"SOIC-14"}}, "FAIL k: Footprint of U2 is SOIC-14: U2: Package_SO:SOIC-8_3.9x4.9mm_P1.27mm is not SOIC-14"},
		{constraint.Limit{Kind: constraint.Count, Parts: []string{"J*"}, Max: "2"}, "FAIL k: number of fitted parts J* at most 2: 3 is over the most of 2"},
		{constraint.Limit{Kind: constraint.OnNet, Pins: []string{"U2.PA3"}, Nets: []string{"STATUS"}}, "PASS k: U2.PA3 on net STATUS: U2.7 /STATUS"},
		{constraint.Limit{Kind: constraint.OnNet, Pins: []string{"U2.7"}, Nets: []string{"GND"}}, "FAIL k: U2.7 on net GND: U2.7 is on /STATUS and must be on GND"},
		{constraint.Limit{Kind: constraint.ForbiddenNet, Pins: []string{"U2.*"}, Nets: []string{"VIN"}}, "PASS k: U2.* never on net VIN: U2.1 +3V3, U2.2 open, U2.3 /MCU/BUTTON, U2.4 I2C_SDA, U2.5 I2C_SCL, U2.6 /MCU/UPDI, U2.7 /STATUS, U2.8 GND"},
		{constraint.Limit{Kind: constraint.ForbiddenNet, Pins: []string{"U2.*"}, Nets: []string{"I2C_*"}}, "FAIL k: U2.* never on net I2C_*: U2.4 is on I2C_SDA, which is forbidden; U2.5 is on I2C_SCL, which is forbidden"},
		{constraint.Limit{Kind: constraint.OpenPin, Pins: []string{"U2.2"}}, "PASS k: U2.2 open: U2.2 open"},
		{constraint.Limit{Kind: constraint.OpenPin, Pins: []string{"U2.3"}}, "FAIL k: U2.3 open: U2.3 is on /MCU/BUTTON and must be open"},
		{constraint.Limit{Kind: constraint.OpenPin, Pins: []string{"U9.3"}}, "NOT CHECKED k: U9.3 open: the design has no pin U9.3"},
	} {
		r := &constraint.Registry{}
		if _, _, err := r.Record(constraint.Constraint{Key: "k", Text: "t", Limits: []constraint.Limit{c.limit}}, constraint.Artifacts{}); err != nil {
			t.Fatal(err)
		}
		got := constraint.Check(r, d, []*docs.Document{budget})
		if len(got) != 1 || got[0].String() != c.want {
			t.Errorf("%v\nwant %s", got, c.want)
		}
	}
	r := &constraint.Registry{Constraints: []constraint.Constraint{{Key: "k", Text: "the antenna is free of copper"}}}
	if got := constraint.Check(r, d, nil); len(got) != 1 || got[0].Status != constraint.NotChecked {
		t.Errorf("without limits: %v", got)
	}
}

// B-113, B-78 to B-80: what is affected is opened, but what waits for an artifact is deferred, and opened once.
func TestRecord(t *testing.T) {
	r := &constraint.Registry{}
	c := constraint.Constraint{Key: "esd", Text: "ESD at the connector", Source: "IEC 61000-4-2", Affects: []string{"J1", "board layout near J1", "BOM", "J1", " "}}
	opened, deferred, err := r.Record(c, constraint.Artifacts{Schematic: true})
	if err != nil || fmt.Sprint(opened) != "[esd affects J1]" || fmt.Sprint(deferred) != "[board layout near J1 BOM]" {
		t.Fatalf("Record = %v, %v, %v", opened, deferred, err)
	}
	file := r.Bytes()
	again, err := constraint.Read("constraints.json", file)
	if err != nil || string(again.Bytes()) != string(file) {
		t.Fatalf("read again: %v\n%s", err, file)
	}
	if got := again.Reopen(constraint.Artifacts{Schematic: true}); len(got) != 0 {
		t.Errorf("nothing new: %v", got)
	}
	if got := fmt.Sprint(again.Reopen(constraint.Artifacts{Schematic: true, Board: true})); got != "[esd affects board layout near J1]" {
		t.Errorf("with a board: %v", got)
	}
	if got := again.Reopen(constraint.Artifacts{Schematic: true, Board: true}); len(got) != 0 {
		t.Errorf("a second time: %v", got)
	}
	restored, err := constraint.Read("constraints.json", file) // B-80
	if err != nil || len(restored.Reopen(constraint.Artifacts{Board: true})) != 1 {
		t.Errorf("after a restore it is not opened again: %v", err)
	}
	c.Text, c.Affects = "other", nil
	if _, _, err := restored.Record(c, constraint.Artifacts{}); err != nil || len(restored.Constraints) != 1 || restored.Constraints[0].Text != "other" {
		t.Errorf("a second record does not replace the first: %v, %v", restored, err)
	}
}

func TestRefused(t *testing.T) {
	for _, c := range []struct {
		c    constraint.Constraint
		want string
	}{
		{constraint.Constraint{Key: "a b", Text: "x"}, `"a b" is no name`},
		{constraint.Constraint{Key: "a"}, "text must tell"},
		{constraint.Constraint{Key: "a", Text: "x", Document: "../x.md"}, "inside the docs folder"},
		{constraint.Constraint{Key: "a", Text: "x", Limits: []constraint.Limit{{Kind: "most"}}}, `no kind "most" of limits; there are [sum range`},
		{constraint.Constraint{Key: "a", Text: "x", Limits: []constraint.Limit{{Kind: constraint.Sum, Parts: []string{"*"}, Field: "I"}}}, "needs min or max"},
		{constraint.Constraint{Key: "a", Text: "x", Limits: []constraint.Limit{{Kind: constraint.Sum, Parts: []string{"*"}, Field: "I", Max: "much"}}}, `"much" is no quantity`},
		{constraint.Constraint{Key: "a", Text: "x", Limits: []constraint.Limit{{Kind: constraint.OpenPin, Pins: []string{"U2"}}}}, `"U2" is no pin`},
	} {
		r := &constraint.Registry{}
		_, _, err := r.Record(c.c, constraint.Artifacts{})
		if _, ok := errors.AsType[*constraint.Error](err); !ok || !strings.Contains(err.Error(), c.want) || len(r.Constraints) > 0 {
			t.Errorf("%v, want %q", err, c.want)
		}
	}
	for text, want := range map[string]string{
		`{"version": 2}`:              "use a newer fiducial",
		`{"version": 1, "rules": []}`: "unknown field",
		`{"version": 1} {}`:           "more than one object",
		`{`:                           "mend it by hand",
		`{"version":1,"constraints":[{"key":"a","text":"x","source":""},{"key":"a","text":"x","source":""}]}`: "twice",
	} {
		if _, err := constraint.Read("c.json", []byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Read(%s) = %v, want %q", text, err, want)
		}
	}
	if r, err := constraint.Load(fstest.MapFS{}, "docs"); r != nil || err != nil {
		t.Errorf("without a file: %v, %v", r, err)
	}
}

// Both places must name a constraint; to write both is one call each.
func TestUnnamed(t *testing.T) {
	r := &constraint.Registry{}
	for _, c := range []constraint.Constraint{{Key: "sleep", Text: "At most 25 uA | asleep", Source: "battery"}, {Key: "esd", Text: "y", Document: "LAYOUT.md"}} {
		if _, _, err := r.Record(c, constraint.Artifacts{}); err != nil {
			t.Fatal(err)
		}
	}
	spec := doc(t, "docs/SPEC.md", "# Spec\n\nsleep-current is another word, and so is my-sleep.\n\n| Key | Constraint | Source |\n|-----|-----|----|\n| gone | z | |\n")
	texts := func(list []docs.Mismatch) string {
		var s []string
		for _, m := range list {
			s = append(s, m.String())
		}
		return strings.Join(s, "\n")
	}
	got := texts(constraint.Unnamed(r, "docs", []*docs.Document{spec}))
	want := `docs/SPEC.md: sleep constraint: the document says nothing of it, the design says in docs/constraints.json
docs/constraints.json: esd constraint: the document says named in docs/LAYOUT.md, the design says there is no such document
docs/SPEC.md:7: gone constraint: the document says a constraint, the design says not in docs/constraints.json`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	now, err := docs.Apply(spec, docs.NameConstraint(spec, "sleep", r.Constraints[0].Text, "battery"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(string(now.Src), "| gone | z | |\n| `sleep` | At most 25 uA \\| asleep | battery |\n") {
		t.Errorf("written:\n%s", now.Src)
	}
	if e := docs.NameConstraint(now, "sleep", r.Constraints[0].Text, "battery"); len(e) > 0 {
		t.Errorf("a second time: %v", e)
	}
	changed, err := docs.Apply(now, docs.NameConstraint(now, "sleep", "At most 30 uA", "battery"))
	if err != nil || !strings.Contains(string(changed.Src), "| `sleep` | At most 30 uA") || strings.Contains(string(changed.Src), "25 uA") {
		t.Errorf("changed: %v\n%s", err, changed.Src)
	}
	empty := doc(t, "docs/LAYOUT.md", "")
	layout, err := docs.Apply(empty, docs.NameConstraint(empty, "esd", "y", ""))
	if err != nil {
		t.Fatal(err)
	}
	if list := constraint.Unnamed(r, "docs", []*docs.Document{changed, layout}); len(list) != 1 || list[0].Ref != "gone" {
		t.Errorf("left: %s", texts(list))
	}
}

// B-114 to B-118: entries one by one, a line each; what does not fit is named with what is open then.
func TestResolve(t *testing.T) {
	open := []constraint.Revisit{{Key: "esd", Item: "J1"}, {Key: "esd", Item: "layout"}, {Key: "sleep", Item: "U1"}}
	lines, resolved, left := constraint.Resolve(open, []constraint.Resolution{
		{Key: "esd", Item: "J1", How: "TVS diode\nadded"}, {Key: "esd", Item: "J9"}, {Key: "esd"}, {Key: "esd", Item: "J1"}, {Key: "sleep", Item: " U1 "},
	})
	want := []string{
		"resolved: esd affects J1",
		"error: nothing open says that esd affects J9; open: esd affects layout; sleep affects U1",
		"error: entry 3 needs key and item, neither empty; open: esd affects layout; sleep affects U1",
		"error: nothing open says that esd affects J1; open: esd affects layout; sleep affects U1",
		"resolved: sleep affects U1",
	}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("lines (-want +got)\n%s", diff)
	}
	if fmt.Sprint(left) != "[esd affects layout]" || len(resolved) != 2 || resolved[0].Decision() != "esd affects J1: looked at again, TVS diode added" {
		t.Errorf("left %v, resolved %v, decision %q", left, resolved, resolved[0].Decision())
	}
	if len(open) != 3 || open[0].Item != "J1" {
		t.Errorf("the caller's list was written to: %v", open)
	}
	if lines, _, _ := constraint.Resolve(left, []constraint.Resolution{{Key: "esd", Item: "layout"}, {Key: "x", Item: "y"}}); !strings.HasSuffix(lines[1], "open: none") {
		t.Errorf("%v", lines)
	}
}
