// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/json"
	"regexp"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
)

// fitKey is what the API takes as the name of a property at the top of a schema. One
// that it does not take, such as $top or uids[], has it refuse every tool of the
// request.
var fitKey = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

// naming is how a request calls its tools and their properties.
type naming struct {
	*wire.Names
	keys map[string]renamed // of the tools that have properties with names not fit
}

// renamed are the properties of one tool that go by another name.
type renamed struct{ wire, real map[string]string }

func newNaming(tools []llm.Tool) *naming {
	n := &naming{Names: wire.NewNames(tools)}
	for _, t := range tools {
		var unfit []llm.Tool
		for _, key := range wire.Properties(t.Schema) {
			if !fitKey.MatchString(key) {
				unfit = append(unfit, llm.Tool{Name: key})
			}
		}
		if len(unfit) == 0 {
			continue
		}
		names := wire.NewNames(unfit)
		r := renamed{wire: map[string]string{}, real: map[string]string{}}
		for _, key := range unfit {
			w := names.Wire(key.Name)
			r.wire[key.Name], r.real[w] = w, key.Name
		}
		if n.keys == nil {
			n.keys = map[string]renamed{}
		}
		n.keys[t.Name] = r
	}
	return n
}

// schema is a tool's schema with names that are fit.
func (n *naming) schema(t llm.Tool) json.RawMessage {
	if r, ok := n.keys[t.Name]; ok {
		return wire.RenameProperties(t.Schema, lookUp(r.wire))
	}
	return t.Schema
}

// input is the arguments of a call as the model wrote them.
func (n *naming) input(name, args string) string {
	if r, ok := n.keys[name]; ok {
		return string(wire.RenameKeys(json.RawMessage(args), lookUp(r.wire)))
	}
	return args
}

// args is what a model's input means to the tool.
func (n *naming) args(name, input string) string {
	return string(wire.RenameKeys(json.RawMessage(input), lookUp(n.keys[name].real)))
}

func lookUp(names map[string]string) func(string) string {
	return func(key string) string {
		if other, ok := names[key]; ok {
			return other
		}
		return key
	}
}
