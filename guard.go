// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/fiducial-dev/fiducial/llm"
)

// loopGuard watches for a model that makes the same calls and gets the same
// results again and again. It tells the model once, then stops the run.
type loopGuard struct {
	same int    // batches in a row that equal the one before
	last int    // history index of the last batch's results
	tell string // what to tell the model at the next boundary
	told bool
	stop bool
}

// batch looks at the batch that the history ends with.
func (g *loopGuard) batch(limit int, history []llm.Message) {
	n := len(history)
	if limit < 2 || n < 2 || history[n-1].Role != llm.RoleTool {
		return
	}
	prev := g.last
	g.last = n - 1
	if prev < 1 || prev >= n-1 || !sameBatch(history[prev-1], history[prev], history[n-2], history[n-1]) {
		*g = loopGuard{last: n - 1}
		return
	}
	if g.same++; g.same+1 < limit {
		return
	}
	if g.told {
		g.stop = true
		return
	}
	g.told = true
	g.tell = fmt.Sprintf("You have made the same calls %d times in a row, and the results were the same each time. "+
		"Making them again will change nothing: do something else, or say what stands in the way.", limit)
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
// the order of keys make no other call.
func sameArgs(a, b string) bool {
	if a == b {
		return true
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
