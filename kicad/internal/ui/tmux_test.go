// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/kicad/internal/ui"
)

// TestMain makes the test binary the program that runs in the terminal.
func TestMain(m *testing.M) {
	if dir, ok := os.LookupEnv("FIDUCIAL_UI_SHOW"); ok {
		show(dir)
		return
	}
	os.Exit(m.Run())
}

// show goes on when the test makes a file in dir.
func show(dir string) {
	u := ui.New(ui.Options{
		Out: os.Stdout, In: os.Stdin, Terminal: true, Environ: os.Environ(), Frame: 20 * time.Millisecond,
		Width: func() int { return 60 },
	})
	wait := func(name string) {
		for {
			if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	u.Status(ui.Status{Turn: 1, Budget: 40, TokensIn: 12_345, TokensOut: 300, Now: "run_erc", Since: time.Now()})
	wait("line")
	u.Line("edited mcu.kicad_sch \x1b[2J\x1b[H")
	u.Status(ui.Status{Turn: 2, Budget: 40, Now: "run_drc " + strings.Repeat("x", 200)})
	wait("ask")
	n, ok := u.Ask(context.Background(), "the budget is used up", 20)
	u.Line("answer %d %v", n, ok)
	u.Close()
	fmt.Println("end")
	wait("end")
}

// TestTerminal watches a real terminal: the status line turns and keeps its place, lines scroll above it, a text
// cannot clear the screen, a question waits for its answer, and nothing is left at the end.
func TestTerminal(t *testing.T) {
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		t.Skip("no tmux")
	}
	dir := t.TempDir()
	run := func(args ...string) string {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), tmux, append([]string{"-S", filepath.Join(dir, "s"), "-f", "/dev/null"}, args...)...)
		cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("tmux %v: %v: %s", args, err, out)
		}
		return string(out)
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	run("new-session", "-d", "-x", "60", "-y", "12", "-e", "FIDUCIAL_UI_SHOW="+dir, self)
	defer run("kill-server")
	screen := func() string { return strings.TrimRight(run("capture-pane", "-p"), "\n") }
	until := func(want string) string {
		t.Helper()
		re := regexp.MustCompile(want)
		var s string
		for end := time.Now().Add(20 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
			if s = screen(); re.MatchString(s) {
				return s
			}
		}
		t.Fatalf("the screen never showed %s; it shows\n%s", want, s)
		return ""
	}
	signal := func(name string) {
		if err := os.WriteFile(filepath.Join(dir, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, frame := range []string{`\|`, `/`, `-`, `\\`} { // it turns
		until(`^` + frame + `  turn 1/40  12\.3k in, 300 out  run_erc \d+s$`)
	}
	until(`run_erc [1-9]\d*s$`) // and keeps time
	signal("line")
	until(`^edited mcu\.kicad_sch \\x1b\[2J\\x1b\[H\n.  turn 2/40  run_drc x{37}$`)
	signal("ask")
	until(`^edited .*\nthe budget is used up\n20 more\? \[y/N or a number\]$`)
	run("send-keys", "7", "Enter")
	until(`number\] 7\nanswer 7 true\nend$`)
	signal("end")
}
