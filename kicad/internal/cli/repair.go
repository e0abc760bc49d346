// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/kicad/internal/journals"
	"github.com/fiducial-dev/fiducial/kicad/internal/ui"
)

func newJournalRepair(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "repair",
		Short: "Make a damaged journal whole again, and keep all that can be read",
		Long: `Makes the journal that is used here whole again: every run is kept up to its first record that cannot be read, and what
stands behind it is lost. The damaged bytes are not: a database is put beside the new one under another name, and of a
folder the end of each damaged run. A journal without damage is left as it is. If you have a copy of the journal from
before the damage, restoring that loses less.

Nothing may use the journal meanwhile, so it refuses while a run goes on. A run that was cut off can be looked at, and gone
on with while its snapshot is there; a call of a tool behind the cut may have run although no record says so. Commits and
files are not touched.

A journal on a server is not repaired by this: the server's own backup is the means.

Exit codes: 0 the journal is whole, 1 a run could not be repaired and is as it was, 2 nothing could be done.

JSON keys: journal, kind, damaged, kept_as, runs [{run, kept, lost, lost_bytes, lost_messages, kept_as, why, failed}],
exit_code. kept is the number of the last record that is kept, 0 when the run is lost; lost counts the records behind it
that are known of.`,
		Example: "  fiducial journal repair",
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.repair(cmd.Context()) },
	}
}

type repairJSON struct {
	Journal  string       `json:"journal"`
	Kind     string       `json:"kind"`
	Damaged  bool         `json:"damaged"`
	KeptAs   string       `json:"kept_as,omitempty"`
	Runs     []mendedJSON `json:"runs"`
	ExitCode int          `json:"exit_code"`
}

type mendedJSON struct {
	Run      string `json:"run"`
	Kept     uint64 `json:"kept"`
	Lost     uint64 `json:"lost,omitempty"`
	Bytes    int64  `json:"lost_bytes,omitempty"`
	Messages int    `json:"lost_messages,omitempty"`
	KeptAs   string `json:"kept_as,omitempty"`
	Why      string `json:"why,omitempty"`
	Failed   bool   `json:"failed,omitempty"`
}

func (a *app) repair(ctx context.Context) error {
	p, err := a.place()
	if err != nil {
		return err
	}
	at, err := a.store(p)
	if err != nil {
		return err
	}
	done, err := at.Repair(ctx)
	held, isHeld := errors.AsType[*journal.HeldError](err)
	switch {
	case errors.Is(err, journals.ErrServer):
		return cannot(fmt.Errorf("%s is on a server: %w", at, err), repairRemedies(at)...)
	case isHeld:
		return cannot(fmt.Errorf("run %s goes on, and a journal in use is not repaired", held.Run),
			"wait for it, or stop it by Ctrl-C where it runs; fiducial runs says who has it")
	case errors.Is(err, fs.ErrNotExist):
		return cannot(fmt.Errorf("there is no journal at %s yet", at), "the first run makes it: fiducial do")
	case err != nil:
		return unreachable(err)
	}
	out := repairJSON{Journal: at.String(), Kind: at.Kind().String(), Damaged: !done.Whole(), KeptAs: done.KeptAs, Runs: []mendedJSON{}}
	for _, m := range done.Runs {
		r := mendedJSON{Run: m.Run, Kept: m.Kept, Lost: m.Lost, Bytes: m.Bytes, Messages: m.Messages, KeptAs: m.KeptAs, Failed: m.Failed}
		if m.Why != nil {
			r.Why = reasonOf(m.Why)
		}
		if m.Failed {
			out.ExitCode = exitNo
		}
		out.Runs = append(out.Runs, r)
	}
	u := a.newUI()
	if a.json {
		return errors.Join(u.Object(out), told(out.ExitCode))
	}
	out.report(u)
	return errors.Join(u.Close(), told(out.ExitCode))
}

// reasonOf is what is damaged, without the advice to repair it.
func reasonOf(err error) string {
	if d, ok := errors.AsType[*journal.DamageError](err); ok {
		return d.Reason
	}
	return bare(err.Error())
}

func (out repairJSON) report(u *ui.UI) {
	u.Line("%s (%s)", out.Journal, out.Kind)
	if !out.Damaged {
		u.Line("  nothing is damaged, %s; it is left as it is", count(len(out.Runs), "run"))
		return
	}
	whole := 0
	for _, r := range out.Runs {
		if r.Why == "" {
			whole++
			continue
		}
		u.Line("  %s", r.line())
	}
	u.Line("  %s kept whole", count(whole, "run"))
	if out.KeptAs != "" {
		u.Line("  the damaged database is kept as %s", out.KeptAs)
	}
	if whole < len(out.Runs) {
		u.Line("  fiducial runs says how each run stands now")
	}
}

// line says what became of a run that is not whole.
func (r mendedJSON) line() string {
	text := fmt.Sprintf("run %s: ", r.Run)
	switch {
	case r.Failed:
		return text + "it cannot be repaired and is as it was: " + r.Why
	case r.Kept == 0:
		text += "lost"
	default:
		text += fmt.Sprintf("kept up to record %d, cut off there", r.Kept)
	}
	for _, gone := range []string{
		gone(int(r.Lost), "record"), gone(int(r.Bytes), "byte"), gone(r.Messages, "waiting message"), //nolint:gosec // counts of things that were on a disk
	} {
		if gone != "" {
			text += ", " + gone
		}
	}
	text += ": " + r.Why
	if r.KeptAs != "" {
		text += "; what was cut off is kept as " + r.KeptAs
	}
	return text
}

func gone(n int, noun string) string {
	if n == 0 {
		return ""
	}
	return count(n, noun) + " gone"
}

// repairRemedies say what to do about a journal that is damaged.
func repairRemedies(at journals.Place) []string {
	if at.Kind() == journals.Postgres {
		return []string{
			"restore it from the server's own backup, as whoever runs the server does",
			"keep runs in .fiducial/journal.db meanwhile: unset " + journals.Env,
		}
	}
	return []string{
		"restore a copy of " + at.String() + " from before the damage, if there is one",
		"or keep what can be read: fiducial journal repair",
	}
}

// withRepair puts what to do about a damaged journal in the place of other advice.
func (a *app) withRepair(f *failure) *failure {
	p, err := a.place()
	if err != nil {
		return f
	}
	at, err := a.store(p)
	if err != nil {
		return f
	}
	return &failure{code: f.code, err: f.err, remedies: repairRemedies(at)}
}

// damageAdvice is what a line about err says besides, "" when err is no damage of the journal.
func damageAdvice(err error) string {
	if !errors.Is(err, journal.ErrDamaged) {
		return ""
	}
	return "; see fiducial journal repair"
}
