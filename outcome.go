// SPDX-License-Identifier: Apache-2.0

package fiducial

import (
	"strings"

	"github.com/fiducial-dev/fiducial/llm"
)

// A Reason says how a run ended.
type Reason string

// The reasons.
const (
	Finished              Reason = "finished"
	OutputCap             Reason = "output cap"              // cut at the output limit more often than is continued (S-57)
	Paused                Reason = "paused"                  // Resume goes on
	Yielded               Reason = "yielded"                 // an interceptor handed back before a request; Resume goes on
	LimitReached          Reason = "limit reached"           // see [Outcome.Limit]; Resume goes on when the limit was raised
	ContextWindowExceeded Reason = "context window exceeded" // with an error
	Cancelled             Reason = "cancelled"               // with an error
	Failed                Reason = "failed"                  // with an error
)

// A Limit is what ended a run as [LimitReached].
type Limit string

// The limits.
const (
	LimitTurns  Limit = "turns"  // see [WithTurnLimit]
	LimitTokens Limit = "tokens" // see [WithTokenBudget]
	LimitLoop   Limit = "loop"   // see [WithLoopGuard] and [WithFailureGuard]
)

// An Outcome says how a run ended and what it cost. It is valid also beside an
// error.
type Outcome struct {
	Reason Reason

	// Answer is the last reply's text and images. It is set when Reason is
	// Finished or OutputCap.
	Answer []llm.Part

	// Stop is the last reply's stop reason, empty when there was no reply.
	Stop llm.StopReason

	// Limit says which limit was reached, Detail what a person may want to know of
	// a limit, a pause or a yield.
	Limit  Limit
	Detail string

	// Usage is what all requests of the run have cost, broken ones included. Input
	// counts the whole prompt of each request.
	Usage llm.Usage

	// Turns is how many replies the run has had; Requests how often a model was
	// asked; Batches how many batches of calls there were.
	Turns, Requests, Batches int
}

// clone shares nothing with o that could be written to.
func (o Outcome) clone() Outcome {
	o.Answer = llm.CloneParts(o.Answer)
	return o
}

// Text is the answer's text.
func (o Outcome) Text() string {
	var b strings.Builder
	for _, p := range o.Answer {
		if t, ok := p.(llm.Text); ok {
			b.WriteString(t.Text)
		}
	}
	return b.String()
}
