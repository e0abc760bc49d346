// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
	"github.com/fiducial-dev/fiducial/tool"
)

// DefaultGrace is how long calls may go on after a cancel.
const DefaultGrace = 2 * time.Second

// An Option sets up an [Engine].
type Option func(*config)

type config struct {
	system       string
	server       *tool.Server
	tools        []tool.Tool
	executor     tool.Executor
	history      []llm.Message
	settings     llm.Settings
	journal      journal.Journal
	run, owner   string
	labels       map[string]string
	durable      bool
	interceptors []Interceptor
	observers    []func(llm.Message) error
	sink         EventSink
	trace        TraceContext
	checkpoint   func(machine.Checkpoint) error
	saved        *machine.Checkpoint
	notice       func(ctx context.Context, history []llm.Message) (string, error)
	retry        RetryPolicy
	grace        time.Duration
	timeout      time.Duration
	turns        *int
	tokens       *int64
	loop         int
	truncations  *int
	masker       Masker
	prune        *PruneConfig
	dropImages   bool
	cacheKey     string
	parallel     int
	fruitless    int
	wrong        []string // what options were given that cannot be; Lock refuses it
}

// refuse remembers what Lock has to say about the options.
func (c *config) refuse(format string, args ...any) {
	c.wrong = append(c.wrong, fmt.Sprintf(format, args...))
}

// given reports whether an option was given something, also not a nil pointer or a nil
// function in an interface. It remembers what is missing.
func (c *config) given(option string, v any) bool {
	if isNil(v) {
		c.refuse("%s was given nil; leave the option out instead", option)
		return false
	}
	return true
}

func isNil(v any) bool {
	if v == nil {
		return true
	}
	r := reflect.ValueOf(v)
	return slices.Contains([]reflect.Kind{reflect.Pointer, reflect.Func, reflect.Map, reflect.Chan}, r.Kind()) && r.IsNil()
}

// WithSystem sets the system prompt.
func WithSystem(text string) Option { return func(c *config) { c.system = text } }

// WithTools adds tools to the engine's own server, see [Engine.Server].
func WithTools(tools ...tool.Tool) Option {
	return func(c *config) { c.tools = append(c.tools, tools...) }
}

// WithServer gives the tool server, for several engines to share.
func WithServer(s *tool.Server) Option {
	return func(c *config) {
		if c.given("WithServer", s) {
			c.server = s
		}
	}
}

// WithExecutor gives another way to run calls than a [tool.Server]. It cannot be
// combined with WithTools or WithServer.
func WithExecutor(x tool.Executor) Option {
	return func(c *config) {
		if c.given("WithExecutor", x) {
			c.executor = x
		}
	}
}

// WithHistory sets the conversation to begin with, a copy of messages. It must be valid context, see
// [machine.ValidateContext].
func WithHistory(messages ...llm.Message) Option {
	return func(c *config) { c.history = llm.CloneMessages(messages) }
}

// WithSettings shapes how the model answers.
func WithSettings(s llm.Settings) Option { return func(c *config) { c.settings = s.Clone() } }

// WithJournal stores the run in j under the name run. When the run exists, the
// first Run, Resume or Open takes it up where it stands.
func WithJournal(j journal.Journal, run string) Option {
	return func(c *config) {
		if c.given("WithJournal", j) {
			c.journal, c.run = j, run
		}
	}
}

// WithDurable refuses a journal that does not promise that what it stored
// survives the process.
func WithDurable() Option { return func(c *config) { c.durable = true } }

// WithOwner names the holder of the run for those who find it held. Without it
// the name is that of the machine and the number of the process.
func WithOwner(owner string) Option { return func(c *config) { c.owner = owner } }

// WithLabels are words to find the run by in its journal.
func WithLabels(labels map[string]string) Option {
	return func(c *config) { c.labels = maps.Clone(labels) }
}

// WithInterceptor adds interceptors behind those given before.
func WithInterceptor(i ...Interceptor) Option {
	return func(c *config) { c.interceptors = append(c.interceptors, i...) }
}

// WithObserver adds a function that sees each message that is said in a run before it
// becomes history and may refuse it; then the run, or [Engine.Append], ends with an
// error of kind history append and the message is not added (E-198). It sees messages
// of the user, those of hooks, replies and each result. It does not see what is
// installed whole, by [WithHistory], [WithRecovery] or [Engine.ReplaceHistory], nor what
// the engine itself must add: results of calls that a cancel or a loss has ended or that
// held a secret, the text of [WithNotice], and the note behind a reply that was cut.
func WithObserver(f func(llm.Message) error) Option {
	return func(c *config) { c.observers = append(c.observers, f) }
}

// WithEvents sends the events to sink; nil means to nobody.
func WithEvents(sink EventSink) Option {
	return func(c *config) {
		if sink == nil || c.given("WithEvents", sink) {
			c.sink = sink
		}
	}
}

// WithTrace sets the trace context of the events.
func WithTrace(t TraceContext) Option { return func(c *config) { c.trace = t } }

// WithCheckpoint calls f at the points of S-84: after input was added, before a
// request, after a reply, before calls start, after their results, and at the
// end. What f is given is a copy; its history is the same one each time, with what has
// come since, and must not be changed. When f fails the run stops before the next effect, and
// [Locked.Checkpoint] tries again. It is for callers with a store of their own.
func WithCheckpoint(f func(machine.Checkpoint) error) Option {
	return func(c *config) {
		if c.given("WithCheckpoint", f) {
			c.checkpoint = f
		}
	}
}

// WithRecovery begins with a checkpoint that the function of [WithCheckpoint] was
// given, in a process that was lost. What was pending counts as possibly done:
// nothing of it is run again, and the model is told (S-74 to S-78). The recovered
// history is given to the checkpoint function before anything else happens. It
// cannot be combined with WithHistory or WithJournal.
func WithRecovery(saved machine.Checkpoint) Option {
	return func(c *config) { c.saved = &saved }
}

// WithNotice asks f before every generation for a text for the model; empty
// means none. It is asked once for a generation, not for its retries, and it must
// return when its context ends (S-113 to S-119).
func WithNotice(f func(ctx context.Context, history []llm.Message) (string, error)) Option {
	return func(c *config) {
		if c.given("WithNotice", f) {
			c.notice = f
		}
	}
}

// WithRetry sets how failed requests are sent again.
func WithRetry(p RetryPolicy) Option {
	return func(c *config) {
		if p.Attempts < 0 || p.Base < 0 || p.Cap < 0 || p.Total < 0 {
			c.refuse("WithRetry was given a negative number; zero means the default, and 1 attempt turns retries off")
			return
		}
		c.retry = p
	}
}

// WithGrace sets how long calls may go on after a cancel; the default is
// [DefaultGrace]. A negative value means no grace.
func WithGrace(d time.Duration) Option { return func(c *config) { c.grace = d } }

// WithRequestTimeout limits each attempt of a request, from sending it to the
// last event. An attempt that runs out counts as failed and is retried. Zero
// means no limit; a negative time is refused by Lock.
func WithRequestTimeout(d time.Duration) Option {
	return func(c *config) {
		if d < 0 {
			c.refuse("WithRequestTimeout was given %v; it must be 0, for no limit, or more", d)
			return
		}
		c.timeout = d
	}
}

// WithTurnLimit ends a run as [LimitReached] before the request that would follow
// n replies; the calls of the last reply still run (E-30). 0 sends no request; a
// negative n means no limit, as without the option. [Locked.SetTurnLimit] changes it.
func WithTurnLimit(n int) Option { return func(c *config) { c.setTurns(n) } }

func (c *config) guards() guardLimits { return guardLimits{same: c.loop, failed: c.fruitless} }

func (c *config) setTurns(n int) {
	if c.turns = &n; n < 0 {
		c.turns = nil
	}
}

// WithTokenBudget ends a run as [LimitReached] before the request that would
// follow n tokens of input and output, summed over the run's requests, the whole
// prompt of each. 0 sends no request; a negative n means no limit, as without the
// option. [Locked.SetTokenBudget] changes it.
//
// What a provider does not tell of a reply is estimated at four bytes a token, of the
// history that was sent and of the reply, without the system prompt and the tools; a
// [Warning] says so once in a run.
func WithTokenBudget(n int64) Option { return func(c *config) { c.setTokens(n) } }

func (c *config) setTokens(n int64) {
	if c.tokens = &n; n < 0 {
		c.tokens = nil
	}
}

// WithLoopGuard watches for replies that make the same calls and get the same
// results n times in a row: the model is told once, and the next time the run
// ends as [LimitReached] with [LimitLoop]. The default is 3; less than 2 turns it off.
func WithLoopGuard(n int) Option { return func(c *config) { c.loop = n } }

// DefaultFailureGuard is the number of [WithFailureGuard].
const DefaultFailureGuard = 10

// WithFailureGuard watches for batches in which every call has failed, with whatever
// arguments: unknown tools, arguments that are refused, tools that give an error. After n of them
// in a row the model is told, and after 2n the run ends as [LimitReached] with
// [LimitLoop]. The default is [DefaultFailureGuard]; 0 and less turn it off.
func WithFailureGuard(n int) Option { return func(c *config) { c.fruitless = n } }

// WithTruncationCap sets how many replies in a row that were cut at the output
// limit are continued; the default is [machine.DefaultMaxTruncatedResumes].
func WithTruncationCap(n int) Option { return func(c *config) { c.truncations = &n } }

// WithMask takes secrets out of everything before it becomes history or a note, and
// before an event shows it: texts, the ids and names of calls, data of notes. Strings in
// arguments and in data are looked at as they read, whatever their escapes, and the
// texts of a message one behind the other: when a secret begins in one and ends in
// another, they become one text. Opaque data
// of a vendor and the bytes of pictures stay as they are. A call whose arguments hold a
// secret is not run. A secret in the run's name, its owner or a label is refused by
// [Engine.Lock], one in a key by [Locked.Send]. Errors are passed on as they came.
func WithMask(m Masker) Option {
	return func(c *config) {
		if c.given("WithMask", m) {
			c.masker = trusted(m)
		}
	}
}

// WithCacheKey groups requests for providers that take such a key.
func WithCacheKey(key string) Option { return func(c *config) { c.cacheKey = key } }

// DefaultParallel is how many calls of a reply run at once at most.
const DefaultParallel = 32

// WithParallel sets how many calls of a reply run at once at most; the default is
// [DefaultParallel]. The calls of a reply with more of them run in groups of n, each
// when the one before has its results. n must be 1 or more.
func WithParallel(n int) Option {
	return func(c *config) {
		if n < 1 {
			c.refuse("WithParallel was given %d; it must be 1 or more", n)
			return
		}
		c.parallel = n
	}
}

// WithSequentialCalls runs the calls of a reply one at a time, in order. It is
// WithParallel(1).
func WithSequentialCalls() Option { return WithParallel(1) }

// A Masker takes secrets out of text; one that is a [StreamMasker], too, lets replies
// be shown while they are written.
type Masker interface {
	// Text returns s with every secret replaced.
	Text(s string) string
	// Found reports whether s holds a secret.
	Found(s string) bool
}
