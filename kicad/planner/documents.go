// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/docs"
)

// searchPattern finds documents that may name what changes.
func (p plan) searchPattern() string {
	switch p.kind {
	case renameNet:
		return regexp.QuoteMeta(plain(p.net().bare()))
	case renameRef:
		return refPattern(p.spelled(p.from))
	case setField:
		return refPattern(p.spelled(p.ref))
	case fixDocs, addConstraint, changeConstraint, decide, resolve:
	}
	return ""
}

// refPattern finds a reference, and ranges of its letters that may hold it.
func refPattern(ref string) string {
	word := `\b` + regexp.QuoteMeta(ref) + `\b`
	if m := refParts.FindStringSubmatch(ref); m != nil {
		word += `|\b` + m[1] + `[0-9]+\s*(-|\.\.|\x{2013}|to)`
	}
	return word
}

// history are documents that tell what was, and those that instruct programs; they are not rewritten.
var history = []string{"changelog.md", "decisions.md", "history.md", "claude.md", "agents.md", "gemini.md"}

// foundDocs are the documents that the search found.
func (t talk) foundDocs() []string {
	res := t.last("search")
	var out []string
	for line := range strings.Lines(listed(res)) {
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
func (j job) documentEdits() []docEdit {
	var out []docEdit
	for _, name := range j.foundDocs() {
		text, whole := j.document(name)
		if !whole {
			continue
		}
		if now := j.rewrite(text); now != text {
			old, new := stretch(text, now)
			out = append(out, docEdit{name, old, new})
		}
	}
	return out
}

var sizePattern = regexp.MustCompile(`: \d+ lines, (\d+) bytes`)

// document is what read_file last gave of a document, and whether that was all of
// it: a long answer is cut.
func (t talk) document(name string) (text string, whole bool) {
	want := call("read_file", args{"path": name}).Args
	for _, s := range slices.Backward(t.steps) {
		for i, c := range s.calls {
			if c.Name != "read_file" || c.Args != want || i >= len(s.results) || s.results[i].IsError() {
				continue
			}
			res := s.results[i]
			m := sizePattern.FindStringSubmatch(firstLine(res.Body()))
			text := listed(res)
			return text, m != nil && m[1] == strconv.Itoa(len(text))
		}
	}
	return "", false
}

// rewrite is a document with the change carried out.
func (p plan) rewrite(text string) string {
	var b strings.Builder
	t := tableState{}
	ref, from := p.spelled(p.ref), p.spelled(p.from)
	for line := range strings.SplitAfterSeq(text, "\n") {
		t.see(line)
		switch p.kind {
		case renameNet:
			line = p.renameInLine(&t, line)
		case renameRef:
			line = replaceToken(line, from, p.to)
		case setField:
			if p.field != "dnp" && p.field != "in_bom" { // how a document tells it, fix_docs knows
				line = t.setCell(line, ref, p.field, p.text, p.leaves)
			}
		case fixDocs, addConstraint, changeConstraint, decide, resolve:
		}
		b.WriteString(line)
	}
	return b.String()
}

// leaves reports whether a column of part numbers is left with that of another part: value or footprint change, and the
// request does not say the number.
func (p plan) leaves(column string) bool {
	whose, ok := docs.NumberOf(column)
	if !ok || p.numbers[p.spelled(p.ref)+" "+whose] {
		return false
	}
	q, _ := p.part(p.ref)
	switch p.field {
	case "Value":
		return q.value != "" && (!docs.SameValue(p.text, q.value) || !docs.SameValue(q.value, p.text))
	case "Footprint":
		return q.footprint != ""
	}
	return false
}

// renameInLine replaces the net's name where a net is meant: in the net column of a
// table, in code spans, and elsewhere when the name can be no word of the language.
// A pin, a value or a word may be called the same.
func (p plan) renameInLine(t *tableState, line string) string {
	n := p.net()
	pairs := [][2]string{{plain(n.name), plain(p.fullTo())}}
	if bare := plain(n.bare()); bare != pairs[0][0] {
		pairs = append(pairs, [2]string{bare, plain(p.bareTo())})
	}
	for _, pair := range pairs {
		from, to := pair[0], pair[1]
		line = strings.ReplaceAll(line, "`"+from+"`", "`"+to+"`")
		switch {
		case t.columns != nil:
			line = t.inColumns(line, netColumns, func(cell string) string { return replaceWord(cell, from, to) })
			if strings.HasPrefix(from, "/") {
				line = replaceToken(line, from, to)
			}
		case from == plain(n.name) && distinct(from):
			line = replaceToken(line, from, to)
		}
	}
	return line
}

// distinct reports whether a net's full name can be no ordinary word.
func distinct(name string) bool { return strings.ContainsAny(name, "/_+~{0123456789") }

// leftAlone tells where documents still spell what has changed.
func (j job) leftAlone() (notes []string) {
	for _, name := range j.foundDocs() {
		text, whole := j.document(name)
		if !whole {
			notes = append(notes, fmt.Sprintf("%s is too long to be rewritten here; see whether it names %s.", name, strings.Join(j.olds(), ", ")))
			continue
		}
		n := 0
		for line := range strings.Lines(j.rewrite(text)) {
			n++
			for _, p := range j.open {
				if note := p.stays(line); note != "" {
					notes = append(notes, fmt.Sprintf("%s line %d %s", name, n, note))
				}
			}
		}
	}
	return notes
}

// olds are the names that change.
func (j job) olds() (all []string) {
	for _, p := range j.open {
		if old := p.old(); old != "" {
			all = append(all, old)
		}
	}
	return all
}

func (p plan) old() string {
	switch p.kind {
	case renameNet:
		return plain(p.net().name)
	case setField:
		return p.spelled(p.ref)
	case renameRef:
		return p.spelled(p.from)
	case fixDocs, addConstraint, changeConstraint, decide, resolve:
	}
	return ""
}

// stays says what a line of a document still says of what has changed.
func (p plan) stays(line string) string {
	old := p.old()
	if old == "" {
		return ""
	}
	switch covered := rangeOver(line, old); {
	case p.kind != renameNet && covered != "":
		return fmt.Sprintf("says %s, which covers %s; it was left alone.", covered, old)
	case p.kind == renameNet && replaceWord(line, bareName(old), "") != line:
		return fmt.Sprintf("says %s, where it may mean something else; it was left alone.", bareName(old))
	}
	return ""
}

func bareName(net string) string { return net[strings.LastIndex(net, "/")+1:] }

var rangePattern = regexp.MustCompile(`\b([A-Za-z]+)([0-9]+)\s*(?:-|\.\.|\x{2013}|to)\s*([A-Za-z]*)([0-9]+)\b`)

// rangeOver is a range of references, such as R1-R4, that holds ref without naming it.
func rangeOver(line, ref string) string {
	m := refParts.FindStringSubmatch(ref)
	if m == nil {
		return ""
	}
	at, _ := strconv.Atoi(m[2]) // the pattern has digits only; a number too large is in no range
	for _, r := range rangePattern.FindAllStringSubmatch(line, -1) {
		from, _ := strconv.Atoi(r[2])
		to, _ := strconv.Atoi(r[4])
		if r[1] == m[1] && (r[3] == "" || r[3] == m[1]) && from <= at && at <= to {
			return r[0]
		}
	}
	return ""
}

var refParts = regexp.MustCompile(`^([A-Za-z]+)([0-9]+)$`)

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
		if i < 0 || from == "" {
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
	if left == cell && cell != "" { // an empty cell
		left = " "
	}
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
