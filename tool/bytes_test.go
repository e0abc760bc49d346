// SPDX-License-Identifier: Apache-2.0

package tool_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/tool"
)

// Raw JSON and bytes are what encoding/json makes of them, not lists of numbers.
func TestRawJSONAndBytes(t *testing.T) {
	type in struct {
		Any  json.RawMessage `json:"any"`
		Data []byte          `json:"data"`
	}
	var got in
	tl := tool.Must(tool.New("t", "", func(_ context.Context, v in) (string, error) { got = v; return "ok", nil }))
	s, err := tool.NewServer(tl)
	if err != nil {
		t.Fatal(err)
	}
	res := s.Execute(t.Context(), tool.Call{Name: "t", Input: []byte(`{"any":{"x":[1,"a"]},"data":"aGk="}`)})
	if res.Status != llm.StatusSuccess || string(got.Any) != `{"x":[1,"a"]}` || string(got.Data) != "hi" {
		t.Errorf("got %+v, %s", got, res.Body())
	}
	if res := s.Execute(t.Context(), tool.Call{Name: "t", Input: []byte(`{"any":1,"data":[104,105]}`)}); res.Status == llm.StatusSuccess {
		t.Error("a list of numbers passed for base64")
	}
}
