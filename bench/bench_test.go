// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"fmt"
	"testing"
)

// BenchmarkRound is the table of Run as Go benchmarks, for benchstat.
func BenchmarkRound(b *testing.B) {
	for _, c := range contenders {
		for _, calls := range []int{1, 4} {
			for _, rounds := range []int{10, 100, 1000} {
				b.Run(fmt.Sprintf("%s/T=%d/N=%d", c.name, calls, rounds), func(b *testing.B) {
					b.ReportAllocs()
					for left := b.N; left > 0; left -= rounds {
						b.StopTimer()
						run, err := c.make(b.Context(), min(rounds, left), calls)
						if err != nil {
							b.Fatal(err)
						}
						b.StartTimer()
						if err := run(b.Context()); err != nil {
							b.Fatal(err)
						}
					}
				})
			}
		}
	}
}
