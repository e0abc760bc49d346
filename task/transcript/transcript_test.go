//go:build unix

// SPDX-License-Identifier: Apache-2.0

package transcript_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/mask"
	"github.com/fiducial-dev/fiducial/task/transcript"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 7_000_000, time.UTC)

func key() string { return "sk-ant-api03-" + strings.Repeat("aB3-", 20) }

func create(t *testing.T, top string) *transcript.Log {
	t.Helper()
	l, err := transcript.Create(top, now, mask.New("given secret"))
	must(t, err)
	t.Cleanup(func() { must(t, l.Close()) })
	return l
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func kind(err error) transcript.Kind {
	if e, ok := errors.AsType[*transcript.Error](err); ok {
		return e.Kind
	}
	return 0
}

func file(top string, l *transcript.Log, name string) string {
	return filepath.Join(top, filepath.FromSlash(l.Dir()), name)
}

func read(t *testing.T, name string) string {
	t.Helper()
	b, err := os.ReadFile(name)
	must(t, err)
	return string(b)
}

func TestB62_EventsInOrderAndMasked(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	l := create(t, top)
	must(t, l.Append(now, transcript.RunStart, nil))
	must(t, l.Append(now.Add(time.Second), "erc-run", map[string]any{"z": 1, "a": "<" + key() + "\n\"quoted\" given secret>", "given secret": []string{"x"}}))
	must(t, l.Append(now.Add(2*time.Second), transcript.Tool, struct {
		Name string `json:"name"`
		Args json.RawMessage
	}{"edit_file", json.RawMessage(`{"b":1,"a":"-----BEGIN PRIVATE ` + `KEY-----\nabc\\"}`)}))
	want := `{"time":"2026-11-30T12:00:00.007Z","seq":1,"kind":"run-start"}
{"time":"2026-11-30T12:00:01.007Z","seq":2,"kind":"erc-run","data":{"a":"<[masked]\n\"quoted\" [masked]>","[masked]":["x"],"z":1}}
{"time":"2026-11-30T12:00:02.007Z","seq":3,"kind":"tool","data":{"name":"edit_file","Args":{"b":1,"a":"[masked]"}}}
`
	if got := read(t, file(top, l, "transcript.jsonl")); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	d, err := transcript.Read(top, l.Run())
	if err != nil || len(d.Events) != 3 || d.Torn != 0 || d.Events[2].Kind != transcript.Tool || d.Size != int64(len(want)) {
		t.Errorf("read: %+v, %v", d, err)
	}
	for name, mode := range map[string]os.FileMode{".": 0o700, "..": 0o700, "transcript.jsonl": 0o600} {
		st, err := os.Stat(file(top, l, name))
		if err != nil || st.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, st.Mode(), err)
		}
	}
	for _, k := range []transcript.EventKind{"", "Tool", "a b", "a--b", "x-"} {
		if err := l.Append(now, k, nil); kind(err) != transcript.KindInvalid {
			t.Errorf("kind %q: %v", k, err)
		}
	}
	if err := l.Append(now, "x", func() {}); kind(err) != transcript.KindInvalid {
		t.Errorf("a function as data: %v", err)
	}
}

func TestB5_RunIDs(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	var want []string
	for i := range 12 {
		want = append(want, create(t, top).Run())
		if i == 0 && want[0] != "20261130-120000-007" {
			t.Errorf("id %s", want[0])
		}
	}
	later, err := transcript.Create(top, now.Add(time.Millisecond), nil)
	must(t, err)
	must(t, later.Close())
	want = append(want, later.Run())
	must(t, os.MkdirAll(filepath.Join(top, ".fiducial/runs/not-a-run"), 0o700))
	got, err := transcript.Runs(top)
	if err != nil || strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("got  %v\nwant %v, %v", got, want, err)
	}
	if got, err := transcript.Runs(t.TempDir()); err != nil || len(got) != 0 {
		t.Errorf("no runs: %v, %v", got, err)
	}
	for id, k := range map[string]transcript.Kind{"../x": transcript.KindInvalid, "": transcript.KindInvalid, "20200101-000000-000": transcript.KindNotFound} {
		if _, err := transcript.Read(top, id); kind(err) != k {
			t.Errorf("%q: %v", id, err)
		}
	}
}

func TestTornLastLineIsToldAndCutOff(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	l := create(t, top)
	must(t, l.Append(now, "one", nil))
	must(t, l.Append(now, "two", "data"))
	whole := read(t, file(top, l, "transcript.jsonl"))
	first := strings.Index(whole, "\n") + 1
	for cut := first + 1; cut < len(whole); cut++ {
		must(t, os.WriteFile(file(top, l, "transcript.jsonl"), []byte(whole[:cut]), 0o600))
		d, err := transcript.Read(top, l.Run())
		if err != nil || len(d.Events) != 1 || d.Torn != int64(cut-first) {
			t.Fatalf("cut at %d: %+v, %v", cut, d, err)
		}
	}
	again, torn, err := transcript.Open(top, l.Run(), nil)
	must(t, err)
	if torn != int64(len(whole)-1-first) {
		t.Errorf("torn %d", torn)
	}
	must(t, again.Append(now, "three", nil))
	must(t, again.Close())
	must(t, again.Close())
	if err := again.Append(now, "four", nil); kind(err) != transcript.KindInvalid {
		t.Errorf("append after close: %v", err)
	}
	d, err := transcript.Read(top, l.Run())
	if err != nil || len(d.Events) != 2 || d.Events[1].Kind != "three" || d.Events[1].Seq != 2 {
		t.Errorf("%+v, %v", d, err)
	}
}

func TestDamageNamesItsPlace(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	l := create(t, top)
	must(t, l.Append(now, "one", nil))
	first := len(read(t, file(top, l, "transcript.jsonl")))
	must(t, l.Append(now, "two", nil))
	must(t, l.Append(now, "three", nil))
	whole := read(t, file(top, l, "transcript.jsonl"))
	for name, text := range map[string]string{
		"no JSON": whole[:first] + "x" + whole[first+1:], "a line is missing": whole[:first] + whole[strings.Index(whole, `{"time":"2026-11-30T12:00:00.007Z","seq":3`):],
		"empty line": whole[:first] + "\n" + whole[first:],
	} {
		must(t, os.WriteFile(file(top, l, "transcript.jsonl"), []byte(text), 0o600))
		d, err := transcript.Read(top, l.Run())
		e, _ := errors.AsType[*transcript.Error](err)
		if kind(err) != transcript.KindDamaged || e.Offset != int64(first) || len(d.Events) != 1 {
			t.Errorf("%s: %+v, %v", name, d, err)
		}
		if _, _, err := transcript.Open(top, l.Run(), nil); kind(err) != transcript.KindDamaged {
			t.Errorf("%s: open: %v", name, err)
		}
	}
}

func TestFolderOfRunsMustBeNoLink(t *testing.T) {
	t.Parallel()
	for _, link := range []string{".fiducial", ".fiducial/runs"} {
		top, out := t.TempDir(), t.TempDir()
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(top, link)), 0o700))
		must(t, os.Symlink(out, filepath.Join(top, link)))
		if _, err := transcript.Create(top, now, nil); kind(err) != transcript.KindUnsafe {
			t.Errorf("%s: %v", link, err)
		}
		if entries, err := os.ReadDir(out); err != nil || len(entries) > 0 {
			t.Errorf("%s: wrote outside: %v, %v", link, entries, err)
		}
	}
}

func TestAppendFromSeveralGoroutines(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	l := create(t, top)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 50 {
				if err := l.Append(now, "x", strings.Repeat("y", 500)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if d, err := transcript.Read(top, l.Run()); err != nil || len(d.Events) != 400 {
		t.Errorf("%d events, %v", len(d.Events), err)
	}
}

func TestChild(t *testing.T) {
	top := os.Getenv("CHILD_DIR")
	if top == "" {
		t.Skip("only as a child of TestDiskFull")
	}
	signal.Ignore(syscall.SIGXFSZ)
	must(t, syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 1000, Max: 1000}))
	l, err := transcript.Create(top, now, nil)
	must(t, err)
	must(t, l.Append(now, "one", strings.Repeat("x", 500)))
	must(t, l.WriteSummary(transcript.Summary{Request: "short"}))
	fmt.Println("big:", kind(l.Append(now, "two", strings.Repeat("x", 700))))
	fmt.Println("summary:", kind(l.WriteSummary(transcript.Summary{Request: "long", Detail: strings.Repeat("x", 2000)})))
	fmt.Println("small:", l.Append(now, "three", nil))
	must(t, l.Close())
}

func TestDiskFull(t *testing.T) {
	t.Parallel()
	bin, err := os.Executable()
	must(t, err)
	top := t.TempDir()
	cmd := exec.CommandContext(t.Context(), bin, "-test.run=^TestChild$", "-test.v")
	cmd.Env = append(os.Environ(), "CHILD_DIR="+top)
	out, err := cmd.CombinedOutput()
	want := fmt.Sprintf("big: %d\nsummary: %d\nsmall: <nil>\n", transcript.KindWrite, transcript.KindWrite)
	if err != nil || !strings.Contains(string(out), want) {
		t.Fatalf("%v\n%s", err, out)
	}
	ids, err := transcript.Runs(top)
	must(t, err)
	d, err := transcript.Read(top, ids[0])
	if err != nil || len(d.Events) != 2 || d.Torn != 0 || d.Events[1].Kind != "three" {
		t.Errorf("%+v, %v", d, err)
	}
	if s, err := transcript.ReadSummary(top, ids[0]); err != nil || !strings.HasPrefix(s, "# short\n") {
		t.Errorf("the earlier summary: %q, %v", s, err)
	}
}

func TestB63_Summary(t *testing.T) {
	t.Parallel()
	top := t.TempDir()
	l := create(t, top)
	if _, err := transcript.ReadSummary(top, l.Run()); kind(err) != transcript.KindNotFound {
		t.Errorf("before: %v", err)
	}
	must(t, l.WriteSummary(transcript.Summary{
		Request: "rename\nnet A", Run: l.Run(), Outcome: "done", Environment: []transcript.Field{{"Key", key()}}, Statistics: []transcript.Field{{"Turns", "3"}},
		Plan:  "1. look\n2. edit\n",
		Files: []transcript.File{{Path: "a `b`.kicad_sch", Change: "modified", Added: 2, Deleted: 1}, {Path: "new\nline", Change: "added", Binary: true}},
		Verification: []transcript.Verdict{
			{Check: "ERC", Result: transcript.Pass, Command: "kicad-cli sch erc x"}, {Check: "DRC", Result: transcript.NotRun, Detail: "no board\nat all"},
		},
		Decisions: []string{"kept A"}, Detail: "given secret",
	}))
	got, err := transcript.ReadSummary(top, l.Run())
	must(t, err)
	want := "# rename net A\n\nRun `" + l.Run() + "`: **done**\n" + `
## Environment

- Key: [masked]

## Run statistics

- Turns: 3

## Plan

1. look
2. edit

## Files touched

- ` + "`` a `b`.kicad_sch ``" + `: modified, +2 -1
- ` + "`\"new\\nline\"`" + `: added, binary

## Verification

- ERC: **PASS**, by ` + "`kicad-cli sch erc x`" + `
- DRC: **NOT RUN**
  no board
  at all

## Decisions

- kept A

## Open obligations

None.

## Detail

[masked]
`
	if got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"time":"2026-11-30T12:00:00.007Z","seq":1,"kind":"run-start"}` + "\n"))
	f.Add([]byte("{\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := transcript.Decode(strings.NewReader(string(b)))
		if err == nil && d.Size+d.Torn != int64(len(b)) {
			t.Errorf("%d + %d bytes of %d", d.Size, d.Torn, len(b))
		}
	})
}
