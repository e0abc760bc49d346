// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

var rewrite = flag.Bool("rewrite", false, "write the golden file of the newest version again")

// goldenRecords is a short run with every kind of record, in appends of one to
// three, as version 1 was written. It is never changed: a version 2 gets a file of
// its own.
func goldenRecords() []Stored {
	at := time.Date(2026, 11, 30, 8, 0, 0, 123456789, time.UTC)
	call := llm.Call{ID: "c1", Name: "edit", Args: `{"path":"a.kicad_sch"}`}
	result := llm.Result{CallID: "c1", Name: "edit", Status: llm.StatusSuccess, Summary: "edited", Content: "1 line <changed>"}
	large := result
	large.Content = strings.Repeat("0123456789abcdef", 8<<10)
	bodies := []Body{
		Header{
			Rules: 1, Labels: map[string]string{"request": "rename net", "board": "demo"},
			Config: json.RawMessage(`{"system":"You are careful."}`), Parent: "older", ParentSeq: 4,
		},
		Step{machine.AppendInput{Message: llm.UserText("rename \"A\" to B"), Keys: []string{"k1"}}},
		Step{machine.Start{}},
		Step{machine.Generated{Op: 1, Message: llm.AssistantCalls(call), Usage: llm.Usage{Input: llm.N(120), Output: llm.N(0)}}},
		Step{machine.Started{Op: 2, Calls: []machine.StartedCall{{Ordinal: 0, Repeat: true}}}},
		Step{machine.Settled{Op: 2, Result: result}},
		Note{Kind: "ledger", Data: json.RawMessage(`{"open":["erc"]}`)},
		Note{Kind: "unlocked"},
		Step{machine.Settled{Op: 4, Result: large}},
		Step{machine.Generated{Op: 5, Message: llm.AssistantText("done")}},
	}
	out := make([]Stored, len(bodies))
	for i, b := range bodies {
		out[i].Record = Record{Seq: uint64(i) + 1, Epoch: min(uint64(i), 2), At: at, Body: b}
		out[i].Mark = Mark{Phase: "tools", Pending: 2}
	}
	out[0].Run, out[0].Mark = "golden", Mark{}
	out[5].More, out[6].More = 2, 1
	out[5].Mark, out[6].Mark = Mark{}, Mark{}
	out[9].Mark = Mark{Phase: "finished", Ended: true}
	return out
}

func encodeAll(t *testing.T) (lines []byte, blobs map[string][]byte) {
	t.Helper()
	blobs = make(map[string][]byte)
	for _, s := range goldenRecords() {
		e, err := EncodeRecord("golden", s)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, e.Line...), '\n')
		for _, b := range e.Blobs {
			blobs[b.Digest] = b.Data
		}
	}
	return lines, blobs
}

// TestGoldenVersion1 reads what version 1 wrote, for good, and sees that the same
// is still written.
func TestGoldenVersion1(t *testing.T) {
	path := filepath.Join("testdata", "version1.jsonl")
	lines, blobs := encodeAll(t)
	if *rewrite {
		if err := os.WriteFile(path, lines, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	golden, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(lines, golden) {
		t.Errorf("what is written has changed; logs of version 1 must be read as they are, and a change needs a new version\ngot\n%s\nwant\n%s", lines, golden)
	}
	want := goldenRecords()
	for i, line := range bytes.Split(bytes.TrimSuffix(golden, []byte("\n")), []byte("\n")) {
		got, err := DecodeRecord(line, blobFrom(blobs))
		if err != nil {
			t.Fatalf("record %d: %v", i+1, err)
		}
		if g, w := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want[i]); g != w {
			t.Errorf("record %d = %.400s\nwant %.400s", i+1, g, w)
		}
		if !json.Valid(line) {
			t.Errorf("record %d is not JSON", i+1)
		}
	}
}

func blobFrom(blobs map[string][]byte) func(string) ([]byte, error) {
	return func(digest string) ([]byte, error) {
		if data, ok := blobs[digest]; ok {
			return data, nil
		}
		return nil, fs.ErrNotExist
	}
}

// TestRecordFlips changes every byte of every golden record to other values. A
// record is never read as something else.
func TestRecordFlips(t *testing.T) {
	lines, blobs := encodeAll(t)
	for i, line := range bytes.Split(bytes.TrimSuffix(lines, []byte("\n")), []byte("\n")) {
		for at := range line {
			for _, mask := range []byte{1, 0x20, 0x80, 0xff} {
				bad := bytes.Clone(line)
				bad[at] ^= mask
				if _, err := DecodeRecord(bad, blobFrom(blobs)); !errors.Is(err, ErrDamaged) {
					t.Fatalf("record %d, byte %d, mask %02x: %v, want ErrDamaged", i+1, at, mask, err)
				}
			}
		}
	}
}

func TestStandInIsNoText(t *testing.T) {
	digest := strings.Repeat("ab", 32)
	text := "sha256:" + digest
	e, err := EncodeRecord("r", Stored{Record: Record{Seq: 2, Body: Step{machine.AppendInput{Message: llm.UserText(text)}}}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeRecord(e.Line, nil)
	if err != nil {
		t.Fatal(err)
	}
	if in, ok := got.Body.(Step).Input.(machine.AppendInput); !ok || in.Message.Text() != text {
		t.Errorf("a text that looks like a blob's name came back as %+v", got.Body)
	}
}

func TestBodiesWithoutJSON(t *testing.T) {
	for name, b := range map[string]Body{
		"note": Note{Kind: "n", Data: json.RawMessage("{")}, "config": Header{Config: json.RawMessage("nope")},
		"text": Step{machine.AppendInput{Message: llm.UserText("\xff")}},
	} {
		if _, err := EncodeRecord("r", Stored{Record: Record{Seq: 2, Body: b}}); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v, want ErrInvalid", name, err)
		}
	}
}

// FuzzReadRecord: whatever a line is, reading it fails with a typed error or gives
// a record that is written and read as itself.
func FuzzReadRecord(f *testing.F) {
	golden, err := os.ReadFile(filepath.Join("testdata", "version1.jsonl"))
	if err != nil {
		f.Fatal(err)
	}
	for line := range bytes.SplitSeq(golden, []byte("\n")) {
		f.Add(line, true)
		f.Add(line[:max(len(line)-crcSuffix, 0)], false)
	}
	f.Fuzz(func(t *testing.T, line []byte, whole bool) {
		if !whole { // the fuzzer cannot guess a sum
			line = fmt.Appendf(slices.Clip(line), `,"crc":"%08x"}`, Checksum(line))
		}
		s, err := DecodeRecord(line, nil)
		if err != nil {
			if !errors.Is(err, ErrDamaged) && !errors.Is(err, ErrFormat) {
				t.Fatalf("error %v is of no known kind", err)
			}
			return
		}
		e, err := EncodeRecord(s.Run, s)
		if err != nil {
			return // text that is not UTF-8 is read and not written
		}
		again, err := DecodeRecord(e.Line, nil)
		if err != nil {
			t.Fatalf("what was written cannot be read: %v\n%s", err, e.Line)
		}
		if e2, err := EncodeRecord(again.Run, again); err != nil || !bytes.Equal(e.Line, e2.Line) {
			t.Fatalf("written twice it differs: %v\n%s\n%s", err, e.Line, e2.Line)
		}
	})
}
