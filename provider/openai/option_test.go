// SPDX-License-Identifier: Apache-2.0

package openai_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/llm/wire"
	"github.com/fiducial-dev/fiducial/provider/internal/replytest"
	"github.com/fiducial-dev/fiducial/provider/openai"
)

const secret = "sk-very-secret-key"

// TestB129_Options: mistakes fail at construction and show no key.
func TestB129_Options(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", secret) // must not be read
	for name, tt := range map[string]struct {
		model string
		opts  []openai.Option
		want  llm.Class // empty: fine
	}{
		"no key":                   {"m", nil, llm.ClassAuth},
		"no key, another server":   {"m", []openai.Option{openai.WithBaseURL("https://api.groq.com/openai/v1")}, llm.ClassAuth},
		"B-131, loopback":          {"m", []openai.Option{openai.WithBaseURL("http://127.0.0.1:8080")}, ""},
		"localhost":                {"m", []openai.Option{openai.WithBaseURL("http://localhost:11434/v1/")}, ""},
		"said to take none":        {"m", []openai.Option{openai.WithBaseURL("http://gpu.lan:8000/v1"), openai.WithoutKey()}, ""},
		"no model":                 {"", []openai.Option{openai.WithAPIKey(secret)}, llm.ClassInvalidRequest},
		"no address":               {"m", []openai.Option{openai.WithAPIKey(secret), openai.WithFlavor(openai.VLLM)}, llm.ClassInvalidRequest},
		"a bad address":            {"m", []openai.Option{openai.WithAPIKey(secret), openai.WithBaseURL("ftp://x")}, llm.ClassInvalidRequest},
		"a password":               {"m", []openai.Option{openai.WithBaseURL("http://u:" + secret + "@localhost")}, llm.ClassInvalidRequest},
		"no such flavor":           {"m", []openai.Option{openai.WithAPIKey(secret), openai.WithFlavor("x")}, llm.ClassInvalidRequest},
		"E-215, a line in the key": {"m", []openai.Option{openai.WithAPIKey(secret + "\r\nX: y")}, llm.ClassInvalidRequest},
	} {
		_, err := openai.NewChat(tt.model, tt.opts...)
		if (err == nil) != (tt.want == "") || err != nil && llm.ClassOf(err) != tt.want {
			t.Errorf("%s: got %v, want class %q", name, err, tt.want)
		}
		if err != nil && strings.Contains(err.Error(), secret) {
			t.Errorf("%s: the secret is in %v", name, err)
		}
	}
}

// TestB129_NoKey: the error names the option, since no variable is read.
func TestB129_NoKey(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", secret)
	groq := openai.WithBaseURL("https://api.groq.com/openai/v1")
	for name, newClient := range map[string]func(...openai.Option) error{
		"NewChat":      func(o ...openai.Option) error { _, err := openai.NewChat("m", o...); return err },
		"NewResponses": func(o ...openai.Option) error { _, err := openai.NewResponses("m", o...); return err },
	} {
		for want, err := range map[string]error{
			`no API key for api.openai.com: pass openai.WithAPIKey(os.Getenv("OPENAI_API_KEY"));`:  newClient(),
			`no API key for api.groq.com: pass the key of that server to openai.WithAPIKey;`:       newClient(groq),
			`openai.WithAPIKey was given an empty one; is OPENAI_API_KEY set?`:                     newClient(openai.WithAPIKey(" ")),
			`openai.WithAPIKey was given an empty one; is the variable that it was read from set?`: newClient(groq, openai.WithAPIKey("")),
		} {
			if llm.ClassOf(err) != llm.ClassAuth || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %q of class auth", name, err, want)
			}
		}
	}
}

func TestDescribe(t *testing.T) {
	for _, tt := range []struct {
		base   string
		vendor string
		host   string
	}{
		{"", "openai", "api.openai.com"},
		{"http://localhost:11434", "ollama", "localhost:11434"},
		{"https://openrouter.ai/api/v1", "openrouter", "openrouter.ai"},
		{"https://x.openai.azure.com/openai/v1", "azure", "x.openai.azure.com"},
		{"http://gpu.lan:8000/v1", "compat:gpu.lan:8000", "gpu.lan:8000"},
	} {
		c, err := openai.NewChat("m", openai.WithBaseURL(tt.base), openai.WithAPIKey("k"), openai.WithWindow(9))
		if err != nil {
			t.Fatal(err)
		}
		want := llm.Model{Vendor: tt.vendor, Name: "m", Window: 9, Host: tt.host}
		if got := c.Describe(); got != want {
			t.Errorf("%q: got %+v, want %+v", tt.base, got, want)
		}
	}
}

// TestHeaders: the key is sent once, nothing comes from the environment, and an
// event stream is asked for (E-213).
func TestHeaders(t *testing.T) {
	t.Setenv("OPENAI_API_KEY", "from-the-environment")
	t.Setenv("OPENAI_ORG_ID", "from-the-environment")
	t.Setenv("OPENAI_BASE_URL", "http://127.0.0.1:1")
	t.Setenv("OPENAI_CUSTOM_HEADERS", "X-Odd: from-the-environment")
	e := replytest.Serve(t, 200, "text/event-stream", replytest.Stream(delta(`{"content":"hi"}`), ends("stop")))
	for _, key := range []string{secret, ""} {
		c, err := openai.NewChat("m", openai.WithBaseURL(e.URL), openai.WithAPIKey(key))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := collect.Stream(t.Context(), c, replytest.Ask("go")); err != nil {
			t.Fatal(err)
		}
		want := ""
		if key != "" {
			want = "Bearer " + key
		}
		if got := e.Head.Get("Authorization"); got != want {
			t.Errorf("got authorization %q, want %q", got, want)
		}
		if !strings.HasPrefix(e.Head.Get("Accept"), "text/event-stream") || e.URI != "/v1/chat/completions" {
			t.Errorf("got %q at %s", e.Head.Get("Accept"), e.URI)
		}
		for k, v := range e.Head {
			if strings.Contains(strings.Join(v, " "), "from-the-environment") {
				t.Errorf("%s comes from the environment", k)
			}
		}
	}
}

func TestStatusErrors(t *testing.T) {
	for _, tt := range []struct {
		status int
		body   string
		want   llm.Class
		code   string
	}{
		{401, `{"error":{"message":"Incorrect API key provided: ` + secret + `","type":"invalid_request_error","code":"invalid_api_key"}}`, llm.ClassAuth, "invalid_api_key"},
		{403, `{"error":{"message":"no","code":"unsupported_country_region_territory"}}`, llm.ClassPermission, "unsupported_country_region_territory"},
		{404, `{"error":{"message":"no such model","code":"model_not_found"}}`, llm.ClassNotFound, "model_not_found"},
		{400, `{"error":{"message":"no such model","code":"model_not_found"}}`, llm.ClassNotFound, "model_not_found"},
		{400, `{"error":{"message":"too long","code":"context_length_exceeded"}}`, llm.ClassContextOverflow, "context_length_exceeded"},
		{400, `{"object":"error","message":"This model's maximum context length is 4096 tokens","type":"BadRequestError","code":400}`, llm.ClassContextOverflow, "BadRequestError"},
		{500, `{"error":{"message":"the request exceeds the available context size","code":500,"type":"server_error"}}`, llm.ClassContextOverflow, "server_error"},
		{400, `{"error":{"message":"bad tool","type":"invalid_request_error"}}`, llm.ClassInvalidRequest, "invalid_request_error"},
		{400, `{"error":{"message":"filtered","code":"content_filter"}}`, llm.ClassContentFilter, "content_filter"},
		{402, `{"error":{"message":"Insufficient Balance"}}`, llm.ClassQuota, ""},
		{422, `{"detail":[{"msg":"extra"}]}`, llm.ClassInvalidRequest, ""},
		{429, `{"error":{"message":"slow down","code":"rate_limit_exceeded"}}`, llm.ClassRateLimit, "rate_limit_exceeded"},
		{429, `{"error":{"message":"no money","code":"insufficient_quota"}}`, llm.ClassQuota, "insufficient_quota"},
		{429, `{"error":{"message":"Request too large for gpt on tokens per min: Limit 10, Requested 20","code":"rate_limit_exceeded"}}`, llm.ClassContextOverflow, "rate_limit_exceeded"},
		{400, `{"error":{"message":"Failed to call a function.","type":"invalid_request_error","code":"tool_use_failed"}}`, llm.ClassMalformedToolCall, "tool_use_failed"},
		{500, `{"error":{"message":"error parsing tool call: raw='x'","type":"api_error"}}`, llm.ClassMalformedToolCall, "api_error"},
		{403, `{"error":{"message":"Key limit exceeded (total limit)","code":403}}`, llm.ClassQuota, ""},
		{429, `{"error":{"message":"x","type":"exceeded_current_quota_error"}}`, llm.ClassQuota, ""},
		{500, `<html>oops</html>`, llm.ClassServer, ""},
		{503, `{"error":{"message":"Loading model","type":"unavailable_error","code":503}}`, llm.ClassOverloaded, "unavailable_error"},
		{529, `busy`, llm.ClassOverloaded, ""},
	} {
		for _, newClient := range []func(string) (llm.Client, error){
			chat(openai.Generic, openai.WithAPIKey(secret)), responses("gpt-5", openai.WithAPIKey(secret)),
		} {
			c, err := newClient(replytest.Serve(t, tt.status, "application/json", tt.body).URL)
			if err != nil {
				t.Fatal(err)
			}
			_, err = collect.Stream(t.Context(), c, replytest.Ask("go"))
			e := replytest.ErrorOf(t, err)
			if e.Class != tt.want || e.Status != tt.status || tt.code != "" && e.Code != tt.code || strings.Contains(err.Error(), secret) {
				t.Errorf("%d %s: got %+v, want class %s, code %s", tt.status, tt.body, e, tt.want, tt.code)
			}
		}
	}
}

// TestE151_OneRequest: nothing is tried again here.
func TestE151_OneRequest(t *testing.T) {
	n := 0
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		n++
		w.Header().Set("Retry-After-Ms", "1500")
		w.WriteHeader(http.StatusServiceUnavailable)
	}))
	defer s.Close()
	c, err := openai.NewChat("m", openai.WithBaseURL(s.URL))
	if err != nil {
		t.Fatal(err)
	}
	_, err = collect.Stream(t.Context(), c, replytest.Ask("go"))
	if e := replytest.ErrorOf(t, err); n != 1 || e.RetryAfter != 1500*time.Millisecond {
		t.Errorf("%d requests, %+v", n, e)
	}
}

// TestE145_WaitInWords: inside a stream there are no headers.
func TestE145_WaitInWords(t *testing.T) {
	for words, want := range map[string]time.Duration{
		"Rate limit reached. Please try again in 1.5s. Visit x": 1500 * time.Millisecond,
		"Please try again in 250ms.":                            250 * time.Millisecond,
		"Please try again in 7m26.5s.":                          7*time.Minute + 26500*time.Millisecond,
		"Please try again in a while.":                          0,
	} {
		_, err := responsesReply(t, `{"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"`+words+`"}}}`)
		if e := replytest.ErrorOf(t, err); e.Class != llm.ClassRateLimit || e.RetryAfter != want {
			t.Errorf("%q: got %s after %s, want %s", words, e.Class, e.RetryAfter, want)
		}
	}
}

// TestLimits: a stream that stands still ends by itself, and as a reply when only
// the end marker is missing.
func TestLimits(t *testing.T) {
	hi := replytest.Stream(delta(`{"content":"hi"}`))
	replytest.CheckLimits(t, hi, replytest.Stream(ends("stop")), func(base string, limits wire.Timeouts) (llm.Client, error) {
		return openai.NewChat("m", openai.WithBaseURL(base), openai.WithTimeouts(limits))
	})
	cause := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	c, err := openai.NewChat("m", openai.WithBaseURL(replytest.Hang(t, hi)))
	if err != nil {
		t.Fatal(err)
	}
	time.AfterFunc(30*time.Millisecond, func() { cancel(cause) })
	if _, err := collect.Stream(ctx, c, replytest.Ask("go")); !errors.Is(err, cause) {
		t.Errorf("got %v, want the cause of the cancel (E-190)", err)
	}
}

// TestKeepsNoSecretOfURL: E-260.
func TestKeepsNoSecretOfURL(t *testing.T) {
	c, err := openai.NewChat("m", openai.WithBaseURL("http://127.0.0.1:1/v1?key="+secret))
	if err != nil {
		t.Fatal(err)
	}
	_, err = collect.Stream(t.Context(), c, replytest.Ask("go"))
	if e := replytest.ErrorOf(t, err); e.Class != llm.ClassTransport || strings.Contains(err.Error(), secret) {
		t.Errorf("got %v", err)
	}
}
