// SPDX-License-Identifier: Apache-2.0

package transcript

import "fmt"

// A Kind of error is what a caller may branch on.
type Kind uint8

// The kinds of [Error].
const (
	KindWrite    Kind = iota + 1 // the event or the summary is not stored: disk full, permissions
	KindRead                     // a file cannot be read
	KindInvalid                  // an argument is not usable; nothing was written
	KindNotFound                 // there is no such run
	KindDamaged                  // a complete line is no event, or events are missing; see Offset
	KindUnsafe                   // the folder of the runs is a link
)

// An Error is what every function here returns when it fails.
type Error struct {
	Kind   Kind
	Op     string // for example "append"
	Run    string // the run's id, if known
	Offset int64  // in bytes, where the transcript is damaged
	Err    error  // the cause; never nil
}

func (e *Error) Error() string {
	s := "transcript: " + e.Op
	if e.Run != "" {
		s += " " + e.Run
	}
	if e.Kind == KindDamaged {
		s += fmt.Sprintf(" at byte %d", e.Offset)
	}
	return s + ": " + e.Err.Error()
}

func (e *Error) Unwrap() error { return e.Err }
