// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/sqlite"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// TestTampering changes rows as a changed byte might that SQLite does not see.
func TestTampering(t *testing.T) {
	for name, c := range map[string]struct {
		change string
		whole  bool // the log itself still reads
	}{
		"phase":             {`UPDATE run SET phase='done'`, false},
		"head":              {`UPDATE run SET head=head-1`, false},
		"epoch":             {`UPDATE run SET epoch=0`, false},
		"offers":            {`UPDATE run SET offers=0`, false},
		"a record lost":     {`DELETE FROM journal WHERE seq=2`, false},
		"the last lost":     {`DELETE FROM journal WHERE seq=(SELECT max(seq) FROM journal)`, false},
		"the header lost":   {`DELETE FROM journal WHERE seq=1`, false},
		"one too many":      {`INSERT INTO journal SELECT run_id, 99, epoch, crc, rec FROM journal WHERE seq=2`, true},
		"a sum":             {`UPDATE journal SET crc=crc+1 WHERE seq=2`, false},
		"an epoch":          {`UPDATE journal SET epoch=7 WHERE seq=2`, false},
		"another's record":  {`UPDATE journal SET (crc, rec)=(SELECT crc, rec FROM journal WHERE seq=3) WHERE seq=2`, false},
		"a letter":          {`UPDATE journal SET rec=replace(rec, 'hello', 'hellp')`, false},
		"a blob":            {`UPDATE blob SET bytes=CAST('x' AS BLOB)`, false},
		"a blob lost":       {`DELETE FROM blob`, false},
		"an offer lost":     {`DELETE FROM inbox WHERE n=1`, true},
		"the last offer":    {`DELETE FROM inbox WHERE n=2`, true},
		"an offer's key":    {`UPDATE inbox SET key='k9' WHERE n=2`, true},
		"an offer taken":    {`UPDATE inbox SET taken_seq=1 WHERE n=2`, true},
		"an offer's letter": {`UPDATE inbox SET rec=replace(rec, 'two', 'twa') WHERE n=2`, true},
	} {
		t.Run(name, func(t *testing.T) {
			path := tampered(t, c.change)
			j := open(t, path, sqlite.Options{})
			if err := readErr(t, j); !errors.Is(err, journal.ErrDamaged) && (!c.whole || err != nil) {
				t.Errorf("read: %v, want ErrDamaged", err)
			}
			if !c.whole {
				return
			}
			l, err := j.Acquire(t.Context(), "r", "x")
			if err == nil {
				_, err = l.Inbox(t.Context())
			}
			if d, ok := errors.AsType[*journal.DamageError](err); !ok || d.Run != "r" || !strings.HasPrefix(d.Where, "table ") {
				t.Errorf("acquire and inbox: %v, want a DamageError that names run and table", err)
			}
		})
	}
}

func readErr(t *testing.T, j journal.Journal) error {
	t.Helper()
	for _, err := range j.Read(t.Context(), "r", 0) {
		if err != nil {
			return err
		}
	}
	return nil
}

// tampered is a database with one run, changed behind the journal's back.
func tampered(t *testing.T, change string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path, sqlite.Options{})
	l := lease(t, j, "r")
	for _, text := range []string{"hello", "there", strings.Repeat("large", 20_000)} {
		body := journal.Step{Input: machine.AppendInput{Message: llm.UserText(text)}}
		if err := l.Append(t.Context(), journal.Mark{Phase: "p"}, body); err != nil {
			t.Fatal(err)
		}
	}
	for _, o := range [][2]string{{"k1", "one"}, {"k2", "two"}} {
		if err := j.Offer(t.Context(), "r", o[0], llm.UserText(o[1])); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	res, err := db.ExecContext(t.Context(), change)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := res.RowsAffected(); err != nil || n == 0 {
		t.Fatalf("the change changed %d rows, %v", n, err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}
