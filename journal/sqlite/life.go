// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"errors"

	"github.com/fiducial-dev/fiducial/journal"
)

const selectSums = `SELECT seq, crc FROM journal WHERE run_id=? AND seq IN (1, ?) ORDER BY seq`

// A life is how far a reader has got in a run, and what it knows the run by: another
// one may be made under its name after it was deleted. Records hold the time at which
// they were written, so that those of two runs have other sums.
type life struct {
	op     string // what is being done
	run    string
	next   int64 // number of the next record to read
	known  bool
	header int64 // sum of the header
	last   int64 // of the record before next, once one was read; else 0
}

var errDeleted = errors.New("it was deleted")

// look says when the run is not the one that it was. What was read before is of one
// run when it finds nothing.
func (v *life) look(ctx context.Context, q querier) (err error) {
	rows, err := q.QueryContext(ctx, selectSums, v.run, v.next-1)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	header, last := int64(-1), int64(-1) // no sum, for a record that is not there
	for rows.Next() {
		var seq, crc int64
		if err := rows.Scan(&seq, &crc); err != nil {
			return err
		}
		if seq == 1 {
			header = crc
		}
		if seq == v.next-1 {
			last = crc
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	if !v.known {
		v.known, v.header = true, header
	}
	if header != v.header || v.last != 0 && last != v.last {
		return &journal.Error{Kind: journal.KindNotFound, Op: v.op, Run: v.run, Err: errDeleted}
	}
	return nil
}
