// SPDX-License-Identifier: Apache-2.0

package toolgen

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

const prefix = "//fiducial:"

// A directive is what one comment line asks for. Columns count bytes from the
// line's first slash, from 0.
//
//sumtype:decl
type directive interface{ isDirective() }

type (
	toolsDirective struct{}

	toolDirective struct {
		name                            string
		named                           bool // else the name is the method's, in snake case
		readOnly, idempotent, exclusive bool
	}

	argDirective struct {
		name, text string
		nameCol    int
	}
)

func (toolsDirective) isDirective() {}
func (toolDirective) isDirective()  {}
func (argDirective) isDirective()   {}

// A directiveError says what is wrong with a directive, and where.
type directiveError struct {
	col     int
	message string
}

func (e *directiveError) Error() string { return e.message }

func mistake(col int, format string, args ...any) *directiveError {
	return &directiveError{col: col, message: fmt.Sprintf(format, args...)}
}

// toolName is what the providers take as a tool's name: OpenAI and Anthropic
// allow these characters and up to 64 of them, Gemini the same with a letter or
// an underscore first.
var toolName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`)

const toolNameRule = "a tool's name is made of 1 to 64 ASCII letters, digits, _ and -, and begins with a letter or _"

// isDirective reports whether a comment is meant for us.
func isDirective(comment string) bool { return strings.HasPrefix(comment, prefix) }

// parseDirective reads a comment for which isDirective holds. A directive that
// comes with mistakes is what could be read of it, or nil.
func parseDirective(comment string) (directive, []*directiveError) {
	words := split(comment)
	switch verb := strings.TrimPrefix(words[0].text, prefix); verb {
	case "tools":
		if len(words) > 1 {
			return nil, one(mistake(words[1].col, "//fiducial:tools takes no arguments"))
		}
		return toolsDirective{}, nil
	case "tool":
		return parseTool(words[1:])
	case "arg":
		if len(words) < 2 {
			return nil, one(mistake(len(words[0].text), "//fiducial:arg needs the name of a parameter and a text"))
		}
		name := words[1]
		text := strings.TrimFunc(comment[name.col+len(name.text):], unicode.IsSpace)
		if text == "" {
			return nil, one(mistake(name.col+len(name.text), "//fiducial:arg %s has no text", show(name.text)))
		}
		return argDirective{name: name.text, text: text, nameCol: name.col}, nil
	default:
		return nil, one(mistake(len("//"), "unknown directive fiducial:%s; there are fiducial:tools, fiducial:tool and fiducial:arg", show(verb)))
	}
}

func one(e *directiveError) []*directiveError { return []*directiveError{e} }

// parseTool reads options, and goes on behind those that are wrong.
func parseTool(words []word) (directive, []*directiveError) {
	var d toolDirective
	var seen []string
	var wrong []*directiveError
	for _, w := range words {
		key, value, hasValue := strings.Cut(w.text, "=")
		switch {
		case slices.Contains(seen, key):
			wrong = append(wrong, mistake(w.col, "%s stands twice", show(key)))
		case key == "name":
			d.name, d.named = value, true
			if !toolName.MatchString(value) {
				wrong = append(wrong, mistake(w.col, "bad name %s: %s", quote(value), toolNameRule))
			}
		case hasValue || !d.set(key):
			wrong = append(wrong, mistake(w.col, "unknown option %s; there are name=NAME, readonly, idempotent and exclusive", show(w.text)))
		}
		seen = append(seen, key)
	}
	return d, wrong
}

// set sets a trait, and reports whether there is one of this name.
func (d *toolDirective) set(name string) bool {
	switch name {
	case "readonly":
		d.readOnly = true
	case "idempotent":
		d.idempotent = true
	case "exclusive":
		d.exclusive = true
	default:
		return false
	}
	return true
}

type word struct {
	text string
	col  int
}

// split cuts a line at white space. It gives at least one word.
func split(line string) []word {
	var words []word
	start := -1
	for i, r := range line {
		switch space := unicode.IsSpace(r); {
		case space && start >= 0:
			words = append(words, word{line[start:i], start})
			start = -1
		case !space && start < 0:
			start = i
		}
	}
	if start >= 0 || len(words) == 0 {
		start = max(start, 0)
		words = append(words, word{line[start:], start})
	}
	return words
}

// snake is the name of a tool for the name of a method: ReadFile gives read_file,
// HTTPServer http_server, ReadURL2 read_url2.
func snake(name string) string {
	var b strings.Builder
	runes := []rune(name)
	var last rune // 0 at the start and behind an underscore
	for i, r := range runes {
		if r == '_' {
			if b.Len() == 0 || last != 0 {
				b.WriteRune('_')
			}
			last = 0
			continue
		}
		if unicode.IsUpper(r) && last != 0 {
			startsWord := i+1 < len(runes) && unicode.IsLower(runes[i+1])
			if !unicode.IsUpper(last) || startsWord {
				b.WriteRune('_')
			}
		}
		b.WriteRune(unicode.ToLower(r))
		last = r
	}
	return b.String()
}
