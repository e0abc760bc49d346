// SPDX-License-Identifier: Apache-2.0

package library

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// A Pin is a pin of a symbol.
type Pin struct {
	Number string
	Name   string // ~ for none, as KiCad writes it
	// Type is the electrical type as KiCad spells it: input, output, bidirectional, tri_state, passive, free,
	// unspecified, power_in, power_out, open_collector, open_emitter, no_connect.
	Type   string
	Shape  string // for instance line, inverted, clock
	Unit   int    // 0 for a pin of all units
	Hidden bool   // hidden power inputs join the net of their name
	// X and Y say where a wire reaches it, in millimetres in the symbol's own coordinates, y upwards.
	X, Y       float64
	Alternates []string // other functions by name
}

// Pins returns a symbol with its pins by number, of all units; of two body styles the first. id is LIBRARY:NAME. Errors:
// BadQuery, NoLibraries, NoSuchLibrary, NoSuchSymbol with names that are similar, Unreadable, and the end of ctx.
func (s *Set) Pins(ctx context.Context, id string) (Symbol, []Pin, error) {
	library, name, ok := strings.Cut(id, ":")
	if !ok || library == "" || name == "" {
		return Symbol{}, nil, &Error{Kind: BadQuery, Detail: fmt.Sprintf("%q is no LIBRARY:NAME such as Device:R", id)}
	}
	if ctx.Err() != nil {
		return Symbol{}, nil, context.Cause(ctx)
	}
	l, err := s.named("symbol", library, s.symbols)
	if err != nil {
		return Symbol{}, nil, err
	}
	x, err := s.index(l)
	if err != nil {
		return Symbol{}, nil, err
	}
	line := x.line(name)
	if len(line) == 0 {
		var names []string
		for _, e := range x.entries {
			names = append(names, e.Name)
		}
		e := &Error{Kind: NoSuchSymbol, Detail: fmt.Sprintf("library %s has no symbol %q", library, name), Candidates: similar(name, names)}
		if x.problem != "" {
			e.Detail += " (" + x.problem + ")"
		}
		return Symbol{}, nil, e
	}
	symbol := line[0].Symbol
	symbol.Library = l.Name
	root := line[len(line)-1]
	if root.Extends != "" {
		return symbol, nil, &Error{Kind: Unreadable, Detail: fmt.Sprintf("%s extends %s, which library %s has not", id, root.Extends, library)}
	}
	src, err := root.source()
	if err != nil {
		return symbol, nil, &Error{Kind: Unreadable, Detail: "symbol library " + library + " cannot be read", Err: err}
	}
	doc, bad := sexpr.ParseTolerant(src)
	if len(bad) > 0 {
		return symbol, nil, &Error{Kind: Unreadable, Detail: id + " is broken", Err: bad[0]}
	}
	return symbol, readPins(doc.Root()), nil
}

// readPins collects the pins of a symbol's units.
func readPins(symbol sexpr.Node) []Pin {
	var pins []Pin
	for part := range symbol.Lists("symbol") {
		unit, style := unitOf(part.Arg(0).Text())
		if style > 1 {
			continue
		}
		for n := range part.Lists("pin") {
			p := Pin{
				Type: n.Arg(0).Text(), Shape: n.Arg(1).Text(), Unit: unit,
				Name: n.Get("name").Arg(0).Text(), Number: n.Get("number").Arg(0).Text(), Hidden: hidden(n),
			}
			p.X, _ = n.Get("at").Number(0)
			p.Y, _ = n.Get("at").Number(1)
			for a := range n.Lists("alternate") {
				p.Alternates = append(p.Alternates, a.Arg(0).Text())
			}
			pins = append(pins, p)
		}
	}
	slices.SortStableFunc(pins, func(a, b Pin) int { return cmp.Or(compareNumbers(a.Number, b.Number), cmp.Compare(a.Unit, b.Unit)) })
	return pins
}

// hidden reports whether a pin is marked hide, or (hide yes) since KiCad 8.
func hidden(pin sexpr.Node) bool {
	if yes, found := pin.Flag("hide"); found {
		return yes
	}
	for c := range pin.All() {
		if c.Kind() == sexpr.Word && c.Text() == "hide" {
			return true
		}
	}
	return false
}

// unitOf reads the end of a part's name: NAME_unit_style.
func unitOf(name string) (unit, style int) {
	parts := strings.Split(name, "_")
	if len(parts) < 3 {
		return 0, 0
	}
	unit, _ = strconv.Atoi(parts[len(parts)-2])
	style, _ = strconv.Atoi(parts[len(parts)-1])
	return unit, style
}

// compareNumbers orders pin numbers: 2 before 10, A2 before A10 before B1.
func compareNumbers(a, b string) int {
	letters := func(s string) (string, int) {
		i := strings.IndexAny(s, "0123456789")
		if i < 0 {
			return s, -1
		}
		n, err := strconv.Atoi(s[i:])
		if err != nil {
			return s, -1
		}
		return s[:i], n
	}
	al, an := letters(a)
	bl, bn := letters(b)
	return cmp.Or(cmp.Compare(al, bl), cmp.Compare(an, bn), cmp.Compare(a, b))
}

// similar lists names that may have been meant, at most eight.
func similar(name string, names []string) []string {
	type near struct {
		name string
		far  int
	}
	want := strings.ToLower(name)
	var list []near
	for _, n := range names {
		low := strings.ToLower(n)
		far := distance(want, low)
		switch {
		case low == want:
			far = -2
		case strings.HasPrefix(low, want) || strings.HasPrefix(want, low) && len(low) > 2:
			far = min(far, 1)
		case strings.Contains(low, want):
			far = min(far, 2)
		}
		if far <= max(2, len(want)/3) {
			list = append(list, near{n, far})
		}
	}
	slices.SortFunc(list, func(a, b near) int {
		return cmp.Or(cmp.Compare(a.far, b.far), cmp.Compare(len(a.name), len(b.name)), cmp.Compare(a.name, b.name))
	})
	var found []string
	for _, n := range list[:min(len(list), 8)] {
		found = append(found, n.name)
	}
	return found
}

// distance counts the single letters to be changed, added or removed.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for i := range row {
		row[i] = i
	}
	for i := range len(a) {
		last := row[0]
		row[0] = i + 1
		for k := range len(b) {
			change := last
			if a[i] != b[k] {
				change++
			}
			last = row[k+1]
			row[k+1] = min(change, row[k]+1, row[k+1]+1)
		}
	}
	return row[len(b)]
}
