// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
)

// A RetryPolicy says how often and when a failed request is sent again. Only
// failures that [llm.Error.Retryable] calls so are. Every attempt sends the same
// input. The zero value is the default: 4 attempts, waits drawn between zero and
// 500 ms, doubling, at most 30 s, and 2 minutes in all since the first failure. Each
// field that is zero has its default; a negative one is refused by Lock.
type RetryPolicy struct {
	Attempts int           // requests in all; 1 turns retries off
	Base     time.Duration // upper bound of the first wait
	Cap      time.Duration // upper bound of every wait; a server that asks for more ends the run
	Total    time.Duration // from the first failure on; an attempt that is under way then is given up
	// Jitter draws the wait from [0, bound]; what is outside is brought inside. Nil means
	// uniformly at random.
	Jitter func(bound time.Duration) time.Duration
}

func (p RetryPolicy) withDefaults() RetryPolicy {
	p.Attempts = max(cmp.Or(p.Attempts, 4), 1)
	p.Base = cmp.Or(p.Base, 500*time.Millisecond)
	p.Cap = cmp.Or(p.Cap, 30*time.Second)
	p.Total = cmp.Or(p.Total, 2*time.Minute)
	if p.Jitter == nil {
		p.Jitter = func(bound time.Duration) time.Duration { return rand.N(min(bound, math.MaxInt64-1) + 1) }
	}
	return p
}

// A WaitError says that the server asks for a longer wait than the policy allows
// (S-124). It wraps the failure.
type WaitError struct {
	Wait, Limit time.Duration
	Err         error
}

func (e *WaitError) Error() string {
	return fmt.Sprintf("the server asks to wait %v, and at most %v is allowed: %v", e.Wait, e.Limit, e.Err)
}

func (e *WaitError) Unwrap() error { return e.Err }

// next decides about one more attempt after the failed-th failure (from 1),
// elapsed since the first. A nil error means: wait, then try again.
func (p RetryPolicy) next(failed int, elapsed time.Duration, cause error) (time.Duration, error) {
	e, ok := errors.AsType[*llm.Error](cause)
	if !ok || !e.Retryable() || failed >= p.Attempts {
		return 0, cause
	}
	if e.RetryAfter > 0 {
		if limit := min(p.Cap, p.Total-elapsed); e.RetryAfter > limit {
			return 0, &WaitError{Wait: e.RetryAfter, Limit: max(limit, 0), Err: cause}
		}
		return e.RetryAfter, nil
	}
	bound := p.Cap
	if shift := failed - 1; shift < 20 && p.Base < p.Cap>>shift {
		bound = p.Base << shift
	}
	wait, err := guarded(func() (time.Duration, error) { return p.Jitter(bound), nil })
	if err != nil {
		return 0, fmt.Errorf("%w; the Jitter of the retry policy: %w", cause, err)
	}
	wait = min(max(wait, 0), bound)
	if wait >= p.Total-elapsed {
		return 0, cause
	}
	return wait, nil
}
