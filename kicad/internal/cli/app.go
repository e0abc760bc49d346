// SPDX-License-Identifier: Apache-2.0

// Package cli is the command fiducial: its sub-commands, flags, words and exit codes.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/kicad/internal/ui"
	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/project"
)

// Env is the process as the command sees it. Package main fills it in.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	Environ  []string
	Dir      string // working folder, absolute
	// Whether these are terminals. Questions are asked only when both are (B-20).
	InTerminal, OutTerminal bool
	Width                   func() int // of the terminal now; may be nil
}

// Exit codes. See the help topic exit-codes.
const (
	exitOK          = 0
	exitNo          = 1   // findings; refused or failed; unfit
	exitCannot      = 2   // could not run, or wrong usage
	exitInterrupted = 130 // 128 + SIGINT, as shells have it
)

// A failure is an error with an exit code.
type failure struct {
	code     int
	err      error
	remedies []string // the best first
	told     bool     // the command has said all; only the code is left
}

func (f *failure) Error() string { return f.err.Error() }

func (f *failure) Unwrap() error { return f.err }

// cannot is a failure to run at all. Without remedies it has those that the cause has.
func cannot(err error, remedies ...string) error {
	if f, ok := errors.AsType[*failure](err); ok && len(remedies) == 0 {
		remedies = f.remedies
	}
	return &failure{code: exitCannot, err: err, remedies: remedies}
}

var errTold = errors.New("told above")

// told ends a command with a code, after it has said why.
func told(code int) error {
	if code == exitOK {
		return nil
	}
	return &failure{code: code, err: errTold, told: true}
}

// app is one run of the command: the process and the flags that all commands have.
type app struct {
	Env
	repo     string
	project  string
	json     bool
	plain    bool
	kicadCLI string
	limit    time.Duration
	tmp      tempDir
}

// Run runs the command and returns its exit code. A done ctx is Ctrl-C.
func Run(ctx context.Context, env Env, args []string) int {
	a := &app{Env: env}
	root := newRoot(a) //nolint:contextcheck // cobra hands ctx to the commands, see ExecuteContextC
	root.SetArgs(args)
	root.SetIn(env.In)
	root.SetOut(env.Out)
	root.SetErr(env.Err)
	defer a.tmp.remove()
	cmd, err := root.ExecuteContextC(ctx)
	return a.end(ctx, cmd, err)
}

// end says what went wrong and gives the exit code.
func (a *app) end(ctx context.Context, cmd *cobra.Command, err error) int {
	if err == nil {
		return exitOK
	}
	f, ok := errors.AsType[*failure](err)
	switch {
	case ok && f.told:
		return f.code
	case ctx.Err() != nil:
		f = &failure{code: exitInterrupted, err: errors.New("interrupted")}
	case !ok:
		f = &failure{code: exitCannot, err: err, remedies: []string{"see " + cmd.CommandPath() + " --help"}}
	}
	if errors.Is(f.err, journal.ErrDamaged) {
		f = a.withRepair(f)
	}
	mask := a.newMasker().Text
	u := ui.New(ui.Options{Out: a.Err, Mask: mask})
	text := bare(inWords(f.err.Error()))
	u.Line("fiducial: %s", text)
	for i, r := range f.remedies {
		u.Line("  %d. %s", i+1, r)
	}
	_ = u.Close() // there is nobody left to tell
	if a.json {
		o := ui.New(ui.Options{Out: a.Out, JSON: true, Mask: mask})
		_ = o.Object(failureJSON{Error: text, Remedies: f.remedies, ExitCode: f.code})
	}
	return f.code
}

// rooms are the names of packages that stand before their errors, which say nothing to who uses the command.
var rooms = regexp.MustCompile(`^(?:project|workspace|transcript|runs|journal|docs|ui): `)

// bare is an error's text without the name of the package that it comes from.
func bare(text string) string { return rooms.ReplaceAllString(text, "") }

type failureJSON struct {
	Error    string   `json:"error"`
	Remedies []string `json:"remedies,omitempty"`
	ExitCode int      `json:"exit_code"`
}

// lookup reads an environment variable.
func (a *app) lookup(name string) string {
	for _, kv := range slices.Backward(a.Environ) {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// newUI makes what a command speaks through.
func (a *app) newUI() *ui.UI {
	o := ui.Options{
		Out: a.Out, Terminal: a.OutTerminal, Plain: a.plain, JSON: a.json, Width: a.Width, Environ: a.Environ,
		Mask: a.newMasker().Text,
	}
	if a.InTerminal && a.OutTerminal {
		o.In = a.In
	}
	return ui.New(o)
}

// answer is the end of a command that has one thing to say: object with --json, else the line.
func (a *app) answer(object any, format string, args ...any) error {
	u := a.newUI()
	if a.json {
		return u.Object(object)
	}
	u.Line(format, args...)
	return u.Close()
}

// runner makes what runs kicad-cli.
func (a *app) runner() (*kicadcli.Runner, error) {
	dir, err := a.tmp.get()
	if err != nil {
		return nil, err
	}
	r, err := kicadcli.New(kicadcli.Options{Path: a.kicadCLI, Limit: a.limit, TempDir: dir})
	if kicadcli.IsKind(err, kicadcli.NotFound) {
		return nil, noKiCad(err)
	}
	if err != nil {
		return nil, cannot(err)
	}
	return r, nil
}

// A place is where the command works.
type place struct {
	dir string // that --repo names, absolute
	top string // of the repository, dir when there is none
	git bool   // there is a repository
}

// place looks for the repository. Git itself is not asked: check works without it.
func (a *app) place() (place, error) {
	dir := a.repo
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(a.Dir, dir)
	}
	dir, err := filepath.EvalSymlinks(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return place{}, cannot(fmt.Errorf("--repo: there is no folder %s", a.repo), "name a folder that exists")
	}
	if err != nil {
		return place{}, cannot(fmt.Errorf("--repo: %w", err), "name a folder that exists")
	}
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return place{}, cannot(fmt.Errorf("--repo: %s is not a folder", dir), "name the folder, and the project in it by --project")
	}
	p := place{dir: dir, top: dir}
	for up := dir; ; up = filepath.Dir(up) {
		if _, err := os.Lstat(filepath.Join(up, ".git")); err == nil {
			p.top, p.git = up, true
			return p, nil
		}
		if up == filepath.Dir(up) {
			return p, nil
		}
	}
}

// abs is the path of a file of the project.
func (p place) abs(name string) string { return filepath.Join(p.top, filepath.FromSlash(name)) }

// rel is a path below the place's folder, relative to the top.
func (p place) rel(name string) (string, error) {
	rel, err := filepath.Rel(p.top, filepath.Join(p.dir, filepath.FromSlash(name)))
	if err != nil || !filepath.IsLocal(rel) {
		return "", fmt.Errorf("%s is outside %s", name, p.top)
	}
	return filepath.ToSlash(rel), nil
}

// find finds the project that --repo and --project name.
func (a *app) find(p place) (*project.Project, error) {
	root, err := os.OpenRoot(p.top)
	if err != nil {
		return nil, cannot(err)
	}
	defer func() { _ = root.Close() }()
	at, err := p.rel(a.project)
	if err != nil {
		return nil, cannot(fmt.Errorf("--project: %w", err), "name a file inside the repository, relative to --repo")
	}
	proj, err := project.Find(project.Files(root), at)
	if err == nil {
		return proj, nil
	}
	e, ok := errors.AsType[*project.Error](err)
	if !ok {
		return nil, cannot(err)
	}
	switch e.Kind {
	case project.Ambiguous:
		short := *e
		short.Detail = fmt.Sprintf("there are %d projects; name the one that is meant: %s", len(e.Choices), listed(e.Choices))
		var remedies []string
		for _, c := range e.Choices {
			if name, err := filepath.Rel(p.dir, p.abs(c)); err == nil {
				c = filepath.ToSlash(name)
			}
			remedies = append(remedies, "--project "+c)
		}
		return nil, cannot(&short, remedies[:min(maxListed, len(remedies))]...)
	case project.NotFound:
		if a.project != "" && errors.Is(err, fs.ErrNotExist) {
			short := *e
			short.Err = nil // it names a system call
			return nil, cannot(&short, "name a file that is there, relative to --repo", "leave --project out: fiducial looks for the project itself")
		}
		return nil, cannot(err, "name the folder of the project: --repo DIR")
	case project.Legacy, project.Case, project.Unusable:
	}
	return nil, cannot(err)
}
