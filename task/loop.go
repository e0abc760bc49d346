// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"fmt"
	"slices"
	"strings"

	fiducial "github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/llm"
)

// AfterResponse counts the turn, and reminds a model that called nothing (B-24,
// B-32, B-33).
func (r *Rules) AfterResponse(_ context.Context, inv fiducial.Invocation, m llm.Message) (fiducial.ResponseAnswer, error) {
	defer r.note(inv)
	calls := m.CountCalls() > 0
	r.mu.Lock()
	s := &r.s
	again := inv.Turn <= s.Turns // asked a second time about the same reply, after a crash
	s.Turns, s.Usage = inv.Turn, inv.Usage
	if s.Plan == "" {
		s.Plan = strings.TrimSpace(m.Text())
	}
	switch {
	case calls:
		s.Toolless = 0
	case !again:
		s.Toolless++
	}
	stalled := s.Toolless >= stallReplies
	if stalled && s.Exit == "" {
		s.Exit, s.Detail = PathStalled, fmt.Sprintf("%d replies in a row called no tool", s.Toolless)
	}
	r.mu.Unlock()
	switch {
	case stalled, calls && m.Stop == llm.StopToolUse:
		return fiducial.Continue{}, nil
	case calls: // the engine would end the run behind the results (S-51); a task ends by finish alone
		return goOn("go_on", "The run goes on until you call "+FinishName+".")
	case m.Stop == llm.StopMaxTokens:
		return goOn("cut", "Your reply was cut at the output limit and called no tool. Write less, and call the tools you need.")
	}
	return goOn("no_call",
		"You called no tool. The run goes on until you call "+FinishName+": with outcome done when the work is verified, "+
			"or with outcome refuse when it must not or cannot be done.")
}

func goOn(kind, text string) (fiducial.ResponseAnswer, error) {
	return fiducial.ContinueWith{Messages: []llm.Message{note(kind, text)}}, nil
}

// PreRequest is where a turn ends and the next begins: stall and repairs, an
// accepted finish, the budget, the request to converge, in this order (B-36).
func (r *Rules) PreRequest(ctx context.Context, inv fiducial.Invocation, _ *llm.Request) (fiducial.RequestAnswer, error) {
	defer r.note(inv)
	r.mu.Lock()
	r.s.Usage = inv.Usage
	r.mu.Unlock()
	if path, detail := r.overdue(); path != "" {
		return fiducial.Yield{Reason: string(path) + ": " + detail}, nil
	}
	var say []llm.Message
	switch path, reasons := r.finishing(ctx); {
	case path != "":
		return fiducial.Yield{Reason: string(path)}, nil
	case len(reasons) > 0:
		say = append(say, note("finish_withdrawn",
			"Your finish is withdrawn: what it rested on does not hold any more.\n"+list(reasons)))
	}
	if !r.budget(ctx) {
		return fiducial.Yield{Reason: string(PathTurnBudget), Messages: say}, nil
	}
	if text := r.converge(); text != "" {
		say = append(say, note("converge", text))
	}
	if len(say) > 0 {
		return fiducial.ContinueWith{Messages: say}, nil
	}
	return fiducial.Continue{}, nil
}

// overdue ends a run that stalled or repaired too often, or that a fault of the
// computer's keeps from being judged.
func (r *Rules) overdue() (Path, string) {
	var fault error
	if r.cfg.Fault != nil {
		fault = r.cfg.Fault()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.s.Exit == "" && fault != nil {
		r.s.Exit, r.s.Detail = PathEnvironment, fault.Error()
	}
	if r.s.Exit == "" && r.s.Repairs > r.cfg.MaxRepairs {
		r.s.Exit = PathRepairs
		r.s.Detail = fmt.Sprintf("%d checks failed, and %d may", r.s.Repairs, r.cfg.MaxRepairs)
	}
	return r.s.Exit, r.s.Detail
}

// finishing looks at an accepted finish once more when all calls of the reply are
// done: a later call of the same reply may have closed a gate again (B-37), and
// after a crash every check is due again. The reasons say why it was withdrawn.
func (r *Rules) finishing(ctx context.Context) (path Path, reasons []string) {
	r.mu.Lock()
	f := r.s.Finish
	r.mu.Unlock()
	if f == nil {
		return "", nil
	}
	path = PathRefused
	if !f.Refused {
		path, reasons = PathDone, r.tryFinish(ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(reasons) > 0 {
		r.s.Finish = nil
		return "", reasons
	}
	r.s.Exit, r.s.Detail = path, f.Summary
	return path, nil
}

// budget asks for more turns when they are used up, and reports whether there are
// any.
func (r *Rules) budget(ctx context.Context) bool {
	r.mu.Lock()
	s := r.s
	r.mu.Unlock()
	if s.Turns < s.Budget {
		return true
	}
	more := r.ask(ctx, Exhausted{
		TurnsUsed: s.Turns, Budget: s.Budget, MaxTurns: r.cfg.MaxTurns,
		Touched: slices.Clone(s.Touched), Open: len(s.Open), Usage: s.Usage,
	})
	r.mu.Lock()
	if more <= 0 {
		r.s.Exit = PathTurnBudget
		r.s.Detail = fmt.Sprintf("%d turns are used up, %d files were touched", s.Budget, len(s.Touched))
		r.mu.Unlock()
		return false
	}
	r.s.Budget += more
	s.Budget = r.s.Budget
	r.mu.Unlock()
	r.cfg.Event("budget-extended", map[string]any{ // before the next request (B-17)
		"granted": more, "budget": s.Budget, "max_turns": r.cfg.MaxTurns, "turns": s.Turns, "usage": s.Usage,
		"touched": s.Touched, "open": len(s.Open),
	})
	return true
}

// ask is Ask with every failure as a decline (B-21).
func (r *Rules) ask(ctx context.Context, e Exhausted) (more int) {
	if r.cfg.Ask == nil {
		return 0
	}
	defer func() {
		if recover() != nil {
			more = 0
		}
	}()
	more, err := r.cfg.Ask(ctx, e)
	if err != nil {
		return 0
	}
	return more
}

// converge is what the model is told when few turns are left, once for each
// budget (B-39, B-40).
func (r *Rules) converge() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.s
	if s.Turns == 0 || s.Budget-s.Turns != convergeAt || s.Converged == s.Budget {
		return ""
	}
	s.Converged = s.Budget
	text := fmt.Sprintf("%d turns are left. Converge: finish what is under way, run the checks that are due, and call %s.",
		convergeAt, FinishName)
	if r.cfg.Batching != "" {
		text += " " + r.cfg.Batching
	}
	return text
}

// PreTool answers locked tools. The lock is looked at for each call (B-25).
func (r *Rules) PreTool(_ context.Context, inv fiducial.Invocation, call *llm.Call) (fiducial.ToolAnswer, error) {
	if !slices.Contains(r.cfg.Locked, call.Name) || r.Unlocked() {
		return fiducial.Continue{}, nil
	}
	text := fmt.Sprintf("%s is not available yet.", call.Name)
	if r.cfg.UnlockHint != "" {
		text += " " + r.cfg.UnlockHint
	}
	return fiducial.Synthetic{Result: llm.Result{Status: llm.StatusError, Summary: text}}, nil
}

// PostTool keeps in the journal what the call changed.
func (r *Rules) PostTool(_ context.Context, inv fiducial.Invocation, _ llm.Call, _ llm.Result) (fiducial.PostAnswer, error) {
	r.note(inv)
	return fiducial.Continue{}, nil
}

func note(kind, text string) llm.Message {
	return llm.Message{Role: llm.RoleUser, Parts: []llm.Part{llm.System{Kind: kind, Text: text}}}
}

func list(lines []string) string { return "- " + strings.Join(lines, "\n- ") }
