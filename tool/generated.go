// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/jsonschema-go/jsonschema"
)

// GeneratedV1 is named by the code that fiducialgen writes, so that the compiler
// refuses code of a generator that does not fit this package. A second form of
// generated code would bring GeneratedV2 beside it, or in its place.
const GeneratedV1 = true

// Generated makes a tool of the parts that fiducialgen writes; programs use
// [New]. The schema in spec is that of In, as text: white space is taken out of
// it, and all else is what the model is shown. Input is decoded strictly, as New
// does; a schema without properties takes any input as empty (E-94). Out is shown
// as New shows it. fn gets its call, and [FromContext] finds it, too.
//
// It panics when the schema is none, which a generator does not let happen.
func Generated[In, Out any](spec Spec, traits Traits, fn func(context.Context, Call, In) (Out, error)) Tool {
	t := &generated[In, Out]{spec: spec, traits: traits, fn: fn}
	var schema jsonschema.Schema
	var text bytes.Buffer
	if err := json.Unmarshal(spec.Schema, &schema); err != nil {
		panic(fmt.Sprintf("tool %s: schema: %v", spec.Name, err))
	}
	if err := json.Compact(&text, spec.Schema); err != nil {
		panic(fmt.Sprintf("tool %s: schema: %v", spec.Name, err))
	}
	t.spec.Schema = text.Bytes()
	check, err := newChecker(spec.Name, &schema)
	if err != nil {
		panic(err)
	}
	if len(schema.Properties) > 0 {
		check.text = t.spec.Schema
		t.check = check
	}
	return t
}

type generated[In, Out any] struct {
	spec   Spec
	traits Traits
	check  *checker // nil when there is nothing to decode
	fn     func(context.Context, Call, In) (Out, error)
}

func (g *generated[In, Out]) Spec() Spec     { return g.spec }
func (g *generated[In, Out]) Traits() Traits { return g.traits }

func (g *generated[In, Out]) Run(ctx context.Context, call Call) (Output, error) {
	var in In
	if g.check != nil {
		if err := g.check.decode(call, &in); err != nil {
			return Output{}, err
		}
	}
	out, err := g.fn(context.WithValue(ctx, callKey{}, &call), call, in)
	if err != nil {
		return Output{}, err
	}
	return render(call, out)
}
