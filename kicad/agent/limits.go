// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/constraint"
	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/task"
	"github.com/fiducial-dev/fiducial/tool"
)

// limitGate keeps a run from finishing while the design breaks a limit that it kept at the start (B-158). A limit that
// the run itself records or changes does not count: to record what does not hold yet is no fault.
type limitGate struct{ b *Bench }

func (g *limitGate) Name() string { return "constraints" }

func (g *limitGate) Closed(ctx context.Context) (reasons []string) {
	g.b.mu.RLock()
	defer g.b.mu.RUnlock()
	if len(g.b.session.Rules.Touched()) == 0 {
		return nil
	}
	_, fresh, err := g.b.limits(ctx)
	if err != nil {
		return nil // that the design does not load, or its registry, is for the other gates to say
	}
	for _, r := range fresh {
		reasons = append(reasons, r.String()+". The limit held at the start: keep to it, or refuse with these figures")
	}
	return reasons
}

// limits are the results for all limits, and those that the run has broken.
func (b *Bench) limits(ctx context.Context) (all, fresh []constraint.Result, err error) {
	p := b.papers()
	if p.bad != nil || p.registry == nil || b.project.Root == "" {
		return nil, nil, p.bad
	}
	d, err := b.documentedNow(ctx)
	if err != nil {
		return nil, nil, err
	}
	all = constraint.Check(p.registry, d, p.documents)
	var suspects []constraint.Result
	for _, r := range all {
		was, found := b.base.papers.registry.Get(r.Key)
		if now, _ := p.registry.Get(r.Key); r.Status == constraint.Fail && found && reflect.DeepEqual(was.Limits, now.Limits) {
			suspects = append(suspects, r)
		}
	}
	if len(suspects) == 0 {
		return all, nil, nil
	}
	before, err := b.limitsBefore(ctx)
	if err != nil {
		return all, nil, err
	}
	for _, r := range suspects {
		if before[r.Key+"\x00"+r.Limit] != constraint.Fail {
			fresh = append(fresh, r)
		}
	}
	return all, fresh, nil
}

// limitsBefore tells how the limits stood in the snapshot. It is asked for only when one is broken now.
func (b *Bench) limitsBefore(ctx context.Context) (map[string]constraint.Status, error) {
	overlay, err := b.overlayBefore(ctx)
	if err != nil {
		return nil, err
	}
	in := kicadcli.Input{File: b.abs(b.project.Root), Root: b.top, Overlay: overlay}
	d, err := b.documented(ctx, in, func(name string) ([]byte, error) { return b.original(ctx, name) }, false)
	if err != nil {
		return nil, err
	}
	stood := map[string]constraint.Status{}
	for _, r := range constraint.Check(b.base.papers.registry, d, b.base.papers.documents) {
		stood[r.Key+"\x00"+r.Limit] = r.Status
	}
	return stood, nil
}

// checkConstraints holds the limits of the registry against the design.
func (b *Bench) checkConstraints(ctx context.Context, _ struct{}) (tool.Output, error) {
	b.mu.RLock()
	defer b.mu.RUnlock()
	if b.project.Root == "" {
		return tool.Output{Summary: "CONSTRAINTS are not applicable for now: " + errNoSheet.Error() + ". Calling it again is pointless before there is one."}, nil
	}
	all, fresh, err := b.limits(ctx)
	if err != nil {
		return tool.Output{}, tool.Errorf(tool.Failed, "CONSTRAINTS NOT RUN: %w", err)
	}
	if len(all) == 0 {
		return tool.Output{Summary: "CONSTRAINTS PASS: there are none in " + docs.RegistryName}, nil
	}
	count := map[constraint.Status]int{}
	var lines []string
	for _, r := range all {
		count[r.Status]++
		if r.Status != constraint.Pass {
			lines = append(lines, r.String())
		}
	}
	line := fmt.Sprintf("CONSTRAINTS PASS: %d held, %d broken as before, %d for people to check", count[constraint.Pass], count[constraint.Fail], count[constraint.NotChecked])
	if len(fresh) > 0 {
		line = fmt.Sprintf("CONSTRAINTS FAIL: the run breaks %d that held at its start: %s", len(fresh), fresh[0])
	}
	return tool.Output{Summary: line, Content: strings.Join(lines, "\n")}, nil
}

var _ task.Gate = (*limitGate)(nil)
