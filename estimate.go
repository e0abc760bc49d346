// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"math"
	"slices"
	"sort"
	"sync"

	"github.com/fiducial-dev/fiducial/llm"
)

// An Estimate is how many tokens the first messages of a history take, with
// system prompt and tools (E-175).
type Estimate struct {
	Tokens int64
	Source EstimateSource
}

// An EstimateSource says what an [Estimate] rests on.
type EstimateSource uint8

// The sources, from weak to strong.
const (
	EstimateNoData       EstimateSource = iota // four bytes a token
	EstimateExtrapolated                       // beyond the last measured length
	EstimateInterpolated                       // between, or before, measured lengths
	EstimateMeasured                           // a provider stated it for this length
)

// bytesPerToken is the rule of thumb where nothing was measured.
const bytesPerToken = 4

// meter measures a history that only grows: the bytes up to each message, and
// what providers said of some lengths. It looks at every message once. It may be
// asked while a run goes on.
type meter struct {
	mu      sync.Mutex
	bytes   []int64 // bytes[i] is the size of the first i messages; bytes[0] is 0
	records []usageRecord
}

// usageRecord ties a usage to the length of the history at its request (E-174).
type usageRecord struct {
	n      int
	tokens int64
}

// grow measures the messages that are new.
func (m *meter) grow(history []llm.Message) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.growLocked(history)
}

func (m *meter) growLocked(history []llm.Message) {
	if len(m.bytes) == 0 {
		m.bytes = append(m.bytes, 0)
	}
	if n := len(history) + 1; n > cap(m.bytes) {
		m.bytes = slices.Grow(m.bytes, n) // twice as long, so that all the copying is once the length
	}
	for i := len(m.bytes) - 1; i < len(history); i++ {
		m.bytes = append(m.bytes, m.bytes[i]+messageBytes(history[i]))
	}
}

// forget drops what is not true of a replaced history.
func (m *meter) forget() { m.replace(&meter{}) }

// replace takes over what another meter has measured.
func (m *meter) replace(from *meter) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.bytes, m.records = from.bytes, from.records
}

// measured remembers what a provider said of the request that held asked.
func (m *meter) measured(asked []llm.Message, u llm.Usage) {
	if !u.Input.Known() {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.growLocked(asked)
	m.record(len(asked), u.Input.Value())
}

// guess is what u does not state of the tokens of a reply to the messages asked. It
// depends on nothing else, so that another process comes to the same.
func (m *meter) guess(asked []llm.Message, reply llm.Message, u llm.Usage) (tokens int64) {
	if !u.Input.Known() {
		m.mu.Lock()
		m.growLocked(asked)
		tokens += m.bytes[len(asked)] / bytesPerToken
		m.mu.Unlock()
	}
	if !u.Output.Known() {
		tokens += messageBytes(reply) / bytesPerToken
	}
	return tokens
}

// record adds a measure. One that contradicts a longer or shorter one (a
// projection dropped something) replaces it, so that estimates never decrease as
// a prefix grows.
func (m *meter) record(n int, tokens int64) {
	for k := len(m.records); k > 0; k-- {
		if last := m.records[k-1]; last.n >= n || last.tokens > tokens {
			m.records = m.records[:k-1]
			continue
		}
		break
	}
	m.records = append(m.records, usageRecord{n, tokens})
}

// estimate is for the first n messages.
func (m *meter) estimate(n int) Estimate {
	m.mu.Lock()
	defer m.mu.Unlock()
	n = min(n, len(m.bytes)-1)
	if n <= 0 {
		return Estimate{0, EstimateMeasured}
	}
	if len(m.records) == 0 {
		return Estimate{m.bytes[n] / bytesPerToken, EstimateNoData}
	}
	i := sort.Search(len(m.records), func(i int) bool { return m.records[i].n >= n })
	var before usageRecord
	if i > 0 {
		before = m.records[i-1]
	}
	switch {
	case i == len(m.records):
		return Estimate{plus(before.tokens, (m.bytes[n]-m.bytes[before.n])/bytesPerToken), EstimateExtrapolated}
	case m.records[i].n == n:
		return Estimate{m.records[i].tokens, EstimateMeasured}
	}
	return m.between(before, m.records[i], n)
}

// between interpolates by bytes.
func (m *meter) between(a, b usageRecord, n int) Estimate {
	span := m.bytes[b.n] - m.bytes[a.n]
	if span <= 0 {
		return Estimate{a.tokens, EstimateInterpolated}
	}
	part := float64(m.bytes[n]-m.bytes[a.n]) / float64(span)
	more := part * float64(b.tokens-a.tokens)
	if more >= math.MaxInt64 { // a provider may state any number
		return Estimate{b.tokens, EstimateInterpolated}
	}
	return Estimate{min(plus(a.tokens, int64(more)), b.tokens), EstimateInterpolated}
}

// plus adds two numbers of tokens and stops at the largest.
func plus(a, b int64) int64 { return llm.N(a).Plus(llm.N(b)).Value() }

// messageBytes is about the size of the message on the wire.
func messageBytes(m llm.Message) int64 {
	n := 16
	for _, p := range m.Parts {
		switch p := p.(type) {
		case llm.Text:
			n += 24 + len(p.Text)
		case llm.Thinking:
			n += 24 + len(p.Text) + len(p.Opaque.Data)
		case llm.System:
			n += 24 + len(p.Text)
		case llm.Call:
			n += 48 + len(p.Name) + len(p.Args) + len(p.ID)
		case llm.Result:
			n += 48 + len(p.Summary) + len(p.Content) + len(p.CallID)
			for _, i := range p.Images {
				n += len(i.Data)
			}
		case llm.Image:
			n += 48 + len(p.Data)
		}
	}
	return int64(n)
}

// Estimate is how many tokens a request of the first n messages would take.
func (h handle) Estimate(n int) Estimate {
	if h.core == nil {
		return Estimate{}
	}
	h.core.meter.grow(h.History())
	return h.core.meter.estimate(n)
}
