// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
	"github.com/fiducial-dev/fiducial/tool"
)

// An Engine is one that can be edited: its prompt, tools and history may change.
// [Engine.Lock] commits them as the prefix of every later request and gives a
// [Locked], after which this handle answers every call with [ErrStale].
//
// An Engine and a Locked may be used from several goroutines; one run goes on at
// a time.
type Engine struct{ handle }

// A Locked is an engine with a committed prefix: turns can be added, and nothing
// before them can change. [Locked.Unlock] gives the prefix up.
type Locked struct{ handle }

// A handle is one owner of a core at a time; see core.owner.
type handle struct {
	core *core
	gen  uint64
}

// core is what Engine and Locked share. mu guards all of it while no run goes
// on; during a run it belongs to the run's goroutine, but for the fields of
// inbox, which has a lock of its own.
type core struct {
	mu      sync.Mutex
	gen     uint64 // of the handle that may be used
	running bool
	view    []llm.Message // the history as others see it during a run

	warned warned

	turnsBefore int // the total when the run began, for others to see

	cfg    config
	client llm.Client
	exec   tool.Executor
	server *tool.Server // nil with an executor of the caller's

	state  machine.State
	lock   lock  // the committed prefix
	store  store // journal and checkpoint
	counts counts
	guard  loopGuard
	meter  meter
	audit  cacheAudit
	pruner pruner
	lent   lent // the history, for functions of others
	inbox  inbox

	seq         uint64 // of the last event
	sent        int    // messages of the history that a request has held
	noticed     machine.OperationID
	reviewed    machine.OperationID // the batch whose reply AfterResponse has let pass
	armed       armed
	draft       machine.OperationID // the reply that the reader of a stream saw in part, 0 when none is
	badNote     error               // of the hook that was called last
	extra       []llm.Message       // what hooks want added at the next boundary
	observerErr error
	stream      EventSink // of Stream, beside cfg.sink
}

// warned says what a run has been warned of, once.
type warned struct{ tokens, pruning bool }

// New puts an engine together. Mistakes in the options show at [Engine.Lock].
// The client is used by one request at a time.
func New(client llm.Client, opts ...Option) *Engine {
	c := &core{client: client}
	c.cfg.loop, c.cfg.fruitless, c.cfg.parallel = 3, DefaultFailureGuard, DefaultParallel
	for _, opt := range opts {
		if opt != nil {
			opt(&c.cfg)
		}
	}
	c.cfg.retry = c.cfg.retry.withDefaults()
	c.cfg.grace = max(cmp.Or(c.cfg.grace, DefaultGrace), 0)
	c.exec = c.cfg.executor
	if c.exec == nil {
		c.server = c.cfg.server
		if c.server == nil {
			c.server = &tool.Server{}
		}
		c.exec = c.server
	}
	c.store.init(c.cfg)
	if f := c.cfg.checkpoint; f != nil {
		c.store.checkpoint = func(saved machine.Checkpoint) (err error) {
			saved.History = c.lendWhole()
			c.outside(func() { err = f(saved) })
			return err
		}
	}
	return &Engine{handle{c, 0}}
}

// use locks the core for one call of the handle. Done must be called.
func (h handle) use(op string) (c *core, done func(), err error) {
	c = h.core
	if c == nil {
		return nil, nil, zeroHandle(op)
	}
	c.mu.Lock()
	switch {
	case c.gen != h.gen:
		err = fail(KindStale, op, nil, "the engine was locked or unlocked; use the handle that this gave")
	case c.running:
		err = fail(KindBusy, op, nil, "a run, or another change, is going on; wait for it, or cancel its context")
	}
	if err != nil {
		c.mu.Unlock()
		return nil, nil, err
	}
	return c, c.mu.Unlock, nil
}

// outside calls a function of the caller's that may want to read the engine, or to
// send to it, while a call other than a run holds it. It finds the engine as during a
// run: what would change it is refused.
func (c *core) outside(f func()) {
	if c.running {
		f()
		return
	}
	c.running, c.view, c.turnsBefore = true, c.seen(), c.counts.lifetime
	c.mu.Unlock()
	defer func() {
		c.mu.Lock()
		c.running, c.view = false, nil
	}()
	f()
}

// zeroHandle is for an Engine or a Locked that nobody made.
func zeroHandle(op string) *Error {
	return fail(KindStale, op, nil, "a zero Engine or Locked is not usable; New gives an Engine, and Lock a Locked")
}

// Server is the engine's tool server. It is nil when the engine was given an
// executor. While the engine is locked the server refuses to change the list of
// tools.
func (h handle) Server() *tool.Server {
	if h.core == nil {
		return nil
	}
	return h.core.server
}

// History is the conversation so far. It must not be changed; an engine with
// interceptors gives a copy of its own, see [Interceptor]. During a run it is
// that of the last request or earlier. After a run that was paused or failed
// before its calls were answered it ends with these calls; Resume, or a new run,
// answers them (S-92).
func (h handle) History() []llm.Message {
	if h.core == nil {
		return nil
	}
	h.core.mu.Lock()
	defer h.core.mu.Unlock()
	if h.core.running {
		return h.core.view
	}
	return h.core.seen()
}

// seen is the history for others to read. Where there are hooks it is what they are
// shown, too.
func (c *core) seen() []llm.Message {
	if len(c.cfg.interceptors) > 0 {
		return c.lendWhole()
	}
	return c.state.History()
}

// Lock commits system prompt, tools and history as the prefix of every later
// request: the history as it is sent, see [WithPruning] and [WithDropImages]. The error is of kind configuration or stale, and then the engine stays
// as it was.
func (e *Engine) Lock() (l *Locked, err error) {
	const op = "lock"
	c, done, err := e.use(op)
	if err != nil {
		return nil, err
	}
	defer done()
	defer c.maskFailed(op, &err)
	if err := c.configure(op); err != nil {
		return nil, err
	}
	if err := c.commitPrefix(op); err != nil {
		return nil, err
	}
	c.gen++
	return &Locked{handle{c, c.gen}}, nil
}

// Unlock gives the prefix up. Between two parts of a paused run this is the way
// to replace the history.
func (l *Locked) Unlock() (*Engine, error) {
	c, done, err := l.use("unlock")
	if err != nil {
		return nil, err
	}
	defer done()
	c.lock.giveUp()
	c.gen++
	return &Engine{handle{c, c.gen}}, nil
}

// configure checks the options and installs the history, once.
func (c *core) configure(op string) error {
	cfg := &c.cfg
	switch {
	case isNil(c.client):
		return fail(KindConfig, op, nil, "New was given no client")
	case len(cfg.wrong) > 0:
		return fail(KindConfig, op, nil, "%s", strings.Join(cfg.wrong, "; "))
	case slices.ContainsFunc(cfg.tools, func(t tool.Tool) bool { return isNil(t) }):
		return fail(KindConfig, op, nil, "WithTools was given a nil tool")
	case slices.ContainsFunc(cfg.interceptors, func(i Interceptor) bool { return isNil(i) }):
		return fail(KindConfig, op, nil, "WithInterceptor was given a nil interceptor")
	case slices.ContainsFunc(cfg.observers, func(f func(llm.Message) error) bool { return f == nil }):
		return fail(KindConfig, op, nil, "WithObserver was given a nil function")
	case cfg.executor != nil && (len(cfg.tools) > 0 || cfg.server != nil):
		return fail(KindConfig, op, nil, "WithExecutor cannot be combined with WithTools or WithServer")
	case cfg.journal != nil && cfg.run == "":
		return fail(KindConfig, op, nil, "WithJournal needs the run's name")
	case cfg.saved != nil && (cfg.journal != nil || len(cfg.history) > 0):
		return fail(KindConfig, op, nil, "WithRecovery cannot be combined with WithJournal or WithHistory")
	case cfg.durable && (cfg.journal == nil || cfg.journal.Promise() != journal.Durable):
		return fail(KindConfig, op, nil, "WithDurable needs a journal that is durable; this one forgets when the process ends")
	}
	if err := c.checkNames(op); err != nil {
		return err
	}
	if err := c.checkSettings(op, cfg.settings); err != nil {
		return err
	}
	if cfg.saved != nil {
		if err := c.restore(op, *cfg.saved); err != nil {
			return err
		}
		cfg.saved = nil
	}
	if len(cfg.tools) > 0 {
		register := func() (struct{}, error) { return struct{}{}, c.server.Register(cfg.tools...) }
		if _, err := guarded(register); err != nil { // a tool may hold a nil one, which panics
			return fail(KindConfig, op, err, "WithTools")
		}
		cfg.tools = nil
	}
	if len(cfg.history) > 0 {
		if err := checkData(cfg.history); err != nil {
			return fail(KindConfig, op, err, "WithHistory")
		}
		if err := step(c, op, machine.ReplaceContext{Messages: c.maskAll(cfg.history)}); err != nil {
			return fail(KindConfig, op, err, "WithHistory")
		}
		cfg.history = nil
	}
	return c.capTruncations(op)
}

// restore takes over what a lost process has saved.
func (c *core) restore(op string, saved machine.Checkpoint) error {
	saved.History = llm.CloneMessages(saved.History)
	saved.History = c.maskAll(saved.History)
	r, err := machine.RecoverCheckpoint(saved)
	if err != nil {
		return fail(KindConfig, op, err, "WithRecovery")
	}
	st, err := machine.FromCheckpoint(r)
	if err != nil {
		return fail(KindConfig, op, err, "WithRecovery")
	}
	c.state, c.sent = *st, st.Len()
	return nil
}

func (c *core) capTruncations(op string) error {
	n := c.cfg.truncations
	if n == nil || *n == c.state.TruncationCap() {
		return nil
	}
	if err := step(c, op, machine.SetTruncationCap{N: *n}); err != nil {
		return fail(KindConfig, op, err, "WithTruncationCap")
	}
	return nil
}

// Append adds a copy of a message to the history. Only user messages can be added; a whole
// conversation is installed by ReplaceHistory.
func (e *Engine) Append(ctx context.Context, m llm.Message) error {
	m = m.Clone()
	return e.edit(ctx, "append", []llm.Message{m}, func(c *core) machine.Input {
		return machine.AppendInput{Message: c.mask(m)}
	})
}

// ReplaceHistory installs a copy of a whole conversation. In a paused run the pending
// request will be made of it (S-31); while calls are pending it is refused.
func (e *Engine) ReplaceHistory(ctx context.Context, messages []llm.Message) error {
	messages = llm.CloneMessages(messages)
	return e.edit(ctx, "replace history", messages, func(c *core) machine.Input {
		masked := c.maskAll(messages)
		if c.state.Idle() {
			return machine.ReplaceContext{Messages: masked}
		}
		return machine.ReplaceAtBoundary{Messages: masked}
	})
}

// Truncate keeps the first n messages.
func (e *Engine) Truncate(ctx context.Context, n int) error {
	return e.edit(ctx, "truncate", nil, func(*core) machine.Input { return machine.Truncate{Len: n} })
}

// SetSystem changes the system prompt.
func (e *Engine) SetSystem(text string) error {
	c, done, err := e.use("set system")
	if err != nil {
		return err
	}
	defer done()
	c.cfg.system = text
	c.audit.forget(CachePrefixEdited)
	return nil
}

// SetSettings changes how the model answers, from the next request on; it is no part
// of the prefix (E-85). The error is of kind configuration when the client says that
// it cannot honour a setting, and then the old ones stay.
func (h handle) SetSettings(s llm.Settings) error {
	const op = "set settings"
	c, done, err := h.use(op)
	if err != nil {
		return err
	}
	defer done()
	if err := c.checkSettings(op, s); err != nil {
		return err
	}
	c.cfg.settings = s.Clone()
	return nil
}

func (c *core) checkSettings(op string, s llm.Settings) error {
	if k, ok := c.client.(llm.Checker); ok {
		problems, err := guarded(func() (problems []string, err error) {
			c.outside(func() { problems = k.Check(s) })
			return problems, nil
		})
		if err != nil {
			return fail(KindConfig, op, err, "the client was asked whether it can do what the settings ask for")
		}
		if len(problems) > 0 {
			return fail(KindConfig, op, nil, "the model cannot do what the settings ask for: %q", problems)
		}
	}
	return nil
}

// TotalTurns is how many replies the conversation has had in all its runs. During a
// run it is the number at its beginning (E-41).
func (h handle) TotalTurns() int {
	if h.core == nil {
		return 0
	}
	h.core.mu.Lock()
	defer h.core.mu.Unlock()
	if h.core.running {
		return h.core.turnsBefore
	}
	return h.core.counts.lifetime
}

// SetTotalTurns restores the count of a conversation that was kept elsewhere (E-42).
// With a journal the count comes from its records when the run is opened.
func (e *Engine) SetTotalTurns(n int) error {
	const op = "set total turns"
	c, done, err := e.use(op)
	if err != nil {
		return err
	}
	defer done()
	if n < 0 {
		return fail(KindConfig, op, nil, "%d turns; it must be 0 or more", n)
	}
	c.counts.lifetime = n
	return nil
}

// SetTurnLimit changes the limit of [WithTurnLimit]; a negative n means none. It is no
// part of the prefix: a run that ended at the limit goes on by Resume when it was raised.
func (h handle) SetTurnLimit(n int) error {
	c, done, err := h.use("set turn limit")
	if err != nil {
		return err
	}
	defer done()
	c.cfg.setTurns(n)
	return nil
}

// SetTokenBudget changes the budget of [WithTokenBudget]; a negative n means none. It is
// no part of the prefix, as the limit of SetTurnLimit is none.
func (h handle) SetTokenBudget(n int64) error {
	c, done, err := h.use("set token budget")
	if err != nil {
		return err
	}
	defer done()
	c.cfg.setTokens(n)
	return nil
}

func (e *Engine) edit(ctx context.Context, op string, given []llm.Message, input func(*core) machine.Input) (err error) {
	if err := checkContext(ctx, op); err != nil {
		return err
	}
	c, done, err := e.use(op)
	if err != nil {
		return err
	}
	defer done()
	defer c.maskFailed(op, &err)
	if err := c.configure(op); err != nil {
		return err
	}
	if err := checkData(given); err != nil {
		return fail(KindState, op, err, "")
	}
	in := input(c)
	if a, ok := in.(machine.AppendInput); ok {
		if err := c.askObservers(op, a.Message); err != nil {
			return err
		}
	}
	if err := step(c, op, in); err != nil {
		return err
	}
	c.edited(in)
	if c.store.j != nil && c.store.lease == nil {
		return nil // the journal is opened by the first run
	}
	if replaces(in) { // S-89: a caller with a store of its own took it from there
		return c.store.flush(ctx, op, &c.state)
	}
	return c.store.save(ctx, op, &c.state)
}

// replaces reports whether the input installs a whole history.
func replaces(in machine.Input) bool {
	switch in.(type) {
	case machine.ReplaceContext, machine.ReplaceAtBoundary:
		return true
	default:
		return false
	}
}

// edited forgets what does not hold of the history as it is now.
func (c *core) edited(in machine.Input) {
	_, cut := in.(machine.Truncate)
	switch {
	case replaces(in):
		c.sent = 0
	case cut:
		c.sent = min(c.sent, c.state.Len())
	default:
		return // nothing that was there has changed
	}
	c.store.owed = 0 // S-90
	c.guard = loopGuard{}
	c.meter.forget()
	c.pruner, c.lent = pruner{}, lent{}
	c.audit.forget(CachePrefixEdited)
}

// Run locks the engine and runs it; see [Locked.Run].
func (e *Engine) Run(ctx context.Context, in ...llm.Message) (*Locked, Outcome, error) {
	l, err := e.Lock()
	if err != nil {
		return nil, Outcome{Reason: Failed}, err
	}
	out, err := l.Run(ctx, in...)
	return l, out, err
}

// Close ends the engine's hold on its run in the journal, and on the list of tools of a
// server that it shares. It may be run again: that takes both up anew.
func (h handle) Close(ctx context.Context) error {
	if err := checkContext(ctx, "close"); err != nil {
		return err
	}
	c, done, err := h.use("close")
	if err != nil {
		return err
	}
	defer done()
	c.lock.letGo()
	return c.store.close(ctx)
}
