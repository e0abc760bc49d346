// SPDX-License-Identifier: Apache-2.0

// Package anthropic speaks the Messages API of Anthropic, and of servers that
// offer the same, for [llm.Client].
//
// The format is that of https://platform.claude.com/docs/en/api/messages. The
// vendor's SDK is used for transport and authorisation, which brings Bedrock and
// Vertex by its options ([WithSDK]); its retries are off, since the engine alone
// retries. Bodies are written and read here: the SDK's encoder escapes < and > in
// a model's own arguments and drops their white space, so that an echoed call
// would not be the one that was made, and its accumulator turns cut arguments into
// an empty object.
package anthropic
