// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/pcb"
)

// A choice is the layers of one view, the lowest first. The outline belongs to all.
type choice struct {
	name   string
	layers []string
	always bool // shown also when nothing on it changed
}

const edge = "Edge.Cuts"

// choices are the views of a board with these copper layers.
func choices(copper []string) []choice {
	list := []choice{{"Board, front", []string{"F.Cu", "F.SilkS"}, true}}
	for _, l := range copper {
		if l != "F.Cu" && l != "B.Cu" {
			list = append(list, choice{"Board, layer " + l, []string{l}, false})
		}
	}
	return append(list,
		choice{"Board, back", []string{"B.Cu", "B.SilkS"}, true},
		choice{"Board, mask and paste of the front", []string{"F.Mask", "F.Paste"}, false},
		choice{"Board, mask and paste of the back", []string{"B.Mask", "B.Paste"}, false},
		choice{"Board, fabrication of the front", []string{"F.Fab", "F.CrtYd", "F.Adhes"}, false},
		choice{"Board, fabrication of the back", []string{"B.Fab", "B.CrtYd", "B.Adhes"}, false},
		choice{"Board, drawings", []string{
			"Dwgs.User", "Cmts.User", "Eco1.User", "Eco2.User", "Margin", "User.1", "User.2", "User.3", "User.4", "User.5",
			"User.6", "User.7", "User.8", "User.9",
		}, false},
	)
}

// enabled lists the layers of a board by KiCad's own names.
func enabled(b *pcb.Board) []string {
	var list []string
	if b == nil {
		return nil
	}
	for l := range b.Doc.Root().Get("layers").All() {
		if name := l.Arg(0).Text(); name != "" && !strings.ContainsAny(name, ", ") {
			list = append(list, name)
		}
	}
	return list
}

func copper(b *pcb.Board) []string {
	return slices.DeleteFunc(enabled(b), func(l string) bool { return !strings.HasSuffix(l, ".Cu") })
}

// onBoard are those of the layers that a board has.
func onBoard(b *pcb.Board, layers []string) []string {
	have := enabled(b)
	return slices.DeleteFunc(slices.Clone(layers), func(l string) bool { return !slices.Contains(have, l) })
}

// allCopper are the copper layers of both states.
func allCopper(sides [2]*side) []string {
	list := copper(sides[Before].board)
	for _, l := range copper(sides[After].board) {
		if !slices.Contains(list, l) {
			list = append(list, l)
		}
	}
	return list
}

// wanted are the layers to be drawn: those that are always shown and those on which something differs.
func wanted(sides [2]*side) []string {
	if sides[Before].board == nil && sides[After].board == nil {
		return nil
	}
	touched := map[string]bool{}
	for _, p := range boardPairs(sides, nil) {
		for _, i := range []*item{p.was, p.now} {
			if i != nil {
				for _, l := range i.on {
					touched[l] = true
				}
			}
		}
	}
	list := []string{edge}
	for _, c := range choices(allCopper(sides)) {
		if c.always || c.covers(slices.Collect(maps.Keys(touched))) {
			list = append(list, c.layers...)
		}
	}
	return list
}

// covers reports whether an item on these layers is seen in the view.
func (c choice) covers(on []string) bool {
	for _, l := range on {
		side, kind, all := strings.Cut(l, ".")
		for _, have := range c.layers {
			s, k, _ := strings.Cut(have, ".")
			if l == have || all && k == kind && (side == "*" || side == "F&B" && (s == "F" || s == "B")) {
				return true
			}
		}
	}
	return false
}

func boardPairs(sides [2]*side, renamed map[string]string) []pair {
	var items [2][]*item
	for i, s := range sides {
		if s.board == nil {
			continue
		}
		if i == int(Before) {
			items[i] = boardItems(s.board, renamed)
		} else {
			items[i] = boardItems(s.board, nil)
		}
	}
	return match(items[Before], items[After])
}

// boardViews makes the views of the board and returns what is to be done when all views have their marks.
func boardViews(d *Diff, m *marker, sides [2]*side, e electrical) []func() {
	var items [2][]*item
	for i, s := range sides {
		if s.board != nil {
			items[i] = boardItems(s.board, map[Side]map[string]string{Before: e.renamed}[Side(i)])
		}
	}
	pairs := match(items[Before], items[After])
	frame := boardFrame(items)
	told := map[int]bool{} // pairs that some view shows
	var focus []func()
	for _, c := range choices(allCopper(sides)) {
		var seen []pair
		for k, p := range pairs {
			outline := p.any().group && slices.Contains(p.any().on, edge)
			if c.sees(p) || outline && c.always {
				seen = append(seen, p)
				told[k] = true
			}
		}
		if !c.always && len(seen) == 0 {
			continue
		}
		n := len(d.Views)
		d.Views = append(d.Views, View{ID: fmt.Sprintf("v%d", n+1), Name: c.name, Board: true, Frame: frame})
		v := &d.Views[n]
		for i, s := range sides {
			v.SVG[i], v.Gone[i] = s.layersOf(c, frame)
		}
		m.view = v
		m.add(seen)
		focus = append(focus, func() {
			m.view = &d.Views[n]
			var shown [2][]*item
			for i := range items {
				shown[i] = slices.DeleteFunc(slices.Clone(items[i]), func(i *item) bool { return !c.covers(i.on) })
			}
			m.focus(shown, e.changes)
		})
	}
	for k, p := range pairs {
		if !told[k] {
			d.Notes = append(d.Notes, fmt.Sprintf("not in a picture: %s %s on %s", p.kind(), p.text(), strings.Join(p.any().on, ", ")))
		}
	}
	return focus
}

func (c choice) sees(p pair) bool {
	return p.was != nil && c.covers(p.was.on) || p.now != nil && c.covers(p.now.on)
}

// layersOf is the picture of some layers of a state.
func (s *side) layersOf(c choice, frame Box) (svg []byte, why string) {
	if s.board == nil {
		return nil, "there is no board"
	}
	if why, ok := s.why["board"]; ok {
		return nil, why
	}
	var stack []drawing
	for _, l := range append(slices.Clone(c.layers), edge) {
		if d, ok := s.layers[l]; ok {
			stack = append(stack, d)
		}
	}
	if len(stack) == 0 {
		return nil, "the board has no such layer"
	}
	return compose(frame, boardPaper, stack...), ""
}

// boardFrame is what to show of a board: its outline, or all that is on it when it has none.
func boardFrame(items [2][]*item) Box {
	var outline, all Box
	for _, list := range items {
		for _, i := range list {
			if slices.Contains(i.on, edge) {
				outline.cover(i.box)
			}
			if i.tag != "gr_text" && i.tag != "dimension" {
				all.cover(i.box)
			}
		}
	}
	if outline.Empty() || outline.W() == 0 || outline.H() == 0 {
		outline = all
	}
	if outline.Empty() {
		outline.reach(0, 0)
		outline.reach(297, 210)
	}
	return outline.grown(max(2, 0.06*max(outline.W(), outline.H())))
}
