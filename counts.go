// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"github.com/fiducial-dev/fiducial/llm"
)

// counts is what limits are held against and outcomes report. The numbers of a
// run span pause and resume, in this process or another (E-21).
type counts struct {
	turns, requests, batches int // of the run
	lifetime                 int // replies since the engine, or its journal, began
	usage                    llm.Usage
	guessed                  int64 // tokens of replies whose provider did not state them
	stop                     llm.StopReason
}

func (c *counts) newRun() { *c = counts{lifetime: c.lifetime} }

func (c *counts) reply(m llm.Message, u llm.Usage, guess int64) {
	c.guessed = plus(c.guessed, guess)
	c.turns++
	c.lifetime++
	c.requests++
	c.usage = c.usage.Plus(u)
	c.stop = m.Stop
	if m.CountCalls() > 0 {
		c.batches++
	}
}

func (c *counts) broken(u llm.Usage) {
	c.requests++
	c.usage = c.usage.Plus(u)
}

func (c *counts) tokens() int64 { return plus(c.usage.Input.Plus(c.usage.Output).Value(), c.guessed) }

func (c *core) outcome(reason Reason) Outcome {
	n := &c.counts
	return Outcome{Reason: reason, Stop: n.stop, Usage: n.usage, Turns: n.turns, Requests: n.requests, Batches: n.batches}
}
