// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"

	"github.com/cloudwego/eino/components/model"
	"github.com/cloudwego/eino/components/tool"
	"github.com/cloudwego/eino/components/tool/utils"
	"github.com/cloudwego/eino/compose"
	"github.com/cloudwego/eino/flow/agent/react"
	"github.com/cloudwego/eino/schema"
)

type einoModel struct{ *script[*schema.Message] }

func (m einoModel) Generate(_ context.Context, in []*schema.Message, _ ...model.Option) (*schema.Message, error) {
	n := 0
	for n < len(in) && in[len(in)-1-n].Role == schema.Tool {
		n++
	}
	return m.next(n, func(i int, want string) bool { return in[len(in)-n+i].Content == want })
}

func (einoModel) Stream(context.Context, []*schema.Message, ...model.Option) (*schema.StreamReader[*schema.Message], error) {
	return nil, errUnused
}

func (m einoModel) WithTools([]*schema.ToolInfo) (model.ToolCallingChatModel, error) { return m, nil }

// einos is the react agent of github.com/cloudwego/eino, not streaming.
func einos(ctx context.Context, rounds, calls int) (runner, error) {
	m := einoModel{newScript(rounds, calls, func(round int) *schema.Message {
		list := make([]schema.ToolCall, calls)
		for i := range list {
			list[i] = schema.ToolCall{ID: id(round, i), Type: "function", Function: schema.FunctionCall{Name: "add", Arguments: args(round)}}
		}
		return schema.AssistantMessage("", list)
	}, schema.AssistantMessage("done", nil))}
	add, err := utils.InferTool("add", "Adds.", func(_ context.Context, in addArgs) (string, error) { return m.add(in), nil })
	if err != nil {
		return nil, err
	}
	agent, err := react.NewAgent(ctx, &react.AgentConfig{
		ToolCallingModel: m, ToolsConfig: compose.ToolsNodeConfig{Tools: []tool.BaseTool{add}}, MaxStep: 2*rounds + 10,
	})
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) error {
		if _, err := agent.Generate(ctx, []*schema.Message{schema.UserMessage("go")}); err != nil {
			return err
		}
		return m.check()
	}, nil
}
