// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/kicad/agent"
	"github.com/fiducial-dev/fiducial/kicad/internal/journals"
	"github.com/fiducial-dev/fiducial/kicad/internal/runs"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/task"
	"github.com/fiducial-dev/fiducial/task/transcript"
	"github.com/fiducial-dev/fiducial/task/workspace"
)

// doJSON is what do and resume print with --json. The keys are stable; the help
// documents them.
type doJSON struct {
	Run          string     `json:"run"`
	Outcome      string     `json:"outcome"`
	Path         string     `json:"path"`
	Detail       string     `json:"detail"`
	Model        string     `json:"model"`
	Request      string     `json:"request"`
	DryRun       bool       `json:"dry_run"`
	Commit       string     `json:"commit,omitempty"`
	Files        []string   `json:"files"`
	Stat         []statJSON `json:"stat"`
	Diff         string     `json:"diff,omitempty"` // of a dry run, as git writes it
	Verification []string   `json:"verification"`
	Warnings     []string   `json:"warnings"`
	Turns        int        `json:"turns"`
	Usage        llm.Usage  `json:"usage"`
	Preserved    string     `json:"preserved,omitempty"`
	Restored     *bool      `json:"restored,omitempty"`
	Summary      string     `json:"summary"`
	Transcript   string     `json:"transcript"`
	ExitCode     int        `json:"exit_code"`
}

type statJSON struct {
	Path    string `json:"path"`
	Added   int    `json:"added"`
	Deleted int    `json:"deleted"`
}

// finish writes the summary, tells the person, and gives the exit code.
func (s *session) finish(ctx context.Context, res *task.Result) error {
	code := exitOK
	switch {
	case s.giveUp && res.RestoreErr == nil: // what was asked for
	case res.Path == task.PathCancelled:
		code = exitInterrupted
	case res.Outcome != task.Done, res.RestoreErr != nil:
		code = exitNo
	}
	if errors.Is(res.Err, journal.ErrDamaged) {
		res.Warnings = append(res.Warnings, "the journal is damaged; keep what can be read of it: fiducial journal repair")
	}
	if journals.IsFull(res.Err) {
		res.Warnings = append(res.Warnings, "the disk that holds the journal "+s.meta.Store+" is full; make room there, then ask again")
	}
	s.note(res)
	s.save()
	s.endJournal(ctx)
	if err := s.log.WriteSummary(s.summary(res)); err != nil {
		res.Warnings = append(res.Warnings, "there is no summary: "+bare(err.Error()))
		s.noSummary = true
	}
	if s.json {
		if err := s.ui.Object(s.object(res, code)); err != nil {
			return cannot(err)
		}
		return told(code)
	}
	s.tell(res)
	return told(code)
}

// note fills the meta file in.
func (s *session) note(res *task.Result) {
	m := &s.meta
	m.Ended, m.Exit, m.Reason = time.Now().UTC(), string(res.Path), s.masker.Text(res.Detail)
	switch {
	case res.Path == task.PathCancelled:
		m.Outcome, m.Exit = runs.Interrupted, runs.ExitInterrupted
	case res.Outcome == task.Done:
		m.Outcome = runs.Done
	case res.Outcome == task.Refused:
		m.Outcome = runs.Refused
	default:
		m.Outcome = runs.Failed
	}
	m.Commit, m.Files = res.Commit, res.Files
	m.Preserved = res.Preserved.Stash
	m.Restored = wholeAgain(res)
	if s.bench == nil { // given up, without a look at the design
		return
	}
	m.Turns, m.Usage = res.Tally.Turns, res.Tally.Usage
	for _, c := range s.bench.Checks() {
		before, after := countOf(c.Before), countOf(c.After)
		if c.Name == "DRC" {
			m.Findings.Before.DRC, m.Findings.After.DRC = before, after
		} else {
			m.Findings.Before.ERC, m.Findings.After.ERC = before, after
		}
	}
}

// countOf counts what a check found; nil when it did not run.
func countOf(v *kicadcli.Verdict) *runs.Count {
	if v == nil || v.Status == kicadcli.NotRun {
		return nil
	}
	return runs.CountOf(v.Report)
}

func wholeAgain(res *task.Result) *bool {
	if res.Restored == nil {
		return nil
	}
	ok := res.RestoreErr == nil
	return &ok
}

func (s *session) runFile(name string) string {
	return filepath.ToSlash(filepath.Join(runs.Folder(""), s.meta.ID, name))
}

func (s *session) object(res *task.Result, code int) doJSON {
	o := doJSON{
		Run: res.Run, Outcome: string(s.meta.Outcome), Path: string(res.Path), Detail: s.masker.Text(res.Detail),
		Model: s.meta.Model, Request: s.meta.Request, DryRun: s.dryRun, Commit: res.Commit,
		Files: orEmpty(res.Files), Stat: []statJSON{}, Verification: orEmpty(res.Verification), Warnings: orEmpty(res.Warnings),
		Turns: res.Tally.Turns, Usage: res.Tally.Usage, Preserved: res.Preserved.Stash, Restored: wholeAgain(res),
		Summary: s.runFile(runs.SummaryFile), Transcript: s.runFile(runs.TranscriptFile), ExitCode: code,
	}
	if s.dryRun && res.Outcome == task.Done {
		o.Diff = s.masker.Text(res.Diff)
	}
	if s.noSummary {
		o.Summary = ""
	}
	for _, st := range res.Stats {
		o.Stat = append(o.Stat, statJSON{st.Path, st.Added, st.Deleted})
	}
	return o
}

func orEmpty(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

// tell is the end of a run for a person. The outcome is its last line (B-52).
func (s *session) tell(res *task.Result) {
	u := s.ui
	if len(res.Stats) > 0 && res.Outcome == task.Done {
		u.Heading("Changes")
		for _, st := range res.Stats {
			u.Line("  %s", s.statLine(st))
		}
		if s.dryRun {
			u.Diff(res.Diff)
		}
	}
	if len(res.Verification) > 0 {
		u.Heading("Verification")
		for _, v := range res.Verification {
			u.Line("  %s", v)
		}
	}
	for _, w := range res.Warnings {
		u.Warn("%s", w)
	}
	s.whereabouts(res)
	if !s.noSummary {
		u.Heading("Summary: %s", s.runFile(runs.SummaryFile))
	}
	u.Line("%s", s.outcomeLine(res))
}

// statLine is a file's change, with how much of the file it is.
func (s *session) statLine(st workspace.Stat) string {
	if st.Binary {
		return st.Path + ": binary"
	}
	return fmt.Sprintf("%s: +%d -%d lines", st.Path, st.Added, st.Deleted)
}

// whereabouts says where everything is after a run that was not done.
func (s *session) whereabouts(res *task.Result) {
	u := s.ui
	if res.Preserved.Stash != "" {
		u.Line("What the run had changed is kept as a stash: git stash apply %s", short7(res.Preserved.Stash))
	}
	switch {
	case res.RestoreErr != nil:
		u.Warn("The tree could not be put back whole: %v", res.RestoreErr)
		u.Warn("The snapshot is kept. Mend the cause, then: fiducial resume %s --give-up", res.Run)
	case res.Restored != nil:
		u.Line("The tree is as it was before the run.")
	}
	if res.Restored != nil && res.Restored.HeadMoved {
		u.Warn("Something else committed meanwhile; %s is left as it is.", res.Restored.Head)
	}
}

func short7(id string) string {
	if len(id) > 12 {
		return id[:12]
	}
	return id
}

func (s *session) outcomeLine(res *task.Result) string {
	took := s.meta.Ended.Sub(s.meta.Started).Round(100 * time.Millisecond)
	tail := fmt.Sprintf("%s, %d tokens in, %d out, %v", count(res.Tally.Turns, "turn"), res.Tally.Usage.Input.Value(), res.Tally.Usage.Output.Value(), took)
	switch {
	case res.Outcome == task.Done && s.dryRun:
		return fmt.Sprintf("Done as a dry run, the changes are reverted. %s", tail)
	case res.Outcome == task.Done && res.Commit == "":
		return fmt.Sprintf("Done, and nothing had to change. %s", tail)
	case res.Outcome == task.Done:
		return fmt.Sprintf("Done: commit %s, %s. %s", short7(res.Commit), count(len(res.Files), "file"), tail)
	case res.Outcome == task.Refused:
		return fmt.Sprintf("Refused: %s\n%s", res.Detail, tail)
	case s.giveUp:
		return "Given up: run " + res.Run
	case res.Path == task.PathCancelled:
		return fmt.Sprintf("Interrupted. %s", tail)
	}
	return fmt.Sprintf("Failed (%s): %s\n%s", res.Path, res.Detail, tail)
}

func (s *session) summary(res *task.Result) transcript.Summary {
	out := transcript.Summary{
		Request: s.meta.Request, Run: res.Run, Outcome: string(res.Path), Plan: res.Tally.Plan,
		Decisions: res.Tally.Decisions, Detail: s.summaryDetail(res),
		Statistics: []transcript.Field{
			{Name: "Turns", Value: fmt.Sprintf("%d of %d", res.Tally.Turns, res.Tally.MaxTurns)},
			{Name: "Repair cycles", Value: fmt.Sprintf("%d of %d", res.Tally.Repairs, res.Tally.MaxRepairs)},
			{Name: "Tokens in", Value: fmt.Sprint(res.Tally.Usage.Input.Value())},
			{Name: "Tokens out", Value: fmt.Sprint(res.Tally.Usage.Output.Value())},
			{Name: "Tokens from the cache", Value: fmt.Sprint(res.Tally.Usage.CacheRead.Value())},
		},
	}
	for _, name := range []string{"fiducial", "kicad-cli", "model"} {
		out.Environment = append(out.Environment, transcript.Field{Name: name, Value: s.meta.Environment[name]})
	}
	out.Environment = append(out.Environment, transcript.Field{Name: "project", Value: s.meta.Project}, transcript.Field{Name: "HEAD", Value: s.meta.Head})
	for _, st := range res.Stats {
		out.Files = append(out.Files, transcript.File{Path: st.Path, Change: "changed", Added: st.Added, Deleted: st.Deleted, Binary: st.Binary})
	}
	if len(res.Stats) == 0 {
		for _, f := range res.Tally.Touched {
			out.Files = append(out.Files, transcript.File{Path: f, Change: "touched, not kept"})
		}
	}
	for _, c := range s.checks() {
		v := transcript.Verdict{Check: c.Name, Result: transcript.NotRun, Detail: c.Line}
		if c.After != nil {
			v.Result, v.Command = transcript.Result(c.Outcome), c.After.Command
		}
		out.Verification = append(out.Verification, v)
	}
	for _, o := range res.Tally.Open {
		out.Obligations = append(out.Obligations, strings.TrimSpace(o.Kind+" "+o.Detail))
	}
	return out
}

// checks are the bench's; a run that is given up has none.
func (s *session) checks() []agent.Check {
	if s.bench == nil {
		return nil
	}
	return s.bench.Checks()
}

// summaryDetail is the summary's last section: why, and where everything is.
func (s *session) summaryDetail(res *task.Result) string {
	var lines []string
	if res.Outcome == task.Refused {
		lines = append(lines, "REFUSED")
	}
	lines = append(lines, res.Detail)
	if s.dryRun {
		lines = append(lines, "This was a dry run: the changes were reverted.")
	}
	var facts []string // beside the verdicts, which have a section of their own
	for _, v := range res.Verification {
		if !strings.HasPrefix(v, "ERC ") && !strings.HasPrefix(v, "DRC ") {
			facts = append(facts, "- "+v)
		}
	}
	if len(facts) > 0 {
		lines = append(lines, strings.Join(facts, "\n"))
	}
	if res.Commit != "" {
		lines = append(lines, "Commit: "+res.Commit)
	}
	if res.Preserved.Stash != "" {
		lines = append(lines, "The changes are kept: git stash apply "+res.Preserved.Stash)
	}
	if res.RestoreErr != nil {
		lines = append(lines, "ROLLBACK FAILED: "+res.RestoreErr.Error())
	}
	return strings.Join(append(lines, res.Warnings...), "\n\n")
}
