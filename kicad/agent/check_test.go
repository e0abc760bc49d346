// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/kicad/findings"
	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
)

// AC-15.12 (B-141, B-106, B-107, B-77): without a schematic or board the answer says
// both that it does not apply and that there is no point in asking again.
func TestAC15_12_NotApplicable(t *testing.T) {
	t.Parallel()
	b := newTable(t, map[string]string{"p.kicad_pro": "{}\n", "p.kicad_pcb": kicadtest.Board})
	text := b.must("run_erc", in{})
	if !strings.Contains(text, "not applicable") || !strings.Contains(text, "pointless") {
		t.Errorf("got %s", text)
	}
	b.must("edit_file", in{"path": "p.kicad_pro", "old": "{}", "new": "{\"a\":1}"})
	if slices.Contains(b.obliged(), "erc") || len(b.closed()) > 0 {
		t.Errorf("ERC is due without a schematic: %q %q (B-77)", b.obliged(), b.closed())
	}
	for _, name := range []string{"list_nets", "list_symbols"} {
		if text := b.must(name, in{}); !strings.Contains(text, "no schematic yet") {
			t.Errorf("%s: %s (B-91)", name, text)
		}
	}

	b = newTable(t, divider())
	if text := b.must("run_drc", in{}); !strings.Contains(text, "not applicable") || !strings.Contains(text, "pointless") {
		t.Errorf("got %s", text)
	}
	if b.rules.Tally().Repairs != 0 {
		t.Error("a repair cycle was counted")
	}
}

// AC-15.28 (B-108): when kicad-cli leaves no report the error says so and quotes it.
func TestAC15_28_NoReport(t *testing.T) {
	t.Parallel()
	on := filepath.Join(t.TempDir(), "on")
	cli := stub(t, `case "$1 $2" in "sch erc") [ -e `+on+` ] && { echo "the sky fell" >&2; exit 0; };; esac`)
	b := newTableWith(t, divider(), cli)
	if err := b.base.get(t.Context()); err != nil {
		t.Fatal(err)
	}
	b.must("edit_file", in{"path": "p.kicad_sch", "old": "4k7", "new": "5k6"})
	if err := os.WriteFile(on, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	text, ok := b.call("run_erc", in{})
	if ok || !strings.Contains(text, "NOT RUN") || !strings.Contains(text, "could not be loaded") || !strings.Contains(text, "the sky fell") {
		t.Errorf("got %s", text)
	}
	if len(b.closed()) == 0 {
		t.Error("the gate is open")
	}
}

// The gates are relative (B-105): what was there before does not count, what is new
// does, and what is gone is told.
func TestGates_RelativeToTheStart(t *testing.T) {
	t.Parallel()
	b := newTable(t, divider())
	text := b.must("run_erc", in{})
	if !strings.Contains(text, "were there before") {
		t.Errorf("the divider has findings at its start: %s", text)
	}
	label := b.dangle()
	text = b.must("run_erc", in{})
	if !strings.Contains(text, "FAIL") || !strings.Contains(text, "DANGLING") || b.rules.Tally().Repairs != 1 {
		t.Errorf("got %s, %d repairs", text, b.rules.Tally().Repairs)
	}
	if got := b.closed(); len(got) != 1 || !slices.Contains(b.obliged(), "erc") {
		t.Errorf("gates %q, open %q", got, b.obliged())
	}
	b.must("run_erc", in{}) // B-38: again without an edit counts as well
	if b.rules.Tally().Repairs != 2 {
		t.Errorf("%d repairs", b.rules.Tally().Repairs)
	}
	b.must("edit_file", in{"path": "p.kicad_sch", "old": label, "new": ""})
	if text := b.must("run_erc", in{}); !strings.Contains(text, "PASS") || len(b.closed()) > 0 {
		t.Errorf("got %s, gates %q", text, b.closed())
	}
}

// dangle puts a global label that nothing is on into the divider.
func (b *table) dangle() (label string) {
	b.t.Helper()
	s := kicadtest.NewSheet("p", 5000)
	s.Label("global_label", "DANGLING", 90, 90)
	part := s.String()
	label = part[strings.Index(part, "\t(global_label"):strings.LastIndex(part, "\t(sheet_instances")]
	b.must("edit_file", in{"path": "p.kicad_sch", "old": "\t(sheet_instances", "new": label + "\t(sheet_instances"})
	return label
}

// Findings that the run removed are reported.
func TestGates_RemovedFindings(t *testing.T) {
	t.Parallel()
	s := kicadtest.NewSheet("p", 1)
	s.Resistor("R1", "1k", 20, 20)
	s.Resistor("R2", "1k", 30, 20)
	s.Wire(20, 18.5, 30, 18.5)
	s.Label("global_label", "LOST", 90, 90)
	src := s.String()
	b := newTable(t, map[string]string{"p.kicad_sch": src, "p.kicad_pro": "{}\n"})
	from := strings.Index(src, "\t(global_label")
	to := from + strings.Index(src[from:], "\n\t)\n") + len("\n\t)\n")
	b.must("edit_file", in{"path": "p.kicad_sch", "old": src[from:to], "new": ""})
	if text := b.must("run_erc", in{}); !strings.Contains(text, "Gone since the start") || !strings.Contains(text, "LOST") {
		t.Errorf("got %s", text)
	}
}

// Case 30: silencing a rule in the project file turns no gate green.
func TestCase30_SilencedRules(t *testing.T) {
	t.Parallel()
	b := newTable(t, divider())
	b.dangle()
	if text := b.must("run_erc", in{}); !strings.Contains(text, "FAIL") {
		t.Fatalf("with a dangling label: %s", text)
	}
	b.must("edit_file", in{"path": "p.kicad_pro", "old": "{\n}", "new": `{"erc": {"rule_severities": {"pin_not_connected": "ignore", "pin_not_driven": "ignore",
 "power_pin_not_driven": "ignore", "label_dangling": "ignore", "unconnected_wire_endpoint": "ignore", "isolated_pin_label": "ignore", "global_label_dangling": "ignore", "single_global_label": "ignore"}}}`})
	if text := b.must("run_erc", in{}); !strings.Contains(text, "FAIL") || len(b.closed()) == 0 {
		t.Errorf("with the rules silenced: %s, gates %q", text, b.closed())
	} else if !strings.Contains(text, "no fix") || !strings.Contains(text, "label_dangling: ") {
		t.Errorf("the change of the rules is not told: %s", text)
	}
	if v := strings.Join(b.Verification(), "\n"); !strings.Contains(v, "Rules changed") {
		t.Errorf("nor in the summary: %s", v)
	}
}

// DRC stops near 199 findings of a type: then the comparison says that it cannot be
// made, and does not fail.
func TestCap_NotComparable(t *testing.T) {
	t.Parallel()
	var all strings.Builder
	for i := range 220 { // tracks without a net, far apart: each dangles
		x, y := 300+i%20*5, 100+i/20*5
		all.WriteString("\t(segment\n\t\t(start " + strconv.Itoa(x) + " " + strconv.Itoa(y) + ")\n\t\t(end " + strconv.Itoa(x+2) + " " + strconv.Itoa(y) + ")\n\t\t(width 0.25)\n\t\t(layer \"F.Cu\")\n\t\t(net 1)\n\t\t(uuid \"" + kicadtest.UUID(9000+i) + "\")\n\t)\n")
	}
	files := divider()
	files["p.kicad_pcb"] = strings.Replace(kicadtest.Board, "\t(embedded_fonts no)", all.String()+"\t(embedded_fonts no)", 1)
	b := newTable(t, files)
	b.must("edit_file", in{"path": "p.kicad_pcb", "old": "(thickness 1.6)", "new": "(thickness 1.5)"})
	text := b.must("run_drc", in{})
	if !strings.Contains(text, string(findings.NotComparable)) {
		t.Errorf("got %.400s", text)
	}
	b.must("run_erc", in{})
	if got := b.closed(); len(got) > 0 {
		t.Errorf("gates %q", got)
	}
}

// B-105: a clean check of nothing says so.
func TestEmptySheet(t *testing.T) {
	t.Parallel()
	b := newTable(t, map[string]string{"p.kicad_sch": kicadtest.NewSheet("p", 1).String(), "p.kicad_pro": "{}\n"})
	if text := b.must("run_erc", in{}); !strings.Contains(text, "no symbols") {
		t.Errorf("got %s", text)
	}
}

// kicad-cli is never asked twice about the same contents.
func TestMemory(t *testing.T) {
	t.Parallel()
	log := filepath.Join(t.TempDir(), "log")
	b := newTableWith(t, nil, stub(t, `echo "$1 $2 $3" >>`+log))
	count := func() map[string]int {
		n := map[string]int{}
		data, err := os.ReadFile(log)
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(data)) {
			n[strings.TrimSpace(line)]++
		}
		return n
	}
	b.must("list_nets", in{})
	b.must("run_erc", in{})
	b.must("run_drc", in{})
	b.must("list_nets", in{})
	n := count()
	if n["sch erc --format"] != 1 || n["pcb drc --format"] != 1 || n["sch export netlist"] != 1 {
		t.Errorf("before any edit: %v", n)
	}
	b.must("rename_net", in{"from": "STATUS", "to": "HEARTBEAT"})
	b.must("run_erc", in{})
	b.must("run_drc", in{})
	b.must("run_erc", in{})
	n = count()
	if n["sch erc --format"] != 2 || n["pcb drc --format"] != 2 || n["sch export netlist"] != 3 || n["pcb export pos"] != 1 {
		t.Errorf("after a rename: %v", n)
	}
}

// B-178: before a proposal validates nothing changes but our own folder; the
// proposal must say why, what, how and where (B-92, B-93).
func TestProposal(t *testing.T) {
	t.Parallel()
	b := newTable(t, divider())
	b.refuses("validate_change", in{}, "propose_change first")
	b.must("propose_change", in{"why": " ", "what": "x", "tasks": []string{}, "files": []string{"../x", "p.kicad_sch"}})
	b.refuses("validate_change", in{}, "why is empty", "tasks is empty", "leaves the repository")
	b.must("propose_change", in{"why": "w", "what": "x", "tasks": []string{"t"}, "files": []string{"p.kicad_sch", "docs/new.md"}})
	b.must("validate_change", in{})
	if got := git(t, b.dir, "status", "--porcelain"); got != "" {
		t.Errorf("the tree: %s", got)
	}
}

// The changelog's entry stands first, in the file's own line ends; what is not ours
// to replace stays (B-49).
func TestSeal(t *testing.T) {
	t.Parallel()
	files := divider()
	files["docs/CHANGELOG.md"] = "# Changes\r\n\r\n## 2026-01-01: old\r\n\r\n- x\r\n"
	b := newTable(t, files)
	b.must("edit_file", in{"path": "p.kicad_sch", "old": "4k7", "new": "5k6"})
	b.must("run_erc", in{})
	if err := b.Seal(t.Context(), b.session); err != nil {
		t.Fatal(err)
	}
	got := b.bytes("docs/CHANGELOG.md")
	if strings.Contains(strings.ReplaceAll(got, "\r\n", ""), "\n") || strings.Index(got, "Run r1") > strings.Index(got, "2026-01-01") ||
		!strings.HasPrefix(got, "# Changes\r\n\r\n## ") || !strings.HasSuffix(got, "## 2026-01-01: old\r\n\r\n- x\r\n") || !strings.Contains(got, "p.kicad_sch") {
		t.Errorf("the changelog is %q", got)
	}
	if err := os.Chmod(b.path("docs/CHANGELOG.md"), 0o444); err != nil {
		t.Fatal(err)
	}
	if err := b.Seal(t.Context(), b.session); err == nil || b.bytes("docs/CHANGELOG.md") != got {
		t.Errorf("a read-only changelog: %v", err)
	}
}
