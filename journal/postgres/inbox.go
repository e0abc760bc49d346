// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
)

// Offer implements [journal.Journal].
func (j *Journal) Offer(ctx context.Context, run, key string, m llm.Message) error {
	if err := journal.CheckOffer(run, key, m); err != nil {
		return err
	}
	if err := j.enter(ctx, "offer", run, true); err != nil {
		return err
	}
	e, err := journal.EncodeOffer(run, 1, journal.Item{Key: key, At: time.Now().UTC(), Message: m})
	if err != nil {
		return err
	}
	digests, contents := columns(e.Blobs)
	err = j.try(context.WithoutCancel(ctx), func(ctx context.Context) error {
		_, err := j.pool.Exec(ctx, j.sql.offer, run, []byte(key), e.Line, digests, contents)
		if code(err) == noSuchRow {
			return &journal.Error{Kind: journal.KindNotFound, Op: "offer", Run: run}
		}
		return err
	})
	return written("offer", run, err)
}

type offerRow struct {
	epoch    int64
	key, rec []byte // nil when there is no offer
}

func scanOffer(from pgx.CollectableRow) (r offerRow, err error) {
	err = from.Scan(&r.epoch, &r.key, &r.rec)
	return r, err
}

// Inbox implements [journal.Lease].
func (l *lease) Inbox(ctx context.Context) ([]journal.Item, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if l.ended() {
		return nil, l.fenced("inbox", l.why)
	}
	found, err := rows(ctx, l.journal, scanOffer, l.journal.sql.inbox, l.run)
	if err != nil {
		return nil, readError(ctx, "inbox", l.run, err)
	}
	switch {
	case len(found) == 0:
		l.end(journal.ErrReplaced)
		return nil, l.fenced("inbox", fmt.Errorf("%w: %w", journal.ErrReplaced, journal.ErrNotFound))
	case found[0].epoch != l.epoch:
		l.end(errNotOurs)
		return nil, l.fenced("inbox", errSuperseded)
	}
	var items []journal.Item
	for i, r := range found {
		if r.rec == nil {
			continue
		}
		item, err := journal.DecodeOffer(r.rec, l.journal.blobs(ctx, l.run))
		if err == nil && item.Key != string(r.key) {
			err = &journal.DamageError{Offset: -1, Reason: "the key does not fit"}
		}
		if d, ok := errors.AsType[*journal.DamageError](err); ok {
			d.Run, d.Where, d.Seq = l.run, "table offer", uint64(i+1)
		}
		if err != nil {
			return nil, readError(ctx, "inbox", l.run, err)
		}
		items = append(items, item)
	}
	return items, nil
}
