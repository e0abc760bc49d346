// SPDX-License-Identifier: Apache-2.0

package journaltest

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// observation is a step of about n bytes.
func observation(n int) journal.Step {
	return journal.Step{Input: machine.Settled{Op: 7, Ordinal: 0, Result: llm.Result{
		CallID: "call_1", Name: "read_file", Status: llm.StatusSuccess, Summary: "read",
		Content: strings.Repeat("(pin passive line (at 0 0 0))\n", n/30),
	}}}
}

// BenchAppend reports how many 2 KB records a second are acknowledged, each writer
// on a run of its own.
func BenchAppend(b *testing.B, s Store) {
	for _, writers := range []int{1, 8} {
		b.Run(fmt.Sprint("writers=", writers), func(b *testing.B) {
			j := s.open(b, b.TempDir())
			leases := make([]journal.Lease, writers)
			for i := range leases {
				run := fmt.Sprint("r", i)
				create(b, j, run)
				leases[i] = acquire(b, j, run)
			}
			body := observation(2048)
			mark := journal.Mark{Phase: "tools", Pending: 7}
			var left atomic.Int64
			left.Store(int64(b.N))
			b.ReportAllocs()
			b.ResetTimer()
			var wg sync.WaitGroup
			for _, l := range leases {
				wg.Go(func() {
					for left.Add(-1) >= 0 {
						if err := l.Append(b.Context(), mark, body); err != nil {
							b.Error(err)
							return
						}
					}
				})
			}
			wg.Wait()
			b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "appends/s")
		})
	}
}

// BenchReload reads a run of 10,000 records of 2 KB as a new owner does.
func BenchReload(b *testing.B, s Store) {
	const n = 10_000
	j := s.open(b, b.TempDir())
	if err := j.Create(b.Context(), "r", journal.Header{Config: json.RawMessage(`{}`)}); err != nil {
		b.Fatal(err)
	}
	l := acquire(b, j, "r")
	bodies := make([]journal.Body, 100)
	for i := range bodies {
		bodies[i] = observation(2048)
	}
	for range n / len(bodies) {
		add(b, l, bodies...)
	}
	for b.Loop() {
		if err := l.Release(b.Context()); err != nil {
			b.Fatal(err)
		}
		l = acquire(b, j, "r")
		if got := len(read(b, j, "r")); got != n+1 {
			b.Fatalf("%d records, want %d", got, n+1)
		}
	}
	b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N), "ms/reload")
}
