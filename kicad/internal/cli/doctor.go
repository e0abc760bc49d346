// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/kicad/internal/journals"
	"github.com/fiducial-dev/fiducial/kicad/internal/models"
	"github.com/fiducial-dev/fiducial/kicad/internal/runs"
	"github.com/fiducial-dev/fiducial/kicad/internal/ui"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/task/workspace"
)

// States of an examined thing.
const (
	stateOK   = "ok"
	stateWarn = "warn" // works, with less
	stateFail = "fail" // the main job cannot run without it
	stateNone = "none" // not there and not needed
)

// A symptom is what doctor found out about one thing.
type symptom struct {
	Name     string   `json:"name"`
	State    string   `json:"state"`
	Detail   string   `json:"detail"`
	Remedies []string `json:"remedies,omitempty"`
}

func newDoctor(a *app) *cobra.Command {
	return &cobra.Command{
		Use:   "doctor",
		Short: "Say what is installed, what is missing, and what to do about it",
		Long: `Looks at everything the main job needs: git, kicad-cli and its libraries, the repository, the project, the journal (which
one, whether it can be reached, its schema); and at what it can use: Go, the keys of model providers. Keys are named, their values are never shown or sent.
Nothing is changed. Without a key the built-in planner does mechanical requests.

Exit codes: 0 the main job can run here, 1 something is missing.

JSON keys: ready, things [{name, state (ok, warn, fail, none), detail, remedies []}].`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.doctor(cmd.Context()) },
	}
}

func (a *app) doctor(ctx context.Context) error {
	p, err := a.place()
	if err != nil {
		return err
	}
	kicad := a.examineKiCad(ctx)
	things := append(a.examineLeftovers(ctx, p), a.examineGo(ctx), a.examineGit(ctx))
	unfinished := slices.ContainsFunc(things, func(s symptom) bool { return s.Name == leftoverName })
	things = append(things, kicad...)
	things = append(things, a.examineRepository(ctx, p, unfinished), a.examineProject(p), a.examineJournal(ctx, p))
	things = append(things, a.examineKeys()...)
	ready := true
	for _, s := range things {
		ready = ready && s.State != stateFail
	}
	u := a.newUI()
	if a.json {
		err = u.Object(struct {
			Ready  bool      `json:"ready"`
			Things []symptom `json:"things"`
		}{ready, things})
	} else {
		reportThings(u, things, ready)
		err = u.Close()
	}
	switch {
	case err != nil:
		return err
	case ctx.Err() != nil:
		return context.Cause(ctx)
	case !ready:
		return told(exitNo)
	}
	return nil
}

func reportThings(u *ui.UI, things []symptom, ready bool) {
	for _, s := range things {
		text := fmt.Sprintf("%-7s  %-12s  %s", s.State, s.Name, ui.CleanLine(s.Detail))
		u.Line("%s", text)
		for _, r := range s.Remedies {
			u.Line("%-7s  %-12s  -> %s", "", "", r)
		}
	}
	if ready {
		u.Heading("the main job can run here")
	} else {
		u.Heading("the main job cannot run here yet: see what says fail above")
	}
}

// ask runs a small command that tells a version.
func (a *app) ask(ctx context.Context, name string, args ...string) (string, error) {
	const patience = 10 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = a.Environ
	out, err := cmd.Output()
	return strings.TrimSpace(string(out)), err
}

func (a *app) examineGo(ctx context.Context) symptom {
	text, err := a.ask(ctx, "go", "version")
	if err != nil {
		return symptom{Name: "go", State: stateNone, Detail: "not found; needed only to build fiducial itself"}
	}
	return symptom{Name: "go", State: stateOK, Detail: strings.TrimPrefix(text, "go version ")}
}

func (a *app) examineGit(ctx context.Context) symptom {
	text, err := a.ask(ctx, "git", "--version")
	if err != nil {
		return symptom{
			Name: "git", State: stateFail, Detail: "not found", Remedies: []string{"install git 2.39 or newer from your system's packages"},
		}
	}
	return symptom{Name: "git", State: stateOK, Detail: text}
}

func (a *app) examineKiCad(ctx context.Context) []symptom {
	s := symptom{Name: "kicad-cli", State: stateFail}
	r, err := a.runner()
	if err != nil {
		s.Detail = err.Error()
		if f, ok := errors.AsType[*failure](err); ok {
			s.Remedies = f.remedies
		}
		return []symptom{s}
	}
	defer func() { _ = r.Close() }()
	v, err := r.Version(ctx)
	switch {
	case kicadcli.IsKind(err, kicadcli.TooOld):
		s.Detail = fmt.Sprintf("version %s at %s cannot check designs (8 or newer can)", v.Text, r.Path())
		s.Remedies = []string{installKiCad}
		return []symptom{s}
	case err != nil:
		s.Detail = fmt.Sprintf("%s does not answer: %v", r.Path(), err)
		if why := unusable(ctx, r); why != "" {
			s.Detail = why
		}
		s.Remedies = []string{"run it by hand: " + r.Path() + " version", installKiCad}
		return []symptom{s}
	}
	s.State, s.Detail = stateOK, fmt.Sprintf("version %s at %s", v.Text, r.Path())
	if w := v.Warning(); w != "" {
		s.State, s.Remedies = stateWarn, []string{w}
	}
	return []symptom{s, a.examineLibraries(r, v.Major)}
}

// examineLibraries looks where KiCad looks: the folder that KICAD9_SYMBOL_DIR and the like name, else the one it
// was installed with.
func (a *app) examineLibraries(r *kicadcli.Runner, major int) symptom {
	s := symptom{Name: "libraries", State: stateOK}
	share, err := r.Share()
	if err != nil {
		s.State, s.Detail = stateWarn, err.Error()
		return s
	}
	var found, missing []string
	for _, l := range []struct{ what, variable, dir, pattern string }{
		{"symbols", fmt.Sprintf("KICAD%d_SYMBOL_DIR", major), "symbols", "*.kicad_sym"},
		{"footprints", fmt.Sprintf("KICAD%d_FOOTPRINT_DIR", major), "footprints", "*.pretty"},
	} {
		dir := filepath.Join(share, l.dir)
		if v := a.lookup(l.variable); v != "" {
			dir = v
		}
		if match, err := filepath.Glob(filepath.Join(dir, l.pattern)); err == nil && len(match) > 0 {
			found = append(found, fmt.Sprintf("%d of %s in %s", len(match), l.what, dir))
		} else {
			missing = append(missing, l.what)
		}
	}
	s.Detail = strings.Join(found, "; ")
	if len(missing) > 0 {
		s.State = stateWarn
		s.Detail = strings.TrimPrefix(s.Detail+"; no "+strings.Join(missing, " and no "), "; ")
		s.Remedies = []string{"checks work without them; to search parts install KiCad's symbol and footprint libraries"}
	}
	return s
}

// leftoverName is what doctor calls a run that is not over.
const leftoverName = "run"

// examineLeftovers looks for runs that are not over: whatever else is wrong with the tree comes from them.
func (a *app) examineLeftovers(ctx context.Context, p place) []symptom {
	left, err := a.leftovers(ctx, p.top)
	if err != nil || len(left) == 0 {
		return nil // a repository that cannot be opened is a symptom of its own
	}
	known := map[string]pastRun{}
	if past, _, err := a.past(ctx, p, false); err == nil {
		for _, r := range past {
			known[r.ID] = r
		}
	}
	var list []symptom
	for _, l := range left {
		if l.Committed != "" {
			continue // it ended well; the next run tidies up
		}
		s := symptom{Name: leftoverName, State: stateFail}
		switch r := known[l.Run]; {
		case l.Elsewhere != "":
			s.State, s.Detail = stateWarn, fmt.Sprintf("run %s of another working tree, %s, is not over", l.Run, l.Elsewhere)
			list = append(list, s)
			continue
		case r.State == running:
			s.Detail, s.Remedies = fmt.Sprintf("run %s is going on now", l.Run), []string{"wait for it, or stop it by Ctrl-C where it runs"}
		case r.State == string(runs.Paused):
			s.Detail = fmt.Sprintf("run %s of %s is paused", l.Run, stamp(l.At))
		default:
			s.Detail = fmt.Sprintf("run %s of %s was interrupted, and its work may stand half done in the files", l.Run, stamp(l.At))
		}
		if s.Remedies == nil {
			s.Remedies = []string{
				"go on with it: fiducial resume " + l.Run,
				"or have the tree put back, its changes kept as a stash: fiducial resume " + l.Run + " --give-up",
			}
		}
		list = append(list, s)
	}
	return list
}

// examineRepository looks at the tree. While a run is not over its changes are no reason to commit or stash anything.
func (a *app) examineRepository(ctx context.Context, p place, unfinished bool) symptom {
	s := symptom{Name: "repository", State: stateOK, Detail: p.top}
	repo, err := workspace.Open(ctx, p.dir, workspace.Options{Env: a.Environ, Exclude: excluded})
	if err == nil {
		err = repo.Preflight(ctx, false)
	}
	if e, ok := errors.AsType[*workspace.PreflightError](err); ok {
		s.State, s.Detail, s.Remedies = stateFail, e.Reason, e.Remedies
		if unfinished && e.Check == workspace.CheckClean {
			s.State, s.Remedies = stateWarn, []string{"see to the run first, which is named above: these changes may be its own"}
		}
		return s
	}
	if err != nil {
		s.State, s.Detail = stateFail, err.Error()
		return s
	}
	s.Detail += ", clean"
	return s
}

func (a *app) examineProject(p place) symptom {
	s := symptom{Name: "project", State: stateOK}
	proj, err := a.find(p)
	if f, ok := errors.AsType[*failure](err); ok {
		s.State, s.Detail, s.Remedies = stateFail, f.Error(), f.remedies
		return s
	}
	if err != nil {
		s.State, s.Detail = stateFail, err.Error()
		return s
	}
	s.Detail = proj.String()
	for _, l := range proj.Locks {
		s.State = stateWarn
		s.Remedies = append(s.Remedies, l.String()+"; save and close it before a run changes the file")
	}
	return s
}

// examineJournal says which journal is used, and tries it.
func (a *app) examineJournal(ctx context.Context, p place) symptom {
	s := symptom{Name: "journal", State: stateFail}
	at, err := a.store(p)
	if err != nil {
		s.Detail, s.Remedies = err.Error(), []string{"mend " + journals.Env + ", or unset it"}
		return s
	}
	if at.Kind() != journals.Postgres { // a server is looked at as a whole
		if err := tryFolder(at.Path(), at.Kind() == journals.Folder); err != nil {
			s.Detail = err.Error()
			s.Remedies = []string{"give yourself the right to write there, or make room on the disk"}
			return s
		}
	}
	j, err := at.OpenReader(ctx)
	if err == nil {
		if at.Kind() != journals.Postgres { // what a server holds of others is not read
			err = journals.Damage(ctx, j)
		}
		err = errors.Join(err, j.Close())
	}
	s.Detail = fmt.Sprintf("%s, %s", at, at.Kind())
	e, format := errors.AsType[*journal.FormatError](err)
	switch {
	case errors.Is(err, journal.ErrDamaged):
		s.Detail, s.Remedies = bare(err.Error()), repairRemedies(at)
		return s
	case err == nil && at.Kind() == journals.Folder:
		s.State = stateOK
	case err == nil:
		s.State, s.Detail = stateOK, s.Detail+", its schema is this program's"
	case errors.Is(err, fs.ErrNotExist), format && e.Version == 0:
		s.State, s.Detail = stateOK, s.Detail+", not made yet; the first run makes it"
	case format && strings.Contains(err.Error(), "older"):
		s.State, s.Detail = stateWarn, fmt.Sprintf("%s, of the older schema %d; the next run brings it up to date", s.Detail, e.Version)
	default:
		s.Detail = err.Error()
		if f, ok := errors.AsType[*failure](unreachable(err)); ok {
			s.Remedies = f.remedies
		}
		return s
	}
	if o := a.origin(ctx, p); at.Shared() && p.git && o.err != nil {
		s.State, s.Detail = stateFail, o.err.Error()
		if f, ok := errors.AsType[*failure](o.err); ok {
			s.Remedies = f.remedies
		}
	}
	return s
}

// tryFolder tries whether files can be made where a journal stands, or will: in the folder that there is.
func tryFolder(path string, isFolder bool) error {
	dir := path
	if !isFolder {
		dir = filepath.Dir(path)
	}
	for {
		if _, err := os.Stat(dir); !errors.Is(err, fs.ErrNotExist) || dir == filepath.Dir(dir) {
			break
		}
		dir = filepath.Dir(dir)
	}
	f, err := os.CreateTemp(dir, ".fiducial-doctor-*")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		return fmt.Errorf("no file can be made in %s: %w", dir, err)
	}
	return nil
}

// examineKeys names what is set for models, never with a value, and the model that do would take.
func (a *app) examineKeys() []symptom {
	var list []symptom
	for _, k := range []struct{ name, use string }{
		{"ANTHROPIC_API_KEY", "claude-..."},
		{"OPENAI_API_KEY", "gpt-..."},
		{"GEMINI_API_KEY", "gemini-..."},
		{"GOOGLE_API_KEY", "gemini-..."},
		{models.EnvKey, "compat:ID at " + models.EnvBaseURL},
	} {
		if a.lookup(k.name) != "" {
			list = append(list, symptom{Name: "key", State: stateOK, Detail: k.name + " is set: --model " + k.use})
		}
	}
	if len(list) == 0 {
		list = append(list, symptom{
			Name: "key", State: stateNone, Detail: "no provider key is set; the built-in planner does mechanical requests",
			Remedies: []string{"for requests in your own words set ANTHROPIC_API_KEY, OPENAI_API_KEY or GEMINI_API_KEY"},
		})
	}
	return append(list, a.examineModel())
}

func (a *app) examineModel() symptom {
	s := symptom{Name: "model", State: stateOK}
	choice, err := models.Choose("", a.lookup)
	if err != nil {
		s.State, s.Detail = stateWarn, err.Error()
		s.Remedies = []string{"set " + models.EnvModel + ", or give --model: " + models.Usage}
		return s
	}
	s.Detail = choice.Name + ", unless --model says otherwise"
	return s
}
