// SPDX-License-Identifier: Apache-2.0

package toolgen

import (
	"cmp"
	"slices"
	"strings"
	"unicode"
)

// A comment that looks like a directive and is none would leave a method out in silence, so
// it is a mistake in a doc comment: other letters, spaces, a block comment, a word misspelled.
// Prose that begins with the same words is not.

// isSpaced reports whether a comment is a whole directive but for a space behind
// the slashes, so that Go takes it for text.
func isSpaced(comment string) bool {
	rest, ok := strings.CutPrefix(comment, "//")
	if !ok || rest == "" || (rest[0] != ' ' && rest[0] != '\t') {
		return false
	}
	rest = "//" + strings.TrimLeft(rest, " \t")
	if !isDirective(rest) {
		return false
	}
	_, wrong := parseDirective(rest)
	return len(wrong) == 0
}

// lookalikes are the lines of a comment that look like directives, and what each is
// meant to be. The comment is none for which isDirective holds.
func lookalikes(comment string) []lookalike {
	text, isLine := strings.CutPrefix(comment, "//")
	if !isLine {
		text = strings.TrimSuffix(strings.TrimPrefix(comment, "/*"), "*/")
	}
	var list []lookalike
	first := true
	for line := range strings.Lines(text) {
		bare := strings.TrimSpace(line)
		if !isLine {
			bare = strings.TrimSpace(strings.TrimLeft(bare, "*"))
		}
		direct := first && bare != "" && strings.HasPrefix(line, bare[:1])
		if meant := meantBy(bare, direct); meant != "" {
			if !strings.Contains(text, "\n") {
				bare = comment
			}
			list = append(list, lookalike{line: bare, meant: meant})
		}
		first = false
	}
	return list
}

// A lookalike is a line, with the comment's marks when it is the only one.
type lookalike struct{ line, meant string }

// meantBy is the directive that a line looks like, or nothing. A line that stands direct
// behind the slashes need not go on as a directive does.
func meantBy(line string, direct bool) string {
	end := strings.IndexFunc(line, isColon)
	if end < 0 || end > 4*len("fiducial") {
		return ""
	}
	word := fold(line[:end])
	if off := distance(word, "fiducial"); off > 2 || !isWord(word) {
		return ""
	}
	_, behind, _ := strings.Cut(line[end:], firstRune(line[end:]))
	words := strings.Fields(behind)
	if len(words) == 0 {
		return ""
	}
	verb := nearest(fold(words[0]))
	direct = direct && !startsWithSpace(behind)
	switch {
	case verb == "" && direct && word == "fiducial":
		return "a directive"
	case verb == "" || !direct && !goesOn(verb, words[1:]):
		return ""
	}
	return prefix + verb
}

func firstRune(s string) string {
	for _, r := range s {
		return string(r)
	}
	return ""
}

func startsWithSpace(s string) bool { return s != strings.TrimLeftFunc(s, unicode.IsSpace) }

func isWord(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
}

// nearest is the directive whose name a word is, but for a letter or two.
func nearest(word string) string {
	if !isWord(word) {
		return ""
	}
	verbs := []string{"tool", "tools", "arg"}
	best := slices.MinFunc(verbs, func(a, b string) int { return cmp.Compare(distance(word, a), distance(word, b)) })
	if off := distance(word, best); off > 2 || off > 1 && len(word) < 5 {
		return ""
	}
	return best
}

// goesOn reports whether words are what follows a directive, rather than a sentence.
func goesOn(verb string, words []string) bool {
	switch {
	case verb == "arg":
		return len(words) > 0
	case len(words) == 0:
		return true
	case verb == "tools":
		return false
	}
	option, _, hasValue := strings.Cut(fold(words[0]), "=")
	return hasValue || slices.ContainsFunc([]string{"readonly", "idempotent", "exclusive"}, func(o string) bool { return distance(option, o) <= 2 })
}

func isColon(r rune) bool {
	return strings.ContainsRune(":;\uff1a\u2236\ua789\ufe13\ufe55\u02d0\u05c3\u0589", r)
}

// alike are letters that look like one of ours, after which it stands.
var alike = strings.NewReplacer(
	"\u0430", "a", "\u03b1", "a", "\u0441", "c", "\u03f2", "c", "\u0501", "d", "\u0435", "e", "\u0261", "g", "\u0456", "i", "\u03b9", "i", "\u0131", "i",
	"\u04cf", "l", "\u043e", "o", "\u03bf", "o", "\u0585", "o", "\u0440", "p", "\u0433", "r", "\u0455", "s", "\u0442", "t", "\u03c4", "t", "\u03c5", "u", "\u057d", "u", "\u0443", "y",
)

// fold writes a text in lower-case ASCII as far as its letters look so, without spaces and
// what is not seen.
func fold(s string) string {
	return alike.Replace(strings.Map(func(r rune) rune {
		switch {
		case r >= 0xff01 && r <= 0xff5e: // full width
			r -= 0xfee0
		case unicode.IsSpace(r), unicode.Is(unicode.Cf, r):
			return -1
		}
		return unicode.ToLower(r)
	}, s))
}

// distance is how many letters must be put in, taken out or changed to make b of a. Of
// long texts it is their difference in length at least, and not computed.
func distance(a, b string) int {
	x, y := []rune(a), []rune(b)
	if d := len(x) - len(y); max(d, -d) > 2 {
		return max(d, -d)
	}
	row := make([]int, len(y)+1)
	for j := range row {
		row[j] = j
	}
	for i := range x {
		diagonal := row[0]
		row[0] = i + 1
		for j := range y {
			changed := diagonal
			if x[i] != y[j] {
				changed++
			}
			diagonal = row[j+1]
			row[j+1] = min(changed, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(y)]
}
