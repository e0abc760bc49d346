//go:build unix

// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/journal/postgres/postgrestest"
)

func newTeam(t *testing.T) (*team, *postgrestest.Server) {
	t.Helper()
	tm := newDesk(t)
	s, err := postgrestest.Start(t.Context(), t.Output())
	if errors.Is(err, postgrestest.ErrMissing) && os.Getenv(postgrestest.RequireEnv) != "1" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	u, err := url.Parse(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("postgres", "S3cretWord") // whom the server trusts in any case
	tm.env = append(tm.env, "FIDUCIAL_JOURNAL="+u.String())
	return tm, s
}

// Several clones work with one server: each sees the runs of the others and can take them back, and goes on only with
// its own. Another repository's runs come with --all. No password gets anywhere, and without the server nothing begins.
func TestTeamServer(t *testing.T) {
	tm, server := newTeam(t)
	dir := t.TempDir()
	a := tm.repository(filepath.Join(dir, "a"))
	b, c := filepath.Join(dir, "b"), tm.repository(filepath.Join(dir, "c"))
	tm.git(dir, "clone", "-q", a, b)

	out, _ := tm.run(0, a, "doctor")
	tm.want(out, "PostgreSQL, not made yet; the first run makes it")
	out, _ = tm.run(0, a, "do", "--json", "rename net STATUS to HEARTBEAT")
	var done struct{ Run, Commit string }
	if err := json.Unmarshal([]byte(out), &done); err != nil || done.Commit == "" {
		t.Fatalf("%v: %s", err, out)
	}
	if _, err := os.Stat(filepath.Join(a, ".fiducial", "journal.db")); err == nil {
		t.Error("there is a SQLite journal as well")
	}
	out, _ = tm.run(0, a, "doctor")
	tm.want(out, "PostgreSQL, its schema is this program's")
	out, _ = tm.run(0, a, "runs")
	tm.want(out, done.Run+"  done", "commit "+done.Commit[:12])
	if strings.Contains(out, "    in ") {
		t.Errorf("a run of this working tree is told to work elsewhere:\n%s", out)
	}

	// From the other clone.
	out, _ = tm.run(0, b, "runs")
	tm.want(out, done.Run+"  done", "rename net STATUS to HEARTBEAT", ":"+a, "5 turns", "commit "+done.Commit[:12])
	out, _ = tm.run(0, b, "show")
	tm.want(out, "works in", ":"+a, "beacon.kicad_sch", "DRC        before: 0 errors, 0 warnings; after: 0 errors, 0 warnings")
	out, _ = tm.run(0, b, "show", "--transcript", done.Run)
	tm.want(out, "settled", "rename_net", "note outcome")
	out, _ = tm.run(0, b, "show", "-f", "--json")
	lines := strings.Split(strings.TrimSpace(out), "\n")
	var last struct {
		Kind string
		Data struct{ State, Commit string }
	}
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &last); err != nil || last.Kind != "end" || last.Data.State != "done" || last.Data.Commit != done.Commit {
		t.Errorf("the last line is %+v, %v", last, err)
	}
	_, errOut := tm.run(2, b, "resume", done.Run)
	tm.want(errOut, "has ended (done)", "ask for the same here")
	_, errOut = tm.run(2, b, "undo", done.Run)
	tm.want(errOut, "is not in this repository", "git fetch")
	tm.git(b, "pull", "-q")
	tm.run(0, b, "undo", done.Run)
	out, _ = tm.run(0, b, "show", done.Run)
	tm.want(out, "undone     by commit")

	// From another repository.
	out, _ = tm.run(0, c, "runs")
	tm.want(out, "no runs in")
	_, errOut = tm.run(2, c, "show", done.Run)
	tm.want(errOut, "there is no run here yet")
	out, _ = tm.run(0, c, "runs", "--all", "--json")
	tm.want(out, done.Run, `"outcome": "done"`, done.Commit)
	out, _ = tm.run(0, c, "show", "--all", done.Run)
	tm.want(out, ": done")
	out, _ = tm.run(0, c, "journal", "prune", "--older-than", "1ms")
	tm.want(out, "0 runs deleted, 0 kept")

	// A shallow clone cannot tell whose runs its own are.
	shallow := filepath.Join(dir, "shallow")
	tm.git(dir, "clone", "-q", "--depth", "1", "file://"+a, shallow)
	_, errOut = tm.run(2, shallow, "do", "rename net VIN to SUPPLY")
	tm.want(errOut, "this clone is shallow", "git fetch --unshallow")

	// The server is away: nothing is begun, and what is here is still listed.
	if err := server.Halt(true); err != nil {
		t.Fatal(err)
	}
	before := tm.listing(c)
	out, errOut = tm.run(2, c, "do", "--json", "rename net VIN to SUPPLY")
	tm.want(errOut, "the journal on the server postgres://postgres@127.0.0.1:", "cannot be used", "see whether the server runs", "unset FIDUCIAL_JOURNAL")
	tm.want(out, `"exit_code": 2`)
	if after := tm.listing(c); !slices.Equal(before, after) {
		t.Errorf("files %q, were %q", after, before)
	}
	out, _ = tm.run(0, a, "runs")
	tm.want(out, "the journal cannot be read", done.Run+"  done")
	if err := server.Run(t.Context()); err != nil {
		t.Fatal(err)
	}

	if strings.Contains(tm.said.String(), "S3cretWord") {
		t.Error("the password was printed")
	}
	for _, d := range []string{a, b, c} {
		for _, name := range tm.listing(d) {
			if data, err := os.ReadFile(name); err == nil && bytes.Contains(data, []byte("S3cretWord")) {
				t.Errorf("the password stands in %s", name)
			}
		}
	}
}

// A run on a server is killed: another clone sees it running, then interrupted, and does not go on with it; a follower
// ends; its own clone goes on with it, as soon as the server lets go.
func TestTeamServer_Killed(t *testing.T) {
	tm, _ := newTeam(t)
	dir := t.TempDir()
	a := tm.repository(filepath.Join(dir, "a"))
	b := filepath.Join(dir, "b")
	tm.git(dir, "clone", "-q", a, b)
	hold := filepath.Join(dir, "hold")
	wrap := holding(t, dir, "pcb export", hold)

	run := tm.command(a, "do", "--kicad-cli", wrap, "rename net STATUS to HEARTBEAT")
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	await(t, hold+".here")
	out, _ := tm.run(0, b, "runs")
	tm.want(out, "  running", "it goes on now: process ", ":"+a)
	_, errOut := tm.run(2, b, "resume", "last")
	tm.want(errOut, "goes on now, in ", "fiducial show --follow")
	var shown bytes.Buffer
	follow := tm.command(b, "show", "--follow")
	follow.Stdout, follow.Stderr = &shown, &shown
	if err := follow.Start(); err != nil {
		t.Fatal(err)
	}
	if err := run.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = run.Wait() // it was killed
	if err := os.Remove(hold); err != nil {
		t.Fatal(err)
	}
	resumed := tm.command(a, "resume", "last", "--json") // waits for the lease
	var result bytes.Buffer
	resumed.Stdout, resumed.Stderr = &result, &result
	start := time.Now()
	if err := resumed.Run(); err != nil {
		t.Fatalf("%v\n%s", err, result.String())
	}
	t.Logf("the run goes on and ends %v after the kill", time.Since(start).Round(time.Second))
	tm.want(result.String(), `"outcome": "done"`)
	if err := follow.Wait(); err != nil {
		t.Errorf("the follower: %v", err)
	}
	tm.want(shown.String(), "turn 1: ", "rename_net", ": done, commit ")
	out, _ = tm.run(0, b, "runs")
	tm.want(out, "  done")
}
