// SPDX-License-Identifier: Apache-2.0

package planner_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/kicad/agent"
	"github.com/fiducial-dev/fiducial/kicad/constraint"
	"github.com/fiducial-dev/fiducial/kicad/internal/board"
	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/planner"
	"github.com/fiducial-dev/fiducial/kicad/project"
	"github.com/fiducial-dev/fiducial/task"
	"github.com/fiducial-dev/fiducial/task/workspace"
)

// desk is the bundled board in a repository. The planner works on it through the real loop, tools, kicad-cli and git.
type desk struct {
	t   *testing.T
	dir string
	cli *kicadcli.Runner
	n   int
}

func newDesk(t *testing.T) *desk {
	t.Helper()
	d := &desk{t: t, dir: t.TempDir()}
	var err error
	if d.cli, err = kicadcli.New(kicadcli.Options{Path: kicadtest.CLI(t), TempDir: t.TempDir(), Limit: 5 * time.Minute}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.cli.Close() })
	if err := board.Write(d.dir); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"init", "-q"}, {"config", "user.name", "T"}, {"config", "user.email", "t@example.org"}, {"add", "-A"}, {"commit", "-qm", "start"}} {
		d.git(args...)
	}
	return d
}

func (d *desk) git(args ...string) string {
	d.t.Helper()
	cmd := exec.CommandContext(d.t.Context(), "git", args...)
	cmd.Dir = d.dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		d.t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (d *desk) file(name string) string {
	d.t.Helper()
	data, err := os.ReadFile(filepath.Join(d.dir, name))
	if err != nil {
		d.t.Fatal(err)
	}
	return string(data)
}

// do carries a request out.
func (d *desk) do(request string) *task.Result {
	d.t.Helper()
	d.n++
	proj, err := project.Find(os.DirFS(d.dir), ".")
	if err != nil {
		d.t.Fatal(err)
	}
	bench, err := agent.New(agent.Options{
		Top: d.dir, Project: proj, CLI: d.cli, Now: func() time.Time { return time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC) },
	})
	if err != nil {
		d.t.Fatal(err)
	}
	repo, err := workspace.Open(d.t.Context(), d.dir, workspace.Options{})
	if err != nil {
		d.t.Fatal(err)
	}
	res, err := task.Run(d.t.Context(), task.Config{Client: planner.Client{}, Repo: repo, Run: "r" + string(rune('0'+d.n)), Request: request, Domain: bench})
	if err != nil {
		d.t.Fatal(err)
	}
	if got := d.git("status", "--porcelain"); got != "" {
		d.t.Fatalf("%s: the tree: %s", request, got)
	}
	return res
}

// done is do for a request that must be carried out.
func (d *desk) done(request string, words ...string) {
	d.t.Helper()
	res := d.do(request)
	if res.Outcome != task.Done || res.Commit == "" || len(res.Tally.Open) > 0 {
		d.t.Fatalf("%s: %s, commit %q, open %v: %s", request, res.Outcome, res.Commit, res.Tally.Open, res.Detail)
	}
	for _, w := range words {
		if !strings.Contains(res.Detail, w) {
			d.t.Errorf("%s: the summary lacks %q: %s", request, w, res.Detail)
		}
	}
}

// refuses is do for a request that must change nothing.
func (d *desk) refuses(request string, words ...string) {
	d.t.Helper()
	head := d.git("rev-parse", "HEAD")
	res := d.do(request)
	if res.Outcome != task.Refused || d.git("rev-parse", "HEAD") != head {
		d.t.Fatalf("%s: %s: %s", request, res.Outcome, res.Detail)
	}
	for _, w := range words {
		if !strings.Contains(res.Detail, w) {
			d.t.Errorf("%s: the refusal lacks %q: %s", request, w, res.Detail)
		}
	}
}

// registered is a constraint as registry and document have it.
func (d *desk) registered(key string) constraint.Constraint {
	d.t.Helper()
	r, err := constraint.Load(os.DirFS(d.dir), "docs")
	if err != nil {
		d.t.Fatal(err)
	}
	c, ok := r.Get(key)
	if !ok || !strings.Contains(d.file("docs/SPEC.md"), "| `"+key+"`") || !strings.Contains(d.file("docs/SPEC.md"), c.Text) {
		d.t.Fatalf("%s is not in both places:\n%s\n%s", key, r.Bytes(), d.file("docs/SPEC.md"))
	}
	return c
}

// B-72, B-73, B-113, B-120, B-158: constraints are recorded in both places, changed by key or subject with the decision
// that says why, held against the design, and kept by later requests.
func TestRun_Constraints(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.done("add a constraint: D1 current at most 20 mA because the LED is rated for 25 mA", "Recorded d1-current", "NOT CHECKED")
	if c := d.registered("d1-current"); c.Text != "D1 current at most 20 mA" || c.Source != "the LED is rated for 25 mA" || len(c.Limits) != 1 || c.Limits[0].Max != "20 mA" {
		t.Errorf("recorded %+v", c)
	}
	d.refuses("add a constraint: D1 current at most 20 mA", "already")
	d.refuses("add a constraint: D1 current at most 15 mA", "d1-current is about the same", "change constraint d1-current")
	d.done("tighten the D1 current constraint to 15 mA because the battery is small", "D1 current at most 15 mA", "DEC-1")
	if c := d.registered("d1-current"); c.Limits[0].Max != "15 mA" || c.Source != "the LED is rated for 25 mA" {
		t.Errorf("changed %+v", c)
	}
	if log := d.file("docs/DECISIONS.md"); !strings.Contains(log, "- DEC-1, 2026-11-30, run r4: Constraint d1-current: D1 current at most 15 mA (before: D1 current at most 20 mA). Why: The battery is small. Affects: d1-current\n") {
		t.Errorf("the log:\n%s", log)
	}
	d.refuses("change constraint d1-curren to 9 mA because x", "Did you mean d1-current?")
	d.done("add constraint R-1: R1 between 300 and 390 because of D1; affects R1", "PASS R-1: Value of R1 from 300 to 390: R1 330")
	d.refuses("set R1 to 220", "R1: 220 is under the least of 300")
	d.done("change constraint R-1 to at least 200 because D1 can take it, and set R1 to 220", "Set the value of R1 to 220", "DEC-2")
	if !strings.Contains(d.file("beacon.kicad_sch"), `"220"`) {
		t.Error("R1 is not 220")
	}
}

// B-74, B-78: what a constraint affects is for somebody to look at; the planner says so, and takes what came of it.
func TestRun_Affects(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.refuses("add a constraint called esd: guard the connector (affects J1, U1)", "esd affects J1; esd affects U1", "resolve esd affects J1")
	d.done("add a constraint called esd: guard the connector (affects J1); resolve esd affects J1: a TVS diode is there already", "it is for people to check")
	if c := d.registered("esd"); len(c.Affects) != 1 || c.Affects[0] != "J1" || len(c.Limits) > 0 {
		t.Errorf("recorded %+v", c)
	}
	d.done("record the decision to use an LDO because noise matters; affects: U1", "DEC-1")
	if log := d.file("docs/DECISIONS.md"); !strings.HasSuffix(log, "- DEC-1, 2026-11-30, run r3: Use an LDO. Why: Noise matters. Affects: U1\n") {
		t.Errorf("the log:\n%s", log)
	}
}

// Several changes are one commit, and a footprint is held against the libraries, the pins and the board.
func TestRun_Several(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.done("rename STATUS to \"KEY OUT\"; rename R1 to R11 and set R11 to 470; set R2's MPN to RC0603FR-074K7L; fix docs", "Set the field MPN of R2 to RC0603FR-074K7L", "Rename net /STATUS to /KEY OUT", "Rename R1 to R11", "Set the value of R11 to 470")
	if n := strings.TrimSpace(d.git("rev-list", "--count", "HEAD")); n != "2" {
		t.Errorf("%s commits, want 2", n)
	}
	if bom := d.file("docs/BOM.md"); !strings.Contains(bom, "| R11 ") || !strings.Contains(bom, "| 470 ") {
		t.Errorf("the bill of materials:\n%s", bom)
	}
	d.refuses("set footprint of R11 to Resistor_SMD:R_0805_2012Metrik", "R_0805_2012Metric")
	d.refuses("set footprint of R11 to Resistor_SMD:R_0805_2012Metric", "Update PCB from Schematic", "footprint_symbol_mismatch")
	d.refuses("set footprint of U2 to Package_TO_SOT_SMD:SOT-23", "has no pad for pin 4, 5, 6, 7, 8 of U2 (pads: 1, 2, 3)")
	d.refuses("set R2 to 4.7k", "already")
}

// A registry that cannot be read keeps a constraint from being recorded, and nothing is lost.
func TestRun_BrokenRegistry(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	broken := []byte("{\"version\": 1, \"constraints\": [")
	if json.Valid(broken) {
		t.Fatal("it is not broken")
	}
	if err := os.WriteFile(filepath.Join(d.dir, "docs/constraints.json"), broken, 0o644); err != nil {
		t.Fatal(err)
	}
	d.git("add", "-A")
	d.git("commit", "-qm", "broken")
	d.refuses("add a constraint: D1 current at most 20 mA because of heat", "docs/constraints.json cannot be read; mend it by hand")
	if d.file("docs/constraints.json") != string(broken) {
		t.Error("the file is another one")
	}
}
