// SPDX-License-Identifier: Apache-2.0

// Package fiducial drives a language model and tools at replayable boundaries.
//
// An [Engine] is put together, locked, and run:
//
//	eng := fiducial.New(client, fiducial.WithSystem("You are careful."), fiducial.WithTools(add))
//	locked, err := eng.Lock()
//	out, err := locked.Run(ctx, llm.UserText("What is 2+3?"))
//
// Three things hold by construction. A history with a call that has no result is
// never sent. A call is never run twice, unless its tool says that twice is as
// good as once: with a journal, a process that dies in a call leaves it "outcome
// unknown", and [Locked.Resume] in another process says so to the model instead of
// running it again. And the prompt prefix that a provider
// has in its cache (system prompt, tools, history at the lock) never changes behind
// its back: what would change it is an error that names it.
package fiducial
