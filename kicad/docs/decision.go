// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

var (
	// numbered is a decision with a number, as logs have them: "- D7, ...", "## ADR-007: ...", "| DEC_3 |", "## 4. ...".
	numbered = regexp.MustCompile(`(?i)^[\s>]*(?:[-*+]\s+|#+\s+|\|\s*|\*\*)[*_\[` + "`" + `]*((?:ADR|DEC|DR|D)[-_ ]?|Decision\s+)([0-9]{1,6})(?:\s*[,:.)|*_\]\x{2013}-]|$)`)
	chapter  = regexp.MustCompile(`^#+\s+([0-9]{1,6})[.:)]\s`)
	// unnumbered is a line that earlier versions wrote.
	unnumbered = regexp.MustCompile(`^- [0-9]{4}-[0-9]{2}-[0-9]{2}, run `)
)

// own is the mark before a number where a log has none of its own. D alone would be a diode.
const own = "DEC-"

// NextDecision is what the next decision of a log is called: one above the highest number in it, in the spelling of
// that one (ADR-007 is followed by ADR-008), else DEC-1 and so on. Lines without a number, as they were once written,
// count as the first ones. Fenced blocks and comments do not count.
func NextDecision(src []byte) string {
	lines := splitLines(src)
	blocks(lines)
	highest, plain := 0, 0
	prefix, width := own, 0
	for _, l := range lines {
		switch m, c := numbered.FindStringSubmatch(l.text), chapter.FindStringSubmatch(l.text); {
		case l.hidden:
		case m != nil:
			if n, _ := strconv.Atoi(m[2]); n > highest { // digits alone, and few
				highest, prefix, width = n, spelling(m[1]), len(m[2])
			}
		case c != nil:
			if n, _ := strconv.Atoi(c[1]); n > highest {
				highest, prefix, width = n, own, 0
			}
		case unnumbered.MatchString(l.text):
			plain++
		}
	}
	return fmt.Sprintf("%s%0*d", prefix, width, max(highest, plain)+1)
}

// spelling is the mark before a number, without what would part it in a line.
func spelling(prefix string) string {
	if strings.HasPrefix(strings.ToLower(prefix), "decision") {
		return own
	}
	return strings.TrimRight(prefix, " ")
}

// AppendNumbered is [AppendDecision] for a line that begins with what the decision is called, see [NextDecision].
func AppendNumbered(file string, src []byte, name string, d Decision) sexpr.Edit {
	e := AppendDecision(file, src, d)
	if i := strings.LastIndex(e.New, d.String()); i >= 0 {
		e.New = e.New[:i] + d.Named(name) + e.New[i+len(d.String()):]
	}
	return e
}

// Named is the line with what the decision is called: "- DEC-7, 2026-11-30, run x: ...".
func (d Decision) Named(name string) string {
	return "- " + name + ", " + strings.TrimPrefix(d.String(), "- ")
}
