// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/fiducial-dev/fiducial/llm/wire"
)

// emptySchema is the schema of a tool without arguments.
const emptySchema = `{"type":"object","properties":{}}`

// schemaOf is a tool's schema as it is sent: keys and numbers as they were given,
// without white space and without HTML escapes, at its top an object with
// properties, even when there are none (E-242).
func schemaOf(raw json.RawMessage) json.RawMessage {
	if len(bytes.TrimSpace(raw)) == 0 {
		return json.RawMessage(emptySchema)
	}
	var flat bytes.Buffer
	if json.Compact(&flat, raw) != nil {
		return raw // the server's answer will say what is wrong
	}
	return wire.ObjectSchema(withItems(plainEscapes(flat.Bytes())))
}

// withItems gives items to arrays that have none, or a list of them: "array schema
// missing items" is what the server answers otherwise, and refuses all tools. A
// schema without such an array stays as it is.
func withItems(schema json.RawMessage) json.RawMessage {
	if !bytes.Contains(schema, []byte(`"array"`)) {
		return schema
	}
	out, changed := filled(schema, false)
	if !changed {
		return schema
	}
	return out
}

// filled writes a schema anew, keys in their order. Inside of properties the keys are
// names, whatever they are called.
func filled(raw json.RawMessage, names bool) (json.RawMessage, bool) {
	raw = bytes.TrimSpace(raw)
	var j wire.JSON
	changed := false
	add := func(value json.RawMessage, names bool) {
		v, c := filled(value, names)
		j.Raw(v)
		changed = changed || c
	}
	switch {
	case len(raw) > 0 && raw[0] == '[':
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			return raw, false
		}
		j.Open('[')
		for _, v := range list {
			add(v, false)
		}
		j.Close(']')
	case len(raw) > 0 && raw[0] == '{':
		dec := json.NewDecoder(bytes.NewReader(raw))
		if _, err := dec.Token(); err != nil {
			return raw, false
		}
		array, items := false, false
		j.Open('{')
		for dec.More() {
			key, err := dec.Token()
			name, ok := key.(string)
			var value json.RawMessage
			if err != nil || !ok || dec.Decode(&value) != nil {
				return raw, false
			}
			j.Key(name)
			switch {
			case names:
				add(value, false)
			case name == "items" && len(value) > 0 && value[0] != '{' && value[0] != 't' && value[0] != 'f':
				j.Raw([]byte("{}")) // null, or one schema for each place
				items, changed = true, true
			case name == "default", name == "const", name == "enum", name == "examples", name == "example":
				j.Raw(value) // data
			default:
				array = array || name == "type" && bytes.Contains(value, []byte(`"array"`))
				items = items || name == "items"
				add(value, name == "properties" || name == "$defs" || name == "definitions" || name == "patternProperties")
			}
		}
		if !names && array && !items {
			j.Key("items")
			j.Raw([]byte("{}"))
			changed = true
		}
		j.Close('}')
	default:
		return raw, false
	}
	return slices.Clone(j.Bytes()), changed
}

// plainEscapes writes < > and & where compact JSON has their escapes.
func plainEscapes(data []byte) []byte {
	if !bytes.Contains(data, []byte(`\u00`)) {
		return data
	}
	out := make([]byte, 0, len(data))
	for i := 0; i < len(data); i++ {
		if data[i] != '\\' || i+1 >= len(data) {
			out = append(out, data[i])
			continue
		}
		if i+6 <= len(data) && data[i+1] == 'u' {
			switch string(bytes.ToLower(data[i+2 : i+6])) {
			case "003c":
				out, i = append(out, '<'), i+5
				continue
			case "003e":
				out, i = append(out, '>'), i+5
				continue
			case "0026":
				out, i = append(out, '&'), i+5
				continue
			}
		}
		out, i = append(out, data[i], data[i+1]), i+1
	}
	return out
}

// Limits of strict schemas, well below those of
// https://platform.openai.com/docs/guides/structured-outputs.
const (
	maxStrictDepth      = 5
	maxStrictProperties = 100
	maxStrictEnum       = 250
)

// strictKey reports whether a strict schema may hold a keyword.
func strictKey(k string) bool {
	switch k {
	case "type", "properties", "required", "additionalProperties", "items", "enum", "description", "title":
		return true
	}
	return false
}

// strict reports whether a schema qualifies for strict mode as it stands: every
// object closed, every property required, nothing outside of the subset. It errs
// on the side of no: a schema that is not strict works, one that the server
// rejects disables the request.
func strict(schema json.RawMessage) bool {
	count := 0
	top, ok := strictNode(schema, 1, &count)
	return ok && top == "object" && count > 0 && count <= maxStrictProperties
}

type strictSchema struct {
	Type       json.RawMessage   `json:"type"`
	Properties json.RawMessage   `json:"properties"`
	Required   []string          `json:"required"`
	Additional json.RawMessage   `json:"additionalProperties"`
	Items      json.RawMessage   `json:"items"`
	Enum       []json.RawMessage `json:"enum"`
}

// strictNode looks over one schema and returns its type.
func strictNode(raw json.RawMessage, depth int, count *int) (string, bool) {
	var keys map[string]json.RawMessage
	var s strictSchema
	if depth > maxStrictDepth || json.Unmarshal(raw, &keys) != nil || json.Unmarshal(raw, &s) != nil {
		return "", false
	}
	for k := range keys {
		if !strictKey(k) {
			return "", false
		}
	}
	kind, ok := strictType(s.Type)
	if !ok || len(s.Enum) > maxStrictEnum {
		return "", false
	}
	switch kind {
	case "object":
		return kind, strictObject(s, depth, count)
	case "array":
		if len(s.Items) == 0 {
			return "", false
		}
		_, ok := strictNode(s.Items, depth+1, count)
		return kind, ok
	case "string", "number", "integer", "boolean":
		return kind, true
	}
	return "", false
}

func strictObject(s strictSchema, depth int, count *int) bool {
	var props map[string]json.RawMessage
	if string(s.Additional) != "false" || json.Unmarshal(s.Properties, &props) != nil || len(props) != len(s.Required) {
		return false
	}
	for _, name := range s.Required {
		p, ok := props[name]
		if !ok {
			return false
		}
		*count++
		if _, ok := strictNode(p, depth+1, count); !ok {
			return false
		}
	}
	return true
}

// strictType is the one type of a schema, also when it may be null.
func strictType(raw json.RawMessage) (string, bool) {
	var one string
	if json.Unmarshal(raw, &one) == nil {
		return one, true
	}
	var two []string
	if json.Unmarshal(raw, &two) != nil || len(two) != 2 {
		return "", false
	}
	switch i := slices.Index(two, "null"); i {
	case 0, 1:
		return two[1-i], true
	}
	return "", false
}

// writeSampling writes the sampling settings that both formats share.
func (s *setup) writeSampling(j *wire.JSON, temperature, topP *float64) {
	if temperature != nil && !s.refuses(UnsetTemperature) {
		j.Key("temperature")
		j.Float(*temperature)
	}
	if topP != nil && !s.refuses(UnsetTopP) {
		j.Key("top_p")
		j.Float(*topP)
	}
}
