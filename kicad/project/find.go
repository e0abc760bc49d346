// SPDX-License-Identifier: Apache-2.0

package project

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// The extensions of KiCad 6 and newer.
const (
	extPro = ".kicad_pro"
	extSch = ".kicad_sch"
	extPCB = ".kicad_pcb"
)

// Bounds of the search below a folder.
const (
	maxDepth   = 6
	maxFolders = 5000
)

// Find finds the one project at a place: a folder, or a file of the project. A folder is looked at first, then those
// below it, then those above it up to the top. Designs without a .kicad_pro count only where none has one; several that
// are left are an error that lists them. Folders whose names begin with a dot, node_modules, and KiCad's backups are not
// searched. The error is an [*Error].
func Find(fsys fs.FS, at string) (*Project, error) {
	at = path.Clean(at)
	st, err := fs.Stat(fsys, at)
	if err != nil {
		return nil, &Error{Kind: NotFound, Dir: at, Detail: "there is no " + at, Err: err}
	}
	s := &search{fsys: fsys, at: at}
	if !st.IsDir() {
		return s.file(at)
	}
	found, err := s.below(at)
	if err != nil {
		return nil, err
	}
	for up := at; len(found) == 0 && up != "."; {
		up = path.Dir(up)
		f, err := s.folder(up)
		if err != nil {
			return nil, err
		}
		found = f.projects()
	}
	return s.choose(found)
}

type search struct {
	fsys fs.FS
	at   string
	seen int // folders
	// hints are reasons why files that look like a design are none, by kind.
	hints map[Kind]string
	// hollow are .kicad_pro without a schematic and a board.
	hollow []string
}

func (s *search) hint(k Kind, format string, args ...any) {
	if s.hints == nil {
		s.hints = map[Kind]string{}
	}
	if s.hints[k] == "" {
		s.hints[k] = fmt.Sprintf(format, args...)
	}
}

// A candidate is a project before its surroundings are known.
type candidate struct {
	dir, name     string
	pro, sch, pcb bool
}

func (c candidate) key() string {
	switch stem := path.Join(c.dir, c.name); {
	case c.pro:
		return stem + extPro
	case c.sch:
		return stem + extSch
	default:
		return stem + extPCB
	}
}

// below looks at a folder and, when it holds no project, at those below it.
func (s *search) below(dir string) ([]candidate, error) {
	f, err := s.folder(dir)
	if err != nil {
		return nil, err
	}
	if found := f.projects(); len(found) > 0 {
		return found, nil
	}
	var found []candidate
	next := f.dirs
	for depth := 1; depth <= maxDepth && len(next) > 0; depth++ {
		var deeper []string
		for _, d := range next {
			if s.seen++; s.seen > maxFolders {
				return found, nil
			}
			f, err := s.folder(d)
			if err != nil { // a folder that may not be read hides its own projects only
				continue
			}
			if p := f.projects(); len(p) > 0 {
				found = append(found, p...)
				continue // what is below a project belongs to it
			}
			deeper = append(deeper, f.dirs...)
		}
		next = deeper
	}
	return found, nil
}

// A folder is the designs of one folder, by name, and the folders in it.
type folder struct {
	designs map[string]*candidate
	roots   map[string]bool // sheets that no sheet here refers to
	dirs    []string
}

func (s *search) folder(dir string) (*folder, error) {
	entries, err := fs.ReadDir(s.fsys, dir)
	if err != nil {
		return nil, &Error{Kind: Unusable, Dir: s.at, Detail: "the folder " + dir + " cannot be read", Err: err}
	}
	f := &folder{designs: map[string]*candidate{}}
	for _, e := range entries {
		name := e.Name()
		if e.IsDir() {
			if !skipped(name) {
				f.dirs = append(f.dirs, path.Join(dir, name))
			}
			continue
		}
		s.entry(f, dir, name)
	}
	for name, c := range f.designs {
		if c.pro && !c.sch && !c.pcb {
			s.hollow = append(s.hollow, path.Join(dir, name+extPro))
			delete(f.designs, name)
		}
	}
	s.findRoots(f, dir)
	return f, nil
}

func skipped(dir string) bool {
	return strings.HasPrefix(dir, ".") || dir == "node_modules" || strings.HasSuffix(dir, "-backups")
}

// entry sorts one file in.
func (s *search) entry(f *folder, dir, name string) {
	ext := path.Ext(name)
	stem := strings.TrimSuffix(name, ext)
	if stem == "" || strings.HasPrefix(stem, "~") || strings.HasPrefix(stem, "_autosave-") {
		return
	}
	file := path.Join(dir, name)
	if lower := strings.ToLower(ext); ext != lower && (lower == extPro || lower == extSch || lower == extPCB) {
		s.hint(Case, "kicad-cli does not load %s because of its extension; rename it to %s", file, stem+lower)
		return
	}
	if ext == ".sch" && s.legacy(file) {
		s.hint(Legacy, "%s is a KiCad 5 schematic; open it in KiCad 6 or newer and save it, which makes a .kicad_sch", file)
		return
	}
	if ext != extPro && ext != extSch && ext != extPCB {
		return
	}
	c := f.designs[stem]
	if c == nil {
		c = &candidate{dir: dir, name: stem}
		f.designs[stem] = c
	}
	c.pro, c.sch, c.pcb = c.pro || ext == extPro, c.sch || ext == extSch, c.pcb || ext == extPCB
}

// legacy tells a KiCad 5 schematic by its first word.
func (s *search) legacy(file string) bool {
	const start = "EESchema"
	return string(peek(s.fsys, file, len(start))) == start
}

// findRoots looks, where sheets have no .kicad_pro to tell which is the root, for those that no other one uses.
func (s *search) findRoots(f *folder, dir string) {
	for _, c := range f.designs {
		if c.pro {
			return
		}
	}
	used := map[string]bool{}
	f.roots = map[string]bool{}
	for _, c := range f.designs {
		if !c.sch {
			continue
		}
		f.roots[c.name] = true
		for _, target := range sheetFiles(s.fsys, path.Join(dir, c.name+extSch)) {
			if stem := strings.TrimSuffix(path.Clean(target), extSch); stem != c.name {
				used[stem] = true
			}
		}
	}
	for stem := range used {
		delete(f.roots, stem)
	}
	for name, c := range f.designs {
		if c.pcb && !c.sch {
			f.roots[name] = true
		}
	}
}

// sheetFiles lists the files of the sheet symbols in a schematic, as written.
func sheetFiles(fsys fs.FS, file string) []string {
	src, err := Read(fsys, file, 0)
	if err != nil { // whoever reads the design says why
		return nil
	}
	doc, _ := sexpr.ParseTolerant(src)
	var targets []string
	for sheet := range doc.Root().Lists("sheet") {
		for p := range sheet.Lists("property") {
			if n := p.Arg(0).Text(); n == "Sheetfile" || n == "Sheet file" { // KiCad 6 wrote a space
				targets = append(targets, p.Arg(1).Text())
			}
		}
	}
	return targets
}

// projects are the folder's projects: those with a .kicad_pro, else the root sheets and boards.
func (f *folder) projects() []candidate {
	var found []candidate
	for _, name := range slices.Sorted(maps.Keys(f.designs)) {
		if c := f.designs[name]; c.pro || f.roots[name] {
			found = append(found, *c)
		}
	}
	return found
}

// choose takes the only candidate, or the only one with a .kicad_pro.
func (s *search) choose(found []candidate) (*Project, error) {
	whole := slices.DeleteFunc(slices.Clone(found), func(c candidate) bool { return !c.pro })
	if len(whole) > 0 {
		found = whole
	}
	if len(found) == 1 {
		return s.describe(found[0])
	}
	if len(found) > 1 {
		e := &Error{Kind: Ambiguous, Dir: s.at}
		for _, c := range found {
			e.Choices = append(e.Choices, c.key())
		}
		e.Detail = fmt.Sprintf("there are %d projects; name the one that is meant: %s", len(found), strings.Join(e.Choices, ", "))
		return nil, e
	}
	for _, k := range []Kind{Legacy, Case} {
		if text := s.hints[k]; text != "" {
			return nil, &Error{Kind: k, Dir: s.at, Detail: text}
		}
	}
	if len(s.hollow) > 0 {
		return nil, &Error{Kind: Unusable, Dir: s.at, Detail: fmt.Sprintf(
			"%s has neither a schematic nor a board of its name beside it", s.hollow[0])}
	}
	return nil, &Error{Kind: NotFound, Dir: s.at, Detail: fmt.Sprintf(
		"no KiCad project in %s or below (no .kicad_pro, .kicad_sch or .kicad_pcb); name the folder that has one", s.where())}
}

func (s *search) where() string {
	if s.at == "." {
		return "this folder"
	}
	return s.at
}

// file finds the project that a file belongs to: that of its name, else, for a child sheet, that of its folder.
func (s *search) file(at string) (*Project, error) {
	f, err := s.folder(path.Dir(at))
	if err != nil {
		return nil, err
	}
	ext := path.Ext(at)
	stem := strings.TrimSuffix(path.Base(at), ext)
	c := f.designs[stem]
	switch {
	case ext != extPro && ext != extSch && ext != extPCB:
		if len(s.hints) > 0 {
			return s.choose(nil)
		}
		return nil, &Error{Kind: Unusable, Dir: s.at, Detail: at + " is no file of a KiCad project (.kicad_pro, .kicad_sch or .kicad_pcb)"}
	case c == nil:
		return s.choose(nil)
	case c.pro, f.roots[stem]:
		return s.describe(*c)
	}
	p, err := s.choose(f.projects())
	if err != nil {
		return nil, err
	}
	if p.PCB != at && p.Root != at && ext == extSch {
		return nil, &Error{Kind: Unusable, Dir: s.at, Detail: fmt.Sprintf(
			"%s is no root schematic; rule checks start at the root: name %s", at, p.Root)}
	}
	return p, nil
}

// describe looks at what is around a candidate.
func (s *search) describe(c candidate) (*Project, error) {
	p := &Project{Name: c.name, Dir: c.dir}
	stem := path.Join(c.dir, c.name)
	if c.pro {
		p.Pro = stem + extPro
	}
	if c.sch {
		p.Root = stem + extSch
	}
	if c.pcb {
		p.PCB = stem + extPCB
	}
	for _, dir := range []string{path.Join(c.dir, "docs"), "docs"} {
		if st, err := fs.Stat(s.fsys, dir); err == nil && st.IsDir() {
			p.Docs = dir
			break
		}
	}
	f, err := s.folder(c.dir)
	if err != nil {
		return nil, err
	}
	for _, o := range f.projects() {
		if o.name != c.name {
			p.Others = append(p.Others, o.key())
		}
	}
	p.Locks, err = locks(s.fsys, c.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, &Error{Kind: Unusable, Dir: s.at, Detail: "the lock files in " + c.dir + " cannot be read", Err: err}
	}
	return p, nil
}
