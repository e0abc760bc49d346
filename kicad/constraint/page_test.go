// SPDX-License-Identifier: Apache-2.0

package constraint_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/kicad/constraint"
	"github.com/fiducial-dev/fiducial/kicad/docs"
)

// The page for users holds: its examples are read, there is one of each kind, and the real kicad-cli gives the results
// that it shows.
func TestPage(t *testing.T) {
	data, err := os.ReadFile("../../docs/constraints.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(data)
	var kinds []constraint.Kind
	var last *constraint.Registry
	for _, block := range strings.Split(page, "```json\n")[1:] {
		text, _, _ := strings.Cut(block, "```")
		r, err := constraint.Read("docs/constraints.json", []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range r.Constraints {
			for _, l := range c.Limits {
				kinds = append(kinds, l.Kind)
			}
		}
		last = r
	}
	for _, k := range constraint.Kinds() {
		if !slices.Contains(kinds, k) || !strings.Contains(page, "| `"+string(k)+"` |") {
			t.Errorf("the page has no example, or no line, of %s", k)
		}
	}
	for _, res := range constraint.Check(last, bundled(t), []*docs.Document{}) {
		switch line := res.String(); {
		case res.Status == constraint.Fail:
			t.Errorf("the example is broken: %s", line)
		case res.Status == constraint.NotChecked && !strings.Contains(page, "\n"+line+"\n"):
			t.Errorf("the page lacks %q", line)
		}
	}
	if !strings.Contains(page, "PASS    CONSTRAINTS: 6 held, 0 broken, 2 not checked\n") {
		t.Error("the page lacks the verdict")
	}
}
