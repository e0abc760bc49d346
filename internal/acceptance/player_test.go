// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/tool"
)

// A trace is what one play of a case did.
type trace struct {
	exchanges []exchange
	steps     []stepResult
	calls     []seenCall
	runs      map[string]int
	faults    []string
	remarks   []string // what a reader should know and no case asks for
}

type stepResult struct {
	outcomes  []string // the words of the format that say it
	stop      string
	text      string
	stream    string
	reasoning string
	usage     llm.Usage // of all requests of the step
	last      llm.Usage // of its last reply
	err       error
	took      time.Duration
}

type seenCall struct{ id, name, args string }

// A player plays one case once.
type player struct {
	t     testing.TB
	c     *wireCase
	store string // file or sqlite
	srv   *caseServer

	folder string // of the store as it is now
	dirs   int
	all    []*process
	ends   []<-chan struct{} // of runs that were abandoned

	mu    sync.Mutex
	proc  *process
	step  *playedStep
	trace trace
}

// A playedStep is a step that goes on.
type playedStep struct {
	spec   stepSpec
	cancel context.CancelFunc
	killed chan struct{}
	hits   int
	drafts []draft
	usage  llm.Usage
}

// A draft is what one request streamed.
type draft struct {
	text, thinking strings.Builder
}

// play runs the case once, on a store of its own.
func play(t testing.TB, c *wireCase, store string) *trace {
	p := &player{t: t, c: c, store: store, trace: trace{runs: map[string]int{}}}
	p.folder = p.newFolder()
	p.srv = newCaseServer(c, func() { p.fire("request_sent", "") })
	ctx, cancel := context.WithCancel(t.Context())
	defer p.finish(cancel)
	for i, s := range c.Run.Steps {
		if err := p.do(ctx, s); err != nil {
			t.Fatalf("step %d (%s): %v", i+1, s.Do, err)
		}
	}
	return p.result()
}

func (p *player) newFolder() string {
	p.dirs++
	return filepath.Join(p.t.TempDir(), fmt.Sprintf("store%d", p.dirs))
}

// finish ends what still goes on, dead processes too.
func (p *player) finish(cancel context.CancelFunc) {
	cancel()
	p.srv.stop()
	for _, end := range p.ends {
		<-end
	}
	for _, proc := range p.all {
		_ = proc.close(context.Background())
	}
}

func (p *player) result() *trace {
	p.srv.mu.Lock()
	defer p.srv.mu.Unlock()
	p.mu.Lock()
	defer p.mu.Unlock()
	out := p.trace
	out.exchanges = slices.Clone(p.srv.exchanges)
	out.faults = slices.Clone(p.srv.faults)
	for i, r := range p.c.Replies {
		if i >= len(out.exchanges) && !r.Optional {
			out.faults = append(out.faults, fmt.Sprintf("reply %d was not asked for", i+1))
		}
	}
	return &out
}

func (p *player) do(ctx context.Context, s stepSpec) error {
	switch s.Do {
	case "start", "user", "resume":
		p.drive(ctx, s)
		return nil
	case "new_process":
		return p.drop(ctx)
	case "store":
		if err := p.drop(ctx); err != nil {
			return err
		}
		return damage(logFile(p.folder), s)
	case "advance_clock":
		// Nothing that the engine does between two steps depends on a clock; what
		// depends on a short one has its time.
		time.Sleep(min(time.Duration(s.MS)*time.Millisecond, 2*time.Second))
		return nil
	}
	return fmt.Errorf("unknown step %q", s.Do)
}

// drop ends the process, if there is one.
func (p *player) drop(ctx context.Context) error {
	proc := p.proc
	p.setProcess(nil)
	if proc == nil || proc.isDead() {
		return nil
	}
	return proc.close(ctx)
}

func (p *player) setProcess(proc *process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.proc = proc
}

func damage(file string, s stepSpec) error {
	data, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if s.Op == "truncate_tail" {
		return os.Truncate(file, int64(max(len(data)-s.Bytes, 0)))
	}
	lines := bytes.SplitAfter(data, []byte("\n"))
	middle := len(lines) / 2
	out := slices.Concat(bytes.Join(lines[:middle], nil), make([]byte, s.Bytes), []byte("\n"), bytes.Join(lines[middle:], nil))
	return os.WriteFile(file, out, 0o600)
}

// boot makes a process over the store as it stands.
func (p *player) boot() (*process, error) {
	store, err := openStore(p.t.Context(), p.store, p.folder)
	if err != nil {
		return nil, err
	}
	proc := &process{store: store, http: &http.Transport{}}
	p.all = append(p.all, proc)
	client, err := newClient(p.c, p.srv.URL, &http.Client{Transport: proc})
	if err != nil {
		return proc, err
	}
	system := p.c.Run.System
	opts := append(engineOptions(p.c),
		fiducial.WithJournal(mortalStore{store, proc}, runName), fiducial.WithDurable(),
		fiducial.WithEvents(fiducial.EventFunc(func(ev fiducial.Event) { p.watch(proc, ev.Data) })))
	if len(p.c.Run.History) > 0 {
		more, history, err := importHistory(p.c.Run.History)
		if err != nil {
			return proc, err
		}
		system += more
		if len(p.all) == 1 { // later ones find it in the store
			opts = append(opts, fiducial.WithHistory(history...))
		}
	}
	for _, spec := range p.c.Run.Tools {
		if spec.ServerTool != nil {
			continue // the provider runs it
		}
		opts = append(opts, fiducial.WithTools(scriptedTool{spec, func(ctx context.Context, call tool.Call) error {
			return p.entered(ctx, proc, call)
		}}))
	}
	eng := fiducial.New(client, append(opts, fiducial.WithSystem(system))...)
	if n := p.c.Run.Limits.MaxToolOutputBytes; n > 0 {
		if err := eng.Server().SetOutputLimit(n, nil, nil); err != nil {
			return proc, err
		}
	}
	proc.locked, err = eng.Lock()
	return proc, err
}

// drive runs the engine for one step and keeps what came of it.
func (p *player) drive(ctx context.Context, s stepSpec) {
	began := time.Now()
	res := p.run(ctx, s)
	res.took = time.Since(began)
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.step.drafts {
		res.stream += p.step.drafts[i].text.String()
		res.reasoning += p.step.drafts[i].thinking.String()
	}
	res.last = p.step.usage
	if i := s.Interrupt; i != nil && p.step.hits < max(i.Nth, 1) {
		p.trace.remarks = append(p.trace.remarks, fmt.Sprintf("step %d: the interrupt on %s did not come", len(p.trace.steps)+1, i.On))
	}
	p.step = nil
	p.trace.steps = append(p.trace.steps, res)
}

func (p *player) run(ctx context.Context, s stepSpec) stepResult {
	ctx, cancel := context.WithCancel(ctx)
	step := &playedStep{spec: s, cancel: cancel, killed: make(chan struct{})}
	p.mu.Lock()
	p.step = step
	proc := p.proc
	p.mu.Unlock()
	if proc == nil || proc.isDead() {
		var err error
		if proc, err = p.boot(); err != nil {
			cancel()
			return resultOf(fiducial.Outcome{Reason: fiducial.Failed}, err)
		}
		p.setProcess(proc)
	}
	done := make(chan struct{})
	var res stepResult
	go func() {
		defer close(done)
		if s.Do == "resume" {
			res = resultOf(proc.locked.Resume(ctx))
			return
		}
		res = resultOf(proc.locked.Run(ctx, llm.UserText(s.Input)))
	}()
	select {
	case <-step.killed:
		p.ends = append(p.ends, done)
		p.t.Cleanup(cancel)
		p.folder = proc.after
		go func() { // nobody watches a dead process
			<-p.srv.closing
			cancel()
		}()
		return stepResult{outcomes: []string{"killed"}, err: errDead}
	case <-done:
		cancel()
		return res
	}
}

// resultOf says how a run ended in the words of the format.
func resultOf(out fiducial.Outcome, err error) stepResult {
	res := stepResult{stop: string(out.Stop), text: out.Text(), usage: out.Usage, err: err}
	switch out.Reason {
	case fiducial.Finished:
		res.outcomes = []string{"completed"}
	case fiducial.OutputCap: // a reply, and the end of trying to have the whole of it
		res.outcomes = []string{"completed", "stopped"}
	case fiducial.LimitReached:
		res.outcomes = []string{"stopped"}
		res.stop = map[fiducial.Limit]string{
			fiducial.LimitTurns: "step_limit", fiducial.LimitTokens: "budget", fiducial.LimitLoop: "loop",
		}[out.Limit]
	case fiducial.Paused, fiducial.Yielded:
		res.outcomes = []string{"stopped"}
	case fiducial.Cancelled:
		res.outcomes, res.stop = []string{"cancelled"}, "cancelled"
	case fiducial.ContextWindowExceeded, fiducial.Failed:
		res.outcomes = []string{"error"}
	}
	return res
}

// classOf is the class of an error in the words of the format.
func classOf(err error) string {
	var e *llm.Error
	switch {
	case errors.Is(err, fiducial.ErrCancelled):
		return "cancelled"
	case errors.As(err, &e):
		return string(e.Class)
	case errors.Is(err, journal.ErrDamaged), errors.Is(err, journal.ErrFormat):
		return "store_corrupt"
	case errors.Is(err, fiducial.ErrContextWindow):
		return "context_overflow"
	case errors.Is(err, fiducial.ErrConfig), errors.Is(err, fiducial.ErrState):
		return "invalid_request"
	}
	return "unknown"
}

// watch hears of the engine's events.
func (p *player) watch(proc *process, data fiducial.EventData) {
	if proc.isDead() {
		return
	}
	switch ev := data.(type) {
	case fiducial.GenerationStarted:
		p.onStep(func(s *playedStep) { s.drafts = append(s.drafts, draft{}) })
	case fiducial.Delta:
		p.delta(ev)
	case fiducial.DraftReset:
		p.onStep(func(s *playedStep) { s.drafts[len(s.drafts)-1] = draft{} })
	case fiducial.GenerationFinished:
		p.accepted(ev)
		p.fire("stream_end", "")
	case fiducial.ToolFinished:
		p.fire("tool_persisted", ev.Result.Name)
	default: // nothing that a case speaks of
	}
}

func (p *player) onStep(f func(*playedStep)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.step != nil {
		f(p.step)
	}
}

func (p *player) delta(ev fiducial.Delta) {
	p.onStep(func(s *playedStep) {
		d := &s.drafts[len(s.drafts)-1]
		switch ev.Kind {
		case llm.BlockText:
			d.text.WriteString(ev.Text)
		case llm.BlockThinking:
			d.thinking.WriteString(ev.Text)
		case llm.BlockCall:
		}
	})
	if ev.Kind == llm.BlockText {
		p.fire("text_delta", "")
	}
}

// accepted notes the calls of a reply that are whole.
func (p *player) accepted(ev fiducial.GenerationFinished) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.step != nil {
		p.step.usage = ev.Usage
	}
	cutOff := ev.Message.Stop == llm.StopMaxTokens || ev.Message.Stop == llm.StopIncomplete
	n := ev.Message.CountCalls()
	for i, call := range ev.Message.Calls() {
		if _, err := call.Input(); err != nil || cutOff && i == n-1 && strings.TrimSpace(call.Args) == "" {
			continue
		}
		p.trace.calls = append(p.trace.calls, seenCall{call.ID, call.Name, call.Args})
	}
}

// entered hears of a call whose tool begins.
func (p *player) entered(_ context.Context, proc *process, call tool.Call) error {
	if err := proc.alive(); err != nil {
		return err
	}
	p.mu.Lock()
	p.trace.runs[call.Name]++
	p.mu.Unlock()
	p.fire("tool_start", call.Name)
	return nil
}

// fire sees whether an event is the one that the step is to be interrupted at.
func (p *player) fire(event, toolName string) {
	p.mu.Lock()
	step, proc := p.step, p.proc
	hit := false
	if step != nil && proc != nil {
		if i := step.spec.Interrupt; i != nil && i.On == event && (i.Tool == "" || i.Tool == toolName) {
			step.hits++
			hit = step.hits == max(i.Nth, 1)
		}
	}
	p.mu.Unlock()
	if !hit {
		return
	}
	i := step.spec.Interrupt
	if i.AfterMS > 0 {
		time.AfterFunc(time.Duration(i.AfterMS)*time.Millisecond, func() { p.interrupt(step, proc, i) })
		return
	}
	p.interrupt(step, proc, i)
}

func (p *player) interrupt(step *playedStep, proc *process, i *interrupt) {
	switch i.How {
	case "cancel":
		step.cancel()
	case "kill":
		if err := proc.kill(p.folder, p.newFolder()); err != nil {
			p.srv.fault("kill: %v", err)
		}
		close(step.killed)
	case "steer":
		key := fmt.Sprintf("steer-%d", time.Now().UnixNano())
		sent := make(chan error, 1)
		go func() { sent <- proc.locked.Send(p.t.Context(), key, llm.UserText(i.Text)) }()
		if err := <-sent; err != nil {
			p.srv.fault("steer: %v", err)
		}
	}
}

// compact is a schema without the white space of its file.
func compact(raw json.RawMessage) json.RawMessage {
	var out bytes.Buffer
	if len(raw) == 0 || json.Compact(&out, raw) != nil {
		return raw
	}
	return out.Bytes()
}
