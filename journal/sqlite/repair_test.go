// SPDX-License-Identifier: Apache-2.0

package sqlite_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/sqlite"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

const sqlitePage = 4096

// A written database and what is in it.
type written struct {
	dir    string              // closed in good order
	killed string              // as a process leaves it that is killed, the log beside the database
	lines  map[string][]string // the records of each run, as they are exported
	offers map[string][]string // the keys that wait
}

// write makes a database of several runs, some of them with large contents, with
// messages that wait, and one that was deleted.
func write(t *testing.T) written {
	t.Helper()
	w := written{
		dir: t.TempDir(), killed: filepath.Join(t.TempDir(), "killed"),
		lines: map[string][]string{}, offers: map[string][]string{},
	}
	j := open(t, filepath.Join(w.dir, "journal.db"), sqlite.Options{})
	gone := lease(t, j, "gone")
	for i := range 30 {
		appendText(t, gone, i, 3000)
	}
	if err := gone.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := j.Delete(t.Context(), "gone"); err != nil {
		t.Fatal(err)
	}
	for n := range 5 {
		run := fmt.Sprint("r", n)
		l := lease(t, j, run)
		for i := range 25 {
			appendText(t, l, i, 500*(n+1)) // the last ones do not fit into a page
		}
		appendText(t, l, 99, 100_000) // goes beside the record
		for i := range n {
			key := fmt.Sprint("k", i)
			if err := j.Offer(t.Context(), run, key, llm.UserText("do "+key)); err != nil {
				t.Fatal(err)
			}
			w.offers[run] = append(w.offers[run], key)
		}
		w.lines[run] = linesOf(t, j, run)
	}
	if err := os.CopyFS(w.killed, os.DirFS(w.dir)); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	return w
}

func appendText(t *testing.T, l journal.Lease, i, size int) {
	t.Helper()
	text := fmt.Sprintf("%d %s", i, strings.Repeat("x", size))
	body := journal.Step{Input: machine.AppendInput{Message: llm.UserText(text)}}
	if err := l.Append(t.Context(), journal.Mark{Phase: "p"}, body, note(i)); err != nil {
		t.Fatal(err)
	}
}

func linesOf(t *testing.T, j journal.Journal, run string) (lines []string) {
	t.Helper()
	for rec, err := range j.Read(t.Context(), run, 0) {
		if err != nil {
			t.Fatal(err)
		}
		e, err := journal.EncodeRecord(run, journal.Stored{Record: rec})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(e.Line))
	}
	return lines
}

// damagedCopy is a copy of a folder whose database, or its log, was changed.
func damagedCopy(t *testing.T, dir, file string, change func([]byte) []byte) string {
	t.Helper()
	copied := filepath.Join(t.TempDir(), "d")
	if err := os.CopyFS(copied, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	_ = os.Remove(filepath.Join(copied, "journal.db-shm")) // SQLite makes it anew
	path := filepath.Join(copied, file)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, change(data), 0o600); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(copied, "journal.db")
}

// check repairs a database and holds what it gets to what was written.
func (w *written) check(t *testing.T, path string) sqlite.Repaired {
	t.Helper()
	before, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	done, err := sqlite.Repair(t.Context(), path)
	if err != nil {
		t.Fatalf("repair: %v", err)
	}
	if done.KeptAs != "" {
		if kept, err := os.ReadFile(done.KeptAs); err != nil || !bytes.Equal(kept, before) {
			t.Errorf("the damaged database was not kept as it was: %v", err)
		}
	}
	j := open(t, path, sqlite.Options{})
	said := map[string]sqlite.Rescued{}
	for _, r := range done.Runs {
		if said[r.Run] = r; r.Kept > 0 {
			w.checkRun(t, j, r)
		} else if _, err := j.Stat(t.Context(), r.Run); !errors.Is(err, journal.ErrNotFound) {
			t.Errorf("%s is lost and Stat says %v", r.Run, err)
		}
	}
	for info, err := range j.Runs(t.Context(), journal.Filter{}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, ok := said[info.Run]; !ok {
			t.Errorf("%s is there and was not told of", info.Run)
		}
	}
	if again, err := sqlite.Repair(t.Context(), path); err == nil && again.KeptAs != "" {
		t.Errorf("a second repair did something: %+v", again)
	}
	return done
}

func (w *written) checkRun(t *testing.T, j journal.Journal, r sqlite.Rescued) {
	t.Helper()
	if r.Run == "gone" { // where the list of free pages was lost nobody knows that it was deleted
		return
	}
	got, want := linesOf(t, j, r.Run), w.lines[r.Run]
	kept := int(r.Kept)
	if kept > len(want) || kept > len(got) || strings.Join(got[:kept], "\n") != strings.Join(want[:kept], "\n") {
		t.Errorf("%s: its %d kept records are not those that were written", r.Run, kept)
		return
	}
	switch {
	case r.Err == nil && (kept != len(want) || len(got) != kept):
		t.Errorf("%s is said to be whole with %d records, %d were written", r.Run, len(got), len(want))
	case r.Err != nil && (len(got) != kept+1 || !strings.Contains(got[kept], journal.RepairedNote)):
		t.Errorf("%s was cut behind record %d, and no note says so: %q", r.Run, kept, got[kept:])
	}
	l, err := j.Acquire(t.Context(), r.Run, "x")
	if err != nil {
		t.Errorf("acquire: %v", err)
		return
	}
	items, err := l.Inbox(t.Context())
	if err != nil || len(items) > len(w.offers[r.Run]) || r.Offers == 0 && r.Err == nil && len(items) != len(w.offers[r.Run]) {
		t.Errorf("%s: %d messages wait, %d were lost, %d were there, %v", r.Run, len(items), r.Offers, len(w.offers[r.Run]), err)
	}
	for _, i := range items {
		if i.Message.Text() != "do "+i.Key {
			t.Errorf("%s: %s says %q", r.Run, i.Key, i.Message.Text())
		}
	}
	if err := l.Append(t.Context(), journal.Mark{}, note(1)); err != nil {
		t.Errorf("append: %v", err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func (w *written) count(done sqlite.Repaired) (whole, cut, lost int) {
	for _, r := range done.Runs {
		switch {
		case r.Run == "gone":
		case r.Err == nil:
			whole++
		case r.Kept > 0:
			cut++
		default:
			lost++
		}
	}
	return whole, cut, lost
}

func nul(from, to int) func([]byte) []byte {
	return func(data []byte) []byte {
		clear(data[from:to])
		return data
	}
}

// TestRepair damages a real database in the ways that disks and people do.
func TestRepair(t *testing.T) {
	w := write(t)
	for name, c := range map[string]struct {
		killed bool
		file   string
		change func([]byte) []byte
		whole  int // at least so many of the five runs
	}{
		"nothing":                {false, "journal.db", func(d []byte) []byte { return d }, 5},
		"nothing, killed":        {true, "journal.db", func(d []byte) []byte { return d }, 5},
		"the header":             {false, "journal.db", nul(0, 100), 5},
		"the whole first page":   {false, "journal.db", nul(0, sqlitePage), 5},
		"the first pages":        {false, "journal.db", nul(0, 4*sqlitePage), 0},
		"the end of a download":  {false, "journal.db", func(d []byte) []byte { return d[:len(d)-1] }, 4},
		"the last page":          {false, "journal.db", func(d []byte) []byte { return d[:len(d)-sqlitePage] }, 4},
		"the second half":        {false, "journal.db", func(d []byte) []byte { return d[:len(d)/2] }, 0},
		"all but a page and one": {false, "journal.db", func(d []byte) []byte { return d[:sqlitePage+1] }, 0},
		"everything":             {false, "journal.db", func([]byte) []byte { return nil }, 0},
		"a text in its place":    {false, "journal.db", func([]byte) []byte { return []byte("hello") }, 0},
		"a page in the middle": {false, "journal.db", func(d []byte) []byte {
			at := len(d) / 2 / sqlitePage * sqlitePage
			return nul(at, at+sqlitePage)(d)
		}, 4},
		"nothing that counts": {true, "journal.db", nul(0, 100), 5}, // the log has that page, too
		"the log's header":    {true, "journal.db-wal", nul(0, 32), 5},
	} {
		t.Run(name, func(t *testing.T) {
			dir := w.dir
			if c.killed {
				dir = w.killed
			}
			path := damagedCopy(t, dir, c.file, c.change)
			done := w.check(t, path)
			whole, cut, lost := w.count(done)
			t.Logf("%d whole, %d cut, %d lost", whole, cut, lost)
			if whole < c.whole {
				t.Errorf("%d runs are whole, want %d: %+v", whole, c.whole, done)
			}
			if strings.HasPrefix(name, "nothing") != (done.KeptAs == "") {
				t.Errorf("the old one was kept as %q", done.KeptAs)
			}
		})
	}
}

// TestRepairAtRandom changes bytes, clears runs of them and cuts, in the database
// and in the log of a process that was killed. What SQLite takes as good is good, or
// it is repaired.
func TestRepairAtRandom(t *testing.T) {
	w := write(t)
	seen := map[string]int{}
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 7))
		dir, file := w.dir, "journal.db"
		if seed%3 == 0 {
			dir = w.killed
		}
		path := damagedCopy(t, dir, file, func(d []byte) []byte { return spoil(random, d) })
		f, err := sqlite.Open(t.Context(), path, sqlite.Options{ReadOnly: true})
		if errors.Is(err, journal.ErrFormat) {
			seen["taken for a newer one"]++
			continue
		}
		if err == nil {
			_ = f.Close()
		}
		done := w.check(t, path)
		whole, cut, lost := w.count(done)
		seen["whole"] += whole
		seen["cut"] += cut
		seen["lost"] += lost
		if t.Failed() {
			t.Fatalf("seed %d: %+v", seed, done)
		}
	}
	t.Logf("%v", seen)
	if seen["whole"] == 0 || seen["cut"] == 0 {
		t.Error("the damage was too large, or too small, to tell anything")
	}
}

func spoil(random *rand.Rand, d []byte) []byte {
	for range 1 + random.IntN(3) {
		at := random.IntN(len(d))
		switch random.IntN(3) {
		case 0:
			d[at] ^= byte(1 + random.IntN(255))
		case 1:
			clear(d[at:min(len(d), at+1+random.IntN(3*sqlitePage))])
		case 2:
			if random.IntN(4) == 0 {
				d = d[:max(at, len(d)/2)]
			}
		}
	}
	return d
}

// TestSpoiledLog: SQLite ends its log at the first frame that is not what was
// written and says nothing. What was acknowledged behind it would be gone.
func TestSpoiledLog(t *testing.T) {
	w := write(t)
	const frame = 24 + sqlitePage
	at := 32 + 20*frame + 24 + 100
	path := damagedCopy(t, w.killed, "journal.db-wal", func(d []byte) []byte {
		d[at] ^= 1
		return d
	})
	for _, opts := range []sqlite.Options{{}, {ReadOnly: true}} {
		_, err := sqlite.Open(t.Context(), path, opts)
		d, ok := errors.AsType[*journal.DamageError](err)
		if !ok || d.Where != path+"-wal" || d.Offset != 32+20*frame {
			t.Errorf("open: %v, want a DamageError at the frame", err)
		}
	}
	done := w.check(t, path)
	if whole, _, lost := w.count(done); whole < 4 || lost > 0 {
		t.Errorf("%d whole, %d lost: %+v", whole, lost, done)
	}
	if data, err := os.ReadFile(done.KeptAs + "-wal"); err != nil || data[at] == 0 {
		t.Errorf("the log was not kept: %v", err)
	}
}

// TestTornLog: a write that was cut off by a loss of power is no damage. Every
// length that the log may have had then opens.
func TestTornLog(t *testing.T) {
	w := write(t)
	for _, cut := range []int{1, 100, sqlitePage, sqlitePage + 24, 2 * sqlitePage} {
		path := damagedCopy(t, w.killed, "journal.db-wal", func(d []byte) []byte {
			end := lastFrame(d)
			clear(d[end-cut : end]) // the size was on disk before the content
			return d
		})
		j := open(t, path, sqlite.Options{})
		for run, lines := range w.lines {
			if got := linesOf(t, j, run); len(got) < len(lines)-2 {
				t.Errorf("cut %d: %s has %d records of %d", cut, run, len(got), len(lines))
			}
		}
	}
}

// lastFrame is where the frames end that belong to the log.
func lastFrame(d []byte) int {
	at := 32
	for at+24+sqlitePage <= len(d) && binary.BigEndian.Uint64(d[at+8:]) == binary.BigEndian.Uint64(d[16:]) {
		at += 24 + sqlitePage
	}
	return at
}

func TestRepairIsCareful(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	if _, err := sqlite.Repair(t.Context(), path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("repair of nothing: %v, want that it does not exist", err)
	}
	j := open(t, path, sqlite.Options{})
	l := lease(t, j, "r")
	if _, err := sqlite.Repair(t.Context(), path); !errors.Is(err, journal.ErrHeld) {
		t.Errorf("repair of a run that is held: %v, want ErrHeld", err)
	}
	if err := l.Append(t.Context(), journal.Mark{}, note(1)); err != nil {
		t.Errorf("append after the refusal: %v", err)
	}
}
