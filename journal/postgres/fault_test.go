//go:build unix

// SPDX-License-Identifier: Apache-2.0

package postgres_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/postgres"
	"github.com/fiducial-dev/fiducial/journal/postgres/postgrestest"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// own is a server of the test's own, to be broken.
func own(t *testing.T) *postgrestest.Server {
	t.Helper()
	server(t)
	s, err := postgrestest.Start(t.Context(), t.Output())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func openAt(t *testing.T, url string, opts postgres.Options) *postgres.Journal {
	t.Helper()
	j, err := postgres.Open(t.Context(), url, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() }) // its server may have gone
	return j
}

func note(i int) journal.Note {
	return journal.Note{Kind: "n", Data: json.RawMessage(fmt.Sprint(i))}
}

func records(t *testing.T, j journal.Journal, run string) (notes []string) {
	t.Helper()
	for r, err := range j.Read(t.Context(), run, 2) {
		if err != nil {
			t.Fatal(err)
		}
		switch b := r.Body.(type) {
		case journal.Note:
			notes = append(notes, string(b.Data))
		case journal.Step:
			notes = append(notes, "step")
		case journal.Header:
		}
	}
	return notes
}

func held(t *testing.T, j journal.Journal, run string) journal.Lease {
	t.Helper()
	if err := j.Create(t.Context(), run, journal.Header{Rules: 1}); err != nil {
		t.Fatal(err)
	}
	l, err := j.Acquire(t.Context(), run, "the test")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// The connection ends after the commit and before its answer, at every call that
// changes something: each is carried out once, and the caller is told so.
func TestLostAnswers(t *testing.T) {
	dir := t.TempDir()
	url := server(t)
	s := postgrestest.Server{URL: url}
	if _, err := fmt.Sscanf(url[strings.LastIndex(url, ":")+1:], "%d", &s.Port); err != nil {
		t.Fatal(err)
	}
	p, err := postgrestest.NewProxy(t.Context(), &s)
	if err != nil {
		t.Fatal(err)
	}
	j := openAt(t, p.URL(), postgres.Options{Schema: schemaOf(dir), TTL: 5 * time.Second})
	for round := range 4 { // the first statement of its kind is prepared, which is an answer more
		run := fmt.Sprint("r", round)
		cut := func(what string, do func() error) {
			t.Helper()
			before := p.Lost()
			p.Cut(1 + round%2)
			if err := do(); err != nil {
				t.Fatalf("round %d: %s: %v", round, what, err)
			}
			if p.Lost() == before {
				t.Fatalf("round %d: %s: no answer was lost", round, what)
			}
		}
		cut("create", func() error { return j.Create(t.Context(), run, journal.Header{Rules: 1}) })
		if err := j.Create(t.Context(), run, journal.Header{Rules: 1}); !errors.Is(err, journal.ErrExists) {
			t.Fatalf("a second create: %v, want ErrExists", err)
		}
		var l journal.Lease
		cut("acquire", func() error {
			l, err = j.Acquire(t.Context(), run, "the test")
			return err
		})
		cut("offer", func() error { return j.Offer(t.Context(), run, "k", llm.UserText("x")) })
		for i := range 3 {
			cut("append", func() error { return l.Append(t.Context(), journal.Mark{Phase: "p"}, note(i), note(10+i)) })
		}
		cut("inbox", func() error {
			items, err := l.Inbox(t.Context())
			if err == nil && len(items) != 1 {
				err = fmt.Errorf("%d items, want 1", len(items))
			}
			return err
		})
		taking := journal.Step{Input: machine.AppendInput{Message: llm.UserText("x"), Keys: []string{"k"}}}
		cut("append that takes", func() error { return l.Append(t.Context(), journal.Mark{Phase: "p"}, taking) })
		if err := l.Append(t.Context(), journal.Mark{}, taking); !errors.Is(err, journal.ErrTaken) {
			t.Fatalf("taking again: %v, want ErrTaken", err)
		}
		if got := strings.Join(records(t, j, run), " "); got != "0 10 1 11 2 12 step" || l.Head() != 8 {
			t.Fatalf("round %d: records %q and head %d", round, got, l.Head())
		}
		cut("release", func() error { return l.Release(t.Context()) })
		cut("delete", func() error { return j.Delete(t.Context(), run) })
		if err := j.Delete(t.Context(), run); !errors.Is(err, journal.ErrNotFound) {
			t.Fatalf("a second delete: %v, want ErrNotFound", err)
		}
	}
	_ = j.Close() // over the proxy, which ends next
	if err := p.Close(); err != nil {
		t.Error(err)
	}
}

// The server crashes under writers and comes back: what was acknowledged is there
// once, in order, and every writer goes on with its lease.
func TestServerRestarts(t *testing.T) {
	s := own(t)
	j := openAt(t, s.URL, postgres.Options{TTL: 10 * time.Second, Poll: 100 * time.Millisecond})
	const writers = 4
	crashes := 3
	if testing.Short() {
		crashes = 1
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	acked := make([]int, writers)
	for w := range writers {
		run := fmt.Sprint("r", w)
		l := held(t, j, run)
		wg.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				if err := l.Append(t.Context(), journal.Mark{}, note(i)); err != nil {
					t.Errorf("%s: append %d: %v", run, i, err)
					return
				}
				acked[w]++
			}
		})
	}
	followed := make(chan int)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		n := 0
		for r, err := range j.Follow(ctx, "r0", 0) {
			if n++; err != nil || int(r.Seq) != n {
				t.Errorf("follow: record %d is %d, %v", n, r.Seq, err)
				break
			}
			if b, ok := r.Body.(journal.Note); ok && string(b.Data) == "-1" {
				break
			}
		}
		followed <- n
	}()
	for range crashes {
		time.Sleep(150 * time.Millisecond)
		if err := s.Halt(true); err != nil {
			t.Fatal(err)
		}
		if err := s.Run(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(100 * time.Millisecond)
	close(stop)
	wg.Wait()
	total := 0
	for w := range writers {
		run := fmt.Sprint("r", w)
		got := records(t, j, run)
		if len(got) != acked[w] {
			t.Errorf("%s has %d records, %d were acknowledged", run, len(got), acked[w])
		}
		for i, n := range got {
			if n != fmt.Sprint(i) {
				t.Fatalf("%s: record %d holds %s", run, i, n)
			}
		}
		total += len(got)
	}
	if err := j.Offer(t.Context(), "r0", "k", llm.UserText("x")); err != nil {
		t.Error(err)
	}
	l, err := j.Acquire(t.Context(), "r0", "another")
	if !errors.Is(err, journal.ErrHeld) {
		t.Fatalf("Acquire = %v, %v; the lease of the writer outlives the server", l, err)
	}
	other := openAt(t, s.URL, postgres.Options{})
	if info, err := other.Stat(t.Context(), "r0"); err != nil || !info.Held {
		t.Errorf("Stat = %+v, %v; want it held", info, err)
	}
	conn, err := pgx.Connect(t.Context(), s.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }() // the server ends anyway
	if _, err := conn.Exec(t.Context(), `UPDATE fiducial.run SET lease_until='-infinity'`); err != nil {
		t.Fatal(err)
	}
	l, err = other.Acquire(t.Context(), "r0", "another")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(t.Context(), journal.Mark{}, note(-1)); err != nil {
		t.Fatal(err)
	}
	select {
	case n := <-followed:
		if n != acked[0]+2 {
			t.Errorf("followed %d records, want %d", n, acked[0]+2)
		}
	case <-time.After(20 * time.Second):
		t.Error("the follower did not hear of the last record")
	}
	t.Logf("%d crashes: %d records of %d writers, none lost", crashes, total, writers)
}

// A holder that is superseded is told within the lease's time without asking, and
// so is one whose server is away for longer than that.
func TestLost(t *testing.T) {
	s := own(t)
	const ttl = 400 * time.Millisecond
	opts := postgres.Options{TTL: ttl, Patience: time.Second}
	j := openAt(t, s.URL, opts)
	l := held(t, j, "r")
	conn, err := pgx.Connect(t.Context(), s.URL)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Exec(t.Context(), `UPDATE fiducial.run SET epoch=epoch+1`); err != nil {
		t.Fatal(err)
	}
	wantLost(t, l, ttl)
	if err := l.Append(t.Context(), journal.Mark{}, note(1)); !errors.Is(err, journal.ErrFenced) || !strings.Contains(err.Error(), "another lease has the run") {
		t.Errorf("append: %v, want ErrFenced that says so", err)
	}
	l = held(t, j, "r2")
	if err := conn.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := s.Halt(true); err != nil {
		t.Fatal(err)
	}
	wantLost(t, l, 2*ttl)
	if err := l.Append(t.Context(), journal.Mark{}, note(1)); !errors.Is(err, journal.ErrFenced) || !strings.Contains(err.Error(), "was not reached for 400ms") {
		t.Errorf("append: %v, want ErrFenced that says so", err)
	}
	if _, err := j.Stat(t.Context(), "r2"); !errors.Is(err, journal.ErrStorage) {
		t.Errorf("Stat without a server: %v, want ErrStorage", err)
	}
	if err := j.Create(t.Context(), "r3", journal.Header{}); !errors.Is(err, journal.ErrUncertain) {
		t.Errorf("Create without a server: %v, want ErrUncertain", err)
	}
	if _, err := postgres.Open(t.Context(), s.URL, opts); !errors.Is(err, journal.ErrStorage) {
		t.Errorf("Open without a server: %v, want ErrStorage", err)
	}
}

// A run that was deleted under its holder is not told as one that another lease has.
func TestDeletedUnderItsHolder(t *testing.T) {
	url := server(t)
	schema := schemaOf(t.TempDir())
	j := openAt(t, url, postgres.Options{Schema: schema})
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	for run, use := range map[string]func(journal.Lease) error{
		"append": func(l journal.Lease) error { return l.Append(t.Context(), journal.Mark{}, note(1)) },
		"inbox": func(l journal.Lease) error {
			_, err := l.Inbox(t.Context())
			return err
		},
	} {
		l := held(t, j, run)
		if _, err := conn.Exec(t.Context(), `DELETE FROM `+schema+`.run WHERE run_id=$1`, run); err != nil {
			t.Fatal(err)
		}
		err := use(l)
		if !errors.Is(err, journal.ErrFenced) || !errors.Is(err, journal.ErrReplaced) || strings.Contains(err.Error(), "another lease") {
			t.Errorf("%s: %v, want ErrFenced by ErrReplaced", run, err)
		}
		wantLost(t, l, 0)
	}
}

func wantLost(t *testing.T, l journal.Lease, within time.Duration) {
	t.Helper()
	select {
	case <-l.Lost():
	case <-time.After(within + 5*time.Second): // the machine may be busy
		t.Fatal("the lease is not lost")
	}
}

// Damage behind the store's back is told when it is read.
func TestTampered(t *testing.T) {
	dir := t.TempDir()
	url := server(t)
	j := openAt(t, url, postgres.Options{Schema: schemaOf(dir)})
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	for i, change := range []string{
		`UPDATE $.journal SET rec=set_byte(rec, 60, get_byte(rec, 60) # 1) WHERE run_id='RUN' AND seq=2`,
		`UPDATE $.journal SET crc=crc+1 WHERE run_id='RUN' AND seq=3`,
		`UPDATE $.journal SET epoch=7 WHERE run_id='RUN' AND seq=3`,
		`DELETE FROM $.journal WHERE run_id='RUN' AND seq=3`,
		`DELETE FROM $.journal WHERE run_id='RUN' AND seq=4`,
		`UPDATE $.journal SET rec=(SELECT rec FROM $.journal WHERE run_id='RUN' AND seq=2),
			crc=(SELECT crc FROM $.journal WHERE run_id='RUN' AND seq=2) WHERE run_id='RUN' AND seq=3`,
		`UPDATE $.blob SET bytes='other' WHERE run_id='RUN'`,
		`DELETE FROM $.blob WHERE run_id='RUN'`,
		`UPDATE $.run SET labels='{' WHERE run_id='RUN'`,
	} {
		run := fmt.Sprint("r", i)
		l := held(t, j, run)
		large := journal.Note{Kind: "n", Data: json.RawMessage(`"` + strings.Repeat("x", 100_000) + `"`)}
		if err := l.Append(t.Context(), journal.Mark{}, note(1), note(2), large); err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		change = strings.NewReplacer("$.", schemaOf(dir)+".", "RUN", run).Replace(change)
		if tag, err := conn.Exec(t.Context(), change); err != nil || tag.RowsAffected() != 1 {
			t.Fatalf("%s: %v, %v", change, tag, err)
		}
		var got error
		for _, err := range j.Read(t.Context(), run, 0) {
			got = err
		}
		d, ok := errors.AsType[*journal.DamageError](got)
		if !ok || d.Run != run || d.Where == "" {
			t.Errorf("after %s: Read ends with %v, want a DamageError that names the run", change, got)
		}
	}
	if _, err := j.Acquire(t.Context(), "r4", "x"); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("Acquire of a run without its last record: %v, want ErrDamaged", err)
	}
}

// Tables of the future are refused, missing ones are not made by a reader, and many
// who open at once make them once.
func TestTables(t *testing.T) {
	dir := t.TempDir()
	url := server(t)
	schema := schemaOf(dir)
	_, err := postgres.Open(t.Context(), url, postgres.Options{Schema: schema, ReadOnly: true})
	if !errors.Is(err, journal.ErrFormat) {
		t.Errorf("a reader of no tables: %v, want ErrFormat", err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			j, err := postgres.Open(t.Context(), url, postgres.Options{Schema: schema})
			if err != nil {
				t.Error(err)
				return
			}
			if err := j.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	r := openAt(t, url, postgres.Options{Schema: schema, ReadOnly: true})
	if err := r.Create(t.Context(), "r", journal.Header{}); !errors.Is(err, journal.ErrReadOnly) {
		t.Errorf("a reader that creates: %v, want ErrReadOnly", err)
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }() // the test ends
	if _, err := conn.Exec(t.Context(), `UPDATE `+schema+`.version SET version=99`); err != nil {
		t.Fatal(err)
	}
	_, err = postgres.Open(t.Context(), url, postgres.Options{Schema: schema})
	if f, ok := errors.AsType[*journal.FormatError](err); !ok || f.Version != 99 {
		t.Errorf("tables of version 99: %v, want a FormatError", err)
	}
}

// What cannot be opened says why, and never the password.
func TestOpenErrors(t *testing.T) {
	url := server(t)
	for _, c := range []struct {
		url  string
		opts postgres.Options
		want error
	}{
		{"postgres://u:S3cret@127.0.0.1:1/db", postgres.Options{}, journal.ErrStorage},
		{"postgres://u:S3cret@127.0.0.1:x/db", postgres.Options{}, journal.ErrInvalid},
		{"postgres://u:S3cret@127.0.0.1/db?sslmode=perhaps", postgres.Options{}, journal.ErrInvalid},
		{"host=127.0.0.1 password=S3cret port=none", postgres.Options{}, journal.ErrInvalid},
		{"postgres//u:S3cret@127.0.0.1/db", postgres.Options{}, journal.ErrInvalid}, // a colon is missing
		{"postgres://u:S3cret/x@127.0.0.1/db", postgres.Options{}, journal.ErrInvalid},
		{"postgres://u:S3cret#@127.0.0.1:1/db", postgres.Options{}, journal.ErrStorage},
		{"postgres://u:S3cret%@127.0.0.1/db", postgres.Options{}, journal.ErrInvalid},
		{"postgres://u:S3cret %20@127.0.0.1/db", postgres.Options{}, journal.ErrInvalid},
		{"host=127.0.0.1 password='S3cret", postgres.Options{}, journal.ErrInvalid},
		{strings.Replace(url, "postgres@", "nobody:S3cret@", 1), postgres.Options{}, journal.ErrStorage},
		{url, postgres.Options{Schema: `a"b`}, journal.ErrInvalid},
		{url, postgres.Options{TTL: time.Millisecond}, journal.ErrInvalid},
		{url, postgres.Options{Poll: -1}, journal.ErrInvalid},
	} {
		_, err := postgres.Open(t.Context(), c.url, c.opts)
		if !errors.Is(err, c.want) {
			t.Errorf("Open(%s, %+v): %v, want %v", c.url, c.opts, err, c.want)
		}
		if strings.Contains(fmt.Sprintf("%v %+v", err, err), "S3cret") {
			t.Errorf("the password stands in %v", err)
		}
	}
}

// A role that may do nothing but what it was given is told what it lacks, and works
// in a schema that somebody made for it.
func TestOrdinaryRole(t *testing.T) {
	url := server(t)
	schema := schemaOf(t.TempDir())
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(t.Context()) }() // the test ends
	role := "role_" + schema
	if _, err := conn.Exec(t.Context(), `CREATE ROLE `+role+` LOGIN`); err != nil {
		t.Fatal(err)
	}
	theirs := strings.Replace(url, "postgres@", role+"@", 1)
	_, err = postgres.Open(t.Context(), theirs, postgres.Options{Schema: schema})
	if !errors.Is(err, journal.ErrStorage) || !strings.Contains(fmt.Sprint(err), "CREATE SCHEMA "+schema) {
		t.Errorf("open without a schema: %v, want what an administrator has to do", err)
	}
	if _, err := conn.Exec(t.Context(), `CREATE SCHEMA `+schema+` AUTHORIZATION `+role); err != nil {
		t.Fatal(err)
	}
	j := openAt(t, theirs, postgres.Options{Schema: schema})
	if err := j.Create(t.Context(), "r", journal.Header{}); err != nil {
		t.Fatal(err)
	}
	l, err := j.Acquire(t.Context(), "r", "x")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(t.Context(), journal.Mark{Ended: true}, journal.Note{Kind: "n"}); err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, err := range j.Follow(t.Context(), "r", 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	if n != 2 {
		t.Errorf("%d records were followed, want 2", n)
	}
}
