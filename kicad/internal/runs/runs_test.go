// SPDX-License-Identifier: Apache-2.0

package runs_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/kicad/findings"
	"github.com/fiducial-dev/fiducial/kicad/internal/runs"
	"github.com/fiducial-dev/fiducial/llm"
)

func meta(id string) runs.Meta {
	yes := true
	m := runs.Meta{
		ID: id, Request: "rename net STATUS to HEARTBEAT", Model: "builtin", Project: "beacon.kicad_pro",
		Started: time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC), Ended: time.Date(2026, 11, 30, 8, 0, 9, 0, time.UTC),
		Outcome: runs.Done, Exit: "done", Commit: "0a1b2c3d", Restored: &yes, Files: []string{"beacon.kicad_sch"},
		Turns: 7, MaxTurns: 40, Usage: llm.Usage{Input: llm.N(1200), Output: llm.N(0)},
	}
	m.Findings.Before.ERC = &runs.Count{Warnings: 2, Library: 3}
	return m
}

func TestWriteThenRead(t *testing.T) {
	top := t.TempDir()
	want := meta("20261130-080000-7f3a")
	first := want
	first.Outcome, first.Ended = runs.Going, time.Time{}
	for _, m := range []runs.Meta{first, want} {
		if err := runs.Write(top, m); err != nil {
			t.Fatal(err)
		}
	}
	got, err := runs.Read(top, want.ID)
	if err != nil {
		t.Fatal(err)
	}
	want.Version = runs.Version
	if d := cmp.Diff(want, got, cmp.Comparer(func(a, b llm.Count) bool { return a == b })); d != "" {
		t.Errorf("Read (-want +got)\n%s", d)
	}
	left, err := os.ReadDir(filepath.Join(runs.Folder(top), want.ID))
	if err != nil || len(left) != 1 {
		t.Errorf("the folder holds %v, %v, want run.json alone", left, err)
	}
}

func TestReadRefuses(t *testing.T) {
	top := t.TempDir()
	put := func(id, text string) {
		t.Helper()
		dir := filepath.Join(runs.Folder(top), id)
		if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, runs.MetaFile), []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	put("torn", `{"version":1,"id":"torn"`)
	put("newer", `{"version":9,"id":"newer"}`)
	put("moved", `{"version":1,"id":"other"}`)
	for id, words := range map[string]string{"torn": "unexpected end of JSON", "newer": "use a newer one", "moved": `of run "other"`} {
		_, err := runs.Read(top, id)
		if _, ok := errors.AsType[*runs.DamageError](err); !ok || !strings.Contains(err.Error(), words) {
			t.Errorf("Read(%s) = %v, want damage with %q", id, err, words)
		}
	}
	if _, err := runs.Read(top, "none"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Read(none) = %v, want that it does not exist", err)
	}
	for _, id := range []string{"", "..", "../x", "a/b", `a\b`, ".hidden"} {
		if _, err := runs.Read(top, id); !errors.Is(err, runs.ErrBadID) {
			t.Errorf("Read(%q) = %v, want ErrBadID", id, err)
		}
		if err := runs.Write(top, runs.Meta{ID: id}); !errors.Is(err, runs.ErrBadID) {
			t.Errorf("Write(%q) = %v, want ErrBadID", id, err)
		}
	}
}

// TestWriteKeepsTheOldOne holds that a run.json that cannot be replaced is still the old one.
func TestWriteKeepsTheOldOne(t *testing.T) {
	top := t.TempDir()
	if err := runs.Write(top, meta("a")); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(runs.Folder(top), "a", runs.MetaFile+".new"), 0o700); err != nil { // in the way
		t.Fatal(err)
	}
	m := meta("a")
	m.Outcome = runs.Failed
	if err := runs.Write(top, m); err == nil {
		t.Fatal("Write without a place for the new file = nil")
	}
	if got, err := runs.Read(top, "a"); err != nil || got.Outcome != runs.Done {
		t.Errorf("Read = %v, %v, want the old one, done", got.Outcome, err)
	}
}

// TestNothingThroughLinks holds that a repository which brings its own .fiducial as a link leads nothing out of it.
func TestNothingThroughLinks(t *testing.T) {
	top, out := t.TempDir(), t.TempDir()
	if err := os.Symlink(out, filepath.Join(top, ".fiducial")); err != nil {
		t.Skip(err)
	}
	if err := runs.Write(top, meta("a")); err == nil {
		t.Error("Write through a link = nil")
	}
	if left, err := os.ReadDir(out); err != nil || len(left) > 0 {
		t.Errorf("outside stands %v, %v, want nothing", left, err)
	}
	if err := runs.Write(out, meta("b")); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(filepath.Join(out, ".fiducial", "runs"), filepath.Join(out, "runs")); err != nil {
		t.Fatal(err)
	}
	if m, err := runs.Read(top, "b"); err == nil {
		t.Errorf("Read through a link = %+v", m)
	}
}

func TestList(t *testing.T) {
	top := t.TempDir()
	if list, err := runs.List(top); err != nil || len(list) != 0 {
		t.Fatalf("List without runs = %v, %v, want none", list, err)
	}
	for _, id := range []string{"20261129-080000-0001", "20261130-080000-0002"} {
		if err := runs.Write(top, meta(id)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.MkdirAll(filepath.Join(runs.Folder(top), "20261201-080000-0003"), 0o700); err != nil {
		t.Fatal(err)
	}
	list, err := runs.List(top)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range list {
		got = append(got, e.ID)
		if e.Meta.ID != e.ID || (e.Err != nil) != strings.HasPrefix(e.ID, "202612") {
			t.Errorf("%s: meta of %q, error %v", e.ID, e.Meta.ID, e.Err)
		}
	}
	if d := cmp.Diff([]string{"20261201-080000-0003", "20261130-080000-0002", "20261129-080000-0001"}, got); d != "" {
		t.Errorf("List (-want +got)\n%s", d)
	}
}

func TestCountOf(t *testing.T) {
	got := runs.CountOf(findings.Report{Findings: []findings.Finding{
		{Type: "pin_not_connected", Severity: findings.Error},
		{Type: "endpoint_off_grid", Severity: findings.Warning},
		{Type: "pin_not_driven", Severity: findings.Error, Excluded: true},
		{Type: "lib_symbol_issues", Severity: findings.Warning},
	}})
	if want := (runs.Count{Errors: 1, Warnings: 1, Excluded: 1, Library: 1}); *got != want || got.Total() != 2 {
		t.Errorf("CountOf = %+v, total %d, want %+v, 2", *got, got.Total(), want)
	}
}
