// SPDX-License-Identifier: Apache-2.0

package machine

import (
	"fmt"

	"github.com/fiducial-dev/fiducial/llm"
)

// ValidateContext reports whether messages are a conversation that a model may be
// given (S-69): each message holds the parts that its role allows, ids of calls are
// not empty and unique within their reply, and each reply with calls is followed at
// once by one message with one result for each call, the same ids in the same
// order. An empty list is valid. An error is a [*StateError] of kind
// [InvalidContext] that names the message (S-70).
func ValidateContext(messages []llm.Message) error {
	if err := checkContext(messages); err != nil {
		return err
	}
	return nil
}

func checkContext(messages []llm.Message) *StateError {
	if err := checkPrefix(messages); err != nil {
		return err
	}
	if n := len(messages); n > 0 {
		if calls := messages[n-1].CountCalls(); calls > 0 {
			return failure(InvalidContext, n-1, "message %d ends the history with %d calls that have no results", n-1, calls)
		}
	}
	return nil
}

// checkPrefix is checkContext but for calls of the last message.
func checkPrefix(messages []llm.Message) *StateError {
	var open llm.Message // the reply whose calls wait for results
	calls := 0
	for i, m := range messages {
		n, detail := checkMessage(m)
		switch {
		case detail != "":
			return failure(InvalidContext, i, "message %d: %s", i, detail)
		case calls > 0 && m.Role != llm.RoleTool:
			return failure(InvalidContext, i, "message %d stands between %d calls and their results", i, calls)
		case calls == 0 && m.Role == llm.RoleTool:
			return failure(InvalidContext, i, "message %d holds results and follows no calls", i)
		case calls > 0:
			if err := checkPairs(i, open, calls, m); err != nil {
				return err
			}
		}
		open, calls = m, n
	}
	return nil
}

func checkPairs(index int, reply llm.Message, calls int, results llm.Message) *StateError {
	if len(results.Parts) != calls {
		return failure(InvalidContext, index, "message %d holds %d results for %d calls", index, len(results.Parts), calls)
	}
	for i, c := range reply.Calls() {
		if r, ok := results.Parts[i].(llm.Result); ok && r.CallID != c.ID {
			return failure(InvalidContext, index, "message %d: result %d answers %q, call %d is %q", index, i, r.CallID, i, c.ID)
		}
	}
	return nil
}

// checkMessage looks at one message alone. It returns the number of its calls, and
// what is wrong with it, if anything.
func checkMessage(m llm.Message) (calls int, wrong string) {
	switch m.Role {
	case llm.RoleUser, llm.RoleAssistant:
	case llm.RoleTool:
		if len(m.Parts) == 0 {
			return 0, "it holds no results"
		}
	default:
		return 0, "it has no known role: " + string(m.Role)
	}
	for _, p := range m.Parts {
		ok := false
		switch p.(type) {
		case llm.Text, llm.Image:
			ok = m.Role != llm.RoleTool
		case llm.System:
			ok = m.Role == llm.RoleUser
		case llm.Thinking:
			ok = m.Role == llm.RoleAssistant
		case llm.Call:
			ok = m.Role == llm.RoleAssistant
			calls++
		case llm.Result:
			ok = m.Role == llm.RoleTool
		}
		if !ok {
			return 0, "a message of role " + string(m.Role) + " cannot hold a " + partName(p)
		}
	}
	return calls, checkIDs(m, calls)
}

// checkIDs wants an id on each call, and no id twice.
func checkIDs(m llm.Message, calls int) string {
	const few = 16 // up to here comparing each with each costs less than a map
	var seen map[string]bool
	if calls > few {
		seen = make(map[string]bool, calls)
	}
	for i, c := range m.Calls() {
		switch {
		case c.ID == "":
			return "a call of " + c.Name + " has no id"
		case seen[c.ID], seen == nil && hasEarlier(m, i, c.ID):
			return "the call id " + c.ID + " is used twice"
		case seen != nil:
			seen[c.ID] = true
		}
	}
	return ""
}

func hasEarlier(m llm.Message, ordinal int, id string) bool {
	for i, c := range m.Calls() {
		if i >= ordinal {
			return false
		}
		if c.ID == id {
			return true
		}
	}
	return false
}

func partName(p llm.Part) string {
	switch p.(type) {
	case llm.Text:
		return "text"
	case llm.Image:
		return "picture"
	case llm.Thinking:
		return "thinking part"
	case llm.System:
		return "system part"
	case llm.Call:
		return "call"
	case llm.Result:
		return "result"
	}
	if p == nil {
		return "nil part"
	}
	return fmt.Sprintf("%T, which is no part; give the value, not a pointer to it", p)
}

// checkReply is what the machine asks of a model's reply (S-42, S-44). It returns
// the number of calls.
func checkReply(m llm.Message) (int, *StateError) {
	if m.Role != llm.RoleAssistant {
		return 0, failure(InvalidResponse, -1, "a reply has the role %q", m.Role)
	}
	calls, wrong := checkMessage(m)
	switch {
	case wrong != "":
		return 0, failure(InvalidResponse, -1, "in the reply, %s", wrong)
	case m.Stop == "":
		return 0, failure(InvalidResponse, -1, "the reply has no stop reason")
	case m.Stop == llm.StopToolUse && calls == 0:
		return 0, failure(InvalidResponse, -1, "the reply stopped for tool use and holds no call")
	}
	return calls, nil
}

// checkInput is what the machine asks of messages from outside.
func checkInput(messages []llm.Message) *StateError {
	if len(messages) == 0 {
		return failure(InvalidContext, -1, "no message is given")
	}
	for i, m := range messages {
		if m.Role != llm.RoleUser {
			return failure(InvalidContext, i, "only user messages come from outside, not one of role %q", m.Role)
		}
		if _, wrong := checkMessage(m); wrong != "" {
			return failure(InvalidContext, i, "%s", wrong)
		}
	}
	return nil
}
