// SPDX-License-Identifier: Apache-2.0

// Package openai speaks to models over two wire formats of OpenAI: Chat
// Completions ([NewChat]), which most other servers speak too, and Responses
// ([NewResponses]).
//
// Formats: https://platform.openai.com/docs/api-reference/chat and
// https://platform.openai.com/docs/api-reference/responses, as of November 2026.
// What compatible servers do differently is a [Flavor].
//
// The official SDK carries the requests: addresses, keys, and what Azure needs
// come from it, through [WithSDK]. Bodies are written and streams are read
// here, so that two requests of one conversation share their bytes and so that
// what a server leaves out, repeats or cuts is told apart. Nothing is retried.
package openai
