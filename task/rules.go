// SPDX-License-Identifier: Apache-2.0

package task

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	fiducial "github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
)

// Defaults of [RulesConfig] (B-1).
const (
	DefaultMaxTurns   = 40
	DefaultMaxRepairs = 5

	// stallReplies is how many replies without a call in a row are a stall (B-33).
	stallReplies = 3
	// convergeAt is how many turns are left when the model is asked to converge
	// (B-39).
	convergeAt = 5
)

// A Path says how a run ended (B-60).
type Path string

// The paths.
const (
	PathDone        Path = "done"
	PathRefused     Path = "refused"                 // by the model, through finish
	PathTurnBudget  Path = "turn-budget-exhausted"   // and nobody granted more turns
	PathRepairs     Path = "repair-cycles-exhausted" // too many checks failed
	PathStalled     Path = "stalled"                 // the model called no tool again and again
	PathLoop        Path = "loop"                    // the same calls had the same results again and again
	PathCommit      Path = "commit-failed"           // such as by a hook
	PathProvider    Path = "provider-error"          // the model gave no reply, or the conversation does not fit it
	PathCancelled   Path = "cancelled"               // the caller's context ended, or the run was given up
	PathInternal    Path = "internal-error"          // a mistake of the program's or the domain's
	PathForeignHead Path = "foreign-commit"          // somebody else moved the branch meanwhile
	PathForeignEdit Path = "foreign-edit"            // somebody else changed a file that the run had written

	// PathEnvironment: a program that the run rests on does not work, so that
	// nothing that was checked, or refused, says anything about the request; or its
	// journal does not, such as when the disk is full. The detail says which.
	PathEnvironment Path = "environment-failed"
)

// RulesConfig sets [Rules] up. Every field may be zero.
type RulesConfig struct {
	MaxTurns   int // replies; 0 means [DefaultMaxTurns]
	MaxRepairs int // failing checks; 0 means [DefaultMaxRepairs]

	// Ask is asked when the turns are used up; it returns how many more are
	// granted. Zero, less, an error or a panic decline. Nil declines without asking
	// (B-14 to B-21).
	Ask func(ctx context.Context, e Exhausted) (int, error)

	// Locked are the tools that answer "not available" until [Rules.Unlock];
	// UnlockHint tells the model how to get there (B-82, B-83).
	Locked     []string
	UnlockHint string

	// Batching is the instruction to put independent calls into one reply; the
	// request to converge repeats it (B-11, B-39).
	Batching string

	// Gates are asked when the model wants to finish as done.
	Gates []Gate

	// Standing are the kinds of obligation that do not keep a run from finishing,
	// such as one that the commit itself meets (B-71).
	Standing []string

	// Fault tells why a program that gates and tools rest on does not work, nil while
	// it does. It ends the run as failed before the model is asked again, also when
	// the model has finished. May be nil.
	Fault func() error

	// Event takes what belongs into the transcript (B-62). It is called in order. May be
	// nil.
	Event func(kind string, data any)
}

// A Gate keeps a run from finishing as done. Closed returns the reasons, none
// when the gate is open.
type Gate interface {
	// Name is a word for the gate, such as the check that it waits for.
	Name() string
	Closed(ctx context.Context) []string
}

// Exhausted is what the person who may extend a budget is told (B-14).
type Exhausted struct {
	TurnsUsed int
	Budget    int // with what was granted before
	MaxTurns  int // the original maximum (B-22)
	Touched   []string
	Open      int // obligations
	Usage     llm.Usage
}

// Finish is what the model said when it ended the run.
type Finish struct {
	Refused bool   `json:"refused,omitempty"`
	Summary string `json:"summary"`
}

// Rules hold what a run must keep to. They are an interceptor for the engine that
// carries the run. Their methods are safe for concurrent use.
type Rules struct {
	fiducial.NopInterceptor

	cfg RulesConfig

	mu    sync.Mutex
	s     state
	noted string // the state as the journal has it
}

// state is what rules remember, in the form that the journal keeps.
type state struct {
	Turns     int          `json:"turns"`
	Budget    int          `json:"budget"`
	Toolless  int          `json:"toolless,omitempty"`
	Repairs   int          `json:"repairs,omitempty"`
	Unlocked  bool         `json:"unlocked,omitempty"`
	Converged int          `json:"converged,omitempty"` // the budget for which the request to converge was made
	Touched   []string     `json:"touched,omitempty"`
	Open      []Obligation `json:"open,omitempty"`
	Decisions []string     `json:"decisions,omitempty"`
	Plan      string       `json:"plan,omitempty"`
	Usage     llm.Usage    `json:"usage,omitzero"`
	Finish    *Finish      `json:"finish,omitempty"`
	Exit      Path         `json:"exit,omitempty"`
	Detail    string       `json:"detail,omitempty"`
}

// noteKind is the kind of the journal notes that hold a state.
const noteKind = "task"

// NewRules returns the rules of a new run.
func NewRules(cfg RulesConfig) *Rules {
	if cfg.MaxTurns <= 0 {
		cfg.MaxTurns = DefaultMaxTurns
	}
	if cfg.MaxRepairs <= 0 {
		cfg.MaxRepairs = DefaultMaxRepairs
	}
	if cfg.Event == nil {
		cfg.Event = func(string, any) {}
	}
	return &Rules{cfg: cfg, s: state{Budget: cfg.MaxTurns}}
}

// Restore takes up what the journal of the run says, before the run goes on in
// another process. Files that were touched and obligations that were opened before
// it is called stay so: the domain may have found in the tree what the process that
// died did not get to note. An accepted finish stands and is looked at again; of the
// ways to end only a stall stands, for the engine asks no more after it. Without a
// note of the rules the run begins anew.
func (r *Rules) Restore(notes []journal.Note) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, n := range slices.Backward(notes) {
		if n.Kind != noteKind {
			continue
		}
		var s state
		if err := json.Unmarshal(n.Data, &s); err != nil {
			return fmt.Errorf("task: the journal's note on the run cannot be read: %w", err)
		}
		if s.Exit != PathStalled {
			s.Exit, s.Detail = "", ""
		}
		s.Budget = max(s.Budget, r.cfg.MaxTurns)
		s.Touched = slices.Compact(slices.Sorted(slices.Values(append(s.Touched, r.s.Touched...))))
		l := Ledger{open: s.Open}
		for _, o := range r.s.Open {
			l.Open(o)
		}
		s.Open = l.open
		r.s, r.noted = s, string(n.Data)
		return nil
	}
	return nil
}

// Unlock makes the locked tools available. The call of the same reply behind the
// one that unlocks runs already (B-25).
func (r *Rules) Unlock() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.s.Unlocked = true
}

// Unlocked reports whether the locked tools are available.
func (r *Rules) Unlocked() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.s.Unlocked
}

// Touch notes that the run changed a file.
func (r *Rules) Touch(path string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Contains(r.s.Touched, path) {
		r.s.Touched = append(r.s.Touched, path)
		slices.Sort(r.s.Touched)
	}
}

// Touched are the files that the run changed, sorted.
func (r *Rules) Touched() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.s.Touched)
}

// Repair counts one failing check. More than the maximum fail the run when the
// calls of the reply are done (B-36, B-38).
func (r *Rules) Repair() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.s.Repairs++
}

// Decide records a decision for the summary.
func (r *Rules) Decide(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.s.Decisions = append(r.s.Decisions, text)
}

// Oblige opens obligations.
func (r *Rules) Oblige(obligations ...Obligation) {
	r.withLedger(func(l *Ledger) {
		for _, o := range obligations {
			l.Open(o)
		}
	})
}

// Meet clears an obligation and reports whether it was open.
func (r *Rules) Meet(kind, detail string) (met bool) {
	r.withLedger(func(l *Ledger) { met = l.Clear(kind, detail) })
	return met
}

// MeetKind clears all obligations of a kind.
func (r *Rules) MeetKind(kind string) { r.withLedger(func(l *Ledger) { l.ClearKind(kind) }) }

// Open are the open obligations, oldest first.
func (r *Rules) Open() (open []Obligation) {
	r.withLedger(func(l *Ledger) { open = l.All() })
	return open
}

func (r *Rules) withLedger(f func(*Ledger)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := Ledger{open: slices.Clone(r.s.Open)}
	f(&l)
	r.s.Open = l.open
}

// A Tally is how a run stands or stood.
type Tally struct {
	Turns, Budget, MaxTurns int
	Repairs, MaxRepairs     int
	Usage                   llm.Usage
	Touched                 []string
	Open                    []Obligation
	Decisions               []string
	Plan                    string // the first text of the model
	Finish                  *Finish
}

// Tally tells how the run stands.
func (r *Rules) Tally() Tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := &r.s
	return Tally{
		Turns: s.Turns, Budget: s.Budget, MaxTurns: r.cfg.MaxTurns, Repairs: s.Repairs, MaxRepairs: r.cfg.MaxRepairs,
		Usage: s.Usage, Touched: slices.Clone(s.Touched), Open: slices.Clone(s.Open),
		Decisions: slices.Clone(s.Decisions), Plan: s.Plan, Finish: s.Finish,
	}
}

// exit says how the rules ended the run, if they did.
func (r *Rules) exit() (path Path, detail string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.s.Exit, r.s.Detail
}

// tryFinish asks gates and ledger whether the run may end as done.
func (r *Rules) tryFinish(ctx context.Context) (reasons []string) {
	for _, g := range r.cfg.Gates {
		for _, why := range g.Closed(ctx) {
			reasons = append(reasons, g.Name()+": "+why)
		}
	}
	for _, o := range r.Open() {
		if !slices.Contains(r.cfg.Standing, o.Kind) {
			reasons = append(reasons, strings.TrimSpace("open obligation: "+o.Kind+" "+o.Detail))
		}
	}
	return reasons
}

// note keeps the state in the journal when it is another one than before.
func (r *Rules) note(inv fiducial.Invocation) {
	r.mu.Lock()
	data, err := json.Marshal(r.s)
	changed := err == nil && string(data) != r.noted
	if changed {
		r.noted = string(data)
	}
	r.mu.Unlock()
	if changed {
		inv.Note(noteKind, data)
	}
}
