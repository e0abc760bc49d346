// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/postgres"
	"github.com/fiducial-dev/fiducial/journal/sqlite"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/machine"
	"github.com/fiducial-dev/fiducial/tool"
)

// steady is a model that makes one call a reply, so many times.
func steady(rounds int) brain {
	n := 0
	return func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
		if n++; n > rounds {
			return llmtest.Say("done")(ctx, req)
		}
		return llmtest.Call("read", fmt.Sprintf(`{"part":%d}`, n))(ctx, req)
	}
}

type partArgs struct {
	Part int `json:"part" doc:"which"`
}

// observing is a tool whose results have about so many bytes.
func observing(bytes int) tool.Tool {
	text := strings.Repeat("(pin passive line (at 0 0 0))\n", bytes/30)
	return tool.Must(tool.New("read", "Reads a part.", func(context.Context, partArgs) (string, error) { return text, nil }))
}

// A tally is a journal that remembers what its appends weigh. With a raw file it
// also writes as many bytes there and syncs them, beside each append, so that both
// see the same disk at the same time.
type tally struct {
	journal.Journal
	raw *os.File

	mu      sync.Mutex
	bytes   int
	appends int
	records int
	beside  time.Duration // spent on the raw file alone
	aside   time.Duration // spent on the raw file and on weighing
}

func (t *tally) Acquire(ctx context.Context, run, owner string) (journal.Lease, error) {
	l, err := t.Journal.Acquire(ctx, run, owner)
	return tallyLease{l, t}, err
}

type tallyLease struct {
	journal.Lease
	t *tally
}

func (l tallyLease) Append(ctx context.Context, state journal.Mark, bodies ...journal.Body) error {
	start := time.Now()
	lines, _, err := journal.EncodeAppend(l.Run(), l.Head(), l.Epoch(), time.Now().UTC(), state, bodies)
	if err != nil {
		return err
	}
	l.t.mu.Lock()
	for _, e := range lines {
		l.t.bytes += len(e.Line) + 1
	}
	l.t.appends++
	l.t.records += len(lines)
	if l.t.raw != nil {
		err = l.t.rawAppend(lines)
	}
	l.t.aside += time.Since(start)
	l.t.mu.Unlock()
	if err != nil {
		return err
	}
	return l.Lease.Append(ctx, state, bodies...)
}

// rawAppend is what any store on a file has to do at the least.
func (t *tally) rawAppend(lines []journal.Encoded) error {
	var text []byte
	for _, e := range lines {
		text = append(append(text, e.Line...), '\n')
	}
	start := time.Now()
	_, err := t.raw.Write(text)
	if err == nil {
		err = datasync(t.raw)
	}
	t.beside += time.Since(start)
	return err
}

// engineRun is a whole run of the engine on a journal.
func engineRun(ctx context.Context, j journal.Journal, run string, rounds, observation int, more ...fiducial.Option) error {
	opts := append([]fiducial.Option{
		fiducial.WithTools(observing(observation)), fiducial.WithLoopGuard(-1),
	}, more...)
	if j != nil {
		opts = append(opts, fiducial.WithJournal(j, run))
	}
	locked, out, err := fiducial.New(steady(rounds), opts...).Run(ctx, llm.UserText("go"))
	if err == nil && out.Reason != fiducial.Finished {
		err = fmt.Errorf("it ended %s", out.Reason)
	}
	if err == nil {
		err = locked.Close(ctx)
	}
	return err
}

func benchStore(b *testing.B, kind string, server *crashServer) journal.Journal {
	b.Helper()
	var j journal.Journal
	var err error
	switch kind {
	case "file":
		j, err = journal.OpenFolder(b.TempDir(), journal.FolderOptions{})
	case "sqlite":
		j, err = sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "journal.db"), sqlite.Options{})
	case "postgres":
		j, err = postgres.Open(b.Context(), server.URL, postgres.Options{Schema: server.schema()})
	}
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = j.Close() }) // it was measured
	return j
}

// BenchmarkDurableSteps measures acknowledged records a second of real runs, engine
// included, beside the appends that the same disk makes durable in the same minute.
func BenchmarkDurableSteps(b *testing.B) {
	const rounds = 150
	for _, kind := range []string{"file", "sqlite", "postgres"} {
		b.Run(kind, func(b *testing.B) {
			var server *crashServer
			if kind == "postgres" {
				server = newCrashServer(b)
			}
			raw, err := os.Create(filepath.Join(b.TempDir(), "raw"))
			if err != nil {
				b.Fatal(err)
			}
			defer func() { _ = raw.Close() }() // it was measured
			j := &tally{Journal: benchStore(b, kind, server), raw: raw}
			start := time.Now()
			for n := 0; b.Loop(); n++ {
				if err := engineRun(b.Context(), j, fmt.Sprint("r", n), rounds, 2048); err != nil {
					b.Fatal(err)
				}
			}
			spent := (time.Since(start) - j.aside).Seconds()
			steps, raws := float64(j.records)/spent, float64(j.appends)/j.beside.Seconds()
			b.ReportMetric(steps, "steps/s")
			b.ReportMetric(float64(j.appends)/spent, "appends/s")
			b.ReportMetric(raws, "raw-appends/s")
			b.ReportMetric(steps/raws, "steps/raw")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkEightRuns is eight runs at once on one store, whose appends may share a
// sync, beside one run.
func BenchmarkEightRuns(b *testing.B) {
	const rounds = 60
	for _, kind := range []string{"file", "sqlite", "postgres"} {
		b.Run(kind, func(b *testing.B) {
			var server *crashServer
			if kind == "postgres" {
				server = newCrashServer(b)
			}
			j := &tally{Journal: benchStore(b, kind, server)}
			rate := map[int]float64{}
			for n := 0; b.Loop(); n++ {
				for _, runs := range []int{1, 8} {
					j.records = 0
					start := time.Now()
					var wg sync.WaitGroup
					for i := range runs {
						wg.Go(func() {
							if err := engineRun(b.Context(), j, fmt.Sprintf("r%d.%d.%d", n, runs, i), rounds*(9-runs), 2048); err != nil {
								b.Error(err)
							}
						})
					}
					wg.Wait()
					rate[runs] += float64(j.records) / time.Since(start).Seconds()
				}
			}
			b.ReportMetric(rate[1]/float64(b.N), "steps/s-one")
			b.ReportMetric(rate[8]/float64(b.N), "steps/s-eight")
			b.ReportMetric(rate[8]/rate[1], "eight/one")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkThousandSteps is a run of 1,000 rounds with observations of 4 KB, beside
// one that writes its whole state after each round.
func BenchmarkThousandSteps(b *testing.B) {
	const rounds, observation = 1000, 4096
	content := 0 // what the steps say: the text of results and the arguments of calls
	for n := range rounds {
		content += observation/30*30 + len(fmt.Sprintf(`{"part":%d}`, n+1))
	}
	for _, kind := range []string{"file", "sqlite"} {
		b.Run(kind, func(b *testing.B) {
			j := &tally{Journal: benchStore(b, kind, nil)}
			disk := diskBytes()
			for n := 0; b.Loop(); n++ {
				if err := engineRun(b.Context(), j, fmt.Sprint("r", n), rounds, observation); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(j.bytes)/float64(b.N)/float64(content), "bytes/content")
			b.ReportMetric(float64(diskBytes()-disk)/float64(b.N)/1e6, "disk-MB")
			b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/run")
		})
	}
	b.Run("rewriting", func(b *testing.B) {
		dir := b.TempDir()
		disk := diskBytes()
		for b.Loop() {
			save := func(c machine.Checkpoint) error {
				if c.Pending == nil || c.Pending.Kind != machine.PendingGeneration || len(c.History)%2 == 0 {
					return nil // once a round
				}
				return rewrite(filepath.Join(dir, "state"), c)
			}
			if err := engineRun(b.Context(), nil, "", rounds, observation, fiducial.WithCheckpoint(save)); err != nil {
				b.Fatal(err)
			}
		}
		b.ReportMetric(float64(diskBytes()-disk)/float64(b.N)/1e6, "disk-MB")
		b.ReportMetric(b.Elapsed().Seconds()/float64(b.N), "s/run")
	})
}

func rewrite(path string, c machine.Checkpoint) error {
	data, err := json.Marshal(c)
	if err != nil {
		return err
	}
	f, err := os.Create(path + ".new")
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err = errors.Join(err, datasync(f), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// BenchmarkReloadRun takes up runs of several lengths in an engine, as a new process
// does: time must grow with the length and no faster.
func BenchmarkReloadRun(b *testing.B) {
	for _, kind := range []string{"file", "sqlite"} {
		for _, records := range []int{2_500, 10_000} {
			b.Run(fmt.Sprint(kind, "/records=", records), func(b *testing.B) {
				j := benchStore(b, kind, nil)
				if err := reloadable(b.Context(), j, records); err != nil {
					b.Fatal(err)
				}
				var grown, history uint64
				for b.Loop() {
					b.StopTimer()
					before := heap()
					b.StartTimer()
					locked, err := fiducial.New(steady(0), fiducial.WithTools(observing(2048)), fiducial.WithJournal(j, "r")).Lock()
					if err == nil {
						err = locked.Open(b.Context())
					}
					if err != nil {
						b.Fatal(err)
					}
					b.StopTimer()
					grown = heap() - before
					if history = sizeOf(locked.History()); history == 0 {
						b.Fatal("there is no history")
					}
					if err := locked.Close(b.Context()); err != nil {
						b.Fatal(err)
					}
					b.StartTimer()
				}
				b.ReportMetric(b.Elapsed().Seconds()*1000/float64(b.N), "ms/reload")
				b.ReportMetric(float64(grown)/float64(history), "memory/history")
			})
		}
	}
}

// reloadable is a run of so many records, made in memory first, where nothing waits
// for a disk.
func reloadable(ctx context.Context, j journal.Journal, records int) error {
	memory := journal.NewMemory()
	const perRound = 3 // reply, start, result
	if err := engineRun(ctx, memory, "r", records/perRound, 2048); err != nil {
		return err
	}
	info, err := memory.Stat(ctx, "r")
	if err != nil {
		return err
	}
	return j.Restore(ctx, "r", memory.Read(ctx, "r", 0), info.Mark)
}

func heap() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

// sizeOf is the text of a history.
func sizeOf(history []llm.Message) (n uint64) {
	for _, m := range history {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Text:
				n += uint64(len(p.Text))
			case llm.Call:
				n += uint64(len(p.ID) + len(p.Name) + len(p.Args))
			case llm.Result:
				n += uint64(len(p.CallID) + len(p.Name) + len(p.Summary) + len(p.Content))
			default:
			}
		}
	}
	return n
}
