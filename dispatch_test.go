// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/machine"
	"github.com/fiducial-dev/fiducial/tool"
)

// atTools calls f for each checkpoint at which calls are pending, with its number.
func atTools(f func(n int) error) fiducial.Option {
	n := 0
	return fiducial.WithCheckpoint(func(c machine.Checkpoint) error {
		if c.Pending == nil || c.Pending.Kind != machine.PendingTools {
			return nil
		}
		n++
		return f(n)
	})
}

// S-106: whoever ends the context before the calls run, none of them runs, and each is
// said not to have been executed; the first of two hooks that cancels is the last asked.
func TestS106_NothingStartsAfterTheCancel(t *testing.T) {
	for name, option := range map[string]func(cancel func(), started *int) []fiducial.Option{
		"in PreTool": func(cancel func(), _ *int) []fiducial.Option {
			return []fiducial.Option{with(&hooks{pre: func(inv fiducial.Invocation, _ *llm.Call) (fiducial.ToolAnswer, error) {
				if inv.Ordinal > 0 {
					t.Error("a hook was asked after the cancel")
				}
				cancel()
				return nil, nil
			}})}
		},
		"before they are recorded": func(cancel func(), _ *int) []fiducial.Option {
			return []fiducial.Option{atTools(func(n int) error { cancel(); return nil })}
		},
		"when they are recorded": func(cancel func(), _ *int) []fiducial.Option {
			return []fiducial.Option{atTools(func(n int) error {
				if n == 2 {
					cancel()
				}
				return nil
			})}
		},
		"when the first is shown": func(cancel func(), started *int) []fiducial.Option {
			return []fiducial.Option{fiducial.WithEvents(fiducial.EventFunc(func(ev fiducial.Event) {
				switch d := ev.Data.(type) {
				case fiducial.ToolStarted:
					*started++
					cancel()
				case fiducial.ToolFinished:
					*started--
					if d.Ran {
						t.Error("it is said to have run")
					}
				default:
				}
			}))}
		},
	} {
		for _, durable := range []bool{false, true} {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			p, started := &probe{}, 0
			opts := append(option(cancel, &started), fiducial.WithTools(p.tool("look")))
			if durable {
				opts = append(opts, fiducial.WithJournal(journal.NewMemory(), "r"))
			}
			model := llmtest.NewScript(llmtest.Call("look", "", "look", ""), llmtest.Say("x"))
			l, out, err := fiducial.New(model, opts...).Run(ctx, llm.UserText("go"))
			wantReason(t, out, err, fiducial.Cancelled)
			equal(t, name+": runs", p.count(), 0)
			equal(t, name+": shown as started and not as finished", started, 0)
			const none = "error=not executed: the run was cancelled"
			wantTexts(t, l.History()[2:], "tool: "+none+" "+none)
			out, err = l.Resume(t.Context())
			wantReason(t, out, err, fiducial.Finished)
			paired(t, model)
		}
	}
}

// S-106: calls that were armed when the checkpoint failed do not run under a context
// that has ended, and one that a lost process may have run is not said to be unexecuted.
func TestS106_ArmedCallsAndAnEndedContext(t *testing.T) {
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	p := &probe{}
	model := llmtest.NewScript(llmtest.Call("look", "", "look", ""), llmtest.Say("x"))
	l := mustLock(t, fiducial.New(model, fiducial.WithTools(p.tool("look")), atTools(func(n int) error {
		if n == 2 {
			return errors.New("disk")
		}
		return nil
	})))
	_, err := l.Run(t.Context(), llm.UserText("go"))
	wantErr(t, err, fiducial.ErrCheckpoint)
	out, err := l.Resume(ended)
	wantReason(t, out, err, fiducial.Cancelled)
	equal(t, "runs", p.count(), 0)
	for _, part := range l.History()[2].Parts {
		if r, ok := part.(llm.Result); !ok || !strings.Contains(r.Summary, "not executed") {
			t.Errorf("answered as %+v", part)
		}
	}
	out, err = l.Resume(t.Context())
	wantReason(t, out, err, fiducial.Finished)
	paired(t, model)
}

// S-106 and S-170: a repeatable call of a lost process whose repetition is cancelled
// before it starts may have run all the same.
func TestS106_ARepetitionThatIsCancelled(t *testing.T) {
	j := journal.NewMemory()
	hang := &probe{do: func(context.Context, tool.Call) (tool.Output, error) { panic("unused") }}
	first := fiducial.New(llmtest.NewScript(llmtest.Call("look", "")), fiducial.WithTools(hang.tool("look", tool.ReadOnly())),
		fiducial.WithJournal(j, "r"), fiducial.WithEvents(fiducial.EventFunc(func(ev fiducial.Event) {
			if _, ok := ev.Data.(fiducial.ToolStarted); ok {
				panic("the process ends here")
			}
		})))
	func() {
		defer func() { _ = recover() }()
		_, _, _ = first.Run(t.Context(), llm.UserText("go"))
	}()
	j.Expire("r")
	ctx, cancel := context.WithCancel(t.Context())
	p := &probe{}
	l := mustLock(t, fiducial.New(llmtest.NewScript(llmtest.Say("x")), fiducial.WithTools(p.tool("look", tool.ReadOnly())),
		fiducial.WithJournal(j, "r"), atTools(func(n int) error {
			if n == 2 {
				cancel()
			}
			return nil
		})))
	out, err := l.Resume(ctx)
	wantReason(t, out, err, fiducial.Cancelled)
	equal(t, "runs", p.count(), 0)
	r, _ := l.History()[2].Parts[0].(llm.Result)
	equal(t, "status", r.Status, llm.StatusUnknown)
}

// A hook may make calls of an exclusive tool of others: they run one at a time, and
// the calls around them do not run beside them (E-66).
func TestExclusiveAfterARename(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var inside, most, beside atomic.Int64
		alone := &probe{do: func(context.Context, tool.Call) (tool.Output, error) {
			n := inside.Add(1)
			most.Store(max(n, most.Load()))
			time.Sleep(time.Second)
			inside.Add(-1)
			return tool.Output{Summary: "ok"}, nil
		}}
		look := &probe{do: func(context.Context, tool.Call) (tool.Output, error) {
			time.Sleep(time.Second)
			beside.Add(inside.Load())
			return tool.Output{Summary: "ok"}, nil
		}}
		var asked []int
		h := &hooks{pre: func(inv fiducial.Invocation, c *llm.Call) (fiducial.ToolAnswer, error) {
			asked = append(asked, inv.Ordinal)
			if inv.Ordinal == 1 || inv.Ordinal == 2 {
				c.Name = "edit"
			}
			return nil, nil
		}}
		model := llmtest.NewScript(llmtest.Call("look", "", "look", "", "look", "", "look", "", "look", ""), llmtest.Say("x"))
		l, out, err := fiducial.New(model, fiducial.WithTools(look.tool("look"), alone.tool("edit", tool.Exclusive())), with(h)).
			Run(t.Context(), llm.UserText("go"))
		wantReason(t, out, err, fiducial.Finished)
		equal(t, "at once", most.Load(), 1)
		equal(t, "others beside it", beside.Load(), 0)
		equal(t, "runs", []int{alone.count(), look.count()}, []int{2, 3})
		if !slices.Equal(asked, []int{0, 1, 2, 3, 4}) {
			t.Errorf("asked for %v", asked)
		}
		paired(t, model)
		sendable(t, l.History())
	})
}
