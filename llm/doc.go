// SPDX-License-Identifier: Apache-2.0

// Package llm holds the words that every other room speaks: messages and their
// parts, requests, stream events, usage, errors and [Client]. It is data only:
// it does no I/O, reads no clock and knows no provider.
//
// A message is a value. Code that holds one, or a slice of them, never sees it
// change: who wants another message makes another message.
package llm
