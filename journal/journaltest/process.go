// SPDX-License-Identifier: Apache-2.0

package journaltest

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
)

// ChildEnv names the environment variable that tells a test binary that it is a
// second process of the suite, and its part; see [Child].
const ChildEnv = "FIDUCIAL_JOURNALTEST"

// Child plays the part of a second process and returns what it exits with. It
// reads in and answers on out.
func Child(ctx context.Context, s Store, part string, in io.Reader, out io.Writer) int {
	what, folder, _ := strings.Cut(part, ":")
	if err := s.child(ctx, what, folder, in, out); err != nil {
		fmt.Fprintln(out, "error", err)
		return 1
	}
	return 0
}

func (s Store) child(ctx context.Context, what, folder string, in io.Reader, out io.Writer) error {
	j, err := s.Open(folder)
	if err != nil {
		return err
	}
	switch what {
	case "write": // appends until it is killed
		return writeOn(ctx, j, out)
	case "hold": // says whether it got the run, and goes on at each line that it reads
		return hold(ctx, j, s.patience(), in, out)
	case "fill": // appends until files may not grow, then once more
		return fillChild(ctx, j, out)
	}
	return fmt.Errorf("unknown part %q", what)
}

// writeOn appends in groups of one to three and tells each that was acknowledged;
// some are large, some take an offer.
func writeOn(ctx context.Context, j journal.Journal, out io.Writer) error {
	l, err := j.Acquire(ctx, "r", "writer")
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "at", l.Head())
	for i := int(l.Head()); ; i = int(l.Head()) {
		bodies := []journal.Body{note(i + 1)}
		for len(bodies) < 1+i%3 {
			bodies = append(bodies, note(i+1+len(bodies)))
		}
		if i%7 == 0 {
			key := fmt.Sprint("k", i)
			if err := j.Offer(ctx, "r", key, llm.UserText(strings.Repeat("o", i%2*80_000))); err != nil {
				return err
			}
			fmt.Fprintln(out, "offer", key)
		}
		if err := l.Append(ctx, journal.Mark{Phase: "busy"}, bodies...); err != nil {
			return err
		}
		fmt.Fprintln(out, "ack", l.Head())
	}
}

func hold(ctx context.Context, j journal.Journal, patience time.Duration, in io.Reader, out io.Writer) error {
	l, err := j.Acquire(ctx, "r", "holder")
	if errors.Is(err, journal.ErrHeld) {
		fmt.Fprintln(out, "held")
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Fprintln(out, "got")
	for lines := bufio.NewScanner(in); lines.Scan(); {
		err := l.Append(ctx, journal.Mark{}, note(0))
		if errors.Is(err, journal.ErrFenced) {
			fmt.Fprintln(out, "fenced")
			select {
			case <-l.Lost():
				fmt.Fprintln(out, "lost")
			case <-time.After(patience):
				fmt.Fprintln(out, "not lost")
			}
			continue
		}
		if err != nil {
			return err
		}
		fmt.Fprintln(out, "ack", l.Head())
	}
	return j.Close()
}

type process struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func start(t *testing.T, what, folder string) *process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.CommandContext(t.Context(), self, "-test.run=^$")}
	p.cmd.Env = append(p.cmd.Environ(), ChildEnv+"="+what+":"+folder)
	p.cmd.Stderr = t.Output()
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.kill() })
	return p
}

// kill ends the process as kill -9 does and waits for it.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	_ = p.cmd.Wait()         // its status is that of a killed process
}

func (p *process) line(t *testing.T) string {
	t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		t.Fatalf("the other process said %q and ended: %v", line, err)
	}
	if strings.HasPrefix(line, "error") {
		t.Fatal(line)
	}
	return strings.TrimSpace(line)
}

// testKill kills a writer again and again. What it was told is stored must be there.
func testKill(t *testing.T, s Store) {
	folder := t.TempDir()
	j := s.open(t, folder)
	create(t, j, "r")
	rounds := 20
	if testing.Short() {
		rounds = 4
	}
	random := rand.New(rand.NewPCG(1, 2))
	acked, offered, more := 1, map[string]bool{}, 0
	for range rounds {
		p := start(t, "write", folder)
		p.line(t)
		timer := time.AfterFunc(time.Duration(random.IntN(60_000))*time.Microsecond, func() {
			_ = p.cmd.Process.Kill() // it may have ended
		})
		for {
			line, err := p.out.ReadString('\n')
			if err != nil {
				break
			}
			what, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch what {
			case "ack":
				if acked, err = strconv.Atoi(arg); err != nil {
					t.Fatal(err)
				}
			case "offer":
				offered[arg] = true
			default:
				t.Fatalf("the writer said %q", line)
			}
		}
		timer.Stop()
		p.kill()
		l := s.inherit(t, j, "r")
		records := read(t, j, "r")
		if len(records) < acked || int(l.Head()) != len(records) {
			t.Fatalf("%d records stored and head %d, but %d were acknowledged", len(records), l.Head(), acked)
		}
		for _, r := range records[1:] {
			if number(t, r) != int(r.Seq) {
				t.Fatalf("record %d holds %d", r.Seq, number(t, r))
			}
		}
		in := " " + keysOf(t, l)
		for key := range offered {
			if strings.Count(in, " "+key+"=") != 1 {
				t.Fatalf("offer %s stands %d times in the inbox, want once", key, strings.Count(in, " "+key+"="))
			}
		}
		if len(records) > acked {
			more++
		}
		acked = len(records)
		if err := l.Release(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d kills: %d records and %d offers acknowledged, none lost; in %d rounds more was stored than acknowledged",
		rounds, acked, len(offered), more)
}

func testTwoProcesses(t *testing.T, s Store) {
	folder := t.TempDir()
	j := s.open(t, folder)
	create(t, j, "r")
	rounds := 10
	if testing.Short() {
		rounds = 2
	}
	for range rounds {
		if s.Lease > 0 { // those of the last round were killed
			if err := s.inherit(t, j, "r").Release(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
		a, b := start(t, "hold", folder), start(t, "hold", folder)
		answers := a.line(t) + " " + b.line(t)
		if answers != "got held" && answers != "held got" {
			t.Fatalf("two processes answered %q, want one got and one held", answers)
		}
		a.kill()
		b.kill()
	}
}

func testReopen(t *testing.T, s Store) {
	folder := t.TempDir()
	j := s.open(t, folder)
	create(t, j, "r")
	l := acquire(t, j, "r")
	for _, b := range everyBody() {
		add(t, l, b)
	}
	before := texts(t, read(t, j, "r"))
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	j = s.open(t, folder)
	records, err := readAll(t, j, "r", 0)
	if err != nil {
		t.Fatalf("a store whose Promise is Durable was closed and opened again, and its run does not read: %v", err)
	}
	if after := texts(t, records); after != before {
		t.Errorf("after opening again the run reads\n%s\nwant\n%s", after, before)
	}
	info, err := j.Stat(t.Context(), "r")
	if err != nil || info.Held || info.Head != uint64(len(everyBody())+1) || info.Phase != "busy" {
		t.Errorf("Stat = %+v, %v", info, err)
	}
}
