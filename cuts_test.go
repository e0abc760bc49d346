// SPDX-License-Identifier: Apache-2.0

package fiducial_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/fiducial-dev/fiducial"
	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/llm"
	"github.com/fiducial-dev/fiducial/llm/llmtest"
	"github.com/fiducial-dev/fiducial/tool"
)

// A long run is a conversation of which requests leave things out. It is stopped by a
// limit and goes on in the ways that there are.
type longRun struct {
	t     *testing.T
	model *recorder
	opts  []fiducial.Option // of every process
	plain func() *longRun   // the same without a journal
}

const longBefore, longAfter = 6, 8 // rounds

func newLongRun(t *testing.T, opts ...fiducial.Option) *longRun {
	t.Helper()
	var turns []llmtest.Turn
	for i := range longBefore + longAfter {
		turns = append(turns, meteredCall(i, int64(50+1000*i)))
	}
	both := tool.Must(tool.New("read", "", func(context.Context, noArgs) (tool.Output, error) {
		return tool.Output{Summary: "sum", Content: strings.Repeat("x", 4000), Images: []llm.Image{{Media: "image/png", Data: []byte("png")}}}, nil
	}))
	return &longRun{
		t, &recorder{Client: llmtest.NewScript(append(turns, llmtest.Say("x"), llmtest.Say("y"))...)}, append(slices.Clone(opts), fiducial.WithTools(both), fiducial.WithLoopGuard(0)),
		func() *longRun { return newLongRun(t, opts...) },
	}
}

// stored keeps it in a journal.
func (r *longRun) stored(j journal.Journal) *longRun {
	r.opts = append(r.opts, fiducial.WithJournal(j, "r"))
	return r
}

// engine is a new process.
func (r *longRun) engine(opts ...fiducial.Option) *fiducial.Engine {
	return fiducial.New(r.model, append(slices.Clone(r.opts), opts...)...)
}

func (r *longRun) begin() *fiducial.Locked {
	r.t.Helper()
	l, out, err := r.engine(fiducial.WithTurnLimit(longBefore)).Run(r.t.Context(), llm.UserText("go"))
	wantReason(r.t, out, err, fiducial.LimitReached)
	return l
}

func (r *longRun) goOn(l *fiducial.Locked, rounds int) {
	r.t.Helper()
	if err := l.SetTurnLimit(rounds); err != nil {
		r.t.Fatal(err)
	}
	out, err := l.Resume(r.t.Context())
	want := fiducial.LimitReached
	if rounds > longBefore+longAfter {
		want = fiducial.Finished
	}
	wantReason(r.t, out, err, want)
}

func (r *longRun) relock(l *fiducial.Locked) *fiducial.Locked {
	r.t.Helper()
	eng, err := l.Unlock()
	if err != nil {
		r.t.Fatal(err)
	}
	return mustLock(r.t, eng)
}

func (r *longRun) close(l *fiducial.Locked) {
	r.t.Helper()
	if err := l.Close(r.t.Context()); err != nil {
		r.t.Fatal(err)
	}
}

// prefix is the first n messages of request i as they were sent.
func (r *longRun) prefix(i, n int) string { return strings.Join(r.model.each[i][:n], "\n") }

// committed is how many messages of request i are.
func (r *longRun) committed(i int) int { return r.model.prefix[i] }

// leftOut is how many results of the messages lack something.
func leftOut(messages []llm.Message) (n int) {
	for _, m := range messages {
		for _, p := range m.Parts {
			if r, ok := p.(llm.Result); ok && (r.Content == "" || len(r.Images) == 0) {
				n++
			}
		}
	}
	return n
}

// check sees that the request after the break begins with the one before it, byte for
// byte, that no committed message changed later, and that more was left out behind them.
func (r *longRun) check(l *fiducial.Locked) {
	r.t.Helper()
	equal(r.t, "requests", len(r.model.sent), longBefore+longAfter+1)
	before := r.model.messages(r.t, longBefore-1)
	if leftOut(before) == 0 {
		r.t.Fatal("nothing was left out before the break")
	}
	if r.committed(longBefore) == 0 { // then it is what it would have been without a break
		whole := r.plain()
		mustRun(r.t, whole.engine(), "go")
		for i := range r.model.sent {
			n := len(whole.model.each[i])
			equal(r.t, fmt.Sprint("request ", i), r.prefix(i, n), whole.prefix(i, n))
		}
	} else {
		equal(r.t, "the request after the break", r.prefix(longBefore, len(before)), r.prefix(longBefore-1, len(before)))
	}
	for i := range r.model.sent[1:] {
		sendable(r.t, r.model.messages(r.t, i))
		if n := r.committed(i); n == r.committed(i+1) {
			equal(r.t, fmt.Sprint("the prefix of request ", i+1), r.prefix(i+1, n), r.prefix(i, n))
		}
	}
	last := len(r.model.sent) - 1
	if all := r.model.messages(r.t, last); leftOut(all[r.committed(last):]) == 0 {
		r.t.Error("nothing was left out behind the prefix")
	}
	equal(r.t, "results that the history has not whole", leftOut(l.History()), 0)
}

// E-80, E-83: what a lock commits is what was sent. So a provider's cache goes on, in this
// process and in another, and pruning goes on behind the prefix.
func TestE80_LockCommitsWhatWasSent(t *testing.T) {
	t.Parallel()
	prune := fiducial.WithPruning(fiducial.PruneConfig{Protect: 2000, Minimum: 3000})
	projections := map[string][]fiducial.Option{
		"pruned": {prune}, "images": {fiducial.WithDropImages()}, "both": {prune, fiducial.WithDropImages()},
		"hooks": {prune, fiducial.WithDropImages(), fiducial.WithInterceptor(fiducial.NopInterceptor{})},
	}
	ctx, all := t.Context(), longBefore+longAfter+1
	ways := map[string]func(r *longRun) *fiducial.Locked{
		"relocked": func(r *longRun) *fiducial.Locked {
			l := r.relock(r.begin())
			r.goOn(l, all)
			return l
		},
		"relocked for nothing, twice, and once more later": func(r *longRun) *fiducial.Locked {
			l := r.relock(r.relock(r.begin()))
			r.goOn(l, longBefore+2)
			l = r.relock(l)
			r.goOn(l, all)
			return l
		},
		"limit of a locked engine": func(r *longRun) *fiducial.Locked {
			l := r.begin()
			r.goOn(l, all)
			return l
		},
	}
	stored := map[string]func(r *longRun) *fiducial.Locked{
		"resumed elsewhere": func(r *longRun) *fiducial.Locked {
			r.close(r.begin())
			l := mustLock(t, r.engine())
			r.goOn(l, all)
			return l
		},
		"opened and locked elsewhere": func(r *longRun) *fiducial.Locked {
			r.close(r.begin())
			eng := r.engine()
			if err := eng.Open(ctx); err != nil {
				t.Fatal(err)
			}
			l := mustLock(t, eng)
			r.goOn(l, all)
			return l
		},
		"relocked, then resumed elsewhere": func(r *longRun) *fiducial.Locked {
			l := r.relock(r.begin())
			r.goOn(l, longBefore+1)
			r.close(l)
			l = mustLock(t, r.engine())
			r.goOn(l, all)
			return l
		},
		"relocked, then opened and locked elsewhere, then resumed elsewhere": func(r *longRun) *fiducial.Locked {
			l := r.relock(r.begin())
			r.goOn(l, longBefore+1)
			r.close(l)
			eng := r.engine()
			if err := eng.Open(ctx); err != nil {
				t.Fatal(err)
			}
			l = mustLock(t, eng)
			r.goOn(l, longBefore+5)
			r.close(l)
			l = mustLock(t, r.engine())
			r.goOn(l, all)
			return l
		},
		"closed, and the same engine again": func(r *longRun) *fiducial.Locked {
			l := r.begin()
			r.close(l)
			r.goOn(l, all)
			return l
		},
	}
	for projection, opts := range projections {
		for way, goOn := range ways {
			t.Run(projection+", "+way, func(t *testing.T) {
				t.Parallel()
				r := newLongRun(t, opts...)
				r.check(goOn(r))
			})
			t.Run(projection+", "+way+", with a journal", func(t *testing.T) {
				t.Parallel()
				r := newLongRun(t, opts...).stored(journal.NewMemory())
				r.check(goOn(r))
			})
		}
		for way, goOn := range stored {
			t.Run(projection+", "+way, func(t *testing.T) {
				t.Parallel()
				r := newLongRun(t, opts...).stored(journal.NewMemory())
				r.check(goOn(r))
			})
		}
	}
}

// E-80, E-83: however a run is interrupted, nothing of a committed prefix changes until
// the next lock, and that commits the last request as it was.
func TestE80_CommittedBytesStay(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		var opts []fiducial.Option
		if rapid.Bool().Draw(rt, "prune") {
			opts = append(opts, fiducial.WithPruning(fiducial.PruneConfig{
				Protect: rapid.Int64Range(-1, 3000).Draw(rt, "protect"), Minimum: rapid.Int64Range(1, 4000).Draw(rt, "minimum"),
			}))
		}
		if rapid.Bool().Draw(rt, "images") {
			opts = append(opts, fiducial.WithDropImages())
		}
		if rapid.Bool().Draw(rt, "hooks") {
			opts = append(opts, fiducial.WithInterceptor(fiducial.NopInterceptor{}))
		}
		r := newLongRun(t, opts...).stored(journal.NewMemory())
		l, out, err := r.engine(fiducial.WithTurnLimit(1)).Run(t.Context(), llm.UserText("go"))
		wantReason(t, out, err, fiducial.LimitReached)
		for turns := 1; turns <= longBefore+longAfter; {
			switch rapid.SampledFrom([]string{"on", "on", "on", "relock", "elsewhere", "open"}).Draw(rt, "then") {
			case "on":
				turns += rapid.IntRange(1, 4).Draw(rt, "rounds")
				r.goOn(l, turns)
			case "relock":
				l = r.relock(l)
			case "elsewhere":
				r.close(l)
				l = mustLock(t, r.engine())
				if err := l.Open(t.Context()); err != nil {
					rt.Fatal(err)
				}
			case "open":
				r.close(l)
				eng := r.engine()
				if err := eng.Open(t.Context()); err != nil {
					rt.Fatal(err)
				}
				l = mustLock(t, eng)
			}
		}
		for i := range r.model.sent[1:] {
			n := r.committed(i)
			if r.committed(i+1) > n {
				n = len(r.model.each[i])
			}
			if got, want := r.prefix(i+1, n), r.prefix(i, n); got != want {
				rt.Fatalf("request %d does not begin with the %d messages of the one before:\n got %s\nwant %s", i+1, n, got, want)
			}
		}
		if leftOut(l.History()) != 0 {
			rt.Fatal("the history is not whole")
		}
	})
}

// What is committed counts no more among what could be left out.
func TestCommittedResultsAreNoCandidates(t *testing.T) {
	t.Parallel()
	ev := &events{}
	r := newLongRun(t, fiducial.WithPruning(fiducial.PruneConfig{Protect: -1, Minimum: 1 << 40}), fiducial.WithEvents(ev))
	candidates := func(rounds int, l *fiducial.Locked) int {
		r.goOn(l, rounds)
		for _, e := range slices.Backward(ev.all) {
			if p, ok := e.Data.(fiducial.PruneEvaluated); ok {
				return p.Decision.Candidates
			}
		}
		return -1
	}
	l := r.begin()
	equal(t, "before the lock", candidates(longBefore+1, l), longBefore)
	equal(t, "after it", candidates(longBefore+3, r.relock(l)), 1)
}

// forgetful stores notes as they were before they said what is left out of a prefix.
type forgetful struct{ journal.Journal }

func (f forgetful) Acquire(ctx context.Context, run, owner string) (journal.Lease, error) {
	l, err := f.Journal.Acquire(ctx, run, owner)
	if err != nil {
		return nil, err
	}
	return forgetfulLease{l}, nil
}

type forgetfulLease struct{ journal.Lease }

func (l forgetfulLease) Append(ctx context.Context, mark journal.Mark, bodies ...journal.Body) error {
	var old []journal.Body
	for _, b := range bodies {
		if n, ok := b.(journal.Note); ok && n.Kind == "lock" {
			var fields map[string]json.RawMessage
			if err := json.Unmarshal(n.Data, &fields); err != nil {
				return err
			}
			delete(fields, "sent")
			data, err := json.Marshal(fields)
			if err != nil {
				return err
			}
			b = journal.Note{Kind: n.Kind, Data: data}
		} else if ok && n.Kind == "pruned" && strings.HasPrefix(string(n.Data), "{") {
			continue
		}
		old = append(old, b)
	}
	if len(old) == 0 {
		return nil
	}
	return l.Lease.Append(ctx, mark, old...)
}

// A journal whose notes do not say what was left out of the prefix is taken up all the
// same: the prefix is sent whole then.
func TestLockNotesOfBefore(t *testing.T) {
	t.Parallel()
	j := journal.NewMemory()
	opts := []fiducial.Option{fiducial.WithPruning(fiducial.PruneConfig{Protect: 2000, Minimum: 3000}), fiducial.WithDropImages()}
	r := newLongRun(t, opts...).stored(forgetful{j})
	l := r.relock(r.begin())
	r.goOn(l, longBefore+1)
	r.close(l)
	l = mustLock(t, r.stored(j).engine())
	r.goOn(l, longBefore+longAfter+1)
	last := len(r.model.sent) - 1
	n := r.committed(last)
	equal(t, "left out of the prefix", leftOut(r.model.messages(t, last)[:n]), 0)
	if leftOut(r.model.messages(t, last)) == 0 {
		t.Error("nothing is left out behind it")
	}
}

// What was left out of a history says nothing of the one that replaced it.
func TestCutsEndWithTheirHistory(t *testing.T) {
	t.Parallel()
	for name, edit := range map[string]func(e *fiducial.Engine) error{
		"cut": func(e *fiducial.Engine) error { return e.Truncate(t.Context(), 7) },
		"replaced": func(e *fiducial.Engine) error {
			return e.ReplaceHistory(t.Context(), e.History()[:7])
		},
	} {
		r := newLongRun(t, fiducial.WithPruning(fiducial.PruneConfig{Protect: 2000, Minimum: 3000}), fiducial.WithDropImages()).stored(journal.NewMemory())
		l := r.relock(r.begin())
		r.goOn(l, longBefore+longAfter+1)
		eng, err := l.Unlock()
		if err != nil {
			t.Fatal(err)
		}
		if err := edit(eng); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := eng.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		eng = r.engine()
		if err := eng.Open(t.Context()); err != nil {
			t.Fatal(err)
		}
		sent := len(r.model.sent)
		if _, _, err := eng.Run(t.Context(), llm.UserText("on")); err != nil {
			t.Fatal(err)
		}
		equal(t, name+": left out", leftOut(r.model.messages(t, sent)[:7]), 0)
		equal(t, name+": committed", r.committed(sent), 7)
	}
}
