// SPDX-License-Identifier: Apache-2.0

package llmtest

import (
	"bytes"
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"
)

var toolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,64}$`)

// checkText refuses what no provider reads: bytes that are no UTF-8, and halves of
// surrogate pairs.
func checkText(body []byte) *refusal {
	if !utf8.Valid(body) {
		return refuse("the request body is not valid UTF-8")
	}
	if !bytes.Contains(body, []byte(`\u`)) {
		return nil
	}
	for i := 0; i+1 < len(body); i++ {
		if body[i] != '\\' {
			continue
		}
		if unit := bytes.ToLower(body[i:min(i+12, len(body))]); len(unit) >= 6 && unit[1] == 'u' && unit[2] == 'd' && unit[3] >= '8' {
			if unit[3] >= 'c' || len(unit) < 12 || unit[6] != '\\' || unit[7] != 'u' || unit[8] != 'd' || unit[9] < 'c' {
				return refuse("the request body is not valid JSON: no low surrogate in string")
			}
			i += 6
		}
		i++
	}
	return nil
}

func isBlank(s string) bool { return strings.TrimSpace(s) == "" }

// isObject reports whether raw is a JSON object.
func isObject(raw []byte) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == '{' && json.Valid(raw)
}

// cutObject is an object without one of its fields, and whether it had it. The
// other fields keep their bytes and their order.
func cutObject(raw []byte, field string) ([]byte, bool) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	if t, err := dec.Token(); err != nil || t != json.Delim('{') {
		return raw, false
	}
	out := []byte{'{'}
	had := false
	for dec.More() {
		key, err := dec.Token()
		if err != nil {
			return raw, false
		}
		var value json.RawMessage
		if err := dec.Decode(&value); err != nil {
			return raw, false
		}
		name, ok := key.(string)
		if !ok {
			return raw, false
		}
		if name == field {
			had = true
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		quoted, err := json.Marshal(name)
		if err != nil {
			return raw, false
		}
		out = append(append(append(out, quoted...), ':'), value...)
	}
	return append(out, '}'), had
}

// ids collects the calls that wait for results.
type ids []string

func (w ids) missing(have map[string]bool) []string {
	var out []string
	for _, id := range w {
		if !have[id] {
			out = append(out, id)
		}
	}
	return out
}
