// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/sexpr"
	"github.com/fiducial-dev/fiducial/tool"
)

type editInput struct {
	Path       string  `json:"path" jsonschema:"file relative to the repository"`
	Old        string  `json:"old" jsonschema:"the exact text that stands there now, with white space and line ends; it must occur once, unless replace_all"`
	New        *string `json:"new" jsonschema:"the text to put in its place, taken literally; empty deletes"`
	ReplaceAll bool    `json:"replace_all,omitempty" jsonschema:"replace every occurrence"`
}

// kicad-cli 9.0.8 refuses a line of 1,000,000 bytes (measured). No edit makes one of
// more than maxLineBytes.
const (
	maxLineBytes = 900_000
	noLineBytes  = 1_000_000
)

// editFile replaces an exact text (B-94 to B-99).
func (b *Bench) editFile(ctx context.Context, in editInput) (string, error) {
	name, err := clean(in.Path)
	if err != nil {
		return "", badPath(err)
	}
	if err := plainText("old", in.Old); err != nil {
		return "", err
	}
	switch {
	case in.New == nil:
		return "", tool.Errorf(tool.InvalidArgument, "new is missing; give the replacement, an empty text to delete")
	case in.Old == "":
		return "", tool.Errorf(tool.InvalidArgument, "old is empty; give the exact text to replace, or make a new file with %s", toolWrite)
	}
	if err := plainText("new", *in.New); err != nil {
		return "", err
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	e, err := b.newEdit(ctx, name)
	if err != nil {
		return "", err
	}
	n := bytes.Count(e.old, []byte(in.Old))
	switch {
	case n == 0:
		return "", tool.Errorf(tool.Failed, "the text does not occur in %s; nothing was changed. Read the file again and give it exactly%s", name, lineEndHint(e.old, in.Old))
	case n > 1 && !in.ReplaceAll:
		return "", tool.Errorf(tool.Failed, "the text occurs %d times in %s, on lines %v; nothing was changed. Give more of what stands around it, or set replace_all", n, name, linesOf(e.old, in.Old))
	}
	e.new = bytes.ReplaceAll(e.old, []byte(in.Old), []byte(*in.New))
	notes, err := b.apply(ctx, change{edits: []*edit{e}})
	if err != nil {
		return "", err
	}
	head := fmt.Sprintf("Edited %s: %d replaced.", name, n)
	if _, unmarked := b.stale(); kindOf(name) == sheet && len(unmarked) > 0 {
		notes = strings.Trim(notes+"\n"+strings.Join(unmarked, "\n"), "\n")
		head += " See to the part numbers below: set them with " + toolSetField + ", or append (UNVERIFIED), so that no order takes them."
	}
	return answer(head, notes), nil
}

func answer(head, notes string) string {
	if notes == "" {
		return head
	}
	return head + "\n" + notes
}

// lineEndHint helps with the one difference that cannot be seen.
func lineEndHint(data []byte, old string) string {
	if bytes.Contains(data, []byte("\r\n")) && !bytes.Contains([]byte(old), []byte("\r\n")) && bytes.ContainsRune([]byte(old), '\n') {
		return `. The file has Windows line ends: write \r\n at the end of each line`
	}
	return ""
}

// linesOf are the lines on which text begins, the first ten.
func linesOf(data []byte, text string) []int {
	var lines []int
	for at := 0; len(lines) < 10; {
		i := bytes.Index(data[at:], []byte(text))
		if i < 0 {
			break
		}
		at += i
		lines = append(lines, 1+bytes.Count(data[:at], []byte("\n")))
		at += len(text)
	}
	return lines
}

// longLine refuses a sheet or board with a line of more than so many bytes.
func longLine(name string, data []byte, most int) error {
	if k := kindOf(name); k != sheet && k != board {
		return nil
	}
	n := 0
	for line := range bytes.Lines(data) {
		if n++; len(line) > most {
			return tool.Errorf(tool.Failed, "line %d of %s has %d bytes, and KiCad does not read lines of 1,000,000: nothing was changed. Save the file once in KiCad, which writes it in lines, or break the line with %s between two brackets",
				n, name, len(line), toolEdit)
		}
	}
	return nil
}

// edits turns byte-range edits of several files into whole files.
func (b *Bench) edits(ctx context.Context, ranges []sexpr.Edit) ([]*edit, error) {
	byFile := sexpr.ByFile(ranges)
	var out []*edit
	for _, name := range slices.Sorted(maps.Keys(byFile)) {
		e, err := b.newEdit(ctx, path.Clean(name))
		if err != nil {
			return nil, err
		}
		if e.new, err = sexpr.Apply(e.old, byFile[name]); err != nil {
			return nil, tool.Errorf(tool.Failed, "%s: %w", name, err)
		}
		out = append(out, e)
	}
	return out, nil
}

// longest is the length of the longest line.
func longest(data []byte) int {
	n := 0
	for line := range bytes.Lines(data) {
		n = max(n, len(line))
	}
	return n
}
