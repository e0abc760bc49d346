// SPDX-License-Identifier: Apache-2.0

package main

import (
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/kicad/internal/board"
	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
)

var update = flag.Bool("update", false, "write what the commands of the walk-through print into it")

// What differs from one run to the next, or with the release of KiCad.
var passing = []struct {
	kind *regexp.Regexp
	by   string
}{
	{regexp.MustCompile(`\b\d{8}-\d{6}-[0-9a-z]{3}\b`), "RUN"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d( \d\d:\d\d(:\d\d)?)?\b`), "DATE"},
	{regexp.MustCompile(`\b[0-9a-f]{7,40}\b`), "COMMIT"},
	{regexp.MustCompile(`\b\d+(\.\d+)? ?(ms|s)\b`), "TIME"},
	{regexp.MustCompile(`\bkicad-cli \d+\.\d+\.\d+\b`), "kicad-cli VERSION"},
	{regexp.MustCompile(`(\S) +`), "$1 "}, // columns are as wide as what stands in them
}

// Results of tools are told as they come, and several run at a time.
var results = regexp.MustCompile(`(?m)(^  [a-z_]+: .*\n){2,}`)

func lasting(output string) string {
	for _, p := range passing {
		output = p.kind.ReplaceAllString(output, p.by)
	}
	return results.ReplaceAllStringFunc(output, func(lines string) string {
		return strings.Join(slices.Sorted(strings.Lines(lines)), "")
	})
}

// docs/walkthrough.md shows what the command really prints: every line after "$ " in a console block is run, in
// the order of the page, in a home folder with the bundled board in ~/beacon, and what follows it must be what came.
func TestWalkthrough(t *testing.T) {
	kicadtest.CLI(t)
	page := filepath.Join("..", "..", "..", "docs", "walkthrough.md")
	text, err := os.ReadFile(page)
	if os.IsNotExist(err) {
		t.Skip("the page belongs to the repository and is not in this module")
	}
	if err != nil {
		t.Fatal(err)
	}

	home := t.TempDir()
	if err := board.Write(filepath.Join(home, "beacon")); err != nil {
		t.Fatal(err)
	}
	bin := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", filepath.Join(bin, "fiducial"), ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	sh := &shell{home: home, dir: home, bin: bin}

	var now strings.Builder
	console := false
	commands := 0
	for line := range strings.Lines(string(text)) {
		fence := strings.HasPrefix(line, "```")
		command, isCommand := strings.CutPrefix(line, "$ ")
		switch {
		case console && fence:
			console = false
			now.WriteString(line)
		case console && isCommand:
			commands++
			now.WriteString(line)
			now.WriteString(sh.run(t, strings.TrimSpace(command)))
		case console: // the output that stands there now
		default:
			console = strings.TrimSpace(line) == "```console"
			now.WriteString(line)
		}
	}
	if commands == 0 {
		t.Fatal("the page has no command")
	}
	diff := cmp.Diff(lasting(string(text)), lasting(now.String()))
	switch {
	case diff == "":
	case *update:
		if err := os.WriteFile(page, []byte(now.String()), 0o644); err != nil { //nolint:gosec // a page of the repository
			t.Fatal(err)
		}
	default:
		t.Errorf("what is printed is not what docs/walkthrough.md shows; go test -run TestWalkthrough . -update writes it (-page +printed):\n%s", diff)
	}
}

// shell runs one command after another, and remembers the folder.
type shell struct {
	home, dir, bin string
}

func (s *shell) run(t *testing.T, command string) string {
	t.Helper()
	where := filepath.Join(s.bin, "where")
	cmd := exec.CommandContext(t.Context(), "bash", "-c", command+"\npwd >"+where)
	cmd.Dir = s.dir
	cmd.Env = []string{
		"HOME=" + s.home,
		"PATH=" + s.bin + string(os.PathListSeparator) + os.Getenv("PATH"),
		"LC_ALL=C.UTF-8", "TZ=UTC",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_PAGER=cat",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.org",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.org",
	}
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState.ExitCode() < 0 {
		t.Fatalf("%s: %v", command, err)
	}
	dir, err := os.ReadFile(where)
	if err != nil {
		t.Fatalf("%s: %v\n%s", command, err, out)
	}
	s.dir = strings.TrimSpace(string(dir))
	text := strings.ReplaceAll(string(out), s.home, "~")
	if text != "" && !strings.HasSuffix(text, "\n") {
		text += "\n"
	}
	return text
}
