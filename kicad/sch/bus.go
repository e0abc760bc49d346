// SPDX-License-Identifier: Apache-2.0

package sch

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxMembers bounds what a bus label expands to; KiCad's own vectors are far smaller.
const maxMembers = 4096

// busVector is a vector: D[0..7], also with text behind it. The first bracket decides.
var busVector = regexp.MustCompile(`^([^\[\]{}]*)\[(\d{1,9})\.\.(\d{1,9})\](\S*)$`)

// busGroup is a group: USB{DP DM}, {A B}. An overbar, a raised or a lowered text is none.
var busGroup = regexp.MustCompile(`^([^{}~^_]*|.*[^{}~^_])\{([^{}]+)\}$`)

// members expands the text of a bus label to the names of its nets, in plain spelling: D[0..1] to D0 and D1, USB{DP DM}
// to USB.DP and USB.DM, {MEM} to what the alias MEM stands for. It returns nothing for the name of a single net.
// Measured on kicad-cli 9.0.8; https://docs.kicad.org/9.0/en/eeschema/eeschema.html#buses describes the forms.
func (d *Design) members(text string) []string {
	if m := busVector.FindStringSubmatch(text); m != nil {
		return vector(m)
	}
	m := busGroup.FindStringSubmatch(text)
	if m == nil || strings.Contains(text, "${") {
		return nil
	}
	var list []string
	for _, word := range d.aliased(strings.Fields(m[2])) {
		names := []string{Plain(word)}
		if v := busVector.FindStringSubmatch(word); v != nil {
			names = vector(v)
		}
		for _, n := range names {
			if m[1] != "" {
				n = Plain(m[1]) + "." + n
			}
			list = append(list, n)
		}
	}
	return list
}

func vector(m []string) []string {
	from, err1 := strconv.Atoi(m[2])
	to, err2 := strconv.Atoi(m[3])
	if err1 != nil || err2 != nil || max(from-to, to-from) >= maxMembers {
		return nil
	}
	var list []string
	for i := min(from, to); i <= max(from, to); i++ {
		list = append(list, Plain(m[1])+strconv.Itoa(i)+Plain(m[4]))
	}
	return list
}

// aliased puts the members of bus aliases in the place of their names.
func (d *Design) aliased(words []string) []string {
	var list []string
	for _, w := range words {
		if members, ok := d.aliases[w]; ok {
			list = append(list, members...)
		} else {
			list = append(list, w)
		}
	}
	return list
}

// readAliases collects the bus aliases of a file.
func (d *Design) readAliases(f *File) {
	for a := range f.Doc.Root().Lists("bus_alias") {
		var members []string
		for m := range a.Get("members").All() {
			members = append(members, m.Text())
		}
		if len(members) > 0 {
			d.aliases[a.Arg(0).Text()] = members[1:]
		}
	}
}

// buses lists the bus labels and bus pins of the files that have one of the labels, when the name is one of their
// members.
func (d *Design) buses(labels []*Label, name string) []string {
	files := map[*File]bool{}
	for _, l := range labels {
		files[l.File] = true
	}
	var list []string
	for _, file := range d.FileNames() {
		f := d.Files[file]
		if !files[f] {
			continue
		}
		for _, l := range f.Labels {
			if slices.Contains(d.members(l.Text), name) {
				list = append(list, fmt.Sprintf("%s %s in %s, line %d", l.Kind, l.Text, file, l.Line()))
			}
		}
	}
	return list
}
