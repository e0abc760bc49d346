//go:build unix

// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/postgres/postgrestest"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/machine"
)

// A crashServer is a PostgreSQL server with a proxy in front of it, and nil where
// there is none.
type crashServer struct {
	*postgrestest.Server
	proxy *postgrestest.Proxy
	mu    sync.Mutex
	n     int
}

// newCrashServer skips the test where PostgreSQL is not installed, unless it has to
// be there.
func newCrashServer(t testing.TB) *crashServer {
	t.Helper()
	s, err := postgrestest.Start(t.Context(), io.Discard)
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
	p, err := postgrestest.NewProxy(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return &crashServer{Server: s, proxy: p}
}

// schema is tables of its own for one run.
func (s *crashServer) schema() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	return fmt.Sprint("crash", s.n)
}

// A rig is one run that things happen to, as its parent sees it.
type rig struct {
	spec    crashSpec // of the next child
	server  *crashServer
	model   *llmtest.Server
	plan    [][]string
	what    []string // what happened to it so far
	kills   int
	settled map[string]llm.Result // results that were durable at some time, by op and ordinal
	offered string                // the text of a message that was offered
}

// newRig begins nothing yet. The plan is which tools the model calls, by round.
func newRig(dir, store string, server *crashServer, wire llmtest.Wire, plan [][]string, seed uint64) *rig {
	r := &rig{server: server, plan: plan, settled: map[string]llm.Result{}}
	latency := rand.New(rand.NewPCG(seed, 5))
	var mu sync.Mutex
	r.model = llmtest.NewServer(brain(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
		mu.Lock()
		wait := time.Duration(latency.IntN(8)) * time.Millisecond
		mu.Unlock()
		time.Sleep(wait)
		return playPlan(plan)(ctx, req)
	}))
	r.spec = crashSpec{
		Store: store, Folder: filepath.Join(dir, "store"), Wire: wire, Model: r.model.URL, Effect: filepath.Join(dir, "effects"),
		Report: filepath.Join(dir, "report"), Seed: seed,
	}
	if server != nil {
		r.spec.Address, r.spec.Schema = server.proxy.URL(), server.schema()
	}
	return r
}

func playPlan(plan [][]string) llmtest.Turn {
	return func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
		n := 0
		for _, m := range req.Messages {
			if m.Role == llm.RoleTool {
				n++
			}
		}
		if n >= len(plan) {
			return llmtest.Say("All done.")(ctx, req)
		}
		m := llm.Message{Role: llm.RoleAssistant, Stop: llm.StopToolUse, Parts: []llm.Part{llm.Text{Text: fmt.Sprintf("Round %d.", n)}}}
		for i, name := range plan[n] {
			m.Parts = append(m.Parts, llm.Call{Name: name, Args: fmt.Sprintf(`{"what":"%d.%d"}`, n, i)})
		}
		return llmtest.Reply(m)(ctx, req)
	}
}

func (r *rig) close() { r.model.Close() }

// A crashed is a child that is under way.
type crashed struct {
	cmd   *exec.Cmd
	spec  crashSpec
	errs  bytes.Buffer
	ready chan struct{} // closed when it has opened the store, or ended
	in    io.WriteCloser
	done  chan error
	once  sync.Once
}

// launch starts a child.
func (r *rig) launch(ctx context.Context, spec crashSpec) (*crashed, error) {
	data, err := json.Marshal(spec)
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	_ = os.Remove(spec.Report) // of the child before
	c := &crashed{cmd: exec.CommandContext(ctx, self, "-test.run=^TestCrashChild$"), spec: spec, ready: make(chan struct{}), done: make(chan error, 1)}
	c.cmd.Env = append(os.Environ(), crashEnv+"="+string(data))
	c.cmd.Stderr = &c.errs
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if c.in, err = c.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	if err := c.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		lines := bufio.NewScanner(out)
		for lines.Scan() {
			if lines.Text() == "ready" {
				c.once.Do(func() { close(c.ready) })
			}
		}
		c.once.Do(func() { close(c.ready) })
		c.done <- c.cmd.Wait()
	}()
	return c, nil
}

func (c *crashed) kill() { _ = c.cmd.Process.Kill() } // it may have ended

// wait returns the child's report, or nil when it was killed.
func (c *crashed) wait() (*crashReport, error) {
	var err error
	select {
	case err = <-c.done:
	case <-time.After(2 * time.Minute):
		_ = c.cmd.Process.Signal(syscall.SIGQUIT) // so that it tells where it hangs
		<-c.done
		return nil, fmt.Errorf("the process hangs: %s", c.errs.String())
	}
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL {
			return nil, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %s", err, c.errs.String())
	}
	data, err := os.ReadFile(c.spec.Report)
	if err != nil {
		return nil, fmt.Errorf("it left no report: %w: %s", err, c.errs.String())
	}
	rep := &crashReport{}
	return rep, json.Unmarshal(data, rep)
}

// run starts a child and waits for it.
func (r *rig) run(ctx context.Context, spec crashSpec) (*crashReport, error) {
	c, err := r.launch(ctx, spec)
	if err != nil {
		return nil, err
	}
	rep, err := c.wait()
	if err == nil && rep == nil {
		r.kills++
		r.what = append(r.what, "killed "+strings.TrimSpace(c.errs.String()))
	}
	return rep, err
}

// store opens the store as a reader beside the children does.
func (r *rig) store(ctx context.Context) (journal.Journal, error) {
	spec := r.spec
	if r.server != nil {
		spec.Address = r.server.URL
	}
	return spec.open(ctx)
}

// keepSettled remembers what the journal holds of results, and sees that it is no
// other than before.
func (r *rig) keepSettled(ctx context.Context) error {
	store, err := r.store(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // it only reads
	now, err := settledIn(ctx, store)
	if err != nil {
		return err
	}
	for ref, res := range r.settled {
		if got, ok := now[ref]; !ok || got.Body() != res.Body() || got.Status != res.Status {
			return fmt.Errorf("the settled result of %s was %q and is %q", ref, res.Body(), got.Body())
		}
	}
	r.settled = now
	return nil
}

func settledIn(ctx context.Context, store journal.Journal) (map[string]llm.Result, error) {
	out := map[string]llm.Result{}
	for rec, err := range store.Read(ctx, runName, 0) {
		if errors.Is(err, journal.ErrNotFound) {
			return out, nil
		}
		if err != nil {
			return nil, fmt.Errorf("the log cannot be read: %w", err)
		}
		if step, ok := rec.Body.(journal.Step); ok {
			if s, ok := step.Input.(machine.Settled); ok {
				ref := fmt.Sprintf("%d/%d", s.Op, s.Ordinal)
				if _, twice := out[ref]; twice {
					return nil, fmt.Errorf("the call %s is settled twice", ref)
				}
				out[ref] = s.Result
			}
		}
	}
	return out, nil
}

// check holds a run that is done to what was promised.
func (r *rig) check(ctx context.Context, rep *crashReport) error {
	if rep == nil || rep.Err != "" || rep.Reason != "finished" || rep.Text != "All done." {
		return fmt.Errorf("it ended with %+v", rep)
	}
	if err := machine.ValidateContext(rep.History); err != nil {
		return fmt.Errorf("the history is not valid: %w", err)
	}
	effects, err := r.effects()
	if err != nil {
		return err
	}
	rounds, extra := 0, 0
	for i, m := range rep.History {
		for n, c := range m.Calls() {
			if n == 0 {
				rounds++
			}
			if err := checkAnswer(c, rep.History[i+1].Parts[n], effects); err != nil {
				return err
			}
		}
		if r.offered != "" && m.Role == llm.RoleUser && m.Text() == r.offered {
			extra++
		}
	}
	if rounds != len(r.plan) {
		return fmt.Errorf("%d rounds of calls in the history, want %d", rounds, len(r.plan))
	}
	if r.offered != "" && extra != 1 {
		return fmt.Errorf("the message that was offered stands %d times in the history", extra)
	}
	for i, e := range r.model.Exchanges() {
		if e.Status != http.StatusOK && e.Status != 0 { // 0: the process died before the answer
			return fmt.Errorf("request %d was refused: %d: %.1000s", i+1, e.Status, e.Body)
		}
	}
	if err := r.keepSettled(ctx); err != nil {
		return err
	}
	return r.checkLog(ctx, rep)
}

// checkLog reads the log as show does, takes it out and into another store, and
// folds it: it is the history that the last process had.
func (r *rig) checkLog(ctx context.Context, rep *crashReport) error {
	store, err := r.store(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = store.Close() }() // it only reads
	var file, again bytes.Buffer
	if err := journal.Export(ctx, store, runName, &file); err != nil {
		return fmt.Errorf("export: %w", err)
	}
	memory := journal.NewMemory()
	if _, err := journal.Import(ctx, memory, bytes.NewReader(file.Bytes())); err != nil {
		return fmt.Errorf("import: %w", err)
	}
	if err := journal.Export(ctx, memory, runName, &again); err != nil || !bytes.Equal(file.Bytes(), again.Bytes()) {
		return fmt.Errorf("the run is another one after export and import (%w)", err)
	}
	var st machine.State
	for rec, err := range store.Read(ctx, runName, 0) {
		if err != nil {
			return err
		}
		if step, ok := rec.Body.(journal.Step); ok {
			if err := st.Apply(step.Input); err != nil {
				return fmt.Errorf("record %d: %w", rec.Seq, err)
			}
		}
	}
	want, err := json.Marshal(rep.History)
	if err != nil {
		return err
	}
	got, err := json.Marshal(st.History())
	if err != nil {
		return err
	}
	if !bytes.Equal(got, want) {
		return fmt.Errorf("the log gives the history %.2000s, the process had %.2000s", got, want)
	}
	return nil
}

func checkAnswer(c llm.Call, part llm.Part, effects map[string]int) error {
	res, ok := part.(llm.Result)
	if !ok || res.CallID != c.ID {
		return fmt.Errorf("the call %s %s is answered by %+v", c.Name, c.Args, part)
	}
	key, done := strings.CutPrefix(res.Body(), "done ")
	switch {
	case res.Status == llm.StatusSuccess:
		if n := effects[c.Name+" "+key]; !done || n == 0 {
			return fmt.Errorf("%s %s succeeded with %q, and its effect happened %d times", c.Name, c.Args, res.Body(), n)
		}
	case res.Status != llm.StatusUnknown:
		return fmt.Errorf("%s %s: %s %q", c.Name, c.Args, res.Status, res.Body())
	case mayRepeat(c.Name):
		return fmt.Errorf("%s %s could have been run again and is %q", c.Name, c.Args, res.Body())
	}
	return nil
}

// effects counts what the tools did, by tool and key. None that may not be repeated
// is.
func (r *rig) effects() (map[string]int, error) {
	data, err := os.ReadFile(r.spec.Effect)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	out := map[string]int{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		out[line]++
		if name, _, _ := strings.Cut(line, " "); out[line] > 1 && !mayRepeat(name) {
			return nil, fmt.Errorf("%s happened twice", line)
		}
	}
	return out, nil
}
