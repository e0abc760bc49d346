// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fiducial-dev/fiducial/kicad/constraint"
	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/kicad/findings"
	"github.com/fiducial-dev/fiducial/kicad/internal/ui"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/project"
)

// Statuses beside those of kicadcli.
const notComparable = "NOT COMPARABLE"

// checkJSON is what check prints with --json. The keys are stable; its help documents them.
type checkJSON struct {
	Status   string        `json:"status"`
	ExitCode int           `json:"exit_code"`
	Project  projectJSON   `json:"project"`
	KiCad    string        `json:"kicad_cli,omitempty"`
	Baseline *baselineJSON `json:"baseline,omitempty"`
	Checks   []ruleJSON    `json:"checks"`
	Notices  []string      `json:"notices"`
}

type projectJSON struct {
	Name      string `json:"name"`
	Dir       string `json:"dir"`
	Schematic string `json:"schematic,omitempty"`
	Board     string `json:"board,omitempty"`
}

type baselineJSON struct {
	Revision string `json:"revision"`
	Commit   string `json:"commit"`
}

type ruleJSON struct {
	Check      findings.Check `json:"check"`
	Status     string         `json:"status"`
	Reason     string         `json:"reason"`
	Command    string         `json:"command"`
	CommandRC  int            `json:"command_exit_code"`
	DurationMS int64          `json:"duration_ms"`
	Parity     bool           `json:"parity"`
	Errors     int            `json:"errors"`
	Warnings   int            `json:"warnings"`
	Excluded   int            `json:"excluded"`
	Library    int            `json:"library"`
	Findings   []findingJSON  `json:"findings"`
	Removed    []findingJSON  `json:"removed,omitempty"`
	// Limits are the results of the constraints, those that hold included.
	Limits []constraint.Result `json:"limits,omitempty"`

	notes []string
}

type findingJSON struct {
	findings.Finding
	Library bool `json:"library"`
	// Counts is set when the finding makes the check fail.
	Counts bool `json:"counts"`
	// Drift is what a document says and what is so.
	Drift *docs.Mismatch `json:"drift,omitempty"`
}

func newCheck(a *app) *cobra.Command {
	var f checkFlags
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Run ERC and DRC, hold documents and constraints against the design, and say what differs",
		Long: `Runs ERC and DRC of the real kicad-cli side by side, DRC with the parity of board and schematic where both are there.
No model, no network and no git is needed, and nothing is written into the project: kicad-cli works on a view of it.

Where there are documents (the .md files of the docs folder) their tables of parts and pins are held against kicad-cli's
netlist and bill of materials: drift. It is read as engineers write it: 4k7 is 4.7 kOhm, R1-R4 are four parts, OUT is /OUT
while there is no other OUT. Where there is a registry of constraints (constraints.json in the docs folder) each limit in
it is checked as far as a machine can: PASS, FAIL or NOT CHECKED, with the figures.

Every error and every warning counts. Two kinds are listed and do not count: findings that the project excludes, and
those about libraries (lib_symbol_issues, lib_symbol_mismatch, footprint_link_issues, lib_footprint_issues,
lib_footprint_mismatch), which depend on the libraries of this computer and not on the design.

kicad-cli passes over sheets that are missing or broken without a word; check looks at each one, and says NOT RUN
rather than pass a design that was read in part.

With --baseline the project is also taken from git as it was at that revision, and only findings that it did not have
there count. They are matched by their type and the items concerned, under the rules of that revision, so that a rule
that was switched off since hides nothing. Drift is matched by what document and design say.

Exit codes: 0 clean, 1 findings, 2 could not run.

JSON keys: status (PASS, FAIL, NOT RUN, NOT COMPARABLE), exit_code, project {name, dir, schematic, board}, kicad_cli,
baseline {revision, commit}, notices [], checks [{check (erc, drc, drift, constraints), status, reason, command,
command_exit_code, duration_ms, parity, errors, warnings, excluded, library, findings [], removed [], limits [{key, limit,
status, figures, items []}]}]. A finding: check, section, type, severity, description, sheet, items [{uuid, description, x,
y}] in millimetres, excluded, comment, library, counts, drift {kind, doc, line, ref, pin, claim, actual}.
Without a project to check: error, remedies [], exit_code.`,
		Example: `  fiducial check
  fiducial check --repo hardware/amplifier
  fiducial check --only drift,constraints
  fiducial check --baseline origin/main
  fiducial check --json | jq '.checks[].findings[] | select(.counts)'`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.check(cmd.Context(), f) },
	}
	cmd.Flags().StringVar(&f.baseline, "baseline", "", "a git revision; only findings that are new since count")
	cmd.Flags().StringSliceVar(&f.only, "only", nil, "the checks to run, of erc, drc, drift, constraints")
	return cmd
}

// checkFlags are what check is told.
type checkFlags struct {
	baseline string
	only     []string
}

func (a *app) check(ctx context.Context, f checkFlags) error {
	w, err := only(f.only)
	if err != nil {
		return err
	}
	p, err := a.place()
	if err != nil {
		return err
	}
	proj, err := a.find(p)
	if err != nil {
		return err
	}
	r, err := a.runner()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	u := a.newUI()
	defer func() { _ = u.Close() }() // before the reason of an error is told; report looks at what it says
	if u.Live() {
		u.Status(ui.Status{Now: "checks of " + proj.Name, Since: time.Now()})
	}
	now := tree{top: p.top, proj: proj}
	out := newCheckJSON(proj)
	out.Notices = notices(proj, w)
	if f.baseline == "" {
		v, err := verify(ctx, r, now, w)
		if err != nil {
			return err
		}
		out.add(v)
	} else if err := a.compare(ctx, r, p, now, f.baseline, w, out); err != nil {
		return err
	}
	out.conclude()
	out.absent(f.only)
	return a.report(u, out)
}

// absent says why a check that was asked for by its name is not there.
func (out *checkJSON) absent(asked []string) {
	why := map[findings.Check]string{
		checkDrift:       "no document lists parts or pins, so there is nothing that could differ; fiducial init makes the first ones",
		checkConstraints: "there is no " + docs.RegistryName + " in the docs folder, so no constraint was checked",
	}
	for _, name := range asked {
		c := findings.Check(strings.ToLower(strings.TrimSpace(name)))
		if why[c] != "" && !slices.ContainsFunc(out.Checks, func(r ruleJSON) bool { return r.Check == c }) {
			out.Notices = append(out.Notices, why[c])
		}
	}
}

func newCheckJSON(proj *project.Project) *checkJSON {
	return &checkJSON{
		Project: projectJSON{Name: proj.Name, Dir: proj.Dir, Schematic: proj.Root, Board: proj.PCB},
		Checks:  []ruleJSON{}, Notices: []string{},
	}
}

// add takes the verdicts over, strictly.
func (out *checkJSON) add(v verdicts) {
	out.Notices = append(out.Notices, tellProblems(v.sheets.problems)...)
	for _, c := range []*kicadcli.Verdict{v.erc, v.drc} {
		if c != nil {
			rule := newRule(c)
			if c.Status == kicadcli.NotRun {
				c.Report.Findings = nil // of a design that was read in part, and as good as made up
			}
			for _, f := range c.Report.Findings {
				rule.add(f, f.Gates())
			}
			out.addRule(c, rule)
		}
	}
	out.addDocs(v.drift, v.constraints)
}

// addDocs takes over what our own checks found.
func (out *checkJSON) addDocs(rules ...*ruleJSON) {
	for _, rule := range rules {
		if rule != nil {
			out.Checks = append(out.Checks, *rule)
			out.Notices = append(out.Notices, rule.notes...)
		}
	}
}

func (out *checkJSON) addRule(c *kicadcli.Verdict, rule ruleJSON) {
	out.Checks = append(out.Checks, rule)
	if c.Report.Version != "" {
		out.KiCad = c.Report.Version
	}
	for _, n := range c.Notices {
		if !slices.Contains(out.Notices, n) {
			out.Notices = append(out.Notices, n)
		}
	}
}

func newRule(v *kicadcli.Verdict) ruleJSON {
	return ruleJSON{
		Check: v.Check, Status: string(v.Status), Reason: v.Reason, Command: v.Command, CommandRC: v.ExitCode,
		DurationMS: v.Duration.Milliseconds(), Parity: v.Parity, Findings: []findingJSON{},
	}
}

func (r *ruleJSON) add(f findings.Finding, counts bool) {
	if f.Items == nil {
		f.Items = []findings.Item{}
	}
	r.Findings = append(r.Findings, findingJSON{Finding: f, Library: f.Library(), Counts: counts})
	switch {
	case f.Library():
		r.Library++
	case f.Excluded:
		r.Excluded++
	case f.Severity == findings.Error:
		r.Errors++
	default:
		r.Warnings++
	}
}

// conclude gives the status of the whole: the worst one, and an undecided one is worse than a failed one.
func (out *checkJSON) conclude() {
	order := []string{string(kicadcli.Pass), string(kicadcli.Fail), notComparable, string(kicadcli.NotRun)}
	worst := 0
	if len(out.Checks) == 0 {
		worst = len(order) - 1 // nothing was checked
	}
	for _, c := range out.Checks {
		worst = max(worst, slices.Index(order, c.Status))
	}
	out.Status = order[worst]
	out.ExitCode = []int{exitOK, exitNo, exitCannot, exitCannot}[worst]
}

// name is the check's name for people.
func name(c findings.Check) string { return strings.ToUpper(string(c)) }
