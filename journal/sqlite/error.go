// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"

	lib "modernc.org/sqlite" // registers the driver "sqlite"
	codes "modernc.org/sqlite/lib"

	"github.com/fiducial-dev/fiducial/journal"
)

// storeError gives an error of SQLite or of the system its kind. Errors that have
// one pass as they are.
func (j *Journal) storeError(op, run string, err error) error {
	return storeError(j.path, op, run, err)
}

func storeError(path, op, run string, err error) error {
	if err == nil || isJournalError(err) {
		return err
	}
	kind := journal.KindStorage
	if s, ok := errors.AsType[*lib.Error](err); ok {
		switch s.Code() & 0xff {
		case codes.SQLITE_FULL:
			kind = journal.KindFull
		case codes.SQLITE_CORRUPT, codes.SQLITE_NOTADB:
			return &journal.DamageError{Run: run, Where: path, Offset: -1, Reason: err.Error()}
		}
	}
	if _, ok := errors.AsType[*lib.Error](err); ok { // SQLite does not say of which file it speaks
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

// isCode reports whether an error of SQLite is of one of the primary codes of
// https://www.sqlite.org/rescode.html.
func isCode(err error, of ...int) bool {
	s, ok := errors.AsType[*lib.Error](err)
	return ok && slices.Contains(of, s.Code()&0xff)
}

// isFull reports that there was no room.
func isFull(err error) bool { return isCode(err, codes.SQLITE_FULL) }

// isSyncFailure reports that the system could not say what is on disk.
func isSyncFailure(err error) bool {
	s, ok := errors.AsType[*lib.Error](err)
	return ok && (s.Code() == codes.SQLITE_IOERR_FSYNC || s.Code() == codes.SQLITE_IOERR_DIR_FSYNC)
}
