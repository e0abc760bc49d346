// SPDX-License-Identifier: Apache-2.0

package boardcases

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/kicad/findings"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/lint"
	"github.com/fiducial-dev/fiducial/kicad/sch"
)

// A judge holds one file of a case against its oracle.
type judge struct {
	r    *kicadcli.Runner
	in   kicadcli.Input
	dir  string // the case
	name string // in it
	want oracle
}

func (j judge) all(t *testing.T) {
	loads := j.probe(t)
	j.lint(t, loads)
	j.inventory(t)
	j.check(t, j.want.ERC, j.r.ERC)
	j.check(t, j.want.DRC, j.r.DRC)
}

// probe compares the load verdict and the nets, and reports whether the file loads.
func (j judge) probe(t *testing.T) (loads bool) {
	want := j.want.Netlist
	if want == nil {
		want = j.want.Pos
	}
	if want == nil {
		return true
	}
	p, err := j.r.Probe(t.Context(), j.in)
	if kicadcli.IsKind(err, kicadcli.BadInput) { // ours does not ask kicad-cli: it is no file, or not of a kind that we read
		if legacy := strings.HasSuffix(j.name, ".sch"); *want.RC == 0 && !legacy {
			t.Errorf("refused, though kicad-cli loads it: %v", err)
		}
		t.Log("refused:", err)
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	if p.ExitCode != *want.RC || p.Loads != (*want.RC == 0 && !want.complains()) {
		t.Errorf("exit code %d, loads %v: %s; want %d and stderr %q", p.ExitCode, p.Loads, p.Summary(), *want.RC, want.Stderr)
	}
	if p.Annotation != strings.Contains(want.Stdout, "annotation errors") {
		t.Errorf("annotation errors: %v, want %q", p.Annotation, want.Stdout)
	}
	if p.ExitCode != 0 {
		j.reason(t)
	}
	if j.want.Nets == nil {
		return p.ExitCode == 0
	}
	nets := map[string][]string{}
	if p.Netlist != nil {
		for _, n := range p.Netlist.Nets {
			nets[n.Name] = []string{}
			for _, pin := range n.Pins {
				nets[n.Name] = append(nets[n.Name], pin.String())
			}
			slices.Sort(nets[n.Name])
		}
	}
	if diff := cmp.Diff(*j.want.Nets, nets); diff != "" {
		t.Errorf("nets (-want +got):\n%s", diff)
	}
	return p.ExitCode == 0
}

// reason wants to be told why the file does not load, and where.
func (j judge) reason(t *testing.T) {
	reason, err := j.r.Reason(t.Context(), j.in)
	t.Log("reason:", reason)
	if err != nil || reason.Text == "" || strings.Contains(reason.Text, "loads it") {
		t.Errorf("no reason: %v, %v", reason, err)
		return
	}
	src, err := os.ReadFile(j.in.File)
	if err != nil {
		t.Fatal(err)
	}
	placed := reason.Line > 0 || strings.Contains(reason.Text, "more recent version") || strings.Contains(reason.Text, "line length") // the lint tells the line
	if !placed && len(strings.TrimSpace(string(src))) > 0 {
		t.Errorf("the reason has no line: %v", reason)
	}
}

// refused are the rules of the lint that say that KiCad does not load a file.
var refused = []lint.Rule{"unclosed-bracket", "unterminated-string", "not-a-list", "empty", "byte-order-mark", "utf16", lint.WrongRoot, lint.NewerFormat}

// lint must not say that KiCad refuses what it loads.
func (j judge) lint(t *testing.T, loads bool) {
	src, err := os.ReadFile(j.in.File)
	if err != nil {
		return
	}
	for _, f := range lint.Check(path.Base(j.name), src, lint.Options{}) {
		t.Log("lint:", f)
		if loads && slices.Contains(refused, f.Rule) {
			t.Errorf("KiCad loads it, and the lint says: %s", f)
		}
	}
}

// inventory compares kicad-cli's parts, and those of our own reader, with the oracle. Ours may list more where it also
// says why kicad-cli lists less.
func (j judge) inventory(t *testing.T) {
	if j.want.Inventory == nil || filepath.Ext(j.name) != ".kicad_sch" {
		return
	}
	list := []kicadcli.Entry{}
	for _, p := range *j.want.Inventory {
		list = append(list, p.entry())
	}
	want := entries(list)
	got, err := j.r.Inventory(t.Context(), j.in)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, entries(got)); diff != "" {
		t.Errorf("kicad-cli's inventory (-want +got):\n%s", diff)
	}
	d, err := sch.Load(os.DirFS(j.dir), j.name)
	if err != nil {
		t.Fatal(err)
	}
	j.sheets(t, d)
	pro, _ := os.ReadFile(strings.TrimSuffix(j.in.File, ".kicad_sch") + ".kicad_pro")
	variables := sch.TextVariables(pro)
	list = []kicadcli.Entry{}
	for _, p := range d.Parts() {
		list = append(list, kicadcli.Entry{
			Ref: p.Ref, Value: p.Resolve(p.Value, variables), Footprint: p.Resolve(p.Footprint, variables), DNP: p.DNP, NoBOM: p.NoBOM, NoBoard: p.NoBoard,
		})
	}
	ours := entries(list)
	explained := slices.ContainsFunc(d.Problems, func(p sch.Problem) bool {
		return p.Kind == sch.MissingLibSymbol || p.Kind == sch.DuplicateRef || p.Kind == sch.UnreadableSheet && p.File != d.Root
	}) || slices.ContainsFunc(d.FileNames(), func(name string) bool { // our reader reads it, and the lint says that KiCad does not
		return name != d.Root && slices.ContainsFunc(lint.Check(path.Base(name), d.Files[name].Doc.Source(), lint.Options{}), func(f lint.Finding) bool {
			return f.Rule == lint.NewerFormat
		})
	})
	if explained && len(ours) >= len(want) {
		return // kicad-cli dropped, or ran together, what our reader names
	}
	if diff := cmp.Diff(want, ours); diff != "" {
		t.Errorf("our parts (-want +got), explained %v by %v:\n%s", explained, d.Problems, diff)
	}
}

// sheets compares the tree of sheets with that of kicad-cli's report, which lists sheets whose file cannot be read too.
func (j judge) sheets(t *testing.T, d *sch.Design) {
	if j.want.ERC == nil || j.want.ERC.Sheets == nil {
		return
	}
	want := slices.Sorted(slices.Values(*j.want.ERC.Sheets))
	var got []string
	for _, in := range d.Sheets {
		got = append(got, in.Name)
		for _, s := range in.File.Sheets {
			if !slices.ContainsFunc(d.Sheets, func(c *sch.Instance) bool { return c.Parent == in && c.Sheet == s }) &&
				slices.ContainsFunc(d.Problems, func(p sch.Problem) bool {
					return p.File == in.File.Name && (p.Kind == sch.MissingSheet || p.Kind == sch.UnreadableSheet || p.Kind == sch.OutsideSheet)
				}) {
				got = append(got, in.Name+s.Name+"/")
			}
		}
	}
	slices.Sort(got)
	if diff := cmp.Diff(want, slices.Compact(got)); diff != "" {
		t.Errorf("sheets (-want +got), problems %v:\n%s", d.Problems, diff)
	}
}

func (j judge) check(t *testing.T, want *check, run func(context.Context, kicadcli.Input) (kicadcli.Verdict, error)) {
	if want == nil {
		return
	}
	v, err := run(t.Context(), j.in)
	if *want.RC != 0 {
		kinds := map[int][]kicadcli.Kind{3: {kicadcli.NotLoaded, kicadcli.BadInput}, 139: {kicadcli.Crashed}, 255: {kicadcli.NotLoaded, kicadcli.BadOutput}}[*want.RC]
		if v.Status != kicadcli.NotRun || !slices.ContainsFunc(kinds, func(k kicadcli.Kind) bool { return kicadcli.IsKind(err, k) }) {
			t.Errorf("%s %v, want NOT RUN and %v for rc %d", v.Status, err, kinds, *want.RC)
		}
		return
	}
	if strings.HasSuffix(j.name, ".sch") && kicadcli.IsKind(err, kicadcli.BadInput) {
		return // kicad-cli finds nothing in it, since it reads nothing
	}
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(design(*want.Counts), design(counts(v.Report))); diff != "" {
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
