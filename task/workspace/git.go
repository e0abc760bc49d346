// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// git runs the git command in the top folder of a working tree.
type git struct {
	bin string
	dir string
	env []string // of this process, without what would point git elsewhere
}

// A call is one git command. env is added last and wins.
type call struct {
	args []string
	in   io.Reader
	env  []string
}

// repositoryVariable tells what a hook or an outer git command may have set for its
// own repository; the list is that of git rev-parse --local-env-vars, without the
// configuration that a person may give by GIT_CONFIG_COUNT.
func repositoryVariable(name string) bool {
	switch name {
	case "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_OBJECT_DIRECTORY", "GIT_DIR", "GIT_WORK_TREE", "GIT_IMPLICIT_WORK_TREE",
		"GIT_GRAFT_FILE", "GIT_INDEX_FILE", "GIT_NO_REPLACE_OBJECTS", "GIT_REPLACE_REF_BASE", "GIT_PREFIX",
		"GIT_SHALLOW_FILE", "GIT_COMMON_DIR", "GIT_INTERNAL_SUPER_PREFIX", "GIT_CONFIG", "GIT_EXTERNAL_DIFF",
		"GIT_DIFF_OPTS", "GIT_LITERAL_PATHSPECS", "GIT_GLOB_PATHSPECS", "GIT_NOGLOB_PATHSPECS", "GIT_ICASE_PATHSPECS",
		"GIT_NAMESPACE", "GIT_DEFAULT_HASH", "GIT_QUARANTINE_PATH":
		return true
	}
	return false
}

func cleanEnv(env []string) []string {
	var out []string
	for _, kv := range env {
		name, _, _ := strings.Cut(kv, "=")
		if !repositoryVariable(name) {
			out = append(out, kv)
		}
	}
	return append(out, "GIT_TERMINAL_PROMPT=0")
}

// The variables of our own commands, not of hooks: stable words, no refresh of the
// user's index behind his back.
func quiet() []string { return []string{"LC_ALL=C", "GIT_OPTIONAL_LOCKS=0", "GIT_PAGER=cat"} }

func (g *git) command(ctx context.Context, c call) *exec.Cmd {
	cmd := exec.CommandContext(ctx, g.bin, c.args...)
	cmd.Dir = g.dir
	cmd.Env = append(append(append([]string{}, g.env...), quiet()...), c.env...)
	cmd.Stdin = c.in
	cmd.WaitDelay = 5 * time.Second
	return cmd
}

// run returns what the command wrote to standard output.
func (g *git) run(ctx context.Context, c call) ([]byte, error) {
	cmd := g.command(ctx, c)
	var out, errOut bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return out.Bytes(), commandError(ctx, c.args, errOut.String(), err)
	}
	return out.Bytes(), nil
}

func commandError(ctx context.Context, args []string, output string, err error) error {
	code := -1
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		code = exit.ExitCode()
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	return &CommandError{Args: args, Code: code, Output: output, Err: err}
}

// line runs a command that prints one line, and returns it without its newline.
// A name may end in a newline of its own, so only one is cut.
func (g *git) line(ctx context.Context, args ...string) (string, error) {
	out, err := g.run(ctx, call{args: args})
	return strings.TrimSuffix(string(out), "\n"), err
}

// exitCode is the code a git command ended with, or -1.
func exitCode(err error) int {
	if e, ok := errors.AsType[*CommandError](err); ok {
		return e.Code
	}
	return -1
}

// fail wraps a failed git command.
func fail(op string, err error) error {
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*Error](err); ok {
		return e
	}
	kind, advice := KindIO, ""
	if e, ok := errors.AsType[*CommandError](err); ok {
		kind, advice = KindGit, e.advice()
	}
	return &Error{Kind: kind, Op: op, Err: err, Advice: advice}
}

// advice is what to do about what git said, in the words of git 2.39 under LC_ALL=C; "" where nothing is known.
func (e *CommandError) advice() string {
	switch {
	case strings.Contains(e.Output, "clean filter '") || strings.Contains(e.Output, "external filter '"):
		return "a filter that .gitattributes names does not work here: install its program (for filter=lfs that is git-lfs), or see git status"
	case strings.Contains(e.Output, "No space left on device"):
		return "make room on the disk"
	}
	return ""
}

// splitNames splits a list of NUL-terminated names.
func splitNames(b []byte) []string {
	s := strings.TrimSuffix(string(b), "\x00")
	if s == "" {
		return nil
	}
	return strings.Split(s, "\x00")
}

func joinNames(names []string) []byte {
	var b bytes.Buffer
	for _, n := range names {
		b.WriteString(n)
		b.WriteByte(0)
	}
	return b.Bytes()
}

// The oldest git that this package is tested with: git hook run came with 2.36,
// and 2.39 is what Debian 12 carries.
const minMajor, minMinor = 2, 39

func parseVersion(s string) (major, minor int, ok bool) {
	f := strings.Fields(s)
	if len(f) < 3 || f[0] != "git" || f[1] != "version" {
		return 0, 0, false
	}
	parts := strings.SplitN(f[2], ".", 3)
	if len(parts) < 2 {
		return 0, 0, false
	}
	major, err1 := strconv.Atoi(parts[0])
	minor, err2 := strconv.Atoi(parts[1])
	return major, minor, err1 == nil && err2 == nil
}

func oldVersion(major, minor int) bool {
	return major < minMajor || major == minMajor && minor < minMinor
}

// A catFile reads objects through one git process, one after the other.
type catFile struct {
	cmd *exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
	err bytes.Buffer
}

func (g *git) cat(ctx context.Context) (*catFile, error) {
	c := &catFile{cmd: g.command(ctx, call{args: []string{"cat-file", "--batch"}})}
	c.cmd.Stderr = &c.err
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.in, c.out = in, bufio.NewReaderSize(out, 64<<10)
	if err := c.cmd.Start(); err != nil {
		return nil, commandError(ctx, c.cmd.Args[1:], "", err)
	}
	return c, nil
}

// copy writes the content of one blob to w. An error of w is returned as it is;
// the process can then not be used again.
func (c *catFile) copy(w io.Writer, oid string) error {
	if _, err := io.WriteString(c.in, oid+"\n"); err != nil {
		return c.broken(err)
	}
	head, err := c.out.ReadString('\n')
	if err != nil {
		return c.broken(err)
	}
	f := strings.Fields(head)
	if len(f) != 3 || f[1] != "blob" {
		return c.broken(fmt.Errorf("no blob %s: %q", oid, head))
	}
	n, err := strconv.ParseInt(f[2], 10, 64)
	if err != nil {
		return c.broken(err)
	}
	if _, err := io.CopyN(w, c.out, n); err != nil {
		return err
	}
	_, err = c.out.ReadString('\n')
	return err
}

// broken ends the process, so that all of what it wrote on stderr is there.
func (c *catFile) broken(err error) error {
	c.close()
	return &CommandError{Args: c.cmd.Args[1:], Code: -1, Output: c.err.String(), Err: err}
}

// close may be called more than once.
func (c *catFile) close() {
	_ = c.in.Close()
	_, _ = io.Copy(io.Discard, c.out)
	_ = c.cmd.Wait() // its output has been judged already
}
