// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/fiducial-dev/fiducial/task"
)

// changelogName is the document that runs write an entry into (B-49).
const changelogName = "CHANGELOG.md"

// Seal writes the run's entry into the changelog in the docs folder, newest first.
// A project without a docs folder gets none.
func (b *Bench) Seal(ctx context.Context, s *task.Session) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	touched := s.Rules.Touched()
	if b.project.Docs == "" || len(touched) == 0 {
		s.Rules.MeetKind(obligeChangelog)
		return nil
	}
	name := path.Join(b.project.Docs, changelogName)
	var entry strings.Builder
	fmt.Fprintf(&entry, "## %s: %s\n\n", time.Now().Format(time.DateOnly), oneLine(s.Request))
	fmt.Fprintf(&entry, "- Run %s\n- Files: %s\n", s.Run, strings.Join(touched, ", "))
	b.checks.Lock()
	for _, c := range []*check{&b.erc, &b.drc} {
		if c.ran {
			fmt.Fprintf(&entry, "- %s\n", c.short())
		}
	}
	b.checks.Unlock()
	text, mode := "# Changelog\n\n", fs.FileMode(0o644)
	switch e, err := b.newEdit(ctx, name); {
	case err == nil:
		text, mode = string(e.old), e.mode
	case !errors.Is(err, fs.ErrNotExist):
		return err // it is there, and not for us to replace
	}
	crlf := strings.Contains(text, "\r\n")
	head, rest := splitHead(strings.ReplaceAll(text, "\r\n", "\n"))
	text = head + entry.String() + "\n" + rest
	if crlf {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	if err := b.writeWhole(filepath.FromSlash(name), []byte(text), mode); err != nil {
		return pathError(name, err)
	}
	s.Rules.Touch(name)
	s.Rules.MeetKind(obligeChangelog)
	return nil
}

// splitHead parts a changelog before its newest entry.
func splitHead(text string) (head, rest string) {
	if i := strings.Index("\n"+text, "\n## "); i >= 0 {
		return text[:i], text[i:]
	}
	if text != "" && !strings.HasSuffix(text, "\n\n") {
		text = strings.TrimRight(text, "\n") + "\n\n"
	}
	return text, ""
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
