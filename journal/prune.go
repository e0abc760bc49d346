// SPDX-License-Identifier: Apache-2.0

package journal

import (
	"context"
	"errors"
	"time"
)

// A Policy says which runs are kept. The zero value keeps all.
type Policy struct {
	// OlderThan, if not zero, gives up runs that were last updated before.
	OlderThan time.Time

	// Keep, if not 0, gives up all but the last so many of the runs that have ended.
	Keep int

	// Labels, if not empty, limits both to the runs that have all of these.
	Labels map[string]string
}

// Prune deletes the runs that have ended and that the policy gives up, and returns
// their names, also with an error. A run that is held, that has not ended, or that
// cannot be described is never touched. What could not be deleted does not keep
// Prune from the others; the errors are joined.
func Prune(ctx context.Context, j Journal, p Policy) ([]string, error) {
	if p.OlderThan.IsZero() && p.Keep <= 0 {
		return nil, nil
	}
	ended := true
	var old []string
	var errs []error
	n := 0
	for info, err := range j.Runs(ctx, Filter{Ended: &ended, Labels: p.Labels}) { // the last updated first
		switch {
		case err != nil && info.Run == "":
			return nil, err
		case err != nil || info.Held:
			continue
		}
		n++
		if p.Keep > 0 && n > p.Keep || info.Updated.Before(p.OlderThan) {
			old = append(old, info.Run)
		}
	}
	var gone []string
	for _, run := range old {
		if ctx.Err() != nil {
			return gone, errors.Join(append(errs, context.Cause(ctx))...)
		}
		now, err := j.Stat(ctx, run) // it may have been taken up again
		if err == nil && now.Ended && !now.Held {
			if err = j.Delete(ctx, run); err == nil {
				gone = append(gone, run)
			}
		}
		if err != nil && !errors.Is(err, ErrHeld) && !errors.Is(err, ErrNotFound) {
			errs = append(errs, err)
		}
	}
	return gone, errors.Join(errs...)
}
