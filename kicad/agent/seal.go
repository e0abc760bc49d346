// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/kicad/project"
	"github.com/fiducial-dev/fiducial/task"
)

// changelogName is the document that runs write an entry into (B-49).
const changelogName = "CHANGELOG.md"

// Seal writes the run's entry into the changelog in the docs folder, newest first; a
// project without a docs folder gets none. And it notes what the run made of documents
// that init generated, so that the next init takes no run's edit for a hand's.
func (b *Bench) Seal(ctx context.Context, s *task.Session) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return errors.Join(b.sealChangelog(ctx, s), b.sealDocuments(ctx, s))
}

// sealDocuments notes in the config the documents that the run edited, which no hand
// had changed before and none has since. Where the config itself is not as it is in
// HEAD it is left alone: it could not be committed apart from the user's changes.
func (b *Bench) sealDocuments(ctx context.Context, s *task.Session) error {
	name := path.Join(b.project.Dir, docs.ConfigName)
	if clean, err := s.Snapshot.AsCommitted(ctx, name); err != nil || !clean {
		return err
	}
	files := project.Files(b.root)
	was, err := s.Snapshot.File(ctx, name)
	if err != nil {
		return err
	}
	if now, err := project.Read(files, name, 0); err != nil || !bytes.Equal(now, was) {
		return nil //nolint:nilerr // somebody else has changed it, or taken it away: it is left to them
	}
	c, err := docs.ReadConfig(files, b.project)
	if err != nil {
		return err
	}
	mine := c.Projects[b.project.Name]
	edited := map[string][]byte{}
	for page := range mine.Generated {
		file := path.Join(c.Folder(b.project), page)
		want, ours := b.written[file]
		if !ours {
			continue
		}
		now, err := project.Read(files, file, 0)
		if err != nil || sha256.Sum256(now) != want {
			continue // somebody else has changed it since
		}
		before, err := s.Snapshot.File(ctx, file)
		if err == nil && mine.Knows(page, before) {
			edited[page] = now
		}
	}
	text := c.EditedBy(b.project.Name, edited)
	if text == nil {
		return nil
	}
	info, err := b.root.Lstat(filepath.FromSlash(name))
	if err != nil || !info.Mode().IsRegular() {
		return err
	}
	if err := b.writeWhole(filepath.FromSlash(name), text, info.Mode().Perm()); err != nil {
		return pathError(name, err)
	}
	s.Rules.Touch(name)
	return nil
}

func (b *Bench) sealChangelog(ctx context.Context, s *task.Session) error {
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
