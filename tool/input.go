// SPDX-License-Identifier: Apache-2.0

package tool

import "regexp"

// A SpecError says why [New] made no tool: what is wrong with its name or with the
// type of its input, and what to write instead.
type SpecError struct {
	Tool  string
	Field string // of the input, such as "To.After"; empty when it is about no field
	Err   error  // what is wrong
}

func (e *SpecError) Error() string {
	text := "tool"
	if e.Tool != "" {
		text += " " + e.Tool
	}
	if e.Field != "" {
		text += ": field " + e.Field + " of its input"
	}
	return text + ": " + e.Err.Error()
}

func (e *SpecError) Unwrap() error { return e.Err }

// toolName is what all three providers take as a tool's name. OpenAI and Anthropic want 1
// to 64 ASCII letters, digits, _ and -
// (https://platform.openai.com/docs/api-reference/chat,
// https://platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use), and
// Gemini takes these with a letter or _ first
// (https://cloud.google.com/vertex-ai/generative-ai/docs/reference/nodejs/1.1.0/vertexai/functiondeclaration);
// read in November 2026.
var toolName = regexp.MustCompile(`^[a-zA-Z_][a-zA-Z0-9_-]{0,63}$`)

const toolNameRule = "a tool's name is made of 1 to 64 ASCII letters, digits, _ and -, and begins with a letter or _"

// propertyName is what Anthropic takes as the key of a property.
var propertyName = regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)

const propertyNameRule = "models take names of 1 to 64 ASCII letters, digits, _, . and -"
