// SPDX-License-Identifier: Apache-2.0

package gemini_test

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
	"github.com/fiducial-dev/fiducial/provider/gemini"
	"github.com/fiducial-dev/fiducial/provider/internal/replytest"
)

const secret = "AIza-very-secret-key"

func TestB129_Options(t *testing.T) {
	t.Setenv("GEMINI_API_KEY", secret) // must not be read
	for name, tt := range map[string]struct {
		model string
		opts  []gemini.Option
		want  llm.Class
	}{
		"no key":                   {"gemini-2.5-pro", nil, llm.ClassAuth},
		"a key":                    {"gemini-2.5-pro", []gemini.Option{gemini.WithAPIKey(secret)}, ""},
		"B-131, loopback":          {"gemini-2.5-pro", []gemini.Option{gemini.WithBaseURL("http://[::1]:8080")}, ""},
		"said to take none":        {"gemini-2.5-pro", []gemini.Option{gemini.WithBaseURL("http://proxy.lan"), gemini.WithoutKey()}, ""},
		"no model":                 {"models/", []gemini.Option{gemini.WithAPIKey(secret)}, llm.ClassInvalidRequest},
		"a bad address":            {"gemini-2.5-pro", []gemini.Option{gemini.WithBaseURL("localhost:1")}, llm.ClassInvalidRequest},
		"a key in the address":     {"gemini-2.5-pro", []gemini.Option{gemini.WithBaseURL("http://localhost/?key=" + secret)}, llm.ClassInvalidRequest},
		"E-215, a line in the key": {"gemini-2.5-pro", []gemini.Option{gemini.WithAPIKey(secret + "\nX: y")}, llm.ClassInvalidRequest},
	} {
		_, err := gemini.New(tt.model, tt.opts...)
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
	t.Setenv("GEMINI_API_KEY", secret)
	for want, opts := range map[string][]gemini.Option{
		`googleapis.com: pass gemini.WithAPIKey(os.Getenv("GEMINI_API_KEY"));`: nil,
		`gemini.WithAPIKey was given an empty one; is GEMINI_API_KEY set?`:     {gemini.WithAPIKey("")},
	} {
		if _, err := gemini.New("gemini-2.5-pro", opts...); llm.ClassOf(err) != llm.ClassAuth || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q of class auth", err, want)
		}
	}
}

// TestAddresses: the Gemini API's and Vertex AI's.
func TestAddresses(t *testing.T) {
	for _, tt := range []struct{ model, path, want string }{
		{"gemini-2.5-pro", "", "/v1beta/models/gemini-2.5-pro:streamGenerateContent?alt=sse"},
		{"models/gemini-2.5-pro", "/v1/", "/v1/models/gemini-2.5-pro:streamGenerateContent?alt=sse"},
		{"tunedModels/mine", "", "/v1beta/tunedModels/mine:streamGenerateContent?alt=sse"},
		{
			"gemini-2.5-pro", "/v1/projects/p/locations/l/publishers/google",
			"/v1/projects/p/locations/l/publishers/google/models/gemini-2.5-pro:streamGenerateContent?alt=sse",
		},
	} {
		e := replytest.Serve(t, 200, "text/event-stream", replytest.Stream(parts(`{"text":"hi"}`), ends("STOP")))
		c := client(t, tt.model, e.URL+tt.path, gemini.WithToken(func(context.Context) (string, error) { return "tok-123", nil }))
		if _, err := collect.Stream(t.Context(), c, replytest.Ask("go")); err != nil {
			t.Fatal(err)
		}
		if e.URI != tt.want || e.Head.Get("Authorization") != "Bearer tok-123" || e.Head.Get("X-Goog-Api-Key") != "" {
			t.Errorf("got %s with %q, want %s", e.URI, e.Head.Get("Authorization"), tt.want)
		}
	}
	c := client(t, "gemini-2.5-pro", "http://127.0.0.1:1", gemini.WithToken(func(context.Context) (string, error) { return "", errors.New("no login") }))
	if _, err := collect.Stream(t.Context(), c, replytest.Ask("go")); llm.ClassOf(err) != llm.ClassAuth {
		t.Errorf("no token: got %v, want class auth", err)
	}
}

func TestStatusErrors(t *testing.T) {
	rpc := func(status, message, details string) string {
		return `{"error":{"code":1,"message":"` + message + `","status":"` + status + `","details":[` + details + `]}}`
	}
	for _, tt := range []struct {
		status int
		body   string
		want   llm.Class
		code   string
		wait   time.Duration
	}{
		{400, rpc("INVALID_ARGUMENT", "API key not valid: "+secret, `{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID"}`), llm.ClassAuth, "INVALID_ARGUMENT", 0},
		{400, rpc("INVALID_ARGUMENT", "Unknown name", ""), llm.ClassInvalidRequest, "INVALID_ARGUMENT", 0},
		{400, rpc("INVALID_ARGUMENT", "The input token count (2) exceeds the maximum number of tokens allowed (1).", ""), llm.ClassContextOverflow, "INVALID_ARGUMENT", 0},
		{400, rpc("FAILED_PRECONDITION", "User location is not supported", ""), llm.ClassPermission, "FAILED_PRECONDITION", 0},
		{401, rpc("UNAUTHENTICATED", "no", ""), llm.ClassAuth, "UNAUTHENTICATED", 0},
		{403, rpc("PERMISSION_DENIED", "no", ""), llm.ClassPermission, "PERMISSION_DENIED", 0},
		{404, "[" + rpc("NOT_FOUND", "no", "") + "]", llm.ClassNotFound, "NOT_FOUND", 0},
		{429, rpc("RESOURCE_EXHAUSTED", "You exceeded your current quota", `{"@type":"x/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProject"}]},`+
			`{"@type":"x/google.rpc.RetryInfo","retryDelay":"34.5s"}`), llm.ClassRateLimit, "RESOURCE_EXHAUSTED", 34500 * time.Millisecond},
		{429, rpc("RESOURCE_EXHAUSTED", "You exceeded your current quota", `{"@type":"x/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerDayPerProject"}]}`), llm.ClassQuota, "RESOURCE_EXHAUSTED", 0},
		{429, rpc("RESOURCE_EXHAUSTED", "Quota exceeded. Please retry in 3.5s.", ""), llm.ClassRateLimit, "RESOURCE_EXHAUSTED", 3500 * time.Millisecond},
		{500, rpc("INTERNAL", "oops", ""), llm.ClassServer, "INTERNAL", 0},
		{503, rpc("UNAVAILABLE", "The model is overloaded", ""), llm.ClassOverloaded, "UNAVAILABLE", 0},
		{504, rpc("DEADLINE_EXCEEDED", "late", ""), llm.ClassServer, "DEADLINE_EXCEEDED", 0},
		{502, `<html>bad gateway</html>`, llm.ClassServer, "", 0},
	} {
		e := replytest.Serve(t, tt.status, "application/json", tt.body)
		_, err := collect.Stream(t.Context(), client(t, "gemini-2.5-pro", e.URL, gemini.WithAPIKey(secret)), replytest.Ask("go"))
		got := replytest.ErrorOf(t, err)
		if got.Class != tt.want || got.Status != tt.status || got.Code != tt.code || got.RetryAfter != tt.wait || strings.Contains(err.Error(), secret) {
			t.Errorf("%d %s: got %+v, want class %s", tt.status, tt.body, got, tt.want)
		}
	}
}

// TestRedirects: the key goes to no other host.
func TestRedirects(t *testing.T) {
	var got http.Header
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = r.Header }))
	defer other.Close()
	first := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/x?key="+secret, http.StatusTemporaryRedirect)
	}))
	defer first.Close()
	_, err := collect.Stream(t.Context(), client(t, "gemini-2.5-pro", first.URL, gemini.WithAPIKey(secret)), replytest.Ask("go"))
	if err == nil || got != nil || strings.Contains(err.Error(), secret) {
		t.Errorf("got %v; the other host saw %v", err, got)
	}
}

func TestLimits(t *testing.T) {
	hi := replytest.Stream(parts(`{"text":"hi"}`))
	replytest.CheckLimits(t, hi, replytest.Stream(ends("STOP")), func(base string, limits wire.Timeouts) (llm.Client, error) {
		return gemini.New("gemini-2.5-pro", gemini.WithBaseURL(base), gemini.WithTimeouts(limits))
	})
}
