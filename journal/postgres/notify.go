// SPDX-License-Identifier: Apache-2.0

package postgres

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// A crier tells followers in other processes which runs have grown, a few runs at
// once. What it does not come to tell they find by looking.
type crier struct {
	mu   sync.Mutex
	runs map[string]bool
	kick chan struct{} // holds a token when there is something to tell
	done chan struct{}
}

// pause is how long news wait for others at most.
const pause = 10 * time.Millisecond

func (c *crier) tell(run string) {
	c.mu.Lock()
	c.runs[run] = true
	c.mu.Unlock()
	select {
	case c.kick <- struct{}{}:
	default: // it knows
	}
}

func (c *crier) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	runs := slices.Collect(maps.Keys(c.runs))
	clear(c.runs)
	return runs
}

// cry tells until the journal is closed, and then what is left.
func (j *Journal) cry(ctx context.Context) {
	defer close(j.crier.done)
	for {
		select {
		case <-ctx.Done():
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			j.notify(ctx, j.crier.take())
			return
		case <-j.crier.kick:
		}
		j.notify(ctx, j.crier.take())
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func (j *Journal) notify(ctx context.Context, runs []string) {
	if len(runs) > 0 {
		_, _ = j.pool.Exec(ctx, j.sql.notify, j.sql.channel, runs) // whoever hears nothing looks
	}
}
