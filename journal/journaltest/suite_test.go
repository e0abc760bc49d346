// SPDX-License-Identifier: Apache-2.0

package journaltest_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fiducial-dev/fiducial/journal"
	"github.com/fiducial-dev/fiducial/journal/journaltest"
	"github.com/fiducial-dev/fiducial/llm"
)

// breakEnv names the rule that a child process of [TestSuiteFails] breaks.
const breakEnv = "FIDUCIAL_JOURNALTEST_BREAK"

func TestMain(m *testing.M) {
	if dir := os.Getenv(workEnv); dir != "" {
		if err := program(dir); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		return
	}
	if part := os.Getenv(journaltest.ChildEnv); part != "" {
		os.Exit(journaltest.Child(context.Background(), broken(os.Getenv(breakEnv)), part, os.Stdin, os.Stdout))
	}
	os.Exit(m.Run())
}

// TestSuiteFails breaks the rules of the memory store one by one. The suite must fail
// in time, and its words must name the rule.
func TestSuiteFails(t *testing.T) {
	t.Parallel()
	if os.Getenv(breakEnv) != "" {
		t.Skip("this is a child")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range slices.Sorted(maps.Keys(rules())) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd := exec.CommandContext(t.Context(), self, "-test.run=^TestBrokenStore$", "-test.timeout=100s", "-test.short")
			cmd.Env = append(cmd.Environ(), breakEnv+"="+name)
			out, err := cmd.CombinedOutput()
			if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != 1 {
				t.Fatalf("the suite exits with %v, want 1\n%s", err, out)
			}
			if want := rules()[name].words; !strings.Contains(string(out), want) {
				t.Errorf("the words %q are not in\n%s", want, out)
			}
		})
	}
}

// TestBrokenStore is what a child runs.
func TestBrokenStore(t *testing.T) {
	name := os.Getenv(breakEnv)
	if name == "" {
		t.Skip("only children break rules")
	}
	journaltest.Run(t, broken(name))
}

// broken is a store in memory that breaks a rule. There is one for the whole process
// and folder, as if it were in the folder.
func broken(name string) journaltest.Store {
	return journaltest.Store{
		Open: func(string) (journal.Journal, error) {
			r := rules()[name]
			return &badJournal{Journal: journal.NewMemory(), rule: r}, nil
		},
		Patience: 300 * time.Millisecond,
	}
}

// A rule says how a call is done wrongly; nil where it is done rightly.
type rule struct {
	words   string // of the failure
	promise journal.Promise
	create  func(*badJournal, context.Context, string, journal.Header) error
	acquire func(*badJournal, context.Context, string, string) (journal.Lease, error)
	read    func(*badJournal, context.Context, string, uint64) iter.Seq2[journal.Record, error]
	follow  func(*badJournal, context.Context, string, uint64) iter.Seq2[journal.Record, error]
	stat    func(*badJournal, context.Context, string) (journal.Info, error)
	runs    func(*badJournal, context.Context, journal.Filter) iter.Seq2[journal.Info, error]
	offer   func(*badJournal, context.Context, string, string, llm.Message) error
	delete  func(*badJournal, context.Context, string) error
	restore func(*badJournal, context.Context, string, iter.Seq2[journal.Record, error], journal.Mark) error
	close   func(*badJournal) error
	epoch   func(*badLease) uint64
	head    func(*badLease) uint64
	append  func(*badLease, context.Context, journal.Mark, ...journal.Body) error
	inbox   func(*badLease, context.Context) ([]journal.Item, error)
	lost    func(*badLease) <-chan struct{}
	release func(*badLease, context.Context) error
}

func rules() map[string]rule {
	never := make(chan struct{})
	return map[string]rule{
		"Promise": {words: "Promise is Durable", promise: journal.Durable},
		"Lost never closes": {
			words: "Lost was not closed", lost: func(*badLease) <-chan struct{} { return never },
		},
		"Release does nothing": {
			words: "Release ended the lease, and Lost was not closed", release: func(*badLease, context.Context) error { return nil },
		},
		"Epoch stands still": {words: "epoch", epoch: func(*badLease) uint64 { return 1 }},
		"Head is 0":          {words: "Head = 0", head: func(*badLease) uint64 { return 0 }},
		"Item.At is zero": {words: "Item.At", inbox: func(l *badLease, ctx context.Context) ([]journal.Item, error) {
			items, err := l.Lease.Inbox(ctx)
			for i := range items {
				items[i].At = time.Time{}
			}
			return items, err
		}},
		"Inbox backwards": {words: "inbox =", inbox: func(l *badLease, ctx context.Context) ([]journal.Item, error) {
			items, err := l.Lease.Inbox(ctx)
			slices.Reverse(items)
			return items, err
		}},
		"Create twice": {words: "a second Create", create: func(j *badJournal, ctx context.Context, run string, h journal.Header) error {
			if err := j.Journal.Create(ctx, run, h); !errors.Is(err, journal.ErrExists) {
				return err
			}
			return nil
		}},
		"Create loses labels": {words: "Labels", create: func(j *badJournal, ctx context.Context, run string, h journal.Header) error {
			h.Labels = nil
			return j.Journal.Create(ctx, run, h)
		}},
		"Append after the end": {words: "Append after Release", append: func(l *badLease, ctx context.Context, m journal.Mark, b ...journal.Body) error {
			if err := l.Lease.Append(ctx, m, b...); !errors.Is(err, journal.ErrFenced) {
				return err
			}
			return nil
		}},
		"Append by parts": {words: "Append is all or none", append: func(l *badLease, ctx context.Context, m journal.Mark, bodies ...journal.Body) error {
			for _, b := range bodies {
				if err := l.Lease.Append(ctx, m, b); err != nil {
					return err
				}
			}
			return nil
		}},
		"Append loses the mark": {words: "after Append", append: func(l *badLease, ctx context.Context, _ journal.Mark, b ...journal.Body) error {
			return l.Lease.Append(ctx, journal.Mark{}, b...)
		}},
		"Append without looking at ctx": {words: "cancelled", append: func(l *badLease, ctx context.Context, m journal.Mark, b ...journal.Body) error {
			return l.Lease.Append(context.WithoutCancel(ctx), m, b...)
		}},
		"Append takes a key again": {words: "taking a key again", append: func(l *badLease, ctx context.Context, m journal.Mark, b ...journal.Body) error {
			if err := l.Lease.Append(ctx, m, b...); !errors.Is(err, journal.ErrTaken) {
				return err
			}
			return nil
		}},
		"Acquire without its error": {words: "want a HeldError", acquire: func(j *badJournal, ctx context.Context, run, owner string) (journal.Lease, error) {
			l, err := j.Journal.Acquire(ctx, run, owner)
			if errors.Is(err, journal.ErrHeld) {
				return nil, journal.ErrHeld
			}
			return l, err
		}},
		"Read from the start always": {words: "Read of r from 2", read: func(j *badJournal, ctx context.Context, run string, _ uint64) iter.Seq2[journal.Record, error] {
			return j.Journal.Read(ctx, run, 1)
		}},
		"Read without end": {words: "Read of r from 0", read: func(j *badJournal, ctx context.Context, run string, from uint64) iter.Seq2[journal.Record, error] {
			return func(yield func(journal.Record, error) bool) {
				for {
					for r, err := range j.Journal.Read(ctx, run, from) {
						if !yield(r, err) || err != nil {
							return
						}
					}
				}
			}
		}},
		"Follow goes on after the end": {words: "Follow must end after the append whose Mark is Ended", follow: func(j *badJournal, ctx context.Context, run string, from uint64) iter.Seq2[journal.Record, error] {
			return func(yield func(journal.Record, error) bool) {
				for r, err := range j.Journal.Follow(ctx, run, from) {
					if !yield(r, err) || err != nil {
						return
					}
				}
				<-ctx.Done()
			}
		}},
		"Follow goes on after ctx": {words: "Follow must end when its context does", follow: func(j *badJournal, ctx context.Context, run string, from uint64) iter.Seq2[journal.Record, error] {
			return j.Journal.Follow(context.WithoutCancel(ctx), run, from)
		}},
		"Follow is Read": {words: "Follow must yield what is appended", follow: func(j *badJournal, ctx context.Context, run string, from uint64) iter.Seq2[journal.Record, error] {
			return func(yield func(journal.Record, error) bool) {
				for r, err := range j.Journal.Read(ctx, run, from) {
					if !yield(r, err) {
						return
					}
				}
				<-ctx.Done()
			}
		}},
		"Stat hangs": {words: "a call of the store has not returned", stat: func(_ *badJournal, ctx context.Context, _ string) (journal.Info, error) {
			<-ctx.Done()
			return journal.Info{}, ctx.Err()
		}},
		"Stat says nobody holds it": {words: "after Acquire", stat: func(j *badJournal, ctx context.Context, run string) (journal.Info, error) {
			i, err := j.Journal.Stat(ctx, run)
			i.Held = false
			return i, err
		}},
		"Runs without limit": {words: "Limit:2", runs: func(j *badJournal, ctx context.Context, f journal.Filter) iter.Seq2[journal.Info, error] {
			f.Limit = 0
			return j.Journal.Runs(ctx, f)
		}},
		"Offer changes": {words: "inbox =", offer: func(j *badJournal, ctx context.Context, run, key string, m llm.Message) error {
			if m.Text() == "changed" {
				key += "2"
			}
			return j.Journal.Offer(ctx, run, key, m)
		}},
		"Offer takes anything": {words: "a reply", offer: func(j *badJournal, ctx context.Context, run, key string, m llm.Message) error {
			if m.Role == llm.RoleAssistant {
				m.Role = llm.RoleUser
			}
			return j.Journal.Offer(ctx, run, key, m)
		}},
		"Delete of a held run": {words: "Delete while held", delete: func(j *badJournal, ctx context.Context, run string) error {
			if err := j.Journal.Delete(ctx, run); !errors.Is(err, journal.ErrHeld) {
				return err
			}
			return nil
		}},
		"Restore takes what fails": {words: "a source that fails", restore: func(j *badJournal, ctx context.Context, run string, records iter.Seq2[journal.Record, error], m journal.Mark) error {
			return j.Journal.Restore(ctx, run, func(yield func(journal.Record, error) bool) {
				for r, err := range records {
					if err != nil || !yield(r, nil) {
						return
					}
				}
			}, m)
		}},
		"Close does nothing": {words: "want the journal is closed", close: func(*badJournal) error { return nil }},
	}
}

type badJournal struct {
	journal.Journal
	rule rule
}

func (j *badJournal) Promise() journal.Promise { return j.rule.promise }

func (j *badJournal) Create(ctx context.Context, run string, h journal.Header) error {
	if f := j.rule.create; f != nil {
		return f(j, ctx, run, h)
	}
	return j.Journal.Create(ctx, run, h)
}

func (j *badJournal) Acquire(ctx context.Context, run, owner string) (journal.Lease, error) {
	acquire := func(j *badJournal, ctx context.Context, run, owner string) (journal.Lease, error) {
		return j.Journal.Acquire(ctx, run, owner)
	}
	if f := j.rule.acquire; f != nil {
		acquire = f
	}
	l, err := acquire(j, ctx, run, owner)
	if err != nil {
		return nil, fmt.Errorf("%w", err)
	}
	return &badLease{l, j.rule}, nil
}

func (j *badJournal) Read(ctx context.Context, run string, from uint64) iter.Seq2[journal.Record, error] {
	if f := j.rule.read; f != nil {
		return f(j, ctx, run, from)
	}
	return j.Journal.Read(ctx, run, from)
}

func (j *badJournal) Follow(ctx context.Context, run string, from uint64) iter.Seq2[journal.Record, error] {
	if f := j.rule.follow; f != nil {
		return f(j, ctx, run, from)
	}
	return j.Journal.Follow(ctx, run, from)
}

func (j *badJournal) Stat(ctx context.Context, run string) (journal.Info, error) {
	if f := j.rule.stat; f != nil {
		return f(j, ctx, run)
	}
	return j.Journal.Stat(ctx, run)
}

func (j *badJournal) Runs(ctx context.Context, f journal.Filter) iter.Seq2[journal.Info, error] {
	if g := j.rule.runs; g != nil {
		return g(j, ctx, f)
	}
	return j.Journal.Runs(ctx, f)
}

func (j *badJournal) Offer(ctx context.Context, run, key string, m llm.Message) error {
	if f := j.rule.offer; f != nil {
		return f(j, ctx, run, key, m)
	}
	return j.Journal.Offer(ctx, run, key, m)
}

func (j *badJournal) Delete(ctx context.Context, run string) error {
	if f := j.rule.delete; f != nil {
		return f(j, ctx, run)
	}
	return j.Journal.Delete(ctx, run)
}

func (j *badJournal) Restore(ctx context.Context, run string, records iter.Seq2[journal.Record, error], m journal.Mark) error {
	if f := j.rule.restore; f != nil {
		return f(j, ctx, run, records, m)
	}
	return j.Journal.Restore(ctx, run, records, m)
}

func (j *badJournal) Close() error {
	if f := j.rule.close; f != nil {
		return f(j)
	}
	return j.Journal.Close()
}

type badLease struct {
	journal.Lease
	rule rule
}

func (l *badLease) Epoch() uint64 {
	if f := l.rule.epoch; f != nil {
		return f(l)
	}
	return l.Lease.Epoch()
}

func (l *badLease) Head() uint64 {
	if f := l.rule.head; f != nil {
		return f(l)
	}
	return l.Lease.Head()
}

func (l *badLease) Append(ctx context.Context, m journal.Mark, bodies ...journal.Body) error {
	if f := l.rule.append; f != nil {
		return f(l, ctx, m, bodies...)
	}
	return l.Lease.Append(ctx, m, bodies...)
}

func (l *badLease) Inbox(ctx context.Context) ([]journal.Item, error) {
	if f := l.rule.inbox; f != nil {
		return f(l, ctx)
	}
	return l.Lease.Inbox(ctx)
}

func (l *badLease) Lost() <-chan struct{} {
	if f := l.rule.lost; f != nil {
		return f(l)
	}
	return l.Lease.Lost()
}

func (l *badLease) Release(ctx context.Context) error {
	if f := l.rule.release; f != nil {
		return f(l, ctx)
	}
	return l.Lease.Release(ctx)
}
