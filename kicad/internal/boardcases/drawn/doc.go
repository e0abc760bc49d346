// SPDX-License-Identifier: Apache-2.0

// Package drawn draws board cases of our own: small designs, each with something that tools for KiCad are reported to
// get wrong, or that a reader may trip over. What kicad-cli says of them is in ../testdata, made by ../cmd/oracle; the
// tests of boardcases judge our readers by it. Files are drawn anew each time, since some have line ends, bytes, links
// or sizes that a repository would not keep.
package drawn

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/internal/kicadtest"
)

// A Case is a folder of files.
type Case struct {
	Name  string
	Wrong string // what goes wrong in tools
	Right string // the right outcome, reasoned from KiCad's rules before kicad-cli was asked
	Files map[string]string
	Links map[string]string // symbolic links, by name
	// Inputs are the files that kicad-cli is asked of; empty means every .kicad_sch and .kicad_pcb of Files.
	Inputs []string
	// Checks has ERC and DRC asked as well; else the load verdict, parts and nets are.
	Checks bool
}

// All are the cases, by name.
func All() []Case {
	var all []Case
	for _, group := range [][]Case{text(), parts(), nets(), sheets(), boards(), surroundings()} {
		all = append(all, group...)
	}
	slices.SortFunc(all, func(a, b Case) int { return strings.Compare(a.Name, b.Name) })
	return all
}

// Asked lists the files that kicad-cli is asked of.
func (c Case) Asked() []string {
	if len(c.Inputs) > 0 {
		return c.Inputs
	}
	var names []string
	for name := range c.Files {
		if ext := filepath.Ext(name); ext == ".kicad_sch" || ext == ".kicad_pcb" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// Write puts the case's files into a folder.
func (c Case) Write(dir string) error {
	for name, text := range c.Files {
		file := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			return err
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			return err
		}
	}
	for name, to := range c.Links {
		if err := os.Symlink(to, filepath.Join(dir, filepath.FromSlash(name))); err != nil {
			return err
		}
	}
	return nil
}

// Expected is the text of expected.md.
func (c Case) Expected() string {
	return fmt.Sprintf("# %s\n\n**What goes wrong in other tools:** %s\n\n**Right outcome:** %s\n", c.Name, c.Wrong, c.Right)
}

type files = map[string]string

const pro = "{\n  \"meta\": {\n    \"version\": 3\n  }\n}\n"

// swap replaces a text that must be there.
func swap(in, old, now string) string {
	if !strings.Contains(in, old) {
		panic("drawn: the text to replace is not there: " + old)
	}
	return strings.Replace(in, old, now, 1)
}

func divider() string { return kicadtest.Divider("p").String() }

// two places two resistors whose upper pins are joined by a wire that label names, and whose lower pins are left open
// on purpose.
func two(s *kicadtest.Sheet, kind, label, a, b string, x, y float64) {
	s.Resistor(a, "1k", x, y)
	s.Resistor(b, "1k", x+4, y)
	s.Wire(x, y-1.5, x+4, y-1.5)
	s.Label(kind, label, x+2, y-1.5)
	s.NoConnect(x, y+1.5)
	s.NoConnect(x+4, y+1.5)
}
