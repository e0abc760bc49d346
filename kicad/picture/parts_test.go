// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/sch"
)

// TestRedraw keeps shapes and leaves out all that runs, loads or carries text.
func TestRedraw(t *testing.T) {
	const in = `<?xml version="1.0"?><!DOCTYPE svg [<!ENTITY x "y">]><svg xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 10 20" onload="alert(1)">
<title>t</title><desc>d` + "\x01" + `</desc><script>alert(2)</script><style>* { fill: red }</style>
<g style="fill:none; stroke:#840000; stroke-width:0.1524;background:url(http://x)" class="stroked-text" onclick="x()" transform="translate(1.50 0)">
<desc><path d="M9 9"/></desc><path d="M177.0022 166.0
L1.500,2 Z" fill="url(#a)"/><a href="javascript:x"><path d="M7 7"/></a><text x="1">secret</text><foreignObject><p/></foreignObject>
<image xlink:href="http://x/y.png" x="1"/><image xlink:href="data:image/svg+xml;base64,AAAA"/><image xlink:href="data:image/png;base64,AA+/=="/><use href="#a"/></g></svg>`
	d, err := redraw([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	got := strings.ReplaceAll(string(d.body), ">", ">\n")
	want := `<g fill="none" stroke="#840000" stroke-width="0.152" transform="translate(1.5 0)">
<path d="M177.002 166 L1.5,2 Z"/>
<image x="1"/>
<image/>
<image href="data:image/png;base64,AA+/=="/>
</g>
`
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("redraw (-want +got)\n%s", diff)
	}
	if d.frame.W() != 10 || d.frame.H() != 20 {
		t.Errorf("frame %+v, want 10 by 20", d.frame)
	}
	for _, bad := range []string{"", "text", "<svg viewBox='0 0 1 1'><g>", "<svg/>", "<svg viewBox='0 0 NaN 1'/>"} {
		if _, err := redraw([]byte(bad)); err == nil {
			t.Errorf("redraw(%q) has no error", bad)
		}
	}
}

// TestRedrawJoins makes one path of the strokes of a text, and leaves filled ones as they are.
func TestRedrawJoins(t *testing.T) {
	const strokes = `<path d="M1.0000 2.0000
L3.12345 -4.0"/>
<path d="M3.1230 -4 L5 6"/><path d="M9 9
L8 8"/>`
	for in, want := range map[string]string{
		`<g style="fill:none"><g class="stroked-text">` + strokes + `</g></g>`:    `<g fill="none"><g><path d="M1 2L3.123 -4 5 6M9 9L8 8"/></g></g>`,
		`<g style="fill:none">` + strokes + `<circle cx="1"/>` + strokes + `</g>`: `<g fill="none"><path d="M1 2L3.123 -4 5 6M9 9L8 8"/><circle cx="1"/><path d="M1 2L3.123 -4 5 6M9 9L8 8"/></g>`,
		`<g style="fill:#000">` + strokes + `</g>`:                                `<g fill="#000"><path d="M1 2 L3.123 -4"/><path d="M3.123 -4 L5 6"/><path d="M9 9 L8 8"/></g>`,
		`<g style="fill:none"><path d="M1 2 L3 4"/><g/><path d="M3 4 L5 6"/></g>`: `<g fill="none"><path d="M1 2L3 4"/><path d="M3 4L5 6"/></g>`,
		`<g style="fill:none"><path d="M1 2 L3 4"/><path d="M3 4 Q5 6 7 8"/></g>`: `<g fill="none"><path d="M1 2L3 4"/><path d="M3 4 Q5 6 7 8"/></g>`,
	} {
		d, err := redraw([]byte(`<svg viewBox="0 0 9 9">` + in + `</svg>`))
		if err != nil || string(d.body) != want {
			t.Errorf("redraw(%s)\n got %s, %v\nwant %s", in, d.body, err, want)
		}
	}
}

func FuzzRedraw(f *testing.F) {
	f.Add([]byte(`<svg viewBox="0 0 1 1"><g style="fill:none"><path d="M1.0 2.50"/></g></svg>`))
	f.Fuzz(func(t *testing.T, in []byte) {
		d, err := redraw(in)
		if err != nil {
			return
		}
		if _, err := redraw(compose(d.frame, "#fff", d)); err != nil {
			t.Fatalf("a redrawn picture cannot be read: %v\n%s", err, d.body)
		}
		for _, bad := range []string{"<script", "<style", "<a", "<use", "<text", "<foreignObject", " on", "url(", "http:", "javascript:", "&", "<!"} {
			if bytes.Contains(d.body, []byte(bad)) {
				t.Errorf("the picture holds %q: %s", bad, d.body)
			}
		}
	})
}

func netlist(nets ...string) *kicadcli.Netlist {
	n := &kicadcli.Netlist{}
	refs := map[string]bool{}
	for _, line := range nets {
		f := strings.Fields(line)
		net := kicadcli.Net{Name: f[0]}
		for _, pin := range f[1:] {
			ref, number, _ := strings.Cut(pin, ".")
			net.Pins = append(net.Pins, kicadcli.Pin{Ref: ref, Number: number})
			if !refs[ref] {
				refs[ref] = true
				n.Parts = append(n.Parts, kicadcli.Part{Ref: ref, Value: "10k"})
			}
		}
		n.Nets = append(n.Nets, net)
	}
	return n
}

func TestCompareNetlists(t *testing.T) {
	for _, tt := range []struct {
		name     string
		was, now *kicadcli.Netlist
		refs     map[string]string
		want     []string
	}{
		{"same", netlist("A R1.1 R2.1"), netlist("A R2.1 R1.1"), nil, nil},
		{"renamed", netlist("A R1.1 R2.1", "B R1.2"), netlist("C R1.1 R2.1", "B R1.2"), nil, []string{"net A renamed to C"}},
		{
			"renamed, one pin off", netlist("A R1.1 R2.1 R3.1"), netlist("C R1.1 R2.1", "D R3.1"), nil,
			[]string{"net A renamed to C", "pin R3.1: A → D", "net D (1 pin)"},
		},
		{
			"merged", netlist("A R1.1 R2.1", "B R3.1"), netlist("B R1.1 R2.1 R3.1"), nil,
			[]string{"pin R1.1: A → B", "pin R2.1: A → B", "net A (2 pins)"},
		},
		{"swapped", netlist("A R1.1 R2.1", "B R1.2 R2.2"), netlist("A R1.1 R2.2", "B R1.2 R2.1"), nil, []string{"pin R2.1: A → B", "pin R2.2: B → A"}},
		{"part renamed", netlist("A R1.1 R2.1"), netlist("A R9.1 R2.1"), map[string]string{"R1": "R9"}, []string{"part R1 renamed to R9"}},
		{"part gone", netlist("A R1.1 R2.1"), netlist("A R1.1"), nil, []string{"part R2 10k"}},
		{
			"let go", netlist("A R1.1 R2.1"), netlist("A R1.1", "unconnected-(R2-Pad1) R2.1"), nil,
			[]string{"pin R2.1: A → not connected"},
		},
	} {
		var got []string
		for _, c := range compareNetlists(tt.was, tt.now, tt.refs).changes {
			got = append(got, c.What+" "+c.Text)
		}
		if d := cmp.Diff(tt.want, got); d != "" {
			t.Errorf("%s (-want +got)\n%s", tt.name, d)
		}
	}
	dnp := netlist("A R1.1 R2.1")
	dnp.Parts[0].Properties = map[string]string{"dnp": "", "MPN": "x"}
	dnp.Parts[1].Footprint = "T:R_0603"
	var got []string
	for _, c := range compareNetlists(netlist("A R1.1 R2.1"), dnp, nil).changes {
		got = append(got, c.Text)
	}
	want := []string{"R1 MPN (empty) → x", "R1 marked dnp", "R2 footprint (empty) → T:R_0603"}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("parts (-want +got)\n%s", d)
	}
}

// TestMatch finds items that lost their UUID by their looks, and tells groups as numbers.
func TestMatch(t *testing.T) {
	read := func(items string) []*item {
		d, err := sch.LoadWith(func(string) ([]byte, error) {
			return []byte(`(kicad_sch (version 20250114) (uuid "r") (lib_symbols) ` + items + `)`), nil
		}, "p.kicad_sch")
		if err != nil {
			t.Fatal(err)
		}
		return sheetItems(d, d.Sheets[0])
	}
	was := read(`(wire (pts (xy 0 0) (xy 10 0)) (uuid "w1")) (wire (pts (xy 0 5) (xy 10 5)) (uuid "w2")) (wire (pts (xy 0 9) (xy 10 9)) (uuid "w3"))
		(label "A" (at 0 0 0) (effects (font (size 1.27 1.27))) (uuid "l1")) (junction (at 1 1) (uuid "j1"))`)
	now := read(`(wire (pts (xy 0 0) (xy 10.00 0)) (uuid "new1")) (label "B" (at 2.54 0 0) (effects (font (size 1.27 1.27))) (uuid "l1"))
		(junction (at 1 1) (uuid "j1")) (no_connect (at 3 3) (uuid "n1"))`)
	v := View{ID: "v1"}
	m := &marker{view: &v, refs: map[string][]string{}, nets: map[string][]string{}}
	m.add(match(was, now))
	var got []string
	for _, e := range v.Entries {
		got = append(got, string(e.Kind)+" "+e.Text)
	}
	if d := cmp.Diff([]string{"changed label A → B: moved", "added 1 no-connect flag", "removed 2 wires"}, got); d != "" {
		t.Errorf("entries (-want +got)\n%s", d)
	}
	if len(v.Marks) != 5 || len(m.nets["A"]) != 1 || len(m.nets["B"]) != 1 {
		t.Errorf("%d marks, nets %v, want 5 and one each for A and B", len(v.Marks), m.nets)
	}
}
