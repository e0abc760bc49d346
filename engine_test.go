package fiducial_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/tool"
)

type sumIn struct {
	A int `json:"a" jsonschema:"first"`
	B int `json:"b" jsonschema:"second"`
}

func sumTool() tool.Tool {
	return tool.Must(tool.New("add", "Adds.", func(_ context.Context, in sumIn) (string, error) {
		return fmt.Sprint(in.A + in.B), nil
	}))
}

func TestSmoke(t *testing.T) {
	model := llmtest.NewScript(llmtest.Call("add", `{"a":2,"b":3}`, "add", `{"a":2}`, "nope", `{}`), llmtest.Say("5"))
	j := journal.NewMemory()
	eng := fiducial.New(model, fiducial.WithTools(sumTool()), fiducial.WithJournal(j, "r1"),
		fiducial.WithEvents(fiducial.EventFunc(func(ev fiducial.Event) { t.Logf("%T %+v", ev.Data, ev.Data) })))
	l, out, err := eng.Run(t.Context(), llm.UserText("What is 2+3?"))
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", out)
	for _, m := range l.History() {
		t.Logf("%+v", m)
	}
	for rec, err := range j.Read(t.Context(), "r1", 0) {
		t.Logf("%d %T %+v %v", rec.Seq, rec.Body, rec.Body, err)
	}
}

func BenchmarkRound(b *testing.B) {
	for _, calls := range []int{1, 4} {
		b.Run(fmt.Sprintf("T=%d", calls), func(b *testing.B) {
			var args []string
			for range calls {
				args = append(args, "add", `{"a":2,"b":3}`)
			}
			turn := llmtest.Call(args...)
			turns := make([]llmtest.Turn, b.N+1)
			for i := range b.N {
				turns[i] = turn
			}
			turns[b.N] = llmtest.Say("done")
			model := llmtest.NewScript(turns...)
			b.ReportAllocs()
			b.ResetTimer()
			if _, _, err := fiducial.New(model, fiducial.WithTools(sumTool()), fiducial.WithLoopGuard(1)).Run(b.Context(), llm.UserText("go")); err != nil {
				b.Fatal(err)
			}
		})
	}
}
