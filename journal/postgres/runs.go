// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/machine"
)

// plain is text that the server's type can hold: it has no NUL.
func plain(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// columns are the blobs as two arrays.
func columns(blobs []journal.Blob) (digests []string, contents [][]byte) {
	digests, contents = make([]string, len(blobs)), make([][]byte, len(blobs))
	for i, b := range blobs {
		digests[i], contents[i] = b.Digest, b.Data
	}
	return digests, contents
}

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
	digests, contents := columns(e.Blobs)
	again := false
	err = j.try(context.WithoutCancel(ctx), func(ctx context.Context) error {
		tag, err := j.pool.Exec(ctx, j.sql.create, run, at.UnixNano(), string(labels), plain(h.Parent), int64(h.ParentSeq),
			int64(e.CRC), e.Line, digests, contents)
		switch {
		case err != nil:
			again = true
			return err
		case tag.RowsAffected() == 1:
			return nil
		case again: // the first attempt may have made it
			var crc int64
			if err := j.pool.QueryRow(ctx, j.sql.header, run).Scan(&crc); err == nil && crc == int64(e.CRC) {
				return nil
			}
		}
		return &journal.Error{Kind: journal.KindExists, Op: "create", Run: run}
	})
	return written("create", run, err)
}

// written gives the error of a change its kind: one that the server did not answer
// may have been made.
func written(op, run string, err error) error {
	if passing(err) {
		return &journal.Error{Kind: journal.KindUncertain, Op: op, Run: run, Err: err}
	}
	return storeError(op, run, err)
}

type runRow struct {
	journal.Info
	badLabels error
}

func scanRun(from pgx.CollectableRow) (runRow, error) {
	var r runRow
	var labels string
	var head, epoch, pending, parentSeq, created, updated int64
	err := from.Scan(&r.Run, &head, &epoch, &r.Phase, &pending, &r.Ended, &r.Owner, &r.Held, &created, &updated, &labels, &r.Parent, &parentSeq)
	if err != nil {
		return r, err
	}
	r.Head, r.Epoch, r.Pending, r.ParentSeq = uint64(head), uint64(epoch), machine.OperationID(pending), uint64(parentSeq)
	r.Created, r.Updated = time.Unix(0, created).UTC(), time.Unix(0, updated).UTC()
	if err := json.Unmarshal([]byte(labels), &r.Labels); err != nil {
		r.badLabels = &journal.DamageError{Run: r.Run, Where: "table run", Offset: -1, Reason: "the labels are not JSON"}
	}
	return r, nil
}

// find describes a run. [journal.ErrNotFound] when there is none.
func (j *Journal) find(ctx context.Context, op, run string) (journal.Info, error) {
	found, err := rows(ctx, j, scanRun, j.sql.runs+` WHERE run_id=$1`, run)
	switch {
	case err != nil:
		return journal.Info{}, err
	case len(found) == 0:
		return journal.Info{}, &journal.Error{Kind: journal.KindNotFound, Op: op, Run: run}
	}
	return found[0].Info, found[0].badLabels
}

// Stat implements [journal.Journal].
func (j *Journal) Stat(ctx context.Context, run string) (journal.Info, error) {
	if err := j.enter(ctx, "stat", run, false); err != nil {
		return journal.Info{}, err
	}
	info, err := j.find(ctx, "stat", run)
	return info, readError(ctx, "stat", run, err)
}

// Runs implements [journal.Journal].
func (j *Journal) Runs(ctx context.Context, f journal.Filter) iter.Seq2[journal.Info, error] {
	return func(yield func(journal.Info, error) bool) {
		if err := j.enter(ctx, "list", "", false); err != nil {
			yield(journal.Info{}, err)
			return
		}
		found, err := rows(ctx, j, scanRun, j.sql.runs)
		if err != nil {
			yield(journal.Info{}, readError(ctx, "list", "", err))
			return
		}
		bad := make(map[string]error)
		infos := make([]journal.Info, 0, len(found))
		for _, r := range found {
			if r.badLabels != nil {
				bad[r.Run] = r.badLabels
				continue
			}
			infos = append(infos, r.Info)
		}
		f.Yield(infos, bad, yield)
	}
}

// Delete implements [journal.Journal].
func (j *Journal) Delete(ctx context.Context, run string) error {
	if err := j.enter(ctx, "delete", run, true); err != nil {
		return err
	}
	again := false
	err := j.try(context.WithoutCancel(ctx), func(ctx context.Context) error {
		tag, err := j.pool.Exec(ctx, j.sql.remove, run, j.sql.channel)
		if err != nil {
			again = true
			return err
		}
		if tag.RowsAffected() == 1 {
			return nil
		}
		info, err := j.find(ctx, "delete", run)
		if again && errors.Is(err, journal.ErrNotFound) { // the first attempt did it
			return nil
		}
		if err != nil {
			return err
		}
		return &journal.HeldError{Run: run, Owner: info.Owner}
	})
	return written("delete", run, err)
}
