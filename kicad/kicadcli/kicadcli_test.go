// SPDX-License-Identifier: Apache-2.0

package kicadcli_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/kicad/findings"
	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
)

func newRunner(t *testing.T, opts kicadcli.Options) *kicadcli.Runner {
	t.Helper()
	if opts.Path == "" {
		opts.Path = kicadtest.CLI(t)
	}
	opts.TempDir = t.TempDir()
	r, err := kicadcli.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
		if left, _ := os.ReadDir(opts.TempDir); len(left) > 0 {
			t.Errorf("Close left %v", left)
		}
	})
	return r
}

func project(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	kicadtest.Write(t, dir, files)
	return dir
}

func TestVersion(t *testing.T) {
	v, err := newRunner(t, kicadcli.Options{}).Version(t.Context())
	if err != nil || v.Major < 8 {
		t.Errorf("version %+v, %v", v, err)
	}
}

func TestProbe(t *testing.T) {
	t.Parallel()
	r := newRunner(t, kicadcli.Options{})
	sheet := kicadtest.Divider("p").String()
	double := kicadtest.Divider("p")
	double.Resistor("R1", "1k", 60, 20)
	legacyFill := strings.Replace(kicadtest.Board, "(polygon (pts", `(filled_polygon (layer "B.Cu") (pts (xy 101 101) (xy 129 101) (xy 129 119) (xy 101 119)))`+"\n\t\t(polygon (pts", 1)
	for name, tt := range map[string]struct {
		file, text string
		loads      bool
		says       string
	}{
		"good sheet":           {"p.kicad_sch", sheet, true, "kicad-cli loads it"},
		"good board":           {"p.kicad_pcb", kicadtest.Board, true, "kicad-cli loads it"},
		"odd name":             {"a b'c$(x)%20.kicad_sch", sheet, true, "kicad-cli loads it"},
		"dash in front":        {"-o.kicad_sch", sheet, true, "kicad-cli loads it"},
		"broken sheet":         {"p.kicad_sch", sheet[:len(sheet)/2], false, "Failed to load schematic"},
		"byte order mark":      {"p.kicad_sch", "\xef\xbb\xbf" + sheet, false, "Failed to load schematic"},
		"duplicate designator": {"p.kicad_sch", double.String(), true, "annotation errors"},
		"KiCad 5":              {"p.kicad_sch", "EESchema Schematic File Version 4\nEELAYER 30 0\n$EndSCHEMATC\n", false, "Failed to load schematic"},
		"legacy zone fill":     {"p.kicad_pcb", legacyFill, true, "kicad-cli loads it"},
		"undeclared net":       {"p.kicad_pcb", strings.Replace(kicadtest.Board, "(net 2)", "(net 9)", 1), false, "Invalid net ID"},
		"name differs":         {"p.kicad_pcb", strings.Replace(kicadtest.Board, `(net 2 "/OUT")`+"\n\t\t\t(uuid", `(net 2 "/OUX")`+"\n\t\t\t(uuid", 1), false, "Net name doesn't match ID"},
		"no table":             {"p.kicad_pcb", strings.Replace(kicadtest.Board, "(version 20241229)", "(version 20260206)", 1), false, "Failed to load board"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := project(t, map[string]string{tt.file: tt.text})
			p, err := r.Probe(t.Context(), kicadcli.At(filepath.Join(dir, tt.file)))
			if err != nil {
				t.Fatal(err)
			}
			if p.Loads != tt.loads || !strings.Contains(p.Summary(), tt.says) {
				t.Errorf("loads %v, %q, want %v, %q", p.Loads, p.Summary(), tt.loads, tt.says)
			}
			if strings.Contains(p.Command+p.Stderr, "views") || !strings.Contains(p.Command, filepath.Base(dir)) {
				t.Errorf("the command shows private paths: %s", p.Command)
			}
		})
	}
}

// B-96: the reason comes with its line, though kicad-cli's own message is only that it failed.
func TestReason(t *testing.T) {
	t.Parallel()
	r := newRunner(t, kicadcli.Options{})
	sheet := kicadtest.Divider("p").String()
	for name, tt := range map[string]struct{ file, text, want string }{
		"bracket":       {"p.kicad_sch", strings.TrimSuffix(sheet, ")\n"), "never closed"},
		"token":         {"p.kicad_sch", strings.Replace(sheet, "(dnp no)", "(dmp no)", 1), "line 53, offset 4: Expecting 'lib_id"},
		"number":        {"p.kicad_sch", strings.Replace(sheet, "(at 101.60 50.80 0)", "(at 101.60 50.80 east)", 1), "line 48, offset 20: need a number"},
		"newer":         {"p.kicad_sch", strings.Replace(sheet, "20250114", "20991231", 1), "line 2: kicad-cli does not load this format: the file was saved by a newer KiCad; check it with that one's kicad-cli: (version 20991231)"},
		"fine":          {"p.kicad_sch", sheet, "kicad-cli loads it"},
		"long line":     {"p.kicad_sch", strings.Replace(sheet, "(paper", strings.Repeat(" ", 1_000_001)+"(paper", 1), "line 6: a line of 1000015 bytes"},
		"long with CR":  {"p.kicad_sch", strings.ReplaceAll(strings.Replace(sheet, "(paper", strings.Repeat(" ", 999_999)+"(paper", 1), "\n", "\r"), "line 1: a line of 10"},
		"board long":    {"p.kicad_pcb", strings.Replace(kicadtest.Board, "(paper", strings.Repeat(" ", 1_000_001)+"(paper", 1), "line 8: a line of 1000015 bytes"},
		"KiCad 5":       {"p.kicad_sch", "EESchema Schematic File Version 4\n", "save it with KiCad 6"},
		"board token":   {"p.kicad_pcb", strings.Replace(kicadtest.Board, "(width 0.25)", "(wid 0.25)", 1), "line 100: kicad-cli does not load the board with this item: (segment"},
		"board newer":   {"p.kicad_pcb", strings.Replace(kicadtest.Board, "20241229", "20260206", 1), "kicad-cli does not load this format"},
		"board nets":    {"p.kicad_pcb", strings.Replace(kicadtest.Board, "(net 2)", "(net \"/OUT\")", 1), "line 100: kicad-cli does not load nets without numbers"},
		"board bracket": {"p.kicad_pcb", kicadtest.Board + ")", "closing bracket"},
		"board fine":    {"p.kicad_pcb", kicadtest.Board, "kicad-cli loads it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := project(t, map[string]string{tt.file: tt.text})
			reason, err := r.Reason(t.Context(), kicadcli.At(filepath.Join(dir, tt.file)))
			if err != nil || !strings.Contains(reason.String(), tt.want) {
				t.Errorf("%q, %v, want %q in it", reason, err, tt.want)
			}
			t.Log(reason)
		})
	}
}

// Case 16: positions are right, the shape nests by sheet, and the verdict names its command.
func TestERC(t *testing.T) {
	r := newRunner(t, kicadcli.Options{})
	sheet := kicadtest.Divider("p")
	sheet.Resistor("R9", "1k", 60, 20)
	sheet.NoConnect(60, 18.5)
	dir := project(t, map[string]string{"p.kicad_sch": sheet.String(), "p.kicad_pro": "{}"})
	v, err := r.ERC(t.Context(), kicadcli.At(filepath.Join(dir, "p.kicad_sch")))
	if err != nil {
		t.Fatal(err)
	}
	if v.Status != kicadcli.Fail || v.ExitCode != 0 || !strings.HasPrefix(v.Command, "kicad-cli sch erc --format json") {
		t.Errorf("verdict %+v", v)
	}
	var open *findings.Finding
	for i, f := range v.Report.Findings {
		if f.Type == "pin_not_connected" {
			open = &v.Report.Findings[i]
		}
	}
	if open == nil {
		t.Fatalf("no pin_not_connected in %v", v.Report.Findings)
	}
	if at := open.Items[0]; fmt.Sprintf("%.2f %.2f %s", at.X, at.Y, open.Sheet) != "152.40 54.61 /" {
		t.Errorf("at %v, %v on %s, want 152.40 54.61 on /", at.X, at.Y, open.Sheet)
	}
	if got := v.Report.Counts()["power_pin_not_driven:error"]; got != 2 {
		t.Errorf("%d power_pin_not_driven, want 2: %v", got, v.Report.Counts())
	}
}

func TestDRC_ParityWithTheSchematicBeside(t *testing.T) {
	r := newRunner(t, kicadcli.Options{})
	files := map[string]string{"p.kicad_pcb": kicadtest.Board, "p.kicad_sch": kicadtest.Divider("p").String()}
	dir := project(t, files)
	in := kicadcli.At(filepath.Join(dir, "p.kicad_pcb"))
	v, err := r.DRC(t.Context(), in)
	if err != nil || !v.Parity {
		t.Fatalf("parity %v, %v", v.Parity, err)
	}
	before := len(v.Report.Findings)

	in.Overlay = map[string][]byte{"p.kicad_sch": []byte(strings.Replace(files["p.kicad_sch"], `"R2"`, `"R7"`, 2))}
	v, err = r.DRC(t.Context(), in)
	if err != nil || len(v.Report.Findings) <= before {
		t.Errorf("a renamed part gave %v, %v", v.Report.Findings, err)
	}
	parity := 0
	for _, f := range v.Report.Findings {
		if f.Section == findings.Parity {
			parity++
		}
	}
	if parity == 0 {
		t.Errorf("no parity finding in %v", v.Report.Findings)
	}

	in.Overlay = map[string][]byte{"p.kicad_sch": []byte("(kicad_sch (version 1")}
	if v, err = r.DRC(t.Context(), in); !kicadcli.IsKind(err, kicadcli.NotLoaded) || v.Status != kicadcli.NotRun {
		t.Errorf("broken schematic: %s, %v, want NOT RUN and NotLoaded", v.Status, err)
	}

	in.Overlay = map[string][]byte{"p.kicad_sch": nil}
	if v, err = r.DRC(t.Context(), in); err != nil || v.Parity {
		t.Errorf("without a schematic: parity %v, %v", v.Parity, err)
	}
}

// Case 13: a crash is a crash, never a clean check. B-108: no report is an error that quotes kicad-cli.
func TestERC_NotRun(t *testing.T) {
	r := newRunner(t, kicadcli.Options{})
	sheet := kicadtest.Divider("p").String()
	for name, tt := range map[string]struct {
		text string
		kind kicadcli.Kind
	}{
		"crash":      {strings.Replace(sheet, `(lib_id "T:R")`, `(lib_id "T:none")`, 1), kicadcli.Crashed},
		"not loaded": {sheet[:400], kicadcli.NotLoaded},
	} {
		dir := project(t, map[string]string{"p.kicad_sch": tt.text})
		v, err := r.ERC(t.Context(), kicadcli.At(filepath.Join(dir, "p.kicad_sch")))
		if !kicadcli.IsKind(err, tt.kind) || v.Status != kicadcli.NotRun || v.Command == "" {
			t.Errorf("%s: %+v, %v", name, v, err)
		}
		if tt.kind == kicadcli.NotLoaded && !strings.Contains(err.Error(), "Failed to load schematic") {
			t.Errorf("the error does not quote kicad-cli: %v", err)
		}
	}
}

func TestNetlistAndInventory(t *testing.T) {
	r := newRunner(t, kicadcli.Options{})
	sheet := kicadtest.Divider("p")
	sheet.Resistor("R3", `0.1" pitch \ 5%`, 60, 20)
	text := sheet.String()
	at := strings.LastIndex(text, "(dnp no)")
	text = text[:at] + "(dnp yes)" + text[at+len("(dnp no)"):]
	dir := project(t, map[string]string{"p.kicad_sch": text})
	in := kicadcli.At(filepath.Join(dir, "p.kicad_sch"))
	n, err := r.Netlist(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	out, ok := n.Net("/OUT")
	if got := fmt.Sprint(out.Pins); !ok || got != "[R1.2 R2.1]" && !strings.Contains(got, "R1 2") {
		t.Errorf("/OUT is %v, %v", out, ok)
	}
	if len(n.Parts) != 3 || n.Parts[0].LibID != "T:R" {
		t.Errorf("parts %+v", n.Parts)
	}
	parts, err := r.Inventory(t.Context(), in)
	if err != nil {
		t.Fatal(err)
	}
	want := []kicadcli.Entry{{Ref: "R1", Value: "10k"}, {Ref: "R2", Value: "4k7"}, {Ref: "R3", Value: `0.1" pitch \ 5%`, DNP: true}}
	if fmt.Sprint(parts) != fmt.Sprint(want) {
		t.Errorf("inventory %+v, want %+v", parts, want)
	}
}

// The user's folder never sees a lock file of ours, and foreign ones do not disturb (case 27).
func TestRunsSideBySideLeaveNoLocks(t *testing.T) {
	r := newRunner(t, kicadcli.Options{})
	dir := project(t, map[string]string{
		"p.kicad_sch": kicadtest.Divider("p").String(), "p.kicad_pcb": kicadtest.Board, "p.kicad_pro": "{}", "~p.kicad_pro.lck": "theirs",
	})
	stop, watched := make(chan struct{}), make(chan int)
	go func() {
		most := 0
		for {
			locks, _ := filepath.Glob(filepath.Join(dir, "~*"))
			most = max(most, len(locks))
			select {
			case <-stop:
				watched <- most
				return
			case <-time.After(time.Millisecond):
			}
		}
	}()
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if _, err := r.ERC(t.Context(), kicadcli.At(filepath.Join(dir, "p.kicad_sch"))); err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if _, err := r.DRC(t.Context(), kicadcli.At(filepath.Join(dir, "p.kicad_pcb"))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	close(stop)
	if most := <-watched; most != 1 {
		t.Errorf("up to %d lock files, want only the foreign one", most)
	}
	if left, _ := os.ReadDir(dir); len(left) != 4 {
		t.Errorf("the folder holds %v", left)
	}
}

// TestNoTableIsMade: every library table that kicad-cli would make at its first run is there
// before. While one makes it, another that starts at the same time reads half of it and
// complains, in words that a verdict would show.
func TestNoTableIsMade(t *testing.T) {
	temp := t.TempDir()
	r, err := kicadcli.New(kicadcli.Options{Path: kicadtest.CLI(t), TempDir: temp})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	tables := func() []string {
		found, err := filepath.Glob(filepath.Join(temp, "*", "config", "*", "*lib-table"))
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	before := tables()
	dir := project(t, map[string]string{"p.kicad_sch": kicadtest.Divider("p").String(), "p.kicad_pcb": kicadtest.Board, "p.kicad_pro": "{}"})
	if _, err := r.ERC(t.Context(), kicadcli.At(filepath.Join(dir, "p.kicad_sch"))); err != nil {
		t.Fatal(err)
	}
	if _, err := r.DRC(t.Context(), kicadcli.At(filepath.Join(dir, "p.kicad_pcb"))); err != nil {
		t.Fatal(err)
	}
	if after := tables(); len(before) < 9 || !slices.Equal(before, after) {
		t.Errorf("the tables were\n%q, and are\n%q", before, after)
	}
}

// script makes a stand-in for a kicad-cli that misbehaves in ways the real one can hardly be brought to.
func script(t *testing.T, body string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "kicad-cli")
	if err := os.WriteFile(file, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestMisbehaviour(t *testing.T) {
	dir := project(t, map[string]string{"p.kicad_sch": kicadtest.Divider("p").String()})
	in := kicadcli.At(filepath.Join(dir, "p.kicad_sch"))
	for name, tt := range map[string]struct {
		body string
		kind kicadcli.Kind
	}{
		"says saved, saves nothing": {"echo Saved ERC Report", kicadcli.NoReport},
		"not JSON":                  {`while [ "$1" != -o ]; do shift; done; echo hello > "$2"`, kicadcli.BadOutput},
		"empty object":              {`while [ "$1" != -o ]; do shift; done; echo '{}' > "$2"`, kicadcli.BadOutput},
		"strange exit code":         {"exit 7", kicadcli.BadOutput},
		"dies":                      {"kill -SEGV $$", kicadcli.Crashed},
		"shell says 139":            {"exit 139", kicadcli.Crashed},
	} {
		v, err := newRunner(t, kicadcli.Options{Path: script(t, tt.body)}).ERC(t.Context(), in)
		if !kicadcli.IsKind(err, tt.kind) || v.Status != kicadcli.NotRun {
			t.Errorf("%s: %s, %v", name, v.Status, err)
		}
	}
	for body, kind := range map[string]kicadcli.Kind{"echo 7.0.11": kicadcli.TooOld, "echo hello": kicadcli.BadOutput} {
		if _, err := newRunner(t, kicadcli.Options{Path: script(t, body)}).Version(t.Context()); !kicadcli.IsKind(err, kind) {
			t.Errorf("%s: %v", body, err)
		}
	}
	v, err := newRunner(t, kicadcli.Options{Path: script(t, "echo 10.0.1")}).Version(t.Context())
	if err != nil || v.Major != 10 || v.Warning() == "" {
		t.Errorf("version 10: %+v, %q, %v", v, v.Warning(), err)
	}
	if _, err := kicadcli.New(kicadcli.Options{Path: filepath.Join(dir, "none")}); !kicadcli.IsKind(err, kicadcli.NotFound) {
		t.Errorf("no kicad-cli: %v", err)
	}
}

// The whole process group dies at the time limit and on cancel, and cancel comes back as the context's cause.
func TestTimeLimitAndCancel(t *testing.T) {
	dir := project(t, map[string]string{"p.kicad_sch": kicadtest.Divider("p").String()})
	in := kicadcli.At(filepath.Join(dir, "p.kicad_sch"))
	pids := filepath.Join(dir, "pid")
	hang := script(t, "sleep 600 & echo $! > '"+pids+"'; wait")
	alive := func() bool {
		data, err := os.ReadFile(pids)
		if err != nil {
			t.Fatal(err)
		}
		stat, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(data)), "stat"))
		return err == nil && !strings.Contains(string(stat), ") Z ")
	}
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("no /proc to look at")
	}

	_, err := newRunner(t, kicadcli.Options{Path: hang, Limit: 300 * time.Millisecond}).Probe(t.Context(), in)
	if !kicadcli.IsKind(err, kicadcli.Timeout) {
		t.Errorf("hanging: %v, want Timeout", err)
	}
	if alive() {
		t.Error("the child outlives the time limit")
	}

	cause := errors.New("the user pressed a key")
	ctx, cancel := context.WithCancelCause(t.Context())
	time.AfterFunc(300*time.Millisecond, func() { cancel(cause) })
	if _, err := newRunner(t, kicadcli.Options{Path: hang}).Probe(ctx, in); !errors.Is(err, cause) {
		t.Errorf("cancelled: %v, want the cause", err)
	}
	if alive() {
		t.Error("the child outlives the cancel")
	}
}

func TestBadInput(t *testing.T) {
	r := newRunner(t, kicadcli.Options{})
	dir := project(t, map[string]string{"p.sch": "x", "d.kicad_sch/x": "x", "p.kicad_pcb": kicadtest.Board})
	for _, name := range []string{"none.kicad_sch", "p.sch", "d.kicad_sch", "P.KICAD_SCH"} {
		if _, err := r.Probe(t.Context(), kicadcli.At(filepath.Join(dir, name))); !kicadcli.IsKind(err, kicadcli.BadInput) {
			t.Errorf("%s: %v, want BadInput", name, err)
		}
	}
	if _, err := r.ERC(t.Context(), kicadcli.At(filepath.Join(dir, "p.kicad_pcb"))); !kicadcli.IsKind(err, kicadcli.BadInput) {
		t.Errorf("ERC of a board: %v", err)
	}
	if _, err := r.Probe(t.Context(), kicadcli.Input{File: filepath.Join(dir, "p.kicad_pcb"), Root: t.TempDir()}); !kicadcli.IsKind(err, kicadcli.BadInput) {
		t.Errorf("outside the root: %v", err)
	}
}

// Texts that KiCad drops without a word are told beside the verdict: it passes them.
func TestERC_SpoiltTexts(t *testing.T) {
	t.Parallel()
	r := newRunner(t, kicadcli.Options{})
	sheet := kicadtest.Divider("p").String()
	dir := project(t, map[string]string{
		"p.kicad_pro": "{}", "p.kicad_sch": strings.Replace(sheet, `"4k7"`, "\"4k7\xb5\"", 1), "sheets/c.kicad_sch": strings.Replace(sheet, `"4k7"`, "\"4k7\x00\"", 1),
		"fine.kicad_sch": sheet,
	})
	v, err := r.ERC(t.Context(), kicadcli.At(filepath.Join(dir, "p.kicad_sch")))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.Join(v.Notices, "\n")
	if !strings.Contains(got, "p.kicad_sch:") || !strings.Contains(got, "no UTF-8") || !strings.Contains(got, "c.kicad_sch:") || !strings.Contains(got, "NUL byte") || strings.Contains(got, "fine.kicad_sch") {
		t.Errorf("got %s", got)
	}
}
