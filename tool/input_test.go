// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/fiducial-dev/fiducial/tool"
)

// TestNewRefusesNames: what no provider takes as a name is refused when the tool
// is made, not when the first request is sent.
func TestNewRefusesNames(t *testing.T) {
	t.Parallel()
	named := func(name string) error {
		return second(tool.New(name, "", func(context.Context, in) (string, error) { return "", nil }))
	}
	for _, good := range []string{"a", "read_file", "Read-File", "_x", strings.Repeat("n", 64)} {
		if err := named(good); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for _, bad := range []string{"", "read file", "a.b", "größe", "a\n", "3d_view", "-x", strings.Repeat("n", 65)} {
		e, ok := errors.AsType[*tool.SpecError](named(bad))
		if !ok || e.Field != "" || !strings.Contains(e.Error(), "1 to 64 ASCII letters, digits, _ and -, and begins with a letter or _") {
			t.Errorf("%q: got %v, want a SpecError with the rule", bad, e)
		}
	}
}

type lent struct {
	Wait time.Duration
}

type leaf struct {
	N int `json:"n,string"`
}

// TestNewRefusesFields: what the generator refuses in a struct, New does, in its
// words and at the field.
func TestNewRefusesFields(t *testing.T) {
	t.Parallel()
	const quoted, wait = "the json tag's option string is not supported: drop the option",
		"a time.Duration would be a number of nanoseconds; take the seconds as a number, or a string"
	for name, c := range map[string]struct {
		err        error
		field, why string
	}{
		"a duration":       {refused[struct{ After time.Duration }](), "After", wait},
		"an optional one":  {refused[struct{ After *time.Duration }](), "After", wait},
		"values of a map":  {refused[map[string]time.Duration](), "", wait},
		"one that is lent": {refused[struct{ lent }](), "Wait", wait},
		"an embedded one":  {refused[struct{ time.Duration }](), "Duration", wait},
		"a number in a string": {refused[struct {
			A int `json:"a,omitempty,string"`
		}](), "A", quoted},
		"a nameless tag": {refused[struct {
			A bool `json:",string"`
		}](), "A", quoted},
		"deep": {refused[struct{ List []map[string]*leaf }](), "List.N", quoted},
		"named and embedded": {refused[struct {
			leaf2 `json:"x"`
			Leaf  leaf
		}](), "Leaf.N", quoted},
	} {
		e, ok := errors.AsType[*tool.SpecError](c.err)
		if !ok || e.Tool != "x" || e.Field != c.field || e.Err.Error() != c.why {
			t.Errorf("%s: got %v, want %q at %q", name, c.err, c.why, c.field)
		}
	}
	if got, want := refused[struct{ After time.Duration }]().Error(), "tool x: field After of its input: "+wait; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

type leaf2 struct{ M int }

func refused[In any](opts ...tool.Option) error {
	return second(tool.New("x", "", func(context.Context, In) (string, error) { return "", nil }, opts...))
}

// TestNewTakesOwnSchemas: who gives a schema says what is meant, and what
// encoding/json does not see is no field.
func TestNewTakesOwnSchemas(t *testing.T) {
	t.Parallel()
	type both struct {
		After time.Duration
		N     leaf
	}
	for name, err := range map[string]error{
		"a schema": refused[both](tool.WithSchema(&jsonschema.Schema{Type: "object"})),
		"types": refused[both](tool.WithTypeSchema[time.Duration](&jsonschema.Schema{Type: "integer"}),
			tool.WithTypeSchema[leaf](&jsonschema.Schema{Type: "object"})),
		"hidden fields": refused[struct {
			A     time.Duration `json:"-"`
			after time.Duration
			At    time.Time `json:"string"`
		}](),
	} {
		if err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
