// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A Quantity is a number with a unit, in the unit itself: 4k7 is 4700, 100n is 1e-7.
type Quantity struct {
	Value float64
	Unit  string // "Ohm", "F", "H", "Hz", "V", "A", "W", "%", "s", "m" or another as written; "" when it says none
}

// prefixes are SI's, as they are written in schematics.
var prefixes = map[string]float64{
	"f": 1e-15, "p": 1e-12, "n": 1e-9, "N": 1e-9, "u": 1e-6, "U": 1e-6, "\u00b5": 1e-6, "\u03bc": 1e-6, "m": 1e-3, "": 1, "k": 1e3, "K": 1e3,
	"M": 1e6, "Meg": 1e6, "MEG": 1e6, "meg": 1e6, "G": 1e9, "T": 1e12,
}

var units = map[string]string{
	"": "", "R": "Ohm", "r": "Ohm", "\u03a9": "Ohm", "\u2126": "Ohm", "ohm": "Ohm", "Ohm": "Ohm", "OHM": "Ohm", "ohms": "Ohm", "Ohms": "Ohm", "OHMS": "Ohm",
	"F": "F", "f": "F", "H": "H", "h": "H", "Hz": "Hz", "HZ": "Hz", "hz": "Hz", "V": "V", "v": "V", "A": "A", "W": "W", "w": "W", "%": "%", "s": "s", "m": "m",
	"Vdc": "V", "VDC": "V", "Ah": "Ah", "Wh": "Wh", "°C": "°C", "C": "°C", "ppm": "ppm",
}

var (
	// 4k7, 0R22, 1u0, R10: the letter stands for the point.
	letterPoint = regexp.MustCompile(`^([0-9]{0,4})(Meg|MEG|meg|[fpnNuU\x{b5}\x{3bc}mkKMGRr])([0-9]{1,3})(F|H|Hz|R|\x{3a9}|\x{2126}|V|A|W|Ohm|ohm)?$`)
	// 4.7 kOhm, 100n, 16V, -0.5 A.
	withUnit = regexp.MustCompile(`^([-+]?(?:[0-9]+(?:[.,][0-9]+)?|[.][0-9]+)(?:[eE][-+]?[0-9]+)?)\s*(Meg|MEG|meg|[fpnNuU\x{b5}\x{3bc}mkKMGT]?)\s*(Ohms?|ohms?|OHMS?|\x{3a9}|\x{2126}|R|r|F|f|Hz|HZ|hz|H|h|Vdc|VDC|V|v|Ah|A|Wh|W|w|%|°C|C|ppm|s|m|)$`)
)

// ParseQuantity reads a value as engineers write it. A comma is a decimal point when it is the only mark.
func ParseQuantity(text string) (Quantity, bool) {
	text = strings.TrimSpace(text)
	if m := letterPoint.FindStringSubmatch(text); m != nil && (m[1] != "" || m[2] == "R" || m[2] == "r") {
		n, err := strconv.ParseFloat("0"+m[1]+"."+m[3], 64)
		q := Quantity{Value: n, Unit: units[m[4]]}
		if m[2] == "R" || m[2] == "r" {
			q.Unit = "Ohm"
		} else {
			q.Value *= prefixes[m[2]]
		}
		return q, err == nil
	}
	m := withUnit.FindStringSubmatch(text)
	if m == nil {
		return Quantity{}, false
	}
	n, err := strconv.ParseFloat(strings.Replace(m[1], ",", ".", 1), 64)
	if err != nil {
		return Quantity{}, false
	}
	prefix, unit := m[2], m[3]
	if prefix == "f" && unit == "" {
		prefix, unit = "", "F" // nobody has femto of nothing
	}
	return Quantity{Value: n * prefixes[prefix], Unit: units[unit]}, true
}

// same compares two quantities; one that says no unit may have any.
func (q Quantity) same(o Quantity) bool {
	if q.Unit != o.Unit && q.Unit != "" && o.Unit != "" {
		return false
	}
	return math.Abs(q.Value-o.Value) <= 1e-9*max(math.Abs(q.Value), math.Abs(o.Value))
}

// String is the quantity with the prefix that makes the number short: "25 uA".
func (q Quantity) String() string {
	if q.Value == 0 || q.Unit == "%" || q.Unit == "°C" || q.Unit == "ppm" {
		return strings.TrimSpace(number(q.Value) + " " + q.Unit)
	}
	for _, p := range []struct {
		name  string
		scale float64
	}{{"G", 1e9}, {"M", 1e6}, {"k", 1e3}, {"", 1}, {"m", 1e-3}, {"u", 1e-6}, {"n", 1e-9}, {"p", 1e-12}} {
		if math.Abs(q.Value) >= p.scale*(1-1e-9) {
			return strings.TrimSpace(number(q.Value/p.scale) + " " + p.name + q.Unit)
		}
	}
	return strings.TrimSpace(number(q.Value) + " " + q.Unit)
}

func number(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }

// SameValue compares a value of a document with one of the design: as quantities when both are (4k7, 4.7 kOhm), with
// what follows them (10u 16V, 10uF/16V/X7R: one may say more than the other, but nothing else), else as words without
// regard to capitals. A remark in brackets behind the document's value, and a mark that the part is not fitted, do not
// count. KiCad's ~ and - are empty values.
func SameValue(doc, design string) bool {
	doc, design = cleanValue(doc), cleanValue(design)
	if doc == design {
		return true
	}
	if doc == "" || design == "" {
		return false
	}
	a, b := parseValue(doc), parseValue(design)
	if a.ok != b.ok {
		return false
	}
	if a.ok { // capitals count: 1m is not 1M
		return a.q.same(b.q) && (within(a.rest, b.rest) || within(b.rest, a.rest))
	}
	if strings.EqualFold(doc, design) {
		return true
	}
	short, _, found := strings.Cut(doc, " (")
	return found && strings.EqualFold(strings.TrimSpace(short), design) || strings.EqualFold(strings.Join(strings.Fields(doc), ""), strings.Join(strings.Fields(design), ""))
}

func cleanValue(s string) string {
	s = oneSpace(s)
	if saysNotFitted(s) {
		s = strings.Trim(notFitted.ReplaceAllString(s, "$1$3"), " ,;()[]/-")
	}
	if s == "~" || s == "-" || s == "–" || s == "—" {
		return ""
	}
	return s
}

// A value is a quantity and what follows it.
type value struct {
	ok   bool
	q    Quantity
	rest []string
	head string // the quantity as written
	tail string // the rest as written
}

var unitWord = regexp.MustCompile(`^(?:Meg|[fpnNuU\x{b5}\x{3bc}mkKMG])?(?:Ohms?|ohms?|OHMS?|\x{3a9}|\x{2126}|R|F|Hz|H|V|A|W|%)?$`)

// parseValue parts a value into its words; the first one or two are the quantity.
func parseValue(s string) value {
	words := strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == '/' || r == ';' || r == '@' })
	if len(words) == 0 {
		return value{}
	}
	n := 1
	if len(words) > 1 && unitWord.MatchString(words[1]) && strings.HasPrefix(s, words[0]+" ") {
		n = 2
	}
	head := strings.TrimSuffix(strings.Join(words[:n], " "), ",")
	q, ok := ParseQuantity(head)
	if !ok {
		return value{}
	}
	v := value{ok: true, q: q, head: head, tail: s[strings.Index(s, words[n-1])+len(words[n-1]):]}
	for i := n; i < len(words); i++ {
		w := strings.Trim(words[i], ",()")
		if i+1 < len(words) && unitWord.MatchString(words[i+1]) {
			w += words[i+1]
			i++
		}
		if w != "" {
			v.rest = append(v.rest, w)
		}
	}
	return v
}

// within reports whether every word of a is among b.
func within(a, b []string) bool {
	for _, w := range a {
		if !slices.ContainsFunc(b, func(x string) bool { return sameWord(w, x) }) {
			return false
		}
	}
	return true
}

func sameWord(a, b string) bool {
	p, ok := ParseQuantity(strings.TrimLeft(a, "±"))
	q, ok2 := ParseQuantity(strings.TrimLeft(b, "±"))
	if ok && ok2 {
		return p.same(q)
	}
	return strings.EqualFold(a, b)
}

// newValue is the design's value in the place of the document's: what follows the quantity stays.
func newValue(doc, design string, dnp bool) string {
	if !dnp {
		doc = cleanValue(doc)
	}
	a, b := parseValue(cleanValue(doc)), parseValue(cleanValue(design))
	if a.ok && b.ok && len(b.rest) == 0 && len(a.rest) > 0 && strings.HasPrefix(doc, a.head) {
		return cleanValue(design) + doc[len(a.head):]
	}
	if cleanValue(design) == "" {
		return ""
	}
	if saysNotFitted(doc) {
		return design + " DNP"
	}
	return design
}

// SameFootprint compares a footprint of a document with one of the design. The document may leave out the library, or
// name the package alone: 0603 or SOT-23 for Resistor_SMD:R_0603_1608Metric and Package_TO_SOT_SMD:SOT-23.
func SameFootprint(doc, design string) bool {
	doc, design = cleanValue(doc), cleanValue(design)
	if strings.EqualFold(doc, design) {
		return true
	}
	if doc == "" || design == "" || strings.Contains(doc, ":") {
		return false
	}
	name := design[strings.Index(design, ":")+1:]
	if strings.EqualFold(doc, name) {
		return true
	}
	for word := range strings.SplitSeq(name, "_") {
		if strings.EqualFold(word, doc) || len(doc) > 3 && strings.HasPrefix(strings.ToLower(word), strings.ToLower(doc)+"-") {
			return true
		}
	}
	return false
}
