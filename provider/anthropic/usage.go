// SPDX-License-Identifier: Apache-2.0

package anthropic

import (
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/provider/internal/reply"
)

// usage is what a reply has cost so far. Reports are cumulative: a later one lays
// its fields over the earlier (E-172). Absent and null are the same.
type usage struct {
	Input         reply.LooseCount `json:"input_tokens"`
	Output        reply.LooseCount `json:"output_tokens"`
	CacheCreation reply.LooseCount `json:"cache_creation_input_tokens"`
	CacheRead     reply.LooseCount `json:"cache_read_input_tokens"`
	Details       *struct {
		Thinking reply.LooseCount `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

func (u *usage) merge(newer *usage) {
	set := func(have *reply.LooseCount, n reply.LooseCount) {
		if n.Known() {
			*have = n
		}
	}
	set(&u.Input, newer.Input)
	set(&u.Output, newer.Output)
	set(&u.CacheCreation, newer.CacheCreation)
	set(&u.CacheRead, newer.CacheRead)
	if newer.Details != nil && newer.Details.Thinking.Known() {
		u.Details = newer.Details
	}
}

// shared is the usage in the words of package llm: input is uncached, read and
// creation together, absent parts counting 0 (B-125).
func (u *usage) shared() llm.Usage {
	var out llm.Usage
	if u.Input.Known() || u.CacheRead.Known() || u.CacheCreation.Known() {
		out.CacheRead, out.CacheWrite = count(u.CacheRead), count(u.CacheCreation)
		out.Input = count(u.Input).Plus(out.CacheRead).Plus(out.CacheWrite)
	}
	if u.Output.Known() {
		out.Output = count(u.Output)
	}
	if u.Details != nil {
		out.Reasoning = count(u.Details.Thinking)
	}
	return out
}

func count(n reply.LooseCount) llm.Count { return llm.N(n.Value()) }

// report yields what the reply has cost so far.
func (d *decoder) report(newer *usage) {
	if newer == nil {
		return
	}
	d.usage.merge(newer)
	if u := d.usage.shared(); u.Known() {
		d.emit(llm.UsageReport{Usage: u})
	}
}
