// SPDX-License-Identifier: Apache-2.0

package agent

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
)

// An intent is an edit of several files that is under way, with what they held. It
// is stored before the first file is written and removed when the edit is kept or
// put back. A process that finds one has taken over from one that was killed in
// between: the edit is then taken back whole, and its call counts as not made.
type intent struct {
	Files []intended `json:"files"`
}

type intended struct {
	Name string      `json:"name"`
	Mode fs.FileMode `json:"mode"`
	Old  []byte      `json:"old"`
	New  bool        `json:"new,omitempty"` // there was none
	Sum  string      `json:"sum"`           // SHA-256 of what was to be written, in hex
}

func (b *Bench) intentFile() string {
	return filepath.Join(".fiducial", "runs", b.session.Run, "edit.json")
}

// intend stores that files are about to be written, beside those of an edit that this
// one belongs to. Done takes them off again.
func (b *Bench) intend(edits []*edit) (done func() error, err error) {
	n := len(b.pending)
	b.pending = append(b.pending, edits...)
	done = func() error {
		b.pending = b.pending[:n]
		if n > 0 {
			return nil // the edit that this belongs to ends it
		}
		if err := b.root.Remove(b.intentFile()); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	var in intent
	for _, e := range b.pending {
		in.Files = append(in.Files, intended{e.name, e.mode, e.old, e.fresh, sumOf(e.new)})
	}
	data, err := json.Marshal(in)
	if err == nil {
		err = b.root.MkdirAll(filepath.Dir(b.intentFile()), 0o700)
	}
	if err == nil {
		err = b.writeWhole(b.intentFile(), data, 0o600)
	}
	if err != nil {
		b.pending = b.pending[:n]
		return nil, fmt.Errorf("what the files held could not be stored: %w", err)
	}
	return done, nil
}

func sumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// takeBack puts back what an edit had written that a kill cut off.
func (b *Bench) takeBack() error {
	data, err := b.content(filepath.ToSlash(b.intentFile()))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var in intent
	if err := json.Unmarshal(data, &in); err != nil {
		return fmt.Errorf("%s cannot be read: %w", b.intentFile(), err)
	}
	for _, f := range in.Files {
		name, err := clean(f.Name)
		if err != nil {
			return err
		}
		now, err := b.content(name)
		gone := errors.Is(err, fs.ErrNotExist)
		if gone && f.New || err == nil && bytes.Equal(now, f.Old) && !f.New {
			continue // it was not written yet
		}
		if !gone && (err != nil || sumOf(now) != f.Sum) { // somebody has edited it since, or put something else there
			b.session.Event("edit-left", map[string]any{"file": name})
			b.touched(name)
			continue
		}
		if err := b.undo(&edit{name: name, old: f.Old, mode: f.Mode.Perm(), fresh: f.New}); err != nil {
			return fmt.Errorf("%s could not be put back: %w", name, err)
		}
	}
	b.session.Event("edit-taken-back", map[string]any{"files": len(in.Files)})
	return b.root.Remove(b.intentFile())
}
