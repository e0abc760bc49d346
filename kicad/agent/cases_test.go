// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
)

// Case 09: kicad-cli says of a reference used twice nothing but a line on stdout.
func TestCase09_DuplicateReference(t *testing.T) {
	t.Parallel()
	b := newTable(t, divider())
	b.refuses("edit_file", in{"path": "p.kicad_sch", "old": `"R2"`, "new": `"R1"`, "replace_all": true}, "reverted", "used twice")
	b.refuses("edit_file", in{"path": "p.kicad_sch", "old": `"R2"`, "new": `"R?"`, "replace_all": true}, "reverted")
}

// Case 10: a reference stands in the property and in the instances.
func TestCase10_ReferenceInBothPlaces(t *testing.T) {
	t.Parallel()
	b := newTable(t, divider())
	b.must("rename_reference", in{"from": "R1", "to": "R99"})
	src := b.bytes("p.kicad_sch")
	if strings.Count(src, `"R99"`) != 2 || strings.Contains(src, `"R1"`) {
		t.Errorf("R99 stands %d times", strings.Count(src, `"R99"`))
	}
	if got := b.must("list_symbols", in{}); !strings.Contains(got, "R99 |") || strings.Contains(got, "R1 |") {
		t.Errorf("parts: %s", got)
	}
}

// Case 12: kicad-cli skips a child sheet that is not there, or does not load, without
// a word.
func TestCase12_ChildSheet(t *testing.T) {
	t.Parallel()
	b := newTable(t, nil)
	b.refuses("edit_file", in{"path": "beacon.kicad_sch", "old": `"Sheetfile" "mcu.kicad_sch"`, "new": `"Sheetfile" "gone.kicad_sch"`}, "reverted", "gone.kicad_sch")
	b.refuses("edit_file", in{"path": "mcu.kicad_sch", "old": "(paper \"A4\")", "new": "(papper \"A4\")"}, "reverted", "mcu.kicad_sch")
	b.refuses("edit_file", in{"path": "mcu.kicad_sch", "old": `(lib_id "MCU_Microchip_ATtiny:ATtiny412-SS")`, "new": `(lib_id "MCU:Gone")`}, "reverted")
}

// Case 20: names with slashes, overbars, blanks, stars and letters from elsewhere.
func TestCase20_NetNames(t *testing.T) {
	t.Parallel()
	b := newTable(t, divider())
	from := "OUT"
	for _, c := range [][2]string{
		{"SPI/CS", "/SPI{slash}CS"},
		{"~{RESET}", "/~{RESET}"},
		{"USB_D+", "/USB_D+"},
		{"A B", "/A B"},
		{"*ALL*", "/*ALL*"},
		{"\u03a9_SENSE", "/\u03a9_SENSE"},
		{`say "hi"\`, `/say "hi"\`},
		{"\U0001F50B", "/\U0001F50B"},
	} {
		if text := b.must("rename_net", in{"from": from, "to": c[0]}); !strings.Contains(text, "-> "+c[1]) {
			t.Errorf("%q: %s", c[0], text)
		}
		from = c[0]
		if got := b.must("net_of", in{"net": c[1]}); !strings.Contains(got, "R1.2") || !strings.Contains(got, "R2.1") {
			t.Errorf("%q: %s", c[0], got)
		}
	}
}

// Case 28: copper that is bound to another net than its name says.
func TestCase28_NetTable(t *testing.T) {
	t.Parallel()
	b := newTable(t, map[string]string{"p.kicad_sch": divider()["p.kicad_sch"], "p.kicad_pro": "{}\n", "p.kicad_pcb": kicadtest.Board})
	for _, c := range [][2]string{
		{"\t(net 2 \"/OUT\")\n\t(net 3", "\t(net 3"},                                                                   // the declaration is deleted
		{"\t(net 3 \"GND\")\n\t(footprint", "\t(net 2 \"GND\")\n\t(footprint"},                                         // two nets of one number
		{"\t\t(width 0.25)\n\t\t(layer \"F.Cu\")\n\t\t(net 2)", "\t\t(width 0.25)\n\t\t(layer \"F.Cu\")\n\t\t(net 9)"}, // undeclared
		{"\t(net 1 \"VCC\")\n\t(net 2", "\t(net 1 \"VDD\")\n\t(net 2"},                                                 // a pad's name differs
	} {
		b.refuses("edit_file", in{"path": "p.kicad_pcb", "old": c[0], "new": c[1]}, "reverted")
	}
	b.must("rename_net", in{"from": "OUT", "to": "MID"})
	if src := b.bytes("p.kicad_pcb"); strings.Contains(src, "/OUT") || strings.Count(src, `"/MID"`) != 3 {
		t.Errorf("the board has /MID %d times", strings.Count(src, `"/MID"`))
	}
}

// Case 32: just the part of that very name is edited, and an anchor that fits two is
// refused with both places.
func TestCase32_TheRightPart(t *testing.T) {
	t.Parallel()
	s := kicadtest.NewSheet("p", 1)
	for i, ref := range []string{"R1", "R10", "R100", "R11", "AR1"} {
		s.Resistor(ref, "10k", 20+float64(i)*8, 20)
	}
	b := newTable(t, map[string]string{"p.kicad_sch": s.String(), "p.kicad_pro": "{}\n"})
	b.must("edit_symbol", in{"reference": "R1", "field": "Value", "text": "22k"})
	got := b.must("list_symbols", in{})
	for _, want := range []string{"R1 | 22k", "R10 | 10k", "R100 | 10k", "R11 | 10k", "AR1 | 10k"} {
		if !strings.Contains(got, want) {
			t.Errorf("want %s in\n%s", want, got)
		}
	}
	if n := strings.Count(git(t, b.dir, "diff", "--numstat"), "1\t1\tp.kicad_sch"); n != 1 {
		t.Errorf("the difference is %s", git(t, b.dir, "diff"))
	}
	text := b.refuses("edit_file", in{"path": "p.kicad_sch", "old": `(property "Value" "10k"`, "new": `(property "Value" "1k"`}, "4 times")
	if strings.Count(text, " ") < 4 {
		t.Error(text)
	}
}

// A sheet with Windows line ends keeps them, through every edit tool.
func TestWindowsLineEnds(t *testing.T) {
	t.Parallel()
	files := divider()
	files["p.kicad_sch"] = strings.ReplaceAll(files["p.kicad_sch"], "\n", "\r\n")
	files["p.kicad_pcb"] = strings.ReplaceAll(kicadtest.Board, "\n", "\r\n")
	b := newTable(t, files)
	b.must("rename_net", in{"from": "OUT", "to": "MID"})
	b.must("edit_symbol", in{"reference": "R1", "field": "MPN", "text": "x"})
	b.must("edit_file", in{"path": "p.kicad_sch", "old": "\"4k7\"\r\n", "new": "\"5k6\"\r\n"})
	b.must("rename_reference", in{"from": "R1", "to": "R7"})
	for _, name := range []string{"p.kicad_sch", "p.kicad_pcb"} {
		if strings.Contains(strings.ReplaceAll(b.bytes(name), "\r\n", ""), "\n") {
			t.Errorf("%s has a bare line feed", name)
		}
	}
}

// A line that kicad-cli would not read is said to be one.
func TestLongLine(t *testing.T) {
	t.Parallel()
	files := divider()
	files["p.kicad_sch"] = strings.Replace(files["p.kicad_sch"], "(paper \"A4\")", "(paper \"A4\")"+strings.Repeat(" ", 950_000), 1)
	b := newTable(t, files)
	b.must("edit_file", in{"path": "p.kicad_sch", "old": "\"4k7\"", "new": "\"5k6\""}) // it was that long, and KiCad reads it
	b.refuses("edit_file", in{"path": "p.kicad_sch", "old": "(paper \"A4\") ", "new": "(paper \"A4\")  "}, "1,000,000")
}

// A disk that is full while an edit is written leaves the old bytes.
func TestDiskFull(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" || os.Getuid() != 0 {
		t.Skip("needs the right to mount a small file system")
	}
	b := newTable(t, divider())
	if err := b.base.get(t.Context()); err != nil {
		t.Fatal(err)
	}
	// What is written first goes to .fiducial, so that is what is small.
	own := b.path(".fiducial")
	keep := filepath.Join(t.TempDir(), "keep")
	if err := os.Rename(own, keep); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(own, 0o700); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), "mount", "-t", "tmpfs", "-o", "size=8k", "tmpfs", own).CombinedOutput(); err != nil {
		t.Skipf("mount: %v: %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", own).Run() }) //nolint:noctx // the test's context has ended
	before := b.bytes("p.kicad_sch")
	text := b.refuses("edit_file", in{"path": "p.kicad_sch", "old": "\"4k7\"", "new": fmt.Sprintf("%q", "5k6")}, "nothing was changed", "space")
	if b.bytes("p.kicad_sch") != before || len(b.rules.Touched()) > 0 {
		t.Errorf("the file differs: %s", text)
	}
}
