package picture

import (
	"crypto/sha256"
	_ "embed" // the page's parts
	"encoding/base64"
	"fmt"
	"html/template"
	"io"
	"strings"
)

//go:embed page/page.html
var pageHTML string

//go:embed page/page.css
var pageStyle string

//go:embed page/page.js
var pageScript string

// pageData is what the page is made of. html/template escapes every text of it for where it stands.
type pageData struct {
	*Diff
	Title  string
	Policy string
	Style  template.CSS
	Script template.JS
	Views  []pageView
}

type pageView struct {
	View
	Panes []pane
}

// A pane is one side of a view.
type pane struct {
	Side    string
	Alt     string
	Picture template.HTMLAttr // the src with a data: URL
	Shared  string            // the view whose picture before is the same, instead of Picture
	Gone    string
	Frame   string
	Marks   []rect
}

type rect struct {
	Mark
	X, Y, W, H string
}

// WriteHTML writes the page. Title is what the page is about, for instance the project's name.
func (d *Diff) WriteHTML(w io.Writer, title string) error {
	t, err := template.New("page").Funcs(template.FuncMap{
		"join": func(ids []string) string { return strings.Join(ids, " ") },
	}).Parse(pageHTML)
	if err != nil {
		return fmt.Errorf("picture: %w", err)
	}
	data := pageData{
		Diff: d, Title: title, Style: template.CSS(pageStyle), Script: template.JS(pageScript), //nolint:gosec // our own files
		Policy: "default-src 'none'; img-src data:; style-src " + source(pageStyle) + "; script-src " + source(pageScript) +
			"; base-uri 'none'; form-action 'none'",
	}
	for _, v := range d.Views {
		data.Views = append(data.Views, pageView{v, []pane{v.pane(Before), v.pane(After)}})
	}
	if err := t.Execute(w, data); err != nil {
		return fmt.Errorf("picture: the page cannot be written: %w", err)
	}
	return nil
}

// source allows exactly this text in the page's policy.
func source(text string) string {
	sum := sha256.Sum256([]byte(text))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}

func (v View) pane(side Side) pane {
	p := pane{Side: []string{"before", "after"}[side], Gone: v.Gone[side], Frame: v.Frame.viewBox()}
	p.Alt = v.Name + " " + p.Side
	switch {
	case side == After && v.Same():
		p.Shared = v.ID
	case v.SVG[side] != nil:
		p.Picture = template.HTMLAttr(`src="data:image/svg+xml;base64,` + base64.StdEncoding.EncodeToString(v.SVG[side]) + `"`) //nolint:gosec // base64
	}
	for _, m := range v.Marks {
		if m.Side == side {
			b := m.Box.grown(0.8)
			p.Marks = append(p.Marks, rect{m, mm(b.X1), mm(b.Y1), mm(b.W()), mm(b.H())})
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
