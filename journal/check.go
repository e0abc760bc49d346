// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// FormatVersion is the version of the record format that this package writes.
const FormatVersion = 1

// MaxRun is the largest length of a run's name in bytes.
const MaxRun = 128

// CheckRun says what is wrong with the name of a run. A name consists of ASCII
// letters, digits, dots, hyphens and underscores, begins with a letter or digit
// and has no two dots in a row nor one at its end, so that it is a file name
// everywhere.
func CheckRun(op, run string) error {
	bad := func(why string) error {
		return &Error{Kind: KindInvalid, Op: op, Err: fmt.Errorf("run name %q: %s", run, why)}
	}
	switch {
	case run == "":
		return bad("it is empty")
	case len(run) > MaxRun:
		return bad(fmt.Sprintf("it is longer than %d bytes", MaxRun))
	case strings.Contains(run, "..") || strings.HasSuffix(run, "."):
		return bad("it has two dots in a row or one at its end")
	}
	for i, c := range []byte(run) {
		alnum := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !alnum && (i == 0 || !strings.ContainsRune("._-", rune(c))) {
			return bad("use letters, digits, dots, hyphens and underscores, a letter or digit first")
		}
	}
	return nil
}

// CheckHeader says what is wrong with a header. It is for stores.
func CheckHeader(op, run string, h Header) error {
	if h.Parent == "" {
		return nil
	}
	if err := CheckRun(op, h.Parent); err != nil {
		return &Error{Kind: KindInvalid, Op: op, Run: run, Err: fmt.Errorf("the parent: %w", err)}
	}
	return nil
}

// MaxPhase is the largest length of a [Mark]'s phase in bytes.
const MaxPhase = 128

// CheckMark says what is wrong with a mark. It is for stores.
func CheckMark(op, run string, m Mark) error {
	var why error
	switch {
	case len(m.Phase) > MaxPhase:
		why = fmt.Errorf("the phase has %d bytes, and may have %d", len(m.Phase), MaxPhase)
	case !utf8.ValidString(m.Phase):
		why = fmt.Errorf("the phase %q is not UTF-8", m.Phase)
	default:
		return nil
	}
	return &Error{Kind: KindInvalid, Op: op, Run: run, Err: why}
}

// MaxEpoch is the largest epoch of a lease, which no run comes to by being taken up:
// records that are restored have an epoch of half of it at most.
const MaxEpoch = 1<<53 - 1

// NextEpoch is the epoch that follows the last one, a [*DamageError] where none can.
// It is for stores.
func NextEpoch(run string, last uint64) (uint64, error) {
	if last >= MaxEpoch {
		return 0, &DamageError{
			Run: run, Where: "the epoch", Offset: -1, Reason: fmt.Sprintf("%d is more than leases there can have been", last),
		}
	}
	return last + 1, nil
}

// CheckBodies says what is wrong with the bodies of an append. It is for stores.
func CheckBodies(run string, bodies []Body) error {
	bad := func(why string) error {
		return &Error{Kind: KindInvalid, Op: "append", Run: run, Err: errors.New(why)}
	}
	if len(bodies) == 0 {
		return bad("no body was given")
	}
	for _, b := range bodies {
		switch b := b.(type) {
		case Header:
			return bad("a header stands at the beginning only")
		case Step:
			if b.Input == nil {
				return bad("a step has no input")
			}
			for _, key := range inboxKeys(b) {
				if err := checkKey(key); err != nil {
					return bad(err.Error())
				}
			}
		case Note:
			if b.Kind == "" {
				return bad("a note has no kind")
			}
		case nil:
			return bad("a body is nil")
		}
	}
	return nil
}

// MaxKey is the largest length of an inbox key in bytes.
const MaxKey = 512

func checkKey(key string) error {
	switch {
	case key == "":
		return errors.New("the inbox key is empty")
	case len(key) > MaxKey:
		return fmt.Errorf("the inbox key is longer than %d bytes", MaxKey)
	case !utf8.ValidString(key):
		return fmt.Errorf("the inbox key %q is not UTF-8", key)
	}
	return nil
}

// CheckOffer says what is wrong with an offer: [ErrInvalid] for a key that is empty,
// long or not UTF-8, for a message that is no user's, and for one that reads back as
// another, with the cause that [machine.StorableMessage] gives. It is for stores.
func CheckOffer(run, key string, m llm.Message) error {
	if err := CheckRun("offer", run); err != nil {
		return err
	}
	why := checkKey(key)
	if why == nil && m.Role != llm.RoleUser {
		why = fmt.Errorf("the message is of role %q, only a user's can be offered", m.Role)
	}
	if why == nil {
		if err := machine.StorableMessage(m); err != nil {
			why = fmt.Errorf("the message: %w", err)
		}
	}
	if why != nil {
		return &Error{Kind: KindInvalid, Op: "offer", Run: run, Err: why}
	}
	return nil
}

// CheckTaken says which of the keys was taken before, or stands twice. It is for
// stores.
func CheckTaken(run string, keys []string, taken func(key string) bool) error {
	for i, key := range keys {
		if taken(key) || slices.Contains(keys[:i], key) {
			return &Error{Kind: KindTaken, Op: "append", Run: run, Err: fmt.Errorf("inbox key %q", key)}
		}
	}
	return nil
}

// CutOwner is as much of an owner's name as is kept. It is for stores.
func CutOwner(owner string) string { return llm.CutUTF8(owner, 256) }
