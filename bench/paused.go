// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"fmt"
	"io"
	"runtime"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/tool"
)

type pauseThird struct{ fiducial.NopInterceptor }

func (pauseThird) PreTool(_ context.Context, inv fiducial.Invocation, _ *llm.Call) (fiducial.ToolAnswer, error) {
	if inv.Turn == 3 {
		return fiducial.Pause{Reason: "wait"}, nil
	}
	return fiducial.Continue{}, nil
}

// pausedRuns tells what a run takes up that waits before its third call.
func pausedRuns(ctx context.Context, w io.Writer, n int) error {
	for _, stored := range []bool{false, true} {
		server, err := tool.NewServer(tool.Must(tool.New("add", "Adds.", func(_ context.Context, in addArgs) (string, error) {
			return fmt.Sprint(in.A + in.B), nil
		})))
		if err != nil {
			return err
		}
		models := make([]ourModel, n)
		for i := range models {
			models[i] = ourScript(3, 1)
		}
		j := journal.NewMemory()
		held := make([]*fiducial.Locked, n)
		before := heap()
		for i := range held {
			opts := []fiducial.Option{fiducial.WithServer(server), fiducial.WithInterceptor(pauseThird{})}
			if stored {
				opts = append(opts, fiducial.WithJournal(j, fmt.Sprint("run-", i)))
			}
			l, out, err := fiducial.New(models[i], opts...).Run(ctx, llm.UserText("go"))
			if err != nil || out.Reason != fiducial.Paused {
				return fmt.Errorf("run %d: %v, %w", i, out.Reason, err)
			}
			held[i] = l
		}
		took := heap() - before
		where := "without a journal"
		if stored {
			where = "with its records in the journal in memory"
		}
		fmt.Fprintf(w, "\n%d runs that are paused before their third call, %s: %d bytes each, %d goroutines in all.\n", n, where, int(took)/n, runtime.NumGoroutine())
		runtime.KeepAlive(held)
		runtime.KeepAlive(models)
	}
	return nil
}

func heap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}
