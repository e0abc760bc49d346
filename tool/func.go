// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/google/jsonschema-go/jsonschema"
)

// An Option changes a tool that [New] makes.
type Option func(*options)

type options struct {
	traits Traits
	schema *jsonschema.Schema
	types  map[reflect.Type]*jsonschema.Schema
}

// WithTraits says how the tool may be run.
func WithTraits(t Traits) Option { return func(o *options) { o.traits = t } }

// ReadOnly says that the tool changes nothing.
func ReadOnly() Option { return func(o *options) { o.traits.ReadOnly = true } }

// Exclusive says that the tool's calls run alone and in order.
func Exclusive() Option { return func(o *options) { o.traits.Exclusive = true } }

// WithSchema gives the schema of the input instead of the one inferred from its
// type. It must be an object schema.
func WithSchema(s *jsonschema.Schema) Option { return func(o *options) { o.schema = s } }

// WithTypeSchema gives the schema of every field of type T, for example an
// enumeration of a string type.
func WithTypeSchema[T any](s *jsonschema.Schema) Option {
	return func(o *options) {
		if o.types == nil {
			o.types = map[reflect.Type]*jsonschema.Schema{}
		}
		o.types[reflect.TypeFor[T]()] = s
	}
}

// New makes a tool of a function. In is a struct (or a map with string keys):
// its JSON Schema is inferred, with the descriptions of `jsonschema:"..."` tags;
// a field is optional when its json tag says omitempty or omitzero. The model's
// input is decoded strictly: unknown and missing fields, keys given twice, wrong
// types, and null for anything but a pointer or a field of any value are answered
// to the model with all that was wrong and what is expected, and fn is not called.
//
// Out may be a string (the model reads it as it is), an [Output], or anything
// that encodes as JSON. A string of more than 200 bytes becomes a summary and a
// content (E-99).
//
// The error is a [*SpecError]: the name is not made of 1 to 64 ASCII letters,
// digits, _ and -, or no schema can be inferred, which is so for a field of type
// time.Duration and for the json tag's option string, too, as in generated tools.
func New[In, Out any](name, description string, fn func(context.Context, In) (Out, error), opts ...Option) (Tool, error) {
	var o options
	for _, opt := range opts {
		opt(&o)
	}
	if !toolName.MatchString(name) {
		return nil, &SpecError{Err: fmt.Errorf("bad name %q: a tool's name is made of 1 to 64 ASCII letters, digits, _ and -", name)}
	}
	if fn == nil {
		return nil, &SpecError{Tool: name, Err: errors.New("no function")}
	}
	schema := o.schema
	if schema == nil {
		types := withBytes(o.types)
		s, err := jsonschema.For[In](&jsonschema.ForOptions{TypeSchemas: types})
		if err != nil {
			return nil, &SpecError{Tool: name, Err: fmt.Errorf("no schema for its input: %w", err)}
		}
		if field, problem := fieldProblem(reflect.TypeFor[In](), o.types); problem != "" {
			return nil, &SpecError{Tool: name, Field: field, Err: errors.New(problem)}
		}
		plainLists(s, reflect.TypeFor[In](), types)
		schema = s
	}
	check, err := newChecker(name, schema)
	if err != nil {
		return nil, err
	}
	t := &function[In, Out]{fn: fn, traits: o.traits, check: check}
	t.spec = Spec{Name: name, Description: description, Schema: check.text}
	return t, nil
}

// withBytes adds what package jsonschema would infer as lists of numbers, though
// encoding/json reads them otherwise: raw JSON as any value, bytes as base64.
func withBytes(types map[reflect.Type]*jsonschema.Schema) map[reflect.Type]*jsonschema.Schema {
	all := map[reflect.Type]*jsonschema.Schema{
		reflect.TypeFor[json.RawMessage](): {},
		reflect.TypeFor[[]byte]():          {Type: "string", ContentEncoding: "base64"},
	}
	maps.Copy(all, types)
	return all
}

// plainLists takes back that null fits every slice, which package jsonschema
// infers: null fits a pointer and nothing else, as in generated tools. Schemas of
// own types are left as they are.
func plainLists(s *jsonschema.Schema, t reflect.Type, own map[reflect.Type]*jsonschema.Schema) {
	pointer := t.Kind() == reflect.Pointer
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if s == nil || own[t] != nil {
		return
	}
	switch t.Kind() { //nolint:exhaustive // the other kinds hold no lists
	case reflect.Slice, reflect.Array:
		if !pointer && slices.Equal(s.Types, []string{"null", "array"}) {
			s.Type, s.Types = "array", nil
		}
		plainLists(s.Items, t.Elem(), own)
	case reflect.Map:
		plainLists(s.AdditionalProperties, t.Elem(), own)
	case reflect.Struct:
		for _, field := range reflect.VisibleFields(t) {
			name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
			if !field.Anonymous {
				plainLists(s.Properties[cmp.Or(name, field.Name)], field.Type, own)
			}
		}
	}
}

// Must returns t and panics when err is not nil. It is for tools that are known
// when the program is written.
func Must(t Tool, err error) Tool {
	if err != nil {
		panic(err)
	}
	return t
}

type function[In, Out any] struct {
	spec   Spec
	traits Traits
	check  *checker
	fn     func(context.Context, In) (Out, error)
}

func (f *function[In, Out]) Spec() Spec     { return f.spec }
func (f *function[In, Out]) Traits() Traits { return f.traits }

func (f *function[In, Out]) Run(ctx context.Context, call Call) (Output, error) {
	var in In
	if err := f.check.decode(call.Input, &in); err != nil {
		return Output{}, err
	}
	out, err := f.fn(withCall(ctx, call), in)
	if err != nil {
		return Output{}, err
	}
	return render(out)
}

// render shows what a tool gave back.
func render[T any](v T) (Output, error) {
	switch v := any(&v).(type) { // a pointer, so that a string is not copied to the heap
	case *string:
		return TextOutput(*v), nil
	case *Output:
		return *v, nil
	}
	return renderJSON(v)
}

func renderJSON(v any) (Output, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return Output{}, &Error{Kind: Internal, Message: "the tool ran, and its answer cannot be shown: " + err.Error(), Err: err}
	}
	return TextOutput(strings.TrimSuffix(buf.String(), "\n")), nil
}

// TextOutput makes an output of a text: up to 200 bytes it is the summary alone;
// a longer one gives a summary with the number of lines and the first 80
// characters of the first line, and the text as the content (E-99).
func TextOutput(s string) Output {
	if len(s) <= 200 {
		return Output{Summary: s}
	}
	first, _, _ := strings.Cut(s, "\n")
	if utf8.RuneCountInString(first) > 80 {
		first = string([]rune(first)[:80]) + "..."
	}
	lines := strings.Count(strings.TrimSuffix(s, "\n"), "\n") + 1
	return Output{Summary: fmt.Sprintf("%d lines: %s", lines, first), Content: s}
}

// decodeStrict reads exactly one JSON value and refuses fields that v lacks.
func decodeStrict(data []byte, v any) error {
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("text after the arguments")
	}
	return nil
}
