// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/llm"
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

// CheckOffer says what is wrong with an offer. It is for stores.
func CheckOffer(run, key string, m llm.Message) error {
	bad := func(why string) error {
		return &Error{Kind: KindInvalid, Op: "offer", Run: run, Err: errors.New(why)}
	}
	if err := CheckRun("offer", run); err != nil {
		return err
	}
	switch {
	case key == "":
		return bad("the key is empty")
	case len(key) > MaxKey:
		return bad(fmt.Sprintf("the key is longer than %d bytes", MaxKey))
	case m.Role != llm.RoleUser:
		return bad(fmt.Sprintf("the message is of role %q, only a user's can be offered", m.Role))
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
