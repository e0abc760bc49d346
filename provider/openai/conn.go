// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"time"

	oai "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
	"github.com/fiducial-dev/fiducial/provider/internal/address"
	"github.com/fiducial-dev/fiducial/provider/internal/reply"
	"github.com/fiducial-dev/fiducial/provider/sse"
)

// The defaults of the first two limits where a server may rightly be silent for
// long: one on this machine reads the whole prompt before its first byte, a reply
// that is no stream comes when it is there, and over Chat Completions a model that
// thinks says nothing until it has done so.
const (
	localWait = 10 * time.Minute
	chatWait  = 5 * time.Minute
)

// A conn carries the requests of one client.
type conn struct {
	*setup
	client oai.Client
	mask   wire.Mask
}

// newConn returns a conn whose limits for opening and for the first event are
// wait where the caller set none; 0 leaves them to package wire.
func newConn(s *setup, wait time.Duration) *conn {
	if s.whole || address.Loopback(s.url.Hostname()) {
		wait = localWait
	}
	s.limits.Open = cmp.Or(s.limits.Open, wait)
	s.limits.First = cmp.Or(s.limits.First, wait)
	// oai.NewClient would read keys, headers and addresses from the environment.
	opts := []option.RequestOption{
		option.WithBaseURL(s.url.String()),
		option.WithMiddleware(denied),
		option.WithHeader("Accept", "text/event-stream, application/json"), // E-213
	}
	if s.key != "" {
		opts = append(opts, option.WithAPIKey(s.key))
	}
	if s.http != nil {
		opts = append(opts, option.WithHTTPClient(s.http))
	}
	opts = append(opts, s.sdk...)
	opts = append(opts, option.WithMaxRetries(0)) // E-151
	return &conn{setup: s, client: oai.Client{Options: opts}, mask: wire.NewMask(s.key)}
}

// stream sends one request and hands on what dec makes of the answer.
func (c *conn) stream(ctx context.Context, op, path string, body []byte, dec reply.Decoder) iter.Seq2[llm.Event, error] {
	return reply.Request[sse.Event]{
		Op: op, Limits: c.limits, Frames: sse.Read, TooLong: sse.ErrTooLong, Decoder: dec,
		Open: func(ctx context.Context) (*http.Response, wire.Mask, error) {
			res, err := c.open(ctx, path, body)
			return res, c.mask, err
		},
	}.Stream(ctx)
}

// open sends the request and returns a response whose status is a success.
func (c *conn) open(ctx context.Context, path string, body []byte) (*http.Response, error) {
	var res *http.Response
	err := c.client.Execute(ctx, http.MethodPost, path, body, &res)
	if err == nil && res == nil {
		err = errors.New("no response")
	}
	if err != nil {
		if res != nil && res.Body != nil {
			res.Body.Close() //nolint:errcheck // there is a worse error already
		}
		return nil, err
	}
	return res, nil
}

// denied turns a response that refuses the request into an error, before the SDK
// reads it whole.
func denied(req *http.Request, next option.MiddlewareNext) (*http.Response, error) {
	res, err := next(req)
	if err != nil || res.StatusCode < 300 {
		return res, err
	}
	return nil, statusError(res.StatusCode, res.Header, reply.Refusal(res))
}
