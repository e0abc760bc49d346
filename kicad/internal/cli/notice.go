// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/findings"
	"github.com/fiducial-dev/fiducial/kicad/project"
	"github.com/fiducial-dev/fiducial/kicad/sch"
)

// rules reports whether ERC or DRC were asked for.
func (w which) rules() bool { return w[findings.ERC] || w[findings.DRC] }

// notices are about the project as a whole, as far as they concern the checks that were asked for.
func notices(proj *project.Project, w which) []string {
	list := []string{}
	if proj.Root == "" {
		why := "so documents and constraints have nothing to be held against"
		if w.rules() {
			why = "so ERC and parity do not apply"
		}
		list = append(list, "there is no schematic of the name "+proj.Name+", "+why)
	}
	if proj.PCB == "" && w[findings.DRC] {
		list = append(list, "there is no board of the name "+proj.Name+", so DRC does not apply")
	}
	if proj.Pro == "" && w.rules() {
		list = append(list, "there is no "+proj.Name+".kicad_pro: the rules are KiCad's own, and library tables of the project are ignored")
	}
	for _, l := range proj.Locks {
		list = append(list, l.String()+"; what is not saved yet is not checked")
	}
	return list
}

// newSince leaves out the problems that were there before, wherever their lines are by now.
func newSince(was, now []sch.Problem) []sch.Problem {
	old := map[sch.Problem]int{}
	for _, p := range was {
		p.Line = 0
		old[p]++
	}
	var fresh []sch.Problem
	for _, p := range now {
		key := p
		if key.Line = 0; old[key] > 0 {
			old[key]--
			continue
		}
		fresh = append(fresh, p)
	}
	return fresh
}

// fewExamples is how many problems of one kind are told each in a line of its own.
const fewExamples = 3

// tellProblems puts problems into notices: a few of a kind each in a line, many in one that counts them.
func tellProblems(list []sch.Problem) []string {
	byKind := map[sch.ProblemKind][]string{}
	var kinds []sch.ProblemKind
	for _, p := range list {
		if byKind[p.Kind] == nil {
			kinds = append(kinds, p.Kind)
		}
		byKind[p.Kind] = append(byKind[p.Kind], p.String())
	}
	var told []string
	for _, k := range kinds {
		texts := byKind[k]
		if len(texts) <= fewExamples {
			told = append(told, texts...)
			continue
		}
		told = append(told, fmt.Sprintf("%d problems of the kind %s: %s; and %d more", len(texts), k, strings.Join(texts[:fewExamples], "; "), len(texts)-fewExamples))
	}
	return told
}
