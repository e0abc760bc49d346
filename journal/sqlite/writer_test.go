// SPDX-License-Identifier: Apache-2.0

package sqlite

import (
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	codes "modernc.org/sqlite/lib"

	"github.com/fiducial-dev/fiducial/journal"
)

// failed is an error of SQLite of that code.
type failed int

func (f failed) Error() string { return fmt.Sprint("failed with code ", int(f)) }
func (f failed) Code() int     { return int(f) }

// TestCommitOfUnknownOutcome: a commit that answered with an error is settled by
// looking for its last record, with its epoch and its sum.
func TestCommitOfUnknownOutcome(t *testing.T) {
	j, err := Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	if err := j.Create(t.Context(), "r", journal.Header{}); err != nil {
		t.Fatal(err)
	}
	l, err := j.Acquire(t.Context(), "r", "w")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(t.Context(), journal.Mark{}, journal.Note{Kind: "n"}); err != nil {
		t.Fatal(err)
	}
	var crc int64
	if err := j.read.QueryRowContext(t.Context(), `SELECT crc FROM journal WHERE seq=2`).Scan(&crc); err != nil {
		t.Fatal(err)
	}
	lost := &commitError{errors.New("the connection is gone")}
	for name, c := range map[string]struct {
		seq, epoch, crc int64
		want            error
	}{
		"the same record":   {2, 1, crc, nil},
		"no record":         {3, 1, crc, lost.err},
		"another's record":  {2, 2, crc, lost.err},
		"another's content": {2, 1, crc + 1, lost.err},
	} {
		got := j.write.settle(t.Context(), &job{stored: storedAt("r", c.epoch, c.seq, c.crc)}, lost)
		if !errors.Is(got, c.want) || (c.want == nil) != (got == nil) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	for _, code := range []failed{codes.SQLITE_IOERR_FSYNC, codes.SQLITE_IOERR_SHMSIZE} { // the log may hold it
		err := j.write.settle(t.Context(), &job{stored: storedAt("r", 1, 3, crc)}, &commitError{code})
		if err = j.changed("append", "r", err); !errors.Is(err, journal.ErrUncertain) {
			t.Errorf("a commit that ended with %v, and no record: %v, want ErrUncertain", code, err)
		}
	}
	if got := j.changed("append", "r", j.write.settle(t.Context(), &job{}, lost)); !errors.Is(got, journal.ErrUncertain) {
		t.Errorf("a change that cannot be looked for: %v, want ErrUncertain", got)
	}
}
