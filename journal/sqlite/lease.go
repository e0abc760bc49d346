// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/internal/lockfile"
)

type lease struct {
	journal *Journal
	run     string
	epoch   int64
	lost    chan struct{}

	mu    sync.Mutex
	lock  *lockfile.Lock // nil when the lease has ended
	row   runRow         // as this lease left it; others may have offered since
	quiet int64          // so many offers were there when none of them waited
}

// begin counts the epoch. It needs the lock.
func (l *lease) begin(ctx context.Context, owner string) error {
	return l.journal.write.run(ctx, &job{do: func(ctx context.Context, w *writer) error {
		row, err := scanRun(l.run, w.row(ctx, selectRun, l.run))
		if err != nil {
			return err
		}
		if err := w.checkEnd(ctx, &row); err != nil {
			return err
		}
		epoch, err := journal.NextEpoch(l.run, uint64(row.Epoch))
		if err != nil {
			return err
		}
		row.Epoch = int64(epoch)
		row.Owner = journal.CutOwner(owner)
		l.epoch, l.row = row.Epoch, row
		_, err = w.exec(ctx, updateRun, row.updateArgs()...)
		return err
	}})
}

// checkEnd says when the log does not end where the run's row says.
func (w *writer) checkEnd(ctx context.Context, row *runRow) error {
	var last sql.NullInt64
	if err := w.row(ctx, `SELECT max(seq) FROM journal WHERE run_id=?`, row.Run).Scan(&last); err != nil {
		return err
	}
	if last.Int64 != row.Head {
		return &journal.DamageError{
			Run: row.Run, Where: "table journal", Offset: -1, Seq: uint64(row.Head),
			Reason: fmt.Sprintf("the last record is %d", last.Int64),
		}
	}
	return nil
}

func (l *lease) Run() string           { return l.run }
func (l *lease) Epoch() uint64         { return uint64(l.epoch) }
func (l *lease) Lost() <-chan struct{} { return l.lost }

func (l *lease) Head() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return uint64(l.row.Head)
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
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lock == nil {
		return &journal.Error{Kind: journal.KindFenced, Op: "append", Run: l.run}
	}
	a := addition{lease: l, at: time.Now().UTC(), state: state, keys: journal.InboxKeys(bodies...)}
	var err error
	a.lines, a.blobs, err = journal.EncodeAppend(l.run, uint64(l.row.Head), uint64(l.epoch), a.at, state, bodies)
	if err != nil {
		return err
	}
	if why := l.gone(); why != nil {
		return &journal.Error{Kind: journal.KindFenced, Op: "append", Run: l.run, Err: errors.Join(why, l.finish())}
	}
	err = l.journal.write.run(ctx, &job{
		do:     a.store,
		stored: storedAt(l.run, l.epoch, l.row.Head+int64(len(a.lines)), int64(a.lines[len(a.lines)-1].CRC)),
	})
	if err = l.journal.changed("append", l.run, err); err != nil {
		if errors.Is(err, journal.ErrFenced) || errors.Is(err, journal.ErrUncertain) || errors.Is(err, journal.ErrNotFound) {
			err = errors.Join(err, l.finish())
		}
		return err
	}
	l.row = a.row
	return nil
}

// gone says when others do not see this lease any more: a person has removed the
// database, or the lock file.
func (l *lease) gone() error {
	if err := l.journal.stands(); err != nil {
		return err
	}
	if !l.lock.Valid() {
		return fmt.Errorf("the lock file is not the one that was locked: %w", journal.ErrReplaced)
	}
	return nil
}

// An addition is one append. It needs l.mu as long as it is not stored.
type addition struct {
	lease *lease
	at    time.Time
	state journal.Mark
	keys  []string // taken from the inbox
	lines []journal.Encoded
	blobs []journal.Blob
	row   runRow // the run's row behind it
}

// store is one try. As a rule the run's row is as the lease left it, and one
// statement finds that out and moves it on.
func (a *addition) store(ctx context.Context, w *writer) error {
	l := a.lease
	head := l.row.Head
	a.row = l.row
	moved := int64(0)
	if len(a.keys) == 0 {
		a.move()
		var err error
		if moved, err = w.exec(ctx, advanceRun, a.row.advanceArgs(&l.row)...); err != nil {
			return err
		}
	}
	if moved == 0 {
		if err := a.look(ctx, w); err != nil {
			return err
		}
	}
	return w.insert(ctx, l.run, l.epoch, head+1, a.lines, a.blobs)
}

func (a *addition) move() {
	a.row.Head += int64(len(a.lines))
	a.row.Updated = a.at.UnixNano()
	a.row.setMark(a.state)
}

// look reads the run's row and moves it on, unless it is another lease's by now.
func (a *addition) look(ctx context.Context, w *writer) error {
	l := a.lease
	row, err := scanRun(l.run, w.row(ctx, selectRun, l.run))
	if err != nil {
		return err
	}
	if row.Epoch != l.epoch || row.Head != l.row.Head {
		return &journal.Error{Kind: journal.KindFenced, Op: "append", Run: l.run, Err: fmt.Errorf(
			"the run is at record %d of epoch %d, this lease left it at %d of %d", row.Head, row.Epoch, l.row.Head, l.epoch)}
	}
	if err := w.take(ctx, &row, a.keys); err != nil {
		return err
	}
	a.row = row
	a.move()
	_, err = w.exec(ctx, updateRun, a.row.updateArgs()...)
	return err
}

// storedAt looks for the last record of an append whose commit failed: the same
// epoch and the same sum are the same record.
func storedAt(run string, epoch, seq, crc int64) func(context.Context, *writer) (bool, error) {
	return func(ctx context.Context, w *writer) (bool, error) {
		var e, c int64
		err := w.row(ctx, `SELECT epoch, crc FROM journal WHERE run_id=? AND seq=?`, run, seq).Scan(&e, &c)
		if errors.Is(err, sql.ErrNoRows) {
			return false, nil
		}
		return e == epoch && c == crc, err
	}
}

// Release implements [journal.Lease].
func (l *lease) Release(context.Context) error {
	l.journal.mu.Lock()
	delete(l.journal.leases, l)
	l.journal.mu.Unlock()
	return l.end()
}

func (l *lease) end() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.finish()
}

// finish ends the lease. It needs l.mu.
func (l *lease) finish() error {
	if l.lock == nil {
		return nil
	}
	close(l.lost)
	err := l.lock.Free()
	l.lock = nil
	return err
}
