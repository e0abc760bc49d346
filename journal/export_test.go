// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// exported is a small run with large content as a file.
func exported(t testing.TB) []byte {
	t.Helper()
	at := time.Date(2026, 11, 30, 8, 0, 0, 123, time.UTC)
	records := []journal.Record{
		{Seq: 1, At: at, Body: journal.Header{Rules: 1, Labels: map[string]string{"a": "1"}}},
		{Seq: 2, Epoch: 1, At: at, Body: journal.Step{Input: machine.AppendInput{Message: llm.UserText("go"), Keys: []string{"k"}}}},
		{Seq: 3, Epoch: 1, At: at, Body: journal.Note{Kind: "large", Data: json.RawMessage(`"` + strings.Repeat("x", 70_000) + `"`)}},
		{Seq: 4, Epoch: 2, At: at, Body: journal.Note{Kind: "n"}},
	}
	j := journal.NewMemory()
	err := j.Restore(t.Context(), "r", func(yield func(journal.Record, error) bool) {
		for _, r := range records {
			if !yield(r, nil) {
				return
			}
		}
	}, journal.Mark{Phase: "ready", Pending: 3})
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := journal.Export(t.Context(), j, "r", &out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// wantRefused imports a file that is not what was written: nothing is stored.
func wantRefused(t *testing.T, what string, file []byte) {
	t.Helper()
	j := journal.NewMemory()
	run, err := journal.Import(t.Context(), j, bytes.NewReader(file))
	if !errors.Is(err, journal.ErrDamaged) && !errors.Is(err, journal.ErrFormat) {
		t.Errorf("%s: %q, %v; want ErrDamaged", what, run, err)
	}
	for i := range j.Runs(t.Context(), journal.Filter{}) {
		t.Errorf("%s: it left run %s", what, i.Run)
	}
}

func TestImportRefusesDamage(t *testing.T) {
	file := exported(t)
	blob := bytes.Index(file, []byte(`{"blob"`))
	for i := range file { // inside the blob now and then
		if i > blob+200 && i < len(file)-1000 && i%997 != 0 || testing.Short() && i%5 != 0 {
			continue
		}
		changed := bytes.Clone(file)
		changed[i] ^= byte(1 << (i % 8))
		wantRefused(t, "a changed byte", changed)
		wantRefused(t, "a cut file", file[:i])
	}
	lines := bytes.SplitAfter(file, []byte("\n"))
	lines = lines[:len(lines)-1]
	for i := range lines {
		wantRefused(t, "a missing line", join(lines[:i], lines[i+1:]))
		wantRefused(t, "a line twice", join(lines[:i+1], lines[i:]))
		if i > 0 {
			swapped := append([][]byte{}, lines...)
			swapped[i], swapped[i-1] = swapped[i-1], swapped[i]
			wantRefused(t, "two lines in the wrong order", join(swapped))
		}
	}
	wantRefused(t, "nothing", nil)
	wantRefused(t, "a file of something else", []byte("{\"a\":1}\n"))
	wantRefused(t, "NUL bytes", make([]byte, 1000))
	wantRefused(t, "a file of the future", bytes.Replace(file, []byte(`{"export":1`), []byte(`{"export":2`), 1))
}

// A file of pieces of content that no record claims is given up early.
func TestImportBoundsContent(t *testing.T) {
	head, _, _ := bytes.Cut(exported(t), []byte("\n"))
	file := bytes.NewBuffer(append(head, '\n'))
	for i := range 1<<16 + 1 {
		data := fmt.Appendf(nil, "%d", i)
		fmt.Fprintf(file, "{\"blob\":\"%x\",\"data\":\"%s\"}\n", sha256.Sum256(data), base64.StdEncoding.EncodeToString(data))
	}
	j := journal.NewMemory()
	if run, err := journal.Import(t.Context(), j, file); !errors.Is(err, journal.ErrInvalid) {
		t.Errorf("import: %q, %v; want ErrInvalid", run, err)
	}
	if _, err := j.Stat(t.Context(), "r"); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("it left a run: %v", err)
	}
}

func join(parts ...[][]byte) []byte {
	var out []byte
	for _, p := range parts {
		out = append(out, bytes.Join(p, nil)...)
	}
	return out
}

// Files of every version that was ever written stay readable, and this version
// writes the same bytes.
func TestExportedFile(t *testing.T) {
	golden := filepath.Join("testdata", "export1.jsonl")
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got := exported(t); !bytes.Equal(got, want) {
		t.Errorf("the file is %d bytes that differ from %s", len(got), golden)
	}
	j := journal.NewMemory()
	if run, err := journal.Import(t.Context(), j, iotest.OneByteReader(bytes.NewReader(want))); run != "r" || err != nil {
		t.Fatalf("import: %q, %v", run, err)
	}
	if i, err := j.Stat(t.Context(), "r"); err != nil || i.Head != 4 || i.Epoch != 2 || i.Pending != 3 {
		t.Errorf("Stat = %+v, %v", i, err)
	}
}

func TestExportAndImportFail(t *testing.T) {
	file := exported(t)
	j := journal.NewMemory()
	broken := errors.New("the disk went away")
	_, err := journal.Import(t.Context(), j, iotest.TimeoutReader(iotest.HalfReader(bytes.NewReader(file))))
	if !errors.Is(err, iotest.ErrTimeout) {
		t.Errorf("import from a reader that fails: %v", err)
	}
	if _, err := journal.Import(t.Context(), j, bytes.NewReader(file)); err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{0, 100, 80_000} {
		if err := journal.Export(t.Context(), j, "r", &failing{n, broken}); !errors.Is(err, broken) {
			t.Errorf("export to a writer that fails after %d bytes: %v", n, err)
		}
	}
	if err := journal.Export(t.Context(), j, "none", &bytes.Buffer{}); !errors.Is(err, journal.ErrNotFound) {
		t.Errorf("export of no run: %v", err)
	}
}

type failing struct {
	left int
	err  error
}

func (f *failing) Write(p []byte) (int, error) {
	if f.left -= len(p); f.left < 0 {
		return 0, f.err
	}
	return len(p), nil
}

func FuzzImport(f *testing.F) {
	f.Add(exported(f)[:2000])
	f.Add([]byte(`{"export":1,"run":"r","head":1,"mark":{"phase":""}}` + "\n{\"end\":0,\"crc\":\"00000000\"}\n"))
	f.Fuzz(func(t *testing.T, file []byte) {
		j := journal.NewMemory()
		run, err := journal.Import(t.Context(), j, bytes.NewReader(file))
		if err != nil {
			return
		}
		var out bytes.Buffer
		if err := journal.Export(t.Context(), j, run, &out); err != nil {
			t.Fatal(err)
		}
	})
}
