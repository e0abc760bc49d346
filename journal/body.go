// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"encoding/json"
	"time"

	"github.com/fiducial-dev/fiducial/machine"
)

// A Record is one entry of a run's log.
type Record struct {
	Seq   uint64    // 1, 2, 3 and so on, without gaps; 1 is the [Header]
	Epoch uint64    // of the lease that wrote it; 0 for the header
	At    time.Time // in UTC, for people only: nothing is ever decided by it
	Body  Body
}

// A Body is what a record says. The set is closed.
//
//sumtype:decl
type Body interface{ body() }

type (
	// Header is the first record of a run and stands nowhere else.
	Header struct {
		// Rules is the version of the machine's rules that the run was begun with.
		Rules int

		// Labels are the caller's words to find runs by; see [Filter].
		Labels map[string]string

		// Config is what the engine needs to go on with the run in another process:
		// prompt, tools, digests, settings. The journal does not look at it.
		Config json.RawMessage

		// Parent and ParentSeq name the run that this one was forked from, and the
		// last record of it that counts. Both are zero for a run of its own.
		Parent    string
		ParentSeq uint64
	}

	// Step is an input that the machine accepted and that changed its state. A
	// journal does not hold [machine.Begin].
	Step struct{ Input machine.Input }

	// Note is what somebody other than the machine has to remember: a budget that
	// was extended, an obligation that was met. The journal does not look at Data,
	// which is JSON or nil.
	Note struct {
		Kind string
		Data json.RawMessage
	}
)

func (Header) body() {}
func (Step) body()   {}
func (Note) body()   {}

// inboxKeys are the keys of the outside inputs that a body takes from the inbox.
func inboxKeys(b Body) []string {
	s, ok := b.(Step)
	if !ok {
		return nil
	}
	switch in := s.Input.(type) {
	case machine.AppendInput:
		return in.Keys
	case machine.Steer:
		return in.Keys
	default: // no other input stands for outside input
		return nil
	}
}

// InboxKeys are the keys of the outside inputs that the bodies take from the
// inbox, in order. It is for stores.
func InboxKeys(bodies ...Body) []string {
	var keys []string
	for _, b := range bodies {
		keys = append(keys, inboxKeys(b)...)
	}
	return keys
}
