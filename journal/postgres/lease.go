// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fiducial-dev/fiducial/journal"
)

type lease struct {
	journal *Journal
	run     string
	epoch   int64
	head    atomic.Int64

	turn sync.Mutex    // of appends
	lost chan struct{} // closed when the lease has ended
	once sync.Once
	why  error         // it has ended, when the lease has not ended by itself; to be read when lost is closed
	idle chan struct{} // closed when nothing renews the lease any more
	stop func()        // gives up a renewal that is under way
	free func() error  // tells the server that the lease has ended

	heard atomic.Pointer[time.Time] // when the latest renewal that worked was asked for
}

// Acquire implements [journal.Journal]. It looks at the end of the log only; the
// rest is checked when it is read.
func (j *Journal) Acquire(ctx context.Context, run, owner string) (journal.Lease, error) {
	if err := j.enter(ctx, "acquire", run, true); err != nil {
		return nil, err
	}
	after, stop := context.WithCancel(context.WithoutCancel(ctx))
	l := &lease{journal: j, run: run, lost: make(chan struct{}), idle: make(chan struct{}), stop: stop}
	l.free = func() error { return l.giveBack(context.WithoutCancel(after)) }
	if err := l.begin(ctx, plain(journal.CutOwner(owner))); err != nil {
		stop()
		return nil, readError(ctx, "acquire", run, err)
	}
	j.mu.Lock()
	closed := j.closed
	if !closed {
		j.leases[l] = struct{}{}
		go l.keep(after)
	}
	j.mu.Unlock()
	if closed {
		close(l.idle)
		return nil, errors.Join(&journal.Error{Kind: journal.KindClosed, Op: "acquire", Run: run}, l.giveUp())
	}
	return l, nil
}

func (l *lease) begin(ctx context.Context, owner string) error {
	word := rand.Text()
	return l.journal.try(ctx, func(ctx context.Context) error {
		l.renewed(time.Now())
		var head int64
		var last *int64
		err := l.journal.pool.QueryRow(ctx, l.journal.sql.acquire, l.run, owner, word, l.journal.opts.TTL, int64(journal.MaxEpoch)).Scan(&l.epoch, &head, &last)
		if errors.Is(err, pgx.ErrNoRows) {
			info, err := l.journal.find(ctx, "acquire", l.run)
			if err != nil {
				return err
			}
			if _, err := journal.NextEpoch(l.run, info.Epoch); err != nil {
				return err
			}
			return &journal.HeldError{Run: l.run, Owner: info.Owner}
		}
		if err != nil {
			return err
		}
		l.head.Store(head)
		if last == nil || *last != head {
			return errors.Join(&journal.DamageError{
				Run: l.run, Where: "table journal", Offset: -1, Seq: uint64(head), Reason: "it is not the last record",
			}, l.giveBack(ctx))
		}
		return nil
	})
}

func (l *lease) renewed(at time.Time) { l.heard.Store(&at) }

// keep renews the lease until it ends. Time is measured by this process only to
// stop when it was not heard of for the lease's time, in which somebody else may
// have got the run.
func (l *lease) keep(ctx context.Context) {
	defer close(l.idle)
	ttl := l.journal.opts.TTL
	wait := ttl / 4
	for {
		select {
		case <-l.lost:
			return
		case <-time.After(wait):
		}
		asked := time.Now()
		// A process that was frozen asks once all the same: nobody else may want the run.
		ctx, cancel := context.WithTimeout(ctx, max(time.Until(l.heard.Load().Add(ttl)), ttl/4))
		tag, err := l.journal.pool.Exec(ctx, l.journal.sql.renew, l.run, l.epoch, ttl)
		cancel()
		switch {
		case err == nil && tag.RowsAffected() == 0:
			l.end(errNotOurs)
			return
		case err == nil:
			l.renewed(asked)
			wait = ttl / 4
		case time.Since(*l.heard.Load()) >= ttl:
			l.end(fmt.Errorf("the server was not reached for %v: %w", ttl, cmp.Or(err, context.DeadlineExceeded)))
			return
		default:
			wait = ttl / 16
		}
	}
}

func (l *lease) Run() string           { return l.run }
func (l *lease) Epoch() uint64         { return uint64(l.epoch) }
func (l *lease) Head() uint64          { return uint64(l.head.Load()) }
func (l *lease) Lost() <-chan struct{} { return l.lost }

// end ends the lease here. Why is told to whoever uses it afterwards, nil for nothing.
func (l *lease) end(why error) {
	l.once.Do(func() {
		l.why = why
		close(l.lost)
		l.stop()
	})
}

func (l *lease) ended() bool {
	select {
	case <-l.lost:
		return true
	default:
		return false
	}
}

func (l *lease) fenced(op string, err error) error {
	return &journal.Error{Kind: journal.KindFenced, Op: op, Run: l.run, Err: err}
}

// Append implements [journal.Lease].
func (l *lease) Append(ctx context.Context, state journal.Mark, bodies ...journal.Body) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := journal.CheckBodies(l.run, bodies); err != nil {
		return err
	}
	if err := journal.CheckMark("append", l.run, state); err != nil {
		return err
	}
	l.turn.Lock()
	defer l.turn.Unlock()
	if l.ended() {
		return l.fenced("append", l.why)
	}
	a, err := l.encode(state, bodies)
	if err != nil {
		return err
	}
	if err := l.store(context.WithoutCancel(ctx), a); err != nil {
		if errors.Is(err, journal.ErrFenced) || errors.Is(err, journal.ErrUncertain) || errors.Is(err, journal.ErrNotFound) {
			l.end(nil)
		}
		return err
	}
	l.head.Add(int64(len(bodies)))
	l.journal.crier.tell(l.run)
	return nil
}

// an addition is one append, ready to be sent as often as it takes.
type addition struct {
	args []any
	last int64 // sequence number of its last record
	crc  int64 // of that record
}

func (l *lease) encode(state journal.Mark, bodies []journal.Body) (addition, error) {
	keys := journal.InboxKeys(bodies...)
	if err := journal.CheckTaken(l.run, keys, func(string) bool { return false }); err != nil {
		return addition{}, err
	}
	at := time.Now().UTC()
	head := l.head.Load()
	lines, blobs, err := journal.EncodeAppend(l.run, uint64(head), uint64(l.epoch), at, state, bodies)
	if err != nil {
		return addition{}, err
	}
	sums, texts := make([]int64, len(lines)), make([][]byte, len(lines))
	for i, e := range lines {
		sums[i], texts[i] = int64(e.CRC), e.Line
	}
	names := make([][]byte, len(keys))
	for i, key := range keys {
		names[i] = []byte(key)
	}
	digests, contents := columns(blobs)
	return addition{
		args: []any{
			l.run, l.epoch, head, digests, contents, sums, texts, names,
			plain(state.Phase), int64(state.Pending), state.Ended, at.UnixNano(), l.journal.opts.TTL,
		},
		last: head + int64(len(lines)), crc: sums[len(sums)-1],
	}, nil
}

// store sends an addition until the server has answered. An attempt whose answer
// was lost may still be stored later, so that only the same statement again, which
// waits for it, tells what became of it.
func (l *lease) store(ctx context.Context, a addition) error {
	sent := false
	err := l.journal.try(ctx, func(ctx context.Context) error {
		if l.ended() {
			return l.fenced("append", l.why)
		}
		asked := time.Now()
		tag, err := l.journal.pool.Exec(ctx, l.journal.sql.append, a.args...)
		switch {
		case code(err) == uniqueViolation:
			return &journal.Error{Kind: journal.KindTaken, Op: "append", Run: l.run, Err: err}
		case err != nil:
			sent = true
			return err
		case tag.RowsAffected() == 1:
			l.renewed(asked)
			return nil
		}
		return l.settle(ctx, a)
	})
	if sent && errors.Is(err, journal.ErrFenced) && !errors.Is(err, errSuperseded) && !errors.Is(err, journal.ErrReplaced) { // it ended between two attempts
		err = &journal.Error{Kind: journal.KindUncertain, Op: "append", Run: l.run, Err: err}
	}
	return written("append", l.run, err)
}

// The reasons why a lease is not this one's run's any more. Only the first says that
// nothing of an append was stored.
var (
	errSuperseded = errors.New("another lease has the run")
	errNotOurs    = errors.New("the server renews it no more: another lease has the run, or the run was deleted")
)

// settle finds out why an addition was refused: it stands there already, or the run
// is somebody else's.
func (l *lease) settle(ctx context.Context, a addition) error {
	var epoch, head int64
	var at, crc *int64
	err := l.journal.pool.QueryRow(ctx, l.journal.sql.at, l.run, a.last).Scan(&epoch, &head, &at, &crc)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return &journal.Error{Kind: journal.KindFenced, Op: "append", Run: l.run, Err: fmt.Errorf("%w: %w", journal.ErrReplaced, journal.ErrNotFound)}
	case err != nil:
		return err
	case at != nil && *at == l.epoch && *crc == a.crc:
		return nil
	}
	return l.fenced("append", fmt.Errorf("%w: it is at record %d of epoch %d, this lease left it at %d of %d",
		errSuperseded, head, epoch, l.head.Load(), l.epoch))
}

// Release implements [journal.Lease].
func (l *lease) Release(context.Context) error {
	l.journal.mu.Lock()
	_, ours := l.journal.leases[l]
	delete(l.journal.leases, l)
	l.journal.mu.Unlock()
	if !ours {
		return nil
	}
	return l.giveUp()
}

// giveUp ends the lease here and at the server.
func (l *lease) giveUp() error {
	lost := l.ended()
	l.end(nil)
	<-l.idle
	if lost {
		return nil
	}
	l.turn.Lock() // an append that is under way ends first
	defer l.turn.Unlock()
	return l.free()
}

func (l *lease) giveBack(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, releaseTime)
	defer cancel()
	err := l.journal.try(ctx, func(ctx context.Context) error {
		_, err := l.journal.pool.Exec(ctx, l.journal.sql.release, l.run, l.epoch)
		return err
	})
	return storeError("release", l.run, err)
}
