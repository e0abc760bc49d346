// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"errors"
	"fmt"
	"sync/atomic"
)

// script is what every contender's model does: for a number of rounds it asks for
// calls of one tool that adds two integers, then it says that it is done. It
// checks that the results of the round before are all there. Replies are made
// before the clock runs.
type script[R any] struct {
	calls   int
	replies []R
	last    R
	asked   int
	added   atomic.Int64 // runs of the tool
}

func newScript[R any](rounds, calls int, reply func(round int) R, last R) *script[R] {
	s := &script[R]{calls: calls, last: last, replies: make([]R, rounds)}
	for i := range s.replies {
		s.replies[i] = reply(i)
	}
	return s
}

func args(round int) string           { return fmt.Sprintf(`{"a":%d,"b":3}`, round) }
func id(round, ordinal int) string    { return fmt.Sprintf("call_%d_%d", round, ordinal) }
func sumOf(round int) (result string) { return fmt.Sprint(round + 3) }

// next is the reply to a request whose last message holds the results got, each
// as text. It is not asked again for a round.
func (s *script[R]) next(results int, right func(i int, want string) bool) (R, error) {
	round := s.asked
	s.asked++
	if round > 0 {
		if results != s.calls {
			return s.last, fmt.Errorf("round %d: %d results for %d calls", round, results, s.calls)
		}
		want := sumOf(round - 1)
		for i := range results {
			if !right(i, want) {
				return s.last, fmt.Errorf("round %d: result %d is wrong", round, i)
			}
		}
	}
	if round < len(s.replies) {
		return s.replies[round], nil
	}
	return s.last, nil
}

// check is asked when the run is over.
func (s *script[R]) check() error {
	switch want := int64(len(s.replies) * s.calls); {
	case s.asked != len(s.replies)+1:
		return fmt.Errorf("the model was asked %d times", s.asked)
	case s.added.Load() != want:
		return fmt.Errorf("%d calls ran, not %d", s.added.Load(), want)
	}
	return nil
}

type addArgs struct {
	A int `json:"a" jsonschema:"the first summand" description:"the first summand"`
	B int `json:"b" jsonschema:"the second summand" description:"the second summand"`
}

func (s *script[R]) add(in addArgs) string {
	s.added.Add(1)
	return fmt.Sprint(in.A + in.B)
}

var errUnused = errors.New("not used here")
