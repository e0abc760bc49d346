// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"errors"
	"fmt"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/machine"
	"github.com/fiducial-dev/fiducial/tool"
)

// S-4: input comes by appending a user message or by installing a whole history; then
// the run is awaited.
func TestS4_InputThenRun(t *testing.T) {
	t.Parallel()
	model := llmtest.NewScript(llmtest.Say("one"), llmtest.Say("two"))
	eng := fiducial.New(model)
	if err := eng.Append(t.Context(), llm.UserText("appended")); err != nil {
		t.Fatal(err)
	}
	l, out, err := eng.Run(t.Context())
	wantReason(t, out, err, fiducial.Finished)
	wantTexts(t, l.History(), "user: appended", "assistant: one")
	eng, err = l.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if err := eng.ReplaceHistory(t.Context(), []llm.Message{llm.UserText("a"), llm.AssistantText("b"), llm.UserText("c")}); err != nil {
		t.Fatal(err)
	}
	l, out, err = eng.Run(t.Context())
	wantReason(t, out, err, fiducial.Finished)
	wantTexts(t, l.History(), "user: a", "assistant: b", "user: c", "assistant: two")
}

// S-102: the run is cancelled from another goroutine, through the context that it was
// given, and whoever waits for it sees the cleanup done.
func TestS102_CancelAndAwait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		cleaned := false
		p := &probe{do: func(ctx context.Context, _ tool.Call) (tool.Output, error) {
			<-ctx.Done()
			time.Sleep(time.Second) // puts things back
			cleaned = true
			return tool.Output{}, ctx.Err()
		}}
		ctx, cancel := context.WithCancelCause(t.Context())
		why := errors.New("the person pressed Ctrl-C")
		time.AfterFunc(time.Minute, func() { cancel(why) })
		l, out, err := fiducial.New(llmtest.NewScript(llmtest.Call("look", "")), fiducial.WithTools(p.tool("look"))).Run(ctx, llm.UserText("go"))
		wantReason(t, out, err, fiducial.Cancelled)
		wantErr(t, err, why)
		if !cleaned {
			t.Error("Run returned before the tool had cleaned up")
		}
		sendable(t, l.History())
	})
}

// S-118: a notice goes into the conversation and leaves the system prompt alone.
func TestS118_NoticeLeavesTheSystemPrompt(t *testing.T) {
	t.Parallel()
	p := &probe{}
	model := llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x"))
	n := 0
	mustRun(t, fiducial.New(model, fiducial.WithSystem("Be careful."), fiducial.WithTools(p.tool("look")),
		fiducial.WithNotice(func(context.Context, []llm.Message) (string, error) { n++; return fmt.Sprint("notice ", n), nil })), "go")
	for i, r := range model.Requests() {
		equal(t, "system prompt", r.System, "Be careful.")
		if got := strings.Join(texts(r.Messages), "\n"); !strings.Contains(got, fmt.Sprint("notice ", i+1)) {
			t.Errorf("request %d lacks its notice: %s", i, got)
		}
	}
}

// S-123: every attempt sends identical input, whatever hooks and notices would say by
// then.
func TestS123_AttemptsAreIdentical(t *testing.T) {
	t.Parallel()
	broken := func() llmtest.Turn {
		return llmtest.Break(&llm.Error{Class: llm.ClassTransport}, llm.BlockStart{}, llm.BlockDelta{Text: "ha"})
	}
	n := 0
	h := &hooks{request: func(_ fiducial.Invocation, req *llm.Request) (fiducial.RequestAnswer, error) {
		n++
		req.Settings.MaxTokens = 100 + n
		return nil, nil
	}, pending: func(fiducial.Invocation) ([]llm.Message, error) {
		n++
		return []llm.Message{llm.UserText(fmt.Sprint("pending ", n))}, nil
	}}
	model := llmtest.NewScript(broken(), broken(), broken(), llmtest.Say("x"))
	mustRun(t, fiducial.New(model, fiducial.WithSystem("s"), fiducial.WithInterceptor(h), fiducial.WithRetry(fiducial.RetryPolicy{Base: 1}),
		fiducial.WithNotice(func(context.Context, []llm.Message) (string, error) { n++; return fmt.Sprint("notice ", n), nil })), "go")
	reqs := model.Requests()
	equal(t, "requests", len(reqs), 4)
	for _, r := range reqs[1:] {
		equal(t, "attempt", enc(t, r), enc(t, reqs[0]))
	}
}

// S-135: events are for watching. What is recorded, and what another process takes up
// from it, is the same whoever watched, or nobody.
func TestS135_EventsAreNotTheRecord(t *testing.T) {
	t.Parallel()
	var want []string
	for _, sink := range []fiducial.EventSink{nil, fiducial.NullSink{}, &events{}} {
		j := journal.NewMemory()
		c := newCrashRun(j)
		l := mustLock(t, fiducial.New(c.model, append(slices.Clip(c.opts), fiducial.WithEvents(sink))...))
		out, err := l.Run(t.Context(), llm.UserText("go"))
		wantReason(t, out, err, fiducial.Finished)
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		var records []string
		for rec, err := range j.Read(t.Context(), "r", 0) {
			if err != nil {
				t.Fatal(err)
			}
			if step, ok := rec.Body.(journal.Step); ok {
				records = append(records, fmt.Sprintf("%T %s", step.Input, enc(t, step.Input)))
			}
		}
		if want == nil {
			want = records
		}
		equal(t, "records", records, want)
		next := mustLock(t, fiducial.New(c.model, append(slices.Clip(c.opts), fiducial.WithEvents(nil))...))
		out, err = next.Resume(t.Context())
		wantReason(t, out, err, fiducial.Finished)
		wantTexts(t, next.History(), roundsHistory...)
	}
}

// S-140: the sink that does nothing, for tests and headless runs.
func TestS140_NullSink(t *testing.T) {
	t.Parallel()
	p := &probe{}
	_, out := mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x")),
		fiducial.WithTools(p.tool("look")), fiducial.WithEvents(fiducial.NullSink{})), "go")
	equal(t, "reason", out.Reason, fiducial.Finished)
	equal(t, "runs", p.count(), 1)
}

// E-2: hooks are asked at fixed boundaries only, never while a reply is written or a
// call runs. E-37: and always in the same order.
func TestE2_HooksStandAtBoundaries(t *testing.T) {
	t.Parallel()
	var log []string
	hook := func(name string) { log = append(log, name) }
	h := &hooks{
		prompt: func(fiducial.Invocation, *llm.Message) (fiducial.PromptAnswer, error) {
			hook("prompt")
			return nil, nil
		},
		pending: func(fiducial.Invocation) ([]llm.Message, error) { hook("pending"); return nil, nil },
		request: func(fiducial.Invocation, *llm.Request) (fiducial.RequestAnswer, error) {
			hook("request")
			return nil, nil
		},
		after: func(fiducial.Invocation, llm.Message) (fiducial.ResponseAnswer, error) {
			hook("after")
			return nil, nil
		},
		pre: func(fiducial.Invocation, *llm.Call) (fiducial.ToolAnswer, error) { hook("pre"); return nil, nil },
		post: func(fiducial.Invocation, llm.Call, llm.Result) (fiducial.PostAnswer, error) {
			hook("post")
			return nil, nil
		},
		exit: func(fiducial.Invocation, fiducial.Outcome, error) error { hook("exit"); return nil },
	}
	sink := fiducial.EventFunc(func(ev fiducial.Event) {
		log = append(log, strings.TrimPrefix(fmt.Sprintf("%T", ev.Data), "fiducial."))
	})
	p := &probe{}
	mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("two words")), fiducial.WithTools(p.tool("look")),
		fiducial.WithInterceptor(h), fiducial.WithEvents(sink), fiducial.WithPruning(fiducial.PruneConfig{}),
		fiducial.WithNotice(func(context.Context, []llm.Message) (string, error) { hook("notice"); return "", nil }),
		fiducial.WithCheckpoint(func(machine.Checkpoint) error { hook("save"); return nil })), "go")
	before := []string{"pending", "notice", "request", "save", "GenerationStarted"}
	after := []string{"GenerationFinished", "save", "GenerationCommitted", "after"}
	want := slices.Concat([]string{"RunStarted", "prompt", "save"}, before, after,
		[]string{"pre", "save", "ToolStarted", "ToolFinished", "post", "save"}, before, []string{"Delta"}, after, []string{"exit", "RunFinished"})
	log = slices.Compact(log)
	log = slices.DeleteFunc(log, func(s string) bool { return s == "PruneEvaluated" || s == "Warning" })
	equal(t, "order", log, slices.Compact(want))
}

// E-7: the engine knows no provider. Its rooms import each other, the standard library
// and the one module that infers schemas.
func TestE7_EngineKnowsNoProvider(t *testing.T) {
	t.Parallel()
	const own = "github.com/fiducial-dev/fiducial"
	allowed := []string{own, own + "/llm", own + "/llm/collect", own + "/machine", own + "/tool", own + "/journal", "github.com/google/jsonschema-go/jsonschema"}
	for _, room := range []string{".", "llm", "llm/collect", "machine", "tool", "journal"} {
		files, err := filepath.Glob(filepath.Join(room, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatal(room, files, err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
			if err != nil {
				t.Fatal(err)
			}
			for _, im := range f.Imports {
				path, _ := strconv.Unquote(im.Path.Value)
				inside := strings.HasPrefix(path, own+"/journal/internal/")
				if first, _, _ := strings.Cut(path, "/"); strings.Contains(first, ".") && !slices.Contains(allowed, path) && !inside {
					t.Errorf("%s imports %s", file, path)
				}
			}
		}
	}
}
