// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/project"
	"github.com/fiducial-dev/fiducial/task"
)

// planned is what init would do in a folder, and the states in short.
func planned(t *testing.T, dir string) (steps []docs.Step, states string, err error) {
	t.Helper()
	r, err := kicadcli.New(kicadcli.Options{Path: kicadtest.CLI(t), Limit: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	in := kicadcli.At(filepath.Join(dir, "p.kicad_sch"))
	list, err := r.Netlist(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	entries, err := r.Inventory(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	proj, err := project.Find(os.DirFS(dir), ".")
	if err != nil {
		t.Fatal(err)
	}
	c, err := docs.ReadConfig(os.DirFS(dir), proj)
	if err != nil {
		t.Fatal(err)
	}
	steps, err = docs.PlanInit(os.DirFS(dir), proj, c, docs.Generate("p", docs.NewDesign(entries, list), nil), docs.InitOptions{})
	var s []string
	for _, step := range steps {
		s = append(s, path.Base(step.File)+"="+string(step.State))
	}
	return steps, strings.Join(s, " "), err
}

func carriedOut(t *testing.T, dir string, steps []docs.Step) {
	t.Helper()
	for _, s := range steps {
		if s.Writes() {
			kicadtest.Write(t, dir, map[string]string{s.File: string(s.Text)})
		}
	}
}

// initialised is a project with the documents that init makes.
func initialised(t *testing.T, files map[string]string) map[string]string {
	t.Helper()
	dir := t.TempDir()
	kicadtest.Write(t, dir, files)
	steps, _, err := planned(t, dir)
	if err != nil {
		t.Fatal(err)
	}
	files = maps.Clone(files)
	for _, s := range steps {
		files[s.File] = string(s.Text)
	}
	return files
}

// A document that init made and a run edited is no document changed by hand: the next
// init goes on with it, keeps what the run wrote, and repairs what the design has
// changed since. What a hand changed stays protected, also when a run edits it later.
func TestSeal_InitKnowsWhatTheRunEdited(t *testing.T) {
	t.Parallel()
	files := initialised(t, divider())
	hand := files["docs/PINOUT.md"] + "\nBy hand.\n"
	files["docs/PINOUT.md"] = hand
	p := playRun(t, files, calls(slices.Concat(proposed,
		[]any{"edit_symbol", in{"reference": "R1", "field": "Value", "text": "22k"}, "fix_docs", in{}},
		edits("docs/BOM.md", "# p: bill of materials", "# p: bill of materials\n\nOrdered by the hundred."),
		edits("docs/PINOUT.md", "By hand.", "By hand and by a run."),
		[]any{"run_erc", in{}, "check_drift", in{}}, finished)...))
	p.ends(task.Done, task.PathDone)
	if got := git(t, p.dir, "show", "--format=", "--name-only"); !strings.Contains(got, docs.ConfigName) {
		t.Errorf("committed %q, want the config with it", got)
	}
	steps, states, err := planned(t, p.dir)
	const page = "SPEC.md=keep BOM.md=unchanged PINOUT.md=changed SUBSYSTEMS.md=unchanged LAYOUT.md=unchanged DECISIONS.md=keep CHANGELOG.md=keep"
	if e, ok := errors.AsType[*docs.ChangedError](err); !ok || states != page || len(e.Files) != 1 {
		t.Fatalf("%s, %v, want PINOUT.md alone, which a hand had changed, to be refused", states, err)
	}
	if len(steps) == 0 {
		t.Fatal("no steps")
	}
	kicadtest.Write(t, p.dir, map[string]string{"docs/PINOUT.md": strings.TrimSuffix(hand, "\nBy hand.\n")})

	// The design changes.
	sheet, err := os.ReadFile(filepath.Join(p.dir, "p.kicad_sch"))
	if err != nil {
		t.Fatal(err)
	}
	kicadtest.Write(t, p.dir, map[string]string{"p.kicad_sch": strings.ReplaceAll(string(sheet), `"22k"`, `"33k"`)})
	steps, states, err = planned(t, p.dir)
	if want := "BOM.md=mend"; err != nil || !strings.Contains(states, want) {
		t.Fatalf("%s, %v, want %s", states, err, want)
	}
	carriedOut(t, p.dir, steps)
	bom, err := os.ReadFile(filepath.Join(p.dir, "docs/BOM.md"))
	if err != nil || !strings.Contains(string(bom), "Ordered by the hundred.") || !strings.Contains(string(bom), "33k") || strings.Contains(string(bom), "22k") {
		t.Errorf("%v\n%s", err, bom)
	}
	if steps, states, err = planned(t, p.dir); err != nil || slices.ContainsFunc(steps, docs.Step.Writes) {
		t.Errorf("the second init: %s, %v", states, err)
	}

	// A hand changes what the run had written.
	kicadtest.Write(t, p.dir, map[string]string{"docs/BOM.md": string(bom) + "\nBy hand.\n"})
	if _, states, err = planned(t, p.dir); err == nil {
		t.Errorf("%s: overwritten or passed over", states)
	}
}

// A config with changes of the user's is not written over, nor does it keep the run
// from being committed.
func TestSeal_LeavesAConfigInWorkAlone(t *testing.T) {
	t.Parallel()
	b := newTable(t, initialised(t, divider()))
	config := b.bytes(docs.ConfigName)
	b.must("edit_file", in{"path": "docs/BOM.md", "old": "# p: bill", "new": "# The bill"})
	b.put(docs.ConfigName, config+"\n") // somebody is at it
	if err := b.Seal(t.Context(), b.session); err != nil || b.bytes(docs.ConfigName) != config+"\n" {
		t.Errorf("what somebody else wrote into the config is gone: %v", err)
	}
}
