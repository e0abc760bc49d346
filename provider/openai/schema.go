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
// without white space and without HTML escapes. At its top it is made what the API
// insists on, since one tool that is refused disables all: an object with
// properties, even when there are none (E-242), without alternatives. Those become
// optional properties; each tool still looks at its arguments itself.
func schemaOf(raw json.RawMessage) json.RawMessage {
	if len(bytes.TrimSpace(raw)) == 0 {
		return json.RawMessage(emptySchema)
	}
	var flat bytes.Buffer
	if json.Compact(&flat, raw) != nil {
		return raw // the server's answer will say what is wrong
	}
	text := plainEscapes(flat.Bytes())
	top, ok := members(text)
	if !ok || fine(top) {
		return text
	}
	return repaired(top)
}

// A member is one key of an object with its value.
type member struct {
	key   string
	value json.RawMessage
}

// members are the keys of an object in order.
func members(raw json.RawMessage) ([]member, bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	var out []member
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil, false
		}
		name, ok := key.(string)
		var value json.RawMessage
		if !ok || dec.Decode(&value) != nil {
			return nil, false
		}
		out = append(out, member{name, value})
	}
	return out, true
}

func find(list []member, key string) json.RawMessage {
	for _, m := range list {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

// fine reports whether a schema may be sent as it is.
func fine(top []member) bool {
	return !slices.ContainsFunc(top, refusedAtTop) && find(top, "type") != nil && find(top, "properties") != nil
}

// refusedAtTop reports whether a member may not stand at the top of a schema. Nulls
// are what Go writes for lists and maps that were never made.
func refusedAtTop(m member) bool {
	switch m.key {
	case "anyOf", "oneOf", "allOf", "not", "enum":
		return true
	case "type":
		return string(m.value) != `"object"`
	}
	return string(m.value) == "null"
}

func repaired(top []member) json.RawMessage {
	props, _ := members(find(top, "properties"))
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		var list []json.RawMessage
		if json.Unmarshal(find(top, key), &list) != nil {
			continue
		}
		for _, raw := range list {
			alt, _ := members(raw)
			more, _ := members(find(alt, "properties"))
			for _, m := range more {
				if find(props, m.key) == nil {
					props = append(props, m)
				}
			}
		}
	}
	var j wire.JSON
	j.Open('{')
	j.Field("type", "object")
	for _, m := range top {
		if m.key != "type" && m.key != "properties" && !refusedAtTop(m) {
			j.Key(m.key)
			j.Raw(m.value)
		}
	}
	j.Key("properties")
	j.Open('{')
	for _, m := range props {
		j.Key(m.key)
		j.Raw(m.value)
	}
	j.Close('}')
	j.Close('}')
	return slices.Clone(j.Bytes())
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
