// SPDX-License-Identifier: Apache-2.0

package llm

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// A Count is a number of tokens that may be absent. The zero value is absent,
// which is not the same as 0.
type Count struct {
	n     int64
	known bool
}

// N is a known count. A negative n counts as 0.
func N(n int64) Count { return Count{n: max(n, 0), known: true} }

// Value is the number, 0 when absent.
func (c Count) Value() int64 { return c.n }

// Known reports whether the count is present.
func (c Count) Known() bool { return c.known }

// IsZero reports whether the count is absent, so that omitzero leaves it out.
func (c Count) IsZero() bool { return !c.known }

// Plus adds two counts and stops at the largest number. Absent plus absent is
// absent.
func (c Count) Plus(d Count) Count {
	if !d.known {
		return c
	}
	if !c.known {
		return d
	}
	if c.n > math.MaxInt64-d.n {
		return N(math.MaxInt64)
	}
	return N(c.n + d.n)
}

// String is the number, or "unknown" when absent.
func (c Count) String() string {
	if !c.known {
		return "unknown"
	}
	return strconv.FormatInt(c.n, 10)
}

// MarshalJSON writes the number, or null when absent.
func (c Count) MarshalJSON() ([]byte, error) {
	if !c.known {
		return []byte("null"), nil
	}
	return json.Marshal(c.n)
}

// UnmarshalJSON reads a number or null.
func (c *Count) UnmarshalJSON(data []byte) error {
	var n *int64
	if err := json.Unmarshal(data, &n); err != nil {
		return err
	}
	*c = Count{}
	if n != nil {
		*c = N(*n)
	}
	return nil
}

// Usage is what one request, or a run, has cost in tokens. Each field may be
// absent (E-171).
type Usage struct {
	Input      Count `json:"input,omitzero"`       // the whole prompt, cached parts included
	Output     Count `json:"output,omitzero"`      // everything the model wrote, reasoning included
	Total      Count `json:"total,omitzero"`       // as the provider states it
	CacheRead  Count `json:"cache_read,omitzero"`  // the part of Input that came from the cache
	CacheWrite Count `json:"cache_write,omitzero"` // the part of Input that was written to it
	Reasoning  Count `json:"reasoning,omitzero"`   // the part of Output that was reasoning
}

// String names the counts that are present, such as "270 in, 15 out, 12 cached", and
// is "unknown" when none is. The total is named when it is all that is known.
func (u Usage) String() string {
	var b strings.Builder
	say := func(c Count, word string) {
		if !c.known {
			return
		}
		if b.Len() > 0 {
			b.WriteString(", ")
		}
		b.WriteString(c.String() + " " + word)
	}
	say(u.Input, "in")
	say(u.Output, "out")
	if !u.Input.known && !u.Output.known {
		say(u.Total, "in all")
	}
	say(u.CacheRead, "cached")
	say(u.CacheWrite, "written to the cache")
	say(u.Reasoning, "reasoning")
	if b.Len() == 0 {
		return "unknown"
	}
	return b.String()
}

// Known reports whether any field is present.
func (u Usage) Known() bool { return u != Usage{} }

// Merge lays newer over u: a present field wins, an absent one erases nothing
// (E-172). It is for the several reports of one reply.
func (u Usage) Merge(newer Usage) Usage {
	set := func(c *Count, n Count) {
		if n.known {
			*c = n
		}
	}
	set(&u.Input, newer.Input)
	set(&u.Output, newer.Output)
	set(&u.Total, newer.Total)
	set(&u.CacheRead, newer.CacheRead)
	set(&u.CacheWrite, newer.CacheWrite)
	set(&u.Reasoning, newer.Reasoning)
	return u
}

// Plus adds two usages field by field. It is for sums over requests.
func (u Usage) Plus(v Usage) Usage {
	return Usage{
		Input:      u.Input.Plus(v.Input),
		Output:     u.Output.Plus(v.Output),
		Total:      u.Total.Plus(v.Total),
		CacheRead:  u.CacheRead.Plus(v.CacheRead),
		CacheWrite: u.CacheWrite.Plus(v.CacheWrite),
		Reasoning:  u.Reasoning.Plus(v.Reasoning),
	}
}
