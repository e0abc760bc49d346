// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/machine"
	"github.com/fiducial-dev/fiducial/tool"
)

// S-74 to S-78, S-67, S-160: a caller with a store of its own kills the process
// behind every checkpoint and goes on with the last one.
func TestS74_RecoveryFromEveryCheckpoint(t *testing.T) {
	for n := 1; n <= 7; n++ {
		var saved machine.Checkpoint
		points := 0
		boom := errors.New("killed")
		p := &probe{}
		_, _, err := fiducial.New(llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x")), fiducial.WithTools(p.tool("look")),
			fiducial.WithCheckpoint(func(c machine.Checkpoint) error {
				if points++; points > n {
					return boom
				}
				saved = c
				return nil
			})).Run(t.Context(), llm.UserText("go"))
		if n < 7 {
			wantErr(t, err, boom)
		}
		before := p.count()
		model := llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("end"))
		var first *machine.Checkpoint
		l := mustLock(t, fiducial.New(model, fiducial.WithTools(p.tool("look")), fiducial.WithRecovery(saved), fiducial.WithCheckpoint(func(c machine.Checkpoint) error {
			if first == nil {
				first = &c
				equal(t, "requests before the recovered history is saved", len(model.Requests()), 0)
			}
			return nil
		})))
		out, err := l.Resume(t.Context())
		wantReason(t, out, err, fiducial.Finished)
		if first.Pending != nil || machine.ValidateContext(first.History) != nil {
			t.Errorf("checkpoint %d: recovered to %+v", n, first)
		}
		h := strings.Join(texts(l.History()), "\n")
		if lost := saved.Pending != nil; lost != strings.Contains(h, "["+machine.InterruptedPrompt+"]") {
			t.Errorf("checkpoint %d: %s", n, h)
		}
		if tools := saved.Pending != nil && saved.Pending.Kind == machine.PendingTools; tools != strings.Contains(h, "unknown=outcome unknown") {
			t.Errorf("checkpoint %d: %s", n, h)
		}
		equal(t, "runs after it", p.count()-before, 1) // the new call only
		var ids []string
		for _, m := range l.History() {
			for _, c := range m.Calls() {
				if slices.Contains(ids, c.ID) {
					t.Errorf("checkpoint %d: id %s twice (S-164)", n, c.ID)
				}
				ids = append(ids, c.ID)
			}
		}
	}
	for name, eng := range map[string]*fiducial.Engine{
		"unbalanced":   fiducial.New(llmtest.NewScript(), fiducial.WithRecovery(machine.Checkpoint{History: []llm.Message{llm.ToolResults(llm.Result{})}})),
		"with journal": fiducial.New(llmtest.NewScript(), fiducial.WithRecovery(machine.Checkpoint{}), fiducial.WithJournal(journal.NewMemory(), "r")),
	} {
		if _, err := eng.Lock(); !errors.Is(err, fiducial.ErrConfig) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A message that cannot be one is refused before anything is given up.
func TestRunRefusesWhatIsNoInput(t *testing.T) {
	h := &hooks{request: func(fiducial.Invocation, *llm.Request) (fiducial.RequestAnswer, error) { return fiducial.Pause{}, nil }}
	l, _, err := fiducial.New(llmtest.NewScript(), fiducial.WithInterceptor(h)).Run(t.Context(), llm.UserText("go"))
	if err != nil {
		t.Fatal(err)
	}
	_, err = l.Run(t.Context(), llm.UserText("fine"), llm.AssistantText("I am you"))
	wantErr(t, err, fiducial.ErrState)
	wantTexts(t, l.History(), "user: go")
	out, err := l.Resume(t.Context())
	wantReason(t, out, err, fiducial.Paused)
}

// A run that has input and no answer has not ended, whenever its process is lost.
func TestMarksOfARun(t *testing.T) {
	var got []journal.Mark
	j := &marks{Journal: journal.NewMemory(), got: &got}
	p := &probe{}
	mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x")), fiducial.WithTools(p.tool("look")), fiducial.WithJournal(j, "r")), "go")
	for i, m := range got {
		if last := i == len(got)-1; m.Ended != last || last != (m.Phase == "finished") {
			t.Errorf("mark %d: %+v", i, m)
		}
	}
}

type marks struct {
	journal.Journal
	got *[]journal.Mark
}

func (m *marks) Acquire(ctx context.Context, run, owner string) (journal.Lease, error) {
	l, err := m.Journal.Acquire(ctx, run, owner)
	return &marksLease{l, m}, err
}

type marksLease struct {
	journal.Lease
	m *marks
}

func (l *marksLease) Append(ctx context.Context, state journal.Mark, bodies ...journal.Body) error {
	if _, note := bodies[0].(journal.Note); !note || len(bodies) > 1 {
		*l.m.got = append(*l.m.got, state)
	}
	return l.Lease.Append(ctx, state, bodies...)
}

// A notice that was asked for and had nothing to say is not asked for again when
// the same generation goes on.
func TestS117_EmptyNoticeIsAskedOnce(t *testing.T) {
	asked, paused := 0, false
	h := &hooks{request: func(fiducial.Invocation, *llm.Request) (fiducial.RequestAnswer, error) {
		if paused {
			return nil, nil
		}
		paused = true
		return fiducial.Pause{}, nil
	}}
	l, _, err := fiducial.New(llmtest.NewScript(llmtest.Say("x")), fiducial.WithInterceptor(h),
		fiducial.WithNotice(func(context.Context, []llm.Message) (string, error) { asked++; return "", nil })).Run(t.Context(), llm.UserText("go"))
	if err != nil {
		t.Fatal(err)
	}
	out, err := l.Resume(t.Context())
	wantReason(t, out, err, fiducial.Finished)
	equal(t, "asked", asked, 1)
}

// E-89: a client that cannot honour a setting says so at the lock.
func TestE89_SettingsAreChecked(t *testing.T) {
	k := 5
	_, err := fiducial.New(picky{llmtest.NewScript()}, fiducial.WithSettings(llm.Settings{TopK: &k})).Lock()
	wantErr(t, err, fiducial.ErrConfig)
	if !strings.Contains(err.Error(), "top_k") {
		t.Error(err)
	}
	if _, err := fiducial.New(picky{llmtest.NewScript()}).Lock(); err != nil {
		t.Error(err)
	}
}

type picky struct{ *llmtest.Script }

func (picky) Check(s llm.Settings) []string {
	if s.TopK != nil {
		return []string{"top_k"}
	}
	return nil
}

// E-160, E-161: what is no part of the reply is shown and changes nothing.
func TestE160_StreamEvents(t *testing.T) {
	ev := &events{}
	model := llmtest.NewScript(llmtest.Break(nil, llm.Unhandled{Type: "ping"}, llm.BlockStart{}, llm.BlockDelta{Text: "x"}, llm.Failover{}, llm.BlockStop{}, llm.Finish{Stop: llm.StopEndTurn}))
	_, out := mustRun(t, fiducial.New(model, fiducial.WithEvents(ev)), "go")
	equal(t, "answer", out.Text(), "x")
	equal(t, "shown", count[fiducial.StreamEvent](ev), 2)
}

// What a provider said of a history that was cut is forgotten, in the next process
// too.
func TestEstimatesAfterACut(t *testing.T) {
	j := journal.NewMemory()
	usage := llmtest.ReplyUsage(llm.AssistantText("x"), llm.Usage{Input: llm.N(77)})
	l, _ := mustRun(t, fiducial.New(llmtest.NewScript(usage), fiducial.WithJournal(j, "r")), "go")
	equal(t, "measured", l.Estimate(1), fiducial.Estimate{Tokens: 77, Source: fiducial.EstimateMeasured})
	_ = l.Close(t.Context())
	l = mustLock(t, fiducial.New(llmtest.NewScript(), fiducial.WithJournal(j, "r")))
	if err := l.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, "measured, elsewhere", l.Estimate(1), fiducial.Estimate{Tokens: 77, Source: fiducial.EstimateMeasured})
	eng, err := l.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(eng.Truncate(t.Context(), 1), eng.Append(t.Context(), llm.UserText("y"))); err != nil {
		t.Fatal(err)
	}
	equal(t, "cut", eng.Estimate(1).Source, fiducial.EstimateNoData)
	_ = eng.Close(t.Context())
	eng = fiducial.New(llmtest.NewScript(), fiducial.WithJournal(j, "r"))
	if err := eng.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, "cut, elsewhere", eng.Estimate(1).Source, fiducial.EstimateNoData)
	wantTexts(t, eng.History(), "user: go", "user: y")
}

// Results that hold nothing to leave out are no candidates (E-180).
func TestE180_Candidates(t *testing.T) {
	ev := &events{}
	small := tool.Must(tool.New("small", "", func(context.Context, noArgs) (string, error) { return "s", nil }))
	calls := func(id string, tokens int64, names ...string) llmtest.Turn {
		m := llm.AssistantCalls()
		for i, n := range names {
			m.Parts = append(m.Parts, llm.Call{ID: id + string(rune('a'+i)), Name: n})
		}
		return llmtest.ReplyUsage(m, llm.Usage{Input: llm.N(tokens)})
	}
	model := llmtest.NewScript(calls("1", 50, "small", "read", "small"), calls("2", 1200, "read"), llmtest.Say("x"))
	mustRun(t, fiducial.New(model, fiducial.WithTools(small, bulky(4000)), fiducial.WithEvents(ev), fiducial.WithPruning(fiducial.PruneConfig{Protect: 900, Minimum: 1})), "go")
	last := fiducial.PruneDecision{}
	for _, e := range ev.all {
		if d, ok := e.Data.(fiducial.PruneEvaluated); ok {
			last = d.Decision
		}
	}
	equal(t, "decision", last, fiducial.PruneDecision{Fired: true, Candidates: 1, Savings: 1000, Mark: 4})
}

// The cache audit knows when pruning, or a long reach back, is the cause.
func TestCacheAuditCauses(t *testing.T) {
	causes := func(ev *events) (out []fiducial.CacheCause) {
		for _, e := range ev.all {
			if m, ok := e.Data.(fiducial.CacheMiss); ok {
				out = append(out, m.Cause)
			}
		}
		return out
	}
	turn := func(id string, input, read int64, names ...string) llmtest.Turn {
		m := llm.AssistantCalls()
		for i, n := range names {
			m.Parts = append(m.Parts, llm.Call{ID: id + string(rune('a'+i)), Name: n})
		}
		return llmtest.ReplyUsage(m, llm.Usage{Input: llm.N(input), CacheRead: llm.N(read)})
	}
	done := llmtest.ReplyUsage(llm.AssistantText("x"), llm.Usage{Input: llm.N(5000), CacheRead: llm.N(0)})
	ev := &events{}
	mustRun(t, fiducial.New(llmtest.NewScript(turn("1", 3000, 0, "read"), turn("2", 4000, 3000, "read"), done), fiducial.WithTools(bulky(4000)),
		fiducial.WithEvents(ev), fiducial.WithPruning(fiducial.PruneConfig{Protect: 100, Minimum: 1000})), "go")
	equal(t, "pruned", causes(ev), []fiducial.CacheCause{fiducial.CachePruned})
	ev = &events{}
	mustRun(t, fiducial.New(llmtest.NewScript(turn("1", 3000, 0, slices.Repeat([]string{"read"}, 11)...), done), fiducial.WithTools(bulky(1)), fiducial.WithEvents(ev)), "go")
	equal(t, "look-back", causes(ev), []fiducial.CacheCause{fiducial.CacheLookBack})
}

// S-90: a history that was replaced owes no committed event for what it held.
func TestS90_ReplacingDiscardsTheOwedEvent(t *testing.T) {
	ev := &events{}
	points := 0
	l, _, err := fiducial.New(llmtest.NewScript(llmtest.Say("x")), fiducial.WithEvents(ev), fiducial.WithCheckpoint(func(machine.Checkpoint) error {
		if points++; points == 3 {
			return errDisk
		}
		return nil
	})).Run(t.Context(), llm.UserText("go"))
	wantErr(t, err, fiducial.ErrCheckpoint)
	eng, err := l.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := eng.ReplaceHistory(t.Context(), []llm.Message{llm.UserText("other")}); err != nil {
		t.Fatal(err)
	}
	if err := mustLock(t, eng).Checkpoint(t.Context()); err != nil {
		t.Fatal(err)
	}
	equal(t, "committed", count[fiducial.GenerationCommitted](ev), 0)
}

// E-177: 8000 tokens are protected by default; a replaced history is sent whole.
func TestE177_Defaults(t *testing.T) {
	model := llmtest.NewScript(meteredCall(1, 50), meteredCall(2, 9050), llmtest.ReplyUsage(llm.AssistantText("x"), llm.Usage{Input: llm.N(18_050)}), llmtest.Say("y"))
	eng := fiducial.New(model, fiducial.WithTools(bulky(36_000)), fiducial.WithPruning(fiducial.PruneConfig{Minimum: 1}))
	l, _ := mustRun(t, eng, "go")
	equal(t, "sent", contents(model.Requests()[2].Messages), []int{0, 36_000})
	eng, err := l.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := eng.ReplaceHistory(t.Context(), l.History()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := eng.Run(t.Context(), llm.UserText("more")); err != nil {
		t.Fatal(err)
	}
	equal(t, "sent after it was replaced", contents(model.Requests()[3].Messages), []int{36_000, 36_000})
}

// E-71: hooks are asked about the tools that an executor names, and no others.
func TestE71_HooksAndUnknownTools(t *testing.T) {
	var asked []string
	h := &hooks{
		pre: func(_ fiducial.Invocation, c *llm.Call) (fiducial.ToolAnswer, error) {
			asked = append(asked, "pre "+c.Name)
			return nil, nil
		},
		post: func(_ fiducial.Invocation, c llm.Call, _ llm.Result) (fiducial.PostAnswer, error) {
			asked = append(asked, "post "+c.Name)
			return nil, nil
		},
	}
	x := executor{specs: []tool.Spec{{Name: "a"}}, execute: func(tool.Call) tool.Result { return tool.Result{Summary: "ran"} }}
	mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Call("a", "", "b", ""), llmtest.Say("x")), fiducial.WithExecutor(x), fiducial.WithInterceptor(h)), "go")
	equal(t, "asked", asked, []string{"pre a", "post a"})
}

// The loop guard at its tightest, and what it makes of a model that is told.
func TestLoopGuardOfTwo(t *testing.T) {
	p := &probe{}
	look := llmtest.Call("look", "")
	_, out := mustRun(t, fiducial.New(llmtest.NewScript(look, look, look), fiducial.WithTools(p.tool("look")), fiducial.WithLoopGuard(2)), "go")
	equal(t, "limit", out.Limit, fiducial.LimitLoop)
	equal(t, "runs", p.count(), 3)
	_, out = mustRun(t, fiducial.New(llmtest.NewScript(look, look, llmtest.Call("look", `{}`, "look", ""), llmtest.Say("x")), fiducial.WithTools(p.tool("look")), fiducial.WithLoopGuard(2)), "go")
	equal(t, "reason when it changes its mind", out.Reason, fiducial.Finished)
}

// What a hook noted and what was appended before the run was opened is stored
// with the run's first records.
func TestAppendBeforeTheRunIsOpen(t *testing.T) {
	j := journal.NewMemory()
	eng := fiducial.New(llmtest.NewScript(llmtest.Say("x")), fiducial.WithJournal(j, "r"))
	if err := eng.Append(t.Context(), llm.UserText("before")); err != nil {
		t.Fatal(err)
	}
	l, _ := mustRun(t, eng, "go")
	_ = l.Close(t.Context())
	other := fiducial.New(llmtest.NewScript(), fiducial.WithJournal(j, "r"))
	if err := other.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	wantTexts(t, other.History(), "user: before", "user: go", "assistant: x")
	if err := other.Append(t.Context(), llm.UserText("after")); err != nil {
		t.Fatal(err)
	}
	info, err := j.Stat(t.Context(), "r")
	if err != nil || info.Phase != "ready" || info.Ended { // stored at once
		t.Errorf("%+v %v", info, err)
	}
}

// E-73: hooks are not shown results whose outcome is unknown.
func TestE73_UnknownResultsAreNotShown(t *testing.T) {
	h := &hooks{post: func(_ fiducial.Invocation, _ llm.Call, r llm.Result) (fiducial.PostAnswer, error) {
		t.Errorf("shown: %+v", r)
		return nil, nil
	}}
	x := executor{specs: []tool.Spec{{Name: "a"}}, execute: func(tool.Call) tool.Result { return tool.Result{Status: llm.StatusUnknown, Summary: "?"} }}
	l, _ := mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Call("a", ""), llmtest.Say("x")), fiducial.WithExecutor(x), fiducial.WithInterceptor(h)), "go")
	wantTexts(t, l.History()[2:3], "tool: unknown=?")
}

// The very first append may be stored or not: the history that the engine began
// with is there once in either case.
func TestUncertainFirstAppend(t *testing.T) {
	for _, stored := range []bool{false, true} {
		f := &flaky{Journal: journal.NewMemory(), failAt: 1, stored: stored, failWith: &journal.Error{Kind: journal.KindUncertain, Op: "append"}}
		l := mustLock(t, fiducial.New(llmtest.NewScript(llmtest.Say("x")), fiducial.WithJournal(f, "r"), fiducial.WithHistory(llm.UserText("old"), llm.AssistantText("news"))))
		_, err := l.Run(t.Context(), llm.UserText("go"))
		wantErr(t, err, journal.ErrUncertain)
		out, err := l.Run(t.Context(), llm.UserText("go"))
		wantReason(t, out, err, fiducial.Finished)
		wantTexts(t, l.History(), "user: old", "assistant: news", "user: go", "assistant: x")
	}
}

// Who resumes a run that went in circles gives it another chance.
func TestResumeAfterALoop(t *testing.T) {
	p := &probe{}
	look := llmtest.Call("look", "")
	l, out := mustRun(t, fiducial.New(llmtest.NewScript(look, look, look, llmtest.Say("x")), fiducial.WithTools(p.tool("look")), fiducial.WithLoopGuard(2)), "go")
	equal(t, "limit", out.Limit, fiducial.LimitLoop)
	out, err := l.Resume(t.Context())
	wantReason(t, out, err, fiducial.Finished)
}

// E-9: an old handle stays stale, however often the engine is locked and unlocked.
func TestOldHandlesStayStale(t *testing.T) {
	eng := fiducial.New(llmtest.NewScript())
	l := mustLock(t, eng)
	again, err := l.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, eng.SetSystem("x"), fiducial.ErrStale)
	_ = mustLock(t, again)
	_, err = l.Unlock()
	wantErr(t, err, fiducial.ErrStale)
}

// A replaced history is the cause of the miss that follows.
func TestCacheAuditOfAReplacedHistory(t *testing.T) {
	ev := &events{}
	turn := func(input int64) llmtest.Turn {
		return llmtest.ReplyUsage(llm.AssistantText("x"), llm.Usage{Input: llm.N(input), CacheRead: llm.N(0)})
	}
	l, _ := mustRun(t, fiducial.New(llmtest.NewScript(turn(5000), turn(3000)), fiducial.WithEvents(ev)), "go")
	eng, err := l.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := eng.ReplaceHistory(t.Context(), []llm.Message{llm.UserText("short")}); err != nil {
		t.Fatal(err)
	}
	mustRun(t, eng, "more")
	for _, e := range ev.all {
		if m, ok := e.Data.(fiducial.CacheMiss); ok && m.Cause == fiducial.CachePrefixEdited && m.Possible == 5000 {
			return
		}
	}
	t.Errorf("no miss: %v", ev.names())
}
