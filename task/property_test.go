// SPDX-License-Identifier: Apache-2.0

package task_test

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/task"
)

// Random scripts over a real repository hold B-174, B-176, B-177 and B-179, and for
// the domain of text files B-175: nothing is committed that was not checked after
// the last write.
func TestProperties(t *testing.T) {
	runs := 25
	if testing.Short() {
		runs = 5
	}
	for seed := range runs {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { randomRun(t, rand.New(rand.NewPCG(uint64(seed), 15))) })
	}
}

func randomRun(t *testing.T, rnd *rand.Rand) {
	var spent llm.Usage
	turn := 0
	any := func(context.Context, *llm.Request) llmtest.Turn {
		turn++
		u := usage(rnd.Int64N(1000), rnd.Int64N(100))
		spent = spent.Plus(u)
		if rnd.IntN(6) == 0 {
			return llmtest.ReplyUsage(llm.AssistantText("hm"), u)
		}
		var calls []llm.Call
		for range 1 + rnd.IntN(4) {
			c := randomCall(rnd, turn)
			calls = append(calls, llm.Call{Name: c[0], Args: c[1]})
		}
		return llmtest.ReplyUsage(llm.AssistantCalls(calls...), u)
	}
	turns := make([]llmtest.Turn, 200)
	for i := range turns {
		turns[i] = func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
			return any(ctx, req)(ctx, req)
		}
	}
	r := newRig(t, turns...)
	r.file("kept/untracked.txt", "mine")
	if rnd.IntN(2) == 0 {
		r.file("a.txt", "changed by the user\n")
	}
	r.cfg.AllowDirty = true
	before, head := r.tree(), r.git("rev-parse", "HEAD")
	granted := 0
	r.cfg.MaxTurns, r.cfg.MaxRepairs = 1+rnd.IntN(8), 1+rnd.IntN(3)
	r.cfg.Ask = func(context.Context, task.Exhausted) (int, error) {
		n := rnd.IntN(4) - 1
		granted += max(n, 0)
		return n, nil
	}
	res := r.run()
	if n := len(r.script.Requests()); n != res.Tally.Turns || n > r.cfg.MaxTurns+granted {
		t.Errorf("%d replies, %d turns, maximum %d and %d granted (B-176)", n, res.Tally.Turns, r.cfg.MaxTurns, granted)
	}
	if res.Tally.Usage.Input != spent.Input || res.Tally.Usage.Output != spent.Output {
		t.Errorf("usage %+v, spent %+v (B-179)", res.Tally.Usage, spent)
	}
	paired(t, r.last())
	if res.Outcome != task.Done {
		r.same(before)
		if r.git("rev-parse", "HEAD") != head {
			t.Error("HEAD moved")
		}
		return
	}
	if res.Commit != "" && !r.domain.checked {
		t.Error("what was committed was not checked (B-175)")
	}
	if data, err := os.ReadFile(filepath.Join(r.dir, "kept/untracked.txt")); err != nil || string(data) != "mine" {
		t.Errorf("the user's own file: %q, %v", data, err)
	}
}

func randomCall(rnd *rand.Rand, turn int) []string {
	names := []string{"b.txt", "sub/c.txt", "sub/d/e.txt"}
	text := []string{"beta", "gamma", "BAD"}[rnd.IntN(3)] + fmt.Sprint(turn)
	switch rnd.IntN(8) {
	case 0, 1:
		return writeCall(names[rnd.IntN(len(names))], text)
	case 2:
		return checkCall
	case 3:
		return []string{"unlock", `{}`}
	case 4:
		return []string{"remove", fmt.Sprintf(`{"name":%q,"text":""}`, names[rnd.IntN(len(names))])}
	case 5:
		if rnd.IntN(4) == 0 {
			return refuseCall
		}
		return finishCall
	case 6:
		return []string{"nonsense", `{`}
	}
	return []string{"look", fmt.Sprintf(`{"n":%d}`, turn*10+rnd.IntN(10))}
}

// paired holds B-177: each call has just one result, in the order of the reply.
func paired(t *testing.T, req llm.Request) {
	t.Helper()
	var open []string
	for _, m := range req.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Call:
				open = append(open, p.ID)
			case llm.Result:
				if len(open) == 0 || open[0] != p.CallID {
					t.Fatalf("result of %s, and the calls that wait are %v", p.CallID, open)
				}
				open = open[1:]
			case llm.Text, llm.Thinking, llm.Image, llm.System:
			}
		}
	}
	if len(open) > 0 {
		t.Errorf("calls without a result: %v", open)
	}
}
