package acceptance

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/wire"
	"github.com/fiducial-dev/fiducial/provider/anthropic"
	"github.com/fiducial-dev/fiducial/provider/gemini"
	"github.com/fiducial-dev/fiducial/provider/openai"
)

const runName = "case"

var errDead = errors.New("this process is dead")

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
	switch c.Provider.format() {
	case "anthropic":
		opts := []anthropic.Option{
			anthropic.WithBaseURL(url), anthropic.WithAPIKey("key-of-the-case"),
			anthropic.WithHTTPClient(h), anthropic.WithTimeouts(limits), anthropic.WithFourthMark(),
		}
		if whole {
			opts = append(opts, anthropic.WithoutStream())
		}
		return anthropic.New(c.Provider.Model, opts...)
	case "gemini":
		opts := []gemini.Option{
			gemini.WithBaseURL(url), gemini.WithAPIKey("key-of-the-case"),
			gemini.WithHTTPClient(h), gemini.WithTimeouts(limits),
		}
		if whole {
			opts = append(opts, gemini.WithoutStream())
		}
		return gemini.New(c.Provider.Model, opts...)
	}
	opts := []openai.Option{
		openai.WithBaseURL(url + "/v1"), openai.WithAPIKey("key-of-the-case"),
		openai.WithHTTPClient(h), openai.WithTimeouts(limits),
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

// openLog opens the store of the case's run in a folder.
func openLog(folder string) (journal.Journal, error) {
	return journal.OpenFolder(folder, journal.FolderOptions{})
}

func logFile(folder string) string { return filepath.Join(folder, runName+".jsonl") }

// importHistory makes a conversation of the case's neutral messages. A system
// message at its start is the system prompt.
func importHistory(in []message) (system string, out []llm.Message, err error) {
	for i, m := range in {
		if m.Role == "system" && i == 0 {
			for _, p := range m.Parts {
				system += p.Text
			}
			continue
		}
		msg, err := importMessage(m)
		if err != nil {
			return "", nil, fmt.Errorf("history[%d]: %w", i, err)
		}
		if last := len(out) - 1; last >= 0 && msg.Role == llm.RoleTool && out[last].Role == llm.RoleTool {
			out[last].Parts = append(out[last].Parts, msg.Parts...)
			continue
		}
		out = append(out, msg)
	}
	return system, out, nil
}

func importMessage(m message) (llm.Message, error) {
	out := llm.Message{Role: llm.Role(m.Role)}
	if m.Role == "system" {
		out.Role = llm.RoleUser
	}
	for _, p := range m.Parts {
		switch p.Type {
		case "text":
			if m.Role == "system" {
				out.Parts = append(out.Parts, llm.System{Kind: "import", Text: p.Text})
				continue
			}
			out.Parts = append(out.Parts, llm.Text{Text: p.Text})
		case "tool_call":
			out.Parts = append(out.Parts, llm.Call{ID: p.ID, Name: p.Name, Args: argsText(p.Args)})
		case "tool_result":
			res := llm.Result{CallID: p.ID, Name: p.Name, Status: llm.StatusSuccess, Content: p.Text}
			if p.IsError {
				res.Status = llm.StatusError
			}
			out.Role = llm.RoleTool
			out.Parts = append(out.Parts, res)
		case "image":
			data, err := base64.StdEncoding.DecodeString(p.DataBase64)
			if err != nil {
				return out, err
			}
			out.Parts = append(out.Parts, llm.Image{Media: p.MediaType, Data: data})
		case "reasoning":
			out.Parts = append(out.Parts, llm.Thinking{Text: p.Text})
		default:
			return out, fmt.Errorf("unknown part %q", p.Type)
		}
	}
	if out.Role == llm.RoleAssistant {
		out.Stop = llm.StopEndTurn
		if out.CountCalls() > 0 {
			out.Stop = llm.StopToolUse
		}
	}
	return out, nil
}

// argsText is the arguments as a model would have written them: a string of the
// case is the text itself, which may be no JSON.
func argsText(args json.RawMessage) string {
	var text string
	if json.Unmarshal(args, &text) == nil {
		return text
	}
	return string(args)
}
