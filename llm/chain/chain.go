// SPDX-License-Identifier: Apache-2.0

// Package chain makes one client of several: when a provider keeps refusing for
// want of capacity, the next one goes on with the same request.
package chain

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/fiducial-dev/fiducial/llm"
)

// DefaultAfter is how many refusals in a row make a [Client] go over to the next
// provider: the first request and three retries (B-27).
const DefaultAfter = 4

// Client asks its first client until that has refused for rate limit or overload
// After times in a row, then the next, and so on. It says so by [llm.Failover],
// and stays there. A refusal counts only when it came before any part of the
// reply. Other errors are passed on, and so is the last client's refusal.
//
// Each client is sent the same request. What one vendor's models thought or signed
// is not sent to another; the adapters see to that.
type Client struct {
	// After is how many refusals in a row are enough; 0 means [DefaultAfter]. It
	// must not be changed once the client is used.
	After int

	clients []llm.Client

	mu      sync.Mutex
	current int
	refused int // in a row, by the current client
}

// New makes a client of several, the first choice first.
func New(first llm.Client, others ...llm.Client) *Client {
	return &Client{clients: append([]llm.Client{first}, others...)}
}

// Describe tells of the client that is asked now.
func (c *Client) Describe() llm.Model {
	c.mu.Lock()
	defer c.mu.Unlock()
	return describe(c.clients[c.current])
}

// Check tells what any of the clients cannot honour.
func (c *Client) Check(s llm.Settings) []string {
	var problems []string
	for _, client := range c.clients {
		if k, ok := client.(llm.Checker); ok {
			problems = append(problems, k.Check(s)...)
		}
	}
	return problems
}

// Stream sends the request to the current client, and to the next ones when it is
// time to.
func (c *Client) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		for {
			at := c.at()
			begun := false
			var failed error
			for ev, err := range c.clients[at].Stream(ctx, req) {
				if err != nil {
					failed = err
					break
				}
				begun = begun || opens(ev)
				if !yield(ev, nil) {
					return
				}
			}
			next, move := c.count(at, begun, failed)
			if !move {
				if failed != nil {
					yield(nil, failed)
				}
				return
			}
			if !yield(llm.Failover{From: describe(c.clients[at]), To: describe(c.clients[next]), Cause: failed}, nil) {
				return
			}
		}
	}
}

// opens reports whether an event is a part of the reply.
func opens(ev llm.Event) bool {
	switch ev.(type) {
	case llm.BlockStart, llm.BlockDelta, llm.BlockStop, llm.Finish:
		return true
	case llm.UsageReport, llm.Unhandled, llm.Failover:
		return false
	}
	return false
}

func (c *Client) at() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.current
}

// count notes how a request to client at ended, and tells whether the next client
// is to be asked now.
func (c *Client) count(at int, begun bool, err error) (next int, move bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at != c.current {
		return c.current, err != nil && !begun && refuses(err) // another request has moved on
	}
	if err == nil || begun || !refuses(err) {
		c.refused = 0
		return at, false
	}
	c.refused++
	after := c.After
	if after <= 0 {
		after = DefaultAfter
	}
	if c.refused < after || at == len(c.clients)-1 {
		return at, false
	}
	c.current, c.refused = at+1, 0
	return c.current, true
}

// refuses reports whether an error is for want of capacity.
func refuses(err error) bool {
	e, ok := errors.AsType[*llm.Error](err)
	return ok && (e.Class == llm.ClassRateLimit || e.Class == llm.ClassOverloaded)
}

func describe(c llm.Client) llm.Model {
	if d, ok := c.(llm.Describer); ok {
		return d.Describe()
	}
	return llm.Model{}
}
