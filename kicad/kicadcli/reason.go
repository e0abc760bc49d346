// SPDX-License-Identifier: Apache-2.0

package kicadcli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/sexpr"
)

// A Reason tells why kicad-cli does not load a file.
type Reason struct {
	Text   string // in one line; quotes kicad-cli where it says anything
	Line   int    // from 1, 0 when unknown
	Offset int    // in the line, as kicad-cli counts it for a schematic and from 0 for a board; -1 when unknown
	Item   string // for a board, and for a format: the head of the item that does not load
}

// String is the text with its place.
func (r Reason) String() string {
	switch {
	case r.Line == 0:
		return r.Text
	case r.Item != "":
		return fmt.Sprintf("line %d: %s: %s", r.Line, r.Text, r.Item)
	case r.Offset >= 0:
		return fmt.Sprintf("line %d, offset %d: %s", r.Line, r.Offset, r.Text)
	}
	return fmt.Sprintf("line %d: %s", r.Line, r.Text)
}

// Reason looks for the reason why a file does not load; kicad-cli itself says only that it failed. Bad brackets and
// bytes are told by our own reader. For a schematic kicad-cli's parity check is asked, which prints the parser's
// message; for a board kicad-cli prints nothing anywhere, so the first item is searched with which it no longer
// loads, by halving (5 to 11 runs, up to 5 s). A file that loads gets a Reason that says so.
func (r *Runner) Reason(ctx context.Context, in Input) (Reason, error) {
	v, err := r.open(in)
	if err != nil {
		return Reason{}, err
	}
	defer v.close()
	src, err := os.ReadFile(v.file)
	if err != nil {
		return Reason{}, &Error{Kind: BadInput, Detail: in.File + " cannot be read", Err: err}
	}
	doc, perr := sexpr.Parse(src)
	if perr != nil {
		e, _ := errors.AsType[*sexpr.Error](perr)
		if bytes.HasPrefix(src, []byte("EESchema")) {
			return Reason{Text: "the file is a KiCad 5 schematic; save it with KiCad 6 or newer first", Line: 1, Offset: 0}, nil
		}
		return Reason{Text: e.Detail, Line: e.Line, Offset: e.Column - 1}, nil
	}
	if long := longLine(src); long.Line > 0 {
		return long, nil
	}
	if kindOf(v.file) == Schematic {
		return r.parity(ctx, v, doc)
	}
	return r.bisect(ctx, v, doc)
}

// maxLine is how long a line may be: KiCad's reader stops there (measured on 9.0.8).
const maxLine = 1_000_000

// longLine is the first line that KiCad's reader refuses for its length.
func longLine(src []byte) Reason {
	n := 0
	for line := range bytes.Lines(src) {
		if n++; len(line) > maxLine {
			return tooLong(n, len(line), fmt.Sprintf("stops at %d", maxLine))
		}
	}
	return Reason{}
}

// longest is the longest line, for a kicad-cli whose limit is another one: it says that a line is too long, and not which.
func longest(src []byte) Reason {
	n, at, size := 0, 0, 0
	for line := range bytes.Lines(src) {
		if n++; len(line) > size {
			at, size = n, len(line)
		}
	}
	return tooLong(at, size, "does not take it")
}

func tooLong(line, size int, does string) Reason {
	text := fmt.Sprintf("a line of %d bytes, and KiCad's reader %s: break it into lines, as KiCad writes them", size, does)
	return Reason{Text: text, Line: line, Offset: -1}
}

// message is kicad-cli's parse error: the text, then "in 'file', line N, offset M." or the like.
var message = regexp.MustCompile(`(?s)^(?:Error: )?(.*?)[ \n](?:in|of) '?[^'\n]*p\.kicad_sch'?,?[ \n]line:? (\d+),?[ \n]offset:? (\d+)`)

// parity asks for the comparison of an empty board with the schematic.
func (r *Runner) parity(ctx context.Context, v *view, doc *sexpr.Doc) (Reason, error) {
	dir := filepath.Join(filepath.Dir(v.base), "reason")
	sch, pcb := filepath.Join(dir, "p"+Schematic), filepath.Join(dir, "p"+Board)
	err := errors.Join(os.Mkdir(dir, 0o700), os.WriteFile(sch, doc.Source(), 0o600),
		os.WriteFile(pcb, []byte("(kicad_pcb (version 20241229) (generator \"probe\"))\n"), 0o600))
	if err != nil {
		return Reason{}, &Error{Kind: Environment, Detail: "cannot make a temporary file", Err: err}
	}
	run, err := r.exec(ctx, v, v.limit(perMB),
		"pcb", "drc", "--schematic-parity", "--format", "json", "-o", filepath.Join(dir, "o.json"), pcb)
	if err != nil {
		return Reason{}, err
	}
	said := strings.TrimSpace(clock.ReplaceAllString(run.Stderr, ""))
	if m := message.FindStringSubmatch(said); m != nil {
		line, _ := strconv.Atoi(m[2])
		offset, _ := strconv.Atoi(m[3])
		return Reason{Text: clip(m[1]), Line: line, Offset: offset}, nil
	}
	switch {
	case strings.Contains(said, "more recent version"):
		return newer(doc), nil
	case strings.Contains(said, "Maximum line length"):
		return longest(doc.Source()), nil
	}
	if run.Signal != "" {
		return Reason{Text: "kicad-cli crashes on it: " + run.Signal, Offset: -1}, nil
	}
	if run.ExitCode == 0 {
		return Reason{Text: "kicad-cli loads it", Offset: -1}, nil
	}
	said = strings.ReplaceAll(said, sch, "the file")
	return Reason{Text: clip(strings.TrimSpace(strings.TrimPrefix(said, "Error: "))), Offset: -1}, nil
}

const newerFormat = "kicad-cli does not load this format: the file was saved by a newer KiCad; check it with that one's kicad-cli"

// newer says that a file has a later format than kicad-cli knows, which it tells without a place.
func newer(doc *sexpr.Doc) Reason {
	version := doc.Root().Get("version")
	if !version.OK() {
		return Reason{Text: newerFormat, Line: doc.Root().Line(), Offset: -1}
	}
	line, col := doc.Position(version.Start())
	return Reason{Text: newerFormat, Line: line, Offset: col - 1, Item: head(version)}
}

// bisect finds the first child of the root with which the board no longer loads.
func (r *Runner) bisect(ctx context.Context, v *view, doc *sexpr.Doc) (Reason, error) {
	root := doc.Root()
	if !root.Is("kicad_pcb") {
		return Reason{Text: fmt.Sprintf("the file holds a (%s ...), want (kicad_pcb ...)", root.Tag()), Line: root.Line(), Offset: -1}, nil
	}
	var items []sexpr.Node
	for c := range root.All() {
		if c.Kind() == sexpr.List {
			items = append(items, c)
		}
	}
	var failed error
	// loads tries the board with its first n items.
	loads := func(n int) bool {
		if failed != nil {
			return true
		}
		end := root.Start() + len("(kicad_pcb")
		if n > 0 {
			end = items[n-1].End()
		}
		text := append([]byte(nil), doc.Source()[:end]...)
		part := &view{base: v.base, root: v.root, dir: v.dir, file: v.out("part" + Board), size: v.size}
		if failed = os.WriteFile(part.file, append(text, ")\n"...), 0o600); failed != nil {
			return true
		}
		p, err := r.probe(ctx, part)
		failed = err
		return p.ExitCode == 0
	}
	n := 1 + sort.Search(len(items), func(i int) bool { return !loads(i + 1) })
	if failed != nil {
		return Reason{}, failed
	}
	if n > len(items) {
		return Reason{Text: "kicad-cli loads it", Offset: -1}, nil
	}
	item := items[n-1]
	text := "kicad-cli does not load the board with this item"
	if item.Is("version") || item.Is("generator") || item.Is("generator_version") {
		text = newerFormat
	}
	if unnumbered(item) {
		text = "kicad-cli does not load nets without numbers: the board was saved by KiCad 10 or newer; check it with that one"
	}
	_, col := doc.Position(item.Start())
	return Reason{Text: text, Line: item.Line(), Offset: col - 1, Item: head(item)}, nil
}

// unnumbered reports whether an item names a net as KiCad 10 does: (net "GND").
func unnumbered(item sexpr.Node) bool {
	for n := range item.Walk() {
		if n.Is("net") && n.Arg(0).Kind() == sexpr.String {
			return true
		}
	}
	return false
}

// head is the beginning of an item, in one line.
func head(n sexpr.Node) string {
	const most = 120
	text := strings.Join(strings.Fields(string(n.Raw())), " ")
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most], "") + " ..."
	}
	return text
}
