// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/fiducial-dev/fiducial/llm"
)

// DefaultOutputLimit is the most bytes that a server shows of the content of a
// result, and of its summary, unless it is told otherwise: some 25,000 tokens of
// English each, which leaves room for a few such results in a small window.
const DefaultOutputLimit = 100_000

// wholeSummary is how long a summary may be and never be cut (E-112). Beyond it a
// text that calls itself a summary, as that of an error does, is content like any.
const wholeSummary = 4096

// A Cut tells that the texts of a result were too long (E-119).
type Cut struct {
	Tool          string
	Before, After int // bytes of the texts that were cut: the content, the summary, or both
	Limit         int
}

func (c Cut) String() string {
	return fmt.Sprintf("the output of %s was cut from %d to %d bytes; the limit is %d", c.Tool, c.Before, c.After, c.Limit)
}

const cutNote = "\n\n[truncated: %d bytes of output are left out here; ask for less, or for a part]"

// reserve is the room that the note takes at most: as if the number had 20
// digits (E-116).
var reserve = len(fmt.Sprintf(cutNote, 1)) + 19

// limitResult cuts the texts of a result to limit bytes each, and tells whether it
// did. Images stay.
func limitResult(call Call, r *Result, limit int) (cut Cut, isCut bool) {
	summary, a := limitContent(call, r.Summary, summaryLimit(limit))
	content, b := limitContent(call, r.Content, limit)
	if a || b {
		cut = Cut{Tool: r.Name, Limit: limit}
	}
	if a {
		cut.Before, cut.After = len(r.Summary), len(summary)
	}
	if b {
		cut.Before, cut.After = cut.Before+len(r.Content), cut.After+len(content)
	}
	r.Summary, r.Content = summary, content
	return cut, a || b
}

func summaryLimit(limit int) int {
	if limit <= 0 {
		return 0
	}
	return max(limit, wholeSummary)
}

// wholeWords takes a word off the end that is cut in two, unless it is a very long
// one: half a secret would be known to nobody who looks for the whole of it.
func wholeWords(text string) string {
	const longest = 256
	if at := strings.LastIndexAny(text, " \t\r\n"); at >= 0 && at >= len(text)-longest {
		return text[:at+1]
	}
	return text
}

// limitContent cuts the content of a result to limit bytes (E-112 to E-118). A
// limit of 0 cuts nothing. Text that is not UTF-8 is made so first, since no
// provider takes it. What is cut is masked before.
func limitContent(call Call, content string, limit int) (string, bool) {
	if !utf8.ValidString(content) {
		content = strings.ToValidUTF8(content, "\uFFFD")
	}
	if limit <= 0 || len(content) <= limit {
		return content, false
	}
	if content = call.masked(content); len(content) <= limit {
		return content, false
	}
	kept := wholeWords(llm.CutUTF8(content, limit-reserve))
	return kept + fmt.Sprintf(cutNote, len(content)-len(kept)), true
}
