// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/machine"
	"github.com/fiducial-dev/fiducial/mask"
	"github.com/fiducial-dev/fiducial/tool"
)

// Nil where something is expected is a configuration error that names it, or nothing
// at all where nothing is fine.
func TestNilOptions(t *testing.T) {
	t.Parallel()
	model := func() llm.Client { return llmtest.NewScript(llmtest.Say("x")) }
	for name, opt := range map[string]fiducial.Option{
		"WithTools":       fiducial.WithTools(nil),
		"WithInterceptor": fiducial.WithInterceptor(nil),
		"WithObserver":    fiducial.WithObserver(nil),
		"WithServer":      fiducial.WithServer(nil),
		"WithExecutor":    fiducial.WithExecutor(nil),
		"WithCheckpoint":  fiducial.WithCheckpoint(nil),
		"WithNotice":      fiducial.WithNotice(nil),
		"WithMask":        fiducial.WithMask(nil),
		"WithJournal":     fiducial.WithJournal(nil, "r"),

		// A nil pointer or function in an interface is no better.
		"WithEvents was":      fiducial.WithEvents(fiducial.EventFunc(nil)),
		"WithMask was":        fiducial.WithMask((*mask.Masker)(nil)),
		"WithJournal was":     fiducial.WithJournal((*journal.Memory)(nil), "r"),
		"WithInterceptor was": fiducial.WithInterceptor((*hooks)(nil)),
	} {
		l, err := fiducial.New(model(), opt).Lock()
		if l != nil || !errors.Is(err, fiducial.ErrConfig) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for name, opt := range map[string]fiducial.Option{
		"option": nil, "events": fiducial.WithEvents(nil), "history": fiducial.WithHistory(), "labels": fiducial.WithLabels(nil),
	} {
		_, out, err := fiducial.New(model(), opt).Run(t.Context(), llm.UserText("go"))
		if err != nil || out.Reason != fiducial.Finished {
			t.Errorf("%s: %v %v", name, out.Reason, err)
		}
	}
}

// A handle that New or Lock did not give says so, and never panics.
func TestZeroHandles(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	var e fiducial.Engine
	var l fiducial.Locked
	for name, err := range map[string]error{
		"Lock":       second(e.Lock()),
		"Append":     e.Append(ctx, llm.UserText("x")),
		"SetSystem":  e.SetSystem("x"),
		"Engine.Run": third(e.Run(ctx)),
		"Open":       e.Open(ctx),
		"Close":      e.Close(ctx),
		"Run":        second(l.Run(ctx, llm.UserText("x"))),
		"Resume":     second(l.Resume(ctx)),
		"Unlock":     second(l.Unlock()),
		"Checkpoint": l.Checkpoint(ctx),
		"Send":       l.Send(ctx, "", llm.UserText("x")),
	} {
		wantErr(t, err, fiducial.ErrStale)
		if !strings.Contains(fmt.Sprint(err), "New") {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, err := range l.Stream(ctx) {
		wantErr(t, err, fiducial.ErrStale)
	}
	l.Pause("x")
	l.Hurry()
	if l.History() != nil || l.Notes() != nil || l.Server() != nil || l.ObserverError() != nil || l.TotalTurns() != 0 || l.Estimate(3).Tokens != 0 {
		t.Error("a zero handle holds something")
	}
}

// A tool, a hook and a sink that reach for the engine they belong to: what would start
// a second run is busy, what may come from outside works.
func TestEngineFromInside(t *testing.T) {
	t.Parallel()
	var l *fiducial.Locked
	asked := map[string]int{}
	reach := func(where string) {
		if l == nil {
			return
		}
		asked[where]++
		wantErr(t, second(l.Run(t.Context(), llm.UserText("nested"))), fiducial.ErrBusy)
		wantErr(t, second(l.Resume(t.Context())), fiducial.ErrBusy)
		wantErr(t, second(l.Unlock()), fiducial.ErrBusy)
		wantErr(t, l.SetSettings(llm.Settings{}), fiducial.ErrBusy)
		wantErr(t, l.Close(t.Context()), fiducial.ErrBusy)
		_ = l.History()
		_ = l.Estimate(1)
		_ = l.TotalTurns()
		l.Hurry()
	}
	p := &probe{do: func(ctx context.Context, _ tool.Call) (tool.Output, error) {
		reach("tool")
		if err := l.Send(ctx, "k", llm.UserText("from the tool")); err != nil {
			t.Error(err)
		}
		inner := llmtest.NewScript(llmtest.Say("inner"))
		_, out, err := fiducial.New(inner).Run(ctx, llm.UserText("work")) // an engine of its own is fine
		return tool.Output{Summary: out.Text()}, err
	}}
	h := &hooks{
		request: func(fiducial.Invocation, *llm.Request) (fiducial.RequestAnswer, error) {
			reach("hook")
			return nil, nil
		},
		exit: func(fiducial.Invocation, fiducial.Outcome, error) error { reach("exit"); return nil },
	}
	sink := fiducial.EventFunc(func(fiducial.Event) { reach("sink") })
	l = mustLock(t, fiducial.New(llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x")), fiducial.WithTools(p.tool("look")),
		fiducial.WithInterceptor(h), fiducial.WithEvents(sink)))
	out, err := l.Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.Finished)
	wantTexts(t, l.History(), "user: go", "assistant: look()", "tool: success=inner", "user: from the tool", "assistant: x")
	for _, where := range []string{"tool", "hook", "exit", "sink"} {
		if asked[where] == 0 {
			t.Errorf("nothing reached in from the %s", where)
		}
	}
}

// ticks counts the moments of a run, and does something at one of them.
type ticks struct {
	n  atomic.Int64
	at atomic.Int64
	do func()
}

func (k *ticks) tick() {
	if k.n.Add(1) == k.at.Load() {
		k.do()
	}
}

// ticking is a client that ticks at each event.
type ticking struct {
	llm.Client
	k *ticks
}

func (c ticking) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		c.k.tick()
		for ev, err := range c.Client.Stream(ctx, req) {
			c.k.tick()
			if !yield(ev, err) {
				return
			}
		}
		c.k.tick()
	}
}

func tickingEngine(k *ticks, p *probe, model llm.Client, j journal.Journal) *fiducial.Engine {
	p.do = func(context.Context, tool.Call) (tool.Output, error) {
		k.tick()
		return tool.Output{Summary: "ok"}, nil
	}
	h := &hooks{
		prompt:  func(fiducial.Invocation, *llm.Message) (fiducial.PromptAnswer, error) { k.tick(); return nil, nil },
		pending: func(fiducial.Invocation) ([]llm.Message, error) { k.tick(); return nil, nil },
		request: func(fiducial.Invocation, *llm.Request) (fiducial.RequestAnswer, error) { k.tick(); return nil, nil },
		after:   func(fiducial.Invocation, llm.Message) (fiducial.ResponseAnswer, error) { k.tick(); return nil, nil },
		pre:     func(fiducial.Invocation, *llm.Call) (fiducial.ToolAnswer, error) { k.tick(); return nil, nil },
		post: func(fiducial.Invocation, llm.Call, llm.Result) (fiducial.PostAnswer, error) {
			k.tick()
			return nil, nil
		},
		exit: func(fiducial.Invocation, fiducial.Outcome, error) error { k.tick(); return nil },
	}
	opts := []fiducial.Option{
		fiducial.WithTools(p.tool("look"), p.tool("edit", tool.Exclusive())), fiducial.WithInterceptor(h),
		fiducial.WithEvents(fiducial.EventFunc(func(fiducial.Event) { k.tick() })),
		fiducial.WithNotice(func(context.Context, []llm.Message) (string, error) { k.tick(); return "note", nil }),
		fiducial.WithCheckpoint(func(machine.Checkpoint) error { k.tick(); return nil }),
		fiducial.WithObserver(func(llm.Message) error { k.tick(); return nil }),
		fiducial.WithGrace(50 * time.Millisecond),
	}
	if j != nil {
		opts = append(opts, fiducial.WithJournal(j, "r"))
	}
	return fiducial.New(ticking{model, k}, opts...)
}

func tickedTurns() []llmtest.Turn {
	return []llmtest.Turn{llmtest.Call("look", "", "edit", "", "look", ""), llmtest.Call("edit", ""), llmtest.Say("done"), llmtest.Say("and again"), llmtest.Say("spare")}
}

// A context that ends at any moment of a run: the error says cancelled, the history
// can be sent, and the run goes on without running a call twice.
func TestCancelAtEachMoment(t *testing.T) {
	t.Parallel()
	atEachMoment(t, func(t *testing.T, k *ticks, l *fiducial.Locked) {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		k.do = cancel
		out, err := l.Run(ctx, llm.UserText("go"))
		if err != nil {
			wantErr(t, err, fiducial.ErrCancelled)
			equal(t, "reason", out.Reason, fiducial.Cancelled)
		}
	})
}

// The same for a pause from outside: it is no error, and nothing is lost.
func TestPauseAtEachMoment(t *testing.T) {
	t.Parallel()
	atEachMoment(t, func(t *testing.T, k *ticks, l *fiducial.Locked) {
		k.do = func() { l.Pause("now") }
		out, err := l.Run(t.Context(), llm.UserText("go"))
		if err != nil || out.Reason != fiducial.Paused && out.Reason != fiducial.Finished {
			t.Errorf("%v, %v", out.Reason, err)
		}
	})
}

func atEachMoment(t *testing.T, disturb func(*testing.T, *ticks, *fiducial.Locked)) {
	for _, stored := range []bool{false, true} {
		k := &ticks{}
		_, _, err := tickingEngine(k, &probe{}, llmtest.NewScript(tickedTurns()...), nil).Run(t.Context(), llm.UserText("go"))
		if err != nil {
			t.Fatal(err)
		}
		moments := k.n.Load()
		if moments < 60 {
			t.Errorf("only %d moments", moments)
		}
		var wg sync.WaitGroup
		for at := int64(1); at <= moments; at++ {
			wg.Go(func() {
				k := &ticks{}
				k.at.Store(at)
				var j journal.Journal
				if stored {
					j = journal.NewMemory()
				}
				p := &probe{}
				model := llmtest.NewScript(tickedTurns()...)
				l, err := tickingEngine(k, p, model, j).Lock()
				if err != nil {
					t.Error(err)
					return
				}
				disturb(t, k, l)
				if k.n.Load() < at {
					t.Errorf("moment %d never came", at)
				}
				k.at.Store(-1) // a call that was left behind may tick still
				out, err := l.Resume(t.Context())
				if errors.Is(err, fiducial.ErrNothing) { // disturbed before the input was taken
					out, err = l.Run(t.Context(), llm.UserText("go"))
				}
				if err != nil || out.Reason != fiducial.Finished {
					t.Errorf("moment %d, journal %t: resume: %v, %v", at, stored, out.Reason, err)
				}
				if err := machine.ValidateContext(l.History()); err != nil {
					t.Errorf("moment %d, journal %t: %v", at, stored, err)
				}
				p.once(t)
				paired(t, model)
			})
		}
		wg.Wait()
	}
}

// Outputs of any size and shape are history's as they are, and the model's as limits
// leave them.
func TestHugeAndOddOutputs(t *testing.T) {
	t.Parallel()
	for name, out := range map[string]tool.Output{
		"huge":          {Summary: "s", Content: strings.Repeat("0123456789abcdef", 4<<20)},
		"empty":         {},
		"nul and marks": {Summary: "\x00\ufeff\u202e", Content: "\x1b[31m"},
		"broken utf-8":  {Content: strings.Repeat("\xff\xfe", 1000)},
	} {
		p := &probe{do: func(context.Context, tool.Call) (tool.Output, error) { return out, nil }}
		model := llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x"))
		l, o, err := fiducial.New(model, fiducial.WithTools(p.tool("look", tool.WithTraits(tool.Traits{OutputLimit: -1}))),
			fiducial.WithJournal(journal.NewMemory(), "r")).Run(t.Context(), llm.UserText("go"))
		if err != nil || o.Reason != fiducial.Finished {
			t.Errorf("%s: %v, %v", name, o.Reason, err)
			continue
		}
		r := l.History()[2].Parts[0].(llm.Result)
		if want := strings.ToValidUTF8(out.Content, "\uFFFD"); r.Content != want && name != "broken utf-8" || r.Status != llm.StatusSuccess {
			t.Errorf("%s: %d bytes, want %d; %s", name, len(r.Content), len(want), r.Status)
		}
	}
}

// What a caller's function panics with is an error of the run that names its phase,
// and the run goes on afterwards.
func TestPanicsOfTheCaller(t *testing.T) {
	t.Parallel()
	once := func() func() {
		n := 0
		return func() {
			if n++; n == 1 {
				panic("ouch")
			}
		}
	}
	for name, c := range map[string]struct {
		opt  func(boom func()) fiducial.Option
		want error
	}{
		"prompt": {func(b func()) fiducial.Option {
			return with(&hooks{prompt: func(fiducial.Invocation, *llm.Message) (fiducial.PromptAnswer, error) { b(); return nil, nil }})
		}, fiducial.ErrInterceptor},
		"pending": {func(b func()) fiducial.Option {
			return with(&hooks{pending: func(fiducial.Invocation) ([]llm.Message, error) { b(); return nil, nil }})
		}, fiducial.ErrInterceptor},
		"request": {func(b func()) fiducial.Option {
			return with(&hooks{request: func(fiducial.Invocation, *llm.Request) (fiducial.RequestAnswer, error) { b(); return nil, nil }})
		}, fiducial.ErrInterceptor},
		"after": {func(b func()) fiducial.Option {
			return with(&hooks{after: func(fiducial.Invocation, llm.Message) (fiducial.ResponseAnswer, error) { b(); return nil, nil }})
		}, fiducial.ErrInterceptor},
		"pre": {func(b func()) fiducial.Option {
			return with(&hooks{pre: func(fiducial.Invocation, *llm.Call) (fiducial.ToolAnswer, error) { b(); return nil, nil }})
		}, fiducial.ErrInterceptor},
		"post": {func(b func()) fiducial.Option {
			return with(&hooks{post: func(fiducial.Invocation, llm.Call, llm.Result) (fiducial.PostAnswer, error) { b(); return nil, nil }})
		}, fiducial.ErrInterceptor},
		"notice": {func(b func()) fiducial.Option {
			return fiducial.WithNotice(func(context.Context, []llm.Message) (string, error) { b(); return "", nil })
		}, fiducial.ErrNotice},
		"save": {func(b func()) fiducial.Option {
			return fiducial.WithCheckpoint(func(machine.Checkpoint) error { b(); return nil })
		}, fiducial.ErrCheckpoint},
		"observe": {func(b func()) fiducial.Option {
			return fiducial.WithObserver(func(llm.Message) error { b(); return nil })
		}, fiducial.ErrHistory},
	} {
		p := &probe{}
		model := llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x"))
		l := mustLock(t, fiducial.New(model, fiducial.WithTools(p.tool("look")), c.opt(once())))
		_, err := l.Run(t.Context(), llm.UserText("go"))
		if !errors.Is(err, c.want) {
			t.Errorf("%s: %v", name, err)
		}
		if e, ok := errors.AsType[*tool.PanicError](err); !ok || e.Value != "ouch" || len(e.Stack) == 0 {
			t.Errorf("%s: the panic is not in %v", name, err)
		}
		out, err := l.Resume(t.Context())
		if errors.Is(err, fiducial.ErrNothing) {
			out, err = l.Run(t.Context(), llm.UserText("go"))
		}
		if err != nil || out.Reason != fiducial.Finished {
			t.Errorf("%s: resume: %v, %v", name, out.Reason, err)
		}
		p.once(t)
		paired(t, model)
	}
}

func with(h *hooks) fiducial.Option { return fiducial.WithInterceptor(h) }
