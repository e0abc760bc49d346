// SPDX-License-Identifier: Apache-2.0

package project_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/kicad/internal/board"
	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/project"
)

// tree makes a file system of empty files; "=" gives one a content.
func tree(files ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for _, f := range files {
		name, text, _ := strings.Cut(f, "=")
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func TestFind(t *testing.T) {
	const child = `=(kicad_sch (sheet (property "Sheetname" "A") (property "Sheetfile" "child.kicad_sch")))`
	const child6 = `=(kicad_sch (sheet (property "Sheet name" "A") (property "Sheet file" "child.kicad_sch")))`
	for _, c := range []struct {
		name string
		tree fstest.MapFS
		at   string
		want project.Project
	}{
		{
			"pair", tree("a.kicad_pro", "a.kicad_sch", "a.kicad_pcb", "sub.kicad_sch", "docs/x.md"), ".",
			project.Project{Name: "a", Dir: ".", Pro: "a.kicad_pro", Root: "a.kicad_sch", PCB: "a.kicad_pcb", Docs: "docs"},
		},
		{
			"below", tree("README.md", "docs/x.md", "hw/rev1/a.kicad_pro", "hw/rev1/a.kicad_sch"), ".",
			project.Project{Name: "a", Dir: "hw/rev1", Pro: "hw/rev1/a.kicad_pro", Root: "hw/rev1/a.kicad_sch", Docs: "docs"},
		},
		{
			"above", tree("a.kicad_pro", "a.kicad_sch", "docs/x.md"), "docs",
			project.Project{Name: "a", Dir: ".", Pro: "a.kicad_pro", Root: "a.kicad_sch", Docs: "docs"},
		},
		{
			"no settings", tree("top.kicad_sch"+child, "child.kicad_sch"), ".",
			project.Project{Name: "top", Dir: ".", Root: "top.kicad_sch"},
		},
		{
			"no settings, KiCad 6", tree("top.kicad_sch"+child6, "child.kicad_sch"), ".",
			project.Project{Name: "top", Dir: ".", Root: "top.kicad_sch"},
		},
		{"board alone", tree("a.kicad_pcb"), ".", project.Project{Name: "a", Dir: ".", PCB: "a.kicad_pcb"}},
		{
			"by file", tree("a.kicad_pro", "a.kicad_sch", "b.kicad_pro", "b.kicad_pcb"), "b.kicad_pro",
			project.Project{Name: "b", Dir: ".", Pro: "b.kicad_pro", PCB: "b.kicad_pcb", Others: []string{"a.kicad_pro"}},
		},
		{
			"by sheet", tree("a.kicad_pro", "a.kicad_sch", "b.kicad_pro", "b.kicad_sch"), "a.kicad_sch",
			project.Project{Name: "a", Dir: ".", Pro: "a.kicad_pro", Root: "a.kicad_sch", Others: []string{"b.kicad_pro"}},
		},
		{
			"parts beside", tree("common/left.kicad_sch", "hot/a.kicad_pro", "hot/a.kicad_sch", "plate/p.kicad_pcb"), ".",
			project.Project{Name: "a", Dir: "hot", Pro: "hot/a.kicad_pro", Root: "hot/a.kicad_sch"},
		},
		{
			"hollow beside", tree("a.kicad_pro", "a.kicad_sch", "old.kicad_pro"), ".",
			project.Project{Name: "a", Dir: ".", Pro: "a.kicad_pro", Root: "a.kicad_sch"},
		},
		{
			"backups", tree("a.kicad_pro", "a.kicad_sch", "a-backups/b.kicad_pro", "_autosave-a.kicad_sch", ".history/c.kicad_sch"), ".",
			project.Project{Name: "a", Dir: ".", Pro: "a.kicad_pro", Root: "a.kicad_sch"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, err := project.Find(c.tree, c.at)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(c.want, *got); d != "" {
				t.Errorf("Find (-want +got)\n%s", d)
			}
		})
	}
}

func TestFindRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		tree  fstest.MapFS
		at    string
		kind  project.Kind
		words string
	}{
		{"empty", tree("README.md"), ".", project.NotFound, "no KiCad project in this folder or below"},
		{"no such place", tree("README.md"), "hw", project.NotFound, "there is no hw"},
		{"two here", tree("a.kicad_pro", "a.kicad_sch", "b.kicad_pro", "b.kicad_sch"), ".", project.Ambiguous, "a.kicad_pro, b.kicad_pro"},
		{"two below", tree("x/a.kicad_sch", "y/b.kicad_pcb"), ".", project.Ambiguous, "x/a.kicad_sch, y/b.kicad_pcb"},
		{"two roots", tree("a.kicad_sch=(kicad_sch)", "b.kicad_sch=(kicad_sch)"), ".", project.Ambiguous, "a.kicad_sch, b.kicad_sch"},
		{"KiCad 5", tree("a.sch=EESchema Schematic File Version 4", "a.pro"), ".", project.Legacy, "a.sch is a KiCad 5 schematic"},
		{"upper case", tree("BOARD.KICAD_SCH"), ".", project.Case, "rename it to BOARD.kicad_sch"},
		{"hollow", tree("a.kicad_pro"), ".", project.Unusable, "a.kicad_pro has neither a schematic nor a board"},
		{"a text", tree("a.kicad_pro", "a.kicad_sch", "note.txt"), "note.txt", project.Unusable, "note.txt is no file of a KiCad project"},
		{"a child", tree("a.kicad_pro", "a.kicad_sch", "sub.kicad_sch"), "sub.kicad_sch", project.Unusable, "name a.kicad_sch"},
		{"upper case by file", tree("B.KICAD_PCB"), "B.KICAD_PCB", project.Case, "rename it to B.kicad_pcb"},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, err := project.Find(c.tree, c.at)
			e, ok := errors.AsType[*project.Error](err)
			if !ok || e.Kind != c.kind || !strings.Contains(err.Error(), c.words) {
				t.Errorf("Find = %v, %v, want kind %v and words %q", p, err, c.kind, c.words)
			}
		})
	}
}

// TestFindBundled finds the bundled board through an os.Root, which keeps the search inside.
func TestFindBundled(t *testing.T) {
	dir := t.TempDir()
	if err := board.Write(filepath.Join(dir, "hw")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/", filepath.Join(dir, "out")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	p, err := project.Find(root.FS(), ".")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := p.String(), "beacon (beacon.kicad_pro, beacon.kicad_sch, beacon.kicad_pcb) in hw"; got != want || p.Docs != "hw/docs" || !p.Parity() {
		t.Errorf("Find = %q, docs %q, parity %v, want %q, hw/docs, true", got, p.Docs, p.Parity(), want)
	}
}

// TestFindWithoutSettings takes the parent of a real pair of sheets for the root.
func TestFindWithoutSettings(t *testing.T) {
	files := kicadtest.Shared("p")
	delete(files, "p.kicad_pro")
	dir := t.TempDir()
	kicadtest.Write(t, dir, files)
	p, err := project.Find(os.DirFS(dir), ".")
	if err != nil || p.Root != "p.kicad_sch" || p.Pro != "" {
		t.Errorf("Find = %+v, %v, want the root p.kicad_sch and no .kicad_pro", p, err)
	}
}

func TestLocks(t *testing.T) {
	when := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	m := tree("a.kicad_pro", "a.kicad_sch", "~a.kicad_pcb.lck=garbage", "~other.lck", "~.lck")
	m["~a.kicad_sch.lck"] = &fstest.MapFile{Data: []byte(`{"hostname":"bench","username":"ada"}`), ModTime: when}
	p, err := project.Find(m, ".")
	if err != nil {
		t.Fatal(err)
	}
	want := []project.Lock{
		{File: "~a.kicad_pcb.lck", Of: "a.kicad_pcb"},
		{File: "~a.kicad_sch.lck", Of: "a.kicad_sch", User: "ada", Host: "bench", Time: when},
	}
	if d := cmp.Diff(want, p.Locks); d != "" {
		t.Fatalf("Locks (-want +got)\n%s", d)
	}
	if got := p.Locks[1].String(); got != "a.kicad_sch is open in KiCad: ada on bench since 2026-11-30 08:00:00 (~a.kicad_sch.lck)" {
		t.Errorf("String = %q", got)
	}
}
