// SPDX-License-Identifier: Apache-2.0

package kicadcli

import (
	"fmt"
	"strings"
)

// A Kind is what a caller may branch on.
type Kind uint8

// The kinds.
const (
	NotFound    Kind = iota + 1 // there is no kicad-cli
	TooOld                      // kicad-cli is older than 8
	Timeout                     // the time limit passed; the process group was killed
	Crashed                     // kicad-cli died by a signal
	NotLoaded                   // kicad-cli could not load the file
	NoReport                    // kicad-cli said it was done and left no output file
	BadOutput                   // the output or the exit code cannot be understood
	BadInput                    // the file is missing or of a kind that is not handled
	Environment                 // the private folders could not be made
)

// String names the kind in a word or two.
func (k Kind) String() string {
	names := []string{"", "not found", "too old", "timeout", "crashed", "not loaded", "no report", "bad output", "bad input", "environment"}
	if int(k) >= len(names) {
		return fmt.Sprintf("Kind(%d)", uint8(k))
	}
	return names[k]
}

// An Error is every failure of this package but the end of the caller's context, which is returned as it is.
type Error struct {
	Kind     Kind
	Command  string // the command line, "" when nothing was run
	ExitCode int    // -1 for a signal
	Stderr   string // what kicad-cli said: stderr, else stdout
	Detail   string // what happened and what to do
	Err      error  // the cause, may be nil
}

func (e *Error) Error() string {
	var b strings.Builder
	b.WriteString("kicad-cli: " + e.Detail)
	if e.Stderr != "" {
		fmt.Fprintf(&b, "; kicad-cli says: %s", e.Stderr)
	}
	if e.Command != "" {
		fmt.Fprintf(&b, " (exit code %d of: %s)", e.ExitCode, e.Command)
	}
	if e.Err != nil && !strings.Contains(e.Detail, e.Err.Error()) {
		fmt.Fprintf(&b, ": %v", e.Err)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// Is makes errors.Is(err, &Error{Kind: k}) true for every error of that kind.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Kind == e.Kind && t.Command == "" && t.Detail == ""
}
