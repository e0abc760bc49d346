// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
)

type handMessage struct {
	calls   []handCall
	results []string
}

type handCall struct{ id, args string }

// byHand is the least that a program can do: no types, no checks, no limits, no
// retries, one call after another.
func byHand(_ context.Context, rounds, calls int) (runner, error) {
	s := newScript(rounds, calls, func(round int) handMessage {
		m := handMessage{}
		for i := range calls {
			m.calls = append(m.calls, handCall{id(round, i), args(round)})
		}
		return m
	}, handMessage{})
	return func(context.Context) error {
		history := []handMessage{{}}
		for {
			last := history[len(history)-1]
			reply, err := s.next(len(last.results), func(i int, want string) bool { return last.results[i] == want })
			if err != nil {
				return err
			}
			if len(reply.calls) == 0 {
				return s.check()
			}
			results := make([]string, len(reply.calls))
			for i, c := range reply.calls {
				var in addArgs
				if err := json.Unmarshal([]byte(c.args), &in); err != nil {
					return err
				}
				results[i] = s.add(in)
			}
			history = append(history, reply, handMessage{results: results})
		}
	}, nil
}
