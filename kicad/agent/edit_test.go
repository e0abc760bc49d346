// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/tool"
)

// AC-15.20 (B-145, B-96, B-98, B-104): an edit that breaks a sheet that loaded is
// taken back byte for byte, mode and all, and nothing counts as touched.
func TestAC15_20_BreakingEditIsReverted(t *testing.T) {
	t.Parallel()
	b := newTable(t, nil)
	if err := os.Chmod(b.path("beacon.kicad_sch"), 0o640); err != nil {
		t.Fatal(err)
	}
	b.must("run_erc", in{})
	before := b.bytes("beacon.kicad_sch")
	text := b.refuses("edit_file", in{"path": "beacon.kicad_sch", "old": `(label "VIN"`, "new": `(labl "VIN"`}, "reverted", "line ", "kicad-cli")
	if !strings.Contains(text, "Expecting") {
		t.Errorf("kicad-cli is not quoted: %s", text)
	}
	info, err := os.Stat(b.path("beacon.kicad_sch"))
	if err != nil || b.bytes("beacon.kicad_sch") != before || info.Mode().Perm() != 0o640 {
		t.Errorf("the file differs, or its mode: %v %v", info.Mode(), err)
	}
	if len(b.rules.Touched()) > 0 || len(b.obliged()) > 0 {
		t.Errorf("touched %q, open %q", b.rules.Touched(), b.obliged())
	}
	b.checks.Lock()
	defer b.checks.Unlock()
	if !b.erc.ran {
		t.Error("a reverted edit forgot ERC's result (B-104)")
	}
}

// The same for a board, and for what kicad-cli loads without a word (case 15).
func TestBreakingEdit_BoardAndSilentFaults(t *testing.T) {
	t.Parallel()
	b := newTable(t, nil)
	for _, c := range []struct{ path, old, now, says string }{
		{"beacon.kicad_pcb", "(version 20241229)", "(versio 20241229)", "does not load"},
		{"beacon.kicad_pcb", "(version 20241229)", "(version 20241229))", "bracket"},
		{"mcu.kicad_sch", "(paper \"A4\")", "(paper \"A4\"))", "bracket"},
		{"mcu.kicad_sch", `(lib_symbols`, `(lib_symbolz`, "reverted"},
	} {
		before := b.bytes(c.path)
		b.refuses("edit_file", in{"path": c.path, "old": c.old, "new": c.now}, "reverted", c.says)
		if b.bytes(c.path) != before {
			t.Errorf("%s differs after %q", c.path, c.now)
		}
	}
}

// AC-15.21 (B-146, B-97): project, symbol and footprint files are never probed nor
// put back; they open obligations.
func TestAC15_21_ConfigIsNeverProbed(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	cli := stub(t, `case "$1 $2 $3" in "sch export netlist"|"pcb export pos"|"sym export"*|"fp export"*) echo "$last" >>`+log+`; [ -e `+log+`.poison ] && { echo Failed >&2; exit 3; };; esac`)
	files := divider()
	files["lib/own.kicad_sym"], files["lib/x.pretty/a.kicad_mod"] = "(kicad_symbol_lib)\n", "(footprint \"a\")\n"
	b := newTableWith(t, files, cli)
	b.must("list_nets", in{})
	if err := b.base.get(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := errors2(os.Remove(log), os.WriteFile(log+".poison", nil, 0o600)); err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]string{
		{"p.kicad_pro", "{", "{ broken"}, {"lib/own.kicad_sym", "(kicad", "((("}, {"lib/x.pretty/a.kicad_mod", "(footprint", "(foot"},
	} {
		b.must("edit_file", in{"path": c[0], "old": c[1], "new": c[2]})
		if !strings.Contains(b.bytes(c[0]), c[2]) {
			t.Errorf("%s was not edited", c[0])
		}
	}
	if data, err := os.ReadFile(log); err == nil {
		t.Errorf("probed:\n%s", data)
	}
	if got := b.obliged(); !slices.Contains(got, "erc") || !slices.Contains(got, "changelog") || len(b.rules.Touched()) != 3 {
		t.Errorf("open %q, touched %q", got, b.rules.Touched())
	}
}

func errors2(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// AC-15.22 (B-147): a sheet that did not load before is never put back; the way to
// repair it stays open, up to the end.
func TestAC15_22_BrokenSheetCanBeRepaired(t *testing.T) {
	t.Parallel()
	for name, broken := range map[string][2]string{
		"word":    {"(paper \"A4\")", "(papper \"A4\")"},
		"bracket": {"(paper \"A4\")", "(paper \"A4\""},
		"head":    {"(kicad_sch", "(kicad_xxx"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := divider()
			files["p.kicad_sch"] = strings.Replace(files["p.kicad_sch"], broken[0], broken[1], 1)
			b := newTable(t, files)
			text := b.must("edit_file", in{"path": "p.kicad_sch", "old": "(generator \"eeschema\")", "new": "(generator \"eeschem\")"})
			if !strings.Contains(text, "did not load before") || !strings.Contains(text, "kept") {
				t.Errorf("the answer is %s", text)
			}
			if !cmp.Equal(b.rules.Touched(), []string{"p.kicad_sch"}) || !slices.Contains(b.obliged(), "erc") {
				t.Errorf("touched %q, open %q", b.rules.Touched(), b.obliged())
			}
			if text, ok := b.call("run_erc", in{}); ok || !strings.Contains(text, "NOT RUN") {
				t.Errorf("ERC of a broken sheet: %s", text)
			}
			if b.rules.Tally().Repairs != 1 || len(b.closed()) == 0 {
				t.Errorf("%d repairs, gates %q", b.rules.Tally().Repairs, b.closed())
			}
			b.must("edit_file", in{"path": "p.kicad_sch", "old": broken[1], "new": broken[0]})
			b.must("run_erc", in{})
			if got := b.closed(); len(got) > 0 {
				t.Errorf("closed %q", got)
			}
			// From now on it loads, and an edit that breaks it is taken back.
			b.refuses("edit_file", in{"path": "p.kicad_sch", "old": broken[0], "new": broken[1]}, "reverted")
		})
	}
}

// B-99: when kicad-cli cannot be asked the file has its old bytes.
func TestProbeCannotBeAsked(t *testing.T) {
	t.Parallel()
	gone := filepath.Join(t.TempDir(), "gone")
	cli := stub(t, "[ -e "+gone+" ] && sleep 30")
	b := newTableWith(t, divider(), cli)
	b.must("run_erc", in{})
	if err := os.Remove(cli); err != nil {
		t.Fatal(err)
	}
	before := b.bytes("p.kicad_sch")
	b.refuses("edit_file", in{"path": "p.kicad_sch", "old": "4k7", "new": "5k6"}, "reverted", "kicad-cli")
	if b.bytes("p.kicad_sch") != before || len(b.rules.Touched()) > 0 || len(b.obliged()) > 0 {
		t.Errorf("touched %q, open %q", b.rules.Touched(), b.obliged())
	}
}

// B-94: what an edit may be refused for, each with its own words.
func TestEditFile_Refusals(t *testing.T) {
	t.Parallel()
	b := newTable(t, map[string]string{
		"p.kicad_sch": divider()["p.kicad_sch"], "docs/A.md": "one two\ntwo three\n", "docs/W.md": "one\r\ntwo\r\n", "bin.dat": "a\x00b",
	})
	b.refuses("edit_file", in{"path": "docs/A.md", "old": "four", "new": "x"}, "does not occur")
	b.refuses("edit_file", in{"path": "docs/A.md", "old": "two", "new": "x"}, "2 times", "[1 2]", "replace_all")
	b.refuses("edit_file", in{"path": "docs/A.md", "old": "one"}, "new", "is missing")
	b.refuses("edit_file", in{"path": "docs/A.md", "old": "", "new": "x"}, "old is empty")
	b.refuses("edit_file", in{"path": "docs/A.md", "old": "one", "new": "one"}, "changes nothing")
	b.refuses("edit_file", in{"path": "docs/none.md", "old": "one", "new": "x"}, "no such file")
	b.refuses("edit_file", in{"path": "docs", "old": "one", "new": "x"}, "no name of a design file or document")
	b.refuses("edit_file", in{"path": "docs/W.md", "old": "one\ntwo", "new": "x"}, "Windows line ends")
	for _, field := range []string{"old", "new"} { // B-86
		args := in{"path": "docs/A.md", "old": "one", "new": "x"}
		args[field] = "on\uFFFD"
		b.refuses("edit_file", args, field, "U+FFFD", "again")
	}
	b.refuses("write_file", in{"path": "docs/B.md", "content": "\uFFFD"}, "U+FFFD")

	b.must("edit_file", in{"path": "docs/W.md", "old": "one\r\ntwo", "new": "$1 \\1 &\r\n${x}"}) // special characters are literal
	b.must("edit_file", in{"path": "docs/A.md", "old": "two", "new": "", "replace_all": true})   // an empty one deletes
	if got := b.bytes("docs/W.md") + b.bytes("docs/A.md"); got != "$1 \\1 &\r\n${x}\r\none \n three\n" {
		t.Errorf("the documents are %q", got)
	}
}

// B-101: write_file makes documents, with their folders, and nothing else.
func TestWriteFile(t *testing.T) {
	t.Parallel()
	b := newTable(t, divider())
	b.must("write_file", in{"path": "docs/deep/A.md", "content": "a"})
	b.refuses("write_file", in{"path": "docs/deep/A.md", "content": "b"}, "exists", "edit_file")
	for _, name := range []string{"q.kicad_sch", "q.KICAD_PCB", "q.kicad_pro", "q.kicad_dru", "x.kicad_sym", "fp-lib-table"} {
		b.refuses("write_file", in{"path": name, "content": "x"}, "KiCad file")
	}
	if got := b.bytes("docs/deep/A.md"); got != "a" {
		t.Errorf("A.md is %q", got)
	}
	b.must("edit_file", in{"path": "docs/deep/A.md", "old": "a", "new": "b"}) // the run's own file
}

// B-85: what leaves the repository, or is git's or ours, is an error in every tool.
func TestPaths(t *testing.T) {
	t.Parallel()
	files := divider()
	files[".gitignore"] = "ignored.md\n"
	b := newTable(t, files)
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "secret.md"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	b.put("ignored.md", "mine")
	b.put("real/r.md", "r")
	for name, to := range map[string]string{
		"out": outside, "up": "../" + filepath.Base(outside), "gitdir": ".git", "real/end.md": filepath.Join(outside, "secret.md"),
		"real/cfg.md": "../.git/config", "inner": "real", "real/alias.md": "r.md", "loop": "loop",
	} {
		if err := os.Symlink(to, b.path(name)); err != nil {
			t.Fatal(err)
		}
	}
	git(t, b.dir, "add", "-A")
	for _, p := range []string{
		"", "..", "../x.md", "docs/../../x.md", outside + "/secret.md", "/etc/passwd", "out/secret.md", "up/secret.md", "real/end.md",
		".git/config", ".GIT/config", "docs/.git/x.md", ".git./config", ".fiducial/runs/r1/x.md", ".Fiducial/x.md", "real/../.git/config",
		"gitdir/config", "gitdir/new.md", "real/cfg.md", "loop/x.md", "a\x00b.md", `..\x.md`, "GIT~1/config", ".g\u200cit/config", ".git::$INDEX_ALLOCATION/config", "fiduci~1/x",
	} {
		b.refuses("read_file", in{"path": p})
		b.refuses("edit_file", in{"path": p, "old": "e", "new": "x"})
		b.refuses("write_file", in{"path": p, "content": "x"})
	}
	if got := b.must("read_file", in{"path": "inner/r.md"}); !strings.Contains(got, "r") {
		t.Errorf("a link inside the repository: %s", got)
	}
	b.refuses("edit_file", in{"path": "real/alias.md", "old": "r", "new": "x"}, "symbolic link", "real/r.md")
	b.refuses("write_file", in{"path": "docs/nul.md", "content": "x"}, "device on Windows")
	b.refuses("write_file", in{"path": "docs/a.md:stream", "content": "x"}, "colon")
	b.refuses("edit_file", in{"path": "ignored.md", "old": "mine", "new": "x"}, "ignores")
	if _, err := os.Stat(filepath.Join(outside, "x.md")); err == nil {
		t.Error("something was written outside")
	}
}

// A read-only file stays as it is.
func TestReadOnlyFile(t *testing.T) {
	t.Parallel()
	b := newTable(t, divider())
	if err := os.Chmod(b.path("p.kicad_sch"), 0o444); err != nil {
		t.Fatal(err)
	}
	b.refuses("edit_file", in{"path": "p.kicad_sch", "old": "4k7", "new": "5k6"}, "read-only")
	b.refuses("edit_symbol", in{"reference": "R2", "field": "Value", "text": "5k6"}, "read-only")
}

// Case 27: an editor that opens the design during the run is refused by name.
func TestLockFile(t *testing.T) {
	t.Parallel()
	b := newTable(t, divider())
	b.put("~p.kicad_sch.lck", `{"hostname":"h","username":"u"}`)
	b.refuses("edit_file", in{"path": "p.kicad_sch", "old": "4k7", "new": "5k6"}, "~p.kicad_sch.lck")
	b.refuses("rename_net", in{"from": "OUT", "to": "MID"}, "~p.kicad_sch.lck")
}

// B-181: with a probe that fails on a random set of contents the file holds the old
// or the new content, and it is touched just when it is the new one.
func TestB181_OldOrNew(t *testing.T) {
	t.Parallel()
	cli := stub(t, `case "$1 $2 $3" in "sch export netlist") cat "$last" | grep -q 'POISON' && { echo "Failed to load schematic" >&2; exit 3; };; esac`)
	b := newTableWith(t, divider(), cli)
	rnd := rand.New(rand.NewPCG(181, 0))
	value := "4k7"
	good := true // whether the file loads now
	for i := range 14 {
		old := b.bytes("p.kicad_sch")
		next := fmt.Sprintf("v%d", i)
		poison := rnd.IntN(2) == 0
		if poison {
			next += "POISON"
		}
		want := strings.ReplaceAll(old, value, next)
		before := git(t, b.dir, "hash-object", "p.kicad_sch")
		touched := len(b.rules.Touched())
		_, ok := b.call("edit_file", in{"path": "p.kicad_sch", "old": value, "new": next, "replace_all": true})
		if keep := !poison || !good; ok != keep {
			t.Fatalf("step %d: kept %t, want %t (poison %t, good %t)", i, ok, keep, poison, good)
		}
		switch now := b.bytes("p.kicad_sch"); {
		case ok && now == want:
			value, good = next, !poison
		case !ok && now == old && len(b.rules.Touched()) == touched && git(t, b.dir, "hash-object", "p.kicad_sch") == before:
		default:
			t.Fatalf("step %d: a mix, or the wrong mark", i)
		}
		if ok && !slices.Contains(b.rules.Touched(), "p.kicad_sch") {
			t.Fatalf("step %d: kept and not touched", i)
		}
	}
}

// Reading tools and checks run side by side, and beside each other.
func TestReadersSideBySide(t *testing.T) {
	t.Parallel()
	b := newTable(t, nil)
	var wg sync.WaitGroup
	for _, name := range []string{"list_nets", "list_symbols", "run_erc", "run_drc", "search", "list_nets", "run_erc"} {
		wg.Go(func() {
			args := `{}`
			if name == "search" {
				args = `{"pattern":"STATUS"}`
			}
			if res := b.tools.Execute(context.Background(), tool.Call{ID: name, Name: name, Input: json.RawMessage(args)}); res.IsError() {
				t.Errorf("%s: %s", name, res.Body())
			}
		})
	}
	wg.Wait()
}

// AC-15.13 (B-142, B-90): an empty pattern gets an answer with an example.
func TestAC15_13_EmptyPattern(t *testing.T) {
	t.Parallel()
	b := newTable(t, divider())
	for _, args := range []in{{"pattern": ""}, {"pattern": "  "}, {}} {
		text := b.refuses("search", args, "non-empty", "for example")
		if strings.Contains(text, "missing") {
			t.Errorf("generic: %s", text)
		}
	}
	b.refuses("search", in{"pattern": 7})
	b.refuses("search", in{"pattern": "("}, "regular expression")
	b.refuses("search", in{"pattern": "x", "glob": "["}, "glob")
}
