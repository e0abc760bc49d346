// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"context"
	"fmt"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/tool"
)

// bench is where a run works: what is used again for each of its rounds. A call
// is run by a worker, whose stack has grown already when it is not the first.
type bench struct {
	req     llm.Request
	reader  reader
	end     context.CancelCauseFunc // ends the context of the calls
	slots   []slot
	done    chan int // indexes of slots whose call has returned
	left    bool     // calls that were left behind may still write to slots
	jobs    chan job
	workers int // that take jobs; every one of them is idle between groups
}

// A slot holds one call while it runs. It belongs to the call's goroutine until
// its index comes out of done.
type slot struct {
	ordinal int
	call    llm.Call // as the hooks left it
	in      tool.Call
	result  llm.Result
	cut     tool.Cut
}

type job struct {
	slot *slot
	i    int
	done chan<- int
}

// room is n slots to fill.
func (w *bench) room(n int) []slot {
	if w.left || len(w.slots) < n {
		w.close()
		w.slots, w.done, w.left = make([]slot, n), make(chan int, n), false
		w.jobs, w.workers = make(chan job, n), 0
	}
	return w.slots[:n]
}

// start runs the calls in the first n slots, all at once. What does not return
// within the grace is left behind, and its result is ignored (S-112).
func (w *bench) start(ctx context.Context, c *core, n int) {
	for ; w.workers < n; w.workers++ {
		go c.worker(ctx, w.jobs)
	}
	for i := range n {
		w.jobs <- job{&w.slots[i], i, w.done}
	}
}

// close sends the workers home, those that are at work when it is done.
func (w *bench) close() {
	if w.jobs != nil {
		close(w.jobs)
		w.jobs = nil
	}
}

func (c *core) worker(ctx context.Context, jobs <-chan job) {
	alive := false
	defer func() {
		if !alive { // a tool has ended this goroutine
			go c.worker(ctx, jobs)
		}
	}()
	for j := range jobs {
		c.work(ctx, j)
	}
	alive = true
}

// work runs one call. A panic of a caller's own executor is a result, too, and so
// is the end of its goroutine.
func (c *core) work(ctx context.Context, j job) {
	returned := false
	defer func() {
		p := recover()
		switch {
		case p != nil:
			j.slot.result = errorResult(fmt.Sprintf("the tool panicked: %v", p))
		case !returned:
			j.slot.result = errorResult("the tool ended its goroutine instead of returning")
		}
		j.done <- j.i
	}()
	if x, ok := c.exec.(tool.Cutter); ok {
		j.slot.result, j.slot.cut = x.ExecuteCut(ctx, j.slot.in)
	} else {
		j.slot.result = c.exec.Execute(ctx, j.slot.in)
	}
	returned = true
}
