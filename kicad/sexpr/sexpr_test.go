// SPDX-License-Identifier: Apache-2.0

package sexpr_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

const sheet = `(kicad_sch
	(version 20250114)
# a comment (with a bracket
	(uuid "11111111-0000-4000-8000-000000000001")
	(symbol (lib_id "Device:R") (dnp yes) (on_board no) (mirror)
		(property "Value" "0.1\" pitch \\ 5%" (at -1.5 2 0))
		(property "Note" "PA13(JTMS" (at 0 0 0))
	)
)
`

func TestParse_FindsPlacesAndText(t *testing.T) {
	d, err := sexpr.Parse([]byte(sheet))
	if err != nil {
		t.Fatal(err)
	}
	root := d.Root()
	if got := root.Tag(); got != "kicad_sch" {
		t.Errorf("tag %q, want kicad_sch", got)
	}
	sym := root.Get("symbol")
	props := slices.Collect(sym.Lists("property"))
	if len(props) != 2 {
		t.Fatalf("%d properties, want 2: a bracket in a string or a comment was counted", len(props))
	}
	value := props[0].Arg(1)
	if got, want := value.Text(), `0.1" pitch \ 5%`; got != want {
		t.Errorf("value %q, want %q", got, want)
	}
	if got, want := sheet[value.Start():value.End()], `"0.1\" pitch \\ 5%"`; got != want {
		t.Errorf("range holds %s, want %s", got, want)
	}
	if got := value.Line(); got != 6 {
		t.Errorf("line %d, want 6", got)
	}
	if x, ok := props[0].Get("at").Number(0); !ok || x != -1.5 {
		t.Errorf("at x = %v, %v", x, ok)
	}
	for tag, want := range map[string][2]bool{"dnp": {true, true}, "on_board": {false, true}, "mirror": {true, true}, "in_bom": {false, false}} {
		if yes, found := sym.Flag(tag); [2]bool{yes, found} != want {
			t.Errorf("Flag(%s) = %v, %v, want %v", tag, yes, found, want)
		}
	}
	if got := d.At(value.Start() + 3); got != value {
		t.Errorf("At finds %q, want the value", got.Raw())
	}
	if value.Parent().Parent() != sym || sym.Parent() != root || root.Parent().OK() {
		t.Error("the parents are wrong")
	}
	if missing := root.Get("no", "such", "thing"); missing.OK() || missing.Text() != "" || missing.Arg(0).OK() || missing.Line() != 0 {
		t.Error("a missing node is there")
	}
}

// What KiCad refuses or silently cuts off (cases 01, 02, 06 and 15) is an error with its place.
func TestParse_Errors(t *testing.T) {
	for _, tt := range []struct {
		src          string
		kind         sexpr.ErrorKind
		line, column int
	}{
		{"", sexpr.Empty, 1, 1},
		{" \n\t", sexpr.Empty, 1, 1},
		{"# only a comment", sexpr.Empty, 1, 1},
		{"{}", sexpr.NotAList, 1, 1},
		{"(a)\n(b)", sexpr.SecondRoot, 2, 1},
		{"(a)\nword (b)", sexpr.Trailing, 2, 1},
		{"(a))\n", sexpr.ExtraClose, 1, 4},
		{"(a\n  (b \"x)\n)", sexpr.UnterminatedString, 2, 6},
		{"(a \"x\ny\")", sexpr.UnterminatedString, 1, 4},
		{"(a \"x\\", sexpr.UnterminatedString, 1, 4},
		{"(a\n\t(b\n\t\t(c)\n\t(d)\n)", sexpr.Unclosed, 2, 2},
		{"(a (b)", sexpr.Unclosed, 1, 1},
		{"(a \x00b)", sexpr.NUL, 1, 4},
		{"(a \"\x00\")", sexpr.NUL, 1, 5},
		{"(a\n \"Gr\xfc\xdfe\")", sexpr.InvalidUTF8, 2, 5},
		{"\xef\xbb\xbf(a)", sexpr.ByteOrderMark, 1, 1},
		{"\xff\xfe(\x00a\x00)\x00", sexpr.UTF16, 1, 1},
	} {
		_, err := sexpr.Parse([]byte(tt.src))
		var e *sexpr.Error
		if !errors.As(err, &e) {
			t.Errorf("%q: %v, want an *Error", tt.src, err)
			continue
		}
		if e.Kind != tt.kind || e.Line != tt.line || e.Column != tt.column {
			t.Errorf("%q: %s at %d:%d, want %s at %d:%d", tt.src, e.Kind, e.Line, e.Column, tt.kind, tt.line, tt.column)
		}
	}
}

func TestParse_AcceptsWhatKiCadAccepts(t *testing.T) {
	for _, src := range []string{
		"(a)", "(a)\r\n", "\r(a\r(b)\r)\r", "(a \"\\q\")", "(a b\"c)", "(a\"x\"\"y\")", "(a #c)", "( a)", "()",
	} {
		if _, err := sexpr.Parse([]byte(src)); err != nil {
			t.Errorf("%q: %v", src, err)
		}
	}
}

func TestParseTolerant_GoesOn(t *testing.T) {
	d, errs := sexpr.ParseTolerant([]byte("(a (b 1)))\n(wire 2)\n(c \"open\n (d 3)"))
	var kinds []string
	for _, e := range errs {
		kinds = append(kinds, e.Kind.String())
	}
	if got, want := strings.Join(kinds, " "), "extra-bracket second-root unterminated-string"; got != want {
		t.Errorf("found %s, want %s", got, want)
	}
	var tags []string
	for n := range d.Roots() {
		tags = append(tags, n.Tag())
	}
	if got := strings.Join(tags, " "); got != "a wire c" {
		t.Errorf("roots %q, want a wire c", got)
	}
	if _, errs = sexpr.ParseTolerant([]byte("(a (b (c)")); len(errs) != 1 || errs[0].Count != 2 {
		t.Errorf("%v, want one error about 2 brackets", errs)
	}
	_, errs = sexpr.ParseTolerant([]byte("(a)" + strings.Repeat(")", 1000)))
	if len(errs) != 20 {
		t.Errorf("%d errors, want them cut at 20", len(errs))
	}
}

func TestParse_DeepNesting(t *testing.T) {
	const depth = 100_000
	src := []byte(strings.Repeat("(x ", depth) + strings.Repeat(")", depth))
	d, err := sexpr.Parse(src)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for range d.Root().Walk() {
		n++
	}
	if n != 2*depth {
		t.Errorf("%d nodes, want %d", n, 2*depth)
	}
	if _, err = sexpr.Parse(src[:len(src)-1]); err == nil {
		t.Error("a missing bracket went unseen")
	}
}

// KiCad's white space is blank, tab, carriage return, line feed and NUL: a form feed belongs to the word it stands in.
func TestParse_ControlCharacters(t *testing.T) {
	d, err := sexpr.Parse([]byte("(a\f b\vc \x01 \"\xb1\" \"\\xb1\" \xb1)"))
	if e := (*sexpr.Error)(nil); !errors.As(err, &e) || e.Kind != sexpr.InvalidUTF8 {
		t.Fatalf("%v, want invalid UTF-8", err)
	}
	if d != nil {
		t.Fatal("a document in spite of the error")
	}
	d, _ = sexpr.ParseTolerant([]byte("(a\f b\vc \x01 \"\xb1\" \"\\xb1\" \xb1)"))
	var words []string
	for c := range d.Root().All() {
		words = append(words, c.Text())
	}
	// KiCad reads a string that is not UTF-8 as empty.
	if want := []string{"a\f", "b\vc", "\x01", "", "", ""}; !slices.Equal(words, want) {
		t.Errorf("%q, want %q", words, want)
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		`A"B\C`: `"A\"B\\C"`, "": `""`, "a\nb": `"a\nb"`, "a\r\nb": `"a\rb"`, "Ω (x) #1\t~": "\"Ω (x) #1\t~\"",
	} {
		if got := sexpr.Quote(in); got != want {
			t.Errorf("Quote(%q) = %s, want %s", in, got, want)
		}
	}
	for in, want := range map[string]string{
		`"\x41\x4g\101\08\t\q\\n"`: "A\x04gA\x008\t\\q\\n", `"\xzz"`: "xzz", `"\8\/\'\ \"`: `\8\/\'\ "`,
		`"a\u0041\e"`: `a\u0041\e`, `"\1012\v\f"`: "A2\v\f", `"open`: "open", `"a\"`: `a"`,
	} {
		if got := sexpr.Unquote([]byte(in)); got != want {
			t.Errorf("Unquote(%s) = %q, want %q", in, got, want)
		}
	}
}

func TestApply(t *testing.T) {
	src := []byte(sheet)
	d, _ := sexpr.Parse(src)
	prop := d.Root().Get("symbol", "property")
	first, ok := sexpr.SetText("s", prop.Arg(1), `A"B\C`)
	if !ok {
		t.Fatal("no edit")
	}
	second := sexpr.Replace("s", d.Root().Get("version").Arg(0), "20250114")
	got, err := sexpr.Apply(src, []sexpr.Edit{first, second})
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(sheet, `"0.1\" pitch \\ 5%"`, `"A\"B\\C"`, 1)
	if string(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if _, again := sexpr.SetText("s", prop.Arg(0), "Value"); again {
		t.Error("an edit that changes nothing was made")
	}
	var e *sexpr.EditError
	for name, edits := range map[string][]sexpr.Edit{
		"overlap": {first, first},
		"outside": {{File: "s", Start: 5, End: len(src) + 1}},
		"stale":   {{File: "s", Start: 0, End: 1, Old: "x", New: "y"}},
	} {
		if out, err := sexpr.Apply(src, edits); !errors.As(err, &e) || out != nil {
			t.Errorf("%s: %v, want an *EditError", name, err)
		}
	}
}

// rebuild puts a document together from its nodes and what stands between them.
func rebuild(d *sexpr.Doc) []byte {
	var out []byte
	pos := 0
	for root := range d.Roots() {
		for n := range root.Walk() {
			if n.Kind() == sexpr.List {
				continue
			}
			out = append(out, d.Source()[pos:n.Start()]...)
			out = append(out, n.Raw()...)
			pos = n.End()
		}
	}
	return append(out, d.Source()[pos:]...)
}

// Further real files may be named by an environment variable; they round-trip byte for byte.
func TestRoundTrip_Folder(t *testing.T) {
	dir := os.Getenv("FIDUCIAL_KICAD_FILES")
	if dir == "" {
		t.Skip("FIDUCIAL_KICAD_FILES names no folder")
	}
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !slices.Contains([]string{".kicad_sch", ".kicad_pcb", ".kicad_sym", ".kicad_mod"}, filepath.Ext(path)) {
			return err
		}
		src, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		d, errs := sexpr.ParseTolerant(src)
		check(t, d)
		t.Logf("%s: %d nodes, %v", path, d.Len(), errs)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// check holds the rules of every document: it rebuilds to the same bytes, children lie inside their parent in
// order, and At finds each node again.
func check(t *testing.T, d *sexpr.Doc) {
	t.Helper()
	if !bytes.Equal(rebuild(d), d.Source()) {
		t.Fatal("the nodes do not rebuild the text")
	}
	for root := range d.Roots() {
		for n := range root.Walk() {
			if n.Start() >= n.End() || n.End() > len(d.Source()) {
				t.Fatalf("node from %d to %d", n.Start(), n.End())
			}
			pos := n.Start()
			for c := range n.All() {
				if c.Start() < pos || c.End() > n.End() || c.Parent() != n {
					t.Fatalf("a child from %d to %d in a list from %d to %d", c.Start(), c.End(), pos, n.End())
				}
				pos = c.End()
			}
			if d.At(n.Start()) != n {
				t.Fatalf("At(%d) is another node", n.Start())
			}
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{sheet, "(a))(b \"x", "((((", "\"", "(a \"\\", "\xef\xbb\xbf(a \xff\x00)", "#(\n(a)"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, src []byte) {
		d, errs := sexpr.ParseTolerant(src)
		if _, err := sexpr.Parse(src); (err == nil) != (len(errs) == 0) {
			t.Fatalf("Parse says %v, ParseTolerant %v", err, errs)
		}
		check(t, d)
	})
}

func FuzzQuote(f *testing.F) {
	f.Add(`A"B\C`)
	f.Add("a\nb\x00\xff")
	f.Fuzz(func(t *testing.T, s string) {
		quoted := sexpr.Quote(s)
		if strings.Contains(quoted, "\n") {
			t.Fatalf("%q spans lines", quoted)
		}
		if got, want := sexpr.Unquote([]byte(quoted)), strings.ReplaceAll(s, "\r\n", "\r"); got != want {
			t.Fatalf("%q came back as %q", want, got)
		}
	})
}

func BenchmarkParse10MB(b *testing.B) {
	var buf bytes.Buffer
	buf.WriteString("(kicad_sch\n\t(version 20250114)\n")
	for i := 0; buf.Len() < 10<<20; i++ {
		fmt.Fprintf(&buf, "\t(symbol\n\t\t(lib_id \"Device:R\")\n\t\t(at %d.27 %d.54 0)\n\t\t(unit 1)\n\t\t(dnp no)\n\t\t(uuid \"11111111-0000-4000-8000-%012d\")\n"+
			"\t\t(property \"Reference\" \"R%d\"\n\t\t\t(at 1.27 2.54 0)\n\t\t\t(effects\n\t\t\t\t(font\n\t\t\t\t\t(size 1.27 1.27)\n\t\t\t\t)\n\t\t\t)\n\t\t)\n\t)\n", i, i, i, i)
	}
	buf.WriteString(")\n")
	b.SetBytes(int64(buf.Len()))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := sexpr.Parse(buf.Bytes()); err != nil {
			b.Fatal(err)
		}
	}
}
