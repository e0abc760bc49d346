// SPDX-License-Identifier: Apache-2.0

package machine_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// What Storable lets pass can be written and read; what it refuses cannot.
func TestStorable(t *testing.T) {
	t.Parallel()
	nested := func(n int) string { return strings.Repeat("[", n) + strings.Repeat("]", n) }
	note := func(data string) llm.Message {
		return llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.System{Kind: "k", Data: json.RawMessage(data)}}}
	}
	reply := func(p llm.Part) llm.Message {
		return llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{p}, Stop: llm.StopEndTurn}
	}
	vendor := func(data string) llm.Opaque { return llm.Opaque{Vendor: "v", Data: json.RawMessage(data)} }
	cases := map[string]struct {
		in   machine.Input
		want error
	}{
		"plain":             {machine.Steer{Messages: []llm.Message{note(`{"a":"[[["}`)}, Keys: []string{"k"}}, nil},
		"no data":           {machine.Steer{Messages: []llm.Message{note("")}}, nil},
		"data":              {machine.Steer{Messages: []llm.Message{note("{bad")}}, machine.ErrNotJSON},
		"two values":        {machine.AppendInput{Message: note("1 2")}, machine.ErrNotJSON},
		"data not UTF-8":    {machine.AppendInput{Message: note("\"\xff\"")}, machine.ErrNotUTF8},
		"deep enough":       {machine.AppendInput{Message: note(nested(1000))}, nil},
		"too deep":          {machine.AppendInput{Message: note(nested(1001))}, machine.ErrNotJSON},
		"too deep for JSON": {machine.AppendInput{Message: note(nested(9999))}, machine.ErrNotJSON},
		"opaque":            {machine.Generated{Message: reply(llm.Text{Opaque: vendor("nope")})}, machine.ErrNotJSON},
		"opaque of a call":  {machine.Generated{Message: reply(llm.Call{ID: "1", Opaque: vendor("")})}, machine.ErrNotJSON},
		"opaque brackets":   {machine.Generated{Message: reply(llm.Thinking{Opaque: vendor(`"\"` + strings.Repeat("[", 2000) + `"`)})}, nil},
		"stop reason":       {machine.Generated{Message: llm.Message{Role: llm.RoleAssistant, Stop: "\xff"}}, machine.ErrNotUTF8},
		"key":               {machine.Steer{Messages: []llm.Message{note("1")}, Keys: []string{"\xff"}}, machine.ErrNotUTF8},
		"notes of a result": {machine.Settled{Result: llm.Result{Notes: []llm.System{{Data: json.RawMessage("{")}}}}, machine.ErrNotJSON},
	}
	for name, c := range cases {
		if err := machine.Storable(c.in); !errors.Is(err, c.want) || (err == nil) != (c.want == nil) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
		kind, data, err := machine.EncodeInput(c.in)
		if !errors.Is(err, c.want) {
			t.Errorf("%s: EncodeInput: %v, want %v", name, err, c.want)
		}
		if err != nil {
			continue
		}
		if _, err := machine.DecodeInput(kind, data); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}
