// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// An item is one thing on a sheet or board.
type item struct {
	tag  string
	id   string // the UUID, "" for none
	name string // for a reader; for items of a group the group's
	// group is set for items that are listed together, such as wires and the tracks of a net.
	group bool
	what  string // the noun in front of the name, for instance wire or label; may be empty
	look  string // all that is drawn; equal looks are the same item
	net   string // of a board item, not part of look
	facts []fact // what a reader wants to know of a change, in order
	box   Box
	refs  []string
	nets  []string
	on    []string // layers
}

// A fact is a property of an item. What stands behind a NUL in its name tells facts apart and is not shown.
type fact struct{ name, value string }

func (f fact) word() string {
	word, _, _ := strings.Cut(f.name, "\x00")
	return word
}

// opaque is the value of a fact that is compared and not shown.
func opaque(value string) string { return "\x00" + value }

// A pair is an item in both states; one of the two is nil when it was added or removed.
type pair struct{ was, now *item }

func (p pair) kind() Kind {
	switch {
	case p.was == nil:
		return Added
	case p.now == nil:
		return Removed
	}
	return Changed
}

func (p pair) any() *item {
	if p.now != nil {
		return p.now
	}
	return p.was
}

// match finds what differs: items are the same by UUID, else by their looks, else by name.
func match(was, now []*item) []pair {
	m := matcher{taken: map[*item]bool{}}
	byID := index(was, func(i *item) string { return i.id })
	var fresh []*item
	for _, n := range now {
		w := m.take(byID, n.id)
		if w == nil || w.tag != n.tag {
			delete(m.taken, w)
			fresh = append(fresh, n)
			continue
		}
		m.add(w, n)
	}
	for _, key := range []func(*item) string{
		func(i *item) string { return i.tag + i.look + "\x00" + i.net },
		func(i *item) string {
			if i.group || i.name == "" {
				return ""
			}
			return i.tag + i.name
		},
	} {
		left := index(slices.DeleteFunc(slices.Clone(was), func(i *item) bool { return m.taken[i] }), key)
		fresh = slices.DeleteFunc(fresh, func(n *item) bool {
			w := m.take(left, key(n))
			if w != nil {
				m.add(w, n)
			}
			return w != nil
		})
	}
	for _, n := range fresh {
		m.pairs = append(m.pairs, pair{now: n})
	}
	for _, w := range was {
		if !m.taken[w] {
			m.pairs = append(m.pairs, pair{was: w})
		}
	}
	return m.pairs
}

type matcher struct {
	taken map[*item]bool
	pairs []pair
}

func index(list []*item, key func(*item) string) map[string][]*item {
	by := map[string][]*item{}
	for _, i := range list {
		if k := key(i); k != "" {
			by[k] = append(by[k], i)
		}
	}
	return by
}

// take returns an item of that key that was not taken before.
func (m *matcher) take(by map[string][]*item, key string) *item {
	list := by[key]
	for len(list) > 0 && m.taken[list[0]] {
		list = list[1:]
	}
	if key == "" || len(list) == 0 {
		return nil
	}
	by[key] = list[1:]
	m.taken[list[0]] = true
	return list[0]
}

func (m *matcher) add(was, now *item) {
	if was.look != now.look || was.net != now.net {
		m.pairs = append(m.pairs, pair{was, now})
	}
}

// text says what changed.
func (p pair) text() string {
	i := p.any()
	noun := i.what + " "
	if i.group || i.what == "" {
		noun = ""
	}
	if p.kind() != Changed {
		return noun + i.name
	}
	name := noun + i.name
	if p.was.name != p.now.name {
		name = noun + p.was.name + " → " + p.now.name
	}
	var said []string
	for _, f := range p.now.facts {
		old, found := factOf(p.was.facts, f.name)
		switch {
		case !found:
			said = append(said, f.word()+" "+show(f.value)+" added")
		case old != f.value && f.name == place:
			said = append(said, "moved")
		case old != f.value && strings.HasPrefix(f.value, opaque("")):
			said = append(said, f.word()+" changed")
		case old != f.value:
			said = append(said, f.word()+" "+show(old)+" → "+show(f.value))
		}
	}
	for _, f := range p.was.facts {
		if _, found := factOf(p.now.facts, f.name); !found {
			said = append(said, f.word()+" "+show(f.value)+" removed")
		}
	}
	if len(said) == 0 && p.was.name == p.now.name {
		said = append(said, "drawn differently")
	}
	return strings.TrimSuffix(name+": "+strings.Join(said, ", "), ": ")
}

// place is the fact that says where an item stands, which is not spelled out.
const place = "position"

func factOf(list []fact, name string) (string, bool) {
	i := slices.IndexFunc(list, func(f fact) bool { return f.name == name })
	if i < 0 {
		return "", false
	}
	return list[i].value, true
}

func show(s string) string {
	const most = 60
	if r := []rune(s); len(r) > most {
		s = string(r[:most]) + "…"
	}
	if s == "" {
		return "(empty)"
	}
	return s
}

// look writes a node in a form that does not depend on white space and leaves out lists that say nothing about what is
// seen: UUIDs, instances and what skip names.
func look(n sexpr.Node, skip ...string) string {
	var b strings.Builder
	writeLook(&b, n, skip)
	return b.String()
}

// unseen are lists that say nothing about what is seen.
func unseen(tag string) bool {
	switch tag {
	case "uuid", "tstamp", "tedit", "instances", "fields_autoplaced", "exclude_from_sim", "embedded_fonts", "net", "net_name", "pinfunction",
		"pintype", "locked", "path", "sheetname", "sheetfile", "group":
		return true
	}
	return false
}

func writeLook(b *strings.Builder, n sexpr.Node, skip []string) {
	if n.Kind() != sexpr.List {
		t := n.Text()
		if f, err := strconv.ParseFloat(t, 64); err == nil && n.Kind() == sexpr.Word {
			t = strconv.FormatFloat(f, 'f', -1, 64) // 1.50 is 1.5
		}
		b.WriteString(strconv.Quote(t))
		return
	}
	b.WriteByte('(')
	for c := range n.All() {
		if c.Kind() == sexpr.List {
			if tag := c.Tag(); unseen(tag) || slices.Contains(skip, tag) {
				continue
			}
		}
		writeLook(b, c, skip)
		b.WriteByte(' ')
	}
	b.WriteByte(')')
}

// reachAll makes a box of every point that a node names directly or below: at, start, mid, end, center, xy.
func reachAll(n sexpr.Node) Box {
	var b Box
	for c := range n.Walk() {
		switch c.Tag() {
		case "at", "start", "mid", "end", "xy":
			b.reach(xy(c))
		case "center":
			x, y := xy(c)
			r, ok := c.Parent().Get("radius").Number(0)
			if ex, ey := xy(c.Parent().Get("end")); !ok && c.Parent().Get("end").OK() { // of a board: a point on the circle
				r = max(abs(ex-x), abs(ey-y))
			}
			b.reach(x-r, y-r)
			b.reach(x+r, y+r)
		}
	}
	return b
}

func abs(f float64) float64 { return max(f, -f) }

func xy(n sexpr.Node) (x, y float64) {
	x, _ = n.Number(0)
	y, _ = n.Number(1)
	return x, y
}

// textBox is about where a text stands: KiCad's strokes are about 0.9 of the size wide.
func textBox(n sexpr.Node, text string) Box {
	x, y := xy(n.Get("at"))
	angle, _ := n.Get("at").Number(2)
	size, ok := n.Get("effects", "font", "size").Number(0)
	if !ok {
		size = 1.27
	}
	var lines, wide int
	for l := range strings.SplitSeq(text, "\n") {
		lines++
		wide = max(wide, len([]rune(l)))
	}
	w, h := 0.9*size*float64(wide), 1.6*size*float64(lines)
	left, right, up, down := w/2, w/2, h/2, h/2
	for c := range n.Get("effects", "justify").All() {
		switch c.Text() {
		case "left":
			left, right = 0, w
		case "right":
			left, right = w, 0
		case "bottom": // the text stands on its place
			up, down = h, h/8
		case "top":
			up, down = h/8, h
		}
	}
	var b Box
	if int(angle)%180 == 90 {
		b.reach(x-up, y-right)
		b.reach(x+down, y+left)
		return b
	}
	if int(angle)%360 == 180 {
		left, right = right, left
	}
	b.reach(x-left, y-up)
	b.reach(x+right, y+down)
	return b
}

// marker gathers the entries and marks of a view.
type marker struct {
	view *View
	// by part and by net, the IDs of marks
	refs, nets map[string][]string
}

func (m *marker) mark(side Side, kind Kind, i *item, text string) string {
	id := fmt.Sprintf("%s-%d", m.view.ID, len(m.view.Marks))
	m.view.Marks = append(m.view.Marks, Mark{ID: id, Side: side, Kind: kind, Box: i.box, Text: text})
	for _, r := range i.refs {
		m.refs[r] = append(m.refs[r], id)
	}
	for _, n := range i.nets {
		m.nets[n] = append(m.nets[n], id)
	}
	return id
}

// add makes entries of pairs: groups by name, noun and kind; others one by one.
func (m *marker) add(pairs []pair) {
	type key struct {
		kind       Kind
		what, name string
	}
	at, count := map[key]int{}, map[key]int{}
	for _, p := range pairs {
		text := p.text()
		var ids []string
		for side, i := range []*item{p.was, p.now} {
			if i != nil && !i.box.Empty() {
				ids = append(ids, m.mark(Side(side), p.kind(), i, text))
			}
		}
		i := p.any()
		if !i.group {
			m.view.Entries = append(m.view.Entries, Entry{Kind: p.kind(), Text: text, Marks: ids})
			continue
		}
		k := key{p.kind(), i.what, text}
		n, ok := at[k]
		if !ok {
			n = len(m.view.Entries)
			at[k] = n
			m.view.Entries = append(m.view.Entries, Entry{Kind: k.kind})
		}
		count[k]++
		e := &m.view.Entries[n]
		e.Marks = append(e.Marks, ids...)
		e.Text = strings.TrimSpace(plural(count[k], i.what) + " " + text)
	}
	slices.SortStableFunc(m.view.Entries, func(a, b Entry) int { return cmp.Compare(order(a.Kind), order(b.Kind)) })
}

func order(k Kind) int { return slices.Index([]Kind{Changed, Added, Removed}, k) }

func plural(n int, noun string) string {
	stem, y := strings.CutSuffix(noun, "y")
	switch {
	case n == 1:
	case y:
		noun = stem + "ies"
	default:
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}
