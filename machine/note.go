// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"encoding/json"
	"fmt"

	"github.com/fiducial-dev/fiducial/llm"
)

// The kinds of [llm.System] notes that the machine writes.
const (
	KindContinuation     = "continuation"      // after a reply that was cut (S-58)
	KindInterrupted      = "interrupted"       // after an operation that was lost (S-74)
	KindGenerationNotice = "generation_notice" // see [Notice] (S-115)
)

// ContinuePrompt asks a model to go on after a reply that was cut at the output
// limit (S-58).
const ContinuePrompt = "Your last reply reached the output limit and was cut off. " +
	"Take it up exactly where it stops, without repeating any of it and without a comment on the cut. " +
	"When much is left, do it in smaller steps."

// InterruptedPrompt tells a model that an operation was lost (S-74).
const InterruptedPrompt = "The work was interrupted here and is taken up again now. " +
	"What was under way may have happened in part or in full: look before you repeat it."

// What calls without a result of their own are answered with.
const (
	notExecuted    = "not executed: "
	outcomeUnknown = "outcome unknown: may still be running"
	notRepeated    = "outcome unknown: it was started and may have run, in part or in full, and was not started again: "
	inspectFirst   = "Inspect what it may have changed before you repeat it."
)

func continuation() llm.Message {
	return noteMessage(llm.System{
		Kind: KindContinuation, Text: ContinuePrompt, Data: json.RawMessage(`{"reason":"max_tokens"}`),
	})
}

func interrupted(p PendingOperation) llm.Message {
	return noteMessage(llm.System{
		Kind: KindInterrupted, Text: InterruptedPrompt,
		Data: json.RawMessage(fmt.Sprintf(`{"pending":%q,"op":%d}`, p.Kind, p.Op)),
	})
}

func noteMessage(n llm.System) llm.Message {
	return llm.Message{Role: llm.RoleUser, Parts: []llm.Part{n}}
}

// NotRun is the result of a call that was not started, and why.
func NotRun(c llm.Call, cause string) llm.Result {
	return llm.Result{CallID: c.ID, Name: c.Name, Status: llm.StatusError, Summary: notExecuted + cause}
}

func unknown(c llm.Call) llm.Result {
	return llm.Result{
		CallID: c.ID, Name: c.Name, Status: llm.StatusUnknown, Summary: outcomeUnknown, Content: inspectFirst,
	}
}

// NotRepeated is the result of a call of which [BatchCall.Doubt] says that it may have
// run, when it is answered without being run again. Cause says why.
func NotRepeated(c llm.Call, cause string) llm.Result {
	r := unknown(c)
	r.Summary = notRepeated + cause
	return r
}
