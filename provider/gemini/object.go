// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"bytes"
	"encoding/json"
	"slices"
)

// An object is a JSON object with its keys in order.
type object []member

type member struct {
	key   string
	value json.RawMessage
}

func (o object) get(key string) json.RawMessage {
	for _, m := range o {
		if m.key == key {
			return m.value
		}
	}
	return nil
}

func (o object) text(key string) string {
	var s string
	if json.Unmarshal(o.get(key), &s) != nil {
		return ""
	}
	return s
}

func (o object) list(key string) []json.RawMessage {
	var l []json.RawMessage
	if json.Unmarshal(o.get(key), &l) != nil {
		return nil
	}
	return l
}

// without is o without some keys.
func (o object) without(keys ...string) object {
	return slices.DeleteFunc(slices.Clone(o), func(m member) bool { return slices.Contains(keys, m.key) })
}

// over is o with the members of p that it lacks.
func (o object) over(p object) object {
	out := slices.Clone(o)
	for _, m := range p {
		if o.get(m.key) == nil {
			out = append(out, m)
		}
	}
	return out
}

// readObject reads an object, nil when raw is none.
func readObject(raw json.RawMessage) object {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return nil
	}
	var o object
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return nil
		}
		name, ok := key.(string)
		var value json.RawMessage
		if !ok || dec.Decode(&value) != nil {
			return nil
		}
		o = append(o, member{name, value})
	}
	return o
}
