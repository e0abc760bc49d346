// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/tool"
)

// A scriptedTool does what its case says.
type scriptedTool struct {
	spec  toolSpec
	enter func(ctx context.Context, call tool.Call) error // hears of each call that enters
}

func (s scriptedTool) Spec() tool.Spec {
	out := tool.Spec{Name: s.spec.Name, Description: s.spec.Description}
	if len(s.spec.Schema) > 0 && string(s.spec.Schema) != "null" {
		out.Schema = compact(s.spec.Schema)
	}
	return out
}

func (s scriptedTool) Traits() tool.Traits {
	return tool.Traits{ReadOnly: s.spec.SideEffect == "none"}
}

func (s scriptedTool) Run(ctx context.Context, call tool.Call) (tool.Output, error) {
	if err := s.enter(ctx, call); err != nil {
		return tool.Output{}, err
	}
	b := s.spec.Behavior
	if b.SleepMS > 0 {
		select {
		case <-time.After(time.Duration(b.SleepMS) * time.Millisecond):
		case <-ctx.Done():
			return tool.Output{}, tool.Errorf(tool.Cancelled, "stopped while it slept: %w", context.Cause(ctx))
		}
	}
	switch {
	case b.Returns != nil:
		return tool.Output{Content: *b.Returns}, nil
	case b.ReturnsBy != nil:
		return lookUp(b.ReturnsBy, call.Input)
	case b.ReturnsParts != nil:
		return outputOf(b.ReturnsParts)
	case b.ReturnsRepeat != nil:
		return tool.Output{Content: strings.Repeat(b.ReturnsRepeat.Text, b.ReturnsRepeat.Times)}, nil
	case b.ReturnsBase64 != nil:
		data, err := base64.StdEncoding.DecodeString(*b.ReturnsBase64)
		return tool.Output{Content: string(data)}, err
	case b.Error != nil:
		return tool.Output{}, errors.New(*b.Error)
	case b.Panics != nil:
		panic(*b.Panics)
	case b.BlocksUntilCancel:
		<-ctx.Done()
		return tool.Output{}, tool.Errorf(tool.Cancelled, "stopped: %w", context.Cause(ctx))
	}
	return tool.Output{}, nil // it only slept
}

// lookUp answers by the value of an argument.
func lookUp(by map[string]map[string]string, input json.RawMessage) (tool.Output, error) {
	args, err := parseJSON(input)
	if err != nil {
		return tool.Output{}, err
	}
	for name, texts := range by {
		if v, ok, err := find(args, name); err == nil && ok {
			if text, ok := texts[plainText(v)]; ok {
				return tool.Output{Content: text}, nil
			}
		}
	}
	return tool.Output{}, tool.Errorf(tool.NotFound, "there is nothing for %s", input)
}

func outputOf(parts []part) (tool.Output, error) {
	var out tool.Output
	var texts []string
	for _, p := range parts {
		switch p.Type {
		case "text":
			texts = append(texts, p.Text)
		case "image":
			data, err := base64.StdEncoding.DecodeString(p.DataBase64)
			if err != nil {
				return out, err
			}
			out.Images = append(out.Images, llm.Image{Media: p.MediaType, Data: data})
		default:
			return out, errors.New("unknown part " + p.Type)
		}
	}
	out.Content = strings.Join(texts, "\n")
	return out, nil
}
