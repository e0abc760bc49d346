// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"testing"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/mask"
)

// A call whose arguments held a secret does not run, also when a sink panics at the
// first event about the reply and the run is taken up again.
func TestSecretCallAndAPanicOfTheSink(t *testing.T) {
	var args string
	armed := true
	sink := fiducial.EventFunc(func(ev fiducial.Event) {
		switch d := ev.Data.(type) {
		case fiducial.GenerationFinished, fiducial.Warning, fiducial.CacheMiss:
			if armed {
				armed = false
				panic("sink")
			}
		case fiducial.ToolStarted:
			t.Errorf("started %v", d)
		}
	})
	model := llmtest.NewScript(llmtest.Call("send", `{"to":"`+plainSecret+`"}`), llmtest.Say("x"))
	l := mustLock(t, fiducial.New(model, fiducial.WithTools(sendTool(&args)), fiducial.WithMask(mask.New(plainSecret)), fiducial.WithEvents(sink)))
	func() {
		defer func() { equal(t, "panic", recover(), any("sink")) }()
		_, _ = l.Run(t.Context(), llm.UserText("go"))
	}()
	out, err := l.Resume(t.Context())
	wantReason(t, out, err, fiducial.Finished)
	equal(t, "what the tool was given", args, "")
	paired(t, model)
}
