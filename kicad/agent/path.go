// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/fiducial-dev/fiducial/kicad/project"
)

// A PathError says why a path is not one that a tool may use.
type PathError struct {
	Path   string
	Reason string
	Err    error // the cause, may be nil
}

func (e *PathError) Error() string { return fmt.Sprintf("path %q: %s", e.Path, e.Reason) }

func (e *PathError) Unwrap() error { return e.Err }

// clean checks a path that a model gave: relative to the repository, not leaving
// it, not git's and not ours, at any depth and however it is spelled (B-85). Where links
// lead is for [Bench.resolve] and os.Root to see.
func clean(name string) (string, error) {
	switch {
	case name == "":
		return "", &PathError{Path: name, Reason: "it is empty; give a path relative to the repository"}
	case strings.ContainsRune(name, 0):
		return "", &PathError{Path: name, Reason: "it holds a NUL byte"}
	}
	slashed := path.Clean(strings.ReplaceAll(name, `\`, "/"))
	if !fs.ValidPath(slashed) || filepath.IsAbs(name) {
		return "", &PathError{Path: name, Reason: "it leaves the repository; give a path relative to its top folder, without .."}
	}
	for part := range strings.SplitSeq(slashed, "/") {
		if private(part) {
			return "", &PathError{Path: name, Reason: fmt.Sprintf("the folder %q is not for tools", part)}
		}
	}
	return slashed, nil
}

// private reports whether a file system may take a name for git's folder or ours. Windows drops dots and blanks at the
// end and what stands behind a colon, and has short names; macOS drops characters without width. Git guards its own
// folder in the same way: core.protectNTFS and core.protectHFS (https://git-scm.com/docs/git-config, 2.47).
func private(part string) bool {
	part, _, _ = strings.Cut(strings.Map(seen, part), ":")
	part = strings.ToLower(strings.TrimRight(part, ". "))
	return part == ".git" || part == ".fiducial" || shortName.MatchString(part)
}

// shortName are the names that Windows makes for .git and .fiducial, so that programs of 1981 can open them.
var shortName = regexp.MustCompile(`^(git|fiduci|gi[0-9a-f]{4}|fi[0-9a-f]{4})~[0-9]+$`)

// seen drops what HFS+ passes over in names.
func seen(r rune) rune {
	if r >= 0x200c && r <= 0x200f || r >= 0x202a && r <= 0x202e || r >= 0x206a && r <= 0x206f || r == 0xfeff {
		return -1
	}
	return r
}

// device are names that Windows gives to a device, whatever stands behind a dot
// (https://learn.microsoft.com/windows/win32/fileio/naming-a-file).
var device = regexp.MustCompile(`(?i)^(con|prn|aux|nul|conin\$|conout\$|(com|lpt)[0-9¹²³]) *(\.|$)`)

// writable keeps tools from what makes other programs run: git's own settings, hooks, editors' and servers' folders all
// begin with a dot. And it keeps them from names that are another file, or none, where the repository is cloned to
// Windows or macOS.
func writable(name string) error {
	for part := range strings.SplitSeq(name, "/") {
		reason := ""
		switch {
		case strings.HasPrefix(part, "-"):
			reason = fmt.Sprintf("%q begins with a dash, which programs take for an option; use another name", part)
		case strings.HasPrefix(part, "."):
			reason = "files and folders whose names begin with a dot are settings of programs, and not for tools to write"
		case strings.ContainsFunc(part, unicode.IsControl) || strings.Map(seen, part) != part || !utf8.ValidString(part):
			reason = fmt.Sprintf("%q holds characters that cannot be seen; use letters, digits, - and _", part)
		case strings.Contains(part, ":"):
			reason = fmt.Sprintf("%q holds a colon, behind which Windows looks for a part of another file; use - or _ instead", part)
		case strings.HasSuffix(part, ".") || strings.HasSuffix(part, " "):
			reason = fmt.Sprintf("%q ends with a dot or a blank, which Windows drops; leave it out", part)
		case device.MatchString(part):
			reason = fmt.Sprintf("%q is the name of a device on Windows; choose another", part)
		}
		if reason != "" {
			return &PathError{Path: name, Reason: reason}
		}
	}
	return nil
}

// resolve follows the links in a path that [clean] passed: a link inside the
// repository may lead to what clean keeps tools from. What does not exist yet is
// resolved as far as it does. A .. in a link leads up from where the link before it leads
// to, as the system has it.
func (b *Bench) resolve(name string) (string, error) {
	at := "." // holds no link
	rest := strings.Split(name, "/")
	for hops := 0; len(rest) > 0; {
		part := rest[0]
		rest = rest[1:]
		next := path.Join(at, part)
		if part == ".." {
			if at == "." {
				return "", &PathError{Path: name, Reason: "it leads out of the repository by a link"}
			}
			at = path.Dir(at)
			continue
		}
		info, err := b.root.Lstat(filepath.FromSlash(next))
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			at = next // what is missing, or may not be seen, shows when it is used
			continue
		}
		if hops++; hops > 40 {
			return "", &PathError{Path: name, Reason: "its links go round in a circle"}
		}
		target, err := b.root.Readlink(filepath.FromSlash(next))
		if err != nil {
			return "", pathError(name, err)
		}
		slashed := filepath.ToSlash(target)
		if path.IsAbs(slashed) || filepath.VolumeName(target) != "" { // Windows has \x and C:x, which IsAbs does not count
			return "", &PathError{Path: name, Reason: "it leads out of the repository by the link " + next}
		}
		rest = append(strings.Split(slashed, "/"), rest...)
	}
	return clean(at)
}

// within is a path that a model gave, checked and resolved.
func (b *Bench) within(name string) (string, error) {
	name, err := clean(name)
	if err != nil {
		return "", err
	}
	return b.resolve(name)
}

// read is a file of the repository.
func (b *Bench) read(name string) ([]byte, error) {
	if _, err := b.resolve(name); err != nil {
		return nil, err
	}
	data, err := b.content(name)
	if err != nil {
		return nil, pathError(name, err)
	}
	return data, nil
}

// content is what a regular file holds; nothing that would be waited for is opened.
func (b *Bench) content(name string) ([]byte, error) {
	return project.Read(project.Files(b.root), name, 0)
}

func pathError(name string, err error) error {
	if e, ok := errors.AsType[*project.FileError](err); ok {
		return &PathError{Path: name, Reason: "it " + e.Detail, Err: err}
	}
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return &PathError{Path: name, Reason: "there is no such file", Err: err}
	case errors.Is(err, fs.ErrPermission):
		return &PathError{Path: name, Reason: "it may not be read or written: permission denied", Err: err}
	}
	if strings.Contains(err.Error(), "escapes") { // os.Root has no sentinel for it (Go 1.26)
		return &PathError{Path: name, Reason: "it leads out of the repository", Err: err}
	}
	return fmt.Errorf("%s: %w", name, err)
}
