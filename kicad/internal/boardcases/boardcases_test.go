// SPDX-License-Identifier: Apache-2.0

package boardcases

import (
	"context"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/kicad/findings"
	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/lint"
	"github.com/fiducial-dev/fiducial/kicad/pcb"
	"github.com/fiducial-dev/fiducial/kicad/sch"
)

type oracle struct {
	Netlist   *run                `json:"netlist"`
	Pos       *run                `json:"pos"`
	Nets      map[string][]string `json:"nets"`
	Inventory []part              `json:"inventory"`
	ERC       *check              `json:"erc"`
	DRC       *check              `json:"drc"`
}

type run struct {
	RC     int    `json:"rc"`
	Stdout string `json:"stdout"`
	Stderr string `json:"stderr"`
}

type check struct {
	RC     int            `json:"rc"`
	Counts map[string]int `json:"counts"`
}

type part struct {
	Ref       string `json:"ref"`
	Value     string `json:"value"`
	Footprint string `json:"footprint"`
	DNP       string `json:"dnp"`
	NoBOM     string `json:"xbom"`
	NoBoard   string `json:"xboard"`
}

func (p part) entry() kicadcli.Entry {
	return kicadcli.Entry{Ref: p.Ref, Value: p.Value, Footprint: p.Footprint, DNP: p.DNP != "", NoBOM: p.NoBOM != "", NoBoard: p.NoBoard != ""}
}

func folder(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("FIDUCIAL_BOARD_CASES")
	if dir == "" {
		t.Skip("FIDUCIAL_BOARD_CASES names no folder")
	}
	return dir
}

func newRunner(t *testing.T) *kicadcli.Runner {
	t.Helper()
	r, err := kicadcli.New(kicadcli.Options{Path: kicadtest.CLI(t), TempDir: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = r.Close() })
	return r
}

func TestCases(t *testing.T) {
	t.Parallel()
	dir := folder(t)
	cases, err := filepath.Glob(filepath.Join(dir, "*", "oracle.json"))
	if err != nil || len(cases) == 0 {
		t.Fatalf("no case in %s: %v", dir, err)
	}
	r := newRunner(t)
	for _, file := range cases {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var files map[string]oracle
			if err := json.Unmarshal(data, &files); err != nil {
				t.Fatal(err)
			}
			for _, name := range slices.Sorted(maps.Keys(files)) {
				t.Run(name, func(t *testing.T) {
					j := judge{r, kicadcli.Input{File: filepath.Join(filepath.Dir(file), filepath.FromSlash(name)), Root: dir}, files[name]}
					j.probe(t)
					j.inventory(t)
					j.check(t, j.want.ERC, r.ERC)
					j.check(t, j.want.DRC, r.DRC)
				})
			}
		})
	}
}

type judge struct {
	r    *kicadcli.Runner
	in   kicadcli.Input
	want oracle
}

func (j judge) probe(t *testing.T) {
	want := j.want.Netlist
	if want == nil {
		want = j.want.Pos
	}
	if want == nil {
		return
	}
	p, err := j.r.Probe(t.Context(), j.in)
	if err != nil {
		t.Fatal(err)
	}
	if p.ExitCode != want.RC || p.Loads != (want.RC == 0 && want.Stderr == "") {
		t.Errorf("exit code %d, loads %v, want %d and stderr %q", p.ExitCode, p.Loads, want.RC, want.Stderr)
	}
	if p.Annotation != strings.Contains(want.Stdout, "annotation errors") {
		t.Errorf("annotation errors: %v, want %q", p.Annotation, want.Stdout)
	}
	if !p.Loads && p.ExitCode != 0 {
		reason, err := j.r.Reason(t.Context(), j.in)
		if err != nil || reason.Line == 0 {
			t.Errorf("the reason has no line: %v, %v", reason, err)
		}
		t.Log("reason:", reason)
	}
	if j.want.Nets == nil || p.Netlist == nil {
		return
	}
	nets := map[string][]string{}
	for _, n := range p.Netlist.Nets {
		for _, pin := range n.Pins {
			nets[n.Name] = append(nets[n.Name], pin.String())
		}
		slices.Sort(nets[n.Name])
	}
	if diff := cmp.Diff(j.want.Nets, nets); diff != "" {
		t.Errorf("nets (-want +got):\n%s", diff)
	}
}

// inventory compares kicad-cli's parts, and those of our own reader, with the oracle. Ours may list more where it also
// says why kicad-cli lists less.
func (j judge) inventory(t *testing.T) {
	if j.want.Inventory == nil {
		return
	}
	want := []kicadcli.Entry{}
	for _, p := range j.want.Inventory {
		want = append(want, p.entry())
	}
	got, err := j.r.Inventory(t.Context(), j.in)
	if err != nil {
		t.Fatal(err)
	}
	order := func(a, b kicadcli.Entry) int {
		if n := sch.CompareRefs(a.Ref, b.Ref); n != 0 {
			return n
		}
		return strings.Compare(a.Value, b.Value)
	}
	slices.SortStableFunc(want, order)
	slices.SortStableFunc(got, order)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("kicad-cli's inventory (-want +got):\n%s", diff)
	}
	dir, name := filepath.Split(j.in.File)
	d, err := sch.Load(os.DirFS(dir), name)
	if err != nil {
		t.Fatal(err)
	}
	ours := []kicadcli.Entry{}
	for _, p := range d.Parts() {
		ours = append(ours, kicadcli.Entry{Ref: p.Ref, Value: p.Value, Footprint: p.Footprint, DNP: p.DNP, NoBOM: p.NoBOM, NoBoard: p.NoBoard})
	}
	slices.SortStableFunc(ours, order)
	explained := slices.ContainsFunc(d.Problems, func(p sch.Problem) bool {
		return p.Kind == sch.MissingLibSymbol || p.Kind == sch.UnreadableSheet && p.File != d.Root
	})
	diff := cmp.Diff(want, ours)
	if explained && len(ours) >= len(want) {
		return // kicad-cli dropped what our reader names
	}
	if diff != "" {
		t.Errorf("our parts (-want +got), explained %v by %v:\n%s", explained, d.Problems, diff)
	}
}

func (j judge) check(t *testing.T, want *check, run func(context.Context, kicadcli.Input) (kicadcli.Verdict, error)) {
	if want == nil {
		return
	}
	v, err := run(t.Context(), j.in)
	kind := map[int]kicadcli.Kind{3: kicadcli.NotLoaded, 139: kicadcli.Crashed}[want.RC]
	if want.RC != 0 {
		if !kicadcli.IsKind(err, kind) || v.Status != kicadcli.NotRun {
			t.Errorf("%s %v, want NOT RUN and %s", v.Status, err, kind)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(design(want.Counts), design(counts(v.Report))); diff != "" {
		t.Errorf("%s counts (-want +got):\n%s", v.Check, diff)
	}
	if clean := len(v.Report.Gating()) == 0; clean != (v.Status == kicadcli.Pass) {
		t.Errorf("%s with %s", v.Status, v.Report.Summary())
	}
}

// counts counts what the oracle was asked for: it did not compare boards with schematics.
func counts(r findings.Report) map[string]int {
	r.Findings = slices.DeleteFunc(slices.Clone(r.Findings), func(f findings.Finding) bool { return f.Section == findings.Parity })
	return r.Counts()
}

// design leaves out the findings about libraries, which depend on what is installed (case 31).
func design(counts map[string]int) map[string]int {
	kept := map[string]int{}
	for key, n := range counts {
		if typ, _, _ := strings.Cut(key, ":"); !(findings.Finding{Type: typ}).Library() {
			kept[key] = n
		}
	}
	return kept
}

// What the lint must say of the cases, and must not say of the others.
func TestLint(t *testing.T) {
	dir := folder(t)
	want := map[string]string{
		"06-crlf-and-byte-order-mark/bom-prefix.kicad_sch": "byte-order-mark", "06-crlf-and-byte-order-mark/utf16.kicad_sch": "utf16",
		"12-broken-child-sheet-is-silent/blk.kicad_sch":            "unclosed-bracket",
		"13-symbol-missing-from-lib_symbols/empty-cache.kicad_sch": "symbol-not-cached", "13-symbol-missing-from-lib_symbols/lib-id-not-cached.kicad_sch": "symbol-not-cached",
		"15-extra-bracket-truncates-silently/extra-close.kicad_pcb": "extra-bracket second-root", "15-extra-bracket-truncates-silently/extra-close.kicad_sch": "extra-bracket second-root",
		"15-extra-bracket-truncates-silently/nul-byte.kicad_sch": "nul-byte", "15-extra-bracket-truncates-silently/second-root.kicad_sch": "second-root",
		"15-extra-bracket-truncates-silently/trailing-text.kicad_sch": "trailing-content",
		"28-board-net-numbers/declaration-deleted.kicad_pcb":          "undeclared-net", "28-board-net-numbers/kicad10-style-nets.kicad_pcb": "newer-format",
		"28-board-net-numbers/pad-name-differs.kicad_pcb": "net-name-mismatch", "28-board-net-numbers/two-nets-one-number.kicad_pcb": "duplicate-net-number net-name-mismatch",
		"28-board-net-numbers/undeclared-net.kicad_pcb": "undeclared-net",
	}
	seen := 0
	err := filepath.WalkDir(dir, func(file string, _ os.DirEntry, err error) error {
		if ext := filepath.Ext(file); err != nil || ext != ".kicad_sch" && ext != ".kicad_pcb" {
			return err
		}
		src, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		var rules []string
		exists := func(name string) bool {
			_, err := os.Stat(filepath.Join(filepath.Dir(file), name))
			return err == nil
		}
		list := lint.Check(filepath.Base(file), src, lint.Options{Exists: exists})
		for _, f := range list {
			rules = append(rules, string(f.Rule))
		}
		slices.Sort(rules)
		name, _ := filepath.Rel(dir, file)
		expected, known := want[filepath.ToSlash(name)]
		if known {
			seen++
		}
		if got := strings.Join(slices.Compact(rules), " "); got != expected {
			t.Errorf("%s: %q, want %q: %v", name, got, expected, list)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen != len(want) {
		t.Logf("%d of %d known cases are in the folder", seen, len(want))
	}
}

// Case 30: neither a rule that is switched off nor an exclusion removes a finding.
func TestSilencing(t *testing.T) {
	base := filepath.Join(folder(t), "30-silencing-instead-of-fixing")
	if _, err := os.Stat(base); err != nil {
		t.Skip("the folder has no such case")
	}
	r := newRunner(t)
	state := func(name string, overlay map[string][]byte) (findings.Report, findings.Rules) {
		dir := filepath.Join(base, name)
		v, err := r.ERC(t.Context(), kicadcli.Input{File: filepath.Join(dir, "sv.kicad_sch"), Overlay: overlay})
		if err != nil {
			t.Fatal(err)
		}
		project, err := os.ReadFile(filepath.Join(dir, "sv.kicad_pro"))
		if err != nil {
			t.Fatal(err)
		}
		rules, err := findings.ReadRules(project, nil)
		if err != nil {
			t.Fatal(err)
		}
		return v.Report, rules
	}
	before, rules := state("1-honest", nil)
	for _, name := range []string{"2-rule-ignored", "3-excluded"} {
		after, now := state(name, nil)
		d := findings.Compare(before, after, findings.CompareRules(rules, now))
		if len(d.Removed) > 0 || len(d.Silenced) == 0 {
			t.Errorf("%s: %s", name, d.Summary())
		}
		t.Log(name, d.Outcome(), d.Summary(), d.Rules)
	}
	honest, err := os.ReadFile(filepath.Join(base, "1-honest", "sv.kicad_pro"))
	if err != nil {
		t.Fatal(err)
	}
	after, _ := state("2-rule-ignored", map[string][]byte{"sv.kicad_pro": honest})
	if d := findings.Compare(before, after, nil); d.Outcome() != findings.NothingNew || len(d.Same) != len(before.Findings) {
		t.Errorf("with the rules of before: %s", d.Summary())
	}
}

// Case 28: what the net table says and what the pads say.
func TestBoards(t *testing.T) {
	base := filepath.Join(folder(t), "28-board-net-numbers")
	for name, want := range map[string]pcb.NetStyle{"good.kicad_pcb": pcb.Table, "kicad10-style-nets.kicad_pcb": pcb.Inline} {
		src, err := os.ReadFile(filepath.Join(base, name))
		if err != nil {
			t.Skip("the folder has no such case")
		}
		if b := pcb.Read(name, src); b.Style != want {
			t.Errorf("%s has net style %d, want %d", name, b.Style, want)
		}
	}
}
