// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/tool"
)

// E-5, E-84: what edits the prefix does not compile on a Locked.
func TestE5_LockedCannotEditThePrefix(t *testing.T) {
	if testing.Short() {
		t.Skip("type-checks the module from source")
	}
	fset := token.NewFileSet()
	cfg := types.Config{Importer: importer.ForCompiler(fset, "source", nil)}
	check := func(body string) error {
		src := "package p\nimport (\"context\"; \"github.com/fiducial-dev/fiducial\"; \"github.com/fiducial-dev/fiducial/llm\")\n" +
			"func f(ctx context.Context, e *fiducial.Engine, l *fiducial.Locked, m llm.Message) { " + body + " }\n"
		f, err := parser.ParseFile(fset, "p.go", src, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = cfg.Check("p", fset, []*ast.File{f}, nil)
		return err
	}
	for _, call := range []string{
		"Append(ctx, m)", "ReplaceHistory(ctx, []llm.Message{m})", "Truncate(ctx, 1)", `SetSystem("x")`, "SetTotalTurns(1)", "Lock()",
	} {
		if err := check("_ = e; _ = l; e." + call); err != nil {
			t.Fatalf("on an Engine %s must compile: %v", call, err)
		}
		if err := check("_ = e; l." + call); err == nil || !strings.Contains(err.Error(), "has no field or method") {
			t.Errorf("on a Locked %s must not compile, got %v", call, err)
		}
	}
	if err := check("_ = l; e.Unlock()"); err == nil { // E-87
		t.Error("an Engine must not unlock")
	}
}

// E-13, E-79, E-83: the prefix is what the history holds at the lock; turns do not let it
// grow, and the next lock takes what there is then.
func TestE79_CommittedPrefix(t *testing.T) {
	model := llmtest.NewScript(llmtest.Say("1"), llmtest.Say("2"), llmtest.Say("3"))
	eng := fiducial.New(model, fiducial.WithSystem("sys"), fiducial.WithHistory(llm.UserText("a"), llm.AssistantText("b")))
	l := mustLock(t, eng)
	for range 2 {
		if _, err := l.Run(t.Context(), llm.UserText("go")); err != nil {
			t.Fatal(err)
		}
	}
	eng, err := l.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := eng.Run(t.Context(), llm.UserText("go")); err != nil {
		t.Fatal(err)
	}
	var prefix []int
	for _, r := range model.Requests() {
		prefix = append(prefix, r.Prefix)
		equal(t, "system", r.System, "sys")
	}
	equal(t, "prefix", prefix, []int{2, 2, 6})
}

// E-80, E-186, S-156: later requests begin with the very bytes of earlier ones.
func TestE80_RequestsShareTheirPrefix(t *testing.T) {
	p := &probe{}
	model := llmtest.NewScript(llmtest.Call("look", ""), llmtest.Call("look", "{}"), llmtest.Say("x"))
	_, _ = mustRun(t, fiducial.New(model, fiducial.WithSystem("s"), fiducial.WithTools(p.tool("look"), sumTool()), fiducial.WithHistory(llm.UserText("a")),
		fiducial.WithNotice(func(_ context.Context, h []llm.Message) (string, error) { return fmt.Sprint(len(h)), nil })), "go")
	var before []string
	for i, r := range model.Requests() {
		now := []string{r.System, enc(t, r.Tools)}
		for _, m := range r.Messages {
			now = append(now, enc(t, m))
		}
		if len(now) < len(before) || !eq(now[:len(before)], before) {
			t.Errorf("request %d does not begin with what the one before held", i)
		}
		before = now
	}
}

func enc(t *testing.T, v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

func eq(a, b []string) bool { return strings.Join(a, "\n") == strings.Join(b, "\n") }

// E-80: a notice never goes into a committed message.
func TestE80_NoticeSparesTheCommittedPrefix(t *testing.T) {
	model := llmtest.NewScript(llmtest.Say("x"))
	l := mustLock(t, fiducial.New(model, fiducial.WithHistory(llm.UserText("a")), fiducial.WithNotice(func(context.Context, []llm.Message) (string, error) { return "n", nil })))
	out, err := l.Run(t.Context())
	wantReason(t, out, err, fiducial.Finished)
	wantTexts(t, l.History(), "user: a", "user: [n]", "assistant: x")
}

// E-9, E-88: a handle that was locked or unlocked away is stale; nothing else ends
// a lock.
func TestE88_StaleHandles(t *testing.T) {
	eng := fiducial.New(llmtest.NewScript(llmtest.Fail(fmt.Errorf("bad"))))
	l := mustLock(t, eng)
	for _, err := range []error{
		eng.SetSystem("x"), eng.Append(t.Context(), llm.UserText("x")), eng.Truncate(t.Context(), 0),
		eng.ReplaceHistory(t.Context(), nil), eng.SetTurnLimit(1), eng.Close(t.Context()), second(eng.Lock()), third(eng.Run(t.Context(), llm.UserText("x"))),
	} {
		wantErr(t, err, fiducial.ErrStale)
	}
	if _, err := l.Run(t.Context(), llm.UserText("x")); err == nil {
		t.Fatal("no error")
	}
	eng, err := l.Unlock() // still locked after a failure
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{
		second(l.Unlock()), second(l.Run(t.Context())), second(l.Resume(t.Context())), l.Checkpoint(t.Context()), l.Send(t.Context(), "k", llm.UserText("x")),
	} {
		wantErr(t, err, fiducial.ErrStale)
	}
	if err := eng.SetSystem("y"); err != nil {
		t.Error(err)
	}
}

func second[T any](_ T, err error) error        { return err }
func third[T, U any](_ T, _ U, err error) error { return err }

// E-86, README "Tool changes on a locked engine".
func TestE86_ToolChangesWhileLocked(t *testing.T) {
	p, q := &probe{}, &probe{}
	model := llmtest.NewScript(llmtest.Call("look", ""), llmtest.Say("x"), llmtest.Say("y"))
	eng := fiducial.New(model, fiducial.WithTools(p.tool("look")))
	l := mustLock(t, eng)
	wantErr(t, l.Server().Register(sumTool()), tool.ErrLocked)
	wantErr(t, l.Server().Unregister("look"), tool.ErrLocked)
	wantErr(t, l.Server().SetOutputLimit(tool.DefaultOutputLimit, nil, nil), nil) // not advertised
	other := tool.Must(tool.New("look", "Other words.", func(context.Context, noArgs) (string, error) { return "", nil }))
	wantErr(t, l.Server().Replace(other), tool.ErrLocked)
	if err := l.Server().Replace(q.tool("look")); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Run(t.Context(), llm.UserText("go")); err != nil {
		t.Fatal(err)
	}
	equal(t, "runs", [2]int{p.count(), q.count()}, [2]int{0, 1})
	eng, _ = l.Unlock()
	if err := eng.Server().Register(sumTool()); err != nil {
		t.Fatal(err)
	}
	if _, _, err := eng.Run(t.Context(), llm.UserText("again")); err != nil {
		t.Fatal(err)
	}
	equal(t, "tools", [2]int{len(model.Requests()[1].Tools), len(model.Requests()[2].Tools)}, [2]int{1, 2})
}

// E-80, E-89: a hook that changes the committed prefix, in place or by another
// value, does not get its request out; one that changes the rest does, once.
func TestHooksCannotChangeThePrefix(t *testing.T) {
	for name, c := range map[string]struct {
		edit func(*llm.Request)
		want error
	}{
		"system":           {func(r *llm.Request) { r.System += "!" }, fiducial.ErrPrefix},
		"tool in place":    {func(r *llm.Request) { r.Tools[0].Description = "!" }, fiducial.ErrPrefix},
		"schema in place":  {func(r *llm.Request) { r.Tools[0].Schema[3]++ }, fiducial.ErrPrefix},
		"no tools":         {func(r *llm.Request) { r.Tools = nil }, fiducial.ErrPrefix},
		"part in place":    {func(r *llm.Request) { r.Messages[0].Parts[0] = llm.Text{Text: "!"} }, fiducial.ErrPrefix},
		"message in place": {func(r *llm.Request) { r.Messages[0] = llm.UserText("!") }, fiducial.ErrPrefix},
		"other message": {func(r *llm.Request) {
			r.Messages = append([]llm.Message{llm.UserText("!")}, r.Messages[1:]...)
		}, fiducial.ErrPrefix},
		"shorter":  {func(r *llm.Request) { r.Messages = r.Messages[:0] }, fiducial.ErrPrefix},
		"unpaired": {func(r *llm.Request) { r.Messages = append(r.Messages[:1:1], llm.ToolResults(llm.Result{CallID: "1"})) }, fiducial.ErrInterceptor},
		"behind it": {func(r *llm.Request) {
			r.Messages = append(r.Messages[:1:1], llm.UserText("other words"))
			r.Settings.MaxTokens = 5
			r.Prefix = 7
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			model := llmtest.NewScript(llmtest.Say("x"), llmtest.Say("y"))
			edits := 0
			h := &hooks{request: func(_ fiducial.Invocation, r *llm.Request) (fiducial.RequestAnswer, error) {
				if edits++; edits == 1 {
					c.edit(r)
				}
				return nil, nil
			}}
			eng := fiducial.New(model, fiducial.WithSystem("s"), fiducial.WithTools(sumTool()), fiducial.WithHistory(llm.UserText("old")), fiducial.WithInterceptor(h))
			l, out, err := eng.Run(t.Context(), llm.UserText("go"))
			if c.want != nil {
				wantErr(t, err, c.want)
				equal(t, "requests", len(model.Requests()), 0)
				return
			}
			wantReason(t, out, err, fiducial.Finished)
			wantTexts(t, model.Requests()[0].Messages, "user: old", "user: other words")
			equal(t, "prefix", model.Requests()[0].Prefix, 1)
			if _, err := l.Run(t.Context(), llm.UserText("more")); err != nil { // E-60: it was for this request only
				t.Fatal(err)
			}
			wantTexts(t, model.Requests()[1].Messages, "user: old", "user: go", "assistant: x", "user: more")
			equal(t, "settings", model.Requests()[1].Settings.MaxTokens, 0)
		})
	}
}

// E-81: another process must come with the same prefix.
func TestE81_AnotherProcessBringsTheSamePrefix(t *testing.T) {
	j := journal.NewMemory()
	l, _ := mustRun(t, fiducial.New(llmtest.NewScript(llmtest.Say("x")), fiducial.WithSystem("s"), fiducial.WithTools(sumTool()), fiducial.WithJournal(j, "r")), "go")
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	p := &probe{}
	for name, opts := range map[string][]fiducial.Option{
		"system prompt":   {fiducial.WithSystem("other"), fiducial.WithTools(sumTool())},
		"add is missing":  {fiducial.WithSystem("s")},
		"look is new":     {fiducial.WithSystem("s"), fiducial.WithTools(sumTool(), p.tool("look"))},
		"has a history; ": {fiducial.WithSystem("s"), fiducial.WithTools(sumTool()), fiducial.WithHistory(llm.UserText("mine"))},
	} {
		_, out, err := fiducial.New(llmtest.NewScript(), append(opts, fiducial.WithJournal(j, "r"))...).Run(t.Context(), llm.UserText("more"))
		wantReason(t, out, err, fiducial.Failed)
		if !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
	eng := fiducial.New(llmtest.NewScript(llmtest.Say("y")), fiducial.WithSystem("other"), fiducial.WithJournal(j, "r"))
	if err := eng.Open(t.Context()); err != nil { // opened before the lock, it is a new prefix
		t.Fatal(err)
	}
	_, out, err := eng.Run(t.Context(), llm.UserText("more"))
	wantReason(t, out, err, fiducial.Finished)
}

// S-31, S-41: between two parts of a paused run the history may be replaced.
func TestS31_ReplaceHistoryInAPausedRun(t *testing.T) {
	model := llmtest.NewScript(llmtest.Say("x"))
	first := true
	h := &hooks{request: func(fiducial.Invocation, *llm.Request) (fiducial.RequestAnswer, error) {
		if first {
			first = false
			return fiducial.Pause{Reason: "too long"}, nil
		}
		return nil, nil
	}}
	l, out, err := fiducial.New(model, fiducial.WithInterceptor(h), fiducial.WithJournal(journal.NewMemory(), "r")).Run(t.Context(), llm.UserText("long"))
	wantReason(t, out, err, fiducial.Paused)
	eng, err := l.Unlock()
	if err != nil {
		t.Fatal(err)
	}
	wantErr(t, eng.Append(t.Context(), llm.UserText("no")), fiducial.ErrState)
	if err := eng.ReplaceHistory(t.Context(), []llm.Message{llm.UserText("short")}); err != nil {
		t.Fatal(err)
	}
	l = mustLock(t, eng)
	out, err = l.Resume(t.Context())
	wantReason(t, out, err, fiducial.Finished)
	wantTexts(t, model.Requests()[0].Messages, "user: short")
}

// S-69, S-72: an unbalanced history is refused wherever it comes from.
func TestS69_UnbalancedHistoryIsRefused(t *testing.T) {
	open := []llm.Message{llm.UserText("a"), llm.AssistantCalls(llm.Call{ID: "1", Name: "x"})}
	eng := fiducial.New(llmtest.NewScript())
	wantErr(t, eng.ReplaceHistory(t.Context(), open), fiducial.ErrState)
	wantErr(t, eng.Append(t.Context(), open[1]), fiducial.ErrState)
	if err := eng.ReplaceHistory(t.Context(), append(open, llm.ToolResults(llm.Result{CallID: "1", Name: "x"}))); err != nil {
		t.Fatal(err)
	}
	wantErr(t, eng.Truncate(t.Context(), 2), fiducial.ErrState)
	wantErr(t, eng.Truncate(t.Context(), 4), fiducial.ErrState)
	equal(t, "history", len(eng.History()), 3)
}
