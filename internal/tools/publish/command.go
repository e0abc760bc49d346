// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"bytes"
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// A CommandError is a program that ended badly.
type CommandError struct {
	Dir    string
	Args   []string
	Output string // the end of what it wrote, standard output first
	Err    error
}

// Error implements error.
func (e *CommandError) Error() string {
	return fmt.Sprintf("%s (in %s): %v\n%s", strings.Join(e.Args, " "), e.Dir, e.Err, e.Output)
}

// Unwrap is what os/exec said.
func (e *CommandError) Unwrap() error { return e.Err }

// A shell runs programs in a folder with an environment of KEY=value, of which
// the last one of a key counts.
type shell struct {
	dir string
	env []string
}

// run returns what a program wrote to its standard output. When ctx ends, so does the
// program, with all that it started where the system knows groups of processes.
func (s shell) run(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, s.find(args[0]), args[1:]...)
	cmd.Dir, cmd.Env, cmd.WaitDelay = s.dir, s.env, 10*time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	together(cmd)
	if err := cmd.Run(); err != nil {
		if ctx.Err() != nil {
			killGroup(cmd)
		}
		return stdout.String(), &CommandError{Dir: s.dir, Args: args, Output: end(stdout.Bytes()) + end(stderr.Bytes()), Err: err}
	}
	return stdout.String(), nil
}

// find looks for a program where the shell's PATH says; os/exec looks where this
// process's does.
func (s shell) find(program string) string {
	for _, dir := range filepath.SplitList(lookup(s.env, "PATH")) {
		if path, err := exec.LookPath(filepath.Join(dir, program)); err == nil && filepath.IsAbs(path) {
			return path
		}
	}
	return program
}

// end is the last 4 KiB.
func end(text []byte) string { return string(text[max(0, len(text)-4<<10):]) }
