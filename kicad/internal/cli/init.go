// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/kicad/internal/ui"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/pcb"
	"github.com/fiducial-dev/fiducial/kicad/project"
)

// initJSON is what init prints with --json.
type initJSON struct {
	Project  projectJSON    `json:"project"`
	Docs     string         `json:"docs"`
	Files    []initFileJSON `json:"files"`
	Written  int            `json:"written"`
	ExitCode int            `json:"exit_code"`
	Refused  []string       `json:"refused,omitempty"`
}

type initFileJSON struct {
	File  string     `json:"file"`
	State docs.State `json:"state"`
}

func newInit(a *app) *cobra.Command {
	var opts docs.InitOptions
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make the project's documents from its design",
		Long: `Makes the documents that people, check and the agent share, from what kicad-cli says of the design, in the docs folder:

  BOM.md         every part that belongs into a bill of materials       made from the design
  PINOUT.md      every pin of connectors and integrated circuits        made from the design
  SUBSYSTEMS.md  the sheets and their parts                             made from the design
  LAYOUT.md      what the board is                                      made from the design
  SPEC.md        purpose, budgets, constraints                          yours once it is there
  DECISIONS.md   one line a decision                                    only ever added to
  CHANGELOG.md   one entry a change                                     only ever added to

and .fiducial.json beside the .kicad_pro, which says where the documents are and holds a hash of each one that was made.
Commit them all. Run it again whenever the design has changed: what is as it was made is made anew, and a run without a
change writes nothing.

A document that was changed by hand is never overwritten unasked: init names it, writes nothing and fails. --keep leaves
it as it is and makes the others, --force overwrites it. To bring it in line and keep what you wrote, let the agent do
it: fiducial do "check and fix docs". SPEC.md, DECISIONS.md and CHANGELOG.md are never overwritten.

Exit codes: 0 done, 1 refused because of documents changed by hand, 2 could not run.

JSON keys: project {name, dir, schematic, board}, docs, files [{file, state (make, remake, mend, unchanged, keep, kept,
changed, overwrite)}], written, refused [], exit_code.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if opts.Force && opts.Keep {
				return cannot(errors.New("--force and --keep contradict each other"), "give one of them")
			}
			return a.makeDocs(cmd.Context(), opts)
		},
	}
	cmd.Flags().BoolVar(&opts.Force, "force", false, "overwrite documents that were changed by hand")
	cmd.Flags().BoolVar(&opts.Keep, "keep", false, "leave documents that were changed by hand as they are, and make the others")
	return cmd
}

func (a *app) makeDocs(ctx context.Context, opts docs.InitOptions) error {
	p, err := a.place()
	if err != nil {
		return err
	}
	proj, err := a.find(p)
	if err != nil {
		return err
	}
	if proj.Root == "" {
		return cannot(fmt.Errorf("%s has no schematic of its name, and the documents are made from the schematic", proj.Name),
			"draw "+proj.Name+".kicad_sch in KiCad first", "name another project: --project FILE")
	}
	r, err := a.runner()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	u := a.newUI()
	defer func() { _ = u.Close() }()
	if u.Live() {
		u.Status(ui.Status{Now: "reading " + proj.Name, Since: time.Now()})
	}
	steps, err := planInit(ctx, r, tree{top: p.top, proj: proj}, opts)
	u.Status(ui.Status{})
	out := initJSON{Project: newCheckJSON(proj).Project, Files: []initFileJSON{}}
	for _, s := range steps {
		out.Files = append(out.Files, initFileJSON{s.File, s.State})
		if path.Base(s.File) != docs.ConfigName {
			out.Docs = path.Dir(s.File)
		}
	}
	if refused, ok := errors.AsType[*docs.ChangedError](err); ok {
		out.Refused, out.ExitCode = refused.Files, exitNo
		if a.json {
			return errors.Join(u.Object(out), told(exitNo))
		}
		return &failure{code: exitNo, err: err, remedies: []string{
			`bring it in line and keep what you wrote: fiducial do "check and fix docs"`,
			"leave it as it is and make the others: fiducial init --keep", "overwrite it: fiducial init --force",
		}}
	}
	if err != nil {
		return err
	}
	if out.Written, err = writeSteps(p.top, steps); err != nil {
		return cannot(err)
	}
	if a.json {
		return u.Object(out)
	}
	reportInit(u, proj, steps, out.Written)
	return u.Close()
}

// planInit looks at everything that init goes by.
func planInit(ctx context.Context, r *kicadcli.Runner, t tree, opts docs.InitOptions) ([]docs.Step, error) {
	if s := lookAtSheets(ctx, r, t); len(s.bad) > 0 {
		return nil, unread(ctx, r, fmt.Errorf("the schematic can be read in part only: %s", s.bad[0]))
	}
	d, err := loadDesign(ctx, r, t)
	if err != nil {
		if why := whyNotLoaded(ctx, r, t, []string{t.proj.Root}); why != "" {
			err = errors.New(why)
		}
		return nil, unread(ctx, r, err)
	}
	root, err := os.OpenRoot(t.top)
	if err != nil {
		return nil, cannot(err)
	}
	defer func() { _ = root.Close() }()
	files := project.Files(root)
	var board *pcb.Board
	if t.proj.PCB != "" {
		src, err := project.Read(files, t.proj.PCB, 0)
		if err != nil {
			return nil, cannot(err)
		}
		board = pcb.Read(path.Base(t.proj.PCB), src)
	}
	c, err := docs.ReadConfig(files, t.proj)
	if err != nil {
		return nil, cannot(err)
	}
	steps, err := docs.PlanInit(files, t.proj, c, docs.Generate(t.proj.Name, d, board), opts)
	if _, ok := errors.AsType[*docs.ChangedError](err); err != nil && !ok {
		return nil, cannot(err)
	}
	return steps, err
}

// writeSteps writes what a plan says, each file whole or not at all, the config last.
func writeSteps(top string, steps []docs.Step) (written int, err error) {
	root, err := os.OpenRoot(top)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	for _, s := range steps {
		if !s.Writes() {
			continue
		}
		if err := replaceFile(root, filepath.FromSlash(s.File), s.Text); err != nil {
			return written, fmt.Errorf("%s: %w; %s written before it", s.File, err, count(written, "file"))
		}
		written++
	}
	return written, nil
}

// replaceFile puts a file in the place of what is there in one stroke, with the mode of that. What is no regular file
// is left alone.
func replaceFile(root *os.Root, name string, data []byte) (err error) {
	if err := root.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	mode := fs.FileMode(0o644)
	if st, err := root.Lstat(name); err == nil {
		if mode = st.Mode().Perm(); !st.Mode().IsRegular() {
			return errors.New("it is no regular file, and is left as it is")
		}
	}
	tmp := filepath.Join(filepath.Dir(name), ".fiducial-"+strconv.Itoa(os.Getpid())+".tmp")
	defer func() {
		if err != nil {
			_ = root.Remove(tmp)
		}
	}()
	f, err := root.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return root.Rename(tmp, name)
}

func reportInit(u *ui.UI, proj *project.Project, steps []docs.Step, written int) {
	words := map[docs.State]string{
		docs.Make: "made", docs.Remake: "made anew", docs.Unchanged: "as it is made", docs.Keep: "yours, left alone",
		docs.Kept: "changed by hand, kept", docs.Overwrite: "changed by hand, overwritten", docs.Mend: "edited by a run, repaired",
	}
	for _, s := range steps {
		u.Line("%-28s %s", s.File, words[s.State])
	}
	if written == 0 {
		u.Heading("%s: nothing to do", proj.Name)
		return
	}
	them := "them"
	if written == 1 {
		them = "it"
	}
	u.Heading("%s: %s written; commit %s", proj.Name, count(written, "file"), them)
}
