// SPDX-License-Identifier: Apache-2.0

package task_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/task"
)

// AC-15.1 (B-133, B-14 to B-17): an extension keeps everything, and is told once.
func TestAC15_1_ExtensionGoesOn(t *testing.T) {
	r := newRig(t, write("b.txt", "beta"), check(), finish())
	r.cfg.MaxTurns = 2
	var asked []task.Exhausted
	r.cfg.Ask = func(_ context.Context, e task.Exhausted) (int, error) {
		if r.script.Left() != 1 {
			t.Error("asked before or after the second turn")
		}
		asked = append(asked, e)
		return 5, nil
	}
	res := r.run()
	r.ends(res, task.Done, task.PathDone)
	if len(asked) != 1 || asked[0].TurnsUsed != 2 || asked[0].Budget != 2 || asked[0].Open != 1 || !cmp.Equal(asked[0].Touched, []string{"b.txt"}) {
		t.Errorf("asked %+v", asked)
	}
	if n := r.count("budget-extended"); n != 1 {
		t.Fatalf("%d budget-extended events", n)
	}
	e := r.event("budget-extended")
	if e["granted"] != 5 || e["budget"] != 7 || e["max_turns"] != 2 {
		t.Errorf("event %v", e)
	}
	if got := len(r.last().Messages); got != 6 { // request, call, results, call, results, and five turns are left (B-40)
		t.Errorf("turn 3 was sent %d messages, want 6", got)
	}
	if res.Tally.Turns != 3 || res.Tally.Budget != 7 || res.Tally.MaxTurns != 2 {
		t.Errorf("tally %+v", res.Tally)
	}
}

// AC-15.2 (B-134, B-19, B-22): a decline fails the run, and the tree is as before.
func TestAC15_2_Decline(t *testing.T) {
	r := newRig(t, write("b.txt", "beta"), look(1))
	before := r.tree()
	r.cfg.MaxTurns = 2
	asked := 0
	r.cfg.Ask = func(context.Context, task.Exhausted) (int, error) { asked++; return 0, nil }
	res := r.run()
	r.ends(res, task.Failed, task.PathTurnBudget)
	r.same(before)
	if asked != 1 || r.count("budget-extended") != 0 {
		t.Errorf("asked %d times, %d extensions", asked, r.count("budget-extended"))
	}
	if !strings.Contains(res.Detail, "2 turns") || !strings.Contains(res.Detail, "1 files") {
		t.Errorf("detail %q", res.Detail)
	}
}

// AC-15.3 (B-135, B-20): without anybody to ask it is the same, and no event.
func TestAC15_3_NobodyToAsk(t *testing.T) {
	r := newRig(t, write("b.txt", "beta"), look(1))
	before := r.tree()
	r.cfg.MaxTurns = 2
	r.ends(r.run(), task.Failed, task.PathTurnBudget)
	r.same(before)
	if r.count("budget-extended") != 0 {
		t.Error("there is a budget-extended event")
	}
}

// AC-15.4 (B-136, B-15, B-179): what the callback sees is what the summary says,
// with the cost of replies that called nothing.
func TestAC15_4_TokensAtTheQuestion(t *testing.T) {
	r := newRig(t, costs(1, usage(100, 10)), llmtest.ReplyUsage(llm.AssistantText("hm"), usage(200, 20)))
	r.cfg.MaxTurns = 2
	var seen llm.Usage
	r.cfg.Ask = func(_ context.Context, e task.Exhausted) (int, error) { seen = e.Usage; return 0, nil }
	res := r.run()
	r.ends(res, task.Failed, task.PathTurnBudget)
	if seen.Input.Value() != 300 || seen.Output.Value() != 30 {
		t.Errorf("the callback saw %+v", seen)
	}
	if seen != res.Tally.Usage {
		t.Errorf("the summary says %+v, the callback saw %+v", res.Tally.Usage, seen)
	}
}

// B-18, B-22, B-24: it asks as often as it takes; statistics keep the original
// maximum; an extension does not reset the count of replies without a call.
func TestBudget_AsksAgain(t *testing.T) {
	r := newRig(t, look(1), look(2), look(3), finish())
	r.cfg.MaxTurns = 1
	var asked []task.Exhausted
	r.cfg.Ask = func(_ context.Context, e task.Exhausted) (int, error) { asked = append(asked, e); return 1, nil }
	res := r.run()
	r.ends(res, task.Done, task.PathDone)
	for i, e := range asked {
		if e.TurnsUsed != i+1 || e.Budget != i+1 || e.MaxTurns != 1 {
			t.Errorf("question %d: %+v", i, e)
		}
	}
	if len(asked) != 3 || res.Tally.MaxTurns != 1 {
		t.Errorf("%d questions, tally %+v", len(asked), res.Tally)
	}

	r = newRig(t, empty(), empty(), empty())
	r.cfg.MaxTurns = 2
	r.cfg.Ask = func(context.Context, task.Exhausted) (int, error) { return 3, nil }
	r.ends(r.run(), task.Failed, task.PathStalled)
}

// B-21: whatever is no positive number is a decline, and preserve and restore
// happen.
func TestBudget_BadAnswersDecline(t *testing.T) {
	for name, ask := range map[string]func(context.Context, task.Exhausted) (int, error){
		"negative": func(context.Context, task.Exhausted) (int, error) { return -3, nil },
		"error":    func(context.Context, task.Exhausted) (int, error) { return 9, errTest },
		"panic":    func(context.Context, task.Exhausted) (int, error) { panic("no") },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, write("b.txt", "beta"))
			before := r.tree()
			r.cfg.MaxTurns, r.cfg.Ask = 1, ask
			res := r.run()
			r.ends(res, task.Failed, task.PathTurnBudget)
			r.same(before)
			if res.Preserved.Stash == "" || res.Restored == nil || res.RestoreErr != nil {
				t.Errorf("preserved %+v, restored %+v %v", res.Preserved, res.Restored, res.RestoreErr)
			}
		})
	}
}

// B-36: a finish that is accepted on the last turn needs no question.
func TestBudget_FinishOnTheLastTurn(t *testing.T) {
	r := newRig(t, look(1), finish())
	r.cfg.MaxTurns = 2
	r.cfg.Ask = func(context.Context, task.Exhausted) (int, error) { t.Error("asked"); return 0, nil }
	r.ends(r.run(), task.Done, task.PathDone)
}

// B-37 with B-13: a finish that is withdrawn on the last turn does not get another
// turn for nothing.
func TestBudget_WithdrawnFinishOnTheLastTurn(t *testing.T) {
	r := newRig(t, join(finishCall, writeCall("b.txt", "beta")))
	before := r.tree()
	r.cfg.MaxTurns = 1
	r.ends(r.run(), task.Failed, task.PathTurnBudget)
	r.same(before)
}

// AC-15.6 (B-138, B-39): with five turns left the model is asked to converge.
func TestAC15_6_Converge(t *testing.T) {
	turns := []llmtest.Turn{look(1), look(2), look(3), finish()}
	r := newRig(t, turns...)
	r.cfg.MaxTurns = 7
	r.ends(r.run(), task.Done, task.PathDone)
	for i, req := range r.script.Requests() {
		want := 0
		if i >= 2 {
			want = 1
		}
		got := said(req, "converge")
		if len(got) != want || want == 1 && !strings.Contains(got[0], "Put calls together.") {
			t.Errorf("request %d: %q", i+1, got)
		}
	}

	r = newRig(t, look(1), finish()) // the finish is accepted with five left
	r.cfg.MaxTurns = 7
	r.ends(r.run(), task.Done, task.PathDone)
	if got := said(r.last(), "converge"); len(got) != 0 {
		t.Errorf("asked to converge all the same: %q", got)
	}
}

// B-41: also when just that turn called no tool; B-40: never with a budget of five,
// and again after an extension.
func TestConverge_ToollessAndExtended(t *testing.T) {
	r := newRig(t, empty(), finish())
	r.cfg.MaxTurns = 6
	r.ends(r.run(), task.Done, task.PathDone)
	if got := said(r.last(), "converge"); len(got) != 1 {
		t.Errorf("a turn without a call: %q", got)
	}

	r = newRig(t, look(1), look(2), finish())
	r.cfg.MaxTurns = 5
	r.ends(r.run(), task.Done, task.PathDone)
	if got := said(r.last(), "converge"); len(got) != 0 {
		t.Errorf("a budget of five: %q", got)
	}

	turns := make([]llmtest.Turn, 0, 13)
	for i := range 12 {
		turns = append(turns, look(i))
	}
	r = newRig(t, append(turns, finish())...)
	r.cfg.MaxTurns = 7
	r.cfg.Ask = func(context.Context, task.Exhausted) (int, error) { return 7, nil }
	r.ends(r.run(), task.Done, task.PathDone)
	if got := said(r.last(), "converge"); len(got) != 2 {
		t.Errorf("after an extension: %q", got)
	}
}

// AC-15.27 (B-148, B-32, B-33): only three replies without a call in a row are a
// stall.
func TestAC15_27_Stall(t *testing.T) {
	r := newRig(t, empty(), empty(), look(1), empty(), look(2), empty(), finish())
	r.ends(r.run(), task.Done, task.PathDone)
	if got := said(r.last(), "no_call"); len(got) != 4 || !strings.Contains(got[0], task.FinishName) {
		t.Errorf("reminders %q", got)
	}

	r = newRig(t, write("b.txt", "beta"), empty(), empty(), empty())
	before := r.tree()
	res := r.run()
	r.ends(res, task.Failed, task.PathStalled)
	r.same(before)
	if res.Tally.Turns != 4 {
		t.Errorf("%d turns; each reply uses one (B-24)", res.Tally.Turns)
	}
}

// B-34: a call of an unknown or a locked tool is a call.
func TestStall_UnknownAndLockedCallsCount(t *testing.T) {
	r := newRig(t, empty(), empty(), llmtest.Call("nonsense", `{}`), empty(), empty(), llmtest.Call("remove", `{"name":"a.txt","text":""}`), empty(), empty(), finish())
	r.ends(r.run(), task.Done, task.PathDone)
	got := results(r.last(), "remove")
	if len(got) != 1 || !strings.Contains(got[0].Body(), "not available") || !strings.Contains(got[0].Body(), "Call unlock first.") {
		t.Errorf("the locked tool answered %+v (B-83)", got)
	}
}

// B-25: the call that unlocks and the call that needs it may stand in one reply;
// the list of tools never changes.
func TestLock_IsLookedAtForEachCall(t *testing.T) {
	remove := []string{"remove", `{"name":"a.txt","text":""}`}
	r := newRig(t, join(remove, []string{"unlock", `{}`}, remove), join(checkCall, finishCall))
	r.ends(r.run(), task.Done, task.PathDone)
	got := results(r.last(), "remove")
	if len(got) != 2 || !got[0].IsError() || got[1].IsError() {
		t.Errorf("results %+v", got)
	}
	reqs := r.script.Requests()
	if !cmp.Equal(reqs[0].Tools, reqs[1].Tools) {
		t.Error("the list of tools changed")
	}
}

// B-36, B-38: exactly the maximum of failing checks is allowed; one more fails the
// run even when the same reply asks for a finish.
func TestRepairs(t *testing.T) {
	r := newRig(t, write("b.txt", "BAD"), join(checkCall, checkCall), write("b.txt", "good"), join(checkCall, finishCall))
	r.cfg.MaxRepairs = 2
	res := r.run()
	r.ends(res, task.Done, task.PathDone)
	if res.Tally.Repairs != 2 {
		t.Errorf("%d repairs", res.Tally.Repairs)
	}

	r = newRig(t, write("b.txt", "BAD"), join(checkCall, checkCall, checkCall, writeCall("b.txt", "good"), checkCall, finishCall))
	r.cfg.MaxRepairs = 2
	before := r.tree()
	r.ends(r.run(), task.Failed, task.PathRepairs)
	r.same(before)
}

// B-136, B-176: replies are never more than the maximum and what was granted.
func TestBudget_NeverExceeded(t *testing.T) {
	for granted := range 4 {
		t.Run(fmt.Sprint(granted), func(t *testing.T) {
			turns := make([]llmtest.Turn, 0, 3+granted)
			for i := range 3 + granted {
				turns = append(turns, look(i))
			}
			r := newRig(t, turns...)
			r.cfg.MaxTurns = 3
			left := granted
			r.cfg.Ask = func(context.Context, task.Exhausted) (int, error) {
				if left == 0 {
					return 0, nil
				}
				left--
				return 1, nil
			}
			r.ends(r.run(), task.Failed, task.PathTurnBudget)
		})
	}
}
