// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/fiducial-dev/fiducial/journal"
)

// page is how many records are read at once, so that a slow reader holds nothing.
const page = 256

type recordRow struct {
	seq, epoch, crc int64
	rec             []byte
}

func scanRecord(from pgx.CollectableRow) (r recordRow, err error) {
	err = from.Scan(&r.seq, &r.epoch, &r.crc, &r.rec)
	return r, err
}

// blobs gets the content of a run's blobs.
func (j *Journal) blobs(ctx context.Context, run string) func(string) ([]byte, error) {
	return func(digest string) ([]byte, error) {
		found, err := rows(ctx, j, pgx.RowTo[[]byte], j.sql.blob, run, digest)
		if err == nil && len(found) == 0 {
			err = fs.ErrNotExist
		}
		if err != nil {
			return nil, err
		}
		return found[0], nil
	}
}

// Read implements [journal.Journal].
func (j *Journal) Read(ctx context.Context, run string, from uint64) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		err := j.enter(ctx, "read", run, false)
		if err == nil {
			_, err = j.emit(ctx, "read", &life{run: run, next: int64(max(from, 1))}, yield)
		}
		if err != nil && !errors.Is(err, errStopped) {
			yield(journal.Record{}, readError(ctx, "read", run, err))
		}
	}
}

// errStopped says that the reader of a sequence has had enough.
var errStopped = errors.New("stopped")

// emit yields the records from v.next to the head, and returns what the run was.
func (j *Journal) emit(
	ctx context.Context, op string, v *life, yield func(journal.Record, error) bool,
) (journal.Info, error) {
	if err := v.look(ctx, j, op); err != nil {
		return journal.Info{}, err
	}
	info, err := j.find(ctx, op, v.run)
	for err == nil {
		var records []journal.Record
		var bad error
		last := min(v.next+page-1, int64(info.Head))
		crc := v.last
		if v.next <= last {
			records, crc, bad = j.page(ctx, op, v.run, v.next, last)
		}
		if err = v.look(ctx, j, op); err != nil { // before anybody believes what was read
			break
		}
		for _, r := range records {
			if ctx.Err() != nil {
				return info, context.Cause(ctx)
			}
			if !yield(r, nil) {
				return info, errStopped
			}
			v.next++
		}
		v.last = crc
		if err = bad; v.next > int64(info.Head) {
			break
		}
	}
	return info, err
}

// page reads the records from first to last, all of which must be there, and the sum
// of the last one that it read.
func (j *Journal) page(
	ctx context.Context, op, run string, first, last int64,
) (records []journal.Record, crc int64, err error) {
	found, err := rows(ctx, j, scanRecord, j.sql.records, run, first, last)
	if err != nil {
		return nil, 0, err
	}
	records = make([]journal.Record, 0, len(found))
	want := first
	for _, r := range found {
		if r.seq != want {
			break
		}
		rec, err := r.decode(run, j.blobs(ctx, run))
		if err != nil {
			if d, ok := errors.AsType[*journal.DamageError](err); ok {
				d.Run, d.Where, d.Seq = run, "table journal", uint64(r.seq)
			}
			return records, crc, err
		}
		records, crc = append(records, rec), r.crc
		want++
	}
	if want > last {
		return records, crc, nil
	}
	if _, err := j.find(ctx, op, run); err != nil { // deleted meanwhile
		return records, crc, err
	}
	return records, crc, &journal.DamageError{
		Run: run, Where: "table journal", Offset: -1, Seq: uint64(want), Reason: "the record is missing",
	}
}

// decode reads a record and holds it against its row.
func (r *recordRow) decode(run string, blob func(string) ([]byte, error)) (journal.Record, error) {
	s, err := journal.DecodeRecord(r.rec, blob)
	_, header := s.Body.(journal.Header)
	switch {
	case err != nil:
		return journal.Record{}, err
	case int64(s.Seq) != r.seq || int64(s.Epoch) != r.epoch || int64(journal.RecordChecksum(r.rec)) != r.crc:
		return journal.Record{}, &journal.DamageError{Offset: -1, Reason: fmt.Sprintf("record %d of epoch %d stands there", s.Seq, s.Epoch)}
	case header != (r.seq == 1) || header && s.Run != run:
		return journal.Record{}, &journal.DamageError{Offset: -1, Reason: "a record of another run stands there"}
	}
	return s.Record, nil
}
