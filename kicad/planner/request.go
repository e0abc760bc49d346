// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// kind is what a request asks for.
type kind uint8

const (
	renameNet kind = iota + 1
	renameRef
	setField
	fixDocs
	addConstraint
	changeConstraint
	decide
	resolve
)

// request is one mechanical request.
type request struct {
	kind     kind
	from, to string // names of nets or parts
	ref      string // setField: the part
	field    string // setField: Value, Footprint, another field, or a flag: dnp, in_bom
	text     string // setField: what it is to say; constraints and decisions: what holds, or was decided
	exact    bool   // setField: the text stood in quotes, and is meant to the letter

	key     string // constraints: the name that was given, or what tells the one that is meant
	why     string // constraints, decisions: the reason; resolve: what came of it
	affects string // constraints, decisions: a list; resolve: the item
}

// Help tells what the planner can do.
const Help = `The built-in planner carries out mechanical requests:
  rename net OLD to NEW
  rename reference R1 to R10       (or: rename R1 to R10)
  set value of R1 to 4k7           (or: set R1 to 4k7; set R1, R2 and R5 to 4k7; set R1 to 470, R2 to 10k)
  set footprint of R1 to Resistor_SMD:R_0805_2012Metric
  set field MPN of R1 to RC0603FR-074K7L   (or: set R1's MPN to RC0603FR-074K7L)
  mark R1 as DNP                   (or: do not fit R1; and back: fit R1)
  exclude R1 from the BOM          (and back: include R1 in the BOM)
  add a constraint: D1 current at most 20 mA because ...
  change constraint d1-current to at most 15 mA because ...
  resolve d1-current affects R1: WHAT CAME OF IT
  record the decision to use ... because ...
  check and fix docs               (repairs the documents by the design)
Several of them can stand in one request, with "and", a semicolon or a new line between them.
A name or text with blanks stands in quotes: rename net "MY NET" to "OTHER".`

// A NotUnderstoodError is a request that the planner has no rule for.
type NotUnderstoodError struct {
	Request string
	Hint    string // what is missing, "" when nothing of it is understood
}

func (e *NotUnderstoodError) Error() string {
	if e.Request == "" {
		return fmt.Sprintf("the request is empty: say what is to be done.\n%s\nFor anything else choose a model with --model.", Help)
	}
	hint := ""
	if e.Hint != "" {
		hint = " " + e.Hint
	}
	return fmt.Sprintf("the built-in planner does not understand %q.%s\n%s\nFor anything else choose a model with --model.", cutName(e.Request, 400), hint, Help)
}

// maxRequest is how many bytes a request may have.
const maxRequest = 16 << 10

// maxCuts is how many places a request may have where another one could begin.
const maxCuts = 40

var (
	between = regexp.MustCompile(`(?i)^(?:\s*[;\n]+\s*(?:(?:and|then|also)\s+)*|[.,]\s+(?:(?:and|then|also)\s+)*|\s+and\s+(?:(?:then|also)\s+)*|\s+then\s+)`)
	begins  = regexp.MustCompile(`(?i)^(?:please\s+)?(?:rename|renumber|change|set|make|mark|unmark|do\s+not|don't|fit|unfit|populate|depopulate|leave|add|record|log|note|` +
		`document|create|define|resolve|check|fix|repair|update|mend|replace|exclude|include|remove|tighten|loosen|relax|raise|lower|decide|constrain|limit|require)\b`)
)

// parse reads a request in words. It may hold several, one after the other.
func parse(text string) ([]request, error) {
	fail := &NotUnderstoodError{Request: strings.TrimSpace(text)}
	if len(text) > maxRequest {
		fail.Hint = fmt.Sprintf("It is too long: it has %d bytes, and at most %d are read. Say it in several requests.", len(text), maxRequest)
		return nil, fail
	}
	if !strings.ContainsFunc(text, func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }) {
		fail.Hint = "There is no word in it."
		return nil, fail
	}
	p := parser{text: strings.TrimSpace(text), none: map[int]bool{}}
	p.cut()
	if len(p.cuts) > maxCuts {
		fail.Hint = "It holds too much at once."
		return nil, fail
	}
	if all, ok := p.from(0); ok {
		return all, nil
	}
	if fail.Hint = p.hint; p.hint == "" && mustSay.MatchString(text) {
		fail.Hint = "To record what must hold, say: add a constraint: " + cutName(oneLine(text), 200) + " because ..."
	}
	return nil, fail
}

// mustSay is what a constraint sounds like.
var mustSay = regexp.MustCompile(`(?i)\b(?:must|shall|never|at most|at least|no more than|may not|has to)\b`)

// parser finds the places where a request can be parted.
type parser struct {
	text string
	cuts [][2]int     // where the one ends and where the next begins
	none map[int]bool // nothing can be made of the text from there
	hint string
}

func (p *parser) cut() {
	for i := 0; i < len(p.text); {
		if n := quotedAt(p.text, i); n > 0 {
			i += n
			continue
		}
		m := between.FindString(p.text[i:])
		if i == 0 || m == "" || !begins.MatchString(p.text[i+len(m):]) {
			i++
			continue
		}
		p.cuts = append(p.cuts, [2]int{i, i + len(m)})
		i += len(m)
	}
}

// from reads what begins at start: as several requests when each of the parts is one, else as one.
func (p *parser) from(start int) ([]request, bool) {
	if p.none[start] {
		return nil, false
	}
	for _, c := range p.cuts {
		if c[0] <= start {
			continue
		}
		first, ok := p.one(p.text[start:c[0]])
		if !ok {
			continue
		}
		if rest, ok := p.from(c[1]); ok {
			return append(first, rest...), true
		}
	}
	all, ok := p.one(p.text[start:])
	p.none[start] = !ok
	return all, ok
}

// one reads one request; several parts of it make it several.
func (p *parser) one(text string) ([]request, bool) {
	text = thanks.ReplaceAllString(polite.ReplaceAllString(strings.TrimSpace(text), ""), "")
	r, hint, ok := recordOf(text)
	if ok {
		return []request{r}, true
	}
	if hint == "" {
		hint = never(text)
	}
	if hint != "" {
		p.hint = hint
		return nil, false
	}
	words := lex(text)
	if wantsDocs(words) {
		return []request{{kind: fixDocs}}, true
	}
	if all, ok := fitting(words); ok {
		return all, true
	}
	all, hint, ok := naming(words)
	if hint != "" {
		p.hint = hint
	}
	if !ok {
		all, ok = pairs(words)
	}
	return all, ok
}

var (
	dropsConstraint = regexp.MustCompile(`(?is)^(?:remove|delete|drop|erase|cancel|withdraw|lift|forget)\s+(?:(?:the|a|our|my)\s+)*(?:\S+\s+)?(?:constraint|limit|requirement)s?\b`)
	swaps           = regexp.MustCompile(`(?i)^(?:swap|exchange|interchange)\s`)
	dropsPart       = regexp.MustCompile(`(?i)^(?:remove|delete|drop|erase)\s+(?:the\s+)?(?:part\s+|component\s+)?([A-Za-z]+[0-9]+)[.!]*$`)
)

// never says why something that is well understood is not done all the same, "" for anything else.
func never(text string) string {
	switch part := dropsPart.FindStringSubmatch(text); {
	case dropsConstraint.MatchString(text):
		return "No run takes a constraint out of the registry, for what does not hold any more must not vanish unseen. To change it with its reason in the log of decisions, " +
			"say: change constraint KEY to ... because ... To drop it, take it out of the registry and of its document by hand, and say why in DECISIONS.md."
	case swaps.MatchString(text):
		return "It may mean references, values, pins or places, and each is another circuit or another layout. Say each part with its new value: set R1 to 10k, R2 to 470."
	case part != nil:
		return fmt.Sprintf("Parts are taken out in KiCad, with their wires. To leave it off the board or out of the list, say: do not fit %s, or: exclude %s from the BOM.", part[1], part[1])
	}
	return ""
}

// pairs reads "rename A to B and C to D" or "set R1 to 470, R2 to 10k": what stands behind "and" or a comma is of the same
// kind and field as what stands before.
func pairs(words []word) (all []request, ok bool) {
	var piece []word
	for i, w := range words[min(1, len(words)):] {
		last := i+2 == len(words)
		and := w.is("and", "&")
		if and && len(piece) == 0 && len(all) > 0 && !last { // behind a comma
			continue
		}
		if !and || !complete(piece) {
			piece = append(piece, w)
			if !last && (!w.comma || !complete(piece)) {
				continue
			}
		}
		if and && last {
			return nil, false
		}
		more, _, ok := naming(append([]word{words[0]}, piece...))
		if !ok || len(all) > 0 && (more[0].kind != all[0].kind || more[0].field != all[0].field) {
			return nil, false
		}
		all, piece = append(all, more...), nil
	}
	return all, len(all) > 1
}

// complete reports whether words may hold both names of a pair.
func complete(piece []word) bool {
	return slices.ContainsFunc(piece, func(w word) bool { return w.is(separators...) })
}

var thanks = regexp.MustCompile(`(?i)[,\s]+(?:please|thanks|thank you)[.!?\s]*$`)

var polite = regexp.MustCompile(`(?i)^(?:(?:please|kindly|now|just|also|then|can you|could you|would you|will you|you|i want you to|i'd like you to|let's|let us)[,\s]+)+`)

// naming reads a verb, what it is about, a separator such as "to", and the new name or text. Words that carry no
// meaning are passed over; anything else that is left is not understood.
func naming(words []word) (all []request, hint string, ok bool) {
	if len(words) < 3 {
		return nil, "", false
	}
	verb := words[0]
	if !verb.is("rename", "renumber", "change", "set", "make", "update", "replace") {
		return nil, "", false
	}
	left, right, ok := split(words[1:])
	if !ok {
		return nil, "", false
	}
	renames := verb.is("rename", "renumber")
	if field, list, ok := fieldOf(left); ok && !renames {
		return fields(list, field, right), "", true
	}
	if field, list, ok := knownField(left); ok && !renames {
		return fields(list, field, right), "", true
	}
	if list, what, ok := aboutParts(left); ok && !renames {
		if like := list[0]; len(left) == 1 && !right.quoted && refName.MatchString(right.text) && letters(right.text) == letters(like) {
			return nil, fmt.Sprintf("%s may be another reference or a value: say \"rename %s to %s\" or \"set value of %s to %s\".", right.text, like, right.text, like, right.text), false
		}
		return fields(list, what, right), "", true
	}
	subject, what, ok := about(left)
	if !ok || right.text == "" {
		return nil, "", false
	}
	switch {
	case what == "" && renames && refName.MatchString(subject) && refName.MatchString(right.text):
		what = "reference"
	case what == "" && verb.is("rename"):
		what = "net"
	}
	switch {
	case what == "net" && !verb.is("replace"):
		return []request{{kind: renameNet, from: subject, to: right.text}}, "", true
	case what == "reference" && !verb.is("replace"):
		return []request{{kind: renameRef, from: subject, to: right.text}}, "", true
	}
	return nil, "", false
}

func letters(ref string) string { return strings.TrimRight(ref, "0123456789") }

// fields is the same field of several parts.
func fields(refs []string, field string, text word) (all []request) {
	for _, ref := range refs {
		all = append(all, request{kind: setField, ref: ref, field: field, text: text.text, exact: text.quoted})
	}
	return all
}
