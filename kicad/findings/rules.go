// SPDX-License-Identifier: Apache-2.0

package findings

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Rules are what a project file says about the checks: what is reported, as what, and what is excluded.
type Rules struct {
	severities  map[Check]map[string]Severity
	exclusions  map[Check][]string
	constraints map[string]string // by JSON path: minimum widths, net classes, the ERC pin matrix
	custom      string            // the .kicad_dru
}

// A RuleKind tells what about the rules changed.
type RuleKind string

// The kinds.
const (
	SeverityRule   RuleKind = "severity"
	ExclusionRule  RuleKind = "exclusion"
	ConstraintRule RuleKind = "constraint"
	CustomRule     RuleKind = "custom rules"
)

// A RuleChange is a difference between two [Rules]. A change of the rules is never a fix.
type RuleChange struct {
	Check  Check    `json:"check"`
	Kind   RuleKind `json:"kind"`
	Rule   string   `json:"rule"`   // the finding's type for a severity or exclusion, else the setting's name
	Before string   `json:"before"` // "" when it was not set
	After  string   `json:"after"`  // "" when it no longer is
	// Weaker is set when less is reported than before, or reported as less, or when that cannot be told.
	Weaker bool `json:"weaker"`
	// Hides is set when findings may be missing from a report that was taken with the new rules.
	Hides bool `json:"hides"`
}

// String is the change in one line.
func (c RuleChange) String() string {
	before, after := c.Before, c.After
	if before == "" {
		before = "not set"
	}
	if after == "" {
		after = "not set"
	}
	return fmt.Sprintf("%s %s %s: %s, was %s", c.Check, c.Kind, c.Rule, after, before)
}

type projectJSON struct {
	ERC struct {
		Severities map[string]Severity `json:"rule_severities"`
		Exclusions []json.RawMessage   `json:"erc_exclusions"`
		PinMap     json.RawMessage     `json:"pin_map"`
	} `json:"erc"`
	Board struct {
		Settings struct {
			Severities map[string]Severity        `json:"rule_severities"`
			Exclusions []json.RawMessage          `json:"drc_exclusions"`
			Rules      map[string]json.RawMessage `json:"rules"`
		} `json:"design_settings"`
	} `json:"board"`
	NetSettings map[string]json.RawMessage `json:"net_settings"`
}

// ReadRules reads a .kicad_pro and a .kicad_dru; either may be nil for a file that is not there. kicad-cli passes over a
// broken project file in silence and checks by its defaults, so an error here means that the rules are gone.
func ReadRules(project, custom []byte) (Rules, error) {
	var p projectJSON
	if len(project) > 0 {
		if err := json.Unmarshal(project, &p); err != nil {
			return Rules{}, fmt.Errorf("findings: the project file cannot be read, and kicad-cli ignores it: %w", err)
		}
	}
	r := Rules{
		severities: map[Check]map[string]Severity{ERC: p.ERC.Severities, DRC: p.Board.Settings.Severities},
		exclusions: map[Check][]string{ERC: exclusions(p.ERC.Exclusions), DRC: exclusions(p.Board.Settings.Exclusions)},
		custom:     strings.TrimSpace(string(custom)), constraints: map[string]string{},
	}
	if len(p.ERC.PinMap) > 0 {
		r.constraints["erc.pin_map"] = compact(p.ERC.PinMap)
	}
	for name, value := range p.Board.Settings.Rules {
		r.constraints["board.design_settings.rules."+name] = compact(value)
	}
	for _, name := range []string{"classes", "netclass_assignments", "netclass_patterns"} {
		if value, ok := p.NetSettings[name]; ok {
			r.constraints["net_settings."+name] = compact(value)
		}
	}
	return r, nil
}

// exclusions reads the keys: plain strings before KiCad 8, later pairs of key and comment.
func exclusions(list []json.RawMessage) []string {
	keys := make([]string, 0, len(list))
	for _, raw := range list {
		var key string
		var pair []string
		if json.Unmarshal(raw, &key) != nil && json.Unmarshal(raw, &pair) == nil && len(pair) > 0 {
			key = pair[0]
		}
		keys = append(keys, key)
	}
	return keys
}

// compact is JSON in one spelling.
func compact(raw json.RawMessage) string {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return string(raw)
	}
	out, err := json.Marshal(v)
	if err != nil {
		return string(raw)
	}
	return string(out)
}

// CompareRules lists what changed, in a fixed order.
func CompareRules(before, after Rules) []RuleChange {
	var changes []RuleChange
	for _, check := range []Check{ERC, DRC} {
		b, a := before.severities[check], after.severities[check]
		for _, rule := range union(b, a) {
			if b[rule] == a[rule] {
				continue
			}
			weaker := a[rule].weight() < b[rule].weight() || b[rule] == "" && a[rule] != Error
			changes = append(changes, RuleChange{
				Check: check, Kind: SeverityRule, Rule: rule, Before: string(b[rule]), After: string(a[rule]), Weaker: weaker,
				// without an entry the default holds, which may be to ignore
				Hides: a[rule] == Ignore || a[rule] == "" && b[rule] != Ignore,
			})
		}
		changes = append(changes, compareExclusions(check, before.exclusions[check], after.exclusions[check])...)
	}
	for _, name := range union(before.constraints, after.constraints) {
		if b, a := before.constraints[name], after.constraints[name]; a != b {
			check := DRC
			if name == "erc.pin_map" {
				check = ERC
			}
			changes = append(changes, RuleChange{Check: check, Kind: ConstraintRule, Rule: name, Before: b, After: a, Weaker: true, Hides: true})
		}
	}
	if before.custom != after.custom {
		changes = append(changes, RuleChange{
			Check: DRC, Kind: CustomRule, Rule: ".kicad_dru", Before: lines(before.custom), After: lines(after.custom), Weaker: true, Hides: true,
		})
	}
	return changes
}

func compareExclusions(check Check, before, after []string) []RuleChange {
	var changes []RuleChange
	for _, key := range after {
		if !slices.Contains(before, key) {
			rule, _, _ := strings.Cut(key, "|")
			changes = append(changes, RuleChange{Check: check, Kind: ExclusionRule, Rule: rule, After: key, Weaker: true})
		}
	}
	for _, key := range before {
		if !slices.Contains(after, key) {
			rule, _, _ := strings.Cut(key, "|")
			changes = append(changes, RuleChange{Check: check, Kind: ExclusionRule, Rule: rule, Before: key})
		}
	}
	return changes
}

func union[V any](a, b map[string]V) []string {
	keys := slices.AppendSeq(slices.Collect(maps.Keys(a)), maps.Keys(b))
	slices.Sort(keys)
	return slices.Compact(keys)
}

func lines(text string) string {
	if text == "" {
		return ""
	}
	return plural(strings.Count(text, "\n")+1, "line")
}
