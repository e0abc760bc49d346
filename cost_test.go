// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"fmt"
	"iter"
	"math"
	"runtime"
	"testing"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
)

// A counter is a model that asks for one call in each of its rounds. It tells how
// often the history moved to another array, and sees that no message of it was made
// anew.
type counter struct {
	rounds int
	asked  int
	moved  int
	first  *llm.Message
	parts  []*llm.Part // where the parts of each message began when it came up
	anew   int
}

func (c *counter) Stream(_ context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	if first := &req.Messages[0]; c.first != first {
		c.first = first
		c.moved++
	}
	for i, m := range req.Messages {
		if i == len(c.parts) {
			c.parts = append(c.parts, &m.Parts[0])
		} else if c.parts[i] != &m.Parts[0] {
			c.anew++
		}
	}
	c.asked++
	if c.asked > c.rounds {
		return collect.Events(collect.Reply{Message: llm.AssistantText("done")})
	}
	call := llm.Call{ID: fmt.Sprint("c", c.asked), Name: "add", Args: `{"a":2,"b":3}`}
	return collect.Events(collect.Reply{Message: llm.AssistantCalls(call)})
}

// costed tries f with engines that are put together in several ways.
func costed(f func(t *testing.T, options func() []fiducial.Option)) func(*testing.T) {
	return func(t *testing.T) {
		for name, options := range map[string]func() []fiducial.Option{
			"plain":   func() []fiducial.Option { return nil },
			"journal": func() []fiducial.Option { return []fiducial.Option{fiducial.WithJournal(journal.NewMemory(), "r")} },
			"events":  func() []fiducial.Option { return []fiducial.Option{fiducial.WithEvents(fiducial.NullSink{})} },
			"hooks": func() []fiducial.Option {
				return []fiducial.Option{fiducial.WithInterceptor(fiducial.NopInterceptor{})}
			},
			"pruning": func() []fiducial.Option { return []fiducial.Option{fiducial.WithPruning(fiducial.PruneConfig{})} },
			"guard":   func() []fiducial.Option { return []fiducial.Option{fiducial.WithLoopGuard(1 << 30)} },
			"mask":    func() []fiducial.Option { return []fiducial.Option{fiducial.WithMask(maskOf("secret"))} },
		} {
			t.Run(name, func(t *testing.T) { f(t, options) })
		}
	}
}

func runCosted(t *testing.T, rounds int, options []fiducial.Option) *counter {
	t.Helper()
	model := &counter{rounds: rounds}
	all := append([]fiducial.Option{fiducial.WithTools(sumTool()), fiducial.WithLoopGuard(0)}, options...)
	_, out, err := fiducial.New(model, all...).Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.Finished)
	equal(t, "batches", out.Batches, rounds)
	return model
}

// TestHistoryIsNotCopied: a request is the history itself. Its array moves when it is
// full, as that of any slice that grows, and no message is made anew for a request.
func TestHistoryIsNotCopied(t *testing.T) {
	t.Parallel()
	costed(func(t *testing.T, options func() []fiducial.Option) {
		t.Parallel()
		const rounds = 1000
		m := runCosted(t, rounds, options())
		equal(t, "messages made anew", m.anew, 0)
		if m.moved > 25 { // 2001 messages by append: 18 arrays
			t.Errorf("the history moved %d times in %d rounds", m.moved, rounds)
		}
	})(t)
}

// TestRoundsDoNotGrow: what a round allocates does not depend on how many there were,
// so nothing old is copied or written again. It must run alone.
func TestRoundsDoNotGrow(t *testing.T) { //nolint:paralleltest // it counts what the process allocates
	costed(func(t *testing.T, options func() []fiducial.Option) {
		allocated := func(rounds int) (bytes, objects float64) {
			best := [2]float64{1e18, 1e18}
			for range 3 {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				runCosted(t, rounds, options())
				runtime.ReadMemStats(&after)
				best[0] = min(best[0], float64(after.TotalAlloc-before.TotalAlloc)/float64(rounds))
				best[1] = min(best[1], float64(after.Mallocs-before.Mallocs)/float64(rounds))
			}
			return best[0], best[1]
		}
		b1, n1 := allocated(200)
		b2, n2 := allocated(2000)
		t.Logf("a round of 200: %.0f bytes in %.1f objects; of 2000: %.0f in %.1f", b1, n1, b2, n2)
		// Arrays that double make up to a third of the bytes differ; one copy of the
		// history for each round would be 50 KB.
		if b2 > 1.5*b1 || n2 > n1+1 {
			t.Errorf("a round of 200 takes %.0f bytes in %.1f objects, one of 2000 %.0f in %.1f", b1, n1, b2, n2)
		}
	})(t)
}

// TestBareRound: a round with nothing but a model and a tool stays within what it took
// when this was written, 22.2 objects: an input or a request that escapes to the heap
// is one more. It must run alone.
func TestBareRound(t *testing.T) { //nolint:paralleltest // it counts what the process allocates
	const rounds = 2000
	best := math.Inf(1)
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		runCosted(t, rounds, nil)
		runtime.ReadMemStats(&after)
		best = min(best, float64(after.Mallocs-before.Mallocs)/rounds)
	}
	if best > 24.5 { // 23.7 with the race detector
		t.Errorf("a round takes %.1f objects", best)
	}
}

// readings counts how often a mask looks at a text, so that a message which is looked
// at twice shows.
type readings struct{ n map[string]int }

func (r readings) Text(s string) string { r.n[s]++; return s }
func (r readings) Found(string) bool    { return false }

// TestNothingOldIsReadAgain: each text is masked once, when it becomes history.
func TestNothingOldIsReadAgain(t *testing.T) {
	t.Parallel()
	seen := readings{map[string]int{}}
	runCosted(t, 50, []fiducial.Option{fiducial.WithMask(seen)})
	equal(t, "readings of the input", seen.n["go"], 1)
	equal(t, "readings of the results", seen.n["5"], 50)
}
