// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/kicad/internal/board"
	"github.com/fiducial-dev/fiducial/kicad/pcb"
	"github.com/fiducial-dev/fiducial/kicad/project"
	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// The generated documents of the bundled board: rows equal the placed symbols, the pinout shows nets, and nothing of it
// is drift (B-155).
func TestGenerate(t *testing.T) {
	dir := t.TempDir()
	if err := board.Write(dir); err != nil {
		t.Fatal(err)
	}
	d := load(t, dir, board.Root)
	src, err := os.ReadFile(filepath.Join(dir, board.PCB))
	if err != nil {
		t.Fatal(err)
	}
	pages := docs.Generate("beacon", d, pcb.Read(board.PCB, src))
	var documents []*docs.Document
	for i, p := range pages {
		if again := docs.Generate("beacon", d, pcb.Read(board.PCB, src))[i]; again != p {
			t.Errorf("%s differs the second time", p.Name)
		}
		documents = append(documents, read(t, "docs/"+p.Name, p.Text))
	}
	if r := docs.Drift(d, documents); len(r.Mismatches) > 0 || r.Claims < 60 {
		t.Errorf("%d claims, mismatches\n%s", r.Claims, lines(r.Mismatches))
	}
	refs := 0
	for _, row := range documents[1].Tables[0].Rows {
		list, bad := docs.ParseRefs(row.Cells[0].Text, func(string) bool { return false })
		if refs += len(list); len(bad) > 0 {
			t.Errorf("not understood: %v", bad)
		}
	}
	if refs != len(d.Parts) {
		t.Errorf("%d references in BOM.md, %d parts", refs, len(d.Parts))
	}
	for _, want := range []string{"<!-- fiducial:pinout J U -->", "| /MCU/BUTTON |", "| NC          |", "## U2: ATtiny412-SS"} {
		if !strings.Contains(pages[2].Text, want) {
			t.Errorf("PINOUT.md lacks %q:\n%s", want, pages[2].Text)
		}
	}
	for _, want := range []string{"## Root sheet", "## Sheet /MCU/"} {
		if !strings.Contains(pages[3].Text, want) {
			t.Errorf("SUBSYSTEMS.md lacks %q:\n%s", want, pages[3].Text)
		}
	}
	if !strings.Contains(pages[4].Text, "2: F.Cu, B.Cu") {
		t.Errorf("LAYOUT.md:\n%s", pages[4].Text)
	}
}

// states are the steps of a plan in short.
func states(steps []docs.Step) string {
	var s []string
	for _, step := range steps {
		s = append(s, path.Base(step.File)+"="+string(step.State))
	}
	return strings.Join(s, " ")
}

func carryOut(fsys fstest.MapFS, steps []docs.Step) {
	for _, s := range steps {
		if s.Writes() {
			fsys[s.File] = &fstest.MapFile{Data: s.Text}
		}
	}
}

func TestPlanInit(t *testing.T) {
	fsys := fstest.MapFS{"hw/p.kicad_sch": {}, "docs/about.md": {}}
	proj := &project.Project{Name: "p", Dir: "hw", Root: "hw/p.kicad_sch", Docs: "docs"}
	pages := func(text string) []docs.Page {
		return []docs.Page{{Name: "SPEC.md", Text: "spec", Own: true}, {Name: "BOM.md", Text: text}, {Name: "CHANGELOG.md", Text: "# Changelog\n", Own: true}}
	}
	plan := func(text string, opts docs.InitOptions) ([]docs.Step, error) {
		t.Helper()
		c, err := docs.ReadConfig(fsys, proj)
		if err != nil {
			t.Fatal(err)
		}
		return docs.PlanInit(fsys, proj, c, pages(text), opts)
	}
	want := func(got []docs.Step, err error, states_ string) {
		t.Helper()
		if err != nil || states(got) != states_ {
			t.Fatalf("%s, %v, want %s", states(got), err, states_)
		}
		carryOut(fsys, got)
	}
	steps, err := plan("one", docs.InitOptions{})
	want(steps, err, "SPEC.md=make BOM.md=make CHANGELOG.md=make .fiducial.json=make")
	if _, ok := fsys["hw/docs/BOM.md"]; !ok {
		t.Errorf("the docs of a project in a folder are not in that folder: %v", steps)
	}
	steps, err = plan("one", docs.InitOptions{})
	want(steps, err, "SPEC.md=keep BOM.md=unchanged CHANGELOG.md=keep .fiducial.json=unchanged")
	steps, err = plan("two", docs.InitOptions{})
	want(steps, err, "SPEC.md=keep BOM.md=remake CHANGELOG.md=keep .fiducial.json=remake")

	fsys["hw/docs/BOM.md"].Data = []byte("by hand")
	fsys["hw/docs/CHANGELOG.md"].Data = []byte("by hand")
	steps, err = plan("two", docs.InitOptions{})
	if e, ok := errors.AsType[*docs.ChangedError](err); !ok || fmt.Sprint(e.Files) != "[hw/docs/BOM.md]" {
		t.Fatalf("%s, %v, want a refusal that names BOM.md alone", states(steps), err)
	}
	steps, err = plan("two", docs.InitOptions{Keep: true})
	want(steps, err, "SPEC.md=keep BOM.md=kept CHANGELOG.md=keep .fiducial.json=unchanged")
	if _, err = plan("two", docs.InitOptions{}); err == nil {
		t.Error("a document that was kept once is overwritten the next time")
	}
	steps, err = plan("two", docs.InitOptions{Force: true})
	want(steps, err, "SPEC.md=keep BOM.md=overwrite CHANGELOG.md=keep .fiducial.json=unchanged")
	if got := string(fsys["hw/docs/CHANGELOG.md"].Data); got != "by hand" {
		t.Errorf("the changelog was made anew: %q", got)
	}

	// Others, such as a run, brought the document in line with the design: no document is written, and no hash.
	fsys["hw/docs/BOM.md"].Data = []byte("three")
	config := string(fsys["hw/.fiducial.json"].Data)
	steps, err = plan("three", docs.InitOptions{})
	want(steps, err, "SPEC.md=keep BOM.md=unchanged CHANGELOG.md=keep .fiducial.json=unchanged")
	if got := string(fsys["hw/.fiducial.json"].Data); got != config {
		t.Errorf("the config became %s", got)
	}
	// With a document to be made the hashes are brought up to date as well.
	delete(fsys, "hw/docs/SPEC.md")
	steps, err = plan("three", docs.InitOptions{})
	want(steps, err, "SPEC.md=make BOM.md=unchanged CHANGELOG.md=keep .fiducial.json=remake")

	// Two projects in one folder share the config and have folders of their own.
	other := &project.Project{Name: "q", Dir: "hw", Others: []string{"hw/p.kicad_pro"}}
	c, err := docs.ReadConfig(fsys, other)
	if err != nil {
		t.Fatal(err)
	}
	steps, err = docs.PlanInit(fsys, other, c, pages("q"), docs.InitOptions{})
	want(steps, err, "SPEC.md=make BOM.md=make CHANGELOG.md=make .fiducial.json=remake")
	if steps[1].File != "hw/docs/q/BOM.md" {
		t.Errorf("%s", steps[1].File)
	}
	c, err = docs.ReadConfig(fsys, proj)
	if err != nil || c.Folder(proj) != "hw/docs" || c.Folder(other) != "hw/docs/q" {
		t.Errorf("folders %s and %s, %v", c.Folder(proj), c.Folder(other), err)
	}
	documents, problems, err := docs.ReadAll(fsys, proj, c)
	if err != nil || len(problems) > 0 {
		t.Fatal(err, problems)
	}
	for _, d := range documents {
		if strings.HasPrefix(d.Name, "hw/docs/q/") {
			t.Errorf("%s is another project's", d.Name)
		}
	}
}

func TestReadConfig(t *testing.T) {
	proj := &project.Project{Name: "p", Dir: "hw"}
	for text, want := range map[string]string{
		`{`:                   "mend it",
		`{"version":2}`:       "use a newer fiducial",
		`{"version":1,"x":1}`: "unknown field",
		`{"version":1,"projects":{"p":{"docs":"../../x","generated":{}}}}`: "outside the repository",
		`{"version":1,"projects":{"p":{"docs":"/etc","generated":{}}}}`:    "outside the repository",
	} {
		if _, err := docs.ReadConfig(fstest.MapFS{"hw/.fiducial.json": {Data: []byte(text)}}, proj); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", text, err, want)
		}
	}
}

// B-120: one line more, and every byte that was there stays.
func TestAppendDecision(t *testing.T) {
	d := docs.Decision{Date: time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC), Run: "r1", What: "Use 330\nohm.", Why: "4 mA suffices.", Affects: []string{"R1", "D1"}}
	const line = "- 2026-11-30, run r1: Use 330 ohm. Why: 4 mA suffices. Affects: R1, D1"
	for was, want := range map[string]string{
		"":             "# Decisions\n\n" + line + "\n",
		"# D\r\n":      "# D\r\n" + line + "\r\n",
		"# D\n\n- old": "# D\n\n- old\n" + line + "\n",
	} {
		got, err := sexpr.Apply([]byte(was), []sexpr.Edit{docs.AppendDecision("DECISIONS.md", []byte(was), d)})
		if err != nil || string(got) != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}
