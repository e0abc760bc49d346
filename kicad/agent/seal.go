package agent

import (
	"context"
	"fmt"
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
func (b *Bench) Seal(_ context.Context, s *task.Session) error {
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
	for _, c := range []*check{&b.erc, &b.drc} {
		if c.ran {
			fmt.Fprintf(&entry, "- %s\n", c.short())
		}
	}
	text, file := "# Changelog\n\n", filepath.FromSlash(name)
	if e, err := b.newEdit(name); err == nil {
		text = string(e.old)
	}
	head, rest := splitHead(text)
	if err := b.writeWhole(file, []byte(head+entry.String()+"\n"+rest), 0o644); err != nil {
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
