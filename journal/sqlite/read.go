// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
)

// page is how many records are read at once, so that a slow reader holds nothing.
const page = 256

const (
	selectRecords = `SELECT seq, epoch, crc, rec FROM journal WHERE run_id=? AND seq>=? AND seq<=? ORDER BY seq`
	selectBlob    = `SELECT bytes FROM blob WHERE run_id=? AND sha256=?`
)

// A querier is a connection, a transaction or a pool.
type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}

func getBlob(ctx context.Context, q querier, run, digest string) ([]byte, error) {
	var data []byte
	err := q.QueryRowContext(ctx, selectBlob, run, digest).Scan(&data)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, fs.ErrNotExist
	}
	return data, err
}

// locate says where the damage is that a decoder found.
func locate(err error, run, where string, seq int64) error {
	if d, ok := errors.AsType[*journal.DamageError](err); ok {
		d.Run, d.Where, d.Seq = run, where, uint64(seq)
	}
	return err
}

// Read implements [journal.Journal].
func (j *Journal) Read(ctx context.Context, run string, from uint64) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		err := j.enter(ctx, "read", run, false)
		if err == nil {
			_, err = j.emit(ctx, j.read, &life{op: "read", run: run, next: int64(max(from, 1))}, yield)
		}
		if ctx.Err() != nil && err != nil && !errors.Is(err, errStopped) {
			err = context.Cause(ctx)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(journal.Record{}, j.storeError("read", run, err))
		}
	}
}

// errStopped says that the reader of a sequence has had enough.
var errStopped = errors.New("stopped")

// emit yields the records from v.next to the head, and returns the run's row.
func (j *Journal) emit(
	ctx context.Context, q querier, v *life, yield func(journal.Record, error) bool,
) (runRow, error) {
	if err := v.look(ctx, q); err != nil {
		return runRow{}, err
	}
	row, err := scanRun(v.run, q.QueryRowContext(ctx, selectRun, v.run))
	for err == nil {
		var records []journal.Record
		var bad error
		last := min(v.next+page-1, row.Head)
		crc := v.last
		if v.next <= last {
			records, crc, bad = j.page(ctx, q, v.run, v.next, last)
		}
		if err = v.look(ctx, q); err != nil { // before anybody believes what was read
			break
		}
		for _, r := range records {
			if ctx.Err() != nil {
				return row, context.Cause(ctx)
			}
			if !yield(r, nil) {
				return row, errStopped
			}
			v.next++
		}
		v.last = crc
		if err = bad; v.next > row.Head {
			break
		}
	}
	return row, err
}

// page reads the records from first to last, all of which must be there, and the sum
// of the last one that it read.
func (j *Journal) page(
	ctx context.Context, q querier, run string, first, last int64,
) (records []journal.Record, crc int64, err error) {
	rows, err := q.QueryContext(ctx, selectRecords, run, first, last)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	records = make([]journal.Record, 0, last-first+1)
	want := first
	for ; rows.Next(); want++ {
		var seq, epoch int64
		var line sql.RawBytes
		if err := rows.Scan(&seq, &epoch, &crc, &line); err != nil {
			return records, crc, err
		}
		if seq != want {
			break
		}
		r, err := decode(line, run, seq, epoch, crc, func(digest string) ([]byte, error) {
			return getBlob(ctx, j.read, run, digest)
		})
		if err != nil {
			return records, crc, locate(err, run, "table journal", seq)
		}
		records = append(records, r.Record)
	}
	if err := rows.Err(); err != nil {
		return records, crc, err
	}
	if want <= last {
		return records, crc, j.missing(ctx, q, run, want)
	}
	return records, crc, nil
}

// missing tells a run that was deleted from one that lost a record.
func (j *Journal) missing(ctx context.Context, q querier, run string, seq int64) error {
	if _, err := scanRun(run, q.QueryRowContext(ctx, selectRun, run)); err != nil {
		return err
	}
	return &journal.DamageError{
		Run: run, Where: "table journal", Offset: -1, Seq: uint64(seq), Reason: "the record is missing",
	}
}

// decode reads a record and holds it against its row.
func decode(
	line []byte, run string, seq, epoch, crc int64, blob func(string) ([]byte, error),
) (journal.Stored, error) {
	s, err := journal.DecodeRecord(line, blob)
	_, header := s.Body.(journal.Header)
	switch {
	case err != nil:
		return journal.Stored{}, err
	case int64(s.Seq) != seq || int64(s.Epoch) != epoch || int64(journal.RecordChecksum(line)) != crc:
		return journal.Stored{}, &journal.DamageError{Offset: -1, Reason: fmt.Sprintf("record %d of epoch %d stands there", s.Seq, s.Epoch)}
	case header != (seq == 1) || header && s.Run != run:
		return journal.Stored{}, &journal.DamageError{Offset: -1, Reason: "a record of another run stands there"}
	}
	return s, nil
}

// Follow implements [journal.Journal].
func (j *Journal) Follow(ctx context.Context, run string, from uint64) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		if ctx.Err() != nil {
			return
		}
		err := j.enter(ctx, "follow", run, false)
		if err == nil {
			err = j.follow(ctx, &life{op: "follow", run: run, next: int64(max(from, 1))}, yield)
		}
		if err != nil && ctx.Err() == nil && !errors.Is(err, errStopped) {
			yield(journal.Record{}, j.storeError("follow", run, err))
		}
	}
}

// follow keeps one connection: data_version tells it cheaply whether any other
// connection, of this process or another, has changed the database.
func (j *Journal) follow(ctx context.Context, v *life, yield func(journal.Record, error) bool) (err error) {
	conn, err := j.read.Conn(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	tick := time.NewTicker(j.poll)
	defer tick.Stop()
	seen := int64(-1)
	for {
		if err := j.enter(ctx, "follow", v.run, false); err != nil {
			return err
		}
		var version int64
		if err := conn.QueryRowContext(ctx, `PRAGMA data_version`).Scan(&version); err != nil {
			return err
		}
		if version != seen {
			seen = version
			row, err := j.emit(ctx, conn, v, yield)
			if err != nil || row.Ended {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}
