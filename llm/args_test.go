// SPDX-License-Identifier: Apache-2.0

package llm_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/fiducial-dev/fiducial/llm"
)

// TestE126_Arguments: empty is the empty object, what is no object is an error that
// quotes the problem, and a provider is sent {} in its place.
func TestE126_Arguments(t *testing.T) {
	for _, c := range []struct{ args, input, echo, problem string }{
		{args: "", input: "{}", echo: "{}"},
		{args: " \n\t", input: "{}", echo: "{}"},
		{args: "{}", input: "{}", echo: "{}"},
		{args: ` {"a": 1} `, input: `{"a": 1}`, echo: ` {"a": 1} `},
		{args: `{"a":`, echo: "{}", problem: `unexpected EOF, in "{\"a\":"`},
		{args: `{"a":1} x`, echo: "{}", problem: `text after the value: "x"`},
		{args: `{}{}`, echo: "{}", problem: `text after the value: "{}"`},
		{args: `[1]`, echo: "{}", problem: `an array was given: "[1]"`},
		{args: `"a"`, echo: "{}", problem: `a string was given: "\"a\""`},
		{args: `1`, echo: "{}", problem: `a number was given: "1"`},
		{args: `true`, echo: "{}", problem: `a boolean was given: "true"`},
		{args: `null`, echo: "{}", problem: `null was given: "null"`},
		{args: `nope`, echo: "{}", problem: `in "nope"`},
	} {
		call := llm.Call{Name: "look", Args: c.args}
		got, err := call.Input()
		if string(got) != c.input || (err != nil) != (c.problem != "") {
			t.Errorf("%q: %s, %v, want %s", c.args, got, err, c.input)
		}
		var ae *llm.ArgumentError
		if c.problem != "" && (!errors.As(err, &ae) || ae.Tool != "look" || !strings.Contains(ae.Problem, c.problem)) {
			t.Errorf("%q: %v, want %s", c.args, err, c.problem)
		}
		if got := call.EchoArgs(); got != c.echo {
			t.Errorf("%q is echoed as %q, want %q", c.args, got, c.echo)
		}
		if call.Args != c.args {
			t.Errorf("%q was changed to %q", c.args, call.Args)
		}
	}
	_, err := (llm.Call{Name: "look", Args: "[" + strings.Repeat("é", 5000)}).Input()
	if err == nil || len(err.Error()) > 500 || !strings.Contains(err.Error(), "(cut)") {
		t.Errorf("long arguments are quoted as %v", err)
	}
}

func FuzzArguments(f *testing.F) {
	for _, s := range []string{"", "{}", `{"a":1}`, "[", "\xff{}", "\u00a0"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, args string) {
		call := llm.Call{Name: "look", Args: args}
		input, err := call.Input()
		var object map[string]any
		if err == nil && json.Unmarshal(input, &object) != nil {
			t.Fatalf("%q is given to the tool as %s", args, input)
		}
		if json.Unmarshal([]byte(call.EchoArgs()), &object) != nil {
			t.Fatalf("%q is echoed as %s", args, call.EchoArgs())
		}
		if json.Unmarshal([]byte(args), &object) == nil && object != nil && err != nil {
			t.Fatalf("%q is an object and was refused: %v", args, err)
		}
	})
}

func TestCutUTF8(t *testing.T) {
	for _, c := range []struct {
		s    string
		n    int
		want string
	}{
		{"abc", 3, "abc"},
		{"abc", 9, "abc"},
		{"abc", 2, "ab"},
		{"abc", 0, ""},
		{"abc", -1, ""},
		{"", 0, ""},
		{"", -1, ""},
		{"aéb", 2, "a"},
		{"aéb", 3, "aé"},
		{"é", 1, ""},
		{"€€", 5, "€"},
		{"😀", 3, ""},
		{"😀x", 4, "😀"},
	} {
		if got := llm.CutUTF8(c.s, c.n); got != c.want {
			t.Errorf("CutUTF8(%q, %d) = %q, want %q", c.s, c.n, got, c.want)
		}
	}
}

func FuzzCutUTF8(f *testing.F) {
	f.Add("a€😀", 4)
	f.Add("\x80\x80", 1)
	f.Fuzz(func(t *testing.T, s string, n int) {
		got := llm.CutUTF8(s, n)
		if !strings.HasPrefix(s, got) || len(got) > max(n, 0) {
			t.Fatalf("CutUTF8(%q, %d) = %q", s, n, got)
		}
		if utf8.ValidString(s) && (!utf8.ValidString(got) || len(s) > len(got) && n-len(got) >= utf8.UTFMax) {
			t.Fatalf("CutUTF8(%q, %d) = %q", s, n, got)
		}
	})
}
