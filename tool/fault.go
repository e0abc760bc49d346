// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fiducial-dev/fiducial/llm"
)

// maxFaults is how many faults of one input are told. More would only bury them.
const maxFaults = 8

// faults are what is wrong with an input, each in words that name the place as one
// would write it: "to.zip", "tags[2]". A model that is told all of it at once mends
// all of it at once.
type faults struct {
	mask func(string) string // takes secrets out of what is quoted; nil leaves all in
	told []string
	more int
}

func (f *faults) add(at *place, format string, args ...any) {
	if len(f.told) == maxFaults {
		f.more++
		return
	}
	f.told = append(f.told, at.text(f.quote)+" "+fmt.Sprintf(format, args...))
}

// quote shows the beginning of a text that a model wrote.
func (f *faults) quote(s string) string {
	if f.mask != nil {
		s = f.mask(s)
	}
	return cutText(s)
}

func (f *faults) err() error {
	if len(f.told) == 0 {
		return nil
	}
	text := strings.Join(f.told, ", ")
	if f.more > 0 {
		text += fmt.Sprintf(", and %d more", f.more)
	}
	return errors.New(text)
}

// value holds v against s. It knows what inferred and generated schemas say; about
// the rest it is silent, and [plainWords] speaks.
func (f *faults) value(at *place, s *jsonschema.Schema, v any, optional bool) {
	if s == nil || s.Ref != "" {
		return
	}
	if types := typesOf(s); len(types) > 0 && !isOneOf(types, v) {
		hint := ""
		if v == nil && optional {
			hint = " (leave it out when there is none)"
		}
		f.add(at, "is %s and must be %s%s", f.shown(v), wanted(types), hint)
		return
	}
	if s.Enum != nil && !slices.ContainsFunc(s.Enum, func(e any) bool { return sameJSON(e, v) }) {
		f.add(at, "is %s and must be one of %s", f.shown(v), choices(s.Enum))
		return
	}
	switch v := v.(type) {
	case map[string]any:
		f.object(at, s, v)
	case []any:
		f.array(at, s, v)
	case string:
		f.text(at, s, v)
	case float64:
		f.number(at, s, v)
	}
}

func (f *faults) object(at *place, s *jsonschema.Schema, v map[string]any) {
	for _, key := range s.Required {
		if _, ok := v[key]; !ok {
			f.add(at.at(key), "is missing")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(v)) {
		if s.Properties[key] == nil && !takes(s, key) {
			f.add(at.at(key), "is not known")
		}
	}
	for _, key := range slices.Sorted(maps.Keys(v)) {
		switch p := s.Properties[key]; {
		case p != nil:
			f.value(at.at(key), p, v[key], !slices.Contains(s.Required, key))
		case s.PatternProperties == nil && takes(s, key):
			f.value(at.at(key), s.AdditionalProperties, v[key], false)
		}
	}
}

// takes reports whether an object may have a key that its properties do not name.
func takes(s *jsonschema.Schema, key string) bool {
	if names := s.PropertyNames; names != nil && names.Enum != nil && !slices.Contains(names.Enum, any(key)) {
		return false
	}
	closed := s.AdditionalProperties != nil && s.AdditionalProperties.Not != nil
	return !closed || s.PatternProperties != nil
}

func (f *faults) array(at *place, s *jsonschema.Schema, v []any) {
	if s.MinItems != nil && len(v) < *s.MinItems {
		f.add(at, "has %d items and must have at least %d", len(v), *s.MinItems)
	}
	if s.MaxItems != nil && len(v) > *s.MaxItems {
		f.add(at, "has %d items and must have at most %d", len(v), *s.MaxItems)
	}
	if s.PrefixItems != nil {
		return
	}
	for i, item := range v {
		f.value(at.index(i), s.Items, item, false)
	}
}

func (f *faults) text(at *place, s *jsonschema.Schema, v string) {
	n := utf8.RuneCountInString(v)
	if s.MinLength != nil && n < *s.MinLength {
		f.add(at, "has %d characters and must have at least %d", n, *s.MinLength)
	}
	if s.MaxLength != nil && n > *s.MaxLength {
		f.add(at, "has %d characters and must have at most %d", n, *s.MaxLength)
	}
	if s.Pattern != "" {
		if re, err := regexp.Compile(s.Pattern); err == nil && !re.MatchString(v) {
			f.add(at, "is %s and must match %s", f.shown(v), s.Pattern)
		}
	}
}

func (f *faults) number(at *place, s *jsonschema.Schema, v float64) {
	for _, limit := range []struct {
		is     *float64
		broken func(limit float64) bool
		words  string
	}{
		{s.Minimum, func(m float64) bool { return v < m }, "at least"},
		{s.Maximum, func(m float64) bool { return v > m }, "at most"},
		{s.ExclusiveMinimum, func(m float64) bool { return v <= m }, "more than"},
		{s.ExclusiveMaximum, func(m float64) bool { return v >= m }, "less than"},
		{s.MultipleOf, func(m float64) bool { return math.Mod(v, m) != 0 }, "a multiple of"},
	} {
		if limit.is != nil && limit.broken(*limit.is) {
			f.add(at, "is %s and must be %s %s", f.shown(v), limit.words, number(*limit.is))
		}
	}
}

// twice adds the keys that an object has more than once, at any depth: readers
// differ on which of the values counts. The input is known to be JSON.
func (f *faults) twice(input []byte) {
	dec := json.NewDecoder(bytes.NewReader(input))
	dec.UseNumber()
	f.twiceIn(dec, nil)
}

func (f *faults) twiceIn(dec *json.Decoder, at *place) {
	token, err := dec.Token()
	if err != nil {
		return
	}
	switch token {
	case json.Delim('{'):
		seen := map[string]int{}
		for dec.More() {
			token, err := dec.Token()
			key, ok := token.(string)
			if err != nil || !ok {
				return
			}
			if seen[key]++; seen[key] == 2 {
				f.add(at.at(key), "is given more than once")
			}
			f.twiceIn(dec, at.at(key))
		}
	case json.Delim('['):
		for i := 0; dec.More(); i++ {
			f.twiceIn(dec, at.index(i))
		}
	default:
		return
	}
	_, _ = dec.Token() // the end of it
}

// plainWords says what Validate says, with the place instead of the schemas around
// it: "validating root: validating /properties/a: not: ..." is about "a".
func plainWords(err error) error {
	text := err.Error()
	var at *place
	for {
		inner, ok := strings.CutPrefix(text, "validating ")
		if !ok {
			break
		}
		schema, rest, ok := strings.Cut(inner, ": ")
		if !ok {
			break
		}
		text, at = rest, placeOf(schema)
	}
	return fmt.Errorf("%s is not right: %s", at.text(cutText), text)
}

// placeOf is where the values of a schema stand, by the pointer to it; of a list it
// cannot tell the item.
func placeOf(pointer string) *place {
	var at *place
	steps := strings.Split(pointer, "/")
	for i := 0; i < len(steps); i++ {
		switch {
		case steps[i] == "properties" && i+1 < len(steps):
			i++
			at = at.at(strings.NewReplacer("~1", "/", "~0", "~").Replace(steps[i]))
		case steps[i] == "items":
			at = &place{up: at, item: -1}
		}
	}
	return at
}

// decodeFault says why a value that fits its schema does not fit the Go type, as a
// number of too many digits.
func decodeFault(err error) error {
	e, ok := errors.AsType[*json.UnmarshalTypeError](err)
	if !ok {
		return err
	}
	if e.Field == "" {
		return fmt.Errorf("the %s does not fit in %s", e.Value, e.Type)
	}
	return fmt.Errorf("%s is the %s and does not fit in %s", (&place{isKey: true, key: e.Field}).text(cutText), e.Value, e.Type)
}

// A place is where a value stands in the arguments, as the steps to it. Nil is the
// arguments themselves. Its words are made when they are told: most places are in
// order, and a model may nest a thousand of them.
type place struct {
	up    *place
	isKey bool
	key   string
	item  int // of a list; -1 for some item
}

func (p *place) at(key string) *place { return &place{up: p, isKey: true, key: key} }
func (p *place) index(i int) *place   { return &place{up: p, item: i} }

// maxSteps is how many steps to a place are told: the last ones.
const maxSteps = 12

var plainKey = regexp.MustCompile(`^[\pL\pN_$.-]+$`)

// text names the place; quote shows what the model wrote.
func (p *place) text(quote func(string) string) string {
	if p == nil {
		return "the input"
	}
	var steps []string // from the last one
	for ; p != nil && len(steps) < maxSteps; p = p.up {
		switch {
		case !p.isKey && p.item < 0:
			steps = append(steps, "[]")
		case !p.isKey:
			steps = append(steps, "["+strconv.Itoa(p.item)+"]")
		case !plainKey.MatchString(p.key):
			steps = append(steps, fmt.Sprintf("[%q]", quote(p.key)))
		case p.up == nil:
			steps = append(steps, quote(p.key))
		default:
			steps = append(steps, "."+quote(p.key))
		}
	}
	if p != nil {
		steps = append(steps, "...")
	}
	slices.Reverse(steps)
	return `"` + strings.Join(steps, "") + `"`
}

func typesOf(s *jsonschema.Schema) []string {
	if s.Type != "" {
		return []string{s.Type}
	}
	return s.Types
}

func isOneOf(types []string, v any) bool {
	kind := kindOf(v)
	return slices.Contains(types, kind) || kind == "integer" && slices.Contains(types, "number")
}

// kindOf is the type of a decoded value in the words of JSON Schema.
func kindOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case bool:
		return "boolean"
	case string:
		return "string"
	case float64:
		if v == math.Trunc(v) {
			return "integer"
		}
		return "number"
	case []any:
		return "array"
	}
	return "object"
}

func wanted(types []string) string {
	words := make([]string, len(types))
	for i, t := range types {
		switch t {
		case "null":
			words[i] = "null"
		case "integer", "array", "object":
			words[i] = "an " + t
		default:
			words[i] = "a " + t
		}
	}
	return strings.Join(words, " or ")
}

func (f *faults) shown(v any) string {
	switch v := v.(type) {
	case string:
		return fmt.Sprintf("the string %q", f.quote(v))
	case float64:
		return "the number " + number(v)
	case bool:
		return fmt.Sprintf("the boolean %t", v)
	case nil:
		return "null"
	}
	return "an " + kindOf(v)
}

func number(v float64) string {
	if math.Abs(v) < 1e15 {
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return strconv.FormatFloat(v, 'g', -1, 64)
}

// choices are the values of an enumeration, at most 20 of them: all stand in the
// schema behind.
func choices(values []any) string {
	var words []string
	for _, v := range values[:min(20, len(values))] {
		if text, err := json.Marshal(v); err == nil {
			words = append(words, string(text))
		}
	}
	if len(values) > 20 {
		words = append(words, "...")
	}
	return strings.Join(words, " | ")
}

// sameJSON compares a value of a schema, which may be any Go number, with a decoded
// one.
func sameJSON(e, v any) bool {
	if n, ok := v.(float64); ok && e != nil {
		switch e := reflect.ValueOf(e); {
		case e.CanInt():
			return float64(e.Int()) == n
		case e.CanUint():
			return float64(e.Uint()) == n
		case e.CanFloat():
			return e.Float() == n
		}
		return false
	}
	if s, ok := v.(string); ok && e != nil {
		e := reflect.ValueOf(e)
		return e.Kind() == reflect.String && e.String() == s
	}
	return reflect.DeepEqual(e, v)
}

// cutText shows the beginning of a text that a model wrote.
func cutText(s string) string {
	if len(s) <= 60 {
		return s
	}
	return llm.CutUTF8(s, 60) + "..."
}
