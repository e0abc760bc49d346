// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/sqlite"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
	"github.com/fiducial-dev/fiducial/provider/anthropic"
	"github.com/fiducial-dev/fiducial/provider/gemini"
	"github.com/fiducial-dev/fiducial/provider/openai"
)

const (
	runName = "case"
	apiKey  = "key-of-the-case"
)

var errDead = errors.New("this process is dead")

// openStore opens a store of one kind in a folder of its own.
func openStore(ctx context.Context, kind, folder string) (journal.Journal, error) {
	if kind == "file" {
		return journal.OpenFolder(folder, journal.FolderOptions{})
	}
	return sqlite.Open(ctx, filepath.Join(folder, "journal.db"), sqlite.Options{})
}

// A process is one engine over one opening of the store. A dead one can neither
// store, nor ask the model, nor run a tool, whatever its goroutines still do.
type process struct {
	store  journal.Journal
	locked *fiducial.Locked
	http   *http.Transport

	mu    sync.Mutex // held during an append, so that a kill falls between two
	dead  bool
	after string // where the store stands as it was at the kill
}

func (p *process) isDead() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// alive is asked before everything that the outside would see.
func (p *process) alive() error { return must(!p.isDead(), errDead) }

// kill freezes the store: what stands in folder now is copied to after, and the
// process writes nothing any more.
func (p *process) kill(folder, after string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.dead {
		return nil
	}
	p.dead, p.after = true, after
	return os.CopyFS(after, os.DirFS(folder))
}

// close ends a process in order.
func (p *process) close(ctx context.Context) error {
	var err error
	if p.locked != nil {
		err = p.locked.Close(ctx)
	}
	p.http.CloseIdleConnections()
	return errors.Join(err, p.store.Close())
}

// RoundTrip sends a request unless the process is dead.
func (p *process) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := p.alive(); err != nil {
		return nil, err
	}
	return p.http.RoundTrip(r)
}

// A mortalStore is a store that a dead process cannot write.
type mortalStore struct {
	journal.Journal
	p *process
}

func (s mortalStore) Create(ctx context.Context, run string, h journal.Header) error {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if s.p.dead {
		return errDead
	}
	return s.Journal.Create(ctx, run, h)
}

func (s mortalStore) Offer(ctx context.Context, run, key string, m llm.Message) error {
	s.p.mu.Lock()
	defer s.p.mu.Unlock()
	if s.p.dead {
		return errDead
	}
	return s.Journal.Offer(ctx, run, key, m)
}

func (s mortalStore) Acquire(ctx context.Context, run, owner string) (journal.Lease, error) {
	if err := s.p.alive(); err != nil {
		return nil, err
	}
	lease, err := s.Journal.Acquire(ctx, run, owner)
	return mortalLease{lease, s.p}, err
}

type mortalLease struct {
	journal.Lease
	p *process
}

func (l mortalLease) Append(ctx context.Context, state journal.Mark, bodies ...journal.Body) error {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	if l.p.dead {
		return errDead
	}
	return l.Lease.Append(ctx, state, bodies...)
}

// newClient is the real adapter of the case, pointed at a server.
func newClient(c *wireCase, url string, h *http.Client) (llm.Client, error) {
	o, limits := c.Run.Options, wire.Timeouts{}
	if ms := c.Run.Limits.StreamIdleTimeoutMS; ms > 0 {
		limits.Idle = time.Duration(ms) * time.Millisecond
	}
	whole := o.Stream != nil && !*o.Stream
	var server []json.RawMessage
	for _, tl := range c.Run.Tools {
		if tl.ServerTool != nil {
			server = append(server, compact(tl.ServerTool))
		}
	}
	switch c.Provider.format() {
	case "anthropic":
		opts := []anthropic.Option{
			anthropic.WithBaseURL(url), anthropic.WithAPIKey(apiKey),
			anthropic.WithHTTPClient(h), anthropic.WithTimeouts(limits), anthropic.WithFourthMark(),
			anthropic.WithServerTools(server...),
		}
		if whole {
			opts = append(opts, anthropic.WithoutStream())
		}
		return anthropic.New(c.Provider.Model, opts...)
	case "gemini":
		opts := []gemini.Option{
			gemini.WithBaseURL(url), gemini.WithAPIKey(apiKey),
			gemini.WithHTTPClient(h), gemini.WithTimeouts(limits), gemini.WithServerTools(server...),
		}
		if whole {
			opts = append(opts, gemini.WithoutStream())
		}
		return gemini.New(c.Provider.Model, opts...)
	}
	opts := []openai.Option{
		openai.WithBaseURL(url + "/v1"), openai.WithAPIKey(apiKey),
		openai.WithHTTPClient(h), openai.WithTimeouts(limits), openai.WithServerTools(server...),
	}
	if f := c.Provider.Flavor; f != "" {
		opts = append(opts, openai.WithFlavor(openai.Flavor(f)))
	}
	if whole {
		opts = append(opts, openai.WithoutStream())
	}
	if o.Store != nil && *o.Store {
		opts = append(opts, openai.WithStore())
	}
	if c.Provider.format() == "openai-chat" {
		return openai.NewChat(c.Provider.Model, opts...)
	}
	return openai.NewResponses(c.Provider.Model, opts...)
}

// engineOptions are the options and limits of the case in the engine's words.
func engineOptions(c *wireCase) []fiducial.Option {
	o, l := c.Run.Options, c.Run.Limits
	opts := []fiducial.Option{
		fiducial.WithSettings(llm.Settings{
			MaxTokens: o.MaxOutputTokens, ThinkingBudget: o.ThinkingBudget, Stop: o.Stop, NoCache: !o.Cache,
		}),
	}
	retry := fiducial.RetryPolicy{Attempts: 3}
	if l.MaxRetries != nil {
		retry.Attempts = *l.MaxRetries + 1
	}
	if l.MaxRetryDelayMS > 0 {
		retry.Cap = time.Duration(l.MaxRetryDelayMS) * time.Millisecond
	}
	opts = append(opts, fiducial.WithRetry(retry))
	if l.MaxSteps != nil {
		opts = append(opts, fiducial.WithTurnLimit(*l.MaxSteps))
	}
	guard := -1
	if l.RepeatLimit != nil {
		guard = *l.RepeatLimit
	}
	opts = append(opts, fiducial.WithLoopGuard(guard))
	if l.BudgetTotalTokens > 0 {
		opts = append(opts, fiducial.WithTokenBudget(l.BudgetTotalTokens))
	}
	if o.ParallelTools != nil && !*o.ParallelTools {
		opts = append(opts, fiducial.WithSequentialCalls())
	}
	return opts
}

func logFile(folder string) string { return filepath.Join(folder, runName+".jsonl") }
