// SPDX-License-Identifier: Apache-2.0

package sch_test

import (
	"errors"
	"maps"
	"math/rand/v2"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fiducial-dev/fiducial/kicad/internal/boardcases/drawn"
	"github.com/fiducial-dev/fiducial/kicad/sch"
	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// Every edit of every drawn case that is not refused changes what it names and no other byte, and its inverse gives the
// very same bytes.
func TestEdits_ThereAndBack(t *testing.T) {
	rnd := rand.New(rand.NewPCG(6, 11))
	done := map[string]int{}
	for _, c := range drawn.All() {
		for _, root := range c.Asked() {
			if path.Ext(root) != ".kicad_sch" {
				continue
			}
			b := &back{t: t, root: root, name: c.Name + "/" + root, files: c.Files, done: done, rnd: rnd}
			if d, err := sch.Load(mapFS(c.Files), root); err == nil {
				b.fields(d)
				b.references(d)
				b.nets(d)
			}
		}
	}
	for _, what := range []string{"field", "flag", "reference", "net"} {
		if done[what] < 60 {
			t.Errorf("%d edits of a %s went there and back", done[what], what)
		}
	}
	t.Log(done)
}

type back struct {
	t     *testing.T
	root  string
	name  string
	files map[string]string
	done  map[string]int
	rnd   *rand.Rand
}

// try makes an edit and its inverse. Tokens that KiCad would have written otherwise come back in its spelling, and are
// left out.
func (b *back) try(what string, edit, inverse func(*sch.Design) ([]sexpr.Edit, error)) {
	b.t.Helper()
	d, err := sch.Load(mapFS(b.files), b.root)
	if err != nil {
		b.t.Fatal(err)
	}
	edits, err := edit(d)
	if e := (*sch.EditError)(nil); errors.As(err, &e) {
		return
	}
	if err != nil || len(edits) == 0 {
		b.t.Errorf("%s: %s: %d edits, %v", b.name, what, len(edits), err)
		return
	}
	for _, e := range edits {
		if !utf8.ValidString(e.Old) || e.Old != "" && e.Old[0] == '"' && sexpr.Quote(sexpr.Unquote([]byte(e.Old))) != e.Old || e.Old != "" && !strings.ContainsAny(e.Old[:1], "\"(") {
			return
		}
	}
	after := b.apply(edits)
	was := b.files
	b.files = after
	defer func() { b.files = was }()
	if d, err = sch.Load(mapFS(after), b.root); err != nil {
		b.t.Fatal(err)
	}
	if edits, err = inverse(d); err != nil {
		b.t.Errorf("%s: the way back of %s: %v", b.name, what, err)
		return
	}
	if now := b.apply(edits); !maps.Equal(now, was) {
		b.t.Errorf("%s: %s there and back is not the same", b.name, what)
	}
	b.done[what]++
}

func (b *back) apply(edits []sexpr.Edit) map[string]string {
	b.t.Helper()
	out := maps.Clone(b.files)
	for name, list := range sexpr.ByFile(edits) {
		data, err := sexpr.Apply([]byte(b.files[name]), list)
		if err != nil {
			b.t.Fatal(err)
		}
		out[name] = string(data)
	}
	return out
}

// odd is a text with what may hurt.
func (b *back) odd() string {
	pieces := []string{"x", "7", " ", "\"", "\\", "(", ")", "~{y}", "{slash}", "/", "\u03a9", "\U0001F50B", "#", ";", "%", "'"}
	var s strings.Builder
	s.WriteString("Z")
	for range 1 + b.rnd.IntN(6) {
		s.WriteString(pieces[b.rnd.IntN(len(pieces))])
	}
	return s.String() + "Z"
}

func (b *back) fields(d *sch.Design) {
	for _, p := range d.Parts() {
		text := b.odd()
		b.try("field", func(d *sch.Design) ([]sexpr.Edit, error) { return d.SetProperty(p.Ref, "Value", text) },
			func(d *sch.Design) ([]sexpr.Edit, error) {
				if now, err := d.Find(p.Ref); err != nil || now.Value != text {
					b.t.Errorf("%s: the value of %s is %q, want %q", b.name, p.Ref, now.Value, text)
				}
				return d.SetProperty(p.Ref, "Value", p.Value)
			})
		s := p.Units[0].Symbol
		b.try("flag", func(d *sch.Design) ([]sexpr.Edit, error) { return d.SetFlag(p.Ref, "dnp", !s.DNP) },
			func(d *sch.Design) ([]sexpr.Edit, error) { return d.SetFlag(p.Ref, "dnp", s.DNP) })
	}
}

var plain = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_]*[0-9]$`)

func (b *back) references(d *sch.Design) {
	for _, p := range d.Parts() {
		if prop := p.Units[0].Symbol.Value("Reference"); prop != p.Ref || !plain.MatchString(p.Ref) {
			continue // the way back would set it right, or would not be allowed
		}
		b.try("reference", func(d *sch.Design) ([]sexpr.Edit, error) { return d.RenameReference(p.Ref, "ZZ7") },
			func(d *sch.Design) ([]sexpr.Edit, error) { return d.RenameReference("ZZ7", p.Ref) })
	}
}

func (b *back) nets(d *sch.Design) {
	for _, name := range d.Names() {
		for _, g := range d.Groups(name) {
			if slices.ContainsFunc(g.Labels, func(l *sch.Label) bool { return l.Text != sch.NetName("", g.Labels[0].Text) }) {
				continue // spelled in several ways, or not as KiCad does
			}
			if b.name == "power-names/p.kicad_sch" && name == "vcc" {
				continue // another net is called so as well, which the way back would join
			}
			sheet := g.Nets[0][:len(g.Nets[0])-len(sch.NetName("", name))]
			fresh := b.odd()
			b.try("net", func(d *sch.Design) ([]sexpr.Edit, error) {
				r, err := d.RenameNet(g.Nets[0], fresh, sch.RenameOptions{})
				return r.Edits, err
			}, func(d *sch.Design) ([]sexpr.Edit, error) {
				r, err := d.RenameNet(sch.NetName(sheet, fresh), name, sch.RenameOptions{})
				return r.Edits, err
			})
		}
	}
}
