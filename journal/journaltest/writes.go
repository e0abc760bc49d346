// SPDX-License-Identifier: Apache-2.0

package journaltest

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"os"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
)

// CrashEnv names the environment variable by which [Crash] tells a process where it
// has to end: "before 3" its third write, "after 3", or nothing. A program that is
// tested by [CrashTest.Command] gives it to [CrashAt].
const CrashEnv = "FIDUCIAL_CRASH"

// killedCode is what a process exits with where it cannot be killed by a signal.
const killedCode = 137

// CrashAt is j in a process that ends itself, as kill -9 would, before or after one of
// its writes: "before 3" is before the third, which is then not stored, "after 3" when
// it is stored and nobody was told. Writes are Create, Restore, Append, Offer and
// Delete, counted over all runs from 1. With "" it is j itself.
func CrashAt(j journal.Journal, at string) (journal.Journal, error) {
	if at == "" {
		return j, nil
	}
	var when string
	var n int64
	if _, err := fmt.Sscanf(at, "%s %d", &when, &n); err != nil || when != before && when != after || n < 1 {
		return nil, fmt.Errorf("journaltest: %s is %q, want before or after and the number of a write, such as %q", CrashEnv, at, "before 3")
	}
	var writes atomic.Int64
	return &watched{Journal: j, write: func(do func() error) error {
		now := writes.Add(1) == n
		if now && when == before {
			endProcess()
		}
		err := do()
		if now {
			endProcess()
		}
		return err
	}}, nil
}

const (
	before = "before"
	after  = "after"
)

// endProcess ends this process at once: nothing deferred runs, no buffer is written.
func endProcess() {
	if runtime.GOOS != "windows" {
		if p, err := os.FindProcess(os.Getpid()); err == nil && p.Kill() == nil {
			select {} // until the signal arrives
		}
	}
	os.Exit(killedCode) //nolint:forbidigo // to end the process is what it is for
}

// A Fault is how an append fails.
type Fault uint8

// The faults.
const (
	// FaultRefused is [journal.ErrStorage]: nothing was stored, and the lease is as
	// before.
	FaultRefused Fault = iota + 1

	// FaultStored is [journal.ErrUncertain] when the records were stored. The lease has
	// ended.
	FaultStored

	// FaultLost is [journal.ErrUncertain] when they were not. The lease has ended.
	FaultLost
)

func (f Fault) String() string {
	switch f {
	case FaultRefused:
		return "refused"
	case FaultStored:
		return "uncertain, stored"
	case FaultLost:
		return "uncertain, not stored"
	}
	return fmt.Sprintf("Fault(%d)", uint8(f))
}

// A Faulty is a journal one of whose appends fails: the crash test that needs no other
// process. What was appended is read from the journal below it, where an engine that
// is put together anew goes on.
type Faulty struct {
	journal.Journal

	mu      sync.Mutex
	appends int
	at      int
	fault   Fault
}

// NewFaulty returns j, whose n-th append over all runs, from 1, fails. A test tries n =
// 1, 2, 3 and so on until [Faulty.Failed] says that there was no n-th append.
func NewFaulty(j journal.Journal, n int, f Fault) *Faulty {
	if n < 1 || f < FaultRefused || f > FaultLost {
		panic(fmt.Sprintf("journaltest: NewFaulty(%d, %v): want an append from 1 on and one of the faults", n, f))
	}
	return &Faulty{Journal: j, at: n, fault: f}
}

// Failed reports whether the append was reached and has failed.
func (f *Faulty) Failed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.appends >= f.at
}

// Acquire is that of the journal below, with a lease whose appends may fail.
func (f *Faulty) Acquire(ctx context.Context, run, owner string) (journal.Lease, error) {
	l, err := f.Journal.Acquire(ctx, run, owner)
	if err != nil {
		return nil, err
	}
	return &faultyLease{Lease: l, of: f}, nil
}

type faultyLease struct {
	journal.Lease
	of *Faulty
}

var errInjected = errors.New("the test wants it")

func (l *faultyLease) Append(ctx context.Context, state journal.Mark, bodies ...journal.Body) error {
	l.of.mu.Lock()
	l.of.appends++
	now := l.of.appends == l.of.at
	l.of.mu.Unlock()
	if !now {
		return l.Lease.Append(ctx, state, bodies...)
	}
	kind := journal.KindStorage
	if l.of.fault != FaultRefused {
		kind = journal.KindUncertain
		defer func() { _ = l.Release(context.WithoutCancel(ctx)) }() // the error is the fault
	}
	if l.of.fault == FaultStored {
		if err := l.Lease.Append(ctx, state, bodies...); err != nil {
			return err
		}
	}
	return &journal.Error{Kind: kind, Op: "append", Run: l.Run(), Err: errInjected}
}

// watched is a journal all of whose writes go through one function.
type watched struct {
	journal.Journal
	write func(do func() error) error
}

func (w *watched) Create(ctx context.Context, run string, h journal.Header) error {
	return w.write(func() error { return w.Journal.Create(ctx, run, h) })
}

func (w *watched) Restore(ctx context.Context, run string, records iter.Seq2[journal.Record, error], state journal.Mark) error {
	return w.write(func() error { return w.Journal.Restore(ctx, run, records, state) })
}

func (w *watched) Offer(ctx context.Context, run, key string, m llm.Message) error {
	return w.write(func() error { return w.Journal.Offer(ctx, run, key, m) })
}

func (w *watched) Delete(ctx context.Context, run string) error {
	return w.write(func() error { return w.Journal.Delete(ctx, run) })
}

func (w *watched) Acquire(ctx context.Context, run, owner string) (journal.Lease, error) {
	l, err := w.Journal.Acquire(ctx, run, owner)
	if err != nil {
		return nil, err
	}
	return &watchedLease{Lease: l, journal: w}, nil
}

type watchedLease struct {
	journal.Lease
	journal *watched
}

func (l *watchedLease) Append(ctx context.Context, state journal.Mark, bodies ...journal.Body) error {
	return l.journal.write(func() error { return l.Lease.Append(ctx, state, bodies...) })
}
