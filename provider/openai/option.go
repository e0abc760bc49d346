// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"cmp"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/openai/openai-go/v3/option"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
	"github.com/fiducial-dev/fiducial/provider/internal/address"
)

// An Option sets up a client.
type Option func(*config)

type config struct {
	key       string
	keyed     bool // a key was given, be it empty
	keyless   bool
	base      string
	flavor    Flavor
	http      *http.Client
	limits    wire.Timeouts
	window    int64
	sdk       []option.RequestOption
	legacyMax bool
	blind     bool
	reasoning *string // field for reasoning that goes back, where the flavor's is not right
	unset     Unset
	store     bool
	reasons   *bool
	whole     bool
	server    []json.RawMessage
}

// WithAPIKey sets the key. It is never read from the environment.
func WithAPIKey(key string) Option {
	return func(c *config) { c.key, c.keyed = strings.TrimSpace(key), true }
}

// WithoutKey says that the server takes no key, or gets one through
// [WithSDK]. A server at a loopback address needs no saying.
func WithoutKey() Option { return func(c *config) { c.keyless = true } }

// WithBaseURL sets the address of a compatible server, up to what stands before
// chat/completions or responses, such as http://localhost:11434/v1. An address
// without a path gets /v1, which all known servers have.
func WithBaseURL(base string) Option { return func(c *config) { c.base = base } }

// WithFlavor sets the kind of server. Without it the kind is guessed by the
// address, [Generic] where that says nothing.
func WithFlavor(f Flavor) Option { return func(c *config) { c.flavor = f } }

// WithHTTPClient sets the client that carries the requests. It should have no
// Timeout, which would count the whole stream.
func WithHTTPClient(h *http.Client) Option { return func(c *config) { c.http = h } }

// WithTimeouts limits how long a stream may stand still.
func WithTimeouts(t wire.Timeouts) Option { return func(c *config) { c.limits = t } }

// WithoutStream asks for whole replies instead of streams.
func WithoutStream() Option { return func(c *config) { c.whole = true } }

// WithWindow tells the size of the model's context window in tokens, for
// [llm.Model].
func WithWindow(tokens int64) Option { return func(c *config) { c.window = tokens } }

// WithSDK adds options of the SDK, such as those of its package azure.
// They are applied after the client's own; retries stay off.
func WithSDK(opts ...option.RequestOption) Option {
	return func(c *config) { c.sdk = append(c.sdk, opts...) }
}

// WithLegacyMaxTokens sends the output limit of Chat Completions as max_tokens,
// which older servers want (E-230).
func WithLegacyMaxTokens() Option { return func(c *config) { c.legacyMax = true } }

// WithoutVision says that the model takes no images. A note then tells it how
// many were left out (E-232).
func WithoutVision() Option { return func(c *config) { c.blind = true } }

// WithReasoningField names the field of an assistant message in which a
// compatible server wants the model's reasoning back, such as reasoning_content.
// Empty means nowhere. The default depends on the flavor.
func WithReasoningField(name string) Option { return func(c *config) { c.reasoning = &name } }

// WithReasoning says whether the model of [NewResponses] reasons, where its name
// does not tell. Only such a model may be asked for its encrypted reasoning.
func WithReasoning(reasons bool) Option { return func(c *config) { c.reasons = &reasons } }

// WithStore lets the server of [NewResponses] keep the responses. Requests carry
// the whole conversation all the same.
func WithStore() Option { return func(c *config) { c.store = true } }

// WithServerTools adds tools that the provider runs by itself, such as
// {"type":"web_search"} of Responses, to every request as they are given. What they
// did goes back to the provider unchanged.
func WithServerTools(tools ...json.RawMessage) Option {
	return func(c *config) { c.server = append(c.server, tools...) }
}

// Unset is a set of settings that a model refuses. They are not sent, and Check
// tells that they are not.
type Unset uint8

// The settings of [Unset].
const (
	UnsetMaxTokens Unset = 1 << iota
	UnsetTemperature
	UnsetTopP
)

// WithUnset names settings that the model refuses (E-242).
func WithUnset(u Unset) Option { return func(c *config) { c.unset = c.unset | u } }

// refuse is the error of an option that cannot be honoured.
func refuse(class llm.Class, format string, args ...any) error {
	return &llm.Error{Class: class, Op: "openai: new", Message: fmt.Sprintf(format, args...)}
}

// A setup is a config that was looked over.
type setup struct {
	config
	model  string
	url    *url.URL
	vendor string // of opaque data
	quirks quirks
}

func newSetup(model string, opts []Option) (*setup, error) {
	s := &setup{model: model}
	for _, o := range opts {
		o(&s.config)
	}
	if model == "" {
		return nil, refuse(llm.ClassInvalidRequest, "a model must be named")
	}
	for _, tool := range s.server {
		if !json.Valid(tool) {
			return nil, refuse(llm.ClassInvalidRequest, "a server tool is not JSON: %s", tool)
		}
	}
	if err := s.place(); err != nil {
		return nil, err
	}
	if s.key == "" && !s.keyless && len(s.sdk) == 0 && !address.Loopback(s.url.Hostname()) {
		env := ""
		if s.flavor == OpenAI {
			env = "OPENAI_API_KEY"
		}
		return nil, refuse(llm.ClassAuth, "%s", address.NoKey(s.url.Host, "openai.WithAPIKey", env, s.keyed))
	}
	if !address.FitsHeader(s.key) {
		return nil, refuse(llm.ClassInvalidRequest, "the key holds characters that no header may have") // E-215
	}
	return s, nil
}

// place settles address, flavor and vendor.
func (s *setup) place() error {
	if s.base == "" {
		s.flavor = cmp.Or(s.flavor, OpenAI)
	}
	var known bool
	if s.quirks, known = quirksOf(s.flavor); !known && s.flavor != "" {
		return refuse(llm.ClassInvalidRequest, "there is no flavor %q", string(s.flavor))
	}
	base := cmp.Or(s.base, s.quirks.base)
	if base == "" {
		return refuse(llm.ClassInvalidRequest, "a server of the flavor %s has no public address; give a base URL", s.flavor)
	}
	u, err := address.Parse(base)
	if err != nil {
		return refuse(llm.ClassInvalidRequest, "%v", err)
	}
	if u.Path == "" {
		u.Path = "/v1"
	}
	s.url = u
	if s.flavor == "" {
		s.flavor = flavorOf(u)
		s.quirks, _ = quirksOf(s.flavor)
	}
	if s.reasoning != nil {
		s.quirks.reasoning = *s.reasoning
	}
	s.quirks.legacyMax = s.quirks.legacyMax || s.legacyMax
	s.vendor = string(s.flavor)
	if s.flavor == Generic {
		s.vendor = "compat:" + u.Host
	}
	return nil
}

func (s *setup) describe() llm.Model {
	return llm.Model{Vendor: s.vendor, Name: s.model, Window: s.window, Host: s.url.Host}
}

// refuses reports whether a setting must not be sent.
func (s *setup) refuses(u Unset) bool { return s.unset&u != 0 }

// checkUnset tells of settings that were asked for and will not be sent.
func (s *setup) checkUnset(set llm.Settings) []string {
	var out []string
	tell := func(asked bool, u Unset, name string) {
		if asked && s.refuses(u) {
			out = append(out, fmt.Sprintf("%s is not sent: %s refuses it", name, s.model))
		}
	}
	tell(set.MaxTokens > 0, UnsetMaxTokens, "the output limit")
	tell(set.Temperature != nil, UnsetTemperature, "temperature")
	tell(set.TopP != nil, UnsetTopP, "top-p")
	return out
}
