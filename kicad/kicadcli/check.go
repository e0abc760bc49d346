// SPDX-License-Identifier: Apache-2.0

package kicadcli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/fiducial-dev/fiducial/kicad/findings"
)

// A Status is the outcome of a check.
type Status string

// The statuses. A check that did not run is never a pass.
const (
	Pass   Status = "PASS"
	Fail   Status = "FAIL"
	NotRun Status = "NOT RUN"
)

// A Verdict is the result of one rule check, with what gave it.
type Verdict struct {
	Check   findings.Check `json:"check"`
	Status  Status         `json:"status"`
	Reason  string         `json:"reason"` // for NOT RUN why, else the counts
	Command string         `json:"command"`
	// ExitCode is kicad-cli's: 0 also with findings, -1 for a signal.
	ExitCode int `json:"exit_code"`
	// Report has every finding: errors, warnings and excluded ones. Status looks at those that gate.
	Report findings.Report `json:"report"`
	// Parity tells that the board was compared with the schematic beside it.
	Parity bool `json:"parity,omitempty"`
	// Notices are messages about libraries, fonts and rules that kicad-cli gave beside the result.
	Notices  []string      `json:"notices,omitempty"`
	Duration time.Duration `json:"duration_ns"`
}

// ERC checks a schematic, always from its root: a child sheet alone shows labels as dangling that are not. The verdict
// is valid also with an error, NOT RUN then. Errors: NotLoaded, Crashed, NoReport, BadOutput, Timeout, BadInput, and
// the end of ctx. A fault in a sheet that is used several times is listed once, for its last instance.
func (r *Runner) ERC(ctx context.Context, in Input) (Verdict, error) {
	return r.check(ctx, in, findings.ERC, Schematic, perMB,
		"sch", "erc", "--format", "json", "--units", "mm", "--severity-all")
}

// DRC checks a board, and its parity with the schematic of the same name beside it where there is one. Zones are
// judged as they are stored. Errors are as for [Runner.ERC]. kicad-cli stops listing a type at about 199 findings.
func (r *Runner) DRC(ctx context.Context, in Input) (Verdict, error) {
	return r.check(ctx, in, findings.DRC, Board, slowPerMB,
		"pcb", "drc", "--format", "json", "--units", "mm", "--severity-all")
}

func (r *Runner) check(ctx context.Context, in Input, check findings.Check, kind string, perMB time.Duration, args ...string) (Verdict, error) {
	verdict := Verdict{Check: check, Status: NotRun}
	err := func() error {
		v, err := r.open(in)
		if err != nil {
			return err
		}
		defer v.close()
		if kindOf(v.file) != kind {
			return &Error{Kind: BadInput, Detail: in.File + " is not a " + kind + " file"}
		}
		if check == findings.DRC && exists(strings.TrimSuffix(v.file, Board)+Schematic) {
			args = append(args, "--schematic-parity")
			verdict.Parity = true
		}
		verdict.Notices = v.spoilt()
		out := v.out("report.json")
		run, err := r.exec(ctx, v, v.limit(perMB), append(args, "-o", out, v.file)...)
		verdict.Command, verdict.ExitCode, verdict.Duration = run.Command, run.ExitCode, run.Duration
		if err != nil {
			return err
		}
		return r.unread(verdict.read(run, out), args...)
	}()
	if err != nil {
		verdict.Status, verdict.Reason = NotRun, err.Error()
		return verdict, err
	}
	return verdict, nil
}

// spoilt names the texts of the files that are checked which KiCad drops without a word: those with bytes that are no
// UTF-8, or with a NUL (measured on 9.0.8).
func (v *view) spoilt() (notices []string) {
	files := []string{v.file}
	if kindOf(v.file) == Schematic {
		for _, pattern := range []string{"*" + Schematic, filepath.Join("*", "*"+Schematic)} {
			more, _ := fs.Glob(os.DirFS(v.dir), filepath.ToSlash(pattern)) // a pattern of ours
			for _, name := range more {
				files = append(files, filepath.Join(v.dir, filepath.FromSlash(name)))
			}
		}
	}
	slices.Sort(files)
	for _, file := range slices.Compact(files) {
		src, err := os.ReadFile(file)
		if err != nil {
			continue // the check says so
		}
		name, err := filepath.Rel(v.dir, file)
		if err != nil {
			name = filepath.Base(file)
		}
		if at := notUTF8(src); at >= 0 {
			notices = append(notices, fmt.Sprintf("%s:%d: bytes that are no UTF-8; KiCad reads the whole text there as empty: save the file as UTF-8", name, lineOf(src, at)))
		}
		if at := bytes.IndexByte(src, 0); at >= 0 {
			notices = append(notices, fmt.Sprintf("%s:%d: a NUL byte, which KiCad does not keep: take it out", name, lineOf(src, at)))
		}
	}
	return notices
}

// notUTF8 is where the first byte is that belongs to no character, -1 for nowhere.
func notUTF8(src []byte) int {
	if utf8.Valid(src) {
		return -1
	}
	for i := 0; i < len(src); {
		r, size := utf8.DecodeRune(src[i:])
		if r == utf8.RuneError && size == 1 {
			return i
		}
		i += size
	}
	return -1
}

func lineOf(src []byte, at int) int { return 1 + bytes.Count(src[:at], []byte("\n")) }

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

func (v *Verdict) read(run Run, out string) error {
	hint := ""
	if v.Check == findings.ERC {
		hint = " (a placed symbol without an entry in lib_symbols does that to ERC)"
	}
	data, err := output(run, out, hint)
	if err != nil {
		if v.Parity && run.ExitCode == 255 {
			return run.fail(NotLoaded, "the schematic beside the board could not be loaded for the parity check", nil)
		}
		return err
	}
	if v.Report, err = findings.Read(v.Check, data); err != nil {
		return run.fail(BadOutput, "the report cannot be read", err)
	}
	findings.Sort(v.Report.Findings)
	var p Probe
	p.sort(run.Stderr)
	v.Notices = append(v.Notices, append(p.Notices, p.Problems...)...)
	if strings.Contains(run.Stderr, "Failed to fetch schematic netlist") {
		v.Parity = false
		return run.fail(NotLoaded, "the parity with the schematic could not be checked", nil)
	}
	v.Status, v.Reason = Pass, "no finding"
	if n := len(v.Report.Gating()); n > 0 {
		v.Status = Fail
	}
	if len(v.Report.Findings) > 0 {
		v.Reason = v.Report.Summary()
	}
	return nil
}

// IsKind reports whether err is, or wraps, an [*Error] of that kind.
func IsKind(err error, kind Kind) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Kind == kind
}
