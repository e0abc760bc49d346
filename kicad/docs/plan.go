// SPDX-License-Identifier: Apache-2.0

package docs

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/project"
	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// A State says what init does with a file.
type State string

// The states.
const (
	Make      State = "make"      // it is not there
	Remake    State = "remake"    // it is as it was made, and the design has changed since
	Mend      State = "mend"      // a run has edited it, and the design has changed since: repaired, and what the run wrote stays
	Unchanged State = "unchanged" // it is as it would be made, or as a run left it and in line with the design
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
func (s Step) Writes() bool {
	return s.State == Make || s.State == Remake || s.State == Mend || s.State == Overwrite
}

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
	next := ProjectConfig{Docs: mine.Docs, Generated: map[string]string{}}
	var steps []Step
	var refused ChangedError
	for _, p := range pages {
		s := Step{File: path.Join(folder, p.Name), Text: []byte(p.Text)}
		have, err := project.Read(fsys, s.File, maxDocument)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("docs: %w", err)
		}
		if lineEnd(have) == "\r\n" {
			s.Text = bytes.ReplaceAll(s.Text, []byte("\n"), []byte("\r\n"))
		}
		s.State = mine.stateOf(p, have, err == nil, opts)
		switch {
		case p.Own:
		case s.State == Mend:
			if s, err = mend(s, p, have); err != nil {
				return nil, err
			}
			next.keep(mine, p.Name)
			next.edited(p.Name, s.Text)
		case s.State == Kept:
			next.keep(mine, p.Name)
		case s.State == Changed:
			refused.Files = append(refused.Files, s.File)
		default:
			next.Generated[p.Name] = Hash(s.Text)
		}
		steps = append(steps, s)
	}
	if len(refused.Files) > 0 {
		return steps, &refused
	}
	all := Config{Projects: map[string]ProjectConfig{}}
	maps.Copy(all.Projects, c.Projects)
	all.Projects[proj.Name] = next
	s := Step{File: path.Join(proj.Dir, ConfigName), Text: all.bytes(), State: Make}
	if have, err := project.Read(fsys, s.File, maxDocument); err == nil {
		if s.State = Remake; string(have) == string(s.Text) || known && !slices.ContainsFunc(steps, Step.Writes) && sameNames(mine.Generated, next.Generated) {
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

// keep takes over what another config says of a document.
func (p *ProjectConfig) keep(from ProjectConfig, name string) {
	if was := from.Generated[name]; was != "" {
		p.Generated[name] = was
	}
	if was := from.Edited[name]; was != "" {
		p.editedAs(name, was)
	}
}

func (p *ProjectConfig) edited(name string, src []byte) { p.editedAs(name, Hash(src)) }

func (p *ProjectConfig) editedAs(name, sum string) {
	if p.Edited == nil {
		p.Edited = map[string]string{}
	}
	p.Edited[name] = sum
}

// mend is the step for a document that a run has edited: it is repaired by the design, as fix_docs would, and nothing
// else of it changes.
func mend(s Step, p Page, have []byte) (Step, error) {
	s.Text, s.State = have, Unchanged
	if p.design == nil {
		return s, nil
	}
	doc, err := ReadDocument(s.File, have)
	if err != nil {
		return s, fmt.Errorf("docs: %w", err)
	}
	text, err := sexpr.Apply(have, Fix(p.design, doc))
	if err != nil {
		return s, fmt.Errorf("docs: %s cannot be repaired: %w", s.File, err)
	}
	if string(text) != string(have) {
		s.Text, s.State = text, Mend
	}
	return s, nil
}

func (p ProjectConfig) stateOf(page Page, have []byte, there bool, opts InitOptions) State {
	switch {
	case !there:
		return Make
	case page.Own:
		return Keep
	case string(plainEnds(have)) == page.Text:
		return Unchanged
	case p.Generated[page.Name] == Hash(have):
		return Remake
	case p.Edited[page.Name] == Hash(have) && !opts.Force:
		return Mend
	case opts.Keep:
		return Kept
	case opts.Force:
		return Overwrite
	}
	return Changed
}
