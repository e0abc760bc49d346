// SPDX-License-Identifier: Apache-2.0

package llmtest_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/chain"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
)

// events are a whole reply.
func events() []llm.Event {
	return []llm.Event{
		llm.BlockStart{Index: 0},
		llm.BlockDelta{Index: 0, Text: "so "},
		llm.BlockDelta{Index: 0, Text: "it is"},
		llm.BlockStop{Index: 0},
		llm.UsageReport{Usage: llm.Usage{Output: llm.N(3)}},
		llm.Finish{Stop: llm.StopEndTurn},
	}
}

// speak is a model that looks at its context and yields events.
func speak(events ...llm.Event) llmtest.Turn {
	return func(ctx context.Context, _ *llm.Request) iter.Seq2[llm.Event, error] {
		return func(yield func(llm.Event, error) bool) {
			for _, ev := range events {
				if ctx.Err() != nil {
					yield(nil, context.Cause(ctx))
					return
				}
				if !yield(ev, nil) {
					return
				}
			}
		}
	}
}

// refuses is a model that fails as it should.
func refuses(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	if ctx.Err() != nil {
		return speak(events()...)(ctx, req)
	}
	return llmtest.Fail(&llm.Error{Class: llm.ClassQuota, Op: "test"})(ctx, req)
}

func TestInProcess(t *testing.T) {
	for name, c := range map[string]llm.Client{
		"a model":   speak(events()...),
		"a chain":   chain.New(speak(events()...), speak(events()...)),
		"a refusal": llmtest.Turn(refuses),
	} {
		t.Run(name, func(t *testing.T) { llmtest.TestInProcess(t, func() llm.Client { return c }) })
	}
}

// badClients break one rule each; the words are those of the failure.
func badClients() map[string]struct {
	words string
	turn  llmtest.Turn
} {
	whole := events()
	// then is a good stream and something more, whether its reader is still there or not.
	then := func(ev llm.Event, err error) llmtest.Turn {
		return func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
			return func(yield func(llm.Event, error) bool) {
				speak(whole...)(ctx, req)(yield)
				yield(ev, err)
			}
		}
	}
	return map[string]struct {
		words string
		turn  llmtest.Turn
	}{
		"delta of no block": {"which is not open", speak(llm.BlockDelta{Text: "x"}, llm.Finish{Stop: llm.StopEndTurn})},
		"no Finish":         {"it ended without an error, and gave no reply", speak(whole[:4]...)},
		"after Finish":      {"came after Finish", then(llm.UsageReport{}, nil)},
		"after an error": {"came after the error", func(context.Context, *llm.Request) iter.Seq2[llm.Event, error] {
			return func(yield func(llm.Event, error) bool) {
				yield(nil, &llm.Error{Class: llm.ClassServer})
				yield(llm.BlockStart{}, nil)
			}
		}},
		"after its reader left": {"came after its reader had left", func(context.Context, *llm.Request) iter.Seq2[llm.Event, error] {
			return func(yield func(llm.Event, error) bool) {
				for _, ev := range whole {
					yield(ev, nil)
				}
			}
		}},
		"plain error": {"the error is no *llm.Error: oops", llmtest.Fail(errors.New("oops"))},
		"no class":    {`the error has the class "", which is none`, llmtest.Fail(&llm.Error{Op: "test"})},
		"event and error": {"came with an error", llmtest.Turn(func(context.Context, *llm.Request) iter.Seq2[llm.Event, error] {
			return func(yield func(llm.Event, error) bool) {
				yield(llm.BlockStart{}, &llm.Error{Class: llm.ClassServer})
			}
		})},
		"nothing":               {"neither an event nor an error", speak(nil, llm.Finish{Stop: llm.StopEndTurn})},
		"context not looked at": {"the context had ended before Stream was called, and a whole reply came", llmtest.Say("so")},
		"another error for the end": {"want the context's own or class cancelled", func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
			return func(yield func(llm.Event, error) bool) {
				for ev, err := range speak(whole...)(ctx, req) {
					if err != nil {
						err = &llm.Error{Class: llm.ClassServer, Op: "test"}
					}
					if !yield(ev, err) {
						return
					}
				}
			}
		}},
		"request changed": {"the request was changed", func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
			req.Messages = append(req.Messages, llm.UserText("and be quick"))
			return speak(whole...)(ctx, req)
		}},
		"goroutines left": {"must release what it holds", func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
			return func(yield func(llm.Event, error) bool) {
				gone := make(chan struct{}, 1)
				go func() { <-gone }() // as a goroutine that waits for its reader
				for ev, err := range speak(whole...)(ctx, req) {
					if !yield(ev, err) {
						return
					}
				}
				close(gone)
			}
		}},
	}
}

// badEnv names what a child process breaks.
const badEnv = "FIDUCIAL_LLMTEST_BREAK"

// child runs one test of this binary in another process, and wants it to fail.
func child(t *testing.T, test, what string) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), self, "-test.run=^"+test+"$", "-test.timeout=100s")
	cmd.Env = append(cmd.Environ(), badEnv+"="+what)
	out, err := cmd.CombinedOutput()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 || bytes.Contains(out, []byte("panic")) {
		t.Errorf("the suite ends with %v, want a failure without a panic\n%s", err, out)
	}
	return string(out)
}

func TestInProcessFails(t *testing.T) {
	t.Parallel()
	for name, bad := range badClients() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if out := child(t, "TestBadClient", name); !strings.Contains(out, bad.words) {
				t.Errorf("the words %q are not in\n%s", bad.words, out)
			}
		})
	}
}

func TestBadClient(t *testing.T) {
	bad, ok := badClients()[os.Getenv(badEnv)]
	if !ok {
		t.Skip("only children run this")
	}
	llmtest.TestInProcess(t, func() llm.Client { return bad.turn })
}

// weak is a client of a first afternoon: it sends the last text, and no tools, and
// reads texts.
type weak struct{ base string }

func (w weak) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		text, err := w.ask(ctx, req.Messages[len(req.Messages)-1].Text())
		if err != nil {
			yield(nil, err)
			return
		}
		for _, ev := range []llm.Event{
			llm.BlockStart{}, llm.BlockDelta{Text: text}, llm.BlockStop{}, llm.Finish{Stop: llm.StopEndTurn},
		} {
			if !yield(ev, nil) {
				return
			}
		}
	}
}

func (w weak) ask(ctx context.Context, text string) (string, error) {
	body, err := json.Marshal(map[string]any{
		"model": "m", "stream": true, "messages": []map[string]string{{"role": "user", "content": text + "."}},
	})
	if err != nil {
		return "", err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.base+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return "", err
	}
	req.Header.Set("Authorization", "Bearer "+llmtest.SuiteKey)
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", &llm.Error{Class: llm.ClassTransport, Err: err}
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return "", fmt.Errorf("status %s", resp.Status)
	}
	var out strings.Builder
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		var chunk struct {
			Choices []struct{ Delta struct{ Content string } }
		}
		if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok && json.Unmarshal([]byte(data), &chunk) == nil && len(chunk.Choices) > 0 {
			out.WriteString(chunk.Choices[0].Delta.Content)
		}
	}
	return out.String(), nil
}

// silent never asks its server, and always has an answer.
type silent struct{ llmtest.Turn }

// A client that does little fails the suite with words, not with panics, and hears
// one thing once.
func TestWeakClientsFail(t *testing.T) {
	t.Parallel()
	for name, words := range map[string]string{
		"weak": "the client sent 0 tools of 4", "silent": "the server understood 0 requests, want 1",
	} {
		out := child(t, "TestWeakClient", name)
		if !strings.Contains(out, words) {
			t.Errorf("the words %q are not in\n%s", words, out)
		}
		if n := strings.Count(out, "the script is over"); n > 1 {
			t.Errorf("it is told %d times that the script is over\n%s", n, out)
		}
	}
}

func TestWeakClient(t *testing.T) {
	newClient := map[string]func(string) llm.Client{
		"weak":   func(base string) llm.Client { return weak{base} },
		"silent": func(string) llm.Client { return silent{speak(events()...)} },
	}[os.Getenv(badEnv)]
	if newClient == nil {
		t.Skip("only children run this")
	}
	llmtest.TestClient(t, newClient, llmtest.WireOpenAIChat)
}
