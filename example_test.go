// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/mask"
	"github.com/fiducial-dev/fiducial/tool"
)

// A first agent: a model, a tool, a question. The script stands for the model; a
// client of a provider takes its place.
func Example() {
	type args struct {
		A int `json:"a" jsonschema:"the first summand"`
		B int `json:"b" jsonschema:"the second summand"`
	}
	add := tool.Must(tool.New("add", "Adds two integers.", func(_ context.Context, in args) (int, error) {
		return in.A + in.B, nil
	}))
	model := llmtest.NewScript(llmtest.Call("add", `{"a": 2, "b": 3}`), llmtest.Say("2 + 3 = 5"))

	eng := fiducial.New(model, fiducial.WithSystem("You are careful."), fiducial.WithTools(add))
	_, out, err := eng.Run(context.Background(), llm.UserText("What is 2 + 3?"))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(out.Text())
	fmt.Println(out.Reason, "after", out.Turns, "replies")
	// Output:
	// 2 + 3 = 5
	// finished after 2 replies
}

// A tool is a function of a struct. What a model gets wrong it is told, with what
// is expected, and the function is not called.
func Example_typedTool() {
	type args struct {
		City string `json:"city" jsonschema:"where"`
		Days int    `json:"days,omitempty" jsonschema:"how far to look ahead"`
	}
	forecast := tool.Must(tool.New("forecast", "Tells the weather.", func(_ context.Context, in args) (string, error) {
		if in.City == "Atlantis" {
			return "", tool.Errorf(tool.Failed, "no weather station in %s", in.City)
		}
		return fmt.Sprintf("sun over %s", in.City), nil
	}, tool.ReadOnly()))
	fmt.Println(string(forecast.Spec().Schema))

	model := llmtest.NewScript(
		llmtest.Call("forecast", `{"town": "Bern"}`, "forecast", `{"city": "Atlantis"}`, "forecast", `{"city": "Bern"}`),
		llmtest.Say("Sun."),
	)
	l, _, err := fiducial.New(model, fiducial.WithTools(forecast)).Run(context.Background(), llm.UserText("Weather?"))
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, p := range l.History()[2].Parts {
		if r, ok := p.(llm.Result); ok {
			text, _, _ := strings.Cut(r.Summary, ". The tool")
			fmt.Printf("%s: %s\n", r.Status, text)
		}
	}
	// Output:
	// {"type":"object","properties":{"city":{"type":"string","description":"where"},"days":{"type":"integer","description":"how far to look ahead"}},"required":["city"],"additionalProperties":false}
	// error: invalid arguments for forecast: "city" is missing, "town" is not known
	// error: no weather station in Atlantis
	// success: sun over Bern
}

// approval pauses before every call of a dangerous tool that nobody has approved.
type approval struct {
	fiducial.NopInterceptor
	approved map[string]string // the arguments that a person has seen, by the key of the call
}

// pending is what waits for a person. It stands in the run's journal as a note.
type pending struct{ Key, Args string }

func (a approval) PreTool(_ context.Context, inv fiducial.Invocation, call *llm.Call) (fiducial.ToolAnswer, error) {
	if args, seen := a.approved[inv.Key()]; call.Name != "erase" || seen && args == call.Args {
		return fiducial.Continue{}, nil
	}
	note, err := json.Marshal(pending{inv.Key(), call.Args})
	if err != nil {
		return nil, err
	}
	inv.Note("app.pending", note)
	return fiducial.Pause{Reason: "erase " + call.Args + "?"}, nil
}

// A call waits for a person. The process may end meanwhile: the run is in the
// journal, and an engine in another process goes on with it.
func Example_approval() {
	type args struct {
		Disk string `json:"disk"`
	}
	ctx := context.Background()
	runs := 0
	erase := tool.Must(tool.New("erase", "Erases the disk.", func(context.Context, args) (string, error) {
		runs++
		return "erased", nil
	}))
	model := llmtest.NewScript(llmtest.Call("erase", `{"disk": "sda"}`), llmtest.Say("It is empty now."))
	j := journal.NewMemory() // a journal.Folder keeps runs in files
	engine := func(a approval) *fiducial.Engine {
		return fiducial.New(model, fiducial.WithTools(erase), fiducial.WithInterceptor(a), fiducial.WithJournal(j, "run-1"))
	}

	l, out, err := engine(approval{}).Run(ctx, llm.UserText("Make room."))
	fmt.Println(out.Reason, out.Detail, err)
	if err := l.Close(ctx); err != nil {
		fmt.Println(err)
	}

	// Later, elsewhere:
	a := approval{approved: map[string]string{}}
	l, err = engine(a).Lock()
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := l.Open(ctx); err != nil {
		fmt.Println(err)
		return
	}
	for _, n := range l.Notes() {
		var p pending
		if n.Kind == "app.pending" && json.Unmarshal(n.Data, &p) == nil {
			fmt.Println("a person says yes to", p.Args)
			a.approved[p.Key] = p.Args
		}
	}
	out, err = l.Resume(ctx)
	fmt.Println(out.Reason, out.Text(), err)
	fmt.Println("the tool ran", runs, "time")
	// Output:
	// paused erase {"disk": "sda"}? <nil>
	// a person says yes to {"disk": "sda"}
	// finished It is empty now. <nil>
	// the tool ran 1 time
}

// Stream yields the events of a run. Leaving the loop cancels the run and waits
// for it.
func ExampleLocked_Stream() {
	model := llmtest.NewScript(llmtest.Call("now", ""), llmtest.Say("It is noon."))
	now := tool.Must(tool.New("now", "Tells the time.", func(context.Context, struct{}) (string, error) { return "12:00", nil }))
	l, err := fiducial.New(model, fiducial.WithTools(now)).Lock()
	if err != nil {
		fmt.Println(err)
		return
	}
	for ev, err := range l.Stream(context.Background(), llm.UserText("What time is it?")) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch ev := ev.Data.(type) {
		case fiducial.ToolStarted:
			fmt.Println("call", ev.Call.Name)
		case fiducial.ToolFinished:
			fmt.Println("result", ev.Result.Summary)
		case fiducial.Delta:
			if ev.Kind == llm.BlockText {
				fmt.Println("text", ev.Text)
			}
		case fiducial.DraftReset:
			fmt.Println("forget the text so far")
		case fiducial.RunFinished:
			fmt.Println(ev.Outcome.Reason)
		default:
		}
	}
	// Output:
	// call now
	// result 12:00
	// text It is noon.
	// finished
}

// A limit ends a run before the request that would exceed it. Whoever raises it
// goes on where the run stands; it is no part of the prefix, so that nothing has to be
// unlocked.
func ExampleLocked_SetTurnLimit() {
	ctx := context.Background()
	step := tool.Must(tool.New("step", "One step.", func(context.Context, struct{}) (string, error) { return "ok", nil }))
	model := llmtest.NewScript(llmtest.Call("step", ""), llmtest.Call("step", ""), llmtest.Say("There."))
	l, out, err := fiducial.New(model, fiducial.WithTools(step), fiducial.WithTurnLimit(2)).Run(ctx, llm.UserText("Walk."))
	fmt.Println(out.Reason, out.Limit, out.Turns, err)

	if err := l.SetTurnLimit(10); err != nil {
		fmt.Println(err)
		return
	}
	out, err = l.Resume(ctx)
	fmt.Println(out.Reason, out.Turns, err)
	// Output:
	// limit reached turns 2 <nil>
	// finished 3 <nil>
}

// Unlock gives the prefix up, so that it can be changed. The next lock commits what the
// engine holds then.
func ExampleLocked_Unlock() {
	ctx := context.Background()
	model := llmtest.NewScript(llmtest.Say("Yes."), llmtest.Say("Ja."))
	l, out, err := fiducial.New(model, fiducial.WithSystem("Be brief.")).Run(ctx, llm.UserText("Ready?"))
	fmt.Println(out.Text(), err)

	eng, err := l.Unlock()
	if err != nil {
		fmt.Println(err)
		return
	}
	if err := eng.SetSystem("Be brief, in German."); err != nil {
		fmt.Println(err)
		return
	}
	_, out, err = eng.Run(ctx, llm.UserText("Ready?"))
	fmt.Println(out.Text(), err, model.Requests()[1].Prefix)
	// Output:
	// Yes. <nil>
	// Ja. <nil> 2
}

// Pruning leaves the content of old results out of requests. The history stays
// whole.
func ExampleWithPruning() {
	read := tool.Must(tool.New("read", "Reads the book.", func(context.Context, struct{}) (tool.Output, error) {
		return tool.Output{Summary: "the book", Content: strings.Repeat("word ", 8000)}, nil
	}))
	reply := func(id string, tokens int64) llmtest.Turn { // a provider tells what a request has cost
		return llmtest.ReplyUsage(llm.AssistantCalls(llm.Call{ID: id, Name: "read"}), llm.Usage{Input: llm.N(tokens)})
	}
	model := llmtest.NewScript(reply("1", 100), reply("2", 10_000), llmtest.Say("Read."))
	l, _, err := fiducial.New(model, fiducial.WithTools(read),
		fiducial.WithPruning(fiducial.PruneConfig{Protect: 5000, Minimum: 4096})).Run(context.Background(), llm.UserText("Read it twice."))
	if err != nil {
		fmt.Println(err)
		return
	}
	size := func(m llm.Message) int {
		r, _ := m.Parts[0].(llm.Result)
		return len(r.Content)
	}
	sent, whole := model.Requests()[2].Messages, l.History()
	fmt.Println("sent:", size(sent[2]), size(sent[4]))
	fmt.Println("kept:", size(whole[2]), size(whole[4]))
	// Output:
	// sent: 0 40000
	// kept: 40000 40000
}

// An agent is tested with a scripted model: what it does is what the script says,
// and the script remembers what it was asked. Here the model fails once, and its
// reply breaks once; neither is seen in the history.
func Example_testingAnAgent() {
	model := llmtest.NewScript(
		llmtest.Fail(&llm.Error{Class: llm.ClassOverloaded}),
		llmtest.Break(errors.New("connection reset"), llm.BlockStart{}, llm.BlockDelta{Text: "Hel"}),
		llmtest.Say("Hello."),
	)
	retry := fiducial.RetryPolicy{Base: 1} // a nanosecond: tests do not wait
	l, out, err := fiducial.New(model, fiducial.WithRetry(retry)).Run(context.Background(), llm.UserText("Hi!"))
	fmt.Println(out.Reason, "requests:", len(model.Requests()))
	fmt.Println(err)

	out, err = l.Resume(context.Background()) // connection reset is no error to retry by itself
	fmt.Println(out.Text(), err, "left in the script:", model.Left())
	fmt.Println("messages:", len(l.History()))
	// Output:
	// failed requests: 2
	// fiducial: run: generation: connection reset
	// Hello. <nil> left in the script: 0
	// messages: 2
}

// What a mask takes out of the history no sink is shown either, also when the model
// writes it in pieces. Package mask knows the shapes of well-known keys, and values
// that it is given.
func ExampleWithMask() {
	model := llmtest.NewScript(llmtest.Break(nil,
		llm.BlockStart{}, llm.BlockDelta{Text: "The door opens to swor"}, llm.BlockDelta{Text: "dfish-42 "}, llm.BlockDelta{Text: "only."}, llm.BlockStop{},
		llm.Finish{Stop: llm.StopEndTurn},
	))
	l, err := fiducial.New(model, fiducial.WithMask(mask.New("swordfish-42"))).Lock()
	if err != nil {
		fmt.Println(err)
		return
	}
	for ev, err := range l.Stream(context.Background(), llm.UserText("What opens the door?")) {
		if err != nil {
			fmt.Println(err)
			return
		}
		if d, ok := ev.Data.(fiducial.Delta); ok {
			fmt.Printf("%q\n", d.Text)
		}
	}
	fmt.Println(l.History()[1].Text())
	// Output:
	// "The door opens to "
	// "[masked] "
	// "only."
	// The door opens to [masked] only.
}

// A message that is sent while a run goes on is read before the next request, behind
// the results of the calls.
func ExampleLocked_Send() {
	ctx := context.Background()
	var l *fiducial.Locked
	dig := tool.Must(tool.New("dig", "Digs on.", func(ctx context.Context, _ struct{}) (string, error) {
		return "deeper", l.Send(ctx, "", llm.UserText("That will do.")) // any goroutine may
	}))
	model := llmtest.NewScript(llmtest.Call("dig", ""), llmtest.Say("I stop."))
	l, err := fiducial.New(model, fiducial.WithTools(dig)).Lock()
	if err != nil {
		fmt.Println(err)
		return
	}
	if _, err := l.Run(ctx, llm.UserText("Dig.")); err != nil {
		fmt.Println(err)
		return
	}
	for _, m := range l.History() {
		fmt.Printf("%s: %s\n", m.Role, cmp.Or(m.Text(), "-"))
	}
	// Output:
	// user: Dig.
	// assistant: -
	// tool: -
	// user: That will do.
	// assistant: I stop.
}
