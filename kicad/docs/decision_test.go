// SPDX-License-Identifier: Apache-2.0

package docs_test

import (
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// A decision gets the number behind the highest of the log, in the log's own spelling.
func TestNextDecision(t *testing.T) {
	for text, want := range map[string]string{
		"":                           "DEC-1",
		"# Decisions\n\nOne line.\n": "DEC-1",
		"- 2026-11-30, run r1: a\n- 2026-11-30, run r2: b\n":         "DEC-3",
		"- 2026-11-30, run r1: a\r\n- D2, 2026-11-30, run r2: b\r\n": "D3",
		"- D9, x\n- D10, y\n- D3, z\n":                               "D11",
		"## ADR-007: use an LDO\n\nBecause.\n":                       "ADR-008",
		"| DEC_3 | use an LDO |\n":                                   "DEC_4",
		"## Decision 4: x\n":                                         "DEC-5",
		"## 12. Use an LDO\n":                                        "DEC-13",
		"- **D-041** x\n":                                            "D-042",
		"D1 is the green LED\n- 3V3 comes from U1\n":                 "DEC-1",
		"```\n- D7, an example\n```\n<!-- - D8 -->\n- D2, real\n":    "D3",
		"- D12345678901234567890, x\n":                               "DEC-1",
		"\xef\xbb\xbf# D\n\n- D1, a":                                 "D2",
		"- D4 is the green LED\n":                                    "DEC-1",
		"- the diode D4 is green\n":                                  "DEC-1",
	} {
		if got := docs.NextDecision([]byte(text)); got != want {
			t.Errorf("%q: %s, want %s", text, got, want)
		}
	}
}

// B-120: one line more with its name, and every byte that was there stays.
func TestAppendNumbered(t *testing.T) {
	d := docs.Decision{Date: time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC), Run: "r1", What: "Use - 2026-11-30, run r1: Use.", Why: "4 mA"}
	const line = "- D2, 2026-11-30, run r1: Use - 2026-11-30, run r1: Use. Why: 4 mA"
	for was, want := range map[string]string{
		"":          "# Decisions\n\n" + line + "\n",
		"# D\r\n":   "# D\r\n" + line + "\r\n",
		"- D1, old": "- D1, old\n" + line + "\n",
	} {
		got, err := sexpr.Apply([]byte(was), []sexpr.Edit{docs.AppendNumbered("DECISIONS.md", []byte(was), "D2", d)})
		if err != nil || string(got) != want {
			t.Errorf("%q, %v, want %q", got, err, want)
		}
	}
}
