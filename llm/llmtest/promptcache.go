// SPDX-License-Identifier: Apache-2.0

package llmtest

import (
	"crypto/sha256"
	"time"
)

// What a simulated token costs, in units of one uncached input token
// (https://platform.claude.com/docs/en/build-with-claude/prompt-caching, 2026-11).
const (
	PriceWrite = 1.25
	PriceRead  = 0.1
)

const (
	cacheTTL      = 5 * time.Minute
	cacheLookBack = 20 // blocks, the one with the mark included
)

// A promptBlock is a piece of a prompt that a cache entry may end with.
type promptBlock struct {
	data []byte // without its mark
	mark bool
}

// tokens is the size of a block: a quarter of its bytes, rounded up.
func (b promptBlock) tokens() int64 { return int64(len(b.data)+3) / 4 }

// A promptCache holds which prefixes of prompts a provider has processed of late.
type promptCache struct {
	// automatic caches serve any prefix of whole blocks, others only those that
	// end at a mark, as found by looking back from a mark.
	automatic bool
	entries   map[[32]byte]time.Time // when each runs out
}

// use looks a prompt up and stores it. It returns how many tokens were read, and
// how many were written.
func (c *promptCache) use(scope string, blocks []promptBlock, now time.Time) (read, written int64) {
	if c.entries == nil {
		c.entries = map[[32]byte]time.Time{}
	}
	keys := make([][32]byte, len(blocks))
	upTo := make([]int64, len(blocks)+1)
	key := sha256.Sum256([]byte(scope))
	for i, b := range blocks {
		inner := sha256.Sum256(b.data)
		key = sha256.Sum256(append(key[:], inner[:]...))
		keys[i] = key
		upTo[i+1] = upTo[i] + b.tokens()
	}
	hit, last := -1, -1
	for i, b := range blocks {
		if !b.mark && !c.automatic {
			continue
		}
		last = i
		floor := max(0, i-cacheLookBack+1)
		if c.automatic {
			floor = i
		}
		for k := i; k >= floor; k-- {
			if c.entries[keys[k]].After(now) {
				hit = max(hit, k)
				break
			}
		}
	}
	if hit >= 0 {
		c.entries[keys[hit]] = now.Add(cacheTTL)
	}
	for i, b := range blocks {
		if b.mark || c.automatic {
			c.entries[keys[i]] = now.Add(cacheTTL)
		}
	}
	return upTo[hit+1], upTo[max(last, hit)+1] - upTo[hit+1]
}

// Totals is what all requests of a [Server] have cost so far, in tokens of four
// bytes each.
type Totals struct {
	Requests   int
	Input      int64 // whole prompts, cached parts included
	CacheRead  int64
	CacheWrite int64
	Output     int64

	// Best is how much of Input a client could have had from the cache: all that
	// was sent before in whole blocks and had not run out.
	Best int64
}

// Cost is the price of the input in units of one uncached input token.
func (t Totals) Cost() float64 {
	uncached := t.Input - t.CacheRead - t.CacheWrite
	return float64(uncached) + PriceWrite*float64(t.CacheWrite) + PriceRead*float64(t.CacheRead)
}

// HitRate is CacheRead as a share of Best, 1 when nothing could have been read.
func (t Totals) HitRate() float64 {
	if t.Best == 0 {
		return 1
	}
	return float64(t.CacheRead) / float64(t.Best)
}
