// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/machine"
)

// The kinds of the engine's own notes beside noteLock.
const (
	noteRun    = "run"    // a new logical run begins
	noteLoop   = "loop"   // the loop guard ended the run, and counts anew
	noteSpent  = "spent"  // a broken request has cost this
	notePruned = "pruned" // requests leave results, or images, out up to this message; see pruneNote
	noteExtra  = "extra"  // messages to add at the next boundary
	noteAdded  = "added"  // they were added
)

// ownNote reports whether the engine gives notes of this kind a meaning of its own.
func ownNote(kind string) bool {
	switch kind {
	case noteLock, noteRun, noteLoop, noteSpent, notePruned, noteExtra, noteAdded, journal.RepairedNote:
		return true
	}
	return false
}

// Note leaves a note in the journal of the run; it is stored with the next
// records, before the next effect starts. [Locked.Notes] gives the notes back, also
// in a process that takes the run up. Data is JSON or nil. The kinds lock, run, loop,
// spent, pruned, extra, added and [journal.RepairedNote] are the engine's own. Without a
// journal it does nothing. It must be called by the hook that was given inv, before it
// returns.
//
// A note without a kind, of a kind of the engine's or with data that are not JSON is not
// stored, and the hook counts as failed: it has broken its contract.
func (inv Invocation) Note(kind string, data json.RawMessage) {
	c := inv.core
	if c == nil {
		return
	}
	kind, data = c.text(kind), validData(bytes.Clone(data))
	if err := checkNote(kind, data); err != nil {
		c.badNote = &HookError{Category: HookContract, Err: err}
		return
	}
	c.store.add(journal.Note{Kind: kind, Data: c.data(data)})
}

func checkNote(kind string, data json.RawMessage) error {
	switch {
	case strings.TrimSpace(kind) == "":
		return fmt.Errorf("a note has no kind; give it one of your own")
	case ownNote(kind):
		return fmt.Errorf("notes of kind %q are the engine's own; give another kind", kind)
	}
	if err := machine.StorableData(data); err != nil {
		return fmt.Errorf("the note of kind %q: %w", kind, err)
	}
	return nil
}

// hook calls a hook. A note that it left and that cannot be stored is its failure.
func hook[T any](c *core, f func() (T, error)) (T, error) {
	v, err := guarded(f)
	if bad := c.badNote; bad != nil {
		c.badNote = nil
		if err == nil {
			err = bad
		}
	}
	return v, err
}

// notes are those of other rooms that are in the journal. They have a lock of their
// own, for they may be asked for during a run.
type notes struct {
	mu   sync.Mutex
	list []journal.Note
}

func (n *notes) set(list []journal.Note) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.list = list
}

// stored takes up what others have noted among bodies that are stored now.
func (n *notes) stored(bodies []journal.Body) {
	for _, b := range bodies {
		if note, ok := b.(journal.Note); ok && !ownNote(note.Kind) {
			n.mu.Lock()
			n.list = append(n.list, note)
			n.mu.Unlock()
		}
	}
}

func (n *notes) all() []journal.Note {
	n.mu.Lock()
	defer n.mu.Unlock()
	list := slices.Clone(n.list)
	for i := range list {
		list[i].Data = bytes.Clone(list[i].Data)
	}
	return list
}

// Notes are the notes that others than the engine left in the journal of the run, in
// order, as far as they are stored; see [Invocation.Note]. It can be called during a
// run.
func (h handle) Notes() []journal.Note {
	if h.core == nil {
		return nil
	}
	return h.core.store.notes.all()
}
