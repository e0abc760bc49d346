// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/tool"
)

// A program that may have been killed does not know whether its run has begun:
// Resume says so when there is nothing to resume.
func Example_runOrResume() {
	ctx := context.Background()
	model := llmtest.NewScript(llmtest.Fail(&llm.Error{Class: llm.ClassAuth}), llmtest.Say("Done."))
	j := journal.NewMemory()
	work := func() (out fiducial.Outcome, err error) {
		l, err := fiducial.New(model, fiducial.WithJournal(j, "run-1")).Lock()
		if err != nil {
			return out, err
		}
		defer func() { err = errors.Join(err, l.Close(ctx)) }()
		out, err = l.Resume(ctx)
		if errors.Is(err, fiducial.ErrNothing) { // the run has not begun
			out, err = l.Run(ctx, llm.UserText("Tidy up."))
		}
		return out, err
	}
	out, err := work()
	fmt.Println(out.Reason, llm.ClassOf(err))
	out, err = work() // a later start of the program
	fmt.Println(out.Reason, out.Text(), err)
	// Output:
	// failed auth
	// finished Done. <nil>
}

// A program with another prompt or other tools goes on with a run when Open is called
// before Lock: then Lock commits the new prefix.
func ExampleEngine_Open() {
	ctx := context.Background()
	j := journal.NewMemory()
	model := llmtest.NewScript(llmtest.Fail(&llm.Error{Class: llm.ClassAuth}), llmtest.Say("Tidy."))
	old, _, err := fiducial.New(model, fiducial.WithSystem("Be quick."), fiducial.WithJournal(j, "run-1")).Run(ctx, llm.UserText("Tidy up."))
	fmt.Println(llm.ClassOf(err))
	if err := old.Close(ctx); err != nil {
		fmt.Println(err)
	}

	look := tool.Must(tool.New("look", "Looks.", func(context.Context, struct{}) (string, error) { return "dust", nil }))
	eng := fiducial.New(model, fiducial.WithSystem("Be careful."), fiducial.WithTools(look), fiducial.WithJournal(j, "run-1"))
	if err := eng.Open(ctx); err != nil { // without it, Resume refuses the other prefix
		fmt.Println(err)
		return
	}
	l, err := eng.Lock()
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := l.Resume(ctx)
	fmt.Println(out.Text(), err, model.Requests()[1].System)
	// Output:
	// auth
	// Tidy. <nil> Be careful.
}
