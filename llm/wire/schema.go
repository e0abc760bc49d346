// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
)

// ObjectSchema is a tool's schema with the top that providers insist on, since one
// tool that is refused disables all: type object, properties, even when there are
// none, and neither alternatives nor a reference. What a reference names is put in
// its place, and the properties of alternatives become optional ones; each tool
// still looks at its arguments itself. A schema that is fit stays as it is, byte for
// byte, and so does what is no JSON object.
func ObjectSchema(schema json.RawMessage) json.RawMessage {
	top, ok := members(schema)
	if !ok || fitTop(top) {
		return schema
	}
	top = resolved(top, top)
	props, _ := members(member(top, "properties"))
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		var list []json.RawMessage
		if json.Unmarshal(member(top, key), &list) != nil {
			continue
		}
		for _, raw := range list {
			alternative, _ := members(raw)
			more, _ := members(member(resolved(alternative, top), "properties"))
			props = withNew(props, more)
		}
	}
	var j JSON
	j.Open('{')
	j.Field("type", "object")
	for _, f := range top {
		if f.key != "type" && f.key != "properties" && !refusedAtTop(f) {
			j.Key(f.key)
			j.Raw(f.value)
		}
	}
	j.Key("properties")
	j.Open('{')
	for _, f := range props {
		j.Key(f.key)
		j.Raw(f.value)
	}
	j.Close('}')
	j.Close('}')
	return slices.Clone(j.Bytes())
}

// Properties are the names at the top of a tool's schema, in order.
func Properties(schema json.RawMessage) []string {
	top, _ := members(schema)
	list, _ := members(member(top, "properties"))
	names := make([]string, len(list))
	for i, f := range list {
		names[i] = f.key
	}
	return names
}

// RenameProperties is a schema whose properties at the top, and what it requires of
// them, have other names.
func RenameProperties(schema json.RawMessage, rename func(string) string) json.RawMessage {
	top, ok := members(schema)
	if !ok {
		return schema
	}
	var j JSON
	j.Open('{')
	for _, f := range top {
		j.Key(f.key)
		var names []string
		switch {
		case f.key == "properties":
			j.Raw(RenameKeys(f.value, rename))
		case f.key == "required" && json.Unmarshal(f.value, &names) == nil:
			j.Open('[')
			for _, name := range names {
				j.String(rename(name))
			}
			j.Close(']')
		default:
			j.Raw(f.value)
		}
	}
	j.Close('}')
	return slices.Clone(j.Bytes())
}

// RenameKeys is an object with other keys at its top, the values byte for byte. What
// is no object stays as it is.
func RenameKeys(object json.RawMessage, rename func(string) string) json.RawMessage {
	list, ok := members(object)
	if !ok || !json.Valid(object) {
		return object
	}
	var j JSON
	j.Open('{')
	for _, f := range list {
		j.Key(rename(f.key))
		j.Raw(f.value)
	}
	j.Close('}')
	return slices.Clone(j.Bytes())
}

// A field is one key of an object with its value.
type field struct {
	key   string
	value json.RawMessage
}

// members are the fields of an object in order.
func members(raw json.RawMessage) ([]field, bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil, false
	}
	var out []field
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
		out = append(out, field{name, value})
	}
	return out, true
}

func member(list []field, key string) json.RawMessage {
	for _, f := range list {
		if f.key == key {
			return f.value
		}
	}
	return nil
}

// withNew adds the fields whose keys are not there yet.
func withNew(list, more []field) []field {
	for _, f := range more {
		if member(list, f.key) == nil {
			list = append(list, f)
		}
	}
	return list
}

// resolved puts what a reference into root names in its place. One that leads in a
// circle, or nowhere, is left out.
func resolved(list, root []field) []field {
	const deep = 16
	for range deep {
		raw := member(list, "$ref")
		if raw == nil {
			return list
		}
		list = slices.DeleteFunc(slices.Clone(list), func(f field) bool { return f.key == "$ref" })
		var ref string
		if json.Unmarshal(raw, &ref) != nil {
			return list
		}
		target, _ := members(at(root, ref))
		list = withNew(list, target)
	}
	return slices.DeleteFunc(slices.Clone(list), func(f field) bool { return f.key == "$ref" })
}

// at is what a reference such as #/$defs/Name stands for.
func at(root []field, ref string) json.RawMessage {
	path, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil
	}
	list := root
	var value json.RawMessage
	for name := range strings.SplitSeq(path, "/") {
		name = strings.NewReplacer("~1", "/", "~0", "~").Replace(name)
		value = member(list, name)
		list, _ = members(value)
	}
	return value
}

// fitTop reports whether a schema may be sent as it is.
func fitTop(top []field) bool {
	return !slices.ContainsFunc(top, refusedAtTop) && member(top, "type") != nil && member(top, "properties") != nil
}

// refusedAtTop reports whether a field may not stand at the top of a schema. Nulls
// are what Go writes for lists and maps that were never made.
func refusedAtTop(f field) bool {
	switch f.key {
	case "anyOf", "oneOf", "allOf", "not", "enum", "$ref":
		return true
	case "type":
		return string(f.value) != `"object"`
	}
	return string(f.value) == "null"
}
