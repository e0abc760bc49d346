//go:build unix

// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/postgres"
	"github.com/fiducial-dev/fiducial/journal/sqlite"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/tool"
)

const crashEnv = "FIDUCIAL_ACCEPTANCE_CRASH"

// crashTTL is the lease of the tests on PostgreSQL, where nobody else frees a run
// whose holder was killed.
const crashTTL = 300 * time.Millisecond

// A crashSpec says what a child does: it begins the run or takes it up and drives it
// to its end, unless something comes between.
type crashSpec struct {
	Store   string // file, sqlite or postgres
	Folder  string
	Address string // of the server
	Schema  string
	TTL     time.Duration // of leases on the server; 0: crashTTL
	Model   string        // address of the model
	Wire    llmtest.Wire
	Effect  string // the file that tools append to
	Report  string // the file that the child writes at its end
	Seed    uint64 // of what it waits for, and where

	KillAt  int    // SIGKILL at this point; 0: never
	FaultAt int    // the append that fails as on EIO; 0: none
	Stored  bool   // and it is stored all the same
	Limit   uint64 // bytes that files may have; 0: no limit
	Wait    bool   // for a line on stdin once the store is open
	Once    bool   // give up where somebody else has the run
	Block   bool   // the tool "block" waits until it is cancelled, or for the file Effect + ".go"
}

// A crashReport is what a child writes at its end.
type crashReport struct {
	Err     string
	Held    bool
	Fenced  bool
	Kind    string // of the journal's error
	Reason  fiducial.Reason
	Text    string
	Points  int
	Resumed int // how often it went on after an error of the store
	History []llm.Message
}

// TestCrashChild is no test: it is the other process of the tests of this file.
func TestCrashChild(t *testing.T) {
	text := os.Getenv(crashEnv)
	if text == "" {
		t.Skip("it is the other process of other tests")
	}
	var spec crashSpec
	if err := json.Unmarshal([]byte(text), &spec); err != nil {
		t.Fatal(err)
	}
	p := &points{at: spec.KillAt}
	c := &crashChild{spec: spec, p: p, random: rand.New(rand.NewPCG(spec.Seed, 11))}
	report, err := c.run(t.Context())
	if err != nil {
		report.Err = err.Error()
		report.Held = errors.Is(err, journal.ErrHeld)
		report.Fenced = errors.Is(err, journal.ErrFenced) || errors.Is(err, fiducial.ErrFenced)
		report.Kind = kindOf(err)
	}
	report.Points = p.n
	c.limit(0)
	data, err := json.Marshal(report)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(spec.Report, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

func kindOf(err error) string {
	if errors.Is(err, fiducial.ErrFenced) { // noticed between two appends
		return "fenced"
	}
	for name, target := range map[string]error{
		"full": journal.ErrFull, "storage": journal.ErrStorage, "uncertain": journal.ErrUncertain, "fenced": journal.ErrFenced,
		"held": journal.ErrHeld, "damaged": journal.ErrDamaged, "format": journal.ErrFormat,
	} {
		if errors.Is(err, target) {
			return name
		}
	}
	return "other"
}

type crashChild struct {
	spec   crashSpec
	p      *points
	mu     sync.Mutex
	random *rand.Rand
	usual  syscall.Rlimit
}

// pause waits a random time up to a limit.
func (c *crashChild) pause(limit time.Duration) {
	c.mu.Lock()
	d := time.Duration(c.random.Int64N(int64(limit) + 1))
	c.mu.Unlock()
	if d > limit/4 { // often not at all
		time.Sleep(d - limit/4)
	}
}

// limit bounds the size of files; 0 lifts the bound.
func (c *crashChild) limit(bytes uint64) {
	switch {
	case bytes > 0:
		signal.Ignore(syscall.SIGXFSZ)
		if syscall.Getrlimit(syscall.RLIMIT_FSIZE, &c.usual) == nil {
			now := c.usual
			now.Cur = bytes
			_ = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &now) // then there is no fault
		}
	case c.usual.Max > 0:
		_ = syscall.Setrlimit(syscall.RLIMIT_FSIZE, &c.usual) // it was allowed before
	}
}

func (s crashSpec) open(ctx context.Context) (journal.Journal, error) {
	switch s.Store {
	case "file":
		return journal.OpenFolder(s.Folder, journal.FolderOptions{Poll: 5 * time.Millisecond})
	case "sqlite":
		return sqlite.Open(ctx, filepath.Join(s.Folder, "journal.db"), sqlite.Options{})
	case "postgres":
		return postgres.Open(ctx, s.Address, postgres.Options{Schema: s.Schema, TTL: cmp.Or(s.TTL, crashTTL), Patience: 20 * time.Second})
	}
	return nil, fmt.Errorf("no store %q", s.Store)
}

func (c *crashChild) run(ctx context.Context) (crashReport, error) {
	c.limit(c.spec.Limit)
	var store journal.Journal
	err := c.try(func() (err error) {
		store, err = c.spec.open(ctx)
		return err
	})
	if err != nil {
		return crashReport{}, err
	}
	defer func() { _ = store.Close() }() // what it says is told by what the next process finds
	fmt.Println("ready")
	if c.spec.Wait {
		if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
			return crashReport{}, err
		}
	}
	client, err := wires[c.spec.Wire](c.spec.Model)
	if err != nil {
		return crashReport{}, err
	}
	locked, err := fiducial.New(pointedClient{client, c.p},
		fiducial.WithSystem("Be exact."), fiducial.WithTools(c.tools()...), fiducial.WithLoopGuard(-1),
		fiducial.WithJournal(&faultyStore{Journal: pointedStore{store, c.p}, c: c}, runName), fiducial.WithDurable(),
		fiducial.WithRetry(fiducial.RetryPolicy{Attempts: 1}), fiducial.WithOwner(fmt.Sprint("process ", os.Getpid())),
		fiducial.WithEvents(fiducial.EventFunc(func(ev fiducial.Event) { pointAt(c.p, ev.Data) }))).Lock()
	if err != nil {
		return crashReport{}, err
	}
	report, err := c.drive(ctx, store, locked)
	report.History = locked.History()
	if err == nil {
		err = locked.Close(ctx)
	}
	return report, err
}

// try does something again while it fails for a store that cannot be reached.
func (c *crashChild) try(do func() error) error {
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		err := do()
		if err == nil || c.spec.Store != "postgres" || !errors.Is(err, journal.ErrStorage) || time.Now().After(end) {
			return err
		}
	}
}

// drive runs to the end, over errors of the store a few times, and then sees that a
// run that is over does nothing more.
func (c *crashChild) drive(ctx context.Context, store journal.Journal, locked *fiducial.Locked) (report crashReport, err error) {
	for waited := time.Now().Add(20 * time.Second); ; {
		out, err := c.advance(ctx, locked)
		report.Reason, report.Text = out.Reason, out.Text()
		switch {
		case err == nil:
			return report, c.again(ctx, store, locked, report.Text)
		case errors.Is(err, journal.ErrHeld) && !c.spec.Once && time.Now().Before(waited):
			time.Sleep(20 * time.Millisecond) // whose holder was killed
		case errors.Is(err, fiducial.ErrJournal) && !c.spec.Once && report.Resumed < 2:
			report.Resumed++
		default:
			return report, err
		}
	}
}

func (c *crashChild) advance(ctx context.Context, locked *fiducial.Locked) (fiducial.Outcome, error) {
	if err := locked.Open(ctx); err != nil {
		return fiducial.Outcome{}, err
	}
	if len(locked.History()) == 0 { // it died before the message was stored
		return locked.Run(ctx, llm.UserText("Do it all."))
	}
	return locked.Resume(ctx)
}

func (c *crashChild) again(ctx context.Context, store journal.Journal, locked *fiducial.Locked, text string) error {
	before, err := store.Stat(ctx, runName)
	if err != nil || c.spec.Once {
		return err
	}
	var out fiducial.Outcome
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		out, err = locked.Resume(ctx)
		// A lease that was lost with its server runs out there first, also for us.
		lost := errors.Is(err, journal.ErrHeld) || errors.Is(err, journal.ErrFenced) || errors.Is(err, fiducial.ErrFenced)
		if err == nil || c.spec.Store != "postgres" || !lost || time.Now().After(end) {
			break
		}
	}
	if err != nil {
		return err
	}
	after, err := store.Stat(ctx, runName)
	if err != nil {
		return err
	}
	if out.Text() != text || out.Reason != fiducial.Finished {
		return fmt.Errorf("resumed after its end it says %s %q, before %q", out.Reason, out.Text(), text)
	}
	if after.Head != before.Head && !after.Ended {
		return fmt.Errorf("resumed after its end it went on from record %d to %d", before.Head, after.Head)
	}
	return nil
}

// A faultyStore is slow at times, and one of its appends fails.
type faultyStore struct {
	journal.Journal
	c *crashChild
	n atomic.Int64
}

func (s *faultyStore) Acquire(ctx context.Context, run, owner string) (journal.Lease, error) {
	lease, err := s.Journal.Acquire(ctx, run, owner)
	if err != nil {
		return nil, err
	}
	return &faultyLease{Lease: lease, s: s}, nil
}

type faultyLease struct {
	journal.Lease
	s *faultyStore
}

// Append fails as a store does when a write, or the sync after it, ends with EIO:
// nothing is stored, or nobody knows and the lease is over.
func (l *faultyLease) Append(ctx context.Context, state journal.Mark, bodies ...journal.Body) error {
	l.s.c.pause(2 * time.Millisecond)
	if int(l.s.n.Add(1)) != l.s.c.spec.FaultAt {
		return l.Lease.Append(ctx, state, bodies...)
	}
	fault := &journal.Error{Kind: journal.KindStorage, Op: "append", Run: runName, Err: syscall.EIO}
	if l.s.c.spec.Seed%2 == 0 {
		return fault
	}
	fault.Kind = journal.KindUncertain
	if l.s.c.spec.Stored {
		if err := l.Lease.Append(ctx, state, bodies...); err != nil {
			return err
		}
	}
	return errors.Join(fault, l.Release(ctx))
}

// A crashTool appends the key of its call to a file: that is its effect, and it
// cannot be taken back.
type crashTool struct {
	name   string
	traits tool.Traits
	wait   time.Duration
	c      *crashChild
}

func (c *crashChild) tools() []tool.Tool {
	return []tool.Tool{
		crashTool{"write", tool.Traits{}, 0, c},
		crashTool{"slow_write", tool.Traits{}, 20 * time.Millisecond, c},
		crashTool{"slow_read", tool.Traits{ReadOnly: true}, 30 * time.Millisecond, c},
		crashTool{"put", tool.Traits{Idempotent: true}, 5 * time.Millisecond, c},
		crashTool{"alone", tool.Traits{Exclusive: true}, 5 * time.Millisecond, c},
		crashTool{"block", tool.Traits{}, 0, c},
	}
}

// mayRepeat says which of them may run again after a crash.
func mayRepeat(name string) bool { return name == "slow_read" || name == "put" }

func (x crashTool) Spec() tool.Spec {
	return tool.Spec{Name: x.name, Description: "Appends to a file", Schema: []byte(`{"type":"object","properties":{"what":{"type":"string"}}}`)}
}

func (x crashTool) Traits() tool.Traits { return x.traits }

func (x crashTool) Run(ctx context.Context, call tool.Call) (tool.Output, error) {
	x.c.p.pass("dispatched")
	x.c.pause(x.wait)
	if err := x.effect(call); err != nil {
		return tool.Output{}, err
	}
	x.c.p.pass("effect done")
	if x.name == "block" && x.c.spec.Block {
		if err := x.block(ctx); err != nil {
			return tool.Output{}, err
		}
	}
	x.c.pause(x.wait)
	return tool.Output{Summary: "done " + call.Key()}, nil
}

func (x crashTool) effect(call tool.Call) error {
	f, err := os.OpenFile(x.c.spec.Effect, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "%s %s\n", x.name, call.Key())
	return errors.Join(err, f.Close())
}

func (x crashTool) block(ctx context.Context) error {
	for {
		select {
		case <-ctx.Done():
			return errors.Join(context.Cause(ctx), os.WriteFile(x.c.spec.Effect+".cancelled", nil, 0o600))
		case <-time.After(5 * time.Millisecond):
		}
		if _, err := os.Stat(x.c.spec.Effect + ".go"); err == nil {
			return nil
		}
	}
}
