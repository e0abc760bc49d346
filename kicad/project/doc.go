// SPDX-License-Identifier: Apache-2.0

// Package project finds the KiCad project in a folder and says what belongs to it.
//
// All paths are slash-separated and relative to the file system that was searched, as a rule the top of the repository
// by way of [os.Root.FS], so that nothing outside it is looked at.
package project

import (
	"fmt"
	"path"
	"strings"
)

// A Project is a KiCad project: the files of one name in one folder.
type Project struct {
	Name string // of the files, without an extension
	Dir  string // the folder, "." for the top
	Pro  string // the .kicad_pro, "" when there is none: then kicad-cli ignores the project's library tables
	Root string // the root .kicad_sch, "" when there is none
	PCB  string // the .kicad_pcb, "" when there is none
	Docs string // the folder docs of the project, else of the top, "" when there is none
	// Others are the projects beside this one: their .kicad_pro, or the root sheet of one without.
	Others []string
	Locks  []Lock
}

// Parity reports whether board and schematic stand beside each other, so that DRC compares them.
func (p *Project) Parity() bool { return p.Root != "" && p.PCB != "" }

// Files lists the project's own files that exist: settings, root sheet, board.
func (p *Project) Files() []string {
	var files []string
	for _, f := range []string{p.Pro, p.Root, p.PCB} {
		if f != "" {
			files = append(files, f)
		}
	}
	return files
}

// String names the project and its files in one line.
func (p *Project) String() string {
	var names []string
	for _, f := range p.Files() {
		names = append(names, path.Base(f))
	}
	s := p.Name + " (" + strings.Join(names, ", ") + ")"
	if p.Dir != "." {
		s += " in " + p.Dir
	}
	return s
}

// A Kind is what a caller may branch on.
type Kind uint8

// The kinds.
const (
	NotFound  Kind = iota + 1 // no project in the folder or below
	Ambiguous                 // several; Choices lists them
	Legacy                    // only KiCad 5 schematics
	Case                      // an extension that kicad-cli does not load, such as .KICAD_SCH
	Unusable                  // a .kicad_pro with neither schematic nor board, or a file that cannot be read
)

// String names the kind.
func (k Kind) String() string {
	names := []string{"", "not found", "ambiguous", "legacy", "case", "unusable"}
	if int(k) >= len(names) {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return names[k]
}

// An Error says why there is no project to work on, and what to do.
type Error struct {
	Kind    Kind
	Dir     string   // where the search began
	Choices []string // for Ambiguous: what [Find] takes instead of a folder
	Detail  string   // what is wrong and what to do
	Err     error    // the cause, may be nil
}

func (e *Error) Error() string {
	s := "project: " + e.Detail
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *Error) Unwrap() error { return e.Err }
