// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/kicad/internal/boardcases/drawn"
	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
)

// drawnFiles are the files of a drawn case as a project at the top.
func drawnFiles(t *testing.T, name, sheet string) map[string]string {
	t.Helper()
	for _, c := range drawn.All() {
		if c.Name != name {
			continue
		}
		files := map[string]string{"p.kicad_pro": "{}\n"}
		for n, text := range c.Files {
			if n == sheet {
				n = "p.kicad_sch"
			}
			files[n] = text
		}
		return files
	}
	t.Fatalf("no case is called %s", name)
	return nil
}

// onOneLine is a sheet on one line, with as many notes.
func onOneLine(notes int) string {
	s := kicadtest.NewSheet("p", 1)
	s.Resistor("R1", "10k", 20, 20)
	s.Label("label", "OUT", 20, 18.5)
	for i := range notes {
		s.Add("\t(text \"a note that makes the file large, number %06d\" (exclude_from_sim no) (at 20 20 0) (effects (font (size 1.27 1.27) (thickness 0.254) (bold yes) (color 0 0 0 1)) (justify left bottom) (href \"#1\")) (uuid \"5eed0000-0000-4000-9000-%012d\"))\n", i, i)
	}
	return strings.ReplaceAll(s.String(), "\n", "")
}

// A sheet of 10 MB on one line is read and located, and every edit of it is refused with the reason.
func TestOneLineOf10MB(t *testing.T) {
	t.Parallel()
	text := onOneLine(44_000)
	if len(text) < 10<<20 {
		t.Fatalf("the sheet has %d bytes", len(text))
	}
	b := newTable(t, map[string]string{"p.kicad_sch": text, "p.kicad_pro": "{}\n"})
	if got := b.must("list_symbols", in{}); !strings.Contains(got, "R1 | 10k") {
		t.Errorf("it is not read: %.300s", got)
	}
	for tool, args := range map[string]in{
		"edit_file":        {"path": "p.kicad_sch", "old": `"10k"`, "new": `"11k"`},
		"edit_symbol":      {"reference": "R1", "field": "Value", "text": "11k"},
		"rename_net":       {"from": "OUT", "to": "MID"},
		"rename_reference": {"from": "R1", "to": "R2"},
	} {
		b.refuses(tool, args, "line 1 of p.kicad_sch", "1,000,000", "nothing was changed", fmt.Sprint(len(text)))
	}
	if b.bytes("p.kicad_sch") != text || len(b.rules.Touched()) > 0 {
		t.Error("the file was touched")
	}
}

// A line that is too long can be broken, and none is made.
func TestLongLine_Broken(t *testing.T) {
	t.Parallel()
	b := newTable(t, map[string]string{"p.kicad_sch": onOneLine(4_000), "p.kicad_pro": "{}\n"})
	b.must("edit_file", in{"path": "p.kicad_sch", "old": "\t(text", "new": "\n\t(text", "replace_all": true})
	b.must("edit_symbol", in{"reference": "R1", "field": "Value", "text": "11k"})
	b.refuses("edit_file", in{"path": "p.kicad_sch", "old": "\n\t(text", "new": "\t(text", "replace_all": true}, "1,000,000")
}

// Case 27: the lock of a child sheet, or one that an editor leaves beside a file that is no part of the project's name.
func TestLockFile_OfAChild(t *testing.T) {
	t.Parallel()
	b := newTable(t, kicadtest.Shared("p"))
	b.put("~blk.kicad_sch.lck", "")
	b.refuses("edit_symbol", in{"reference": "R10", "field": "Value", "text": "1k"}, "~blk.kicad_sch.lck", "closed")
	b.must("edit_symbol", in{"reference": "R1", "field": "Value", "text": "2k"})
	if _, err := os.Lstat(b.path("~blk.kicad_sch.lck")); err != nil {
		t.Error(err)
	}
}

// Members of buses are not parted from them by a rename, and bus names are told to be such.
func TestRenameNet_BusMembers(t *testing.T) {
	t.Parallel()
	for sheet, c := range map[string]struct{ name, member, bus string }{
		"bus-members/p.kicad_sch": {"", "/D0", "D[0..3]"}, "bus-groups/prefix.kicad_sch": {"", "/USB.DP", "USB{DP DM}"},
		"bus-groups/bare.kicad_sch": {"", "/A", "{A B}"}, "bus-groups/alias.kicad_sch": {"", "/CLK", "{MEM}"},
		"bus-through-a-sheet/p.kicad_sch": {"", "/D0", "D[0..1]"},
	} {
		t.Run(sheet, func(t *testing.T) {
			t.Parallel()
			name, file, _ := strings.Cut(sheet, "/")
			b := newTable(t, drawnFiles(t, name, file))
			b.refuses("rename_net", in{"from": c.member, "to": "FRESH"}, "refused", "member of", c.bus, "p.kicad_sch, line")
			b.refuses("rename_net", in{"from": c.bus, "to": "FRESH"}, "refused")
			b.refuses("rename_net", in{"from": c.member, "to": "X[0..3]"}, "bus")
			if got := b.must("net_of", in{"net": c.member}); !strings.Contains(got, "R1.2") {
				t.Errorf("got %s", got)
			}
		})
	}
}

// A net whose class comes from a pattern is told of; one of an exact name keeps it.
func TestRenameNet_PatternsOfClasses(t *testing.T) {
	t.Parallel()
	files := divider()
	files["p.kicad_pro"] = `{"net_settings": {"classes": [{"name": "Default"}, {"name": "Wide"}], "netclass_patterns": [{"netclass": "Wide", "pattern": "/O[A-Z]+"}, {"netclass": "Wide", "pattern": "/*"}, {"netclass": "Wide", "pattern": "/OUT"}]}}` + "\n"
	b := newTable(t, files)
	text := b.must("rename_net", in{"from": "OUT", "to": "a<b&c"})
	if !strings.Contains(text, `"/O[A-Z]+"`) || !strings.Contains(text, "no longer covers") || strings.Contains(text, `"/*"`) {
		t.Errorf("got %s", text)
	}
	if got := b.bytes("p.kicad_pro"); !strings.Contains(got, `"pattern": "/a<b&c"`) {
		t.Errorf("the project file is %s", got)
	}
}

// A part that leaves the board takes its pins along, and comes back with them.
func TestEditSymbol_OnBoard(t *testing.T) {
	t.Parallel()
	b := newTable(t, divider())
	before := b.bytes("p.kicad_sch")
	text := b.must("edit_symbol", in{"reference": "R1", "field": "on_board", "text": "no"})
	if !strings.Contains(text, "part R1 (10k) is gone") {
		t.Errorf("got %s", text)
	}
	if got := b.must("list_symbols", in{}); !strings.Contains(got, "R1 | 10k | ~ | T:R (not on board)") {
		t.Errorf("got %s", got)
	}
	b.refuses("pins_of", in{"reference": "R1"}, "excluded from the board")
	b.must("edit_symbol", in{"reference": "R1", "field": "on_board", "text": "yes"})
	if b.bytes("p.kicad_sch") != before {
		t.Error("there and back is not the same")
	}
	s := newTable(t, kicadtest.Shared("p"))
	if text := s.must("edit_symbol", in{"reference": "R10", "field": "on_board", "text": "no"}); !strings.Contains(text, "R10") || !strings.Contains(text, "R20") {
		t.Errorf("both uses go: %s", text)
	}
}

// A part without a number is given one, though the netlist has its open pins under the new name only.
func TestRenameReference_Annotates(t *testing.T) {
	t.Parallel()
	s := kicadtest.NewSheet("p", 1)
	s.Resistor("R?", "10k", 20, 20)
	s.Resistor("R2", "10k", 30, 20)
	b := newTable(t, map[string]string{"p.kicad_sch": s.String(), "p.kicad_pro": "{}\n"})
	if text := b.must("rename_reference", in{"from": "R?", "to": "R1"}); !strings.Contains(text, "part R? -> R1") {
		t.Errorf("got %s", text)
	}
	if got := b.must("pins_of", in{"reference": "R1"}); !strings.Contains(got, "unconnected-(R1-Pad1)") {
		t.Errorf("got %s", got)
	}
}

// Fields: one more by another letter case, odd names, and what a shared sheet changes besides.
func TestEditSymbol_Fields(t *testing.T) {
	t.Parallel()
	b := newTable(t, kicadtest.Shared("p"))
	b.refuses("edit_symbol", in{"reference": "R1", "field": "value", "text": "2k"}, `"Value"`)
	b.refuses("edit_symbol", in{"reference": "R1", "field": " ", "text": "2k"}, "name")
	b.refuses("edit_symbol", in{"reference": "R1", "field": "a\nb", "text": "2k"}, "control character")
	b.refuses("edit_symbol", in{"reference": "#PWR01", "field": "Value", "text": "2k"}, "power symbol")
	b.refuses("edit_symbol", in{"reference": "r1", "field": "Value", "text": "2k"}, "no part")
	text := b.must("edit_symbol", in{"reference": "R10", "field": "Value", "text": "2k \U0001F50B \"q\" {x} ~{y} \\"})
	if !strings.Contains(text, "value of R10") || !strings.Contains(text, "value of R20") {
		t.Errorf("the other use is not told of: %s", text)
	}
	b.drawn("blk.kicad_sch")
	b.refuses("edit_symbol", in{"reference": "R1", "field": "Note", "text": "two\nlines"}, "control character")
	if got := b.must("list_symbols", in{}); strings.Count(got, "\nR") != 4 {
		t.Errorf("got %s", got)
	}
}

// Text variables are shown as they come out, with what is written; in labels they are named.
func TestTextVariables(t *testing.T) {
	t.Parallel()
	b := newTable(t, drawnFiles(t, "text-variables", "p.kicad_sch"))
	got := b.must("list_symbols", in{})
	for _, want := range []string{"R1 | 1k 5% (written 1k ${TOL})", "R2 | B2 (written ${REV})", "R3 | R3 here (written", "R4 | ${UNKNOWN} (written", "R5 | ${R1:Value}", "R6 | $5 {x} |"} {
		if !strings.Contains(got, want) {
			t.Errorf("want %q in\n%s", want, got)
		}
	}
	files := divider()
	files["p.kicad_sch"] = strings.Replace(files["p.kicad_sch"], `"OUT"`, `"${REV}_X"`, 1)
	files["p.kicad_pro"] = `{"text_variables": {"REV": "B2"}}`
	b = newTable(t, files)
	if got := b.must("net_of", in{"net": "/B2_X"}); !strings.Contains(got, "R1.2") {
		t.Errorf("got %s", got)
	}
	b.refuses("rename_net", in{"from": "/B2_X", "to": "MID"}, "${REV}_X", "text variable")
	b.refuses("rename_net", in{"from": "GND", "to": "${REV}"}, "text variable")
}

// A byte that is not UTF-8 keeps no edit of another place out, and stays as it is.
func TestLatin1(t *testing.T) {
	t.Parallel()
	files := divider()
	files["p.kicad_sch"] = strings.Replace(files["p.kicad_sch"], "\t(sheet_instances", "\t(text \"25 \xb0C\" (exclude_from_sim no) (at 10 10 0) (effects (font (size 1.27 1.27))) (uuid \"5eed0000-0000-4000-8000-0000000000f0\"))\n\t(sheet_instances", 1)
	b := newTable(t, files)
	b.must("edit_symbol", in{"reference": "R1", "field": "Value", "text": "22k"})
	b.must("rename_net", in{"from": "OUT", "to": "MID"})
	if got := b.bytes("p.kicad_sch"); !strings.Contains(got, "\"25 \xb0C\"") || !strings.Contains(got, `"22k"`) || !strings.Contains(got, `"MID"`) {
		t.Errorf("the sheet is\n%s", got)
	}
	if got := b.must("list_symbols", in{}); !strings.Contains(got, "0xB0") {
		t.Errorf("the byte is not told of: %s", got)
	}
}

// Names of nets may be given without their sheet, or with the escapes that KiCad shows.
func TestNetOf_Spellings(t *testing.T) {
	t.Parallel()
	b := newTable(t, drawnFiles(t, "deep-tree", "p.kicad_sch"))
	if got := b.must("net_of", in{"net": "/L1/L2/OUT"}); !strings.Contains(got, "R3.1") {
		t.Errorf("got %s", got)
	}
	b.refuses("net_of", in{"net": "OUT"}, "several", "/L1/L2/L3/L4/OUT", "/OUT")
	b.refuses("net_of", in{"net": "NOPE"}, "no net")
	b.refuses("net_of", in{"net": "ou"}, "/OUT")
	b = newTable(t, drawnFiles(t, "escaped-names", "p.kicad_sch"))
	for _, name := range []string{"/A{slash}B", "A/B", "/A/B", "A{slash}B"} {
		if got := b.must("net_of", in{"net": name}); !strings.Contains(got, "R1.1") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// write_file makes nothing that git does not see (B-57), and leaves no folder behind.
func TestWriteFile_Ignored(t *testing.T) {
	t.Parallel()
	files := divider()
	files[".gitignore"] = "*.txt\nout/\n"
	b := newTable(t, files)
	for _, name := range []string{"x.txt", "out/a.md", "out/deep/a.md", "docs/new/a.txt"} {
		b.refuses("write_file", in{"path": name, "content": "x"}, "ignores", "nothing was written")
		if _, err := os.Lstat(b.path(name)); err == nil {
			t.Errorf("%s is there", name)
		}
	}
	for _, dir := range []string{"out", "docs"} {
		if _, err := os.Lstat(b.path(dir)); err == nil {
			t.Errorf("the folder %s is left", dir)
		}
	}
	if len(b.rules.Touched()) > 0 {
		t.Errorf("touched %q", b.rules.Touched())
	}
	b.must("write_file", in{"path": "docs/new/a.md", "content": "x"})
}
