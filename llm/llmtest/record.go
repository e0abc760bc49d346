// SPDX-License-Identifier: Apache-2.0

package llmtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
)

// A Recording is one HTTP exchange, as it is kept in a file. Bodies that are UTF-8
// are kept as text, others in base64.
type Recording struct {
	Method   string      `json:"method"`
	URL      string      `json:"url"` // path, without host and query
	Request  Body        `json:"request"`
	Status   int         `json:"status"`
	Header   http.Header `json:"header"`
	Response Body        `json:"response"`
}

// A Body is the bytes of a message.
type Body struct {
	Text string `json:"text,omitempty"`
	Raw  []byte `json:"raw,omitempty"`
}

func bodyOf(data []byte) Body {
	if utf8.Valid(data) {
		return Body{Text: string(data)}
	}
	return Body{Raw: data}
}

// Bytes is the body.
func (b Body) Bytes() []byte {
	if b.Raw != nil {
		return b.Raw
	}
	return []byte(b.Text)
}

// keptHeaders are the headers of a response that a reader may depend on. Others
// may hold cookies and names of accounts.
var keptHeaders = []string{"Content-Type", "Retry-After", "Retry-After-Ms", "Date"}

// A Recorder is a transport that keeps every exchange in a file of its folder,
// 001.json, 002.json and so on, once its body was read to the end. Secrets are
// masked, headers of requests are not kept at all.
type Recorder struct {
	next http.RoundTripper
	dir  string
	mask wire.Mask

	mu sync.Mutex
	n  int
}

// NewRecorder returns a recorder that sends over next; nil means
// [http.DefaultTransport].
func NewRecorder(next http.RoundTripper, dir string, secrets ...string) *Recorder {
	if next == nil {
		next = http.DefaultTransport
	}
	return &Recorder{next: next, dir: dir, mask: wire.NewMask(secrets...)}
}

// RoundTrip sends a request and keeps what comes of it.
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
		if err := req.Body.Close(); err != nil {
			return nil, err
		}
		req = req.Clone(req.Context())
		req.Body = io.NopCloser(bytes.NewReader(body))
	}
	resp, err := r.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	r.n++
	file := filepath.Join(r.dir, fmt.Sprintf("%03d.json", r.n))
	r.mu.Unlock()
	rec := Recording{
		Method: req.Method, URL: r.mask.Text(req.URL.Path), Request: bodyOf([]byte(r.mask.Text(string(body)))),
		Status: resp.StatusCode, Header: http.Header{},
	}
	for _, name := range keptHeaders {
		if v := resp.Header.Get(name); v != "" {
			rec.Header.Set(name, r.mask.Text(v))
		}
	}
	resp.Body = &recordedBody{ReadCloser: resp.Body, keep: func(data []byte) error {
		rec.Response = bodyOf([]byte(r.mask.Text(string(data))))
		return writeRecording(file, rec)
	}}
	return resp, nil
}

// A recordedBody keeps what is read of a body when it ends or is closed.
type recordedBody struct {
	io.ReadCloser
	data []byte
	keep func([]byte) error
	once sync.Once
	err  error
}

func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.data = append(b.data, p[:n]...)
	return n, err
}

func (b *recordedBody) Close() error {
	err := b.ReadCloser.Close()
	b.once.Do(func() { b.err = b.keep(b.data) })
	if err != nil {
		return err
	}
	return b.err
}

func writeRecording(file string, rec Recording) error {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(rec); err != nil {
		return err
	}
	return os.WriteFile(file, out.Bytes(), 0o600)
}

// A Replayer is a transport that answers from the files of a folder, in order and
// byte for byte. A request that differs from the recorded one, or is one too many,
// is an [*llm.Error] of class [llm.ClassInvalidRequest] that says so: adapters keep
// the class, and an engine does not try again.
type Replayer struct {
	mask wire.Mask

	mu    sync.Mutex
	left  []string
	total int
}

// NewReplayer reads what a [Recorder] wrote; secrets are those that were masked.
func NewReplayer(dir string, secrets ...string) (*Replayer, error) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("llmtest: no recordings in %s", dir)
	}
	slices.Sort(files)
	return &Replayer{mask: wire.NewMask(secrets...), left: files, total: len(files)}, nil
}

// Left is how many recordings were not asked for.
func (r *Replayer) Left() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.left)
}

// RoundTrip answers with the next recording.
func (r *Replayer) RoundTrip(req *http.Request) (*http.Response, error) {
	var body []byte
	if req.Body != nil {
		var err error
		if body, err = io.ReadAll(req.Body); err != nil {
			return nil, err
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.left) == 0 {
		return nil, mismatch("request %d, and %d were recorded", r.total+1, r.total)
	}
	data, err := os.ReadFile(r.left[0])
	if err != nil {
		return nil, mismatch("%v", err)
	}
	var rec Recording
	if err := json.Unmarshal(data, &rec); err != nil {
		return nil, mismatch("%s: %v", r.left[0], err)
	}
	if req.Method != rec.Method || r.mask.Text(req.URL.Path) != rec.URL {
		return nil, mismatch("%s %s, and %s %s was recorded in %s", req.Method, req.URL.Path, rec.Method, rec.URL, r.left[0])
	}
	if got, want := r.mask.Text(string(body)), string(rec.Request.Bytes()); got != want {
		return nil, mismatch("the body differs from %s: %s", r.left[0], firstDifference(want, got))
	}
	r.left = r.left[1:]
	return &http.Response{
		Status: fmt.Sprintf("%d %s", rec.Status, http.StatusText(rec.Status)), StatusCode: rec.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: rec.Header.Clone(),
		Body: io.NopCloser(strings.NewReader(string(rec.Response.Bytes()))), ContentLength: -1, Request: req,
	}, nil
}

// mismatch is an error that no engine sends again: the next try would differ, too.
func mismatch(format string, args ...any) error {
	return &llm.Error{Class: llm.ClassInvalidRequest, Op: "llmtest: replay", Message: fmt.Sprintf(format, args...)}
}

func firstDifference(want, got string) string {
	n := 0
	for n < min(len(want), len(got)) && want[n] == got[n] {
		n++
	}
	show := func(s string) string { return s[max(0, min(n-20, len(s))):min(len(s), n+40)] }
	return fmt.Sprintf("at byte %d want %q, got %q", n, show(want), show(got))
}
