// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
)

const (
	selectOffer = `SELECT n, taken_seq, crc FROM inbox WHERE run_id=? AND key=?`
	insertOffer = `INSERT INTO inbox(run_id, key, n, taken_seq, crc, rec) VALUES(?,?,?,?,?,?)`
	takeOffer   = `UPDATE inbox SET taken_seq=?, crc=? WHERE run_id=? AND key=?`
)

// Offer implements [journal.Journal].
func (j *Journal) Offer(ctx context.Context, run, key string, m llm.Message) error {
	if err := journal.CheckOffer(run, key, m); err != nil {
		return err
	}
	if err := j.enter(ctx, "offer", run, true); err != nil {
		return err
	}
	do := func(ctx context.Context, w *writer) error {
		row, err := scanRun(run, w.row(ctx, selectRun, run))
		if err != nil {
			return err
		}
		if _, known, err := w.offered(ctx, run, key); err != nil || known {
			return err
		}
		row.Offers++
		e, err := journal.EncodeOffer(run, uint64(row.Offers), journal.Item{Key: key, At: time.Now().UTC(), Message: m})
		if err != nil {
			return err
		}
		if err := w.insert(ctx, run, 0, 0, nil, e.Blobs); err != nil {
			return err
		}
		return w.put(ctx, &row, key, 0, string(e.Line))
	}
	return j.changed("offer", run, j.write.run(ctx, &job{do: do}))
}

// put adds a row to the inbox and stores the run's row, which counts it.
func (w *writer) put(ctx context.Context, row *runRow, key string, taken int64, rec string) error {
	n := row.Offers
	if _, err := w.exec(ctx, insertOffer, row.Run, key, n, taken, offerSum(row.Run, key, n, taken), rec); err != nil {
		return err
	}
	_, err := w.exec(ctx, updateRun, row.updateArgs()...)
	return err
}

type offerRow struct{ n, taken int64 }

// offered looks a key up.
func (w *writer) offered(ctx context.Context, run, key string) (o offerRow, known bool, err error) {
	var crc int64
	err = w.row(ctx, selectOffer, run, key).Scan(&o.n, &o.taken, &crc)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return o, false, nil
	case err != nil:
		return o, false, err
	case crc != offerSum(run, key, o.n, o.taken):
		return o, false, badOffer(run, o.n, "the row's checksum does not fit")
	}
	return o, true, nil
}

func badOffer(run string, n int64, why string) error {
	return &journal.DamageError{Run: run, Where: "table inbox", Offset: -1, Seq: uint64(n), Reason: why}
}

// take marks the keys as taken by the append behind the row's head. A key that
// nobody offered gets a row, so that a later offer of it changes nothing.
func (w *writer) take(ctx context.Context, row *runRow, keys []string) error {
	if len(keys) == 0 {
		return nil
	}
	known := make(map[string]offerRow, len(keys))
	for _, key := range keys {
		o, ok, err := w.offered(ctx, row.Run, key)
		if err != nil {
			return err
		}
		if ok {
			known[key] = o
		}
	}
	if err := journal.CheckTaken(row.Run, keys, func(key string) bool { return known[key].taken != 0 }); err != nil {
		return err
	}
	seq := row.Head + 1
	for _, key := range keys {
		o, ok := known[key]
		if !ok {
			row.Offers++
			if err := w.put(ctx, row, key, seq, ""); err != nil {
				return err
			}
			continue
		}
		if _, err := w.exec(ctx, takeOffer, seq, offerSum(row.Run, key, o.n, seq), row.Run, key); err != nil {
			return err
		}
	}
	return nil
}

// Inbox implements [journal.Lease].
func (l *lease) Inbox(ctx context.Context) ([]journal.Item, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.lock == nil {
		return nil, &journal.Error{Kind: journal.KindFenced, Op: "inbox", Run: l.run}
	}
	// As a rule nothing came, which the run's row tells. It is at hand, so that the
	// caller's context, which would cost more than the look itself, is left out.
	row, err := scanRun(l.run, l.journal.peek.QueryRowContext(context.WithoutCancel(ctx), l.run))
	if err != nil || row.Offers == l.quiet {
		return nil, l.journal.storeError("inbox", l.run, err)
	}
	items, offers, err := l.journal.inbox(ctx, l.run)
	if err == nil && len(items) == 0 {
		l.quiet = offers
	}
	return items, l.journal.storeError("inbox", l.run, err)
}

// inbox reads all rows, those that were taken too: only the whole can be checked.
func (j *Journal) inbox(ctx context.Context, run string) (items []journal.Item, offers int64, err error) {
	tx, err := j.read.BeginTx(ctx, nil)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, tx.Rollback()) }()
	row, err := scanRun(run, tx.QueryRowContext(ctx, selectRun, run))
	if err != nil || row.Offers == 0 {
		return nil, 0, err
	}
	rows, err := tx.QueryContext(ctx,
		`SELECT key, n, taken_seq, crc, iif(taken_seq=0, rec, '') FROM inbox WHERE run_id=? ORDER BY n`, run)
	if err != nil {
		return nil, 0, err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	want := int64(1)
	for ; rows.Next(); want++ {
		var key string
		var o offerRow
		var crc int64
		var rec []byte
		if err := rows.Scan(&key, &o.n, &o.taken, &crc, &rec); err != nil {
			return nil, 0, err
		}
		if o.n != want || crc != offerSum(run, key, o.n, o.taken) {
			return nil, 0, badOffer(run, want, "the row's number or checksum does not fit")
		}
		if o.taken != 0 {
			continue
		}
		item, err := journal.DecodeOffer(rec, func(digest string) ([]byte, error) { return getBlob(ctx, tx, run, digest) })
		if err == nil && item.Key != key {
			err = badOffer(run, want, "the key does not fit")
		}
		if err != nil {
			return nil, 0, locate(err, run, "table inbox", want)
		}
		items = append(items, item)
	}
	if err := rows.Err(); err != nil {
		return nil, 0, err
	}
	if want != row.Offers+1 {
		return nil, 0, badOffer(run, want, fmt.Sprintf("%d rows are missing", row.Offers+1-want))
	}
	return items, row.Offers, nil
}
