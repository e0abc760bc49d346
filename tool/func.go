// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
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

// Idempotent says that running a call twice has the effect of running it once, as with
// setting a value to what the arguments say. A call that a process died in is then run
// again, since nobody knows whether it ran; what it gives back the second time is what the
// model reads. Without this, and without [ReadOnly], the model is told that the outcome is
// unknown. A tool that asks another system can keep the promise by handing it [Call.Key].
func Idempotent() Option { return func(o *options) { o.traits.Idempotent = true } }

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
// a field is optional when it is a pointer, or its json tag says omitempty or
// omitzero. Numbers, strings, booleans, slices, arrays, maps, structs as encoding/json
// sees them, any, [time.Time] (RFC 3339), []byte (base64), [json.RawMessage] (any JSON),
// [json.Number] and types that read themselves from text are understood. The model's
// input is decoded strictly: unknown and missing fields, keys given twice, wrong
// types, and null for anything but a pointer or a field of any value are answered
// to the model with all that was wrong and what is expected, and fn is not called.
//
// Out may be a string (the model reads it as it is), an [Output], or anything
// that encodes as JSON. A string of more than 200 bytes becomes a summary and a
// content (E-99).
//
// The error is a [*SpecError]: the name is not made of 1 to 64 ASCII letters,
// digits, _ and - with a letter or _ first, or no schema can be inferred. Then
// [WithTypeSchema] and [WithSchema] help, or another type, as the error says. Types are
// taken and refused as fiducialgen takes and refuses them.
func New[In, Out any](name, description string, fn func(context.Context, In) (Out, error), opts ...Option) (Tool, error) {
	var o options
	for _, opt := range opts {
		if opt != nil {
			opt(&o)
		}
	}
	if !toolName.MatchString(name) {
		return nil, &SpecError{Err: fmt.Errorf("bad name %q: %s", name, toolNameRule)}
	}
	if fn == nil {
		return nil, &SpecError{Tool: name, Err: errors.New("no function")}
	}
	schema := o.schema
	if schema == nil {
		s, err := inferSchema(reflect.TypeFor[In](), o.types)
		if e, ok := errors.AsType[*SpecError](err); ok {
			return nil, &SpecError{Tool: name, Field: e.Field, Err: e.Err}
		}
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
	if err := f.check.decode(call, &in); err != nil {
		return Output{}, err
	}
	out, err := f.fn(withCall(ctx, call), in)
	if err != nil {
		return Output{}, err
	}
	return render(call, out)
}

// render shows what a tool gave back.
func render[T any](call Call, v T) (Output, error) {
	switch v := any(&v).(type) { // a pointer, so that a string is not copied to the heap
	case *string:
		return textOutput(call, *v), nil
	case *Output:
		return *v, nil
	}
	return renderJSON(call, v)
}

func renderJSON(call Call, v any) (Output, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return Output{}, &Error{Kind: Internal, Message: "the tool ran, and its answer cannot be shown: " + err.Error(), Err: err}
	}
	return textOutput(call, strings.TrimSuffix(buf.String(), "\n")), nil
}

// TextOutput makes an output of a text: up to 200 bytes it is the summary alone;
// a longer one gives a summary with the number of lines and the first 80
// characters of the first line, and the text as the content (E-99). A tool that has to do
// with secrets masks the text before it is cut, by [Call.Mask].
func TextOutput(s string) Output { return textOutput(Call{}, s) }

func textOutput(call Call, s string) Output {
	if len(s) > 200 {
		s = call.masked(s)
	}
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
