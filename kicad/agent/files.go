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
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/mask"
	"github.com/fiducial-dev/fiducial/task/workspace"
	"github.com/fiducial-dev/fiducial/tool"
)

// Limits of search (B-89).
const (
	maxMatches    = 200
	maxSearchFile = 5 << 20
	maxLine       = 400 // characters
)

type readInput struct {
	Path  string `json:"path" jsonschema:"file relative to the repository"`
	Start int    `json:"start,omitempty" jsonschema:"first line, from 1; then lines come numbered"`
	End   int    `json:"end,omitempty" jsonschema:"last line; without it, the last of the file"`
}

func (b *Bench) readFile(_ context.Context, in readInput) (tool.Output, error) {
	name, err := b.within(in.Path)
	if err != nil {
		return tool.Output{}, badPath(err)
	}
	if err := readable(name); err != nil {
		return tool.Output{}, badPath(err)
	}
	b.mu.RLock()
	data, err := b.read(name)
	b.mu.RUnlock()
	if err != nil {
		return tool.Output{}, badPath(err)
	}
	if !utf8.Valid(data) || bytes.IndexByte(data, 0) >= 0 {
		return tool.Output{}, tool.Errorf(tool.Failed, "%s is no UTF-8 text (%d bytes), so it cannot be shown", name, len(data))
	}
	lines := strings.SplitAfter(string(data), "\n")
	if lines[len(lines)-1] == "" {
		lines = lines[:len(lines)-1]
	}
	sum := fmt.Sprintf("%s: %d lines, %d bytes", name, len(lines), len(data))
	if in.Start <= 0 && in.End <= 0 {
		return tool.Output{Summary: sum, Content: string(data)}, nil
	}
	start, end := max(in.Start, 1), in.End
	if end <= 0 || end > len(lines) {
		end = len(lines)
	}
	if start > end {
		return tool.Output{}, tool.Errorf(tool.InvalidArgument, "%s has %d lines; there is nothing from %d to %d", name, len(lines), in.Start, in.End)
	}
	var out strings.Builder
	for i := start; i <= end; i++ {
		fmt.Fprintf(&out, "%6d\t%s\n", i, strings.TrimRight(lines[i-1], "\r\n"))
	}
	return tool.Output{Summary: fmt.Sprintf("%s, lines %d to %d", sum, start, end), Content: out.String()}, nil
}

func badPath(err error) error {
	if errors.Is(err, context.Canceled) {
		return err
	}
	return &tool.Error{Kind: tool.InvalidArgument, Message: err.Error(), Err: err}
}

type searchInput struct {
	Pattern string `json:"pattern,omitempty" jsonschema:"regular expression in Go syntax (RE2)"`
	Glob    string `json:"glob,omitempty" jsonschema:"only files whose path, or name when the glob has no slash, matches; for example *.md or docs/*.md"`
}

const emptyPattern = `search needs a non-empty regular expression, for example {"pattern": "STATUS", "glob": "*.kicad_sch"}`

func (b *Bench) search(ctx context.Context, in searchInput) (tool.Output, error) {
	if strings.TrimSpace(in.Pattern) == "" { // B-90, AC-15.13
		return tool.Output{}, tool.Errorf(tool.InvalidArgument, "%s", emptyPattern)
	}
	re, err := regexp.Compile(in.Pattern)
	if err != nil {
		return tool.Output{}, tool.Errorf(tool.InvalidArgument, "the pattern is no regular expression in Go syntax: %v", err)
	}
	if _, err := path.Match(in.Glob, "x"); err != nil {
		return tool.Output{}, tool.Errorf(tool.InvalidArgument, "glob %q: %v", in.Glob, err)
	}
	b.mu.RLock()
	defer b.mu.RUnlock()
	s := searcher{re: re, glob: in.Glob}
	err = fs.WalkDir(b.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return s.visit(b, name, d, err)
	})
	if err != nil && !errors.Is(err, fs.SkipAll) {
		return tool.Output{}, err
	}
	return s.output(), nil
}

type searcher struct {
	re      *regexp.Regexp
	glob    string
	lines   []string
	files   int
	skipped []string
	full    bool
}

// skipDirs are no part of a design (B-89).
var skipDirs = []string{".git", ".fiducial", "node_modules", ".history", "build", "dist", "vendor", "__pycache__"}

func (s *searcher) visit(b *Bench, name string, d fs.DirEntry, err error) error {
	switch {
	case err != nil && name == ".":
		return err
	case readable(name) != nil && d.IsDir():
		return fs.SkipDir
	case readable(name) != nil:
		return nil
	case err != nil:
		s.skipped = append(s.skipped, name)
		return nil
	case d.IsDir() && (slices.Contains(skipDirs, d.Name()) || strings.HasSuffix(d.Name(), "-backups")):
		return fs.SkipDir
	case !d.Type().IsRegular() || !s.matches(name):
		return nil
	}
	if info, err := d.Info(); err != nil || info.Size() > maxSearchFile {
		s.skipped = append(s.skipped, name)
		return nil
	}
	data, err := b.read(name)
	if err != nil || bytes.IndexByte(data, 0) >= 0 {
		return nil // binary, or gone
	}
	found := false
	n := 0
	for line := range strings.Lines(string(data)) {
		n++
		line = strings.TrimRight(line, "\r\n")
		if !s.re.MatchString(line) {
			continue
		}
		if len(s.lines) == maxMatches {
			s.full = true
			return fs.SkipAll
		}
		found = true
		if utf8.RuneCountInString(line) > maxLine {
			line = string([]rune(line)[:maxLine]) + "..."
		}
		s.lines = append(s.lines, fmt.Sprintf("%s:%d: %s", name, n, line))
	}
	if found {
		s.files++
	}
	return nil
}

func (s *searcher) matches(name string) bool {
	if s.glob == "" {
		return true
	}
	if !strings.Contains(s.glob, "/") {
		name = path.Base(name)
	}
	ok, _ := path.Match(s.glob, name)
	return ok
}

func (s *searcher) output() tool.Output {
	sum := fmt.Sprintf("%d matches in %d files", len(s.lines), s.files)
	if s.full {
		sum += fmt.Sprintf("; the search stopped at %d, narrow the pattern or the glob", maxMatches)
	}
	if len(s.skipped) > 0 {
		sum += fmt.Sprintf("; not searched (too large, or unreadable): %q", s.skipped)
	}
	return tool.Output{Summary: sum, Content: strings.Join(s.lines, "\n")}
}

type writeInput struct {
	Path    string `json:"path" jsonschema:"new file relative to the repository"`
	Content string `json:"content"`
}

// writeFile makes a new file. KiCad files and existing ones are for the edit
// tools (B-101).
func (b *Bench) writeFile(ctx context.Context, in writeInput) (string, error) {
	name, err := b.within(in.Path)
	if err != nil {
		return "", badPath(err)
	}
	if err := plainText("content", in.Content); err != nil {
		return "", err
	}
	if err := b.allowed(name); err != nil {
		return "", badPath(err)
	}
	if docs.IsHeader(name) {
		return "", badPath(&PathError{Path: name, Reason: "it would be a file of a program; a header that is there can be edited, a new one is for people to make"})
	}
	switch kindOf(name) {
	case sheet, board, config:
		return "", tool.Errorf(tool.InvalidArgument, "%s is a KiCad file; write_file makes documents only, and KiCad draws its own files", name)
	case markdown, other:
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.base.get(ctx); err != nil {
		return "", baseFailed(err)
	}
	if _, err := b.root.Lstat(filepath.FromSlash(name)); err == nil {
		return "", tool.Errorf(tool.InvalidArgument, "%s exists; change it with %s", name, toolEdit)
	}
	first := b.firstMissing(path.Dir(name))
	if err := b.root.MkdirAll(filepath.FromSlash(path.Dir(name)), 0o755); err != nil {
		return "", badPath(pathError(name, err))
	}
	if err := b.writeWhole(filepath.FromSlash(name), []byte(in.Content), 0o644); err != nil {
		return "", tool.Errorf(tool.Failed, "%s was not written: %w", name, pathError(name, err))
	}
	if err := b.kept(ctx, name); err != nil {
		return "", errors.Join(err, b.unmake(name, first))
	}
	b.touched(name)
	return fmt.Sprintf("Wrote %s, %d bytes.", name, len(in.Content)), nil
}

// kept refuses a new file that git does not see: no commit would hold it, and a run
// that fails could not take it back (B-57).
func (b *Bench) kept(ctx context.Context, name string) error {
	changes, err := b.session.Snapshot.Changed(ctx)
	if err != nil {
		return tool.Errorf(tool.Failed, "%s was not written: %w", name, err)
	}
	if slices.ContainsFunc(changes, func(c workspace.Change) bool { return c.Path == name && !c.Ignored }) {
		return nil
	}
	return badPath(&PathError{Path: name, Reason: "git ignores it, or it lies in a repository of its own, so that no commit would hold it; nothing was written. Choose another place, or have it taken out of .gitignore first"})
}

// firstMissing is the outermost folder of a path that is not there, "" when all are.
func (b *Bench) firstMissing(dir string) string {
	first := ""
	for ; dir != "."; dir = path.Dir(dir) {
		if _, err := b.root.Lstat(filepath.FromSlash(dir)); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		first = dir
	}
	return first
}

// unmake removes a file that was just made, with the folders that were made for it.
func (b *Bench) unmake(name, first string) error {
	err := b.undo(&edit{name: name, fresh: true})
	for dir := path.Dir(name); err == nil && first != ""; dir = path.Dir(dir) {
		if err = b.root.Remove(filepath.FromSlash(dir)); dir == first {
			break
		}
	}
	if err != nil {
		return tool.Errorf(tool.Failed, "%s could not be taken away again: %w", name, err)
	}
	return nil
}

// plainText refuses text with the replacement character: it is what is left of
// text that was damaged on its way (B-86).
func plainText(field, text string) error {
	if strings.ContainsRune(text, utf8.RuneError) || !utf8.ValidString(text) {
		return tool.Errorf(tool.InvalidArgument, "%s holds U+FFFD, the mark of a character that was lost on the way; nothing was written, send the text again", field)
	}
	if strings.Contains(text, mask.Mask) {
		return tool.Errorf(tool.InvalidArgument, "%s holds %s, which stands for a secret that was taken out; nothing was written", field, mask.Mask)
	}
	return nil
}

// writeWhole puts data in the place of a file at once or not at all: a full disk
// or a kill leaves the old content, and nothing beside it. The name is the operating
// system's, relative to the repository.
func (b *Bench) writeWhole(name string, data []byte, mode fs.FileMode) (err error) {
	temp := filepath.Join(".fiducial", "runs", b.session.Run, "write.tmp")
	f, err := b.root.OpenFile(temp, createNew, mode)
	if errors.Is(err, fs.ErrExist) { // left over from a killed run
		if err = b.root.Remove(temp); err == nil {
			f, err = b.root.OpenFile(temp, createNew, mode)
		}
	}
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, b.root.Remove(temp))
		}
	}()
	_, err = f.Write(data)
	if err == nil {
		err = f.Chmod(mode) // the umask does not apply to what stood there before
	}
	if err == nil {
		err = f.Sync()
	}
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = b.root.Rename(temp, name)
	}
	if err == nil {
		b.note(name, sha256.Sum256(data))
	}
	return err
}
