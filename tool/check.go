package tool

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// A checker holds a tool's input against its schema. Validating by schema costs
// 20 times the decoding, so that input which plainly fits is only decoded; the
// schema is asked for what decoding cannot see, and for the words when something
// does not fit.
type checker struct {
	name     string
	text     json.RawMessage
	resolved *jsonschema.Resolved
	required []string
	nonNull  map[string]bool // required or not, null does not fit
	plain    bool            // decoding, required and nonNull say it all
}

func newChecker(name string, schema *jsonschema.Schema) (*checker, error) {
	if schema.Type != "object" {
		return nil, fmt.Errorf("tool %s: its input must be an object, and its schema says %q", name, schema.Type)
	}
	text, err := json.Marshal(schema)
	if err != nil {
		return nil, fmt.Errorf("tool %s: schema: %w", name, err)
	}
	resolved, err := schema.Resolve(nil)
	if err != nil {
		return nil, fmt.Errorf("tool %s: schema: %w", name, err)
	}
	c := &checker{name: name, text: text, resolved: resolved, required: schema.Required, nonNull: map[string]bool{}}
	c.plain = isPlainObject(schema)
	for key, p := range schema.Properties {
		if p.Type != "" && p.Type != "null" || len(p.Types) > 0 && !slices.Contains(p.Types, "null") {
			c.nonNull[key] = true
		}
		c.plain = c.plain && isPlainValue(p)
	}
	return c, nil
}

// decode reads input into v, a pointer to a tool's input. Its error is an
// [*Error] of kind InvalidArgument that says what was wrong and what is expected.
func (c *checker) decode(input json.RawMessage, v any) error {
	if c.plain && c.fits(input) {
		if decodeStrict(input, v) == nil {
			return nil
		}
	}
	var tree any
	if err := json.Unmarshal(input, &tree); err != nil {
		return c.refuse(err)
	}
	if err := c.resolved.Validate(tree); err != nil {
		return c.refuse(err)
	}
	if err := decodeStrict(input, v); err != nil {
		return c.refuse(err)
	}
	return nil
}

func (c *checker) refuse(err error) error {
	return &Error{
		Kind: InvalidArgument, Err: err,
		Message: fmt.Sprintf("invalid arguments for %s: %v. The tool was not run. Expected: %s", c.name, err, c.text),
	}
}

// fits reports whether every required key stands at the top of the object, no
// key stands twice, and no null stands where none is allowed.
func (c *checker) fits(input []byte) bool {
	s := keyScanner{data: input}
	var seen [16]string
	keys := seen[:0]
	for {
		key, null, ok := s.next()
		if !ok {
			break
		}
		if null && c.nonNull[key] || slices.Contains(keys, key) {
			return false
		}
		keys = append(keys, key)
	}
	if s.bad {
		return false
	}
	for _, r := range c.required {
		if !slices.Contains(keys, r) {
			return false
		}
	}
	return true
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
	types := s.Types
	if s.Type != "" {
		types = []string{s.Type}
	}
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
