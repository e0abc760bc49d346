// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"encoding/json"
	"errors"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/tool"
)

// secret has blanks, so that a cut at a word leaves a part of it.
const secret = "Zq7Lm2Xv9 Kp4Rt8Wy3 Nb6Hd1Fg5Js0Ac"

func masked(s string) string { return strings.ReplaceAll(s, secret, "[masked]") }

// TestMaskedBeforeCut: whatever is cut short or quoted for the model is masked before,
// for half of a secret is found by nobody.
func TestMaskedBeforeCut(t *testing.T) {
	t.Parallel()
	type in struct {
		Text string `json:"text"`
		N    int    `json:"n,omitempty"`
	}
	text := func(_ context.Context, in in) (string, error) { return in.Text, nil }
	output := func(_ context.Context, in in) (tool.Output, error) {
		return tool.Output{Summary: "whole", Content: in.Text}, nil
	}
	value := func(_ context.Context, in in) ([]string, error) { return []string{in.Text}, nil }
	s, err := tool.NewServer(tool.Must(tool.New("text", "", text)), tool.Must(tool.New("output", "", output)), tool.Must(tool.New("value", "", value)))
	if err != nil {
		t.Fatal(err)
	}
	const limit = 6000
	if err := s.SetOutputLimit(limit, nil, nil); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ tool, input string }{
		"the first line":  {"text", quoted(strings.Repeat("v", 60) + " " + secret + "\n" + strings.Repeat("more\n", 60))},
		"a value":         {"value", quoted(strings.Repeat("v", 60) + " " + secret + strings.Repeat(" more", 60))},
		"the content":     {"output", quoted(strings.Repeat("v ", (limit-130)/2) + secret + strings.Repeat(" more", 60))},
		"a wrong value":   {"text", `{"text":"x","n":` + string(quote(strings.Repeat("v", 40)+" "+secret)) + `}`},
		"an unknown key":  {"text", `{"text":"x",` + string(quote(strings.Repeat("v", 40)+" "+secret)) + `:1}`},
		"an unknown tool": {strings.Repeat("v", 40) + " " + secret, `{}`},
	} {
		r := s.Execute(t.Context(), tool.Call{Name: c.tool, Input: json.RawMessage(c.input), Mask: masked})
		for part := range strings.FieldsSeq(secret) {
			if strings.Contains(r.Summary+r.Content, part) {
				t.Errorf("%s: shows %q of the secret: %.300s", name, part, r.Summary+r.Content)
			}
		}
		if r := s.Execute(t.Context(), tool.Call{Name: c.tool, Input: json.RawMessage(c.input)}); !strings.Contains(r.Summary+r.Content, secret[:9]) {
			t.Errorf("%s: the test asks for nothing: %.300s", name, r.Summary+r.Content)
		}
	}
}

func quote(s string) []byte {
	data, err := json.Marshal(s)
	if err != nil {
		panic(err)
	}
	return data
}

func quoted(text string) string { return `{"text":` + string(quote(text)) + `}` }

type hollow struct{ tool.Tool }

// TestUnusableTools: what is no tool is refused by name, and the server stays as it was.
func TestUnusableTools(t *testing.T) {
	t.Parallel()
	var s tool.Server
	for name, none := range map[string]tool.Tool{"nil": nil, "an embedded nil": hollow{}} {
		for _, err := range []error{s.Register(none), s.Replace(none)} {
			var refused *tool.ServerError
			if !errors.As(err, &refused) || !errors.Is(err, tool.ErrUnusable) {
				t.Errorf("%s: got %v, want ErrUnusable in a *ServerError", name, err)
			}
		}
		if _, err := tool.NewServer(none); !errors.Is(err, tool.ErrUnusable) {
			t.Errorf("%s: NewServer: got %v", name, err)
		}
	}
	if len(s.Specs()) != 0 {
		t.Errorf("the server has %v", s.Specs())
	}
	if _, err := tool.New("a", "", func(context.Context, struct{}) (string, error) { return "", nil }, nil); err != nil {
		t.Errorf("a nil option: %v", err)
	}
}

// TestGoexitWithinALimit: a tool that ends its goroutine is answered at once, not when
// its time limit has passed (E-110).
func TestGoexitWithinALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		leave := tool.Must(tool.New("leave", "", func(context.Context, struct{}) (string, error) {
			runtime.Goexit()
			return "", nil
		}, tool.WithTraits(tool.Traits{TimeLimit: time.Hour})))
		s, err := tool.NewServer(leave)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		r := s.Execute(t.Context(), tool.Call{Name: "leave", Input: json.RawMessage("{}")})
		if r.Status != llm.StatusError || !strings.Contains(r.Summary, "ended its goroutine") || time.Since(began) > 0 {
			t.Errorf("after %v: %+v", time.Since(began), r)
		}
	})
}

// TestFaultsOfDeepInput: the words for the place of a fault cost what is told, not what
// was looked at, and tell its end.
func TestFaultsOfDeepInput(t *testing.T) { //nolint:paralleltest // it counts allocations
	type in struct {
		V any `json:"v"`
		N int `json:"n"`
	}
	any1 := tool.Must(tool.New("deep", "", func(context.Context, in) (string, error) { return "", nil }))
	const levels = 5000
	deep := strings.Repeat(`{"`+strings.Repeat("k", 200)+`":`, levels) + `{"a":1,"a":2}` + strings.Repeat("}", levels)
	s, err := tool.NewServer(any1)
	if err != nil {
		t.Fatal(err)
	}
	input := json.RawMessage(`{"n":"x","v":` + deep + `}`)
	var r llm.Result
	allocated := testing.AllocsPerRun(1, func() {
		r = s.Execute(t.Context(), tool.Call{Name: "deep", Input: input})
	})
	if !strings.Contains(r.Summary, `"n" is the string "x" and must be an integer`) || !strings.Contains(r.Summary, `.a" is given more than once`) || len(r.Summary) > 4096 {
		t.Errorf("%d bytes: %.500s", len(r.Summary), r.Summary)
	}
	if allocated > 40*levels {
		t.Errorf("%v allocations for %d levels", allocated, levels)
	}
}
