// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/library"
)

// B-69, B-110: an edit of the design or of a document opens drift; a difference that
// is new keeps it open, with document, claim and what is so; fix_docs mends it byte
// by byte, and the clean check clears it.
func TestDrift_OpenedAndCleared(t *testing.T) {
	t.Parallel()
	b := newTable(t, nil)
	if text := b.must("check_drift", in{}); !strings.Contains(text, "DRIFT PASS") {
		t.Errorf("the bundled project differs from its documents: %s", text)
	}
	b.must("edit_symbol", in{"reference": "R1", "field": "Value", "text": "470"})
	if !slices.Contains(b.obliged(), "drift") {
		t.Fatalf("open %q", b.obliged())
	}
	text := b.must("check_drift", in{})
	if !strings.Contains(text, "DRIFT FAIL") || !strings.Contains(text, "docs/BOM.md") || !strings.Contains(text, "330") || !strings.Contains(text, "470") {
		t.Errorf("got %s", text)
	}
	if !slices.Contains(b.obliged(), "drift") || b.rules.Tally().Repairs != 0 {
		t.Errorf("open %q, %d repairs (B-38)", b.obliged(), b.rules.Tally().Repairs)
	}
	old := b.bytes("docs/BOM.md")
	b.refuses("fix_docs", in{"documents": []string{"README.md"}}, "docs/BOM.md")
	b.must("fix_docs", in{"documents": []string{"docs/BOM.md"}})
	if now := b.bytes("docs/BOM.md"); strings.Replace(old, "| 330 ", "| 470 ", 1) != now {
		t.Errorf("other bytes changed:\n%s", now)
	}
	if text := b.must("check_drift", in{}); !strings.Contains(text, "DRIFT PASS") || slices.Contains(b.obliged(), "drift") {
		t.Errorf("got %s, open %q", text, b.obliged())
	}
	if v := strings.Join(b.Verification(), "\n"); !strings.Contains(v, "DRIFT PASS") {
		t.Errorf("verification:\n%s", v)
	}
	b.must("edit_file", in{"path": "docs/BOM.md", "old": "| 470 ", "new": "| 330 "})
	if !slices.Contains(b.obliged(), "drift") {
		t.Errorf("an edit of a document opens nothing: %q", b.obliged())
	}
	if text := b.must("fix_docs", in{}); !strings.Contains(text, "docs/BOM.md") {
		t.Errorf("got %s", text)
	}
	if text := b.must("fix_docs", in{}); !strings.Contains(text, "nothing was changed") {
		t.Errorf("got %s", text)
	}
}

// What differed before the run does not count against it; what is new does, also
// after the run was taken up by another process.
func TestDrift_RelativeToTheStart(t *testing.T) {
	t.Parallel()
	files := divider()
	files["docs/BOM.md"] = "| Refdes | Qty | Value |\n|---|---|---|\n| R1 | 1 | 99k |\n| R2 | 1 | 4k7 |\n"
	if !strings.Contains(files["p.kicad_sch"], "\"4k7\"") {
		t.Fatal("the divider has no 4k7")
	}
	b := newTable(t, files)
	text := b.must("check_drift", in{})
	if !strings.Contains(text, "DRIFT PASS") || !strings.Contains(text, "were there before") || !strings.Contains(text, "99k") {
		t.Fatalf("got %s", text)
	}
	old := strings.Count(text, "\n- ")
	b.must("edit_file", in{"path": "docs/BOM.md", "old": "| Refdes", "new": "A remark.\n\n| Refdes"}) // lines move
	if text := b.must("check_drift", in{}); !strings.Contains(text, "DRIFT PASS") || strings.Count(text, "\n- ") != old {
		t.Errorf("got %s", text)
	}
	b.must("edit_file", in{"path": "docs/BOM.md", "old": "| Qty | Value |\n|---|---|---|", "new": "| Qty | Value |\n|---|---|---|\n| R99 | 1 | 1k |"})
	if text := b.must("check_drift", in{}); !strings.Contains(text, "DRIFT FAIL") || !strings.Contains(text, "R99") {
		t.Errorf("got %s", text)
	}
	r := b.again()
	if text := r.must("check_drift", in{}); !strings.Contains(text, "DRIFT FAIL: ") || !strings.Contains(text, "R99") || !slices.Contains(r.obliged(), "drift") {
		t.Errorf("taken up: %s, open %q", text, r.obliged())
	}
}

// B-69: without a schematic the check clears; where no document says anything there
// is no obligation.
func TestDrift_NothingToCompare(t *testing.T) {
	t.Parallel()
	b := newTable(t, map[string]string{"p.kicad_pro": "{}\n", "p.kicad_pcb": kicadtest.Board, "docs/BOM.md": "| Refdes | Value |\n|---|---|\n| R1 | 1k |\n"})
	b.must("edit_file", in{"path": "docs/BOM.md", "old": "1k", "new": "2k"})
	if text := b.must("check_drift", in{}); !strings.Contains(text, "not applicable") || len(b.obliged()) > 0 {
		t.Errorf("got %s, open %q", text, b.obliged())
	}
	files := divider()
	files["docs/NOTES.md"] = "Prose.\n"
	b = newTable(t, files)
	b.must("edit_symbol", in{"reference": "R2", "field": "Value", "text": "5k6"})
	if got := b.obliged(); !cmp.Equal(got, []string{"changelog", "erc"}) {
		t.Errorf("open %q", got)
	}
	if text := b.must("check_drift", in{}); !strings.Contains(text, "nothing to compare") {
		t.Errorf("got %s", text)
	}
}

// A new difference keeps done from being accepted; the model learns what to do.
func TestDrift_Loop(t *testing.T) {
	t.Parallel()
	files := divider()
	files["docs/BOM.md"] = "| Refdes | Qty | Value |\n|---|---|---|\n| R1 | 1 | 10k |\n| R2 | 1 | 4k7 |\n"
	p := playRun(t, files,
		calls(slices.Concat(proposed, []any{"edit_symbol", in{"reference": "R2", "field": "Value", "text": "5k6"}, "run_erc", in{}}, finished)...),
		calls(slices.Concat([]any{"check_drift", in{}}, finished)...),
		calls(slices.Concat([]any{"fix_docs", in{}, "check_drift", in{}, "run_erc", in{}}, finished)...))
	p.ends("done", "done")
	if got := p.answers("finish"); len(got) != 2 || !strings.Contains(got[0], "drift") || !strings.Contains(got[1], "drift") {
		t.Errorf("finish: %q", got)
	}
	if !slices.Contains(p.Files, "docs/BOM.md") {
		t.Errorf("files %q", p.Files)
	}
}

// B-112: the installed libraries are searched, and without them nothing is guessed.
func TestLibraries(t *testing.T) {
	t.Parallel()
	b := newTable(t, divider())
	b.libraries = func() *library.Set { return library.Open(library.Options{}) }
	for name, args := range map[string]in{"symbol_search": {"words": "resistor"}, "symbol_pins": {"symbol": "Device:R"}} {
		if text := b.refuses(name, args, "librar"); !strings.Contains(text, "install") {
			t.Errorf("%s: %s", name, text)
		}
	}
	share := "/usr/share/kicad"
	b.libraries = func() *library.Set { return library.Open(library.Options{Share: share}) }
	if _, ok := b.call("symbol_pins", in{"symbol": "Device:R"}); !ok {
		t.Skip("KiCad's libraries are not installed")
	}
	if text := b.must("symbol_search", in{"words": "attiny412", "limit": 3}); !strings.Contains(text, "MCU_Microchip_ATtiny:ATtiny412-SS") {
		t.Errorf("got %s", text)
	}
	if text := b.must("symbol_pins", in{"symbol": "Device:R"}); !strings.Contains(text, "2 pins") || !strings.Contains(text, "1 | ") || !strings.Contains(text, "passive") {
		t.Errorf("got %s", text)
	}
	b.refuses("symbol_pins", in{"symbol": "Device:RR"}, "Device")
}

// Gates go by what is in the tree. A document or a sheet that a hook, an editor or
// another program changes opens what a tool's edit would have opened (B-44, B-69).
func TestDrift_NoticesWhatNoToolChanged(t *testing.T) {
	t.Parallel()
	b := newTable(t, nil)
	if got := b.closed(); len(got)+len(b.obliged()) > 0 {
		t.Fatalf("gates %q, open %q before anything happened", got, b.obliged())
	}
	bom := b.bytes("docs/BOM.md")
	b.put("docs/BOM.md", strings.Replace(bom, "330", "470", 1))
	if b.closed(); !slices.Contains(b.obliged(), "drift") {
		t.Fatalf("open %q after an editor changed a document", b.obliged())
	}
	if text := b.must("check_drift", in{}); !strings.Contains(text, "DRIFT FAIL") || !strings.Contains(text, "470") || !slices.Contains(b.obliged(), "drift") {
		t.Errorf("got %s, open %q", text, b.obliged())
	}
	b.put("docs/BOM.md", bom)
	b.must("check_drift", in{})
	if b.closed(); len(b.obliged()) > 0 {
		t.Errorf("open %q after a clean check of what stands there", b.obliged())
	}
	b.put("docs/BOM.md", strings.Replace(bom, "330", "470", 1)) // behind the check
	if b.closed(); !slices.Contains(b.obliged(), "drift") {
		t.Errorf("open %q after a change behind the check", b.obliged())
	}
	b.put("docs/BOM.md", bom)
	b.must("check_drift", in{})

	sheet := b.bytes("beacon.kicad_sch")
	b.put("beacon.kicad_sch", strings.Replace(sheet, `"330"`, `"470"`, 1))
	got := b.closed()
	if len(got) != 2 || !strings.Contains(got[0], "not by a tool; call run_erc") || !strings.Contains(got[1], "run_drc") || !slices.Contains(b.obliged(), "drift") {
		t.Fatalf("gates %q, open %q after a sheet was changed", got, b.obliged())
	}
	b.must("run_erc", in{})
	if got := b.closed(); len(got) != 1 || !strings.Contains(got[0], "run_drc") {
		t.Errorf("gates %q", got)
	}
	b.put("beacon.kicad_sch", sheet)
	if got := b.closed(); len(got) > 0 {
		t.Errorf("gates %q though everything is as at the start", got)
	}
}

// The log of decisions is no part of the comparison: writing it makes none due (B-120).
func TestDrift_NotOfDecisions(t *testing.T) {
	t.Parallel()
	b := newTable(t, nil)
	b.must("record_decision", in{"what": "no fuse", "why": "USB limits"})
	b.put("docs/CHANGELOG.md", "# Changelog\n\n- R1 is 470 now\n")
	if b.closed(); len(b.obliged()) > 0 {
		t.Errorf("open %q", b.obliged())
	}
}

// The pins of the firmware are a document like others: an edit of them is compared, and so is what another process takes up.
func TestDrift_Header(t *testing.T) {
	t.Parallel()
	files := divider()
	files["pins.h"] = "#define PIN_VCC 1\n#define PIN_OUT 2\n"
	b := newTable(t, files)
	b.must("edit_file", in{"path": "pins.h", "old": "#define PIN_VCC 1\n#define PIN_OUT 2", "new": "#define PIN_OUT 1\n#define PIN_VCC 2"})
	if !slices.Contains(b.obliged(), "drift") {
		t.Fatalf("open %q", b.obliged())
	}
	text := b.must("check_drift", in{})
	if !strings.Contains(text, "DRIFT FAIL") || !strings.Contains(text, "pins.h:2: R2 pin 2 net: the document says PIN_VCC 2, the design says GND") {
		t.Errorf("got %s", text)
	}
	if text := b.again().must("check_drift", in{}); !strings.Contains(text, "DRIFT FAIL") || strings.Contains(text, "before the run and") {
		t.Errorf("as another process sees it: %s", text)
	}
}
