// SPDX-License-Identifier: Apache-2.0

package boardcases

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/kicad/findings"
	"github.com/fiducial-dev/fiducial/kicad/internal/boardcases/drawn"
	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/lint"
	"github.com/fiducial-dev/fiducial/kicad/pcb"
)

// casesDir is the folder of the environment's.
func casesDir(t *testing.T) string {
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

// TestCases judges every folder of the environment's.
func TestCases(t *testing.T) {
	t.Parallel()
	dir := casesDir(t)
	list, err := readFolders(dir)
	if err != nil {
		t.Fatal(err)
	}
	r := newRunner(t)
	for _, f := range list {
		t.Run(f.name, func(t *testing.T) {
			t.Parallel()
			judgeFolder(t, r, dir, f)
			reports(t, f)
		})
	}
}

// TestDrawn judges the cases that we draw.
func TestDrawn(t *testing.T) {
	t.Parallel()
	r := newRunner(t)
	stored := map[string]bool{}
	entries, err := os.ReadDir("testdata")
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		stored[e.Name()] = true
	}
	for _, c := range drawn.All() {
		delete(stored, c.Name)
		t.Run(c.Name, func(t *testing.T) {
			t.Parallel()
			data, err := os.ReadFile(filepath.Join("testdata", c.Name, "oracle.json"))
			if err != nil {
				t.Fatal(err)
			}
			top := t.TempDir()
			f := folder{name: c.Name, dir: filepath.Join(top, c.Name)}
			if err := os.Mkdir(f.dir, 0o700); err != nil {
				t.Fatal(err)
			}
			if err := c.Write(f.dir); err != nil {
				t.Fatal(err)
			}
			if f.files, err = readOracle(data); err != nil {
				t.Fatal(err)
			}
			if got := slices.Sorted(maps.Keys(f.files)); !slices.Equal(got, slices.Sorted(slices.Values(c.Asked()))) {
				t.Errorf("the oracle is of %q, want %q", got, c.Asked())
			}
			judgeFolder(t, r, top, f)
		})
	}
	for name := range stored {
		t.Errorf("testdata/%s is of no case", name)
	}
}

func judgeFolder(t *testing.T, r *kicadcli.Runner, top string, f folder) {
	for _, name := range slices.Sorted(maps.Keys(f.files)) {
		t.Run(name, func(t *testing.T) {
			in := kicadcli.Input{File: filepath.Join(f.dir, filepath.FromSlash(name)), Root: top}
			judge{r: r, in: in, dir: f.dir, name: name, want: f.files[name]}.all(t)
		})
	}
}

// reports reads kicad-cli's raw reports that lie in a case, and holds them against the oracle's counts.
func reports(t *testing.T, f folder) {
	t.Helper()
	for _, kind := range []findings.Check{findings.ERC, findings.DRC} {
		files, err := filepath.Glob(filepath.Join(f.dir, string(kind)+"-*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			r, err := findings.Read(kind, data)
			if err != nil {
				t.Errorf("%s: %v", filepath.Base(file), err)
				continue
			}
			want := f.files[r.Source].ERC
			if kind == findings.DRC {
				want = f.files[r.Source].DRC
			}
			if want == nil || want.Counts == nil {
				t.Errorf("%s is of %q, of which the oracle has no counts", filepath.Base(file), r.Source)
			} else if diff := cmp.Diff(design(*want.Counts), design(counts(r))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", filepath.Base(file), diff)
			}
		}
	}
}

// What the lint must say of the cases, and must not say of the others.
func TestLint(t *testing.T) {
	dir := casesDir(t)
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
	handed := []string{
		"01-escaped-quotes-backslash", "02-parens-inside-strings", "04-giant-single-line", "06-crlf-and-byte-order-mark", "08-multi-unit-pins",
		"09-duplicate-designators", "10-rename-needs-two-places", "12-broken-child-sheet-is-silent", "13-symbol-missing-from-lib_symbols",
		"15-extra-bracket-truncates-silently", "16-erc-json-shape-and-units", "17-junctions-and-t-wires", "19-power-symbol-names", "20-net-name-spelling",
		"22-dnp-and-exclude-flags", "23-bom-table-shapes", "27-editor-lock-files", "28-board-net-numbers", "30-silencing-instead-of-fixing",
		"31-library-table-noise", "32-edit-hits-the-wrong-part",
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
		number, _, _ := strings.Cut(filepath.ToSlash(name), "/")
		expected, known := want[filepath.ToSlash(name)]
		if known {
			seen++
		} else if !slices.Contains(handed, number) {
			return nil // what may be said of it is for TestCases
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
	base := filepath.Join(casesDir(t), "30-silencing-instead-of-fixing")
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
	base := filepath.Join(casesDir(t), "28-board-net-numbers")
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
