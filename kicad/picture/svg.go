// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"
)

// A drawing is a picture of kicad-cli, rebuilt.
type drawing struct {
	frame Box
	body  []byte // what stands inside the svg element
}

// shapes are the elements of a drawing with the attributes that say what they look like. KiCad's SVG also has every text
// as an invisible text element and a desc beside its strokes, for searching: those are left out, and with them all text
// of the design.
var shapes = map[string]string{
	"g": "", "path": " d ", "rect": " x y width height rx ry ", "circle": " cx cy r ", "ellipse": " cx cy rx ry ",
	"line": " x1 y1 x2 y2 ", "polyline": " points ", "polygon": " points ", "image": " x y width height preserveAspectRatio ",
}

// The style attribute is taken apart into these, so that no policy against styles touches a picture.
const looks = " transform fill stroke stroke-width fill-opacity stroke-opacity opacity fill-rule stroke-linecap stroke-linejoin stroke-dasharray "

// redraw reads an SVG and writes what may stand in a picture: known shapes with harmless attributes. Nothing that could
// be run, load a file or carry text of the design is kept.
func redraw(svg []byte) (drawing, error) {
	var d drawing
	out := &pen{hollow: []bool{false}}
	out.Grow(len(svg) / 4)
	dec := xml.NewDecoder(bytes.NewReader(clean(svg)))
	dec.Strict = true
	dec.Entity = map[string]string{}
	skip := 0 // how deep in an element that is left out
	var open []string
	for {
		tok, err := dec.RawToken()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return d, fmt.Errorf("the picture is no SVG: %w", err)
		}
		switch t := tok.(type) {
		case xml.StartElement:
			name := t.Name.Local
			_, known := shapes[name]
			switch {
			case skip > 0:
				skip++
			case name == "svg" && len(open) == 0 && t.Name.Space == "":
				d.frame = viewBox(t)
				open = append(open, name)
			case known && len(open) > 0 && (open[len(open)-1] == "g" || open[len(open)-1] == "svg") && t.Name.Space == "":
				out.shape(t)
				open = append(open, name)
			default:
				skip = 1
			}
		case xml.EndElement:
			switch {
			case skip > 0:
				skip--
			case len(open) == 0 || open[len(open)-1] != t.Name.Local:
				return d, fmt.Errorf("the picture is no SVG: </%s> is out of place", t.Name.Local)
			default:
				out.close(t.Name.Local)
				open = open[:len(open)-1]
			}
		}
	}
	if d.frame.W() <= 0 || d.frame.H() <= 0 || len(open) > 0 {
		return d, errors.New("the picture is no whole SVG, or has no size")
	}
	d.body = bytes.ReplaceAll(out.Bytes(), []byte("<g></g>"), nil)
	return d, nil
}

// clean makes XML of what KiCad writes for texts with bytes that XML has no place for.
func clean(svg []byte) []byte {
	bad := func(r rune) bool {
		return r < 0x20 && r != '\n' && r != '\t' && r != '\r' || r == 0xfffe || r == 0xffff || r == utf8.RuneError
	}
	if bytes.IndexFunc(svg, bad) < 0 {
		return svg
	}
	return bytes.Map(func(r rune) rune {
		if bad(r) {
			return ' '
		}
		return r
	}, svg)
}

func viewBox(t xml.StartElement) Box {
	var b Box
	for _, a := range t.Attr {
		var x, y, w, h float64
		if a.Name.Local != "viewBox" {
			continue
		}
		if n, _ := fmt.Sscan(a.Value, &x, &y, &w, &h); n == 4 && w > 0 && h > 0 {
			b.reach(x, y)
			b.reach(x+w, y+h)
		}
	}
	return b
}

// A pen writes shapes.
type pen struct {
	bytes.Buffer
	hollow []bool // of the groups that are open: whether what they hold is not filled
	last   string // the point where the last stroke ended, while more can be joined to it
	stroke int    // the length of the buffer behind that stroke
}

func (p *pen) shape(t xml.StartElement) {
	if p.join(t) {
		return
	}
	p.WriteString("<" + t.Name.Local)
	style := map[string]string{}
	for _, a := range t.Attr {
		name, value := a.Name.Local, a.Value
		switch {
		case name == "href" && t.Name.Local == "image" && isPicture(value):
			fmt.Fprintf(p, ` href="%s"`, value)
		case a.Name.Space == "" && name == "style":
			for part := range strings.SplitSeq(value, ";") {
				if k, v, _ := strings.Cut(part, ":"); harmless(v) {
					style[strings.TrimSpace(k)] = strings.TrimSpace(v)
				}
			}
		case a.Name.Space != "" || !harmless(value):
		case strings.Contains(looks, " "+name+" "):
			if _, ok := style[name]; !ok {
				style[name] = value
			}
		case strings.Contains(shapes[t.Name.Local], " "+name+" "):
			p.attribute(name, value)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(style)) {
		if value := style[name]; strings.Contains(looks, " "+name+" ") && value != "" {
			p.attribute(name, value)
		}
	}
	p.WriteByte('>')
	if t.Name.Local == "g" {
		hollow := p.hollow[len(p.hollow)-1]
		if fill, ok := style["fill"]; ok {
			hollow = fill == "none"
		}
		p.hollow = append(p.hollow, hollow)
	}
}

func (p *pen) close(name string) {
	switch name {
	case "svg":
	case "g":
		p.WriteString("</g>")
		p.hollow = p.hollow[:len(p.hollow)-1]
	default:
		p.Truncate(p.Len() - 1)
		p.WriteString("/>")
		if p.last != "" {
			p.stroke = p.Len()
		}
	}
}

// join writes a stroke from point to point as part of the one before it. KiCad draws its texts so: 100,000 paths on a
// large sheet, which a browser would have to keep each by itself.
func (p *pen) join(t xml.StartElement) bool {
	last := p.last
	p.last = ""
	if t.Name.Local != "path" || len(t.Attr) != 1 || t.Attr[0].Name.Local != "d" || !p.hollow[len(p.hollow)-1] {
		return false
	}
	f := strings.Fields(t.Attr[0].Value)
	if len(f) != 4 || !isNumber(f[0], "M") || !isNumber(f[1], "") || !isNumber(f[2], "L") || !isNumber(f[3], "") {
		return false
	}
	from, to := round(f[0][1:])+" "+round(f[1]), round(f[2][1:])+" "+round(f[3])
	switch {
	case last == "" || p.Len() != p.stroke:
		p.WriteString(`<path d="M` + from + "L" + to)
	case last == from:
		p.Truncate(p.Len() - len(`"/>`))
		p.WriteString(" " + to)
	default:
		p.Truncate(p.Len() - len(`"/>`))
		p.WriteString("M" + from + "L" + to)
	}
	p.WriteString(`">`)
	p.last = to
	return true
}

// isNumber reports whether s is a plain decimal behind a prefix.
func isNumber(s, prefix string) bool {
	s, ok := strings.CutPrefix(s, prefix)
	s = strings.TrimPrefix(s, "-")
	whole, decimals, _ := strings.Cut(s, ".")
	digits := func(s string) bool { return strings.Trim(s, "0123456789") == "" }
	return ok && whole != "" && digits(whole) && digits(decimals)
}

// round writes a number as an attribute would.
func round(s string) string {
	var p pen
	p.tidy(s)
	return p.String()
}

func (p *pen) attribute(name, value string) {
	p.WriteString(" " + name + `="`)
	p.tidy(value)
	p.WriteByte('"')
}

// isPicture reports whether a link is the data of a picture.
func isPicture(link string) bool {
	for _, kind := range []string{"png", "jpeg", "jpg", "bmp", "gif"} {
		if data, ok := strings.CutPrefix(link, "data:image/"+kind+";base64,"); ok {
			return strings.Trim(data, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/= \r\n\t") == ""
		}
	}
	return false
}

// harmless reports whether a value is numbers, words and colours: no quote, no bracket of an element, and no url().
func harmless(value string) bool {
	for _, c := range []byte(value) {
		ok := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || strings.IndexByte(" \t\r\n.,:;#%()+-", c) >= 0
		if !ok {
			return false
		}
	}
	return !strings.Contains(strings.ToLower(value), "url")
}

// decimals is how many are kept: a thousandth of a millimetre is less than any eye or screen can tell.
const decimals = 3

// tidy writes a value with its white space cut, and the decimals that say nothing.
func (p *pen) tidy(value string) {
	space, begin := false, -1 // begin: where in the buffer the decimals began
	end := func() {
		if begin < 0 {
			return
		}
		n := min(p.Len(), begin+decimals)
		for n > begin && p.Bytes()[n-1] == '0' {
			n--
		}
		if n == begin {
			n-- // the point as well
		}
		p.Truncate(n)
		begin = -1
	}
	for i := range len(value) {
		c := value[i]
		if c >= '0' && c <= '9' && begin >= 0 {
			p.WriteByte(c)
			continue
		}
		end()
		switch c {
		case ' ', '\t', '\r', '\n':
			if !space {
				p.WriteByte(' ')
			}
			space = true
			continue
		case '.':
			p.WriteByte(c)
			begin = p.Len()
		default:
			p.WriteByte(c)
		}
		space = false
	}
	end()
}

// compose puts drawings on top of each other into one SVG that shows a part of them.
func compose(frame Box, paper string, layers ...drawing) []byte {
	var b bytes.Buffer
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="%.4f %.4f %.4f %.4f" width="%.2fmm" height="%.2fmm">`,
		frame.X1, frame.Y1, frame.W(), frame.H(), frame.W(), frame.H())
	fmt.Fprintf(&b, `<rect x="%.4f" y="%.4f" width="%.4f" height="%.4f" fill="%s"/>`, frame.X1, frame.Y1, frame.W(), frame.H(), paper)
	for _, d := range layers {
		b.Write(d.body)
	}
	b.WriteString("</svg>")
	return b.Bytes()
}
