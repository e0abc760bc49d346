// SPDX-License-Identifier: Apache-2.0

package task

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"time"

	fiducial "github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/task/workspace"
	"github.com/fiducial-dev/fiducial/tool"
)

// A Domain is what a run works on. Its methods are called by one goroutine.
type Domain interface {
	// Begin is called when the snapshot stands and before anything was written. It
	// returns what the model gets to work with.
	Begin(ctx context.Context, s *Session) (*Setup, error)

	// Seal may make the last changes of a run that is done, before they are
	// committed, such as a changelog entry. A failure is a warning (B-49).
	Seal(ctx context.Context, s *Session) error

	// Verification tells, for the summary and the commit, what was checked and with
	// what result.
	Verification() []string

	// Close frees what Begin took.
	Close() error
}

// A Recorder is a [Domain] that knows what it wrote. What else changes in the tree
// while its run goes on is somebody else's, and is neither committed nor put back.
type Recorder interface {
	// Wrote are the files that the run wrote, relative to the top and with slashes,
	// also those that it took back. Complete is false when there may be others.
	Wrote() (paths []string, complete bool)

	// Overwritten are those of them that do not hold what the run wrote last.
	Overwritten() []string
}

// A Judge is a [Domain] whose tools and gates rest on a program that may fail for
// reasons of its own.
type Judge interface {
	// Fault is why that program does not work; nil while it does. It ends the run as
	// failed by [PathEnvironment], whatever the model makes of it.
	Fault() error
}

// A Session is what a domain may use of its run.
type Session struct {
	Run      string
	Request  string
	Resumed  bool // the run was begun by another process
	Rules    *Rules
	Snapshot *workspace.Snapshot

	// Mask takes secrets out of a text that the domain stores.
	Mask func(string) string

	// Event adds to the transcript.
	Event func(kind string, data any)
}

// A Setup is what a domain brings to a run.
type Setup struct {
	System string      // the system prompt
	Prompt string      // the first user message
	Tools  []tool.Tool // without finish, which is added

	// These are as in [RulesConfig].
	Locked     []string
	UnlockHint string
	Batching   string
	Gates      []Gate
	Standing   []string
}

// Config is a run. Client, Repo, Run and Domain are required, and Request to begin one.
type Config struct {
	Client  llm.Client
	Repo    *workspace.Repo
	Run     string // the run's id
	Request string // in the user's words
	Domain  Domain

	Journal journal.Journal // nil: the run lives in this process only
	Model   string          // for the transcript
	Header  map[string]any  // metadata for the run-start event, collected once (B-8)

	AllowDirty bool // the tree may have changes of the user's
	DryRun     bool // show the changes and put the tree back (B-48)

	// These are as in [RulesConfig].
	MaxTurns, MaxRepairs int
	Ask                  func(ctx context.Context, e Exhausted) (int, error)

	RequestTimeout time.Duration // for each attempt; 0 means 600 s (B-1)

	Events    fiducial.EventSink          // the engine's events; may be nil
	Event     func(kind string, data any) // what belongs into the transcript (B-62), in order; may be nil
	Mask      fiducial.Masker             // takes secrets out of what is stored; nil leaves all in
	Settings  llm.Settings                // of every request
	Committer workspace.Identity          // used when git knows nobody
}

// Outcome says how a run ended.
type Outcome string

// The outcomes.
const (
	Done    Outcome = "done"
	Refused Outcome = "refused"
	Failed  Outcome = "failed"
)

// validate names a field that is required and missing.
func (c *Config) validate() error {
	for _, f := range []struct {
		name string
		lack bool
	}{
		{"Client", c.Client == nil},
		{"Repo", c.Repo == nil},
		{"Run", c.Run == ""},
		{"Domain", c.Domain == nil},
	} {
		if f.lack {
			return missing(f.name)
		}
	}
	return nil
}

func missing(field string) error { return fmt.Errorf("task: Config.%s is missing", field) }

// A Result tells how a run ended and where everything is.
type Result struct {
	Run     string
	Outcome Outcome
	Path    Path
	Detail  string // one line or more for people
	Err     error  // the cause of a failure; nil otherwise

	Commit string           // of a run that is done, empty when there was nothing to commit
	Files  []string         // what the run changed; none when it failed or refused (B-58)
	Stats  []workspace.Stat // of Files
	Diff   string

	Tally        Tally // touched files and obligations as they were at the end
	Verification []string
	Warnings     []string

	Preserved  workspace.Preserved // the changes of a run that failed
	Restored   *workspace.Restored // nil when nothing was put back
	RestoreErr error               // the tree could not be put back whole
}

// Run carries a request out: preflight, snapshot, loop, and then a commit, or the
// tree as it was. The error is a [*workspace.PreflightError] or another reason
// why the run never began, and then nothing was written. How a run that began
// ended is told by the result alone.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Request == "" { // a run that is resumed may have lost it
		return nil, missing("Request")
	}
	if err := cfg.Repo.Preflight(ctx, cfg.AllowDirty); err != nil {
		return nil, err
	}
	if fallback := cfg.Committer; !cfg.DryRun && (fallback.Name == "" || fallback.Email == "") {
		if err := cfg.Repo.PreflightIdentity(ctx); err != nil {
			return nil, err
		}
	}
	return begin(ctx, cfg, func() (*workspace.Snapshot, error) {
		return cfg.Repo.Snapshot(ctx, cfg.Run, time.Now())
	}, false)
}

// Resume goes on with a run that another process began and did not end. Journal is
// required too, and so is the snapshot that the run made of the tree.
func Resume(ctx context.Context, cfg Config) (*Result, error) {
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	if cfg.Journal == nil {
		return nil, errors.New("task: a run can be resumed only from its journal")
	}
	return begin(ctx, cfg, func() (*workspace.Snapshot, error) { return cfg.Repo.Reopen(ctx, cfg.Run) }, true)
}

func begin(ctx context.Context, cfg Config, snapshot func() (*workspace.Snapshot, error), resumed bool) (*Result, error) {
	lock, err := cfg.Repo.Lock(ctx, cfg.Run, time.Now())
	if err != nil {
		return nil, err
	}
	defer func() { _ = lock.Release() }() // the kernel frees it at the latest with the process
	snap, err := snapshot()
	if err != nil {
		return nil, err
	}
	if cfg.Event == nil {
		cfg.Event = func(string, any) {}
	}
	r := &runner{cfg: cfg, snap: snap, resumed: resumed}
	r.rules = NewRules(RulesConfig{MaxTurns: cfg.MaxTurns, MaxRepairs: cfg.MaxRepairs, Ask: cfg.Ask, Event: cfg.Event})
	return r.run(ctx), nil
}

type runner struct {
	foreignTold bool // the warning about files of others was given

	cfg     Config
	snap    *workspace.Snapshot
	rules   *Rules
	resumed bool
	result  Result
}

func (r *runner) run(ctx context.Context) *Result {
	res := &r.result
	res.Run = r.cfg.Run
	start := map[string]any{"request": r.cfg.Request, "model": r.cfg.Model, "resumed": r.resumed}
	maps.Copy(start, r.cfg.Header)
	r.cfg.Event("run-start", start)
	session := &Session{
		Run: r.cfg.Run, Request: r.cfg.Request, Resumed: r.resumed,
		Rules: r.rules, Snapshot: r.snap, Event: r.cfg.Event, Mask: r.mask,
	}
	if c := r.snap.Committed(); c != "" { // killed behind its commit: nothing is left to do
		r.landed(ctx, c)
		return res
	}
	r.guarded(func() { r.loop(ctx, session) })
	res.Tally = r.rules.Tally()
	res.Verification = r.cfg.Domain.Verification()
	// What follows must happen however the loop ended: it does not stop with ctx.
	last := context.WithoutCancel(ctx)
	switch {
	case res.Path == PathDone && r.cfg.DryRun:
		r.dry(last)
	case res.Path == PathDone:
		r.commit(ctx, last, session)
	case res.Path == PathRefused:
		res.Outcome = Refused
		r.cfg.Event("run-refused", map[string]any{"detail": res.Detail})
		r.putBack(last)
	default:
		r.failed(last)
	}
	res.Tally = r.rules.Tally() // once more: the commit meets obligations
	if err := r.cfg.Domain.Close(); err != nil {
		r.warn("closing: %v", err)
	}
	r.cfg.Event("run-end", r.end())
	return res
}

// guarded keeps a panic of the domain from leaving the tree half-edited: it is how
// the run ends, and what follows puts the tree back.
func (r *runner) guarded(f func()) {
	defer func() {
		if p := recover(); p != nil {
			r.fail(PathInternal, &tool.PanicError{Value: p, Stack: debug.Stack()})
		}
	}()
	f()
}

func (r *runner) mask(text string) string {
	if r.cfg.Mask == nil {
		return text
	}
	return r.cfg.Mask.Text(text)
}

// loop is everything up to the end that the rules, or an error, give the run.
func (r *runner) loop(ctx context.Context, s *Session) {
	setup, err := r.cfg.Domain.Begin(ctx, s)
	if err != nil {
		r.fail(pathOf(ctx, err, PathInternal), err)
		return
	}
	c := &r.rules.cfg
	c.Locked, c.UnlockHint, c.Batching, c.Gates, c.Standing = setup.Locked, setup.UnlockHint, setup.Batching, setup.Gates, setup.Standing
	if j, ok := r.cfg.Domain.(Judge); ok {
		c.Fault = j.Fault
	}
	locked, err := r.engine(setup).Lock()
	if err != nil {
		r.fail(PathInternal, err)
		return
	}
	var out fiducial.Outcome
	if r.resumed {
		if err = locked.Open(ctx); err == nil {
			err = r.rules.Restore(locked.Notes())
		}
		if err == nil {
			out, err = locked.Resume(ctx)
		}
	} else {
		out, err = locked.Run(ctx, llm.UserText(setup.Prompt))
	}
	if closeErr := locked.Close(context.WithoutCancel(ctx)); closeErr != nil {
		r.warn("the journal: %v", closeErr)
	}
	r.settle(ctx, out, err)
}

func (r *runner) engine(setup *Setup) *fiducial.Engine {
	timeout := r.cfg.RequestTimeout
	if timeout == 0 {
		timeout = 600 * time.Second
	}
	opts := []fiducial.Option{
		fiducial.WithSystem(setup.System),
		fiducial.WithTools(append(setup.Tools, r.rules.FinishTool())...),
		fiducial.WithInterceptor(r.rules),
		fiducial.WithRequestTimeout(timeout),
		fiducial.WithSettings(r.cfg.Settings),
		fiducial.WithEvents(r.sink()),
		fiducial.WithCacheKey(r.cfg.Run),
		fiducial.WithOwner(fmt.Sprintf("fiducial run %s", r.cfg.Run)),
		fiducial.WithLabels(map[string]string{"request": llm.CutUTF8(r.cfg.Request, 200), "model": r.cfg.Model}),
	}
	if r.cfg.Journal != nil {
		opts = append(opts, fiducial.WithJournal(r.cfg.Journal, r.cfg.Run))
	}
	if r.cfg.Mask != nil {
		opts = append(opts, fiducial.WithMask(r.cfg.Mask))
	}
	return fiducial.New(r.cfg.Client, opts...)
}

// settle turns the engine's outcome into the run's.
func (r *runner) settle(ctx context.Context, out fiducial.Outcome, err error) {
	path, detail := r.rules.exit()
	switch {
	case err != nil:
		r.fail(pathOf(ctx, err, PathProvider), err)
	case path != "":
		r.result.Path, r.result.Detail = path, detail
		if path != PathDone && path != PathRefused {
			r.result.Err = errors.New(detail)
		}
	case out.Reason == fiducial.LimitReached && out.Limit == fiducial.LimitLoop:
		r.fail(PathLoop, errors.New(cmp.Or(out.Detail, "the model made the same calls with the same results again and again")))
	default:
		r.fail(PathInternal, fmt.Errorf("the run ended as %q without a reason", out.Reason))
	}
}

// pathOf is the path for an error of the engine or the domain.
func pathOf(ctx context.Context, err error, other Path) Path {
	switch {
	case errors.Is(err, fiducial.ErrCancelled), ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return PathCancelled
	case errors.Is(err, fiducial.ErrGeneration), errors.Is(err, fiducial.ErrContextWindow):
		return PathProvider
	case journalFails(err):
		return PathEnvironment
	case errors.Is(err, fiducial.ErrJournal), errors.Is(err, fiducial.ErrFenced), errors.Is(err, fiducial.ErrState),
		errors.Is(err, fiducial.ErrInterceptor), errors.Is(err, fiducial.ErrConfig), errors.Is(err, fiducial.ErrPrefix):
		return PathInternal
	}
	return other
}

// journalFails reports whether the journal does not work where it is, whatever it was
// given.
func journalFails(err error) bool {
	for _, target := range []error{
		journal.ErrFull, journal.ErrStorage, journal.ErrUncertain, journal.ErrReadOnly, journal.ErrDamaged, journal.ErrReplaced,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

func (r *runner) fail(path Path, err error) {
	r.result.Path, r.result.Err, r.result.Detail = path, err, err.Error()
}

func (r *runner) warn(format string, args ...any) {
	r.result.Warnings = append(r.result.Warnings, fmt.Sprintf(format, args...))
}
