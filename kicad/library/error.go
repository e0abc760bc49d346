// SPDX-License-Identifier: Apache-2.0

package library

import (
	"fmt"
	"strings"
)

// A Kind is what a caller may branch on.
type Kind uint8

// The kinds.
const (
	NoLibraries   Kind = iota + 1 // no table, or none of its libraries can be read: nothing is known, and nothing is guessed
	NoSuchLibrary                 // no table names it
	NoSuchSymbol                  // the library has no such symbol
	NoSuchFootprint
	Unreadable // the library is named and cannot be read
	BadQuery   // an expression that cannot be understood, or a name without a library
)

// String names the kind.
func (k Kind) String() string {
	names := []string{"", "no libraries", "no such library", "no such symbol", "no such footprint", "unreadable", "bad query"}
	if int(k) >= len(names) {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return names[k]
}

// An Error is every failure of this package but the end of the caller's context.
type Error struct {
	Kind       Kind
	Detail     string   // what is wrong and what to do
	Candidates []string // names that may have been meant, the likeliest first
	Err        error    // the cause, may be nil
}

func (e *Error) Error() string {
	s := "library: " + e.Detail
	if len(e.Candidates) > 0 {
		s += "; there is " + strings.Join(e.Candidates, ", ")
	}
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }

// none says that there are no libraries of a kind, and why.
func (s *Set) none(what string, list []Library) *Error {
	var b strings.Builder
	fmt.Fprintf(&b, "no %s libraries can be read here, so nothing is known about %ss", what, what)
	switch {
	case len(list) > 0:
		fmt.Fprintf(&b, ": of %d in the tables none is there (%s: %s)", len(list), list[0].Name, list[0].Problem)
	case len(s.problems) > 0:
		b.WriteString(": " + strings.Join(s.problems, "; "))
	case len(s.looked) > 0:
		b.WriteString(": there is no table among " + strings.Join(s.looked, ", "))
	}
	b.WriteString("; install KiCad's libraries (Debian: kicad-symbols, kicad-footprints)")
	return &Error{Kind: NoLibraries, Detail: b.String()}
}

// named finds a library that can be read.
func (s *Set) named(what, name string, list []Library) (Library, error) {
	readable := 0
	for _, l := range list {
		if l.Problem == "" {
			readable++
		}
		if l.Name != name {
			continue
		}
		if l.Problem != "" {
			return l, &Error{Kind: Unreadable, Detail: what + " library " + name + " cannot be read: " + l.Problem}
		}
		return l, nil
	}
	if readable == 0 {
		return Library{}, s.none(what, list)
	}
	var names []string
	for _, l := range list {
		names = append(names, l.Name)
	}
	return Library{}, &Error{Kind: NoSuchLibrary, Detail: fmt.Sprintf("no table names a %s library %q", what, name), Candidates: similar(name, names)}
}
