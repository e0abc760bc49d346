// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	sdk "github.com/anthropics/anthropic-sdk-go/v2"
	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
	"github.com/fiducial-dev/fiducial/provider/internal/reply"
	"github.com/fiducial-dev/fiducial/provider/sse"
)

// Vendor is the vendor of the client's models and of the [llm.Opaque] data that it
// makes and takes.
const Vendor = "anthropic"

const op = "anthropic: stream"

// A Client is an [llm.Client] for one model. It is safe for concurrent use.
type Client struct {
	model  llm.Model
	config config
	mask   wire.Mask
	sdk    sdk.Client
}

// New returns a client for a model, named as the API names it, such as
// claude-sonnet-4-5. It does no I/O and reads no environment. A missing key is an
// [*llm.Error] of class auth (B-129), any other mistake in the options one of class
// invalid_request.
func New(model string, opts ...Option) (*Client, error) {
	cfg := config{baseURL: DefaultBaseURL, version: DefaultVersion, maxTokens: DefaultMaxTokens}
	for _, o := range opts {
		o(&cfg)
	}
	base, err := cfg.validate(model)
	if err != nil {
		return nil, err
	}
	c := &Client{
		model:  llm.Model{Vendor: Vendor, Name: model, Window: cfg.window, Host: base.Host},
		config: cfg,
		mask:   wire.NewMask(cfg.key),
	}
	if c.model.Window == 0 && strings.HasPrefix(model, "claude-") {
		c.model.Window = 200_000
	}
	c.sdk = sdk.NewClient(c.sdkOptions(base)...)
	return c, nil
}

func (c *Client) sdkOptions(base *url.URL) []option.RequestOption {
	opts := []option.RequestOption{
		option.WithoutEnvironmentDefaults(),
		option.WithHeader("Anthropic-Version", c.config.version),
		option.WithHeader("Accept", "text/event-stream, application/json"),
	}
	if c.config.http != nil {
		opts = append(opts, option.WithHTTPClient(c.config.http))
	}
	// Options of the SDK for another cloud bring their own address.
	if len(c.config.sdk) == 0 || c.config.baseURL != DefaultBaseURL {
		opts = append(opts, option.WithBaseURL(base.String()))
	}
	if c.config.key != "" {
		opts = append(opts, option.WithHeader("X-Api-Key", c.config.key))
	}
	if len(c.config.beta) > 0 {
		opts = append(opts, option.WithHeader("Anthropic-Beta", strings.Join(c.config.beta, ",")))
	}
	opts = append(opts, c.config.sdk...)
	return append(opts, option.WithMaxRetries(0))
}

// Describe tells the model and where it is reached.
func (c *Client) Describe() llm.Model { return c.model }

// Stream sends one request and yields its reply as it comes.
func (c *Client) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	body, names, err := c.encode(req)
	if err != nil {
		return func(yield func(llm.Event, error) bool) { yield(nil, err) }
	}
	return reply.Request[sse.Event]{
		Op: op, Limits: c.config.timeouts, Frames: sse.Read, TooLong: sse.ErrTooLong, Decoder: newDecoder(names),
		Open: func(ctx context.Context) (*http.Response, wire.Mask, error) {
			res, err := c.open(ctx, body)
			return res, c.mask, err
		},
	}.Stream(ctx)
}

// open sends the request and returns a response whose status says success.
func (c *Client) open(ctx context.Context, body []byte) (*http.Response, error) {
	var resp *http.Response
	err := c.sdk.Post(ctx, "v1/messages", body, &resp, option.WithHeader("Content-Type", "application/json"))
	if resp == nil {
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	if resp.StatusCode < 300 {
		if err != nil {
			resp.Body.Close() //nolint:errcheck // there is a worse error already
			return nil, err
		}
		return resp, nil
	}
	return nil, statusError(resp.StatusCode, resp.Header, reply.Refusal(resp))
}

func statusError(status int, header http.Header, body []byte) *llm.Error {
	e := wire.StatusError(op, status, header, body, time.Now())
	e.Class = refine(e.Class, e.Code, e.Message)
	return e
}

// streamError is an error that stands in a stream. Gateways put the status of the
// server behind them in its code.
func streamError(body []byte) *llm.Error {
	e := statusError(0, http.Header{}, body)
	f := wire.ParseFault(body)
	if n, err := strconv.Atoi(f.Code); err == nil && n >= 400 && n < 600 && e.Class == llm.ClassUnknown {
		e.Class = wire.Classify(n, f)
	}
	return e
}

// Check tells which settings the API would refuse or the client leaves out (E-89).
func (c *Client) Check(s llm.Settings) []string {
	var out []string
	if sampled(s) && !c.config.sampling() {
		out = append(out, fmt.Sprintf("temperature, top-p and top-k are not sent: API version %s has none", c.config.version))
	} else if sampled(s) && s.ThinkingBudget != 0 {
		out = append(out, "temperature, top-p and top-k are not sent together with a thinking budget")
	}
	if b := s.ThinkingBudget; b > 0 && b < 1024 {
		out = append(out, fmt.Sprintf("a thinking budget of %d tokens is below the least of 1024", b))
	}
	if s.ThinkingBudget > 0 && s.MaxTokens > 0 && s.MaxTokens <= s.ThinkingBudget {
		out = append(out, fmt.Sprintf("max tokens %d must exceed the thinking budget %d", s.MaxTokens, s.ThinkingBudget))
	}
	return out
}

func sampled(s llm.Settings) bool { return s.Temperature != nil || s.TopP != nil || s.TopK != nil }
