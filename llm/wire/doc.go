// SPDX-License-Identifier: Apache-2.0

// Package wire holds what adapters to model providers share below their formats:
// classes for HTTP errors, waits that servers ask for, errors without secrets,
// time limits of a stream, tool names and call ids that providers accept, and
// JSON whose bytes depend on nothing but its content.
//
// It knows no provider. What only one provider says is told apart in that
// provider's adapter.
package wire
