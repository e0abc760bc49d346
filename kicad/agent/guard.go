// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/fiducial-dev/fiducial/kicad/kicadcli"
	"github.com/fiducial-dev/fiducial/kicad/lint"
	"github.com/fiducial-dev/fiducial/tool"
)

// An edit is one file's new content, with what it replaces.
type edit struct {
	name     string
	old, new []byte
	mode     fs.FileMode
	fresh    bool // there was no such file; putting it back removes it
}

// A change is edits that stand or fall together.
type change struct {
	edits  []*edit
	accept func(electrical) error // nil accepts; it is asked last

	// From and to are a reference designator that the edits rename, so that the
	// part counts as the same.
	from, to string

	record bool // it notes something for people alone: the documents need not be compared again
}

// newEdit reads the file that an edit replaces. Links are not written through, and a
// file that the snapshot does not hold could not be put back.
func (b *Bench) newEdit(ctx context.Context, name string) (*edit, error) {
	if to, err := b.resolve(name); err != nil || to != name {
		if err == nil {
			err = &PathError{Path: name, Reason: "it leads through a symbolic link; edit " + to}
		}
		return nil, badPath(err)
	}
	if err := b.allowed(name); err != nil {
		return nil, badPath(err)
	}
	info, err := b.root.Lstat(filepath.FromSlash(name))
	if err != nil {
		return nil, badPath(pathError(name, err))
	}
	switch {
	case !info.Mode().IsRegular():
		return nil, badPath(&PathError{Path: name, Reason: "it is no regular file"})
	case info.Mode().Perm()&0o111 != 0 && kindOf(name) == other:
		return nil, badPath(&PathError{Path: name, Reason: "it is a program; tools write design files and documents"})
	case info.Mode().Perm()&0o200 == 0:
		return nil, badPath(&PathError{Path: name, Reason: "it is read-only"})
	}
	old, err := b.read(name)
	if err != nil {
		return nil, badPath(err)
	}
	if err := b.stillOurs(ctx, name, old); err != nil {
		return nil, err
	}
	return &edit{name: name, old: old, mode: info.Mode().Perm()}, nil
}

// stillOurs fails when a file holds neither what the run wrote last nor, before its
// first edit, what the snapshot holds. An edit would make the run's own what somebody
// else saved meanwhile: a commit would hold it unverified, and a restore lose it.
func (b *Bench) stillOurs(ctx context.Context, name string, now []byte) error {
	foreign := badPath(&PathError{Path: name, Reason: "somebody else changed it since the run began; it was left as it is"})
	if wrote, ours := b.written[name]; ours {
		if sha256.Sum256(now) != wrote {
			return foreign
		}
		return nil
	}
	if slices.Contains(b.session.Rules.Touched(), name) { // by the process that the run was begun in
		return nil
	}
	was, err := b.session.Snapshot.File(ctx, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		reason := "git ignores it, so that a run could not put it back; take it out of .gitignore first"
		if dir := b.ownRepository(name); dir != "" {
			reason = "it is in " + dir + ", which is a git repository of its own, so that a run in this one could not put it back; run there: --repo " + dir
		}
		return badPath(&PathError{Path: name, Reason: reason})
	case err != nil:
		return err
	case !bytes.Equal(was, now):
		return foreign
	}
	return nil
}

// ownRepository is the folder above a file that is a submodule, or else a repository within the run's, "" for none.
func (b *Bench) ownRepository(name string) string {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, err := b.root.Lstat(filepath.FromSlash(path.Join(dir, ".git"))); err == nil {
			return dir
		}
	}
	return ""
}

func (b *Bench) put(e *edit, data []byte) error {
	if e.fresh {
		if err := b.root.MkdirAll(filepath.FromSlash(path.Dir(e.name)), 0o755); err != nil {
			return err
		}
	}
	return b.writeWhole(filepath.FromSlash(e.name), data, e.mode)
}

// undo gives a file what it held before the edit.
func (b *Bench) undo(e *edit) error {
	if !e.fresh {
		return b.put(e, e.old)
	}
	if err := b.root.Remove(filepath.FromSlash(e.name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	b.note(filepath.FromSlash(e.name), digest{})
	return nil
}

// unchanged fails when a file is not what it is believed to be: somebody else has
// it in hand, and what he saved must not be written over.
func (b *Bench) unchanged(e *edit, believed []byte) error {
	now, err := b.content(e.name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && (e.fresh || len(believed) == 0):
		return nil
	case err != nil:
		return err
	case bytes.Equal(now, believed):
		return nil
	}
	return &PathError{Path: e.name, Reason: "somebody else changed it meanwhile; it was left as it is"}
}

// lint finds what kicad-cli passes over in silence.
func (b *Bench) lint(name string, data []byte) []lint.Finding {
	return lint.Check(name, data, lint.Options{Exists: func(n string) bool {
		_, err := b.root.Stat(filepath.FromSlash(n))
		return err == nil
	}})
}

// apply writes the edits and keeps them only when the design is no worse for it:
//
//  1. kicad-cli loads each file, unless it did not load before either (B-96),
//  2. the text has no fault that kicad-cli passes over in silence and that was not
//     there before (package lint),
//  3. no part left the netlist that the text still places,
//  4. accept, when not nil, agrees with the electrical difference.
//
// Otherwise every file has its old bytes again, nothing counts as touched, and the
// error says why. The text of a kept edit tells the electrical difference.
func (b *Bench) apply(ctx context.Context, c change) (string, error) {
	if err := b.base.get(ctx); err != nil { // until now the tree was the snapshot
		return "", baseFailed(err)
	}
	if err := b.locked(); err != nil {
		return "", err
	}
	for _, e := range c.edits {
		if err := b.openElsewhere(e.name); err != nil {
			return "", err
		}
		if err := longLine(e.name, e.new, min(max(maxLineBytes, longest(e.old)), noLineBytes-1)); err != nil {
			return "", err
		}
	}
	edits := slices.DeleteFunc(c.edits, func(e *edit) bool { return string(e.old) == string(e.new) })
	if len(edits) == 0 {
		return "", tool.Errorf(tool.InvalidArgument, "the edit changes nothing: the old and the new text are the same")
	}
	before, err := b.electricalState(ctx, edits)
	if err == nil && before != nil && c.from != "" {
		before.rename(c.from, c.to)
	}
	if err != nil {
		return "", err
	}
	done, err := b.intend(edits)
	if err != nil {
		return "", tool.Errorf(tool.Failed, "nothing was changed: %w", err)
	}
	if err := b.write(edits); err != nil {
		return "", errors.Join(err, done())
	}
	notes, err := b.judge(ctx, edits, before, c.accept)
	if err != nil {
		if back := b.putBack(edits); back != nil {
			return "", errors.Join(err, back) // what was to be done stays stored
		}
		return "", errors.Join(err, done())
	}
	for _, e := range edits {
		if c.record {
			b.recorded(e.name)
		} else {
			b.touched(e.name)
		}
	}
	if err := done(); err != nil {
		return "", tool.Errorf(tool.Failed, "the edit was kept, but %s could not be removed, so that the run cannot be resumed: %w", b.intentFile(), err)
	}
	return notes, nil
}

// openElsewhere is an editor's lock file beside a file that is to be written, such as that of a child sheet.
func (b *Bench) openElsewhere(name string) error {
	lock := path.Join(path.Dir(name), "~"+path.Base(name)+".lck")
	if _, err := b.root.Lstat(filepath.FromSlash(lock)); err != nil {
		return nil //nolint:nilerr // there is none
	}
	return tool.Errorf(tool.Failed, "%s is there: %s is open in KiCad. Nothing was changed; it must be closed there first", lock, name)
}

// write writes all files or none.
func (b *Bench) write(edits []*edit) error {
	for i, e := range edits {
		err := b.unchanged(e, e.old)
		if err == nil {
			err = b.put(e, e.new)
		}
		if err != nil {
			failed := tool.Errorf(tool.Failed, "%s was not written: %w; nothing was changed", e.name, err)
			if back := b.putBack(edits[:i]); back != nil {
				return errors.Join(failed, back)
			}
			return failed
		}
	}
	return nil
}

// putBack gives files their old bytes. One that cannot be put back counts as
// touched, so that no check misses it (B-99).
func (b *Bench) putBack(edits []*edit) error {
	var errs []error
	for _, e := range edits {
		err := b.unchanged(e, e.new)
		if err == nil {
			err = b.undo(e)
		}
		if err != nil {
			b.touched(e.name)
			errs = append(errs, tool.Errorf(tool.Failed, "%s could not be put back: %w; it holds the edit still and counts as touched", e.name, err))
		}
	}
	return errors.Join(errs...)
}

// judge is what kicad-cli says of files that were just written.
func (b *Bench) judge(ctx context.Context, edits []*edit, before *electricalBefore, accept func(electrical) error) (string, error) {
	var notes []string
	broken := false
	probes := b.probes(ctx, edits, before != nil && before.nets != nil)
	for i, e := range edits {
		note, stillBroken, err := b.loads(ctx, e, probes[i])
		if err != nil {
			return "", err
		}
		broken = broken || stillBroken
		if note != "" {
			notes = append(notes, note)
		}
	}
	diff, err := b.electricalDiff(ctx, before)
	switch {
	case err != nil && !broken:
		return "", tool.Errorf(tool.Failed, "reverted: the design did not load after the edit: %w", err)
	case err == nil:
		if err := diff.vanished(); err != nil {
			return "", err
		}
		if accept != nil {
			if err := accept(diff); err != nil {
				return "", err
			}
		}
		if text := diff.String(); text != "" {
			notes = append(notes, text)
			b.changes = append(b.changes, strings.Split(text, "\n")...)
		}
	}
	return strings.Join(notes, "\n"), nil
}

// A probing is what kicad-cli said of one edited file.
type probing struct {
	kicadcli.Probe
	err error
}

// probes asks kicad-cli, side by side, to load the edited sheets and boards, and no
// other file (B-97). When the electrical difference will be wanted the netlist is
// had beside them: the root's probe is one.
func (b *Bench) probes(ctx context.Context, edits []*edit, netlist bool) []probing {
	out := make([]probing, len(edits))
	var wg sync.WaitGroup
	for i, e := range edits {
		if k := kindOf(e.name); k != sheet && k != board {
			continue
		}
		root := e.name == b.project.Root
		wg.Go(func() {
			out[i].Probe, out[i].err = b.cli.Probe(ctx, b.input(e.name))
			if root && out[i].Loads && out[i].Netlist != nil {
				if contents, err := b.sheets(); err == nil {
					b.memory.put(contents, out[i].Netlist)
				}
			}
		})
		netlist = netlist && !root
	}
	if netlist {
		wg.Go(func() { _, _ = b.nets(ctx) }) // remembered; whoever needs it asks again and sees the error
	}
	wg.Wait()
	return out
}

// loads holds what kicad-cli said of an edited file against the rule (B-96): the edit
// may stay when the file loads, or when it did not load before either; then the note
// says so and broken is true.
func (b *Bench) loads(ctx context.Context, e *edit, after probing) (note string, broken bool, err error) {
	if k := kindOf(e.name); k != sheet && k != board {
		return "", false, nil
	}
	if err := after.err; err != nil {
		return "", false, tool.Errorf(tool.Failed, "reverted: kicad-cli could not be asked whether %s loads: %w", e.name, err)
	}
	if after.Loads && !after.Annotation {
		return "", false, b.silentFaults(e)
	}
	in := b.input(e.name)
	in.Overlay = maps.Clone(in.Overlay)
	in.Overlay[path.Base(e.name)] = e.old
	was, err := b.cli.Probe(ctx, in)
	if err != nil {
		return "", false, tool.Errorf(tool.Failed, "reverted: kicad-cli could not be asked whether %s loaded before: %w", e.name, err)
	}
	switch {
	case after.Loads && was.Loads && was.Annotation, after.Loads && !was.Loads:
		return "", false, b.silentFaults(e)
	case after.Loads: // annotated before, and not now
		return "", false, tool.Errorf(tool.Failed, "reverted: after the edit kicad-cli warns that reference designators in %s are missing or used twice", e.name)
	case was.Loads:
		return "", false, tool.Errorf(tool.Failed, "reverted: %s loaded before the edit and does not load after it. %s. The file has its old content; mend the edit and try again",
			e.name, b.reason(ctx, e, after.Summary()))
	}
	return fmt.Sprintf("%s does not load in KiCad, and did not load before this edit either: the edit is kept, go on repairing. %s",
		e.name, b.reason(ctx, e, after.Summary())), true, nil
}

// silentFaults refuses what kicad-cli loads by ignoring a part of it.
func (b *Bench) silentFaults(e *edit) error {
	fresh := lint.New(b.lint(e.name, e.old), b.lint(e.name, e.new))
	if len(fresh) == 0 {
		return nil
	}
	return tool.Errorf(tool.Failed, "reverted: kicad-cli loads %s without a word, but the edit gives it a fault that it did not have, and KiCad would drop or replace a part of the file:\n%s",
		e.name, listed(fresh))
}

// reason is why the new content does not load, with line and offset where they
// can be had.
func (b *Bench) reason(ctx context.Context, e *edit, summary string) string {
	in := b.input(e.name)
	in.Overlay = maps.Clone(in.Overlay)
	in.Overlay[path.Base(e.name)] = e.new
	if r, err := b.cli.Reason(ctx, in); err == nil {
		return "kicad-cli: " + r.String()
	}
	return "kicad-cli: " + summary
}
