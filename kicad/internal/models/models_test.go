// SPDX-License-Identifier: Apache-2.0

package models_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/kicad/internal/models"
	"github.com/fiducial-dev/fiducial/llm"
)

// Model precedence, keys and their errors (B-129 to B-131).
func TestChoose(t *testing.T) {
	const secret = "sk-secret-0123456789"
	tests := []struct {
		name   string
		flag   string
		env    map[string]string
		want   string // the model's name
		vendor string
		err    string // words of the error
	}{
		{name: "nothing set", want: "builtin", vendor: "fiducial"},
		{name: "the only key", env: map[string]string{"ANTHROPIC_API_KEY": secret}, want: "claude-sonnet-5-5", vendor: "anthropic"},
		{name: "flag before environment", flag: "builtin", env: map[string]string{"FIDUCIAL_MODEL": "gpt-5.5", "OPENAI_API_KEY": secret}, want: "builtin", vendor: "fiducial"},
		{name: "environment before key", env: map[string]string{"FIDUCIAL_MODEL": "gpt-5.5", "OPENAI_API_KEY": secret, "ANTHROPIC_API_KEY": secret}, want: "gpt-5.5", vendor: "openai"},
		{name: "two keys", env: map[string]string{"OPENAI_API_KEY": secret, "ANTHROPIC_API_KEY": secret}, err: "ANTHROPIC_API_KEY, OPENAI_API_KEY"},
		{name: "no key", flag: "claude-opus-5-5", err: "ANTHROPIC_API_KEY"},
		{name: "either Google key", flag: "gemini-2.5-pro", env: map[string]string{"GOOGLE_API_KEY": secret}, want: "gemini-2.5-pro", vendor: "gemini"},
		{name: "no Google key", flag: "gemini-2.5-pro", err: "GEMINI_API_KEY or GOOGLE_API_KEY"},
		{name: "compatible, loopback without a key", flag: "compat:qwen3", env: map[string]string{"FIDUCIAL_BASE_URL": "http://127.0.0.1:11434/v1"}, want: "compat:qwen3"},
		{name: "compatible, elsewhere without a key", flag: "compat:qwen3", env: map[string]string{"FIDUCIAL_BASE_URL": "https://models.example.org/v1"}, err: "needs FIDUCIAL_API_KEY to be set"},
		{name: "compatible without an address", flag: "compat:qwen3", err: "FIDUCIAL_BASE_URL"},
		{name: "compatible without an id", flag: "compat:", err: "id"},
		{name: "unknown", flag: "hal-9000", err: "builtin"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := models.Choose(tt.flag, func(k string) string { return tt.env[k] })
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) || strings.Contains(err.Error(), secret) {
					t.Fatalf("got %v, want an error with %q and without the key", err, tt.err)
				}
				return
			}
			if err != nil || got.Name != tt.want {
				t.Fatalf("got %q, %v, want %q", got.Name, err, tt.want)
			}
			d, ok := got.Client.(llm.Describer)
			if tt.vendor != "" && (!ok || d.Describe().Vendor != tt.vendor) {
				t.Errorf("the client is %T, want one of %s", got.Client, tt.vendor)
			}
		})
	}
	_, err := models.Choose("", func(k string) string { return "x" + k })
	if err == nil || errors.Is(err, models.ErrAmbiguous) {
		t.Errorf("FIDUCIAL_MODEL set to nonsense: got %v", err)
	}
}
