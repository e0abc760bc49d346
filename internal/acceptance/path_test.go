// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// A hop is one element of a path: .name, [n], [*] or [?name=value].
type hop struct {
	name  string // of a field; of a filter the path before =
	value string
	index int
	kind  byte // 'f', 'i', '*', '?'
}

// parsePath reads a path such as a.b[0][-1][*][?k=v].
func parsePath(path string) ([]hop, error) {
	var out []hop
	rest := path
	for rest != "" {
		switch rest[0] {
		case '.':
			rest = rest[1:]
		case '[':
			inside, after, ok := strings.Cut(rest[1:], "]")
			if !ok {
				return nil, fmt.Errorf("path %q: a bracket is not closed", path)
			}
			h, err := parseBracket(inside)
			if err != nil {
				return nil, fmt.Errorf("path %q: %w", path, err)
			}
			out, rest = append(out, h), after
		default:
			n := strings.IndexAny(rest, ".[")
			if n < 0 {
				n = len(rest)
			}
			out, rest = append(out, hop{kind: 'f', name: rest[:n]}), rest[n:]
		}
	}
	return out, nil
}

func parseBracket(inside string) (hop, error) {
	if inside == "*" {
		return hop{kind: '*'}, nil
	}
	if cond, ok := strings.CutPrefix(inside, "?"); ok {
		name, value, ok := strings.Cut(cond, "=")
		if !ok {
			return hop{}, fmt.Errorf("the filter %q has no =", inside)
		}
		return hop{kind: '?', name: name, value: value}, nil
	}
	n, err := strconv.Atoi(inside)
	return hop{kind: 'i', index: n}, err
}

// find walks a path. Behind [*] it goes on in every element and drops those where
// it leads nowhere; the result is then one flat list.
func find(v any, path string) (found any, ok bool, err error) {
	hops, err := parsePath(path)
	if err != nil {
		return nil, false, err
	}
	found, _, ok = walk(v, hops)
	return found, ok, nil
}

func walk(v any, hops []hop) (found any, many, ok bool) {
	if len(hops) == 0 {
		return v, false, true
	}
	h, rest := hops[0], hops[1:]
	switch h.kind {
	case 'f':
		if list, ok := v.([]any); ok {
			return fan(list, hops)
		}
		object, _ := v.(map[string]any)
		child, ok := object[h.name]
		if !ok {
			return nil, false, false
		}
		return walk(child, rest)
	case 'i':
		list, ok := v.([]any)
		i := h.index
		if i < 0 {
			i += len(list)
		}
		if !ok || i < 0 || i >= len(list) {
			return nil, false, false
		}
		return walk(list[i], rest)
	case '*':
		switch x := v.(type) {
		case []any:
			return fan(x, rest)
		case map[string]any:
			var list []any
			for _, k := range slices.Sorted(maps.Keys(x)) {
				list = append(list, x[k])
			}
			return fan(list, rest)
		}
		return nil, false, false
	}
	list, ok := v.([]any)
	if !ok {
		return nil, false, false
	}
	kept := []any{}
	for _, e := range list {
		if got, ok, err := find(e, h.name); err == nil && ok && plainText(got) == h.value {
			kept = append(kept, e)
		}
	}
	return walk(kept, rest)
}

func fan(list []any, hops []hop) (found any, many, ok bool) {
	out := []any{}
	for _, e := range list {
		got, many, ok := walk(e, hops)
		switch inner, flat := got.([]any); {
		case !ok:
		case many && flat:
			out = append(out, inner...)
		default:
			out = append(out, got)
		}
	}
	return out, true, true
}

// plainText is a string as it is, anything else as JSON.
func plainText(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	return jsonText(v)
}

// jsonText is v as JSON, with no character escaped that need not be.
func jsonText(v any) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return fmt.Sprint(err)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// contentText is what a reader sees of a content: a string, the texts of a list of
// blocks, or else the JSON.
func contentText(v any) string {
	list, ok := v.([]any)
	if !ok {
		return plainText(v)
	}
	var b strings.Builder
	for _, e := range list {
		block, _ := e.(map[string]any)
		text, ok := block["text"].(string)
		if !ok {
			return jsonText(v)
		}
		b.WriteString(text)
	}
	return b.String()
}

// parseJSON decodes with numbers as they are written.
func parseJSON(data []byte) (any, error) {
	dec := json.NewDecoder(strings.NewReader(string(data)))
	dec.UseNumber()
	var v any
	if err := dec.Decode(&v); err != nil {
		return nil, err
	}
	if dec.More() {
		return nil, fmt.Errorf("there is more behind the JSON value")
	}
	return v, nil
}
