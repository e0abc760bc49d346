// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"fmt"
	"strings"
)

// A Kind is what a caller may branch on.
type Kind uint8

// The kinds of [Error].
const (
	KindGit        Kind = iota + 1 // a git command failed; the cause is a [*CommandError]
	KindIO                         // reading or writing a file failed: disk full, permissions
	KindUnreadable                 // a file that must be kept cannot be read; nothing was changed
	KindInvalid                    // an argument is not usable, for example a run id that is no ref name
	KindExists                     // there is a snapshot of this run already
	KindNotFound                   // there is no snapshot of this run
	KindDamaged                    // the snapshot cannot be understood
	KindLocked                     // another run works in this tree; see [Error.Holder]
	KindHeadMoved                  // something else committed or switched branches during the run
	KindOverlap                    // the run's change cannot be told from the user's own in Paths
	KindNothing                    // there is nothing to commit
	KindIdentity                   // git knows no name or e-mail address for a commit
	KindHook                       // a hook of the repository refused the commit
	KindBlocked                    // Paths could not be put back: something that is not ours is in the way
	KindCommitted                  // the run is committed, so there is nothing to restore
)

// An Error is what every function here returns when it fails, except for
// [*PreflightError]. A context's own error is found by errors.Is.
type Error struct {
	Kind   Kind
	Op     string   // for example "restore"
	Paths  []string // the files concerned, relative to the top, with slashes
	Holder Holder   // who holds the lock, for KindLocked
	Advice string   // what to do about it; may be empty
	Err    error    // the cause; never nil
}

func (e *Error) Error() string {
	var b strings.Builder
	fmt.Fprintf(&b, "workspace: %s: %v", e.Op, e.Err)
	if len(e.Paths) > 0 {
		b.WriteString(" (")
		for i, p := range e.Paths {
			if i == 5 {
				fmt.Fprintf(&b, " and %d more", len(e.Paths)-i)
				break
			}
			if i > 0 {
				b.WriteString(", ")
			}
			fmt.Fprintf(&b, "%q", p)
		}
		b.WriteString(")")
	}
	if e.Advice != "" {
		b.WriteString(": " + e.Advice)
	}
	return b.String()
}

func (e *Error) Unwrap() error { return e.Err }

// A CommandError says that a git command ended with a code other than 0.
type CommandError struct {
	Args   []string
	Code   int    // the exit code, or -1 when the command was killed or never ran
	Output string // what it wrote to standard error, and for hooks to standard output
	Err    error
}

func (e *CommandError) Error() string {
	name := "git"
	if len(e.Args) > 0 {
		name += " " + e.Args[0]
	}
	if out := strings.TrimSpace(e.Output); out != "" {
		return fmt.Sprintf("%s: %v: %s", name, e.Err, out)
	}
	return fmt.Sprintf("%s: %v", name, e.Err)
}

func (e *CommandError) Unwrap() error { return e.Err }

// A Check is one of the conditions that [Open], [Repo.Preflight] and [Repo.PreflightIdentity] test, in this order.
type Check uint8

// The checks (B-2).
const (
	CheckGit        Check = iota + 1 // git is there and new enough
	CheckRepository                  // the folder is inside a repository that has a working tree
	CheckCommit                      // HEAD is a commit
	CheckProgress                    // no merge, rebase, cherry-pick, revert or bisect is going on
	CheckClean                       // no change against HEAD, no untracked file
	CheckIdentity                    // git knows a name and an e-mail address for a commit
)

// A PreflightError says why no run can start here. Nothing has been written (B-3).
type PreflightError struct {
	Check    Check
	Reason   string   // one sentence: what is wrong
	Why      string   // one sentence: why a run needs it
	Remedies []string // what to do, the best first
	Err      error    // the cause, or nil
}

func (e *PreflightError) Error() string { return "workspace: " + e.Reason }

func (e *PreflightError) Unwrap() error { return e.Err }
