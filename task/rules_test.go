// SPDX-License-Identifier: Apache-2.0

package task_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	fiducial "github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/task"
	"github.com/fiducial-dev/fiducial/tool"
)

// engineOf runs a script under rules alone, without a repository.
func engineOf(t *testing.T, rules *task.Rules, script *llmtest.Script, timeout time.Duration) (fiducial.Outcome, error) {
	t.Helper()
	look := tool.Must(tool.New("look", "Looks.", (&texts{}).look))
	_, out, err := fiducial.New(script, fiducial.WithTools(look, rules.FinishTool()), fiducial.WithInterceptor(rules),
		fiducial.WithRequestTimeout(timeout)).Run(t.Context(), llm.UserText("go"))
	return out, err
}

// B-66, B-74: an obligation is kept once, with its first opener, and cleared by just
// its kind and detail.
func TestLedger(t *testing.T) {
	rules := task.NewRules(task.RulesConfig{})
	rules.Oblige(
		task.Obligation{Kind: "revisit", Detail: "a b", Opener: "first"},
		task.Obligation{Kind: "revisit", Detail: "a b", Opener: "second"},
		task.Obligation{Kind: "revisit", Detail: "a c"},
		task.Obligation{Kind: "check", Opener: "b.txt"},
	)
	want := []task.Obligation{{Kind: "revisit", Detail: "a b", Opener: "first"}, {Kind: "revisit", Detail: "a c"}, {Kind: "check", Opener: "b.txt"}}
	if got := rules.Open(); !cmp.Equal(got, want) {
		t.Errorf("open %v, want %v", got, want)
	}
	if rules.Meet("revisit", "a x") || !rules.Meet("revisit", "a b") || rules.Meet("revisit", "a b") {
		t.Error("Meet does not tell whether it was open")
	}
	rules.MeetKind("revisit")
	if got := rules.Open(); !cmp.Equal(got, want[2:]) {
		t.Errorf("open %v, want %v", got, want[2:])
	}
	got := rules.Open()
	got[0].Kind = "changed"
	if rules.Open()[0].Kind != "check" {
		t.Error("the caller got the ledger itself")
	}
}

// What the domain found in the tree before the journal was read stays due.
func TestRestore_KeepsWhatTheDomainFound(t *testing.T) {
	data, err := json.Marshal(map[string]any{
		"turns": 4, "budget": 9, "unlocked": true, "touched": []string{"b", "d"}, "open": []task.Obligation{{Kind: "log"}},
		"finish": task.Finish{Summary: "s"}, "exit": task.PathDone,
	})
	if err != nil {
		t.Fatal(err)
	}
	rules := task.NewRules(task.RulesConfig{MaxTurns: 5})
	rules.Touch("c")
	rules.Touch("b")
	rules.Oblige(task.Obligation{Kind: "check", Opener: "c"}, task.Obligation{Kind: "log", Opener: "c"})
	if err := rules.Restore([]journal.Note{{Kind: "task", Data: []byte(`{"turns":1}`)}, {Kind: "task", Data: data}, {Kind: "other"}}); err != nil {
		t.Fatal(err)
	}
	got := rules.Tally()
	want := []task.Obligation{{Kind: "log"}, {Kind: "check", Opener: "c"}}
	if !cmp.Equal(got.Touched, []string{"b", "c", "d"}) || !cmp.Equal(got.Open, want) {
		t.Errorf("touched %q, open %v", got.Touched, got.Open)
	}
	if got.Turns != 4 || got.Budget != 9 || !rules.Unlocked() || got.Finish == nil {
		t.Errorf("tally %+v", got)
	}
	if err := rules.Restore([]journal.Note{{Kind: "task", Data: []byte(`{`)}}); err == nil {
		t.Error("a note that is no JSON was taken")
	}
}
