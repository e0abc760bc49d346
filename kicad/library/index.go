// SPDX-License-Identifier: Apache-2.0

package library

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"
)

// A Symbol is a symbol of a library, as a search shows it. What a symbol that extends another does not say itself is
// the other's.
type Symbol struct {
	Library     string
	Name        string
	Description string
	Keywords    string   // words with spaces between
	Filters     []string // patterns of footprints that fit
	Reference   string   // the prefix of references, for instance R; # for symbols that are no part
	Value       string
	Footprint   string // the default one, mostly empty
	Datasheet   string // "" and ~ for none
	Extends     string // the symbol of the same library whose pins and drawing it has, "" for its own
	Power       bool   // a power symbol or flag
}

// ID is the symbol's name as a schematic spells it: Device:R.
func (s Symbol) ID() string { return s.Library + ":" + s.Name }

// maxFile is the largest library file that is read.
const maxFile = 512 << 20

// A shelf holds the index of one library.
type shelf struct {
	mu  sync.Mutex
	now *index // nil before it was read
}

// An index is what is known of one library. It does not change.
type index struct {
	files   []stamp
	entries []entry
	byName  map[string]int
	problem string // what of the library could not be read
}

// A stamp tells whether a file is still the one that was read.
type stamp struct {
	name string
	size int64
	at   time.Time
}

// index returns the index of a library, read anew when its files changed.
func (s *Set) index(l Library) (*index, error) {
	s.mu.Lock()
	h := s.shelves[l.Path]
	if h == nil {
		h = &shelf{}
		s.shelves[l.Path] = h
	}
	s.mu.Unlock()
	h.mu.Lock()
	defer h.mu.Unlock()
	files, err := stamps(l.Path)
	if err != nil {
		return nil, &Error{Kind: Unreadable, Detail: "symbol library " + l.Name + " cannot be read", Err: err}
	}
	if h.now != nil && slices.Equal(files, h.now.files) {
		return h.now, nil
	}
	fresh := &index{files: files, byName: map[string]int{}}
	for _, f := range files {
		if err := fresh.read(l, f); err != nil {
			return nil, &Error{Kind: Unreadable, Detail: "symbol library " + l.Name + " cannot be read", Err: err}
		}
	}
	fresh.inherit()
	h.now = fresh
	return fresh, nil
}

// stamps lists the files of a library: one, or those of a folder.
func stamps(path string) ([]stamp, error) {
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	names := []string{path}
	if st.IsDir() {
		if names, err = filepath.Glob(filepath.Join(escape(path), "*.kicad_sym")); err != nil {
			return nil, err
		}
	}
	var list []stamp
	for _, name := range names {
		st, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		if !st.Mode().IsRegular() || st.Size() > maxFile {
			return nil, fmt.Errorf("%s is no file of at most %d MB", name, maxFile>>20)
		}
		list = append(list, stamp{name, st.Size(), st.ModTime()})
	}
	return list, nil
}

// escape makes a pattern that matches a path only.
func escape(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

func (x *index) read(l Library, f stamp) error {
	data, err := os.ReadFile(f.name)
	if err != nil {
		return err
	}
	list, whole := scan(data)
	if !whole && len(list) == 0 {
		return fmt.Errorf("%s is no symbol library of KiCad 6 or newer", f.name)
	}
	if !whole {
		x.problem = fmt.Sprintf("%s is broken behind symbol %s", f.name, list[len(list)-1].Name)
	}
	for _, e := range list {
		e.Library, e.file = l.Name, f.name
		e.Filters = strings.Fields(e.filters)
		x.byName[e.Name] = len(x.entries)
		x.entries = append(x.entries, e)
	}
	return nil
}

// inherit fills in what symbols leave to the one that they extend.
func (x *index) inherit() {
	for i := range x.entries {
		e := &x.entries[i]
		for _, p := range x.line(e.Name)[1:] {
			for to, from := range map[*string]string{
				&e.Reference: p.Reference, &e.Footprint: p.Footprint, &e.Datasheet: p.Datasheet, &e.Description: p.Description, &e.Keywords: p.Keywords,
			} {
				if *to == "" {
					*to = from
				}
			}
			if len(e.Filters) == 0 {
				e.Filters = p.Filters
			}
			e.Power = e.Power || p.Power
		}
	}
}

// maxLine is how many symbols may extend one another in a line.
const maxLine = 32

// line lists a symbol and those that it extends, one after the other. A circle ends it.
func (x *index) line(name string) []entry {
	var list []entry
	for name != "" && len(list) < maxLine {
		i, ok := x.byName[name]
		if !ok || slices.ContainsFunc(list, func(e entry) bool { return e.Name == name }) {
			break
		}
		list = append(list, x.entries[i])
		name = x.entries[i].Extends
	}
	return list
}

// source reads the text of a symbol.
func (e entry) source() (src []byte, err error) {
	f, err := os.Open(e.file)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	src = make([]byte, e.end-e.start)
	if _, err = f.ReadAt(src, e.start); errors.Is(err, io.EOF) {
		err = fmt.Errorf("%s was changed", e.file)
	}
	return src, err
}
