// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/v2/option"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
	"github.com/fiducial-dev/fiducial/provider/internal/address"
)

// The defaults of the options.
const (
	DefaultBaseURL = "https://api.anthropic.com"

	// DefaultVersion is the anthropic-version header. 2026-10-21 is newer and takes
	// no temperature, top-p and top-k
	// (https://platform.claude.com/docs/en/api/versioning).
	DefaultVersion = "2023-06-01"

	// DefaultMaxTokens is the limit of a reply when the request names none; the API
	// wants one. A thinking budget is added to it.
	DefaultMaxTokens = 8192
)

// An Option changes how [New] makes a client.
type Option func(*config)

type config struct {
	key       string
	keyed     bool // a key was given, be it empty
	keyless   bool
	baseURL   string
	version   string
	beta      []string
	http      *http.Client
	timeouts  wire.Timeouts
	maxTokens int
	window    int64
	noCache   bool
	fourth    bool
	whole     bool
	server    []json.RawMessage
	sdk       []option.RequestOption
}

// WithAPIKey sets the key, which is sent as X-Api-Key. It is never read from the
// environment.
func WithAPIKey(key string) Option { return func(c *config) { c.key, c.keyed = key, true } }

// WithoutKey says that the server wants no key, such as Ollama's (E-262). Servers
// on a loopback address are never asked for one (B-131).
func WithoutKey() Option { return func(c *config) { c.keyless = true } }

// WithBaseURL sets where the API is: everything before /v1/messages. A slash or
// /v1 at its end is dropped.
func WithBaseURL(address string) Option { return func(c *config) { c.baseURL = address } }

// WithHTTPClient sets the HTTP client. Its Timeout should be 0, since it would cut
// long replies; see [WithTimeouts].
func WithHTTPClient(h *http.Client) Option { return func(c *config) { c.http = h } }

// WithTimeouts limits how long a request may stand still.
func WithTimeouts(t wire.Timeouts) Option { return func(c *config) { c.timeouts = t } }

// WithVersion sets the anthropic-version header.
func WithVersion(date string) Option { return func(c *config) { c.version = date } }

// WithBeta adds names to the anthropic-beta header.
func WithBeta(names ...string) Option { return func(c *config) { c.beta = append(c.beta, names...) } }

// WithMaxTokens sets the limit of a reply for requests that name none.
func WithMaxTokens(n int) Option { return func(c *config) { c.maxTokens = n } }

// WithWindow sets the context window in tokens that [Client.Describe] tells. The
// default is 200000 for models called claude-, else unknown.
func WithWindow(tokens int64) Option { return func(c *config) { c.window = tokens } }

// WithoutCache places no cache marks, for servers that refuse them (E-261).
func WithoutCache() Option { return func(c *config) { c.noCache = true } }

// WithFourthMark allows a fourth cache mark, beyond the three of B-122: where the
// previous request ended, when more blocks have come since than the provider looks
// back over, so that it never misses; else at [llm.Request.CacheAnchor] (E-184).
func WithFourthMark() Option { return func(c *config) { c.fourth = true } }

// WithoutStream asks for whole replies instead of streams.
func WithoutStream() Option { return func(c *config) { c.whole = true } }

// WithSDK adds options of the vendor's SDK, such as those for Bedrock and Vertex,
// which then also bring the authorisation and, unless [WithBaseURL] is given, the
// address. Retries stay off.
func WithSDK(opts ...option.RequestOption) Option {
	return func(c *config) { c.sdk = append(c.sdk, opts...) }
}

// WithServerTools adds tools that the provider runs by itself, such as
// {"type":"web_search_20250305","name":"web_search"}, to every request as they are
// given. What they did is part of the reply, kept out of its text, and goes back
// unchanged.
func WithServerTools(tools ...json.RawMessage) Option {
	return func(c *config) { c.server = append(c.server, tools...) }
}

func (c *config) validate(model string) (*url.URL, error) {
	refuse := func(format string, args ...any) error {
		return &llm.Error{Class: llm.ClassInvalidRequest, Op: "anthropic: new", Message: fmt.Sprintf(format, args...)}
	}
	if model == "" {
		return nil, refuse("a model must be named")
	}
	base, err := address.Parse(c.baseURL)
	if err != nil {
		return nil, refuse("%v", err)
	}
	base.Path = strings.TrimSuffix(base.Path, "/v1")
	if !address.FitsHeader(c.key + c.version + strings.Join(c.beta, "")) {
		return nil, refuse("the key, the version and the beta names hold characters that no header may have, such as a line end")
	}
	for _, tool := range c.server {
		if !json.Valid(tool) {
			return nil, refuse("a server tool is not JSON: %s", tool)
		}
	}
	if c.maxTokens <= 0 {
		return nil, refuse("max tokens must be positive, not %d", c.maxTokens)
	}
	if c.key == "" && !c.keyless && len(c.sdk) == 0 && !address.Loopback(base.Hostname()) {
		return nil, &llm.Error{
			Class: llm.ClassAuth, Op: "anthropic: new",
			Message: address.NoKey(base.Host, "anthropic.WithAPIKey", "ANTHROPIC_API_KEY", c.keyed),
		}
	}
	return base, nil
}

// sampling reports whether the API version takes temperature and its like.
func (c *config) sampling() bool { return c.version < "2026-10-21" }
