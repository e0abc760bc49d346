// SPDX-License-Identifier: Apache-2.0

package journaltest

import (
	"cmp"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
)

// patience is how long the suite waits for one thing that must happen.
func (s Store) patience() time.Duration { return cmp.Or(s.Patience, 10*time.Second) }

// part runs one part of the suite and reports whether it came to its end. A store
// whose call does not return fails its test with the place, instead of hanging until
// the go command's own limit.
func (s Store) part(t *testing.T, name string, run func(*testing.T, Store)) bool {
	t.Helper()
	ended := true
	t.Run(name, func(t *testing.T) {
		limit := 20 * s.patience()
		done := make(chan struct{})
		s.stray = new(sync.WaitGroup)
		t.Cleanup(func() { // the last one: the context has ended and the stores are closed
			gone := make(chan struct{})
			go func() {
				s.stray.Wait()
				close(gone)
			}()
			select {
			case <-gone:
			case <-time.After(s.patience()):
			}
		})
		s.stray.Go(func() {
			defer close(done) // also when the part ends itself by FailNow or SkipNow
			run(t, s)
		})
		timer := time.NewTimer(limit)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
			ended = false
			t.Errorf("%s: a call of the store has not returned for long, or yields without end; the part began %v ago. It stands at\n%s",
				name, limit, standing())
		}
	})
	return ended
}

// standing is the stack of the goroutines that are in a part of the suite.
func standing() string {
	buf := make([]byte, 1<<20)
	buf = buf[:runtime.Stack(buf, true)]
	var out []string
	for g := range strings.SplitSeq(string(buf), "\n\n") {
		if strings.Contains(g, "journaltest.test") && !strings.Contains(g, "journaltest.standing") {
			out = append(out, g)
		}
	}
	return strings.Join(out, "\n\n")
}

// wantLost waits for the end of a lease.
func (s Store) wantLost(t *testing.T, l journal.Lease, after string) {
	t.Helper()
	select {
	case <-l.Lost():
	case <-time.After(s.patience()):
		t.Fatalf("%s ended the lease, and Lost was not closed within %v: the rule of Lease.Lost", after, s.patience())
	}
}

// within runs f, in which the store must do by itself what the rule says.
func (s Store) within(t *testing.T, rule string, f func()) {
	t.Helper()
	done := make(chan bool, 1)
	s.stray.Go(func() {
		whole := false
		defer func() { done <- whole }()
		f()
		whole = true
	})
	select {
	case whole := <-done:
		if !whole {
			t.FailNow()
		}
	case <-time.After(s.patience()):
		t.Fatalf("%s: it has not within %v", rule, s.patience())
	}
}
