// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// A Decision is a line of DECISIONS.md (B-120).
type Decision struct {
	Date    time.Time // only the day counts
	Run     string    // id of the run
	What    string
	Why     string
	Affects []string
}

// oneLine makes a text fit a line of markdown.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// String is the line, without its end.
func (d Decision) String() string {
	s := fmt.Sprintf("- %s, run %s: %s", d.Date.Format(time.DateOnly), d.Run, oneLine(d.What))
	if d.Why != "" {
		s += " Why: " + oneLine(d.Why)
	}
	if len(d.Affects) > 0 {
		s += " Affects: " + oneLine(strings.Join(d.Affects, ", "))
	}
	return s
}

// AppendDecision gives the edit that adds a decision as the last line of DECISIONS.md. What is there stays, byte for
// byte. An empty src is a file that is not there yet: it gets a heading.
func AppendDecision(file string, src []byte, d Decision) sexpr.Edit {
	eol := lineEnd(src)
	text := d.String() + eol
	switch {
	case len(src) == 0:
		text = "# Decisions" + eol + eol + text
	case src[len(src)-1] != '\n':
		text = eol + text
	}
	return sexpr.Edit{File: file, Start: len(src), End: len(src), New: text}
}

func lineEnd(src []byte) string {
	if i := bytes.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// NameConstraint gives the edits that make a document name a constraint: its row in the table of constraints is
// replaced, else one is added to that table, else a section with the table at the end. Without a difference there is
// no edit. See package constraint for the registry, which is the other place (B-113).
func NameConstraint(doc *Document, name, text, source string) []sexpr.Edit {
	name, text, source = oneLine(name), oneLine(text), oneLine(source)
	f := &fixer{checker: &checker{doc: doc}}
	t := constraintTable(doc)
	cells := []string{"`" + name + "`", escape(text), escape(source)}
	if t == nil {
		f.addSection(append([]string{"## " + constraintsHeading, ""}, table([]string{"Key", "Constraint", "Source"}, [][]string{cells})...)...)
		return f.edits
	}
	want := map[int]string{}
	for i := range min(len(cells), len(t.Header.Cells)) {
		want[i] = cells[i]
	}
	for i := range t.Rows {
		row := &t.Rows[i]
		if len(row.Cells) == 0 || row.Cells[0].Text != name {
			continue
		}
		for j, raw := range want {
			if j >= len(row.Cells) || row.Cells[j].Text == plainText(raw) {
				delete(want, j)
			}
		}
		f.replace(row, []*share{{cells: want}})
		return f.edits
	}
	for i := range t.Header.Cells {
		if _, ok := want[i]; !ok {
			want[i] = ""
		}
	}
	f.insert(t.end, f.line(&t.Header, want))
	return f.edits
}

// constraintTable finds the table whose first columns are the key and the constraint.
func constraintTable(doc *Document) *Table {
	for _, t := range doc.Tables {
		if c := t.Header.Cells; len(c) >= 2 && key(c[0].Text) == "key" && strings.HasPrefix(key(c[1].Text), "constraint") {
			return t
		}
	}
	return nil
}

// Names reports whether a document names a constraint by its key: as a word of its own, outside fenced blocks and
// comments.
func (d *Document) Names(name string) bool {
	if strings.TrimSpace(name) == "" {
		return false
	}
	word := regexp.MustCompile(`(^|[^\p{L}\p{N}_.-])` + regexp.QuoteMeta(name) + `($|[^\p{L}\p{N}_.-]|\.($|\s))`)
	lines := splitLines(d.Src)
	blocks(lines)
	for _, l := range lines {
		if !l.hidden && word.MatchString(l.text) {
			return true
		}
	}
	return false
}

// ConstraintKeys are the keys that the table of constraints lists, with their lines.
func (d *Document) ConstraintKeys() map[string]int {
	keys := map[string]int{}
	if t := constraintTable(d); t != nil {
		for _, row := range t.Rows {
			if len(row.Cells) > 0 && row.Cells[0].Text != "" {
				keys[row.Cells[0].Text] = row.Line
			}
		}
	}
	return keys
}
