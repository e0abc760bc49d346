//go:build unix

// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
)

// The runs of BenchmarkDurableSteps.
const (
	stepRounds      = 150  // of one run: three appends each
	stepObservation = 2048 // bytes
	stepPasses      = 11
	stepBlock       = 10 // appends that a run and the raw file take turns with
)

// A pace is what was measured of one store.
type pace struct {
	store           string
	raw, one, ratio []float64 // durable appends and steps a second, one a block
	eight, more     []float64 // steps a second of eight runs, and beside one; one a pass
}

// BenchmarkDurableSteps measures acknowledged records a second of real runs, engine
// included, beside what the same disk makes durable at the same time: a raw file
// that the same bytes are appended to, a sync each. The run and the raw file take
// turns every few appends, and the median is told, so that what else the machine
// does weighs on both alike.
func BenchmarkDurableSteps(b *testing.B) {
	texts, err := appendsOf(b.Context(), stepRounds, stepObservation)
	if err != nil {
		b.Fatal(err)
	}
	var table []*pace
	for _, kind := range []string{"file", "sqlite", "postgres"} {
		p := &pace{store: kind}
		b.Run(kind, func(b *testing.B) { p.measure(b, texts) })
		table = append(table, p)
	}
	showTable(b, paceTable(table))
}

// showTable prints a table below the benchmarks that it is made of.
func showTable(b *testing.B, table string) {
	b.Helper()
	b.Run("table", func(b *testing.B) {
		if b.N > 1 { // it is printed once
			b.ReportMetric(0, "ns/op")
			return
		}
		b.Log("\n" + table)
	})
}

// appendsOf is what the appends of a run write, the header first.
func appendsOf(ctx context.Context, rounds, observation int) ([][]byte, error) {
	memory := journal.NewMemory()
	j := &tally{Journal: memory, keep: true}
	if err := engineRun(ctx, j, "r", rounds, observation); err != nil {
		return nil, err
	}
	for rec, err := range memory.Read(ctx, "r", 0) {
		if err != nil {
			return nil, err
		}
		e, err := journal.EncodeRecord("r", journal.Stored{Record: rec})
		if err != nil {
			return nil, err
		}
		return append([][]byte{append(e.Line, '\n')}, j.appends...), nil // the first record is all that is missing
	}
	return nil, journal.ErrNotFound
}

func (p *pace) measure(b *testing.B, texts [][]byte) {
	b.Helper()
	var server *crashServer
	if p.store == "postgres" {
		server = newCrashServer(b)
	}
	j := benchStore(b, p.store, server)
	raw, err := os.Create(filepath.Join(b.TempDir(), "raw"))
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = raw.Close() }() // it was measured
	n := 0
	for b.Loop() {
		for range stepPasses {
			n++
			turns := &turns{Journal: j, pace: p, file: raw, texts: texts}
			if err := engineRun(b.Context(), turns, fmt.Sprintf("r%d", n), stepRounds, stepObservation); err != nil {
				b.Fatal(err)
			}
			one, err := runPace(b.Context(), j, fmt.Sprintf("t%d", n), 1, stepRounds/2)
			if err != nil {
				b.Fatal(err)
			}
			eight, err := runPace(b.Context(), j, fmt.Sprintf("s%d", n), 8, stepRounds/4)
			if err != nil {
				b.Fatal(err)
			}
			p.eight, p.more = append(p.eight, eight), append(p.more, eight/one)
		}
	}
	b.ReportMetric(median(p.raw), "raw-appends/s")
	b.ReportMetric(median(p.one), "steps/s-one")
	b.ReportMetric(median(p.eight), "steps/s-eight")
	b.ReportMetric(median(p.ratio), "steps/raw")
	b.ReportMetric(median(p.more), "eight/one")
	b.ReportMetric(0, "ns/op")
}

// turns is a journal that lets a raw file have its turn every few appends of a run.
type turns struct {
	journal.Journal
	pace  *pace
	file  *os.File
	texts [][]byte

	start time.Time // of the run's turn
	n     int       // appends in it
	steps int
	next  int // of the texts
}

func (t *turns) Acquire(ctx context.Context, run, owner string) (journal.Lease, error) {
	l, err := t.Journal.Acquire(ctx, run, owner)
	t.start = time.Now()
	return turnsLease{l, t}, err
}

type turnsLease struct {
	journal.Lease
	t *turns
}

func (l turnsLease) Append(ctx context.Context, state journal.Mark, bodies ...journal.Body) error {
	if err := l.Lease.Append(ctx, state, bodies...); err != nil {
		return err
	}
	l.t.steps += len(bodies)
	if l.t.n++; l.t.n < stepBlock {
		return nil
	}
	return l.t.change()
}

// change lets the raw file make the same number of appends.
func (t *turns) change() error {
	one := float64(t.steps) / time.Since(t.start).Seconds()
	start := time.Now()
	for range t.n {
		if _, err := t.file.Write(t.texts[t.next%len(t.texts)]); err != nil {
			return err
		}
		if err := datasync(t.file); err != nil {
			return err
		}
		t.next++
	}
	raw := float64(t.n) / time.Since(start).Seconds()
	t.pace.raw, t.pace.one, t.pace.ratio = append(t.pace.raw, raw), append(t.pace.one, one), append(t.pace.ratio, one/raw)
	t.n, t.steps, t.start = 0, 0, time.Now()
	return nil
}

// runPace is the steps a second of so many runs at once.
func runPace(ctx context.Context, j journal.Journal, name string, runs, rounds int) (float64, error) {
	errs := make([]error, runs)
	start := time.Now()
	var wg sync.WaitGroup
	for i := range runs {
		wg.Go(func() { errs[i] = engineRun(ctx, j, fmt.Sprintf("%s.%d", name, i), rounds, stepObservation) })
	}
	wg.Wait()
	spent := time.Since(start)
	steps := uint64(0)
	for i := range runs {
		if errs[i] != nil {
			return 0, errs[i]
		}
		info, err := j.Stat(ctx, fmt.Sprintf("%s.%d", name, i))
		if err != nil {
			return 0, err
		}
		steps += info.Head
	}
	return float64(steps) / spent.Seconds(), nil
}

func median(of []float64) float64 { return quartile(of, 2) }

// quartile is the value that so many quarters are below.
func quartile(of []float64, quarters int) float64 {
	of = slices.Sorted(slices.Values(of))
	return of[len(of)*quarters/4]
}

// paceTable is a table for people, the one of the README.
func paceTable(table []*pace) string {
	var out strings.Builder
	out.WriteString("| store | raw appends/s | steps/s, one run | of raw, median (middle half) | steps/s, eight runs | eight to one |\n")
	out.WriteString("|---|---|---|---|---|---|\n")
	for _, p := range table {
		if len(p.ratio) == 0 { // it is not installed, or was not chosen
			continue
		}
		fmt.Fprintf(&out, "| %s | %.0f | %.0f | %.2f (%.2f to %.2f) | %.0f | %.1f |\n",
			p.store, median(p.raw), median(p.one), median(p.ratio), quartile(p.ratio, 1), quartile(p.ratio, 3), median(p.eight), median(p.more))
	}
	return out.String()
}
