// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"context"
	"encoding/json"
	"iter"
)

// A Client sends one request to one model. Implementations are safe for
// concurrent use and never retry: one call of Stream is one request.
//
// The sequence yields events in the order they came. It ends after [Finish],
// which is the only sign of a complete reply, or with one error, after which
// nothing more is yielded. Errors are [*Error] values, wrapped or not, except
// that the end of ctx may be reported as ctx's own error. A ctx that has ended
// already yields nothing but that. Breaking out of the sequence releases everything
// that it holds.
type Client interface {
	Stream(ctx context.Context, req *Request) iter.Seq2[Event, error]
}

// A Describer is a [Client] that can tell what it talks to.
type Describer interface {
	Describe() Model
}

// Model tells what a client talks to.
type Model struct {
	Vendor string `json:"vendor"`         // such as anthropic; the vendor of [Opaque] data
	Name   string `json:"name"`           // as the provider spells it
	Window int64  `json:"window"`         // context window in tokens, 0 when unknown
	Host   string `json:"host,omitempty"` // host and port it is reached at, "" for in-process
}

// A Checker is a [Client] that can tell beforehand which settings it cannot
// honour (E-89). No answer means that all can be.
type Checker interface {
	Check(Settings) []string
}

// A Request is everything that one generation depends on. The client must not
// change it and must not keep its slices after the sequence ended.
type Request struct {
	// System is the system prompt; empty means that none is sent.
	System string

	// Tools are the advertised tools, sorted by name.
	Tools []Tool

	// Messages is the conversation, at least one.
	Messages []Message

	// Prefix is how many of Messages belong to the committed prefix, which will
	// stand unchanged in every later request of the same locked engine.
	Prefix int

	Settings Settings

	// CacheKey groups requests that share a prefix, for providers that take such
	// a key. Empty means none.
	CacheKey string

	// CacheAnchor is the index in Messages behind which a provider with explicit
	// cache marks places one more. Negative means none (E-184).
	CacheAnchor int
}

// Settings shape how a model answers. The zero value leaves all to the provider.
type Settings struct {
	MaxTokens   int      `json:"max_tokens,omitempty"` // 0: the adapter's default
	Temperature *float64 `json:"temperature,omitempty"`
	TopP        *float64 `json:"top_p,omitempty"`
	TopK        *int     `json:"top_k,omitempty"`
	Stop        []string `json:"stop,omitempty"`

	// Effort is a reasoning effort such as low, medium or high; other words go
	// through as they are. Empty means none was asked for.
	Effort string `json:"effort,omitempty"`

	// ThinkingBudget is a limit in tokens; 0 means none was asked for, -1 that
	// the model may choose (E-208).
	ThinkingBudget int `json:"thinking_budget,omitempty"`

	// Sequential asks the model for at most one call a reply.
	Sequential bool `json:"sequential,omitempty"`

	// NoCache asks that no cache marks be placed, where a provider has them.
	NoCache bool `json:"no_cache,omitempty"`
}

// A Tool is what a model is told of a tool.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`

	// Schema is the JSON Schema of the arguments, an object schema. Empty means
	// that the tool takes none.
	Schema json.RawMessage `json:"schema,omitempty"`
}
