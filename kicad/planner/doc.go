// SPDX-License-Identifier: Apache-2.0

// Package planner is the built-in model: an [llm.Client] that carries out
// mechanical requests by rule, without an account and without a network.
//
// It sees what every model sees, the conversation, and does what every model can
// do, call tools. It holds no state: each reply is worked out from the
// conversation alone, so that a run can stop and go on anywhere. What it does not
// understand it refuses, and says what it can do.
package planner
