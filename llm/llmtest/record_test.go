// SPDX-License-Identifier: Apache-2.0

package llmtest_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
)

// get asks over a transport, and reads n bytes or, below 0, all.
func get(t *testing.T, over http.RoundTripper, url string, n int64) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: over}).Do(req)
	if err != nil {
		return "", err
	}
	var from io.Reader = resp.Body
	if n >= 0 {
		from = io.LimitReader(from, n)
	}
	data, err := io.ReadAll(from)
	return string(data), errors.Join(err, resp.Body.Close())
}

func serve(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	return srv.URL
}

// A folder that holds recordings is not mixed with new ones, and nothing is sent.
func TestRecordTwice(t *testing.T) {
	asked := 0
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		io.WriteString(w, strings.Repeat("x", asked))
	})
	dir := filepath.Join(t.TempDir(), "not", "there")
	if err := llmtest.RemoveRecordings(dir); err != nil {
		t.Errorf("a folder that is not there: %v", err)
	}
	first := llmtest.NewRecorder(nil, dir)
	for range 2 {
		if _, err := get(t, first, url, -1); err != nil {
			t.Fatal(err)
		}
	}
	mine := filepath.Join(dir, "notes.json")
	if err := os.WriteFile(mine, []byte("{}"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := get(t, llmtest.NewRecorder(nil, dir), url, -1)
	if llm.ClassOf(err) != llm.ClassInvalidRequest || !strings.Contains(err.Error(), "holds 2 recordings already, such as 001.json") ||
		!strings.Contains(err.Error(), "llmtest.RemoveRecordings") || asked != 2 {
		t.Errorf("after %d requests: %v, want the folder refused before anything is sent", asked, err)
	}
	if err := llmtest.RemoveRecordings(dir); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(mine); err != nil {
		t.Errorf("another file was removed: %v", err)
	}
	if got, err := get(t, llmtest.NewRecorder(nil, dir), url, -1); got != "xxx" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	replay, err := llmtest.NewReplayer(dir)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := get(t, replay, url, -1); got != "xxx" || err != nil || replay.Left() != 0 {
		t.Errorf("replayed %q, %v, and %d are left", got, err, replay.Left())
	}
}

// Two recorders that found the folder empty do not write over each other.
func TestRecordAtOnce(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "x") })
	dir := t.TempDir()
	a, b := llmtest.NewRecorder(nil, dir), llmtest.NewRecorder(nil, dir)
	if _, err := get(t, a, url, -1); err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, b, url, -1); !errors.Is(err, os.ErrExist) {
		t.Errorf("got %v, want the file kept", err)
	}
}

// What was broken off is kept as cut, and breaks off again.
func TestRecordCut(t *testing.T) {
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		io.WriteString(w, "data: half")
		if r.URL.Path == "/breaks" {
			w.(http.Flusher).Flush()
			panic(http.ErrAbortHandler)
		}
		io.WriteString(w, " and the rest")
	})
	dir := t.TempDir()
	rec := llmtest.NewRecorder(nil, dir)
	if _, err := get(t, rec, url+"/breaks", -1); !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatalf("the connection breaks: %v", err)
	}
	if _, err := get(t, rec, url+"/left", 4); err != nil { // the reader leaves
		t.Fatal(err)
	}
	if _, err := get(t, rec, url+"/whole", -1); err != nil {
		t.Fatal(err)
	}
	replay, err := llmtest.NewReplayer(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		path string
		want string
		err  error
	}{
		{"/breaks", "data: half", io.ErrUnexpectedEOF}, {"/left", "data", io.ErrUnexpectedEOF}, {"/whole", "data: half and the rest", nil},
	} {
		if got, err := get(t, replay, url+tt.path, -1); got != tt.want || !errors.Is(err, tt.err) {
			t.Errorf("%s: replayed %q, %v; want %q, %v", tt.path, got, err, tt.want, tt.err)
		}
	}
}
