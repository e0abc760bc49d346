// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"

	"github.com/fiducial-dev/fiducial/kicad/findings"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/project"
	"github.com/fiducial-dev/fiducial/kicad/sch"
)

// A tree is a project in a folder: the user's, or an older one that was taken from git.
type tree struct {
	top  string // absolute
	proj *project.Project
	// overlay replaces files of the project folder, as [kicadcli.Input] has it.
	overlay map[string][]byte
}

func (t tree) input(file string) kicadcli.Input {
	return kicadcli.Input{File: place{top: t.top}.abs(file), Root: t.top, Overlay: t.overlay}
}

// verdicts are the rule checks of a tree; one that does not apply is nil.
type verdicts struct {
	erc, drc *kicadcli.Verdict
	sheets   sheets
	// Our own checks: of the documents, and of the constraints.
	drift, constraints *ruleJSON
}

func (v verdicts) of(check findings.Check) *kicadcli.Verdict {
	if check == findings.ERC {
		return v.erc
	}
	return v.drc
}

// verify runs the checks side by side, and looks beside them at every sheet, for kicad-cli passes over a missing or
// broken one in silence. Only the end of ctx is an error: what did not run is in the verdicts.
func verify(ctx context.Context, r *kicadcli.Runner, t tree, w which) (verdicts, error) {
	var v verdicts
	var wg sync.WaitGroup
	if t.proj.PCB != "" && w[findings.DRC] {
		wg.Go(func() {
			drc, err := r.DRC(ctx, t.input(t.proj.PCB))
			v.drc = explain(ctx, r, t, drc, err)
		})
	}
	if t.proj.Root != "" {
		if w[findings.ERC] {
			wg.Go(func() {
				erc, err := r.ERC(ctx, t.input(t.proj.Root))
				v.erc = explain(ctx, r, t, erc, err)
			})
		}
		wg.Go(func() { v.drift, v.constraints = verifyDocs(ctx, r, t, w) })
		wg.Go(func() { v.sheets = lookAtSheets(ctx, r, t) })
	}
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return v, context.Cause(ctx)
	}
	if !w.rules() {
		v.sheets.problems = nil // what documents say has nothing to do with them
	}
	if v.unusable(ctx, r) {
		return v, nil
	}
	// A design that was read in part has no verdict: neither ERC nor the parity half of DRC saw all of it.
	if len(v.sheets.bad) > 0 {
		reason := passedOver + strings.Join(v.sheets.bad, "; ")
		if v.sheets.fault != "" {
			reason = "not every sheet was looked at, for kicad-cli does not work: " + v.sheets.fault
		}
		for _, c := range []*kicadcli.Verdict{v.erc, v.drc} {
			if c != nil && c.Status != kicadcli.NotRun && (c.Check == findings.ERC || c.Parity) {
				c.Status, c.Reason = kicadcli.NotRun, reason
			}
		}
		for _, c := range []*ruleJSON{v.drift, v.constraints} {
			if c != nil {
				*c = *t.docRule(c.Check) // a part that is missing is none that is gone
				c.Reason = reason
			}
		}
	}
	return v, nil
}

// unusable says of every check that kicad-cli did not work, where that is so: then nothing is known of the schematic.
func (v *verdicts) unusable(ctx context.Context, r *kicadcli.Runner) bool {
	suspect := len(v.sheets.bad) > 0
	for _, c := range []*ruleJSON{v.drift, v.constraints} {
		suspect = suspect || c != nil && c.Status == string(kicadcli.NotRun)
	}
	if !suspect {
		return false
	}
	why := unusable(ctx, r)
	if why == "" {
		return false
	}
	v.sheets = sheets{}
	for _, c := range []*kicadcli.Verdict{v.erc, v.drc} {
		if c != nil {
			c.Status, c.Reason = kicadcli.NotRun, why
		}
	}
	for _, c := range []*ruleJSON{v.drift, v.constraints} {
		if c != nil {
			c.Status, c.Reason = string(kicadcli.NotRun), why
		}
	}
	return true
}

// explain puts the reason into words where a check did not run.
func explain(ctx context.Context, r *kicadcli.Runner, t tree, v kicadcli.Verdict, err error) *kicadcli.Verdict {
	e, ok := errors.AsType[*kicadcli.Error](err)
	if !ok {
		return &v
	}
	v.Reason = words(e)
	switch e.Kind {
	case kicadcli.NotLoaded, kicadcli.Crashed, kicadcli.BadOutput, kicadcli.NoReport:
		if why := unusable(ctx, r); why != "" {
			v.Reason = why
			return &v
		}
		if e.Kind == kicadcli.BadOutput && e.ExitCode != 0 {
			v.Reason += fmt.Sprintf(" (exit code %d of %s)", e.ExitCode, r.Path())
		}
	case kicadcli.Timeout:
		v.Reason += "; give it longer with --kicad-limit, or look whether kicad-cli hangs"
	case kicadcli.NotFound, kicadcli.TooOld, kicadcli.BadInput, kicadcli.Environment:
	}
	if e.Kind == kicadcli.NotLoaded {
		files := []string{t.proj.PCB, t.proj.Root}
		if v.Check == findings.ERC {
			files = []string{t.proj.Root}
		}
		if why := whyNotLoaded(ctx, r, t, files); why != "" {
			v.Reason = why
		}
	}
	return &v
}

// words are an error without its command, which stands beside it.
func words(e *kicadcli.Error) string {
	text := e.Detail
	if e.Stderr != "" {
		text += "; kicad-cli says: " + e.Stderr
	}
	return text
}

// whyNotLoaded finds the first file that does not load, with the place that kicad-cli or our own reader names.
func whyNotLoaded(ctx context.Context, r *kicadcli.Runner, t tree, files []string) string {
	for _, file := range files {
		if file == "" {
			continue
		}
		p, err := r.Probe(ctx, t.input(file))
		if err != nil || p.Loads {
			continue
		}
		if p.Crashed {
			return fmt.Sprintf("%s: %s", file, p.Summary())
		}
		reason, err := r.Reason(ctx, t.input(file))
		if err != nil || reason.Line == 0 {
			return fmt.Sprintf("%s: %s", file, p.Summary())
		}
		return fmt.Sprintf("%s does not load: %s", file, reason)
	}
	return ""
}

// sheets is what looking at the sheet tree found.
type sheets struct {
	files    []string      // of the design, relative to the top, the root first
	bad      []string      // what kicad-cli passes over, so that its verdict does not count
	problems []sch.Problem // what it does not report
	design   *sch.Design   // nil when the root cannot be read
	fault    string        // why kicad-cli could not look at them, when that was the computer's doing
}

func lookAtSheets(ctx context.Context, r *kicadcli.Runner, t tree) sheets {
	s := readSheets(t)
	if len(s.bad) == 0 && len(s.files) > 0 {
		s.bad = probeAll(ctx, r, t, s.files[1:])
		if f, ok := errors.AsType[*kicadcli.Error](r.Fault()); ok && len(s.bad) > 0 {
			s.fault = words(f)
		}
	}
	return s
}

// readSheets looks at the sheet tree without kicad-cli: bad is then what is not there as a sheet at all, and not what
// does not load.
func readSheets(t tree) sheets {
	root, err := os.OpenRoot(t.top)
	if err != nil {
		return sheets{bad: []string{err.Error()}}
	}
	defer func() { _ = root.Close() }()
	design, err := sch.Load(project.Files(root), t.proj.Root)
	if errors.Is(err, sch.ErrNotSchematic) || errors.Is(err, fs.ErrNotExist) {
		return sheets{} // kicad-cli says so itself
	}
	if err != nil {
		return sheets{bad: []string{err.Error()}}
	}
	s := sheets{files: design.FileNames(), design: design}
	for _, p := range design.Problems {
		switch p.Kind {
		case sch.MissingSheet, sch.UnreadableSheet, sch.OutsideSheet, sch.SheetCycle, sch.TooManySheets:
			s.bad = append(s.bad, inWords(p.String()))
		case sch.MissingLibSymbol, sch.DuplicateRef, sch.NotAnnotated, sch.ReferenceMismatch, sch.DamagedText:
			s.problems = append(s.problems, p)
		}
	}
	return s
}

// probeAll has kicad-cli load each child sheet by itself.
func probeAll(ctx context.Context, r *kicadcli.Runner, t tree, files []string) []string {
	bad := make([]string, len(files))
	var wg sync.WaitGroup
	for i, file := range files {
		wg.Go(func() {
			bad[i] = notLoaded(ctx, r, t, file)
		})
	}
	wg.Wait()
	var found []string
	for _, b := range bad {
		if b != "" {
			found = append(found, b)
		}
	}
	return found
}

// notLoaded says why a child sheet does not load by itself, "" when it does.
func notLoaded(ctx context.Context, r *kicadcli.Runner, t tree, file string) string {
	p, err := r.Probe(ctx, t.input(file))
	switch {
	case err != nil:
		return path.Base(file) + " was not looked at: " + err.Error()
	case p.Loads:
		return ""
	}
	return whyNotLoaded(ctx, r, t, []string{file})
}
