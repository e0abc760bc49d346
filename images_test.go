// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"testing"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/tool"
)

func imagesIn(messages []llm.Message) []int {
	var at []int
	for i, m := range messages {
		for _, p := range m.Parts {
			if r, ok := p.(llm.Result); ok && len(r.Images) > 0 {
				at = append(at, i)
			}
		}
	}
	return at
}

func photographer() tool.Tool {
	p := &probe{do: func(context.Context, tool.Call) (tool.Output, error) {
		return tool.Output{Summary: "a picture", Images: []llm.Image{{Media: "image/png", Data: make([]byte, 9000)}}}, nil
	}}
	return p.tool("shoot")
}

// E-36: images of results are sent until a reply has followed them. The history and
// earlier requests keep them, and the audit says why the cache ended.
func TestE36_ConsumedImagesAreLeftOut(t *testing.T) {
	t.Parallel()
	u := func(input, read int64) llm.Usage { return llm.Usage{Input: llm.N(input), CacheRead: llm.N(read)} }
	call := func(id string, u llm.Usage) llmtest.Turn {
		return llmtest.ReplyUsage(llm.AssistantCalls(llm.Call{ID: id, Name: "shoot"}), u)
	}
	say := llmtest.ReplyUsage(llm.AssistantText("x"), u(9000, 1000))
	model := llmtest.NewScript(call("1", u(3000, 0)), llmtest.Break(&llm.Error{Class: llm.ClassTransport}), call("2", u(6000, 3000)), say, llmtest.Say("y"))
	j := journal.NewMemory()
	ev := &events{}
	options := func() []fiducial.Option {
		return []fiducial.Option{
			fiducial.WithTools(photographer()), fiducial.WithDropImages(), fiducial.WithJournal(j, "r"), fiducial.WithEvents(ev),
			fiducial.WithRetry(fiducial.RetryPolicy{Base: 1}), fiducial.WithLoopGuard(0),
		}
	}
	l, out := mustRun(t, fiducial.New(model, options()...), "go") // user, calls, results, calls, results, reply
	equal(t, "reason", out.Reason, fiducial.Finished)
	reqs := model.Requests()
	equal(t, "images with the first results", imagesIn(reqs[1].Messages), []int{2})
	equal(t, "images after a broken reply", imagesIn(reqs[2].Messages), []int{2})
	equal(t, "images with the second results", imagesIn(reqs[3].Messages), []int{4})
	equal(t, "images in the history", imagesIn(l.History()), []int{2, 4})
	paired(t, model)
	var causes []fiducial.CacheCause
	for _, e := range ev.all {
		if m, ok := e.Data.(fiducial.CacheMiss); ok {
			causes = append(causes, m.Cause)
		}
	}
	equal(t, "misses", causes, []fiducial.CacheCause{fiducial.CacheImagesDropped})

	// Another process leaves out the same.
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	l2 := mustLock(t, fiducial.New(model, options()...))
	if _, err := l2.Run(t.Context(), llm.UserText("more")); err != nil {
		t.Fatal(err)
	}
	equal(t, "images in another process", imagesIn(model.Requests()[4].Messages), nil)
	equal(t, "images in its history", imagesIn(l2.History()), []int{2, 4})
}

// What is committed is sent as it is, and without the option all images are sent.
func TestImagesOfThePrefixStay(t *testing.T) {
	t.Parallel()
	history := []llm.Message{
		llm.UserText("go"), llm.AssistantCalls(llm.Call{ID: "1", Name: "shoot"}),
		llm.ToolResults(llm.Result{CallID: "1", Name: "shoot", Status: llm.StatusSuccess, Images: []llm.Image{{Media: "image/png", Data: []byte("x")}}}),
		llm.AssistantText("seen"),
	}
	for name, c := range map[string]struct {
		drop bool
		want []int
	}{"dropped": {true, []int{2}}, "kept": {false, []int{2, 6}}} {
		model := llmtest.NewScript(llmtest.Call("shoot", ""), llmtest.Call("shoot", ""), llmtest.Say("x"))
		opts := []fiducial.Option{fiducial.WithTools(photographer()), fiducial.WithHistory(history...)}
		if c.drop {
			opts = append(opts, fiducial.WithDropImages())
		}
		mustRun(t, fiducial.New(model, opts...), "again") // 4 user, 5 calls, 6 results, 7 calls, 8 results
		equal(t, name, imagesIn(model.Requests()[2].Messages), append(c.want, 8))
	}
}

// Pruning and images share one projection.
func TestImagesAndPruning(t *testing.T) {
	t.Parallel()
	ev := &events{}
	model := llmtest.NewScript(meteredShot("1", 3000), meteredShot("2", 6000), meteredShot("3", 9000), llmtest.Say("x"))
	l, _ := mustRun(t, fiducial.New(model, fiducial.WithTools(photographer()), fiducial.WithDropImages(), fiducial.WithEvents(ev),
		fiducial.WithPruning(fiducial.PruneConfig{Protect: -1, Minimum: 2000}), fiducial.WithLoopGuard(0)), "go")
	equal(t, "images with the last results", imagesIn(model.Requests()[3].Messages), []int(nil))
	equal(t, "images in the history", imagesIn(l.History()), []int{2, 4, 6})
	paired(t, model)
}

func meteredShot(id string, input int64) llmtest.Turn {
	return llmtest.ReplyUsage(llm.AssistantCalls(llm.Call{ID: id, Name: "shoot"}), llm.Usage{Input: llm.N(input)})
}

// S-101: who asks the calls to hurry gets what they have; nothing is cancelled, calls
// that start later are not asked, and the run goes on.
func TestS101_Hurry(t *testing.T) {
	t.Parallel()
	started := make(chan struct{}, 4)
	var hurried []bool
	slow := tool.Must(tool.New("slow", "Works on.", func(ctx context.Context, _ noArgs) (tool.Output, error) {
		call, _ := tool.FromContext(ctx)
		if len(hurried) > 0 { // the second round
			select {
			case <-call.Hurry:
				hurried = append(hurried, true)
			default:
				hurried = append(hurried, false)
			}
			return tool.Output{Summary: "all of it"}, nil
		}
		started <- struct{}{}
		<-call.Hurry
		hurried = append(hurried, true)
		if ctx.Err() != nil {
			t.Error("to hurry is no cancel")
		}
		return tool.Output{}, &tool.Error{Kind: tool.Interrupted, Message: "a part", Output: tool.Output{Content: "half"}}
	}))
	model := llmtest.NewScript(llmtest.Call("slow", ""), llmtest.Call("slow", `{ }`), llmtest.Say("done"))
	l := mustLock(t, fiducial.New(model, fiducial.WithTools(slow)))
	l.Hurry() // nothing runs
	go func() {
		<-started
		l.Hurry()
		l.Hurry() // once more does nothing
	}()
	out, err := l.Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.Finished)
	equal(t, "asked", hurried, []bool{true, false})
	r := l.History()[2].Parts[0].(llm.Result)
	equal(t, "first result", r.Status, llm.StatusInterrupted)
	equal(t, "its content", r.Content, "half")
}
