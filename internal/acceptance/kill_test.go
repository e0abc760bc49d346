//go:build unix

// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/machine"
)

// The rounds that the model behind the matrix plays, by how many batches have
// results already; then it says that it is done.
var rounds = [][]string{
	{"write"},
	{"write", "slow_write", "slow_read"},
	{"put", "alone", "write"},
}

func playRounds(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	n := 0
	for _, m := range req.Messages {
		if m.Role == llm.RoleTool {
			n++
		}
	}
	if n >= len(rounds) {
		return llmtest.Say("All done.")(ctx, req)
	}
	m := llm.Message{Role: llm.RoleAssistant, Stop: llm.StopToolUse, Parts: []llm.Part{llm.Text{Text: fmt.Sprintf("Round %d.", n)}}}
	for i, name := range rounds[n] {
		m.Parts = append(m.Parts, llm.Call{Name: name, Args: fmt.Sprintf(`{"what":"%d.%d"}`, n, i)})
	}
	return llmtest.Reply(m)(ctx, req)
}

// TestKillMatrix kills a process at every boundary of a run, and the one that takes
// it over at another, until the run is done: no effect twice, no result lost, every
// call answered, and a history that a strict provider takes.
func TestKillMatrix(t *testing.T) {
	for _, m := range []struct {
		store  string
		wire   llmtest.Wire
		stride int // 1: every boundary
	}{
		{"file", llmtest.WireAnthropic, 1},
		{"sqlite", llmtest.WireOpenAIChat, 1},
		{"file", llmtest.WireGemini, 5},
		{"sqlite", llmtest.WireOpenAIResponses, 5},
	} {
		t.Run(m.store+"/"+string(m.wire), func(t *testing.T) {
			whole := newKilling(t, m.store, m.wire)
			total := whole.finish().Points
			if total < 50 {
				t.Fatalf("a whole run has but %d points", total)
			}
			stride := m.stride
			if testing.Short() || racing {
				stride = 11
			}
			seen := map[string]int{}
			for at := 1; at <= total; at += stride {
				killAt(t, m.store, m.wire, at, total, seen)
			}
			t.Logf("%d points; killed %v", total, seen)
			for _, name := range []string{"before create", "behind create", "before an append", "behind an append", "before the request", "in the stream", "behind the reply", "dispatched", "effect done", "call settled", "run finished"} {
				if seen[name] == 0 && stride == 1 {
					t.Errorf("nothing was killed %q", name)
				}
			}
		})
	}
}

func killAt(t *testing.T, store string, wire llmtest.Wire, at, total int, seen map[string]int) {
	t.Helper()
	k := newKilling(t, store, wire)
	for _, n := range []int{at, at*7%total + 1} { // the one that takes over dies, too, elsewhere
		name, killed := k.start(n)
		if !killed {
			break // it had fewer points left
		}
		seen[name]++
		k.where = append(k.where, fmt.Sprintf("%d (%s)", n, name))
		k.keepSettled()
	}
	k.check(k.finish())
}

// A killing is one run that is killed, as its parent sees it.
type killing struct {
	t       *testing.T
	spec    childSpec
	srv     *llmtest.Server
	where   []string              // it was killed at
	settled map[string]llm.Result // results that were durable at some kill, by op and ordinal
}

func newKilling(t *testing.T, store string, wire llmtest.Wire) *killing {
	t.Helper()
	dir := t.TempDir()
	srv := llmtest.NewServer(brain(playRounds))
	t.Cleanup(srv.Close)
	k := &killing{t: t, srv: srv, settled: map[string]llm.Result{}}
	k.spec = childSpec{Store: store, Folder: filepath.Join(dir, "store"), Wire: wire, URL: srv.URL, Effect: filepath.Join(dir, "effects")}
	return k
}

func (k *killing) start(at int) (name string, killed bool) {
	k.t.Helper()
	stdout, stderr, err := k.child(at)
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if ws, ok := exit.Sys().(syscall.WaitStatus); ok && ws.Signaled() && ws.Signal() == syscall.SIGKILL {
			return stderr, true
		}
	}
	if err != nil {
		k.t.Fatalf("killed at %v: %v: %s%s", k.where, err, stdout, stderr)
	}
	return "", false
}

func (k *killing) child(at int) (stdout []byte, stderr string, err error) {
	k.spec.KillAt = at
	spec, err := json.Marshal(k.spec)
	if err != nil {
		k.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		k.t.Fatal(err)
	}
	cmd := exec.CommandContext(k.t.Context(), self)
	cmd.Env = append(os.Environ(), childEnv+"="+string(spec))
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	return out.Bytes(), errs.String(), err
}

// finish lets a process go to the end.
func (k *killing) finish() childReport {
	k.t.Helper()
	out, errs, err := k.child(0)
	if err != nil {
		k.t.Fatalf("killed at %v, then: %v: %s", k.where, err, errs)
	}
	var r childReport
	if err := json.Unmarshal(out, &r); err != nil {
		k.t.Fatalf("%v: %s", err, out)
	}
	return r
}

// keepSettled remembers what the journal holds of results after a kill.
func (k *killing) keepSettled() {
	k.t.Helper()
	for ref, res := range k.results() {
		if old, ok := k.settled[ref]; ok && old.Body() != res.Body() {
			k.t.Errorf("killed at %v: the result of %s changed from %q to %q", k.where, ref, old.Body(), res.Body())
		}
		k.settled[ref] = res
	}
}

// results are the settled calls of the journal as it stands on disk.
func (k *killing) results() map[string]llm.Result {
	k.t.Helper()
	store, err := openStore(k.t.Context(), k.spec.Store, k.spec.Folder)
	if err != nil {
		k.t.Fatal(err)
	}
	defer store.Close()
	out := map[string]llm.Result{}
	if _, err := store.Stat(k.t.Context(), runName); errors.Is(err, journal.ErrNotFound) {
		return out
	}
	for rec, err := range store.Read(k.t.Context(), runName, 0) {
		if err != nil {
			k.t.Fatalf("killed at %v: the log cannot be read: %v", k.where, err)
		}
		if step, ok := rec.Body.(journal.Step); ok {
			if s, ok := step.Input.(machine.Settled); ok {
				out[fmt.Sprintf("%d/%d", s.Op, s.Ordinal)] = s.Result
			}
		}
	}
	return out
}

// check holds a run that is done to what was promised.
func (k *killing) check(r childReport) {
	k.t.Helper()
	bad := func(format string, args ...any) {
		k.t.Helper()
		k.t.Errorf("killed at %v: %s", k.where, fmt.Sprintf(format, args...))
	}
	if r.Reason != "finished" || r.Text != "All done." || r.Turns != len(rounds)+1 {
		bad("it ended %s with %q after %d turns", r.Reason, r.Text, r.Turns)
	}
	if err := machine.ValidateContext(r.History); err != nil {
		bad("the history is not valid: %v", err)
	}
	effects := k.effects()
	answered := 0
	for i, m := range r.History {
		for n, c := range m.Calls() {
			answered++
			k.checkCall(c, r.History[i+1].Parts[n], effects, bad)
		}
	}
	if answered != 7 {
		bad("%d calls in the history", answered)
	}
	now := k.results()
	for ref, res := range k.settled {
		if now[ref].Body() != res.Body() {
			bad("the settled result of %s was lost", ref)
		}
	}
	for i, e := range k.srv.Exchanges() {
		if e.Status != http.StatusOK && e.Status != 0 { // 0: the process died before the answer
			bad("request %d was refused: %d: %.1000s", i+1, e.Status, e.Body)
		}
	}
	// Each reply once, again for each kill, and one for the thanks at the end.
	if n := len(k.srv.Exchanges()); n > len(rounds)+1+len(k.where)+1 {
		bad("%d requests for %d replies and %d kills", n, len(rounds)+1, len(k.where))
	}
}

func (k *killing) checkCall(c llm.Call, part llm.Part, effects map[string]int, bad func(string, ...any)) {
	res, ok := part.(llm.Result)
	if !ok || res.CallID != c.ID {
		bad("the call %s %s is answered by %+v", c.Name, c.Args, part)
		return
	}
	again := c.Name == "slow_read" || c.Name == "put"
	key, done := strings.CutPrefix(res.Body(), "done ")
	switch res.Status {
	case llm.StatusSuccess:
		if n := effects[c.Name+" "+key]; !done || n == 0 || n > 1 && !again {
			bad("%s %s succeeded, and its effect happened %d times", c.Name, c.Args, n)
		}
	case llm.StatusUnknown:
		if again {
			bad("%s %s could have been run again and is %q", c.Name, c.Args, res.Body())
		}
	case llm.StatusError, llm.StatusCancelled, llm.StatusInterrupted:
		bad("%s %s: %s %q", c.Name, c.Args, res.Status, res.Body())
	}
}

// effects counts what the tools did, by tool and key. None that may not be repeated
// is.
func (k *killing) effects() map[string]int {
	k.t.Helper()
	data, err := os.ReadFile(k.spec.Effect)
	if err != nil {
		k.t.Fatal(err)
	}
	out := map[string]int{}
	for line := range strings.Lines(string(data)) {
		line = strings.TrimSpace(line)
		out[line]++
		if name, _, _ := strings.Cut(line, " "); out[line] > 1 && name != "slow_read" && name != "put" {
			k.t.Errorf("killed at %v: %s happened twice", k.where, line)
		}
	}
	return out
}
