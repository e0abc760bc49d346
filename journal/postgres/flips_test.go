//go:build unix

// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/postgres"
	"github.com/fiducial-dev/fiducial/llm"
)

// A flipped is a column of bytes that one byte of is changed.
type flipped struct{ table, column, id string }

// TestFlips changes one byte at a time of what the tables keep, as a disk does whose
// pages have no checksums (initdb -k gives them some): what reads it fails.
func TestFlips(t *testing.T) {
	schema := schemaOf(t.TempDir())
	j := openAt(t, server(t), postgres.Options{Schema: schema})
	l := held(t, j, "r")
	large := journal.Note{Kind: "n", Data: json.RawMessage(`"` + strings.Repeat("x", 100_000) + `"`)}
	if err := l.Append(t.Context(), journal.Mark{}, note(1), note(2), large); err != nil {
		t.Fatal(err)
	}
	if err := j.Offer(t.Context(), "r", "k", llm.UserText("do this too")); err != nil {
		t.Fatal(err)
	}
	conn, err := pgx.Connect(t.Context(), server(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	places := []flipped{
		{"journal", "rec", "seq=1"}, {"journal", "rec", "seq=2"}, {"journal", "rec", "seq=4"}, {"blob", "bytes", "true"}, {"offer", "rec", "key='k'"},
	}
	if err := all(t, j, l); err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(5, 6))
	for n := range 200 {
		p := places[random.IntN(len(places))]
		var size int
		where := fmt.Sprintf("%s.%s WHERE run_id='r' AND %s", schema, p.table, p.id)
		if err := conn.QueryRow(t.Context(), "SELECT length("+p.column+") FROM "+where).Scan(&size); err != nil {
			t.Fatal(err)
		}
		at, mask := random.IntN(size), 1+random.IntN(255)
		flip := fmt.Sprintf("UPDATE %[1]s.%[2]s SET %[3]s=set_byte(%[3]s, %[4]d, get_byte(%[3]s, %[4]d) # %[5]d) WHERE run_id='r' AND %[6]s",
			schema, p.table, p.column, at, mask, p.id)
		if _, err := conn.Exec(t.Context(), flip); err != nil {
			t.Fatal(err)
		}
		if err := all(t, j, l); !errors.Is(err, journal.ErrDamaged) && !errors.Is(err, journal.ErrFormat) {
			t.Errorf("flip %d (%+v, byte %d, mask %02x): %v, want ErrDamaged", n, p, at, mask, err)
		}
		if _, err := conn.Exec(t.Context(), flip); err != nil { // and back
			t.Fatal(err)
		}
	}
	if err := all(t, j, l); err != nil {
		t.Errorf("as it was before: %v", err)
	}
}

// all reads the log and the inbox.
func all(t *testing.T, j journal.Journal, l journal.Lease) error {
	t.Helper()
	for _, err := range j.Read(t.Context(), l.Run(), 0) {
		if err != nil {
			return err
		}
	}
	_, err := l.Inbox(t.Context())
	return err
}
