//go:build unix

// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"os"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/tool"
)

const childEnv = "FIDUCIAL_ACCEPTANCE_CHILD"

func TestMain(m *testing.M) {
	if spec := os.Getenv(childEnv); spec != "" {
		os.Exit(childMain(spec))
	}
	os.Exit(m.Run())
}

// A childSpec says what a child process does: it takes the run up, or begins it,
// and kills itself with SIGKILL at its n-th point.
type childSpec struct {
	Store  string // file or sqlite
	Folder string
	Wire   llmtest.Wire
	URL    string
	Effect string // the file that tools append to
	KillAt int    // 0: never
}

// A childReport is what a child that was not killed prints.
type childReport struct {
	Reason  fiducial.Reason
	Text    string
	Turns   int
	Points  int
	History []llm.Message
}

// points are the boundaries that a child passes.
type points struct {
	mu sync.Mutex
	n  int
	at int
}

// pass is one boundary. The process ends here when it is the one, with nothing
// deferred, flushed or unlocked.
func (p *points) pass(name string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.n++; p.n != p.at {
		return
	}
	fmt.Fprint(os.Stderr, name)
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {} // until it takes effect
}

func childMain(text string) int {
	var spec childSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	if err := child(context.Background(), spec); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func child(ctx context.Context, spec childSpec) error {
	p := &points{at: spec.KillAt}
	store, err := openStore(ctx, spec.Store, spec.Folder)
	if err != nil {
		return err
	}
	defer store.Close()
	client, err := wires[spec.Wire](spec.URL)
	if err != nil {
		return err
	}
	eng := fiducial.New(pointedClient{client, p},
		fiducial.WithSystem("Be exact."), fiducial.WithTools(effectTools(spec.Effect, p)...),
		fiducial.WithJournal(pointedStore{store, p}, runName), fiducial.WithDurable(),
		fiducial.WithEvents(fiducial.EventFunc(func(ev fiducial.Event) { pointAt(p, ev.Data) })))
	locked, err := eng.Lock()
	if err != nil {
		return err
	}
	_, err = store.Stat(ctx, runName)
	fresh := err != nil
	if !fresh {
		if err := locked.Open(ctx); err != nil {
			return err
		}
		fresh = len(locked.History()) == 0 // it died before the message was stored
	}
	var out fiducial.Outcome
	if fresh {
		out, err = locked.Run(ctx, llm.UserText("Do it all."))
	} else {
		out, err = locked.Resume(ctx)
	}
	if err != nil {
		return err
	}
	history := locked.History()
	passed := p.n
	if spec.KillAt == 0 { // the provider takes the whole of it, and more
		if _, err := locked.Run(ctx, llm.UserText("Thanks.")); err != nil {
			return err
		}
	}
	report := childReport{out.Reason, out.Text(), out.Turns, passed, history}
	if err := locked.Close(ctx); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(report)
}

func pointAt(p *points, data fiducial.EventData) {
	switch data.(type) {
	case fiducial.Delta:
		p.pass("in the stream")
	case fiducial.GenerationFinished:
		p.pass("behind the reply")
	case fiducial.GenerationCommitted:
		p.pass("reply committed")
	case fiducial.ToolFinished:
		p.pass("call settled")
	case fiducial.RunFinished:
		p.pass("run finished")
	default:
	}
}

// A pointedClient has a boundary before each request.
type pointedClient struct {
	llm.Client
	p *points
}

func (c pointedClient) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	c.p.pass("before the request")
	return c.Client.Stream(ctx, req)
}

// A pointedStore has a boundary on both sides of each append.
type pointedStore struct {
	journal.Journal
	p *points
}

func (s pointedStore) Create(ctx context.Context, run string, h journal.Header) error {
	s.p.pass("before create")
	err := s.Journal.Create(ctx, run, h)
	s.p.pass("behind create")
	return err
}

func (s pointedStore) Acquire(ctx context.Context, run, owner string) (journal.Lease, error) {
	lease, err := s.Journal.Acquire(ctx, run, owner)
	s.p.pass("behind acquire")
	return pointedLease{lease, s.p}, err
}

type pointedLease struct {
	journal.Lease
	p *points
}

func (l pointedLease) Append(ctx context.Context, state journal.Mark, bodies ...journal.Body) error {
	l.p.pass("before an append")
	err := l.Lease.Append(ctx, state, bodies...)
	l.p.pass("behind an append")
	return err
}

// An effectTool appends the key of its call to a file: that is its effect, and it
// cannot be taken back.
type effectTool struct {
	name   string
	traits tool.Traits
	file   string
	wait   time.Duration
	p      *points
}

func effectTools(file string, p *points) []tool.Tool {
	return []tool.Tool{
		effectTool{"write", tool.Traits{}, file, 0, p},
		effectTool{"slow_write", tool.Traits{}, file, 15 * time.Millisecond, p},
		effectTool{"slow_read", tool.Traits{ReadOnly: true}, file, 25 * time.Millisecond, p},
		effectTool{"put", tool.Traits{Idempotent: true}, file, 0, p},
		effectTool{"alone", tool.Traits{Exclusive: true}, file, 0, p},
	}
}

func (e effectTool) Spec() tool.Spec {
	return tool.Spec{Name: e.name, Description: "Appends to a file", Schema: []byte(`{"type":"object","properties":{"what":{"type":"string"}}}`)}
}

func (e effectTool) Traits() tool.Traits { return e.traits }

func (e effectTool) Run(_ context.Context, call tool.Call) (tool.Output, error) {
	e.p.pass("dispatched")
	time.Sleep(e.wait) // so that the others of the batch settle before
	f, err := os.OpenFile(e.file, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return tool.Output{}, err
	}
	defer f.Close()
	if _, err := fmt.Fprintf(f, "%s %s\n", e.name, call.Key()); err != nil {
		return tool.Output{}, err
	}
	e.p.pass("effect done")
	return tool.Output{Summary: "done " + call.Key()}, nil
}
