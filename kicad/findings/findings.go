// SPDX-License-Identifier: Apache-2.0

// Package findings holds what ERC and DRC report, and compares one report with another.
//
// Real boards start with findings of their own, so a change is judged by what it adds. Two findings are the same when
// their type and the items they concern are the same; neither counts nor texts decide.
package findings

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// A Check is one of kicad-cli's two rule checks.
type Check string

// The checks.
const (
	ERC Check = "erc"
	DRC Check = "drc"
)

// A Severity is a rule's weight as KiCad names it. Ignore appears in project files only: ignored findings are not
// reported.
type Severity string

// The severities.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	Ignore  Severity = "ignore"
)

// weight orders severities; what is unknown weighs nothing.
func (s Severity) weight() int {
	return slices.Index([]Severity{Ignore, Warning, Error}, s)
}

// A Section tells where a report listed a finding.
type Section string

// The sections. ERC has Violations only.
const (
	Violations  Section = "violations"
	Unconnected Section = "unconnected_items"
	Parity      Section = "schematic_parity"
)

// A Finding is one violation.
type Finding struct {
	Check       Check    `json:"check"`
	Section     Section  `json:"section"`
	Type        string   `json:"type"` // KiCad's rule key, for instance pin_not_connected
	Severity    Severity `json:"severity"`
	Description string   `json:"description"`
	Sheet       string   `json:"sheet,omitempty"` // ERC: the sheet's path of names, "/" or "/A/". A fault in a shared sheet is listed once, for its last instance
	Items       []Item   `json:"items"`
	Excluded    bool     `json:"excluded,omitempty"` // an exclusion of the project file covers it; Severity is the rule's still
	Comment     string   `json:"comment,omitempty"`  // of the exclusion
}

// An Item is something a finding concerns. Positions are millimetres from the sheet's or board's upper left corner.
type Item struct {
	UUID        string  `json:"uuid"`
	Description string  `json:"description"`
	X           float64 `json:"x"`
	Y           float64 `json:"y"`
}

// String tells the finding in one line, with its place.
func (f Finding) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s: %s", f.Severity, f.Type, f.Description)
	if f.Excluded {
		b.WriteString(" (excluded)")
	}
	for i, it := range f.Items {
		sep := "; "
		if i == 0 {
			sep = " - "
		}
		fmt.Fprintf(&b, "%s%s at %.2f, %.2f mm", sep, it.Description, it.X, it.Y)
	}
	if f.Sheet != "" {
		fmt.Fprintf(&b, " [sheet %s]", f.Sheet)
	}
	return b.String()
}

// Library reports whether the finding is about libraries: whether a symbol or footprint is known to, or differs from,
// the libraries of this computer. Such findings depend on the host, not on the design, and never gate.
func (f Finding) Library() bool {
	switch f.Type {
	case "lib_symbol_issues", "lib_symbol_mismatch", "footprint_link_issues", "lib_footprint_issues", "lib_footprint_mismatch":
		return true
	}
	return false
}

// Gates reports whether the finding keeps a design from being clean: it is neither about libraries nor excluded.
func (f Finding) Gates() bool { return !f.Library() && !f.Excluded }

// A Report is the result of one check.
type Report struct {
	Check    Check     `json:"check"`
	Source   string    `json:"source"`  // the file's name as the report gives it
	Version  string    `json:"version"` // of kicad-cli
	Findings []Finding `json:"findings"`
	// Ignored names the rules that the report says are switched off. KiCad 10 lists them; for older versions compare
	// the [Rules] of the project files.
	Ignored []string `json:"ignored,omitempty"`
}

// Gating returns the findings that keep the design from being clean.
func (r Report) Gating() []Finding { return r.filter(Finding.Gates) }

// Library returns the findings about libraries.
func (r Report) Library() []Finding { return r.filter(Finding.Library) }

// Excluded returns the findings that exclusions cover.
func (r Report) Excluded() []Finding {
	return r.filter(func(f Finding) bool { return f.Excluded && !f.Library() })
}

func (r Report) filter(keep func(Finding) bool) []Finding {
	var out []Finding
	for _, f := range r.Findings {
		if keep(f) {
			out = append(out, f)
		}
	}
	return out
}

// Counts counts the findings by "type:severity", with ":excluded" behind it for excluded ones.
func (r Report) Counts() map[string]int {
	counts := map[string]int{}
	for _, f := range r.Findings {
		key := f.Type + ":" + string(f.Severity)
		if f.Excluded {
			key += ":excluded"
		}
		counts[key]++
	}
	return counts
}

// nilUUID stands for no item in KiCad's reports.
const nilUUID = "00000000-0000-0000-0000-000000000000"

// identity is a finding's type and items by UUID; ok is false when an item has none.
func (f Finding) identity() (key string, ok bool) {
	ids := make([]string, 0, len(f.Items))
	for _, it := range f.Items {
		if it.UUID == "" || it.UUID == nilUUID {
			return "", false
		}
		ids = append(ids, strings.ToLower(it.UUID))
	}
	if len(ids) == 0 {
		return "", false
	}
	slices.Sort(ids)
	return strings.Join(append([]string{string(f.Section), f.Type}, ids...), "|"), true
}

// place is a finding's type and items by place and description, for items whose UUID is no help: KiCad makes up a new
// one at each run for an item whose file names none.
func (f Finding) place() string {
	items := make([]string, 0, len(f.Items))
	for _, it := range f.Items {
		items = append(items, fmt.Sprintf("%.4f,%.4f %s", it.X, it.Y, it.Description))
	}
	slices.Sort(items)
	return strings.Join(append([]string{string(f.Section), f.Type, f.Sheet, f.Description}, items...), "|")
}

// Sort puts findings in an order that does not depend on kicad-cli: weight, type, sheet, items.
func Sort(list []Finding) {
	slices.SortStableFunc(list, func(a, b Finding) int {
		return cmp.Or(cmp.Compare(b.Severity.weight(), a.Severity.weight()), cmp.Compare(a.Type, b.Type),
			cmp.Compare(a.Sheet, b.Sheet), cmp.Compare(a.place(), b.place()))
	})
}

// Summary counts in words, for instance "2 errors, 1 warning; 3 library findings".
func (r Report) Summary() string {
	errors, warnings := 0, 0
	for _, f := range r.Gating() {
		if f.Severity == Error {
			errors++
		} else {
			warnings++
		}
	}
	parts := []string{plural(errors, "error") + ", " + plural(warnings, "warning")}
	if n := len(r.Excluded()); n > 0 {
		parts = append(parts, plural(n, "excluded finding"))
	}
	if n := len(r.Library()); n > 0 {
		parts = append(parts, plural(n, "library finding"))
	}
	return strings.Join(parts, "; ")
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
