// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/fiducial-dev/fiducial/llm"
)

// loopGuard watches for a model that makes the same calls and gets the same
// results again and again, and for one whose calls all fail. It tells the model once, then stops the run. What it
// knows follows from the history and its boundaries, so that another process comes
// to the same.
type loopGuard struct {
	from int        // messages before this one do not count
	last int        // history index of the last batch's results, 0 when there was none
	same int        // batches in a row that equal the one before
	tell llm.System // what to tell the model at this boundary; without a text nothing
	told bool
	stop string // why to stop

	failed int // batches in a row of which every call failed
}

// guardLimits are those of [WithLoopGuard] and [WithFailureGuard].
type guardLimits struct{ same, failed int }

// The kinds of the notes that tell the model.
const (
	kindRepeated = "repeated_calls"
	kindFailing  = "failing_calls"
)

// look is asked at a boundary. It takes in the batch that was completed since the
// one before, if any.
func (g *loopGuard) look(limit guardLimits, history []llm.Message) {
	told := false
	for i := len(history) - 1; (limit.same >= 2 || limit.failed > 0) && i > max(g.from, g.last); i-- {
		if history[i].Role == llm.RoleTool {
			g.batch(limit.same, history[:i+1])
			g.fruitless(limit.failed, history[i])
			if told { // by a process that is gone
				g.tell = llm.System{}
			}
			return
		}
		told = told || holdsNote(history[i], kindRepeated) || holdsNote(history[i], kindFailing)
	}
}

// fruitless counts the batches in a row that got nothing but errors.
func (g *loopGuard) fruitless(limit int, results llm.Message) {
	for _, p := range results.Parts {
		if r, ok := p.(llm.Result); !ok || r.Status != llm.StatusError {
			g.failed = 0
			return
		}
	}
	g.failed++
	switch {
	case limit <= 0:
	case g.failed/2 >= limit:
		g.stop = fmt.Sprintf("every call of the last %d batches failed", g.failed)
	case g.failed == limit:
		g.tell = llm.System{Kind: kindFailing, Text: fmt.Sprintf("Every call of your last %d replies has failed. "+
			"Read what the results say: use only the tools that there are, with the arguments that they take, or say what stands in the way.", limit)}
	}
}

func holdsNote(m llm.Message, kind string) bool {
	return slices.ContainsFunc(m.Parts, func(p llm.Part) bool {
		n, ok := p.(llm.System)
		return ok && n.Kind == kind
	})
}

// batch looks at the batch that the history ends with.
func (g *loopGuard) batch(limit int, history []llm.Message) {
	n := len(history)
	prev := g.last
	g.last = n - 1
	if limit < 2 || prev < 1 || !sameBatch(history[prev-1], history[prev], history[n-2], history[n-1]) {
		*g = loopGuard{from: g.from, last: n - 1, failed: g.failed}
		return
	}
	if g.same++; g.same+1 < limit {
		return
	}
	if g.told {
		g.stop = "the same calls had the same results again, and the model had been told"
		return
	}
	g.told = true
	g.tell.Kind, g.tell.Text = kindRepeated, fmt.Sprintf("You have made the same calls %d times in a row, and the results were the same each time. "+
		"Making them again will change nothing: do something else, or say what stands in the way.", limit)
}

// tellLoop tells the model what the guard has seen.
func (r *run) tellLoop() error {
	note := r.guard.tell
	if note.Text == "" {
		return nil
	}
	r.guard.tell = llm.System{}
	return r.takeIn(nil, []llm.Message{{Role: llm.RoleUser, Parts: []llm.Part{note}}})
}

func sameBatch(calls1, results1, calls2, results2 llm.Message) bool {
	if calls1.CountCalls() != calls2.CountCalls() || len(results1.Parts) != len(results2.Parts) {
		return false
	}
	for i := range results1.Parts { // first, for it costs less
		a, ok1 := results1.Parts[i].(llm.Result)
		b, ok2 := results2.Parts[i].(llm.Result)
		if !ok1 || !ok2 || a.Status != b.Status || a.Summary != b.Summary || a.Content != b.Content {
			return false
		}
	}
	for i, a := range calls1.Calls() {
		if b := callAt(calls2, i); a.Name != b.Name || !sameArgs(a.Args, b.Args) {
			return false
		}
	}
	return true
}

// sameArgs reports whether two texts of arguments say the same: white space and
// the order of keys make no other call, and no text is an empty object (E-126).
func sameArgs(a, b string) bool {
	if a == b {
		return true
	}
	if strings.TrimSpace(a) == "" {
		a = "{}"
	}
	if strings.TrimSpace(b) == "" {
		b = "{}"
	}
	m, n := weight(a), weight(b)
	return (m == n || m < 0 || n < 0) && canonical(a) == canonical(b)
}

// weight is the same for texts that differ in white space and order alone; it is
// negative for those that hold an escape, and then says nothing.
func weight(args string) (sum int) {
	for i := range len(args) {
		switch c := args[i]; c {
		case ' ', '\t', '\n', '\r':
		case '\\':
			return -1
		default:
			sum += int(c)
		}
	}
	return sum
}

// canonical is the same for the same JSON value, numbers by their digits. What is no
// JSON stays as it is.
func canonical(args string) string {
	var v any
	dec := json.NewDecoder(strings.NewReader(args))
	dec.UseNumber()
	if dec.Decode(&v) != nil || dec.More() {
		return args
	}
	return string(mustJSON(v))
}

func callAt(m llm.Message, ordinal int) llm.Call {
	for i, c := range m.Calls() {
		if i == ordinal {
			return c
		}
	}
	return llm.Call{}
}
