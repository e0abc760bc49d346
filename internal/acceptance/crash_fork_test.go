//go:build unix

// SPDX-License-Identifier: Apache-2.0

package acceptance

import (
	"path/filepath"
	"reflect"
	"testing"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/sqlite"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/machine"
)

// S-72: at every model boundary of a run an engine can go on in a fork of it. The
// fork has the prefix of its parent, asks the model only for what follows, and
// leaves the parent alone.
func TestForkGoesOn(t *testing.T) {
	j, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "journal.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.Close() })
	const rounds = 3
	if err := engineRun(t.Context(), j, "parent", rounds, 200); err != nil {
		t.Fatal(err)
	}
	whole, err := j.Stat(t.Context(), "parent")
	if err != nil {
		t.Fatal(err)
	}
	forks := 0
	for at := uint64(1); at <= whole.Head; at++ {
		child := "child" + string(rune('a'+at))
		if _, err := journal.Fork(t.Context(), j, "parent", at, child); err != nil {
			continue // it is inside a batch; the suite of the stores looks at this
		}
		info, err := j.Stat(t.Context(), child)
		if err != nil {
			t.Fatal(err)
		}
		var st machine.State
		for rec, err := range j.Read(t.Context(), child, 2) {
			if err != nil {
				t.Fatal(err)
			}
			if s, ok := rec.Body.(journal.Step); ok {
				if err := st.Apply(s.Input); err != nil {
					t.Fatal(err)
				}
			}
		}
		if info.Ended || st.Len() == 0 { // there is nothing to go on with
			continue
		}
		forks++
		model := llmtest.NewScript(llmtest.Say("done otherwise"))
		l, err := fiducial.New(model, fiducial.WithTools(observing(200)), fiducial.WithJournal(j, child)).Lock()
		if err != nil {
			t.Fatal(err)
		}
		out, err := l.Resume(t.Context())
		if err != nil || out.Text() != "done otherwise" {
			t.Fatalf("fork at %d: %s %q, %v", at, out.Reason, out.Text(), err)
		}
		if h := l.History(); len(h) < st.Len() || !reflect.DeepEqual(h[:st.Len()], st.History()) {
			t.Errorf("fork at %d has another prefix", at)
		}
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if forks < rounds {
		t.Errorf("%d forks of %d rounds", forks, rounds)
	}
	if after, err := j.Stat(t.Context(), "parent"); err != nil || !reflect.DeepEqual(after, whole) {
		t.Errorf("the parent is %+v, %v, and was %+v", after, err, whole)
	}
}
