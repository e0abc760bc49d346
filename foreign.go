// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"context"
	"fmt"
	"reflect"
	"runtime/debug"

	"github.com/fiducial-dev/fiducial/tool"
)

// What others wrote may panic, and so may the errors that they give: a nil pointer in
// an error has no text, and whoever asks it for one, later and with a lock held, would
// pay for it. What comes in from a hook, a client, a journal or a function of the
// caller's goes through guarded, or through sayable.

// guarded calls a function of the caller's and makes an error of a panic, so that
// the run ends in order.
func guarded[T any](f func() (T, error)) (v T, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = &tool.PanicError{Value: p, Stack: debug.Stack()}
		}
	}()
	v, err = f()
	return v, sayable(err)
}

// tried is guarded for a function that gives nothing but an error.
func tried(f func() error) error {
	_, err := guarded(func() (struct{}, error) { return struct{}{}, f() })
	return err
}

// sayable is err, or an error in its place that can be asked for its text. As far as
// it can be looked into, errors.Is and errors.As find in it what they found in err.
func sayable(err error) error {
	if err == nil {
		return nil
	}
	if isNilPointer(err) {
		return &unsaid{text: fmt.Sprintf("a nil %T in an error", err)}
	}
	left := maxCauses
	whole := sound(err, &left)
	text, ok := fmt.Sprintf("an error of type %T whose causes have no end", err), true
	if left >= 0 {
		text, ok = textOf(err)
	}
	switch {
	case !ok && whole:
		return &unsaid{fmt.Sprintf("an error of type %T whose text panics", err), err}
	case !ok:
		return &unsaid{text: fmt.Sprintf("an error of type %T whose text panics", err)}
	case !whole:
		return &unsaid{text: text}
	}
	return err
}

// unsaid stands in for an error that has no text.
type unsaid struct {
	text string
	err  error
}

func (u *unsaid) Error() string { return u.text }
func (u *unsaid) Unwrap() error { return u.err }

func textOf(err error) (text string, ok bool) {
	defer func() { _ = recover() }()
	return err.Error(), true
}

func isNilPointer(err error) bool {
	v := reflect.ValueOf(err)
	return v.Kind() == reflect.Pointer && v.IsNil()
}

// maxCauses is how many errors, one in the other, are looked into.
const maxCauses = 100

// sound reports whether all that err wraps can be looked at by errors.Is and errors.As:
// there is an end to it, and no nil pointer, which whoever finds it would follow.
func sound(err error, left *int) (ok bool) {
	defer func() {
		if recover() != nil {
			ok = false
		}
	}()
	return soundBelow(err, left)
}

func soundBelow(err error, left *int) bool {
	if *left--; *left < 0 || isNilPointer(err) {
		return false
	}
	switch e := err.(type) { //nolint:errorlint // it is this error that is looked at, then each below it
	case interface{ Unwrap() error }:
		below := e.Unwrap()
		return below == nil || soundBelow(below, left)
	case interface{ Unwrap() []error }:
		for _, below := range e.Unwrap() {
			if below != nil && !soundBelow(below, left) {
				return false
			}
		}
	}
	return true
}

// trusted is m with panics that are told apart from those of other code: what is being
// masked can be of no use when the Masker fails, and the call of the engine ends with
// an error; see maskFailed.
func trusted(m Masker) Masker {
	if s, ok := m.(StreamMasker); ok {
		return trustedStream{trustedMask{m}, s}
	}
	return trustedMask{m}
}

type trustedMask struct{ m Masker }

func (t trustedMask) Text(s string) string {
	defer markPanic()
	return t.m.Text(s)
}

func (t trustedMask) Found(s string) bool {
	defer markPanic()
	return t.m.Found(s)
}

type trustedStream struct {
	trustedMask
	s StreamMasker
}

func (t trustedStream) Settled(s string) int {
	defer markPanic()
	return t.s.Settled(s)
}

// maskPanic is the panic of a Masker on its way through the engine.
type maskPanic struct{ err *tool.PanicError }

func (p maskPanic) String() string { return "the Masker: " + p.err.Error() }

func markPanic() {
	if p := recover(); p != nil {
		panic(maskPanic{&tool.PanicError{Value: p, Stack: debug.Stack()}})
	}
}

// maskFailed, deferred, makes an error of the panic of a Masker.
func (c *core) maskFailed(op string, err *error) {
	if c.cfg.masker == nil {
		return // so that other panics are not looked at
	}
	switch p := recover().(type) {
	case nil:
	case maskPanic:
		*err = fail(KindConfig, op, p.err, "the Masker of WithMask failed")
	default:
		panic(p)
	}
}

// causeOf is why a context has ended, nil when it has not.
func causeOf(ctx context.Context) error {
	return sayable(context.Cause(ctx))
}

// checkContext refuses a nil context, which nothing below could ask for its end.
func checkContext(ctx context.Context, op string) error {
	if ctx == nil {
		return fail(KindConfig, op, nil, "the context is nil; give one, such as that of the request or of main")
	}
	return nil
}
