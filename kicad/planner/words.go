// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/fiducial-dev/fiducial/kicad/docs"
)

var refName = regexp.MustCompile(`^[A-Za-z]+[0-9]+[A-Za-z]?$`)

// word is a word of a request, or a text in quotes, which never counts as a word
// of ours.
type word struct {
	text   string
	quoted bool
	comma  bool // one stands behind it
}

func (w word) is(words ...string) bool {
	return !w.quoted && slices.Contains(words, strings.ToLower(w.text))
}

// quotes are the pairs that may stand around a name.
var quotes = map[rune]rune{'"': '"', '\'': '\'', '`': '`', '\u201c': '\u201d', '\u2018': '\u2019', '\u201e': '\u201c', '\u00ab': '\u00bb'}

// quotedAt is how long a text in quotes is that begins at i, 0 when none does. A quote in the middle of a word, as in
// don't, begins none.
func quotedAt(s string, i int) int {
	if i > 0 && strings.IndexByte(" \t\r\n(,:;", s[i-1]) < 0 {
		return 0
	}
	first, size := utf8.DecodeRuneInString(s[i:])
	end := quotes[first]
	if end == 0 {
		return 0
	}
	at := strings.IndexRune(s[i+size:], end)
	if at <= 0 {
		return 0
	}
	return size + at + utf8.RuneLen(end)
}

// lex cuts a request into words. A full stop at its end belongs to the sentence.
func lex(text string) []word {
	var words []word
	s := strings.TrimRight(strings.TrimSpace(text), ".!? ")
	for i := 0; i < len(s); {
		switch n := quotedAt(s, i); {
		case n > 0:
			_, open := utf8.DecodeRuneInString(s[i:])
			_, closing := utf8.DecodeLastRuneInString(s[i : i+n])
			words = append(words, word{text: s[i+open : i+n-closing], quoted: true})
			i += n
		case strings.IndexByte(" \t\r\n,", s[i]) >= 0:
			if s[i] == ',' && len(words) > 0 {
				words[len(words)-1].comma = true
			}
			i++
		default:
			end := i
			for end < len(s) && strings.IndexByte(" \t\r\n", s[end]) < 0 {
				end++
			}
			list := strings.TrimRight(s[i:end], ",")
			if parts := strings.Split(list, ","); allRefs(parts) { // R1,R2
				for _, p := range parts {
					words = append(words, word{text: p})
				}
			} else {
				words = append(words, word{text: list, comma: end > i+len(list)})
			}
			i = end
		}
	}
	return words
}

func allRefs(parts []string) bool {
	return !slices.ContainsFunc(parts, func(p string) bool { return !refName.MatchString(p) })
}

var separators = []string{"to", "into", "as", "->", "=>", "\u2192", "=", ":=", "be", "with", "by"}

// split parts the words at a separator behind which one name or text stands, or before the last word when there is no
// separator and just two are left, as in "set R1 4k7".
func split(words []word) (left []word, right word, ok bool) {
	for i, w := range slices.Backward(words) {
		if !w.is(separators...) || w.is("with", "by") && i != len(words)-2 {
			continue
		}
		if i == 0 || i == len(words)-1 {
			return nil, word{}, false
		}
		right, ok := joined(words[i+1:])
		return words[:i], right, ok
	}
	if len(words) == 2 {
		return words[:1], words[1], true
	}
	return nil, word{}, false
}

// rating is what may follow a value without quotes: 1%, 16V, X7R, 0.25W.
var rating = regexp.MustCompile(`(?i)^(?:\x{b1}?[0-9.]+%|[0-9.]+ ?[mk]?[VWA]|[CXYZ][0-9][A-Z]|NP0|C0G)$`)

// joined is the text of several words: one, or a value with its unit or ratings.
func joined(words []word) (word, bool) {
	if len(words) == 1 {
		return words[0], true
	}
	texts := make([]string, 0, len(words))
	for _, w := range words {
		if w.quoted {
			return word{}, false
		}
		texts = append(texts, w.text)
	}
	n := 1
	if _, ok := docs.ParseQuantity(strings.Join(texts[:2], " ")); ok {
		n = 2
	}
	if _, ok := docs.ParseQuantity(strings.Join(texts[:n], " ")); !ok {
		return word{}, false
	}
	for _, more := range texts[n:] {
		if !rating.MatchString(more) {
			return word{}, false
		}
	}
	return word{text: strings.Join(texts, " ")}, true
}

// about finds the name that a request is about, and what of it: net, reference, or "" when it does not say.
func about(words []word) (subject, what string, ok bool) {
	for _, w := range words {
		switch {
		case w.is("the", "of", "for", "called", "named", "name", "part", "component", "symbol", "designator"):
		case w.is("net", "signal", "label", "rail") && what == "" && subject == "":
			what = "net"
		case w.is("net", "signal", "label", "rail") && what == "":
			what = "net"
		case w.is("reference", "refdes") && what == "":
			what = "reference"
		case subject == "":
			subject = owner(w)
		default:
			return "", "", false
		}
	}
	return subject, what, subject != ""
}

func owner(w word) string {
	if w.quoted {
		return w.text
	}
	return strings.TrimSuffix(strings.TrimSuffix(w.text, "'s"), "\u2019s")
}

// aboutParts reads parts and which of their fields is meant: "value of R1", "R1 and R2", "R1's footprint".
func aboutParts(words []word) (refs []string, field string, ok bool) {
	field = "Value"
	for _, w := range words {
		switch {
		case w.is("the", "of", "for", "on", "part", "parts", "component", "components", "resistor", "resistors", "capacitor", "capacitors", "and", "&"):
		case w.is("value", "values", "resistance", "capacitance", "inductance"):
		case w.is("footprint", "footprints", "package"):
			field = "Footprint"
		default:
			list := refsOf(owner(w))
			if w.quoted || list == nil {
				return nil, "", false
			}
			refs = append(refs, list...)
		}
	}
	return refs, field, len(refs) > 0
}

var refRange = regexp.MustCompile(`^([A-Za-z]+)([0-9]{1,6})(?:-|\.\.|\x{2013})([A-Za-z]*)([0-9]{1,6})$`)

// maxRange is how many parts a range such as R1-R4 may name.
const maxRange = 100

// refsOf are the references that a word names: one, or a range.
func refsOf(text string) (refs []string) {
	if refName.MatchString(text) {
		return []string{text}
	}
	m := refRange.FindStringSubmatch(text)
	if m == nil || m[3] != "" && m[3] != m[1] {
		return nil
	}
	from, _ := strconv.Atoi(m[2]) // the pattern has a few digits only
	to, _ := strconv.Atoi(m[4])
	if from >= to || to-from >= maxRange {
		return nil
	}
	for n := from; n <= to; n++ {
		refs = append(refs, fmt.Sprintf("%s%d", m[1], n))
	}
	return refs
}

// wantsDocs reports whether a request is about the documents alone.
func wantsDocs(words []word) bool {
	fix, what := false, false
	for _, w := range words {
		switch {
		case w.is("fix", "repair", "update", "mend", "correct", "sync", "synchronise", "synchronize", "bring"):
			fix = true
		case w.is("docs", "documents", "documentation", "doc", "bom.md", "pinout.md", "drift"):
			what = true
		case !w.is("check", "and", "the", "them", "it", "all", "please", "then", "our", "my", "in", "by", "with", "from", "to", "against", "design", "schematic", "line"):
			return false
		}
	}
	return fix && what
}

// fitting reads "mark R1 as DNP", "do not fit R1 and R2", "fit R1", "exclude R1 from the BOM".
func fitting(words []word) (all []request, ok bool) {
	var refs, rest []string
	for _, w := range words {
		list := refsOf(w.text)
		switch {
		case w.quoted:
			return nil, false
		case list != nil && !w.is("dnp"):
			refs = append(refs, list...)
		case w.is("the", "part", "parts", "component", "components", "as", "to", "be", "and", "&", "a", "resistor", "resistors", "capacitor", "capacitors"):
		default:
			rest = append(rest, strings.ToLower(w.text))
		}
	}
	r := request{kind: setField, field: "dnp", text: "yes"}
	switch strings.Join(rest, " ") {
	case "mark dnp", "set dnp", "make dnp", "mark not fitted", "mark unfitted", "mark do not populate", "mark do not fit", "mark not populated",
		"do not fit", "do not populate", "don't fit", "don't populate", "do not place", "don't place", "unfit", "depopulate", "leave out", "leave unpopulated", "leave off", "dnp":
	case "fit", "populate", "mark fitted", "mark populated", "unmark dnp", "unmark", "mark not dnp", "mark no longer dnp":
		r.text = "no"
	case "exclude from bom", "leave out of bom", "take out of bom", "remove from bom", "take off bom":
		r.field, r.text = "in_bom", "no"
	case "include in bom", "put in bom", "put into bom":
		r.field = "in_bom"
	default:
		return nil, false
	}
	for _, ref := range refs {
		r.ref = ref
		all = append(all, r)
	}
	return all, len(all) > 0
}

// fieldNames are fields that need not be called one, as they are spelled in designs.
var fieldNames = map[string]string{"mpn": "MPN", "part number": "MPN", "manufacturer": "Manufacturer", "datasheet": "Datasheet", "description": "Description", "tolerance": "Tolerance"}

// knownField reads what stands before the separator of "set U2's MPN to X" and "set the MPN of U2 to X".
func knownField(words []word) (field string, refs []string, ok bool) {
	words = slices.DeleteFunc(slices.Clone(words), func(w word) bool { return w.is("the") })
	for n := 1; n <= 2 && n < len(words); n++ {
		if field, ok = fieldNames[plainWords(words[:n])]; ok && words[n].is("of", "on", "for") {
			refs, ok = refsAlone(words[n+1:])
			return field, refs, ok
		}
		if field, ok = fieldNames[plainWords(words[len(words)-n:])]; ok {
			refs, ok = refsAlone(words[:len(words)-n])
			return field, refs, ok
		}
	}
	return "", nil, false
}

func plainWords(words []word) string {
	var texts []string
	for _, w := range words {
		if w.quoted {
			return ""
		}
		texts = append(texts, strings.ToLower(w.text))
	}
	return strings.Join(texts, " ")
}

// refsAlone are the parts that words name, when they name nothing else of them.
func refsAlone(words []word) ([]string, bool) {
	if slices.ContainsFunc(words, func(w word) bool {
		return w.is("value", "values", "resistance", "capacitance", "inductance", "footprint", "footprints", "package")
	}) {
		return nil, false
	}
	refs, _, ok := aboutParts(words)
	return refs, ok
}

// fieldOf reads what stands before the separator of "set field MPN of R1 to X": field and parts.
func fieldOf(words []word) (field string, refs []string, ok bool) {
	var left []word
	for _, w := range words {
		if !w.is("the") {
			left = append(left, w)
		}
	}
	if len(left) < 4 || !left[2].is("of", "on", "for") {
		return "", nil, false
	}
	switch {
	case left[0].is("field", "property"):
		field = left[1].text
	case left[1].is("field", "property"):
		field = left[0].text
	default:
		return "", nil, false
	}
	switch strings.ToLower(field) {
	case "value":
		field = "Value"
	case "footprint":
		field = "Footprint"
	case "reference":
		return "", nil, false // that is a rename
	}
	refs, _, ok = aboutParts(left[3:])
	return field, refs, ok
}
