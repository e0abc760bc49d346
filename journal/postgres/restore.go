// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"encoding/json"
	"iter"

	"github.com/jackc/pgx/v5"

	"github.com/fiducial-dev/fiducial/journal"
)

// Restore implements [journal.Journal].
func (j *Journal) Restore(ctx context.Context, run string, records iter.Seq2[journal.Record, error], state journal.Mark) error {
	if err := j.enter(ctx, "restore", run, true); err != nil {
		return err
	}
	r, err := journal.GatherRun(run, records, state, true)
	if err != nil {
		return err
	}
	again := false
	err = j.try(context.WithoutCancel(ctx), func(ctx context.Context) error {
		fresh := false
		err := pgx.BeginFunc(ctx, j.pool, func(tx pgx.Tx) (err error) {
			if fresh, err = j.restoreRow(ctx, tx, r); err != nil || !fresh {
				return err
			}
			return j.restoreRest(ctx, tx, r)
		})
		if err != nil {
			again = true
			return err
		}
		if !fresh && again { // the first attempt may have stored it
			if fresh, err = j.stands(ctx, r); err != nil {
				return err
			}
		}
		if !fresh {
			return &journal.Error{Kind: journal.KindExists, Op: "restore", Run: run}
		}
		return nil
	})
	return written("restore", run, err)
}

// restoreRow reports whether there was no run of that name.
func (j *Journal) restoreRow(ctx context.Context, tx pgx.Tx, r *journal.Restored) (bool, error) {
	labels, err := json.Marshal(r.Header.Labels)
	if err != nil {
		return false, &journal.Error{Kind: journal.KindInvalid, Op: "restore", Run: r.Run, Err: err}
	}
	tag, err := tx.Exec(ctx, j.sql.restore, r.Run, int64(len(r.Lines)), int64(r.Epoch), plain(r.State.Phase), int64(r.State.Pending), r.State.Ended,
		r.Created.UnixNano(), r.Updated.UnixNano(), string(labels), plain(r.Header.Parent), int64(r.Header.ParentSeq))
	return tag.RowsAffected() == 1, err
}

func (j *Journal) restoreRest(ctx context.Context, tx pgx.Tx, r *journal.Restored) error {
	_, err := tx.CopyFrom(ctx, pgx.Identifier{j.opts.Schema, "journal"}, []string{"run_id", "seq", "epoch", "crc", "rec"},
		pgx.CopyFromSlice(len(r.Lines), func(i int) ([]any, error) {
			return []any{r.Run, int64(i) + 1, int64(r.Records[i].Epoch), int64(r.Lines[i].CRC), r.Lines[i].Line}, nil
		}))
	if err != nil {
		return err
	}
	_, err = tx.CopyFrom(ctx, pgx.Identifier{j.opts.Schema, "taken"}, []string{"run_id", "key", "seq"},
		pgx.CopyFromSlice(len(r.Taken), func(i int) ([]any, error) {
			return []any{r.Run, []byte(r.Taken[i].Key), int64(r.Taken[i].Seq)}, nil
		}))
	if err != nil {
		return err
	}
	var blobs [][]any
	seen := map[string]bool{}
	for _, e := range r.Lines {
		for _, b := range e.Blobs {
			if !seen[b.Digest] {
				seen[b.Digest] = true
				blobs = append(blobs, []any{r.Run, b.Digest, b.Data})
			}
		}
	}
	_, err = tx.CopyFrom(ctx, pgx.Identifier{j.opts.Schema, "blob"}, []string{"run_id", "sha256", "bytes"}, pgx.CopyFromRows(blobs))
	return err
}

// stands reports whether the run that is there is the one to be restored.
func (j *Journal) stands(ctx context.Context, r *journal.Restored) (bool, error) {
	var epoch, head int64
	var at, crc *int64
	last := len(r.Lines)
	err := j.pool.QueryRow(ctx, j.sql.at, r.Run, int64(last)).Scan(&epoch, &head, &at, &crc)
	return err == nil && head == int64(last) && crc != nil && *crc == int64(r.Lines[last-1].CRC), err
}
