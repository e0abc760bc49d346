// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/internal/lockfile"
)

// migrations bring a database from the version of their index to the next. The
// version is SQLite's user_version. What was released is never changed.
var migrations = [...]string{`
CREATE TABLE run(
	run_id     TEXT PRIMARY KEY,
	head       INTEGER NOT NULL, -- sequence number of the last record
	epoch      INTEGER NOT NULL, -- of the latest lease
	phase      TEXT NOT NULL,
	pending    INTEGER NOT NULL, -- 64 bits without a sign
	ended      INTEGER NOT NULL,
	owner      TEXT NOT NULL,
	created    INTEGER NOT NULL, -- nanoseconds since 1970
	updated    INTEGER NOT NULL,
	labels     TEXT NOT NULL,    -- JSON object
	parent     TEXT NOT NULL,
	parent_seq INTEGER NOT NULL,
	offers     INTEGER NOT NULL, -- rows in inbox
	crc        INTEGER NOT NULL  -- CRC32C of the row
) STRICT;
CREATE TABLE journal(
	run_id TEXT NOT NULL REFERENCES run ON DELETE CASCADE,
	seq    INTEGER NOT NULL,
	epoch  INTEGER NOT NULL,
	crc    INTEGER NOT NULL,     -- the one in rec
	rec    TEXT NOT NULL,        -- one record as JSON, as package journal writes it
	PRIMARY KEY(run_id, seq)
) STRICT;
CREATE TABLE inbox(
	run_id    TEXT NOT NULL REFERENCES run ON DELETE CASCADE,
	key       TEXT NOT NULL,
	n         INTEGER NOT NULL,  -- 1, 2, 3 in the order of arrival
	taken_seq INTEGER NOT NULL,  -- of the record that took it, 0 while it waits
	crc       INTEGER NOT NULL,  -- CRC32C of the row
	rec       TEXT NOT NULL,     -- empty for a key that was taken without an offer
	PRIMARY KEY(run_id, key)
) STRICT;
CREATE UNIQUE INDEX inbox_n ON inbox(run_id, n);
CREATE TABLE blob(
	run_id TEXT NOT NULL REFERENCES run ON DELETE CASCADE,
	sha256 TEXT NOT NULL,
	bytes  BLOB NOT NULL,
	PRIMARY KEY(run_id, sha256)
) STRICT;
`}

// openLock guards the making of the database. No run has a name like this.
const openLock = ".open"

// migrate brings the database up to date, one process at a time.
func (j *Journal) migrate(ctx context.Context, conn *sql.Conn) error {
	v, err := version(ctx, conn)
	if err != nil || v == len(migrations) {
		return err
	}
	lock, err := j.lockOpen(ctx)
	if err != nil {
		return err
	}
	err = j.migrateLocked(ctx, conn)
	return errors.Join(err, lock.Free())
}

func (j *Journal) lockOpen(ctx context.Context) (*lockfile.Lock, error) {
	for {
		lock, err := lockfile.Take(j.locks, openLock)
		if err == nil || !errors.Is(err, lockfile.ErrHeld) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (j *Journal) migrateLocked(ctx context.Context, conn *sql.Conn) error {
	v, err := version(ctx, conn)
	if err != nil {
		return err
	}
	if v == 0 {
		if err := j.neverUsed(); err != nil {
			return err
		}
		if _, err := conn.ExecContext(ctx, "PRAGMA journal_mode=WAL"); err != nil {
			return err
		}
	}
	for ; v < len(migrations); v++ {
		step := fmt.Sprintf("BEGIN IMMEDIATE; %s PRAGMA user_version=%d; COMMIT", migrations[v], v+1)
		if _, err := conn.ExecContext(ctx, step); err != nil {
			_, _ = conn.ExecContext(ctx, "ROLLBACK") // SQLite may have done so itself
			return err
		}
	}
	return nil
}

// neverUsed says when a database that is there without tables had runs.
func (j *Journal) neverUsed() error {
	entries, err := fs.ReadDir(j.locks.FS(), ".")
	if err != nil || !j.there {
		return err
	}
	for _, e := range entries {
		if run, ok := strings.CutSuffix(e.Name(), ".lock"); ok && journal.CheckRun("open", run) == nil {
			return &journal.DamageError{
				Where: j.path, Offset: -1, Reason: fmt.Sprintf("it has no tables, and there is a lock of run %s", run),
			}
		}
	}
	return nil
}

func version(ctx context.Context, conn *sql.Conn) (int, error) {
	var v int
	if err := conn.QueryRowContext(ctx, "PRAGMA user_version").Scan(&v); err != nil {
		return 0, err
	}
	if v > len(migrations) || v < 0 {
		return 0, &journal.FormatError{Version: v, Kind: "database", Err: fmt.Errorf(
			"the database has schema %d, this program knows up to %d", v, len(migrations))}
	}
	return v, nil
}
