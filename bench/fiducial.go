// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"iter"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/collect"
	"github.com/fiducial-dev/fiducial/tool"
)

type ourModel struct{ *script[llm.Message] }

func (m ourModel) Stream(_ context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	last := req.Messages[len(req.Messages)-1]
	reply, err := m.next(len(last.Parts), func(i int, want string) bool {
		r, ok := last.Parts[i].(llm.Result)
		return ok && r.Summary == want
	})
	if err != nil {
		return func(yield func(llm.Event, error) bool) { yield(nil, err) }
	}
	return collect.Events(collect.Reply{Message: reply})
}

func ourScript(rounds, calls int) ourModel {
	return ourModel{newScript(rounds, calls, func(round int) llm.Message {
		list := make([]llm.Call, calls)
		for i := range list {
			list[i] = llm.Call{ID: id(round, i), Name: "add", Args: args(round)}
		}
		return llm.AssistantCalls(list...)
	}, llm.AssistantText("done"))}
}

// ours is the engine of this module, streaming, without a journal or with the one
// in memory.
func ours(stored bool) func(ctx context.Context, rounds, calls int) (runner, error) {
	return func(_ context.Context, rounds, calls int) (runner, error) {
		model := ourScript(rounds, calls)
		add := tool.Must(tool.New("add", "Adds.", func(_ context.Context, in addArgs) (string, error) { return model.add(in), nil }))
		opts := []fiducial.Option{fiducial.WithTools(add)}
		if stored {
			opts = append(opts, fiducial.WithJournal(journal.NewMemory(), "run"))
		}
		eng := fiducial.New(model, opts...)
		return func(ctx context.Context) error {
			if _, _, err := eng.Run(ctx, llm.UserText("go")); err != nil {
				return err
			}
			return model.check()
		}, nil
	}
}
