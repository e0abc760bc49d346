// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"context"
	"iter"
	"strings"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
)

// Responses is an [llm.Client] that speaks OpenAI's Responses. It is safe for
// concurrent use.
//
// It keeps nothing on the server: each request carries the whole conversation,
// the model's reasoning in encrypted form.
type Responses struct{ conn *conn }

var (
	_ llm.Client    = (*Responses)(nil)
	_ llm.Describer = (*Responses)(nil)
	_ llm.Checker   = (*Responses)(nil)
)

// NewResponses returns a client for a model of OpenAI, or of a server that speaks
// its Responses. It does
// no I/O and reads no environment. A missing key is an [*llm.Error] of class auth
// (B-129), any other mistake in the options one of class invalid_request.
func NewResponses(model string, opts ...Option) (*Responses, error) {
	s, err := newSetup(model, opts)
	if err != nil {
		return nil, err
	}
	return &Responses{conn: newConn(s, 0)}, nil
}

// Stream sends one request, see [llm.Client]. What the server says at the end of
// an item counts; a stream whose pieces contradict it is malformed (E-247).
func (r *Responses) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	names := wire.NewNames(req.Tools)
	body := encodeResponses(r.conn.setup, req, names)
	dec := newItemStream(r.conn.vendor, names)
	return r.conn.stream(ctx, "openai responses: stream", "responses", body, dec)
}

// Describe tells what the client talks to.
func (r *Responses) Describe() llm.Model { return r.conn.describe() }

// Check tells which settings cannot be honoured.
func (r *Responses) Check(set llm.Settings) []string {
	out := r.conn.checkUnset(set)
	if set.TopK != nil {
		out = append(out, "top-k cannot be sent over Responses")
	}
	if len(set.Stop) > 0 {
		out = append(out, "stop sequences cannot be sent over Responses")
	}
	if set.ThinkingBudget != 0 {
		out = append(out, "a thinking budget cannot be sent over Responses; set an effort")
	}
	if set.Effort != "" && !r.conn.thinks() {
		out = append(out, "reasoning effort is not sent: "+r.conn.model+" does not reason")
	}
	return out
}

// thinks reports whether the model reasons. OpenAI refuses to encrypt the
// reasoning of a model that has none.
func (s *setup) thinks() bool {
	if s.reasons != nil {
		return *s.reasons
	}
	for _, prefix := range []string{"gpt-3.5", "gpt-4", "chatgpt-4o", "gpt-5-chat"} {
		if strings.HasPrefix(s.model, prefix) {
			return false
		}
	}
	return true
}
