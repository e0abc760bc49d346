// SPDX-License-Identifier: Apache-2.0

package anthropic

import "github.com/fiducial-dev/fiducial/llm"

// usage is what a reply has cost so far. Reports are cumulative: a later one lays
// its fields over the earlier (E-172). Absent and null are the same.
type usage struct {
	Input         *int64 `json:"input_tokens"`
	Output        *int64 `json:"output_tokens"`
	CacheCreation *int64 `json:"cache_creation_input_tokens"`
	CacheRead     *int64 `json:"cache_read_input_tokens"`
	Details       *struct {
		Thinking *int64 `json:"thinking_tokens"`
	} `json:"output_tokens_details"`
}

func (u *usage) merge(newer *usage) {
	set := func(have **int64, n *int64) {
		if n != nil {
			*have = n
		}
	}
	set(&u.Input, newer.Input)
	set(&u.Output, newer.Output)
	set(&u.CacheCreation, newer.CacheCreation)
	set(&u.CacheRead, newer.CacheRead)
	if newer.Details != nil && newer.Details.Thinking != nil {
		u.Details = newer.Details
	}
}

// shared is the usage in the words of package llm: input is uncached, read and
// creation together, absent parts counting 0 (B-125).
func (u *usage) shared() llm.Usage {
	var out llm.Usage
	if u.Input != nil || u.CacheRead != nil || u.CacheCreation != nil {
		out.CacheRead, out.CacheWrite = count(u.CacheRead), count(u.CacheCreation)
		out.Input = count(u.Input).Plus(out.CacheRead).Plus(out.CacheWrite)
	}
	if u.Output != nil {
		out.Output = count(u.Output)
	}
	if u.Details != nil {
		out.Reasoning = count(u.Details.Thinking)
	}
	return out
}

func count(n *int64) llm.Count {
	if n == nil {
		return llm.N(0)
	}
	return llm.N(*n)
}

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
