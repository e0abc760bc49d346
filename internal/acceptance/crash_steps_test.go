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
	stepPasses      = 11   // the median of so many is told
)

// A pace is what was measured of one store, a figure a pass.
type pace struct {
	store             string
	raw, one, eight   []float64 // durable appends, and steps, a second
	ratio, eightToOne []float64
}

// BenchmarkDurableSteps measures acknowledged records a second of real runs, engine
// included, beside what the same disk makes durable at the same time: a raw file
// that the same bytes are appended to, a sync each. Raw file, one run and eight
// runs at once take turns, and the median of the passes is told, so that what else
// the machine does weighs on all alike.
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
			beside, err := rawPace(raw, texts)
			if err != nil {
				b.Fatal(err)
			}
			one, err := runPace(b.Context(), j, fmt.Sprintf("r%d", n), 1, stepRounds)
			if err != nil {
				b.Fatal(err)
			}
			eight, err := runPace(b.Context(), j, fmt.Sprintf("s%d", n), 8, stepRounds/4)
			if err != nil {
				b.Fatal(err)
			}
			p.raw, p.one, p.eight = append(p.raw, beside), append(p.one, one), append(p.eight, eight)
			p.ratio, p.eightToOne = append(p.ratio, one/beside), append(p.eightToOne, eight/one)
		}
	}
	b.ReportMetric(median(p.raw), "raw-appends/s")
	b.ReportMetric(median(p.one), "steps/s-one")
	b.ReportMetric(median(p.eight), "steps/s-eight")
	b.ReportMetric(median(p.ratio), "steps/raw")
	b.ReportMetric(median(p.eightToOne), "eight/one")
	b.ReportMetric(0, "ns/op")
}

// rawPace appends the texts to a file, a sync each: what any store has to do at the
// least.
func rawPace(raw *os.File, texts [][]byte) (float64, error) {
	start := time.Now()
	for _, text := range texts {
		if _, err := raw.Write(text); err != nil {
			return 0, err
		}
		if err := datasync(raw); err != nil {
			return 0, err
		}
	}
	return float64(len(texts)) / time.Since(start).Seconds(), nil
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

func median(of []float64) float64 {
	of = slices.Sorted(slices.Values(of))
	return of[len(of)/2]
}

// paceTable is a table for people, the one of the README.
func paceTable(table []*pace) string {
	var out strings.Builder
	out.WriteString("| store | raw appends/s | steps/s, one run | of raw (lowest to highest) | steps/s, eight runs | eight to one |\n")
	out.WriteString("|---|---|---|---|---|---|\n")
	for _, p := range table {
		if len(p.ratio) == 0 { // it is not installed, or was not chosen
			continue
		}
		fmt.Fprintf(&out, "| %s | %.0f | %.0f | %.2f (%.2f to %.2f) | %.0f | %.1f |\n",
			p.store, median(p.raw), median(p.one), median(p.ratio), slices.Min(p.ratio), slices.Max(p.ratio), median(p.eight), median(p.eightToOne))
	}
	return out.String()
}
