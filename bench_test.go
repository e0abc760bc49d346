// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"fmt"
	"testing"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
)

// callTurn is a reply of n calls that add two numbers.
func callTurn(n int) llmtest.Turn {
	var args []string
	for range n {
		args = append(args, "add", `{"a":2,"b":3}`)
	}
	return llmtest.Call(args...)
}

func scriptOf(rounds int, turn llmtest.Turn) *llmtest.Script {
	turns := make([]llmtest.Turn, rounds+1)
	for i := range rounds {
		turns[i] = turn
	}
	turns[rounds] = llmtest.Say("done")
	return llmtest.NewScript(turns...)
}

// BenchmarkRound is one round of a run: a reply with T calls, and their results.
// A run has N rounds; the figures do not depend on N. The script is the model's
// own share of them.
func BenchmarkRound(b *testing.B) {
	for _, calls := range []int{1, 4} {
		turn := callTurn(calls)
		b.Run(fmt.Sprintf("T=%d/script", calls), func(b *testing.B) {
			model := scriptOf(b.N, turn)
			req := &llm.Request{Messages: []llm.Message{llm.UserText("go")}}
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				for range model.Stream(b.Context(), req) {
				}
			}
		})
		for _, n := range []int{100, 1000} {
			for _, store := range []string{"none", "memory"} {
				b.Run(fmt.Sprintf("T=%d/N=%d/journal=%s", calls, n, store), func(b *testing.B) {
					b.ReportAllocs()
					for left := b.N; left > 0; left -= n {
						b.StopTimer()
						model := scriptOf(min(n, left), turn)
						opts := []fiducial.Option{fiducial.WithTools(sumTool()), fiducial.WithLoopGuard(0)}
						if store == "memory" {
							opts = append(opts, fiducial.WithJournal(journal.NewMemory(), "r"))
						}
						eng := fiducial.New(model, opts...)
						b.StartTimer()
						_, out, err := eng.Run(b.Context(), llm.UserText("go"))
						if err != nil || out.Batches != min(n, left) {
							b.Fatal(out, err)
						}
					}
				})
			}
		}
	}
}
