// SPDX-License-Identifier: Apache-2.0

// Package constraint keeps the limits that a board must hold, with where they come from and what they affect, and
// checks those of them that a machine can check.
//
// A constraint stands in two places: in the registry, constraints.json in the docs folder, for machines, and in a
// document, as a rule in the table of constraints of SPEC.md, for people. One that only one of them names is drift
// ([Unnamed]). Nothing here ever resolves a violation: [Check] says which limits hold, with the figures.
package constraint

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fiducial-dev/fiducial/kicad/docs"
	"github.com/fiducial-dev/fiducial/kicad/project"
)

// Version is the version of the registry's form that this package writes.
const Version = 1

// A Registry holds the constraints of a project, in the order in which they were recorded.
type Registry struct {
	Version     int          `json:"version"`
	Constraints []Constraint `json:"constraints"`
}

// A Constraint is something that the board must hold.
type Constraint struct {
	Key  string `json:"key"`  // names it everywhere, for instance sleep-current
	Text string `json:"text"` // what must hold, in words
	// Limits are what a machine can check of it; none makes it one for people alone.
	Limits []Limit `json:"limits,omitempty"`
	Source string  `json:"source"` // where it comes from: a datasheet, a standard, a decision
	// Document is the file of the docs folder that names it as well; empty means SPEC.md.
	Document string `json:"document,omitempty"`
	// Affects are what has to be looked at again because of it: references, or words such as "layout of the antenna".
	Affects []string `json:"affects,omitempty"`
	// Deferred are those of Affects that wait for an artifact that is not there yet (B-78).
	Deferred []string `json:"deferred,omitempty"`
}

// An ErrorKind is what a caller may branch on.
type ErrorKind uint8

// The kinds of errors.
const (
	Malformed ErrorKind = iota + 1 // the registry cannot be read
	BadKey                         // no name that can stand in a document
	BadLimit                       // a limit that says nothing, or what nobody can check
)

// An Error says what is wrong and what to do. Nothing was changed.
type Error struct {
	Kind   ErrorKind
	Detail string
	Err    error // the cause, may be nil
}

func (e *Error) Error() string {
	if e.Err != nil {
		return "constraint: " + e.Detail + ": " + e.Err.Error()
	}
	return "constraint: " + e.Detail
}

func (e *Error) Unwrap() error { return e.Err }

// MaxSize is how many bytes a registry may have.
const MaxSize = 16 << 20

// Read reads a registry. Fields that are not known are an error, and so is one that stands twice: writing the registry
// again would lose them. Line ends and a byte order mark do not matter.
func Read(name string, src []byte) (*Registry, error) {
	bad := func(err error, format string, a ...any) (*Registry, error) {
		return nil, &Error{Malformed, name + " " + fmt.Sprintf(format, a...), err}
	}
	src = bytes.TrimPrefix(src, []byte("\xef\xbb\xbf"))
	switch {
	case len(src) > MaxSize:
		return bad(nil, "has %d bytes, and at most %d are read", len(src), MaxSize)
	case !utf8.Valid(src):
		return bad(nil, "is no UTF-8 text; save it as UTF-8")
	case len(bytes.TrimSpace(src)) == 0:
		return bad(nil, `is empty; remove it, or write {"version": %d, "constraints": []}`, Version)
	}
	var version struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(src, &version); err == nil && version.Version != Version { // whatever else is new in it
		return bad(nil, "has version %d, and this program knows version %d%s", version.Version, Version, advice(version.Version))
	}
	dec := json.NewDecoder(bytes.NewReader(src))
	dec.DisallowUnknownFields()
	var r Registry
	if err := dec.Decode(&r); err != nil {
		return bad(err, "cannot be read; mend it by hand")
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return bad(nil, "holds more than one object; mend it by hand")
	}
	if twice := repeated(src); twice != "" {
		return bad(nil, "has the field %q twice in one object; remove one", twice)
	}
	if err := r.validate(name); err != nil {
		return nil, err
	}
	return &r, nil
}

func advice(version int) string {
	if version > Version {
		return "; use a newer fiducial"
	}
	return fmt.Sprintf(`; write "version": %d at its beginning`, Version)
}

// validate looks at each constraint, and at their names: two that differ in capitals alone are one to most readers.
func (r *Registry) validate(name string) error {
	seen := map[string]string{}
	for _, c := range r.Constraints {
		if err := c.validate(); err != nil {
			return &Error{Malformed, name + " cannot be read", err}
		}
		low := strings.ToLower(c.Key)
		switch have, found := seen[low]; {
		case found && have == c.Key:
			return &Error{Malformed, fmt.Sprintf("%s has the constraint %s twice; remove one", name, c.Key), nil}
		case found:
			return &Error{Malformed, fmt.Sprintf("%s has constraints %s and %s, which differ in capitals alone; rename one", name, have, c.Key), nil}
		}
		seen[low] = c.Key
	}
	return nil
}

// repeated is a field that an object of valid JSON has twice, "" when none has: encoding/json keeps the last in silence.
func repeated(src []byte) string {
	dec := json.NewDecoder(bytes.NewReader(src))
	type level struct {
		fields map[string]bool // nil in a list
		value  bool            // the next token is a field's value
	}
	var open []level
	for {
		tok, err := dec.Token()
		if err != nil {
			return ""
		}
		if d, ok := tok.(json.Delim); ok && (d == '}' || d == ']') {
			open = open[:len(open)-1]
			continue
		}
		if n := len(open); n > 0 && open[n-1].fields != nil {
			top := &open[n-1]
			if key, isText := tok.(string); isText && !top.value {
				if top.fields[key] {
					return key
				}
				top.fields[key], top.value = true, true
				continue
			}
			top.value = false
		}
		switch tok {
		case json.Delim('{'):
			open = append(open, level{fields: map[string]bool{}})
		case json.Delim('['):
			open = append(open, level{})
		}
	}
}

// Load reads the registry of a docs folder. Without one the result is nil and no error.
func Load(fsys fs.FS, folder string) (*Registry, error) {
	name := path.Join(folder, docs.RegistryName)
	src, err := project.Read(fsys, name, MaxSize)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, &Error{Malformed, name + " cannot be read", err}
	}
	return Read(name, src)
}

// Bytes is the file. The same registry gives the same bytes.
func (r *Registry) Bytes() []byte {
	w := *r
	w.Version = Version
	if w.Constraints == nil {
		w.Constraints = []Constraint{}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(w); err != nil {
		panic(err) // strings alone
	}
	return b.Bytes()
}

// BytesLike is [Registry.Bytes] with the line ends and the byte order mark that a file has already.
func (r *Registry) BytesLike(old []byte) []byte {
	data := r.Bytes()
	if i := bytes.IndexByte(old, '\n'); i > 0 && old[i-1] == '\r' {
		data = bytes.ReplaceAll(data, []byte("\n"), []byte("\r\n"))
	}
	if mark := []byte("\xef\xbb\xbf"); bytes.HasPrefix(old, mark) {
		data = append(mark, data...)
	}
	return data
}

// Get finds a constraint.
func (r *Registry) Get(key string) (Constraint, bool) {
	if r == nil {
		return Constraint{}, false
	}
	i := slices.IndexFunc(r.Constraints, func(c Constraint) bool { return c.Key == key })
	if i < 0 {
		return Constraint{}, false
	}
	return r.Constraints[i], true
}

var keyForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

func (c Constraint) validate() error {
	if !keyForm.MatchString(c.Key) {
		return &Error{BadKey, fmt.Sprintf("the key %.80q is no name: use letters, digits, -, _ and dots, for instance sleep-current", c.Key), nil}
	}
	if strings.TrimSpace(c.Text) == "" {
		return &Error{BadLimit, c.Key + " says nothing: text must tell what has to hold", nil}
	}
	if d := c.Document; d != "" && (!fs.ValidPath(d) || !strings.EqualFold(path.Ext(d), ".md")) {
		return &Error{BadLimit, fmt.Sprintf("%s: the document %q is no .md file inside the docs folder", c.Key, d), nil}
	}
	for i, l := range c.Limits {
		if err := l.validate(); err != nil {
			return &Error{BadLimit, fmt.Sprintf("%s: limit %d", c.Key, i+1), err}
		}
	}
	return nil
}

// Doc is the name of the document that must name the constraint, relative to the docs folder.
func (c Constraint) Doc() string {
	if c.Document != "" {
		return c.Document
	}
	return docs.SpecName
}

// A Revisit is something to be looked at again because of a constraint (B-74).
type Revisit struct{ Key, Item string }

// String is the detail of the obligation: "key affects item".
func (v Revisit) String() string { return v.Key + " affects " + v.Item }

// Artifacts tell what of the project is there already.
type Artifacts struct{ Schematic, Board, BOM bool }

// has reports whether what an item is about is there.
func (a Artifacts) has(item string) bool {
	if refForm.MatchString(item) {
		return true // a reference is never deferred
	}
	low := strings.ToLower(item)
	for _, k := range []struct {
		words []string
		there bool
	}{
		{[]string{"bom", "bill of materials", "part number"}, a.BOM},
		{[]string{"board", "layout", "pcb", "placement", "routing", "gerber", "copper", "drc", "stackup"}, a.Board},
		{[]string{"schematic", "sheet", "erc", "netlist"}, a.Schematic},
	} {
		if slices.ContainsFunc(k.words, func(w string) bool { return word(low, w) }) {
			return k.there
		}
	}
	return true
}

var refForm = regexp.MustCompile(`^[A-Za-z_]+[0-9]+[A-Za-z]?(\.[A-Za-z0-9]+)?$`)

// word reports whether a text has a word, or one that begins with it.
func word(text, w string) bool {
	i := strings.Index(text, w)
	return i == 0 || i > 0 && (text[i-1] < 'a' || text[i-1] > 'z')
}

// Record puts a constraint in; one of the same key is replaced in its place (B-113). It gives what has to be looked at
// again now, and what waits for an artifact. The error is BadKey or BadLimit, and then nothing is recorded.
func (r *Registry) Record(c Constraint, have Artifacts) (opened []Revisit, deferred []string, err error) {
	if err := c.validate(); err != nil {
		return nil, nil, err
	}
	c.Affects, c.Deferred = distinct(c.Affects), nil
	for _, item := range c.Affects {
		if have.has(item) {
			opened = append(opened, Revisit{c.Key, item})
			continue
		}
		c.Deferred = append(c.Deferred, item)
	}
	if i := slices.IndexFunc(r.Constraints, func(x Constraint) bool { return x.Key == c.Key }); i >= 0 {
		r.Constraints[i] = c
	} else {
		r.Constraints = append(r.Constraints, c)
	}
	return opened, c.Deferred, nil
}

func distinct(items []string) []string {
	var list []string
	for _, item := range items {
		if item = strings.Join(strings.Fields(item), " "); item != "" && !slices.Contains(list, item) {
			list = append(list, item)
		}
	}
	return list
}

// Reopen takes the deferred items whose artifact is there now out of the registry and returns them, so that each is
// opened once (B-79). When the registry is put back as it was, they are opened again (B-80).
func (r *Registry) Reopen(have Artifacts) []Revisit {
	var opened []Revisit
	for i := range r.Constraints {
		c := &r.Constraints[i]
		var left []string
		for _, item := range c.Deferred {
			if have.has(item) {
				opened = append(opened, Revisit{c.Key, item})
			} else {
				left = append(left, item)
			}
		}
		c.Deferred = left
	}
	return opened
}

// Unnamed says which constraints the registry and the documents do not both name. file is the registry's name, folder
// the docs folder. A nil registry is an empty one.
func Unnamed(r *Registry, folder string, documents []*docs.Document) []docs.Mismatch {
	file := path.Join(folder, docs.RegistryName)
	var list []docs.Mismatch
	named := func(name string) *docs.Document {
		i := slices.IndexFunc(documents, func(d *docs.Document) bool { return d.Name == name })
		if i < 0 {
			return nil
		}
		return documents[i]
	}
	if r == nil {
		r = &Registry{}
	}
	for _, c := range r.Constraints {
		name := path.Join(folder, c.Doc())
		switch doc := named(name); {
		case doc == nil:
			list = append(list, docs.Mismatch{Kind: docs.Unnamed, Doc: file, Ref: c.Key, Claim: "named in " + name, Actual: "there is no such document"})
		case !doc.Names(c.Key):
			list = append(list, docs.Mismatch{Kind: docs.Unnamed, Doc: name, Ref: c.Key, Claim: "nothing of it", Actual: "in " + file})
		}
	}
	for _, doc := range documents {
		keys := doc.ConstraintKeys()
		for _, k := range sorted(keys) {
			if _, ok := r.Get(k); !ok {
				list = append(list, docs.Mismatch{Kind: docs.Unnamed, Doc: doc.Name, Line: keys[k], Ref: k, Claim: "a constraint", Actual: "not in " + file})
			}
		}
	}
	return list
}

func sorted(keys map[string]int) []string {
	list := make([]string, 0, len(keys))
	for k := range keys {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}
