// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/llm"
)

// job is all that a request asks for, as one change.
type job struct {
	talk

	numbers map[string]bool // see plan

	all  []plan // in the order of the request
	open []plan // those of which something is left to do
	same []obstacle
	bad  obstacle // why nothing of it is carried out
}

// newJob looks at each request as the ones before it leave the design.
func newJob(t talk, system string, all []request) job {
	j := job{talk: t}
	was := map[string]string{}
	p := plan{talk: t, system: system}
	p.numbers = map[string]bool{}
	j.numbers = p.numbers
	for _, r := range all {
		if whose, ok := docs.NumberOf(r.field); ok {
			p.request = r
			p.numbers[p.spelled(r.ref)+" "+whose] = true
		}
	}
	seen := map[request]bool{}
	for _, r := range all {
		p.request, p.was = r, was
		if same := (request{kind: r.kind, from: r.from, ref: strings.ToUpper(r.ref), field: r.field, key: r.key}); r.kind <= setField {
			if seen[same] {
				j.bad = blocked("the request changes the same thing twice (%s). Nothing was changed.", r.from+r.ref)
			}
			seen[same] = true
		}
		j.all = append(j.all, p)
		if len(t.steps) == 0 {
			continue
		}
		switch o := p.impossible(); {
		case o.done:
			j.same = append(j.same, o)
			continue
		case o.text != "" && j.bad.text == "":
			j.bad = o
		}
		j.open = append(j.open, p)
		switch r.kind {
		case renameRef:
			was = maps.Clone(was)
			was[r.to] = p.spelled(r.from)
		case addConstraint:
			c, _ := p.constraint()
			p.added = append(slices.Clone(p.added), c)
		case renameNet, setField, fixDocs, changeConstraint, decide, resolve:
		}
	}
	return j
}

func (j job) has(kinds ...kind) bool {
	return slices.ContainsFunc(j.all, func(p plan) bool { return slices.Contains(kinds, p.kind) })
}

func (j job) docsOnly() bool {
	return !slices.ContainsFunc(j.all, func(p plan) bool { return p.kind != fixDocs })
}

// changesDesign reports whether anything of it is an edit of the design.
func (j job) changesDesign() bool { return j.has(renameNet, renameRef, setField) }

// look finds what the request is about.
func (j job) look() llm.Message {
	if j.docsOnly() {
		return calls("Compare the documents with the design, and repair what differs.", call("check_drift", args{}))
	}
	var all []llm.Call
	if j.has(renameNet) {
		all = append(all, call("list_nets", args{}))
	}
	if j.changesDesign() {
		all = append(all, call("list_symbols", args{}))
	}
	if file := registryFile(j.all[0].system); file != "" && j.has(addConstraint, changeConstraint) {
		all = append(all, call("read_file", args{"path": file}))
	}
	if len(all) == 0 {
		return newJob(talk{request: j.request, steps: []step{{}}}, j.all[0].system, j.requests()).proposeAs(j.intent())
	}
	return calls(j.intent(), all...)
}

func (j job) requests() (all []request) {
	for _, p := range j.all {
		all = append(all, p.request)
	}
	return all
}

// intent is the plan in a sentence. It stands in the summary of the run.
func (j job) intent() string {
	steps := []string{"find it in the schematic", "edit the design", "bring the documents in line", "run ERC and DRC"}
	if !j.changesDesign() {
		steps = []string{"read what is recorded", "record it in its places", "compare the documents"}
	}
	return "Plan for \"" + cutName(oneLine(j.request), 200) + "\": " + strings.Join(steps, ", ") + "."
}

// closer are the questions that the first look leaves: the nets that a cut list did not show, and the footprints.
func (j job) closer() (all []llm.Call) {
	for _, p := range j.all {
		switch p.kind {
		case renameNet:
			if p.seen("") {
				continue
			}
			for _, f := range p.filters() {
				if _, asked := p.answer("list_nets", args{"filter": f}); !asked {
					all = append(all, call("list_nets", args{"filter": f}))
				}
			}
		case setField:
			if q, ok := p.part(p.ref); ok && p.field == "Footprint" && q.footprint != p.text {
				if _, asked := p.answer("footprint_pads", args{"footprint": p.text}); !asked {
					all = append(all, call("footprint_pads", args{"footprint": p.text}), call("pins_of", args{"reference": q.ref}))
				}
			}
		case renameRef, fixDocs, addConstraint, changeConstraint, decide, resolve:
		}
	}
	return all
}

// propose checks the request against the design, and proposes the change.
func (j job) propose() llm.Message { return j.proposeAs("Proposing the change.") }

func (j job) proposeAs(text string) llm.Message {
	if more := j.closer(); len(more) > 0 {
		return calls("Looking closer.", more...)
	}
	switch {
	case j.bad.text != "":
		return refuse(j.bad.text)
	case len(j.open) == 0:
		return refuse(j.sameText())
	}
	var files, tasks, patterns []string
	for _, p := range j.open {
		tasks = append(tasks, p.what())
		for _, f := range p.files() {
			if !slices.Contains(files, f) {
				files = append(files, f)
			}
		}
		if s := p.searchPattern(); s != "" && !slices.Contains(patterns, s) {
			patterns = append(patterns, s)
		}
	}
	all := []llm.Call{
		call("propose_change", args{
			"why": "Requested: " + oneLine(j.request), "what": j.what(),
			"tasks": append(tasks, "bring the documents in line", "run the checks"), "files": files,
		}),
		call("validate_change", args{}),
	}
	if len(patterns) > 0 {
		all = append(all, call("search", args{"pattern": strings.Join(patterns, "|"), "glob": "*.md"}))
	}
	return calls(text, all...)
}

func (j job) sameText() string {
	var all []string
	for _, o := range j.same {
		all = append(all, o.text)
	}
	return strings.Join(all, "\n")
}

// what tells all of the change.
func (j job) what() string {
	var all []string
	for _, p := range j.open {
		all = append(all, p.what())
	}
	return strings.Join(all, ". ")
}

// change makes the edits, and reads the documents that may follow. The calls run in their order.
func (j job) change() llm.Message {
	var all []llm.Call
	for _, p := range j.open {
		switch p.kind {
		case renameNet:
			all = append(all, call("rename_net", args{"from": p.net().name, "to": p.bareTo()}))
		case renameRef:
			all = append(all, call("rename_reference", args{"from": p.spelled(p.from), "to": p.to}))
		case setField:
			all = append(all, call("edit_symbol", args{"reference": p.spelled(p.ref), "field": p.field, "text": p.text}))
		case addConstraint, changeConstraint, decide, resolve:
			for _, c := range p.record() {
				all = append(all, call(c.tool, c.args))
			}
		case fixDocs: // follows
		}
	}
	for _, name := range j.foundDocs() {
		all = append(all, call("read_file", args{"path": name}))
	}
	return calls("Making the change.", all...)
}

// follow edits the documents, says of what was looked at that it was, and runs the checks.
func (j job) follow() llm.Message {
	var all []llm.Call
	for _, e := range j.documentEdits() {
		all = append(all, call("edit_file", args{"path": e.path, "old": e.old, "new": e.new}))
	}
	if j.has(fixDocs) {
		all = append(all, call("fix_docs", args{}))
	}
	if done := j.looked(); len(done) > 0 {
		all = append(all, call("resolve_affected", args{"entries": done}))
	}
	text := "Bringing the documents in line and checking."
	if len(all) == 0 {
		text = "Checking."
	}
	if all = append(all, j.checks()...); len(all) == 0 {
		return j.done()
	}
	return calls(text, all...)
}

// looked is what a new constraint affects and its limits, which all hold, have answered. What no machine checks is
// for people to look at.
func (j job) looked() (entries []args) {
	for _, s := range j.steps {
		for i, c := range s.calls {
			if c.Name != "record_constraint" || i >= len(s.results) {
				continue
			}
			lines, pass := held(s.results[i].Body())
			_, list, _ := strings.Cut(s.results[i].Body(), "each to be resolved by resolve_affected: ")
			list, _, _ = strings.Cut(list, "\n")
			for v := range strings.SplitSeq(list, "; ") {
				if key, item, ok := strings.Cut(v, " affects "); ok && pass {
					entries = append(entries, args{"key": key, "item": item, "how": strings.Join(lines, "; ")})
				}
			}
		}
	}
	return entries
}

func (j job) check(text string) llm.Message {
	all := j.checks()
	if len(all) == 0 {
		return j.done()
	}
	return calls(text, all...)
}

func (j job) checks() (all []llm.Call) {
	if j.changesDesign() {
		all = append(all, call("run_erc", args{}), call("run_drc", args{}))
		if registryFile(j.all[0].system) != "" {
			all = append(all, call("check_constraints", args{}))
		}
	}
	if j.changesDesign() || j.has(fixDocs, addConstraint, changeConstraint) {
		all = append(all, call("check_drift", args{}))
	}
	return all
}

// afterChecks ends the run by what the checks say.
func (j job) afterChecks() llm.Message {
	if m := j.broken(); m != nil {
		return *m
	}
	if m := j.afterDrift(); m != nil {
		return *m
	}
	return j.done()
}

// broken is the refusal of a change that a check finds fault with, nil when none does.
func (j job) broken() *llm.Message {
	for _, name := range []string{"run_erc", "run_drc", "check_constraints"} {
		body := j.last(name).Body()
		if !strings.Contains(firstLine(body), " FAIL") {
			continue
		}
		if name == "check_constraints" { // what it lists besides was so before
			body = firstLine(body)
		}
		m := refuse(fmt.Sprintf("%s would break the design: %s", j.what(), body))
		if strings.Contains(body, "footprint_symbol_mismatch") && slices.ContainsFunc(j.open, func(p plan) bool { return p.field == "Footprint" }) {
			m = refuse(fmt.Sprintf("%s would break the design: the board places another footprint, and exchanging it moves pads away from tracks, which is work for KiCad: "+
				"set it there in the schematic, then Tools, Update PCB from Schematic. DRC says footprint_symbol_mismatch.", j.what()))
		}
		return &m
	}
	return nil
}

// done ends the run.
func (j job) done() llm.Message {
	texts := []string{j.what() + "."}
	for _, name := range []string{"run_erc", "run_drc", "check_constraints", "check_drift"} {
		line := firstLine(j.last(name).Body())
		if strings.Contains(line, " PASS") && (name != "check_drift" || strings.Contains(line, "claims compared")) || strings.Contains(line, " NOT ") {
			texts = append(texts, verdict(line)+".")
		}
	}
	if j.count("fix_docs") > 0 {
		texts = append(texts, strings.TrimSuffix(firstLine(j.last("fix_docs").Body()), " Call check_drift."))
	}
	summary := append([]string{strings.Join(texts, " ")}, j.doubts()...)
	for _, res := range append(j.talk.all("record_constraint"), j.talk.all("record_decision")...) {
		summary = append(summary, oneLine(firstLine(res.Body())))
		lines, _ := held(res.Body())
		if summary = append(summary, lines...); res.Name == "record_constraint" && len(lines) == 0 {
			summary = append(summary, "No machine checks it: it is for people to check.")
		}
		if _, deferred, ok := strings.Cut(res.Body(), "\nDeferred"); ok {
			summary = append(summary, "Deferred"+firstLine(deferred))
		}
	}
	if len(j.same) > 0 {
		summary = append(summary, j.sameText())
	}
	return finish("done", strings.Join(append(summary, j.leftAlone()...), "\n"))
}

// doubts tells of the part numbers that edit_symbol marked, and that the request does not set.
func (j job) doubts() (lines []string) {
	for _, s := range j.steps {
		for i, c := range s.calls {
			if c.Name != "edit_symbol" || i >= len(s.results) {
				continue
			}
			for line := range strings.Lines(s.results[i].Body()) {
				m := doubtPattern.FindStringSubmatch(line)
				if m == nil {
					continue
				}
				if whose, _ := docs.NumberOf(m[1]); !j.numbers[m[2]+" "+whose] {
					lines = append(lines, fmt.Sprintf("The part number of %s (%s) is still that of %s, marked UNVERIFIED: set it when the right one is known.", m[2], m[1], m[3]))
				}
			}
		}
	}
	return lines
}

var doubtPattern = regexp.MustCompile(`^UNVERIFIED: (.+) of (\S+), ".*", is still that of (.+), so it now says `)

// afterFinish is reached when finish was not accepted, or was withdrawn since: after
// a crash every check is due again.
func (j job) afterFinish() llm.Message {
	res := j.last("finish")
	if left := revisits(res.Body()); len(left) > 0 {
		return refuse(fmt.Sprintf("somebody has to look again at what constraints affect, which the built-in planner cannot: %s. "+
			"Say in the request what came of it, for instance: ...; resolve %s: looked at, fits", strings.Join(left, "; "), left[0]))
	}
	if all := j.checks(); j.count("finish") < 3 && len(all) > 0 {
		return calls("Checking once more.", all...)
	}
	return refuse("The run could not be finished: " + res.Body())
}

// revisits are the obligations to look at something again that kept the run from finishing.
func revisits(answer string) (all []string) {
	for line := range strings.Lines(answer) {
		if _, what, ok := strings.Cut(strings.TrimSpace(line), "open obligation: affects-revisit "); ok {
			all = append(all, what)
		}
	}
	return all
}

// rewrite is a document with all of the change carried out.
func (j job) rewrite(text string) string {
	for _, p := range j.open {
		text = p.rewrite(text)
	}
	return text
}
