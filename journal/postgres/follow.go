// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"errors"
	"iter"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fiducial-dev/fiducial/journal"
)

// A hub passes notifications of the server on to those who follow runs. One
// connection listens for all of them, from the first follower on.
type hub struct {
	mu      sync.Mutex
	waiting map[string]map[chan struct{}]struct{}
	once    sync.Once
	first   chan struct{} // closed by the first follower
	done    chan struct{} // closed when nothing listens any more
}

// wake tells the followers of a run, or of all runs, that there may be something.
func (h *hub) wake(run string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for name, all := range h.waiting {
		if run != "" && name != run {
			continue
		}
		for c := range all {
			select {
			case c <- struct{}{}:
			default: // it will look in any case
			}
		}
	}
}

// join adds a follower. The function that it returns takes it out.
func (j *Journal) join(run string) (<-chan struct{}, func()) {
	h := &j.hub
	h.once.Do(func() { close(h.first) })
	h.mu.Lock()
	defer h.mu.Unlock()
	c := make(chan struct{}, 1)
	if h.waiting[run] == nil {
		h.waiting[run] = make(map[chan struct{}]struct{})
	}
	h.waiting[run][c] = struct{}{}
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.waiting[run], c)
		if len(h.waiting[run]) == 0 {
			delete(h.waiting, run)
		}
	}
}

// listen hears from the first follower on until the journal is closed. While it cannot, followers look by
// themselves.
func (j *Journal) listen(ctx context.Context) {
	defer close(j.hub.done)
	select {
	case <-ctx.Done():
	case <-j.hub.first:
	}
	for ctx.Err() == nil {
		_ = j.hear(ctx) // what was lost is found by looking
		select {
		case <-ctx.Done():
		case <-time.After(j.opts.Poll):
		}
	}
}

// hear passes notifications on until the connection fails.
func (j *Journal) hear(ctx context.Context) error {
	conn, err := pgx.ConnectConfig(ctx, j.pool.Config().ConnConfig)
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		defer cancel()
		_ = conn.Close(ctx) // nothing hangs on how it ends
	}()
	if _, err := conn.Exec(ctx, "LISTEN "+pgx.Identifier{j.sql.channel}.Sanitize()); err != nil {
		return err
	}
	for j.hub.wake(""); ; {
		n, err := conn.WaitForNotification(ctx)
		if err != nil {
			return err
		}
		j.hub.wake(n.Payload)
	}
}

// Follow implements [journal.Journal].
func (j *Journal) Follow(ctx context.Context, run string, from uint64) iter.Seq2[journal.Record, error] {
	return func(yield func(journal.Record, error) bool) {
		if err := journal.CheckRun("follow", run); err != nil {
			yield(journal.Record{}, err)
			return
		}
		err := j.follow(ctx, &life{run: run, next: int64(max(from, 1))}, yield)
		if err != nil && ctx.Err() == nil && !errors.Is(err, errStopped) {
			yield(journal.Record{}, storeError("follow", run, err))
		}
	}
}

func (j *Journal) follow(ctx context.Context, v *life, yield func(journal.Record, error) bool) error {
	if err := j.enter(ctx, "follow", v.run, false); err != nil {
		return err
	}
	news, leave := j.join(v.run)
	defer leave()
	tick := time.NewTicker(j.opts.Poll)
	defer tick.Stop()
	for {
		info, err := j.emit(ctx, "follow", v, yield)
		if err != nil || info.Ended {
			return err
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-j.done:
		case <-news:
		case <-tick.C:
		}
		if err := j.enter(ctx, "follow", v.run, false); err != nil {
			return err
		}
	}
}
