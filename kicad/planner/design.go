// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"cmp"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/llm"
)

// net is a line of list_nets.
type net struct {
	name   string
	pins   string
	places string
}

// bare is the name without the path of its sheet.
func (n net) bare() string { return n.name[strings.LastIndex(n.name, "/")+1:] }

// nets are those that list_nets told, in whatever call of it.
func (p plan) nets() []net {
	var out []net
	seen := map[string]bool{}
	for _, res := range p.all("list_nets") {
		for _, line := range entries(res) {
			n, ok := netOf(line)
			if ok && !seen[n.name] {
				seen[n.name] = true
				out = append(out, n)
			}
		}
	}
	return out
}

// netOf reads a line of list_nets from its end: a name may hold anything.
func netOf(line string) (net, bool) {
	rest, places, ok := cutLast(line, " | ")
	if !ok {
		return net{}, false
	}
	name, pins, ok := cutLast(rest, " | ")
	return net{name, pins, places}, ok && name != ""
}

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

const cutMark = "\n\n[truncated: "

// entries are the lines of a listing that arrived whole.
func entries(r llm.Result) []string {
	text := listed(r)
	if i := strings.LastIndex(text, cutMark); i >= 0 { // the last line before it may be half of one
		text = text[:i]
		text = text[:max(strings.LastIndexByte(text, '\n'), 0)]
	}
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.Trim(line, "\r\n"); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

// short listings are those that were cut.
func short(r llm.Result) bool { return strings.Contains(listed(r), cutMark) }

// seen reports whether all nets are known, or all that have a text in their name.
func (p plan) seen(filter string) bool {
	for _, s := range p.steps {
		for i, c := range s.calls {
			if c.Name == "list_nets" && i < len(s.results) && !short(s.results[i]) && (c.Args == "{}" || c.Args == call("list_nets", args{"filter": filter}).Args) {
				return true
			}
		}
	}
	return false
}

// filters are what list_nets is to be asked for when it could not tell all at once: the names that matter, as far as
// their spelling is sure.
func (r request) filters() (all []string) {
	for _, name := range []string{r.from, r.to} {
		name = plain(name)
		if name = name[strings.LastIndex(name, "/")+1:]; name != "" {
			all = append(all, name)
		}
	}
	return all
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

	dnp, noBOM bool
}

func (p plan) parts() []part {
	var out []part
	for _, res := range p.all("list_symbols") {
		for _, line := range entries(res) {
			if q, ok := partOf(line); ok && !slices.Contains(out, q) {
				out = append(out, q)
			}
		}
	}
	return out
}

// partOf reads a line of list_symbols; a value may hold anything.
func partOf(line string) (part, bool) {
	ref, rest, ok := strings.Cut(line, " | ")
	rest, places, ok2 := cutLast(rest, " | ")
	rest, symbol, ok3 := cutLast(rest, " | ")
	value, footprint, ok4 := cutLast(rest, " | ")
	_, flags, _ := cutLast(symbol, " (")
	return part{ref, value, footprint, places, strings.Contains(flags, "DNP"), strings.Contains(flags, "not in BOM")}, ok && ok2 && ok3 && ok4
}

// part is the one of a reference; R1 may be spelled r1 when no other is.
func (p plan) part(ref string) (part, bool) {
	if was, ok := p.was[ref]; ok { // another request renames it to this
		q, ok := plan{talk: p.talk}.part(was)
		q.ref = ref
		return q, ok
	}
	var like []part
	for _, q := range p.parts() {
		switch {
		case q.ref == ref:
			return q, true
		case strings.EqualFold(q.ref, ref):
			like = append(like, q)
		}
	}
	if len(like) != 1 {
		return part{}, false
	}
	return like[0], true
}

// spelled is a reference as the design spells it.
func (p plan) spelled(ref string) string {
	if q, ok := p.part(ref); ok {
		return q.ref
	}
	return ref
}

// obstacle is why a request is not carried out. done tells that everything is as it asks for.
type obstacle struct {
	text string
	done bool
}

func already(format string, a ...any) obstacle {
	return obstacle{fmt.Sprintf(format, a...) + " already. Nothing was changed.", true}
}

func blocked(format string, a ...any) obstacle { return obstacle{fmt.Sprintf(format, a...), false} }

// impossible says why the request cannot be carried out on this design, the zero
// value when it can.
func (p plan) impossible() obstacle {
	switch p.kind {
	case renameNet:
		return p.impossibleNet()
	case renameRef:
		return p.impossibleRef()
	case setField:
		return p.impossibleField()
	case addConstraint, changeConstraint:
		_, o := p.constraint()
		return o
	case fixDocs, decide, resolve:
	}
	return obstacle{}
}

func (p plan) impossibleRef() obstacle {
	switch q, ok := p.part(p.from); {
	case !ok:
		return p.noPart(p.from)
	case q.ref == p.to:
		return already("%s is called so", q.ref)
	}
	for _, q := range p.parts() {
		if q.ref == p.to {
			return blocked("%s exists already (%s); two parts cannot share a reference. Nothing was changed.", q.ref, q.value)
		}
	}
	return obstacle{}
}

func (p plan) impossibleField() obstacle {
	q, ok := p.part(p.ref)
	switch {
	case !ok:
		return p.noPart(p.ref)
	case strings.ContainsFunc(p.field+p.text, unicode.IsControl):
		return blocked("A field holds one line, and the text for %s of %s has a line end, a tab or another control character. Nothing was changed.", p.field, q.ref)
	case p.field == "dnp" && q.dnp == (p.text == "yes"):
		return already("%s is %s", q.ref, map[bool]string{true: "marked as not to be fitted (DNP)", false: "to be fitted"}[q.dnp])
	case p.field == "in_bom" && q.noBOM == (p.text == "no"):
		return already("%s is %s the bill of materials", q.ref, map[bool]string{true: "out of", false: "in"}[q.noBOM])
	case p.field == "Footprint" && q.footprint == p.text, p.field == "Value" && q.value == p.text:
		return already("%s of %s is %s", p.field, q.ref, p.text)
	case p.field == "Value":
		return p.impossibleValue(q)
	case p.field == "Footprint":
		return p.impossibleFootprint(q)
	}
	return obstacle{}
}

func (p plan) impossibleValue(q part) obstacle {
	if p.exact {
		return obstacle{}
	}
	if docs.SameValue(p.text, q.value) && docs.SameValue(q.value, p.text) {
		o := already("Value of %s is %s, the same as %s,", q.ref, q.value, p.text)
		o.text += fmt.Sprintf(" To spell it another way, put it in quotes: set %s to \"%s\".", q.ref, p.text)
		return o
	}
	text, _, _ := strings.Cut(p.text, " ")
	if two := strings.Fields(p.text); len(two) > 1 {
		if _, ok := docs.ParseQuantity(two[0] + two[1]); ok {
			text = two[0] + two[1]
		}
	}
	v, ok := docs.ParseQuantity(text)
	if want := unitOf(q.ref); ok && want != "" && v.Unit != "" && v.Unit != want {
		return blocked("%s is in %s, and the value of %s, %s, is in %s. Nothing was changed. If it is meant so, put it in quotes: set %s to \"%s\".", p.text, v.Unit, q.ref, q.value, want, q.ref, p.text)
	}
	return obstacle{}
}

// impossibleFootprint holds a footprint against the libraries and its pads against the part's pins.
func (p plan) impossibleFootprint(q part) obstacle {
	res, ok := p.answer("footprint_pads", args{"footprint": p.text})
	body := res.Body()
	switch {
	case !ok, p.exact, strings.Contains(body, "nothing is known about footprints"):
		return obstacle{} // it is not known, and what() says so
	case res.IsError():
		return blocked("%s is no footprint that can be set: %s. Nothing was changed. If the library is not installed here and the name is right, put it in quotes.", p.text, strings.TrimPrefix(body, "library: "))
	}
	_, list, _ := strings.Cut(body, "pads: ")
	list, _, _ = strings.Cut(list, "\n")
	pads := strings.Split(list, ", ")
	pins, _ := p.answer("pins_of", args{"reference": q.ref})
	var missing []string
	for line := range strings.Lines(pins.Body()) {
		number, _, _ := strings.Cut(line, " ")
		if _, net, ok := cutLast(strings.TrimSpace(line), ": "); ok && net != "" && !slices.Contains(pads, number) {
			missing = append(missing, number)
		}
	}
	slices.SortFunc(missing, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	missing = slices.Compact(missing)
	if len(missing) > 0 && !pins.IsError() {
		return blocked("%s has no pad for pin %s of %s (pads: %s). Nothing was changed.", p.text, some(missing), q.ref, cutName(list, 200))
	}
	return obstacle{}
}

func (p plan) impossibleNet() obstacle {
	n, candidates := p.find(p.from)
	switch {
	case n.name == "" && len(candidates) > 1:
		return blocked("several nets are called %s: %s. Name one of them in full.", cutName(p.from, 80), names(candidates))
	case n.name == "":
		return p.noNet()
	case strings.TrimSpace(p.to) == "":
		return blocked("%q is no name for a net. Nothing was changed.", p.to)
	case strings.HasPrefix(n.places, "nowhere"):
		return blocked("%s is a name that KiCad made up; no label carries it. Place a label in KiCad first.", n.name)
	case plain(n.bare()) == plain(p.bareTo()):
		return already("the net is called %s", n.name)
	}
	for _, other := range p.nets() {
		if plain(other.name) == plain(p.fullTo()) || plain(other.bare()) == plain(p.bareTo()) && n.meets(other) {
			return blocked("renaming %s (%s) to %s would join it with the net %s (%s): two nets of one name are one net in KiCad. Nothing was changed.",
				n.name, cutName(n.pins, 200), p.bareTo(), other.name, cutName(other.pins, 200))
		}
	}
	return obstacle{}
}

func (p plan) noNet() obstacle {
	named := p.named()
	all := make([]string, 0, len(named))
	for _, n := range named {
		all = append(all, n.name)
	}
	text := fmt.Sprintf("there is no net %s.%s", cutName(p.from, 80), meant(p.from, all))
	if !p.seen("") { // what is not shown may not be denied, nor listed as all there is
		return blocked("%s The list of the nets is too long to be shown here; KiCad's netlist has it. Nothing was changed.", text)
	}
	return blocked("%s The nets are: %s.", text, names(named))
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

func (p plan) noPart(ref string) obstacle {
	var refs, alike []string
	for _, q := range p.parts() {
		refs = append(refs, q.ref)
		if strings.EqualFold(letters(q.ref), letters(ref)) {
			alike = append(alike, q.ref)
		}
	}
	text := fmt.Sprintf("there is no part %s.%s", cutName(ref, 80), meant(ref, refs))
	if len(refs) > maxSome && len(alike) > 0 {
		return blocked("%s The parts of these letters are: %s.", text, some(alike))
	}
	return blocked("%s The parts are: %s.", text, some(refs))
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
	return some(all)
}

// maxSome is how many names an answer lists.
const maxSome = 40

// some lists at most forty names, and long ones not whole.
func some(all []string) string {
	if len(all) == 0 {
		return "none"
	}
	more := ""
	if len(all) > maxSome {
		all, more = all[:maxSome], fmt.Sprintf(" and %d more", len(all)-maxSome)
	}
	cut := make([]string, len(all))
	for i, n := range all {
		cut[i] = cutName(n, 80)
	}
	return strings.Join(cut, ", ") + more
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
		return fmt.Sprintf("Rename %s to %s", p.spelled(p.from), p.to)
	case setField:
		return p.whatField()
	case fixDocs:
		return "Bring the documents in line with the design"
	case addConstraint, changeConstraint:
		c, _ := p.constraint()
		verb := "Add"
		if p.kind == changeConstraint {
			verb = "Change"
		}
		return fmt.Sprintf("%s constraint %s: %s", verb, c.Key, c.Text)
	case decide:
		return "Record the decision: " + p.text
	case resolve:
		return fmt.Sprintf("Resolve %s affects %s: %s", p.key, p.affects, p.why)
	}
	return ""
}

func (p plan) whatField() string {
	ref := p.spelled(p.ref)
	switch {
	case p.field == "dnp" && p.text == "yes":
		return fmt.Sprintf("Mark %s as not to be fitted (DNP)", ref)
	case p.field == "dnp":
		return fmt.Sprintf("Mark %s as to be fitted", ref)
	case p.field == "in_bom" && p.text == "no":
		return fmt.Sprintf("Exclude %s from the bill of materials", ref)
	case p.field == "in_bom":
		return fmt.Sprintf("Include %s in the bill of materials", ref)
	case p.field == "Value", p.field == "Footprint":
		return fmt.Sprintf("Set the %s of %s to %s", strings.ToLower(p.field), ref, p.text)
	}
	return fmt.Sprintf("Set the field %s of %s to %s", p.field, ref, p.text)
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
	case addConstraint, changeConstraint:
		c, _ := p.constraint()
		files := []string{p.paper(c.Doc())}
		if file := registryFile(p.system); file != "" { // where there is none yet, its folder may not be there either
			files = append(files, file)
		}
		return files
	case resolve:
		return []string{p.paper(docs.SpecName)}
	case decide:
		return []string{p.paper(docs.DecisionsName)}
	case fixDocs:
		return documentsIn(p.last("check_drift").Body())
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
