// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"context"
	"iter"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
)

// Chat is an [llm.Client] that speaks Chat Completions. It is safe for concurrent
// use.
type Chat struct{ conn *conn }

var (
	_ llm.Client    = (*Chat)(nil)
	_ llm.Describer = (*Chat)(nil)
	_ llm.Checker   = (*Chat)(nil)
)

// NewChat returns a client for a model of OpenAI or of any server that speaks its
// Chat Completions. It does
// no I/O and reads no environment. A missing key is an [*llm.Error] of class auth
// (B-129), any other mistake in the options one of class invalid_request.
func NewChat(model string, opts ...Option) (*Chat, error) {
	s, err := newSetup(model, opts)
	if err != nil {
		return nil, err
	}
	return &Chat{conn: newConn(s, chatWait)}, nil
}

// Stream sends one request, see [llm.Client].
//
// A reply is complete when a finish reason came; what most servers send after it
// is read but not needed. Its blocks are thinking, text and calls, in this order.
func (c *Chat) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	names := wire.NewNames(req.Tools)
	body := encodeChat(c.conn.setup, req, names)
	dec := newChatStream(c.conn.vendor, names)
	return c.conn.stream(ctx, "openai chat: stream", "chat/completions", body, dec)
}

// Describe tells what the client talks to.
func (c *Chat) Describe() llm.Model { return c.conn.describe() }

// Check tells which settings cannot be honoured.
func (c *Chat) Check(set llm.Settings) []string {
	q, out := c.conn.quirks, c.conn.checkUnset(set)
	if set.TopK != nil {
		out = append(out, "top-k cannot be sent over Chat Completions") // E-234
	}
	if set.Effort != "" && (q.effort == effortNone || q.effort == effortBudget) {
		out = append(out, "reasoning effort is not known to servers of the flavor "+string(c.conn.flavor))
	}
	if set.ThinkingBudget != 0 && q.effort != effortObject && q.effort != effortBudget {
		out = append(out, "a thinking budget cannot be sent over Chat Completions; set an effort")
	}
	if set.Sequential && q.noParallel {
		out = append(out, "calls one at a time cannot be asked of servers of the flavor "+string(c.conn.flavor))
	}
	return out
}
