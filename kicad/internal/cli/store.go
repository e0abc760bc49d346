// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/kicad/internal/journals"
	"github.com/fiducial-dev/fiducial/kicad/internal/runs"
)

func newJournal(a *app) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "journal",
		Short: "Say where the records of runs are kept; export, import, fork, prune and repair them",
		Long: `Every run is kept in a journal, record by record, as it happens: that is what resume goes on from and show --follow reads.
Without a sub-command this says which journal is used here, whether it can be reached, and how many runs it holds.

The journal is a SQLite database in the repository, .fiducial/journal.db, unless ` + journals.Env + ` names another:

  postgres://user@host/database   a PostgreSQL server, which a team shares: runs of every machine and every clone are
                                  listed everywhere. The password may stand in the address, in PGPASSWORD or in
                                  ~/.pgpass; it is never shown or stored. Tables are made by the first run, in the schema
                                  fiducial.
  file:///folder                  a folder with one file a run, lines of JSON; file:name is below the top of the
                                  repository. The folder must be on a local disk.

A journal that is damaged is told, and what can be read of it stays in use; fiducial journal repair makes it whole again.

Runs on a shared journal are told apart by the first commit of their repository, so that all clones see each other's runs.
What stays with the working tree are its snapshot, its files, the transcript and the summary: a run goes on only there.

JSON keys: journal, kind (SQLite, folder, PostgreSQL), shared, reachable, runs, ended, held, damaged (how many runs).`,
		Example: `  fiducial journal
  fiducial journal export last -o run.jsonl
  fiducial journal prune --older-than 90d --keep 50 --dry-run
  ` + journals.Env + `=postgres://ada@db/boards fiducial journal import run.jsonl`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.tellJournal(cmd.Context()) },
	}
	cmd.AddCommand(newJournalExport(a), newJournalImport(a), newJournalFork(a), newJournalPrune(a), newJournalRepair(a))
	return cmd
}

type journalState struct {
	Journal   string `json:"journal"`
	Kind      string `json:"kind"`
	Shared    bool   `json:"shared"`
	Reachable bool   `json:"reachable"`
	Runs      int    `json:"runs"`
	Ended     int    `json:"ended"`
	Held      int    `json:"held"`
	Damaged   int    `json:"damaged"`
}

func (a *app) tellJournal(ctx context.Context) error {
	p, err := a.place()
	if err != nil {
		return err
	}
	j, at, err := a.readJournal(ctx, p)
	if err != nil {
		return err
	}
	out := journalState{Journal: at.String(), Kind: at.Kind().String(), Shared: at.Shared(), Reachable: true}
	if j != nil {
		defer func() { _ = j.Close() }()
		for info, err := range j.Runs(ctx, journal.Filter{}) {
			if err != nil && info.Run == "" {
				return cannot(err)
			}
			out.Runs++
			switch {
			case err != nil:
				out.Damaged++
			case info.Ended:
				out.Ended++
			case info.Held:
				out.Held++
			}
		}
	}
	u := a.newUI()
	if a.json {
		return u.Object(out)
	}
	u.Line("%s (%s)", out.Journal, out.Kind)
	if j == nil {
		u.Line("  nothing is there yet; the first run makes it")
		return u.Close()
	}
	u.Line("  %s, %d of them ended, %d going on now", count(out.Runs, "run"), out.Ended, out.Held)
	if out.Damaged > 0 {
		u.Warn("%s damaged; keep what can be read: fiducial journal repair", count(out.Damaged, "run"))
	}
	return u.Close()
}

func newJournalExport(a *app) *cobra.Command {
	var output string
	var all bool
	cmd := &cobra.Command{
		Use:   "export RUN",
		Short: "Write the records of a run as one file",
		Long: `Writes a run as one file of lines of JSON, with a checksum behind it: for an archive, for a report, or to import it into
another journal. The same run gives the same bytes, whichever journal it comes from. A run that goes on meanwhile is
written as it is now. Without --output the file goes to standard output.

The records hold what the model and the tools said, secrets masked, as the journal does.

JSON keys (with --output): run, file, bytes.`,
		Example: `  fiducial journal export last -o run.jsonl
  fiducial journal export last | gzip > run.jsonl.gz`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error { return a.exportRun(cmd.Context(), args[0], output, all) },
	}
	cmd.Flags().StringVarP(&output, "output", "o", "", "the file, which must not exist yet (default: standard output)")
	cmd.Flags().BoolVar(&all, "all", false, "on a shared journal, look among the runs of other repositories too")
	return cmd
}

func (a *app) exportRun(ctx context.Context, which, output string, all bool) (err error) {
	if a.json && output == "" {
		return cannot(errors.New("--json and the run cannot both go to standard output"), "name a file: --output FILE")
	}
	_, j, r, err := a.inJournal(ctx, which, all)
	if err != nil {
		return err
	}
	defer func() { _ = j.Close() }()
	if output == "" {
		if err := journal.Export(ctx, j, r.ID, a.Out); err != nil {
			return cannot(err)
		}
		return nil
	}
	if !filepath.IsAbs(output) {
		output = filepath.Join(a.Dir, output)
	}
	n, err := exportTo(ctx, j, r.ID, output)
	if err != nil {
		return err
	}
	return a.answer(struct {
		Run   string `json:"run"`
		File  string `json:"file"`
		Bytes int64  `json:"bytes"`
	}{r.ID, output, n}, "run %s: %s, %d bytes", r.ID, output, n)
}

// exportTo writes a new file, and takes away what it could not finish.
func exportTo(ctx context.Context, j journal.Journal, run, name string) (n int64, err error) {
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return 0, cannot(fmt.Errorf("there is a file %s already", name), "name another one, or remove it")
	case err != nil:
		return 0, cannot(err, "name a file in a folder that is there and can be written")
	}
	defer func() {
		if err != nil {
			_ = os.Remove(name) // the first error counts
		}
	}()
	err = journal.Export(ctx, j, run, f)
	if err == nil {
		var st os.FileInfo
		if st, err = f.Stat(); err == nil {
			n = st.Size()
		}
	}
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return 0, cannot(fmt.Errorf("run %s was not written: %w", run, err), "make room on the disk, or name a file elsewhere")
	}
	return n, nil
}

// inJournal finds a run that the journal holds. Close the journal.
func (a *app) inJournal(ctx context.Context, which string, all bool) (p place, j journal.Journal, r pastRun, err error) {
	if p, err = a.place(); err != nil {
		return p, nil, r, err
	}
	j, at, err := a.readJournal(ctx, p)
	if err != nil {
		return p, nil, r, err
	}
	if j == nil {
		return p, nil, r, cannot(fmt.Errorf("there is no journal at %s yet", at), "the first run makes it: fiducial do")
	}
	if r, _, err = a.pickPast(ctx, p, which, all); err == nil && r.Journal == nil {
		err = cannot(fmt.Errorf("run %s is not in the journal %s", r.ID, at), "see what it holds: fiducial runs")
	}
	if err != nil {
		_ = j.Close()
		return p, nil, r, err
	}
	return p, j, r, nil
}

func newJournalImport(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE",
		Short: "Read a run that was exported into the journal",
		Long: `Reads what fiducial journal export wrote into the journal that is used here, under the run's own name; - is standard input.
All of it is stored or nothing: a file that was cut off or changed is refused, and so is a run that is there already. The
run keeps the repository and the working tree that it belongs to; elsewhere it can be looked at, and not gone on with.

JSON keys: run, journal.`,
		Example: "  fiducial journal import run.jsonl",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.importRun(cmd.Context(), args[0]) },
	}
}

func (a *app) importRun(ctx context.Context, name string) error {
	p, err := a.place()
	if err != nil {
		return err
	}
	from := a.In
	if name != "-" {
		if !filepath.IsAbs(name) {
			name = filepath.Join(a.Dir, name)
		}
		f, err := os.Open(name)
		if err != nil {
			return cannot(err, "name the file that fiducial journal export wrote")
		}
		defer func() { _ = f.Close() }()
		from = f
	}
	// What is no such file is refused before a journal is made for it.
	r := bufio.NewReader(from)
	if start, err := r.Peek(len(exportStart)); err != nil && !errors.Is(err, io.EOF) || string(start) != exportStart {
		return cannot(fmt.Errorf("%s is not the file of a run", name), "make one where the run is: fiducial journal export RUN -o FILE")
	}
	j, at, err := a.openJournal(ctx, p)
	if err != nil {
		return err
	}
	defer func() { _ = j.Close() }()
	run, err := journal.Import(ctx, j, r)
	switch {
	case errors.Is(err, journal.ErrExists):
		return cannot(fmt.Errorf("run %s is in the journal %s already", run, at), "look at it: fiducial show --all "+run)
	case errors.Is(err, journal.ErrFormat):
		return cannot(err, "use the newer fiducial that wrote it")
	case errors.Is(err, journal.ErrDamaged):
		// It is the file's, and no damage of the journal.
		return cannot(errors.New("nothing was imported: "+bare(err.Error())), "export the run once more")
	case err != nil:
		return journalFailure(err)
	}
	return a.answer(struct {
		Run     string `json:"run"`
		Journal string `json:"journal"`
	}{run, at.String()}, "run %s is in the journal %s now", run, at)
}

// exportStart is how an exported run begins.
const exportStart = `{"export":`

func newJournalFork(a *app) *cobra.Command {
	var at uint64
	cmd := &cobra.Command{
		Use:   "fork RUN",
		Short: "Begin a new run with the records of another",
		Long: `Copies the records of a run up to a request of the model into a new run, which names the one it comes from: for a program
that embeds the engine, to go on from there with another model or another prompt. The files are not touched, and no
command of fiducial goes on with a fork: it has no snapshot.

--at is the number of the last record that is taken over, as show --follow --json gives it in seq; it must be one after
which the model is asked. Without it all records up to the last such place are taken.

JSON keys: run, parent, records.`,
		Example: "  fiducial journal fork last --at 17",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return a.forkRun(cmd.Context(), args[0], at) },
	}
	cmd.Flags().Uint64Var(&at, "at", 0, "the last record that is taken over (default: the last after which the model is asked)")
	return cmd
}

func (a *app) forkRun(ctx context.Context, which string, at uint64) error {
	p, read, r, err := a.inJournal(ctx, which, false)
	if err != nil {
		return err
	}
	_ = read.Close()
	j, _, err := a.openJournal(ctx, p)
	if err != nil {
		return err
	}
	defer func() { _ = j.Close() }()
	var child string
	var last uint64
	for { // the name is a moment; somebody else may have it
		now := time.Now().UTC()
		child = fmt.Sprintf("%s-%03d", now.Format("20060102-150405"), now.Nanosecond()/int(time.Millisecond))
		if _, err := os.Lstat(filepath.Join(runs.Folder(p.top), child)); err == nil {
			continue
		}
		last, err = journal.Fork(ctx, j, r.ID, at, child)
		if !errors.Is(err, journal.ErrExists) {
			break
		}
	}
	switch {
	case errors.Is(err, journal.ErrInvalid):
		return cannot(err, "see the numbers: fiducial show --follow --json "+r.ID)
	case err != nil:
		return journalFailure(err)
	}
	return a.answer(struct {
		Run     string `json:"run"`
		Parent  string `json:"parent"`
		Records uint64 `json:"records"`
	}{child, r.ID, last}, "run %s begins with the first %d records of run %s", child, last, r.ID)
}

// removeFolder takes away what is kept of a run beside the journal.
func removeFolder(top, run string) error {
	if !filepath.IsLocal(run) || strings.ContainsAny(run, `/\`) || strings.HasPrefix(run, ".") {
		return runs.ErrBadID
	}
	root, err := os.OpenRoot(top)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	return root.RemoveAll(filepath.Join(runs.Folder(""), run))
}
