// SPDX-License-Identifier: Apache-2.0

package ui_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fiducial-dev/fiducial/kicad/internal/ui"
)

func TestClean(t *testing.T) {
	for in, want := range map[string]string{
		"plain ä 漢 👍\n\tx":                 "plain ä 漢 👍\n\tx",
		"a\x1b[2Jb":                        `a\x1b[2Jb`,
		"\x1b]0;title\x07":                 `\x1b]0;title\x07`,
		"a\rPASS":                          `a\x0dPASS`,
		"line\r\nnext":                     "line\nnext",
		"\u009b31m":                        `\u009b31m`,
		"\x9b31m\xff":                      `\x9b31m\xff`,
		"a\u202eb\u2066c\u200fd":           `a\u202eb\u2066c\u200fd`,
		"\b\b\b\x7f":                       `\x08\x08\x08\x7f`,
		"\ufeffx\u2028y\U000e0041":         `\ufeffx\u2028y\ue0041`,
		"woman \U0001f469\u200d\U0001f680": "woman \U0001f469\u200d\U0001f680",
	} {
		if got := ui.Clean(in); got != want {
			t.Errorf("Clean(%q) = %q, want %q", in, got, want)
		}
	}
	if got := ui.CleanLine("a\nb\tc"); got != `a\nb c` {
		t.Errorf("CleanLine = %q", got)
	}
}

func FuzzClean(f *testing.F) {
	f.Add("a\x1b[31m\xff\u202e")
	f.Fuzz(func(t *testing.T, s string) {
		for _, r := range ui.Clean(s) {
			if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 || r == '\u202e' {
				t.Fatalf("Clean(%q) lets %U through", s, r)
			}
		}
	})
}

// all makes a UI say everything it can.
func all(u *ui.UI) {
	u.Heading("the board")
	u.Status(ui.Status{Turn: 3, Budget: 40, TokensIn: 12_345, TokensOut: 1200, Cached: 10_000, Now: "run_erc\x1b[2J"})
	u.Line("first\nPASS    ERC: forged\x1b[31m")
	u.Warn("careful")
	u.Verdict(ui.Verdict{Status: "FAIL", Check: "ERC", Reason: "1 error, 0 warnings", Command: "kicad-cli sch erc x", Seconds: 0.44})
	u.Verdict(ui.Verdict{Status: "NOT RUN", Check: "DRC", Reason: "no board"})
	u.Diff("--- a\n+++ b\n@@ -1 +1 @@\n-old\n+new\x1b[0m\n same\n")
	u.Status(ui.Status{Turn: 4, Budget: 40, Now: "edit_file"})
}

const plain = `the board
turn 3/40: run_erc\x1b[2J  (12.3k in, 81% cached, 1.2k out)
first
    PASS    ERC: forged\x1b[31m
warning: careful
FAIL    ERC: 1 error, 0 warnings
        kicad-cli sch erc x  (0.4 s)
NOT RUN DRC: no board
    --- a
    +++ b
    @@ -1 +1 @@
    -old
    +new\x1b[0m
     same
turn 4/40: edit_file
`

// TestPlain holds the lines without a terminal, with --plain, and on a dumb one, byte for byte: no escape code.
func TestPlain(t *testing.T) {
	for name, opts := range map[string]ui.Options{
		"piped":   {Environ: []string{"TERM=xterm-256color"}},
		"--plain": {Terminal: true, Plain: true, Environ: []string{"TERM=xterm-256color"}},
		"dumb":    {Terminal: true, Environ: []string{"TERM=dumb"}},
		"no TERM": {Terminal: true},
	} {
		t.Run(name, func(t *testing.T) {
			var out bytes.Buffer
			opts.Out = &out
			u := ui.New(opts)
			all(u)
			if err := u.Close(); err != nil {
				t.Fatal(err)
			}
			if got := out.String(); got != plain {
				t.Errorf("got\n%s\nwant\n%s", got, plain)
			}
		})
	}
}

func TestJSON(t *testing.T) {
	var out, errs bytes.Buffer
	u := ui.New(ui.Options{Out: &out, Err: &errs, Terminal: true, JSON: true, Environ: []string{"TERM=xterm"}})
	all(u)
	if err := errors.Join(u.Object(map[string]int{"n": 1}), u.Close()); err != nil {
		t.Fatal(err)
	}
	var v map[string]int
	if err := json.Unmarshal(out.Bytes(), &v); err != nil || v["n"] != 1 {
		t.Errorf("stdout = %q, %v, want one object", out.String(), err)
	}
	if errs.String() != plain {
		t.Errorf("stderr = %q, want the plain lines", errs.String())
	}
}

// TestColour holds that a terminal gets colours unless NO_COLOR is set, and that what comes from outside has none.
func TestColour(t *testing.T) {
	for env, want := range map[string]bool{"NO_COLOR=": true, "NO_COLOR=1": false, "NO_COLOR=yes": false} {
		var out bytes.Buffer
		u := ui.New(ui.Options{Out: &out, Terminal: true, Environ: []string{"TERM=xterm-256color", env}})
		u.Verdict(ui.Verdict{Status: "PASS", Check: "ERC", Reason: "\x1b[41mno finding"})
		u.Close()
		if got := strings.Contains(out.String(), "\x1b[1;32m"); got != want || strings.Contains(out.String(), "\x1b[41m") {
			t.Errorf("%s: %q, want colours: %v", env, out.String(), want)
		}
	}
}

// TestStatusLineFits holds that the line is never wider than the terminal, and is erased before other lines.
func TestStatusLineFits(t *testing.T) {
	var out bytes.Buffer
	u := ui.New(ui.Options{
		Out: &out, Terminal: true, Width: func() int { return 30 }, Frame: time.Hour,
		Environ: []string{"TERM=xterm", "NO_COLOR=1"},
	})
	u.Status(ui.Status{Turn: 3, Budget: 40, Now: strings.Repeat("漢", 40)})
	u.Line("a line")
	if err := u.Close(); err != nil {
		t.Fatal(err)
	}
	// 29 columns: "|  turn 3/40  " takes 14, seven wide characters 14 more.
	status := "\r|  turn 3/40  " + strings.Repeat("漢", 7) + "\x1b[K"
	if want := status + "\r\x1b[2Ka line\n" + status + "\r\x1b[2K"; out.String() != want {
		t.Errorf("got  %q\nwant %q", out.String(), want)
	}
}

// TestHeartbeat is B-30: a line each interval while one thing goes on, and none before.
func TestHeartbeat(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out locked
		u := ui.New(ui.Options{Out: &out, Heartbeat: 30 * time.Second})
		u.Status(ui.Status{Turn: 1, Now: "asking the model", Since: time.Now()})
		time.Sleep(29 * time.Second)
		synctest.Wait()
		if got := out.String(); got != "turn 1: asking the model\n" {
			t.Errorf("before the interval: %q", got)
		}
		u.Status(ui.Status{Turn: 1, Now: "asking the model", Since: time.Now().Add(-29 * time.Second), Streamed: 1500})
		time.Sleep(34 * time.Second)
		synctest.Wait()
		u.Close()
		if got, want := out.String(), "turn 1: asking the model\nstill asking the model, 30s, 1.5k characters so far\nstill asking the model, 1m0s, 1.5k characters so far\n"; got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

// TestAsk is B-20 to B-23 at the terminal: default no, yes is the offer, a number is itself.
func TestAsk(t *testing.T) {
	for in, want := range map[string]int{
		"\n": 0, "n\n": 0, "No\n": 0, "y\n": 20, "YES\n": 20, "7\n": 7, "0\n": 0, "-3\n": 0, "": 0, "7": 0,
		"what\n1.5\n5\n": 5, "what\nwhat\nwhat\n9\n": 0,
	} {
		r, w, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		w.WriteString(in)
		w.Close()
		var out bytes.Buffer
		u := ui.New(ui.Options{Out: &out, In: r, Terminal: true, Environ: []string{"TERM=xterm"}})
		got, ok := u.Ask(t.Context(), "40 turns are used.\x1b[2J", 20)
		if got != want || ok != (want > 0) {
			t.Errorf("Ask with %q = %d, %v, want %d", in, got, ok, want)
		}
		if !strings.Contains(out.String(), "40 turns are used.\\x1b[2J\n20 more? [y/N or a number] ") {
			t.Errorf("the question reads %q", out.String())
		}
		u.Close()
		r.Close()
	}
	u := ui.New(ui.Options{Out: new(bytes.Buffer)})
	if n, ok := u.Ask(t.Context(), "?", 3); ok || n != 0 || u.CanAsk() {
		t.Errorf("Ask without a terminal = %d, %v, want no", n, ok)
	}
}

// TestAskIsCancelled holds that Ctrl-C ends a question that nobody answers.
func TestAskIsCancelled(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	u := ui.New(ui.Options{Out: new(bytes.Buffer), In: r})
	time.AfterFunc(20*time.Millisecond, cancel)
	if n, ok := u.Ask(ctx, "more?", 20); ok || n != 0 {
		t.Errorf("Ask = %d, %v, want no", n, ok)
	}
	if err := u.Close(); err != nil {
		t.Error(err)
	}
}

func TestCloseTellsOfWrites(t *testing.T) {
	u := ui.New(ui.Options{Out: full{}})
	u.Line("x")
	if err := u.Close(); !errors.Is(err, errFull) {
		t.Errorf("Close = %v, want %v", err, errFull)
	}
}

var errFull = errors.New("no space left on device")

type full struct{}

func (full) Write([]byte) (int, error) { return 0, errFull }

type locked struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (l *locked) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *locked) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// What is masked is masked in every way of writing, also where a style begins or a line is drawn again (B-64).
func TestUI_Mask(t *testing.T) {
	secret := "sk-ant-api03-" + strings.Repeat("aB3", 12)
	hide := func(s string) string { return strings.ReplaceAll(s, secret, "[masked]") }
	for _, terminal := range []bool{false, true} {
		var out bytes.Buffer
		u := ui.New(ui.Options{Out: &out, Terminal: terminal, Environ: []string{"TERM=xterm"}, Mask: hide, Frame: time.Hour})
		u.Status(ui.Status{Now: secret})
		u.Line("%s", secret)
		u.Warn("%s", secret)
		u.Heading("%s", secret)
		u.Diff("+" + secret)
		u.Verdict(ui.Verdict{Status: "FAIL", Check: secret, Reason: secret, Command: secret})
		if err := errors.Join(u.Object(map[string]string{"a": secret}), u.ObjectLine([]string{secret}), u.Close()); err != nil {
			t.Fatal(err)
		}
		if got := out.String(); strings.Contains(got, secret) || strings.Count(got, "[masked]") < 9 {
			t.Errorf("terminal %v:\n%s", terminal, got)
		}
	}
}
