// SPDX-License-Identifier: Apache-2.0

package journal_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/machine"
)

// written is a journal in memory with a run of one message and its answer, as the
// engine writes it. Any other store does the same.
func written(ctx context.Context) (journal.Journal, error) {
	j := journal.NewMemory()
	if err := j.Create(ctx, "run-1", journal.Header{Labels: map[string]string{"project": "amplifier"}}); err != nil {
		return nil, err
	}
	lease, err := j.Acquire(ctx, "run-1", "example")
	if err != nil {
		return nil, err
	}
	var st machine.State
	for _, in := range []machine.Input{
		machine.AppendInput{Message: llm.UserText("What is 2+3?")},
		machine.Start{},
		machine.Begin{Op: 1},
		machine.Generated{Op: 1, Message: llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{llm.Text{Text: "5"}}, Stop: llm.StopEndTurn}},
	} {
		held, keep := st.Durable(in)
		if err := st.Apply(in); err != nil {
			return nil, err
		}
		if !keep {
			continue
		}
		if err := lease.Append(ctx, journal.MarkOf(&st), journal.Step{Input: held}); err != nil {
			return nil, err
		}
	}
	return j, lease.Release(ctx)
}

// A user interface reads a run from its beginning and then sees it go on, from any
// process. The run has to be there: Create it first, or wait while ErrNotFound comes.
func ExampleJournal_follow() {
	ctx := context.Background()
	j, err := written(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	for rec, err := range j.Follow(ctx, "run-1", 0) {
		if err != nil {
			fmt.Println(err)
			return
		}
		switch b := rec.Body.(type) {
		case journal.Header:
			fmt.Println(rec.Seq, "begun with labels", b.Labels)
		case journal.Step:
			fmt.Printf("%d %T\n", rec.Seq, b.Input)
		case journal.Note:
			fmt.Println(rec.Seq, "note", b.Kind)
		}
	}
	// Output:
	// 1 begun with labels map[project:amplifier]
	// 2 machine.AppendInput
	// 3 machine.Start
	// 4 machine.Generated
}

// A run that is taken out of one store and into another keeps its numbers and times;
// a copy of it under another name is made by Fork.
func ExampleExport() {
	ctx := context.Background()
	from, err := written(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	dir, err := os.MkdirTemp("", "runs")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	to, err := journal.OpenFolder(dir, journal.FolderOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer to.Close()

	var file bytes.Buffer
	if err := journal.Export(ctx, from, "run-1", &file); err != nil {
		fmt.Println(err)
		return
	}
	run, err := journal.Import(ctx, to, &file)
	if err != nil {
		fmt.Println(err)
		return
	}
	last, err := journal.Fork(ctx, to, run, 2, "run-2") // before the model was asked
	fmt.Println(run, "and its first", last, "records as run-2", err)
	for info, err := range to.Runs(ctx, journal.Filter{Labels: map[string]string{"project": "amplifier"}, Parent: run}) {
		fmt.Println(info.Run, info.Phase, "from", info.Parent, err)
	}
	// Output:
	// run-1 and its first 2 records as run-2 <nil>
	// run-2 ready from run-1 <nil>
}

// Runs that have ended are kept for a while, or the last so many of them. What is
// held stays: close the engine's Locked when you are done with it.
func ExamplePrune() {
	ctx := context.Background()
	j, err := written(ctx)
	if err != nil {
		fmt.Println(err)
		return
	}
	gone, err := journal.Prune(ctx, j, journal.Policy{OlderThan: time.Now().Add(-30 * 24 * time.Hour)})
	fmt.Println(len(gone), err)
	gone, err = journal.Prune(ctx, j, journal.Policy{OlderThan: time.Now().Add(time.Hour)})
	fmt.Println(gone, err)
	// Output:
	// 0 <nil>
	// [run-1] <nil>
}
