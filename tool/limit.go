// SPDX-License-Identifier: Apache-2.0

package tool

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/fiducial-dev/fiducial/llm"
)

// A Cut tells that the content of a result was too long (E-119).
type Cut struct {
	Tool          string
	Before, After int // bytes
	Limit         int
}

func (c Cut) String() string {
	return fmt.Sprintf("the output of %s was cut from %d to %d bytes; the limit is %d", c.Tool, c.Before, c.After, c.Limit)
}

const cutNote = "\n\n[truncated: %d bytes of output are left out here; ask for less, or for a part]"

// reserve is the room that the note takes at most: as if the number had 20
// digits (E-116).
var reserve = len(fmt.Sprintf(cutNote, 1)) + 19

// limitContent cuts the content of a result to limit bytes (E-112 to E-118). A
// limit of 0 cuts nothing. Text that is not UTF-8 is made so first, since no
// provider takes it.
func limitContent(content string, limit int) (string, bool) {
	if !utf8.ValidString(content) {
		content = strings.ToValidUTF8(content, "\uFFFD")
	}
	if limit <= 0 || len(content) <= limit {
		return content, false
	}
	kept := llm.CutUTF8(content, limit-reserve)
	return kept + fmt.Sprintf(cutNote, len(content)-len(kept)), true
}
