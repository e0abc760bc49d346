// SPDX-License-Identifier: Apache-2.0

package sch

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path"
	"regexp"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// ProjectNets follows a rename into the project file (.kicad_pro), which puts nets into net classes and colours them
// by name: netclass_assignments, netclass_patterns and net_colors of net_settings. Without that a renamed net silently
// falls back to the default class, with its track widths and clearances. names maps KiCad's old names to the new ones,
// best as two netlists tell them. Patterns that cover more than a name are left alone; those that match an
// old name and not the new one are returned as lost.
func ProjectNets(file string, src []byte, names map[string]string) (edits []sexpr.Edit, lost []string, err error) {
	w := jsonWalk{src: src, dec: json.NewDecoder(bytes.NewReader(src))}
	for {
		tok, err := w.next()
		if errors.Is(err, io.EOF) && len(w.stack) == 0 {
			return edits, lost, nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("sch: the project file %s cannot be read: %w", file, err)
		}
		text, isString := tok.(string)
		if !isString || !w.names() {
			continue
		}
		if now, ok := names[text]; ok {
			edits = append(edits, sexpr.Edit{File: file, Start: w.start, End: w.end, Old: string(src[w.start:w.end]), New: quoteJSON(now)})
			continue
		}
		for was, now := range names {
			if w.stack[1].key == "netclass_patterns" && matches(text, was) && !matches(text, now) {
				lost = append(lost, text)
				break
			}
		}
	}
}

// quoteJSON writes a string as KiCad does, with <, > and & as they are.
func quoteJSON(s string) string {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(s) // a string can always be encoded
	return strings.TrimSuffix(b.String(), "\n")
}

// matches reports whether a pattern of a net class covers a name. KiCad takes it for a pattern with * and ?, and for a
// regular expression as well; either may fit the whole name (measured on 9.0.8).
func matches(pattern, name string) bool {
	if re, err := regexp.Compile("^(?:" + pattern + ")$"); err == nil && re.MatchString(name) {
		return true
	}
	// path.Match stops at slashes, which are nothing special here
	flat := strings.NewReplacer("/", "\x01", "[", `\[`, `\`, `\\`)
	ok, err := path.Match(flat.Replace(pattern), strings.ReplaceAll(name, "/", "\x01"))
	return ok && err == nil
}

// A jsonWalk reads tokens and knows where each stands.
type jsonWalk struct {
	src        []byte
	dec        *json.Decoder
	start, end int // of the last token
	stack      []level
}

type level struct {
	object bool
	key    string // the current key of an object
	isKey  bool   // whether the last token was that key
}

func (w *jsonWalk) next() (json.Token, error) {
	before := int(w.dec.InputOffset())
	tok, err := w.dec.Token()
	if err != nil {
		return nil, err
	}
	w.end = int(w.dec.InputOffset())
	w.start = before + len(w.src[before:w.end]) - len(bytes.TrimLeft(w.src[before:w.end], " \t\r\n,:"))
	switch tok {
	case json.Delim('{'), json.Delim('['):
		if len(w.stack) > 0 {
			w.top().isKey = false
		}
		w.stack = append(w.stack, level{object: tok == json.Delim('{')})
		return tok, nil
	case json.Delim('}'), json.Delim(']'):
		w.stack = w.stack[:len(w.stack)-1]
		return tok, nil
	}
	if len(w.stack) > 0 {
		top := w.top()
		key, isString := tok.(string)
		if top.isKey = top.object && !top.isKey && isString; top.isKey {
			top.key = key
		}
	}
	return tok, nil
}

func (w *jsonWalk) top() *level { return &w.stack[len(w.stack)-1] }

// names reports whether the last token is the name of a net, or a pattern of names.
func (w *jsonWalk) names() bool {
	if len(w.stack) < 3 || w.stack[0].key != "net_settings" {
		return false
	}
	top := w.top()
	switch w.stack[1].key {
	case "netclass_assignments", "net_colors":
		return len(w.stack) == 3 && top.isKey
	case "netclass_patterns":
		return len(w.stack) == 4 && !top.isKey && top.key == "pattern"
	}
	return false
}
