// SPDX-License-Identifier: Apache-2.0

package sch

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

// A Design is the tree of sheets below a root schematic.
type Design struct {
	Root   string           // the root file's name
	Files  map[string]*File // every file that was read, by name
	Sheets []*Instance      // the tree in depth-first order, the root first
	// Problems are what is wrong with the tree and its references, which kicad-cli passes over in silence.
	Problems []Problem

	uses    map[string]Use      // of a KiCad 6 root's symbol_instances, by path
	aliases map[string][]string // of buses, with their members
	seen    map[Problem]bool
	// targets are the files of the sheet symbols.
	targets map[*Sheet]*File
}

// An Instance is one use of a file. A file that two sheet symbols name has two.
type Instance struct {
	Path   string // of UUIDs: /top/sheet/...
	Name   string // of names: "/" for the root, else "/A/B/", as in net names and reports
	File   *File
	Sheet  *Sheet    // the sheet symbol, nil for the root
	Parent *Instance // nil for the root
	// DNP, NoBOM and NoBoard are set when the sheet symbol, or one above, marks everything in it.
	DNP, NoBOM, NoBoard bool
}

// A ProblemKind tells problems apart.
type ProblemKind string

// The kinds of problems.
const (
	MissingSheet      ProblemKind = "missing-sheet"       // the file of a sheet symbol is not there
	UnreadableSheet   ProblemKind = "unreadable-sheet"    // it is broken, or no schematic
	OutsideSheet      ProblemKind = "outside-sheet"       // its path leaves the folder that may be read
	SheetCycle        ProblemKind = "sheet-cycle"         // a sheet holds itself
	TooManySheets     ProblemKind = "too-many-sheets"     // the tree was cut
	DuplicateRef      ProblemKind = "duplicate-reference" // two parts have one reference
	NotAnnotated      ProblemKind = "not-annotated"       // a reference such as R?
	ReferenceMismatch ProblemKind = "reference-mismatch"  // the property differs from the instances, which win
	MissingLibSymbol  ProblemKind = "symbol-not-cached"   // the file carries no library symbol for it
	DamagedText       ProblemKind = "damaged-text"        // a byte that is not UTF-8, or a NUL byte
)

// A Problem is one thing wrong.
type Problem struct {
	Kind ProblemKind
	File string
	Line int // from 1, 0 when there is none
	Text string
}

// String is the problem with its place.
func (p Problem) String() string { return fmt.Sprintf("%s:%d: %s", p.File, p.Line, p.Text) }

// maxSheets is how many instances a tree may have: a file that holds two of the next one, twenty deep, has a million.
const maxSheets = 10_000

// Load reads a root schematic and every sheet below it. Sheet files are relative to the file that names them; fsys
// bounds what can be read: give it the repository rather than the project's folder, since sheets may lie beside that.
// An unreadable root is an error (errors.Is with fs.ErrNotExist, or [ErrNotSchematic]); what is wrong below it is in
// Problems.
func Load(fsys fs.FS, root string) (*Design, error) {
	return LoadWith(func(name string) ([]byte, error) { return fs.ReadFile(fsys, name) }, root)
}

// ErrNotSchematic says that the root file holds no schematic at all.
var ErrNotSchematic = errors.New("sch: not a KiCad 6 or newer schematic")

// LoadWith is [Load] with a function that reads a file by its slash-separated name.
func LoadWith(read func(name string) ([]byte, error), root string) (*Design, error) {
	d := &Design{Root: path.Clean(root), Files: map[string]*File{}, uses: map[string]Use{}, aliases: map[string][]string{}, seen: map[Problem]bool{}, targets: map[*Sheet]*File{}}
	src, err := read(d.Root)
	if err != nil {
		return nil, fmt.Errorf("sch: %w", err)
	}
	f := Read(d.Root, src)
	if !f.Doc.Root().Is("kicad_sch") {
		return nil, fmt.Errorf("%w: %s", ErrNotSchematic, d.Root)
	}
	d.Files[d.Root] = f
	for p := range f.Doc.Root().Get("symbol_instances").Lists("path") {
		u := readUse("", p)
		d.uses[u.Path] = u
	}
	top := &Instance{Path: "/" + f.UUID, Name: "/", File: f}
	d.descend(top, read, []string{d.Root})
	for _, f := range d.Files {
		d.readAliases(f)
	}
	d.checkFiles()
	d.checkReferences()
	return d, nil
}

// FileNames lists the files, the root first, then by name.
func (d *Design) FileNames() []string {
	names := slices.Sorted(maps.Keys(d.Files))
	i := slices.Index(names, d.Root)
	return append([]string{d.Root}, slices.Delete(names, i, i+1)...)
}

func (d *Design) problem(kind ProblemKind, file string, line int, format string, args ...any) {
	p := Problem{Kind: kind, File: file, Line: line, Text: fmt.Sprintf(format, args...)}
	if !d.seen[p] {
		d.seen[p] = true
		d.Problems = append(d.Problems, p)
	}
}

// descend adds an instance and those below it. open are the files from the root down to it.
func (d *Design) descend(in *Instance, read func(string) ([]byte, error), open []string) {
	if len(d.Sheets) >= maxSheets {
		d.problem(TooManySheets, d.Root, 0, "the design has more than %d sheets; the rest was not read", maxSheets)
		return
	}
	d.Sheets = append(d.Sheets, in)
	for _, s := range in.File.Sheets {
		name := path.Join(path.Dir(in.File.Name), strings.ReplaceAll(s.Target, `\`, "/"))
		if slices.Contains(open, name) {
			d.problem(SheetCycle, in.File.Name, s.Node.Line(), "sheet %q holds itself: %s", s.Name, s.Target)
			continue
		}
		f := d.file(name, s, read)
		if f == nil {
			continue
		}
		d.targets[s] = f
		d.descend(&Instance{
			Path: in.Path + "/" + s.UUID, Name: in.Name + s.Name + "/", File: f, Sheet: s, Parent: in,
			DNP: in.DNP || s.DNP, NoBOM: in.NoBOM || !s.InBOM, NoBoard: in.NoBoard || !s.OnBoard,
		}, read, append(slices.Clone(open), name))
	}
}

// file returns the file of a sheet symbol, or nil with a problem noted.
func (d *Design) file(name string, s *Sheet, read func(string) ([]byte, error)) *File {
	if f, known := d.Files[name]; known {
		return f
	}
	line := s.Node.Line()
	if path.IsAbs(s.Target) || !fs.ValidPath(name) {
		d.problem(OutsideSheet, s.File.Name, line, "sheet %q is the file %q, which is outside the project", s.Name, s.Target)
		return nil
	}
	src, err := read(name)
	if err != nil {
		d.problem(MissingSheet, s.File.Name, line, "the file %q of sheet %q cannot be read: %v", s.Target, s.Name, err)
		return nil
	}
	f := Read(name, src)
	if !f.Doc.Root().Is("kicad_sch") {
		d.problem(UnreadableSheet, s.File.Name, line, "the file %q of sheet %q is no schematic", s.Target, s.Name)
		return nil
	}
	d.Files[name] = f
	return f
}

func (d *Design) checkFiles() {
	for _, name := range d.FileNames() {
		f := d.Files[name]
		for _, e := range f.Errors {
			kind := UnreadableSheet
			if e.Kind == sexpr.NUL || e.Kind == sexpr.InvalidUTF8 {
				kind = DamagedText
			}
			d.problem(kind, name, e.Line, "%s", e.Error())
		}
		for _, s := range f.Symbols {
			if _, ok := s.Lib(); !ok {
				d.problem(MissingLibSymbol, name, s.Node.Line(), "symbol %s is a %s, which lib_symbols does not carry; kicad-cli drops it from the netlist and crashes in ERC", s.Value("Reference"), s.LibID)
			}
		}
	}
}

// Uses returns the instances of a file.
func (d *Design) Uses(f *File) []*Instance {
	var list []*Instance
	for _, in := range d.Sheets {
		if in.File == f {
			list = append(list, in)
		}
	}
	return list
}
