// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"encoding/json"
	"testing"
)

// CheckReduced holds what is left of a schema: JSON with the subset's keys only.
func CheckReduced(t *testing.T, schema string) {
	if !json.Valid([]byte(schema)) {
		return // requests hold JSON
	}
	out := reduce(json.RawMessage(schema))
	if out == nil {
		return
	}
	var node reduced
	if err := json.Unmarshal(out, &node); err != nil {
		t.Fatalf("%s became %s: %v", schema, out, err)
	}
	node.check(t, string(out))
}

// reduced is a schema of the subset.
type reduced struct {
	Type       string             `json:"type"`
	Nullable   bool               `json:"nullable"`
	AnyOf      []reduced          `json:"anyOf"`
	Items      *reduced           `json:"items"`
	Properties map[string]reduced `json:"properties"`
	Required   []string           `json:"required"`
	Enum       []string           `json:"enum"`
}

func (r reduced) check(t *testing.T, all string) {
	if (r.Type == "") != (len(r.AnyOf) > 0) {
		t.Errorf("a schema needs a type or alternatives, not both: %s", all)
	}
	if (r.Type == "array") != (r.Items != nil) {
		t.Errorf("arrays and only they have items: %s", all)
	}
	for _, name := range r.Required {
		if _, ok := r.Properties[name]; !ok {
			t.Errorf("%q is required and no property: %s", name, all)
		}
	}
	if r.Items != nil {
		r.Items.check(t, all)
	}
	for _, a := range r.AnyOf {
		a.check(t, all)
	}
	for _, p := range r.Properties {
		p.check(t, all)
	}
}
