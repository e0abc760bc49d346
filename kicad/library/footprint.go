// SPDX-License-Identifier: Apache-2.0

package library

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// A Footprint is a footprint of a library.
type Footprint struct {
	Library     string
	Name        string
	File        string
	Description string
	Tags        string
	Pads        []string // the numbers, each once, ordered as pins are; mechanical pads without one are left out
}

// ID is the footprint's name as a schematic spells it.
func (f Footprint) ID() string { return f.Library + ":" + f.Name }

const extMod = ".kicad_mod"

// Footprint reads a footprint. id is LIBRARY:NAME. Errors: BadQuery, NoLibraries, NoSuchLibrary, NoSuchFootprint with
// names that are similar, Unreadable, and the end of ctx.
func (s *Set) Footprint(ctx context.Context, id string) (Footprint, error) {
	library, name, ok := strings.Cut(id, ":")
	if !ok || library == "" || name == "" || strings.ContainsAny(name, `/\`) {
		return Footprint{}, &Error{Kind: BadQuery, Detail: fmt.Sprintf("%q is no LIBRARY:NAME such as Resistor_SMD:R_0603_1608Metric", id)}
	}
	if ctx.Err() != nil {
		return Footprint{}, context.Cause(ctx)
	}
	l, err := s.named("footprint", library, s.footprints)
	if err != nil {
		return Footprint{}, err
	}
	f := Footprint{Library: library, Name: name, File: filepath.Join(l.Path, name+extMod)}
	src, err := os.ReadFile(f.File)
	if errors.Is(err, fs.ErrNotExist) {
		names, err := footprintNames(l)
		if err != nil {
			return Footprint{}, err
		}
		return Footprint{}, &Error{
			Kind: NoSuchFootprint, Detail: fmt.Sprintf("library %s has no footprint %q", library, name), Candidates: similar(name, names),
		}
	}
	if err != nil {
		return Footprint{}, &Error{Kind: Unreadable, Detail: "footprint " + id + " cannot be read", Err: err}
	}
	doc, bad := sexpr.ParseTolerant(src)
	root := doc.Root()
	if len(bad) > 0 || !root.Is("footprint") && !root.Is("module") {
		return f, &Error{Kind: Unreadable, Detail: "footprint " + id + " is broken"}
	}
	f.Description, f.Tags = root.Get("descr").Arg(0).Text(), root.Get("tags").Arg(0).Text()
	for p := range root.Lists("pad") {
		if number := p.Arg(0).Text(); number != "" {
			f.Pads = append(f.Pads, number)
		}
	}
	slices.SortFunc(f.Pads, compareNumbers)
	f.Pads = slices.Compact(f.Pads)
	return f, nil
}

func footprintNames(l Library) ([]string, error) {
	entries, err := os.ReadDir(l.Path)
	if err != nil {
		return nil, &Error{Kind: Unreadable, Detail: "footprint library " + l.Name + " cannot be read", Err: err}
	}
	var names []string
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), extMod); ok {
			names = append(names, name)
		}
	}
	return names, nil
}

// SearchFootprints looks for footprints by name: all words must be in LIBRARY:NAME, in any case; a word with * or ? is a
// pattern for the whole name, as a symbol's footprint filters are. It returns at most limit of them (0 means
// [DefaultLimit]), the shortest names first, and how many there are. Errors: BadQuery, NoLibraries, NoSuchLibrary,
// Unreadable, and the end of ctx.
func (s *Set) SearchFootprints(ctx context.Context, words, library string, limit int) (ids []string, total int, err error) {
	m, err := Query{Words: words, Library: library}.matcher()
	if err != nil {
		return nil, 0, err
	}
	list := s.footprints
	if library != "" {
		l, err := s.named("footprint", library, list)
		if err != nil {
			return nil, 0, err
		}
		list = []Library{l}
	}
	read := 0
	for _, l := range list {
		if ctx.Err() != nil {
			return nil, 0, context.Cause(ctx)
		}
		if l.Problem != "" {
			continue
		}
		names, err := footprintNames(l)
		if err != nil {
			continue // it went away since the table was read
		}
		read++
		for _, name := range names {
			low := strings.ToLower(l.Name + ":" + name)
			if !slices.ContainsFunc(m.words, func(w string) bool { return !strings.Contains(low, w) }) && m.named(name) {
				ids = append(ids, l.Name+":"+name)
			}
		}
	}
	if read == 0 {
		return nil, 0, s.none("footprint", s.footprints)
	}
	slices.SortFunc(ids, func(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) })
	return ids[:min(len(ids), cmp.Or(max(limit, 0), DefaultLimit))], len(ids), nil
}
