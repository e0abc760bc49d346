// SPDX-License-Identifier: Apache-2.0

package reply

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/fiducial-dev/fiducial/llm"
)

// LooseText is a string where some servers send something else, which then counts as
// nothing.
type LooseText string

// UnmarshalJSON reads a string, and passes over everything else.
func (t *LooseText) UnmarshalJSON(data []byte) error {
	if data[0] != '"' {
		return nil
	}
	return json.Unmarshal(data, (*string)(t))
}

// LooseCount is a number of tokens, also as a fraction or in quotes, as gateways
// write it. A report that cannot be read must not cost the reply.
type LooseCount struct{ llm.Count }

// UnmarshalJSON reads a number that is not below zero, and passes over everything
// else.
func (c *LooseCount) UnmarshalJSON(data []byte) error {
	f, err := strconv.ParseFloat(strings.Trim(string(data), `"`), 64)
	if err == nil && f >= 0 && f < 1<<53 {
		c.Count = llm.N(int64(f))
	}
	return nil
}

// noCredit is how providers say that the account is empty, in lower case: DeepSeek,
// Zhipu in two languages, xAI and Google. They answer 429 as for a rate that is too
// high, but waiting does not mend it.
var noCredit = []string{"insufficient balance", "余额不足", "used all available credits", "prepayment credits are depleted"}

// NoCredit reports whether message is how a provider says that the account is empty.
func NoCredit(message string) bool {
	low := strings.ToLower(message)
	return slices.ContainsFunc(noCredit, func(w string) bool { return strings.Contains(low, w) })
}
