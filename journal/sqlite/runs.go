// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/internal/lockfile"
)

const (
	insertRecord = `INSERT INTO journal(run_id, seq, epoch, crc, rec) VALUES(?,?,?,?,?)`
	insertBlob   = `INSERT OR IGNORE INTO blob(run_id, sha256, bytes) VALUES(?,?,?)`
)

// Create implements [journal.Journal].
func (j *Journal) Create(ctx context.Context, run string, h journal.Header) error {
	if err := j.enter(ctx, "create", run, true); err != nil {
		return err
	}
	if err := journal.CheckHeader("create", run, h); err != nil {
		return err
	}
	at := time.Now().UTC()
	e, err := journal.EncodeRecord(run, journal.Stored{Record: journal.Record{Seq: 1, At: at, Body: h}})
	if err != nil {
		return err
	}
	labels, err := json.Marshal(h.Labels)
	if err != nil {
		return &journal.Error{Kind: journal.KindInvalid, Op: "create", Run: run, Err: err}
	}
	row := runRow{
		Run: run, Head: 1, Created: at.UnixNano(), Updated: at.UnixNano(), Labels: string(labels),
		Parent: h.Parent, ParentSeq: int64(h.ParentSeq),
	}
	do := func(ctx context.Context, w *writer) error {
		if err := w.absent(ctx, "create", run); err != nil {
			return err
		}
		if _, err := w.exec(ctx, insertRun, row.insertArgs()...); err != nil {
			return err
		}
		return w.insert(ctx, run, 0, 1, []journal.Encoded{e}, e.Blobs)
	}
	return j.changed("create", run, j.write.run(ctx, &job{do: do}))
}

// Restore implements [journal.Journal].
func (j *Journal) Restore(ctx context.Context, run string, records iter.Seq2[journal.Record, error], state journal.Mark) error {
	if err := j.enter(ctx, "restore", run, true); err != nil {
		return err
	}
	r, err := journal.GatherRun(run, records, state, true)
	if err != nil {
		return err
	}
	labels, err := json.Marshal(r.Header.Labels)
	if err != nil {
		return &journal.Error{Kind: journal.KindInvalid, Op: "restore", Run: run, Err: err}
	}
	do := func(ctx context.Context, w *writer) error {
		if err := w.absent(ctx, "restore", run); err != nil {
			return err
		}
		row := runRow{
			Run: run, Head: int64(len(r.Lines)), Epoch: int64(r.Epoch), Created: r.Created.UnixNano(), Updated: r.Updated.UnixNano(),
			Labels: string(labels), Parent: r.Header.Parent, ParentSeq: int64(r.Header.ParentSeq),
		}
		row.setMark(state)
		if _, err := w.exec(ctx, insertRun, row.insertArgs()...); err != nil {
			return err
		}
		for i, e := range r.Lines {
			if err := w.insert(ctx, run, int64(r.Records[i].Epoch), int64(i)+1, r.Lines[i:i+1], e.Blobs); err != nil {
				return err
			}
		}
		for _, t := range r.Taken {
			row.Offers++
			if err := w.put(ctx, &row, t.Key, int64(t.Seq), ""); err != nil {
				return err
			}
		}
		return nil
	}
	return j.changed("restore", run, j.write.run(ctx, &job{do: do}))
}

// absent says when there is a run of that name.
func (w *writer) absent(ctx context.Context, op, run string) error {
	_, err := scanRun(run, w.row(ctx, selectRun, run))
	switch {
	case err == nil:
		return &journal.Error{Kind: journal.KindExists, Op: op, Run: run}
	case errors.Is(err, journal.ErrNotFound):
		return nil
	}
	return err
}

// insert stores records behind a head.
func (w *writer) insert(ctx context.Context, run string, epoch, seq int64, lines []journal.Encoded, blobs []journal.Blob) error {
	for _, b := range blobs {
		if _, err := w.exec(ctx, insertBlob, run, b.Digest, b.Data); err != nil {
			return err
		}
	}
	for i, e := range lines {
		if _, err := w.exec(ctx, insertRecord, run, seq+int64(i), epoch, int64(e.CRC), string(e.Line)); err != nil {
			return err
		}
	}
	return nil
}

// changed gives the error of a change its kind.
func (j *Journal) changed(op, run string, err error) error {
	if errors.Is(err, errClosed) {
		return &journal.Error{Kind: journal.KindClosed, Op: op, Run: run}
	}
	if c, ok := errors.AsType[*commitError](err); ok {
		return &journal.Error{Kind: journal.KindUncertain, Op: op, Run: run, Err: c.err}
	}
	return j.storeError(op, run, err)
}

// Acquire implements [journal.Journal]. It looks at the two ends of the log only;
// the rest is checked when it is read.
func (j *Journal) Acquire(ctx context.Context, run, owner string) (journal.Lease, error) {
	if err := j.enter(ctx, "acquire", run, true); err != nil {
		return nil, err
	}
	if _, err := j.find(ctx, run); err != nil {
		return nil, j.storeError("acquire", run, err)
	}
	lock, err := j.lock(ctx, run)
	if err != nil {
		return nil, j.storeError("acquire", run, err)
	}
	l := &lease{journal: j, run: run, lock: lock, lost: make(chan struct{})}
	if err := l.begin(ctx, owner); err != nil {
		return nil, errors.Join(j.changed("acquire", run, err), l.end())
	}
	j.mu.Lock()
	closed := j.closed
	if !closed {
		j.leases[l] = struct{}{}
	}
	j.mu.Unlock()
	if closed {
		return nil, errors.Join(&journal.Error{Kind: journal.KindClosed, Op: "acquire", Run: run}, l.end())
	}
	return l, nil
}

// lock takes the lock of the run. Who has just got it has not written its name yet,
// and who deletes the run never does, so that it asks a few times.
func (j *Journal) lock(ctx context.Context, run string) (*lockfile.Lock, error) {
	for try := 1; ; try++ {
		lock, err := lockfile.Take(j.locks, lockName(run))
		if !errors.Is(err, lockfile.ErrHeld) {
			return lock, err
		}
		now, err := j.find(ctx, run)
		if err != nil {
			return nil, err
		}
		if now.Owner != "" || try == 8 {
			return nil, &journal.HeldError{Run: run, Owner: now.Owner}
		}
		time.Sleep(2 * time.Millisecond)
	}
}

func (j *Journal) find(ctx context.Context, run string) (runRow, error) {
	return scanRun(run, j.read.QueryRowContext(ctx, selectRun, run))
}

// Stat implements [journal.Journal].
func (j *Journal) Stat(ctx context.Context, run string) (journal.Info, error) {
	if err := j.enter(ctx, "stat", run, false); err != nil {
		return journal.Info{}, err
	}
	row, err := j.find(ctx, run)
	if err != nil {
		return journal.Info{}, j.storeError("stat", run, err)
	}
	return j.describe(row)
}

func (j *Journal) describe(row runRow) (journal.Info, error) {
	info, err := row.info()
	if err == nil {
		info.Held, err = j.isHeld(row.Run)
	}
	return info, j.storeError("stat", row.Run, err)
}

// Runs implements [journal.Journal].
func (j *Journal) Runs(ctx context.Context, f journal.Filter) iter.Seq2[journal.Info, error] {
	return func(yield func(journal.Info, error) bool) {
		if err := j.enter(ctx, "list", "", false); err != nil {
			yield(journal.Info{}, err)
			return
		}
		infos, bad, err := j.list(ctx)
		if err != nil {
			yield(journal.Info{}, j.storeError("list", "", err))
			return
		}
		f.Yield(infos, bad, yield)
	}
}

// list reads the table and counts the rows by its index: a row that a changed byte
// hid from one is in the other.
func (j *Journal) list(ctx context.Context) (infos []journal.Info, bad map[string]error, err error) {
	tx, err := j.read.BeginTx(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	rows, err := tx.QueryContext(ctx, `SELECT `+runColumns+` FROM run NOT INDEXED`)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	bad = make(map[string]error)
	n := 0
	for ; rows.Next(); n++ {
		row, err := scanRun("", rows)
		var info journal.Info
		if err == nil {
			info, err = j.describe(row)
		}
		switch {
		case err == nil:
			infos = append(infos, info)
		case row.Run != "":
			bad[row.Run] = err
		default:
			return nil, nil, err
		}
	}
	if err := rows.Err(); err != nil {
		return nil, nil, err
	}
	var indexed int
	if err := tx.QueryRowContext(ctx, `SELECT count(run_id) FROM run INDEXED BY sqlite_autoindex_run_1 WHERE run_id>=''`).Scan(&indexed); err != nil {
		return nil, nil, err
	}
	if indexed != n {
		return nil, nil, &journal.DamageError{
			Where: "table run", Offset: -1, Reason: fmt.Sprintf("it has %d rows and its index %d", n, indexed),
		}
	}
	return infos, bad, nil
}

// Delete implements [journal.Journal].
func (j *Journal) Delete(ctx context.Context, run string) (err error) {
	if err := j.enter(ctx, "delete", run, true); err != nil {
		return err
	}
	if _, err := j.find(ctx, run); err != nil {
		return j.storeError("delete", run, err)
	}
	lock, err := j.lock(ctx, run)
	if err != nil {
		return j.storeError("delete", run, err)
	}
	defer func() { err = errors.Join(err, lock.Free()) }()
	do := func(ctx context.Context, w *writer) error {
		n, err := w.exec(ctx, `DELETE FROM run WHERE run_id=?`, run)
		if err == nil && n == 0 {
			err = &journal.Error{Kind: journal.KindNotFound, Op: "delete", Run: run}
		}
		return err
	}
	if err := j.changed("delete", run, j.write.run(ctx, &job{do: do})); err != nil {
		return err
	}
	if err := j.locks.Remove(lockName(run)); err != nil {
		return j.storeError("delete", run, err)
	}
	return nil
}
