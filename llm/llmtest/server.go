// SPDX-License-Identifier: Apache-2.0

package llmtest

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
)

// A Wire is a format that providers speak.
type Wire string

// The formats that a [Server] speaks.
const (
	WireAnthropic       Wire = "anthropic"
	WireOpenAIChat      Wire = "openai-chat"
	WireOpenAIResponses Wire = "openai-responses"
	WireGemini          Wire = "gemini"
)

// A Server is a provider of models over real HTTP that speaks all four formats,
// told apart by path: .../messages, .../chat/completions, .../responses and
// ...:streamGenerateContent. What it answers is up to another client, such as a
// [Script]; it only streams.
//
// It is strict: a request that the real provider would refuse for its history, its
// names, its schemas or its cache marks is answered with that provider's kind of
// error. It counts tokens as a quarter of the bytes, and simulates prompt caches:
// Anthropic's by its marks, the others' by themselves.
type Server struct {
	// URL is the base address of all formats, without a slash at its end.
	URL string

	brain llm.Client
	http  *httptest.Server

	mu        sync.Mutex
	key       string
	window    int64
	now       func() time.Time
	skew      time.Duration
	exchanges []Exchange
	totals    Totals
	calls     int
	paused    bool
	marked    promptCache
	auto      promptCache
	best      promptCache
}

// An Exchange is one request to a [Server].
type Exchange struct {
	Wire   Wire
	Path   string // with its query
	Header http.Header
	Body   []byte
	Status int // of the answer; 0 while there is none
}

// A ServerOption changes how [NewServer] makes a server.
type ServerOption func(*Server)

// WithKey makes the server refuse requests that do not carry this key where the
// format wants it.
func WithKey(key string) ServerOption { return func(s *Server) { s.key = key } }

// WithWindow makes the server refuse prompts of more tokens.
func WithWindow(tokens int64) ServerOption { return func(s *Server) { s.window = tokens } }

// WithClock gives the time by which cache entries run out; see also
// [Server.Advance].
func WithClock(now func() time.Time) ServerOption { return func(s *Server) { s.now = now } }

// NewServer starts a server whose answers come from brain. Close it at the end.
func NewServer(brain llm.Client, opts ...ServerOption) *Server {
	s := &Server{brain: brain, now: time.Now, auto: promptCache{automatic: true}, best: promptCache{automatic: true}}
	for _, o := range opts {
		o(s)
	}
	s.http = httptest.NewServer(s)
	s.URL = s.http.URL
	return s
}

// Close stops the server; requests that it still answers are broken off.
func (s *Server) Close() {
	s.http.CloseClientConnections()
	s.http.Close()
}

// Advance moves the clock of the caches forward.
func (s *Server) Advance(d time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.skew += d
}

// Totals is what all requests have cost so far.
func (s *Server) Totals() Totals {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.totals
}

// Exchanges is every request so far, in order of arrival.
func (s *Server) Exchanges() []Exchange {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.exchanges)
}

// A refusal is why a request is not answered.
type refusal struct {
	class   llm.Class
	status  int    // 0: that of the class
	code    string // "": that of the class
	message string
	after   time.Duration
}

func refuse(format string, args ...any) *refusal {
	return &refusal{class: llm.ClassInvalidRequest, message: fmt.Sprintf(format, args...)}
}

// A prompt is what a request says, whatever its format.
type prompt struct {
	model  string
	req    llm.Request
	blocks []promptBlock
}

// A dialect is one format: how it is read, and how an answer is written in it.
type dialect interface {
	read(s *Server, r *http.Request, body []byte) (*prompt, *refusal)
	refuse(w io.Writer, status int, code string, message string)
	names(class llm.Class) (status int, code string)
	reply(out *stream) replyWriter
}

// A replyWriter writes the events of one answer.
type replyWriter interface {
	begin()
	event(ev llm.Event)
	finish(stop llm.StopReason)
	fault(code, message string)
}

func dialectOf(path string) (Wire, dialect) {
	switch {
	case strings.HasSuffix(path, "/messages"):
		return WireAnthropic, anthropicDialect{}
	case strings.HasSuffix(path, "/chat/completions"):
		return WireOpenAIChat, chatDialect{}
	case strings.HasSuffix(path, "/responses"):
		return WireOpenAIResponses, responsesDialect{}
	case strings.HasSuffix(path, ":streamGenerateContent"):
		return WireGemini, geminiDialect{}
	}
	return "", nil
}

// ServeHTTP answers one request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	name, d := dialectOf(r.URL.Path)
	n := s.note(Exchange{Wire: name, Path: r.URL.RequestURI(), Header: r.Header.Clone(), Body: body})
	if d == nil {
		s.status(n, http.StatusNotFound)
		http.Error(w, "no such endpoint", http.StatusNotFound)
		return
	}
	p, no := s.understand(name, d, r, body)
	if no != nil {
		s.answerRefusal(w, d, n, no)
		return
	}
	s.answer(w, r, d, name, n, p)
}

func (s *Server) note(e Exchange) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exchanges = append(s.exchanges, e)
	return len(s.exchanges) - 1
}

func (s *Server) status(n, status int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.exchanges[n].Status = status
}

func (s *Server) understand(name Wire, d dialect, r *http.Request, body []byte) (*prompt, *refusal) {
	if s.key != "" && keyOf(name, r) != s.key {
		return nil, &refusal{class: llm.ClassAuth, message: "invalid API key"}
	}
	if !json.Valid(body) {
		return nil, refuse("the request body is not valid JSON")
	}
	if no := checkText(body); no != nil {
		return nil, no
	}
	p, no := d.read(s, r, body)
	if no != nil {
		return nil, no
	}
	if len(p.req.Messages) == 0 {
		return nil, refuse("messages: at least one message is required")
	}
	if n := sizeOf(p.blocks); s.window > 0 && n > s.window {
		return nil, &refusal{class: llm.ClassContextOverflow, message: overflowMessage(name, n, s.window)}
	}
	return p, nil
}

func keyOf(name Wire, r *http.Request) string {
	switch name {
	case WireAnthropic:
		return r.Header.Get("X-Api-Key")
	case WireGemini:
		if k := r.Header.Get("X-Goog-Api-Key"); k != "" {
			return k
		}
		return r.URL.Query().Get("key")
	case WireOpenAIChat, WireOpenAIResponses:
	}
	return strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
}

func overflowMessage(name Wire, n, window int64) string {
	switch name {
	case WireAnthropic:
		return fmt.Sprintf("prompt is too long: %d tokens > %d maximum", n, window)
	case WireGemini:
		return fmt.Sprintf("The input token count (%d) exceeds the maximum number of tokens allowed (%d).", n, window)
	case WireOpenAIChat, WireOpenAIResponses:
	}
	return fmt.Sprintf("This model's maximum context length is %d tokens. However, your messages resulted in %d tokens.", window, n)
}

func sizeOf(blocks []promptBlock) int64 {
	var n int64
	for _, b := range blocks {
		n += b.tokens()
	}
	return n
}

func (s *Server) answerRefusal(w http.ResponseWriter, d dialect, n int, no *refusal) {
	status, code := d.names(no.class)
	if no.status != 0 {
		status = no.status
	}
	if no.code != "" {
		code = no.code
	}
	s.status(n, status)
	w.Header().Set("Content-Type", "application/json")
	if no.after > 0 {
		w.Header().Set("Retry-After", strconv.FormatFloat(no.after.Seconds(), 'f', -1, 64))
	}
	w.WriteHeader(status)
	d.refuse(w, status, code, no.message)
}

// answer plays what brain says to a request.
func (s *Server) answer(w http.ResponseWriter, r *http.Request, d dialect, name Wire, n int, p *prompt) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	out := &stream{w: w, server: s, prompt: p}
	var reply replyWriter
	begin := func() {
		if reply != nil {
			return
		}
		s.status(n, http.StatusOK)
		s.charge(name, out)
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		w.WriteHeader(http.StatusOK)
		reply = d.reply(out)
		reply.begin()
		out.flush()
	}
	for ev, err := range s.brain.Stream(ctx, &p.req) {
		if err != nil {
			s.fail(w, d, n, reply, err)
			return
		}
		begin()
		out.count(ev)
		if end, ok := ev.(llm.Finish); ok {
			s.spend(end.Stop, out.output)
			reply.finish(end.Stop)
			out.flush()
			return
		}
		reply.event(s.named(name, ev))
		out.flush()
	}
	begin() // a stream without an end
}

// fail tells an error of brain as the provider would: by a status before the
// stream began, by an event inside it, or by cutting the connection.
func (s *Server) fail(w http.ResponseWriter, d dialect, n int, reply replyWriter, err error) {
	e, ok := errors.AsType[*llm.Error](err)
	if !ok || e.Class == llm.ClassTransport {
		panic(http.ErrAbortHandler)
	}
	_, code := d.names(e.Class)
	if reply != nil {
		reply.fault(code, e.Message)
		return
	}
	s.answerRefusal(w, d, n, &refusal{class: e.Class, status: e.Status, code: e.Code, message: e.Message, after: e.RetryAfter})
}

// charge counts a prompt and what the caches give of it.
func (s *Server) charge(name Wire, out *stream) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now().Add(s.skew)
	scope := string(name) + " " + out.prompt.model
	cache := &s.auto
	if name == WireAnthropic {
		cache = &s.marked
	}
	best, _ := s.best.use(scope, out.prompt.blocks, now)
	out.read, out.written = cache.use(scope, out.prompt.blocks, now)
	if name != WireAnthropic {
		out.written = 0 // it costs nothing, and nobody reports it
	}
	out.input = sizeOf(out.prompt.blocks)
	s.totals.Requests++
	s.totals.Input += out.input
	s.totals.CacheRead += out.read
	s.totals.CacheWrite += out.written
	s.totals.Best += best
}

func (s *Server) spend(stop llm.StopReason, output int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.totals.Output += output
	s.paused = stop == llm.StopPause
}

// named gives a call without an id one that no other call has.
func (s *Server) named(name Wire, ev llm.Event) llm.Event {
	start, ok := ev.(llm.BlockStart)
	if !ok || start.Kind != llm.BlockCall || start.ID != "" {
		return ev
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls++
	start.ID = fmt.Sprintf("call_%06d", s.calls)
	if name == WireAnthropic {
		start.ID = fmt.Sprintf("toolu_%06d", s.calls)
	}
	return start
}

// A stream is the answer that is being written.
type stream struct {
	w      http.ResponseWriter
	server *Server
	prompt *prompt

	input, read, written, output int64
}

func (o *stream) flush() {
	if f, ok := o.w.(http.Flusher); ok {
		f.Flush()
	}
}

// count adds what an event holds to the tokens of the answer.
func (o *stream) count(ev llm.Event) {
	if d, ok := ev.(llm.BlockDelta); ok {
		o.output += int64(len(d.Text)+3) / 4
	}
}

// send writes one event; an empty name leaves the event field out.
func (o *stream) send(name string, value any) {
	var data bytes.Buffer
	enc := json.NewEncoder(&data)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(value); err != nil {
		panic(http.ErrAbortHandler)
	}
	if name != "" {
		fmt.Fprintf(o.w, "event: %s\n", name)
	}
	fmt.Fprintf(o.w, "data: %s\n", data.Bytes()) // the encoder ends its line
}

// An object is a JSON object to be written.
type object map[string]any

func writeJSON(w io.Writer, v any) {
	if err := json.NewEncoder(w).Encode(v); err != nil {
		panic(http.ErrAbortHandler)
	}
}
