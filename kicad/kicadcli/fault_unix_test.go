//go:build unix

// SPDX-License-Identifier: Apache-2.0

package kicadcli_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
)

// stub is a kicad-cli that runs a piece of shell before the real one; the file log counts its runs.
func stub(t *testing.T, first string) (cli, log string) {
	t.Helper()
	dir := t.TempDir()
	cli, log = filepath.Join(dir, "kicad-cli"), filepath.Join(dir, "log")
	text := "#!/bin/sh\necho x >>" + log + "\n" + first + "\nexec " + kicadtest.CLI(t) + " \"$@\"\n"
	if err := os.WriteFile(cli, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
	return cli, log
}

// writes begins a stub that writes something of its own instead of the report.
const writes = `for a; do [ "$p" = -o ] && o=$a; p=$a; done; `

// What the computer is to blame for is a fault, by its reason, and is tried twice; what the design is to blame for is none.
func TestFault(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		first string
		kind  kicadcli.Kind
		says  string // in the verdict's error
		fault bool
		runs  int
	}{
		"killed":                 {"kill -KILL $$", kicadcli.Crashed, "killed from outside", true, 2},
		"terminated":             {"kill -TERM $$", kicadcli.Crashed, "killed from outside", true, 2},
		"no output":              {"echo the sky fell >&2; exit 0", kicadcli.NoReport, "left no output", true, 2},
		"libraries missing":      {"exit 127", kicadcli.BadOutput, "unexpected exit code", true, 2},
		"slow":                   {"sleep 60", kicadcli.Timeout, "no answer within", true, 1},
		"crash":                  {"kill -SEGV $$", kicadcli.Crashed, "crashed by signal segmentation fault", true, 2},
		"flood":                  {"exec yes aaaa", kicadcli.BadOutput, "more than 64 MiB, and was killed", true, 2},
		"flood of stderr":        {"exec yes aaaa >&2", kicadcli.BadOutput, "more than 64 MiB, and was killed", true, 2},
		"no JSON":                {writes + "echo nonsense >$o; exit 0", kicadcli.BadOutput, "the report cannot be read", true, 1},
		"large report":           {writes + "truncate -s 300M $o; exit 0", kicadcli.BadOutput, "more than 256 MiB, and is not read", true, 1},
		"report that is a pipe":  {writes + "mkfifo $o; exit 0", kicadcli.NoReport, "left no output", false, 1},
		"design that won't load": {"exit 3", kicadcli.NotLoaded, "could not be loaded", false, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cli, log := stub(t, tt.first)
			opts := kicadcli.Options{Path: cli}
			if tt.kind == kicadcli.Timeout {
				opts.Limit = 300 * time.Millisecond
			}
			r := newRunner(t, opts)
			dir := project(t, map[string]string{"p.kicad_sch": kicadtest.Divider("p").String(), "p.kicad_pcb": kicadtest.Board})
			v, err := r.DRC(t.Context(), kicadcli.At(filepath.Join(dir, "p.kicad_pcb")))
			if v.Status != kicadcli.NotRun || !kicadcli.IsKind(err, tt.kind) || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%s, %v", v.Status, err)
			}
			for _, bad := range []string{"no such file", "lib_symbols"} { // B-108; and that is about ERC
				if strings.Contains(err.Error(), bad) {
					t.Errorf("the error tells %q: %v", bad, err)
				}
			}
			if got := r.Fault(); got != nil != tt.fault {
				t.Errorf("fault %v", got)
			}
			if runs, _ := os.ReadFile(log); strings.Count(string(runs), "x") != tt.runs {
				t.Errorf("%d runs, want %d", strings.Count(string(runs), "x"), tt.runs)
			}
		})
	}
}

// A fault that passes is none: the second try counts, and so does a later run of the same command.
func TestFault_Passes(t *testing.T) {
	t.Parallel()
	on := filepath.Join(t.TempDir(), "on")
	cli, _ := stub(t, `if [ -e `+on+` ]; then n=$(cat `+on+`); rm `+on+`; [ "$n" = 2 ] && echo 1 >`+on+`; kill -KILL $$; fi`)
	r := newRunner(t, kicadcli.Options{Path: cli})
	dir := project(t, map[string]string{"p.kicad_sch": kicadtest.Divider("p").String()})
	for times, fault := range map[string]bool{"1": false, "2": true} {
		if err := os.WriteFile(on, []byte(times), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := r.Probe(t.Context(), kicadcli.At(filepath.Join(dir, "p.kicad_sch"))); err != nil {
			t.Fatal(err)
		}
		if got := r.Fault(); got != nil != fault {
			t.Errorf("killed %s times: fault %v", times, got)
		}
		if _, err := r.Probe(t.Context(), kicadcli.At(filepath.Join(dir, "p.kicad_sch"))); err != nil || r.Fault() != nil {
			t.Errorf("afterwards: %v, fault %v", err, r.Fault())
		}
	}
}

// A crash is a fault only of a kicad-cli that has not answered yet: after an answer it comes from what was edited.
func TestFault_CrashAfterAnswer(t *testing.T) {
	t.Parallel()
	on := filepath.Join(t.TempDir(), "on")
	cli, log := stub(t, `[ -e `+on+` ] && kill -SEGV $$`)
	r := newRunner(t, kicadcli.Options{Path: cli})
	dir := project(t, map[string]string{"p.kicad_sch": kicadtest.Divider("p").String()})
	probe := func() kicadcli.Probe {
		t.Helper()
		p, err := r.Probe(t.Context(), kicadcli.At(filepath.Join(dir, "p.kicad_sch")))
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if p := probe(); !p.Loads {
		t.Fatalf("at the start: %s", p.Summary())
	}
	if err := os.WriteFile(on, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if p := probe(); !p.Crashed || r.Fault() != nil {
		t.Errorf("crashed %v, fault %v", p.Crashed, r.Fault())
	}
	if runs, _ := os.ReadFile(log); strings.Count(string(runs), "x") != 2 {
		t.Errorf("%d runs, want 2: a crash that the design is to blame for is tried once", strings.Count(string(runs), "x"))
	}
	// Of another command nothing was heard yet.
	if _, err := r.ERC(t.Context(), kicadcli.At(filepath.Join(dir, "p.kicad_sch"))); !kicadcli.IsKind(err, kicadcli.Crashed) {
		t.Errorf("ERC: %v", err)
	}
	if err := r.Fault(); !kicadcli.IsKind(err, kicadcli.Crashed) || !strings.Contains(err.Error(), "open the design in KiCad") {
		t.Errorf("fault %v", err)
	}
	if err := os.Remove(on); err != nil {
		t.Fatal(err)
	}
	if _, err := r.ERC(t.Context(), kicadcli.At(filepath.Join(dir, "p.kicad_sch"))); err != nil || r.Fault() != nil {
		t.Errorf("afterwards: %v, fault %v", err, r.Fault())
	}
}

// The words about versions name what is supported.
func TestNew_Words(t *testing.T) {
	_, err := kicadcli.New(kicadcli.Options{Path: "/nowhere/kicad-cli"})
	if !kicadcli.IsKind(err, kicadcli.NotFound) || !strings.Contains(err.Error(), "KiCad 8 or newer") {
		t.Errorf("got %v", err)
	}
	cli, _ := stub(t, "echo 7.0.11; exit 0")
	t.Run("nowhere in PATH", func(t *testing.T) {
		t.Setenv("PATH", t.TempDir())
		_, err := kicadcli.New(kicadcli.Options{TempDir: t.TempDir()})
		if runtime.GOOS == "darwin" && err == nil {
			t.Skip("KiCad is in its usual place here")
		}
		if !kicadcli.IsKind(err, kicadcli.NotFound) || !strings.Contains(err.Error(), "PATH") || !strings.Contains(err.Error(), "KiCad 8 or newer") {
			t.Errorf("got %v", err)
		}
	})
	if _, err := newRunner(t, kicadcli.Options{Path: cli}).Version(t.Context()); !kicadcli.IsKind(err, kicadcli.TooOld) || !strings.Contains(err.Error(), "KiCad 8 or newer") {
		t.Errorf("got %v", err)
	}
}

// TestMain is also the process that is killed in TestSweep.
func TestMain(m *testing.M) {
	if temp := os.Getenv("FIDUCIAL_TEST_SWEEP"); temp != "" {
		r, err := kicadcli.New(kicadcli.Options{Path: "/bin/sh", TempDir: temp})
		fmt.Println("ready", r != nil, err)
		time.Sleep(time.Minute)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// A process that is killed leaves its folder, and the next one to start removes it; those of processes that live stay,
// and so does what is not ours.
func TestSweep(t *testing.T) {
	temp := t.TempDir()
	start := func() *exec.Cmd {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), "FIDUCIAL_TEST_SWEEP="+temp)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "ready true <nil>\n" {
			t.Fatalf("%q, %v", line, err)
		}
		return cmd
	}
	names := func() (list []string) {
		entries, err := os.ReadDir(temp)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			list = append(list, e.Name())
		}
		return list
	}
	killed := start()
	dead := names()
	if len(dead) != 1 {
		t.Fatalf("folders %q", dead)
	}
	alive := start()
	if got := names(); len(got) != 2 {
		t.Fatalf("the folder of a process that lives was removed: %q", got)
	}
	_ = killed.Process.Kill()
	_ = killed.Wait()
	old := time.Now().Add(-48 * time.Hour)
	for name, at := range map[string]time.Time{"fiducial-kicad-young": time.Now(), "fiducial-kicad-old": old, "fiducial-other": old} {
		dir := filepath.Join(temp, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.Chtimes(dir, at, at); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("fiducial-other", filepath.Join(temp, "fiducial-kicad-link")); err != nil {
		t.Fatal(err)
	}
	r, err := kicadcli.New(kicadcli.Options{Path: "/bin/sh", TempDir: temp})
	if err != nil {
		t.Fatal(err)
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	got := strings.Join(names(), " ")
	if strings.Contains(got, dead[0]) || strings.Contains(got, "fiducial-kicad-old") {
		t.Errorf("left %s, and %s is of a process that was killed", got, dead[0])
	}
	for _, want := range []string{"fiducial-kicad-young", "fiducial-other", "fiducial-kicad-link"} {
		if !strings.Contains(got, want) {
			t.Errorf("left %s, without %s", got, want)
		}
	}
	if len(names()) != 4 {
		t.Errorf("left %s, want the folder of the process that lives as well", got)
	}
	_ = alive.Process.Kill()
	_ = alive.Wait()
}
