// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"time"

	codes "modernc.org/sqlite/lib"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/internal/folder"
	"github.com/fiducial-dev/fiducial/journal/internal/lockfile"
)

// Options change how a database is opened.
type Options struct {
	// ReadOnly refuses every change. A database that is missing is then an error
	// (errors.Is [fs.ErrNotExist]) and nothing is made.
	ReadOnly bool

	// Poll is how often Follow looks for new records; 0 means every 20 ms.
	Poll time.Duration
}

// Journal is a [journal.Journal] in a database. The database must be on a local
// disk.
type Journal struct {
	path  string
	there bool // it was there before Open
	poll  time.Duration
	locks *os.Root // nil when there is none, for a reader
	read  *sql.DB
	peek  *sql.Stmt   // selectRun, for writers
	write *writer     // nil for a reader
	mine  os.FileInfo // of the database, to know it by; nil for a reader

	mu     sync.Mutex
	leases map[*lease]struct{}
	closed bool
}

// Open opens the journal in the database at path, which may be a symbolic link. The
// database and the folders above it are made when they are missing; lock files stand
// in a folder beside it, whose name is path and ".locks". An existing database of an
// older schema is brought up to date; one of a newer schema is a [*journal.FormatError],
// and one that is damaged a [*journal.DamageError], see [Repair]. A reader also opens a
// database on a file system that cannot be written, once its writers have closed it.
func Open(ctx context.Context, path string, opts Options) (*Journal, error) {
	path, err := place(path, !opts.ReadOnly)
	if err != nil {
		return nil, storeError(path, "open", "", err)
	}
	j := &Journal{path: path, poll: opts.Poll, leases: make(map[*lease]struct{})}
	if j.poll <= 0 {
		j.poll = 20 * time.Millisecond
	}
	_, err = os.Stat(path)
	j.there = err == nil
	if err = j.checkLog(); err != nil {
		return nil, j.storeError("open", "", err)
	}
	if opts.ReadOnly {
		err = j.openRead(ctx)
	} else {
		err = j.openWrite(ctx)
	}
	if err != nil {
		return nil, errors.Join(j.storeError("open", "", j.explain(err, opts.ReadOnly)), j.Close())
	}
	return j, nil
}

// checkLog finds damage that SQLite would take for the end of what was written. It
// looks twice, for others may write meanwhile.
func (j *Journal) checkLog() error {
	at, bad, err := spoiledLog(j.path)
	if err == nil && bad {
		at, bad, err = spoiledLog(j.path)
	}
	if err == nil && bad {
		err = &journal.DamageError{Where: j.path + "-wal", Offset: at, Reason: "it is not what was written, and more was written behind it"}
	}
	return err
}

func (j *Journal) openRead(ctx context.Context) error {
	if _, err := os.Stat(j.path); err != nil {
		return err
	}
	locks, err := os.OpenRoot(j.path + ".locks")
	if err == nil {
		j.locks = locks
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	v, err := j.connectRead(ctx, dsn(j.path, "ro"))
	if isCode(err, codes.SQLITE_CANTOPEN, codes.SQLITE_READONLY) && j.settled() {
		v, err = j.connectRead(ctx, dsn(j.path, "ro")+"&immutable=1")
	}
	if err == nil && v < len(migrations) {
		err = &journal.FormatError{Version: v, Kind: "database", Err: errors.New(
			"the database has an older schema, or none: open it for writing once")}
	}
	return err
}

// connectRead makes the readers' pool and says of what schema the database is.
func (j *Journal) connectRead(ctx context.Context, dsn string) (v int, err error) {
	if j.read != nil {
		if err := j.read.Close(); err != nil {
			return 0, err
		}
	}
	if j.read, err = sql.Open("sqlite", dsn); err != nil {
		return 0, err
	}
	conn, err := j.read.Conn(ctx)
	if err != nil {
		return 0, err
	}
	v, err = version(ctx, conn)
	return v, errors.Join(err, conn.Close())
}

// settled reports whether all that was written stands in the database itself: the
// last writer that closes it removes its log. Where no file can be made beside it,
// SQLite reads it only then, and only when it is told that nobody will write.
func (j *Journal) settled() bool {
	info, err := os.Stat(j.path + "-wal")
	return errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() == 0
}

func (j *Journal) openWrite(ctx context.Context) error {
	if err := folder.Make(j.path + ".locks"); err != nil {
		return err
	}
	var err error
	if j.locks, err = os.OpenRoot(j.path + ".locks"); err != nil {
		return err
	}
	if j.write, err = openWriter(ctx, dsn(j.path, "rwc"), j.migrate); err != nil {
		return err
	}
	if j.mine, err = os.Stat(j.path); err != nil {
		return err
	}
	j.write.ready = j.stands
	if j.read, err = sql.Open("sqlite", dsn(j.path, "ro")); err != nil {
		return err
	}
	j.peek, err = j.read.PrepareContext(ctx, selectRun)
	return err
}

// stands says when the database is not the one that was opened: what is written then
// goes into a file that nobody finds.
func (j *Journal) stands() error {
	now, err := os.Stat(j.path)
	if err == nil && os.SameFile(j.mine, now) {
		return nil
	}
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%s is not the database that was opened, %w: open the journal again", j.path, journal.ErrReplaced)
	}
	return err
}

func dsn(path, mode string) string {
	q := url.Values{"mode": {mode}, "_pragma": {"busy_timeout(5000)", "synchronous(full)", "foreign_keys(1)"}}
	return "file:" + (&url.URL{Path: filepath.ToSlash(path)}).EscapedPath() + "?" + q.Encode()
}

// Promise is [journal.Durable].
func (j *Journal) Promise() journal.Promise { return journal.Durable }

// enter is what every call looks at first.
func (j *Journal) enter(ctx context.Context, op, run string, writes bool) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if op != "list" {
		if err := journal.CheckRun(op, run); err != nil {
			return err
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	switch {
	case j.closed:
		return &journal.Error{Kind: journal.KindClosed, Op: op, Run: run}
	case writes && j.write == nil:
		return &journal.Error{Kind: journal.KindReadOnly, Op: op, Run: run}
	}
	return nil
}

// Close implements [journal.Journal].
func (j *Journal) Close() error {
	j.mu.Lock()
	leases := j.leases
	already := j.closed
	j.leases, j.closed = nil, true
	j.mu.Unlock()
	if already {
		return nil
	}
	var errs []error
	for l := range leases {
		errs = append(errs, l.end())
	}
	if j.peek != nil {
		errs = append(errs, j.peek.Close())
	}
	if j.read != nil {
		errs = append(errs, j.read.Close())
	}
	if j.write != nil {
		errs = append(errs, j.write.close())
	}
	if j.locks != nil {
		errs = append(errs, j.locks.Close())
	}
	return errors.Join(errs...)
}

// isHeld asks the lock file.
func (j *Journal) isHeld(run string) (bool, error) {
	if j.locks == nil {
		return false, nil
	}
	held, _, err := lockfile.Probe(j.locks, lockName(run))
	return held, err
}

func lockName(run string) string { return run + ".lock" }
