// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/mask"
	"github.com/fiducial-dev/fiducial/tool"
)

// TestMaskBeforeCut: a text of a tool that is cut for the model is masked before it is,
// so that no part of a secret is left in history, events or journal.
func TestMaskBeforeCut(t *testing.T) {
	t.Parallel()
	const secret = "Zq7Lm2Xv9 Kp4Rt8Wy3 Nb6Hd1Fg5Js0Ac"
	show := tool.Must(tool.New("show", "", func(ctx context.Context, _ struct{}) (string, error) {
		if call, ok := tool.FromContext(ctx); !ok || call.Mask(secret) != "[masked]" {
			t.Errorf("the call masks nothing")
		}
		return strings.Repeat("v", 60) + " " + secret + "\n" + strings.Repeat("more\n", 60), nil
	}))
	j := journal.NewMemory()
	var seen strings.Builder
	sink := fiducial.EventFunc(func(ev fiducial.Event) { fmt.Fprintf(&seen, "%+v\n", ev.Data) })
	model := llmtest.NewScript(llmtest.Call("show", "{}"), llmtest.Say("ok"))
	l, out, err := fiducial.New(model, fiducial.WithTools(show), fiducial.WithMask(mask.New(secret)),
		fiducial.WithEvents(sink), fiducial.WithJournal(j, "run")).Run(t.Context(), llm.UserText("go"))
	wantReason(t, out, err, fiducial.Finished)
	for rec, err := range j.Read(t.Context(), "run", 0) {
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&seen, "%+v\n", rec.Body)
	}
	fmt.Fprintf(&seen, "%+v\n", l.History())
	for part := range strings.FieldsSeq(secret) {
		if strings.Contains(seen.String(), part) {
			t.Errorf("%q of the secret is shown", part)
		}
	}
	if n := strings.Count(seen.String(), "[masked]"); n < 6 {
		t.Errorf("the masked text stands in %d places: the test looks past it", n)
	}
}
