// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"time"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// A CacheCause says why a provider served less from its prompt cache than it
// could have.
type CacheCause string

// The causes.
const (
	CachePrefixEdited  CacheCause = "prefix edited" // the history was replaced, cut or the engine unlocked
	CacheToolsChanged  CacheCause = "tools changed"
	CachePruned        CacheCause = "pruned"
	CacheImagesDropped CacheCause = "images dropped"     // see [WithDropImages]
	CacheLookBack      CacheCause = "look-back exceeded" // more than 20 blocks were added at once
	CacheExpired       CacheCause = "expired"            // the last request was more than five minutes ago
	CacheUnknown       CacheCause = "unknown"
)

const (
	// Anthropic looks back at most 20 blocks from a mark for an earlier one, and
	// keeps an entry for five minutes (its prompt caching documentation, 2025).
	lookBackBlocks = 20
	cacheLifetime  = 5 * time.Minute

	// Providers cache in units: OpenAI in steps of 128 tokens from 1024 on. What
	// is missing by less than this is no miss.
	cacheSlack = 1024
)

// cacheAudit compares what a provider could have served from its cache, the
// prompt of the last request, with what it says that it served.
type cacheAudit struct {
	prompt int64     // input tokens of the last request, 0 when there was none
	at     time.Time // when it was answered
	len    int       // messages it held
	blocks int       // parts added since
	cause  CacheCause
	began  time.Time
}

// forget says that what the cache holds is of no use for the next request.
func (a *cacheAudit) forget(cause CacheCause) {
	if a.prompt > 0 {
		a.cause = cause
	}
}

// request notes what goes out.
func (a *cacheAudit) request(c *core) {
	if a.prompt == 0 {
		return
	}
	a.began = time.Now()
	a.blocks = 0
	history := c.state.History()
	for _, m := range history[min(a.len, len(history)):] {
		a.blocks += len(m.Parts)
	}
}

// served compares and tells of a miss. A provider that does not say what it
// served is not judged.
func (a *cacheAudit) served(c *core, op machine.OperationID, u llm.Usage) {
	if u.Input.Known() {
		c.meter.measured(c.state.History()[:c.sent], u)
	}
	if !u.CacheRead.Known() {
		return
	}
	if missed := a.prompt - u.CacheRead.Value(); a.prompt > 0 && missed > cacheSlack {
		c.emit(CacheMiss{Op: op, Possible: a.prompt, Served: u.CacheRead.Value(), Cause: a.reason()})
	}
	*a = cacheAudit{prompt: u.Input.Value(), at: time.Now(), len: c.sent}
}

func (a *cacheAudit) reason() CacheCause {
	switch {
	case a.cause != "":
		return a.cause
	case a.began.Sub(a.at) > cacheLifetime:
		return CacheExpired
	case a.blocks > lookBackBlocks:
		return CacheLookBack
	}
	return CacheUnknown
}
