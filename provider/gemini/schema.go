// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/fiducial-dev/fiducial/llm/wire"
)

// Limits of a reduced schema.
const (
	maxDepth = 12   // beyond it an object is any object
	maxNodes = 5000 // beyond it too; shared definitions multiply when they are put in place
)

// reduce turns a JSON Schema into the subset that Gemini takes,
// https://ai.google.dev/api/caching#Schema, nil when the tool has no arguments: an
// object without properties is refused at the top. Definitions are put in place of
// their references; what has no counterpart is left out, or told in the
// description where the model should know of it. Properties keep their names and
// their order.
func reduce(raw json.RawMessage) json.RawMessage {
	top := readObject(raw)
	r := reducer{root: top}
	if len(readObject(r.resolve(top).get("properties"))) == 0 {
		return nil
	}
	var j wire.JSON
	r.write(&j, r.resolve(top), "object", 0)
	return slices.Clone(j.Bytes())
}

// A reducer reduces one schema.
type reducer struct {
	root  object
	nodes int
}

// resolve puts a definition in the place of its reference, and the members of
// allOf beside those of the schema that holds it.
func (r *reducer) resolve(o object) object {
	for range maxDepth {
		ref := o.text("$ref")
		all := o.list("allOf")
		if ref == "" && len(all) == 0 {
			return o
		}
		o = o.without("$ref", "allOf")
		if ref != "" {
			o = o.over(r.find(ref))
		}
		for _, raw := range all {
			o = joined(o, r.resolve(readObject(raw)))
		}
	}
	return o.without("$ref", "allOf")
}

// joined are two schemas that both hold.
func joined(o, p object) object {
	out := o.over(p)
	for _, key := range []string{"properties", "required"} {
		a, b := o.get(key), p.get(key)
		if a == nil || b == nil {
			continue
		}
		var j wire.JSON
		if key == "properties" {
			j.Open('{')
			for _, m := range readObject(a).over(readObject(b)) {
				j.Key(m.key)
				j.Raw(m.value)
			}
			j.Close('}')
		} else {
			j.Open('[')
			for _, v := range append(o.list(key), p.list(key)...) {
				j.Raw(v)
			}
			j.Close(']')
		}
		for i := range out {
			if out[i].key == key {
				out[i].value = slices.Clone(j.Bytes())
			}
		}
	}
	return out
}

// find is the schema that a reference inside of the document points to.
func (r *reducer) find(ref string) object {
	path, ok := strings.CutPrefix(ref, "#")
	if !ok {
		return nil
	}
	o := r.root
	for step := range strings.SplitSeq(strings.TrimPrefix(path, "/"), "/") {
		if step != "" {
			o = readObject(o.get(strings.NewReplacer("~1", "/", "~0", "~").Replace(step)))
		}
	}
	return o
}

// kinds are the types that a schema allows, without null, and whether it allows
// null.
func kinds(o object) (types []string, nullable bool) {
	if t := o.text("type"); t != "" {
		types = []string{t}
	}
	for _, raw := range o.list("type") {
		var t string
		if json.Unmarshal(raw, &t) == nil {
			types = append(types, t)
		}
	}
	nullable = slices.Contains(types, "null") || string(o.get("nullable")) == "true"
	types = slices.DeleteFunc(types, func(t string) bool {
		switch t {
		case "object", "array", "string", "integer", "number", "boolean":
			return false
		}
		return true
	})
	return types, nullable
}

// write writes a resolved schema. The kind stands where the schema names none.
func (r *reducer) write(j *wire.JSON, o object, kind string, depth int) {
	r.nodes++
	if depth > maxDepth || r.nodes > maxNodes {
		j.Raw([]byte(`{"type":"object"}`))
		return
	}
	types, nullable := kinds(o)
	if v := o.get("const"); v != nil && len(o.list("enum")) == 0 {
		o = append(o, member{"enum", slices.Concat(json.RawMessage("["), v, json.RawMessage("]"))})
	}
	if union, null := r.union(o, types); len(union) > 1 {
		r.writeUnion(j, o, union, nullable || null, depth)
		return
	} else if len(union) == 1 {
		o = joined(o.without("anyOf", "oneOf"), union[0])
		types, _ = kinds(o)
		nullable = nullable || null
	}
	if len(types) > 0 {
		kind = types[0]
	} else if guess := guessed(o); guess != "" {
		kind = guess
	}
	r.writeNode(j, o, kind, nullable, depth)
}

// union are the alternatives of a schema: those of anyOf and oneOf, or one for
// each of its types.
func (r *reducer) union(o object, types []string) (list []object, nullable bool) {
	for _, raw := range append(o.list("anyOf"), o.list("oneOf")...) {
		alt := r.resolve(readObject(raw))
		ts, null := kinds(alt)
		nullable = nullable || null
		if null && len(ts) == 0 {
			continue
		}
		list = append(list, alt)
	}
	if len(list) == 0 && len(types) > 1 {
		for _, t := range types {
			list = append(list, append(o.without("type", "description"), member{"type", json.RawMessage(strconv.Quote(t))}))
		}
	}
	return list, nullable
}

// writeUnion writes alternatives. Beside anyOf no other field may stand, so that
// the description goes into the alternatives that have none.
func (r *reducer) writeUnion(j *wire.JSON, o object, list []object, nullable bool, depth int) {
	j.Open('{')
	j.Key("anyOf")
	j.Open('[')
	for _, alt := range list {
		if d := o.get("description"); d != nil && alt.get("description") == nil {
			alt = append(slices.Clone(alt), member{"description", d})
		}
		if nullable && alt.get("nullable") == nil {
			alt = append(slices.Clone(alt), member{"nullable", json.RawMessage("true")})
		}
		r.write(j, alt, "string", depth+1)
	}
	j.Close(']')
	j.Close('}')
}

// guessed is the type of a schema that names none.
func guessed(o object) string {
	switch {
	case o.get("properties") != nil || o.get("additionalProperties") != nil:
		return "object"
	case o.get("items") != nil:
		return "array"
	}
	for _, raw := range o.list("enum") {
		switch raw[0] {
		case '"':
			return "string"
		case 't', 'f':
			return "boolean"
		case 'n':
			continue
		default:
			return "number"
		}
	}
	return ""
}

func (r *reducer) writeNode(j *wire.JSON, o object, kind string, nullable bool, depth int) {
	var notes []string
	j.Open('{')
	j.Field("type", kind)
	if nullable {
		j.Key("nullable")
		j.Bool(true)
	}
	switch kind {
	case "object":
		r.writeProperties(j, o, depth)
	case "array":
		j.Key("items")
		items := readObject(o.get("items"))
		if items == nil { // required; a list of schemas has no counterpart
			items = object{}
		}
		r.write(j, r.resolve(items), "string", depth+1)
		copyFields(j, o, "minItems", "maxItems")
	case "string":
		writeEnum(j, o)
		writeFormat(j, o, "date-time", "enum")
		copyFields(j, o, "minLength", "maxLength", "pattern")
	case "integer":
		writeFormat(j, o, "int32", "int64")
		notes = writeBounds(j, o, true)
	case "number":
		writeFormat(j, o, "float", "double")
		notes = writeBounds(j, o, false)
	}
	if list := o.list("enum"); len(list) > 0 && kind != "string" {
		notes = append(notes, "One of "+string(bytes.Join(rawBytes(list), []byte(", ")))+".")
	}
	if text := strings.TrimSpace(o.text("description") + " " + strings.Join(notes, " ")); text != "" {
		j.Field("description", text)
	}
	j.Close('}')
}

func rawBytes(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i, raw := range list {
		out[i] = raw
	}
	return out
}

func (r *reducer) writeProperties(j *wire.JSON, o object, depth int) {
	props := readObject(o.get("properties"))
	if len(props) == 0 {
		return
	}
	j.Key("properties")
	j.Open('{')
	for _, p := range props {
		j.Key(p.key)
		r.write(j, r.resolve(readObject(p.value)), "string", depth+1)
	}
	j.Close('}')
	var required []string
	for _, raw := range o.list("required") {
		var name string
		// A name that is no property is refused.
		if json.Unmarshal(raw, &name) == nil && props.get(name) != nil && !slices.Contains(required, name) {
			required = append(required, name)
		}
	}
	if len(required) == 0 {
		return
	}
	j.Key("required")
	j.Open('[')
	for _, name := range required {
		j.String(name)
	}
	j.Close(']')
}

// writeEnum writes the strings of an enum; an empty one is refused.
func writeEnum(j *wire.JSON, o object) {
	var texts []string
	for _, raw := range o.list("enum") {
		var s string
		if json.Unmarshal(raw, &s) == nil && s != "" {
			texts = append(texts, s)
		}
	}
	if len(texts) == 0 {
		return
	}
	j.Key("enum")
	j.Open('[')
	for _, s := range texts {
		j.String(s)
	}
	j.Close(']')
}

// writeFormat writes a format that is one of the allowed ones.
func writeFormat(j *wire.JSON, o object, allowed ...string) {
	if f := o.text("format"); slices.Contains(allowed, f) {
		j.Field("format", f)
	}
}

// copyFields copies fields that mean the same, strings and numbers.
func copyFields(j *wire.JSON, o object, keys ...string) {
	for _, k := range keys {
		v, text := o.get(k), ""
		switch {
		case v == nil:
		case json.Unmarshal(v, &text) == nil:
			j.Field(k, text)
		default:
			j.Key(k)
			j.Raw(v)
		}
	}
}

// writeBounds writes minimum and maximum. Exclusive ones have no counterpart: of
// whole numbers the next one is the bound, of others the note tells.
func writeBounds(j *wire.JSON, o object, whole bool) (notes []string) {
	for _, b := range []struct {
		key, exclusive, words string
		step                  int64
	}{
		{"minimum", "exclusiveMinimum", "Greater than ", 1},
		{"maximum", "exclusiveMaximum", "Less than ", -1},
	} {
		v := bytes.TrimSpace(o.get(b.exclusive))
		if len(v) == 0 || v[0] == 't' || v[0] == 'f' { // a boolean belongs to older drafts
			copyFields(j, o, b.key)
			if string(v) == "true" {
				notes = append(notes, b.words+string(o.get(b.key))+".")
			}
			continue
		}
		if n, err := strconv.ParseInt(string(v), 10, 32); err == nil && whole {
			j.Key(b.key)
			j.Int(n + b.step)
			continue
		}
		j.Key(b.key)
		j.Raw(v)
		notes = append(notes, b.words+string(v)+".")
	}
	return notes
}
