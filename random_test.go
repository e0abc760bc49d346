// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/machine"
	"github.com/fiducial-dev/fiducial/tool"
)

// plan is what goes on in one random run, drawn before it begins.
type plan struct {
	rounds  [][]string // tools of each reply
	delays  []int      // of each call, in ms
	faults  []int      // of each request: 0 none, 1 fails, 2 breaks, 3 hangs
	cancels []int      // ms after which each attempt is cancelled; 0 never
	pauses  []int      // the same for a pause
	expires []int      // the same for the loss of the lease
	appends int        // the append that fails, 0 none
	hook    int        // the pre-tool hook that pauses, 0 none
	fresh   []bool     // whether each attempt is made by a new engine
	notices bool
}

func draw(rt *rapid.T) plan {
	ints := func(name string, n, hi int) []int {
		return rapid.SliceOfN(rapid.IntRange(0, hi), n, n).Draw(rt, name)
	}
	p := plan{
		delays: ints("delays", 12, 400), faults: ints("faults", 12, 6), cancels: ints("cancels", 8, 1500), pauses: ints("pauses", 8, 1500),
		expires: ints("expires", 8, 2500), appends: rapid.IntRange(0, 15).Draw(rt, "append"), hook: rapid.IntRange(0, 6).Draw(rt, "hook"),
		fresh: rapid.SliceOfN(rapid.Bool(), 8, 8).Draw(rt, "fresh"), notices: rapid.Bool().Draw(rt, "notices"),
	}
	tools := rapid.SampledFrom([]string{"look", "edit", "fail", "crash"})
	for range rapid.IntRange(1, 4).Draw(rt, "rounds") {
		p.rounds = append(p.rounds, rapid.SliceOfN(tools, 1, 3).Draw(rt, "calls"))
	}
	return p
}

// world is what outlives the engines of a run.
type world struct {
	plan
	j        *journal.Memory
	f        *flaky
	calls    int
	requests int
	hooks    int
	ran      map[string]int
	wrong    []string
}

func (w *world) fault(format string, args ...any) {
	w.wrong = append(w.wrong, fmt.Sprintf(format, args...))
}

// Stream is the model: it answers by what it is shown.
func (w *world) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	n := w.requests
	w.requests++
	if err := machine.ValidateContext(req.Messages); err != nil {
		w.fault("request %d: %v", n, err)
	}
	replies := 0
	for _, m := range req.Messages {
		if m.Role == llm.RoleAssistant {
			replies++
		}
	}
	reply := llm.AssistantText("done")
	if replies < len(w.rounds) {
		reply = llm.AssistantCalls()
		for i, name := range w.rounds[replies] {
			reply.Parts = append(reply.Parts, llm.Call{ID: fmt.Sprintf("%d_%d", n, i), Name: name, Args: fmt.Sprintf(`{"n":%d}`, n)})
		}
	}
	if n < len(w.faults) {
		switch w.faults[n] {
		case 1:
			return failing(&llm.Error{Class: llm.ClassOverloaded})
		case 2:
			return failing(&llm.Error{Class: llm.ClassTransport}, llm.BlockStart{Kind: llm.BlockCall, Name: "edit"}, llm.BlockStop{})
		case 3:
			select {
			case <-time.After(300 * time.Millisecond):
			case <-ctx.Done():
				return failing(ctx.Err())
			}
		}
	}
	return collect.Events(collect.Reply{Message: reply})
}

func failing(err error, events ...llm.Event) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		for _, ev := range events {
			if !yield(ev, nil) {
				return
			}
		}
		yield(nil, err)
	}
}

type anyArgs struct {
	N int `json:"n"`
}

func (w *world) tool(name string, opts ...tool.Option) tool.Tool {
	return tool.Must(tool.New(name, "", func(ctx context.Context, _ anyArgs) (string, error) {
		call, _ := tool.FromContext(ctx)
		w.f.mu.Lock()
		w.ran[call.Key()]++
		if n := w.ran[call.Key()]; n > 1 && name != "look" {
			w.fault("%s ran %d times (%s)", call.Key(), n, name)
		}
		d := w.delays[w.calls%len(w.delays)]
		w.calls++
		w.f.mu.Unlock()
		time.Sleep(time.Duration(d) * time.Millisecond) // deaf to a cancel
		switch name {
		case "fail":
			return "", errors.New("no luck")
		case "crash":
			panic("bug")
		}
		return "ok", nil
	}, opts...))
}

func (w *world) engine(ev *events) *fiducial.Engine {
	h := &hooks{pre: func(fiducial.Invocation, *llm.Call) (fiducial.ToolAnswer, error) {
		if w.hooks++; w.hooks == w.hook {
			return fiducial.Pause{Reason: "hook"}, nil
		}
		return nil, nil
	}}
	opts := []fiducial.Option{
		fiducial.WithTools(w.tool("look", tool.ReadOnly()), w.tool("edit", tool.Exclusive()), w.tool("fail"), w.tool("crash")),
		fiducial.WithJournal(w.f, "r"), fiducial.WithInterceptor(h), fiducial.WithEvents(ev), fiducial.WithGrace(200 * time.Millisecond),
	}
	if w.notices {
		opts = append(opts, fiducial.WithNotice(func(_ context.Context, h []llm.Message) (string, error) { return fmt.Sprint("n", len(h)), nil }))
	}
	return fiducial.New(w, opts...)
}

// attempt runs or resumes once, with what the plan has for the n-th attempt.
func (w *world) attempt(t *testing.T, l *fiducial.Locked, ev *events, n int, input ...llm.Message) (fiducial.Outcome, error) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	after := func(list []int, f func()) {
		if n < len(list) && list[n] > 0 && list[n]%3 == 0 {
			timer := time.AfterFunc(time.Duration(list[n])*time.Millisecond, f)
			t.Cleanup(func() { timer.Stop() })
		}
	}
	after(w.cancels, cancel)
	after(w.pauses, func() { l.Pause("outside") })
	after(w.expires, func() { w.j.Expire("r") })
	before := len(ev.all)
	var out fiducial.Outcome
	var err error
	if len(input) > 0 {
		out, err = l.Run(ctx, input...)
	} else {
		out, err = l.Resume(ctx)
	}
	mine := &events{ev.all[before:]}
	if names := mine.names(); count[fiducial.RunFinished](mine) != 1 || names[len(names)-1] != "RunFinished" {
		w.fault("attempt %d: events %v (S-162)", n, names)
	}
	if (err != nil) != (out.Reason == fiducial.Failed || out.Reason == fiducial.Cancelled) {
		w.fault("attempt %d: %s with %v", n, out.Reason, err)
	}
	if errors.Is(err, fiducial.ErrState) || errors.Is(err, fiducial.ErrBusy) || errors.Is(err, fiducial.ErrPrefix) || errors.Is(err, fiducial.ErrConfig) {
		w.fault("attempt %d: the engine tripped over itself: %v", n, err)
	}
	return out, err
}

func (w *world) live(t *testing.T) {
	ev := &events{}
	l := mustLock(t, w.engine(ev))
	out, err := w.attempt(t, l, ev, 0, llm.UserText("go"))
	for n := 1; n < 40 && out.Reason != fiducial.Finished; n++ {
		if n < len(w.fresh) && w.fresh[n] {
			_ = l.Close(t.Context())
			w.j.Expire("r")
			ev = &events{}
			l = mustLock(t, w.engine(ev))
		}
		var input []llm.Message
		if errors.Is(err, fiducial.ErrNothing) || errors.Is(err, fiducial.ErrCancelled) && strings.Contains(err.Error(), "before") {
			input = append(input, llm.UserText("again"))
		}
		out, err = w.attempt(t, l, ev, n, input...)
	}
	if out.Reason != fiducial.Finished {
		w.fault("it never ended: %s, %v", out.Reason, err)
	}
	if err := machine.ValidateContext(l.History()); err != nil {
		w.fault("history: %v", err)
	}
	w.replay(t, l)
	time.Sleep(time.Minute) // what was left behind returns
}

// replay holds the history against what the journal says.
func (w *world) replay(t *testing.T, l *fiducial.Locked) {
	want := texts(l.History())
	if err := l.Close(t.Context()); err != nil {
		w.fault("close: %v", err)
	}
	other := mustLock(t, w.engine(&events{}))
	if err := other.Open(t.Context()); err != nil {
		w.fault("open: %v", err)
		return
	}
	if got := texts(other.History()); strings.Join(got, "\n") != strings.Join(want, "\n") {
		w.fault("the journal says\n%q, and it was\n%q", got, want)
	}
	_ = other.Close(t.Context())
}

// S-143, S-149, S-150, S-160, S-162, S-163: whatever comes together (cancels,
// pauses, lost leases, failing appends, broken streams, other processes), a run
// that is resumed ends; no request is unpaired, no call that may not be repeated
// runs twice, and the journal says what happened.
func TestRandomRuns(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		w := &world{plan: draw(rt), j: journal.NewMemory(), ran: map[string]int{}}
		w.f = &flaky{Journal: w.j, failAt: w.appends}
		synctest.Test(t, w.live)
		if len(w.wrong) > 0 {
			rt.Fatalf("%s", strings.Join(w.wrong, "\n"))
		}
	})
}
