// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"bytes"
	"context"
	"iter"
	"net/http"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
	"github.com/fiducial-dev/fiducial/provider/internal/reply"
	"github.com/fiducial-dev/fiducial/provider/sse"
)

// Vendor is the vendor of this package's [llm.Opaque] data.
const Vendor = "gemini"

const op = "gemini: stream"

// Client is an [llm.Client] for one Gemini model. It is safe for concurrent use.
type Client struct {
	*setup
	mask wire.Mask
}

var (
	_ llm.Client    = (*Client)(nil)
	_ llm.Describer = (*Client)(nil)
	_ llm.Checker   = (*Client)(nil)
)

// New returns a client for a model such as gemini-3-pro. It does no I/O
// and reads no environment. A missing key is an [*llm.Error] of class auth (B-129),
// any other mistake in the options one of class invalid_request.
func New(model string, opts ...Option) (*Client, error) {
	s, err := newSetup(model, opts)
	if err != nil {
		return nil, err
	}
	return &Client{setup: s, mask: wire.NewMask(s.key)}, nil
}

// Describe tells what the client talks to.
func (c *Client) Describe() llm.Model {
	return llm.Model{Vendor: Vendor, Name: c.model, Window: c.window, Host: c.url.Host}
}

// Check tells which settings cannot be honoured.
func (c *Client) Check(set llm.Settings) []string {
	var out []string
	if set.Effort != "" && !c.third() {
		out = append(out, "reasoning effort is not known to "+c.model+"; set a thinking budget")
	}
	if set.Sequential {
		out = append(out, "calls one at a time cannot be asked of Gemini")
	}
	return out
}

// Stream sends one request, see [llm.Client]. A reply is complete when a finish
// reason came. Ids of calls are left to package collect unless the server gives
// its own (E-254).
func (c *Client) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	names := wire.NewNames(req.Tools)
	body := encode(c.setup, req, names)
	return reply.Request[sse.Event]{
		Op: op, Limits: c.limits, Frames: sse.Read, TooLong: sse.ErrTooLong, Decoder: newStream(names),
		Open: func(ctx context.Context) (*http.Response, wire.Mask, error) { return c.open(ctx, body) },
	}.Stream(ctx)
}

// open sends the request and returns a response whose status is a success. The
// mask knows every secret of the request.
func (c *Client) open(ctx context.Context, body []byte) (*http.Response, wire.Mask, error) {
	// The key is no part of the address, which errors and proxies show (E-260).
	address := c.url.String() + "/" + c.path + ":streamGenerateContent?alt=sse"
	if c.whole {
		address = c.url.String() + "/" + c.path + ":generateContent"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return nil, c.mask, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "text/event-stream, application/json") // E-213
	mask := c.mask
	switch {
	case c.token != nil:
		token, err := c.token(ctx)
		if err != nil {
			return nil, mask, &llm.Error{Class: llm.ClassAuth, Message: "no token: " + err.Error()}
		}
		mask = wire.NewMask(c.key, token)
		req.Header.Set("Authorization", "Bearer "+token)
	case c.key != "":
		req.Header.Set("X-Goog-Api-Key", c.key)
	}
	res, err := c.http.Do(req)
	if err != nil {
		return nil, mask, err
	}
	if res.StatusCode < 300 {
		return res, mask, nil
	}
	return nil, mask, statusError(res.StatusCode, res.Header, reply.Refusal(res))
}
