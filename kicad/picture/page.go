// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bufio"
	"crypto/sha256"
	_ "embed" // the page's parts
	"encoding/base64"
	"fmt"
	"html"
	"io"
	"strings"
)

//go:embed page/head.html
var pageHead string

//go:embed page/page.css
var pageStyle string

//go:embed page/page.js
var pageScript string

// A pane is one side of a view.
type pane struct {
	side    string
	alt     string
	picture string // a data: URL
	shared  string // the view whose picture before is the same, instead of picture
	gone    string
	frame   string
	marks   []rect
}

type rect struct {
	Mark
	x, y, w, h string
}

// page writes HTML. Every text goes through text or an attribute of tag, which
// escape it; package html/template would do so, too, but it finds methods by name,
// and the linker then keeps every method of every library in the command: 54 MB.
type page struct{ w *bufio.Writer }

// raw writes markup of ours.
func (p page) raw(parts ...string) {
	for _, s := range parts {
		_, _ = p.w.WriteString(s) // Flush tells
	}
}

func (p page) text(s string) { p.raw(html.EscapeString(s)) }

// tag opens an element. Attributes are names and values by turns; a name with an
// empty value stands alone.
func (p page) tag(name string, attributes ...string) {
	p.raw("<", name)
	for i := 0; i+1 < len(attributes); i += 2 {
		p.raw(" ", attributes[i])
		if attributes[i+1] != "" {
			p.raw(`="`, html.EscapeString(attributes[i+1]), `"`)
		}
	}
	p.raw(">")
}

// element is tag, text and the end of the element.
func (p page) element(name, text string, attributes ...string) {
	p.tag(name, attributes...)
	p.text(text)
	p.raw("</", name, ">")
}

// WriteHTML writes the page. Title is what the page is about, for instance the project's name.
func (d *Diff) WriteHTML(w io.Writer, title string) error {
	p := page{bufio.NewWriter(w)}
	policy := "default-src 'none'; img-src data:; style-src " + source(pageStyle) + "; script-src " + source(pageScript) +
		"; base-uri 'none'; form-action 'none'"
	p.raw(strings.NewReplacer(
		"@POLICY@", html.EscapeString(policy), "@TITLE@", html.EscapeString(title), "@STYLE@", pageStyle,
		"@BEFORE@", html.EscapeString(d.Names[0]), "@AFTER@", html.EscapeString(d.Names[1]),
	).Replace(pageHead))
	d.writeList(p)
	d.writeViews(p)
	p.raw("<script>", pageScript, "</script>\n</body>\n</html>\n")
	if err := p.w.Flush(); err != nil {
		return fmt.Errorf("picture: the page cannot be written: %w", err)
	}
	return nil
}

// writeList writes what changed, in words.
func (d *Diff) writeList(p page) {
	p.raw("<nav aria-label=\"Changes\">\n")
	for _, n := range d.Notes {
		p.element("p", n, "class", "note")
	}
	p.raw("<h2>Electrical ")
	p.element("span", fmt.Sprint(len(d.Electrical)), "class", "count")
	p.raw("</h2>\n")
	switch {
	case d.Unknown != "":
		p.element("p", d.Unknown, "class", "note")
	case len(d.Electrical) == 0:
		p.element("p", "Every net, pin and part is as before.", "class", "none")
	}
	p.raw("<ul class=\"changes\">\n")
	for _, e := range d.Electrical {
		p.entry(string(e.Kind), e.What, e.Text, e.Marks)
	}
	p.raw("</ul>\n<h2>Pictures</h2>\n")
	for _, v := range d.Views {
		count := fmt.Sprint(len(v.Entries))
		switch {
		case len(v.Entries) > 0:
			p.tag("details", "class", "viewlist", "open", "")
		case v.Same():
			count = "same"
			p.tag("details", "class", "viewlist")
		default:
			count = "differs"
			p.tag("details", "class", "viewlist")
		}
		p.raw("<summary>")
		p.element("button", v.Name, "class", "open", "data-view", v.ID)
		p.element("span", count, "class", "count")
		p.raw("</summary>\n<ul class=\"changes\">\n")
		for _, e := range v.Entries {
			p.entry(string(e.Kind), "", e.Text, e.Marks)
		}
		p.raw("</ul>\n</details>\n")
	}
	p.raw(`<p class="key"><span class="added">added</span> <span class="removed">removed</span> `,
		`<span class="changed">changed</span> <span class="focus">concerned</span></p>`, "\n</nav>\n")
}

// entry is one line of a list of changes.
func (p page) entry(kind, sort, text string, marks []string) {
	attributes := []string{"class", strings.TrimSpace("entry " + kind), "data-marks", strings.Join(marks, " ")}
	if len(marks) == 0 {
		attributes = []string{"class", strings.TrimSpace("entry " + kind), "disabled", ""}
	}
	p.raw("<li>")
	p.tag("button", attributes...)
	if sort != "" {
		p.element("span", sort, "class", "sort")
	}
	p.text(text)
	p.raw("</button></li>\n")
}

// writeViews writes the pictures.
func (d *Diff) writeViews(p page) {
	p.raw("<main>\n")
	for _, v := range d.Views {
		class := "view"
		if v.Board {
			class = "view board"
		}
		p.tag("section", "class", class, "id", v.ID, "data-w", fmt.Sprint(v.Frame.W()), "data-h", fmt.Sprint(v.Frame.H()),
			"data-x", fmt.Sprint(v.Frame.X1), "data-y", fmt.Sprint(v.Frame.Y1))
		p.element("h2", v.Name)
		p.writePane(v.pane(Before))
		p.writePane(v.pane(After))
		p.raw("</section>\n")
	}
	if len(d.Views) == 0 {
		p.element("p", "There is nothing to draw in either state.", "class", "none")
	}
	p.raw("<div id=\"divider\" hidden></div>\n</main>\n")
}

func (p page) writePane(n pane) {
	p.tag("figure", "class", "pane "+n.side)
	p.raw("<figcaption>")
	p.element("span", n.side, "class", "tag "+n.side)
	p.raw("</figcaption>\n<div class=\"sheet\">\n")
	switch {
	case n.picture != "":
		p.tag("img", "alt", n.alt, "src", n.picture)
	case n.shared != "":
		p.tag("img", "alt", n.alt, "data-same", n.shared)
	default:
		p.element("p", n.gone, "class", "gone")
	}
	p.tag("svg", "class", "marks", "viewBox", n.frame, "aria-hidden", "true")
	for _, m := range n.marks {
		kind := string(m.Kind)
		if kind == "" {
			kind = "focus"
		}
		p.tag("rect", "id", m.ID, "class", kind, "x", m.x, "y", m.y, "width", m.w, "height", m.h, "rx", "0.6")
		p.element("title", m.Text)
		p.raw("</rect>")
	}
	p.raw("</svg>\n</div>\n</figure>\n")
}

// source allows exactly this text in the page's policy.
func source(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func (v View) pane(side Side) pane {
	p := pane{side: []string{"before", "after"}[side], gone: v.Gone[side], frame: v.Frame.viewBox()}
	p.alt = v.Name + " " + p.side
	switch {
	case side == After && v.Same():
		p.shared = v.ID
	case v.SVG[side] != nil:
		p.picture = "data:image/svg+xml;base64," + base64.StdEncoding.EncodeToString(v.SVG[side])
	}
	for _, m := range v.Marks {
		if m.Side == side {
			b := m.Box.grown(0.8)
			p.marks = append(p.marks, rect{m, mm(b.X1), mm(b.Y1), mm(b.W()), mm(b.H())})
		}
	}
	return p
}

func (b Box) viewBox() string { return mm(b.X1) + " " + mm(b.Y1) + " " + mm(b.W()) + " " + mm(b.H()) }

func mm(f float64) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.3f", f), "0"), ".")
}

// Marked is the picture of one side with the outlines drawn in, for programs that show SVG and no page; nil when there
// is none.
func (v View) Marked(side Side) []byte {
	svg := v.SVG[side]
	if svg == nil {
		return nil
	}
	var b strings.Builder
	b.Write(svg[:len(svg)-len("</svg>")])
	colours := map[Kind]string{Added: "#1f9d4d", Removed: "#d6333b", Changed: "#d98300"}
	for _, m := range v.Marks {
		if c := colours[m.Kind]; m.Side == side && c != "" {
			k := m.Box.grown(0.8)
			fmt.Fprintf(&b, `<rect x="%s" y="%s" width="%s" height="%s" rx="0.6" fill="%s" fill-opacity="0.1" stroke="%s" stroke-width="%s"/>`,
				mm(k.X1), mm(k.Y1), mm(k.W()), mm(k.H()), c, c, mm(max(0.25, v.Frame.W()/600)))
		}
	}
	b.WriteString("</svg>")
	return []byte(b.String())
}
