// SPDX-License-Identifier: Apache-2.0

package llm_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
)

// overwrite changes everything that v holds by a pointer or in a list.
func overwrite(v reflect.Value) {
	k := v.Kind()
	switch {
	case k == reflect.Pointer && !v.IsNil():
		change(v.Elem())
		overwrite(v.Elem())
	case k == reflect.Interface:
		overwrite(v.Elem())
	case k == reflect.Struct:
		for _, f := range v.Fields() {
			overwrite(f)
		}
	case k == reflect.Slice:
		for i := range v.Len() {
			overwrite(v.Index(i))
			change(v.Index(i))
		}
	}
}

func change(v reflect.Value) {
	switch {
	case v.CanUint():
		v.SetUint(v.Uint() + 1)
	case v.CanInt():
		v.SetInt(v.Int() + 1)
	case v.CanFloat():
		v.SetFloat(v.Float() + 1)
	default:
		v.SetZero()
	}
}

type everything struct {
	Messages []llm.Message
	Tools    []llm.Tool
	Settings llm.Settings
}

func filled() everything {
	opaque := func() llm.Opaque { return llm.Opaque{Vendor: "v", Data: json.RawMessage(`"sig"`)} }
	note := func() llm.System { return llm.System{Kind: "k", Text: "t", Data: json.RawMessage(`{}`)} }
	image := func() llm.Image { return llm.Image{Media: "image/png", Data: []byte("png")} }
	half, n := 0.5, 7
	return everything{
		[]llm.Message{
			{Role: llm.RoleUser, Parts: []llm.Part{llm.Text{Text: "go", Opaque: opaque()}, image(), note(), nil}},
			{Role: llm.RoleAssistant, Stop: llm.StopToolUse, Parts: []llm.Part{llm.Thinking{Text: "hm", Opaque: opaque()}, llm.Call{ID: "c", Opaque: opaque()}}},
			llm.ToolResults(llm.Result{CallID: "c", Summary: "s", Images: []llm.Image{image()}, Notes: []llm.System{note()}}),
		},
		[]llm.Tool{{Name: "look", Schema: json.RawMessage(`{"type":"object"}`)}},
		llm.Settings{Temperature: &half, TopP: &half, TopK: &n, Stop: []string{"end"}},
	}
}

// TestClonesShareNothing writes to all that can be written to in the originals.
func TestClonesShareNothing(t *testing.T) {
	t.Parallel()
	v := filled()
	c := everything{llm.CloneMessages(v.Messages), llm.CloneTools(v.Tools), v.Settings.Clone()}
	if !reflect.DeepEqual(v, c) {
		t.Fatalf("a clone differs:\n got %+v\nwant %+v", c, v)
	}
	overwrite(reflect.ValueOf(v))
	if want := filled(); !reflect.DeepEqual(c, want) {
		t.Errorf("clones share what was written to:\n got %+v\nwant %+v", c, want)
	}
	if llm.CloneMessages(nil) != nil || llm.CloneTools(nil) != nil || (llm.Message{}).Clone().Parts != nil {
		t.Error("nil does not stay nil")
	}
}
