// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"

	"charm.land/fantasy"
)

type fantasyModel struct{ *script[*fantasy.Response] }

func (m fantasyModel) Generate(_ context.Context, c fantasy.Call) (*fantasy.Response, error) {
	last := c.Prompt[len(c.Prompt)-1].Content
	return m.next(len(last), func(i int, want string) bool {
		r, ok := fantasy.AsMessagePart[fantasy.ToolResultPart](last[i])
		if !ok {
			return false
		}
		text, ok := fantasy.AsToolResultOutputType[fantasy.ToolResultOutputContentText](r.Output)
		return ok && text.Text == want
	})
}

func (fantasyModel) Stream(context.Context, fantasy.Call) (fantasy.StreamResponse, error) {
	return nil, errUnused
}

func (fantasyModel) GenerateObject(context.Context, fantasy.ObjectCall) (*fantasy.ObjectResponse, error) {
	return nil, errUnused
}

func (fantasyModel) StreamObject(context.Context, fantasy.ObjectCall) (fantasy.ObjectStreamResponse, error) {
	return nil, errUnused
}
func (fantasyModel) Provider() string { return "script" }
func (fantasyModel) Model() string    { return "script" }

// fantasys is charm.land/fantasy, not streaming, which is the cheaper of its ways.
func fantasys(_ context.Context, rounds, calls int) (runner, error) {
	model := fantasyModel{newScript(rounds, calls, func(round int) *fantasy.Response {
		r := &fantasy.Response{FinishReason: fantasy.FinishReasonToolCalls}
		for i := range calls {
			r.Content = append(r.Content, fantasy.ToolCallContent{ToolCallID: id(round, i), ToolName: "add", Input: args(round)})
		}
		return r
	}, &fantasy.Response{FinishReason: fantasy.FinishReasonStop, Content: fantasy.ResponseContent{fantasy.TextContent{Text: "done"}}})}
	add := fantasy.NewAgentTool("add", "Adds.", func(_ context.Context, in addArgs, _ fantasy.ToolCall) (fantasy.ToolResponse, error) {
		return fantasy.NewTextResponse(model.add(in)), nil
	})
	agent := fantasy.NewAgent(model, fantasy.WithTools(add))
	return func(ctx context.Context) error {
		if _, err := agent.Generate(ctx, fantasy.AgentCall{Prompt: "go", StopWhen: []fantasy.StopCondition{fantasy.StepCountIs(rounds + 1)}}); err != nil {
			return err
		}
		return model.check()
	}, nil
}
