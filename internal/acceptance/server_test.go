// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"time"
)

// An exchange is one request that came, and when its reply was out.
type exchange struct {
	path           string
	body           []byte
	arrived, ended time.Time
}

// A caseServer answers the n-th request with the n-th reply, byte for byte.
type caseServer struct {
	*httptest.Server
	c       *wireCase
	arrived func() // hears of each request before it is answered

	mu        sync.Mutex
	exchanges []exchange
	faults    []string // what the runner must report
	closing   chan struct{}
}

func newCaseServer(c *wireCase, arrived func()) *caseServer {
	s := &caseServer{c: c, arrived: arrived, closing: make(chan struct{})}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(s.serve))
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.Start()
	return s
}

func (s *caseServer) stop() {
	close(s.closing)
	s.CloseClientConnections()
	s.Close()
}

func (s *caseServer) fault(format string, args ...any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = append(s.faults, fmt.Sprintf(format, args...))
}

func (s *caseServer) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		s.fault("a request's body broke off: %v", err)
		return
	}
	n := s.note(r, body)
	defer func() {
		s.mu.Lock()
		s.exchanges[n].ended = time.Now()
		s.mu.Unlock()
	}()
	s.arrived()
	rep, ok := s.reply(n)
	if !ok {
		s.fault("request %d is one too many: %.2000s", n+1, body)
		http.Error(w, `{"error":{"message":"the case has no more replies"}}`, http.StatusBadRequest)
		return
	}
	out, err := rep.bytes()
	if err == nil && rep.Template {
		out, err = fillTemplate(out, body)
	}
	if err != nil {
		s.fault("reply %d: %v", n+1, err)
		return
	}
	s.write(w, r, rep, out)
}

func (s *caseServer) note(r *http.Request, body []byte) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.exchanges = append(s.exchanges, exchange{path: r.URL.Path, body: body, arrived: now, ended: now})
	if want := endpoint(s.c); !strings.HasSuffix(r.URL.Path, want) {
		s.faults = append(s.faults, fmt.Sprintf("a request went to %s; want .../%s", r.URL.Path, want))
	}
	return len(s.exchanges) - 1
}

func endpoint(c *wireCase) string {
	switch c.Provider.format() {
	case "anthropic":
		return "/v1/messages"
	case "openai-chat":
		return "/chat/completions"
	case "openai-responses":
		return "/responses"
	}
	if c.Run.Options.Stream != nil && !*c.Run.Options.Stream {
		return c.Provider.Model + ":generateContent"
	}
	return c.Provider.Model + ":streamGenerateContent"
}

func (s *caseServer) reply(n int) (reply, bool) {
	replies := s.c.Replies
	if n < len(replies) {
		return replies[n], true
	}
	if last := len(replies) - 1; last >= 0 && replies[last].RepeatForever {
		return replies[last], true
	}
	return reply{}, false
}

func (s *caseServer) write(w http.ResponseWriter, r *http.Request, rep reply, body []byte) {
	out := http.NewResponseController(w)
	w.Header()["Content-Type"] = nil // none is made up
	for name, v := range rep.Headers {
		text := v.text
		if v.dateInMS != nil {
			text = time.Now().Add(time.Duration(*v.dateInMS) * time.Millisecond).UTC().Format(http.TimeFormat)
		}
		w.Header().Set(name, text)
	}
	w.WriteHeader(rep.Status)
	keep := body
	if rep.Cut != nil {
		keep = upTo(body, rep.Cut.AfterBytes)
	} else if rep.Stall != nil {
		keep = upTo(body, rep.Stall.AfterBytes)
	}
	for _, piece := range pieces(keep, rep) {
		if _, err := w.Write(piece); err != nil {
			return // the client left
		}
		if err := out.Flush(); err != nil {
			return
		}
	}
	switch {
	case rep.Stall != nil:
		s.stall(w, r, rep.Stall)
	case rep.Cut != nil:
		_ = out.Flush()
		time.Sleep(100 * time.Millisecond) // so that the bytes arrive
		if rep.Cut.How != "end" {
			s.breakOff(out, rep.Cut.How)
		}
	}
}

func upTo(body []byte, n *int) []byte {
	if n == nil {
		return body
	}
	return body[:min(*n, len(body))]
}

// pieces are the parts that are flushed one by one; a body without chunks goes out
// in one.
func pieces(body []byte, rep reply) [][]byte {
	if rep.ChunkEvery > 0 {
		return slices.Collect(slices.Chunk(body, rep.ChunkEvery))
	}
	var out [][]byte
	for _, n := range rep.Chunks {
		n = min(n, len(body))
		out, body = append(out, body[:n]), body[n:]
	}
	if len(body) > 0 {
		out = append(out, body)
	}
	return out
}

// stall keeps the connection open with nothing but keepalives.
func (s *caseServer) stall(w http.ResponseWriter, r *http.Request, st *stall) {
	tick := time.NewTicker(time.Duration(max(st.EveryMS, 10)) * time.Millisecond)
	defer tick.Stop()
	for {
		select {
		case <-s.closing:
			return
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
		if _, err := io.WriteString(w, st.Keepalive); err != nil {
			return
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
	}
}

// breakOff ends the connection in the middle of the body.
func (s *caseServer) breakOff(out *http.ResponseController, how string) {
	conn, _, err := out.Hijack()
	if err != nil {
		s.fault("cut: %v", err)
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok && how == "rst" {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// fillTemplate puts the wire names of tools where a reply asks for them.
func fillTemplate(body, request []byte) ([]byte, error) {
	req, err := parseJSON(request)
	if err != nil {
		return nil, err
	}
	const open = "{{wire_name:"
	var out bytes.Buffer
	for {
		before, rest, found := bytes.Cut(body, []byte(open))
		out.Write(before)
		if !found {
			return out.Bytes(), nil
		}
		description, after, found := bytes.Cut(rest, []byte("}}"))
		if !found {
			return nil, fmt.Errorf("a template is not closed")
		}
		name, err := wireName(req, string(description))
		if err != nil {
			return nil, err
		}
		out.WriteString(name)
		body = after
	}
}

func wireName(req any, description string) (string, error) {
	for _, tl := range toolsOf(req) {
		if tl["description"] == description {
			name, _ := tl["name"].(string)
			return name, nil
		}
	}
	return "", fmt.Errorf("no tool of the request is described as %q", description)
}

// toolsOf are the definitions of tools in a request of any format.
func toolsOf(req any) []map[string]any {
	var out []map[string]any
	for _, path := range []string{"tools[*].functionDeclarations[*]", "tools[*].function", "tools[*]"} {
		found, ok, err := find(req, path)
		if err != nil || !ok {
			continue
		}
		list, _ := found.([]any)
		for _, e := range list {
			if tl, ok := e.(map[string]any); ok && tl["name"] != nil {
				out = append(out, tl)
			}
		}
		if len(out) > 0 {
			return out
		}
	}
	return out
}
