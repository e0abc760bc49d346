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

	mu   sync.Mutex
	lock *lockfile.Lock // nil when the lease has ended
	head int64
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
		row.Epoch++
		row.Owner = journal.CutOwner(owner)
		l.epoch, l.head = row.Epoch, row.Head
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
	return uint64(l.head)
}

// Append implements [journal.Lease].
func (l *lease) Append(ctx context.Context, state journal.Mark, bodies ...journal.Body) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := journal.CheckBodies(l.run, bodies); err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lock == nil {
		return &journal.Error{Kind: journal.KindFenced, Op: "append", Run: l.run}
	}
	at := time.Now().UTC()
	lines, blobs, err := journal.EncodeAppend(l.run, uint64(l.head), uint64(l.epoch), at, state, bodies)
	if err != nil {
		return err
	}
	keys := journal.InboxKeys(bodies...)
	err = l.journal.write.run(ctx, &job{
		do: func(ctx context.Context, w *writer) error {
			row, err := scanRun(l.run, w.row(ctx, selectRun, l.run))
			if err != nil {
				return err
			}
			if row.Epoch != l.epoch || row.Head != l.head {
				return &journal.Error{Kind: journal.KindFenced, Op: "append", Run: l.run, Err: fmt.Errorf(
					"the run is at record %d of epoch %d, this lease left it at %d of %d", row.Head, row.Epoch, l.head, l.epoch)}
			}
			if err := w.take(ctx, &row, keys); err != nil {
				return err
			}
			row.Head += int64(len(lines))
			row.Updated = at.UnixNano()
			row.setMark(state)
			if _, err := w.exec(ctx, updateRun, row.updateArgs()...); err != nil {
				return err
			}
			return w.insert(ctx, l.run, l.epoch, l.head+1, lines, blobs)
		},
		stored: storedAt(l.run, l.epoch, l.head+int64(len(lines)), int64(lines[len(lines)-1].CRC)),
	})
	if err = changed("append", l.run, err); err != nil {
		if errors.Is(err, journal.ErrFenced) || errors.Is(err, journal.ErrUncertain) || errors.Is(err, journal.ErrNotFound) {
			err = errors.Join(err, l.finish())
		}
		return err
	}
	l.head += int64(len(lines))
	return nil
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
