// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/fiducial-dev/fiducial/kicad/constraint"
	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/kicad/findings"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/project"
	"github.com/fiducial-dev/fiducial/kicad/sch"
)

// The checks beside those of kicad-cli.
const (
	checkDrift       findings.Check = "drift"
	checkConstraints findings.Check = "constraints"
)

// allChecks are the names of --only, in the order of the report.
var allChecks = [...]findings.Check{findings.ERC, findings.DRC, checkDrift, checkConstraints}

// which are the checks that were asked for.
type which map[findings.Check]bool

// only reads the flag; none means all.
func only(names []string) (which, error) {
	w := which{}
	for _, n := range names {
		c := findings.Check(strings.ToLower(strings.TrimSpace(n)))
		if !slices.Contains(allChecks[:], c) {
			return nil, cannot(fmt.Errorf("--only: there is no check %q", n), "name some of erc, drc, drift, constraints")
		}
		w[c] = true
	}
	for _, c := range allChecks {
		w[c] = w[c] || len(names) == 0
	}
	return w, nil
}

// papers are the documents of a project, and its registry.
type papers struct {
	folder    string
	documents []*docs.Document
	problems  []string
	registry  *constraint.Registry
	bad       error // why the registry cannot be read
}

// readPapers reads them; what cannot be read is told in them.
func readPapers(t tree) papers {
	root, err := os.OpenRoot(t.top)
	if err != nil {
		return papers{problems: []string{err.Error()}}
	}
	defer func() { _ = root.Close() }()
	c, err := docs.ReadConfig(project.Files(root), t.proj)
	if err != nil {
		return papers{problems: []string{err.Error()}}
	}
	p := papers{folder: c.Folder(t.proj)}
	p.documents, p.problems, err = docs.ReadAll(project.Files(root), t.proj, c)
	if err != nil {
		p.problems = append(p.problems, err.Error())
	}
	p.registry, p.bad = constraint.Load(project.Files(root), p.folder)
	return p
}

// drift reports whether there is anything that could differ from the design.
func (p papers) drift() bool {
	return docs.Claims(p.documents) || len(p.problems) > 0 || p.constraints() || slices.ContainsFunc(p.documents, func(d *docs.Document) bool { return len(d.ConstraintKeys()) > 0 })
}

func (p papers) constraints() bool { return p.registry != nil || p.bad != nil }

// loadDesign has kicad-cli read the design, and takes from the files what it does not tell.
func loadDesign(ctx context.Context, r *kicadcli.Runner, t tree) (*docs.Design, error) {
	d, err := docs.Load(ctx, r, t.input(t.proj.Root))
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(t.top)
	if err != nil {
		return nil, err
	}
	defer func() { _ = root.Close() }()
	if s, err := sch.Load(project.Files(root), t.proj.Root); err == nil {
		d.AddFields(s)
	}
	return d, nil
}

// verifyDocs holds documents and constraints against the design. A check that does not apply is nil.
func verifyDocs(ctx context.Context, r *kicadcli.Runner, t tree, w which) (drift, limits *ruleJSON) {
	if !w[checkDrift] && !w[checkConstraints] || t.proj.Root == "" {
		return nil, nil
	}
	p := readPapers(t)
	if w[checkDrift] && p.drift() {
		drift = t.docRule(checkDrift)
	}
	if w[checkConstraints] && p.constraints() {
		limits = t.docRule(checkConstraints)
	}
	if drift == nil && limits == nil {
		return nil, nil
	}
	began := time.Now()
	d, err := loadDesign(ctx, r, t)
	for _, rule := range []*ruleJSON{drift, limits} {
		if rule == nil {
			continue
		}
		rule.DurationMS = time.Since(began).Milliseconds()
		if err != nil {
			rule.Reason = err.Error()
			if e, ok := errors.AsType[*kicadcli.Error](err); ok {
				rule.Reason = words(e)
			}
		}
	}
	if err != nil {
		return drift, limits
	}
	if drift != nil {
		drift.compareDocs(d, p)
	}
	if limits != nil {
		limits.compareLimits(d, p)
	}
	return drift, limits
}

// docRule is a check of ours before it has run.
func (t tree) docRule(check findings.Check) *ruleJSON {
	file := path.Base(t.proj.Root)
	return &ruleJSON{
		Check: check, Status: string(kicadcli.NotRun), Findings: []findingJSON{},
		Command: "kicad-cli sch export netlist " + file + "; kicad-cli sch export bom " + file,
	}
}

func (r *ruleJSON) compareDocs(d *docs.Design, p papers) {
	report := docs.Drift(d, p.documents)
	list := append(report.Mismatches, constraint.Unnamed(p.registry, p.folder, p.documents)...)
	for _, m := range list {
		severity := findings.Error
		if m.Kind == docs.NotFitted {
			severity = findings.Warning
		}
		r.add(findings.Finding{Check: r.Check, Section: findings.Violations, Type: string(m.Kind), Severity: severity, Description: m.String()}, true)
		r.Findings[len(r.Findings)-1].Drift = &m
	}
	for _, problem := range p.problems {
		r.add(findings.Finding{Check: r.Check, Section: findings.Violations, Type: string(docs.Unreadable), Severity: findings.Error, Description: problem}, true)
	}
	for _, m := range report.Notes {
		r.notes = append(r.notes, m.String())
	}
	for _, pair := range d.SimilarRails() {
		r.notes = append(r.notes, fmt.Sprintf("the nets %s and %s differ in spelling only; they are not connected", pair[0], pair[1]))
	}
	r.decide(fmt.Sprintf("%s, %s compared", count(len(r.Findings), "difference"), count(report.Claims, "claim")))
}

func (r *ruleJSON) compareLimits(d *docs.Design, p papers) {
	if p.bad != nil {
		r.Reason = p.bad.Error()
		return
	}
	n := map[constraint.Status]int{}
	for _, res := range constraint.Check(p.registry, d, p.documents) {
		n[res.Status]++
		r.Limits = append(r.Limits, res)
		if res.Status == constraint.Fail {
			r.add(findings.Finding{
				Check: r.Check, Section: findings.Violations, Type: "limit", Severity: findings.Error,
				Description: fmt.Sprintf("%s: %s: %s", res.Key, res.Limit, res.Figures),
			}, true)
		}
	}
	r.decide(fmt.Sprintf("%d held, %d broken, %d not checked", n[constraint.Pass], n[constraint.Fail], n[constraint.NotChecked]))
}

// decide gives the status by the findings that count.
func (r *ruleJSON) decide(reason string) {
	r.Status, r.Reason = string(kicadcli.Pass), reason
	if slices.ContainsFunc(r.Findings, func(f findingJSON) bool { return f.Counts }) {
		r.Status = string(kicadcli.Fail)
	}
}

// sinceBaseline takes from a check of ours what it found at the baseline as well: that does not count. was is nil when
// there was nothing to be compared then.
func (r *ruleJSON) sinceBaseline(was *ruleJSON) {
	if r.Status == string(kicadcli.NotRun) || was == nil {
		return
	}
	if was.Status == string(kicadcli.NotRun) {
		r.Status, r.Reason = string(kicadcli.NotRun), "at the baseline: "+was.Reason
		return
	}
	old := map[string]int{}
	for _, f := range was.Findings {
		old[f.identity()]++
	}
	fresh := 0
	for i := range r.Findings {
		f := &r.Findings[i]
		if old[f.identity()] > 0 {
			old[f.identity()]--
			f.Counts = false
			continue
		}
		fresh++
	}
	gone := len(was.Findings) + fresh - len(r.Findings)
	r.decide(fmt.Sprintf("%d new, %d removed, %s", fresh, gone, r.Reason))
}

// identity is a finding of ours without its line, which moves.
func (f findingJSON) identity() string {
	if f.Drift == nil {
		return f.Type + " " + f.Description
	}
	m := *f.Drift
	m.Line = 0
	return m.String()
}
