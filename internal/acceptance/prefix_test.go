// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"context"
	"fmt"
	"iter"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/provider/anthropic"
	"github.com/fiducial-dev/fiducial/provider/gemini"
	"github.com/fiducial-dev/fiducial/provider/openai"
	"github.com/fiducial-dev/fiducial/tool"
)

// A brain answers for the model behind an [llmtest.Server].
type brain func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error]

func (b brain) Stream(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	return b(ctx, req)
}

// wires are the formats, each with its real adapter.
var wires = map[llmtest.Wire]func(url string) (llm.Client, error){
	llmtest.WireAnthropic: func(url string) (llm.Client, error) {
		return anthropic.New("claude-sonnet-4-5", anthropic.WithBaseURL(url), anthropic.WithAPIKey("k-1234567"), anthropic.WithFourthMark())
	},
	llmtest.WireOpenAIChat: func(url string) (llm.Client, error) {
		return openai.NewChat("model", openai.WithBaseURL(url), openai.WithAPIKey("k-1234567"), openai.WithReasoningField("reasoning_content"))
	},
	llmtest.WireOpenAIResponses: func(url string) (llm.Client, error) {
		return openai.NewResponses("gpt-5-mini", openai.WithBaseURL(url), openai.WithAPIKey("k-1234567"))
	},
	llmtest.WireGemini: func(url string) (llm.Client, error) {
		return gemini.New("gemini-3-pro-preview", gemini.WithBaseURL(url), gemini.WithAPIKey("k-1234567"))
	},
}

// A talk is a random conversation: a model that thinks, speaks, calls and breaks
// off, tools that succeed and fail, notices, steering, cancels, and another process
// that takes over.
type talk struct {
	t       *testing.T
	r       *rand.Rand
	srv     *llmtest.Server
	journal *journal.Memory
	client  llm.Client
	locked  *fiducial.Locked
	cancel  context.CancelFunc
	rounds  int
	seen    map[string]int // what happened
}

// TestPrefixStability: of two requests of one locked engine the later one begins
// with the bytes of the earlier, whatever happens between them (cache marks aside).
func TestPrefixStability(t *testing.T) {
	for name, client := range wires {
		t.Run(string(name), func(t *testing.T) {
			seen := map[string]int{}
			for seed := range uint64(12) {
				randomTalk(t, seed, client, seen)
			}
			t.Logf("%v", seen)
			for what, least := range map[string]int{"requests": 200, "broken": 10, "cancelled": 3, "steered": 10, "taken over": 10, "notices": 10} {
				if seen[what] < least {
					t.Errorf("%s: %d, too few to tell anything", what, seen[what])
				}
			}
		})
	}
}

func randomTalk(t *testing.T, seed uint64, client func(string) (llm.Client, error), seen map[string]int) {
	k := &talk{t: t, seen: seen, r: rand.New(rand.NewPCG(seed, 7)), journal: journal.NewMemory()}
	k.srv = llmtest.NewServer(brain(k.answer))
	defer k.srv.Close()
	var err error
	if k.client, err = client(k.srv.URL); err != nil {
		t.Fatal(err)
	}
	k.open()
	for step := range 5 {
		k.rounds = k.r.IntN(6)
		ctx, cancel := context.WithCancel(t.Context())
		k.cancel = cancel
		out, err := k.locked.Run(ctx, llm.UserText(fmt.Sprintf("%d %s", step, llmtest.RandomText(k.r))))
		cancel()
		switch {
		case out.Reason == fiducial.Cancelled:
			seen["cancelled"]++
		case err != nil:
			t.Fatalf("seed %d, step %d: %v", seed, step, err)
		}
		if k.r.IntN(3) == 0 {
			if err := k.locked.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
			k.open()
			seen["taken over"]++
		}
	}
	all := k.srv.Exchanges()
	for i, e := range all {
		if e.Status != http.StatusOK {
			t.Errorf("seed %d, request %d: status %d: %.2000s", seed, i+1, e.Status, e.Body)
		}
		if i == 0 {
			continue
		}
		if diff := llmtest.PrefixChanged(all[i-1].Body, e.Body); diff != "" {
			t.Errorf("seed %d, request %d: %s", seed, i+1, diff)
		}
	}
	seen["requests"] += len(all)
}

// open makes a process; the first begins the run, later ones take it over.
func (k *talk) open() {
	k.t.Helper()
	tools := []tool.Tool{k.tool("zeta"), k.tool("alpha"), k.tool("mid/dle.name")}
	k.r.Shuffle(len(tools), func(i, j int) { tools[i], tools[j] = tools[j], tools[i] })
	eng := fiducial.New(k.client,
		fiducial.WithSystem("Rules: <be> & stay “exact”."), fiducial.WithTools(tools...),
		fiducial.WithJournal(k.journal, "talk"), fiducial.WithGrace(time.Millisecond), fiducial.WithLoopGuard(-1),
		fiducial.WithRetry(fiducial.RetryPolicy{Attempts: 10, Base: time.Microsecond}),
		fiducial.WithNotice(k.notice),
		fiducial.WithEvents(fiducial.EventFunc(func(ev fiducial.Event) {
			switch ev.Data.(type) {
			case fiducial.DraftReset:
				k.seen["broken"]++
			case fiducial.Steered:
				k.seen["steered"]++
			case fiducial.NoticeAdded:
				k.seen["notices"]++
			default:
			}
		})))
	var err error
	if k.locked, err = eng.Lock(); err != nil {
		k.t.Fatal(err)
	}
}

func (k *talk) notice(context.Context, []llm.Message) (string, error) {
	if k.r.IntN(5) > 0 {
		return "", nil
	}
	return "It is late. " + llmtest.RandomText(k.r), nil
}

// schema has its keys in no order.
const schema = `{"type":"object","properties":{"zeta":{"type":"string","description":"<z> & é"},"alpha":{"type":"integer"},"mid":{"type":"array","items":{"type":"string"}}},"required":["zeta"]}`

func (k *talk) tool(name string) tool.Tool {
	return scriptedTool{
		toolSpec{Name: name, Description: "Does " + name, Schema: []byte(schema), SideEffect: "none", Behavior: behavior{Returns: new(string)}},
		k.enter,
	}
}

// enter is called by one call at a time: the model makes several, and they overlap,
// so chance is taken from the call.
func (k *talk) enter(ctx context.Context, call tool.Call) error {
	switch len(call.Key()) * (len(call.Input) + call.Ordinal) % 7 {
	case 0:
		return tool.Errorf(tool.Failed, "no: %s", call.Input)
	case 1:
		return k.locked.Send(ctx, call.Key(), llm.UserText("By the way: "+call.Name))
	case 2:
		if call.Ordinal == 1 {
			k.cancel()
		}
	}
	return nil
}

var oddArgs = []string{
	`{"zeta":"x"}`, `{ "zeta" : "<a> & b" , "alpha" : 12345678901234567890 }`, `{"zeta":"日😀","mid":["\u2028"]}`, ``,
	`{"zeta":"a`, `[]`, "{\n\"alpha\":1e3,\n\"zeta\":\"q\"}", `{"zeta":"\ud83d"}`,
}

// answer is the model.
func (k *talk) answer(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
	r := k.r
	if r.IntN(8) == 0 {
		return llmtest.Break(&llm.Error{Class: llm.ClassTransport},
			llm.BlockStart{Index: 0, Kind: llm.BlockText}, llm.BlockDelta{Index: 0, Text: "half"})(ctx, req)
	}
	m := llm.Message{Role: llm.RoleAssistant, Stop: llm.StopEndTurn}
	if r.IntN(2) == 0 {
		m.Parts = append(m.Parts, llm.Thinking{Text: llmtest.RandomText(r)})
	}
	if k.rounds == 0 || r.IntN(2) == 0 {
		m.Parts = append(m.Parts, llm.Text{Text: llmtest.RandomText(r)})
	}
	if k.rounds > 0 && len(req.Tools) > 0 {
		k.rounds--
		for range 1 + r.IntN(3) {
			name := req.Tools[r.IntN(len(req.Tools))].Name
			m.Parts = append(m.Parts, llm.Call{Name: name, Args: oddArgs[r.IntN(len(oddArgs))]})
		}
		m.Stop = llm.StopToolUse
	}
	return llmtest.Reply(m)(ctx, req)
}

// A forty-turn task on the simulated cache: what share of the tokens that any
// client could have had from the cache is served from it, and what the input costs.
func TestCacheOverFortyTurns(t *testing.T) {
	cost := map[string]llmtest.Totals{}
	for _, way := range []struct {
		name     string
		settings llm.Settings
		opts     []anthropic.Option
	}{
		{"none", llm.Settings{NoCache: true}, nil},
		{"three marks", llm.Settings{}, nil},
		{"four marks", llm.Settings{}, []anthropic.Option{anthropic.WithFourthMark()}},
	} {
		total := fortyTurns(t, way.settings, way.opts...)
		cost[way.name] = total
		t.Logf("%-12s %7.0f units of uncached input; %d tokens in, %d of the %d possible from the cache (%.2f %%)",
			way.name, total.Cost(), total.Input, total.CacheRead, total.Best, 100*total.HitRate())
	}
	if rate := cost["four marks"].HitRate(); rate < 0.99 {
		t.Errorf("four marks serve %.2f %% of what could be served; want 99", 100*rate)
	}
	none, three, four := cost["none"].Cost(), cost["three marks"].Cost(), cost["four marks"].Cost()
	if four > three || three > none/2 {
		t.Errorf("costs: none %.0f, three marks %.0f, four %.0f", none, three, four)
	}
}

func fortyTurns(t *testing.T, set llm.Settings, opts ...anthropic.Option) llmtest.Totals {
	r := rand.New(rand.NewPCG(40, 4))
	turn := 0
	srv := llmtest.NewServer(brain(func(ctx context.Context, req *llm.Request) iter.Seq2[llm.Event, error] {
		turn++
		if turn%40 == 0 {
			return llmtest.Say("All is done.")(ctx, req)
		}
		m := llm.Message{Role: llm.RoleAssistant, Stop: llm.StopToolUse, Parts: []llm.Part{llm.Text{Text: fmt.Sprintf("Step %d.", turn)}}}
		calls := 1 + r.IntN(3)
		if turn%13 == 0 {
			calls = 24 // a batch that is longer than the provider looks back
		}
		for i := range calls {
			m.Parts = append(m.Parts, llm.Call{Name: "read", Args: fmt.Sprintf(`{"path":"f%d_%d"}`, turn, i)})
		}
		return llmtest.Reply(m)(ctx, req)
	}))
	defer srv.Close()
	client, err := anthropic.New("claude-sonnet-4-5", append(opts, anthropic.WithBaseURL(srv.URL), anthropic.WithAPIKey("k-1234567"))...)
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Repeat("line of a file\n", 60)
	read := scriptedTool{
		toolSpec{Name: "read", Description: "Read a file", Schema: []byte(`{"type":"object","properties":{"path":{"type":"string"}}}`), SideEffect: "none", Behavior: behavior{Returns: &text}},
		func(context.Context, tool.Call) error { return nil },
	}
	eng := fiducial.New(client, fiducial.WithSystem(strings.Repeat("A rule to follow. ", 200)), fiducial.WithTools(read), fiducial.WithSettings(set))
	_, out, err := eng.Run(t.Context(), llm.UserText("Read it all."))
	if err != nil || out.Turns != 40 {
		t.Fatalf("%d turns, %v", out.Turns, err)
	}
	return srv.Totals()
}
