// SPDX-License-Identifier: Apache-2.0

package llm_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/fiducial-dev/fiducial/llm"
)

var sig = llm.Opaque{Vendor: "v", Data: json.RawMessage(`{"signature":"a<b>&c"}`)}

// stored holds each part, empty and full, with its stored form (E-204).
var stored = []struct {
	part llm.Part
	json string
}{
	{llm.Text{}, `{"type":"text","text":""}`},
	{llm.Text{Text: "a <b> & \"c\"\n", Opaque: sig}, `{"type":"text","text":"a <b> & \"c\"\n","opaque":{"vendor":"v","data":{"signature":"a<b>&c"}}}`},
	{llm.Image{Media: "image/png", Data: []byte{0, 255}}, `{"type":"image","media":"image/png","data":"AP8="}`},
	{llm.Thinking{Text: "hm", Opaque: sig}, `{"type":"thinking","text":"hm","opaque":{"vendor":"v","data":{"signature":"a<b>&c"}}}`},
	{llm.System{Kind: "k", Text: "t"}, `{"type":"system","kind":"k","text":"t"}`},
	{llm.System{Kind: "k", Text: "t", Data: json.RawMessage(`[1,"<"]`)}, `{"type":"system","kind":"k","text":"t","data":[1,"<"]}`},
	{llm.Call{ID: "c", Name: "n", Args: "{ not json"}, `{"type":"call","id":"c","name":"n","args":"{ not json"}`},
	{llm.Result{CallID: "c", Name: "n", Status: llm.StatusSuccess}, `{"type":"result","call_id":"c","name":"n","status":"success"}`},
	{
		llm.Result{
			CallID: "c", Name: "n", Status: llm.StatusUnknown, Summary: "s", Content: "x",
			Images: []llm.Image{{Media: "image/gif", Data: []byte{1}}}, Notes: []llm.System{{Kind: "k", Text: "t"}},
		},
		`{"type":"result","call_id":"c","name":"n","status":"unknown","summary":"s","content":"x",` +
			`"images":[{"media":"image/gif","data":"AQ=="}],"notes":[{"kind":"k","text":"t"}]}`,
	},
}

func TestMessagesRoundTrip(t *testing.T) {
	for _, c := range stored {
		m := llm.Message{Role: llm.RoleAssistant, Parts: []llm.Part{c.part}, Stop: llm.StopEndTurn}
		want := `{"role":"assistant","parts":[` + c.json + `],"stop":"end_turn"}`
		data, err := m.MarshalJSON()
		if err != nil || string(data) != want {
			t.Errorf("got %s, %v\nwant %s", data, err, want)
		}
		var got llm.Message
		if err := json.Unmarshal(data, &got); err != nil {
			t.Errorf("%s: %v", data, err)
		}
		if diff := cmp.Diff(m, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", data, diff)
		}
	}
	var got llm.Message
	if err := json.Unmarshal([]byte(`{"role":"user","parts":[]}`), &got); err != nil || got.Parts != nil || got.Stop != "" {
		t.Errorf("no parts are read as %#v, %v", got, err)
	}
}

// TestE210_UnknownIsRefused: what a newer version wrote is never dropped, and a
// failed read leaves the message as it was.
func TestE210_UnknownIsRefused(t *testing.T) {
	for _, data := range []string{
		`{"role":"user","parts":[{"type":"video"}]}`,
		`{"role":"user","parts":[{}]}`,
		`{"role":"user","parts":[null]}`,
		`{"role":"user","parts":[{"type":"text","text":"a"},{"type":"text","newer":1}]}`,
		`{"role":"user","parts":[{"type":"result","notes":[{"kind":"k","newer":1}]}]}`,
		`{"role":"user","parts":[],"newer":1}`,
		`{"role":"user","parts":[{"type":"text","text":1}]}`,
		`{"role":"user","parts":{}}`,
		`[]`,
	} {
		m := llm.UserText("kept")
		err := json.Unmarshal([]byte(data), &m)
		if err == nil {
			t.Errorf("%s was read as %#v", data, m)
		}
		if m.Text() != "kept" {
			t.Errorf("%s: the message became %#v", data, m)
		}
		var unknown *llm.UnknownPartError
		if strings.Contains(data, "video") && (!errors.As(err, &unknown) || unknown.Type != "video") {
			t.Errorf("%s: %v", data, err)
		}
	}
	if _, err := (llm.Message{Parts: []llm.Part{nil}}).MarshalJSON(); err == nil {
		t.Error("a nil part was written")
	}
}

// FuzzMessageJSON: what can be read is written and read back the same.
func FuzzMessageJSON(f *testing.F) {
	for _, c := range stored {
		f.Add([]byte(`{"role":"tool","parts":[` + c.json + `]}`))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var m llm.Message
		if json.Unmarshal(data, &m) != nil {
			return
		}
		first, err := m.MarshalJSON()
		if err != nil {
			t.Fatalf("%s was read and cannot be written: %v", data, err)
		}
		var again llm.Message
		if err := json.Unmarshal(first, &again); err != nil {
			t.Fatalf("%s cannot be read back: %v", first, err)
		}
		second, err := again.MarshalJSON()
		if err != nil || !bytes.Equal(first, second) {
			t.Fatalf("written twice: %s, %s, %v", first, second, err)
		}
	})
}
