// SPDX-License-Identifier: Apache-2.0

package journaltest

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/journal"
)

// testFlips changes one byte at a time of what is stored. Whatever reads it must
// fail, or give what was written.
func testFlips(t *testing.T, s Store) {
	if s.Files == nil {
		t.Skip("the store has no files to change")
	}
	folder := t.TempDir()
	j := s.open(t, folder)
	create(t, j, "r")
	l := acquire(t, j, "r")
	for i, b := range everyBody() {
		add(t, l, b, note(i))
	}
	add(t, l, step(strings.Repeat("large ", 20_000)))
	offer(t, j, "open", "do this too")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	want := look(t, s.open(t, copyOf(t, folder)))
	if strings.Contains(want, "ERROR") {
		t.Fatalf("the store is not good before the test: %s", want)
	}
	var reported, same int
	random := rand.New(rand.NewPCG(3, 4))
	for n := range 200 {
		files := s.Files(folder)
		var sizes int64
		for _, f := range files {
			sizes += size(t, f)
		}
		at := random.Int64N(sizes)
		for len(files) > 1 && at >= size(t, files[0]) {
			at -= size(t, files[0])
			files = files[1:]
		}
		mask := byte(1 + random.IntN(255))
		copied := copyOf(t, folder)
		rel, err := filepath.Rel(folder, files[0])
		if err != nil {
			t.Fatal(err)
		}
		flip(t, filepath.Join(copied, rel), at, mask)
		j, err := s.Open(copied)
		if err != nil {
			reported++
			continue
		}
		got := look(t, j)
		switch {
		case got == want:
			same++
		case strings.Contains(got, "ERROR"):
			reported++
		default:
			t.Errorf("flip %d (%s, byte %d, mask %02x) is silent: got\n%.2000s\nwant\n%.2000s", n, rel, at, mask, got, want)
		}
		_ = j.Close()            // the store is damaged and may say so
		_ = os.RemoveAll(copied) // the test's folder goes in any case
	}
	t.Logf("200 flips: %d reported, %d without effect", reported, same)
	if reported == 0 {
		t.Error("not one flip was reported")
	}
}

func copyOf(t *testing.T, folder string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	return to
}

func size(t *testing.T, file string) int64 {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func flip(t *testing.T, file string, at int64, mask byte) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[at] ^= mask
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// look is all that a reader and an owner are told of the run and the list of runs, on one text. Times
// are left out: they are for people and not looked at.
func look(t *testing.T, j journal.Journal) string {
	t.Helper()
	var b strings.Builder
	listed := 0
	for i, err := range j.Runs(t.Context(), journal.Filter{}) {
		listed++
		fmt.Fprintf(&b, "run %s %d %d %v %v %v\n", i.Run, i.Head, i.Epoch, i.Mark, i.Labels, said(err))
	}
	fmt.Fprintf(&b, "%d runs\n", listed)
	records, err := readAll(t, j, "r", 0)
	fmt.Fprintf(&b, "%s%s\n", texts(t, records), said(err))
	l, err := j.Acquire(t.Context(), "r", "look")
	if err != nil {
		fmt.Fprintf(&b, "%s\n", said(err))
		return b.String()
	}
	defer func() {
		if err := l.Release(t.Context()); err != nil {
			t.Errorf("release: %v", err)
		}
	}()
	items, err := l.Inbox(t.Context())
	fmt.Fprintf(&b, "head %d inbox %s %+v\n", l.Head(), said(err), len(items))
	for _, i := range items {
		fmt.Fprintf(&b, "%s %s\n", i.Key, i.Message.Text())
	}
	return b.String()
}

func said(err error) string {
	if err == nil {
		return "ok"
	}
	return fmt.Sprintf("ERROR %v", err)
}
