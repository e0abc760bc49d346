// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/google/jsonschema-go/jsonschema"
)

// A checker holds a tool's input against its schema. Validating by schema costs
// 20 times the decoding, so that input which plainly fits is only decoded; the
// schema is asked for what decoding cannot see, and for the words when something
// does not fit.
type checker struct {
	name     string
	text     json.RawMessage
	schema   *jsonschema.Schema
	resolved *jsonschema.Resolved
	plain    map[string]property // nil when decoding does not say it all
	required uint64              // bits of the required properties
}

// A property is one that decoding into the Go type checks, once its value begins as one
// of its types does: encoding/json would read a json.Number from a string, and bytes from a
// list of numbers.
type property struct {
	bit    uint64
	begins string // the bytes that a value may begin with
}

// begins are the bytes that values of a type of JSON Schema begin with.
func begins(types []string) string {
	var all strings.Builder
	for _, t := range types {
		switch t {
		case "string":
			all.WriteString(`"`)
		case "integer", "number":
			all.WriteString("-0123456789")
		case "boolean":
			all.WriteString("tf")
		case "null":
			all.WriteString("n")
		}
	}
	return all.String()
}

// newChecker fails with a [*SpecError].
func newChecker(name string, schema *jsonschema.Schema) (*checker, error) {
	if schema.Type != "object" {
		return nil, &SpecError{Tool: name, Err: fmt.Errorf("its input must be an object, and its schema says %q", schema.Type)}
	}
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, &SpecError{Tool: name, Err: fmt.Errorf("schema: %w", err)}
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, &SpecError{Tool: name, Err: fmt.Errorf("schema: %w", err)}
	}
	c := &checker{name: name, text: text, schema: schema, resolved: resolved}
	c.plain, c.required = plainProperties(schema)
	return c, nil
}

// plainProperties are the properties of a schema that says nothing which decoding
// would not check, and the bits of the required ones.
func plainProperties(schema *jsonschema.Schema) (plain map[string]property, required uint64) {
	if !isPlainObject(schema) || len(schema.Properties) > 64 {
		return nil, 0
	}
	plain = make(map[string]property, len(schema.Properties))
	for key, p := range schema.Properties {
		if !isPlainValue(p) {
			return nil, 0
		}
		plain[key] = property{bit: 1 << len(plain), begins: begins(typesOf(p))}
	}
	for _, key := range schema.Required {
		p, known := plain[key]
		if !known {
			return nil, 0
		}
		required |= p.bit
	}
	return plain, required
}

// decode reads a call's input into v, a pointer to a tool's input. Its error is an
// [*Error] of kind InvalidArgument that says what was wrong and what is expected.
func (c *checker) decode(call Call, v any) error {
	input := call.Input
	if c.plain != nil && c.fits(input) && json.Unmarshal(input, v) == nil {
		return nil
	}
	var tree any
	if err := json.Unmarshal(input, &tree); err != nil {
		return c.refuse(decodeFault(err))
	}
	f := faults{mask: call.Mask}
	f.twice(input)
	if err := c.resolved.Validate(tree); err != nil {
		if f.value(nil, c.schema, tree, false); len(f.told) == 0 {
			return c.refuse(plainWords(err))
		}
	}
	if err := f.err(); err != nil {
		return c.refuse(err)
	}
	if err := decodeStrict(input, v); err != nil {
		return c.refuse(decodeFault(err))
	}
	return nil
}

func (c *checker) refuse(err error) error {
	return &Error{
		Kind: InvalidArgument, Err: err,
		Message: fmt.Sprintf("invalid arguments for %s: %v. The tool was not run. Expected: %s", c.name, err, c.text),
	}
}

// fits reports whether the object holds every required key, none that is not
// known (also by case, which decoding would not mind), none twice, and for each a value
// that begins as it should; null is one only where it is allowed.
func (c *checker) fits(input []byte) bool {
	s := keyScanner{data: input}
	var seen uint64
	for {
		key, first, ok := s.next()
		if !ok {
			return !s.bad && seen&c.required == c.required
		}
		p, known := c.plain[string(key)]
		if !known || seen&p.bit != 0 || strings.IndexByte(p.begins, first) < 0 {
			return false
		}
		seen |= p.bit
	}
}

func isPlainObject(s *jsonschema.Schema) bool {
	return s.AllOf == nil && s.AnyOf == nil && s.OneOf == nil && s.Not == nil && s.If == nil &&
		s.PatternProperties == nil && s.PropertyNames == nil && s.MinProperties == nil && s.MaxProperties == nil &&
		s.DependentRequired == nil && s.DependentSchemas == nil && s.Ref == "" && s.DynamicRef == ""
}

// isPlainValue reports whether a property is a string, number, boolean or a list
// of such, with nothing more said of it: then decoding into the Go type checks
// all that the schema says.
func isPlainValue(s *jsonschema.Schema) bool {
	if s.Enum != nil || s.Const != nil || s.MultipleOf != nil || s.Minimum != nil || s.Maximum != nil ||
		s.ExclusiveMinimum != nil || s.ExclusiveMaximum != nil || s.MinLength != nil || s.MaxLength != nil ||
		s.Pattern != "" || s.Format != "" || s.MinItems != nil || s.MaxItems != nil || s.UniqueItems ||
		s.Properties != nil || s.AdditionalProperties != nil || s.PrefixItems != nil || !isPlainObject(s) {
		return false
	}
	types := typesOf(s)
	for _, t := range types {
		switch t {
		case "string", "integer", "number", "boolean", "null":
		case "array":
			if s.Items == nil || slices.Contains(s.Items.Types, "null") || s.Items.Type == "array" || s.Items.Type == "object" || !isPlainValue(s.Items) {
				return false
			}
			// A null in a list decodes as a zero: only the schema sees it.
			return false
		default:
			return false
		}
	}
	return len(types) > 0
}
