// SPDX-License-Identifier: Apache-2.0

package gemini

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
	"github.com/fiducial-dev/fiducial/provider/internal/address"
)

// DefaultBaseURL is the address of the Gemini API.
const DefaultBaseURL = "https://generativelanguage.googleapis.com/v1beta"

// silence is the default limit for opening and for the first event: a model that
// thinks may say nothing until it has done so.
const silence = 5 * time.Minute

// An Option sets up a client.
type Option func(*config)

type config struct {
	key      string
	keyed    bool // a key was given, be it empty
	token    func(context.Context) (string, error)
	keyless  bool
	base     string
	http     *http.Client
	limits   wire.Timeouts
	window   int64
	blind    bool
	thoughts bool
	whole    bool
	server   []json.RawMessage
}

// WithAPIKey sets the key. It is never read from the environment, and it is sent as a
// header, never in the address.
func WithAPIKey(key string) Option {
	return func(c *config) { c.key, c.keyed = strings.TrimSpace(key), true }
}

// WithToken sets where each request gets its bearer token, for Vertex AI; see
// google.golang.org/genai or golang.org/x/oauth2/google for sources of tokens.
func WithToken(token func(context.Context) (string, error)) Option {
	return func(c *config) { c.token = token }
}

// WithoutKey says that the server takes no key. A server at a loopback address
// needs no saying.
func WithoutKey() Option { return func(c *config) { c.keyless = true } }

// WithBaseURL sets the address up to what stands before models/, such as
// https://europe-west1-aiplatform.googleapis.com/v1/projects/p/locations/europe-west1/publishers/google.
// An address without a version gets /v1beta.
func WithBaseURL(base string) Option { return func(c *config) { c.base = base } }

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

// WithoutVision says that the model takes no images. A note then tells it how
// many were left out.
func WithoutVision() Option { return func(c *config) { c.blind = true } }

// WithThoughts asks for summaries of the model's thoughts.
func WithThoughts() Option { return func(c *config) { c.thoughts = true } }

// WithServerTools adds tools that the provider runs by itself, such as
// {"codeExecution":{}}, to every request as they are given. What they did goes back
// to the provider unchanged.
func WithServerTools(tools ...json.RawMessage) Option {
	return func(c *config) { c.server = append(c.server, tools...) }
}

// refuse is the error of an option that cannot be honoured.
func refuse(class llm.Class, format string, args ...any) error {
	return &llm.Error{Class: class, Op: "gemini: new", Message: fmt.Sprintf(format, args...)}
}

// A setup is a config that was looked over.
type setup struct {
	config
	model string // without models/
	path  string // of the model's endpoints, models/... or tunedModels/...
	url   *url.URL
}

var version = regexp.MustCompile(`/v[0-9]+[a-z0-9]*(/|$)`)

func newSetup(model string, opts []Option) (*setup, error) {
	s := &setup{model: strings.TrimPrefix(model, "models/")}
	for _, o := range opts {
		o(&s.config)
	}
	if s.model == "" {
		return nil, refuse(llm.ClassInvalidRequest, "a model must be named")
	}
	for _, tool := range s.server {
		if !json.Valid(tool) {
			return nil, refuse(llm.ClassInvalidRequest, "a server tool is not JSON: %s", tool)
		}
	}
	s.path = "models/" + s.model
	if strings.Contains(s.model, "/") {
		s.path = s.model
	}
	if err := s.place(); err != nil {
		return nil, err
	}
	local := address.Loopback(s.url.Hostname())
	if s.key == "" && s.token == nil && !s.keyless && !local {
		return nil, refuse(llm.ClassAuth, "%s", address.NoKey(s.url.Host, "gemini.WithAPIKey", "GEMINI_API_KEY", s.keyed))
	}
	if !address.FitsHeader(s.key) {
		return nil, refuse(llm.ClassInvalidRequest, "the key holds characters that no header may have") // E-215
	}
	s.limits.Open = cmp.Or(s.limits.Open, silence)
	s.limits.First = cmp.Or(s.limits.First, silence)
	client := *cmp.Or(s.http, http.DefaultClient)
	if client.CheckRedirect == nil {
		client.CheckRedirect = sameHost
	}
	s.http = &client
	return s, nil
}

// sameHost refuses to be sent to another host: net/http would give it the key.
func sameHost(req *http.Request, via []*http.Request) error {
	if len(via) > 3 || req.URL.Host != via[0].URL.Host || req.URL.Scheme != via[0].URL.Scheme {
		return http.ErrUseLastResponse
	}
	return nil
}

func (s *setup) place() error {
	u, err := address.Parse(cmp.Or(s.base, DefaultBaseURL))
	if err != nil {
		return refuse(llm.ClassInvalidRequest, "%v", err)
	}
	if u.RawQuery != "" {
		return refuse(llm.ClassInvalidRequest, "the base URL must not hold a query; give a key instead")
	}
	if !version.MatchString(u.Path) {
		u.Path += "/v1beta"
	}
	s.url = u
	return nil
}

// third reports whether the model is of the third generation or a later one, which
// insists on thought signatures and takes images inside of function responses.
func (s *setup) third() bool {
	name := s.model[strings.LastIndexByte(s.model, '/')+1:]
	for _, old := range []string{"gemini-1", "gemini-2", "gemini-pro", "gemini-flash"} {
		if strings.HasPrefix(name, old) {
			return false
		}
	}
	return strings.HasPrefix(name, "gemini-")
}
