// SPDX-License-Identifier: Apache-2.0

// Package task runs an agent that must finish: a run ends well only through the
// finish tool, with every gate open and every obligation met, and otherwise the
// working tree is put back as it was.
//
// [Rules] are what holds in the loop: turn budget with extension, stalls, repair
// cycles, locked tools, obligations, gates. They are an interceptor of the engine
// and know no domain. [Run] puts a workspace, a transcript and a summary around
// them. A [Domain] brings the tools.
package task
