// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"sync"
)

// writer is the one connection that writes. Calls that come while a transaction is
// being synced go together into the next one: whoever gets the turn carries out
// everything that waits.
type writer struct {
	db    *sql.DB
	conn  *sql.Conn
	turn  chan struct{}        // holds a token while somebody writes
	stmts map[string]*sql.Stmt // used by whoever has the turn
	ready func() error         // looked at before each transaction

	mu     sync.Mutex
	queue  []*job
	closed bool
}

// A job is one change. Do may run more than once: after another job of the same
// transaction failed, each runs again alone. When do fails nothing of it stays.
type job struct {
	do func(context.Context, *writer) error

	// stored finds out, after a commit that failed, whether the change is there all
	// the same.
	stored func(context.Context, *writer) (bool, error)

	err  error
	done chan struct{}
}

// A commitError is a failure of the commit itself: the change may be stored or not.
type commitError struct{ err error }

func (e *commitError) Error() string { return "commit: " + e.err.Error() }
func (e *commitError) Unwrap() error { return e.err }

func openWriter(ctx context.Context, dsn string, prepare func(context.Context, *sql.Conn) error) (*writer, error) {
	db, err := sql.Open("sqlite", dsn)
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1)
	conn, err := db.Conn(ctx)
	if err == nil {
		if err = prepare(ctx, conn); err != nil {
			err = errors.Join(err, conn.Close())
		}
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &writer{db: db, conn: conn, turn: make(chan struct{}, 1), stmts: make(map[string]*sql.Stmt)}, nil
}

var errClosed = errors.New("the journal is closed")

// run carries out a change and returns when it is on disk. It does not end early:
// a change is done or it is not.
func (w *writer) run(ctx context.Context, j *job) error {
	ctx = context.WithoutCancel(ctx)
	j.done = make(chan struct{})
	w.mu.Lock()
	if w.closed {
		w.mu.Unlock()
		return errClosed
	}
	w.queue = append(w.queue, j)
	w.mu.Unlock()
	select {
	case <-j.done:
		return j.err
	case w.turn <- struct{}{}:
	}
	defer func() { <-w.turn }()
	w.mu.Lock()
	jobs := w.queue
	w.queue = nil
	w.mu.Unlock()
	w.carryOut(ctx, jobs)
	<-j.done // another one may have carried it out
	return j.err
}

// carryOut needs the turn.
func (w *writer) carryOut(ctx context.Context, jobs []*job) {
	if len(jobs) == 0 {
		return
	}
	err := w.transact(ctx, jobs)
	if _, commit := errors.AsType[*commitError](err); err != nil && !commit && len(jobs) > 1 {
		for _, j := range jobs {
			w.carryOut(ctx, []*job{j})
		}
		return
	}
	for _, j := range jobs {
		j.err = w.settle(ctx, j, err)
		close(j.done)
	}
}

// transact does the jobs in one transaction, all or none.
func (w *writer) transact(ctx context.Context, jobs []*job) error {
	if w.ready != nil {
		if err := w.ready(); err != nil {
			return err
		}
	}
	if _, err := w.exec(ctx, "BEGIN IMMEDIATE"); err != nil {
		return err
	}
	for _, j := range jobs {
		if err := j.do(ctx, w); err != nil {
			return errors.Join(err, w.rollback(ctx))
		}
	}
	if _, err := w.exec(ctx, "COMMIT"); err != nil {
		return &commitError{errors.Join(err, w.rollback(ctx))}
	}
	return nil
}

// rollback ends a transaction. SQLite may have done so itself, which is no error.
func (w *writer) rollback(ctx context.Context) error {
	_, err := w.conn.ExecContext(ctx, "ROLLBACK")
	if err != nil {
		if _, begin := w.conn.ExecContext(ctx, "BEGIN; ROLLBACK"); begin == nil {
			return nil
		}
	}
	return err
}

// settle turns a failed commit into what became of the job, by looking. What can be
// read was synced before it could be read, and what cannot be read is undone, but for
// the failures of mayStand.
func (w *writer) settle(ctx context.Context, j *job, err error) error {
	c, ok := errors.AsType[*commitError](err)
	switch {
	case ok && isFull(err): // the transaction did not fit into the log, and is undone
		return c.err
	case !ok || j.stored == nil || mayStand(err):
		return err
	}
	there, look := j.stored(ctx, w)
	switch {
	case look != nil:
		return errors.Join(err, look)
	case there:
		return nil
	}
	return c.err
}

// exec, and row, run a statement that is prepared once. Both need the turn.
func (w *writer) exec(ctx context.Context, query string, args ...any) (int64, error) {
	stmt, err := w.prepare(ctx, query)
	if err != nil {
		return 0, err
	}
	res, err := stmt.ExecContext(ctx, args...)
	if err != nil {
		return 0, err
	}
	return res.RowsAffected()
}

func (w *writer) row(ctx context.Context, query string, args ...any) row {
	stmt, err := w.prepare(ctx, query)
	if err != nil {
		return failedRow{err}
	}
	return stmt.QueryRowContext(ctx, args...)
}

// A row is [sql.Row], or the reason why there is none.
type row interface{ Scan(dest ...any) error }

type failedRow struct{ err error }

func (r failedRow) Scan(...any) error { return r.err }

func (w *writer) prepare(ctx context.Context, query string) (*sql.Stmt, error) {
	if s := w.stmts[query]; s != nil {
		return s, nil
	}
	s, err := w.conn.PrepareContext(ctx, query)
	if err == nil {
		w.stmts[query] = s
	}
	return s, err
}

// close waits for the change that is being made.
func (w *writer) close() error {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.turn <- struct{}{}
	defer func() { <-w.turn }()
	var errs []error
	for _, s := range w.stmts {
		errs = append(errs, s.Close())
	}
	return errors.Join(append(errs, w.conn.Close(), w.db.Close())...)
}
