// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
)

// net is a line of list_nets.
type net struct {
	name   string
	pins   string
	places string
}

// bare is the name without the path of its sheet.
func (n net) bare() string { return n.name[strings.LastIndex(n.name, "/")+1:] }

func (p plan) nets() []net {
	res := p.last("list_nets")
	var out []net
	for line := range strings.Lines(listed(res)) {
		if f := strings.SplitN(strings.TrimSpace(line), " | ", 3); len(f) == 3 {
			out = append(out, net{f[0], f[1], f[2]})
		}
	}
	return out
}

// net is the one that the request names: by its full name, or by its bare name
// when one net alone has it.
func (p plan) net() net {
	n, _ := p.find(p.from)
	return n
}

func (p plan) find(name string) (n net, candidates []net) {
	for _, n := range p.nets() {
		switch {
		case plain(n.name) == plain(name):
			return n, nil
		case plain(n.bare()) == plain(name):
			candidates = append(candidates, n)
		}
	}
	if len(candidates) == 1 {
		return candidates[0], nil
	}
	return net{}, candidates
}

// plain is a name in which SPI{slash}CS and SPI/CS are the same.
func plain(name string) string { return strings.ReplaceAll(name, "{slash}", "/") }

// part is a line of list_symbols.
type part struct {
	ref, value, footprint, places string
}

func (p plan) parts() []part {
	res := p.last("list_symbols")
	var out []part
	for line := range strings.Lines(listed(res)) {
		if f := strings.Split(strings.TrimSpace(line), " | "); len(f) == 5 {
			out = append(out, part{f[0], f[1], f[2], f[4]})
		}
	}
	return out
}

func (p plan) part(ref string) (part, bool) {
	all := p.parts()
	i := slices.IndexFunc(all, func(q part) bool { return q.ref == ref })
	if i < 0 {
		return part{}, false
	}
	return all[i], true
}

// impossible says why the request cannot be carried out on this design, empty
// when it can.
func (p plan) impossible() string {
	switch p.kind {
	case renameNet:
		return p.impossibleNet()
	case renameRef:
		if _, ok := p.part(p.from); !ok {
			return p.noPart(p.from)
		}
		if q, ok := p.part(p.to); ok {
			return fmt.Sprintf("%s exists already (%s); two parts cannot share a reference. Nothing was changed.", q.ref, q.value)
		}
	case setField:
		q, ok := p.part(p.ref)
		switch {
		case !ok:
			return p.noPart(p.ref)
		case p.field == "Value" && q.value == p.text, p.field == "Footprint" && q.footprint == p.text:
			return fmt.Sprintf("%s of %s is %s already. Nothing was changed.", p.field, p.ref, p.text)
		}
	case fixDocs:
	}
	return ""
}

func (p plan) impossibleNet() string {
	n, candidates := p.find(p.from)
	switch {
	case n.name == "" && len(candidates) > 1:
		return fmt.Sprintf("several nets are called %s: %s. Name one of them in full.", p.from, names(candidates))
	case n.name == "":
		return fmt.Sprintf("there is no net %s. The nets are: %s.", p.from, names(p.named()))
	case p.to == "" || strings.ContainsAny(p.to, "\"'`"):
		return fmt.Sprintf("%q is no name for a net. Nothing was changed.", p.to)
	case strings.HasPrefix(n.places, "nowhere"):
		return fmt.Sprintf("%s is a name that KiCad made up; no label carries it. Place a label in KiCad first.", n.name)
	case plain(n.bare()) == plain(p.bareTo()):
		return fmt.Sprintf("the net is called %s already. Nothing was changed.", n.name)
	}
	for _, other := range p.nets() {
		if plain(other.name) == plain(p.fullTo()) || plain(other.bare()) == plain(p.bareTo()) && n.meets(other) {
			return fmt.Sprintf("renaming %s (%s) to %s would join it with the net %s (%s): two nets of one name are one net in KiCad. Nothing was changed.",
				n.name, n.pins, p.bareTo(), other.name, other.pins)
		}
	}
	return ""
}

// meets reports whether two nets are spelled on one sheet, or one of them on all: then
// they would be one when they had one bare name.
func (n net) meets(other net) bool {
	if !strings.HasPrefix(n.name, "/") || !strings.HasPrefix(other.name, "/") {
		return true
	}
	own := sheetsOf(n.places)
	return slices.ContainsFunc(sheetsOf(other.places), func(s string) bool { return slices.Contains(own, s) })
}

func (p plan) noPart(ref string) string {
	var refs []string
	for _, q := range p.parts() {
		refs = append(refs, q.ref)
	}
	return fmt.Sprintf("there is no part %s. The parts are: %s.", ref, short(refs))
}

// named are the nets that a label spells.
func (p plan) named() []net {
	return slices.DeleteFunc(p.nets(), func(n net) bool { return strings.HasPrefix(n.places, "nowhere") })
}

func names(nets []net) string {
	var all []string
	for _, n := range nets {
		all = append(all, n.name)
	}
	return short(all)
}

// short lists at most forty names.
func short(all []string) string {
	if len(all) == 0 {
		return "none"
	}
	if len(all) > 40 {
		return strings.Join(all[:40], ", ") + fmt.Sprintf(" and %d more", len(all)-40)
	}
	return strings.Join(all, ", ")
}

// bareTo is the new name of a net without the path, when the request gives the
// path that the net has.
func (p plan) bareTo() string {
	n := p.net()
	return strings.TrimPrefix(p.to, strings.TrimSuffix(n.name, n.bare()))
}

// what tells the change in a sentence.
func (p plan) what() string {
	switch p.kind {
	case renameNet:
		return fmt.Sprintf("Rename net %s to %s", p.net().name, p.fullTo())
	case renameRef:
		return fmt.Sprintf("Rename %s to %s", p.from, p.to)
	case setField:
		switch {
		case p.field == "dnp" && p.text == "yes":
			return fmt.Sprintf("Mark %s as not to be fitted (DNP)", p.ref)
		case p.field == "dnp":
			return fmt.Sprintf("Mark %s as to be fitted", p.ref)
		case p.field == "Value", p.field == "Footprint":
			return fmt.Sprintf("Set the %s of %s to %s", strings.ToLower(p.field), p.ref, p.text)
		}
		return fmt.Sprintf("Set the field %s of %s to %s", p.field, p.ref, p.text)
	case fixDocs:
	}
	return ""
}

// fullTo is the new name of a net as KiCad will write it.
func (p plan) fullTo() string {
	n := p.net()
	return strings.TrimSuffix(n.name, n.bare()) + p.bareTo()
}

var placePattern = regexp.MustCompile(`(.+?\.kicad_sch):\d+(?: \([^)]*\))?(?:, | |$)`)

// files are those that the design's side of the change touches, as far as the
// listings tell.
func (p plan) files() []string {
	var places string
	switch p.kind {
	case renameNet:
		places = p.net().places
	case renameRef:
		q, _ := p.part(p.from)
		places = q.places
	case setField:
		q, _ := p.part(p.ref)
		places = q.places
	case fixDocs:
	}
	return sheetsOf(places)
}

// sheetsOf are the sheet files of places, each once.
func sheetsOf(places string) []string {
	var files []string
	for _, m := range placePattern.FindAllStringSubmatch(places, -1) {
		if name := path.Clean(m[1]); !slices.Contains(files, name) {
			files = append(files, name)
		}
	}
	return files
}
