// SPDX-License-Identifier: Apache-2.0

// Package picture shows two states of a design side by side: the sheets and the board as kicad-cli draws them, what
// changed on each of them, and what changed electrically by kicad-cli's netlists.
//
// [Compare] makes a [Diff], [Diff.WriteHTML] makes one page of it that needs no network, no server and no other file.
// All text of the design is data to that page: it is escaped, the pictures are rebuilt from what may stand in a drawing,
// and the page's own policy (Content-Security-Policy) lets nothing but its own script run and nothing be loaded.
package picture

import (
	"math"
	"slices"

	"github.com/fiducial-dev/fiducial/kicad/project"
)

// A State is one of the two designs.
type State struct {
	Name string // for a reader, for instance a revision and its subject
	Top  string // the folder that stands for the top of the repository, absolute
	// Project is what was found below Top, nil when there is no project: then everything was added or removed.
	Project *project.Project
}

// A Side tells the states apart.
type Side uint8

// The sides.
const (
	Before Side = iota
	After
)

// A Kind is how something differs.
type Kind string

// The kinds.
const (
	Added   Kind = "added"
	Removed Kind = "removed"
	Changed Kind = "changed"
)

// A Diff is what differs between two states.
type Diff struct {
	Names [2]string // of the states
	Views []View    // sheets in the order of the tree, then the board
	// Electrical is what differs in the netlists, nil when Unknown.
	Electrical []Change
	// Unknown says why the netlists could not be compared, "" when they were.
	Unknown string
	// Notes are what could not be shown, and what a reader has to know.
	Notes []string
}

// Empty reports whether nothing differs in what could be compared.
func (d *Diff) Empty() bool {
	return len(d.Electrical) == 0 && d.Unknown == "" && len(d.Notes) == 0 &&
		!slices.ContainsFunc(d.Views, func(v View) bool { return len(v.Entries) > 0 || !v.Same() })
}

// A View is one sheet, or one choice of the board's layers.
type View struct {
	ID    string // within the page
	Name  string
	Board bool
	Frame Box       // what the pictures show
	SVG   [2][]byte // a whole SVG each, nil when the state has none
	Gone  [2]string // why a picture is missing, "" when it is not
	// Entries are the items that changed, grouped for a reader.
	Entries []Entry
	Marks   []Mark
}

// Same reports whether both pictures are there and alike.
func (v View) Same() bool {
	return v.SVG[Before] != nil && string(v.SVG[Before]) == string(v.SVG[After])
}

// An Entry is a line about items that changed.
type Entry struct {
	Kind  Kind
	Text  string
	Marks []string // IDs of marks of the same view
}

// A Mark is a place in a picture.
type Mark struct {
	ID   string
	Side Side
	// Kind is empty for an item that did not change itself, and that only a change of the netlist points at.
	Kind Kind
	Box  Box
	Text string
}

// A Change is one electrical difference.
type Change struct {
	Kind  Kind
	What  string // net, pin or part
	Text  string
	Refs  []string // the parts concerned, by reference
	Nets  []string // the nets concerned, by the netlist's name
	Marks []string // IDs of marks in all views
}

// A Box is a rectangle in millimetres, y downwards. The zero Box is empty.
type Box struct {
	X1, Y1, X2, Y2 float64
	set            bool
}

// Empty reports whether nothing was added to the box.
func (b Box) Empty() bool { return !b.set }

// W is the width.
func (b Box) W() float64 { return b.X2 - b.X1 }

// H is the height.
func (b Box) H() float64 { return b.Y2 - b.Y1 }

// reach makes the box cover a point. Coordinates that no sheet can hold are left out.
func (b *Box) reach(x, y float64) {
	const most = 1e5
	if !(math.Abs(x) < most && math.Abs(y) < most) { // NaN too
		return
	}
	if !b.set {
		*b = Box{x, y, x, y, true}
		return
	}
	b.X1, b.Y1, b.X2, b.Y2 = min(b.X1, x), min(b.Y1, y), max(b.X2, x), max(b.Y2, y)
}

// cover makes the box cover another.
func (b *Box) cover(o Box) {
	if o.set {
		b.reach(o.X1, o.Y1)
		b.reach(o.X2, o.Y2)
	}
}

// grown is the box with a margin on all sides.
func (b Box) grown(by float64) Box {
	if b.set {
		b.X1, b.Y1, b.X2, b.Y2 = b.X1-by, b.Y1-by, b.X2+by, b.Y2+by
	}
	return b
}
