// SPDX-License-Identifier: Apache-2.0

package journals_test

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/kicad/internal/journals"
)

func env(value string) func(string) string {
	return func(name string) string {
		if name == journals.Env {
			return value
		}
		return ""
	}
}

// use writes a run and reads it by a reader.
func use(t *testing.T, p journals.Place) {
	t.Helper()
	j, err := p.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Create(t.Context(), "r", journal.Header{Rules: 1}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := p.OpenReader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if info, err := r.Stat(t.Context(), "r"); err != nil || info.Head != 1 {
		t.Errorf("Stat = %+v, %v", info, err)
	}
	if err := r.Create(t.Context(), "x", journal.Header{}); !errors.Is(err, journal.ErrReadOnly) {
		t.Errorf("a reader creates: %v", err)
	}
	if err := r.Close(); err != nil {
		t.Error(err)
	}
}

func TestInTheProject(t *testing.T) {
	top := t.TempDir()
	p, err := journals.Find(env(" "), top)
	if err != nil || p.Shared() {
		t.Fatalf("Find = %v, %v", p, err)
	}
	if _, err := p.OpenReader(t.Context()); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a reader of no journal: %v, want ErrNotExist", err)
	}
	use(t, p)
	if _, err := os.Stat(filepath.Join(top, ".fiducial", "journal.db")); err != nil {
		t.Error(err)
	}
}

// A folder of files, named from the top of the repository or from the root.
func TestInAFolder(t *testing.T) {
	top := t.TempDir()
	abs := filepath.Join(t.TempDir(), "a b")
	for address, want := range map[string]string{
		"file:.fiducial/records": filepath.Join(top, ".fiducial", "records"),
		(&url.URL{Scheme: "file", Path: filepath.ToSlash(abs)}).String(): abs,
	} {
		p, err := journals.Find(env(address), top)
		if err != nil || !p.Shared() || p.Kind() != journals.Folder || p.Path() != want {
			t.Fatalf("Find of %s = %v, %v", address, p, err)
		}
		_, err = p.OpenReader(t.Context())
		if e, ok := errors.AsType[*journals.UnreachableError](err); !ok || !errors.Is(e, fs.ErrNotExist) {
			t.Errorf("a reader of no folder: %v, want ErrNotExist", err)
		}
		use(t, p)
		if _, err := os.Stat(filepath.Join(want, "r.jsonl")); err != nil {
			t.Error(err)
		}
	}
}

// A run that is kept is held between the leases of the engine and to its last record, with which it ends.
func TestKeep(t *testing.T) {
	p, err := journals.Find(env(""), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	j, err := p.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	if _, err := journals.Keep(t.Context(), j, "r", "me"); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("Keep of no run: %v", err)
	}
	if err := j.Create(t.Context(), "r", journal.Header{Rules: 1}); err != nil {
		t.Fatal(err)
	}
	k, err := journals.Keep(t.Context(), j, "r", "me")
	if err != nil {
		t.Fatal(err)
	}
	var held *journal.HeldError
	for range 2 {
		l, err := k.Acquire(t.Context(), "r", "engine")
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Append(t.Context(), journal.Mark{Phase: "generating"}, journal.Note{Kind: "n"}); err != nil {
			t.Fatal(err)
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
		if _, err := journals.Keep(t.Context(), j, "r", "you"); !errors.As(err, &held) || held.Owner != "me" {
			t.Errorf("a second keeper: %v", err)
		}
	}
	if err := k.End(t.Context(), journal.Mark{Phase: "done", Ended: true}, journal.Note{Kind: "last"}); err != nil {
		t.Fatal(err)
	}
	info, err := j.Stat(t.Context(), "r")
	if err != nil || info.Held || !info.Ended || info.Phase != "done" || info.Head != 4 || info.Epoch != 1 {
		t.Errorf("Stat = %+v, %v", info, err)
	}
}

func TestNoAddress(t *testing.T) {
	for _, address := range []string{
		"mysql://u:S3cret@h/db", "journal.db", "postgres://u:S3cret@h:port:x/db", "postgres://u:S3cret%zz@h/db", "postgres:///db",
		"host=h password=S3cret", "postgres://u:S3cret@h/db\x7f",
		"file:", "file://", "file://elsewhere/x", "file:///x?y=z",
	} {
		p, err := journals.Find(env(address), ".")
		if !errors.Is(err, journals.ErrAddress) {
			t.Errorf("Find of %q: %v, want ErrAddress", address, err)
		}
		wantNoPassword(t, err, p)
	}
	p, err := journals.Find(env("postgres://u:S3cret@127.0.0.1:1/db?sslmode=perhaps&password=S3cret"), ".")
	if err != nil || p.String() != "postgres://u@127.0.0.1:1/db" {
		t.Errorf("Find = %v, %v", p, err)
	}
	_, err = p.Open(t.Context())
	wantNoPassword(t, err, p)
	if !errors.Is(err, journal.ErrInvalid) {
		t.Errorf("Open: %v, want ErrInvalid", err)
	}
}

func wantNoPassword(t *testing.T, err error, p journals.Place) {
	t.Helper()
	for _, text := range []string{fmt.Sprint(err), fmt.Sprintf("%+v %#v %v %s", p, p, p, p), fmt.Sprintf("%#v", err)} {
		if strings.Contains(text, "S3cret") {
			t.Errorf("the password stands in %s", text)
		}
	}
}

// A full disk is called one, and where it is.
func TestUnreachable_Full(t *testing.T) {
	p, err := journals.Find(func(string) string { return "" }, "/repo")
	if err != nil {
		t.Fatal(err)
	}
	for _, cause := range []error{journal.ErrFull, fmt.Errorf("open: %w", journal.ErrFull), &fs.PathError{Op: "write", Path: "x", Err: syscall.ENOSPC}} {
		text := (&journals.UnreachableError{Place: p, Err: cause}).Error()
		if !journals.IsFull(cause) || !strings.Contains(text, "the disk that holds the journal "+p.String()+" is full") {
			t.Errorf("%v: %s", cause, text)
		}
	}
	if journals.IsFull(journal.ErrStorage) || journals.IsFull(fs.ErrPermission) {
		t.Error("another failure is a full disk")
	}
}
