// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fiducial-dev/fiducial/kicad/internal/runs"
	"github.com/fiducial-dev/fiducial/kicad/internal/ui"
	"github.com/fiducial-dev/fiducial/kicad/picture"
	"github.com/fiducial-dev/fiducial/kicad/project"
)

// diffFlags are what diff is told.
type diffFlags struct {
	out  string
	open string
	png  string
}

func newDiff(a *app) *cobra.Command {
	f := diffFlags{}
	cmd := &cobra.Command{
		Use:   "diff [RUN | REV..REV | REV]",
		Short: "Show sheets and board before and after, in one HTML page",
		Long: `Draws every sheet and the board before and after with kicad-cli and writes one HTML page with both: side by side, with a
slider, as an onion skin or as a difference; changed items are outlined and listed, and so is what changed in the
netlist. The page is one file that works without a network and without a server.

Where a sheet of one side cannot be read, what stood on it would look removed: then the boards alone are compared, and
without a board that is exit code 2.

RUN is a run's id, a part of it, or "last": its commit is compared with the commit before it. REV..REV are two revisions
of git. REV alone is compared with the files as they stand; without an argument that is HEAD. The files are not touched.

JSON keys: page, png [], before, after, views [{name, same, entries [{kind, text}], gone {before, after}}],
electrical [{kind, what, text}], unknown, notes [].`,
		Example: `  fiducial diff last                       what the last run changed
  fiducial diff                            what is not committed yet
  fiducial diff v1.0..main -o review.html
  fiducial diff HEAD~3 --png pictures`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.diff(cmd.Context(), strings.Join(args, ""), f)
		},
	}
	cmd.Flags().StringVarP(&f.out, "output", "o", "", "the page to write (default: a file in .fiducial/diff)")
	cmd.Flags().StringVar(&f.open, "open", "auto", "show the page in a browser: yes, no, or auto (on a terminal with a display)")
	cmd.Flags().Lookup("open").NoOptDefVal = "yes"
	cmd.Flags().StringVar(&f.png, "png", "", "write PNG pictures into this folder as well; needs rsvg-convert")
	return cmd
}

func (a *app) diff(ctx context.Context, what string, f diffFlags) error {
	if !slices.Contains([]string{"auto", "yes", "no"}, f.open) {
		return cannot(fmt.Errorf("--open=%s: it is yes, no or auto", f.open))
	}
	converter, err := a.converter(f.png)
	if err != nil {
		return err
	}
	p, err := a.place()
	if err != nil {
		return err
	}
	if !p.git {
		return cannot(fmt.Errorf("%s is in no git repository, so there is no state before", p.dir), "make one: git init && git add . && git commit -m Start")
	}
	g := gitAt{dir: p.top, environ: a.Environ}
	sides, err := a.sides(ctx, p, g, what)
	if err != nil {
		return err
	}
	tmp, err := a.temp("diff")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	u := a.newUI()
	defer func() { _ = u.Close() }() // before the reason of an error is told; its own error is looked at below
	if u.Live() {
		u.Status(ui.Status{Now: "drawing both states", Since: time.Now()})
	}
	states, err := a.states(ctx, p, g, sides, tmp)
	if err != nil {
		return err
	}
	r, err := a.runner()
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	notes, err := leaveOut(ctx, r, &states)
	if err != nil {
		return err
	}
	d, err := picture.Compare(ctx, r, states[0], states[1])
	if err != nil {
		return cannot(err)
	}
	if d.Notes = append(notes, d.Notes...); len(notes) > 0 {
		d.Electrical, d.Unknown = nil, "what changed in the netlist is not known, for a schematic cannot be read whole"
	}
	out := diffJSON{Before: sides[0].name, After: sides[1].name}
	out.fill(d)
	if out.Page, err = a.writePage(p, f.out, sides, d, titleOf(states)); err != nil {
		return cannot(fmt.Errorf("the page cannot be written: %w", err), "name a file that can be written: -o FILE")
	}
	if converter != "" {
		if out.PNG, err = writePNG(ctx, converter, a.absolute(f.png), d); err != nil {
			return cannot(err)
		}
	}
	u.Status(ui.Status{})
	if a.json {
		return u.Object(out)
	}
	out.report(u)
	err = u.Close()
	a.browse(ctx, f.open, out.Page)
	return err
}

// A revision is one side of a diff.
type revision struct {
	name   string // for a reader
	short  string // for a file's name
	commit string // "" for the files as they stand
}

var asTheyStand = revision{name: "the files as they stand", short: "files"}

// sides finds out what is to be compared: a run, two revisions, or one and the files.
func (a *app) sides(ctx context.Context, p place, g gitAt, what string) ([2]revision, error) {
	if from, to, ok := strings.Cut(what, ".."); ok {
		to = strings.TrimPrefix(to, ".") // A...B as well: from A, not from where the branches parted
		before, err := g.revision(ctx, orHead(from))
		if err != nil {
			return [2]revision{}, err
		}
		after, err := g.revision(ctx, orHead(to))
		return [2]revision{before, after}, err
	}
	list, _, err := a.past(ctx, p, false)
	if err != nil {
		return [2]revision{}, err
	}
	exact := what == "last" || slices.ContainsFunc(list, func(r pastRun) bool { return r.ID == what })
	if !exact {
		before, err := g.revision(ctx, orHead(what))
		if err == nil {
			return [2]revision{before, asTheyStand}, nil
		}
		if run, missing := pick(list, what); missing == nil {
			return g.ofRun(ctx, run)
		}
		return [2]revision{}, err
	}
	run, err := pick(list, what)
	if err != nil {
		return [2]revision{}, err
	}
	return g.ofRun(ctx, run)
}

func orHead(rev string) string {
	if rev == "" {
		return "HEAD"
	}
	return rev
}

// ofRun compares a run's commit with the one before it.
func (g gitAt) ofRun(ctx context.Context, r pastRun) ([2]revision, error) {
	if r.Commit == "" {
		why := fmt.Errorf("run %s (%s) has no commit, so there is no state after it", r.ID, r.State)
		switch {
		case r.Preserved != "":
			return [2]revision{}, cannot(why, "see what it had changed: fiducial recover "+r.ID)
		case r.DryRun:
			return [2]revision{}, cannot(fmt.Errorf("run %s was a dry run: nothing of it was kept", r.ID), "run it without --dry-run")
		case r.State == string(runs.Interrupted) || r.State == string(runs.Paused) || r.State == running:
			return [2]revision{}, cannot(why, "see what is in the files now: fiducial diff")
		}
		return [2]revision{}, cannot(why, "see how it ended: fiducial show "+r.ID)
	}
	before, err := g.revision(ctx, r.Commit+"^")
	if err != nil {
		return [2]revision{}, cannot(fmt.Errorf("run %s: its commit %.12s is not in this repository", r.ID, r.Commit), "fetch it first: git fetch")
	}
	after, err := g.revision(ctx, r.Commit)
	return [2]revision{before, after}, err
}

// revision finds a commit.
func (g gitAt) revision(ctx context.Context, rev string) (revision, error) {
	line, err := g.run(ctx, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	if errors.Is(err, exec.ErrNotFound) {
		return revision{}, cannot(err, "install git")
	}
	if err != nil {
		return revision{}, cannot(fmt.Errorf("there is neither a run nor a commit %q here", rev), "see fiducial runs, or git log", "fetch it first: git fetch")
	}
	commit := strings.TrimSpace(string(line))
	text, err := g.run(ctx, "log", "-1", "--format=%h %s", commit)
	if err != nil {
		return revision{}, cannot(err)
	}
	short, _, _ := strings.Cut(string(text), " ")
	return revision{name: ui.CleanLine(strings.TrimSpace(string(text))), short: short, commit: commit}, nil
}

// states puts the files of both sides where kicad-cli can read them, and finds the project in each.
func (a *app) states(ctx context.Context, p place, g gitAt, sides [2]revision, tmp string) ([2]picture.State, error) {
	var states [2]picture.State
	var missing [2]error
	below, err := filepath.Rel(p.top, p.dir)
	if err != nil {
		return states, cannot(err)
	}
	for i, s := range sides {
		top := p.top
		if s.commit != "" {
			top = filepath.Join(tmp, fmt.Sprint(i))
			if err := os.Mkdir(top, 0o700); err != nil {
				return states, cannot(err)
			}
			names, err := g.designFiles(ctx, s.commit)
			if err == nil && len(names) > 0 {
				err = g.extract(ctx, s.commit, names, top)
			}
			if err != nil {
				return states, cannot(fmt.Errorf("%s: %w", s.name, err))
			}
		}
		states[i] = picture.State{Name: s.name, Top: top}
		proj, err := a.find(place{dir: filepath.Join(top, below), top: top, git: p.git})
		if e, ok := errors.AsType[*project.Error](err); ok && e.Kind == project.NotFound {
			missing[i] = err
			continue
		}
		if err != nil {
			return states, err
		}
		states[i].Project = proj
	}
	if missing[0] != nil && missing[1] != nil {
		return states, missing[1]
	}
	return states, nil
}

// titleOf is the project's name.
func titleOf(states [2]picture.State) string {
	for _, s := range slices.Backward(states[:]) {
		if s.Project != nil {
			return s.Project.Name
		}
	}
	return ""
}

type diffJSON struct {
	Page       string       `json:"page"`
	PNG        []string     `json:"png,omitempty"`
	Before     string       `json:"before"`
	After      string       `json:"after"`
	Views      []viewJSON   `json:"views"`
	Electrical []changeJSON `json:"electrical"`
	Unknown    string       `json:"unknown,omitempty"`
	Notes      []string     `json:"notes,omitempty"`
}

type viewJSON struct {
	Name    string            `json:"name"`
	Same    bool              `json:"same"`
	Entries []changeJSON      `json:"entries"`
	Gone    map[string]string `json:"gone,omitempty"`
}

type changeJSON struct {
	Kind picture.Kind `json:"kind"`
	What string       `json:"what,omitempty"`
	Text string       `json:"text"`
}

func (o *diffJSON) fill(d *picture.Diff) {
	o.Views, o.Electrical, o.Unknown, o.Notes = []viewJSON{}, []changeJSON{}, d.Unknown, d.Notes
	for _, c := range d.Electrical {
		o.Electrical = append(o.Electrical, changeJSON{c.Kind, c.What, c.Text})
	}
	for _, v := range d.Views {
		view := viewJSON{Name: v.Name, Same: v.Same(), Entries: []changeJSON{}, Gone: map[string]string{}}
		for _, e := range v.Entries {
			view.Entries = append(view.Entries, changeJSON{Kind: e.Kind, Text: e.Text})
		}
		for i, side := range []string{"before", "after"} {
			if v.Gone[i] != "" {
				view.Gone[side] = v.Gone[i]
			}
		}
		o.Views = append(o.Views, view)
	}
}

func (o *diffJSON) report(u *ui.UI) {
	u.Line("before: %s", o.Before)
	u.Line("after:  %s", o.After)
	for _, n := range o.Notes {
		u.Warn("%s", ui.CleanLine(n))
	}
	switch {
	case o.Unknown != "":
		u.Warn("%s", ui.CleanLine(o.Unknown))
	case len(o.Electrical) == 0:
		u.Line("electrical: every net, pin and part is as before")
	default:
		u.Heading("electrical")
		lines(u, o.Electrical)
	}
	for _, v := range o.Views {
		switch {
		case len(v.Entries) > 0:
			u.Heading("%s", ui.CleanLine(v.Name))
			lines(u, v.Entries)
		case !v.Same:
			u.Line("%s: the pictures differ", ui.CleanLine(v.Name))
		}
		for _, side := range []string{"before", "after"} {
			if why := v.Gone[side]; why != "" {
				u.Line("  no picture %s: %s", side, ui.CleanLine(why))
			}
		}
	}
	u.Line("page: %s", o.Page)
	for _, p := range o.PNG {
		u.Line("picture: %s", p)
	}
}

func lines(u *ui.UI, list []changeJSON) {
	const most = 30
	for i, c := range list {
		if i == most {
			u.Line("  and %d more, see the page", len(list)-most)
			return
		}
		u.Line("  %-8s %s", c.Kind, ui.CleanLine(strings.TrimSpace(c.What+" "+c.Text)))
	}
}
