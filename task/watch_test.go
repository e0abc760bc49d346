// SPDX-License-Identifier: Apache-2.0

package task

import (
	"errors"
	"testing"

	fiducial "github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/llm"
)

// A change of the provider in the middle of a run stands in the transcript, with who
// refused, who goes on, and why; other events of the stream do not.
func TestWatch_Failover(t *testing.T) {
	var kinds []string
	var data map[string]any
	r := runner{cfg: Config{Event: func(kind string, d any) { kinds, data = append(kinds, kind), d.(map[string]any) }}}
	r.log(fiducial.Event{Data: fiducial.StreamEvent{Event: llm.Unhandled{}}})
	if len(kinds) > 0 {
		t.Errorf("events %q", kinds)
	}
	r.log(fiducial.Event{Data: fiducial.StreamEvent{Event: llm.Failover{From: llm.Model{Name: "a"}, To: llm.Model{Name: "b"}, Cause: errors.New("429")}}})
	if len(kinds) != 1 || kinds[0] != "provider-failover" || data["from"].(llm.Model).Name != "a" || data["to"].(llm.Model).Name != "b" || data["cause"] != "429" {
		t.Errorf("events %q, %v", kinds, data)
	}
}
