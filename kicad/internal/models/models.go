// SPDX-License-Identifier: Apache-2.0

// Package models finds the model that a command is to use: the built-in planner,
// a provider's, or one behind a compatible endpoint. Keys come from the
// environment alone.
package models

import (
	"errors"
	"fmt"
	"strings"

	"github.com/fiducial-dev/fiducial/kicad/planner"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/chain"
	"github.com/fiducial-dev/fiducial/provider/anthropic"
	"github.com/fiducial-dev/fiducial/provider/gemini"
	"github.com/fiducial-dev/fiducial/provider/openai"
)

// The variables that are looked at, beside the keys.
const (
	EnvModel   = "FIDUCIAL_MODEL"
	EnvBaseURL = "FIDUCIAL_BASE_URL" // of a compat: model
	EnvKey     = "FIDUCIAL_API_KEY"  // of a compat: model; a loopback address needs none
)

// Usage names what can be chosen, for help texts.
const Usage = `builtin, claude-..., gpt-..., gemini-..., or compat:ID for a server that speaks OpenAI's Chat Completions at ` + EnvBaseURL

// A Choice is a model that was chosen.
type Choice struct {
	Name     string
	Client   llm.Client
	Settings llm.Settings
}

// A MissingError says which variable has to be set for a model. It never holds a
// value.
type MissingError struct {
	Model     string
	Variables []string // any one of them will do
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("model %s needs %s to be set", e.Model, strings.Join(e.Variables, " or "))
}

// ErrAmbiguous says that several keys are set and no model is named.
var ErrAmbiguous = errors.New("several provider keys are set and no model is named")

// provider is a vendor with a key of its own.
type provider struct {
	prefixes []string
	keys     []string // variables, the first that is set counts
	baseURL  string   // variable, optional
	fallback string   // the model when this provider's is the only key (B-130)
	make     func(model, key, baseURL string) (llm.Client, error)
}

// The models taken when a key is all that is set are those that the vendors'
// SDKs name as of November 2026 (anthropic-sdk-go v2.15.0, openai-go v3.99.0).
func providers() []provider {
	return []provider{
		{[]string{"claude-"}, []string{"ANTHROPIC_API_KEY"}, "ANTHROPIC_BASE_URL", "claude-sonnet-5-5", newAnthropic},
		{[]string{"gpt-", "o1", "o3", "o4", "codex-"}, []string{"OPENAI_API_KEY"}, "OPENAI_BASE_URL", "gpt-5.5", newOpenAI},
		{[]string{"gemini-"}, []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, "GEMINI_BASE_URL", "gemini-2.5-pro", newGemini},
	}
}

// Choose finds the model: by the name that a flag gave, else by FIDUCIAL_MODEL,
// else by the only provider key that is set, else the built-in planner. Several
// keys and no name are [ErrAmbiguous]; a model whose key is not set is a
// [*MissingError].
func Choose(flag string, lookup func(string) string) (Choice, error) {
	name := flag
	if name == "" {
		name = lookup(EnvModel)
	}
	if name == "" {
		var err error
		if name, err = byKey(lookup); err != nil {
			return Choice{}, err
		}
	}
	if name == planner.Name {
		return Choice{Name: name, Client: planner.Client{}}, nil
	}
	if id, ok := strings.CutPrefix(name, "compat:"); ok {
		return compatible(name, id, lookup)
	}
	for _, p := range providers() {
		for _, prefix := range p.prefixes {
			if strings.HasPrefix(name, prefix) {
				return p.choose(name, lookup)
			}
		}
	}
	return Choice{}, fmt.Errorf("there is no model %q; choose one of: %s", name, Usage)
}

func byKey(lookup func(string) string) (string, error) {
	var found []string
	name := planner.Name
	for _, p := range providers() {
		if _, variable := p.key(lookup); variable != "" {
			found = append(found, variable)
			name = p.fallback
		}
	}
	if len(found) > 1 {
		return "", fmt.Errorf("%w (%s): choose one with --model or %s", ErrAmbiguous, strings.Join(found, ", "), EnvModel)
	}
	return name, nil
}

func (p provider) key(lookup func(string) string) (value, variable string) {
	for _, v := range p.keys {
		if value := lookup(v); value != "" {
			return value, v
		}
	}
	return "", ""
}

func (p provider) choose(name string, lookup func(string) string) (Choice, error) {
	if key, _ := p.key(lookup); key == "" {
		return Choice{}, &MissingError{name, p.keys}
	}
	first, err := p.client(name, lookup)
	if err != nil {
		return Choice{}, err
	}
	// Who has keys of several providers is served by another one when the chosen
	// one keeps refusing for want of capacity (B-27).
	var others []llm.Client
	for _, q := range providers() {
		if key, _ := q.key(lookup); key == "" || q.fallback == p.fallback {
			continue
		}
		client, err := q.client(q.fallback, lookup)
		if err != nil {
			return Choice{}, err
		}
		others = append(others, client)
	}
	if len(others) == 0 {
		return Choice{Name: name, Client: first}, nil
	}
	return Choice{Name: name, Client: chain.New(first, others...)}, nil
}

func (p provider) client(name string, lookup func(string) string) (llm.Client, error) {
	key, _ := p.key(lookup)
	return p.make(name, key, lookup(p.baseURL))
}

func compatible(name, id string, lookup func(string) string) (Choice, error) {
	base := lookup(EnvBaseURL)
	switch {
	case id == "":
		return Choice{}, fmt.Errorf("compat: needs the model's id behind the colon, as the server names it")
	case base == "":
		return Choice{}, &MissingError{name, []string{EnvBaseURL}}
	}
	opts := []openai.Option{openai.WithBaseURL(base)}
	if key := lookup(EnvKey); key != "" {
		opts = append(opts, openai.WithAPIKey(key))
	}
	client, err := openai.NewChat(id, opts...)
	switch {
	case llm.ClassOf(err) == llm.ClassAuth: // in words of this program, not of the library
		return Choice{}, &MissingError{name, []string{EnvKey}}
	case err != nil:
		return Choice{}, err
	}
	return Choice{Name: name, Client: client}, nil
}

func newAnthropic(model, key, base string) (llm.Client, error) {
	opts := []anthropic.Option{anthropic.WithAPIKey(key)}
	if base != "" {
		opts = append(opts, anthropic.WithBaseURL(base))
	}
	return anthropic.New(model, opts...)
}

func newOpenAI(model, key, base string) (llm.Client, error) {
	opts := []openai.Option{openai.WithAPIKey(key)}
	if base != "" {
		opts = append(opts, openai.WithBaseURL(base))
	}
	return openai.NewResponses(model, opts...)
}

func newGemini(model, key, base string) (llm.Client, error) {
	opts := []gemini.Option{gemini.WithAPIKey(key)}
	if base != "" {
		opts = append(opts, gemini.WithBaseURL(base))
	}
	return gemini.New(model, opts...)
}
