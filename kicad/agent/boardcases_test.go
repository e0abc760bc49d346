// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/project"
	"github.com/fiducial-dev/fiducial/kicad/sch"
	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// asked is what the tools are held against: see package boardcases.
type asked struct {
	Netlist *struct {
		RC             int
		Stdout, Stderr string
	}
	Nets      map[string][]string
	Inventory []struct{ Ref, Value, Footprint, DNP, XBOM, XBoard string }
}

// TestCases_Tools runs the tools on every schematic of the folder FIDUCIAL_BOARD_CASES that loads: list_symbols and
// list_nets say what the oracle says; a value, a flag and a net are changed and changed back, to the very same bytes,
// and nothing but what was meant differs in between.
func TestCases_Tools(t *testing.T) {
	t.Parallel()
	top := os.Getenv("FIDUCIAL_BOARD_CASES")
	if top == "" {
		t.Skip("FIDUCIAL_BOARD_CASES names no folder")
	}
	oracles, err := filepath.Glob(filepath.Join(top, "*", "oracle.json"))
	if err != nil || len(oracles) == 0 {
		t.Fatalf("no case in %s: %v", top, err)
	}
	for _, file := range oracles {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			var answers map[string]asked
			if err := json.Unmarshal(data, &answers); err != nil {
				t.Fatal(err)
			}
			for _, name := range slices.Sorted(maps.Keys(answers)) {
				if want := answers[name]; want.Netlist != nil && want.Netlist.RC == 0 && filepath.Ext(name) == ".kicad_sch" {
					t.Run(name, func(t *testing.T) { judgeTools(t, dir, name, want) })
				}
			}
		})
	}
}

// copied are the files of a case, without locks, which would keep every edit out.
func copied(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(dir, func(file string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(file) == ".lck" || e.Name() == "expected.md" || e.Name() == "oracle.json" {
			return err
		}
		data, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		name, _ := filepath.Rel(dir, file)
		files[filepath.ToSlash(name)] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

func judgeTools(t *testing.T, dir, name string, want asked) {
	files := copied(t, dir)
	// The file is the root of a project of its own name; the others' settings are out of the way.
	pro := strings.TrimSuffix(name, ".kicad_sch") + ".kicad_pro"
	for n := range files {
		if filepath.Ext(n) == ".kicad_pro" && n != pro {
			delete(files, n)
		}
	}
	if _, ok := files[pro]; !ok {
		files[pro] = "{}\n"
	}
	root := t.TempDir()
	kicadtest.Write(t, root, files)
	if p, err := project.Find(os.DirFS(root), name); err != nil || p.Root != name {
		t.Skipf("not the root of a project: %v", err)
	}
	b := newTableAt(t, files, kicadtest.CLI(t), name)
	lists(t, b, want)
	d, err := b.design()
	if err != nil {
		t.Fatal(err)
	}
	before := map[string]string{}
	for n := range files {
		before[n] = b.bytes(n)
	}
	same := func(what string) {
		t.Helper()
		for n, text := range before {
			if b.bytes(n) != text {
				t.Errorf("%s: %s differs", what, n)
			}
		}
	}
	// What KiCad would have written otherwise comes back in KiCad's spelling.
	kept := func(n sexpr.Node) bool { return !n.OK() || sexpr.Quote(n.Text()) == string(n.Raw()) }
	canonical := func(p sch.Part) bool {
		return !slices.ContainsFunc(p.Units, func(u sch.Placed) bool {
			v, ok := u.Symbol.Property("Value")
			ref, _ := u.Symbol.Property("Reference")
			return !ok || !kept(v.Text) || !kept(ref.Text) || !kept(u.Use.Text) || !u.Symbol.Node.Get("dnp").OK()
		})
	}
	if parts := slices.DeleteFunc(d.Parts(), func(p sch.Part) bool { return !canonical(p) }); len(parts) > 0 {
		p := parts[len(parts)/2]
		thereAndBack(b, "edit_symbol", in{"reference": p.Ref, "field": "Value", "text": "fresh \"v\" \\"}, in{"reference": p.Ref, "field": "Value", "text": p.Value}, same)
		on := map[bool]string{true: "yes", false: "no"}
		s := p.Units[0].Symbol
		if !s.DNP || b.project.PCB == "" { // else the board, which may not have had the mark, would have it on the way back
			thereAndBack(b, "edit_symbol", in{"reference": p.Ref, "field": "dnp", "text": on[true]}, in{"reference": p.Ref, "field": "dnp", "text": on[false]}, same)
		}
		if s.Value("Reference") != p.Ref || strings.ContainsAny(p.Ref, "?") || len(p.Ref) < 2 {
			return // a rename would set the property right, or cannot go back
		}
		thereAndBack(b, "rename_reference", in{"from": p.Ref, "to": "ZZ77"}, in{"from": "ZZ77", "to": p.Ref}, same)
	}
	for _, net := range slices.Sorted(maps.Keys(want.Nets)) {
		bare := net[strings.LastIndex(net, "/")+1:]
		if strings.Contains(net, "(") || slices.ContainsFunc(d.Groups(bare), func(g sch.Group) bool {
			return slices.ContainsFunc(g.Labels, func(l *sch.Label) bool { return l.Text != bare || !kept(l.Token) })
		}) {
			continue // spelled in several ways
		}
		thereAndBack(b, "rename_net", in{"from": net, "to": "ZZ fresh"}, in{"from": strings.TrimSuffix(net, bare) + "ZZ fresh", "to": bare}, same)
		break
	}
}

// listed holds list_symbols and list_nets against the oracle.
func lists(t *testing.T, b *table, want asked) {
	t.Helper()
	text := b.must("list_symbols", in{})
	problems := strings.Contains(text, "problem: ")
	for _, p := range want.Inventory {
		ref, value := strings.TrimSuffix(p.Ref, "?"), p.Value
		flags := ""
		for _, f := range []string{p.DNP, strings.Replace(p.XBOM, "Excluded from BOM", "not in BOM", 1), strings.Replace(p.XBoard, "Excluded from board", "not on board", 1)} {
			if f != "" {
				flags += ", " + f
			}
		}
		line := func(l string) bool {
			plain := strings.NewReplacer(`\n`, "", `\t`, "").Replace(l)
			return strings.HasPrefix(l, ref) && (strings.Contains(l, "| "+value) || strings.Contains(plain, "| "+value) || value == "" && strings.Contains(plain, "|  (written")) &&
				(flags == "" || strings.Contains(l, "("+flags[2:]+")"))
		}
		if !slices.ContainsFunc(strings.Split(text, "\n"), line) && !problems {
			t.Errorf("list_symbols lacks %+v in\n%s", p, text)
		}
	}
	if want.Nets == nil {
		return
	}
	text, ok := b.call("list_nets", in{})
	if !ok {
		if want.Netlist.Stderr == "" {
			t.Errorf("list_nets: %s", text)
		}
		return
	}
	for name, pins := range want.Nets {
		i := strings.Index("\n"+text, "\n"+name+" | ")
		if i < 0 {
			t.Errorf("list_nets lacks %s", name)
			continue
		}
		line, _, _ := strings.Cut(text[i:], "\n")
		for _, p := range pins {
			if !strings.Contains(line, p) {
				t.Errorf("list_nets has %s, want %s", line, p)
			}
		}
		if !strings.Contains(name, "(") && strings.Contains(line, "nowhere") {
			t.Logf("spelled nowhere: %s", line)
		}
	}
}

// thereAndBack makes an edit and its inverse, when the first is not refused: only what was meant may differ in between,
// and after it nothing.
func thereAndBack(b *table, name string, there, back in, same func(string)) {
	b.t.Helper()
	status := git(b.t, b.dir, "status", "--porcelain=v1")
	text, ok := b.call(name, there)
	if !ok {
		b.t.Log("refused:", text)
		if after := git(b.t, b.dir, "status", "--porcelain=v1"); after != status {
			b.t.Errorf("%s %v was refused and changed the tree:\n%s", name, there, after)
		}
		same("refused")
		return
	}
	moved := func(line string) bool { return strings.Contains(line, " gained ") || strings.Contains(line, " lost ") }
	if name == "rename_net" && slices.ContainsFunc(strings.Split(text, "\n"), func(line string) bool {
		return moved(line) && !strings.HasPrefix(line, "the net class pattern ") // which may have lost widths
	}) {
		b.t.Errorf("%v moved pins: %s", there, text)
	}
	text, ok = b.call(name, back)
	if !ok && strings.Contains(text, "refused:") { // a net of another sheet, or a part, is called so as well
		b.t.Log("the way back:", text)
		return
	}
	if !ok {
		b.t.Errorf("the way back, %v: %s", back, text)
		return
	}
	same(name)
}
