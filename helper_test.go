// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/machine"
	"github.com/fiducial-dev/fiducial/tool"
)

// noArgs is the input of tools that take nothing.
type noArgs struct{}

// probe is a tool that counts its runs and does what the test says.
type probe struct {
	mu   sync.Mutex
	runs []string // ids of the calls, in the order of their starts
	do   func(ctx context.Context, call tool.Call) (tool.Output, error)
}

func (p *probe) tool(name string, traits ...tool.Option) tool.Tool {
	return tool.Must(tool.New(name, "Counts.", func(ctx context.Context, _ noArgs) (tool.Output, error) {
		call, _ := tool.FromContext(ctx)
		p.mu.Lock()
		p.runs = append(p.runs, call.Key())
		p.mu.Unlock()
		if p.do != nil {
			return p.do(ctx, call)
		}
		return tool.Output{Summary: "ok"}, nil
	}, traits...))
}

func (p *probe) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.runs)
}

// once fails when any call ran twice.
func (p *probe) once(t *testing.T) {
	t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	seen := map[string]bool{}
	for _, key := range p.runs {
		if seen[key] {
			t.Errorf("call %s ran twice", key)
		}
		seen[key] = true
	}
}

// hooks is an interceptor whose hooks are functions; nil ones let go on.
type hooks struct {
	fiducial.NopInterceptor
	prompt  func(inv fiducial.Invocation, m *llm.Message) (fiducial.PromptAnswer, error)
	pending func(inv fiducial.Invocation) ([]llm.Message, error)
	request func(inv fiducial.Invocation, req *llm.Request) (fiducial.RequestAnswer, error)
	after   func(inv fiducial.Invocation, m llm.Message) (fiducial.ResponseAnswer, error)
	pre     func(inv fiducial.Invocation, call *llm.Call) (fiducial.ToolAnswer, error)
	post    func(inv fiducial.Invocation, call llm.Call, res llm.Result) (fiducial.PostAnswer, error)
	exit    func(inv fiducial.Invocation, out fiducial.Outcome, err error) error
}

func (h *hooks) PromptSubmit(_ context.Context, inv fiducial.Invocation, m *llm.Message) (fiducial.PromptAnswer, error) {
	if h.prompt == nil {
		return nil, nil
	}
	return h.prompt(inv, m)
}

func (h *hooks) PendingHistory(_ context.Context, inv fiducial.Invocation) ([]llm.Message, error) {
	if h.pending == nil {
		return nil, nil
	}
	return h.pending(inv)
}

func (h *hooks) PreRequest(_ context.Context, inv fiducial.Invocation, req *llm.Request) (fiducial.RequestAnswer, error) {
	if h.request == nil {
		return nil, nil
	}
	return h.request(inv, req)
}

func (h *hooks) AfterResponse(_ context.Context, inv fiducial.Invocation, m llm.Message) (fiducial.ResponseAnswer, error) {
	if h.after == nil {
		return nil, nil
	}
	return h.after(inv, m)
}

func (h *hooks) PreTool(_ context.Context, inv fiducial.Invocation, call *llm.Call) (fiducial.ToolAnswer, error) {
	if h.pre == nil {
		return nil, nil
	}
	return h.pre(inv, call)
}

func (h *hooks) PostTool(_ context.Context, inv fiducial.Invocation, call llm.Call, res llm.Result) (fiducial.PostAnswer, error) {
	if h.post == nil {
		return nil, nil
	}
	return h.post(inv, call, res)
}

func (h *hooks) RunExit(_ context.Context, inv fiducial.Invocation, out fiducial.Outcome, err error) error {
	if h.exit == nil {
		return nil
	}
	return h.exit(inv, out, err)
}

// events records what a run showed.
type events struct{ all []fiducial.Event }

func (e *events) Emit(ev fiducial.Event) { e.all = append(e.all, ev) }

// names are the kinds of the events, deltas left out.
func (e *events) names() []string {
	var out []string
	for _, ev := range e.all {
		if name := eventName(ev); name != "Delta" {
			out = append(out, name)
		}
	}
	return out
}

func eventName(ev fiducial.Event) string {
	return strings.TrimPrefix(fmt.Sprintf("%T", ev.Data), "fiducial.")
}

func count[T fiducial.EventData](e *events) int {
	n := 0
	for _, ev := range e.all {
		if _, ok := ev.Data.(T); ok {
			n++
		}
	}
	return n
}

// flaky is a journal whose n-th append fails, once or from then on.
type flaky struct {
	journal.Journal
	mu       sync.Mutex
	appends  int
	failAt   int // 0: never
	forever  bool
	stored   bool // the append that fails is stored all the same
	failWith error
}

var errDisk = &journal.Error{Kind: journal.KindStorage, Op: "append", Err: errors.New("disk on fire")}

func (f *flaky) Acquire(ctx context.Context, run, owner string) (journal.Lease, error) {
	l, err := f.Journal.Acquire(ctx, run, owner)
	if err != nil {
		return nil, err
	}
	return &flakyLease{l, f}, nil
}

type flakyLease struct {
	journal.Lease
	f *flaky
}

func (l *flakyLease) Append(ctx context.Context, state journal.Mark, bodies ...journal.Body) error {
	l.f.mu.Lock()
	defer l.f.mu.Unlock()
	l.f.appends++
	if n := l.f.failAt; n > 0 && (l.f.appends == n || l.f.forever && l.f.appends > n) {
		if l.f.stored {
			if err := l.Lease.Append(ctx, state, bodies...); err != nil {
				return err
			}
		}
		err := l.f.failWith
		if err == nil {
			err = errDisk
		}
		if errors.Is(err, journal.ErrUncertain) {
			_ = l.Release(ctx)
		}
		return err
	}
	return l.Lease.Append(ctx, state, bodies...)
}

func texts(messages []llm.Message) []string {
	var out []string
	for _, m := range messages {
		var b strings.Builder
		b.WriteString(string(m.Role) + ":")
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Text:
				b.WriteString(" " + p.Text)
			case llm.System:
				b.WriteString(" [" + p.Text + "]")
			case llm.Call:
				b.WriteString(" " + p.Name + "(" + p.Args + ")")
			case llm.Result:
				b.WriteString(" " + string(p.Status) + "=" + p.Body())
			case llm.Image, llm.Thinking:
			}
		}
		out = append(out, b.String())
	}
	return out
}

func wantTexts(t *testing.T, got []llm.Message, want ...string) {
	t.Helper()
	if g := texts(got); !slices.Equal(g, want) {
		t.Errorf("history:\n got %q\nwant %q", g, want)
	}
}

// sendable fails when a model could not be given the history.
func sendable(t *testing.T, messages []llm.Message) {
	t.Helper()
	if err := machine.ValidateContext(messages); err != nil {
		t.Errorf("the history is not sendable: %v\n%q", err, texts(messages))
	}
}

// paired fails when a request of the script was one that no model may be given.
func paired(t *testing.T, s *llmtest.Script) {
	t.Helper()
	for i, req := range s.Requests() {
		if err := machine.ValidateContext(req.Messages); err != nil {
			t.Errorf("request %d: %v", i, err)
		}
	}
}

func mustRun(t *testing.T, eng *fiducial.Engine, text string) (*fiducial.Locked, fiducial.Outcome) {
	t.Helper()
	l, out, err := eng.Run(t.Context(), llm.UserText(text))
	if err != nil {
		t.Fatal(err)
	}
	return l, out
}

func mustLock(t *testing.T, eng *fiducial.Engine) *fiducial.Locked {
	t.Helper()
	l, err := eng.Lock()
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func wantReason(t *testing.T, out fiducial.Outcome, err error, want fiducial.Reason) {
	t.Helper()
	if out.Reason != want {
		t.Fatalf("reason %q (%v), want %q", out.Reason, err, want)
	}
	bad := want == fiducial.Cancelled || want == fiducial.Failed || want == fiducial.ContextWindowExceeded
	if (err != nil) != bad {
		t.Fatalf("reason %q with error %v", out.Reason, err)
	}
}

func wantErr(t *testing.T, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Fatalf("got error %v, want %v", err, want)
	}
}

func equal[T any](t *testing.T, what string, got, want T) {
	t.Helper()
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%s:\n got %v\nwant %v", what, got, want)
	}
}

// slow is a turn that runs f before it answers.
func slow(f func(ctx context.Context), next llmtest.Turn) llmtest.Turn {
	return func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
		return func(yield func(llm.Event, error) bool) {
			f(ctx)
			next(ctx, req)(yield)
		}
	}
}

// sendTool tells what it was given.
func sendTool(got *string) tool.Tool {
	type in struct {
		To string `json:"to"`
	}
	return tool.Must(tool.New("send", "Sends.", func(_ context.Context, v in) (string, error) {
		*got = v.To
		return "sent", nil
	}))
}
