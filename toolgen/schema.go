// SPDX-License-Identifier: Apache-2.0

package toolgen

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// A schema is the part of JSON Schema (draft 2020-12) that Go types need. The
// zero value allows anything. Its JSON form keeps the order of properties.
type schema struct {
	description      string
	kind             string // object, array, string ...; empty: any
	nullable         bool   // null is allowed beside kind
	format           string
	contentEncoding  string
	enum             []string
	minimum, maximum string // JSON numbers, or empty

	items    *schema
	length   int // of an array type; -1 for a slice
	names    []string
	values   *schema // of a map
	closed   bool    // a struct: nothing but properties
	props    []property
	required []string
}

type property struct {
	name   string
	schema *schema
}

// json is the schema as indented text.
func (s *schema) json() string {
	var compact, text bytes.Buffer
	s.write(&compact)
	if err := json.Indent(&text, compact.Bytes(), "", "  "); err != nil {
		panic("toolgen: a schema is not JSON: " + err.Error())
	}
	return text.String()
}

func (s *schema) write(b *bytes.Buffer) {
	o := object{b: b}
	b.WriteByte('{')
	switch {
	case s.nullable && s.kind != "":
		o.key("type")
		b.WriteString(`["null",` + quoteJSON(s.kind) + `]`)
	case s.kind != "":
		o.text("type", s.kind)
	}
	o.text("description", s.description)
	o.text("format", s.format)
	o.text("contentEncoding", s.contentEncoding)
	if len(s.enum) > 0 {
		o.key("enum")
		writeStrings(b, s.enum, s.nullable)
	}
	o.raw("minimum", s.minimum)
	o.raw("maximum", s.maximum)
	if s.items != nil {
		o.key("items")
		s.items.write(b)
		if s.length >= 0 {
			length := itoa(int64(s.length))
			o.raw("minItems", length)
			o.raw("maxItems", length)
		}
	}
	if len(s.names) > 0 {
		o.key("propertyNames")
		b.WriteString(`{"enum":`)
		writeStrings(b, s.names, false)
		b.WriteByte('}')
	}
	if s.values != nil {
		o.key("additionalProperties")
		s.values.write(b)
	}
	if s.closed {
		s.writeProperties(&o)
	}
	b.WriteByte('}')
}

func (s *schema) writeProperties(o *object) {
	o.key("properties")
	o.b.WriteByte('{')
	inner := object{b: o.b}
	for _, p := range s.props {
		inner.key(p.name)
		p.schema.write(o.b)
	}
	o.b.WriteByte('}')
	if len(s.required) > 0 {
		o.key("required")
		writeStrings(o.b, s.required, false)
	}
	o.raw("additionalProperties", "false")
}

// An object writes the members of one JSON object.
type object struct {
	b     *bytes.Buffer
	begun bool
}

func (o *object) key(name string) {
	if o.begun {
		o.b.WriteByte(',')
	}
	o.begun = true
	o.b.WriteString(quoteJSON(name) + ":")
}

func (o *object) raw(name, value string) {
	if value != "" {
		o.key(name)
		o.b.WriteString(value)
	}
}

func (o *object) text(name, value string) {
	if value != "" {
		o.raw(name, quoteJSON(value))
	}
}

func writeStrings(b *bytes.Buffer, list []string, null bool) {
	b.WriteByte('[')
	for i, s := range list {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(quoteJSON(s))
	}
	if null {
		b.WriteString(",null")
	}
	b.WriteByte(']')
}

// quoteJSON writes a string for a schema that stands between backquotes in Go
// source: those within it are escaped, and so are control characters.
func quoteJSON(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(s); err != nil {
		panic("toolgen: a string is not JSON: " + err.Error())
	}
	return strings.NewReplacer("`", `\u0060`, "\ufeff", `\ufeff`).Replace(strings.TrimSuffix(b.String(), "\n"))
}

// field adds a property to the schema of a struct.
func (s *schema) field(name string, of *schema, optional bool) {
	s.props = append(s.props, property{name, of})
	if !optional && !slices.Contains(s.required, name) {
		s.required = append(s.required, name)
	}
}
