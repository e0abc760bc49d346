// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"
	"sync"
	"time"

	fiducial "github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/kicad/internal/ui"
	"github.com/fiducial-dev/fiducial/kicad/planner"
	"github.com/fiducial-dev/fiducial/llm"
)

// view shows a run as it goes on. It is the event sink of the engine.
type view struct {
	u     *ui.UI
	model string

	mu      sync.Mutex
	s       ui.Status
	running []string // tools, in the order they started
}

func newView(u *ui.UI, model string, budget int) *view {
	v := &view{u: u, model: model}
	v.s.Budget = budget
	v.now("snapshot, ERC and DRC of the start")
	return v
}

func (v *view) now(what string) {
	v.s.Now, v.s.Since = what, time.Now()
	v.u.Status(v.s)
}

// Emit takes an event.
func (v *view) Emit(ev fiducial.Event) {
	v.mu.Lock()
	defer v.mu.Unlock()
	switch d := ev.Data.(type) {
	case fiducial.GenerationStarted:
		v.s.Turn, v.s.Streamed = d.Turn, 0
		v.now(thinks(v.model))
	case fiducial.Delta:
		v.s.Streamed += len(d.Text)
		v.u.Status(v.s)
	case fiducial.DraftReset:
		v.s.Streamed = 0
		v.now("the reply broke off")
	case fiducial.GenerationRetry:
		v.now("waiting to ask again: " + ui.CleanLine(d.Err.Error()))
	case fiducial.GenerationFinished:
		v.s.TokensIn += d.Usage.Input.Value()
		v.s.TokensOut += d.Usage.Output.Value()
		v.s.Cached += d.Usage.CacheRead.Value()
		v.s.Streamed = 0
		if text := strings.TrimSpace(d.Message.Text()); text != "" {
			v.u.Line("%s", text)
		}
	case fiducial.ToolStarted:
		v.running = append(v.running, d.Call.Name)
		v.tools()
	case fiducial.ToolFinished:
		v.toolFinished(d)
	case fiducial.Warning:
		v.u.Warn("%s", d.Text)
	case fiducial.StreamEvent:
		if f, ok := d.Event.(llm.Failover); ok {
			v.u.Line("%s refuses for now; %s goes on", ui.CleanLine(f.From.Name), ui.CleanLine(f.To.Name))
		}
	case fiducial.RunStarted, fiducial.GenerationCommitted, fiducial.Steered, fiducial.NoticeAdded,
		fiducial.CacheMiss, fiducial.PruneEvaluated, fiducial.RunFinished:
	}
}

func (v *view) toolFinished(d fiducial.ToolFinished) {
	for i, name := range v.running {
		if name == d.Result.Name {
			v.running = append(v.running[:i], v.running[i+1:]...)
			break
		}
	}
	v.u.Line("%s", toolLine(d.Result))
	v.tools()
}

// toolLine is a result in one line.
func toolLine(r llm.Result) string {
	first, _, _ := strings.Cut(r.Body(), "\n")
	first, _, _ = strings.Cut(first, " (kicad-cli") // the command is in the transcript
	mark := ""
	if r.IsError() {
		mark = " [" + string(r.Status) + "]"
	}
	return "  " + r.Name + mark + ": " + ui.CleanLine(short(first, 160))
}

// thinks is what the live line says while the model is asked.
func thinks(model string) string {
	if model == planner.Name {
		return "the planner works out the next step"
	}
	return "the model thinks"
}

// tools shows on the status line what runs. Plain lines name a tool when it is
// done.
func (v *view) tools() {
	if v.u.Live() && len(v.running) > 0 {
		v.now(strings.Join(v.running, ", "))
	}
}

// short cuts a text to n characters.
func short(s string, n int) string {
	r := []rune(s)
	if len(r) <= n {
		return s
	}
	return string(r[:n]) + "..."
}

func (v *view) done() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.s = ui.Status{}
	v.u.Status(v.s)
}
