//go:build unix

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

// A tally is a journal that remembers what is appended to it.
type tally struct {
	journal.Journal

	mu      sync.Mutex
	bytes   int      // of the records as encoded
	appends [][]byte // what each append has to write at the least; kept when keep is set
	keep    bool
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
	lines, _, err := journal.EncodeAppend(l.Run(), l.Head(), l.Epoch(), time.Now().UTC(), state, bodies)
	if err != nil {
		return err
	}
	l.t.note(lines)
	return l.Lease.Append(ctx, state, bodies...)
}

func (t *tally) note(lines []journal.Encoded) {
	t.mu.Lock()
	defer t.mu.Unlock()
	var text []byte
	for _, e := range lines {
		text = append(append(text, e.Line...), '\n')
	}
	t.bytes += len(text)
	if t.keep {
		t.appends = append(t.appends, text)
	}
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

// BenchmarkThousandSteps is a run of 1,000 rounds with observations of 4 KB, beside
// one that writes its whole state after each round.
func BenchmarkThousandSteps(b *testing.B) {
	const rounds, observation = 1000, 4096
	content := 0 // what the steps say: the text of results and the arguments of calls
	for n := range rounds {
		content += observation/30*30 + len(fmt.Sprintf(`{"part":%d}`, n+1))
	}
	var table strings.Builder
	table.WriteString("| 1,000 steps of 4 KB | s | MB to the disk | record bytes to content |\n|---|---|---|---|\n")
	for _, kind := range []string{"file", "sqlite"} {
		b.Run(kind, func(b *testing.B) {
			j := &tally{Journal: benchStore(b, kind, nil)}
			disk := diskBytes()
			for n := 0; b.Loop(); n++ {
				if err := engineRun(b.Context(), j, fmt.Sprint("r", n), rounds, observation); err != nil {
					b.Fatal(err)
				}
			}
			size := float64(j.bytes) / float64(b.N) / float64(content)
			mb, seconds := float64(diskBytes()-disk)/float64(b.N)/1e6, b.Elapsed().Seconds()/float64(b.N)
			b.ReportMetric(size, "bytes/content")
			b.ReportMetric(mb, "disk-MB")
			b.ReportMetric(seconds, "s/run")
			fmt.Fprintf(&table, "| %s | %.2f | %.1f | %.2f |\n", kind, seconds, mb, size)
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
		mb, seconds := float64(diskBytes()-disk)/float64(b.N)/1e6, b.Elapsed().Seconds()/float64(b.N)
		b.ReportMetric(mb, "disk-MB")
		b.ReportMetric(seconds, "s/run")
		fmt.Fprintf(&table, "| the whole state a round, in a file | %.2f | %.1f | |\n", seconds, mb)
	})
	showTable(b, table.String())
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
	var table strings.Builder
	table.WriteString("| reload | records | ms | memory to history |\n|---|---|---|---|\n")
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
				ms, memory := b.Elapsed().Seconds()*1000/float64(b.N), float64(grown)/float64(history)
				b.ReportMetric(ms, "ms/reload")
				b.ReportMetric(memory, "memory/history")
				fmt.Fprintf(&table, "| %s | %d | %.0f | %.2f |\n", kind, records, ms, memory)
			})
		}
	}
	showTable(b, table.String())
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
