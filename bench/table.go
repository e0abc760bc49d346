// SPDX-License-Identifier: Apache-2.0

// Package bench compares what a round of an agent costs: a reply with calls, the
// calls, and their results. It runs all contenders side by side, in one process. It
// is for Unix, because it asks for CPU time.
package bench

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"syscall"
	"time"
)

// A runner is one run that is set up.
type runner func(context.Context) error

type contender struct {
	name string
	make func(ctx context.Context, rounds, calls int) (runner, error)
}

var contenders = []contender{
	{"by hand", byHand},
	{"fiducial", ours(false)},
	{"fiducial, journal in memory", ours(true)},
	{"fantasy", fantasys},
	{"eino react", einos},
}

// Options say how much is measured.
type Options struct {
	Rounds      int // for each figure and repetition
	Repetitions int // of which the best counts
	Paused      int // runs to pause
}

// Run measures and writes markdown.
func Run(ctx context.Context, w io.Writer, o Options) error {
	fmt.Fprintf(w, "%s, %s, %s/%s, %d cores\n\n", time.Now().Format(time.DateOnly), runtime.Version(), runtime.GOOS, runtime.GOARCH, runtime.NumCPU())
	fmt.Fprintln(w, "| a round of | T | N=10 | N=100 | N=1000 | growth 100 to 1000 | bytes | allocations |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|")
	for _, calls := range []int{1, 4} {
		for _, c := range contenders {
			row := map[int]cost{}
			for _, n := range []int{10, 100, 1000} {
				for range o.Repetitions {
					got, err := measure(ctx, c, n, calls, max(o.Rounds/n, 1))
					if err != nil {
						return fmt.Errorf("%s, N=%d, T=%d: %w", c.name, n, calls, err)
					}
					row[n] = better(row[n], got)
				}
			}
			growth := float64(row[1000].cpu)/float64(row[100].cpu) - 1
			fmt.Fprintf(w, "| %s | %d | %s | %s | %s | %+.2f | %d | %d |\n", c.name, calls,
				us(row[10].cpu), us(row[100].cpu), us(row[1000].cpu), growth, row[100].bytes, row[100].allocs)
		}
	}
	fmt.Fprintf(w, "\nT is the calls of a round, N the rounds of a run. Times are CPU time of the process, the set-up of agent and tool\n"+
		"left out, the best of several; bytes and allocations are those of N=100. Every run checks that each call ran once\n"+
		"and that every result reached the model. The peers run without streaming, which is the cheaper of their ways.\n")
	return pausedRuns(ctx, w, o.Paused)
}

type cost struct {
	cpu           time.Duration // for each round
	bytes, allocs uint64
}

func better(a, b cost) cost {
	if a.cpu == 0 || b.cpu < a.cpu {
		return b
	}
	return a
}

func us(d time.Duration) string { return fmt.Sprintf("%.1f µs", float64(d)/1e3) }

func measure(ctx context.Context, c contender, rounds, calls, runs int) (cost, error) {
	todo := make([]runner, runs)
	for i := range todo {
		f, err := c.make(ctx, rounds, calls)
		if err != nil {
			return cost{}, err
		}
		todo[i] = f
	}
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	began := cpuTime()
	for _, f := range todo {
		if err := f(ctx); err != nil {
			return cost{}, err
		}
	}
	took := cpuTime() - began
	runtime.ReadMemStats(&after)
	n := uint64(rounds * runs)
	return cost{took / time.Duration(n), (after.TotalAlloc - before.TotalAlloc) / n, (after.Mallocs - before.Mallocs) / n}, nil
}

func cpuTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		return 0
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
