// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"errors"
	"fmt"
	"html"
	"regexp"
	"strings"
	"unicode/utf8"
)

// A Document is a markdown file, or a firmware's table of pins ([IsHeader]): its bytes, and the tables in them. Tables are those of GitHub's markdown, outside
// fenced blocks and comments (https://github.github.com/gfm/#tables-extension-).
type Document struct {
	Name   string // slash-separated, as given to [ReadDocument]
	Src    []byte
	Tables []*Table

	headings []heading
	defines  []define // of a header
	pinout   []string // prefixes of the parts whose every pin must be listed, see the package's text
	eol      string
	close    string // the line that ends a block which the file leaves open, "" as a rule
}

type heading struct {
	text       string
	line       int // from 1
	start, end int // of the line, its end included
	level      int
}

// A Table is one table.
type Table struct {
	Heading string // the text of the heading above it, "" for none
	Header  Row
	Rows    []Row

	cols map[column]int
	head int // index of the heading, -1 for none
	end  int // of the last line, its end included
}

// A Row is one line of a table.
type Row struct {
	Line       int // from 1
	Start, End int // the line without its end
	Cells      []Cell
	next       int // where the next line begins
}

// A Cell is what stands between two bars.
type Cell struct {
	Start, End int    // between the bars, blanks included
	Raw        string // without the blanks around it, as written
	Text       string // what a reader sees: without marks and escapes
}

// errEncoding says that a document is no text in UTF-8 or Latin-1.
var errEncoding = errors.New("it is no UTF-8 text; save it as UTF-8")

// ReadDocument finds the tables of a markdown file, or the names of a header. A byte order mark, CRLF line ends and stray Latin-1 bytes are
// kept as they are. The error is about UTF-16 and other files with NUL bytes.
func ReadDocument(name string, src []byte) (*Document, error) {
	if bytes.IndexByte(src, 0) >= 0 || bytes.HasPrefix(src, []byte("\xff\xfe")) || bytes.HasPrefix(src, []byte("\xfe\xff")) {
		return nil, fmt.Errorf("docs: %s: %w", name, errEncoding)
	}
	d := &Document{Name: name, Src: src, eol: "\n"}
	if i := bytes.IndexByte(src, '\n'); i > 0 && src[i-1] == '\r' {
		d.eol = "\r\n"
	}
	if IsHeader(name) {
		d.defines = readHeader(src)
		return d, nil
	}
	lines := splitLines(src)
	d.close = blocks(lines)
	for i := 0; i < len(lines); i++ {
		switch l := lines[i]; {
		case l.hidden:
			if m := pinoutMark.FindStringSubmatch(l.text); m != nil {
				d.pinout = append(d.pinout, strings.Fields(m[1])...)
			}
		case headingLine.MatchString(l.text):
			m := headingLine.FindStringSubmatch(l.text)
			d.headings = append(d.headings, heading{text: plainText(strings.TrimRight(strings.TrimSpace(m[2]), "# ")), line: i + 1, start: l.start, end: l.next, level: len(m[1])})
		case i+1 < len(lines) && !lines[i+1].hidden && strings.Contains(l.text, "|") && isRuler(lines[i+1].text):
			i = d.readTable(lines, i) - 1
		}
	}
	return d, nil
}

var (
	pinoutMark  = regexp.MustCompile(`^\s*<!--\s*fiducial:pinout((?:\s+[A-Za-z_]+)*)\s*-->\s*$`)
	headingLine = regexp.MustCompile(`^ {0,3}(#{1,6})[ \t]+(.*)$`)
	rulerCell   = regexp.MustCompile(`^\s*:?-+:?\s*$`)
	fence       = regexp.MustCompile("^ {0,3}(```+|~~~+)")
)

type line struct {
	text             string // without its end
	start, end, next int
	hidden           bool // in a fenced block or comment
}

func splitLines(src []byte) []line {
	var lines []line
	start := 0
	if bytes.HasPrefix(src, []byte("\xef\xbb\xbf")) {
		start = 3
	}
	for start < len(src) {
		next := len(src)
		if i := bytes.IndexByte(src[start:], '\n'); i >= 0 {
			next = start + i + 1
		}
		end := start + len(bytes.TrimRight(src[start:next], "\r\n"))
		lines = append(lines, line{text: string(src[start:end]), start: start, end: end, next: next})
		start = next
	}
	return lines
}

// blocks hides the lines of fenced blocks and of comments. It returns the line that would end one that is left open.
func blocks(lines []line) (unclosed string) {
	open, comment := "", false
	for i := range lines {
		text := lines[i].text
		m := fence.FindStringSubmatch(text)
		switch {
		case comment:
			lines[i].hidden = true
			comment = !strings.Contains(text, "-->")
		case open != "":
			lines[i].hidden = true
			if m != nil && strings.HasPrefix(m[1], open) && strings.Trim(text, " `~") == "" {
				open = ""
			}
		case m != nil:
			lines[i].hidden = true
			open = m[1]
		case strings.HasPrefix(strings.TrimSpace(text), "<!--"):
			lines[i].hidden = true
			comment = !strings.Contains(text, "-->")
		}
	}
	if comment {
		return "-->"
	}
	return open
}

func isRuler(text string) bool {
	if !strings.Contains(text, "-") {
		return false
	}
	for _, c := range splitCells(text) {
		if !rulerCell.MatchString(text[c[0]:c[1]]) {
			return false
		}
	}
	return true
}

// readTable reads the table whose header is line i, and returns the first line behind it.
func (d *Document) readTable(lines []line, i int) int {
	t := &Table{Header: readRow(lines[i], i), head: len(d.headings) - 1}
	if t.head >= 0 {
		t.Heading = d.headings[t.head].text
	}
	t.end = lines[i+1].next
	for i += 2; i < len(lines) && !lines[i].hidden && strings.Contains(lines[i].text, "|") && !headingLine.MatchString(lines[i].text); i++ {
		t.Rows = append(t.Rows, readRow(lines[i], i))
		t.end = lines[i].next
	}
	t.cols = columnsOf(t.Header)
	d.Tables = append(d.Tables, t)
	return i
}

func readRow(l line, i int) Row {
	r := Row{Line: i + 1, Start: l.start, End: l.end, next: l.next}
	for _, c := range splitCells(l.text) {
		raw := strings.Trim(l.text[c[0]:c[1]], " \t")
		r.Cells = append(r.Cells, Cell{Start: l.start + c[0], End: l.start + c[1], Raw: raw, Text: plainText(raw)})
	}
	return r
}

// splitCells gives the ranges between the bars of a line. A bar behind a backslash is text.
func splitCells(text string) [][2]int {
	first, last := 0, len(text)
	for first < last && (text[first] == ' ' || text[first] == '\t') {
		first++
	}
	if first < last && text[first] == '|' {
		first++
	}
	var cells [][2]int
	start := first
	for i := first; i < last; i++ {
		switch text[i] {
		case '\\':
			i++
		case '|':
			cells = append(cells, [2]int{start, i})
			start = i + 1
		}
	}
	if strings.TrimSpace(text[start:]) != "" || len(cells) == 0 {
		cells = append(cells, [2]int{start, last})
	}
	return cells
}

// cell returns the cell of a column; the zero Cell when the row has none.
func (r *Row) cell(t *Table, c column) Cell {
	if i, ok := t.cols[c]; ok && i < len(r.Cells) {
		return r.Cells[i]
	}
	return Cell{}
}

var (
	link      = regexp.MustCompile(`!?\[([^\]]*)\]\([^)]*\)`)
	lineBreak = regexp.MustCompile(`(?i)<br\s*/?>`)
	spaces    = regexp.MustCompile(`[\s\x{a0}\x{2007}\x{202f}]+`)
)

// plainText takes the marks off a text: code, emphasis, links, escapes and entities.
func plainText(raw string) string {
	if !utf8.ValidString(raw) {
		raw = fromLatin1(raw)
	}
	if !strings.ContainsAny(raw, "`\\<&*_[") {
		return oneSpace(raw)
	}
	var b strings.Builder
	rest := raw
	for rest != "" {
		i := codeStart(rest)
		if i < 0 {
			b.WriteString(proseText(rest))
			break
		}
		n := len(rest[i:]) - len(strings.TrimLeft(rest[i:], "`"))
		mark := rest[i : i+n]
		end := strings.Index(rest[i+n:], mark)
		if end < 0 {
			b.WriteString(proseText(rest))
			break
		}
		b.WriteString(proseText(rest[:i]))
		b.WriteString(strings.ReplaceAll(rest[i+n:i+n+end], `\|`, "|"))
		rest = rest[i+2*n+end:]
	}
	return oneSpace(b.String())
}

// fromLatin1 reads a text that is no UTF-8 as what it most likely is.
func fromLatin1(s string) string {
	runes := make([]rune, 0, len(s))
	for i := range len(s) {
		runes = append(runes, rune(s[i]))
	}
	return string(runes)
}

// oneSpace makes one blank of any white space, and takes what is around the text away.
func oneSpace(s string) string {
	s = strings.TrimSpace(s)
	if strings.Contains(s, "  ") || strings.ContainsAny(s, "\t\n\r\u00a0\u2007\u202f") {
		s = strings.TrimSpace(spaces.ReplaceAllString(s, " "))
	}
	return s
}

// codeStart finds the first backtick that is not escaped.
func codeStart(s string) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '\\':
			i++
		case '`':
			return i
		}
	}
	return -1
}

// proseText is text outside code spans, as it is seen.
func proseText(s string) string {
	s = lineBreak.ReplaceAllString(s, " ")
	s = link.ReplaceAllString(s, "$1")
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s) && isPunct(s[i+1]):
			i++
			if s[i] == '*' || s[i] == '_' || s[i] == '&' {
				b.WriteByte(0x1a) // keeps it out of what follows
			}
			b.WriteByte(s[i])
		default:
			b.WriteByte(c)
		}
	}
	s = html.UnescapeString(strings.ReplaceAll(b.String(), "\x1a&", "\x1aamp"))
	s = strings.ReplaceAll(s, "\x1aamp", "&")
	s = emphasis.ReplaceAllString(s, "$1$2$3$4")
	return strings.ReplaceAll(s, "\x1a", "")
}

// emphasis is what stands between marks of it. Underscores inside names are none.
var emphasis = regexp.MustCompile(`\*\*([^*\x1a]+)\*\*|\*([^*\s\x1a][^*\x1a]*)\*|^__([^_]+)__$|^_([^_]+)_$`)

func isPunct(c byte) bool {
	return c > ' ' && c < 0x7f && (c < '0' || c > '9') && (c < 'A' || c > 'Z') && (c < 'a' || c > 'z')
}

// escape writes a text so that [plainText] gives it back.
func escape(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '\n' || c == '\r':
			c = ' '
		case strings.IndexByte("|*`\\", c) >= 0,
			c == '&' && entity.MatchString(text[i:]),
			c == '<' && lineBreak.MatchString(text[i:]),
			c == '[' && link.MatchString(text),
			c == '_' && (i == 0 || i == len(text)-1):
			b.WriteByte('\\')
		}
		b.WriteByte(c)
	}
	return b.String()
}

var entity = regexp.MustCompile(`^&#?\w+;?`)

// respell writes a new text for a cell in the manner of the old one: between backticks when it was.
func respell(c Cell, text string) string {
	if len(c.Raw) > 2 && c.Raw[0] == '`' && c.Raw[len(c.Raw)-1] == '`' && !strings.ContainsAny(text, "`|") &&
		strings.Count(c.Raw, "`") == 2 && text != "" {
		return "`" + text + "`"
	}
	if was := escape(c.Text); c.Text != "" && strings.Count(c.Raw, was) == 1 && strings.ContainsAny(c.Raw, "*_[") && text != "" {
		if raw := strings.Replace(c.Raw, was, escape(text), 1); plainText(raw) == text {
			return raw
		}
	}
	return escape(text)
}

// refill is a cell with another content, in the width that it had while that suffices. was is the whole cell.
func refill(was, raw string) string {
	trimmed := strings.Trim(was, " \t")
	left := was[:strings.Index(was, trimmed)]
	if trimmed == "" {
		left = ""
		if was != "" {
			left = " "
		}
	}
	n := utf8.RuneCountInString(was) - utf8.RuneCountInString(left+raw)
	if n < 1 && strings.HasSuffix(was, " ") {
		n = 1
	}
	return left + raw + strings.Repeat(" ", max(n, 0))
}
