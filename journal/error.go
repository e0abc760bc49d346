// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"strings"
)

// The errors to branch on, by [errors.Is].
var (
	ErrExists    = errors.New("a run of this name exists")
	ErrNotFound  = errors.New("there is no such run")
	ErrHeld      = errors.New("the run is held by another process or engine")
	ErrFenced    = errors.New("the lease has ended")
	ErrTaken     = errors.New("the outside input was taken before")
	ErrInvalid   = errors.New("the call is not valid")
	ErrFull      = errors.New("there is no room left to store it")
	ErrStorage   = errors.New("the store failed")
	ErrUncertain = errors.New("the store failed and the records may be stored or not")
	ErrDamaged   = errors.New("the log is damaged")
	ErrFormat    = errors.New("the log was written by another version")
	ErrReadOnly  = errors.New("the journal was opened for reading only")
	ErrClosed    = errors.New("the journal is closed")
)

// ErrReplaced is the cause of an [ErrFenced] that no other lease has brought about: a
// person, or another program, took away or changed what the lease wrote to. Nothing
// more can be stored in it; the run goes on from what is there when it is acquired
// anew.
var ErrReplaced = errors.New("it was removed, replaced or changed under its writer")

// Kind is the class of an [Error].
type Kind uint8

// The kinds, each with the error that [errors.Is] finds.
const (
	KindExists    Kind = iota + 1 // ErrExists
	KindNotFound                  // ErrNotFound
	KindFenced                    // ErrFenced
	KindTaken                     // ErrTaken
	KindInvalid                   // ErrInvalid
	KindFull                      // ErrFull
	KindStorage                   // ErrStorage
	KindUncertain                 // ErrUncertain
	KindReadOnly                  // ErrReadOnly
	KindClosed                    // ErrClosed
)

func (k Kind) sentinel() error {
	switch k {
	case KindExists:
		return ErrExists
	case KindNotFound:
		return ErrNotFound
	case KindFenced:
		return ErrFenced
	case KindTaken:
		return ErrTaken
	case KindInvalid:
		return ErrInvalid
	case KindFull:
		return ErrFull
	case KindStorage:
		return ErrStorage
	case KindUncertain:
		return ErrUncertain
	case KindReadOnly:
		return ErrReadOnly
	case KindClosed:
		return ErrClosed
	}
	return nil
}

// An Error is what a journal answers when it cannot do what it was asked for.
type Error struct {
	Kind Kind
	Op   string // what was being done, such as "append"
	Run  string // empty when no run is concerned
	Err  error  // the cause, or nil
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("journal: ")
	b.WriteString(e.Op)
	if e.Run != "" {
		fmt.Fprintf(&b, " %s", e.Run)
	}
	if s := e.Kind.sentinel(); s != nil {
		fmt.Fprintf(&b, ": %v", s)
	}
	if e.Err != nil {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Is reports whether target is the sentinel of the kind.
func (e *Error) Is(target error) bool {
	s := e.Kind.sentinel()
	return s != nil && target == s
}

// A HeldError says who holds the run.
type HeldError struct {
	Run   string
	Owner string // as given to Acquire; empty when it cannot be told
}

func (e *HeldError) Error() string {
	who := e.Owner
	if who == "" {
		who = "an unnamed owner"
	}
	return fmt.Sprintf("journal: run %s is held by %s: wait for it, or stop that process", e.Run, who)
}

// Is reports whether target is [ErrHeld].
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// A DamageError says where a store stopped being what was written. Nothing before
// that place is concerned. What cannot be read is given up by [Folder.Repair], and by
// the function Repair of journal/sqlite, when a person asks for it.
type DamageError struct {
	Run    string // empty when no run can be named
	Where  string // file or table
	Offset int64  // in bytes from the start of the file; -1 when it cannot be told
	Seq    uint64 // of the record that should stand there, 0 when it is no record
	Reason string
}

func (e *DamageError) Error() string {
	var b strings.Builder
	b.WriteString("journal: ")
	if e.Run != "" {
		fmt.Fprintf(&b, "run %s", e.Run)
	} else {
		b.WriteString("the store")
	}
	fmt.Fprintf(&b, " is damaged in %s", e.Where)
	if e.Seq > 0 {
		fmt.Fprintf(&b, ", record %d", e.Seq)
	}
	if e.Offset >= 0 {
		fmt.Fprintf(&b, ", at byte %d", e.Offset)
	}
	fmt.Fprintf(&b, ": %s: restore a copy, or repair it and lose what cannot be read", e.Reason)
	return b.String()
}

// Is reports whether target is [ErrDamaged].
func (e *DamageError) Is(target error) bool { return target == ErrDamaged }

// A FormatError reports a record that is whole but that this version cannot
// read. It is never skipped.
type FormatError struct {
	Version int    // the record's format version
	Kind    string // the record's kind and name when the version is known, else empty
	Err     error
}

func (e *FormatError) Error() string {
	what := fmt.Sprintf("has format version %d, this program reads up to %d", e.Version, FormatVersion)
	if e.Version <= FormatVersion {
		what = fmt.Sprintf("of kind %q is not known to this program", e.Kind)
	}
	s := "journal: a record " + what + ": use a newer version"
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

func (e *FormatError) Unwrap() error { return e.Err }

// Is reports whether target is [ErrFormat].
func (e *FormatError) Is(target error) bool { return target == ErrFormat }
