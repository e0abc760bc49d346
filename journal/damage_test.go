// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/journal/internal/lockfile"
	"github.com/fiducial-dev/fiducial/llm"
)

// logOf writes a run of appends of one to three records and returns its folder, its
// log and where each append ends.
func logOf(t *testing.T) (dir string, log []byte, ends map[int]uint64) {
	t.Helper()
	dir = t.TempDir()
	f, err := OpenFolder(dir, FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := f.Create(t.Context(), "r", Header{Rules: 1}); err != nil {
		t.Fatal(err)
	}
	l, err := f.Acquire(t.Context(), "r", "w")
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "r.jsonl")
	ends = make(map[int]uint64)
	note := func() {
		if log, err = os.ReadFile(path); err != nil {
			t.Fatal(err)
		}
		ends[len(log)] = l.Head()
	}
	note()
	for i, bodies := range [][]Body{
		{numbered(1)}, {numbered(2), numbered(3), numbered(4)}, {numbered(5)}, {numbered(6), numbered(7)},
	} {
		if err := l.Append(t.Context(), Mark{Phase: fmt.Sprint("p", i)}, bodies...); err != nil {
			t.Fatal(err)
		}
		note()
	}
	return dir, log, ends
}

// folderWith is a folder whose run r has that log.
func folderWith(t *testing.T, log []byte, opts FolderOptions) *Folder {
	t.Helper()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "r.jsonl"), log, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := OpenFolder(dir, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

func count(t *testing.T, f *Folder) (n uint64, err error) {
	t.Helper()
	for r, err := range f.Read(t.Context(), "r", 0) {
		if err != nil {
			return n, err
		}
		if n++; r.Seq != n {
			t.Fatalf("record %d stands where %d should", r.Seq, n)
		}
	}
	return n, nil
}

// TestTornAtEveryByte cuts the log after every byte. What is left is the appends
// that are whole; the rest is dropped and told, and the run goes on.
func TestTornAtEveryByte(t *testing.T) {
	dir, log, ends := logOf(t)
	for cut := range len(log) + 1 {
		var want uint64
		var whole int
		for e, head := range ends {
			if e <= cut && head > want {
				want, whole = head, e
			}
		}
		var lost int64
		if err := os.Remove(filepath.Join(dir, "r.jsonl")); err != nil { // truncating is slow
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "r.jsonl"), log[:cut], 0o644); err != nil {
			t.Fatal(err)
		}
		f, err := OpenFolder(dir, FolderOptions{NoSync: true, OnTorn: func(_, _ string, n int64) { lost = n }})
		if err != nil {
			t.Fatal(err)
		}
		l, err := f.Acquire(t.Context(), "r", "w")
		if want == 0 {
			if !errors.Is(err, ErrNotFound) {
				t.Fatalf("cut at %d: %v, want ErrNotFound", cut, err)
			}
			f.Close()
			continue
		}
		if n, err := count(t, f); n != want || err != nil {
			t.Fatalf("cut at %d: %d records, %v; want %d", cut, n, err, want)
		}
		if err != nil || l.Head() != want || lost != int64(cut-whole) {
			t.Fatalf("cut at %d: %v, told of %d lost bytes, want %d", cut, err, lost, cut-whole)
		}
		if i, err := f.Stat(t.Context(), "r"); err != nil || i.Head != want {
			t.Fatalf("cut at %d: Stat = %+v, %v", cut, i, err)
		}
		if err := l.Append(t.Context(), Mark{}, numbered(0)); err != nil {
			t.Fatalf("cut at %d: append: %v", cut, err)
		}
		if n, err := count(t, f); n != want+1 || err != nil {
			t.Fatalf("cut at %d: %d records after an append, %v; want %d", cut, n, err, want+1)
		}
		f.Close()
	}
}

// TestDamage reads logs that are not what was written. Each is an error that says
// where, never a shorter or another log.
func TestDamage(t *testing.T) {
	_, log, _ := logOf(t)
	lines := bytes.SplitAfter(log, []byte("\n"))
	lines = lines[:len(lines)-1]
	join := func(order ...int) []byte {
		var b []byte
		for _, i := range order {
			b = append(b, lines[i]...)
		}
		return b
	}
	offset := func(line int) int64 { return int64(len(bytes.Join(lines[:line], nil))) }
	replaced := func(line int, old, new string) []byte {
		c := append([][]byte{}, lines...)
		c[line] = bytes.Replace(c[line], []byte(old), []byte(new), 1)
		return bytes.Join(c, nil)
	}
	nul := bytes.Clone(log)
	clear(nul[offset(2)+10 : offset(2)+60])
	for name, c := range map[string]struct {
		log  []byte
		line int
	}{
		"twice":              {join(0, 1, 1, 2, 3, 4), 2},
		"swapped":            {join(0, 2, 1, 3, 4), 1},
		"missing":            {join(0, 1, 5), 2},
		"two headers":        {join(0, 0), 1},
		"no header":          {join(1, 2, 3, 4), 0},
		"half an append":     {join(0, 1, 2, 3, 5), 4},
		"a number changed":   {replaced(1, `"data":1`, `"data":2`), 1},
		"last number":        {replaced(7, `"data":7`, `"data":8`), 7},
		"the sum changed":    {replaced(1, `"crc":"`, `"crc":"f`), 1},
		"an empty line":      {append(join(0, 1), "\n"...), 2},
		"not JSON":           {append(join(0, 1), "hello\n"...), 2},
		"NUL bytes":          {nul, 2},
		"joined lines":       {replaced(1, "}\n", "}"), 1},
		"the end changed":    {append(bytes.TrimSuffix(log, []byte("\n")), 'x'), 7},
		"a line of NULs":     {append(join(0, 1), append(make([]byte, 50), '\n')...), 2},
		"longer than any":    {append(join(0), bytes.Repeat([]byte("x"), maxLine+1<<20)...), 1},
		"carriage returns":   {bytes.ReplaceAll(log, []byte("\n"), []byte("\r\n")), 0},
		"a record from 2099": {append(join(0, 1), future(t)...), -1},
	} {
		t.Run(name, func(t *testing.T) {
			f := folderWith(t, c.log, FolderOptions{})
			_, err := count(t, f)
			_, acquired := f.Acquire(t.Context(), "r", "w")
			for what, err := range map[string]error{"Read": err, "Acquire": acquired} {
				if c.line < 0 {
					fe, ok := errors.AsType[*FormatError](err)
					if !ok || fe.Version != 99 || !errors.Is(err, ErrFormat) {
						t.Errorf("%s: %v, want a FormatError of version 99", what, err)
					}
					continue
				}
				d, ok := errors.AsType[*DamageError](err)
				if !ok || !errors.Is(err, ErrDamaged) {
					t.Fatalf("%s: %v, want a DamageError", what, err)
				}
				if d.Offset > offset(c.line) || d.Seq > uint64(c.line)+1 || d.Where != "r.jsonl" || d.Run != "r" {
					t.Errorf("%s: %+v, want offset %d at most and record %d", what, d, offset(c.line), c.line+1)
				}
			}
			if after, err := os.ReadFile(filepath.Join(f.root.Name(), "r.jsonl")); err != nil || !bytes.Equal(after, c.log) {
				t.Errorf("the damaged log was changed (%v)", err)
			}
		})
	}
}

// future is a whole record of a version that nobody has written yet.
func future(t *testing.T) []byte {
	t.Helper()
	line := []byte(`{"v":99,"seq":3,"shape":"unheard of"`)
	return fmt.Appendf(line, `,"crc":"%08x"}`+"\n", Checksum(line))
}

// TestUnknown reads whole records of this version that say what nobody knows.
func TestUnknown(t *testing.T) {
	for name, head := range map[string]string{
		"kind":  `{"v":1,"seq":2,"epoch":1,"at":"2026-11-30T08:00:00Z","kind":"poem","data":{}`,
		"input": `{"v":1,"seq":2,"epoch":1,"at":"2026-11-30T08:00:00Z","kind":"step","name":"sing","data":{}`,
		"field": `{"v":1,"seq":2,"epoch":1,"at":"2026-11-30T08:00:00Z","kind":"note","name":"n","tone":"high","data":{}`,
		"part":  `{"v":1,"seq":2,"epoch":1,"at":"2026-11-30T08:00:00Z","kind":"step","name":"append-input","data":{"message":{"role":"user","parts":[{"type":"smell"}]}}`,
	} {
		_, err := DecodeRecord(fmt.Appendf([]byte(head), `,"crc":"%08x"}`, Checksum([]byte(head))), nil)
		if _, ok := errors.AsType[*FormatError](err); !ok {
			t.Errorf("unknown %s: %v, want a FormatError", name, err)
		}
	}
}

func TestBlobDamage(t *testing.T) {
	dir, _, _ := logOf(t)
	open := func() *Folder {
		f, err := OpenFolder(dir, FolderOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	f := open()
	l, err := f.Acquire(t.Context(), "r", "w")
	if err != nil {
		t.Fatal(err)
	}
	before := l.Head()
	if err := l.Append(t.Context(), Mark{}, Note{Kind: "n", Data: []byte(`"` + strings.Repeat("x", 70_000) + `"`)}); err != nil {
		t.Fatal(err)
	}
	blobs, err := filepath.Glob(filepath.Join(dir, "blobs", "r", "*"))
	if err != nil || len(blobs) != 1 {
		t.Fatalf("blobs: %v, %v", blobs, err)
	}
	data, err := os.ReadFile(blobs[0])
	if err != nil || string(data) != strings.Repeat("x", 70_000) {
		t.Fatalf("the blob holds %d bytes that are not the text, %v", len(data), err)
	}
	for name, change := range map[string]func() error{
		"changed": func() error { return os.WriteFile(blobs[0], append([]byte("y"), data[1:]...), 0o644) },
		"shorter": func() error { return os.WriteFile(blobs[0], data[1:], 0o644) },
		"missing": func() error { return os.Remove(blobs[0]) },
	} {
		if err := change(); err != nil {
			t.Fatal(err)
		}
		n, err := count(t, f)
		if d, ok := errors.AsType[*DamageError](err); !ok || n != before || d.Seq != before+1 {
			t.Errorf("%s: %d records, %v; want %d and a DamageError", name, n, err, before)
		}
		if err := os.WriteFile(blobs[0], data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if n, err := count(t, f); n != before+1 || err != nil {
		t.Errorf("with the blob back: %d records, %v", n, err)
	}
}

// TestBlobIsNoFile puts a folder where a blob or the run's blobs should be, or a file
// where they should: it is damage, Repair makes the run usable, and the same content
// can be stored again.
func TestBlobIsNoFile(t *testing.T) {
	large := Note{Kind: "n", Data: []byte(`"` + strings.Repeat("x", 70_000) + `"`)}
	for what, change := range map[string]func(blob string) error{
		"a folder":     func(blob string) error { return os.MkdirAll(filepath.Join(blob, "inside"), 0o755) },
		"an empty one": func(blob string) error { return os.Mkdir(blob, 0o755) },
		"no blobs":     func(blob string) error { return os.Remove(filepath.Dir(blob)) },
		"a file for all": func(blob string) error {
			return errors.Join(os.Remove(filepath.Dir(blob)), os.WriteFile(filepath.Dir(blob), []byte("x"), 0o644))
		},
	} {
		_, log, _ := logOf(t)
		f := folderWith(t, log, FolderOptions{})
		put := func() uint64 {
			t.Helper()
			l, err := f.Acquire(t.Context(), "r", "w")
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if err := l.Append(t.Context(), Mark{}, large); err != nil {
				t.Fatalf("%s: append: %v", what, err)
			}
			if err := l.Release(t.Context()); err != nil {
				t.Fatal(err)
			}
			return l.Head()
		}
		head := put()
		blobs, err := filepath.Glob(filepath.Join(f.root.Name(), "blobs", "r", "*"))
		if err != nil || len(blobs) != 1 {
			t.Fatalf("blobs: %v, %v", blobs, err)
		}
		if err := errors.Join(os.Remove(blobs[0]), change(blobs[0])); err != nil {
			t.Fatal(err)
		}
		if n, err := count(t, f); n != head-1 || !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %d records, %v; want %d and ErrDamaged", what, n, err, head-1)
		}
		if done, err := f.Repair(t.Context(), "r"); err != nil || done.Kept != head-1 {
			t.Errorf("%s: Repair = %+v, %v; want %d records kept", what, done, err, head-1)
		}
		if n := put(); n != head+1 {
			t.Errorf("%s: the head is %d, want %d", what, n, head+1)
		}
		if n, err := count(t, f); n != head+1 || err != nil {
			t.Errorf("%s: after the repair %d records, %v; want %d", what, n, err, head+1)
		}
	}
}

func TestRepair(t *testing.T) {
	_, log, _ := logOf(t)
	bad := bytes.Replace(log, []byte(`"data":3`), []byte(`"data":4`), 1)
	f := folderWith(t, bad, FolderOptions{})
	if _, err := f.Acquire(t.Context(), "r", "w"); !errors.Is(err, ErrDamaged) {
		t.Fatalf("acquire: %v, want ErrDamaged", err)
	}
	done, err := f.Repair(t.Context(), "r")
	if err != nil {
		t.Fatal(err)
	}
	kept, err := os.ReadFile(filepath.Join(f.root.Name(), done.KeptAs))
	if err != nil || done.Kept != 2 || done.Lost != int64(len(kept)) || !bytes.HasSuffix(bad, kept) {
		t.Errorf("Repair = %+v, %v; want 2 records kept and the rest beside the log", done, err)
	}
	var last Record
	for r, err := range f.Read(t.Context(), "r", 0) {
		if err != nil {
			t.Fatal(err)
		}
		last = r
	}
	if n, ok := last.Body.(Note); last.Seq != 3 || !ok || n.Kind != RepairedNote {
		t.Errorf("the last record is %+v, want the note of the repair as the third", last)
	}
	l, err := f.Acquire(t.Context(), "r", "w")
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Append(t.Context(), Mark{}, numbered(9)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Repair(t.Context(), "r"); !errors.Is(err, ErrHeld) {
		t.Errorf("repair of a held run: %v, want ErrHeld", err)
	}
	if err := l.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if done, err := f.Repair(t.Context(), "r"); err != nil || done != (Repaired{Kept: 4}) {
		t.Errorf("repair of a good run = %+v, %v; want nothing done", done, err)
	}
	header := folderWith(t, bytes.Replace(log, []byte(`"rules":1`), []byte(`"rules":2`), 1), FolderOptions{})
	if _, err := header.Repair(t.Context(), "r"); !errors.Is(err, ErrDamaged) {
		t.Errorf("repair of a damaged header: %v, want ErrDamaged", err)
	}
}

// TestLockFileRemoved: a person removes the lock file of a run that is held, and
// another process takes the run. The first is fenced before it writes.
func TestLockFileRemoved(t *testing.T) {
	_, log, _ := logOf(t)
	f := folderWith(t, log, FolderOptions{})
	l1, err := f.Acquire(t.Context(), "r", "one")
	if err != nil {
		t.Fatal(err)
	}
	if err := f.root.Remove("r.lock"); err != nil {
		t.Fatal(err)
	}
	g, err := OpenFolder(f.root.Name(), FolderOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	l2, err := g.Acquire(t.Context(), "r", "two")
	if err != nil {
		t.Fatal(err)
	}
	if err := l1.Append(t.Context(), Mark{}, numbered(0)); !errors.Is(err, ErrFenced) {
		t.Fatalf("append of the first: %v, want ErrFenced", err)
	}
	<-l1.Lost()
	if err := l2.Append(t.Context(), Mark{}, numbered(0)); err != nil {
		t.Errorf("append of the second: %v", err)
	}
}

// TestOwnerWhoSignsLate: who asks between the taking of a lock and its signing is told
// the name all the same; of a lock that nobody signs there is none to tell.
func TestOwnerWhoSignsLate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("a file that is locked cannot be read here")
	}
	_, log, _ := logOf(t)
	for _, want := range []string{"late", ""} {
		f := folderWith(t, log, FolderOptions{})
		lock, err := lockfile.Take(f.root, "r"+lockSuffix)
		if err != nil {
			t.Fatal(err)
		}
		if want != "" {
			time.AfterFunc(20*time.Millisecond, func() {
				if err := lock.SetNote([]byte(`{"epoch":1,"owner":"late","pid":7}`)); err != nil {
					t.Error(err)
				}
			})
		}
		_, err = f.Acquire(t.Context(), "r", "w")
		if held, ok := errors.AsType[*HeldError](err); !ok || held.Owner != want {
			t.Errorf("acquire: %v, want a HeldError with the owner %q", err, want)
		}
		if err := lock.Free(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestLogRemoved: a person removes or replaces the log, or the whole folder, under
// its writer, who learns of it at the next append and not never.
func TestLogRemoved(t *testing.T) {
	for what, do := range map[string]func(dir string) error{
		"removed": func(dir string) error { return os.Remove(filepath.Join(dir, "r.jsonl")) },
		"renamed": func(dir string) error {
			return os.Rename(filepath.Join(dir, "r.jsonl"), filepath.Join(dir, "r2.jsonl"))
		},
		"replaced": func(dir string) error {
			log, err := os.ReadFile(filepath.Join(dir, "r.jsonl"))
			if err != nil {
				return err
			}
			return errors.Join(os.Remove(filepath.Join(dir, "r.jsonl")), os.WriteFile(filepath.Join(dir, "r.jsonl"), log, 0o644))
		},
		"the folder": os.RemoveAll,
	} {
		_, log, _ := logOf(t)
		f := folderWith(t, log, FolderOptions{})
		l, err := f.Acquire(t.Context(), "r", "w")
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Append(t.Context(), Mark{}, numbered(0)); err != nil {
			t.Fatal(err)
		}
		if err := do(f.root.Name()); err != nil {
			t.Skip("this system keeps open files:", err)
		}
		err = l.Append(t.Context(), Mark{}, numbered(1))
		if !errors.Is(err, ErrFenced) || !errors.Is(err, ErrReplaced) || !strings.Contains(err.Error(), "removed, replaced") {
			t.Errorf("%s: append: %v, want ErrFenced that says so", what, err)
		}
		select {
		case <-l.Lost():
		default:
			t.Errorf("%s: the lease goes on", what)
		}
	}
}

// TestRunUnderAnotherName: a log that was renamed is not taken for another run's.
func TestRunUnderAnotherName(t *testing.T) {
	_, log, _ := logOf(t)
	f := folderWith(t, log, FolderOptions{})
	if err := f.root.Rename("r.jsonl", "q.jsonl"); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Acquire(t.Context(), "q", "w"); !errors.Is(err, ErrDamaged) {
		t.Errorf("acquire: %v, want ErrDamaged", err)
	}
	if _, err := f.Stat(t.Context(), "q"); !errors.Is(err, ErrDamaged) {
		t.Errorf("stat: %v, want ErrDamaged", err)
	}
}

func TestReadOnlyFolder(t *testing.T) {
	if _, err := OpenFolder("", FolderOptions{}); !errors.Is(err, ErrInvalid) {
		t.Errorf("open of an empty path: %v, want ErrInvalid", err)
	}
	if _, err := OpenFolder(filepath.Join(t.TempDir(), "none"), FolderOptions{ReadOnly: true}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("open of no folder: %v, want that it does not exist", err)
	}
	dir, _, _ := logOf(t)
	f, err := OpenFolder(dir, FolderOptions{ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if n, err := count(t, f); n != 8 || err != nil {
		t.Errorf("%d records, %v; want 8", n, err)
	}
	for what, err := range map[string]error{
		"Create": f.Create(t.Context(), "x", Header{}), "Delete": f.Delete(t.Context(), "r"),
		"Offer": f.Offer(t.Context(), "r", "k", llm.UserText("x")),
	} {
		if !errors.Is(err, ErrReadOnly) {
			t.Errorf("%s: %v, want ErrReadOnly", what, err)
		}
	}
	if _, err := f.Acquire(t.Context(), "r", "w"); !errors.Is(err, ErrReadOnly) {
		t.Errorf("Acquire: %v, want ErrReadOnly", err)
	}
}
