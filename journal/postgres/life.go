// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/fiducial-dev/fiducial/journal"
)

// A life is how far a reader has got in a run, and what it knows the run by: another
// one may be made under its name after it was deleted. Records hold the time at which
// they were written, so that those of two runs have other sums.
type life struct {
	run    string
	next   int64 // number of the next record to read
	known  bool
	header int64 // sum of the header
	last   int64 // of the record before next, once one was read; else 0
}

var errDeleted = errors.New("it was deleted")

type sumRow struct{ seq, crc int64 }

func scanSum(from pgx.CollectableRow) (r sumRow, err error) {
	err = from.Scan(&r.seq, &r.crc)
	return r, err
}

// look says when the run is not the one that it was. What was read before is of one
// run when it finds nothing.
func (v *life) look(ctx context.Context, j *Journal, op string) error {
	found, err := rows(ctx, j, scanSum, j.sql.sums, v.run, v.next-1)
	if err != nil {
		return err
	}
	header, last := int64(-1), int64(-1) // no sum, for a record that is not there
	for _, r := range found {
		if r.seq == 1 {
			header = r.crc
		}
		if r.seq == v.next-1 {
			last = r.crc
		}
	}
	if !v.known {
		v.known, v.header = true, header
	}
	if header != v.header || v.last != 0 && last != v.last {
		return &journal.Error{Kind: journal.KindNotFound, Op: op, Run: v.run, Err: errDeleted}
	}
	return nil
}
