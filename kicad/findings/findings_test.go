// SPDX-License-Identifier: Apache-2.0

package findings_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/kicad/findings"
)

// at makes a finding about items by UUID.
func at(typ string, sev findings.Severity, uuids ...string) findings.Finding {
	f := findings.Finding{Check: findings.ERC, Section: findings.Violations, Type: typ, Severity: sev, Description: "text of " + typ}
	for _, u := range uuids {
		f.Items = append(f.Items, findings.Item{UUID: u, Description: "item " + u, X: 1, Y: 2})
	}
	return f
}

func excluded(f findings.Finding) findings.Finding {
	f.Excluded = true
	return f
}

func erc(list ...findings.Finding) findings.Report {
	return findings.Report{Check: findings.ERC, Findings: list}
}

func names(list []findings.Finding) string {
	var out []string
	for _, f := range list {
		s := f.Type
		for _, it := range f.Items {
			s += " " + it.UUID
		}
		if f.Excluded {
			s += " excluded"
		}
		out = append(out, s)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

func rules(t *testing.T, project string) findings.Rules {
	t.Helper()
	r, err := findings.ReadRules([]byte(project), nil)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const (
	e = findings.Error
	w = findings.Warning
)

func TestCompare(t *testing.T) {
	pin := at("pin_not_connected", e, "a")
	moved := pin
	moved.Items = []findings.Item{{UUID: "A", Description: "Symbol R9 Pin 1", X: 50, Y: 60}}
	nameless := at("label_dangling", w, "")
	for name, tt := range map[string]struct {
		before, after                   findings.Report
		added, removed, same, silenced  string
		rulesBefore, rulesAfter, blinds string
		outcome                         findings.Outcome
	}{
		"nothing": {outcome: findings.NothingNew},
		"moved and renamed is the same": {
			before: erc(pin), after: erc(moved), same: "pin_not_connected A", outcome: findings.NothingNew,
		},
		"equal counts, other items": {
			before: erc(pin), after: erc(at("pin_not_connected", e, "b")),
			added: "pin_not_connected b", removed: "pin_not_connected a", outcome: findings.SomethingNew,
		},
		"the order of items does not matter": {
			before: erc(at("pin_to_pin", e, "a", "b")), after: erc(at("pin_to_pin", e, "b", "a")),
			same: "pin_to_pin b a", outcome: findings.NothingNew,
		},
		"a second of the same": {
			before: erc(pin), after: erc(pin, pin), added: "pin_not_connected a", same: "pin_not_connected a", outcome: findings.SomethingNew,
		},
		"items without a UUID go by place": {
			before: erc(nameless), after: erc(nameless, at("label_dangling", w, "x")),
			same: "label_dangling ", added: "label_dangling x", outcome: findings.SomethingNew,
		},
		"UUIDs that kicad-cli made up": {
			before: erc(replaced(pin, "1")), after: erc(replaced(pin, "2")), same: "pin_not_connected 2", outcome: findings.NothingNew,
		},
		"worse by itself": {
			before: erc(at("pin_to_pin", w, "a")), after: erc(at("pin_to_pin", e, "a")),
			added: "pin_to_pin a", removed: "pin_to_pin a", outcome: findings.SomethingNew,
		},
		"worse by a stricter rule": {
			before: erc(at("pin_to_pin", w, "a")), after: erc(at("pin_to_pin", e, "a")), same: "pin_to_pin a",
			rulesBefore: `{"erc":{"rule_severities":{"pin_to_pin":"warning"}}}`, rulesAfter: `{"erc":{"rule_severities":{"pin_to_pin":"error"}}}`,
			outcome: findings.NothingNew,
		},
		"libraries never gate": {
			before: erc(at("lib_symbol_mismatch", w, "l")), after: erc(at("lib_symbol_issues", w, "a")), outcome: findings.NothingNew,
		},
		// Case 30.
		"rule switched off": {
			before: erc(pin), after: erc(), silenced: "pin_not_connected a", blinds: "pin_not_connected",
			rulesAfter: `{"erc":{"rule_severities":{"pin_not_connected":"ignore"}}}`, outcome: findings.NotComparable,
		},
		"rule lowered": {
			before: erc(pin), after: erc(at("pin_not_connected", w, "a")), same: "pin_not_connected a", silenced: "pin_not_connected a",
			rulesBefore: `{"erc":{"rule_severities":{"pin_not_connected":"error"}}}`, rulesAfter: `{"erc":{"rule_severities":{"pin_not_connected":"warning"}}}`,
			outcome: findings.NothingNew,
		},
		"excluded is not removed": {
			before: erc(pin), after: erc(excluded(pin)), same: "pin_not_connected a excluded", silenced: "pin_not_connected a excluded",
			rulesAfter: `{"erc":{"erc_exclusions":[["pin_not_connected|1|2|a|0|/|/|","fine"]]}}`, outcome: findings.NothingNew,
		},
		"a new finding that is excluded at once is new": {
			before: erc(), after: erc(excluded(pin)), added: "pin_not_connected a excluded", outcome: findings.SomethingNew,
		},
		"an excluded one that goes away is no fix": {
			before: erc(excluded(pin)), after: erc(), outcome: findings.NothingNew,
		},
		"an exclusion that no longer fits": {
			before: erc(excluded(pin)), after: erc(excluded(pin), moved), same: "pin_not_connected A", outcome: findings.NothingNew,
		},
		"the pin matrix": {
			before: erc(pin), after: erc(), blinds: "*", rulesAfter: `{"erc":{"pin_map":[[0]]}}`, outcome: findings.NotComparable,
		},
	} {
		t.Run(name, func(t *testing.T) {
			changes := findings.CompareRules(rules(t, tt.rulesBefore), rules(t, tt.rulesAfter))
			tt.after.Check = findings.ERC
			d := findings.Compare(tt.before, tt.after, changes)
			for _, x := range []struct{ what, got, want string }{
				{"added", names(d.Added), tt.added},
				{"removed", names(d.Removed), tt.removed},
				{"same", names(d.Same), tt.same},
				{"silenced", names(d.Silenced), tt.silenced},
			} {
				if x.got != x.want {
					t.Errorf("%s: %q, want %q", x.what, x.got, x.want)
				}
			}
			for b := range strings.FieldsSeq(tt.blinds) {
				if d.Blind[b] == "" {
					t.Errorf("%q is not in %v", b, d.Blind)
				}
			}
			if d.Outcome() != tt.outcome {
				t.Errorf("outcome %s, want %s: %s", d.Outcome(), tt.outcome, d.Summary())
			}
		})
	}
}

// replaced gives the items another UUID, as kicad-cli does at each run for items that have none.
func replaced(f findings.Finding, uuid string) findings.Finding {
	f.Items = slices.Clone(f.Items)
	f.Items[0].UUID, f.Items[0].Description = uuid, "the same text"
	return f
}

// DRC lists about 199 of a type and stops.
func TestCompare_Cap(t *testing.T) {
	many := func(n, from int) findings.Report {
		r := findings.Report{Check: findings.DRC}
		for i := range n {
			f := at("clearance", e, fmt.Sprint(from+i))
			f.Items[0].X = float64(from + i)
			r.Findings = append(r.Findings, f)
		}
		return r
	}
	d := findings.Compare(many(199, 0), many(199, 50), nil)
	if d.Outcome() != findings.NotComparable || len(d.Added) != 0 || len(d.Removed) != 0 || len(d.Uncertain) != 100 {
		t.Errorf("both full: %s, %d uncertain", d.Summary(), len(d.Uncertain))
	}
	d = findings.Compare(many(3, 0), many(199, 0), nil)
	if d.Outcome() != findings.SomethingNew || len(d.Added) != 196 {
		t.Errorf("full after: %s", d.Summary())
	}
	d = findings.Compare(many(198, 0), many(1, 0), nil)
	if d.Outcome() != findings.NothingNew || len(d.Removed) != 197 {
		t.Errorf("below the cap: %s", d.Summary())
	}
}

func TestCompareRules(t *testing.T) {
	before := rules(t, `{"erc":{"rule_severities":{"a":"error","b":"ignore"},"erc_exclusions":["x|1"]},
		"board":{"design_settings":{"rules":{"min_clearance":0.2},"rule_severities":{"c":"error"},"drc_exclusions":[]}},"net_settings":{"classes":[{"clearance":0.2}]}}`)
	after := rules(t, `{"erc":{"rule_severities":{"a":"ignore","b":"error"},"erc_exclusions":[]},
		"board":{"design_settings":{"rules":{"min_clearance":0.1},"rule_severities":{"c":"warning"},"drc_exclusions":[["y|1|2","why"]]}},"net_settings":{"classes":[{"clearance":0.2}]}}`)
	var got []string
	for _, c := range findings.CompareRules(before, after) {
		got = append(got, fmt.Sprintf("%s %s %s>%s %v %v", c.Check, c.Rule, c.Before, c.After, c.Weaker, c.Hides))
	}
	want := []string{
		"erc a error>ignore true true", "erc b ignore>error false false", "erc x x|1> false false",
		"drc c error>warning true false", "drc y >y|1|2 true false", "drc board.design_settings.rules.min_clearance 0.2>0.1 true true",
	}
	if !slices.Equal(got, want) {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if c := findings.CompareRules(before, before); len(c) != 0 {
		t.Errorf("no change gives %v", c)
	}
	custom, _ := findings.ReadRules(nil, []byte("(version 1)\n(rule x)"))
	if c := findings.CompareRules(findings.Rules{}, custom); len(c) != 1 || !c[0].Hides {
		t.Errorf("custom rules: %v", c)
	}
	if _, err := findings.ReadRules([]byte("{"), nil); err == nil {
		t.Error("a broken project file went unseen")
	}
}

func TestRead(t *testing.T) {
	r, err := findings.Read(findings.ERC, []byte(`{"coordinate_units":"mm","kicad_version":"9.0.8","source":"p.kicad_sch","sheets":[
		{"path":"/A/","violations":[{"type":"pin_not_connected","severity":"error","description":"Pin not connected","excluded":true,"comment":"fine",
		"items":[{"description":"Symbol R1 Pin 2","uuid":"u","pos":{"x":1.016,"y":0.6223}}]}]}],
		"violations":[{"type":"old_shape","severity":"warning","items":[]}],"ignored_checks":[{"key":"four_way_junction","description":"x"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	f := r.Findings[0]
	if len(r.Findings) != 2 || fmt.Sprintf("%.2f %.2f", f.Items[0].X, f.Items[0].Y) != "101.60 62.23" || f.Sheet != "/A/" || !f.Excluded || f.Gates() {
		t.Errorf("got %+v", r)
	}
	if !slices.Equal(r.Ignored, []string{"four_way_junction"}) {
		t.Errorf("ignored %v", r.Ignored)
	}
	if got, want := f.String(), "error pin_not_connected: Pin not connected (excluded) - Symbol R1 Pin 2 at 101.60, 62.23 mm [sheet /A/]"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got, want := r.Summary(), "0 errors, 1 warning; 1 excluded finding"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, bad := range []string{"", "[]", "{}", `{"kicad_version":"9"}`, `{"kicad_version":"9","coordinate_units":"in","sheets":[]}`} {
		if _, err := findings.Read(findings.ERC, []byte(bad)); err == nil {
			t.Errorf("%q is a report", bad)
		}
	}
}
