// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/sqlite"
	"github.com/fiducial-dev/fiducial/llm"
)

func open(t *testing.T, path string, opts sqlite.Options) *sqlite.Journal {
	t.Helper()
	j, err := sqlite.Open(t.Context(), path, opts)
	if err != nil {
		t.Fatalf("open %s: %v", path, err)
	}
	t.Cleanup(func() {
		if err := j.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return j
}

func note(i int) journal.Note {
	return journal.Note{Kind: "n", Data: json.RawMessage(fmt.Sprint(i))}
}

func lease(t *testing.T, j journal.Journal, run string) journal.Lease {
	t.Helper()
	if err := j.Create(t.Context(), run, journal.Header{}); err != nil && !errors.Is(err, journal.ErrExists) {
		t.Fatal(err)
	}
	l, err := j.Acquire(t.Context(), run, "test")
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func length(t *testing.T, j journal.Journal, run string) (n int) {
	t.Helper()
	for _, err := range j.Read(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
		n++
	}
	return n
}

func TestReadOnly(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "sub")
	path := filepath.Join(dir, "journal.db")
	if _, err := sqlite.Open(t.Context(), path, sqlite.Options{ReadOnly: true}); !errors.Is(err, fs.ErrNotExist) {
		t.Fatalf("open of no database: %v, want that it does not exist", err)
	}
	if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("looking made something: %v", err)
	}
	w := open(t, path, sqlite.Options{})
	l := lease(t, w, "r")
	if err := l.Append(t.Context(), journal.Mark{Phase: "p"}, note(1)); err != nil {
		t.Fatal(err)
	}
	r := open(t, path, sqlite.Options{ReadOnly: true}) // beside the writer
	if n := length(t, r, "r"); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
	if i, err := r.Stat(t.Context(), "r"); err != nil || !i.Held || i.Phase != "p" {
		t.Errorf("Stat = %+v, %v; want it held", i, err)
	}
	_, err := r.Acquire(t.Context(), "r", "x")
	for what, err := range map[string]error{
		"Create": r.Create(t.Context(), "x", journal.Header{}), "Delete": r.Delete(t.Context(), "r"), "Acquire": err,
		"Offer": r.Offer(t.Context(), "r", "k", llm.UserText("x")),
	} {
		if !errors.Is(err, journal.ErrReadOnly) {
			t.Errorf("%s: %v, want ErrReadOnly", what, err)
		}
	}
	// What a process leaves that was killed: a log beside the database, nobody alive.
	killed := filepath.Join(t.TempDir(), "killed")
	if err := os.CopyFS(killed, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(killed, "journal.db-shm")); err != nil {
		t.Fatal(err)
	}
	k := open(t, filepath.Join(killed, "journal.db"), sqlite.Options{ReadOnly: true})
	if i, err := k.Stat(t.Context(), "r"); length(t, k, "r") != 2 || err != nil || i.Held {
		t.Errorf("after a kill: Stat = %+v, %v; want 2 records and nobody holding it", i, err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	alone := open(t, path, sqlite.Options{ReadOnly: true}) // nobody else has it open
	if n := length(t, alone, "r"); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}

func TestOtherFiles(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "text.db")
	if err := os.WriteFile(text, []byte("this is no database, but a text that is long enough to be looked at"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(t.Context(), text, sqlite.Options{}); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("open of a text: %v, want ErrDamaged", err)
	}
	for _, opts := range []sqlite.Options{{}, {ReadOnly: true}} {
		_, err := sqlite.Open(t.Context(), dir, opts)
		if !errors.Is(err, journal.ErrStorage) || !strings.Contains(fmt.Sprint(err), dir) || !strings.Contains(fmt.Sprint(err), "director") && !strings.Contains(fmt.Sprint(err), "folder") {
			t.Errorf("open of a folder: %v, want ErrStorage that says so", err)
		}
		if _, err := sqlite.Open(t.Context(), "", opts); !errors.Is(err, journal.ErrInvalid) {
			t.Errorf("open of an empty path: %v, want ErrInvalid", err)
		}
		if _, err := sqlite.Open(t.Context(), filepath.Join(text, "x.db"), opts); !errors.Is(err, journal.ErrStorage) {
			t.Errorf("open below a file: %v, want ErrStorage", err)
		}
	}
	newer := filepath.Join(dir, "newer.db")
	if err := open(t, newer, sqlite.Options{}).Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", newer)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), "PRAGMA user_version=99"); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, opts := range []sqlite.Options{{}, {ReadOnly: true}} {
		_, err := sqlite.Open(t.Context(), newer, opts)
		if f, ok := errors.AsType[*journal.FormatError](err); !ok || f.Version != 99 {
			t.Errorf("open of a newer schema: %v, want a FormatError of 99", err)
		}
	}
	empty := filepath.Join(dir, "empty.db")
	if err := os.WriteFile(empty, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(t.Context(), empty, sqlite.Options{ReadOnly: true}); !errors.Is(err, journal.ErrFormat) {
		t.Errorf("open of an empty file for reading: %v, want ErrFormat", err)
	}
	lease(t, open(t, empty, sqlite.Options{}), "r")
}

func TestPathsOfAllKinds(t *testing.T) {
	for _, name := range []string{"a b.db", "it's \"x\".db", "😀.db", "new\nline.db", ":memory:", "a?mode=ro.db", "a#b.db", "100%.db", "ä&ö.db", "file:x.db"} {
		path := filepath.Join(t.TempDir(), name)
		lease(t, open(t, path, sqlite.Options{}), "r")
		if _, err := os.Stat(path); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestLinks: a database has one lock, whatever it is called.
func TestLinks(t *testing.T) {
	dir := t.TempDir()
	for link, to := range map[string]string{"other": "sub", "one.db": "sub/real.db", "two.db": filepath.Join(dir, "other", "real.db"), "loop.db": "loop.db"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Skip(err)
		}
	}
	// At first the links lead nowhere.
	lease(t, open(t, filepath.Join(dir, "one.db"), sqlite.Options{}), "r")
	for _, name := range []string{"one.db", "two.db", "other/real.db", "sub/real.db"} {
		j := open(t, filepath.Join(dir, name), sqlite.Options{})
		if _, err := j.Acquire(t.Context(), "r", "x"); !errors.Is(err, journal.ErrHeld) {
			t.Errorf("acquire by %s: %v, want ErrHeld", name, err)
		}
	}
	if _, err := sqlite.Open(t.Context(), filepath.Join(dir, "loop.db"), sqlite.Options{}); !errors.Is(err, journal.ErrStorage) {
		t.Errorf("open of a link to itself: %v, want ErrStorage", err)
	}
}

// TestEmptied: a database that was cut to nothing is not taken for a new one.
func TestEmptied(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j := open(t, path, sqlite.Options{})
	lease(t, j, "r")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if _, err := sqlite.Open(t.Context(), path, sqlite.Options{}); !errors.Is(err, journal.ErrDamaged) {
		t.Errorf("open: %v, want ErrDamaged", err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	lease(t, open(t, path, sqlite.Options{}), "r") // who removes it wants a new one
}

// TestManyOpenAtOnce opens a database that is not there yet, from many sides.
func TestManyOpenAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			j, err := sqlite.Open(t.Context(), path, sqlite.Options{})
			if err != nil {
				t.Errorf("open: %v", err)
				return
			}
			defer j.Close()
			run := fmt.Sprint("r", i)
			if err := j.Create(t.Context(), run, journal.Header{}); err != nil {
				t.Errorf("create: %v", err)
				return
			}
			l, err := j.Acquire(t.Context(), run, "x")
			if err != nil {
				t.Errorf("acquire: %v", err)
				return
			}
			for n := range 20 { // each through a connection of its own
				if err := l.Append(t.Context(), journal.Mark{}, note(n)); err != nil {
					t.Errorf("append: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	j := open(t, path, sqlite.Options{})
	for i := range 8 {
		if n := length(t, j, fmt.Sprint("r", i)); n != 21 {
			t.Errorf("run %d has %d records, want 21", i, n)
		}
	}
}

// TestLockFileRemoved: without the lock the database itself fences the first owner.
func TestLockFileRemoved(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	a, b := open(t, path, sqlite.Options{}), open(t, path, sqlite.Options{})
	first := lease(t, a, "r")
	if _, err := b.Acquire(t.Context(), "r", "second"); !errors.Is(err, journal.ErrHeld) {
		t.Fatalf("acquire: %v, want ErrHeld", err)
	}
	if err := os.Remove(filepath.Join(path+".locks", "r.lock")); err != nil {
		t.Fatal(err)
	}
	second := lease(t, b, "r")
	if err := first.Append(t.Context(), journal.Mark{}, note(1)); !errors.Is(err, journal.ErrFenced) {
		t.Fatalf("append of the first: %v, want ErrFenced", err)
	}
	<-first.Lost()
	if err := second.Append(t.Context(), journal.Mark{}, note(2)); err != nil {
		t.Errorf("append of the second: %v", err)
	}
	if n := length(t, a, "r"); n != 2 {
		t.Errorf("%d records, want 2", n)
	}
}

// TestDatabaseRemoved: a person removes the database with its locks, or the locks
// alone, under its writer, who learns of it at the next write.
func TestDatabaseRemoved(t *testing.T) {
	for _, files := range [][]string{{"", "-wal", "-shm", ".locks"}, {""}, {".locks"}} {
		path := filepath.Join(t.TempDir(), "journal.db")
		j := open(t, path, sqlite.Options{})
		l := lease(t, j, "r")
		if err := l.Append(t.Context(), journal.Mark{}, note(1)); err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if err := os.RemoveAll(path + f); err != nil {
				t.Skip("this system keeps open files:", err)
			}
		}
		err := l.Append(t.Context(), journal.Mark{}, note(2))
		if !errors.Is(err, journal.ErrFenced) || !errors.Is(err, journal.ErrReplaced) {
			t.Errorf("%q removed: append: %v, want ErrFenced that says so", files, err)
		}
		select {
		case <-l.Lost():
		default:
			t.Errorf("%q removed: the lease goes on", files)
		}
		if files[0] != "" {
			continue
		}
		err = j.Create(t.Context(), "other", journal.Header{})
		if !errors.Is(err, journal.ErrStorage) || !errors.Is(err, journal.ErrReplaced) {
			t.Errorf("%q removed: create: %v, want ErrStorage that says so", files, err)
		}
	}
}

// TestRefusalInAGroup: a refused append among others that go into the same
// transaction harms none of them.
func TestRefusalInAGroup(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	j, other := open(t, path, sqlite.Options{}), open(t, path, sqlite.Options{})
	stale := lease(t, j, "stale")
	if err := os.Remove(filepath.Join(path+".locks", "stale.lock")); err != nil {
		t.Fatal(err)
	}
	lease(t, other, "stale")
	var wg sync.WaitGroup
	var fenced error
	wg.Go(func() {
		time.Sleep(5 * time.Millisecond)
		fenced = stale.Append(t.Context(), journal.Mark{}, note(0))
	})
	for i := range 6 {
		l := lease(t, j, fmt.Sprint("r", i))
		wg.Go(func() {
			for n := range 50 {
				if err := l.Append(t.Context(), journal.Mark{}, note(n)); err != nil {
					t.Errorf("append: %v", err)
					return
				}
			}
		})
	}
	wg.Wait()
	if !errors.Is(fenced, journal.ErrFenced) {
		t.Errorf("the stale lease got %v, want ErrFenced", fenced)
	}
	for i := range 6 {
		if n := length(t, j, fmt.Sprint("r", i)); n != 51 {
			t.Errorf("run %d has %d records, want 51", i, n)
		}
	}
}

func TestFollowAnotherProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	w := open(t, path, sqlite.Options{})
	l := lease(t, w, "r")
	r := open(t, path, sqlite.Options{ReadOnly: true, Poll: time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	n := uint64(0)
	for rec, err := range r.Follow(ctx, "r", 0) {
		if err != nil {
			t.Fatal(err)
		}
		if n++; rec.Seq != n {
			t.Fatalf("followed record %d, want %d", rec.Seq, n)
		}
		if err := l.Append(ctx, journal.Mark{Ended: n == 9}, note(int(n))); err != nil {
			t.Fatal(err)
		}
		if n == 9 {
			break
		}
	}
	n = 0
	for range r.Follow(ctx, "r", 0) {
		n++
	}
	if n != 10 || ctx.Err() != nil {
		t.Errorf("an ended run gives %d records, want 10", n)
	}
}
