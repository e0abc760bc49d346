// SPDX-License-Identifier: Apache-2.0

// Package library reads the symbol and footprint libraries that are installed or that a project carries: by what tables
// name them (sym-lib-table, fp-lib-table), never by guessing. Where no library can be read it says so (B-112).
//
// KiCad's own libraries are large (217 MB of symbols in KiCad 9). A library is read when it is asked for and only its
// index stays in memory: names, texts and where each symbol stands in its file. The pins of a symbol are read from
// that place. A file that changed is read anew.
//
// Formats: https://dev-docs.kicad.org/en/file-formats/sexpr-symbol-lib/ (files of KiCad 6 to 9, 20211014 to 20241209),
// and folders of such files as KiCad 10 makes them (.kicad_symdir).
package library

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// Options say where libraries are. The zero value knows of none.
type Options struct {
	// Share is KiCad's folder of shared files, /usr/share/kicad on Debian: symbols, footprints, and template with the
	// tables of all stock libraries.
	Share string
	// Templates replaces the folder of the global tables, Share/template.
	Templates string
	// Project is the folder of a project, whose own tables come first; KIPRJMOD stands for it.
	Project string
	// Variables are further variables of paths by name, as KiCad's configuration has them. They win over those
	// that follow from Share (KICAD9_SYMBOL_DIR, KICAD9_FOOTPRINT_DIR and their older and newer names).
	Variables map[string]string
}

// A Library is one line of a table.
type Library struct {
	Name        string
	Path        string // with variables resolved; a file, or a folder
	Description string
	Project     bool // from the project's own table
	// Problem says why it cannot be read, "" when it can: another kind of library, a variable that is not set, a
	// file that is not there.
	Problem string
}

// A Set is the libraries of a project. It is safe for concurrent use.
type Set struct {
	opts       Options
	symbols    []Library
	footprints []Library
	looked     []string // tables that were looked for
	problems   []string // tables that could not be read

	mu      sync.Mutex
	shelves map[string]*shelf // by path
}

// Open reads the tables. Tables that are missing are no error: then there are no libraries, and each question is
// answered with [NoLibraries].
func Open(opts Options) *Set {
	s := &Set{opts: opts, shelves: map[string]*shelf{}}
	if opts.Templates == "" && opts.Share != "" {
		s.opts.Templates = filepath.Join(opts.Share, "template")
	}
	s.symbols = s.tables("sym-lib-table", "sym_lib_table")
	s.footprints = s.tables("fp-lib-table", "fp_lib_table")
	return s
}

// Symbols lists the symbol libraries, the project's first. A name that both tables have is the project's.
func (s *Set) Symbols() []Library { return append([]Library{}, s.symbols...) }

// Footprints lists the footprint libraries likewise.
func (s *Set) Footprints() []Library { return append([]Library{}, s.footprints...) }

func (s *Set) tables(file, tag string) []Library {
	var list []Library
	known := map[string]bool{}
	for i, dir := range []string{s.opts.Project, s.opts.Templates} {
		if dir == "" {
			continue
		}
		name := filepath.Join(dir, file)
		s.looked = append(s.looked, name)
		data, err := os.ReadFile(name)
		if err != nil {
			if !errors.Is(err, fs.ErrNotExist) {
				s.problems = append(s.problems, err.Error())
			}
			continue
		}
		doc, bad := sexpr.ParseTolerant(data)
		if len(bad) > 0 || !doc.Root().Is(tag) {
			s.problems = append(s.problems, name+" is no library table")
		}
		for n := range doc.Root().Lists("lib") {
			l := s.library(n)
			if l.Project = i == 0; l.Name != "" && !known[l.Name] {
				known[l.Name] = true
				list = append(list, l)
			}
		}
	}
	return list
}

func (s *Set) library(n sexpr.Node) Library {
	l := Library{Name: n.Get("name").Arg(0).Text(), Description: n.Get("descr").Arg(0).Text()}
	path, missing := s.resolve(n.Get("uri").Arg(0).Text())
	l.Path = path
	kind := n.Get("type").Arg(0).Text()
	switch _, err := os.Stat(path); {
	case n.Get("disabled").OK():
		l.Problem = "it is switched off in the table"
	case kind != "KiCad" && kind != "":
		l.Problem = "libraries of type " + kind + " are not read"
	case missing != "":
		l.Problem = "the variable " + missing + " of its path " + path + " is not set"
	case err != nil:
		l.Problem = "there is no " + path
	}
	return l
}

var variable = regexp.MustCompile(`\$\{([^}]*)\}|\$\(([^)]*)\)`)

// Variables of KiCad 6 to 10 for the stock libraries, and the one of KiCad 5 for footprints.
var (
	symbolDir    = regexp.MustCompile(`^KICAD\d*_SYMBOL_DIR$`)
	footprintDir = regexp.MustCompile(`^KICAD\d*_FOOTPRINT_DIR$|^KISYSMOD$`)
)

// resolve puts values in the place of variables and returns the first that has none.
func (s *Set) resolve(uri string) (path, missing string) {
	path = variable.ReplaceAllStringFunc(uri, func(ref string) string {
		name := strings.Trim(ref, "${}()")
		value, ok := s.opts.Variables[name]
		switch {
		case ok:
		case name == "KIPRJMOD" && s.opts.Project != "":
			value = s.opts.Project
		case symbolDir.MatchString(name) && s.opts.Share != "":
			value = filepath.Join(s.opts.Share, "symbols")
		case footprintDir.MatchString(name) && s.opts.Share != "":
			value = filepath.Join(s.opts.Share, "footprints")
		}
		if value == "" {
			missing = cmp.Or(missing, name)
			return ref
		}
		return value
	})
	if missing == "" && !filepath.IsAbs(path) && s.opts.Project != "" {
		path = filepath.Join(s.opts.Project, path)
	}
	return path, missing
}
