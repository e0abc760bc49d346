package planner

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// searchPattern finds documents that may name what changes.
func (p plan) searchPattern() string {
	switch p.kind {
	case renameNet:
		return regexp.QuoteMeta(plain(p.net().bare()))
	case renameRef:
		return `\b` + regexp.QuoteMeta(p.from) + `\b`
	case setField:
		return `\b` + regexp.QuoteMeta(p.ref) + `\b`
	}
	return "."
}

// history are documents that tell what was; they are not rewritten.
var history = []string{"changelog.md", "decisions.md", "history.md"}

// foundDocs are the documents that the search found.
func (p plan) foundDocs() []string {
	res, _ := p.last("search")
	var out []string
	for line := range strings.Lines(res.Content) {
		name, _, ok := strings.Cut(line, ".md:")
		if name += ".md"; !ok || slices.Contains(out, name) || slices.Contains(history, strings.ToLower(path.Base(name))) {
			continue
		}
		out = append(out, name)
	}
	return out
}

// docEdit replaces one stretch of a document.
type docEdit struct{ path, old, new string }

// documentEdits are the edits that bring the documents that were read in line.
func (p plan) documentEdits() []docEdit {
	var out []docEdit
	s := p.steps[len(p.steps)-1]
	docs := p.foundDocs()
	for i, c := range s.calls {
		if c.Name != "read_file" || i >= len(s.results) || i-1 >= len(docs) {
			continue
		}
		text := s.results[i].Content
		if now := p.rewrite(text); now != text {
			old, new := stretch(text, now)
			out = append(out, docEdit{docs[i-1], old, new})
		}
	}
	return out
}

// rewrite is a document with the change carried out.
func (p plan) rewrite(text string) string {
	var b strings.Builder
	t := tableState{}
	for line := range strings.SplitAfterSeq(text, "\n") {
		t.see(line)
		switch p.kind {
		case renameNet:
			line = p.renameInLine(line)
		case renameRef:
			line = replaceToken(line, p.from, p.to)
		case setField:
			line = t.setCell(line, p.ref, p.field, p.text)
		}
		b.WriteString(line)
	}
	return b.String()
}

// renameInLine replaces the net's full name wherever it stands as a name of its
// own, and its bare name where it is a whole table cell or a code span: in prose
// a bare name may be any word.
func (p plan) renameInLine(line string) string {
	n := p.net()
	from, to := plain(n.name), plain(p.fullTo())
	line = replaceToken(line, from, to)
	if bare := plain(n.bare()); bare != from {
		line = strings.ReplaceAll(line, "`"+bare+"`", "`"+plain(p.bareTo())+"`")
		if strings.HasPrefix(strings.TrimSpace(line), "|") {
			cells := strings.Split(line, "|")
			for i, c := range cells {
				if strings.TrimSpace(c) == bare {
					cells[i] = refill(c, plain(p.bareTo()))
				}
			}
			line = strings.Join(cells, "|")
		}
	}
	return line
}

// replaceToken replaces from where no character of a name stands beside it. In a
// table the cell keeps its width while there is room.
func replaceToken(line, from, to string) string {
	if from == "" || !strings.Contains(line, from) {
		return line
	}
	if !strings.HasPrefix(strings.TrimSpace(line), "|") {
		return replaceWord(line, from, to)
	}
	cells := strings.Split(line, "|")
	for i, c := range cells {
		if now := replaceWord(strings.TrimSpace(c), from, to); now != strings.TrimSpace(c) {
			cells[i] = refill(c, now)
		}
	}
	return strings.Join(cells, "|")
}

func replaceWord(s, from, to string) string {
	var b strings.Builder
	for {
		i := strings.Index(s, from)
		if i < 0 {
			b.WriteString(s)
			return b.String()
		}
		end := i + len(from)
		if (i > 0 && inName(s[i-1])) || (end < len(s) && inName(s[end]) && !sentenceEnd(s[end:])) {
			b.WriteString(s[:end])
		} else {
			b.WriteString(s[:i])
			b.WriteString(to)
		}
		s = s[end:]
	}
}

// inName reports whether a byte may stand in the name of a net or part: then what
// was found is a piece of another name, or the end of a range such as R1-R4.
func inName(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80 ||
		strings.IndexByte("_/+-~{}.#", c) >= 0
}

// sentenceEnd reports whether what follows a name is the full stop of a sentence.
func sentenceEnd(rest string) bool {
	return rest[0] == '.' && (len(rest) == 1 || rest[1] == ' ' || rest[1] == '\n' || rest[1] == '\r')
}

// refill puts text into a table cell, in the width that the cell had while that
// suffices.
func refill(cell, text string) string {
	left := cell[:len(cell)-len(strings.TrimLeft(cell, " "))]
	right := ""
	if n := len(cell) - len(left) - len(text); n > 0 {
		right = strings.Repeat(" ", n)
	} else if strings.HasSuffix(cell, " ") {
		right = " "
	}
	return left + text + right
}

// stretch is the part of two texts that differs, in whole lines, with as many
// lines around it as make the old part occur just once.
func stretch(old, now string) (a, b string) {
	x, y := strings.SplitAfter(old, "\n"), strings.SplitAfter(now, "\n")
	first := 0
	for first < len(x) && first < len(y) && x[first] == y[first] {
		first++
	}
	tail := 0
	for tail < len(x)-first && tail < len(y)-first && x[len(x)-1-tail] == y[len(y)-1-tail] {
		tail++
	}
	for {
		a = strings.Join(x[first:len(x)-tail], "")
		b = strings.Join(y[first:len(y)-tail], "")
		if strings.Count(old, a) == 1 || first == 0 && tail == 0 {
			return a, b
		}
		first, tail = max(first-1, 0), max(tail-1, 0)
	}
}
