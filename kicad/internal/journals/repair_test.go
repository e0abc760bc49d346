// SPDX-License-Identifier: Apache-2.0

package journals_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/kicad/internal/journals"
)

// write puts two runs into a place: a with one note behind its header, b with two.
func write(t *testing.T, p journals.Place) {
	t.Helper()
	j, err := p.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for run, notes := range map[string][]string{"a": {`{"n":"first"}`}, "b": {`{"n":"second"}`, `{"n":"third"}`}} {
		if err := j.Create(t.Context(), run, journal.Header{Rules: 1}); err != nil {
			t.Fatal(err)
		}
		l, err := j.Acquire(t.Context(), run, "the test")
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range notes {
			if err := l.Append(t.Context(), journal.Mark{Phase: "generating"}, journal.Note{Kind: "test", Data: []byte(n)}); err != nil {
				t.Fatal(err)
			}
		}
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
}

// A journal gives back all but what stands behind the damage, keeps the damaged bytes, and is left alone when it is whole,
// is used, or belongs to a server.
func TestRepair(t *testing.T) {
	for name, address := range map[string]string{"database": "", "folder": "file:records"} {
		t.Run(name, func(t *testing.T) {
			p, err := journals.Find(env(address), t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			if _, err := p.Repair(t.Context()); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("without a journal: %v", err)
			}
			if _, err := os.Lstat(p.Path()); err == nil {
				t.Error("looking for damage made a journal")
			}
			write(t, p)
			if done, err := p.Repair(t.Context()); err != nil || !done.Whole() || len(done.Runs) != 2 {
				t.Errorf("a whole one: %+v, %v", done, err)
			}
			file := p.Path()
			if p.Kind() == journals.Folder {
				file = filepath.Join(file, "b.jsonl")
			}
			data, err := os.ReadFile(file)
			if err != nil || bytes.Count(data, []byte("third")) != 1 {
				t.Fatalf("%d places, %v", bytes.Count(data, []byte("third")), err)
			}
			bad := bytes.Replace(data, []byte("third"), []byte("THIRD"), 1)
			if err := os.WriteFile(file, bad, 0o600); err != nil {
				t.Fatal(err)
			}
			damage(t, p, true)
			held(t, p)
			done, err := p.Repair(t.Context())
			if err != nil || done.Whole() || len(done.Runs) != 2 {
				t.Fatalf("%+v, %v", done, err)
			}
			a, b := done.Runs[0], done.Runs[1]
			if a.Run != "a" || a.Kept != 2 || a.Why != nil {
				t.Errorf("run a: %+v", a)
			}
			if b.Run != "b" || b.Kept != 2 || b.Failed || !errors.Is(b.Why, journal.ErrDamaged) {
				t.Errorf("run b: %+v", b)
			}
			kept := done.KeptAs + b.KeptAs // one of them
			if was, err := os.ReadFile(kept); err != nil || !bytes.Contains(was, []byte("THIRD")) {
				t.Errorf("%s does not hold what was damaged: %v", kept, err)
			}
			damage(t, p, false)
		})
	}
	server, err := journals.Find(env("postgres://nobody@127.0.0.1:1/none"), "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := server.Repair(t.Context()); !errors.Is(err, journals.ErrServer) {
		t.Errorf("a server: %v", err)
	}
}

// damage wants Damage to find some, or none.
func damage(t *testing.T, p journals.Place, want bool) {
	t.Helper()
	j, err := p.OpenReader(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = j.Close() }()
	if err := journals.Damage(t.Context(), j); errors.Is(err, journal.ErrDamaged) != want {
		t.Errorf("Damage = %v, want some: %v", err, want)
	}
}

// held wants a repair to be refused while a run goes on.
func held(t *testing.T, p journals.Place) {
	t.Helper()
	j, err := p.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	l, err := j.Acquire(t.Context(), "a", "somebody")
	if err != nil {
		t.Fatal(err)
	}
	if done, err := p.Repair(t.Context()); !errors.Is(err, journal.ErrHeld) {
		t.Errorf("while a run goes on: %+v, %v", done, err)
	}
	if err := errors.Join(l.Release(t.Context()), j.Close()); err != nil {
		t.Fatal(err)
	}
}
