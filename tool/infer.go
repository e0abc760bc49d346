// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// An inferrer finds the JSON Schemas of Go types as encoding/json decodes them. What it
// takes, and what it says of it, is what fiducialgen takes and says, but for the constants
// of a type and the comments of fields, which a running program does not know.
type inferrer struct {
	own  map[reflect.Type]*jsonschema.Schema // of WithTypeSchema
	open []reflect.Type                      // being mapped, to see cycles
	size int                                 // how many types were mapped
}

// How deep and how big a schema may be. No model reads more.
const (
	maxDepth = 32
	maxSize  = 2000
)

// inferSchema returns the schema of a tool's input. Its error is a [*SpecError] that
// names no tool.
func inferSchema(t reflect.Type, own map[reflect.Type]*jsonschema.Schema) (*jsonschema.Schema, error) {
	s, err := (&inferrer{own: own}).schema(t)
	if err == nil && s.Type != "object" {
		return nil, no("its input must be an object: take a struct or a map with string keys in the place of %s", t)
	}
	return s, err
}

func no(format string, args ...any) error { return &SpecError{Err: fmt.Errorf(format, args...)} }

// within puts the field that a problem was found in before those that lead on to it.
func within(field string, err error) error {
	e, ok := errors.AsType[*SpecError](err)
	if !ok {
		return err
	}
	outer := *e
	outer.Field = field
	if e.Field != "" {
		outer.Field += "." + e.Field
	}
	return &outer
}

// schema returns a new schema of t.
func (i *inferrer) schema(t reflect.Type) (*jsonschema.Schema, error) {
	if s := i.own[t]; s != nil {
		return s.CloneSchemas(), nil
	}
	if slices.Contains(i.open, t) {
		return nil, no("type %s contains itself", t)
	}
	if i.size++; len(i.open) > maxDepth || i.size > maxSize {
		return nil, no("the type is too big for a schema")
	}
	i.open = append(i.open, t)
	defer func() { i.open = i.open[:len(i.open)-1] }()
	if t.Kind() == reflect.Pointer && t.Name() == "" {
		return i.pointer(t)
	}
	if s, err := special(t); s != nil || err != nil {
		return s, err
	}
	return i.plain(t)
}

func (i *inferrer) pointer(t reflect.Type) (*jsonschema.Schema, error) {
	if e := t.Elem(); e.Kind() == reflect.Pointer && e.Name() == "" && i.own[e] == nil {
		return nil, no("%s is a pointer to a pointer, and JSON has one null: take %s", t, e)
	}
	s, err := i.schema(t.Elem())
	if err != nil {
		return nil, err
	}
	switch {
	case s.Type == "null" || slices.Contains(s.Types, "null"):
		return s, nil
	case s.Type != "":
		s.Type, s.Types = "", []string{"null", s.Type}
	case len(s.Types) > 0:
		s.Types = slices.Insert(slices.Clone(s.Types), 0, "null")
	}
	if s.Enum != nil {
		s.Enum = append(slices.Clone(s.Enum), nil)
	}
	return s, nil
}

// special handles types with a JSON form of their own; nil without error means that it is
// the one of their kind.
func special(t reflect.Type) (*jsonschema.Schema, error) {
	switch t {
	case reflect.TypeFor[time.Time]():
		return &jsonschema.Schema{Type: "string", Format: "date-time"}, nil
	case reflect.TypeFor[time.Duration]():
		return nil, no("a time.Duration would be a number of nanoseconds; take the seconds as a number, or a string")
	case reflect.TypeFor[json.RawMessage]():
		return &jsonschema.Schema{}, nil
	case reflect.TypeFor[json.Number]():
		return &jsonschema.Schema{Type: "number"}, nil
	}
	switch {
	case reads[json.Unmarshaler](t):
		return nil, no("%s reads JSON in its own way, so its schema is unknown; take a json.RawMessage, or give the schema by WithTypeSchema", t)
	case reads[encoding.TextUnmarshaler](t):
		return &jsonschema.Schema{Type: "string"}, nil
	}
	return nil, nil //nolint:nilnil // documented above: neither a schema nor a mistake
}

// reads reports whether a variable of type t has the methods of I.
func reads[I any](t reflect.Type) bool {
	return t.Kind() != reflect.Interface && reflect.PointerTo(t).Implements(reflect.TypeFor[I]())
}

// plain handles types by their kind.
func (i *inferrer) plain(t reflect.Type) (*jsonschema.Schema, error) {
	switch kind := t.Kind(); kind { //nolint:exhaustive // JSON has no form for the others
	case reflect.Bool:
		return &jsonschema.Schema{Type: "boolean"}, nil
	case reflect.String:
		return &jsonschema.Schema{Type: "string"}, nil
	case reflect.Float32, reflect.Float64:
		return &jsonschema.Schema{Type: "number"}, nil
	case reflect.Interface:
		if t.NumMethod() > 0 {
			return nil, no("%s is an interface, and JSON does not say which type to make", t)
		}
		return &jsonschema.Schema{}, nil
	case reflect.Slice:
		if e := t.Elem(); e.Kind() == reflect.Uint8 && !reads[json.Unmarshaler](e) && !reads[encoding.TextUnmarshaler](e) && i.own[e] == nil {
			return &jsonschema.Schema{Type: "string", ContentEncoding: "base64"}, nil
		}
		items, err := i.schema(t.Elem())
		return &jsonschema.Schema{Type: "array", Items: items}, err
	case reflect.Array:
		items, err := i.schema(t.Elem())
		n := t.Len()
		return &jsonschema.Schema{Type: "array", Items: items, MinItems: &n, MaxItems: &n}, err
	case reflect.Map:
		if t.Key().Kind() != reflect.String && !reads[encoding.TextUnmarshaler](t.Key()) {
			return nil, no("%s has keys that are no strings: take map[string]%s", t, t.Elem())
		}
		values, err := i.schema(t.Elem())
		return &jsonschema.Schema{Type: "object", AdditionalProperties: values}, err
	case reflect.Struct:
		return i.structType(t)
	default:
		if r, ok := ranges[kind]; ok {
			return &jsonschema.Schema{Type: "integer", Minimum: r.lowest, Maximum: r.highest}, nil
		}
	}
	return nil, no("JSON has no form for type %s", t)
}

// limits are the ends of what an integer type holds, where every reader of JSON can say
// them: numbers of 64 bits are not.
type limits struct{ lowest, highest *float64 }

var ranges = map[reflect.Kind]limits{
	reflect.Int:    {},
	reflect.Int8:   {new(float64(math.MinInt8)), new(float64(math.MaxInt8))},
	reflect.Int16:  {new(float64(math.MinInt16)), new(float64(math.MaxInt16))},
	reflect.Int32:  {new(float64(math.MinInt32)), new(float64(math.MaxInt32))},
	reflect.Int64:  {},
	reflect.Uint:   {new(float64(0)), nil},
	reflect.Uint8:  {new(float64(0)), new(float64(math.MaxUint8))},
	reflect.Uint16: {new(float64(0)), new(float64(math.MaxUint16))},
	reflect.Uint32: {new(float64(0)), new(float64(math.MaxUint32))},
	reflect.Uint64: {new(float64(0)), nil},
}

// structType maps a struct by the rules of encoding/json for which fields there are.
func (i *inferrer) structType(t reflect.Type) (*jsonschema.Schema, error) {
	fields, err := i.fields(t)
	if err != nil {
		return nil, err
	}
	if len(fields) == 0 && t.NumField() > 0 {
		return nil, no("%s has fields, and encoding/json sees none of them: export them, or take another type", t)
	}
	s := &jsonschema.Schema{Type: "object", AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}}
	if len(fields) > 0 {
		s.Properties = map[string]*jsonschema.Schema{}
	}
	for _, f := range fields {
		of, err := i.field(f)
		if err != nil {
			return nil, within(f.goName, err)
		}
		s.Properties[f.name] = of
		s.PropertyOrder = append(s.PropertyOrder, f.name)
		if !f.optional {
			s.Required = append(s.Required, f.name)
		}
	}
	return s, nil
}

func (i *inferrer) field(f jsonField) (*jsonschema.Schema, error) {
	switch {
	case f.lent != nil:
		return f.lent.CloneSchemas(), nil
	case f.quoted && i.own[f.typ] == nil:
		return nil, no("the json tag's option string is not supported: drop the option")
	case !propertyName.MatchString(f.name):
		return nil, no("bad name %q: %s", f.name, propertyNameRule)
	case f.described && !isDescription(f.text):
		return nil, no("the jsonschema tag %q is no description: write in words what the field is", f.text)
	}
	s, err := i.schema(f.typ)
	if err == nil && f.described {
		s.Description = f.text
	}
	return s, err
}

// isDescription reports whether a jsonschema tag says something to a reader. Rules such as
// minimum=3, which other packages read there, would be shown to the model as they are.
func isDescription(text string) bool {
	return strings.TrimSpace(text) != "" && !isRule.MatchString(text)
}

var isRule = regexp.MustCompile(`^\S*=`)

// lend lists the properties of an embedded struct that has a schema of its own.
func lend(t reflect.Type, s *jsonschema.Schema, depth int) ([]jsonField, error) {
	if s.Type != "object" {
		return nil, no("the schema of an embedded struct must be that of an object, and that of %s says %q", t, s.Type)
	}
	var list []jsonField
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		list = append(list, jsonField{goName: t.Name(), name: name, lent: s.Properties[name], optional: !slices.Contains(s.Required, name), depth: depth})
	}
	return list, nil
}
