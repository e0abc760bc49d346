// SPDX-License-Identifier: Apache-2.0

// Package kicadcli runs the real kicad-cli, the judge of every design, and reads what it says.
//
// Every run is hermetic: nothing of the caller's environment, a configuration folder of its own with the stock
// library tables, and a view of the project made of symbolic links (copies where Windows makes none), so that kicad-cli's lock file (~name.kicad_pro.lck)
// never appears in the user's folder and two runs side by side never see each other's. The facts about exit codes and
// messages were measured on kicad-cli 9.0.8.
package kicadcli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"sync"
	"time"
)

// Options configure a [Runner]. The zero value is fine.
type Options struct {
	// Path is the kicad-cli to run: a path or a name to look up in PATH. Empty means kicad-cli; where PATH has none,
	// that of the newest KiCad in the folders that its installers use on Windows and macOS.
	Path string
	// Parallel is how many kicad-cli may run at a time. Zero means the number of CPUs.
	Parallel int
	// TempDir is where the private folders are made. Empty means the system's.
	TempDir string
	// Templates is the folder of the stock fp-lib-table and sym-lib-table. Empty means share/kicad/template beside
	// the folder of kicad-cli, on macOS the application's own. Where there is none, empty tables are used.
	Templates string
	// Limit replaces the time limits, which grow with the files. Zero means those.
	Limit time.Duration
}

// A Runner runs kicad-cli. It is safe for concurrent use. Close it to remove its folders.
type Runner struct {
	path    string
	home    string   // the private folder
	owner   *os.File // locked while this process lives, see sweep
	limit   time.Duration
	slots   chan struct{}
	links   placer // a copy for each view
	base    string // the folder of Windows itself
	version func(context.Context) (Version, error)
	faults  faults
}

// New finds kicad-cli and makes the private folders. The error is an [*Error] of kind NotFound or Environment.
func New(opts Options) (*Runner, error) {
	path, err := find(opts.Path)
	if err != nil {
		return nil, err
	}
	temp := cmp.Or(opts.TempDir, os.TempDir())
	sweep(temp, time.Now())
	home, err := os.MkdirTemp(temp, prefix)
	if err != nil {
		return nil, &Error{Kind: Environment, Detail: "cannot make a temporary folder", Err: err}
	}
	owner, err := own(home)
	if err != nil {
		return nil, &Error{Kind: Environment, Detail: "cannot make a temporary folder", Err: errors.Join(err, os.RemoveAll(home))}
	}
	r := &Runner{
		path: path, home: home, owner: owner, limit: opts.Limit, slots: make(chan struct{}, cmp.Or(opts.Parallel, runtime.NumCPU())),
		links: placer{goos: runtime.GOOS, symlink: os.Symlink}, base: windowsFolder(),
	}
	r.version = r.once()
	if err := r.seed(opts.Templates); err != nil {
		return nil, &Error{Kind: Environment, Detail: "cannot set up kicad-cli's configuration", Err: errors.Join(err, r.Close())}
	}
	return r, nil
}

// Path is the kicad-cli that runs.
func (r *Runner) Path() string { return r.path }

// Close removes the private folders. No run may be going on.
func (r *Runner) Close() error {
	return errors.Join(r.owner.Close(), os.RemoveAll(r.home)) // in this order: Windows removes no file that is open
}

// seed makes the folders that kicad-cli is told to live in. Without a sym-lib-table every stock symbol would be
// reported as unknown: kicad-cli makes the footprints' table itself at its first start but not the symbols'.
func (r *Runner) seed(templates string) error {
	if templates == "" {
		var err error
		if templates, err = templatesOf(r.path); err != nil {
			return err
		}
	}
	for _, dir := range []string{"home", "tmp", "cache", "data", "views", roaming, local} {
		if err := os.MkdirAll(filepath.Join(r.home, dir), 0o700); err != nil {
			return err
		}
	}
	// kicad-cli makes these at its first run, and two first runs at a time complain of each other.
	for _, version := range []string{"8.0", "9.0", "10.0"} {
		dirs := []string{filepath.Join("cache", "kicad", version)}
		for _, dir := range []string{"3dmodels", "3rdparty", "footprints", "plugins", "projects", "scripting", "symbols", "template"} {
			dirs = append(dirs, filepath.Join("data", "kicad", version, dir))
		}
		for _, dir := range dirs {
			if err := os.MkdirAll(filepath.Join(r.home, dir), 0o700); err != nil {
				return err
			}
		}
	}
	for name, empty := range map[string]string{
		"sym-lib-table": "(sym_lib_table (version 7))\n", "fp-lib-table": "(fp_lib_table (version 7))\n",
		"design-block-lib-table": "(design_block_lib_table (version 7))\n", // else two first runs at a time read what the other writes
	} {
		table, err := os.ReadFile(filepath.Join(templates, name))
		if err != nil {
			table = []byte(empty)
		}
		for _, version := range []string{"8.0", "9.0", "10.0"} {
			dir := filepath.Join(r.home, "config", version)
			if err := errors.Join(os.MkdirAll(dir, 0o700), os.WriteFile(filepath.Join(dir, name), table, 0o600)); err != nil {
				return err
			}
		}
	}
	return nil
}

// A Run is one finished kicad-cli.
type Run struct {
	Command  string // for a reader: with the user's paths, quoted for a shell
	ExitCode int    // -1 for a signal
	Signal   string // "" for none
	Stdout   string
	Stderr   string
	Duration time.Duration
}

var errLimit = errors.New("the time limit has passed")

// exec runs kicad-cli in a view and waits. The error is the end of the context, Timeout, or a failure to start. What the
// computer is to blame for is tried once more, unless it took its whole time, and noted as a fault.
func (r *Runner) exec(ctx context.Context, v *view, limit time.Duration, args ...string) (Run, error) {
	run, fault, err := r.try(ctx, v, limit, args...)
	if fault != nil && fault.Kind != Timeout && ctx.Err() == nil {
		run, fault, err = r.try(ctx, v, limit, args...)
	}
	if ctx.Err() == nil {
		r.faults.note(commandOf(args), fault)
	}
	return run, err
}

// try is an attempt, and what of it is a fault.
func (r *Runner) try(ctx context.Context, v *view, limit time.Duration, args ...string) (run Run, fault *Error, err error) {
	run, err = r.attempt(ctx, v, limit, args...)
	if fault = run.fault(err, outputOf(args)); fault == nil && err == nil {
		fault = r.faults.crash(commandOf(args), run)
	}
	if fault == nil && err == nil && run.Signal == "" {
		r.faults.answers(commandOf(args))
	}
	return run, fault, err
}

func (r *Runner) attempt(ctx context.Context, v *view, limit time.Duration, args ...string) (Run, error) {
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return Run{}, context.Cause(ctx)
	}
	limit = cmp.Or(r.limit, limit)
	spoken, hush := context.WithCancelCause(ctx)
	defer hush(nil)
	limited, cancel := context.WithTimeoutCause(spoken, limit, errLimit)
	defer cancel()
	cmd := exec.CommandContext(limited, r.path, args...)
	tmp, err := os.MkdirTemp(filepath.Join(r.home, "tmp"), "")
	if err != nil {
		return Run{}, &Error{Kind: Environment, Detail: "cannot make a temporary folder", Err: err}
	}
	defer func() { _ = os.RemoveAll(tmp) }()
	env := setting{goos: runtime.GOOS, bin: filepath.Dir(r.path), home: r.home, tmp: tmp, base: r.base}
	cmd.Env, cmd.Dir = env.environment(), tmp
	if v != nil {
		cmd.Dir = v.dir
	}
	cmd.WaitDelay = 2 * time.Second
	ownGroup(cmd)
	flood := &flood{end: hush}
	stdout, stderr := &said{flood: flood}, &said{flood: flood}
	cmd.Stdout, cmd.Stderr = stdout, stderr
	start := time.Now()
	err = cmd.Run()
	run := Run{
		Command: command(args, v), Stdout: v.real(stdout.String()), Stderr: v.real(stderr.String()),
		Duration: time.Since(start), ExitCode: -1,
	}
	if cmd.ProcessState != nil {
		run.ExitCode, run.Signal = cmd.ProcessState.ExitCode(), signal(cmd.ProcessState)
	}
	switch {
	case ctx.Err() != nil:
		return run, context.Cause(ctx)
	case errors.Is(context.Cause(spoken), errFlood):
		e := run.fail(BadOutput, errFlood.Error()+", and was killed; this is no working kicad-cli", errFlood)
		if first, _, more := strings.Cut(e.Stderr, "\n"); more {
			e.Stderr = first + " ..." // the rest is as long, and says no more
		}
		return run, e
	case limited.Err() != nil:
		return run, run.fail(Timeout, fmt.Sprintf("no answer within %s; the process was killed", limit.Round(time.Millisecond)), errLimit)
	case cmd.ProcessState == nil:
		return run, run.fail(NotFound, "kicad-cli cannot be started", err)
	}
	return run, nil
}

// fail makes an error that quotes the run.
func (run Run) fail(kind Kind, detail string, cause error) *Error {
	said := strings.TrimSpace(clock.ReplaceAllString(run.Stderr, ""))
	if said == "" {
		said = strings.TrimSpace(run.Stdout)
	}
	return &Error{Kind: kind, Command: run.Command, ExitCode: run.ExitCode, Stderr: clip(said), Detail: detail, Err: cause}
}

// clock is what kicad-cli puts in front of its messages.
var clock = regexp.MustCompile(`(?m)^\d\d:\d\d:\d\d: `)

// clip shortens what is quoted.
func clip(s string) string {
	const most = 2000
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + " ..."
}

// command shows how the user would type it.
func command(args []string, v *view) string {
	words := []string{"kicad-cli"}
	for _, a := range args {
		a = v.real(a)
		if a == "" || strings.ContainsAny(a, " \t\n\"'\\$`*?[](){}<>|&;!#~") {
			a = "'" + strings.ReplaceAll(a, "'", `'\''`) + "'"
		}
		words = append(words, a)
	}
	return strings.Join(words, " ")
}

// once remembers the first success.
func (r *Runner) once() func(context.Context) (Version, error) {
	var mu sync.Mutex
	var known Version
	return func(ctx context.Context) (Version, error) {
		mu.Lock()
		defer mu.Unlock()
		if known.Text != "" {
			return known, nil
		}
		v, err := r.askVersion(ctx)
		if err == nil {
			known = v
		}
		return v, err
	}
}
