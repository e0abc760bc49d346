// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/constraint"
	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/kicad/sexpr"
	"github.com/fiducial-dev/fiducial/task"
	"github.com/fiducial-dev/fiducial/tool"
)

type recordInput struct {
	Key      string             `json:"key" jsonschema:"names the constraint everywhere, for example sleep-current"`
	Text     string             `json:"text" jsonschema:"what must hold, in words"`
	Limits   []constraint.Limit `json:"limits,omitempty" jsonschema:"what a machine can check of it; kinds: sum, range, field, count, net, forbidden-net, open-pin"`
	Source   string             `json:"source" jsonschema:"where it comes from: a datasheet, a standard, the request"`
	Document string             `json:"document,omitempty" jsonschema:"the file of the docs folder that names it as well; SPEC.md without it"`
	Affects  []string           `json:"affects,omitempty" jsonschema:"what has to be looked at again because of it: references, or words such as layout of the antenna"`
}

// recordConstraint writes a constraint into the registry and into its document, in one
// edit, and reads back whether both name it (B-73, B-113).
func (b *Bench) recordConstraint(ctx context.Context, in recordInput) (string, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	p := b.papers()
	if p.bad != nil {
		return "", tool.Errorf(tool.Failed, "%w. Nothing was changed", p.bad)
	}
	r := p.copied()
	c := constraint.Constraint{Key: in.Key, Text: in.Text, Limits: in.Limits, Source: in.Source, Document: in.Document, Affects: in.Affects}
	opened, deferred, err := r.Record(c, b.artifacts(p))
	if err != nil {
		return "", &tool.Error{Kind: tool.InvalidArgument, Message: err.Error() + ". Nothing was changed", Err: err}
	}
	edits, err := b.constraintEdits(ctx, p, r, c)
	if err != nil {
		return "", err
	}
	dual := task.Obligation{Kind: obligeDualWrite, Detail: c.Key, Opener: toolRecord}
	if len(edits) > 0 {
		b.oblige(dual)
		if _, err := b.apply(ctx, change{edits: edits}); err != nil {
			b.session.Rules.Meet(dual.Kind, dual.Detail)
			return "", err
		}
	}
	now := b.papers()
	if missing := now.halves(c.Key); len(missing) > 0 {
		return "", tool.Errorf(tool.Failed, "%s is written in one place only; mend it with %s and call %s:\n%s", c.Key, toolEdit, toolDrift, listed(missing))
	}
	b.session.Rules.Meet(dual.Kind, dual.Detail)
	if err := b.forgetResolved(opened); err != nil {
		return "", tool.Errorf(tool.Failed, "%w", err)
	}
	for _, v := range opened {
		b.oblige(task.Obligation{Kind: obligeRevisit, Detail: v.String(), Opener: toolRecord})
	}
	changed := b.obligeDecided(p, c)
	text := fmt.Sprintf("Recorded %s in %s and %s.", c.Key, p.registryFile(), path.Join(p.folder, c.Doc()))
	if len(opened) > 0 {
		text += "\nTo be looked at again, each to be resolved by " + toolResolve + ": " + revisits(opened)
	}
	if len(deferred) > 0 {
		text += "\nDeferred until there is something to look at: " + strings.Join(deferred, "; ")
	}
	return text + changed + b.holds(ctx, now, c.Key), nil
}

// constraintEdits are those of the registry and of the document, without what stays as it is.
func (b *Bench) constraintEdits(ctx context.Context, p papers, r *constraint.Registry, c constraint.Constraint) ([]*edit, error) {
	registry, err := b.newOrEdit(ctx, p.registryFile())
	if err != nil {
		return nil, err
	}
	registry.new = r.BytesLike(registry.old)
	page, err := b.newOrEdit(ctx, path.Join(p.folder, c.Doc()))
	if err != nil {
		return nil, err
	}
	text := page.old
	if page.fresh {
		text = []byte("# " + strings.TrimSuffix(path.Base(page.name), path.Ext(page.name)) + "\n")
	}
	doc, err := docs.ReadDocument(page.name, text)
	if err != nil {
		return nil, tool.Errorf(tool.Failed, "%w. Nothing was changed", err)
	}
	if page.new, err = sexpr.Apply(text, docs.NameConstraint(doc, c.Key, c.Text, c.Source)); err != nil {
		return nil, tool.Errorf(tool.Failed, "%w. Nothing was changed", err)
	}
	return slices.DeleteFunc([]*edit{registry, page}, func(e *edit) bool { return !e.fresh && string(e.old) == string(e.new) }), nil
}

// halves are what says of a constraint that registry and document do not both name it.
func (p papers) halves(key string) []docs.Mismatch {
	if _, ok := p.registry.Get(key); !ok || p.bad != nil {
		return []docs.Mismatch{{Kind: docs.Unnamed, Doc: p.registryFile(), Ref: key, Claim: "nothing of it", Actual: "recorded"}}
	}
	return slices.DeleteFunc(constraint.Unnamed(p.registry, p.folder, p.documents), func(m docs.Mismatch) bool { return m.Ref != key })
}

// meetDualWrites clears the obligations of constraints that both places name by now.
func (b *Bench) meetDualWrites(p papers) {
	for _, o := range b.session.Rules.Open() {
		if o.Kind == obligeDualWrite && len(p.halves(o.Detail)) == 0 {
			b.session.Rules.Meet(o.Kind, o.Detail)
		}
	}
}

// holds tells whether the limits of a constraint hold as the design stands.
func (b *Bench) holds(ctx context.Context, p papers, key string) string {
	c, ok := p.registry.Get(key)
	if !ok || len(c.Limits) == 0 || b.project.Root == "" {
		return ""
	}
	d, err := b.documentedNow(ctx)
	if err != nil {
		return "\nWhether it holds is not known: the design does not load."
	}
	var text strings.Builder
	for _, res := range constraint.Check(&constraint.Registry{Constraints: []constraint.Constraint{c}}, d, p.documents) {
		text.WriteString("\n" + res.String())
	}
	return text.String()
}

// copied is the registry for changing it, empty where there is none.
func (p papers) copied() *constraint.Registry {
	r := &constraint.Registry{Version: constraint.Version}
	if p.registry != nil {
		r.Constraints = slices.Clone(p.registry.Constraints)
	}
	return r
}

// artifacts are what there is to look at (B-78).
func (b *Bench) artifacts(p papers) constraint.Artifacts {
	return constraint.Artifacts{
		Schematic: b.project.Root != "", Board: b.project.PCB != "",
		BOM: slices.ContainsFunc(p.documents, func(d *docs.Document) bool { return path.Base(d.Name) == docs.BOMName }),
	}
}

// reopen opens what earlier runs deferred and what can be looked at now (B-79). The
// registry says so from now on, and is put back with everything else when the run
// fails (B-80). A run that is taken up opens what it had not looked at yet.
func (b *Bench) reopen(ctx context.Context) error {
	before, now := b.base.papers, b.papers()
	have := b.artifacts(before)
	r := before.copied()
	opened := r.Reopen(have)
	if left := now.copied(); len(left.Reopen(have)) > 0 { // it does not say so yet
		e, err := b.newEdit(ctx, now.registryFile())
		if err != nil {
			return fmt.Errorf("what was deferred could not be opened again: %w", err)
		}
		if err = b.root.MkdirAll(filepath.Dir(b.promptFile()), 0o700); err == nil {
			err = b.put(e, left.BytesLike(e.old))
		}
		if err != nil {
			return fmt.Errorf("what was deferred could not be opened again: %w", err)
		}
		b.session.Rules.Touch(e.name)
	}
	if b.session.Resumed {
		var err error
		if opened, err = b.due(opened, now); err != nil {
			return err
		}
	}
	if len(opened) == 0 {
		return nil
	}
	var items []string
	for _, v := range opened {
		b.oblige(task.Obligation{Kind: obligeRevisit, Detail: v.String(), Opener: "the start of the run"})
		items = append(items, v.String())
	}
	b.session.Event("deferred-reopened", map[string]any{"items": items})
	return nil
}

type resolveInput struct {
	Key     string            `json:"key,omitempty" jsonschema:"the constraint"`
	Item    string            `json:"item,omitempty" jsonschema:"what it affects, exactly as recorded"`
	How     string            `json:"how,omitempty" jsonschema:"what was done, or why nothing had to be"`
	Entries []json.RawMessage `json:"entries,omitempty" jsonschema:"several at once: objects of key, item and how"`
}

const resolveForm = `say what was looked at again: {"key": "sleep-current", "item": "R1", "how": "value raised"}, or several as {"entries": [...]}`

// resolveAffected clears what was looked at again, one entry after the other (B-114
// to B-118).
func (b *Bench) resolveAffected(_ context.Context, in resolveInput) (tool.Output, error) {
	entries := []constraint.Resolution{{Key: in.Key, Item: in.Item, How: in.How}}
	switch {
	case len(in.Entries) > 0:
		entries = nil
		for _, raw := range in.Entries {
			var e constraint.Resolution
			if json.Unmarshal(raw, &e) != nil {
				e = constraint.Resolution{} // malformed: its line says so
			}
			entries = append(entries, e)
		}
	case in.Key == "" && in.Item == "":
		return tool.Output{}, tool.Errorf(tool.InvalidArgument, "%s", resolveForm)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	var open []constraint.Revisit
	for _, o := range b.session.Rules.Open() {
		if o.Kind == obligeRevisit {
			key, item, _ := strings.Cut(o.Detail, " affects ") // a key has no blanks
			open = append(open, constraint.Revisit{Key: key, Item: item})
		}
	}
	lines, resolved, left := constraint.Resolve(open, entries)
	if len(resolved) > 0 {
		if err := b.keepResolved(resolved); err != nil {
			return tool.Output{}, tool.Errorf(tool.Failed, "nothing was resolved: %w", err)
		}
	}
	for _, e := range resolved {
		b.session.Rules.Meet(obligeRevisit, e.Revisit().String())
		b.session.Rules.Decide(e.Decision())
	}
	text := strings.Join(lines, "\n")
	if len(resolved) == 0 {
		return tool.Output{}, tool.Errorf(tool.Failed, "%s", text)
	}
	return tool.Output{Summary: fmt.Sprintf("%d of %d resolved, %d left open", len(resolved), len(entries), len(left)), Content: text}, nil
}

func revisits(list []constraint.Revisit) string {
	var texts []string
	for _, v := range list {
		texts = append(texts, v.String())
	}
	return strings.Join(texts, "; ")
}

type decisionInput struct {
	What    string   `json:"what" jsonschema:"what was decided"`
	Why     string   `json:"why" jsonschema:"why"`
	Affects []string `json:"affects,omitempty" jsonschema:"references, nets or documents that it concerns"`
}

// recordDecision appends a line to the log of decisions. What stands there is never
// changed, and the documents need not be compared again (B-120).
func (b *Bench) recordDecision(ctx context.Context, in decisionInput) (string, error) {
	if strings.TrimSpace(in.What) == "" || strings.TrimSpace(in.Why) == "" {
		return "", tool.Errorf(tool.InvalidArgument, "what and why must both say something; nothing was written")
	}
	for _, text := range append([]string{in.What, in.Why}, in.Affects...) {
		if err := plainText("the decision", text); err != nil {
			return "", err
		}
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e, err := b.newOrEdit(ctx, path.Join(b.papers().folder, docs.DecisionsName))
	if err != nil {
		return "", err
	}
	d := docs.Decision{Date: b.day(), Run: b.session.Run, What: in.What, Why: in.Why, Affects: in.Affects}
	name := docs.NextDecision(e.old)
	if e.new, err = sexpr.Apply(e.old, []sexpr.Edit{docs.AppendNumbered(e.name, e.old, name, d)}); err != nil {
		return "", tool.Errorf(tool.Failed, "%s: %w", e.name, err)
	}
	if _, err := b.apply(ctx, change{edits: []*edit{e}, record: true}); err != nil {
		return "", err
	}
	b.session.Rules.Decide(name + ": " + oneLine(in.What))
	return "Recorded in " + e.name + ": " + d.Named(name) + b.decided(in), nil
}

// newOrEdit is newEdit for a file that need not be there yet.
func (b *Bench) newOrEdit(ctx context.Context, name string) (*edit, error) {
	e, err := b.newEdit(ctx, name)
	if errors.Is(err, fs.ErrNotExist) {
		return &edit{name: name, mode: 0o644, fresh: true}, nil
	}
	return e, err
}
