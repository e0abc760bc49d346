// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/tool"
)

// Steering: what is sent while tools run, while a reply is written, or at the
// finish, stands behind the results and never between a call and its result; with
// a journal the key makes it one message.
func TestSendDuringARun(t *testing.T) {
	for _, where := range []string{"tools", "stream", "finish"} {
		for _, durable := range []bool{false, true} {
			t.Run(fmt.Sprint(where, " ", durable), func(t *testing.T) {
				var l *fiducial.Locked
				send := func(at string) {
					if at != where {
						return
					}
					for range 2 {
						if err := l.Send(t.Context(), "key", llm.UserText("also")); err != nil {
							t.Error(err)
						}
						if !durable {
							break // without a journal the key is not looked at
						}
					}
				}
				p := &probe{do: func(context.Context, tool.Call) (tool.Output, error) {
					send("tools")
					return tool.Output{Summary: "ok"}, nil
				}}
				model := llmtest.NewScript(
					slow(func(context.Context) { send("stream") }, llmtest.Call("look", "", "look", "")),
					slow(func(context.Context) { send("finish") }, llmtest.Say("first")), llmtest.Say("second"))
				opts := []fiducial.Option{fiducial.WithTools(p.tool("look")), fiducial.WithSequentialCalls()}
				if durable {
					opts = append(opts, fiducial.WithJournal(journal.NewMemory(), "r"))
				}
				l = mustLock(t, fiducial.New(model, opts...))
				if where == "tools" && !durable {
					p.do = func(_ context.Context, c tool.Call) (tool.Output, error) {
						if c.Ordinal == 0 {
							send("tools")
						}
						return tool.Output{Summary: "ok"}, nil
					}
				}
				out, err := l.Run(t.Context(), llm.UserText("go"))
				wantReason(t, out, err, fiducial.Finished)
				if where == "finish" {
					wantTexts(t, l.History(), "user: go", "assistant: look() look()", "tool: success=ok success=ok", "assistant: first", "user: also", "assistant: second")
				} else {
					wantTexts(t, l.History(), "user: go", "assistant: look() look()", "tool: success=ok success=ok", "user: also", "assistant: first")
				}
				paired(t, model)
			})
		}
	}
}

// What is sent to an idle engine is taken up by its next run, or by a Resume of a
// finished one; what an observer refuses is not lost.
func TestSendToAnIdleEngine(t *testing.T) {
	refuse := true
	j := journal.NewMemory()
	for _, opts := range [][]fiducial.Option{nil, {fiducial.WithJournal(j, "r")}} {
		refuse = true
		model := llmtest.NewScript(llmtest.Say("x"), llmtest.Say("y"))
		l := mustLock(t, fiducial.New(model, append(opts, fiducial.WithObserver(func(m llm.Message) error {
			if refuse && m.Text() == "later" {
				return errors.New("not now")
			}
			return nil
		}))...))
		if _, err := l.Run(t.Context(), llm.UserText("go")); err != nil {
			t.Fatal(err)
		}
		if err := l.Send(t.Context(), "k", llm.UserText("later")); err != nil {
			t.Fatal(err)
		}
		_, err := l.Resume(t.Context())
		wantErr(t, err, fiducial.ErrHistory)
		refuse = false
		out, err := l.Resume(t.Context())
		wantReason(t, out, err, fiducial.Finished)
		wantTexts(t, l.History(), "user: go", "assistant: x", "user: later", "assistant: y")
		wantErr(t, l.Send(t.Context(), "k2", llm.AssistantText("me")), fiducial.ErrState)
	}
	l := mustLock(t, fiducial.New(llmtest.NewScript(), fiducial.WithJournal(journal.NewMemory(), "r")))
	wantErr(t, l.Send(t.Context(), "k", llm.UserText("x")), journal.ErrNotFound)
}

// Sending and looking from other goroutines is safe during a run (go test -race).
func TestConcurrentUse(t *testing.T) {
	p := &probe{}
	var turns []llmtest.Turn
	for i := range 200 {
		turns = append(turns, llmtest.ReplyUsage(llm.AssistantCalls(llm.Call{ID: fmt.Sprint(i), Name: "look"}), llm.Usage{Input: llm.N(int64(10 * i)), CacheRead: llm.N(1)}))
	}
	for range 600 { // each message that is sent may ask for one more reply
		turns = append(turns, llmtest.Say("done"))
	}
	l := mustLock(t, fiducial.New(llmtest.NewScript(turns...), fiducial.WithTools(p.tool("look")), fiducial.WithLoopGuard(0), fiducial.WithPruning(fiducial.PruneConfig{})))
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				_, _ = l.Run(t.Context())
				if i < 100 {
					_ = l.Send(t.Context(), "", llm.UserText("x"))
				}
				_ = l.Estimate(len(l.History()))
				_ = l.ObserverError()
				_ = l.Notes()
				l.Pause("")
				time.Sleep(50 * time.Microsecond)
			}
		})
	}
	for range 400 {
		out, err := l.Resume(t.Context())
		if errors.Is(err, fiducial.ErrBusy) || errors.Is(err, fiducial.ErrNothing) || out.Reason == fiducial.Paused {
			time.Sleep(50 * time.Microsecond)
			continue
		}
		if p.count() >= 200 {
			break
		}
	}
	close(stop)
	wg.Wait()
	p.once(t)
}

// E-16, E-48, E-50, E-55, E-150: Pause from outside while a reply is written, while a
// request is retried, while calls run. Resume goes on, in another process too.
func TestPauseFromOutside(t *testing.T) {
	busy := &llm.Error{Class: llm.ClassOverloaded, RetryAfter: 10 * time.Second}
	for _, c := range []struct {
		name    string
		first   llmtest.Turn
		at      time.Duration
		history []string
		runs    int
	}{
		{"stream", llmtest.Wait(llm.BlockStart{}, llm.BlockDelta{Text: "half"}, llm.UsageReport{Usage: llm.Usage{Input: llm.N(3)}}), time.Second, []string{"user: go"}, 0},
		{"wait", llmtest.Fail(busy), time.Second, []string{"user: go"}, 0},
		{"tools", sleepCalls(3000, "a", 2000, "b"), time.Second, nil, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j, ev := journal.NewMemory(), &events{}
				var mu sync.Mutex
				var ran []string
				log := func(s string) { mu.Lock(); ran = append(ran, s); mu.Unlock() }
				turns := []llmtest.Turn{c.first, llmtest.Say("done")}
				model := llmtest.NewScript(turns...)
				opts := []fiducial.Option{fiducial.WithTools(sleeper(log)), fiducial.WithJournal(j, "r"), fiducial.WithEvents(ev)}
				l := mustLock(t, fiducial.New(model, opts...))
				time.AfterFunc(c.at, func() { l.Pause("lunch") })
				began := time.Now()
				out, err := l.Run(t.Context(), llm.UserText("go"))
				wantReason(t, out, err, fiducial.Paused)
				equal(t, "why", out.Detail, "lunch")
				if c.name == "tools" {
					equal(t, "time", time.Since(began), 3*time.Second) // started calls are waited for
					wantTexts(t, l.History()[2:], "tool: success=a success=b")
				} else {
					equal(t, "time", time.Since(began), c.at)
					wantTexts(t, l.History(), c.history...)
				}
				if c.name == "stream" {
					equal(t, "resets", count[fiducial.DraftReset](ev), 1)
					equal(t, "usage", out.Usage.Input, llm.N(3))
				}
				_ = l.Close(t.Context())
				l = mustLock(t, fiducial.New(model, opts...))
				out, err = l.Resume(t.Context())
				wantReason(t, out, err, fiducial.Finished)
				equal(t, "answer", out.Text(), "done")
				equal(t, "calls", len(ran), 2*c.runs)
				paired(t, model)
			})
		})
	}
	// A pause of nothing does nothing.
	l := mustLock(t, fiducial.New(llmtest.NewScript(llmtest.Say("x"))))
	l.Pause("early")
	out, err := l.Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.Finished)
}

// E-56: a pause between two groups of a batch leaves the rest unstarted, and
// Resume in another process runs just that.
func TestPauseBetweenGroups(t *testing.T) {
	j, p := journal.NewMemory(), &probe{}
	var l *fiducial.Locked
	p.do = func(_ context.Context, c tool.Call) (tool.Output, error) {
		if p.count() == 1 {
			l.Pause("after the first")
		}
		return tool.Output{Summary: fmt.Sprint(c.Ordinal)}, nil
	}
	model := llmtest.NewScript(llmtest.Call("look", "", "look", "", "look", ""), llmtest.Say("x"))
	opts := []fiducial.Option{fiducial.WithTools(p.tool("look", tool.Exclusive())), fiducial.WithJournal(j, "r")}
	l = mustLock(t, fiducial.New(model, opts...))
	out, err := l.Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.Paused)
	equal(t, "runs", p.count(), 1)
	_ = l.Close(t.Context())
	l = mustLock(t, fiducial.New(model, opts...))
	out, err = l.Resume(t.Context())
	wantReason(t, out, err, fiducial.Finished)
	wantTexts(t, l.History()[2:3], "tool: success=0 success=1 success=2")
	p.once(t)
}

// Stream yields every event and the error last; leaving it cancels the run and
// waits for it.
func TestStream(t *testing.T) {
	p := &probe{}
	l := mustLock(t, fiducial.New(llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x"), llmtest.Fail(errors.New("bad")), llmtest.Say("y")), fiducial.WithTools(p.tool("look"))))
	got := &events{}
	for ev, err := range l.Stream(t.Context(), llm.UserText("go")) {
		if err != nil {
			t.Fatal(err)
		}
		got.Emit(ev)
	}
	names := got.names()
	equal(t, "first and last", []string{names[0], names[len(names)-1]}, []string{"RunStarted", "RunFinished"})
	var last error
	n := 0
	for ev, err := range l.Stream(t.Context(), llm.UserText("more")) {
		last = err
		if _, ok := ev.Data.(fiducial.RunFinished); ok {
			n++
		}
	}
	wantErr(t, last, fiducial.ErrGeneration)
	equal(t, "ends", n, 1)
	for range l.StreamResume(t.Context()) {
	}
	wantTexts(t, l.History()[len(l.History())-1:], "assistant: y")
}

func TestLeavingAStreamEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var cause error
		stops := tool.Must(tool.New("stops", "", func(ctx context.Context, _ noArgs) (string, error) {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return "", ctx.Err()
		}))
		quick := &probe{}
		l := mustLock(t, fiducial.New(llmtest.NewScript(llmtest.Call("stops", "", "quick", ""), llmtest.Say("x")), fiducial.WithTools(stops, quick.tool("quick"))))
		for ev := range l.Stream(t.Context(), llm.UserText("go")) {
			if _, ok := ev.Data.(fiducial.ToolFinished); ok {
				break
			}
		}
		if cause == nil || !strings.Contains(cause.Error(), "left") {
			t.Errorf("cause %v", cause)
		}
		sendable(t, l.History())
		out, err := l.Run(t.Context(), llm.UserText("again"))
		wantReason(t, out, err, fiducial.Finished)
	})
}

// A panic in a sink, or in the body of a loop over a stream, is the caller's: it
// goes through, and the run can be resumed; no call runs twice.
func TestPanicInASink(t *testing.T) {
	for _, durable := range []bool{false, true} {
		for _, at := range []string{"fiducial.GenerationStarted", "fiducial.Delta", "fiducial.GenerationFinished", "fiducial.ToolStarted", "fiducial.ToolFinished", "fiducial.RunFinished"} {
			p := &probe{}
			model := llmtest.NewScript(llmtest.Call("look", "", "look", ""), llmtest.Say("x"), llmtest.Say("y"), llmtest.Say("z"))
			opts := []fiducial.Option{fiducial.WithTools(p.tool("look"))}
			if durable {
				opts = append(opts, fiducial.WithJournal(journal.NewMemory(), "r"))
			}
			l := mustLock(t, fiducial.New(model, opts...))
			func() {
				defer func() {
					if got := recover(); got != at {
						t.Errorf("%s: recovered %v", at, got)
					}
				}()
				for ev := range l.Stream(t.Context(), llm.UserText("go")) {
					if fmt.Sprintf("%T", ev.Data) == at {
						panic(at)
					}
				}
			}()
			out, err := l.Resume(t.Context())
			wantReason(t, out, err, fiducial.Finished)
			sendable(t, l.History())
			paired(t, model)
			p.once(t)
			out, err = l.Run(t.Context(), llm.UserText("again"))
			wantReason(t, out, err, fiducial.Finished)
		}
	}
}

// A client's faults are errors of the request: a panic, no sequence at all, no
// event, events after an error, an end without Finish.
func TestFaultyClients(t *testing.T) {
	type stream = iter.Seq2[llm.Event, error]
	boom := errors.New("boom")
	for name, c := range map[string]struct {
		turn  llmtest.Turn
		retry bool
	}{
		"panics":        {func(context.Context, *llm.Request) stream { panic("ouch") }, false},
		"panics inside": {func(context.Context, *llm.Request) stream { return func(func(llm.Event, error) bool) { panic("ouch") } }, false},
		"nil sequence":  {func(context.Context, *llm.Request) stream { return nil }, false},
		"nil event": {func(context.Context, *llm.Request) stream {
			return func(yield func(llm.Event, error) bool) { yield(nil, nil) }
		}, true},
		"no end": {llmtest.Break(nil, llm.BlockStart{}, llm.BlockDelta{Text: "half"}), true},
		"goes on after an error": {func(context.Context, *llm.Request) stream {
			return func(yield func(llm.Event, error) bool) {
				yield(nil, boom)
				yield(llm.BlockStart{}, nil)
				yield(llm.Finish{Stop: llm.StopEndTurn}, nil)
			}
		}, false},
		"two blocks of one index": {llmtest.Break(nil, llm.BlockStart{}, llm.BlockStart{}), true},
		"tool use without calls":  {llmtest.Break(nil, llm.Finish{Stop: llm.StopToolUse}), true},
	} {
		model := llmtest.NewScript(c.turn, llmtest.Say("x"))
		l, out, err := fiducial.New(model, fiducial.WithRetry(fiducial.RetryPolicy{Base: 1})).Run(t.Context(), llm.UserText("go"))
		if c.retry {
			wantReason(t, out, err, fiducial.Finished)
			wantTexts(t, l.History(), "user: go", "assistant: x")
			continue
		}
		wantErr(t, err, fiducial.ErrGeneration)
		if strings.HasPrefix(name, "panics") {
			if p, ok := errors.AsType[*tool.PanicError](err); !ok || p.Value != "ouch" {
				t.Errorf("%s: %v", name, err)
			}
		}
		out, err = l.Resume(t.Context())
		wantReason(t, out, err, fiducial.Finished)
	}
}

// S-121 to S-126, S-117, E-144 to E-158, S-138: retries send the same input, drop
// the draft, leave nothing in history, and are told.
func TestS122_Retry(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ev := &events{}
		notices := 0
		model := llmtest.NewScript(
			llmtest.Fail(&llm.Error{Class: llm.ClassServer, Status: 500}),
			llmtest.Break(&llm.Error{Class: llm.ClassTransport}, llm.BlockStart{Kind: llm.BlockCall, Name: "look"}, llm.BlockDelta{Text: "{}"}, llm.BlockStop{},
				llm.UsageReport{Usage: llm.Usage{Input: llm.N(5)}}, llm.UsageReport{Usage: llm.Usage{Output: llm.N(1)}}, llm.UsageReport{Usage: llm.Usage{Input: llm.N(6)}}),
			llmtest.Fail(&llm.Error{Class: llm.ClassRateLimit, RetryAfter: 7 * time.Second}),
			llmtest.ReplyUsage(llm.AssistantText("x"), llm.Usage{Input: llm.N(10), Output: llm.N(2)}))
		p := &probe{}
		began := time.Now()
		l, out := mustRun(t, fiducial.New(model, fiducial.WithTools(p.tool("look")), fiducial.WithEvents(ev),
			fiducial.WithRetry(fiducial.RetryPolicy{Jitter: func(d time.Duration) time.Duration { return d }}),
			fiducial.WithNotice(func(context.Context, []llm.Message) (string, error) { notices++; return fmt.Sprint("n", notices), nil })), "go")
		equal(t, "time", time.Since(began), 500*time.Millisecond+time.Second+7*time.Second)
		equal(t, "notices", notices, 1)
		for i, r := range model.Requests() {
			wantTexts(t, r.Messages, "user: go [n1]")
			if i > 4 {
				t.Error("too many requests")
			}
		}
		wantTexts(t, l.History(), "user: go [n1]", "assistant: x")
		equal(t, "runs of a broken reply's call", p.count(), 0)
		equal(t, "usage (E-172)", out.Usage, llm.Usage{Input: llm.N(16), Output: llm.N(3)})
		equal(t, "requests and turns", [2]int{out.Requests, out.Turns}, [2]int{4, 1})
		equal(t, "events", ev.names(), []string{
			"RunStarted", "NoticeAdded", "GenerationStarted", "GenerationRetry", "GenerationStarted", "DraftReset", "GenerationRetry",
			"GenerationStarted", "GenerationRetry", "GenerationStarted", "GenerationFinished", "RunFinished",
		})
		var waits []time.Duration
		for _, e := range ev.all {
			if r, ok := e.Data.(fiducial.GenerationRetry); ok {
				waits = append(waits, r.Wait)
				equal(t, "attempt", [2]int{r.Attempt, r.Max}, [2]int{len(waits), 4})
			}
		}
		equal(t, "waits", waits, []time.Duration{500 * time.Millisecond, time.Second, 7 * time.Second})
	})
}

// E-146, S-124, S-125: when retrying ends.
func TestS124_RetryLimits(t *testing.T) {
	busy := func(after time.Duration) llmtest.Turn {
		return llmtest.Fail(&llm.Error{Class: llm.ClassOverloaded, RetryAfter: after})
	}
	full := func(d time.Duration) time.Duration { return d }
	for name, c := range map[string]struct {
		turns    []llmtest.Turn
		policy   fiducial.RetryPolicy
		requests int
		took     time.Duration
		check    func(error) bool
	}{
		"attempts":           {slices.Repeat([]llmtest.Turn{busy(0)}, 9), fiducial.RetryPolicy{Jitter: full}, 4, 3500 * time.Millisecond, isOverloaded},
		"off":                {[]llmtest.Turn{busy(0)}, fiducial.RetryPolicy{Attempts: 1}, 1, 0, isOverloaded},
		"not retryable":      {[]llmtest.Turn{llmtest.Fail(&llm.Error{Class: llm.ClassAuth})}, fiducial.RetryPolicy{}, 1, 0, func(err error) bool { return llm.ClassOf(err) == llm.ClassAuth }},
		"unknown error":      {[]llmtest.Turn{llmtest.Fail(errors.New("?"))}, fiducial.RetryPolicy{}, 1, 0, func(error) bool { return true }},
		"server wait > cap":  {[]llmtest.Turn{busy(31 * time.Second)}, fiducial.RetryPolicy{}, 1, 0, isWait},
		"server wait > rest": {[]llmtest.Turn{busy(20 * time.Second), busy(20 * time.Second)}, fiducial.RetryPolicy{Total: 30 * time.Second}, 2, 20 * time.Second, isWait},
		"an attempt that hangs": {
			[]llmtest.Turn{busy(time.Second), llmtest.Wait()},
			fiducial.RetryPolicy{Total: 10 * time.Second},
			2, 10 * time.Second,
			func(err error) bool { return llm.ClassOf(err) == llm.ClassTimeout },
		},
		"large base": {slices.Repeat([]llmtest.Turn{busy(0)}, 9), fiducial.RetryPolicy{Base: 1 << 62, Jitter: full}, 4, 90 * time.Second, isOverloaded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				model := llmtest.NewScript(c.turns...)
				began := time.Now()
				_, out, err := fiducial.New(model, fiducial.WithRetry(c.policy)).Run(t.Context(), llm.UserText("go"))
				wantReason(t, out, err, fiducial.Failed)
				wantErr(t, err, fiducial.ErrGeneration)
				equal(t, "requests", len(model.Requests()), c.requests)
				equal(t, "time", time.Since(began), c.took)
				if !c.check(err) {
					t.Errorf("error %v", err)
				}
			})
		})
	}
}

func isOverloaded(err error) bool { return llm.ClassOf(err) == llm.ClassOverloaded }

func isWait(err error) bool {
	w, ok := errors.AsType[*fiducial.WaitError](err)
	return ok && w.Wait > w.Limit && isOverloaded(err)
}

// WithRequestTimeout limits one attempt, which is then retried.
func TestRequestTimeout(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		model := llmtest.NewScript(llmtest.Wait(llm.BlockStart{}), llmtest.Say("x"))
		began := time.Now()
		_, out := mustRun(t, fiducial.New(model, fiducial.WithRequestTimeout(5*time.Second), fiducial.WithRetry(fiducial.RetryPolicy{Base: 1})), "go")
		equal(t, "answer", out.Text(), "x")
		if d := time.Since(began).Round(time.Second); d != 5*time.Second {
			t.Errorf("took %v", d)
		}
	})
}

// S-113 to S-119, S-156: where a notice goes.
func TestS113_Notices(t *testing.T) {
	p := &probe{}
	n := 0
	model := llmtest.NewScript(llmtest.Call("look", "", "look", ""), llmtest.Say("x"), llmtest.Say("y"))
	l, _ := mustRun(t, fiducial.New(model, fiducial.WithTools(p.tool("look")), fiducial.WithNotice(func(_ context.Context, h []llm.Message) (string, error) {
		n++
		return fmt.Sprintf("n%d of %d", n, len(h)), nil
	})), "go")
	if _, err := l.Run(t.Context()); err != nil { // the last message is the model's
		t.Fatal(err)
	}
	wantTexts(t, l.History(), "user: go [n1 of 1]", "assistant: look() look()", "tool: success=ok success=ok\nn2 of 3", "assistant: x", "user: [n3 of 4]", "assistant: y")
	boom := errors.New("boom")
	_, _, err := fiducial.New(llmtest.NewScript(), fiducial.WithNotice(func(context.Context, []llm.Message) (string, error) { return "", boom })).Run(t.Context(), llm.UserText("go"))
	wantErr(t, err, fiducial.ErrNotice)
	wantErr(t, err, boom)
}

// A notice that was added is not added again after a pause or in another process;
// one that was not asked for yet is.
func TestS170_NoticeOncePerGeneration(t *testing.T) {
	for _, early := range []bool{false, true} {
		j := journal.NewMemory()
		n := 0
		notice := fiducial.WithNotice(func(context.Context, []llm.Message) (string, error) { n++; return fmt.Sprint("n", n), nil })
		h := &hooks{}
		if early {
			h.pending = func(inv fiducial.Invocation) ([]llm.Message, error) { return nil, errors.New("down") }
		} else {
			h.request = func(fiducial.Invocation, *llm.Request) (fiducial.RequestAnswer, error) { return fiducial.Pause{}, nil }
		}
		model := llmtest.NewScript(llmtest.Say("x"))
		l, _, _ := fiducial.New(model, notice, fiducial.WithInterceptor(h), fiducial.WithJournal(j, "r")).Run(t.Context(), llm.UserText("go"))
		_ = l.Close(t.Context())
		l = mustLock(t, fiducial.New(model, notice, fiducial.WithJournal(j, "r")))
		out, err := l.Resume(t.Context())
		wantReason(t, out, err, fiducial.Finished)
		if early { // nobody knows whether the input was sent, so it is left as it is
			wantTexts(t, l.History(), "user: go", "user: [n1]", "assistant: x")
		} else {
			wantTexts(t, l.History(), "user: go [n1]", "assistant: x")
		}
	}
}

// Secrets never become history: they are masked in every text from outside, and a
// call whose arguments hold one is answered and not run, now or after a crash.
func TestSecretsAreMasked(t *testing.T) {
	p, j := &probe{}, journal.NewMemory()
	p.do = func(context.Context, tool.Call) (tool.Output, error) {
		return tool.Output{Summary: "s hunter2", Content: "c hunter2"}, nil
	}
	reply := llm.Message{Role: llm.RoleAssistant, Stop: llm.StopToolUse, Parts: []llm.Part{
		llm.Thinking{Text: "hunter2", Opaque: llm.Opaque{Vendor: "v", Data: []byte(`"sig"`)}},
		llm.Thinking{Text: "is hunter2"},
		llm.Text{Text: "say hunter2"},
		llm.Call{ID: "1", Name: "look", Args: `{"x":"hunter2"}`},
		llm.Call{ID: "2", Name: "look", Args: `{}`},
	}}
	h := &hooks{after: func(fiducial.Invocation, llm.Message) (fiducial.ResponseAnswer, error) {
		return fiducial.ContinueWith{Messages: []llm.Message{llm.UserText("hook hunter2")}}, nil
	}}
	ev := &events{}
	model := llmtest.NewScript(llmtest.Reply(reply), llmtest.Say("done"), llmtest.Say("done"), llmtest.Say("done"), llmtest.Say("done"))
	eng := fiducial.New(model, fiducial.WithTools(p.tool("look")), fiducial.WithInterceptor(h), fiducial.WithJournal(j, "r"), fiducial.WithMask(maskOf("hunter2")),
		fiducial.WithEvents(ev), fiducial.WithTurnLimit(2),
		fiducial.WithNotice(func(context.Context, []llm.Message) (string, error) { return "note hunter2", nil }))
	l, out, err := eng.Run(t.Context(), llm.UserText("I am hunter2"))
	wantReason(t, out, err, fiducial.LimitReached)
	for rec, err := range j.Read(t.Context(), "r", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if s := fmt.Sprintf("%+v", rec.Body); strings.Contains(s, "hunter2") {
			t.Errorf("record %d: %s", rec.Seq, s)
		}
		if n, ok := rec.Body.(journal.Note); ok && strings.Contains(string(n.Data), "hunter2") {
			t.Errorf("note %s: %s", n.Kind, n.Data)
		}
	}
	equal(t, "runs", p.count(), 1)
	equal(t, "tool events", count[fiducial.ToolFinished](ev), 2)
	hist := texts(l.History())
	if want := "user: I am *** [note ***]"; hist[0] != want {
		t.Errorf("%s, want %s", hist[0], want)
	}
	if !strings.Contains(hist[2], "arguments hold a secret") || !strings.Contains(hist[2], "success=s ***\nc ***") {
		t.Errorf("results: %s", hist[2])
	}
	equal(t, "parts of the reply (the signed thought is gone)", len(l.History()[1].Parts), 4)
}

type maskOf string

func (m maskOf) Text(s string) string { return strings.ReplaceAll(s, string(m), "***") }
func (m maskOf) Found(s string) bool  { return strings.Contains(s, string(m)) }

// E-198, E-199: observers see each message before it is history and may refuse it.
func TestE198_Observers(t *testing.T) {
	for _, refuse := range []string{"user: go", "assistant: look()", "tool: success=ok", "assistant: x"} {
		p := &probe{}
		var seen []string
		model := llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x"))
		no := errors.New("no")
		l, out, err := fiducial.New(model, fiducial.WithTools(p.tool("look")), fiducial.WithObserver(func(m llm.Message) error {
			s := texts([]llm.Message{m})[0]
			seen = append(seen, s)
			if s == refuse {
				return no
			}
			return nil
		})).Run(t.Context(), llm.UserText("go"))
		wantReason(t, out, err, fiducial.Failed)
		wantErr(t, err, fiducial.ErrHistory)
		wantErr(t, err, no)
		e, _ := errors.AsType[*fiducial.Error](err)
		equal(t, "kind", e.Kind, fiducial.KindHistory)
		if slices.Contains(texts(l.History()), refuse) {
			t.Errorf("%s is history", refuse)
		}
		if strings.HasPrefix(refuse, "assistant: look") {
			equal(t, "runs", p.count(), 0)
		}
		equal(t, "last seen", seen[len(seen)-1], refuse)
	}
}

// S-141: trace contexts.
func TestS141_Trace(t *testing.T) {
	root := fiducial.RootTrace("s", "t")
	nested := root.Nested()
	if root.ID == "" || nested.ID == root.ID || nested.Parent != root.ID || nested.Depth != 1 || nested.Session != "s" || root.Depth != 0 {
		t.Errorf("%+v %+v", root, nested)
	}
	ev := &events{}
	mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Say("x")), fiducial.WithEvents(ev), fiducial.WithTrace(nested)), "go")
	for _, e := range ev.all {
		equal(t, "trace", e.Trace, nested)
	}
	mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Say("x")), fiducial.WithEvents(fiducial.NullSink{})), "go")
}
