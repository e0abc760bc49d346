// SPDX-License-Identifier: Apache-2.0

package lint_test

import (
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/lint"
)

func rules(list []lint.Finding) string {
	var out []string
	for _, f := range list {
		out = append(out, string(f.Rule))
	}
	return strings.Join(out, " ")
}

// Each fault is found as new, at its place, and a sound file has none. kicad-cli loads nearly all of these.
func TestCheck(t *testing.T) {
	divider := kicadtest.Divider("p")
	divider.Child("A", "sub/a.kicad_sch", 10, 10)
	sheet := divider.String()
	uuid := kicadtest.UUID(1)
	last := strings.LastIndex(sheet, "\t(embedded_fonts")
	for name, tt := range map[string]struct {
		file, before, after, want string
		line                      int
	}{
		"sound sheet":     {"p.kicad_sch", sheet, sheet, "", 0},
		"sound board":     {"p.kicad_pcb", kicadtest.Board, kicadtest.Board, "", 0},
		"extra bracket":   {"p.kicad_sch", sheet, sheet[:last] + ")\n" + sheet[last:], "second-root extra-bracket", 0},
		"missing bracket": {"p.kicad_sch", sheet, strings.TrimSuffix(sheet, ")\n"), "unclosed-bracket", 1},
		"one more":        {"p.kicad_sch", strings.TrimSuffix(sheet, ")\n"), strings.TrimSuffix(sheet, "no)\n)\n"), "unclosed-bracket", 0},
		"one less":        {"p.kicad_sch", strings.TrimSuffix(sheet, "no)\n)\n"), strings.TrimSuffix(sheet, ")\n"), "", 0},
		"text behind":     {"p.kicad_sch", sheet, sheet + "hello\n", "trailing-content", 0},
		"second root":     {"p.kicad_sch", sheet, sheet + sheet, "second-root", 0},
		"NUL":             {"p.kicad_sch", sheet, strings.Replace(sheet, "(paper", "\x00(paper", 1), "nul-byte", 6},
		"bad UTF-8":       {"p.kicad_sch", sheet, strings.Replace(sheet, `"4k7"`, "\"4k7 \xb5\"", 1), "invalid-utf8", 0},
		"byte order mark": {"p.kicad_sch", sheet, "\xef\xbb\xbf" + sheet, "byte-order-mark", 1},
		"open string":     {"p.kicad_sch", sheet, strings.Replace(sheet, `"4k7"`, `"4k7`, 1), "unterminated-string", 0},
		"another file":    {"p.kicad_sch", sheet, kicadtest.Board, "wrong-root", 1},
		"newer":           {"p.kicad_sch", sheet, strings.Replace(sheet, "20250114", "20260306", 1), "newer-format", 1},
		"uncached":        {"p.kicad_sch", sheet, strings.Replace(sheet, `(lib_id "T:R")`, `(lib_id "T:X")`, 1), "symbol-not-cached", 0},
		"duplicate UUID":  {"p.kicad_sch", sheet, strings.Replace(sheet, kicadtest.UUID(3), kicadtest.UUID(2), 1), "duplicate-uuid", 0},
		"bad UUID":        {"p.kicad_sch", sheet, strings.Replace(sheet, uuid, "hello", 1), "bad-uuid", 5},
		"missing sheet":   {"p.kicad_sch", sheet, strings.Replace(sheet, "sub/a.", "sub/b.", 1), "missing-sheet", 0},
		"point wire":      {"p.kicad_sch", sheet, strings.Replace(sheet, "(xy 106.68 54.61)", "(xy 101.60 54.61)", 1), "zero-length-wire", 0},
		"long line":       {"p.kicad_sch", sheet, sheet + strings.Repeat(" ", 900_001), "long-line", 0},

		"undeclared net":  {"p.kicad_pcb", kicadtest.Board, strings.Replace(kicadtest.Board, "(net 2)", "(net 9)", 1), "undeclared-net", 0},
		"pad's name":      {"p.kicad_pcb", kicadtest.Board, strings.Replace(kicadtest.Board, `(net 3 "GND")`+"\n\t\t\t(uuid", `(net 3 "GNX")`+"\n\t\t\t(uuid", 1), "net-name-mismatch", 0},
		"zone's name":     {"p.kicad_pcb", kicadtest.Board, strings.Replace(kicadtest.Board, `(net_name "GND")`, `(net_name "VCC")`, 1), "net-name-mismatch", 0},
		"line deleted":    {"p.kicad_pcb", kicadtest.Board, strings.Replace(kicadtest.Board, "\t(net 2 \"/OUT\")\n", "", 1), "undeclared-net undeclared-net undeclared-net", 0},
		"one number":      {"p.kicad_pcb", kicadtest.Board, strings.Replace(kicadtest.Board, "\t(net 3 ", "\t(net 3 \"X\")\n\t(net 3 ", 1), "duplicate-net-number", 0},
		"last one wins":   {"p.kicad_pcb", kicadtest.Board, strings.Replace(kicadtest.Board, "\t(net 3 \"GND\")", "\t(net 3 \"GND\")\n\t(net 3 \"X\")", 1), "duplicate-net-number net-name-mismatch net-name-mismatch", 0},
		"no table":        {"p.kicad_pcb", kicadtest.Board, `(kicad_pcb (version 20241229) (segment (net "A")))`, "newer-format", 1},
		"one name":        {"p.kicad_pcb", kicadtest.Board, strings.Replace(kicadtest.Board, "\t(net 3 ", "\t(net 4 \"VCC\")\n\t(net 3 ", 1), "duplicate-net-name", 0},
		"a library":       {"p.kicad_sym", "(kicad_symbol_lib)", "(kicad_symbol_lib))", "extra-bracket", 1},
		"rules":           {"p.kicad_dru", "(version 1)\n(rule a)\n", "(version 1)\n(rule a)\n(rule b)\n", "", 0},
		"broken rules":    {"p.kicad_dru", "(version 1)\n(rule a)\n", "(version 1)\n(rule a\n", "unclosed-bracket", 2},
		"some other file": {"p.txt", "a", "(((", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			opts := lint.Options{Exists: func(name string) bool { return name == "sub/a.kicad_sch" }}
			before := lint.Check(tt.file, []byte(tt.before), opts)
			found := lint.New(before, lint.Check(tt.file, []byte(tt.after), opts))
			if got := rules(found); got != tt.want {
				t.Errorf("got %q, want %q: %v", got, tt.want, found)
			}
			if tt.line > 0 && found[0].Line != tt.line {
				t.Errorf("line %d, want %d", found[0].Line, tt.line)
			}
			if back := lint.New(lint.Check(tt.file, []byte(tt.after), opts), lint.Check(tt.file, []byte(tt.after), opts)); len(back) > 0 {
				t.Errorf("compared with itself: %v", back)
			}
		})
	}
}

// A fault that was there before is not new when the text around it moves.
func TestNew_ByWhatItIsAbout(t *testing.T) {
	bad := strings.Replace(kicadtest.Divider("p").String(), kicadtest.UUID(3), kicadtest.UUID(2), 1)
	before := lint.Check("p.kicad_sch", []byte(bad), lint.Options{})
	moved := lint.Check("p.kicad_sch", []byte(strings.Replace(bad, "\t(paper", "\n\n\n\t(paper", 1)), lint.Options{})
	if len(before) != 1 || len(lint.New(before, moved)) != 0 {
		t.Errorf("before %v, then %v", before, moved)
	}
	if before[0].Line == moved[0].Line || !strings.Contains(before[0].String(), "p.kicad_sch:") {
		t.Errorf("lines %d and %d", before[0].Line, moved[0].Line)
	}
}

func FuzzCheck(f *testing.F) {
	f.Add(kicadtest.Divider("p").String())
	f.Add(kicadtest.Board)
	f.Add("(kicad_pcb (net) (net 1) (zone (net_name)) (pad (net \"x\")) (uuid))")
	f.Add("(kicad_sch (symbol) (sheet (pin)) (wire (pts)) (lib_symbols (symbol)) (property private))")
	f.Fuzz(func(t *testing.T, text string) {
		for _, name := range []string{"p.kicad_sch", "p.kicad_pcb"} {
			list := lint.Check(name, []byte(text), lint.Options{Exists: func(string) bool { return false }})
			if fresh := lint.New(list, list); len(fresh) > 0 {
				t.Fatalf("new against itself: %v", fresh)
			}
		}
	})
}
