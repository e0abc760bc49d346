// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"slices"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/task"
)

// limited is a divider of R1 10k and R2 4k7 with a limit that holds and one that does not.
func limited() map[string]string {
	files := divider()
	files["docs/SPEC.md"] = "# S\n\n| Key | Constraint | Source |\n|---|---|---|\n| low | R2 at most 5k | s |\n| high | R1 at least 1M | s |\n"
	files["docs/constraints.json"] = `{"version":1,"constraints":[` +
		`{"key":"low","text":"R2 at most 5k","source":"s","limits":[{"kind":"range","field":"Value","parts":["R2"],"max":"5k"}]},` +
		`{"key":"high","text":"R1 at least 1M","source":"s","limits":[{"kind":"range","field":"Value","parts":["R1"],"min":"1M"}]}]}` + "\n"
	return files
}

// B-158: done is refused with the figures while the run breaks a limit that held at its start; one that did not hold
// before does not count, nor one that the run changes.
func TestLoop_B158_Limits(t *testing.T) {
	t.Parallel()
	set := func(text string) []any {
		return []any{"edit_symbol", in{"reference": "R2", "field": "Value", "text": text}, "run_erc", in{}, "check_constraints", in{}, "check_drift", in{}}
	}
	t.Run("broken and mended", func(t *testing.T) {
		t.Parallel()
		p := playRun(t, limited(),
			calls(slices.Concat(proposed, set("6k8"), finished)...),
			calls(slices.Concat(set("2k2"), finished)...))
		p.ends(task.Done, task.PathDone)
		if got := p.answers("finish"); len(got) != 1 || !strings.Contains(got[0], "R2: 6.8 k is over the most of 5 k") {
			t.Errorf("the first finish : %q", got)
		}
		if got := p.answers("check_constraints"); len(got) != 1 || !strings.Contains(got[0], "CONSTRAINTS FAIL: the run breaks 1 that held at its start: FAIL low") || !strings.Contains(got[0], "FAIL high") {
			t.Errorf("check_constraints: %q", got)
		}
	})
	records := func(most string, more ...any) []any {
		return slices.Concat(proposed, []any{
			"record_constraint",
			in{"key": "low", "text": "R2 at most " + most, "source": "s", "limits": []in{{"kind": "range", "field": "Value", "parts": []string{"R2"}, "max": most}}},
			"record_decision",
			in{"what": "low is " + most, "why": "w"},
		}, more, finished)
	}
	t.Run("the run loosens it", func(t *testing.T) {
		t.Parallel()
		playRun(t, limited(), calls(records("10k", set("6k8")...)...)).ends(task.Done, task.PathDone)
	})
	t.Run("the run records what does not hold yet", func(t *testing.T) {
		t.Parallel()
		playRun(t, limited(), calls(records("1k", "check_drift", in{})...)).ends(task.Done, task.PathDone)
	})
}

// B-112: footprints come from the installed libraries, and a wrong name is answered with similar ones.
func TestFootprints(t *testing.T) {
	t.Parallel()
	b := newTable(t, divider())
	if text, ok := b.call("footprint_search", in{"words": "R_0603"}); !ok {
		t.Skipf("no footprint libraries here: %s", text)
	}
	if text := b.must("footprint_pads", in{"footprint": "Resistor_SMD:R_0603_1608Metric"}); !strings.Contains(text, "pads: 1, 2") {
		t.Errorf("got %s", text)
	}
	b.refuses("footprint_pads", in{"footprint": "Resistor_SMD:R_0603_1608Metrik"}, "R_0603_1608Metric")
	b.refuses("footprint_pads", in{"footprint": "R_0603_1608Metric"}, "similar names: Resistor_SMD:R_0603_1608Metric")
	b.refuses("footprint_pads", in{"footprint": "Resistors:R_0603_1608Metric"}, "Resistor_SMD:R_0603_1608Metric")
}
