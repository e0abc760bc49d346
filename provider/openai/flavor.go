// SPDX-License-Identifier: Apache-2.0

package openai

import (
	"net/url"
	"strings"
)

// A Flavor is a kind of server that speaks Chat Completions. It decides which
// fields are sent and how some are shaped; replies of every flavor are read the
// same way.
type Flavor string

// The flavors. Generic is a server of which nothing is known.
const (
	OpenAI     Flavor = "openai"
	Azure      Flavor = "azure"
	Generic    Flavor = "generic"
	Ollama     Flavor = "ollama"
	VLLM       Flavor = "vllm"
	LlamaCPP   Flavor = "llamacpp"
	LMStudio   Flavor = "lmstudio"
	OpenRouter Flavor = "openrouter"
	Groq       Flavor = "groq"
	DeepSeek   Flavor = "deepseek"
	Mistral    Flavor = "mistral"
	DashScope  Flavor = "dashscope"
)

// quirks are what a flavor wants of a request.
type quirks struct {
	base       string // the public address; empty for servers that have none
	legacyMax  bool   // the limit field is max_tokens
	noUsage    bool   // stream_options are refused; usage comes by itself
	reasoning  string // the field in which reasoning goes back; empty: nowhere
	effort     effort
	noParallel bool // parallel_tool_calls is not known
	cacheKey   bool // prompt_cache_key is known
	strict     bool // strict schemas are known
	shortIDs   bool // call ids have nine letters or digits
	plainIDs   bool // call ids have at most 40 letters, digits, _ and -; others take back what they gave
	bridge     bool // a user message may not follow a tool message
}

// effort is how a flavor is told how much to think.
type effort uint8

const (
	effortField  effort = iota // reasoning_effort
	effortNone                 // it cannot be told
	effortObject               // reasoning: {effort, max_tokens}, as OpenRouter has it
	effortBudget               // enable_thinking and thinking_budget, as DashScope has it
)

const (
	fieldReasoning = "reasoning_content"
	fieldDetails   = "reasoning_details"
)

// quirksOf are the quirks of a flavor, and whether there is such a flavor.
func quirksOf(f Flavor) (quirks, bool) {
	switch f {
	case OpenAI:
		return quirks{base: "https://api.openai.com/v1", cacheKey: true, strict: true, plainIDs: true}, true
	case Azure:
		return quirks{cacheKey: true, plainIDs: true}, true
	case OpenRouter:
		return quirks{
			base: "https://openrouter.ai/api/v1", legacyMax: true,
			reasoning: fieldDetails, effort: effortObject,
		}, true
	case Groq:
		return quirks{base: "https://api.groq.com/openai/v1"}, true
	case DeepSeek:
		// https://api-docs.deepseek.com/guides/thinking_mode: messages with calls
		// must carry their reasoning in all later requests, even an empty one.
		return quirks{
			base: "https://api.deepseek.com/v1", legacyMax: true, noParallel: true, reasoning: fieldReasoning,
		}, true
	case Mistral:
		return quirks{
			base: "https://api.mistral.ai/v1", legacyMax: true, noUsage: true, effort: effortNone,
			shortIDs: true, bridge: true,
		}, true
	case DashScope:
		return quirks{
			base: "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", legacyMax: true, effort: effortBudget,
		}, true
	case Ollama:
		return quirks{legacyMax: true, noParallel: true}, true
	case LlamaCPP:
		return quirks{legacyMax: true, effort: effortNone}, true
	case LMStudio:
		return quirks{legacyMax: true, noParallel: true}, true
	case VLLM, Generic:
		return quirks{legacyMax: true}, true
	}
	return quirks{}, false
}

// flavorOf guesses the flavor of a server by its address.
func flavorOf(base *url.URL) Flavor {
	host := base.Hostname()
	for _, known := range []struct {
		suffix string
		flavor Flavor
	}{
		{"api.openai.com", OpenAI},
		{".openai.azure.com", Azure},
		{".services.ai.azure.com", Azure},
		{"openrouter.ai", OpenRouter},
		{"api.groq.com", Groq},
		{"api.deepseek.com", DeepSeek},
		{"api.mistral.ai", Mistral},
		{".aliyuncs.com", DashScope},
	} {
		if strings.HasSuffix(host, known.suffix) {
			return known.flavor
		}
	}
	switch base.Port() {
	case "11434":
		return Ollama
	case "1234":
		return LMStudio
	}
	return Generic
}
