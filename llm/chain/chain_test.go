// SPDX-License-Identifier: Apache-2.0

package chain_test

import (
	"errors"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/chain"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
)

var (
	limited = &llm.Error{Class: llm.ClassRateLimit, Op: "a", Status: 429}
	denied  = &llm.Error{Class: llm.ClassAuth, Op: "a", Status: 401}
)

// ask sends one request and tells what came of it.
func ask(t *testing.T, c llm.Client) (text string, moved int, err error) {
	t.Helper()
	var col collect.Collector
	for ev, err := range c.Stream(t.Context(), &llm.Request{Messages: []llm.Message{llm.UserText("x")}}) {
		if err != nil {
			return "", moved, err
		}
		if _, ok := ev.(llm.Failover); ok {
			moved++
		}
		if err := col.Add(ev); err != nil {
			t.Fatal(err)
		}
	}
	r, err := col.Reply()
	return r.Message.Text(), moved, err
}

// The fourth refusal in a row goes over to the next client in the same request,
// says so, and stays there (B-27).
func TestB27_FailsOverAfterRetries(t *testing.T) {
	a := llmtest.NewScript(llmtest.Fail(limited), llmtest.Fail(limited), llmtest.Fail(limited), llmtest.Fail(limited))
	b := llmtest.NewScript(llmtest.Say("from b"), llmtest.Say("again"))
	c := chain.New(a, b)
	for range 3 {
		if _, moved, err := ask(t, c); !errors.Is(err, limited) || moved != 0 {
			t.Fatalf("got %v, %d moves, want the refusal", err, moved)
		}
	}
	if text, moved, err := ask(t, c); text != "from b" || moved != 1 || err != nil {
		t.Fatalf("got %q, %d moves, %v", text, moved, err)
	}
	if text, moved, err := ask(t, c); text != "again" || moved != 0 || err != nil {
		t.Fatalf("got %q, %d moves, %v", text, moved, err)
	}
}

// A reply between refusals starts the count anew, and an error of another class
// never moves on.
func TestCountsRefusalsInARow(t *testing.T) {
	a := llmtest.NewScript(llmtest.Fail(limited), llmtest.Say("ok"), llmtest.Fail(limited), llmtest.Fail(denied), llmtest.Fail(limited))
	c := chain.New(a, llmtest.NewScript())
	c.After = 2
	for i, want := range []error{limited, nil, limited, denied, limited} {
		if _, moved, err := ask(t, c); !errors.Is(err, want) || moved != 0 {
			t.Fatalf("request %d: got %v, %d moves, want %v", i, err, moved, want)
		}
	}
}

// A stream that was refused after its reply had begun is not sent elsewhere in
// mid-reply.
func TestNeverInTheMiddleOfAReply(t *testing.T) {
	a := llmtest.NewScript(llmtest.Break(limited, llm.BlockStart{Index: 0}))
	c := chain.New(a, llmtest.NewScript(llmtest.Say("b")))
	c.After = 1
	if _, moved, err := ask(t, c); !errors.Is(err, limited) || moved != 0 {
		t.Fatalf("got %v, %d moves", err, moved)
	}
}

// The last client's refusal is the caller's.
func TestLastRefusalIsPassedOn(t *testing.T) {
	a, b := llmtest.NewScript(llmtest.Fail(limited)), llmtest.NewScript(llmtest.Fail(limited))
	c := chain.New(a, b)
	c.After = 1
	if _, moved, err := ask(t, c); !errors.Is(err, limited) || moved != 1 {
		t.Fatalf("got %v, %d moves", err, moved)
	}
}
