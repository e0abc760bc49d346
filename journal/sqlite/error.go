// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	_ "modernc.org/sqlite" // registers the driver "sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/fiducial-dev/fiducial/journal"
)

// coded is an error of SQLite, as the driver reports it with its extended result code.
type coded interface {
	error
	Code() int
}

// storeError gives an error of SQLite or of the system its kind. Errors that have
// one pass as they are.
func (j *Journal) storeError(op, run string, err error) error {
	return storeError(j.path, op, run, err)
}

func storeError(path, op, run string, err error) error {
	if err == nil || isJournalError(err) {
		return err
	}
	if isCode(err, codes.SQLITE_CORRUPT, codes.SQLITE_NOTADB) {
		return &journal.DamageError{Run: run, Where: path, Offset: -1, Reason: err.Error()}
	}
	kind := journal.KindStorage
	if isFull(err) || saysFull(err) {
		kind = journal.KindFull
	}
	if _, ok := errors.AsType[coded](err); ok { // SQLite does not say of which file it speaks
		if mayBeFull(err) {
			if why := noRoom(path); why != nil {
				kind, err = journal.KindFull, fmt.Errorf("%w: %w", err, why)
			}
		}
		err = fmt.Errorf("%s: %w", path, err)
	}
	return &journal.Error{Kind: kind, Op: op, Run: run, Err: err}
}

func isJournalError(err error) bool {
	if _, ok := errors.AsType[*journal.Error](err); ok {
		return true
	}
	for _, target := range []error{
		journal.ErrHeld, journal.ErrDamaged, journal.ErrFormat, context.Canceled, context.DeadlineExceeded,
	} {
		if errors.Is(err, target) {
			return true
		}
	}
	return false
}

// mayBeFull reports whether an error of SQLite can come of a full disk, though it does
// not say so: of https://www.sqlite.org/rescode.html (SQLite 3.54) only SQLITE_FULL does.
// It stands for ENOSPC of a write; a quota that is used up is SQLITE_IOERR_WRITE, and what
// cannot be made or made longer beside the database has other codes.
func mayBeFull(err error) bool {
	s, ok := errors.AsType[coded](err)
	if !ok {
		return false
	}
	switch s.Code() {
	case codes.SQLITE_IOERR_WRITE, codes.SQLITE_IOERR_TRUNCATE, codes.SQLITE_IOERR_SHMSIZE, codes.SQLITE_IOERR_SHMOPEN,
		codes.SQLITE_IOERR_FSYNC, codes.SQLITE_IOERR_DIR_FSYNC, codes.SQLITE_CANTOPEN:
		return true
	}
	return false
}

// noRoom asks the system whether a file beside the database takes as much as SQLite
// asks for at once: it is the answer when that is no, and nil when it is yes or
// cannot be told.
func noRoom(path string) error {
	const enough = 64 << 10 // its shared memory grows by 32 KB, and no page is larger
	f, err := os.CreateTemp(filepath.Dir(path), ".fiducial-*")
	if err == nil {
		_, err = f.Write(make([]byte, enough))
		err = errors.Join(err, f.Close(), os.Remove(f.Name()))
	}
	if !saysFull(err) {
		return nil
	}
	return err
}

// saysFull reports whether an error of the system says that there is no room.
func saysFull(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT)
}

// isCode reports whether an error of SQLite is of one of the primary codes of
// https://www.sqlite.org/rescode.html.
func isCode(err error, of ...int) bool {
	s, ok := errors.AsType[coded](err)
	return ok && slices.Contains(of, s.Code()&0xff)
}

// isFull reports that there was no room.
func isFull(err error) bool { return isCode(err, codes.SQLITE_FULL) }

// mayStand reports that what a failed commit wrote may be found later, whatever a look
// at the database says now: the system could not say what is on disk, or all of it is in
// the log already and only the index of the log, which is made anew from it, did not grow.
func mayStand(err error) bool {
	s, ok := errors.AsType[coded](err)
	if !ok {
		return false
	}
	switch s.Code() {
	case codes.SQLITE_IOERR_FSYNC, codes.SQLITE_IOERR_DIR_FSYNC, codes.SQLITE_IOERR_SHMSIZE, codes.SQLITE_IOERR_SHMMAP:
		return true
	}
	return false
}
