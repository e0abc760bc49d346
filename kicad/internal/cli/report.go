// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/constraint"
	"github.com/fiducial-dev/fiducial/kicad/findings"
	"github.com/fiducial-dev/fiducial/kicad/internal/ui"
)

// report prints what check found and gives the exit code.
func (a *app) report(u *ui.UI, out *checkJSON) error {
	u.Status(ui.Status{})
	if a.json {
		if err := u.Object(out); err != nil {
			return err
		}
		return told(out.ExitCode)
	}
	reportCheck(u, out)
	if err := u.Close(); err != nil {
		return err
	}
	return told(out.ExitCode)
}

// reportCheck prints what a check found, for people.
func reportCheck(u *ui.UI, out *checkJSON) {
	reportHead(u, out)
	for _, c := range out.Checks {
		reportFindings(u, c)
	}
	for _, n := range out.Notices {
		u.Warn("%s", n)
	}
	for _, c := range out.Checks {
		u.Verdict(ui.Verdict{
			Status: c.Status, Check: name(c.Check), Reason: c.Reason, Command: c.Command, Seconds: float64(c.DurationMS) / 1000,
		})
	}
	u.Heading("%s: %s", out.Project.Name, conclusion(out))
}

func reportHead(u *ui.UI, out *checkJSON) {
	var files []string
	for _, f := range []string{out.Project.Schematic, out.Project.Board} {
		if f != "" {
			files = append(files, f)
		}
	}
	text := fmt.Sprintf("%s: %s", out.Project.Name, strings.Join(files, ", "))
	if out.KiCad != "" {
		text += ", kicad-cli " + out.KiCad
	}
	if b := out.Baseline; b != nil {
		text += fmt.Sprintf(", against %s (%.12s)", b.Revision, b.Commit)
	}
	u.Heading("%s", text)
}

// reportFindings lists what counts, by sheet or section, and then what does not.
func reportFindings(u *ui.UI, c ruleJSON) {
	group := ""
	for _, f := range c.Findings {
		if !f.Counts {
			continue
		}
		if g := groupOf(f); g != group {
			group = g
			u.Heading("%s %s", name(c.Check), g)
		}
		reportFinding(u, f.Finding)
	}
	for _, part := range []struct {
		title string
		is    func(findingJSON) bool
	}{
		{"known before, do not count", func(f findingJSON) bool { return !f.Counts && !f.Excluded && !f.Library }},
		{"excluded by the project, do not count", func(f findingJSON) bool { return !f.Counts && f.Excluded && !f.Library }},
		{"about the libraries of this computer, do not count", func(f findingJSON) bool { return f.Library }},
	} {
		reportQuiet(u, c, part.title, part.is)
	}
	for _, l := range c.Limits {
		if l.Status == constraint.NotChecked {
			u.Line("%s", l)
		}
	}
	if len(c.Removed) > 0 {
		u.Heading("%s, gone since the baseline", name(c.Check))
		for _, f := range c.Removed {
			reportFinding(u, f.Finding)
		}
	}
}

// reportQuiet counts by type what does not count.
func reportQuiet(u *ui.UI, c ruleJSON, title string, is func(findingJSON) bool) {
	var types []string
	count := map[string]int{}
	for _, f := range c.Findings {
		if !is(f) {
			continue
		}
		if count[f.Type] == 0 {
			types = append(types, f.Type)
		}
		count[f.Type]++
	}
	if len(types) == 0 {
		return
	}
	var list []string
	for _, t := range types {
		list = append(list, fmt.Sprintf("%d %s", count[t], t))
	}
	u.Line("%s, %s: %s", name(c.Check), title, strings.Join(list, ", "))
}

func groupOf(f findingJSON) string {
	switch {
	case f.Drift != nil:
		return f.Drift.Doc
	case f.Check == checkDrift || f.Check == checkConstraints:
		return "of the project"
	case f.Sheet != "":
		return "sheet " + f.Sheet
	case f.Section == findings.Unconnected:
		return "unconnected items"
	case f.Section == findings.Parity:
		return "parity with the schematic"
	}
	return "board"
}

func reportFinding(u *ui.UI, f findings.Finding) {
	text := fmt.Sprintf("  %s %s: %s", f.Severity, f.Type, f.Description)
	var items []string
	for _, it := range f.Items {
		items = append(items, fmt.Sprintf("%s at %.2f, %.2f mm", cmp.Or(it.Description, "item "+it.UUID), it.X, it.Y))
	}
	u.Line("%s", strings.Join(append([]string{text}, items...), "\n"))
}

func conclusion(out *checkJSON) string {
	n := 0
	for _, c := range out.Checks {
		for _, f := range c.Findings {
			if f.Counts {
				n++
			}
		}
	}
	fresh := ""
	if out.Baseline != nil {
		fresh = "new "
	}
	switch out.ExitCode {
	case exitOK:
		if out.Baseline != nil {
			return "PASS, no new finding"
		}
		return "PASS, clean"
	case exitNo:
		return fmt.Sprintf("FAIL, %s", count(n, fresh+"finding"))
	}
	return out.Status + ", see above"
}

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
