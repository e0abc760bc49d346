// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/findings"
	"github.com/fiducial-dev/fiducial/task"
)

// rulesGate keeps a run from finishing while what it wrote loosens the rules by which ERC and DRC judge. The checks of
// the run itself go by the rules of its start; those of everybody after it would not. Only a person loosens rules.
type rulesGate struct{ b *Bench }

func (g *rulesGate) Name() string { return "rules" }

func (g *rulesGate) Closed(context.Context) (reasons []string) {
	g.b.mu.RLock()
	defer g.b.mu.RUnlock()
	for _, ext := range []string{".kicad_pro", ".kicad_dru"} {
		name := path.Join(g.b.project.Dir, g.b.project.Name+ext)
		if !slices.Contains(g.b.session.Rules.Touched(), name) {
			continue
		}
		if loose := g.b.loosened(ext); len(loose) > 0 {
			reasons = append(reasons, fmt.Sprintf("%s loosens the rules of the checks, which a person may do by hand and a run may not. Put these back as they were:\n- %s", name, strings.Join(loose, "\n- ")))
		}
	}
	return reasons
}

// loosened tells how a rule file is less strict than at the start.
func (b *Bench) loosened(ext string) (lines []string) {
	name := b.project.Name + ext
	before := b.base.overlay[name]
	now, err := b.read(path.Join(b.project.Dir, name))
	if err != nil {
		now = nil // none, as kicad-cli sees it
	}
	if ext == ".kicad_dru" {
		return loosenedCustom(before, now)
	}
	was, err := findings.ReadRules(before, nil)
	if err != nil {
		return nil // there were none that counted
	}
	after, err := findings.ReadRules(now, nil)
	if err != nil {
		if len(findings.CompareRules(findings.Rules{}, was)) == 0 {
			return nil // nothing was set that could be lost
		}
		return []string{err.Error()}
	}
	for _, c := range findings.CompareRules(was, after) {
		if c.Weaker && !stricter(c) {
			lines = append(lines, c.String())
		}
	}
	return lines
}

// stricter reports whether a changed setting asks for more than before. Of net classes the tools keep those in order
// whose nets they rename; what is in them is compared number by number.
func stricter(c findings.RuleChange) bool {
	if c.Kind != findings.ConstraintRule {
		return false
	}
	switch c.Rule {
	case "net_settings.netclass_assignments", "net_settings.netclass_patterns":
		return membersHold(c.Before, c.After)
	case "net_settings.classes":
		return classesHold(c.Before, c.After)
	}
	var before, after float64
	if json.Unmarshal([]byte(c.After), &after) != nil || c.Before != "" && json.Unmarshal([]byte(c.Before), &before) != nil {
		return false
	}
	name := c.Rule[strings.LastIndex(c.Rule, ".")+1:]
	switch {
	case strings.HasPrefix(name, "min_"), strings.HasPrefix(name, "solder_mask_to_copper"):
		return c.Before != "" && after >= before
	case strings.HasPrefix(name, "max_"):
		return c.Before != "" && after <= before
	}
	return false
}

// membersHold reports whether each net class has as many nets or patterns as before: a renamed net takes its class along.
func membersHold(before, after string) bool {
	now := members(after)
	for class, n := range members(before) {
		if now[class] < n {
			return false
		}
	}
	return true
}

// members counts the patterns, or the nets that are named one by one, of each net class.
func members(text string) map[string]int {
	count := map[string]int{}
	var patterns []struct {
		Class string `json:"netclass"`
	}
	var nets map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &patterns) == nil {
		for _, p := range patterns {
			count[p.Class]++
		}
	}
	if json.Unmarshal([]byte(text), &nets) == nil {
		for _, of := range nets { // a list of classes, or one before KiCad 9
			count[string(of)]++
		}
	}
	return count
}

// classesHold reports whether every net class is there still, and asks for no smaller clearance, track, via or gap.
func classesHold(before, after string) bool {
	was, now := classes(before), classes(after)
	for name, class := range was {
		new, ok := now[name]
		if !ok {
			return false
		}
		for _, field := range []string{"clearance", "track_width", "via_diameter", "via_drill", "microvia_diameter", "microvia_drill", "diff_pair_gap", "diff_pair_width"} {
			a, set := class[field].(float64)
			if b, _ := new[field].(float64); set && b < a {
				return false
			}
		}
	}
	return true
}

// classes are the net classes of a project file by their names.
func classes(text string) map[string]map[string]any {
	var list []map[string]any
	byName := map[string]map[string]any{}
	if json.Unmarshal([]byte(text), &list) != nil {
		return byName
	}
	for _, class := range list {
		name, _ := class["name"].(string)
		byName[name] = class
	}
	return byName
}

// loosenedCustom tells which lines of the custom rules are gone, and which new ones turn a rule down. KiCad takes the
// last rule that fits, so the lines that stay must keep their order.
func loosenedCustom(before, now []byte) (lines []string) {
	split := func(data []byte) (all []string) {
		for line := range bytes.Lines(data) {
			if text := strings.Join(strings.Fields(string(line)), " "); text != "" && !strings.HasPrefix(text, "#") {
				all = append(all, text)
			}
		}
		return all
	}
	after := split(now)
	at := 0
	var fresh []string
	for _, line := range split(before) {
		i := slices.Index(after[at:], line)
		if i < 0 {
			lines = append(lines, fmt.Sprintf("custom rules: %q is gone", line))
			continue
		}
		fresh = append(fresh, after[at:at+i]...)
		at += i + 1
	}
	for _, line := range append(fresh, after[at:]...) {
		if strings.Contains(line, "(severity ignore)") || strings.Contains(line, "(severity warning)") || strings.Contains(line, "(severity exclusion)") {
			lines = append(lines, fmt.Sprintf("custom rules: %q is new", line))
		}
	}
	return lines
}

var _ task.Gate = (*rulesGate)(nil)
