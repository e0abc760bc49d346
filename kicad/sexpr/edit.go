// SPDX-License-Identifier: Apache-2.0

package sexpr

import (
	"cmp"
	"fmt"
	"slices"
	"unicode/utf8"
)

// An Edit replaces the bytes Start up to End of a file by New. Start equal to End inserts.
type Edit struct {
	File       string // slash-separated, as the reader of the file named it
	Start, End int
	Old        string // what stands there now; Apply refuses when it does not
	New        string
}

// Replace makes the edit that puts text in the place of a node.
func Replace(file string, n Node, text string) Edit {
	return Edit{File: file, Start: n.Start(), End: n.End(), Old: string(n.Raw()), New: text}
}

// SetText makes the edit that gives a word or string node another text. The new one is always quoted. It reports
// false when the node holds that text already.
func SetText(file string, n Node, text string) (Edit, bool) {
	if n.Text() == text && utf8.Valid(n.Raw()) {
		return Edit{}, false
	}
	return Replace(file, n, Quote(text)), true
}

// An EditError says why a list of edits cannot be applied to a text. Nothing was changed.
type EditError struct {
	Edit   Edit
	Reason string
}

func (e *EditError) Error() string {
	return fmt.Sprintf("sexpr: edit of %s at byte %d: %s", e.Edit.File, e.Edit.Start, e.Reason)
}

// Apply returns a new text with all the edits made. They may come in any order but must not overlap, must name
// places inside src, and each must find its Old text there; else the result is nil and an [*EditError]. It looks at
// no file names: give it the edits of one file, for instance by [ByFile].
func Apply(src []byte, edits []Edit) ([]byte, error) {
	sorted := slices.Clone(edits)
	slices.SortStableFunc(sorted, func(a, b Edit) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.End, b.End))
	})
	size, pos := len(src), 0
	for _, e := range sorted {
		switch {
		case e.Start < 0 || e.End < e.Start || e.End > len(src):
			return nil, &EditError{e, fmt.Sprintf("the range up to %d is outside the text of %d bytes", e.End, len(src))}
		case e.Start < pos:
			return nil, &EditError{e, "it overlaps another edit"}
		case string(src[e.Start:e.End]) != e.Old:
			return nil, &EditError{e, "the text there is not what was read; read the file again"}
		}
		pos = e.End
		size += len(e.New) - len(e.Old)
	}
	out := make([]byte, 0, size)
	pos = 0
	for _, e := range sorted {
		out = append(out, src[pos:e.Start]...)
		out = append(out, e.New...)
		pos = e.End
	}
	return append(out, src[pos:]...), nil
}

// ByFile sorts edits by the file they are for, keeping their order.
func ByFile(edits []Edit) map[string][]Edit {
	files := map[string][]Edit{}
	for _, e := range edits {
		files[e.File] = append(files[e.File], e)
	}
	return files
}
