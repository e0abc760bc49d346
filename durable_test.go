// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"slices"
	"strings"
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

// stores are the journals that ship with the root module.
func stores(t *testing.T, f func(t *testing.T, open func() journal.Journal)) {
	t.Run("memory", func(t *testing.T) { f(t, func() journal.Journal { return journal.NewMemory() }) })
	t.Run("folder", func(t *testing.T) {
		f(t, func() journal.Journal {
			j, err := journal.OpenFolder(t.TempDir(), journal.FolderOptions{})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = j.Close() })
			return j
		})
	})
}

// the run of the crash tests: two rounds of calls, one of them exclusive, and an
// answer.
func rounds() []llmtest.Turn {
	return []llmtest.Turn{llmtest.Call("look", "", "edit", ""), llmtest.Call("edit", "{}", "nowhere", "{}"), llmtest.Say("done")}
}

var roundsHistory = []string{
	"user: go", "assistant: look() edit()", "tool: success=ok success=ok",
	"assistant: edit({}) nowhere({})", `tool: success=ok error=there is no tool "nowhere"; the tools are: ["edit" "look"]`, "assistant: done",
}

type crashRun struct {
	model *llmtest.Script
	p     *probe
	ev    *events
	opts  []fiducial.Option
}

func newCrashRun(j journal.Journal, more ...fiducial.Option) *crashRun {
	c := &crashRun{model: llmtest.NewScript(rounds()...), p: &probe{}, ev: &events{}}
	c.opts = append([]fiducial.Option{
		fiducial.WithTools(c.p.tool("look", tool.ReadOnly()), c.p.tool("edit", tool.Exclusive())),
		fiducial.WithEvents(c.ev), fiducial.WithJournal(j, "r"),
	}, more...)
	return c
}

func (c *crashRun) wantWhole(t *testing.T, l *fiducial.Locked, out fiducial.Outcome, err error) {
	t.Helper()
	wantReason(t, out, err, fiducial.Finished)
	wantTexts(t, l.History(), roundsHistory...)
	equal(t, "generations", len(c.model.Requests()), 3)
	c.p.once(t)
	equal(t, "runs of tools", c.p.count(), 3)
	equal(t, "committed", count[fiducial.GenerationCommitted](c.ev), 3)
}

// S-84, S-136, S-137, E-159: what the journal holds, and the events of a run.
func TestS136_EventsOfARound(t *testing.T) {
	c := newCrashRun(journal.NewMemory())
	l, out, err := fiducial.New(c.model, c.opts...).Run(t.Context(), llm.UserText("go"))
	c.wantWhole(t, l, out, err)
	equal(t, "events", c.ev.names(), []string{
		"RunStarted",
		"GenerationStarted", "GenerationFinished", "GenerationCommitted", "ToolStarted", "ToolFinished", "ToolStarted", "ToolFinished",
		"GenerationStarted", "GenerationFinished", "GenerationCommitted", "ToolStarted", "ToolFinished", "ToolStarted", "ToolFinished",
		"GenerationStarted", "GenerationFinished", "GenerationCommitted", "RunFinished",
	})
	for i, ev := range c.ev.all {
		if ev.Seq != uint64(i+1) {
			t.Fatalf("event %d has number %d", i, ev.Seq)
		}
	}
}

// S-86, S-90, ★9: whichever append fails, the run stops there with a typed error
// and nothing more is dispatched; Checkpoint, or Resume by itself, goes on, and no
// reply is asked for and no call is run a second time.
func TestS90_EveryAppendFailsOnce(t *testing.T) {
	stores(t, func(t *testing.T, open func() journal.Journal) {
		for n := 1; ; n++ {
			f := &flaky{Journal: open(), failAt: n}
			c := newCrashRun(f)
			var dispatched int
			l := mustLock(t, fiducial.New(c.model, c.opts...))
			out, err := l.Run(t.Context(), llm.UserText("go"))
			if f.appends < n {
				c.wantWhole(t, l, out, err)
				if n < 10 {
					t.Fatalf("only %d appends", n)
				}
				return
			}
			wantReason(t, out, err, fiducial.Failed)
			wantErr(t, err, fiducial.ErrJournal)
			wantErr(t, err, errDisk)
			equal(t, "ends", count[fiducial.RunFinished](c.ev), 1)
			dispatched = len(c.model.Requests()) + c.p.count()
			if _, pending := l.History(), true; pending && n%2 == 0 {
				if err := l.Checkpoint(t.Context()); err != nil {
					t.Fatalf("append %d: checkpoint: %v", n, err)
				}
				equal(t, "a checkpoint dispatches nothing", len(c.model.Requests())+c.p.count(), dispatched)
			}
			out, err = l.Resume(t.Context())
			if n == 1 && errors.Is(err, fiducial.ErrNothing) {
				out, err = l.Run(t.Context(), llm.UserText("go"))
			}
			if err != nil {
				t.Fatalf("append %d: resume: %v", n, err)
			}
			c.wantWhole(t, l, out, err)
			if t.Failed() {
				t.Fatalf("append %d", n)
			}
		}
	})
}

// S-90: as long as what happened is not stored, a new run is refused as busy.
func TestS90_RunIsRefusedWhileBehind(t *testing.T) {
	f := &flaky{Journal: journal.NewMemory(), failAt: 3, forever: true}
	c := newCrashRun(f)
	l := mustLock(t, fiducial.New(c.model, c.opts...))
	_, err := l.Run(t.Context(), llm.UserText("go"))
	wantErr(t, err, errDisk)
	_, err = l.Run(t.Context(), llm.UserText("other"))
	wantErr(t, err, fiducial.ErrBusy)
	wantErr(t, l.Checkpoint(t.Context()), errDisk)
	_, err = l.Resume(t.Context())
	wantErr(t, err, errDisk)
	f.failAt = 0
	out, err := l.Resume(t.Context())
	c.wantWhole(t, l, out, err)

	fails := 3 // the reply
	p := &probe{}
	calls := 0
	l = mustLock(t, fiducial.New(llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x")), fiducial.WithTools(p.tool("look")), fiducial.WithCheckpoint(func(machine.Checkpoint) error {
		if calls++; calls == fails {
			return errDisk
		}
		return nil
	})))
	_, err = l.Run(t.Context(), llm.UserText("go"))
	wantErr(t, err, errDisk)
	_, err = l.Run(t.Context(), llm.UserText("other"))
	wantErr(t, err, fiducial.ErrBusy)
	if err := l.Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	out, err = l.Run(t.Context(), llm.UserText("other")) // stored, it may be given up
	wantReason(t, out, err, fiducial.Finished)
	equal(t, "runs", p.count(), 0)
	sendable(t, l.History())
}

// An append whose outcome is unknown is settled by reading: what was stored counts
// and is not done again, what was not did not happen.
func TestUncertainAppends(t *testing.T) {
	for _, stored := range []bool{false, true} {
		for n := 1; ; n++ {
			f := &flaky{Journal: journal.NewMemory(), failAt: n, stored: stored, failWith: &journal.Error{Kind: journal.KindUncertain, Op: "append"}}
			c := newCrashRun(f)
			l := mustLock(t, fiducial.New(c.model, c.opts...))
			out, err := l.Run(t.Context(), llm.UserText("go"))
			if f.appends < n {
				wantReason(t, out, err, fiducial.Finished)
				break
			}
			wantErr(t, err, journal.ErrUncertain)
			for range 2 * len(rounds()) { // a generation that was not stored is asked for again
				out, err = l.Resume(t.Context())
				if errors.Is(err, fiducial.ErrNothing) {
					out, err = l.Run(t.Context(), llm.UserText("go"))
				}
				if err == nil {
					break
				}
			}
			c.p.runs = slices.DeleteFunc(c.p.runs, func(key string) bool { return key == "r/2/0" }) // it may be repeated
			c.p.once(t)
			if err != nil && !strings.Contains(err.Error(), "the script has") {
				t.Fatalf("append %d stored=%v: %v %v", n, stored, out.Reason, err)
			}
			sendable(t, l.History())
			if stored {
				equal(t, "generations", len(c.model.Requests()), 3)
			}
		}
	}
}

// E-27, S-78, S-150, S-160: a process dies behind any record. Another takes the run
// up: settled calls do not run again, started ones are unknown unless the tool may
// be repeated, waiting ones run before the model is asked.
func TestE27_KillBehindEveryRecord(t *testing.T) {
	stores(t, func(t *testing.T, open func() journal.Journal) {
		whole := journal.NewMemory()
		c := newCrashRun(whole)
		l, out, err := fiducial.New(c.model, c.opts...).Run(t.Context(), llm.UserText("go"))
		c.wantWhole(t, l, out, err)
		var records []journal.Record
		for rec, err := range whole.Read(t.Context(), "r", 0) {
			if err != nil {
				t.Fatal(err)
			}
			records = append(records, rec)
		}
		for n := 1; n <= len(records); n++ {
			j := open()
			var st machine.State
			settled, started, replies := map[string]bool{}, map[string]bool{}, 0
			bodies := make([]journal.Body, 0, n)
			for _, rec := range records[1:n] {
				bodies = append(bodies, rec.Body)
				s, ok := rec.Body.(journal.Step)
				if !ok {
					continue
				}
				switch in := s.Input.(type) {
				case machine.Generated:
					replies++
				case machine.Started:
					for _, c := range in.Calls {
						started[fmt.Sprintf("r/%d/%d", in.Op, c.Ordinal)] = c.Repeat
					}
				case machine.Settled:
					settled[fmt.Sprintf("r/%d/%d", in.Op, in.Ordinal)] = true
				default:
				}
				if _, err := st.Step(s.Input); err != nil {
					t.Fatal(err)
				}
			}
			if err := j.Create(t.Context(), "r", journal.Header{Rules: machine.RulesVersion}); err != nil {
				t.Fatal(err)
			}
			lease, err := j.Acquire(t.Context(), "r", "the dead")
			if err != nil {
				t.Fatal(err)
			}
			if len(bodies) > 0 {
				if err := lease.Append(t.Context(), journal.Mark{}, bodies...); err != nil {
					t.Fatal(err)
				}
			}
			if err := lease.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			p := &probe{}
			turns := rounds()[replies:]
			first := true
			for i, turn := range turns {
				turns[i] = func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
					if first { // what had not started has run by now
						first = false
						for _, call := range st.Batch() {
							if call.Status == machine.CallWaiting && call.Call.Name != "nowhere" && p.count() == 0 {
								t.Errorf("record %d: the model was asked before the waiting calls ran", n)
							}
						}
					}
					return turn(ctx, req)
				}
			}
			model := llmtest.NewScript(turns...)
			l := mustLock(t, fiducial.New(model, fiducial.WithTools(p.tool("look", tool.ReadOnly()), p.tool("edit", tool.Exclusive())), fiducial.WithJournal(j, "r")))
			out, err := l.Resume(t.Context())
			if errors.Is(err, fiducial.ErrNothing) { // the input was not stored
				out, err = l.Run(t.Context(), llm.UserText("go"))
			}
			if err != nil || out.Reason != fiducial.Finished {
				t.Fatalf("record %d: %v %v", n, out.Reason, err)
			}
			p.once(t)
			for _, key := range p.runs {
				if settled[key] {
					t.Errorf("record %d: %s was settled and ran again", n, key)
				}
				if repeat, was := started[key]; was && !repeat {
					t.Errorf("record %d: %s had started and ran again", n, key)
				}
			}
			want := slices.Clone(roundsHistory)
			unknown := strings.Count(strings.Join(texts(l.History()), "\n"), "unknown=outcome unknown")
			lost := 0
			for key, repeat := range started {
				if !settled[key] && !repeat {
					lost++
				}
			}
			equal(t, fmt.Sprintf("record %d: unknown results", n), unknown, lost)
			if lost == 0 {
				wantTexts(t, l.History(), want...)
			}
			sendable(t, l.History())
			paired(t, model)
			equal(t, "turns", out.Turns, 3) // E-21 over processes
			equal(t, "left in the script", model.Left(), 0)
		}
	})
}

// The run is held by one process. Who lost it stops its tools, writes nothing, and
// says so; it can take the run up again when it is free.
func TestFencedInTools(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := journal.NewMemory()
		began := make(chan struct{})
		var stopped error
		slowTool := tool.Must(tool.New("slow", "", func(ctx context.Context, _ noArgs) (string, error) {
			close(began)
			<-ctx.Done()
			stopped = context.Cause(ctx)
			return "", ctx.Err()
		}))
		model := llmtest.NewScript(llmtest.Call("slow", ""), llmtest.Say("x"))
		opts := []fiducial.Option{fiducial.WithTools(slowTool), fiducial.WithJournal(j, "r")}
		l := mustLock(t, fiducial.New(model, append(opts, fiducial.WithOwner("first"))...))
		go func() {
			<-began
			j.Expire("r")
		}()
		out, err := l.Run(t.Context(), llm.UserText("go"))
		wantReason(t, out, err, fiducial.Failed)
		wantErr(t, err, fiducial.ErrFenced)
		if stopped == nil {
			t.Error("the tool was not stopped")
		}
		info, _ := j.Stat(t.Context(), "r")
		head := info.Head

		other := mustLock(t, fiducial.New(model, append(opts, fiducial.WithOwner("second"))...))
		if err := other.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		_, err = l.Resume(t.Context())
		wantErr(t, err, journal.ErrHeld)
		if !strings.Contains(err.Error(), "second") {
			t.Errorf("who holds it? %v", err)
		}
		if err := other.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		info, _ = j.Stat(t.Context(), "r")
		equal(t, "records by the second", info.Head, head+1) // it recorded that it took over
		out, err = l.Resume(t.Context())
		wantReason(t, out, err, fiducial.Finished)
		if h := texts(l.History()); !strings.HasPrefix(h[2], "tool: unknown=outcome unknown") {
			t.Errorf("history: %q", h)
		}
	})
}

// Who finds a run held is told by whom, also when nobody gave the holder a name.
func TestHolderIsNamed(t *testing.T) {
	j := journal.NewMemory()
	open := func() error {
		return mustLock(t, fiducial.New(llmtest.NewScript(), fiducial.WithJournal(j, "r"))).Open(t.Context())
	}
	if err := open(); err != nil {
		t.Fatal(err)
	}
	err := open()
	wantErr(t, err, journal.ErrHeld)
	if want := fmt.Sprintf("process %d", os.Getpid()); !strings.Contains(err.Error(), want) {
		t.Errorf("got %v, want %q in it", err, want)
	}
}

// The same while the model writes, and while the run waits to retry.
func TestFencedInGeneration(t *testing.T) {
	for name, turn := range map[string]llmtest.Turn{
		"stream": llmtest.Wait(llm.BlockStart{}),
		"wait":   llmtest.Fail(&llm.Error{Class: llm.ClassOverloaded, RetryAfter: 20 * time.Second}),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := journal.NewMemory()
				time.AfterFunc(time.Second, func() { j.Expire("r") })
				l, out, err := fiducial.New(llmtest.NewScript(turn, llmtest.Say("x")), fiducial.WithJournal(j, "r")).Run(t.Context(), llm.UserText("go"))
				wantReason(t, out, err, fiducial.Failed)
				wantErr(t, err, fiducial.ErrFenced)
				out, err = l.Resume(t.Context())
				wantReason(t, out, err, fiducial.Finished)
				wantTexts(t, l.History(), "user: go", "assistant: x")
			})
		})
	}
}

// Close frees the run for others and for itself.
func TestCloseAndGoOn(t *testing.T) {
	j := journal.NewMemory()
	l, _ := mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Say("x"), llmtest.Say("y"), llmtest.Say("z")), fiducial.WithJournal(j, "r")), "go")
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	other, out, err := fiducial.New(llmtest.NewScript(llmtest.Say("other")), fiducial.WithJournal(j, "r")).Run(t.Context(), llm.UserText("in between"))
	wantReason(t, out, err, fiducial.Finished)
	_, err = l.Run(t.Context(), llm.UserText("more"))
	wantErr(t, err, journal.ErrHeld)
	_ = other.Close(t.Context())
	out, err = l.Run(t.Context(), llm.UserText("more"))
	wantReason(t, out, err, fiducial.Finished)
	wantTexts(t, l.History(), "user: go", "assistant: x", "user: in between", "assistant: other", "user: more", "assistant: y")
}

// Text that is not UTF-8 is made so before it becomes history, so that no store
// chokes on it.
func TestInvalidUTF8FromOutside(t *testing.T) {
	stores(t, func(t *testing.T, open func() journal.Journal) {
		bad := tool.Must(tool.New("bad", "", func(context.Context, noArgs) (tool.Output, error) {
			return tool.Output{Summary: "s\xff", Content: "c\xff"}, nil
		}))
		model := llmtest.NewScript(llmtest.Call("bad", ""), llmtest.Say("r\xff"))
		l, out, err := fiducial.New(model, fiducial.WithTools(bad), fiducial.WithJournal(open(), "r"),
			fiducial.WithNotice(func(context.Context, []llm.Message) (string, error) { return "n\xff", nil })).Run(t.Context(), llm.UserText("u\xff"))
		wantReason(t, out, err, fiducial.Finished)
		wantTexts(t, l.History(), "user: u\uFFFD [n\uFFFD]", "assistant: bad()", "tool: success=s\uFFFD\nc\uFFFD\nn\uFFFD", "assistant: r\uFFFD")
	})
}

// S-84, S-85, S-91: the points of the checkpoint function, with and without notice.
func TestS84_CheckpointOrder(t *testing.T) {
	run := func(opts ...fiducial.Option) (points []string) {
		p := &probe{}
		mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x")), append(opts, fiducial.WithTools(p.tool("look")),
			fiducial.WithCheckpoint(func(c machine.Checkpoint) error {
				pending := "nothing"
				if c.Pending != nil {
					pending = fmt.Sprint(c.Pending.Kind, " ", c.Pending.Op)
				}
				if err := machine.ValidateCheckpoint(c); err != nil {
					t.Error(err)
				}
				points = append(points, fmt.Sprintf("%d messages, %s, %d calls ran", len(c.History), pending, p.count()))
				return nil
			}))...), "go")
		return points
	}
	equal(t, "points", run(), []string{
		"1 messages, nothing, 0 calls ran",
		"1 messages, generation 1, 0 calls ran",
		"2 messages, tools 2, 0 calls ran",
		"2 messages, tools 2, 0 calls ran",
		"3 messages, generation 3, 1 calls ran",
		"3 messages, generation 3, 1 calls ran",
		"4 messages, nothing, 1 calls ran",
	})
	n := len(run(fiducial.WithNotice(func(context.Context, []llm.Message) (string, error) { return "n", nil })))
	equal(t, "with two notices", n, 9)
	n = len(run(fiducial.WithNotice(func(context.Context, []llm.Message) (string, error) { return "", nil })))
	equal(t, "with empty ones", n, 7) // S-119
}

// S-86 to S-90 with a checkpoint function: whichever call fails, Checkpoint and
// Resume go on without a second generation or dispatch, and each reply is
// committed once.
func TestS90_EveryCheckpointFailsOnce(t *testing.T) {
	for n := 1; n <= 7; n++ {
		for _, explicit := range []bool{false, true} {
			p, ev := &probe{}, &events{}
			boom := errors.New("full")
			calls := 0
			model := llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x"))
			l := mustLock(t, fiducial.New(model, fiducial.WithTools(p.tool("look")), fiducial.WithEvents(ev), fiducial.WithCheckpoint(func(machine.Checkpoint) error {
				if calls++; calls == n {
					return boom
				}
				return nil
			})))
			out, err := l.Run(t.Context(), llm.UserText("go"))
			wantReason(t, out, err, fiducial.Failed)
			wantErr(t, err, fiducial.ErrCheckpoint)
			wantErr(t, err, boom)
			if explicit {
				if err := l.Checkpoint(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			out, err = l.Resume(t.Context())
			wantReason(t, out, err, fiducial.Finished)
			equal(t, "runs", p.count(), 1)
			equal(t, "requests", len(model.Requests()), 2)
			equal(t, "committed", count[fiducial.GenerationCommitted](ev), 2)
			wantTexts(t, l.History(), "user: go", "assistant: look()", "tool: success=ok", "assistant: x")
			if t.Failed() {
				t.Fatalf("checkpoint %d, explicit %v", n, explicit)
			}
		}
	}
	_, err := mustLock(t, fiducial.New(llmtest.NewScript(), fiducial.WithCheckpoint(func(machine.Checkpoint) error { panic("x") }))).Run(t.Context(), llm.UserText("go"))
	wantErr(t, err, fiducial.ErrCheckpoint)
}

// S-89: appending and truncating call the checkpoint function, replacing does not;
// S-91: without one no reply is committed.
func TestS89_CheckpointsOutsideRuns(t *testing.T) {
	var points []int
	ev := &events{}
	eng := fiducial.New(llmtest.NewScript(llmtest.Say("x")), fiducial.WithEvents(ev), fiducial.WithCheckpoint(func(c machine.Checkpoint) error {
		points = append(points, len(c.History))
		return nil
	}))
	if err := errors.Join(eng.Append(t.Context(), llm.UserText("a")), eng.Append(t.Context(), llm.UserText("b")), eng.Truncate(t.Context(), 1),
		eng.ReplaceHistory(t.Context(), []llm.Message{llm.UserText("c"), llm.UserText("d"), llm.UserText("e")})); err != nil {
		t.Fatal(err)
	}
	equal(t, "points", points, []int{1, 2, 1})
	ev2 := &events{}
	mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Say("x")), fiducial.WithEvents(ev2)), "go")
	equal(t, "committed without a store", count[fiducial.GenerationCommitted](ev2), 0)
}
