// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/kicad/internal/runs"
	"github.com/fiducial-dev/fiducial/kicad/internal/ui"
	"github.com/fiducial-dev/fiducial/task/transcript"
)

// showFlags are what show is told.
type showFlags struct {
	events, follow, all bool
}

func newShow(a *app) *cobra.Command {
	var f showFlags
	cmd := &cobra.Command{
		Use:   "show [RUN]",
		Short: "Show one run: outcome, files, tokens, summary, transcript; or follow it",
		Long: `Shows a run. RUN is its id, a part of it that fits no other, or "last", which is the newest of this working tree and
meant when RUN is left out. With --transcript every event is listed, from the transcript, or from the journal when there
is none.

With --follow the run is shown from its start and on, as it happens, from its journal: from another terminal, and with a
shared journal from another machine. It ends when the run ends or turns out to be interrupted. Ctrl-C ends the showing,
never the run.

JSON keys: those of a run in fiducial runs --json, and summary; with --transcript also transcript [] and
transcript_trouble []. With --follow one object a line: run, seq, at, kind (header, step, note), name, data; and a last one
of kind end, whose data are state, exit, reason, commit and next of the run.`,
		Example: `  fiducial show last
  fiducial show 20261130-081500-042 --transcript
  fiducial show --follow
  fiducial show last --json | jq .usage
  fiducial show --follow --json | jq -r 'select(.name == "settled") | .data.result.name'`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			which := cmp.Or(strings.Join(args, ""), "last")
			if f.follow && f.events {
				return cannot(errors.New("--follow and --transcript are two ways to list events"), "give one of them")
			}
			if f.follow {
				return a.follow(cmd.Context(), which, f)
			}
			return a.show(cmd.Context(), which, f)
		},
	}
	cmd.Flags().BoolVar(&f.events, "transcript", false, "list every event")
	cmd.Flags().BoolVarP(&f.follow, "follow", "f", false, "show what happens as it happens, until the run ends")
	cmd.Flags().BoolVar(&f.all, "all", false, "on a shared journal, look among the runs of other repositories too")
	return cmd
}

type showJSON struct {
	pastRun
	Summary    string            `json:"summary"`
	Transcript []json.RawMessage `json:"transcript,omitempty"`
	Torn       []string          `json:"transcript_trouble,omitempty"`
}

func (a *app) show(ctx context.Context, which string, f showFlags) error {
	p, err := a.place()
	if err != nil {
		return err
	}
	r, trouble, err := a.pickPast(ctx, p, which, f.all)
	if err != nil {
		return err
	}
	out := showJSON{pastRun: r}
	out.Trouble = append(slices.Clone(trouble), out.Trouble...)
	if out.Summary, err = transcript.ReadSummary(p.top, r.ID); err != nil && !isMissing(err) {
		out.Trouble = append(out.Trouble, err.Error())
	}
	if f.events {
		a.readTranscript(ctx, p, &out)
	}
	u := a.newUI()
	if a.json {
		return u.Object(out)
	}
	out.report(u, f.events)
	return u.Close()
}

// pickPast finds the run that a person means, with all that is known of it. Trouble is what could not be read.
func (a *app) pickPast(ctx context.Context, p place, which string, all bool) (r pastRun, trouble []string, err error) {
	list, trouble, err := a.past(ctx, p, all)
	if err != nil {
		return r, nil, err
	}
	if list, err = a.ofProject(p, list); err != nil {
		return r, nil, err
	}
	if r, err = pick(list, which); err != nil {
		return r, nil, withTrouble(err, trouble)
	}
	one := []pastRun{r}
	trouble = append(trouble, a.enrich(ctx, p, one)...)
	return one[0], trouble, nil
}

// withTrouble adds to the failure to find a run why it may not have been seen.
func withTrouble(err error, trouble []string) error {
	f, ok := errors.AsType[*failure](err)
	if !ok || len(trouble) == 0 {
		return err
	}
	more := *f
	more.err = fmt.Errorf("%w; %s", f.err, strings.Join(trouble, "; "))
	return &more
}

// pick finds the run that a person means.
func pick(list []pastRun, which string) (pastRun, error) {
	if len(list) == 0 {
		return pastRun{}, cannot(errors.New("there is no run here yet"), `the first one: fiducial do "rename net A to B"`)
	}
	var fit []pastRun
	last := max(0, slices.IndexFunc(list, func(r pastRun) bool { return r.Tree == "" })) // of this working tree, if there is one
	for i, r := range list {
		if r.ID == which || which == "last" && i == last {
			return r, nil
		}
		if strings.Contains(r.ID, which) {
			fit = append(fit, r)
		}
	}
	if len(fit) == 1 {
		return fit[0], nil
	}
	var ids []string
	for _, r := range fit {
		ids = append(ids, r.ID)
	}
	if len(ids) > 0 {
		return pastRun{}, mayBe(which, ids)
	}
	return pastRun{}, cannot(fmt.Errorf("there is no run %q here", which), "see fiducial runs")
}

// readTranscript takes the transcript, or what stands for it in the journal.
func (a *app) readTranscript(ctx context.Context, p place, s *showJSON) {
	log, err := transcript.Read(p.top, s.ID)
	if err != nil && !isMissing(err) {
		s.Torn = append(s.Torn, err.Error())
	}
	if log.Torn > 0 {
		s.Torn = append(s.Torn, fmt.Sprintf("the last %d bytes are half an event: the process was killed while it wrote", log.Torn))
	}
	for _, e := range log.Events {
		line, err := json.Marshal(e)
		if err != nil {
			s.Torn = append(s.Torn, err.Error())
			continue
		}
		s.Transcript = append(s.Transcript, line)
	}
	if len(s.Transcript) > 0 || s.Journal == nil {
		return
	}
	if err := a.readRecords(ctx, p, s); err != nil {
		s.Torn = append(s.Torn, err.Error())
	}
}

// isMissing reports whether a run has no such file.
func isMissing(err error) bool {
	e, ok := errors.AsType[*transcript.Error](err)
	return ok && e.Kind == transcript.KindNotFound
}

func (a *app) readRecords(ctx context.Context, p place, s *showJSON) (err error) {
	j, _, err := a.readJournal(ctx, p)
	if err != nil || j == nil {
		return err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	for rec, err := range j.Read(ctx, s.ID, 0) {
		if err != nil {
			return err
		}
		enc, err := journal.EncodeRecord(s.ID, journal.Stored{Record: rec})
		if err != nil {
			return err
		}
		s.Transcript = append(s.Transcript, json.RawMessage(enc.Line))
	}
	return nil
}

func (s *showJSON) report(u *ui.UI, events bool) {
	u.Heading("run %s: %s", s.ID, s.State)
	for _, f := range []struct{ name, text string }{
		{"request", s.Request},
		{"model", s.Model},
		{"project", s.Project},
		{"works in", s.Tree},
		{"forked", forkedFrom(s.pastRun)},
		{"started", stamp(s.Started)},
		{"took", took(s.Meta)},
		{"exit", s.Exit},
		{"reason", bare(s.Reason)},
		{"turns", turnsOf(s.Meta)},
		{"tokens", tokensOf(s.Meta)},
		{"files", strings.Join(s.Files, "\n")},
		{"commit", s.Commit},
		{"undone", undone(s.Meta)},
		{"preserved", s.Preserved},
		{"restored", restored(s.Meta)},
		{"ERC", change(s.Findings.Before.ERC, s.Findings.After.ERC)},
		{"DRC", change(s.Findings.Before.DRC, s.Findings.After.DRC)},
		{"next", s.Next},
	} {
		if f.text != "" {
			u.Line("  %-10s %s", f.name, strings.ReplaceAll(f.text, "\n", "\n         "))
		}
	}
	for _, t := range s.Trouble {
		u.Warn("%s", t)
	}
	if s.Summary != "" {
		u.Heading("summary")
		for line := range strings.Lines(s.Summary) {
			u.Line("  %s", strings.TrimRight(line, "\r\n"))
		}
	}
	if !events {
		return
	}
	u.Heading("transcript")
	for _, e := range s.Transcript {
		u.Line("  %s", event(e))
	}
	for _, t := range s.Torn {
		u.Warn("%s", t)
	}
	if len(s.Transcript) == 0 {
		u.Line("  none")
	}
}

func forkedFrom(r pastRun) string {
	if r.Journal == nil || r.Journal.Parent == "" {
		return ""
	}
	return "from run " + r.Journal.Parent
}

func stamp(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.Local().Format(time.DateTime)
}

func undone(m runs.Meta) string {
	if m.Undone == "" {
		return ""
	}
	return fmt.Sprintf("by commit %.12s, %s", m.Undone, stamp(m.UndoneAt))
}

func restored(m runs.Meta) string {
	switch {
	case m.Restored == nil:
		return ""
	case *m.Restored:
		return "yes, the tree is as it was before"
	}
	return "NO, the tree could not be put back whole; the tree before is kept as refs/fiducial/" + m.ID
}

// change tells the findings before and after.
func change(before, after *runs.Count) string {
	text := func(c *runs.Count) string {
		if c == nil {
			return "not run"
		}
		return count(c.Errors, "error") + ", " + count(c.Warnings, "warning")
	}
	if before == nil && after == nil {
		return ""
	}
	return "before: " + text(before) + "; after: " + text(after)
}

// maxEvent is how much of an event's data a line shows.
const maxEvent = 400

// event is one line of a transcript: time, kind, and its data cut short.
func event(raw json.RawMessage) string {
	var e map[string]json.RawMessage
	if json.Unmarshal(raw, &e) != nil {
		return ui.CleanLine(cut(string(raw)))
	}
	word := func(names ...string) string {
		for _, n := range names {
			var s string
			if json.Unmarshal(e[n], &s) == nil && s != "" {
				return s
			}
		}
		return ""
	}
	at := word("at", "time")
	if t, err := time.Parse(time.RFC3339Nano, at); err == nil {
		at = t.Local().Format(time.TimeOnly)
	}
	kind := strings.TrimSpace(word("kind", "event", "type") + " " + word("name"))
	data := e["data"]
	if data == nil {
		for _, n := range []string{"at", "time", "kind", "event", "type"} {
			delete(e, n)
		}
		data, _ = json.Marshal(e) // it was JSON before
	}
	return fmt.Sprintf("%-8s  %-16s  %s", cmp.Or(at, "-"), ui.CleanLine(cmp.Or(kind, "-")), ui.CleanLine(cut(string(data))))
}

func cut(s string) string {
	if len(s) <= maxEvent {
		return s
	}
	return strings.ToValidUTF8(s[:maxEvent], "") + " ..."
}
