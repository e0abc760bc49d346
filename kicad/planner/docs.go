// SPDX-License-Identifier: Apache-2.0

package planner

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/llm"
)

// fixDocs carries out "check and fix docs": compare, repair, compare again.
func (p plan) fixDocs() llm.Message {
	if bad, failed := p.failure(); failed {
		return refuse(fmt.Sprintf("%s did not work: %s", bad.Name, bad.Body()))
	}
	drift := p.last("check_drift").Body()
	switch {
	case p.called("finish"):
		if p.count("finish") < 3 {
			return calls("Comparing once more.", call("check_drift", args{}))
		}
		return refuse("The run could not be finished: " + p.last("finish").Body())
	case p.called("propose_change"):
		return calls("Repairing the documents.", call("fix_docs", args{}), call("check_drift", args{}))
	case p.count("fix_docs") > 0:
		return p.docsFixed(drift)
	case !differs(drift):
		return finish("done", "Nothing had to be repaired. "+verdict(firstLine(drift))+".")
	}
	files := documentsIn(drift)
	if len(files) == 0 {
		return refuse("No table of a document can be repaired: " + drift)
	}
	return calls("Proposing the repair.",
		call("propose_change", args{
			"why": "Requested: " + oneLine(p.talk.request), "what": "Bring the documents in line with the design",
			"tasks": []string{"repair the tables by the design", "compare again"}, "files": files,
		}),
		call("validate_change", args{}))
}

func (p plan) docsFixed(drift string) llm.Message {
	fixed := p.last("fix_docs").Body()
	switch {
	case strings.Contains(firstLine(fixed), "nothing was changed"):
		return refuse("What differs needs a person: " + fixed)
	case strings.Contains(firstLine(drift), " FAIL"):
		return refuse("The repair made new differences: " + drift)
	}
	summary := "Brought the documents in line with the design. " + strings.TrimSuffix(firstLine(fixed), " Call check_drift.") + " " + verdict(firstLine(drift)) + "."
	if _, left, ok := strings.Cut(fixed, "\n"); ok {
		summary += "\n" + left
	}
	return finish("done", summary)
}

// differs reports whether check_drift tells of differences, new or old.
func differs(drift string) bool {
	return strings.Contains(firstLine(drift), " FAIL") || strings.Contains(firstLine(drift), "NOT COMPARABLE") ||
		strings.Contains(drift, "were there before the run")
}

var differencePattern = regexp.MustCompile(`(?m)^- (.+?\.md)(?::\d+)?: `)

// documentsIn are the documents that an answer of check_drift names, up to what it
// notes by the way.
func documentsIn(drift string) (names []string) {
	drift, _, _ = strings.Cut(drift, "\nWorth a look:")
	for _, m := range differencePattern.FindAllStringSubmatch(drift, -1) {
		if !slices.Contains(names, m[1]) {
			names = append(names, m[1])
		}
	}
	return names
}

// newIn is the part of an answer of check_drift that tells what is new.
func newIn(drift string) string {
	_, drift, _ = strings.Cut(drift, "New differences")
	lines := strings.Split(drift, "\n")
	end := 1
	for end < len(lines) && strings.HasPrefix(lines[end], "- ") {
		end++
	}
	return strings.Join(lines[1:min(end, len(lines))], "\n")
}

// afterDrift is what to do about differences that the change made, nil when there are
// none: the documents that have them are repaired by the design, once.
func (j job) afterDrift() *llm.Message {
	drift := j.last("check_drift").Body()
	if !strings.Contains(firstLine(drift), " FAIL") {
		return nil
	}
	fresh := newIn(drift)
	m := refuse(fmt.Sprintf("%s would leave the documents behind, and they cannot be repaired here:\n%s", j.what(), fresh))
	if names := documentsIn(fresh); len(names) > 0 && j.count("fix_docs") == 0 {
		m = calls("Repairing the documents by the design.", call("fix_docs", args{"documents": names}), call("check_drift", args{}))
	}
	return &m
}
