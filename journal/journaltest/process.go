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
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
)

// childEnv tells a test binary that it is a second process of the suite, what it is to
// do and with which folder.
const childEnv = "FIDUCIAL_JOURNALTEST"

// Main is TestMain's body. It does not return.
func Main(m *testing.M, s Store) {
	what, folder, child := strings.Cut(os.Getenv(childEnv), ":")
	if !child {
		os.Exit(m.Run())
	}
	if err := s.child(context.Background(), what, folder); err != nil {
		fmt.Println("error", err)
		os.Exit(1)
	}
	os.Exit(0)
}

func (s Store) child(ctx context.Context, what, folder string) error {
	j, err := s.Open(folder)
	if err != nil {
		return err
	}
	switch what {
	case "write": // appends until it is killed
		return writeOn(ctx, j)
	case "hold": // says whether it got the run, and goes on at each line that it reads
		return hold(ctx, j)
	case "fill": // appends until files may not grow, then once more
		return fillChild(ctx, j)
	}
	return fmt.Errorf("unknown part %q", what)
}

// writeOn appends in groups of one to three and tells each that was acknowledged;
// some are large, some take an offer.
func writeOn(ctx context.Context, j journal.Journal) error {
	l, err := j.Acquire(ctx, "r", "writer")
	if err != nil {
		return err
	}
	fmt.Println("at", l.Head())
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
			fmt.Println("offer", key)
		}
		if err := l.Append(ctx, journal.Mark{Phase: "busy"}, bodies...); err != nil {
			return err
		}
		fmt.Println("ack", l.Head())
	}
}

func hold(ctx context.Context, j journal.Journal) error {
	l, err := j.Acquire(ctx, "r", "holder")
	if errors.Is(err, journal.ErrHeld) {
		fmt.Println("held")
		return nil
	}
	if err != nil {
		return err
	}
	fmt.Println("got")
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		if err := l.Append(ctx, journal.Mark{}, note(0)); err != nil {
			return err
		}
		fmt.Println("ack", l.Head())
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
	p := &process{cmd: exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")}
	p.cmd.Env = append(os.Environ(), childEnv+"="+what+":"+folder)
	p.cmd.Stderr = os.Stderr
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
		timer := time.AfterFunc(time.Duration(random.IntN(60_000))*time.Microsecond, func() { p.cmd.Process.Kill() })
		for {
			line, err := p.out.ReadString('\n')
			if err != nil {
				break
			}
			what, arg, _ := strings.Cut(strings.TrimSpace(line), " ")
			switch what {
			case "ack":
				fmt.Sscan(arg, &acked)
			case "offer":
				offered[arg] = true
			default:
				t.Fatalf("the writer said %q", line)
			}
		}
		timer.Stop()
		p.kill()
		l, err := j.Acquire(t.Context(), "r", "the test")
		if err != nil {
			t.Fatalf("acquire at once after the kill: %v", err)
		}
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
		a, b := start(t, "hold", folder), start(t, "hold", folder)
		answers := a.line(t) + " " + b.line(t)
		if answers != "got held" && answers != "held got" {
			t.Fatalf("two processes answered %q, want one got and one held", answers)
		}
		a.kill()
		b.kill()
	}
}

func testFrozenHolder(t *testing.T, s Store) {
	folder := t.TempDir()
	j := s.open(t, folder)
	create(t, j, "r")
	p := start(t, "hold", folder)
	if got := p.line(t); got != "got" {
		t.Fatalf("the holder said %q", got)
	}
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); err != nil {
		t.Skip("processes cannot be frozen here:", err)
	}
	_, err := j.Acquire(t.Context(), "r", "the test")
	held, ok := errors.AsType[*journal.HeldError](err)
	if !ok || held.Owner != "holder" {
		t.Fatalf("Acquire while the holder is frozen: %v, want a HeldError that names it", err)
	}
	if info, err := j.Stat(t.Context(), "r"); err != nil || !info.Held || info.Owner != "holder" {
		t.Errorf("Stat = %+v, %v; want it held by holder", info, err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintln(p.in)
	if got := p.line(t); got != "ack 2" {
		t.Errorf("the woken holder said %q, want ack 2", got)
	}
	p.kill()
	if l := acquire(t, j, "r"); l.Head() != 2 {
		t.Errorf("head = %d, want 2", l.Head())
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
	if after := texts(t, read(t, j, "r")); after != before {
		t.Errorf("after opening again the run reads\n%s\nwant\n%s", after, before)
	}
	info, err := j.Stat(t.Context(), "r")
	if err != nil || info.Held || info.Head != uint64(len(everyBody())+1) || info.Phase != "busy" {
		t.Errorf("Stat = %+v, %v", info, err)
	}
}

// testFlips changes one byte at a time of what is stored. Whatever reads it must
// fail, or give what was written.
func testFlips(t *testing.T, s Store) {
	if s.Files == nil {
		t.Skip("the store has no files to change")
	}
	folder := t.TempDir()
	j := s.open(t, folder)
	create(t, j, "r")
	l := acquire(t, j, "r")
	for i, b := range everyBody() {
		add(t, l, b, note(i))
	}
	add(t, l, step(strings.Repeat("large ", 20_000)))
	offer(t, j, "open", "do this too")
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	want := look(t, s.open(t, copyOf(t, folder)))
	if strings.Contains(want, "ERROR") {
		t.Fatalf("the store is not good before the test: %s", want)
	}
	var reported, same int
	random := rand.New(rand.NewPCG(3, 4))
	for n := range 200 {
		files := s.Files(folder)
		var sizes int64
		for _, f := range files {
			sizes += size(t, f)
		}
		at := random.Int64N(sizes)
		for len(files) > 1 && at >= size(t, files[0]) {
			at -= size(t, files[0])
			files = files[1:]
		}
		mask := byte(1 + random.IntN(255))
		copied := copyOf(t, folder)
		rel, err := filepath.Rel(folder, files[0])
		if err != nil {
			t.Fatal(err)
		}
		flip(t, filepath.Join(copied, rel), at, mask)
		j, err := s.Open(copied)
		if err != nil {
			reported++
			continue
		}
		got := look(t, j)
		switch {
		case got == want:
			same++
		case strings.Contains(got, "ERROR"):
			reported++
		default:
			t.Errorf("flip %d (%s, byte %d, mask %02x) is silent: got\n%.2000s\nwant\n%.2000s", n, rel, at, mask, got, want)
		}
		j.Close() // the store is damaged and may say so
		os.RemoveAll(copied)
	}
	t.Logf("200 flips: %d reported, %d without effect", reported, same)
	if reported == 0 {
		t.Error("not one flip was reported")
	}
}

func copyOf(t *testing.T, folder string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(folder)); err != nil {
		t.Fatal(err)
	}
	return to
}

func size(t *testing.T, file string) int64 {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	return info.Size()
}

func flip(t *testing.T, file string, at int64, mask byte) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	data[at] ^= mask
	if err := os.WriteFile(file, data, 0o644); err != nil {
		t.Fatal(err)
	}
}

// look is all that a reader and an owner are told of the run and the list of runs, on one text. Times
// are left out: they are for people and not looked at.
func look(t *testing.T, j journal.Journal) string {
	t.Helper()
	var b strings.Builder
	listed := 0
	for i, err := range j.Runs(t.Context(), journal.Filter{}) {
		listed++
		fmt.Fprintf(&b, "run %s %d %d %v %v %v\n", i.Run, i.Head, i.Epoch, i.Mark, i.Labels, said(err))
	}
	fmt.Fprintf(&b, "%d runs\n", listed)
	records, err := readAll(t, j, "r", 0)
	fmt.Fprintf(&b, "%s%s\n", texts(t, records), said(err))
	l, err := j.Acquire(t.Context(), "r", "look")
	if err != nil {
		fmt.Fprintf(&b, "%s\n", said(err))
		return b.String()
	}
	defer l.Release(t.Context())
	items, err := l.Inbox(t.Context())
	fmt.Fprintf(&b, "head %d inbox %s %+v\n", l.Head(), said(err), len(items))
	for _, i := range items {
		fmt.Fprintf(&b, "%s %s\n", i.Key, i.Message.Text())
	}
	return b.String()
}

func said(err error) string {
	if err == nil {
		return "ok"
	}
	return fmt.Sprintf("ERROR %v", err)
}
