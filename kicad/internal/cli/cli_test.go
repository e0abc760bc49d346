// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/sqlite"
	"github.com/fiducial-dev/fiducial/kicad/internal/board"
	"github.com/fiducial-dev/fiducial/kicad/internal/cli"
	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/internal/runs"
	"github.com/fiducial-dev/fiducial/task/workspace"
)

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"fiducial": func() {
			ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
			context.AfterFunc(ctx, stop)
			dir, err := os.Getwd()
			if err != nil {
				panic(err)
			}
			os.Exit(cli.Run(ctx, cli.Env{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Environ: os.Environ(), Dir: dir}, os.Args[1:]))
		},
	})
}

// TestScript runs the scripts that need no kicad-cli, or a faked one that is too old, hangs or crashes.
func TestScript(t *testing.T) { scripts(t, "testdata/script") }

// TestKiCad runs the scripts that the real kicad-cli judges.
func TestKiCad(t *testing.T) {
	kicadtest.CLI(t)
	scripts(t, "testdata/kicad")
}

func scripts(t *testing.T, dir string) {
	self, err := exec.LookPath("fiducial")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, testscript.Params{
		Dir: dir, RequireExplicitExec: true, RequireUniqueNames: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("BIN", filepath.Dir(self)) // a PATH with fiducial alone
			e.Setenv("HOME", e.WorkDir)
			for _, who := range []string{"GIT_AUTHOR", "GIT_COMMITTER"} {
				e.Setenv(who+"_NAME", "Ada")
				e.Setenv(who+"_EMAIL", "ada@example.org")
			}
			e.Setenv("GIT_CONFIG_NOSYSTEM", "1")
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"code": code, "board": writeBoard, "divider": divider, "replace": replace, "listing": listing,
			"waitfor": waitFor, "chop": chop, "nul": nul, "run": writeRun, "journal": writeJournal,
			"snapshot": takeSnapshot, "damage": damage,
		},
	})
}

// code runs a command and wants its exit code: code 2 fiducial check.
func code(ts *testscript.TestScript, _ bool, args []string) {
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		e, ok := errors.AsType[*exec.ExitError](err)
		if !ok {
			ts.Fatalf("%v", err)
		}
		got = e.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// writeBoard puts the bundled board into a folder.
func writeBoard(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(board.Write(ts.MkAbs(args[0])))
}

// divider puts a schematic with two errors into a folder: no power flag on VCC and GND.
func divider(ts *testscript.TestScript, _ bool, args []string) {
	dir := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(dir, 0o700))
	ts.Check(os.WriteFile(filepath.Join(dir, "p.kicad_pro"), []byte("{\n}\n"), 0o600))
	ts.Check(os.WriteFile(filepath.Join(dir, "p.kicad_sch"), []byte(kicadtest.Divider("p").String()), 0o600))
}

// replace replaces the only place of a text in a file.
func replace(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[0])
	if n := strings.Count(text, args[1]); n != 1 {
		ts.Fatalf("%s has %q %d times, want once", args[0], args[1], n)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(strings.Replace(text, args[1], args[2], 1)), 0o600))
}

// chop takes the last byte off a file.
func chop(ts *testscript.TestScript, _ bool, args []string) {
	text := ts.ReadFile(args[0])
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(text[:len(text)-1]), 0o600))
}

// damage changes a byte of the first place of a text in a file.
func damage(ts *testscript.TestScript, _ bool, args []string) {
	data := []byte(ts.ReadFile(args[0]))
	at := bytes.Index(data, []byte(args[1]))
	if at < 0 {
		ts.Fatalf("%s has no %q", args[0], args[1])
	}
	data[at] ^= 1
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), data, 0o600))
}

// nul puts a NUL byte behind a file.
func nul(ts *testscript.TestScript, _ bool, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), append([]byte(ts.ReadFile(args[0])), 0), 0o600))
}

// listing writes names, sizes and times of a folder's files to a file.
func listing(ts *testscript.TestScript, _ bool, args []string) {
	var b strings.Builder
	dir := ts.MkAbs(args[0])
	ts.Check(filepath.WalkDir(dir, func(name string, d os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		b.WriteString(name + " " + strconv.FormatInt(info.Size(), 10) + " " + info.ModTime().Format(time.RFC3339Nano) + "\n")
		return err
	}))
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(b.String()), 0o600))
}

// waitFor waits until a file is there.
func waitFor(ts *testscript.TestScript, _ bool, args []string) {
	for end := time.Now().Add(3 * time.Minute); time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		if _, err := os.Stat(ts.MkAbs(args[0])); err == nil {
			return
		}
	}
	ts.Fatalf("%s never came", args[0])
}

// writeRun writes the folder of a run: run DIR ID OUTCOME.
func writeRun(ts *testscript.TestScript, _ bool, args []string) {
	start := time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC)
	m := runs.Meta{
		ID: args[1], Request: "rename net STATUS to HEARTBEAT", Model: "builtin", Project: "beacon.kicad_pro",
		Started: start, Outcome: runs.Outcome(args[2]), Turns: 7, MaxTurns: 40,
	}
	if m.Outcome != runs.Going {
		m.Ended, m.Exit = start.Add(9300*time.Millisecond), args[2]
	}
	if m.Outcome == runs.Done {
		m.Commit, m.Files = "0a1b2c3d4e5f60718293a4b5c6d7e8f901234567", []string{"beacon.kicad_sch", "mcu.kicad_sch"}
		m.Findings.Before.ERC, m.Findings.After.ERC = &runs.Count{Warnings: 1}, &runs.Count{}
	}
	if m.Outcome == runs.Failed {
		m.Reason, m.Preserved = "stalled: three replies without a tool call\x1b[2J", "stash@{0}"
	}
	ts.Check(runs.Write(ts.MkAbs(args[0]), m))
}

// writeJournal puts a run into the journal: journal DIR ID ended|open|held|new.
func writeJournal(ts *testscript.TestScript, _ bool, args []string) {
	ctx := context.Background()
	j, err := sqlite.Open(ctx, runs.Journal(ts.MkAbs(args[0])), sqlite.Options{})
	ts.Check(err)
	ts.Defer(func() { _ = j.Close() })
	ts.Check(j.Create(ctx, args[1], journal.Header{Rules: 1, Labels: map[string]string{"request": "set R1 to 10k", "model": "builtin"}}))
	if args[2] == "new" {
		ts.Check(j.Close())
		return
	}
	l, err := j.Acquire(ctx, args[1], "process 4711 on bench")
	ts.Check(err)
	mark := journal.Mark{Phase: "generating", Pending: 1}
	if args[2] == "ended" {
		mark = journal.Mark{Phase: "finished", Ended: true}
	}
	ts.Check(l.Append(ctx, mark, journal.Note{Kind: "test", Data: []byte(`{"n":1}`)}))
	if args[2] != "held" {
		ts.Check(errors.Join(l.Release(ctx), j.Close()))
	}
}

// takeSnapshot leaves what a killed run leaves in git: snapshot DIR ID.
func takeSnapshot(ts *testscript.TestScript, _ bool, args []string) {
	ctx := context.Background()
	repo, err := workspace.Open(ctx, ts.MkAbs(args[0]), workspace.Options{})
	ts.Check(err)
	_, err = repo.Snapshot(ctx, args[1], time.Date(2026, 11, 30, 8, 0, 0, 0, time.UTC))
	ts.Check(err)
}
