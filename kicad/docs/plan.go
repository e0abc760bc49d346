// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/project"
)

// A State says what init does with a file.
type State string

// The states.
const (
	Make      State = "make"      // it is not there
	Remake    State = "remake"    // it is as it was made, and the design has changed since
	Unchanged State = "unchanged" // it is as it would be made
	Keep      State = "keep"      // it belongs to people: a specification, or a document that is only added to
	Kept      State = "kept"      // it was changed by hand, and is kept on request
	Changed   State = "changed"   // it was changed by hand, or is not ours: refused
	Overwrite State = "overwrite" // it was changed by hand, and is overwritten on request
)

// A Step is what init does with one file.
type Step struct {
	File  string // slash-separated, from the top
	State State
	Text  []byte // what it becomes, for the states that write
}

// Writes reports whether the step writes its file.
func (s Step) Writes() bool { return s.State == Make || s.State == Remake || s.State == Overwrite }

// InitOptions say what becomes of documents that were changed by hand. With neither they are refused.
type InitOptions struct {
	Force bool // overwrite them, but never those that belong to people
	Keep  bool // leave them as they are and make the others
}

// A ChangedError names the documents that init would have overwritten. Nothing was written.
type ChangedError struct{ Files []string }

func (e *ChangedError) Error() string {
	verb := "was"
	if len(e.Files) > 1 {
		verb = "were"
	}
	return fmt.Sprintf("docs: %s %s changed by hand, or not made by init", strings.Join(e.Files, ", "), verb)
}

// PlanInit says what is to be written so that the project has its pages and a config. Nothing is written here. A
// second plan, after the first was carried out, writes nothing, and neither does one that finds every document in line. The error is a [*ChangedError], or about a file that
// cannot be read.
func PlanInit(fsys fs.FS, proj *project.Project, c Config, pages []Page, opts InitOptions) ([]Step, error) {
	mine, known := c.Projects[proj.Name]
	folder := c.Folder(proj)
	if !known {
		mine.Docs = strings.TrimPrefix(path.Clean(folder), path.Clean(proj.Dir)+"/")
		if len(proj.Others) > 0 || proj.Dir != "." && !strings.HasPrefix(folder, proj.Dir+"/") {
			folder = path.Join(proj.Dir, defaultDocs(proj)) // what was found is not this project's alone
			mine.Docs = defaultDocs(proj)
		}
	}
	hashes := map[string]string{}
	var steps []Step
	var refused ChangedError
	for _, p := range pages {
		s := Step{File: path.Join(folder, p.Name), Text: []byte(p.Text)}
		have, err := project.Read(fsys, s.File, maxDocument)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("docs: %w", err)
		}
		was := mine.Generated[p.Name]
		s.State = stateOf(p, have, err == nil, was, opts)
		switch {
		case p.Own:
		case s.State == Kept:
			if was != "" {
				hashes[p.Name] = was
			}
		case s.State == Changed:
			refused.Files = append(refused.Files, s.File)
		default:
			hashes[p.Name] = Hash(s.Text)
		}
		steps = append(steps, s)
	}
	if len(refused.Files) > 0 {
		return steps, &refused
	}
	next := Config{Projects: map[string]ProjectConfig{}}
	maps.Copy(next.Projects, c.Projects)
	next.Projects[proj.Name] = ProjectConfig{Docs: mine.Docs, Generated: hashes}
	s := Step{File: path.Join(proj.Dir, ConfigName), Text: next.bytes(), State: Make}
	if have, err := project.Read(fsys, s.File, maxDocument); err == nil {
		if s.State = Remake; string(have) == string(s.Text) || known && !slices.ContainsFunc(steps, Step.Writes) && sameNames(mine.Generated, hashes) {
			s.State = Unchanged
		}
	}
	return append(steps, s), nil
}

// sameNames reports whether a config knows the documents that there are. Where others brought them in line with the
// design its hashes are old; that alone is no reason to touch it, for a run that writes no document leaves a clean tree.
func sameNames(was, now map[string]string) bool {
	return slices.Equal(slices.Sorted(maps.Keys(was)), slices.Sorted(maps.Keys(now)))
}

func stateOf(p Page, have []byte, there bool, was string, opts InitOptions) State {
	switch {
	case !there:
		return Make
	case p.Own:
		return Keep
	case string(have) == p.Text:
		return Unchanged
	case was != "" && Hash(have) == was:
		return Remake
	case opts.Keep:
		return Kept
	case opts.Force:
		return Overwrite
	}
	return Changed
}
