// SPDX-License-Identifier: Apache-2.0

package constraint

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/docs"
)

// A Kind tells limits apart.
type Kind string

// The kinds of limits.
const (
	Sum          Kind = "sum"           // of Field over Parts, from Min to Max; parts that are not fitted do not count
	Range        Kind = "range"         // Field of each of Parts, from Min to Max
	Field        Kind = "field"         // Field of each of Parts is one of Is; "Value" and "Footprint" are fields as well
	Count        Kind = "count"         // how many fitted parts there are of Parts, from Min to Max
	OnNet        Kind = "net"           // each of Pins is on one of Nets
	ForbiddenNet Kind = "forbidden-net" // none of Pins is on any of Nets
	OpenPin      Kind = "open-pin"      // none of Pins is connected
)

// Kinds are all kinds.
func Kinds() []Kind { return []Kind{Sum, Range, Field, Count, OnNet, ForbiddenNet, OpenPin} }

// A Limit is a part of a constraint that a machine can check. Which fields it uses depends on the kind.
type Limit struct {
	Kind Kind `json:"kind"`
	// Parts are references; * and ? stand for anything: "U*", "R1".
	Parts []string `json:"parts,omitempty"`
	// Field is a property of the symbol, or a column of a table of parts in the documents.
	Field string `json:"field,omitempty"`
	// Min and Max are quantities as engineers write them: "25uA", "3.3 V". Either may be left out.
	Min string `json:"min,omitempty"`
	Max string `json:"max,omitempty"`
	// Is are the texts that are allowed, compared as values or footprints are.
	Is []string `json:"is,omitempty"`
	// Pins are pins by reference and number or name: "U2.3", "U2.PA3", "J*.1".
	Pins []string `json:"pins,omitempty"`
	// Nets are names of nets, with or without the path of sheets; * and ? stand for anything.
	Nets []string `json:"nets,omitempty"`
}

// validate says what is missing.
func (l Limit) validate() error {
	lack := func(what string) error {
		return &Error{BadLimit, fmt.Sprintf("a limit of kind %s needs %s", l.Kind, what), nil}
	}
	switch l.Kind {
	case Sum, Range, Field, Count:
		if len(l.Parts) == 0 {
			return lack(`parts, for instance ["U*"]`)
		}
	case OnNet, ForbiddenNet, OpenPin:
		if len(l.Pins) == 0 {
			return lack(`pins, for instance ["U2.3"]`)
		}
		for _, p := range l.Pins {
			if ref, pin, ok := strings.Cut(p, "."); !ok || ref == "" || pin == "" {
				return &Error{BadLimit, fmt.Sprintf("%q is no pin; write the reference, a dot and the pin, for instance U2.3", p), nil}
			}
		}
	default:
		return &Error{BadLimit, fmt.Sprintf("there is no kind %q of limits; there are %v. What no machine can check belongs into text", l.Kind, Kinds()), nil}
	}
	if (l.Kind == Sum || l.Kind == Range || l.Kind == Field) && l.Field == "" {
		return lack(`field, for instance "I_sleep"`)
	}
	if l.Kind == Field && len(l.Is) == 0 {
		return lack("is, the texts that are allowed")
	}
	if (l.Kind == OnNet || l.Kind == ForbiddenNet) && len(l.Nets) == 0 {
		return lack("nets")
	}
	if l.Kind == Sum || l.Kind == Range || l.Kind == Count {
		if l.Min == "" && l.Max == "" {
			return lack("min or max")
		}
		for _, text := range []string{l.Min, l.Max} {
			if _, ok := docs.ParseQuantity(text); text != "" && !ok {
				return &Error{BadLimit, fmt.Sprintf("%q is no quantity; write a number and a unit, for instance 25uA", text), nil}
			}
		}
	}
	for _, p := range slices.Concat(l.Parts, l.Pins, l.Nets) {
		if _, err := path.Match(flat(p), ""); err != nil {
			return &Error{BadLimit, fmt.Sprintf("%q is no pattern", p), err}
		}
	}
	return nil
}

// String is the limit in words.
func (l Limit) String() string {
	parts, pins, nets := strings.Join(l.Parts, ", "), strings.Join(l.Pins, ", "), strings.Join(l.Nets, ", ")
	switch l.Kind {
	case Sum:
		return fmt.Sprintf("sum of %s over %s %s", l.Field, parts, l.Bounds())
	case Range:
		return fmt.Sprintf("%s of %s %s", l.Field, parts, l.Bounds())
	case Field:
		return fmt.Sprintf("%s of %s is %s", l.Field, parts, strings.Join(l.Is, " or "))
	case Count:
		return fmt.Sprintf("number of fitted parts %s %s", parts, l.Bounds())
	case OnNet:
		return fmt.Sprintf("%s on net %s", pins, nets)
	case ForbiddenNet:
		return fmt.Sprintf("%s never on net %s", pins, nets)
	case OpenPin:
		return pins + " open"
	}
	return string(l.Kind)
}

// Bounds is the least and the most in words; one of them at least must be set.
func (l Limit) Bounds() string {
	switch {
	case l.Min != "" && l.Max != "":
		return fmt.Sprintf("from %s to %s", l.Min, l.Max)
	case l.Max != "":
		return "at most " + l.Max
	}
	return "at least " + l.Min
}

// Against holds a quantity against the bounds of a sum, range or count, and says the figures when it breaks them:
// "33 uA is over the most of 25 uA". A quantity in another unit breaks them too.
func (l Limit) Against(q docs.Quantity) (figures string, ok bool) {
	for _, b := range []struct {
		text, word string
		sign       float64
	}{{l.Max, "over the most", 1}, {l.Min, "under the least", -1}} {
		limit, given := docs.ParseQuantity(b.text)
		if !given {
			continue
		}
		if q.Unit != "" && limit.Unit != "" && q.Unit != limit.Unit {
			return fmt.Sprintf("%s has another unit than %s", q, limit), false
		}
		if q.Unit == "" {
			q.Unit = limit.Unit
		}
		if slack := 1e-9 * max(q.Value, limit.Value, -q.Value, -limit.Value); b.sign*(q.Value-limit.Value) > slack {
			return fmt.Sprintf("%s is %s of %s", q, b.word, limit), false
		}
	}
	return "", true
}

// flat makes a pattern, or a name to be matched, one in which slashes and brackets are nothing special.
func flat(s string) string {
	return strings.NewReplacer("/", "\x01", "[", `\[`, `\`, `\\`).Replace(s)
}

// matches reports whether a pattern with * and ? covers a name.
func matches(pattern, name string) bool {
	ok, err := path.Match(flat(pattern), strings.ReplaceAll(name, "/", "\x01"))
	return ok && err == nil
}

func anyMatches(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(p string) bool { return matches(p, name) })
}
