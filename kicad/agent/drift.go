// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/constraint"
	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/project"
	"github.com/fiducial-dev/fiducial/kicad/sch"
	"github.com/fiducial-dev/fiducial/kicad/sexpr"
	"github.com/fiducial-dev/fiducial/task"
	"github.com/fiducial-dev/fiducial/tool"
)

// papers are the documents of the project and its registry of constraints.
type papers struct {
	folder    string
	documents []*docs.Document
	problems  []string
	registry  *constraint.Registry // nil: there is none
	bad       error                // why the registry cannot be read
}

// papers reads them as they stand; what cannot be read is told in them.
func (b *Bench) papers() papers {
	c, err := docs.ReadConfig(project.Files(b.root), b.project)
	if err != nil {
		return papers{folder: c.Folder(b.project), problems: []string{err.Error()}}
	}
	p := papers{folder: c.Folder(b.project)}
	p.documents, p.problems, err = docs.ReadAll(project.Files(b.root), b.project, c)
	if err != nil {
		p.problems = append(p.problems, err.Error())
	}
	p.registry, p.bad = constraint.Load(project.Files(b.root), p.folder)
	return p
}

// registryFile is where the constraints stand.
func (p papers) registryFile() string { return path.Join(p.folder, docs.RegistryName) }

// papersBefore are those of the snapshot.
func (b *Bench) papersBefore(ctx context.Context) (papers, error) {
	p := b.papers()
	if !b.session.Resumed { // the tree is the snapshot
		return p, nil
	}
	changes, err := b.session.Snapshot.Changed(ctx)
	if err != nil {
		return p, err
	}
	for _, c := range changes {
		data, err := b.session.Snapshot.File(ctx, c.Path)
		gone := errors.Is(err, fs.ErrNotExist)
		if err != nil && !gone {
			return p, err
		}
		switch {
		case c.Path == p.registryFile():
			if p.registry, p.bad = nil, nil; !gone {
				p.registry, p.bad = constraint.Read(c.Path, data)
			}
		case kindOf(c.Path) == markdown, docs.IsHeader(c.Path):
			is := func(d *docs.Document) bool { return d.Name == c.Path }
			there := slices.ContainsFunc(p.documents, is)
			p.documents = slices.DeleteFunc(p.documents, is)
			if gone || !there && !strings.HasPrefix(c.Path, p.folder+"/") && path.Dir(c.Path) != path.Clean(b.project.Dir) {
				continue
			}
			if d, err := docs.ReadDocument(c.Path, data); err == nil {
				p.documents = append(p.documents, d)
			}
		}
	}
	return p, nil
}

// speak reports whether anything in the papers could differ from the design.
func (p papers) speak() bool {
	return docs.Claims(p.documents) || len(p.problems) > 0 || p.registry != nil || p.bad != nil ||
		slices.ContainsFunc(p.documents, func(d *docs.Document) bool { return len(d.ConstraintKeys()) > 0 })
}

// compare holds the papers against the design.
func (p papers) compare(d *docs.Design) docs.DriftReport {
	r := docs.Drift(d, p.documents)
	r.Mismatches = append(r.Mismatches, constraint.Unnamed(p.registry, p.folder, p.documents)...)
	for _, text := range p.problems {
		r.Mismatches = append(r.Mismatches, docs.Mismatch{Kind: docs.Unreadable, Doc: p.folder, Claim: text, Actual: "not compared"})
	}
	if p.bad != nil {
		r.Mismatches = append(r.Mismatches, docs.Mismatch{Kind: docs.Unreadable, Doc: p.registryFile(), Claim: p.bad.Error(), Actual: "not compared"})
	}
	return r
}

// added parts the differences that were there at the start from those that are new.
// Lines do not count: they move.
func added(before, now []docs.Mismatch) (fresh, old []docs.Mismatch) {
	known := map[docs.Mismatch]int{}
	for _, m := range before {
		m.Line = 0
		known[m]++
	}
	for _, m := range now {
		key := m
		key.Line = 0
		if known[key] > 0 {
			known[key]--
			old = append(old, m)
			continue
		}
		fresh = append(fresh, m)
	}
	return fresh, old
}

// documented is the design as documents are compared with it. Files reads what the
// netlist does not say; remember is as for [Bench.netlist].
func (b *Bench) documented(ctx context.Context, in kicadcli.Input, files func(string) ([]byte, error), remember bool) (*docs.Design, error) {
	list, err := b.netlist(ctx, in, remember)
	if err != nil {
		return nil, err
	}
	entries, err := b.inventory(ctx, in, remember)
	if err != nil {
		return nil, err
	}
	d := docs.NewDesign(entries, list)
	if s, err := sch.LoadWith(files, b.project.Root); err == nil {
		d.AddFields(s)
	}
	return d, nil
}

// documentedNow is the design as it stands.
func (b *Bench) documentedNow(ctx context.Context) (*docs.Design, error) {
	return b.documented(ctx, b.input(b.project.Root), b.read, true)
}

func (b *Bench) inventory(ctx context.Context, in kicadcli.Input, remember bool) ([]kicadcli.Entry, error) {
	if !remember {
		return b.cli.Inventory(ctx, in)
	}
	contents, err := b.sheets()
	if err != nil {
		return nil, err
	}
	a, err := b.memory.ask(ctx, "inventory", contents, func(a *answered) { a.entries, a.err = b.cli.Inventory(ctx, in) })
	if err != nil {
		return nil, err
	}
	return a.entries, nil
}

// takeDrift compares the snapshot's papers with the snapshot's design. What does not
// load leaves the differences unknown.
func (p *baseline) takeDrift(ctx context.Context, b *Bench, in kicadcli.Input, now bool) error {
	if !p.papers.speak() {
		p.driftKnown = true
		return nil
	}
	d, err := b.documented(ctx, in, func(name string) ([]byte, error) { return b.original(ctx, name) }, now)
	if err != nil {
		return hard(err)
	}
	p.drift, p.driftKnown = p.papers.compare(d).Mismatches, true
	return nil
}

// digest names what a comparison looks at, beside what design names: what documents
// say that are compared, and which constraints there are.
func (p papers) digest(design digest) digest {
	h := sha256.New()
	put := func(texts ...string) {
		for _, t := range texts {
			_, _ = fmt.Fprintf(h, "%d:%s", len(t), t) // a hash never fails
		}
	}
	put(string(design[:]), p.folder)
	for _, d := range p.documents {
		if !docs.History(d.Name) { // which is only added to, and never compared
			put(d.Name, string(d.Src))
		}
	}
	put(p.problems...)
	if p.registry != nil {
		for _, c := range p.registry.Constraints {
			put(c.Key, c.Doc())
		}
	}
	if p.bad != nil {
		put(p.bad.Error())
	}
	return digest(h.Sum(nil))
}

// noticeDrift makes a comparison due when design or documents are others than those
// that were compared the last time, or than at the start, whoever changed them. Of
// edits by tools that is known already.
func (b *Bench) noticeDrift(design digest) {
	now := b.papers().digest(design)
	b.checks.Lock()
	same := now == b.base.compared
	b.checks.Unlock()
	if !same {
		b.obligeDriftCheck("a change that no tool made")
	}
}

// obligeDriftCheck opens the obligation when there is anything to compare (B-69).
func (b *Bench) obligeDriftCheck(opener string) {
	if b.project.Root == "" || !b.papers().speak() {
		return
	}
	b.oblige(task.Obligation{Kind: obligeDrift, Opener: opener})
	b.checks.Lock()
	b.driftRan = false
	b.checks.Unlock()
}

const noDocuments = "DRIFT PASS: no document says anything of parts, pins or constraints, so there is nothing to compare"

// checkDrift compares documents and registry with the design (B-69, B-110). What
// differed at the start does not count against the run.
func (b *Bench) checkDrift(ctx context.Context, _ struct{}) (tool.Output, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.project.Root == "" {
		b.session.Rules.MeetKind(obligeDrift)
		return tool.Output{Summary: "DRIFT is not applicable for now: " + errNoSheet.Error() + ". Calling it again is pointless before there is one."}, nil
	}
	if err := b.base.get(ctx); err != nil {
		return tool.Output{}, tool.Errorf(tool.Failed, "the documents could not be compared: %w", err)
	}
	p := b.papers()
	contents, _ := b.contents(obligeERC) // without sheets that can be read nothing is compared below
	compared := p.digest(contents)
	if !p.speak() {
		b.session.Rules.MeetKind(obligeDrift)
		return tool.Output{Summary: noDocuments}, nil
	}
	d, err := b.documentedNow(ctx)
	if err != nil {
		return tool.Output{}, tool.Errorf(tool.Failed, "DRIFT NOT RUN: the design does not load, so that nothing can be compared with it; mend it first. %w", err)
	}
	b.meetDualWrites(p)
	b.checks.Lock()
	b.base.compared = compared
	b.checks.Unlock()
	return b.driftAnswer(p.compare(d)), nil
}

func (b *Bench) driftAnswer(r docs.DriftReport) tool.Output {
	fresh, old := added(b.base.drift, r.Mismatches)
	if !b.base.driftKnown { // nobody can tell what is new
		fresh, old = nil, r.Mismatches
	}
	line := fmt.Sprintf("DRIFT PASS: %d claims compared, nothing differs from the design that did not before", r.Claims)
	var lines []string
	switch {
	case len(fresh) > 0:
		line = fmt.Sprintf("DRIFT FAIL: %d claims compared, %d differ from the design since the start of the run", r.Claims, len(fresh))
		lines = append(lines, "New differences, which keep the run from finishing; bring the documents in line with "+toolFixDocs+" or "+toolEdit+":", listed(fresh))
	case !b.base.driftKnown:
		line = fmt.Sprintf("DRIFT NOT COMPARABLE: the design did not load before the first edit; now %d of %d claims differ", len(old), r.Claims)
	}
	if len(old) > 0 {
		lines = append(lines, fmt.Sprintf("%d differences were there before the run and do not count against it; %s mends them when that is asked for:", len(old), toolFixDocs), listed(old))
	}
	if len(r.Notes) > 0 {
		lines = append(lines, "Worth a look:", listed(r.Notes))
	}
	if len(fresh) == 0 {
		b.session.Rules.MeetKind(obligeDrift)
	}
	b.checks.Lock()
	b.driftLine, b.driftRan = line, true
	b.checks.Unlock()
	return tool.Output{Summary: line, Content: strings.Join(lines, "\n")}
}

type fixDocsInput struct {
	Documents []string `json:"documents,omitempty" jsonschema:"documents relative to the repository; without it, all of the project's"`
}

// fixDocs repairs what documents claim, by the design. Every other byte stays.
func (b *Bench) fixDocs(ctx context.Context, in fixDocsInput) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.project.Root == "" {
		return "", tool.Errorf(tool.Failed, "%w", errNoSheet)
	}
	p := b.papers()
	for i, name := range in.Documents {
		name, err := b.within(name)
		if err != nil {
			return "", badPath(err)
		}
		if in.Documents[i] = name; !slices.ContainsFunc(p.documents, func(d *docs.Document) bool { return d.Name == name }) {
			return "", tool.Errorf(tool.InvalidArgument, "%s is no document of the project; these are: %s", name, strings.Join(p.names(), ", "))
		}
	}
	d, err := b.documentedNow(ctx)
	if err != nil {
		return "", tool.Errorf(tool.Failed, "the design does not load, so that no document can be held against it; mend it first. %w", err)
	}
	var ranges []sexpr.Edit
	for _, doc := range p.documents {
		if b.allowed(doc.Name) != nil {
			continue // it is listed below
		}
		if len(in.Documents) == 0 || slices.Contains(in.Documents, doc.Name) {
			ranges = append(ranges, docs.Fix(d, doc)...)
		}
	}
	head := "Nothing in the documents can be repaired by the design; nothing was changed."
	if len(ranges) > 0 {
		edits, err := b.edits(ctx, ranges)
		if err != nil {
			return "", err
		}
		if _, err := b.apply(ctx, change{edits: edits}); err != nil {
			return "", err
		}
		head = fmt.Sprintf("Repaired %s (%d edits). Call %s.", fileList(edits), len(ranges), toolDrift)
	}
	if left := b.papers().compare(d).Mismatches; len(left) > 0 {
		head += fmt.Sprintf("\n%d differences are left, which need a person or %s:\n%s", len(left), toolEdit, listed(left))
	}
	return head, nil
}

func (p papers) names() (names []string) {
	for _, d := range p.documents {
		names = append(names, d.Name)
	}
	return names
}
