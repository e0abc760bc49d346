// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
)

// A SpecError says why [New] made no tool: what is wrong with its name or with the
// type of its input, and what to write instead.
type SpecError struct {
	Tool  string
	Field string // of the input, such as "To.After"; empty when it is about no field
	Err   error  // what is wrong
}

func (e *SpecError) Error() string {
	text := "tool"
	if e.Tool != "" {
		text += " " + e.Tool
	}
	if e.Field != "" {
		text += ": field " + e.Field + " of its input"
	}
	return text + ": " + e.Err.Error()
}

func (e *SpecError) Unwrap() error { return e.Err }

// toolName is what OpenAI and Anthropic take as a tool's name; Gemini wants a
// letter or an underscore first.
var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// fieldProblem finds a field, at any depth, whose inferred schema would say less
// than encoding/json wants or other than people mean. Fields of types with a schema
// of their own are left as they are. The type is known to contain itself nowhere.
func fieldProblem(t reflect.Type, own map[reflect.Type]*jsonschema.Schema) (field, problem string) {
	if own[t] != nil {
		return "", ""
	}
	if t == reflect.TypeFor[time.Duration]() {
		return "", "a time.Duration would be a number of nanoseconds; take the seconds as a number, or a string"
	}
	switch t.Kind() { //nolint:exhaustive // the other kinds hold no fields
	case reflect.Pointer, reflect.Slice, reflect.Array, reflect.Map:
		return fieldProblem(t.Elem(), own)
	case reflect.Struct:
		for _, f := range reflect.VisibleFields(t) {
			if !inJSON(f) {
				continue
			}
			inner, problem := fieldProblem(f.Type, own)
			if _, options, _ := strings.Cut(f.Tag.Get("json"), ","); own[f.Type] == nil && slices.Contains(strings.Split(options, ","), "string") {
				inner, problem = "", "the json tag's option string is not supported: drop the option"
			}
			if problem != "" {
				return strings.TrimSuffix(f.Name+"."+inner, "."), problem
			}
		}
	}
	return "", ""
}

// inJSON reports whether encoding/json sees a field as one by itself: an embedded
// struct without a name of its own lends its fields instead.
func inJSON(f reflect.StructField) bool {
	tag := f.Tag.Get("json")
	name, _, _ := strings.Cut(tag, ",")
	if tag == "-" || !f.IsExported() {
		return false
	}
	t := f.Type
	if t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return !f.Anonymous || name != "" || t.Kind() != reflect.Struct
}
