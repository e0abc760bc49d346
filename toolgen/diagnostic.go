// SPDX-License-Identifier: Apache-2.0

package toolgen

import (
	"cmp"
	"fmt"
	"go/token"
	"slices"
	"strings"
)

// A Diagnostic is one mistake in the source. Its file name is absolute.
type Diagnostic struct {
	Pos     token.Position
	Message string
}

func (d Diagnostic) String() string { return d.Pos.String() + ": " + d.Message }

// An Error holds every mistake that was found in one run, sorted by position.
// Nothing was written.
type Error struct{ Diagnostics []Diagnostic }

func (e *Error) Error() string {
	lines := make([]string, len(e.Diagnostics))
	for i, d := range e.Diagnostics {
		lines[i] = d.String()
	}
	return strings.Join(lines, "\n")
}

// A reporter gathers mistakes.
type reporter struct {
	fset  *token.FileSet
	found []Diagnostic
}

func (r *reporter) at(pos token.Pos, format string, args ...any) {
	p := r.fset.Position(pos)
	if p.Column == 0 { // a //line comment that names no column hides it
		p.Column = r.fset.PositionFor(pos, false).Column
	}
	r.atPosition(p, format, args...)
}

func (r *reporter) atPosition(pos token.Position, format string, args ...any) {
	r.found = append(r.found, Diagnostic{Pos: pos, Message: fmt.Sprintf(format, args...)})
}

// err is nil when no mistake was found.
func (r *reporter) err() error {
	if len(r.found) == 0 {
		return nil
	}
	slices.SortStableFunc(r.found, func(a, b Diagnostic) int {
		return cmp.Or(
			cmp.Compare(a.Pos.Filename, b.Pos.Filename),
			cmp.Compare(a.Pos.Line, b.Pos.Line),
			cmp.Compare(a.Pos.Column, b.Pos.Column),
			cmp.Compare(a.Message, b.Message))
	})
	return &Error{Diagnostics: slices.Compact(r.found)}
}
