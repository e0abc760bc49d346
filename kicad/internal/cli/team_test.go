// SPDX-License-Identifier: Apache-2.0

package cli_test

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/kicad/internal/board"
	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
)

// A team is several clones that keep their runs on one server.
type team struct {
	*testing.T
	env  []string
	said strings.Builder // by every command
}

// git runs git in a folder.
func (tm *team) git(dir string, args ...string) string {
	tm.Helper()
	cmd := exec.CommandContext(tm.Context(), "git", args...)
	cmd.Dir, cmd.Env = dir, tm.env
	out, err := cmd.CombinedOutput()
	if err != nil {
		tm.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func (tm *team) command(dir string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(tm.Context(), "fiducial", args...)
	cmd.Dir, cmd.Env = dir, tm.env
	return cmd
}

// run runs the command and wants its exit code.
func (tm *team) run(want int, dir string, args ...string) (stdout, stderr string) {
	tm.Helper()
	var out, errOut bytes.Buffer
	cmd := tm.command(dir, args...)
	cmd.Stdout, cmd.Stderr = &out, &errOut
	err := cmd.Run()
	code := 0
	if e, ok := errors.AsType[*exec.ExitError](err); ok {
		code = e.ExitCode()
	} else if err != nil {
		tm.Fatal(err)
	}
	tm.said.WriteString(out.String() + errOut.String())
	if code != want {
		tm.Fatalf("fiducial %v: exit code %d, want %d\n%s%s", args, code, want, out.String(), errOut.String())
	}
	return out.String(), errOut.String()
}

func (tm *team) want(text string, parts ...string) {
	tm.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			tm.Errorf("there is no %q in\n%s", p, text)
		}
	}
}

// repository makes a board under git.
func (tm *team) repository(dir string) string {
	tm.Helper()
	if err := board.Write(dir); err != nil {
		tm.Fatal(err)
	}
	tm.git(dir, "init", "-q")
	tm.git(dir, "add", "-A")
	tm.git(dir, "commit", "-qm", "start of "+filepath.Base(dir))
	return dir
}

// listing is every path and size below a folder.
func (tm *team) listing(dir string) (list []string) {
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			list = append(list, name)
		}
		return err
	})
	if err != nil {
		tm.Error(err)
	}
	return list
}

// holding is a kicad-cli that waits at a sub-command as long as the file hold is there, and makes hold.here when it does.
func holding(t *testing.T, dir, at, hold string) string {
	t.Helper()
	script := "#!/bin/sh\nif [ \"$1 $2\" = '" + at + "' ]; then\n\t[ -e '" + hold + "' ] && : >'" + hold + ".here'\n" +
		"\twhile [ -e '" + hold + "' ]; do sleep 0.1; done\nfi\nexec kicad-cli \"$@\"\n"
	wrap := filepath.Join(dir, "wrap")
	if err := os.WriteFile(wrap, []byte(script), 0o700); err != nil { //nolint:gosec // it is to be run
		t.Fatal(err)
	}
	if err := os.WriteFile(hold, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	return wrap
}

// await waits until a file is there.
func await(t *testing.T, name string) {
	t.Helper()
	for end := time.Now().Add(2 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(name); err == nil {
			return
		}
	}
	t.Fatalf("%s never came", name)
}

// newDesk is a team of one, with no journal but the repository's.
func newDesk(t *testing.T) *team {
	t.Helper()
	kicadtest.CLI(t)
	tm := &team{T: t, env: slices.DeleteFunc(os.Environ(), func(kv string) bool {
		return strings.HasPrefix(kv, "FIDUCIAL_") || strings.HasSuffix(strings.SplitN(kv, "=", 2)[0], "_API_KEY")
	})}
	tm.env = append(tm.env, "HOME="+t.TempDir(), "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org", "GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org")
	return tm
}
