// SPDX-License-Identifier: Apache-2.0

// Package tool holds what a model can call: tools, the server that keeps them,
// and the limits on what they say.
//
// A tool never ends a run. Whatever goes wrong in one (bad input, an error, a
// panic, too much output, a time limit) becomes a [Result] that the model reads.
package tool
