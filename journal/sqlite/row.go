// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"database/sql"
	"encoding/json"
	"errors"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/machine"
)

// runRow is a row of the table run. Numbers of 64 bits without a sign are stored as
// the signed number of the same bits.
type runRow struct {
	Run       string
	Head      int64
	Epoch     int64
	Phase     string
	Pending   int64
	Ended     bool
	Owner     string
	Created   int64
	Updated   int64
	Labels    string
	Parent    string
	ParentSeq int64
	Offers    int64
}

const (
	runColumns = `run_id, head, epoch, phase, pending, ended, owner, created, updated, labels, parent, parent_seq, offers, crc`
	selectRun  = `SELECT ` + runColumns + ` FROM run WHERE run_id=?`
	insertRun  = `INSERT INTO run(` + runColumns + `) VALUES(?,?,?,?,?,?,?,?,?,?,?,?,?,?)`
	updateRun  = `UPDATE run SET head=?, epoch=?, phase=?, pending=?, ended=?, owner=?, updated=?, offers=?, crc=? WHERE run_id=?`

	// advanceRun is updateRun for a row that still is as it was left.
	advanceRun = updateRun + ` AND epoch=? AND head=? AND offers=? AND crc=?`
)

func (r *runRow) sum() int64 {
	data, err := json.Marshal(r)
	if err != nil { // strings and numbers always have a JSON form
		panic(err)
	}
	return int64(journal.Checksum(data))
}

// scanRun reads a row and checks its sum.
func scanRun(run string, from row) (runRow, error) {
	var r runRow
	var crc int64
	err := from.Scan(&r.Run, &r.Head, &r.Epoch, &r.Phase, &r.Pending, &r.Ended, &r.Owner, &r.Created, &r.Updated,
		&r.Labels, &r.Parent, &r.ParentSeq, &r.Offers, &crc)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return r, &journal.Error{Kind: journal.KindNotFound, Op: "find", Run: run}
	case err != nil:
		return r, err
	case crc != r.sum():
		return r, &journal.DamageError{Run: r.Run, Where: "table run", Offset: -1, Reason: "the row's checksum does not fit"}
	}
	return r, nil
}

func (r *runRow) insertArgs() []any {
	return []any{
		r.Run, r.Head, r.Epoch, r.Phase, r.Pending, r.Ended, r.Owner, r.Created, r.Updated,
		r.Labels, r.Parent, r.ParentSeq, r.Offers, r.sum(),
	}
}

func (r *runRow) updateArgs() []any {
	return []any{r.Head, r.Epoch, r.Phase, r.Pending, r.Ended, r.Owner, r.Updated, r.Offers, r.sum(), r.Run}
}

func (r *runRow) advanceArgs(from *runRow) []any {
	return append(r.updateArgs(), from.Epoch, from.Head, from.Offers, from.sum())
}

func (r *runRow) setMark(m journal.Mark) {
	r.Phase, r.Pending, r.Ended = m.Phase, int64(m.Pending), m.Ended
}

// info describes the run, all but who holds it now.
func (r *runRow) info() (journal.Info, error) {
	i := journal.Info{
		Run: r.Run, Head: uint64(r.Head), Epoch: uint64(r.Epoch),
		Mark:  journal.Mark{Phase: r.Phase, Pending: machine.OperationID(r.Pending), Ended: r.Ended},
		Owner: r.Owner, Created: time.Unix(0, r.Created).UTC(), Updated: time.Unix(0, r.Updated).UTC(),
		Parent: r.Parent, ParentSeq: uint64(r.ParentSeq),
	}
	return i, json.Unmarshal([]byte(r.Labels), &i.Labels)
}

// offerSum guards a row of the table inbox; its rec has a sum of its own.
func offerSum(run, key string, n, taken int64) int64 {
	data, err := json.Marshal([]any{run, key, n, taken})
	if err != nil { // strings and numbers always have a JSON form
		panic(err)
	}
	return int64(journal.Checksum(data))
}
