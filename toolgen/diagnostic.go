// SPDX-License-Identifier: Apache-2.0

package toolgen

import (
	"cmp"
	"fmt"
	"go/token"
	"slices"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
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

// maxShown is how much of the source a message repeats, in bytes.
const maxShown = 80

// show is a part of the source for a message: cut when it is long, and in ASCII, too, when
// it has letters that may look like others.
func show(text string) string {
	cut := clip(text)
	ascii := strconv.QuoteToASCII(cut)
	switch {
	case !utf8.ValidString(cut) || strings.ContainsFunc(cut, func(r rune) bool { return !unicode.IsPrint(r) }):
		return ascii + more(text)
	case strings.ContainsFunc(cut, func(r rune) bool { return r > unicode.MaxASCII }):
		return cut + more(text) + " (" + ascii + ")"
	}
	return cut + more(text)
}

// quote is a part of the source in quotes, cut when it is long.
func quote(text string) string { return strconv.Quote(clip(text)) + more(text) }

func clip(text string) string {
	if len(text) <= maxShown {
		return text
	}
	end := maxShown
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end]
}

func more(text string) string {
	if cut := len(text) - len(clip(text)); cut > 0 {
		return fmt.Sprintf("... and %d more bytes", cut)
	}
	return ""
}
