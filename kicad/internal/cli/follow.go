// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/kicad/internal/ui"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// follow shows a run from its journal, from the start, until it ends.
func (a *app) follow(ctx context.Context, which string, f showFlags) error {
	p, err := a.place()
	if err != nil {
		return err
	}
	r, _, err := a.pickPast(ctx, p, which, f.all)
	if err != nil {
		return err
	}
	j, at, err := a.readJournal(ctx, p)
	if err != nil {
		return err
	}
	if j == nil {
		return cannot(fmt.Errorf("there is no journal at %s yet", at), "see what is kept beside it: fiducial show "+r.ID+" --transcript")
	}
	defer func() { _ = j.Close() }()
	if _, err := j.Stat(ctx, r.ID); errors.Is(err, journal.ErrNotFound) {
		return cannot(fmt.Errorf("run %s is not in the journal %s", r.ID, at), "see what is kept beside it: fiducial show "+r.ID+" --transcript")
	}
	u := a.newUI()
	w := &watch{u: u, json: a.json, run: r.ID}
	err = w.records(ctx, j)
	if err == nil {
		err = a.followed(ctx, p, w, f)
	}
	return errors.Join(err, u.Close())
}

// followed tells how the run stands when nothing more comes.
func (a *app) followed(ctx context.Context, p place, w *watch, f showFlags) error {
	r, _, err := a.pickPast(ctx, p, w.run, f.all)
	if err != nil {
		return err
	}
	if w.json {
		return w.object(followEvent{Run: r.ID, At: time.Now().UTC(), Kind: "end"}, struct {
			State  string `json:"state"`
			Exit   string `json:"exit,omitempty"`
			Reason string `json:"reason,omitempty"`
			Commit string `json:"commit,omitempty"`
			Next   string `json:"next,omitempty"`
		}{r.State, r.Exit, r.Reason, r.Commit, r.Next})
	}
	text := "run " + r.ID + ": " + r.State
	if r.Commit != "" {
		text += fmt.Sprintf(", commit %.12s, %s", r.Commit, count(len(r.Files), "file"))
	}
	w.u.Status(ui.Status{})
	w.u.Heading("%s", text)
	if r.State != "done" && r.Reason != "" {
		w.u.Line("%s", bare(r.Reason))
	}
	if r.Next != "" {
		w.u.Line("%s", r.Next)
	}
	return nil
}

// lookEvery is how often a follower looks whether somebody still works on the run.
const lookEvery = time.Second

// records hands on every record, and returns when the run has ended, when nobody holds it any more, and when ctx ends.
func (w *watch) records(ctx context.Context, j journal.Journal) error {
	following, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan struct{})
	defer func() { stop(); <-done }()
	go func() {
		defer close(done)
		abandoned(following, j, w.run)
		stop()
	}()
	for rec, err := range j.Follow(following, w.run, 0) {
		if err != nil {
			if following.Err() != nil && ctx.Err() == nil {
				break
			}
			return cannot(err)
		}
		if err := w.record(rec); err != nil {
			return err
		}
	}
	return context.Cause(ctx)
}

// abandoned returns when nobody holds the run at two looks in a row, and when ctx ends. A journal that cannot be asked
// now may be asked again.
func abandoned(ctx context.Context, j journal.Journal, run string) {
	free := 0
	for {
		info, err := j.Stat(ctx, run)
		switch {
		case errors.Is(err, journal.ErrNotFound):
			return
		case err == nil && !info.Held:
			free++
		default:
			free = 0
		}
		if free > 1 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(lookEvery):
		}
	}
}

// A watch shows records.
type watch struct {
	u    *ui.UI
	json bool
	run  string

	model   string
	s       ui.Status
	calls   []llm.Call     // of the last reply
	running map[int]string // by ordinal
}

// followEvent is a line of show --follow --json. The keys are stable.
type followEvent struct {
	Run  string          `json:"run"`
	Seq  uint64          `json:"seq,omitempty"`
	At   time.Time       `json:"at"`
	Kind string          `json:"kind"` // header, step, note, end
	Name string          `json:"name,omitempty"`
	Data json.RawMessage `json:"data,omitempty"`
}

func (w *watch) object(ev followEvent, data any) error {
	raw, err := json.Marshal(data)
	if err != nil {
		return err
	}
	ev.Data = raw
	return w.u.ObjectLine(ev)
}

func (w *watch) record(rec journal.Record) error {
	if !w.json {
		w.tell(rec)
		return nil
	}
	ev := followEvent{Run: w.run, Seq: rec.Seq, At: rec.At}
	switch b := rec.Body.(type) {
	case journal.Header:
		ev.Kind = "header"
		return w.object(ev, struct {
			Labels map[string]string `json:"labels"`
			Parent string            `json:"parent,omitempty"`
		}{b.Labels, b.Parent})
	case journal.Note:
		ev.Kind, ev.Name = "note", b.Kind
		return w.object(ev, b.Data)
	case journal.Step:
		name, data, err := machine.EncodeInput(b.Input)
		if err != nil {
			return err
		}
		ev.Kind, ev.Name, ev.Data = "step", name, data
	}
	return w.u.ObjectLine(ev)
}

// tell shows a record as the run itself shows what happens.
func (w *watch) tell(rec journal.Record) {
	switch b := rec.Body.(type) {
	case journal.Header:
		w.model = b.Labels[labelModel]
		w.u.Heading("fiducial %s: %s", w.run, b.Labels[labelRequest])
		w.now("snapshot, ERC and DRC of the start", rec.At)
	case journal.Note:
		w.note(b)
	case journal.Step:
		w.step(b.Input, rec.At)
	}
}

// now is for the live line; elsewhere a line comes with what has happened.
func (w *watch) now(what string, since time.Time) {
	if w.u.Live() {
		w.s.Now, w.s.Since = what, since
		w.u.Status(w.s)
	}
}

// note knows the notes of package task; what others note is for the engine.
func (w *watch) note(n journal.Note) {
	if n.Kind != taskNote {
		return
	}
	var st standing
	if json.Unmarshal(n.Data, &st) != nil {
		return // its own reader complains
	}
	if w.s.Budget > 0 && st.Budget > w.s.Budget {
		w.u.Line("%d turns more were granted", st.Budget-w.s.Budget)
	}
	w.s.Turn, w.s.Budget = st.Turns, st.Budget
	w.now(w.s.Now, w.s.Since)
}

func (w *watch) step(in machine.Input, at time.Time) {
	switch in := in.(type) {
	case machine.Start, machine.Resume, machine.Recovered:
		w.now(thinks(w.model), at)
	case machine.Generated:
		w.s.TokensIn += in.Usage.Input.Value()
		w.s.TokensOut += in.Usage.Output.Value()
		w.s.Cached += in.Usage.CacheRead.Value()
		w.s.Turn++
		w.calls = w.calls[:0]
		for _, c := range in.Message.Calls() {
			w.calls = append(w.calls, c)
		}
		w.u.Line("%s", strings.TrimSuffix(fmt.Sprintf("turn %d: %s", w.s.Turn, strings.TrimSpace(in.Message.Text())), ": "))
	case machine.Started:
		if w.running == nil {
			w.running = map[int]string{}
		}
		for _, c := range in.Calls {
			if c.Ordinal < len(w.calls) {
				w.running[c.Ordinal] = w.calls[c.Ordinal].Name
			}
		}
		w.tools(at)
	case machine.Settled:
		delete(w.running, in.Ordinal)
		if in.Result.Name == "" && in.Ordinal < len(w.calls) {
			in.Result.Name = w.calls[in.Ordinal].Name
		}
		w.u.Line("%s", toolLine(in.Result))
		w.tools(at)
	case machine.ToolsCompleted:
		for _, r := range in.Results {
			w.u.Line("%s", toolLine(r))
		}
	case machine.SettleRest:
		w.u.Line("  calls without a result: %s", in.Cause)
		clear(w.running)
	case machine.Steer:
		for _, m := range in.Messages {
			if text := strings.TrimSpace(m.Text()); text != "" {
				w.u.Line("> %s", text)
			}
		}
	case machine.Notice:
		w.u.Line("> %s", in.Text)
	case machine.GenerationFailed:
		w.u.Line("  the model could not be asked")
	case machine.Pause:
		w.u.Line("  paused: %s", in.Reason)
	case machine.CancelAtBoundary, machine.RecoverInterrupted:
		w.u.Line("  interrupted")
	case machine.AppendInput, machine.AppendSystem, machine.ReplaceContext, machine.ReplaceAtBoundary, machine.Truncate,
		machine.Begin, machine.SetTruncationCap:
	}
}

// tools shows what runs, or that the model is asked when nothing does.
func (w *watch) tools(at time.Time) {
	if len(w.running) == 0 {
		w.now(thinks(w.model), at)
		return
	}
	var names []string
	for i := range w.calls {
		if name, ok := w.running[i]; ok {
			names = append(names, name)
		}
	}
	w.now(strings.Join(names, ", "), at)
}
