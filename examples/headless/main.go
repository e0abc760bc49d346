// SPDX-License-Identifier: Apache-2.0

// Headless is an agent without a network, a terminal or a configuration: a model
// that follows two rules asks for a tool, gets its result and answers. It shows
// all that an engine needs, in one file: go run ./examples/headless 20 22
package main

import (
	"context"
	"fmt"
	"iter"
	"os"
	"strconv"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/tool"
)

func main() {
	if err := run(context.Background(), os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	a, b := 2, 3
	if len(args) == 2 {
		var err error
		if a, err = strconv.Atoi(args[0]); err != nil {
			return err
		}
		if b, err = strconv.Atoi(args[1]); err != nil {
			return err
		}
	}
	add, err := tool.New("add", "Adds two integers.", func(_ context.Context, in sum) (int, error) { return in.A + in.B, nil }, tool.ReadOnly())
	if err != nil {
		return err
	}
	eng := fiducial.New(calculator{}, fiducial.WithSystem("You add."), fiducial.WithTools(add), fiducial.WithEvents(printer{}))
	_, out, err := eng.Run(ctx, llm.UserText(fmt.Sprintf(`{"a":%d,"b":%d}`, a, b)))
	if err != nil {
		return err
	}
	fmt.Println(out.Text())
	return nil
}

type sum struct {
	A int `json:"a" jsonschema:"the first summand"`
	B int `json:"b" jsonschema:"the second summand"`
}

// calculator is a model of two rules: what a user says goes to the tool, what the
// tool says goes to the user.
type calculator struct{}

func (calculator) Stream(_ context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	last := req.Messages[len(req.Messages)-1]
	reply := llm.AssistantCalls(llm.Call{Name: "add", Args: last.Text()})
	if r, ok := last.Parts[0].(llm.Result); ok {
		reply = llm.AssistantText("The sum is " + r.Body() + ".")
	}
	return collect.Events(collect.Reply{Message: reply})
}

// printer shows what happens.
type printer struct{}

func (printer) Emit(ev fiducial.Event) {
	switch ev := ev.Data.(type) {
	case fiducial.ToolStarted:
		fmt.Printf("call %s %s\n", ev.Call.Name, ev.Call.Args)
	case fiducial.ToolFinished:
		fmt.Printf("result %s\n", ev.Result.Body())
	default:
	}
}
