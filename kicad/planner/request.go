// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// kind is what a request asks for.
type kind uint8

const (
	renameNet kind = iota + 1
	renameRef
	setField
	fixDocs
)

// request is one mechanical request.
type request struct {
	kind     kind
	from, to string // names of nets or parts
	ref      string // setField: the part
	field    string // setField: Value, Footprint, another field, or the flag dnp
	text     string // setField: what it is to say
}

// Help tells what the planner can do.
const Help = `The built-in planner carries out mechanical requests:
  rename net OLD to NEW
  rename reference R1 to R10       (or: rename R1 to R10)
  set value of R1 to 4k7           (or: set R1 to 4k7)
  set footprint of R1 to Resistor_SMD:R_0805_2012Metric
  set field MPN of R1 to RC0603FR-074K7L
  mark R1 as DNP                   (or: do not fit R1; and back: fit R1)
  check and fix docs               (repairs the documents by the design)`

// A NotUnderstoodError is a request that the planner has no rule for.
type NotUnderstoodError struct{ Request string }

func (e *NotUnderstoodError) Error() string {
	return fmt.Sprintf("the built-in planner does not understand %q.\n%s\nFor anything else choose a model with --model.", e.Request, Help)
}

// parse reads a request in words: a verb, what it is about, a separator such as
// "to", and the new name or text. Words that carry no meaning are passed over;
// anything else that is left is not understood.
func parse(text string) (request, error) {
	fail := &NotUnderstoodError{Request: strings.TrimSpace(text)}
	words := lex(text)
	for len(words) > 0 && words[0].is("please", "kindly", "now", "can", "could", "you", "just") {
		words = words[1:]
	}
	if wantsDocs(words) {
		return request{kind: fixDocs}, nil
	}
	if r, ok := fitting(words); ok {
		return r, nil
	}
	if len(words) < 3 {
		return request{}, fail
	}
	verb := words[0]
	if !verb.is("rename", "renumber", "change", "set", "make") {
		return request{}, fail
	}
	left, right, ok := split(words[1:])
	if !ok {
		return request{}, fail
	}
	if field, ref, ok := fieldOf(left); ok && verb.is("set", "change", "make") {
		return request{kind: setField, ref: ref, field: field, text: right}, nil
	}
	subject, what, ok := about(left)
	if !ok {
		return request{}, fail
	}
	naming := verb.is("rename", "renumber")
	switch {
	case what == "" && naming && refName.MatchString(subject) && refName.MatchString(right):
		what = "reference"
	case what == "" && naming && verb.is("rename"):
		what = "net"
	case what == "" && refName.MatchString(subject):
		what = "value"
	}
	switch {
	case what == "net":
		return request{kind: renameNet, from: subject, to: right}, nil
	case what == "reference":
		return request{kind: renameRef, from: subject, to: right}, nil
	case what == "value" && !naming:
		return request{kind: setField, ref: subject, field: "Value", text: right}, nil
	case what == "footprint" && !naming:
		return request{kind: setField, ref: subject, field: "Footprint", text: right}, nil
	}
	return request{}, fail
}

var refName = regexp.MustCompile(`^[A-Za-z]+[0-9]+[A-Za-z]?$`)

// word is a word of a request, or a text in quotes, which never counts as a word
// of ours.
type word struct {
	text   string
	quoted bool
}

func (w word) is(words ...string) bool {
	return !w.quoted && slices.Contains(words, strings.ToLower(w.text))
}

// quotes are the pairs that may stand around a name.
var quotes = map[rune]rune{'"': '"', '\'': '\'', '`': '`', '\u201c': '\u201d', '\u2018': '\u2019'}

// lex cuts a request into words. A full stop at its end belongs to the sentence.
func lex(text string) []word {
	var words []word
	s := strings.TrimRight(strings.TrimSpace(text), ".!? ")
	for s != "" {
		first, size := utf8.DecodeRuneInString(s)
		if end := quotes[first]; end != 0 {
			if inner, rest, ok := strings.Cut(s[size:], string(end)); ok && inner != "" {
				words = append(words, word{inner, true})
				s = strings.TrimLeft(rest, " \t\r\n,")
				continue
			}
		}
		w, rest := s, ""
		if i := strings.IndexAny(s, " \t\r\n"); i >= 0 {
			w, rest = s[:i], s[i:]
		}
		if w = strings.TrimRight(w, ","); w != "" {
			words = append(words, word{w, false})
		}
		s = strings.TrimLeft(rest, " \t\r\n,")
	}
	return words
}

// split parts the words at the last separator, or before the last word when there
// is none and just two are left, as in "set R1 4k7".
func split(words []word) (left []word, right string, ok bool) {
	for i, w := range slices.Backward(words) {
		if w.is("to", "into", "as", "->", "=>", "\u2192", "=", "be") {
			if i == 0 || i != len(words)-2 {
				return nil, "", false
			}
			return words[:i], words[i+1].text, true
		}
	}
	if len(words) == 2 {
		return words[:1], words[1].text, true
	}
	return nil, "", false
}

// about finds the name that a request is about, and what of it: net, reference,
// value, footprint, or "" when it does not say.
func about(words []word) (subject, what string, ok bool) {
	for _, w := range words {
		switch {
		case w.is("the", "of", "for", "called", "named", "name", "part", "component", "symbol", "designator"):
		case w.is("net", "signal", "label") && what == "" && subject == "":
			what = "net"
		case w.is("reference", "refdes") && what == "":
			what = "reference"
		case w.is("value", "footprint") && what == "":
			what = strings.ToLower(w.text)
		case subject == "":
			subject = w.text
			if !w.quoted {
				subject = strings.TrimSuffix(strings.TrimSuffix(subject, "'s"), "\u2019s")
			}
		default:
			return "", "", false
		}
	}
	return subject, what, subject != ""
}
