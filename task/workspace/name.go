// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"fmt"
	"path"
	"regexp"
	"strings"
)

// refPrefix is where snapshots are kept.
const refPrefix = "refs/fiducial/"

var runName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// checkRun tests that a run id can be the name of a ref and of a folder. The
// rules for refs are those of git check-ref-format.
func checkRun(op, run string) error {
	if !runName.MatchString(run) || strings.Contains(run, "..") || strings.HasSuffix(run, ".lock") || strings.HasSuffix(run, ".") {
		return &Error{
			Kind: KindInvalid, Op: op, Err: fmt.Errorf("run id %q", run),
			Advice: "use letters, digits, dots, dashes and underscores, at most 128",
		}
	}
	return nil
}

// isOwn reports whether p is in the folder of the runs.
func isOwn(p string) bool { return p == own || strings.HasPrefix(p, own+"/") }

func checkPatterns(patterns []string) error {
	for _, p := range patterns {
		if _, err := path.Match(p, ""); err != nil {
			return fmt.Errorf("exclude pattern %q: %w", p, err)
		}
	}
	return nil
}

// excluded reports whether the domain leaves an untracked p out.
func (r *Repo) excluded(p string) bool {
	for _, pattern := range r.exclude {
		for q := p; q != "." && q != "/"; q = path.Dir(q) {
			name := path.Base(q)
			if strings.Contains(pattern, "/") {
				name = q
			}
			if ok, err := path.Match(pattern, name); ok && err == nil { // patterns were checked by Open
				return true
			}
		}
	}
	return false
}

// A set of names, some of which may be folders: they end in a slash and stand for
// all that is in them.
type nameSet map[string]bool

func newNameSet(names []string) nameSet {
	s := make(nameSet, len(names))
	for _, n := range names {
		s[n] = true
	}
	return s
}

func (s nameSet) covers(p string) bool {
	if len(s) == 0 {
		return false
	}
	if s[p] || s[p+"/"] {
		return true
	}
	for i := len(p) - 1; i > 0; i-- {
		if p[i] == '/' && s[p[:i+1]] {
			return true
		}
	}
	return false
}
