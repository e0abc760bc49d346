// SPDX-License-Identifier: Apache-2.0

package llmtest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing/iotest"
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

	// Cut says that Response was not read to its end: the connection broke, or the reader
	// left. It replays as a connection that breaks behind these bytes.
	Cut bool `json:"cut,omitempty"`
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
// 001.json, 002.json and so on in the order of the responses, once its body has
// ended or was closed. One that was broken off before its end is kept as such; see
// [Recording]. A request that got no response is not kept. Secrets are masked, headers
// of requests are not kept at all.
type Recorder struct {
	next http.RoundTripper
	dir  string
	mask wire.Mask
	fail error // of the folder: nothing is sent

	mu sync.Mutex
	n  int
}

// NewRecorder returns a recorder that sends over next; nil means
// [http.DefaultTransport]. The folder is made when it is not there. One that holds
// recordings is not written to, since old and new ones would be replayed as one
// conversation: every request is then refused, before it is sent, with an
// [*llm.Error] of class [llm.ClassInvalidRequest]. [RemoveRecordings] makes room.
func NewRecorder(next http.RoundTripper, dir string, secrets ...string) *Recorder {
	if next == nil {
		next = http.DefaultTransport
	}
	return &Recorder{next: next, dir: dir, mask: wire.NewMask(secrets...), fail: prepare(dir)}
}

func prepare(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return refuseOp("record", "%v", err)
	}
	old, err := recordings(dir)
	if err != nil {
		return refuseOp("record", "%v", err)
	}
	if len(old) > 0 {
		return refuseOp("record", "%s holds %d recordings already, such as %s: take another folder, or call llmtest.RemoveRecordings first",
			dir, len(old), filepath.Base(old[0]))
	}
	return nil
}

// RemoveRecordings removes what a [Recorder] has kept in a folder, and nothing else. A
// folder that is not there holds none.
func RemoveRecordings(dir string) error {
	files, err := recordings(dir)
	for _, f := range files {
		err = errors.Join(err, os.Remove(f))
	}
	return err
}

// recordings are the files of a folder whose names are numbers, in their order.
func recordings(dir string) ([]string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var files []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".json"); ok && name != "" && strings.Trim(name, "0123456789") == "" {
			files = append(files, filepath.Join(dir, e.Name()))
		}
	}
	slices.SortFunc(files, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b)) })
	return files, nil
}

// RoundTrip sends a request and keeps what comes of it.
func (r *Recorder) RoundTrip(req *http.Request) (*http.Response, error) {
	if r.fail != nil {
		return nil, r.fail
	}
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
	resp.Body = &recordedBody{ReadCloser: resp.Body, keep: func(data []byte, whole bool) error {
		rec.Response, rec.Cut = bodyOf([]byte(r.mask.Text(string(data)))), !whole
		return writeRecording(file, rec)
	}}
	return resp, nil
}

// A recordedBody keeps what is read of a body when it ends, breaks or is closed.
type recordedBody struct {
	io.ReadCloser
	keep func(data []byte, whole bool) error

	mu   sync.Mutex // a body may be closed while it is read
	data []byte
	kept bool
	err  error
}

func (b *recordedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.data = append(b.data, p[:n]...)
	if err != nil {
		b.end(errors.Is(err, io.EOF))
	}
	return n, err
}

func (b *recordedBody) Close() error {
	err := b.ReadCloser.Close()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.end(false)
	return cmp.Or(err, b.err)
}

// end needs the lock. The first end counts.
func (b *recordedBody) end(whole bool) {
	if !b.kept {
		b.kept, b.err = true, b.keep(b.data, whole)
	}
}

func writeRecording(file string, rec Recording) error {
	var out bytes.Buffer
	enc := json.NewEncoder(&out)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(rec); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) // never over another recorder's
	if err != nil {
		return err
	}
	_, err = f.Write(out.Bytes())
	return errors.Join(err, f.Close())
}

// A Replayer is a transport that answers from the files of a folder, in order and
// byte for byte, and breaks off where the recording was broken off. A request that differs from the recorded one, or is one too many,
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
	files, err := recordings(dir)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("llmtest: no recordings in %s", dir)
	}
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
	var answer io.Reader = bytes.NewReader(rec.Response.Bytes())
	if rec.Cut {
		answer = io.MultiReader(answer, iotest.ErrReader(io.ErrUnexpectedEOF))
	}
	return &http.Response{
		Status: fmt.Sprintf("%d %s", rec.Status, http.StatusText(rec.Status)), StatusCode: rec.Status,
		Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Header: rec.Header.Clone(),
		Body: io.NopCloser(answer), ContentLength: -1, Request: req,
	}, nil
}

// mismatch is an error that no engine sends again: the next try would differ, too.
func mismatch(format string, args ...any) error {
	return refuseOp("replay", format, args...)
}

func refuseOp(op, format string, args ...any) error {
	return &llm.Error{Class: llm.ClassInvalidRequest, Op: "llmtest: " + op, Message: fmt.Sprintf(format, args...)}
}

func firstDifference(want, got string) string {
	n := 0
	for n < min(len(want), len(got)) && want[n] == got[n] {
		n++
	}
	show := func(s string) string { return s[max(0, min(n-20, len(s))):min(len(s), n+40)] }
	return fmt.Sprintf("at byte %d want %q, got %q", n, show(want), show(got))
}
