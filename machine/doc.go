// SPDX-License-Identifier: Apache-2.0

// Package machine is the agent loop as a pure state machine.
//
// [State.Step] takes one input and returns the effect that the caller must carry
// out next. The machine has no model, no tools, no clock, no context and no
// goroutine, and it does no I/O, so that the same inputs always give the same
// states and effects. Anything can interpret the effects: the engine of this
// module, a durable workflow, a test.
//
// The inputs that were accepted are all there is to know of a run: a journal
// stores them, and feeding them to a new State gives the same State again.
package machine
